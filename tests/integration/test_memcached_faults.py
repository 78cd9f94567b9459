"""Memcached servers and clients that break every promise: what the others get is still their own.

Servers refuse, hang, break off, answer too much, too late or for somebody else; clients send garbage, leave, or
do not read. Reads end in a miss or an error as configured, a write is never reported as done that was not, and
no octet reaches a client for whom it was not meant.
"""

import pathlib
import random
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.clockwise import SANITIZED, free_port, wait_until  # noqa: E402
from support.memcached import Client, Cluster, Memcached, Scripted, elapsed, needs_memcached  # noqa: E402

MIB = 1 << 20
FAST = {"timeouts": {"connect": "200ms", "response": "300ms"}}
SOON = 0.05 if SANITIZED else 0.01  # what is answered without waiting for anybody


class Nobody:
    """A server where nobody listens."""

    def __init__(self, name):
        self.name, self.port = name, free_port()

    def entry(self):
        return {"name": self.name, "address": f"127.0.0.1:{self.port}"}


class Full:
    """A server that takes no connection and refuses none: its backlog is full."""

    def __init__(self, name):
        self.name = name
        self.sock = socket.socket()
        self.sock.bind(("127.0.0.1", 0))
        self.sock.listen(0)
        self.waiting = []
        for _ in range(3):
            waiting = socket.socket()
            waiting.setblocking(False)
            waiting.connect_ex(self.sock.getsockname())
            self.waiting.append(waiting)

    def entry(self):
        return {"name": self.name, "address": "127.0.0.1:%d" % self.sock.getsockname()[1]}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sock in (*self.waiting, self.sock):
            sock.close()


WRITES = (b"set %s 0 0 1\r\nx\r\n", b"add %s 0 0 1\r\nx\r\n", b"replace %s 0 0 1\r\nx\r\n", b"append %s 0 0 1\r\nx\r\n",
          b"prepend %s 0 0 1\r\nx\r\n", b"cas %s 0 0 1 1\r\nx\r\n", b"delete %s\r\n", b"incr %s 1\r\n", b"decr %s 1\r\n",
          b"touch %s 0\r\n", b"ms %s 1\r\nx\r\n", b"md %s\r\n", b"ma %s\r\n", b"ms %s 1 q\r\nx\r\n", b"md %s q\r\n")
READS = {b"get %s\r\n": b"END\r\n", b"gets %s\r\n": b"END\r\n", b"gat 0 %s\r\n": b"END\r\n", b"gats 0 %s\r\n": b"END\r\n",
         b"mg %s v\r\n": b"EN\r\n", b"mg %s v q\r\n": b"", b"me %s\r\n": b"EN\r\n"}
NOREPLY = (b"set %s 0 0 1 noreply\r\nx\r\n", b"append %s 0 0 1 noreply\r\nx\r\n", b"delete %s noreply\r\n",
           b"incr %s 1 noreply\r\n", b"touch %s 0 noreply\r\n")


def never_away(**more):
    return {"down_after": 100_000, **more}


