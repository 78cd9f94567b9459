"""Items that several memcached servers hold: what each of them has, and what clients are told.

Servers are looked at by connections of their own. Where one of them is lost, hangs or is empty, the others answer and
what they have comes back to it, but never what a client has deleted; where a write did not happen on all that could be
asked, no client is told that it did.
"""

import base64
import collections
import gzip
import pathlib
import random
import re
import sys
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import test_memcached_listener as listener  # noqa: E402
from support import wire  # noqa: E402
from support.clockwise import SANITIZED, Proxy, wait_until  # noqa: E402
from support.memcached import Client, Cluster, Memcached, Scripted, elapsed, needs_memcached  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.page import Page  # noqa: E402

TWO = {"ring": {"replicas": 2}}
FAST = {**TWO, "timeouts": {"connect": "200ms", "response": "300ms"}}
MARK = 1 << 60  # in a unique of the second owner


def backfills(proxy):
    """How many copies came to what."""
    page = Page(proxy.admin("/metrics").text)
    return {result: page.sum("clockwise_memcached_backfills_total", result=result)
            for result in ("copied", "present", "outdated", "skipped", "error")}


def counted(proxy, command):
    page = Page(proxy.admin("/metrics").text)
    found = {result: page.sum("clockwise_memcached_commands_total", command=command, result=result)
             for result in ("hit", "miss", "stored", "not_stored", "error")}
    return {result: count for result, count in found.items() if count}


@needs_memcached
class Replicated(unittest.TestCase):
    """Three servers, two of which hold each item."""

    def setUp(self):
        self.servers = {name: self.enterContext(Memcached(name)) for name in "abc"}

    def start(self, *, pool=None, memcached=None, **more):
        self.proxy = self.enterContext(Cluster(list(self.servers.values()), pool={**TWO, **(pool or {})},
                                               memcached=memcached, **more))
        self.client = self.enterContext(self.proxy.client())
        # The key of most tests: held by a, then b, and not by c.
        self.key, self.other, *self.more = self.proxy.keys_of("a", "b", count=8)

    def ask(self, text):
        return self.client.ask(text.replace(b"KEY", self.key))

    def held(self, name, key=None):
        """(flags, seconds left, value) on that server; None: nothing."""
        answer = self.servers[name].ask(b"mg %s f t v\r\n" % (key or self.key))
        if answer == b"EN\r\n":
            return None
        head, value = re.fullmatch(rb"VA \d+ (f\d+ t-?\d+)(?: [WXZ])*\r\n(.*)\r\n", answer, re.DOTALL).groups()
        flags, left = head.split()
        return int(flags[1:]), int(left[1:]), value

    def on_both(self, key=None):
        """What both owners have, once they have the same; the third server has nothing."""
        def same():
            a, b = self.held("a", key), self.held("b", key)
            near = a and b and abs(a[1] - b[1]) <= 1
            return a == b or (near and (a[0], a[2]) == (b[0], b[2]))
        wait_until(same, f"a and b hold the same: {self.held('a', key)} {self.held('b', key)}")
        self.assertIsNone(self.held("c", key))
        return self.held("a", key)

    def put(self, name, value, flags=0, exptime=0, key=None):
        """Stores past the proxy."""
        answer = self.servers[name].ask(b"set %s %d %d %d\r\n%s\r\n" % (key or self.key, flags, exptime, len(value), value))
        self.assertEqual(answer, b"STORED\r\n")

    def lose(self, name, key=None):
        self.assertEqual(self.servers[name].ask(b"delete %s\r\n" % (key or self.key)), b"DELETED\r\n")

    def stop(self, name):
        """Until the proxy takes it for away."""
        self.servers[name].stop()
        wait_until(lambda: self.client.ask(b"touch %s 0\r\n" % self.more[-1]) == b"NOT_FOUND\r\n", f"{name} is away")

    def unique(self, name, key=None):
        return int(self.servers[name].ask(b"gets %s\r\n" % (key or self.key)).split()[4])


