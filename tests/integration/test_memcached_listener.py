"""The memcached listener before four servers answers octet for octet what one memcached answers.

Both are sent the same octets; where the answers must differ, the test says why. What differs on purpose is in
docs/memcached.md: stats and version of its own, administration that is refused, limits of a line.
"""

import json
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.append("/usr/lib/python3/dist-packages")  # the system's clients, whichever Python runs this

from support.clockwise import ROOT, SANITIZED  # noqa: E402
from support.memcached import Client, Cluster, Memcached, needs_memcached, scratch_folder  # noqa: E402

GOLDEN = ROOT / "tests" / "golden" / "memcached"
NAMES = "abcd"
LONGEST = b"k" * 250
LARGEST = 1048516  # of a key of one octet, as a server is set up by default
_UNIQUE = re.compile(rb"^(VALUE \S+ \d+ \d+ )\d+(?=\r$)", re.MULTILINE)
_DEBUG_UNIQUE = re.compile(rb"(?<= cas=)\d+")
_META_UNIQUE = re.compile(rb"^((?:HD|VA \d+|EN)(?: \S+)*? c)\d+(?=[ \r])", re.MULTILINE)


def octets(sent):
    """A recorded text: characters of Latin-1, or parts of which some are repeated."""
    if isinstance(sent, str):
        return sent.encode("latin-1")
    return b"".join(octets(part) if isinstance(part, str) else octets(part[0]) * part[1] for part in sent)


def recorded(group):
    return [octets(sent) for sent, _ in json.loads((GOLDEN / f"{group}.json").read_text())["cases"]]


def comparable(answer):
    """Uniques are counted by each server for itself."""
    return _DEBUG_UNIQUE.sub(b"#", _META_UNIQUE.sub(rb"\1#", _UNIQUE.sub(rb"\1#", answer)))


def store(verb, key, value, flags=0, exptime=0, unique=b"", noreply=False):
    return b"%s %s %d %d %d%s%s\r\n%s\r\n" % (verb, key, flags, exptime, len(value), unique and b" " + unique,
                                             b" noreply" if noreply else b"", value)


@needs_memcached
class Differential(unittest.TestCase):
    POOL = {}

    @classmethod
    def setUpClass(cls):
        cls.plain = cls.enterClassContext(Memcached())
        cls.servers = [cls.enterClassContext(Memcached(name)) for name in NAMES]
        cls.proxy = cls.enterClassContext(Cluster(cls.servers, memcached={"allow_flush": True}, pool=cls.POOL))
        cls.addresses = [("127.0.0.1", cls.plain.port), cls.proxy.memcached]
        with cls.proxy.client() as client:  # every server was asked once: their versions are known
            client.ask(b"get" + b"".join(b" k%d" % n for n in range(100)) + b"\r\n")

    def setUp(self):
        for server in [self.plain, *self.servers]:
            self.assertEqual(server.ask(b"flush_all\r\n"), b"OK\r\n")

    def both(self, sent, pieces=None):
        """What each answers to a client that sends this and then nothing more."""
        answers = []
        for address in self.addresses:
            with Client(address) as client:
                for piece in pieces or [sent]:
                    try:
                        client.send(piece)
                    except ConnectionError:
                        break
                try:
                    answers.append(client.finish())
                except OSError:
                    answers.append(client.rest())
        return answers

    def same(self, sent, what=None):
        expected, answered = self.both(sent)
        if comparable(expected) != comparable(answered):
            self.fail(f"{what or sent[:300]!r}\n  a server: {expected[:600]!r}\n  here:     {answered[:600]!r}")
        return answered