class EveryFault(unittest.TestCase):
    """One server that does not answer as it should, and what its keys get."""

    def check(self, server, cause, settings=None):
        for on_read_error in ("miss", "error"):
            with Cluster([server], pool=FAST, memcached=never_away(on_read_error=on_read_error)) as proxy, \
                    proxy.client() as client:
                error = b"SERVER_ERROR %s %s\r\n" % (server.name.encode(), cause)
                for read, miss in READS.items():
                    self.assertEqual(client.ask(read % b"k"), miss if on_read_error == "miss" else error, read)
                for write in WRITES:
                    self.assertEqual(client.ask(write % b"k"), error, write)
                for write in NOREPLY:
                    self.assertEqual(client.ask(write % b"k"), b"", write)
                self.assertEqual(client.ask(b"get k l m k\r\n"), b"END\r\n" if on_read_error == "miss" else error)

    def test_refused(self):
        self.check(Nobody("a"), b"refused")

    def test_no_connection_in_time(self):
        with Full("a") as server:
            self.check(server, b"timed out")

    def test_no_answer_in_time(self):
        with Scripted("a", lambda line, data, peer: b"") as server:
            self.check(server, b"timed out")

    def test_closed_instead_of_an_answer(self):
        with Scripted("a", lambda line, data, peer: None) as server:
            self.check(server, b"closed")

    def test_garbage(self):
        for garbage in (b"\0\1\2\3\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 5000, b"VALUE k 0 9223372036854775807\r\n",
                        b"VALUE k 0 -1\r\n", b"VALUE k 0 4294967296\r\n", b"\r\n", b"STORED\n", b"stored\r\n", b"7x\r\n",
                        b"VALUE other 0 1\r\nx\r\nEND\r\n", b"VALUE k 0 1\r\nxx\r\nEND\r\n"):
            with self.subTest(garbage), Scripted("a", lambda line, data, peer, text=garbage: text) as server:
                with Cluster([server], pool=FAST, memcached=never_away(on_read_error="error")) as proxy, \
                        proxy.client() as client:
                    self.assertEqual(client.ask(b"get k\r\n"), b"SERVER_ERROR a garbled\r\n")
                    self.assertRegex(client.ask(b"set k 0 0 1\r\nx\r\n"), rb"\ASERVER_ERROR a (garbled|closed)\r\n\Z")
                    self.assertRegex(client.ask(b"mg k v\r\n"), rb"\ASERVER_ERROR a garbled\r\n\Z|\AVA ")

    def test_the_answer_to_another_command(self):
        for answer in (b"STORED\r\n", b"DELETED\r\n", b"HD\r\n", b"OK\r\n", b"VERSION 1\r\n", b"5\r\n", b"NF\r\n"):
            with Scripted("a", lambda line, data, peer, text=answer: text) as server:
                with Cluster([server], pool=FAST, memcached=never_away()) as proxy, proxy.client() as client:
                    self.assertEqual(client.ask(b"get k\r\n"), b"END\r\n", answer)
                    if answer != b"DELETED\r\n":
                        self.assertEqual(client.ask(b"delete k\r\n"), b"SERVER_ERROR a garbled\r\n", answer)
                    if answer != b"5\r\n":
                        self.assertEqual(client.ask(b"incr k 1\r\n"), b"SERVER_ERROR a garbled\r\n", answer)

    def test_closed_in_the_middle_of_a_value(self):
        def handler(line, data, peer):
            peer.sendall(b"VALUE k 0 1000\r\n" + b"x" * cut)
            return None
        for cut in (0, 1, 500, 999, 1000):
            with Scripted("a", handler) as server:
                with Cluster([server], pool=FAST, memcached=never_away()) as proxy, proxy.client() as client:
                    self.assertEqual(client.ask(b"get k\r\n"), b"END\r\n", cut)
                with Cluster([server], pool=FAST, memcached=never_away(on_read_error="error")) as proxy, \
                        proxy.client() as client:
                    self.assertEqual(client.ask(b"get k\r\n"), b"SERVER_ERROR a closed\r\n", cut)

    def test_the_items_before_the_one_that_broke_off_are_given(self):
        def handler(line, data, peer):
            peer.sendall(b"VALUE k 0 1\r\nx\r\nVALUE l 0 1000\r\nxxx")
            return None
        with Scripted("a", handler) as server:
            for setting, end in (("miss", b"END\r\n"), ("error", b"SERVER_ERROR a closed\r\n")):
                with Cluster([server], pool=FAST, memcached=never_away(on_read_error=setting)) as proxy, \
                        proxy.client() as client:
                    self.assertEqual(client.ask(b"get k l m\r\n"), b"VALUE k 0 1\r\nx\r\n" + end)

    def test_a_slow_server_octet_by_octet_is_no_fault(self):
        def handler(line, data, peer):
            for octet in b"VALUE k 3 5\r\nab\r\nc\r\nEND\r\n":
                peer.sendall(bytes([octet]))
                time.sleep(0.001)
            return b""
        with Scripted("a", handler) as server, Cluster([server]) as proxy, proxy.client() as client:
            self.assertEqual(client.ask(b"get k\r\n"), b"VALUE k 3 5\r\nab\r\nc\r\nEND\r\n")
            self.assertEqual(client.ask(b"get k\r\n"), b"VALUE k 3 5\r\nab\r\nc\r\nEND\r\n")
            self.assertEqual(server.connections, 1)

    def test_what_a_server_says_of_itself_is_passed_on(self):
        for answer in (b"SERVER_ERROR out of memory storing object\r\n", b"ERROR\r\n", b"CLIENT_ERROR no such thing\r\n"):
            with Scripted("a", lambda line, data, peer, text=answer: text) as server:
                with Cluster([server], memcached=never_away()) as proxy, proxy.client() as client:
                    for command in (b"set k 0 0 1\r\nx\r\n", b"incr k 1\r\n", b"get k\r\n", b"mg k v\r\n", b"ms k 1 q\r\nx\r\n"):
                        self.assertEqual(client.ask(command), answer, command)
                    for command in NOREPLY:
                        self.assertEqual(client.ask(command % b"k"), b"", command)

    def test_no_server_on_the_ring(self):
        server = Nobody("a")
        server.entry = lambda: {"name": "a", "address": f"127.0.0.1:{server.port}", "state": "down"}
        with Cluster([server]) as proxy, proxy.client() as client:
            self.assertEqual(client.ask(b"get k l\r\n"), b"END\r\n")
            self.assertTrue(client.ask(b"set k 0 0 1\r\nx\r\n").startswith(b"SERVER_ERROR "))
            self.assertEqual(client.ask(b"set k 0 0 1 noreply\r\nx\r\n"), b"")
            self.assertTrue(client.ask(b"set k 0 0 2000000\r\n" + b"x" * 2_000_000 + b"\r\n").startswith(b"SERVER_ERROR "))