class Writes(Replicated):
    def test_every_verb_happens_on_both_owners(self):
        self.start()
        steps = (
            (b"set KEY 5 100 3\r\nabc\r\n", b"STORED\r\n", (5, b"abc")),
            (b"append KEY 0 0 1\r\nd\r\n", b"STORED\r\n", (5, b"abcd")),
            (b"prepend KEY 0 0 1\r\n_\r\n", b"STORED\r\n", (5, b"_abcd")),
            (b"delete KEY\r\n", b"DELETED\r\n", None),
            (b"delete KEY\r\n", b"NOT_FOUND\r\n", None),
            (b"incr KEY 1\r\n", b"NOT_FOUND\r\n", None),
            (b"append KEY 0 0 1\r\nd\r\n", b"NOT_STORED\r\n", None),
            (b"touch KEY 5\r\n", b"NOT_FOUND\r\n", None),
            (b"set KEY 7 0 1\r\n5\r\n", b"STORED\r\n", (7, b"5")),
            (b"incr KEY 10\r\n", b"15\r\n", (7, b"15")),
            (b"decr KEY 1\r\n", b"14\r\n", (7, b"14")),
            (b"ma KEY v D6\r\n", b"VA 2\r\n20\r\n", (7, b"20")),
            (b"ms KEY 3 F9 T200\r\nxyz\r\n", b"HD\r\n", (9, b"xyz")),
            (b"ms KEY 1 MA\r\n!\r\n", b"HD\r\n", (9, b"xyz!")),
            (b"ms KEY 1 MP\r\n!\r\n", b"HD\r\n", (9, b"!xyz!")),
            (b"incr KEY 1\r\n", b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n", (9, b"!xyz!")),
            (b"md KEY\r\n", b"HD\r\n", None),
            (b"md KEY\r\n", b"NF\r\n", None),
            (b"ma KEY\r\n", b"NF\r\n", None),
            (b"ma KEY N100 J7 v\r\n", b"VA 1\r\n7\r\n", (0, b"7")),
            (b"ma KEY N100 J7 v\r\n", b"VA 1\r\n8\r\n", (0, b"8")),
            (b"md KEY q\r\n", b"", None),
            (b"ms KEY 2 MA N50\r\nab\r\n", b"NS\r\n", None),
            (b"set KEY 0 0 1 noreply\r\nx\r\n", b"", (0, b"x")),
            (b"delete KEY noreply\r\n", b"", None),
            (b"ms KEY 1 q\r\ny\r\n", b"", (0, b"y")),
            (b"set KEY 0 0 2000000\r\n" + b"x" * 2_000_000 + b"\r\n", b"SERVER_ERROR object too large for cache\r\n", None),
        )
        for command, answer, wanted in steps:
            self.assertEqual(self.ask(command), answer, command[:80])
            held = self.on_both()
            self.assertEqual(held and (held[0], held[2]), wanted, command[:80])

    def test_times_are_the_same_on_both(self):
        self.start()
        for command, left in ((b"set KEY 0 100 1\r\nx\r\n", 100), (b"touch KEY 50\r\n", 50), (b"touch KEY 0\r\n", -1),
                              (b"ms KEY 1 T70\r\nx\r\n", 70), (b"gat 300 KEY\r\n", 300), (b"gats 200 KEY\r\n", 200),
                              (b"mg KEY T90\r\n", 90), (b"set KEY 0 3000000 1\r\nx\r\n", None)):
            self.ask(command)
            if left is None:  # a day that has been
                self.assertIsNone(self.on_both(), command)
            else:
                wait_until(lambda: abs(self.held("b")[1] - left) <= 1, f"{command} on the second owner")
                self.assertLessEqual(abs(self.on_both()[1] - left), 1, command)

    def test_binary_keys_are_on_both(self):
        self.start()
        key = next(key for key, holders in self.proxy.holders(f"k{n}" for n in range(200)).items()
                   if holders == ["a", "b"] and len(key) == 3)
        coded = base64.b64encode(key)
        self.assertEqual(self.client.ask(b"ms %s 1 b\r\nx\r\n" % coded), b"HD\r\n")
        self.assertEqual(self.on_both(key), (0, -1, b"x"))
        self.assertEqual(self.client.ask(b"md %s b\r\n" % coded), b"HD\r\n")
        self.assertIsNone(self.on_both(key))

    def test_a_key_with_octets_that_no_line_can_have(self):
        self.start()
        for n in range(20):
            raw = b"\x01 two words %d\r\n" % n
            coded = base64.b64encode(raw)
            self.assertEqual(self.client.ask(b"ms %s 1 b\r\nx\r\n" % coded), b"HD\r\n")
            found = self.proxy.admin("/api/v1/pools/items/lookup?key=" + urllib.parse.quote(raw)).json()
            holders = found["keys"][0]["replicas"]
            self.assertEqual({name for name in "abc" if self.servers[name].ask(b"mg %s b v\r\n" % coded) != b"EN\r\n"},
                             set(holders))
            # Lost on the first of them it comes back, and its time is set on both.
            self.assertEqual(self.servers[holders[0]].ask(b"md %s b\r\n" % coded), b"HD\r\n")
            self.assertEqual(self.client.ask(b"mg %s b v T500\r\n" % coded), b"VA 1\r\nx\r\n")
            for name in holders:
                wait_until(lambda: self.servers[name].ask(b"mg %s b v\r\n" % coded) == b"VA 1\r\nx\r\n", "it is on both")
                left = int(self.servers[name].ask(b"mg %s b t\r\n" % coded).split()[1][1:])
                wait_until(lambda: 490 <= left <= 500, f"{left} s on {name}")
            self.assertEqual(self.client.ask(b"md %s b\r\n" % coded), b"HD\r\n")
            for name in "abc":
                self.assertEqual(self.servers[name].ask(b"mg %s b v\r\n" % coded), b"EN\r\n")

    def test_one_command_is_counted_once(self):
        self.start()
        self.ask(b"set KEY 0 0 1\r\n5\r\nincr KEY 1\r\ntouch KEY 0\r\nappend KEY 0 0 1\r\n1\r\ndelete KEY\r\ndelete KEY\r\n")
        self.assertEqual(counted(self.proxy, "set"), {"stored": 1})
        self.assertEqual(counted(self.proxy, "incr"), {"hit": 1})
        self.assertEqual(counted(self.proxy, "touch"), {"hit": 1})
        self.assertEqual(counted(self.proxy, "append"), {"stored": 1})
        self.assertEqual(counted(self.proxy, "delete"), {"hit": 1, "miss": 1})

    def test_all_servers_where_there_are_fewer_than_replicas(self):
        self.start(pool={"ring": {"replicas": 5}})
        self.ask(b"set KEY 0 0 1\r\nx\r\n")
        self.assertEqual([self.held(name) for name in "abc"], [(0, -1, b"x")] * 3)
        self.assertEqual(self.ask(b"delete KEY\r\n"), b"DELETED\r\n")
        self.assertEqual([self.held(name) for name in "abc"], [None] * 3)

    def test_flush_all_reaches_every_server(self):
        self.start(memcached={"allow_flush": True})
        self.ask(b"set KEY 0 0 1\r\nx\r\n")
        self.assertEqual(self.ask(b"flush_all\r\n"), b"OK\r\n")
        self.assertEqual(self.ask(b"get KEY\r\n"), b"END\r\n")


class Lagging(Replicated):
    """One of the owners does not have what the other has."""

    def test_deleted_anywhere_is_deleted(self):
        self.start()
        for name in "ab":
            self.put(name, b"x")
            self.assertEqual(self.ask(b"delete KEY\r\n"), b"DELETED\r\n")
            self.put(name, b"x")
            self.assertEqual(self.ask(b"md KEY\r\n"), b"HD\r\n")
            self.assertIsNone(self.on_both())

    def test_what_only_one_has_is_changed_there(self):
        self.start()
        for name, other in ("ab", "ba"):
            self.put(name, b"5")
            self.assertEqual(self.ask(b"incr KEY 2\r\n"), b"7\r\n")
            self.assertEqual(self.ask(b"append KEY 0 0 1\r\n0\r\n"), b"STORED\r\n")
            self.assertEqual(self.ask(b"touch KEY 100\r\n"), b"TOUCHED\r\n")
            self.assertEqual(self.ask(b"ma KEY v\r\n"), b"VA 2\r\n71\r\n")
            self.assertIsNone(self.held(other))
            self.assertEqual(self.held(name)[2], b"71")
            self.ask(b"delete KEY\r\n")

    def test_a_counter_is_not_begun_anew_while_one_owner_has_it(self):
        self.start()
        for name in "ab":
            self.put(name, b"41")
            self.assertEqual(self.ask(b"ma KEY N0 J0 v\r\n"), b"VA 2\r\n42\r\n")
            self.assertEqual(self.ask(b"ms KEY 1 MA N0\r\n0\r\n"), b"HD\r\n")
            self.assertEqual(self.held(name)[2], b"420")
            self.ask(b"delete KEY\r\n")

    def test_the_first_owner_speaks_where_both_have_an_answer(self):
        self.start()
        self.put("a", b"10")
        self.put("b", b"20")
        self.assertEqual(self.ask(b"incr KEY 1\r\n"), b"11\r\n")
        self.assertEqual(self.ask(b"decr KEY 1\r\n"), b"10\r\n")
        self.put("b", b"no number")
        self.assertEqual(self.ask(b"incr KEY 1\r\n"), b"11\r\n")
        self.put("a", b"no number")
        self.put("b", b"20")
        self.assertTrue(self.ask(b"incr KEY 1\r\n").startswith(b"CLIENT_ERROR "))


class Conditional(Replicated):
    def unique_by_proxy(self):
        return int(self.ask(b"gets KEY\r\n").split()[4])

    def test_what_the_first_owner_does_the_others_store(self):
        self.start()
        self.assertEqual(self.ask(b"add KEY 3 100 1\r\n1\r\n"), b"STORED\r\n")
        self.assertEqual(self.on_both()[::2], (3, b"1"))
        self.assertLessEqual(abs(self.held("b")[1] - 100), 1)
        self.assertEqual(self.ask(b"replace KEY 4 0 1\r\n2\r\n"), b"STORED\r\n")
        self.assertEqual(self.on_both(), (4, -1, b"2"))
        self.assertEqual(self.ask(b"cas KEY 5 0 1 %d\r\n3\r\n" % self.unique_by_proxy()), b"STORED\r\n")
        self.assertEqual(self.on_both(), (5, -1, b"3"))
        self.assertEqual(self.ask(b"ms KEY 1 MR F6 T0\r\n4\r\n"), b"HD\r\n")
        self.assertEqual(self.on_both(), (6, -1, b"4"))
        self.assertEqual(self.ask(b"ms KEY 1 C%d\r\n5\r\n" % self.unique_by_proxy()), b"HD\r\n")
        self.assertEqual(self.on_both(), (0, -1, b"5"))
        self.assertEqual(self.ask(b"ms KEY 1 MA C%d\r\n0\r\n" % self.unique_by_proxy()), b"HD\r\n")
        self.assertEqual(self.on_both(), (0, -1, b"50"))
        self.assertEqual(self.ask(b"ma KEY v C%d D5\r\n" % self.unique_by_proxy()), b"VA 2\r\n55\r\n")
        self.assertEqual(self.on_both(), (0, -1, b"55"))
        self.assertEqual(self.ask(b"md KEY C%d\r\n" % self.unique_by_proxy()), b"HD\r\n")
        self.assertIsNone(self.on_both())
        self.assertEqual(self.ask(b"ms KEY 1 ME q\r\n6\r\n"), b"")
        self.assertEqual(self.on_both(), (0, -1, b"6"))

    def test_what_the_first_owner_refuses_is_done_nowhere(self):
        self.start()
        self.put("a", b"1")
        commands = ((b"add KEY 0 0 1\r\n2\r\n", b"NOT_STORED\r\n"), (b"ms KEY 1 ME\r\n2\r\n", b"NS\r\n"),
                    (b"cas KEY 0 0 1 999999\r\n2\r\n", b"EXISTS\r\n"), (b"ms KEY 1 C999999\r\n2\r\n", b"EX\r\n"),
                    (b"md KEY C999999\r\n", b"EX\r\n"), (b"ma KEY C999999\r\n", b"EX\r\n"))
        for before in (None, b"9"):
            if before:
                self.put("b", before)
            for command, answer in commands:
                self.assertEqual(self.ask(command), answer)
                held = self.held("b")
                self.assertEqual(held and held[2], before, command)
                self.assertEqual(self.held("a")[2], b"1", command)
        self.lose("a")
        for command, answer in ((b"replace KEY 0 0 1\r\n2\r\n", b"NOT_STORED\r\n"), (b"ms KEY 1 MR\r\n2\r\n", b"NS\r\n"),
                                (b"cas KEY 0 0 1 1\r\n2\r\n", b"NOT_FOUND\r\n"), (b"md KEY C1\r\n", b"NF\r\n")):
            self.assertEqual(self.ask(command), answer)
            self.assertEqual(self.held("b")[2], b"9", command)

    def test_who_follows_has_not_kept_what_it_had(self):
        self.start()
        self.put("b", b"old and longer")
        self.assertEqual(self.ask(b"add KEY 0 0 3\r\nnew\r\n"), b"STORED\r\n")
        self.assertEqual(self.on_both(), (0, -1, b"new"))

    def test_of_many_that_change_one_item_at_once_all_changes_count(self):
        self.start(workers=2)
        self.ask(b"set KEY 0 0 1\r\n0\r\n")
        faults = []

        def run():
            try:
                with self.proxy.client() as client:
                    for _ in range(20):
                        while True:
                            found = client.ask(b"gets %s\r\n" % self.key).split()
                            value = b"%d" % (int(found[5]) + 1)
                            answer = client.ask(b"cas %s 0 0 %d %s\r\n%s\r\n" % (self.key, len(value), found[4], value))
                            if answer == b"STORED\r\n":
                                break
                            if answer != b"EXISTS\r\n":
                                faults.append(answer)
            except (OSError, IndexError) as error:
                faults.append(repr(error))
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(faults, [])
        self.assertEqual(self.ask(b"get KEY\r\n"), b"VALUE %s 0 2\r\n80\r\nEND\r\n" % self.key)

    def test_a_unique_of_the_second_owner_is_never_one_of_the_first(self):
        self.start()
        self.put("b", b"there")
        own = self.unique("b")
        answer = self.ask(b"gets KEY\r\n")
        self.assertEqual(int(answer.split()[4]), own ^ MARK)
        wait_until(lambda: self.held("a"), "it came back")
        # By chance the first owner counts the same for another version.
        while self.unique("a") < own:
            self.put("a", b"newer")
        self.lose("b")
        self.assertEqual(self.ask(b"cas KEY 0 0 1 %d\r\nx\r\n" % (own ^ MARK)), b"EXISTS\r\n")
        self.assertEqual(self.ask(b"md KEY C%d\r\n" % (own ^ MARK)), b"EX\r\n")

    def test_while_the_first_owner_is_away_the_second_decides(self):
        self.start(pool=FAST)
        self.ask(b"set KEY 0 0 1\r\n1\r\n")
        first = self.unique("a")
        self.stop("a")
        self.assertEqual(self.ask(b"cas KEY 0 0 1 %d\r\nx\r\n" % first), b"EXISTS\r\n")
        answer = self.ask(b"gets KEY\r\n")
        self.assertEqual(int(answer.split()[4]), self.unique("b") ^ MARK)
        self.assertEqual(self.ask(b"cas KEY 0 0 1 %s\r\n2\r\n" % answer.split()[4]), b"STORED\r\n")
        meta = self.ask(b"mg KEY c\r\n").split()[1][1:]
        self.assertEqual(int(meta), self.unique("b") ^ MARK)
        answer = self.ask(b"ms KEY 1 c C%s\r\n3\r\n" % meta)
        self.assertEqual(answer, b"HD c%d\r\n" % (self.unique("b") ^ MARK))
        self.assertEqual(self.held("b")[2], b"3")
        self.assertEqual(self.ask(b"add KEY 0 0 1\r\n4\r\n"), b"NOT_STORED\r\n")
        self.assertEqual(self.ask(b"md KEY C%s\r\n" % answer.split()[1][1:]), b"HD\r\n")


class Reads(Replicated):
    FORMS = ((b"get KEY\r\n", b"VALUE KEY 7 5\r\nvalue\r\nEND\r\n"),
             (b"gat 100 KEY\r\n", b"VALUE KEY 7 5\r\nvalue\r\nEND\r\n"),
             (b"mg KEY v f\r\n", b"VA 5 f7\r\nvalue\r\n"), (b"mg KEY\r\n", b"HD\r\n"), (b"mg KEY f q\r\n", b"HD f7\r\n"))

    def check(self, **more):
        """Every form of a read finds it, whoever has it."""
        for command, answer in self.FORMS:
            self.assertEqual(self.ask(command), answer.replace(b"KEY", self.key), (command, more))

    def test_the_first_owner_alone_is_asked_while_all_is_well(self):
        self.start()
        self.ask(b"set KEY 7 0 5\r\nvalue\r\n")
        before = self.servers["b"].ask(b"stats\r\n")
        self.check()
        after = self.servers["b"].ask(b"stats\r\n")

        def gets(stats):
            return re.search(rb"STAT cmd_get (\d+)", stats).group(1)
        self.assertEqual(gets(after), gets(before))

    def test_what_the_first_has_lost_the_second_gives_and_it_comes_back(self):
        self.start()
        for exptime, flags in ((0, 0), (100, 7), (2_000_000, 4294967295), (int(time.time()) + 5_000_000, 1)):
            for command in (b"get KEY\r\n", b"gets KEY\r\n", b"mg KEY v\r\n", b"mg KEY\r\n"):
                self.ask(b"set KEY %d %d 5\r\nvalue\r\n" % (flags, exptime))
                wanted = self.on_both()
                self.lose("a")
                self.assertNotIn(self.ask(command), (b"END\r\n", b"EN\r\n"))
                wait_until(lambda: self.held("a"), "it came back")
                self.assertEqual(self.on_both()[::2], wanted[::2])
                self.assertLessEqual(abs(self.held("a")[1] - wanted[1]), 2)
        self.assertEqual(backfills(self.proxy), {"copied": 16, "present": 0, "outdated": 0, "skipped": 0, "error": 0})

    def test_the_lifetime_that_a_read_sets_is_that_of_all(self):
        self.start()
        for command in (b"gat 100 KEY\r\n", b"gats 100 KEY\r\n", b"mg KEY v T100\r\n"):
            for lost in (None, "a", "b"):
                self.ask(b"set KEY 7 0 5\r\nvalue\r\n")
                if lost:
                    self.lose(lost)
                self.assertIn(b"value", self.ask(command))
                for name in "ab" if lost != "b" else "a":
                    wait_until(lambda: self.held(name) and 98 <= self.held(name)[1] <= 100, f"{command} on {name}")

    def test_what_a_read_lets_expire_its_duplicates_miss(self):
        self.start()
        for keys, times in ((b"KEY", 1), (b"KEY KEY", 1), (b"x KEY y KEY KEY", 1)):
            self.ask(b"set KEY 7 0 5\r\nvalue\r\n")
            item = b"VALUE KEY 7 5\r\nvalue\r\n"
            self.assertEqual(self.ask(b"gat -1 %s\r\n" % keys), (item * times + b"END\r\n").replace(b"KEY", self.key))
            wait_until(lambda: self.on_both() is None, "both to let it go")
        self.ask(b"set KEY 7 0 5\r\nvalue\r\n")
        self.lose("a")
        self.assertEqual(self.ask(b"get KEY KEY\r\n").count(b"value"), 2)

    def test_a_miss_of_all_is_a_miss(self):
        self.start(memcached={"on_read_error": "error"})
        for command, answer in ((b"get KEY\r\n", b"END\r\n"), (b"gets KEY\r\n", b"END\r\n"), (b"gat 1 KEY\r\n", b"END\r\n"),
                                (b"mg KEY v\r\n", b"EN\r\n"), (b"mg KEY v q\r\n", b""), (b"me KEY\r\n", b"EN\r\n")):
            self.assertEqual(self.ask(command), answer)
        self.assertEqual(counted(self.proxy, "get"), {"miss": 5})

    def test_a_read_is_counted_once(self):
        self.start()
        self.put("b", b"x")
        self.put("a", b"x", key=self.other)
        self.client.ask(b"get %s %s %s\r\n" % (self.key, self.other, self.more[0]))
        self.assertEqual(counted(self.proxy, "get"), {"hit": 2, "miss": 1})

    def test_who_makes_what_is_missing_does_so_with_the_first(self):
        self.start()
        self.put("b", b"there")
        self.assertEqual(self.ask(b"mg KEY v N30\r\n"), b"VA 0 W\r\n\r\n")
        self.assertEqual(self.held("a")[2], b"")
        self.assertEqual(self.held("b")[2], b"there")

    def test_one_owner_dead(self):
        self.start(pool=FAST)
        self.ask(b"set KEY 7 0 5\r\nvalue\r\n")
        self.servers["a"].stop()
        self.check()
        self.stop("a")
        self.check()
        self.servers["a"].start()
        wait_until(lambda: self.ask(b"get KEY\r\n") and self.held("a"), "it came back")
        self.check()

    def test_one_owner_hung(self):
        self.start(pool=FAST, memcached={"down_after": 1000})
        self.ask(b"set KEY 7 0 5\r\nvalue\r\n")
        self.servers["a"].freeze()
        self.addCleanup(self.servers["a"].thaw)
        self.check()

    def test_an_error_is_told_only_where_nobody_answers(self):
        self.start(pool=FAST, memcached={"on_read_error": "error", "down_after": 1000})
        self.servers["a"].stop()
        self.assertEqual(self.ask(b"get KEY\r\n"), b"END\r\n")
        self.assertEqual(self.ask(b"mg KEY v\r\n"), b"EN\r\n")
        self.servers["b"].stop()
        self.assertRegex(self.ask(b"get KEY\r\n"), rb"\ASERVER_ERROR [ab] refused\r\n\Z")
        self.assertRegex(self.ask(b"mg KEY v\r\n"), rb"\ASERVER_ERROR [ab] refused\r\n\Z")
        self.assertRegex(self.client.ask(b"get %s %s\r\n" % (self.key, self.other)), rb"\ASERVER_ERROR [ab] refused\r\n\Z")

    def test_all_owners_away(self):
        for setting, read in (("miss", b"END\r\n"), ("error", b"SERVER_ERROR a away\r\n")):
            with Cluster(list(self.servers.values()), pool=FAST, memcached={"on_read_error": setting}) as proxy, \
                    proxy.client() as client:
                key, = proxy.keys_of("a", "b")
                for name in "ab":
                    self.servers[name].stop()
                wait_until(lambda: client.ask(b"set %s 0 0 1\r\nx\r\n" % key) == b"SERVER_ERROR a away\r\n", "both are away")
                self.assertEqual(client.ask(b"get %s\r\n" % key), read)
                self.assertEqual(client.ask(b"add %s 0 0 1\r\nx\r\n" % key), b"SERVER_ERROR a away\r\n")
            for name in "ab":
                self.servers[name].start()


class Pipelines(Replicated):
    """Commands that a client sends without waiting happen in their order on every server."""

    def test_of_one_key(self):
        self.start(memcached={"allow_flush": True})
        lines = (
            (b"get KEY\r\nset KEY 0 0 1\r\n1\r\nget KEY\r\n", b"END\r\nSTORED\r\nVALUE KEY 0 1\r\n1\r\nEND\r\n", b"1"),
            (b"delete KEY\r\nadd KEY 0 0 1\r\n2\r\ndelete KEY\r\nget KEY\r\n",
             b"DELETED\r\nSTORED\r\nDELETED\r\nEND\r\n", None),
            (b"add KEY 0 0 1 noreply\r\n2\r\ndelete KEY noreply\r\n", b"", None),
            (b"add KEY 0 0 1 noreply\r\n3\r\nset KEY 0 0 1 noreply\r\n4\r\n", b"", b"4"),
            (b"replace KEY 0 0 1\r\n5\r\nincr KEY 1\r\nappend KEY 0 0 1\r\n0\r\n", b"STORED\r\n6\r\nSTORED\r\n", b"60"),
            (b"delete KEY\r\nma KEY N0 J7 v\r\nma KEY v\r\nincr KEY 1\r\n", b"DELETED\r\nVA 1\r\n7\r\nVA 1\r\n8\r\n9\r\n", b"9"),
            (b"md KEY\r\nms KEY 1 ME\r\n1\r\nms KEY 1 ME\r\n2\r\nmg KEY v\r\nmd KEY q\r\n", b"HD\r\nHD\r\nNS\r\nVA 1\r\n1\r\n", None),
            (b"set KEY 0 0 1\r\n1\r\ngat -1 KEY\r\nset KEY 0 0 1\r\n2\r\n",
             b"STORED\r\nVALUE KEY 0 1\r\n1\r\nEND\r\nSTORED\r\n", b"2"),
            (b"add KEY 0 0 1 noreply\r\n9\r\nset KEY 0 0 2000000 noreply\r\n" + b"x" * 2_000_000 + b"\r\n", b"", None),
            (b"add KEY 0 0 1 noreply\r\n9\r\nflush_all\r\n", b"OK\r\n", None),
            (b"delete KEY\r\nget x KEY y\r\nset KEY 0 0 1\r\n3\r\n", b"NOT_FOUND\r\nEND\r\nSTORED\r\n", b"3"),
        )
        for turn in range(20):
            self.ask(b"delete KEY\r\n")
            for sent, answer, value in lines:
                self.assertEqual(self.ask(sent), answer.replace(b"KEY", self.key), (turn, sent))
                held = self.on_both()
                self.assertEqual(held and held[2], value, (turn, sent))

    def test_of_a_key_by_its_other_name(self):
        self.start()
        coded = base64.b64encode(self.key)
        for _ in range(20):
            self.assertEqual(self.ask(b"add KEY 0 0 1\r\n1\r\nmd %s b\r\nms %s 1 b ME\r\n2\r\ndelete KEY\r\n" % (coded, coded)),
                             b"STORED\r\nHD\r\nHD\r\nDELETED\r\n")
            self.assertIsNone(self.on_both())

    def test_others_do_not_wait(self):
        def slow(line, data, peer):
            if line.startswith(b"add"):
                release.wait(10)
            return b"STORED\r\n"
        release = threading.Event()
        self.addCleanup(release.set)
        with Scripted("a", slow) as a, Scripted("b", lambda line, data, peer: b"STORED\r\n") as b, \
                Cluster([a, b], pool={**TWO, "timeouts": {"response": "10s"}}) as proxy, proxy.client() as client:
            one, = proxy.keys_of("a")
            other, = proxy.keys_of("b")
            client.send(b"add %s 0 0 1\r\nx\r\nset %s 0 0 1\r\nx\r\n" % (one, other))
            wait_until(lambda: b.seen == [b"set %s 0 0 1" % other], "it is asked at once")
            client.send(b"delete %s\r\n" % one)
            release.set()
            self.assertEqual([client.line() for _ in range(2)], [b"STORED\r\n"] * 2)
            wait_until(lambda: b.count(b"delete"), "the last one came")
            self.assertEqual(b.seen[1:], [b"set %s 0 0 1" % one, b"delete " + one])


class ManyKeys(Replicated):
    def fill(self, count=200):
        self.keys = [b"m%d" % n for n in range(count)]
        self.client.ask(b"".join(b"set %s 1 0 %d noreply\r\n<%s>\r\n" % (key, len(key) + 2, key) for key in self.keys))

    @staticmethod
    def items(keys):
        return b"".join(b"VALUE %s 1 %d\r\n<%s>\r\n" % (key, len(key) + 2, key) for key in keys)

    def get(self, keys, verb=b"get"):
        return self.client.ask(verb + b" " + b" ".join(keys) + b"\r\n")

    def test_all_are_found_whatever_each_server_has_lost(self):
        self.start()
        self.fill()
        everything = self.items(self.keys) + b"END\r\n"
        for n, (key, holders) in enumerate(self.proxy.holders(key.decode() for key in self.keys).items()):
            if n % 3 < 2:  # one of its two copies
                self.servers[holders[n % 3]].ask(b"delete %s\r\n" % key)
        self.assertEqual(self.get(self.keys), everything)
        self.assertEqual(self.get(self.keys[::-1]), self.items(self.keys[::-1]) + b"END\r\n")
        for name in "abc":
            self.fill()
            self.servers[name].ask(b"flush_all\r\n")
            self.assertEqual(self.get(self.keys), everything, name)
            wait_until(lambda: self.get(self.keys) == everything and self.home_has_all(name), f"{name} has its keys again")

    def home_has_all(self, name):
        mine = [key for key, owner in self.home.items() if owner == name]
        return self.servers[name].ask(b"get " + b" ".join(mine) + b"\r\n").count(b"VALUE ") == len(mine)

    @property
    def home(self):
        if not hasattr(self, "_home"):
            self._home = self.proxy.owners(key.decode() for key in self.keys)
        return self._home

    def test_one_server_dead_or_hung(self):
        for fail in (Memcached.stop, Memcached.freeze):
            with self.subTest(fail.__name__):
                self.start(pool=FAST)
                self.fill()
                fail(self.servers["b"])
                for _ in range(6):  # also once it is away
                    for verb in (b"get", b"gat 0"):
                        self.assertEqual(self.get(self.keys, verb), self.items(self.keys) + b"END\r\n")
                self.servers["b"].thaw() if self.servers["b"].process else self.servers["b"].start()

    def test_a_server_that_hangs_is_waited_for_once(self):
        self.start(pool={**TWO, "timeouts": {"response": "1s"}}, memcached={"down_after": 1000})
        self.fill()
        for name in "ac":  # so that b is the second that is asked, too
            self.servers[name].ask(b"flush_all\r\n")
        self.servers["b"].freeze()
        self.addCleanup(self.servers["b"].thaw)
        self.get(self.keys[:1])
        _, seconds = elapsed(lambda: self.get(self.keys))
        self.assertLess(seconds, 1.9)

    def test_duplicates_and_misses(self):
        self.start()
        self.fill(40)
        self.servers["a"].ask(b"flush_all\r\n")
        asked = [*self.keys[:5] * 3, b"none", *self.keys, b"none", *self.keys[::-1]]
        self.assertEqual(self.get(asked), self.items(key for key in asked if key != b"none") + b"END\r\n")

    def test_one_command_for_each_server_and_round(self):
        def handler(line, data, peer):
            return b"EN\r\n" if line.startswith(b"mg") else b"END\r\n"
        servers = [self.enterContext(Scripted(name, handler)) for name in "abc"]
        with Cluster(servers, pool=TWO) as proxy, proxy.client() as client:
            keys = [b"k%d" % n for n in range(100)]
            self.assertEqual(client.ask(b"get " + b" ".join(keys) + b"\r\n"), b"END\r\n")
            for server in servers:
                self.assertEqual(len(server.seen), 2, server.seen)
            asked = [key for server in servers for line in server.seen for key in line.split()[1:]]
            self.assertEqual(sorted(asked), sorted(keys * 2))
            holders = proxy.holders(key.decode() for key in keys)
            for server in servers:
                for round_, line in enumerate(server.seen):
                    self.assertEqual({holders[key][round_] for key in line.split()[1:]}, {server.name})

    def test_what_a_broken_value_was_to_be_the_next_owner_gives(self):
        def broken(line, data, peer):
            first = line.split()[1]
            peer.sendall(b"VALUE %s 0 1\r\nx\r\nVALUE %s 0 1000\r\nxxx" % (first, line.split()[2]))
            return None

        def good(line, data, peer):
            return b"".join(b"VALUE %s 0 1\r\ny\r\n" % key for key in line.split()[1:]) + b"END\r\n"
        with Scripted("a", broken) as a, Scripted("b", good) as b, \
                Cluster([a, b], pool=TWO, memcached={"down_after": 1000}) as proxy, proxy.client() as client:
            keys = proxy.keys_of("a", count=3)
            wanted = b"".join(b"VALUE %s 0 1\r\n%s\r\n" % (key, value) for key, value in zip(keys, (b"x", b"y", b"y")))
            self.assertEqual(client.ask(b"get " + b" ".join(keys) + b"\r\n"), wanted + b"END\r\n")
            self.assertEqual(b.seen, [b"get " + b" ".join(keys[1:])])


class Failing(unittest.TestCase):
    """A server that is there and does not do its part of a write."""

    OK = {b"get": b"END\r\n", b"set": b"STORED\r\n", b"add": b"STORED\r\n", b"append": b"STORED\r\n", b"delete": b"DELETED\r\n",
          b"incr": b"5\r\n", b"touch": b"TOUCHED\r\n", b"ms": b"HD\r\n", b"md": b"HD\r\n", b"ma": b"HD\r\n"}

    def scenario(self, a, b, **memcached):
        """Handlers, or an answer to all; each gets what is not None by the other rules."""
        def handler(answers):
            def handle(line, data, peer):
                answer = answers(line) if callable(answers) else answers
                return self.OK[line.split()[0]] if answer is True else answer
            return handle
        self.a = self.enterContext(Scripted("a", handler(a)))
        self.b = self.enterContext(Scripted("b", handler(b)))
        self.proxy = self.enterContext(Cluster([self.a, self.b], pool=FAST, memcached={"down_after": 1000, **memcached}))
        self.client = self.enterContext(self.proxy.client())
        self.key, = self.proxy.keys_of("a", "b")

    COMMANDS = (b"set %s 0 0 1\r\nx\r\n", b"append %s 0 0 1\r\nx\r\n", b"delete %s\r\n", b"incr %s 1\r\n", b"touch %s 0\r\n",
                b"ms %s 1\r\nx\r\n", b"md %s\r\n", b"ma %s\r\n", b"ms %s 1 q\r\nx\r\n", b"add %s 0 0 1\r\nx\r\n")

    def test_no_success_is_told_that_did_not_happen_everywhere(self):
        for answers, label, cause in (((True, b""), b"b", b"timed out"), ((b"", True), b"a", b"timed out"),
                                      ((True, None), b"b", b"closed"), ((None, True), b"a", b"closed"),
                                      ((True, b"hello\r\n"), b"b", b"garbled")):
            with self.subTest(answers):
                self.scenario(*answers)
                for command in self.COMMANDS:
                    self.assertEqual(self.client.ask(command % self.key), b"SERVER_ERROR %s %s\r\n" % (label, cause), command)
                    noreply = command.split(b"\r\n", 1)
                    if command[:2] not in (b"ms", b"md", b"ma"):
                        self.assertEqual(self.client.ask(noreply[0] % self.key + b" noreply\r\n" + noreply[1]), b"", command)

    def test_where_the_first_fails_nobody_follows(self):
        self.scenario(lambda line: None if line.startswith(b"add") else True, True)
        self.assertEqual(self.client.ask(b"add %s 0 0 1\r\nx\r\n" % self.key), b"SERVER_ERROR a closed\r\n")
        self.assertEqual(self.b.seen, [])

    def test_what_one_could_not_store_is_not_left_there_as_it_was(self):
        full = b"SERVER_ERROR out of memory storing object\r\n"
        self.scenario(True, lambda line: full if line.startswith((b"set", b"append")) else True)
        for command in (b"set %s 0 0 1\r\nx\r\n", b"append %s 0 0 1\r\nx\r\n", b"add %s 0 0 1\r\nx\r\n"):
            self.assertEqual(self.client.ask(command % self.key), b"SERVER_ERROR b out of memory storing object\r\n")
            self.assertEqual(self.b.seen[-1], b"delete " + self.key)
        self.assertEqual(self.a.count(b"delete"), 0)

    def test_what_the_first_says_is_told_as_it_is(self):
        full = b"SERVER_ERROR out of memory storing object\r\n"
        self.scenario(full, full)
        self.assertEqual(self.client.ask(b"set %s 0 0 1\r\nx\r\n" % self.key), full)
        self.assertEqual(self.b.count(b"delete"), 0)

    def test_of_an_unknown_command(self):
        self.scenario(True, b"ERROR\r\n")
        self.assertEqual(self.client.ask(b"touch %s 0\r\n" % self.key), b"SERVER_ERROR b ERROR\r\n")

    def test_what_a_later_owner_deleted_is_deleted_once_more_on_the_first(self):
        # A copy that was on its way there looked before the source was deleted.
        self.scenario(lambda line: b"NOT_FOUND\r\n" if line.startswith(b"delete") else True, True)
        self.assertEqual(self.client.ask(b"delete %s\r\n" % self.key), b"DELETED\r\n")
        self.assertEqual((self.a.seen, self.b.seen), ([b"delete " + self.key] * 2, [b"delete " + self.key]))

    def test_what_only_the_first_had_is_deleted_once(self):
        self.scenario(True, lambda line: b"NOT_FOUND\r\n" if line.startswith(b"delete") else True)
        self.assertEqual(self.client.ask(b"delete %s\r\n" % self.key), b"DELETED\r\n")
        self.assertEqual((self.a.seen, self.b.seen), ([b"delete " + self.key], [b"delete " + self.key]))

    def test_clients_that_leave_do_no_harm(self):
        self.scenario(b"", True)
        for _ in range(20):
            with self.proxy.client() as client:
                client.send(b"set %s 0 0 1\r\nx\r\nget %s\r\nadd %s 0 0 1\r\nx\r\n" % (self.key, self.key, self.key))
                wait_until(lambda: self.a.seen, "it was asked")
        self.assertEqual(self.client.ask(b"set %s 0 0 1\r\nx\r\n" % self.key), b"SERVER_ERROR a timed out\r\n")


class Away(Replicated):
    def test_writes_go_to_those_that_are_there(self):
        self.start(pool=FAST)
        self.ask(b"set KEY 0 0 3\r\nold\r\n")
        for name, there in ("ab", "ba"):
            self.stop(name)
            for command, answer, value in ((b"set KEY 0 0 1\r\n5\r\n", b"STORED\r\n", b"5"), (b"incr KEY 1\r\n", b"6\r\n", b"6"),
                                           (b"append KEY 0 0 1\r\n0\r\n", b"STORED\r\n", b"60"),
                                           (b"replace KEY 0 0 1\r\n7\r\n", b"STORED\r\n", b"7"),
                                           (b"delete KEY\r\n", b"DELETED\r\n", None),
                                           (b"ms KEY 1 ME\r\n8\r\n", b"HD\r\n", b"8"), (b"touch KEY 0\r\n", b"TOUCHED\r\n", b"8")):
                self.assertEqual(self.ask(command), answer, (name, command))
                held = self.held(there)
                self.assertEqual(held and held[2], value)
            self.servers[name].start()
            wait_until(lambda: self.ask(b"set KEY 0 0 1\r\nx\r\n") == b"STORED\r\n" and self.held(name), f"{name} is back")

    def test_distrust_forgets_what_an_owner_has_missed(self):
        for turn, (change, wanted) in enumerate(((b"delete KEY\r\n", None), (b"set KEY 0 0 3\r\nnew\r\n", b"new"),
                               (b"replace KEY 0 0 3\r\nnew\r\n", b"new"), (b"gat -1 KEY\r\n", None))):
            with self.subTest(change):
                self.start(pool=FAST, memcached={"on_return": "distrust"})
                self.ask(b"set KEY 0 0 3\r\nold\r\n")
                self.servers["a"].freeze()
                try:
                    wait_until(lambda: self.client.ask(b"touch %s 0\r\n" % self.more[-1]) == b"NOT_FOUND\r\n", "a is away")
                    self.ask(change)
                finally:
                    self.servers["a"].thaw()
                probe = self.more[turn]
                wait_until(lambda: self.client.set(probe, b"x") == b"STORED\r\n" and self.held("a", probe), "a is back")
                self.assertEqual(self.client.get(self.key), wanted)
                held = self.held("a")
                self.assertIn(held and held[2], (None, wanted))

    def test_a_stand_in_only_where_no_owner_is_left(self):
        self.start(pool={**FAST, "failover": "next", "panic": "0%"}, memcached={"failover_ttl": "5s"})
        self.stop("a")
        self.assertEqual(self.ask(b"set KEY 0 0 1\r\nx\r\n"), b"STORED\r\n")
        self.assertIsNone(self.held("c"))
        self.servers["b"].stop()
        wait_until(lambda: self.ask(b"set KEY 3 0 1\r\ny\r\n") == b"STORED\r\n", "c stands in")
        self.assertEqual(self.held("c")[::2], (3, b"y"))
        self.assertIn(self.held("c")[1], range(1, 6))
        found = self.ask(b"gets KEY\r\n")
        self.assertEqual(int(found.split()[4]), self.unique("c"))
        self.assertEqual(self.ask(b"cas KEY 0 0 1 %s\r\nz\r\n" % found.split()[4]), b"STORED\r\n")
        self.assertEqual(self.ask(b"mg KEY v\r\n"), b"VA 1\r\nz\r\n")
        self.assertEqual(self.ask(b"delete KEY\r\n"), b"DELETED\r\n")
        self.assertEqual(self.ask(b"get KEY\r\n"), b"END\r\n")


class Copying(unittest.TestCase):
    """What a later owner has and the first has not, while everything changes."""

    def scenario(self, source=(), target=()):
        """Answers by the beginning of a line; a function is called, a list is used up."""
        def handler(script, default):
            script = {**default, **dict(script)}

            def handle(line, data, peer):
                for begin, answer in sorted(script.items(), key=lambda item: -len(item[0])):
                    if line.startswith(begin.replace(b"KEY", self.key)):
                        if isinstance(answer, list):
                            answer = answer.pop(0) if len(answer) > 1 else answer[0]
                        answer = answer() if callable(answer) else answer
                        return answer.replace(b"KEY", self.key) if answer else answer
                return b"ERROR\r\n"
            return handle
        self.key = b"?"
        self.first = self.enterContext(Scripted("a", handler(target, {
            b"get": b"END\r\n", b"ms": b"HD c77\r\n", b"md": b"HD\r\n", b"delete": b"NOT_FOUND\r\n"})))
        self.second = self.enterContext(Scripted("b", handler(source, {
            b"get": b"VALUE KEY 5 3\r\nabc\r\nEND\r\n", b"mg KEY f t v c": b"VA 3 f5 t100 c9\r\nabc\r\n",
            b"mg KEY c t": b"HD c9 t100\r\n", b"delete": b"DELETED\r\n"})))
        self.proxy = self.enterContext(Cluster([self.first, self.second], pool=FAST, memcached={"down_after": 1000}))
        self.client = self.enterContext(self.proxy.client())
        self.key, = self.proxy.keys_of("a", "b")

    def read(self):
        self.assertEqual(self.client.ask(b"get %s\r\n" % self.key), b"VALUE %s 5 3\r\nabc\r\nEND\r\n" % self.key)

    def ended(self, result):
        wait_until(lambda: sum(backfills(self.proxy).values()) == 1, "the copy is over")
        self.assertEqual([name for name, count in backfills(self.proxy).items() if count], [result])
        return [line.replace(self.key, b"KEY") for line in self.first.seen]

    def test_the_commands_of_a_copy(self):
        self.scenario()
        self.read()
        self.assertEqual(self.ended("copied"), [b"get KEY", b"ms KEY 3 ME F5 T100 c"])
        self.assertEqual(self.second.seen[-2:], [b"mg %s f t v c" % self.key, b"mg %s c t" % self.key])

    def test_for_ever_stays_for_ever(self):
        self.scenario({b"mg KEY f t v c": b"VA 3 f5 t-1 c9\r\nabc\r\n", b"mg KEY c t": b"HD c9 t-1\r\n"})
        self.read()
        self.assertEqual(self.ended("copied"), [b"get KEY", b"ms KEY 3 ME F5 T0 c"])

    def test_more_than_thirty_days_are_a_day(self):
        self.scenario({b"mg KEY f t v c": b"VA 3 f5 t3000000 c9\r\nabc\r\n", b"mg KEY c t": b"HD c9 t3000000\r\n"})
        self.read()
        stored = int(self.ended("copied")[1].split()[5][1:])
        self.assertIn(stored - int(time.time()), range(2_999_900, 3_000_002))

    def test_what_was_changed_meanwhile_is_taken_away(self):
        for seen in (b"EN\r\n", b"HD c10 t100\r\n", b"HD c9 t2000\r\n", b"HD c9 t1\r\n", b"HD c9 t-1\r\n", b"SERVER_ERROR x\r\n"):
            with self.subTest(seen):
                self.scenario({b"mg KEY c t": seen})
                self.read()
                self.assertEqual(self.ended("outdated"), [b"get KEY", b"ms KEY 3 ME F5 T100 c", b"md KEY C77"])

    def test_where_it_cannot_be_seen_again_it_is_taken_away(self):
        for answer in (None, b""):
            with self.subTest(answer):
                self.scenario({b"mg KEY c t": answer})
                self.read()
                self.assertEqual(self.ended("outdated")[-1], b"md KEY C77")

    def test_what_may_or_may_not_have_been_stored(self):
        for seen, last in ((b"HD c9 t100\r\n", b"ms KEY 3 ME F5 T100 c"), (b"EN\r\n", b"md KEY")):
            with self.subTest(seen):
                self.scenario({b"mg KEY c t": seen}, {b"ms": None})
                self.read()
                self.assertEqual(self.ended("copied" if seen[:1] == b"H" else "outdated")[-1], last)

    def test_what_is_there_already_is_left(self):
        self.scenario({}, {b"ms": b"NS\r\n"})
        self.read()
        self.assertEqual(self.ended("present"), [b"get KEY", b"ms KEY 3 ME F5 T100 c"])

    def test_what_is_not_copied(self):
        for read in (b"EN\r\n", b"VA 3 f5 t0 c9\r\nabc\r\n", b"VA 3 f5 t100 c9 W\r\nabc\r\n", b"VA 3 f5 t100 c9 X Z\r\nabc\r\n",
                     b"VA 0 f0 t30 c9 Z\r\n\r\n", b"VA 2000000 f5 t100 c9\r\n" + b"x" * 2_000_000 + b"\r\n"):
            with self.subTest(read[:40]):
                self.scenario({b"mg KEY f t v c": read})
                self.read()
                self.assertEqual(self.ended("skipped"), [b"get KEY"])

    def test_a_server_that_cannot(self):
        for source, target in (({b"mg KEY f t v c": b"SERVER_ERROR x\r\n"}, {}), ({b"mg KEY f t v c": None}, {}),
                               ({}, {b"ms": b"SERVER_ERROR out of memory storing object\r\n"}),
                               ({b"mg KEY c t": b"EN\r\n"}, {b"md": None})):
            with self.subTest(source=source, target=target):
                self.scenario(source, target)
                self.read()
                self.ended("error")

    def test_one_item_is_copied_once_at_a_time(self):
        release, wait = self.held_back(b"HD c77\r\n")
        self.scenario({}, {b"ms": wait, b"get": b"END\r\n"})
        self.be_patient()
        for _ in range(5):
            self.read()
        release.set()
        self.assertEqual(self.ended("copied").count(b"ms KEY 3 ME F5 T100 c"), 1)

    def held_back(self, answer):
        """An event, and an answer that waits for it."""
        release = threading.Event()
        self.addCleanup(release.set)

        def wait():
            release.wait(10)
            return answer
        return release, wait

    def be_patient(self):
        """Commands do not wait behind one another for long, and nobody gives up."""
        document = self.proxy.document([self.first, self.second])
        document["pools"]["items"]["timeouts"] = {"response": "10s"}
        document["pools"]["items"]["memcached"]["server_connections"] = 8
        self.assertEqual(self.proxy.reload(document).status, 200)

    def test_a_delete_during_a_copy_leaves_nothing(self):
        deleted = threading.Event()
        self.addCleanup(deleted.set)

        def looks():
            # The delete of the source is done between the copy and the second look.
            self.assertTrue(deleted.wait(10))
            return b"EN\r\n"
        self.scenario({b"mg KEY c t": looks, b"delete": lambda: deleted.set() or b"DELETED\r\n"})
        self.be_patient()
        self.read()
        wait_until(lambda: self.second.count(b"mg %s c t" % self.key), "the copy looks again")
        self.assertEqual(self.client.ask(b"delete %s\r\n" % self.key), b"DELETED\r\n")
        self.assertIn(b"md KEY C77", self.ended("outdated"))

    def test_so_many_copies_at_a_time(self):
        release = threading.Event()
        self.addCleanup(release.set)
        values = {}

        def source(line, data, peer):
            words = line.split()
            if words[0] == b"get":
                return b"".join(b"VALUE %s 0 1\r\nx\r\n" % key for key in words[1:]) + b"END\r\n"
            release.wait(20)
            return b"VA 1 f0 t-1 c1\r\nx\r\n" if b"v" in words[2:] else b"HD c1 t-1\r\n"

        def target(line, data, peer):
            if line.startswith(b"ms"):
                values[line.split()[1]] = data
                return b"HD c1\r\n"
            return b"END\r\n"
        with Scripted("a", target) as a, Scripted("b", source) as b, \
                Cluster([a, b], pool={**TWO, "timeouts": {"response": "20s"}}) as proxy, proxy.client() as client:
            keys = proxy.keys_of("a", count=100)
            self.assertEqual(client.ask(b"get " + b" ".join(keys) + b"\r\n").count(b"VALUE"), 100)
            self.assertEqual(backfills(proxy)["skipped"], 36)
            release.set()
            wait_until(lambda: backfills(proxy)["copied"] == 64, "those are copied")
            self.assertEqual(len(values), 64)

    def test_a_pool_that_is_reloaded_or_stopped_while_it_copies(self):
        _, wait = self.held_back(b"HD c77\r\n")
        self.scenario({}, {b"ms": wait})
        self.be_patient()
        self.read()
        wait_until(lambda: self.first.count(b"ms"), "it copies")
        self.assertEqual(self.proxy.reload(self.proxy.document([self.second])).status, 200)
        self.assertIn(b"VALUE", self.client.ask(b"get %s\r\n" % self.key))
        self.assertEqual(self.proxy.stop(), 0)


class Writer(threading.Thread):
    """Writes keys that nobody else writes, and reads nothing that is older than what it was told."""

    def __init__(self, proxy, number, done):
        super().__init__(daemon=True)
        self.proxy, self.number, self.done = proxy, number, done
        self.chance = random.Random(number)
        # What may be under a key: several where a write failed, which may have been done or not.
        self.possible = {b"w%d:%d" % (number, n): {None} for n in range(12)}
        self.turn, self.faults, self.told = 0, [], collections.Counter()

    def run(self):
        while not self.done.is_set() and not self.faults:
            try:
                with self.proxy.client() as client:
                    while not self.done.is_set() and not self.faults:
                        self.step(client)
            except (OSError, IndexError, ValueError) as error:
                self.faults.append(repr(error))

    def step(self, client):
        key = self.chance.choice(sorted(self.possible))
        self.turn += 1
        value = b"%d" % self.turn
        verb = self.chance.choice((b"set", b"set", b"add", b"cas", b"append", b"delete", b"delete", b"get", b"get", b"get"))
        if verb == b"get":
            return self.check(key, client.get(key))
        answer, result = self.write(client, verb, key, value)
        self.told[answer.split()[0]] += 1
        if answer.startswith(b"SERVER_ERROR"):
            self.possible[key] |= result
        elif answer in (b"STORED\r\n", b"DELETED\r\n"):
            self.possible[key] = result
        elif answer == b"NOT_FOUND\r\n" and verb == b"delete":
            self.possible[key] = {None}
        elif answer not in (b"NOT_STORED\r\n", b"NOT_FOUND\r\n", b"EXISTS\r\n"):
            self.faults.append((key, verb, answer))

    def write(self, client, verb, key, value):
        """The answer, and what is there if it was done."""
        if verb == b"delete":
            return client.ask(b"delete %s\r\n" % key), {None}
        if verb == b"append":
            appended = {before + b"+" + value for before in self.possible[key] if before} | {None}
            return client.ask(b"append %s 0 0 %d\r\n+%s\r\n" % (key, len(value) + 1, value)), appended
        unique = b""
        if verb == b"cas":
            found = client.ask(b"gets %s\r\n" % key).split()
            unique = b" " + (found[4] if found[0] == b"VALUE" else b"1")
        return client.ask(b"%s %s 0 0 %d%s\r\n%s\r\n" % (verb, key, len(value), unique, value)), {value}

    def check(self, key, value):
        if value is not None and value not in self.possible[key]:
            self.faults.append((key, "is", value, "and not of", self.possible[key]))


@needs_memcached
class Turmoil(unittest.TestCase):
    """Servers die and come back while many read and write: what was deleted or replaced is never read again."""

    def test_nobody_reads_what_he_has_replaced(self):
        servers = [self.enterContext(Memcached(name)) for name in "abc"]
        settings = {"on_return": "distrust", "down_after": 1}
        with Cluster(servers, pool=FAST, memcached=settings, workers=2) as proxy:
            done = threading.Event()
            writers = [Writer(proxy, number, done) for number in range(4)]
            keys = [key for writer in writers for key in writer.possible]
            readers = [threading.Thread(target=self.read, args=(proxy, keys, done), daemon=True) for _ in range(2)]
            for thread in (*writers, *readers):
                thread.start()
            for turn in range(6 if SANITIZED else 12):
                server = servers[turn % 3]
                server.ask(b"flush_all\r\n") if turn % 2 else server.stop()
                self.passes(writers, 100)
                if not server.process:
                    server.start()
                self.passes(writers, 200)
            done.set()
            for thread in (*writers, *readers):
                thread.join()
            self.assertEqual([writer.faults for writer in writers if writer.faults], [])
            self.assertGreater(backfills(proxy)["copied"], 0)
            told = sum((writer.told for writer in writers), collections.Counter())
            self.assertGreater(min(told[b"STORED"], told[b"DELETED"]), 0, told)

    def passes(self, writers, steps):
        before = [writer.turn for writer in writers]
        wait_until(lambda: all(writer.turn >= turn + steps or writer.faults for writer, turn in zip(writers, before)),
                   "all go on")

    @staticmethod
    def read(proxy, keys, done):
        chance = random.Random(7)
        with proxy.client() as client:
            while not done.is_set():
                client.ask(b"get " + b" ".join(chance.sample(keys, 8)) + b"\r\n")


@needs_memcached
class Zones(unittest.TestCase):
    def test_owners_stand_in_distinct_zones_while_there_are_enough(self):
        servers = [self.enterContext(Memcached(name)) for name in "abcd"]
        for server, zone in zip(servers, ("east", "east", "west", "west")):
            plain = server.entry
            server.entry = lambda plain=plain, zone=zone: plain(zone=zone)
        zones = dict(zip("abcd", ("east", "east", "west", "west")))
        for replicas in (2, 3, 4):
            with Cluster(servers, pool={"ring": {"replicas": replicas}}) as proxy, proxy.client() as client:
                holders = proxy.holders(f"z{n}" for n in range(40))
                client.ask(b"".join(b"set %s 0 0 1 noreply\r\nx\r\n" % key for key in holders))
                for key, names in holders.items():
                    self.assertEqual(len(set(names)), replicas)
                    self.assertEqual({zones[name] for name in names[:2]}, {"east", "west"})
                    here = {server.name for server in servers if server.ask(b"get %s\r\n" % key) != b"END\r\n"}
                    self.assertEqual(here, set(names))
                    client.ask(b"delete %s\r\n" % key)
                key = next(iter(holders))
                explained = proxy.admin(f"/api/v1/pools/items/lookup?key={key.decode()}").json()["keys"][0]
                self.assertEqual(explained["replicas"], holders[key])
                self.assertEqual([step["server"] for step in explained["walk"]][:replicas], holders[key])
                self.assertEqual(explained["chosen"], holders[key][0])


@needs_memcached
class Http(unittest.TestCase):
    """HTTP in front of the pool."""

    def setUp(self):
        self.servers = {name: self.enterContext(Memcached(name)) for name in "abc"}

    def start(self, *, settings=None, pool=None, pools=None):
        self.proxy = self.enterContext(Proxy({
            "workers": 1, "access_log": "off",
            "listeners": [{"name": "web", "address": "127.0.0.1:0", "pool": "mc"}],
            "pools": {"mc": {"protocol": "memcached", "servers": [s.entry() for s in self.servers.values()], **TWO,
                             "memcached": {"writable": True, "retry_interval": "100ms", **(settings or {})}, **(pool or {})},
                      **(pools or {})}}))
        self.web = ("127.0.0.1", self.proxy.port())
        named = self.proxy.admin("/api/v1/pools/mc/lookup?" + "&".join(f"key=/t{n}?" for n in range(60))).json()["keys"]
        self.target, self.other = [entry["key"][:-1] for entry in named if entry["replicas"] == ["a", "b"]][:2]

    def ask(self, method, target=None, body=b"", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return wire.fetch(self.web, target or self.target, method, named, body, host="h.example")

    def held(self, name, target=None):
        with Client(("127.0.0.1", self.servers[name].port)) as client:
            return client.get((target or self.target).encode() + b"?")

    def both(self):
        self.assertEqual(self.held("a"), self.held("b"))
        self.assertIsNone(self.held("c"))
        return self.held("a")

    def put(self, name, value, flags=0):
        self.servers[name].ask(b"set %s? %d 0 %d\r\n%s\r\n" % (self.target.encode(), flags, len(value), value))

    def lose(self, name):
        self.assertEqual(self.servers[name].ask(b"delete %s?\r\n" % self.target.encode()), b"DELETED\r\n")

    def test_put_and_delete_on_both(self):
        self.start()
        self.assertEqual(self.ask("PUT", body=b"one").status, 201)
        self.assertEqual(self.both(), b"one")
        self.assertEqual(self.ask("PUT", body=b"two" * 100_000).status, 204)
        self.assertEqual(self.both(), b"two" * 100_000)
        self.assertEqual(self.ask("DELETE").status, 204)
        self.assertIsNone(self.both())
        self.assertEqual(self.ask("DELETE").status, 404)
        for name in "ab":
            self.put(name, b"x")
            self.assertEqual(self.ask("DELETE").status, 204)
            self.assertIsNone(self.both())
        self.assertEqual(self.ask("PUT", body=b"x" * 2_000_000).status, 413)

    def test_what_is_too_large_leaves_none_behind(self):
        self.start()
        for size in (2_000_000, 1_048_570):
            self.ask("PUT", body=b"old")
            self.assertEqual(self.ask("PUT", body=b"x" * size).status, 413)
            wait_until(lambda: (self.held("a"), self.held("b")) == (None, None), "the old value is gone")

    def test_conditions_are_decided_once(self):
        self.start()
        self.assertEqual(self.ask("PUT", body=b"0", If_Match="*").status, 412)
        self.assertEqual(self.ask("PUT", body=b"1", If_None_Match="*").status, 201)
        self.assertEqual(self.both(), b"1")
        self.assertEqual(self.ask("PUT", body=b"2", If_None_Match="*").status, 412)
        self.assertEqual(self.ask("PUT", body=b"3", If_Match="*").status, 204)
        self.assertEqual(self.both(), b"3")
        old = self.ask("GET").value("etag")
        self.assertEqual(self.ask("PUT", body=b"4", If_Match=old).status, 204)
        self.assertEqual(self.both(), b"4")
        self.assertEqual(self.ask("PUT", body=b"5", If_Match=old).status, 412)
        new = self.ask("GET").value("etag")
        self.assertEqual(self.ask("PUT", body=b"7", If_Match=f"{old}, {new}").status, 204)
        self.assertEqual(self.ask("DELETE", If_Match=old).status, 412)
        self.assertEqual(self.both(), b"7")
        self.assertEqual(self.ask("DELETE", If_Match=self.ask("GET").value("etag")).status, 204)
        self.assertIsNone(self.both())

    def test_what_the_first_has_lost_is_given_and_comes_back(self):
        self.start()
        for value in (b"short", b"x" * 700_000):
            for method in ("GET", "HEAD"):
                self.ask("PUT", body=value)
                self.lose("a")
                answer = self.ask(method)
                self.assertEqual((answer.status, int(answer.value("content-length"))), (200, len(value)))
                if method == "GET":
                    self.assertEqual(bytes(answer.body), value)
                wait_until(lambda: self.held("a") == value, "it came back")
        self.assertEqual(backfills(self.proxy)["copied"], 4)

    def test_a_packed_value_keeps_its_flag(self):
        self.start()
        self.put("b", gzip.compress(b"text"), flags=2)
        self.assertEqual(self.ask("GET").text, "text")
        wait_until(lambda: self.held("a"), "it came back")
        self.lose("b")
        self.assertEqual(self.ask("GET").text, "text")

    def test_the_tag_of_the_second_owner_is_not_one_of_the_first(self):
        self.start()
        self.put("b", b"there")
        tag = self.ask("GET").value("etag")
        self.assertGreater(int(tag.strip('"')), MARK)
        wait_until(lambda: self.held("a"), "it came back")
        self.assertEqual(self.ask("PUT", body=b"x", If_Match=tag).status, 412)
        self.assertEqual(self.ask("PUT", body=b"x", If_Match=self.ask("GET").value("etag")).status, 204)

    def test_a_miss_of_both_is_404(self):
        self.start()
        self.assertEqual(self.ask("GET").status, 404)
        self.assertEqual(counted(self.proxy, "get"), {"miss": 1})

    def test_one_owner_lost(self):
        self.start(pool=FAST)
        self.ask("PUT", body=b"x")
        for name, fail in (("a", Memcached.stop), ("b", Memcached.freeze)):
            fail(self.servers[name])
            for _ in range(5):
                self.assertEqual(self.ask("GET").text, "x")
            if name == "b":
                self.addCleanup(self.servers["b"].thaw)
                break
            wait_until(lambda: self.ask("PUT", body=b"x").status == 204, "it is away")
            self.assertEqual(self.ask("GET", self.other).status, 404)
            self.assertEqual(self.ask("DELETE").status, 204)
            self.servers[name].start()
            wait_until(lambda: self.ask("PUT", body=b"x").status < 300 and self.held("a"), "it is back")

    def test_no_write_is_told_as_done_that_one_did_not_do(self):
        self.start(pool=FAST, settings={"down_after": 1000})
        self.servers["b"].freeze()
        self.addCleanup(self.servers["b"].thaw)
        self.assertEqual(self.ask("PUT", body=b"x").status, 504)
        self.assertEqual(self.ask("PUT", body=b"x", If_Match="*").status, 504)
        self.assertEqual(self.ask("DELETE").status, 504)
        self.servers["a"].stop()
        self.assertIn(self.ask("GET").status, (502, 504))

    def test_what_fills_is_on_both(self):
        origin = self.enterContext(Origin(lambda exchange: exchange.reply(
            200, b"from the origin", {"Cache-Control": "max-age=100"}), name="o"))
        self.start(settings={"fill": True, "budget": "5s"}, pool={"fallback": "app"},
                   pools={"app": {"servers": [origin.entry()]}})
        self.assertEqual(self.ask("GET").text, "from the origin")
        wait_until(lambda: self.held("a") and self.held("b"), "it is on both")
        self.assertEqual(self.both(), b"from the origin")
        self.assertEqual(counted(self.proxy, "set"), {"stored": 1})
        self.lose("a")
        self.assertEqual(self.ask("GET").text, "from the origin")
        self.assertEqual(len(origin.requests), 1)


class EveryCommandOnTwo(listener.EveryCommand):
    """Where all is well, it is octet for octet as before."""
    POOL = TWO


class FramingOnTwo(listener.Framing):
    POOL = TWO
    test_cut_at_every_boundary = None
    test_the_binary_protocol_is_refused_at_once = None


class RetrievalsOnTwo(listener.Retrievals):
    POOL = TWO


class ValuesOnTwo(listener.Values):
    POOL = TWO
    MADE_UNDER_A_UNIQUE = ()  # its answer is lost: docs/memcached.md


class ClientsOnTwo(listener.Clients):
    POOL = TWO


if __name__ == "__main__":
    unittest.main()
