"""Who must make the next move: requests and answers that overlap, come too early, or stop half-way.

No exchange may wait for ever, blame the wrong side, or take octets for what they are not.
"""

import pathlib
import select
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import Proxy, Upstream, configuration, wait_until  # noqa: E402
from support.origin import Origin, echo  # noqa: E402
from support.scenario import Site  # noqa: E402

MIB = 1 << 20


class Silent:
    """A server that takes no connection and refuses none: its backlog is full."""

    def __init__(self, name):
        self.name = name
        self.full = socket.socket()
        self.full.bind(("127.0.0.1", 0))
        self.full.listen(0)
        self.waiting = [self.hold() for _ in range(3)]

    def hold(self):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(self.full.getsockname())
        return sock

    def entry(self):
        return {"name": self.name, "address": "127.0.0.1:%d" % self.full.getsockname()[1]}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sock in (self.full, *self.waiting):
            sock.close()


def uri_owned_by(proxy, name):
    return next(uri for uri, owner in proxy.owners([f"/{n}" for n in range(500)]).items() if owner == name)


def says_nothing(connection, seconds):
    """True when not an octet comes for so long; another thread may send meanwhile."""
    return not select.select([connection.sock], [], [], seconds)[0]


class Base(unittest.TestCase):
    def site(self, servers, **options):
        for server in servers:
            self.enterContext(server)
        proxy = self.enterContext(Site(servers, **options))
        self.addCleanup(self.assert_nothing_is_left, proxy)
        return proxy

    def assert_nothing_is_left(self, proxy):
        for name in ("clockwise_http_requests_in_flight", "clockwise_backend_requests_in_flight"):
            wait_until(lambda name=name: proxy.page().sum(name) == 0, f"{name} at 0")


class WhileConnecting(Base):
    """The first server is silent, so a request waits for a connection as long as the test wants."""

    def two_servers(self, handler=echo, connect="500ms"):
        self.silent, self.origin = Silent("a"), Origin(handler, name="b")
        proxy = self.site([self.silent, self.origin], pool={"timeouts": {"connect": connect}})
        return proxy, uri_owned_by(proxy, "a"), uri_owned_by(proxy, "b")

    def test_a_request_that_moves_to_a_warm_connection_is_still_itself(self):
        proxy, to_silent, to_origin = self.two_servers()
        with wire.Connection(proxy.web) as waiting, wire.Connection(proxy.web) as other:
            waiting.send(wire.request_text("PUT", to_silent, {"X-Mine": "1"}, b"my body"))
            wait_until(lambda: proxy.page().sum("clockwise_backend_requests_in_flight", backend="a") == 1,
                       "the first request to wait for its connection")
            # Others are served meanwhile and leave a connection behind.
            other.request("DELETE", to_origin, {"X-Other": "2" * 40, "Authorization": "theirs"})
            answer = waiting.response()
        self.assertEqual(answer.status, 200)
        moved = self.origin.requests[-1]
        self.assertEqual((moved.method, moved.target, bytes(moved.body), moved.faults),
                         (b"PUT", to_silent.encode(), b"my body", []))
        self.assertEqual((moved.values("x-mine"), moved.values("authorization")), ([b"1"], []))

    def slow_first(self):
        self.go = threading.Event()
        self.addCleanup(self.go.set)

        def handler(exchange):
            if exchange.request.method == b"GET":
                self.go.wait(20)
            echo(exchange)
        return self.two_servers(handler)

    def pipelined(self, connection, proxy, to_silent, to_origin, head, body):
        """A slow GET with a POST right behind it; gives back once the POST waits for a connection."""
        connection.send(wire.request_text("GET", to_origin) + f"POST {to_silent} HTTP/1.1\r\nHost: h\r\n".encode()
                        + head + body)
        self.origin.wait(lambda: self.origin.requests)
        # By then the proxy has begun to look whether the client is still there.
        self.assertTrue(says_nothing(connection, 0.3))
        self.go.set()
        self.assertEqual(connection.response().status, 200)

    def test_the_rest_of_a_pipelined_body_waits_for_the_connection(self):
        for head, first, rest in ((b"Content-Length: 12\r\n\r\n", b"first ", b"second"),
                                  (b"Transfer-Encoding: chunked\r\n\r\n", b"6\r\nfirst \r\n", b"6\r\nsecond\r\n0\r\n\r\n")):
            with self.subTest(head=head):
                proxy, to_silent, to_origin = self.slow_first()
                with wire.Connection(proxy.web) as connection:
                    self.pipelined(connection, proxy, to_silent, to_origin, head, first)
                    connection.send(rest)
                    self.assertEqual(connection.response("POST").status, 200)
                seen = self.origin.requests[-1]
                self.assertEqual((seen.method, bytes(seen.body), seen.faults), (b"POST", b"first second", []))

    def test_a_pipelined_request_is_answered_after_a_half_close(self):
        proxy, to_silent, to_origin = self.slow_first()
        with wire.Connection(proxy.web) as connection:
            self.pipelined(connection, proxy, to_silent, to_origin, b"Content-Length: 4\r\n\r\n", b"body")
            connection.sock.shutdown(socket.SHUT_WR)
            self.assertEqual(connection.response("POST").status, 200)
            self.assertTrue(connection.closed())
        self.assertEqual(bytes(self.origin.requests[-1].body), b"body")

    def test_what_was_pipelined_before_a_half_close_is_answered(self):
        proxy, _, to_origin = self.slow_first()
        with wire.Connection(proxy.web) as connection:
            connection.send(wire.request_text("GET", to_origin) * 2)
            connection.sock.shutdown(socket.SHUT_WR)
            self.assertTrue(says_nothing(connection, 0.3))
            self.go.set()
            self.assertEqual([connection.response().status for _ in range(2)], [200, 200])
            self.assertTrue(connection.closed())