class OutOfStep(unittest.TestCase):
    """A connection that says one line too many, or one too late, ends; nobody gets what was not for it."""

    def test_one_line_too_many_is_never_another_requests_answer(self):
        def handler(line, data, peer):
            key = line.split()[1]
            return b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(key), key) + (b"END\r\n" if b"evil" in key else b"")
        with Scripted("a", handler) as server, Cluster([server], memcached=never_away()) as proxy:
            with proxy.client() as evil, proxy.client() as good:
                for n in range(50):
                    evil.send(b"get evil%d\r\n" % n)
                    self.assertIn(good.get(b"good%d" % n), (b"good%d" % n, None))
                    self.assertIn(evil.line(), (b"VALUE evil%d 0 %d\r\n" % (n, len(str(n)) + 4), b"END\r\n"))
                    evil.answers() if evil.send(b"mn\r\n") else None

    def test_a_late_answer_is_never_another_requests_answer(self):
        def handler(line, data, peer):
            key = line.split()[1]
            if b"late" in key:
                time.sleep(0.4)
            return b"VALUE %s 0 %d\r\n%s\r\nEND\r\n" % (key, len(key), key)
        with Scripted("a", handler) as server, Cluster([server], pool=FAST, memcached=never_away()) as proxy:
            with proxy.client() as client, proxy.client() as other:
                for n in range(3):
                    late, good = b"late%d" % n, b"good%d" % n
                    client.send(b"get " + late + b"\r\n")
                    wait_until(lambda: server.count(b"get " + late), "the late one is asked")
                    self.assertIn(other.get(good), (good, None))
                    self.assertEqual(client.ask(b""), b"END\r\n")
                    self.assertEqual(client.get(good), good)

    def test_octets_on_an_idle_connection_end_it(self):
        peers = []

        def handler(line, data, peer):
            peers.append(peer)
            return b"END\r\n"
        with Scripted("a", handler) as server, Cluster([server], memcached=never_away()) as proxy, proxy.client() as client:
            self.assertEqual(client.ask(b"get k\r\n"), b"END\r\n")
            peers[0].sendall(b"VALUE k 0 4\r\nevil\r\nEND\r\n")
            wait_until(lambda: not server.open, "the connection is closed")
            self.assertEqual(client.ask(b"get k\r\n"), b"END\r\n")
            self.assertEqual(server.connections, 2)

    def test_after_a_client_error_the_connection_is_not_trusted(self):
        def handler(line, data, peer):
            if line.startswith(b"set odd"):
                return b"CLIENT_ERROR I lost my place\r\n"
            if line.startswith(b"incr"):
                return b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
            return b"STORED\r\n"
        with Scripted("a", handler) as server, Cluster([server], memcached=never_away()) as proxy, proxy.client() as client:
            self.assertEqual(client.set(b"k", b"x"), b"STORED\r\n")
            self.assertEqual(client.ask(b"incr k 1\r\n"),
                             b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n")
            self.assertEqual(client.set(b"k", b"x"), b"STORED\r\n")
            self.assertEqual(server.connections, 1)
            # The requests behind it on that connection do not suffer.
            sent = b"set k 0 0 1\r\nx\r\n" * 3 + b"set odd 0 0 1\r\nx\r\n" + b"set k 0 0 1\r\nx\r\n" * 5
            self.assertEqual(client.ask(sent), b"STORED\r\n" * 3 + b"CLIENT_ERROR I lost my place\r\n" + b"STORED\r\n" * 5)
            self.assertEqual(client.set(b"k", b"x"), b"STORED\r\n")
            self.assertEqual(server.connections, 2)
            wait_until(lambda: len(server.open) == 1, "the old connection is closed")

    # What is under way on the same connection when a server refuses what it should have taken.
    BEHIND = {b"get a\r\n": b"VALUE a 0 1\r\na\r\nEND\r\n", b"mg b v\r\n": b"VA 1\r\nb\r\n", b"incr seven 1\r\n": b"7\r\n",
              b"set c 0 0 1\r\nx\r\n": b"STORED\r\n", b"add d 0 0 1\r\nx\r\n": b"NOT_STORED\r\n",
              b"cas e 0 0 1 5\r\nx\r\n": b"EXISTS\r\n", b"decr eight 1\r\n": b"8\r\n", b"ma nine v\r\n": b"VA 1\r\n9\r\n",
              b"append f 0 0 1\r\nx\r\n": b"NOT_FOUND\r\n", b"delete g\r\n": b"DELETED\r\n", b"get h i\r\n": b"END\r\n"}
    SINGLE = {line: answer for line, answer in BEHIND.items() if not line.startswith((b"get", b"mg", b"set", b"delete"))}
    ANSWERS = {line.splitlines()[0]: answer for line, answer in BEHIND.items()}

    def behind(self, odd, refusal):
        """What each of BEHIND is answered, each for a client of its own, when `odd` before it gets the refusal."""
        held = threading.Event()
        self.addCleanup(held.set)

        def handler(line, data, peer):
            if line == odd.splitlines()[0]:
                held.wait(20)
                return refusal
            if line == b"mn":
                return b"MN\r\n"
            if line.startswith(b"md clockwise-fence"):
                return b"NF " + line.split()[2] + b"\r\n"
            return self.ANSWERS[line]
        with Scripted("a", handler) as server, Cluster([server], pool={"timeouts": {"response": "20s"}},
                                                      memcached=never_away()) as proxy:
            clients = {line: self.enterContext(proxy.client()) for line in self.BEHIND}

            def in_flight():
                return proxy.page().sum("clockwise_backend_requests_in_flight", backend="a")
            with proxy.client() as client:
                client.send(odd)
                wait_until(lambda: server.count(odd.splitlines()[0]) == 1, "it is asked")
                for line, other in clients.items():
                    other.send(line)
                wait_until(lambda: in_flight() == 1 + len(clients), "all are behind it")
                held.set()
                self.assertEqual(client.line(), refusal[:refusal.index(b"\n") + 1])
                answers = {line: other.ask(b"") for line, other in clients.items()}
                wait_until(lambda: in_flight() == 0, "nothing is owed")
                # The connection is not used for anything new.
                for line, answer in self.BEHIND.items():
                    self.assertEqual(client.ask(line), answer)
                self.assertEqual(server.connections, 2)
                return answers

    ODD = (b"delete odd\r\n", b"incr odd 1\r\n", b"get odd\r\n", b"set odd 0 0 1\r\nx\r\n", b"ms odd 1\r\nx\r\n")

    def test_what_is_behind_a_client_error_is_answered_as_ever(self):
        for odd in self.ODD:
            for refusal in (b"CLIENT_ERROR I lost my place\r\n", b"ERROR\r\n"):
                with self.subTest(odd=odd, refusal=refusal):
                    self.assertEqual(self.behind(odd, refusal), self.BEHIND)

    def test_a_line_more_behind_a_client_error_is_for_nobody(self):
        for odd in self.ODD:
            for more in (b"5\r\n", b"STORED\r\n", b"ERROR\r\n", b"NOT_FOUND\r\n", b"MN\r\n", b"5\r\nMN\r\n",
                         b"VALUE a 0 1\r\nz\r\nEND\r\n", b"HD\r\n" * 12):
                with self.subTest(odd=odd, more=more):
                    answers = self.behind(odd, b"CLIENT_ERROR I lost my place\r\n" + more)
                    for line, answer in answers.items():
                        # Once more is asked what may be; who cannot be asked once more is told that it failed.
                        self.assertEqual(answer, b"SERVER_ERROR a closed\r\n" if line in self.SINGLE else self.BEHIND[line], line)

    def test_hostile_clients_never_reach_another_ones_answers(self):
        hostile = (b"set k 99999999999999999999 0 1\r\nx\r\n", b"set k 0 0 99999999999999999999\r\nx\r\n",
                   b"set k 0 0 -1\r\nget v1\r\n", b"set k 0 0 1\r\nget v1\r\nget v2\r\n", b"set k 0 99999999999 1\r\nx\r\n",
                   b"cas k 0 0 1 x\r\nx\r\n", b"set k\0 0 0 1\r\nx\r\n", b"get k\0v1\r\n", b"get v1\rget v2\r\n",
                   b"set " + b"k" * 251 + b" 0 0 1\r\nx\r\n", b"incr k x\r\n", b"touch k x\r\n", b"delete k 5\r\n",
                   b"mg v1 v v\r\n", b"ms k 1 T\r\nx\r\n", b"ms k x\r\nget v1\r\n", b"ms k 1 b\r\nx\r\n", b"mg !!! b v\r\n",
                   b"ms k 1 " + b"a b c d e f g h i j k l m n o p q r s t u v w x y z\r\nx\r\n", b"gat x v1\r\n", b"\r\n",
                   b"set k 0 0 2000000\r\n" + b"get v1\r\n" * 250_000, b"set k 0 0 5 noreply\r\nxxxxxxx\r\n",
                   b"verbosity\r\n", b"flush_all x\r\n", b"stats settings\r\n", b"me v1 b\r\n", b"ma v1 D-1 v\r\n",
                   b"mg k v" + b" O" + b"o" * 40 + b"\r\n", b"set v1 4294967296 0 1 extra words here\r\nx\r\n")
        servers = [self.enterContext(Memcached(name)) for name in "abcd"]
        with Cluster(servers, memcached={"server_connections": 1}) as proxy:
            values = {b"v%d" % n: b"<%d>" % n * (n * 7 % 50 + 1) for n in range(100)}
            with proxy.client() as client:
                for key, value in values.items():
                    client.set(key, value)
            faults, done = [], threading.Event()

            def attack(number):
                chance = random.Random(number)
                while not done.is_set():
                    try:
                        with proxy.client() as client:
                            for _ in range(chance.randrange(1, 20)):
                                sent = chance.choice(hostile)
                                client.send(sent[:chance.randrange(1, len(sent) + 1)] if chance.random() < 0.2 else sent)
                            client.abort() if chance.random() < 0.5 else client.finish()
                    except OSError:
                        pass

            def read(number):
                chance = random.Random(number)
                try:
                    with proxy.client() as client:
                        for _ in range(100 if SANITIZED else 500):
                            keys = chance.sample(sorted(values.keys() - {b"v1"}), chance.randrange(1, 10))
                            answer = client.ask(b"get " + b" ".join(keys) + b"\r\n")
                            wanted = b"".join(b"VALUE %s 0 %d\r\n%s\r\n" % (k, len(values[k]), values[k]) for k in keys)
                            if answer != wanted + b"END\r\n":
                                faults.append((keys, answer[:200], wanted[:200]))
                except OSError as error:
                    faults.append(repr(error))
            attackers = [threading.Thread(target=attack, args=(n,)) for n in range(4)]
            readers = [threading.Thread(target=read, args=(n,)) for n in range(4)]
            for thread in (*attackers, *readers):
                thread.start()
            for thread in readers:
                thread.join()
            done.set()
            for thread in attackers:
                thread.join()
            self.assertEqual(faults, [])


@needs_memcached
class SomeServersFail(unittest.TestCase):
    def setUp(self):
        self.servers = [self.enterContext(Memcached(name)) for name in "abc"]

    def fill(self, proxy, count=60):
        keys = [b"k%d" % n for n in range(count)]
        with proxy.client() as client:
            for key in keys:
                self.assertEqual(client.set(key, b"<" + key + b">"), b"STORED\r\n")
        owners = proxy.owners(key.decode() for key in keys)
        self.assertEqual(set(owners.values()), set("abc"))
        return keys, owners

    @staticmethod
    def items(keys):
        return b"".join(b"VALUE %s 0 %d\r\n<%s>\r\n" % (key, len(key) + 2, key) for key in keys)

    def test_the_items_of_the_others_are_kept(self):
        for setting in ("miss", "error"):
            for fail in (Memcached.stop, Memcached.freeze):
                with self.subTest(setting=setting, fail=fail.__name__), \
                        Cluster(self.servers, pool=FAST, memcached={"on_read_error": setting}) as proxy:
                    keys, owners = self.fill(proxy)
                    fail(self.servers[1])
                    live = [key for key in keys if owners[key] != "b"]
                    with proxy.client() as client:
                        for turn in range(6):  # also once it is away
                            answer, seconds = elapsed(lambda: client.ask(b"get " + b" ".join(keys) + b"\r\n"))
                            items, end = answer[:len(self.items(live))], answer[len(self.items(live)):]
                            self.assertEqual(items, self.items(live))
                            if setting == "miss":
                                self.assertEqual(end, b"END\r\n")
                            else:
                                self.assertRegex(end, rb"\ASERVER_ERROR b [a-z ]+\r\n\Z")
                        self.assertLess(seconds, SOON)
                    self.servers[1].thaw() if self.servers[1].process else self.servers[1].start()

    def test_away_is_answered_at_once_and_back_within_a_second(self):
        for fail in (Memcached.stop, Memcached.freeze):
            with self.subTest(fail.__name__), Cluster(self.servers, pool=FAST) as proxy, proxy.client() as client:
                keys, owners = self.fill(proxy)
                lost = next(key for key in keys if owners[key] == "b")
                fail(self.servers[1])
                for _ in range(3):
                    self.assertTrue(client.set(lost, b"y").startswith(b"SERVER_ERROR b "))
                wait_until(lambda: client.set(lost, b"y") == b"SERVER_ERROR b away\r\n", "away")
                quick = [elapsed(lambda: client.ask(b"get " + lost + b"\r\n")) for _ in range(50)]
                self.assertEqual({answer for answer, _ in quick}, {b"END\r\n"})
                self.assertLess(sorted(seconds for _, seconds in quick)[25], 0.01 if SANITIZED else 0.002)
                state = proxy.state("b")
                self.assertIn("row", str(state), state)
                self.servers[1].thaw() if self.servers[1].process else self.servers[1].start()
                _, seconds = elapsed(lambda: wait_until(lambda: client.set(lost, b"back") == b"STORED\r\n", "back"))
                self.assertLess(seconds, 3 if SANITIZED else 1)
                self.assertEqual(client.get(lost), b"back")

    def test_a_server_that_was_restarted_costs_no_error(self):
        with Cluster(self.servers) as proxy, proxy.client() as client:
            keys, owners = self.fill(proxy)
            mine = [key for key in keys if owners[key] == "b"]
            for turn in range(3):
                self.servers[1].stop()
                self.servers[1].start()
                commands = (b"get %s\r\n", b"set %s 0 0 1\r\nx\r\n", b"delete %s\r\n")
                self.assertFalse(client.ask(commands[turn] % mine[turn]).startswith(b"SERVER_ERROR"))
                self.assertEqual(client.set(mine[0], b"x"), b"STORED\r\n")

    def test_clients_that_leave_with_requests_under_way(self):
        with Cluster(self.servers) as proxy:
            keys, _ = self.fill(proxy)
            for n in range(200):
                client = proxy.client()
                client.send(b"get " + b" ".join(keys) + b"\r\nset k%d 0 0 3\r\nabc\r\n" % n)
                client.abort() if n % 2 else client.close()
            with proxy.client() as client:
                wait_until(lambda: client.get(b"k59") in (b"abc", b"<k59>"), "it answers")
                self.assertEqual(client.set(b"k0", b"x"), b"STORED\r\n")
                self.assertEqual(client.get(b"k0"), b"x")

    def test_a_reload_that_adds_a_server_disturbs_nobody(self):
        more = self.enterContext(Memcached("d"))
        with Cluster(self.servers) as proxy:
            faults, done, turns = [], threading.Event(), []

            def run(number):
                try:
                    with proxy.client() as client:
                        turn = 0
                        while not done.is_set():
                            key, value = b"r%d:%d" % (number, turn % 40), b"%d" % turn
                            if client.set(key, value) != b"STORED\r\n":
                                faults.append("set")
                            # A server may hold what it stored before the key went elsewhere for a while.
                            if (got := client.get(key)) and int(got) not in range(turn % 40, turn + 1, 40):
                                faults.append(("get", key))
                            turn += 1
                        turns.append(turn)
                except (OSError, AssertionError) as error:
                    faults.append(repr(error))
            threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for servers in ([*self.servers, more], self.servers, [*self.servers, more]):
                answer = proxy.reload(proxy.document(servers))
                self.assertIn(answer.status, (200,), answer.text)
                time.sleep(0.1)
            done.set()
            for thread in threads:
                thread.join()
            self.assertEqual(faults, [])
            self.assertEqual(len(turns), 8)
            self.assertIn(b"curr_items", more.ask(b"stats\r\n"))


class Repeating(unittest.TestCase):
    """A kept connection that turns out to be closed: what may be repeated is, once."""

    SAFE = {b"get %s\r\n": b"END\r\n", b"mg %s v\r\n": b"EN\r\n", b"delete %s\r\n": b"DELETED\r\n",
            b"set %s 0 0 1\r\nx\r\n": b"STORED\r\n", b"touch %s 0\r\n": b"TOUCHED\r\n"}
    UNSAFE = {b"incr %s 1\r\n": b"1\r\n", b"decr %s 1\r\n": b"1\r\n", b"append %s 0 0 1\r\nx\r\n": b"STORED\r\n",
              b"prepend %s 0 0 1\r\nx\r\n": b"STORED\r\n", b"cas %s 0 0 1 1\r\nx\r\n": b"STORED\r\n",
              b"add %s 0 0 1\r\nx\r\n": b"STORED\r\n"}

    def run_one(self, command, answer):
        """What the client gets, and how often the server was asked, when the first time ends the connection."""
        ended = []

        def handler(line, data, peer):
            if line.split()[1] != b"k":
                return b"END\r\n"
            if not ended:
                ended.append(peer)
                return None
            return answer
        with Scripted("a", handler) as server, Cluster([server]) as proxy, proxy.client() as client:
            self.assertEqual(client.ask(b"get warm\r\n"), b"END\r\n")
            got = client.ask(command % b"k")
            return got, sum(line.split()[1] == b"k" for line in server.seen)

    def test_safe_commands_once(self):
        for command, answer in self.SAFE.items():
            self.assertEqual(self.run_one(command, answer), (answer, 2), command)

    def test_others_never(self):
        for command, answer in self.UNSAFE.items():
            self.assertEqual(self.run_one(command, answer), (b"SERVER_ERROR a closed\r\n", 1), command)

    def test_not_twice(self):
        with Scripted("a", lambda line, data, peer: b"END\r\n" if b"warm" in line else None) as server:
            with Cluster([server]) as proxy, proxy.client() as client:
                client.ask(b"get warm\r\n")
                self.assertEqual(client.ask(b"set k 0 0 1\r\nx\r\n"), b"SERVER_ERROR a closed\r\n")
                self.assertEqual(server.count(b"set"), 2)


@needs_memcached
class OnReturn(unittest.TestCase):
    """A server that was away for a while, and came back with what it held before."""

    def scenario(self, on_return, change, **more):
        servers = [self.enterContext(Memcached(name)) for name in "ab"]
        proxy = self.enterContext(Cluster(servers, pool={**FAST, **more}, memcached={"on_return": on_return}))
        client = self.enterContext(proxy.client())
        key, = proxy.keys_of("a")
        self.assertEqual(client.set(key, b"old"), b"STORED\r\n")
        servers[0].freeze()
        self.addCleanup(servers[0].thaw)
        for _ in range(4):
            client.ask(b"get " + key + b"\r\n")
        changed = client.ask(change % key)
        self.assertNotEqual(client.ask(b"get " + key + b"\r\n"), b"VALUE %s 0 3\r\nold\r\nEND\r\n" % key)
        servers[0].thaw()
        probe = proxy.keys_of("a", count=3, prefix="probe")[-1]
        # A set of another key shows that it is asked again.
        wait_until(lambda: client.set(probe, b"x") == b"STORED\r\n" and servers[0].ask(b"get " + probe + b"\r\n") != b"END\r\n",
                   "it is back")
        return changed, client.get(key)

    def test_keep_gives_what_it_held(self):
        changed, value = self.scenario("keep", b"delete %s\r\n")
        self.assertEqual(changed, b"SERVER_ERROR a away\r\n")
        self.assertEqual(value, b"old")

    def test_distrust_never_gives_the_old_value_after_a_delete(self):
        changed, value = self.scenario("distrust", b"delete %s\r\n")
        self.assertEqual(changed, b"SERVER_ERROR a away\r\n")
        self.assertIsNone(value)

    def test_distrust_never_gives_the_old_value_after_a_write_without_reply(self):
        _, value = self.scenario("distrust", b"set %s 0 0 3 noreply\r\nnew\r\n")
        self.assertIsNone(value)

    def test_distrust_of_binary_keys(self):
        servers = [self.enterContext(Memcached("a"))]
        with Cluster(servers, pool=FAST, memcached={"on_return": "distrust"}) as proxy, proxy.client() as client:
            for key in (b"abc", b"plain"):
                client.set(key, b"old")
            servers[0].freeze()
            for _ in range(4):
                client.ask(b"get abc\r\n")
            self.assertTrue(client.ask(b"md YWJj b\r\n").startswith(b"SERVER_ERROR"))
            servers[0].thaw()
            wait_until(lambda: client.get(b"plain") == b"old", "it is back")
            self.assertIsNone(client.get(b"abc"))

    def test_a_delete_through_a_stand_in_reaches_the_home_too(self):
        changed, value = self.scenario("distrust", b"delete %s\r\n", failover="next")
        self.assertIn(changed, (b"NOT_FOUND\r\n", b"DELETED\r\n"))
        self.assertIsNone(value)

    def test_a_set_through_a_stand_in_marks_the_home(self):
        changed, value = self.scenario("distrust", b"set %s 0 0 3\r\nnew\r\n", failover="next")
        self.assertEqual(changed, b"STORED\r\n")
        self.assertIsNone(value)

    def test_a_value_of_a_stand_in_does_not_live_longer_than_failover_ttl(self):
        servers = [self.enterContext(Memcached(name)) for name in "ab"]
        settings = {"failover_ttl": "5s", "down_after": 1}
        with Cluster(servers, pool={**FAST, "failover": "next"}, memcached=settings) as proxy, proxy.client() as client:
            key, = proxy.keys_of("a")
            client.set(key, b"home")
            servers[0].stop()
            wait_until(lambda: client.set(key, b"standin") == b"STORED\r\n", "the stand-in takes over")
            self.assertEqual(client.get(key), b"standin")

            def left():
                return int(servers[1].ask(b"mg %s t\r\n" % key).split()[1][1:])
            for command in (b"set %s 0 0 1\r\nx\r\n", b"set %s 0 1000 1\r\nx\r\n", b"ms %s 1\r\nx\r\n",
                            b"ms %s 1 T1000\r\nx\r\n", b"touch %s 1000\r\n", b"touch %s 0\r\n"):
                client.ask(command % key)
                self.assertTrue(0 < left() <= 5, (command, left()))
            client.ask(b"set %s 0 2 1\r\nx\r\n" % key)
            self.assertTrue(0 < left() <= 2)
            # Deleted while the home is away: then neither has it.
            self.assertEqual(client.ask(b"delete %s\r\n" % key), b"DELETED\r\n")
            self.assertIsNone(client.get(key))


class Bounds(unittest.TestCase):
    def big_server(self):
        value = b"x" * 500_000

        def handler(line, data, peer):
            return b"".join(b"VALUE %s 0 500000\r\n%s\r\n" % (key, value) for key in line.split()[1:]) + b"END\r\n"
        return self.enterContext(Scripted("a", handler))

    def resident(self, proxy):
        status = pathlib.Path(f"/proc/{proxy.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def test_a_client_that_does_not_read_is_not_read_either(self):
        server = self.big_server()
        with Cluster([server], listener={"limits": {"unsent": "1m", "unanswered": "64k"}}) as proxy:
            before = self.resident(proxy)
            with proxy.client(receive_buffer=8192) as slow, proxy.client() as other:
                slow.sock.settimeout(0.5)
                try:
                    for _ in range(100_000):
                        slow.send(b"get k\r\n" * 100)
                except TimeoutError:
                    pass
                else:
                    self.fail("it took everything")
                self.assertLess(self.resident(proxy) - before, (512 if SANITIZED else 128) * MIB)
                self.assertLess(server.count(b"get"), 2000)
                self.assertEqual(len(other.get(b"k")), 500_000)  # nobody else waits

    def test_a_pipeline_of_large_values_is_answered_whole(self):
        server = self.big_server()
        with Cluster([server]) as proxy, proxy.client() as client:
            before = self.resident(proxy)
            client.send(b"get k\r\n" * 400)
            for n in range(400):
                self.assertEqual(client.line(), b"VALUE k 0 500000\r\n", n)
                self.assertEqual(client.octets(500_002)[-2:], b"\r\n")
                self.assertEqual(client.line(), b"END\r\n")
            self.assertLess(self.resident(proxy) - before, (512 if SANITIZED else 128) * MIB)

    def test_all_clients_together_hold_no_more_than_limits_buffered(self):
        def handler(line, data, peer):
            blocked.wait(20)
            return b"END\r\n"
        blocked = threading.Event()
        with Scripted("a", handler) as server, \
                Cluster([server], pool={"timeouts": {"response": "20s"}},
                        listener={"limits": {"unanswered": "1m", "buffered": "4m"}}) as proxy:
            clients = [self.enterContext(proxy.client()) for _ in range(30)]
            before = self.resident(proxy)
            sent = 0
            for client in clients:
                client.sock.settimeout(0.1)
                try:
                    for _ in range(40):
                        client.send(b"set k 0 0 50000\r\n" + b"x" * 50_000 + b"\r\n")
                        sent += 50_000
                except TimeoutError:
                    pass
            self.assertLess(self.resident(proxy) - before, (200 if SANITIZED else 40) * MIB, sent)
            blocked.set()

    def test_unanswered_requests_are_bounded(self):
        blocked = threading.Event()

        def handler(line, data, peer):
            blocked.wait(20)
            return b"STORED\r\n"
        with Scripted("a", handler) as server, \
                Cluster([server], pool={"timeouts": {"response": "20s"}}, listener={"limits": {"unanswered": "64k"}}) as proxy:
            with proxy.client() as client, proxy.client() as other:
                client.sock.settimeout(0.5)
                with self.assertRaises(TimeoutError):
                    for _ in range(20_000):
                        client.send(b"set k 0 0 1000\r\n" + b"x" * 1000 + b"\r\n")
                self.assertEqual(other.ask(b"version\r\n")[:7], b"VERSION")
                blocked.set()

    def test_an_idle_client_is_kept_unless_told_otherwise(self):
        with Cluster([Nobody("a")], listener={"timeouts": {"idle": "300ms"}}) as proxy, proxy.client() as client:
            client.ask(b"")
            answer, seconds = elapsed(client.rest)
            self.assertEqual(answer, b"")
            self.assertGreater(seconds, 0.2)
        with Cluster([Nobody("a")]) as proxy, proxy.client() as client:
            client.ask(b"")
            client.sock.settimeout(1.5)
            with self.assertRaises(TimeoutError):
                client.sock.recv(1)

    def test_a_client_that_takes_nothing_is_dropped_after_timeouts_write(self):
        server = self.big_server()
        with Cluster([server], listener={"timeouts": {"write": "300ms"}}) as proxy:
            with proxy.client(receive_buffer=4096) as client:
                client.send(b"get k k k k k k k k k k\r\n")
                wait_until(lambda: proxy.page().sum("clockwise_http_connections", listener="mc", state="active") == 1,
                           "it is there")
                wait_until(lambda: proxy.page().sum("clockwise_http_connections", listener="mc", state="active") == 0, "dropped")

    def test_a_command_that_is_never_finished_is_dropped_after_timeouts_body(self):
        with Cluster([Nobody("a")], listener={"timeouts": {"body": "300ms"}}) as proxy:
            for begun in (b"ge", b"set k 0 0 10\r\nabc", b"set k 0 0 2000000\r\nabc"):
                with proxy.client() as client:
                    client.send(begun)
                    answer = client.rest()
                    self.assertIn(answer, (b"", b"SERVER_ERROR object too large for cache\r\n"))


class Checks(unittest.TestCase):
    HEALTH = {"health": {"interval": "200ms", "timeout": "200ms", "rise": 1, "fall": 2}}

    def test_a_server_that_does_not_tell_its_version_is_down_until_it_does(self):
        with Scripted("a") as server, Scripted("b") as other, \
                Cluster([server, other], pool={**FAST, **self.HEALTH}) as proxy, proxy.client() as client:
            key, = proxy.keys_of("a")
            get = b"get " + key + b"\r\n"
            wait_until(lambda: proxy.page().sum("clockwise_backend_health_checks_total", backend="a", result="pass") >= 2,
                       "it passes")
            self.assertEqual(client.ask(get), b"END\r\n")
            server.VERSION = b"SERVER_ERROR not now\r\n"
            wait_until(lambda: proxy.page().sum("clockwise_backend_up", backend="a") == 0, "it is down")
            asked = server.count(b"get")
            self.assertEqual(client.ask(get), b"END\r\n")
            self.assertEqual(client.ask(b"set " + key + b" 0 0 1\r\nx\r\n"), b"SERVER_ERROR a away\r\n")
            self.assertEqual(server.count(b"get"), asked)
            del server.VERSION
            wait_until(lambda: proxy.page().sum("clockwise_backend_up", backend="a") == 1, "it is back")
            self.assertEqual(client.ask(get), b"END\r\n")
            self.assertEqual(server.count(b"get"), asked + 1)

    def test_the_log_tells_when_a_server_goes_and_comes(self):
        server = Scripted("a")
        with Cluster([server], pool=FAST) as proxy, proxy.client() as client:
            client.ask(b"get k\r\n")
            server.close()
            for _ in range(4):
                client.ask(b"get k\r\n")
            proxy.wait_log(r"pool items: server a is down: 3 requests in a row failed")
            with Scripted("a", port=server.port):
                proxy.wait_log(r"pool items: server a is back: it answers again")


class Counting(unittest.TestCase):
    def test_commands_are_counted_by_what_came_of_them(self):
        answers = {b"get": b"VALUE k 0 1\r\nx\r\nEND\r\n", b"set": b"STORED\r\n", b"add": b"NOT_STORED\r\n",
                   b"delete": b"NOT_FOUND\r\n", b"incr": b"5\r\n", b"touch": b"SERVER_ERROR no\r\n"}
        with Scripted("a", lambda line, data, peer: answers[line.split()[0]]) as server, \
                Cluster([server]) as proxy, proxy.client() as client:
            client.ask(b"get k l\r\nset k 0 0 1\r\nx\r\nadd k 0 0 1\r\nx\r\ndelete k\r\nincr k 1\r\ntouch k 0\r\nbogus\r\n")
            page = proxy.page()
            counted = {(labels["command"], labels["result"]): value for labels, value in
                       page.series("clockwise_memcached_commands_total", pool="items") if value}
            self.assertEqual(counted, {("get", "hit"): 1, ("get", "miss"): 1, ("set", "stored"): 1, ("add", "not_stored"): 1,
                                       ("delete", "miss"): 1, ("incr", "hit"): 1, ("touch", "error"): 1})
            codes = {labels["code"]: value for labels, value in
                     page.series("clockwise_http_requests_total", listener="mc") if value}
            self.assertEqual(codes, {"2xx": 6, "4xx": 1, "5xx": 1})  # with the mn behind them
            self.assertEqual(page.sum("clockwise_http_requests_in_flight", listener="mc"), 0)

    def test_a_server_in_the_api(self):
        with Scripted("a") as server, Cluster([server]) as proxy, proxy.client() as client:
            client.ask(b"get k\r\n")
            self.assertEqual(proxy.page().sum("clockwise_backend_connections", backend="a"), 1)
            server.close()
            for _ in range(4):
                client.ask(b"get k\r\n")
            self.assertIn("3 requests in a row failed", str(proxy.state("a")))


class Pools(unittest.TestCase):
    def test_a_multiget_over_pools_that_routes_name_by_prefix(self):
        def echo(name):
            def handler(line, data, peer):
                if not line.startswith(b"get"):
                    return b"STORED\r\n"
                return b"".join(b"VALUE %s 0 1\r\n%s\r\n" % (key, name) for key in line.split()[1:]) + b"END\r\n"
            return handler
        with Scripted("a", echo(b"a")) as a, Scripted("b", echo(b"b")) as b:
            more = {"sessions": {"protocol": "memcached", "servers": [b.entry()]}}
            routes = [{"match": {"key_prefix": "s:"}, "pool": "sessions"}]
            cluster = Cluster([a], listener={"routes": routes})
            document = cluster.document([a])
            document["pools"].update(more)
            cluster.write(document)
            with cluster as proxy, proxy.client() as client:
                self.assertEqual(client.ask(b"get s:1 x s:2 y s:1\r\n"), b"".join(
                    b"VALUE %s 0 1\r\n%s\r\n" % pair for pair in ((b"s:1", b"b"), (b"x", b"a"), (b"s:2", b"b"),
                                                                  (b"y", b"a"), (b"s:1", b"b"))) + b"END\r\n")
                client.set(b"s:1", b"x")
                client.set(b"x", b"x")
                self.assertEqual((a.count(b"set x"), a.count(b"set"), b.count(b"set s:1"), b.count(b"set")), (1, 1, 1, 1))

    def test_several_connections_to_a_server(self):
        with Scripted("a") as server, Cluster([server], memcached={"server_connections": 4}) as proxy, \
                proxy.client() as client:
            for n in range(20):
                self.assertEqual(client.ask(b"get k%d\r\n" % n), b"END\r\n")
            self.assertEqual(server.connections, 4)


class Stopping(unittest.TestCase):
    def test_what_was_asked_is_answered_before_the_end(self):
        release = threading.Event()

        def handler(line, data, peer):
            release.wait(20)
            return b"END\r\n"
        with Scripted("a", handler) as server, \
                Cluster([server], pool={"timeouts": {"response": "20s"}}, shutdown_timeout="20s") as proxy:
            with proxy.client() as busy, proxy.client() as idle:
                idle.ask(b"")
                busy.send(b"get k\r\n")
                wait_until(lambda: server.count(b"get"), "it is asked")
                proxy.signal(15)
                self.assertEqual(idle.rest(), b"")
                release.set()
                self.assertEqual(busy.rest(), b"END\r\n")
            self.assertEqual(proxy.wait_exit(), 0)


if __name__ == "__main__":
    unittest.main()