class EveryCommand(Differential):
    # A server says these of itself; here the listener does.
    OWN = re.compile(rb"stats ")
    # A server closes without a word on a line of more than 2 KiB; here 8 KiB are waited for.
    LONG = re.compile(rb"\A[^ \n]{2000,}")
    # A server tells what it thinks of a data block once it has come, and this one never comes; here it is told
    # at once.
    UNFINISHED = re.compile(rb"\A(?:set k 0 0 1100000\r\nx{100}mn|\w+ k 0 0 2147483645\D|ms k 2147483645\D|ms k 30 Z)")

    def check_group(self, group):
        wrong = []
        for sent in recorded(group):
            if any(left_out.match(sent) for left_out in (self.OWN, self.LONG, self.UNFINISHED)):
                continue
            self.setUp()
            server, here = self.both(sent)
            if comparable(server) != comparable(here):
                wrong.append(f"{sent[:200]!r}\n  a server: {server[:300]!r}\n  here:     {here[:300]!r}")
        self.assertEqual(wrong, [], f"{len(wrong)} differ:\n" + "\n".join(wrong[:20]))

    def test_storage(self):
        self.check_group("storage")

    def test_retrieval(self):
        self.check_group("retrieval")

    def test_changes(self):
        self.check_group("changes")

    def test_meta(self):
        self.check_group("meta")

    def test_stored_meta(self):
        self.check_group("stored_meta")

    def test_control(self):
        self.check_group("control")

    def test_large(self):
        self.check_group("large")


# Every verb, good and bad, with and without an answer.
MIXED = (
    store(b"set", b"a", b"1") + store(b"set", b"b", b"two words", 4294967295) + store(b"add", b"a", b"no") +
    store(b"add", b"c", b"\r\n\0END\r\n", 7) + store(b"replace", b"a", b"5") + store(b"replace", b"none", b"x") +
    store(b"append", b"b", b" more") + store(b"prepend", b"b", b"first ") + store(b"append", b"none", b"x") +
    b"get a b c none\r\nincr a 10\r\ndecr a 3\r\nincr b 1\r\nincr none 1\r\ndecr a 99999\r\nget a\r\n" +
    store(b"set", b"quiet", b"x", noreply=True) + b"delete quiet noreply\r\nget quiet\r\n" +
    b"touch a 100\r\ntouch none 100\r\ngat 100 a none b\r\ndelete a\r\ndelete a\r\ndelete b 0\r\n" +
    store(b"cas", b"c", b"x", unique=b"18446744073709551615") + store(b"cas", b"none", b"x", unique=b"1") +
    b"set c 0 0 3\r\ntoo long\r\nget c\r\nbogus\r\n\r\nget\r\nset c\r\nset c x 0 1\r\n" +
    b"ms m 3 F5 T0\r\nabc\r\nmg m v f t s k O77\r\nmg none v q\r\nmg m q\r\nms m 1 q\r\nx\r\nms m 1 ME\r\nx\r\nmn\r\n" +
    b"md m q\r\nmd m q\r\nmd m\r\nma n N0 J5 v\r\nma n v\r\nma n q\r\nma none\r\nma none q\r\nms m 2 Z\r\nxx\r\n" +
    b"ms YWJj 3 b\r\nxyz\r\nget abc\r\nmg YWJj b k v\r\nmd YWJj b\r\nget abc\r\nverbosity 0\r\nget a noreply\r\n" +
    store(b"set", b"noreply", b"a key") + b"get noreply\r\ngets noreply a\r\ngats 0 noreply\r\ndelete noreply\r\n" +
    store(b"set", b"expired", b"x", exptime=-1) + store(b"set", b"past", b"x", exptime=2592001) + b"get expired past\r\n" +
    store(b"set", LONGEST, b"x") + store(b"set", LONGEST + b"k", b"x") + b"get " + LONGEST + b" a\r\nget a " +
    LONGEST + b"k\r\n" + store(b"set", b"\x01\x7f\xff", b"x") + b"get \x01\x7f\xff\r\nget a\nget  a   b \nversion\r\n")