class Deadlines(Base):
    def test_interim_answers_that_fill_the_socket_do_not_stop_the_clock(self):
        done = threading.Event()
        self.addCleanup(done.set)
        interim = b"HTTP/1.1 103 Early Hints\r\nX-Fill: " + b"x" * (MIB - 1000) + b"\r\n\r\n"

        def handler(exchange):
            for _ in range(12):
                exchange.send(interim)
            done.wait(30)

        proxy = self.site([Origin(handler, name="a")], pool={"timeouts": {"response": "1s"}},
                          listener={"limits": {"header_size": "1m"}})
        with wire.Connection(proxy.web, receive_buffer=4096) as connection:
            connection.send(wire.request_text("GET", "/"))
            self.assertEqual(connection.response().status, 504)

    def test_an_answer_that_nobody_takes_is_dropped_though_its_request_went_on(self):
        sent, gone = [0], threading.Event()

        def handler(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")

            def take():
                for _ in exchange.pieces():
                    pass
            threading.Thread(target=take, daemon=True).start()
            try:
                while True:
                    exchange.send(b"x" * 65536)
                    sent[0] += 65536
            except OSError:
                gone.set()
                raise

        proxy = self.site([Origin(handler, name="a")], listener={"timeouts": {"write": "2s", "body": "60s"}})
        with wire.Connection(proxy.web, receive_buffer=4096) as connection:
            connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\nfirst half")
            last = [-1, time.monotonic()]

            def stalled():
                if sent[0] != last[0]:
                    last[:] = sent[0], time.monotonic()
                return sent[0] > 0 and time.monotonic() - last[1] > 0.3
            wait_until(stalled, "the answer to fill every buffer")
            connection.send(b"other half")
            self.assertTrue(gone.wait(20), "the transfer was never given up")

    def test_a_server_that_takes_its_time_is_not_the_clients_fault(self):
        go = threading.Event()

        def handler(exchange):
            go.wait(20)
            exchange.reply(200, str(len(exchange.read_body())).encode())

        origin = Origin(handler, name="a", receive_buffer=65536)
        proxy = self.site([origin], listener={"timeouts": {"body": "1s"}}, pool={"timeouts": {"response": "20s"}})
        for framing in ("length", "chunked"):
            go.clear()
            with self.subTest(framing=framing), wire.Connection(proxy.web) as connection:
                pusher = threading.Thread(target=self.push, args=(connection, framing, 32 * MIB), daemon=True)
                pusher.start()
                self.assertTrue(says_nothing(connection, 2), "the client is blamed")
                go.set()
                self.assertEqual(connection.response().text, str(32 * MIB))
                pusher.join(20)

    @staticmethod
    def push(connection, framing, size):
        piece = b"x" * 65536
        if framing == "length":
            connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size)
        else:
            connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            piece = b"10000\r\n" + piece + b"\r\n"
        for _ in range(size // 65536):
            connection.send(piece)
        if framing == "chunked":
            connection.send(b"0\r\n\r\n")

    def test_a_client_that_takes_its_time_is_not_the_servers_fault(self):
        taken = threading.Event()

        def handler(exchange):
            taken.wait(20)  # the proxy finds the socket full for a while
            exchange.reply(200, str(len(exchange.read_body())).encode())

        origin = Origin(handler, name="a", receive_buffer=65536)
        proxy = self.site([origin], listener={"timeouts": {"body": "20s"}}, pool={"timeouts": {"response": "1s"}})
        with wire.Connection(proxy.web) as connection:
            size = 16 * MIB
            connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            pusher = threading.Thread(target=connection.send, args=((b"10000\r\n" + b"x" * 65536 + b"\r\n") * (size // 65536),))
            pusher.start()
            self.assertTrue(says_nothing(connection, 0.3))
            taken.set()
            pusher.join(20)
            self.assertTrue(says_nothing(connection, 1.5), "the server is blamed")
            connection.send(b"0\r\n\r\n")
            self.assertEqual(connection.response().text, str(size))

    def test_blank_lines_do_not_keep_a_connection(self):
        proxy = self.site([Origin(name="a")], listener={"timeouts": {"idle": "500ms", "header": "500ms"}})
        for piece in (b"\r\n", b"\r"):
            with self.subTest(piece=piece), wire.Connection(proxy.web) as connection:
                begun = time.monotonic()
                with self.assertRaises(OSError):
                    while time.monotonic() - begun < 10:
                        connection.send(piece)
                        if not says_nothing(connection, 0.1):
                            raise OSError("closed")
                self.assertLess(time.monotonic() - begun, 5)


class EarlyAnswers(Base):
    def test_a_refusal_reaches_a_client_that_sends_all_before_it_reads(self):
        proxy = self.site([Origin(name="a")], listener={"limits": {"body_size": "1m"}})
        with wire.Connection(proxy.web) as connection:
            connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % (64 * MIB))
            for _ in range(64):
                connection.send(b"x" * MIB)
            self.assertEqual(connection.response().status, 413)
            self.assertTrue(connection.closed())

    def test_octets_behind_the_last_request_do_not_destroy_its_answer(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def handler(exchange):
            go.wait(20)
            exchange.reply(200, b"x" * 300_000)

        proxy = self.site([Origin(handler, name="a")])
        for _ in range(5):
            go.clear()
            with wire.Connection(proxy.web, receive_buffer=4096) as connection:
                connection.send(wire.request_text("GET", "/", {"Connection": "close"}))
                self.assertTrue(says_nothing(connection, 0.2))
                connection.send(b"GET /more HTTP/1.1\r\n")
                connection.send(b"Host: h\r\n\r\n")
                go.set()
                answer = connection.response()
                self.assertEqual((len(answer.body), answer.complete), (300_000, True))
                self.assertTrue(connection.closed())
                self.assertFalse(connection.reader.reset)


class Drips(Base):
    def test_octets_of_a_big_plain_body_are_not_held_back(self):
        # In lock step: the next octet is sent once the one before has arrived.
        size, steps = 300_000, 20
        arrived = threading.Semaphore(0)

        def handler(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            exchange.send(b"x" * (size - steps))
            for _ in range(steps):
                arrived.acquire(timeout=20)
                exchange.send(b"y")

        proxy = self.site([Origin(handler, name="a")])
        with wire.Connection(proxy.web) as connection:
            connection.send(wire.request_text("GET", "/"))
            head, got = connection.head(), 0
            begun = None
            for piece in wire.body_pieces(head, connection.reader):
                got += len(piece)
                if got >= size - steps:
                    begun = begun or time.monotonic()
                    arrived.release()
        self.assertEqual(got, size)
        self.assertLess(time.monotonic() - begun, steps * 0.1, "each step waited for a timer of the kernel")


class StaleConnections(Base):
    def test_a_body_that_is_not_kept_is_not_sent_on_a_connection_that_ended(self):
        def handler(exchange):
            body = exchange.read_body()
            if exchange.request.method == b"GET":  # the answer and the end in one segment
                exchange.sock.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", socket.MSG_MORE)
                exchange.close()
            exchange.reply(200, str(len(body)).encode())

        proxy = self.site([Origin(handler, name="a")], pool={"retry": {"attempts": 0}})
        both = wire.request_text("GET", "/") + wire.request_text("PUT", "/", body=b"x" * 200_000)
        with wire.Connection(proxy.web) as connection:
            for _ in range(5):
                connection.send(both)
                self.assertEqual(connection.response().status, 200)
                answer = connection.response("PUT")
                self.assertEqual((answer.status, answer.text), (200, "200000"))


class LeavingListeners(unittest.TestCase):
    def test_a_half_read_head_outlives_its_listener_and_two_reloads(self):
        with Upstream("a") as a, Upstream("b") as b:
            def config(listeners, servers):
                document = configuration(servers, pool={"max_remap": "100%", "max_shrink": "100%"})
                document["listeners"] = [{"name": n, "address": "127.0.0.1:0", "pool": "pages"} for n in listeners]
                return document
            with Proxy(config(["web", "other"], [a])) as proxy:
                with wire.Connection(("127.0.0.1", proxy.port("other"))) as connection:
                    connection.send(b"GET / HTTP/1.1\r\nHo")
                    self.assertTrue(says_nothing(connection, 0.1))
                    for servers in ([a], [b], [a, b], [b]):
                        self.assertEqual(proxy.reload(config(["web"], servers)).status, 200)
                    connection.send(b"st: h\r\n\r\n")
                    answer = connection.response()
                    self.assertEqual((answer.status, answer.text), (200, "b"))
                    self.assertTrue(connection.closed())


if __name__ == "__main__":
    unittest.main()