class Framing(Differential):
    def test_all_at_once(self):
        self.same(MIXED)

    def test_cut_at_every_boundary(self):
        expected = comparable(self.both(MIXED)[0])
        step = 7 if SANITIZED else 1
        for at in range(1, len(MIXED), step):
            for server in self.servers:
                server.ask(b"flush_all\r\n")
            with self.proxy.client() as client:
                client.send(MIXED[:at])
                client.send(MIXED[at:])
                self.assertEqual(comparable(client.finish()), expected, at)

    def test_octet_by_octet(self):
        expected, here = self.both(MIXED, [MIXED[at:at + 1] for at in range(len(MIXED))])
        self.assertEqual(comparable(here), comparable(expected))

    def test_in_random_pieces(self):
        chance = random.Random(1)
        sent = MIXED * 20
        cuts = sorted(chance.sample(range(1, len(sent)), 300))
        pieces = [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)])]
        expected, here = self.both(sent, pieces)
        self.assertEqual(comparable(here), comparable(expected))

    def test_very_many_commands_before_any_answer_is_read(self):
        self.same(b"mn\r\n" * 50_000)
        self.same(b"get k\r\n" * 50_000)
        self.same(store(b"set", b"k", b"x" * 300_000) + b"verbosity 0 noreply\r\n" * 20_000 + b"get k\r\n")

    def test_commands_behind_a_large_value_are_answered_without_waiting_for_more(self):
        for more in (b"verbosity 0 noreply\r\n" * 9000, b"mn\r\n" * 20_000, b"delete q noreply\r\n" * 9000):
            with self.proxy.client() as client:
                client.send(store(b"set", b"k", b"x" * 1_000_000) + more + b"version\r\n")
                client.answers(b"VERSION ")

    def test_the_end_of_a_client_in_the_middle_of_a_command(self):
        for sent in (b"get", b"get k", b"set k 0 0 5\r\n", b"set k 0 0 5\r\nab", b"set k 0 0 5\r\nabcde\r",
                     b"mn\r\nget k", b"ms k 5\r\nabc", b"\r", b"se"):
            self.same(sent)

    def test_quit_is_the_last_that_is_read(self):
        self.same(store(b"set", b"k", b"x") + b"get k\r\nquit\r\nget k\r\n")
        with self.proxy.client() as client:
            self.assertEqual(client.send(b"get k\r\nquit\r\n").rest(), b"VALUE k 0 1\r\nx\r\nEND\r\n")

    def test_the_binary_protocol_is_refused_at_once(self):
        with self.proxy.client() as client:
            self.assertEqual(client.send(b"\x80\x0b" + b"\0" * 22).rest(), b"")
        self.proxy.wait_log("binary")

    def test_a_line_that_does_not_end(self):
        with self.proxy.client() as client:
            self.assertEqual(client.send(b"mn\r\nset " + b"k" * 10_000).rest(), b"MN\r\nCLIENT_ERROR line too long\r\n")
        with self.proxy.client() as client:
            self.assertEqual(client.send(b"mg k " + b"x " * 10_000).rest(), b"CLIENT_ERROR line too long\r\n")
        with self.proxy.client() as client:
            client.send(b"get " + b"k" * 3_000_000)
            self.assertIn(b"CLIENT_ERROR", client.rest())


class Retrievals(Differential):
    def keys(self, count):
        return [b"key:%d" % n for n in range(count)]

    def fill(self, keys, value=lambda key: b"<" + key + b">", flags=0):
        sent = b"".join(store(b"set", key, value(key), flags, noreply=True) for key in keys) + b"mn\r\n"
        for address in self.addresses:
            with Client(address) as client:
                client.ask(sent)

    def test_many_keys_of_all_servers_in_the_order_of_the_client(self):
        keys = self.keys(1000)
        self.fill(keys[::2])
        chance = random.Random(2)
        for verb in (b"get ", b"gets ", b"gat 0 ", b"gats 100 "):
            for count in (1, 2, 24, 300):
                asked = [chance.choice(keys) for _ in range(count)]
                self.same(verb + b" ".join(asked) + b"\r\n")

    def test_duplicates_and_misses(self):
        keys = self.keys(20)
        self.fill(keys[:10])
        self.same(b"get " + b" ".join(keys[:3] * 50) + b"\r\n")
        self.same(b"get " + b" ".join([keys[0], keys[15]] * 50 + keys + keys[::-1]) + b"\r\n")
        self.same(b"get " + b" ".join(keys[10:] * 3) + b"\r\n")

    def test_a_hundred_thousand_keys_in_one_command(self):
        keys = self.keys(100_000)
        self.fill(keys[::10])
        self.assertEqual(self.same(b"get " + b" ".join(keys) + b"\r\n").count(b"VALUE "), 10_000)

    def test_a_key_too_long_among_others_is_one_error(self):
        keys = self.keys(30)
        self.fill(keys)
        for at in (0, 15, 30):
            asked = [*keys[:at], LONGEST + b"k", *keys[at:]]
            for verb in (b"get ", b"gets ", b"gat 0 ", b"gats 0 "):
                self.same(verb + b" ".join(asked) + b"\r\nmn\r\n")

    def test_values_of_every_size_and_octet(self):
        everything = bytes(range(256))
        for size in (0, 1, 2, 255, 4096, 32767, 32768, 32769, 65536, 300_000, LARGEST):
            value = (everything * (size // 256 + 1))[:size]
            self.same(store(b"set", b"k", value, 4294967295) + b"get k l k\r\ngets k\r\nmg k v f s\r\n", size)
        for value in (b"END\r\n", b"\r\nEND\r\n", b"VALUE k 0 1\r\nx\r\nEND\r\n", b"\r\n" * 100, b"\r", b"\n", b"\0"):
            self.same(store(b"set", b"k", value) + b"get k\r\nmg k v\r\n")

    def test_large_values_of_many_keys(self):
        keys = self.keys(40)
        self.fill(keys, lambda key: key * 20_000)
        self.same(b"get " + b" ".join(keys) + b"\r\n" + b"".join(b"get " + key + b"\r\n" for key in keys))


class Values(Differential):
    def test_uniques(self):
        for address in self.addresses:
            with Client(address) as client:
                for key in (b"k%d" % n for n in range(20)):
                    client.ask(store(b"set", key, b"old", 5))
                    unique = client.ask(b"gets " + key + b"\r\n").split()[4]
                    self.assertEqual(client.ask(store(b"cas", key, b"new", 6, unique=unique)), b"STORED\r\n")
                    self.assertEqual(client.ask(store(b"cas", key, b"newer", unique=unique)), b"EXISTS\r\n")
                    self.assertEqual(client.ask(b"get " + key + b"\r\n"), b"VALUE %s 6 3\r\nnew\r\nEND\r\n" % key)
                    meta = client.ask(b"mg " + key + b" c\r\n").split()[1][1:]
                    self.assertEqual(client.ask(b"ms %s 1 C%s\r\nx\r\n" % (key, meta)), b"HD\r\n")
                    self.assertEqual(client.ask(b"ms %s 1 C%s\r\nx\r\n" % (key, meta)), b"EX\r\n")
                    self.assertEqual(client.ask(b"ms %s 1 C%s q\r\nx\r\n" % (key, meta)), b"EX\r\n")
                    self.assertEqual(client.ask(b"md %s C%s q\r\n" % (key, meta)), b"EX\r\n")

    def test_a_value_that_no_server_takes_deletes_the_old_one(self):
        for size in (LARGEST - 300, LARGEST, LARGEST + 1, 1_048_576, 1_048_577, 2_000_000):
            for key in (b"k", LONGEST):
                for noreply in (False, True):
                    for verb in (b"set", b"add", b"replace", b"append", b"prepend"):
                        self.same(store(b"set", key, b"old") + store(verb, key, b"x" * size, noreply=noreply) +
                                  b"mg " + key + b" s\r\n", (size, verb, noreply))
        for flags in (b"", b" q", b" MA", b" ME", b" b"):
            key = b"YWJj" if flags == b" b" else b"abc"
            self.same(store(b"set", b"abc", b"old") + b"ms %s 2000000%s\r\n" % (key, flags) + b"x" * 2_000_000 +
                      b"\r\nget abc\r\n", flags)

    def test_numbers(self):
        for number in (b"0", b"18446744073709551615", b"18446744073709551616", b"-1", b"x", b"", b"1 ", b" 1", b"007",
                       b"99999999999999999999"):
            for verb in (b"incr", b"decr"):
                for amount in (b"0", b"1", b"18446744073709551615", b"18446744073709551616", b"-1", b"x", b"1.5"):
                    self.same(store(b"set", b"k", number) + b"%s k %s\r\nget k\r\n" % (verb, amount))

    def test_times(self):
        now = int(time.time())
        for exptime in (0, 1, 100, -1, -100, 2_592_000, 2_592_001, now - 10, now + 100, 2_147_483_647):
            self.same(store(b"set", b"k", b"x", exptime=exptime) + b"get k\r\n", exptime)
            self.same(store(b"set", b"k", b"x") + b"touch k %d\r\nget k\r\n" % exptime, exptime)
            self.same(store(b"set", b"k", b"x") + b"gat %d k\r\nget k\r\n" % exptime, exptime)
        for flags in (b"T0", b"T-1", b"T100", b"N100", b"T%d" % (now + 100), b"T2592001"):
            self.same(b"ms k 1 %s\r\nx\r\nmg k v\r\n" % flags, flags)

    MADE_UNDER_A_UNIQUE = (b"ma made7 N0 q C1",)

    def test_quiet_forms(self):
        stored = store(b"set", b"k", b"5")
        for command in (b"mg k q", b"mg k v q", b"mg k s k q", b"mg none q", b"mg none v k q O9", b"mg k q T0",
                        b"md k q", b"md none q", b"md k q C1", b"md k I q", b"ma k q", b"ma k v q", b"ma none q",
                        b"ma k C1 q", b"mg none N30 q", b"mg none N30 v q", b"ma made N0 q", b"ma made1 N0 J5 v q",
                        b"ma made2 q N0 O7 k", b"ma made3 N-1 q", b"ma k N0 q", b"ma k N0 v q", b"ma bWFkZTQ= b N0 k q",
                        b"ma made5 N0 MD v q", b"ma made6 N0 T30 t q", *self.MADE_UNDER_A_UNIQUE):
            self.same(stored + command + b"\r\nmn\r\n" + command + b"\r\nmn\r\n", command)
        for command in (b"ms k 1 q", b"ms none 1 q", b"ms k 1 ME q", b"ms none 1 MR q", b"ms none 1 MA q", b"ms k 1 C1 q",
                        b"ms k 1 k O5 q", b"ms none 1 C1 q", b"ms k 1 MP q I", b"ms none 1 MA q N9"):
            self.same(stored + command + b"\r\nx\r\nmn\r\n" + command + b"\r\nx\r\nmn\r\n", command)

    def test_quiet_arithmetic_among_others(self):
        self.same(store(b"set", b"text", b"x") + b"ma a N0 q\r\nma a N0 q\r\nget a\r\nma text N0 q\r\nma b N0 J7 v q\r\n"
                  b"ma b N0 v q\r\nincr a 1\r\nma none q\r\nmg b v\r\n")

    def test_win_and_stale_marks_pass(self):
        self.same(b"mg k N30 v\r\nmg k N30 v\r\nms k 1 I\r\nx\r\nmg k v t\r\nmd k I T30\r\nmg k v\r\nmg k v\r\n")

    def test_binary_keys_meet_the_plain_ones(self):
        for plain, coded in ((b"abc", b"YWJj"), (b"a", b"YQ=="), (b"k\xff\xfe", b"a//+"), (b"foo:1", b"Zm9vOjE=")):
            self.same(store(b"set", plain, b"x") + b"mg %s b k v\r\nmg %s k v\r\nmd %s b\r\nget %s\r\n" % (coded, plain, coded, plain))
            self.same(b"ms %s 1 b\r\ny\r\nget %s\r\nma %s b\r\nme %s b\r\n" % (coded, plain, coded, coded + b"none"))


class OfItself(Differential):
    def test_version_is_known_before_anything_was_asked(self):
        with Cluster(self.servers) as proxy, proxy.client() as client:
            self.assertEqual(client.ask(b"version\r\n"), self.plain.ask(b"version\r\n"))

    def test_version_is_the_lowest_of_the_servers_that_live(self):
        with Cluster(self.servers) as proxy, proxy.client() as client:
            client.ask(b"version\r\n")
            self.assertEqual(client.ask(b"version noreply\r\n"), self.plain.ask(b"version\r\n"))

    def test_stats(self):
        with self.proxy.client() as client:
            def stats():
                answer = client.ask(b"stats\r\n")
                self.assertTrue(answer.endswith(b"END\r\n"), answer)
                return {name: value for _, name, value in (line.split(b" ", 2) for line in answer.splitlines()[:-1])}
            before = stats()
            for name in (b"pid", b"uptime", b"time", b"version", b"curr_connections", b"total_connections", b"cmd_get",
                         b"cmd_set", b"get_hits", b"get_misses", b"bytes_read", b"bytes_written"):
                self.assertIn(name, before)
            self.assertEqual(int(before[b"pid"]), self.proxy.process.pid)
            client.ask(store(b"set", b"k", b"x") + b"get k none\r\nmg k v\r\nmg none v\r\ntouch k 0\r\n")
            after = stats()
            grown = {name: int(after[name]) - int(before[name]) for name in (b"cmd_get", b"cmd_set", b"get_hits",
                                                                            b"get_misses", b"cmd_touch")}
            self.assertEqual(grown, {b"cmd_get": 4, b"cmd_set": 1, b"get_hits": 2, b"get_misses": 2, b"cmd_touch": 1})

    def test_administration_is_refused(self):
        for command in (b"shutdown", b"slabs automove 0", b"lru mode flat", b"lru_crawler enable", b"watch fetchers",
                        b"cache_memlimit 100", b"bogus", b"GET k", b"bget k", b"refresh_certs", b"debug x"):
            with self.proxy.client() as client:
                self.assertEqual(client.ask(command + b"\r\n"), b"ERROR\r\n", command)
                self.assertEqual(client.ask(b"get k\r\n"), b"END\r\n", command)

    def test_flush_all_reaches_every_server(self):
        with self.proxy.client() as client:
            keys = [b"k%d" % n for n in range(50)]
            for key in keys:
                client.set(key, b"x")
            self.assertEqual(client.ask(b"flush_all\r\n"), b"OK\r\n")
            self.assertEqual(client.ask(b"get " + b" ".join(keys) + b"\r\n"), b"END\r\n")
            client.ask(store(b"set", b"k", b"x"))
            self.assertEqual(client.ask(b"flush_all noreply\r\nget k\r\n"), b"END\r\n")
            self.assertEqual(client.ask(b"flush_all 1000\r\n"), b"OK\r\n")
            self.assertEqual(client.ask(b"flush_all 0\r\n"), b"OK\r\n")

    def test_flush_all_is_refused_unless_it_is_allowed(self):
        with Cluster(self.servers) as proxy, proxy.client() as client:
            client.set(b"k", b"x")
            self.assertTrue(client.ask(b"flush_all\r\n").startswith(b"CLIENT_ERROR "))
            self.assertEqual(client.ask(b"flush_all noreply\r\nget k\r\n"), b"VALUE k 0 1\r\nx\r\nEND\r\n")


class Clients(Differential):
    """Programs and libraries that know nothing of a proxy."""

    @unittest.skipUnless(shutil.which("memccapable"), "memccapable (libmemcached-tools) is not installed")
    def test_memccapable(self):
        for address, where in zip(self.addresses, ("a server", "here")):
            done = subprocess.run(["memccapable", "-h", address[0], "-p", str(address[1]), "-a"], text=True,
                                  capture_output=True, timeout=60)
            self.assertEqual((done.returncode, "FAIL" in done.stdout), (0, False), where + done.stdout + done.stderr)

    def tool(self, name, *arguments):
        """What a program of libmemcached-tools comes to with a server and here, its exit code and what it says."""
        outcomes = []
        for host, port in self.addresses:
            done = subprocess.run([name, f"--servers={host}:{port}", *map(str, arguments)], capture_output=True, timeout=60)
            outcomes.append((done.returncode, done.stdout, done.stderr))
        self.assertEqual(outcomes[0], outcomes[1], (name, *arguments))
        return outcomes[1]

    @unittest.skipUnless(shutil.which("memccp"), "memccp (libmemcached-tools) is not installed")
    def test_libmemcached_tools(self):
        folder = pathlib.Path(self.enterContext(scratch_folder()))
        texts = {"one": b"the first", "two": bytes(range(256)) * 3000, "none": b""}
        files = {name: folder / name for name in texts}
        for name, file in files.items():
            file.write_bytes(texts[name])
        self.assertEqual(self.tool("memcping")[0], 0)
        self.assertEqual(self.tool("memccp", "--flag=7", "--expire=100", *files.values())[0], 0)
        for name, value in texts.items():
            self.assertEqual(self.tool("memccat", name)[1].removesuffix(b"\n"), value)
        self.assertEqual(self.tool("memccat", "--flags", "one")[1].split()[0], b"7")
        self.assertEqual(self.tool("memccp", "--add", files["one"])[0], 1)
        self.assertEqual(self.tool("memccp", "--replace", files["one"])[0], 0)
        self.assertEqual(self.tool("memcexist", "one")[0], 0)
        self.assertEqual(self.tool("memctouch", "--expire=100", "one")[0], 0)
        self.assertEqual(self.tool("memcrm", "one")[0], 0)
        for name in ("memcrm", "memctouch", "memcexist", "memccat"):
            self.assertEqual(self.tool(name, "one")[0], 1)
        self.assertEqual(self.tool("memcflush")[0], 0)
        self.assertEqual(self.tool("memcexist", "two")[0], 1)

    @unittest.skipUnless(shutil.which("memcslap"), "memcslap (libmemcached-tools) is not installed")
    def test_the_load_of_libmemcached_tools(self):
        host, port = self.proxy.memcached
        for options in (["--test=set", "--concurrency=4"], ["--test=get"], ["--test=mget", "--initial-load=500"]):
            done = subprocess.run(["memcslap", f"--servers={host}:{port}", "--execute-number=500", *options], text=True,
                                  capture_output=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def library(self, name):
        try:
            return __import__(name)
        except ImportError:
            self.skipTest(f"{name} is not installed")

    def check(self, client, many="get_multi"):
        keys = [f"key{n}" for n in range(200)]
        for number, key in enumerate(keys):
            client.set(key, str(number))
        found = getattr(client, many)([*keys, "none"])
        self.assertEqual({key: self.text(value) for key, value in found.items()},
                         {key: str(n) for n, key in enumerate(keys)})
        self.assertIsNone(client.get("none"))
        self.assertEqual(client.incr("key5", 10), 15)
        self.assertEqual(client.decr("key5", 1), 14)
        client.set("text", "middle")
        client.append("text", " end")
        client.prepend("text", "begin ")
        self.assertEqual(self.text(client.get("text")), "begin middle end")
        client.delete("text")
        self.assertIsNone(client.get("text"))
        client.set("large", "x" * 900_000)
        self.assertEqual(len(client.get("large")), 900_000)

    @staticmethod
    def text(value):
        return value.decode() if isinstance(value, bytes) else value

    def test_pymemcache(self):
        self.library("pymemcache")
        from pymemcache.client.base import Client as Library
        client = Library(self.proxy.memcached, default_noreply=False)
        self.check(client, "get_many")
        value, unique = client.gets("key7")
        self.assertTrue(client.cas("key7", b"new", unique))
        self.assertFalse(client.cas("key7", b"newer", unique))
        self.assertTrue(client.touch("key7", 100))
        self.assertTrue(client.version())
        self.assertIn(b"pid", client.stats())
        client.flush_all()
        self.assertIsNone(client.get("key7"))
        client.quit()

    def test_pylibmc(self):
        pylibmc = self.library("pylibmc")
        for behaviours in ({}, {"tcp_nodelay": True}, {"cas": True}):
            client = pylibmc.Client(["%s:%d" % self.proxy.memcached], behaviors=behaviours)
            self.check(client)
            self.assertEqual(self.text(client.get_stats()[0][1]["pid"]), str(self.proxy.process.pid))

    def test_python_memcached(self):
        client = self.library("memcache").Client(["%s:%d" % self.proxy.memcached])
        self.check(client)
        self.assertTrue(client.get_stats())

    def test_many_clients_at_once(self):
        faults = []

        def run(number):
            chance = random.Random(number)
            mine = {}
            try:
                with self.proxy.client() as client:
                    for turn in range(50 if SANITIZED else 300):
                        key = b"c%d:%d" % (number, chance.randrange(50))
                        mine[key] = b"%d.%d" % (number, turn) * chance.choice((1, 10, 5000))
                        client.send(store(b"set", key, mine[key], noreply=chance.random() < 0.5))
                        asked = chance.sample(sorted(mine), min(5, len(mine)))
                        answer = client.ask(b"get " + b" ".join(asked) + b"\r\n").removeprefix(b"STORED\r\n")
                        wanted = b"".join(b"VALUE %s 0 %d\r\n%s\r\n" % (k, len(mine[k]), mine[k]) for k in asked)
                        if answer != wanted + b"END\r\n":
                            faults.append((number, turn, answer[:100], wanted[:100]))
            except OSError as error:
                faults.append((number, repr(error)))

        threads = [threading.Thread(target=run, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])


if __name__ == "__main__":
    unittest.main()
