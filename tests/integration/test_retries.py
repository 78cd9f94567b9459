"""Further tries: when there is one, when there must be none, what they may cost, and when it is over."""

import fcntl
import pathlib
import struct
import sys
import termios
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import free_port, wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site  # noqa: E402


def nobody(name):
    """A server where nobody listens."""
    return {"name": name, "address": f"127.0.0.1:{free_port()}"}


class Servers(unittest.TestCase):
    """Servers whose behaviour a test sets, by name: `self.says["a"] = handler`."""

    def site(self, names="ab", *, nobodies="", **options):
        self.says = {}
        self.origins = {}
        for name in names:
            self.origins[name] = self.enterContext(Origin(lambda e, n=name: self.handle(e, n), name=name))
        servers = [*self.origins.values(), *map(nobody, nobodies)]
        self.proxy = self.enterContext(Site(servers, **options))
        self.homes = self.proxy.owners([f"/{n}" for n in range(500)])
        return self.proxy

    def handle(self, exchange, name):
        exchange.read_body()
        self.says.get(name, answer(200))(exchange)

    def home(self, name):
        """A target that `name` owns."""
        return next(target for target, owner in self.homes.items() if owner == name)

    def seen(self, name):
        return [r.method.decode() for r in self.origins[name].requests]

    def fetch(self, name, method="GET", body=b"", **options):
        """A request whose home is the server `name`."""
        return wire.fetch(self.proxy.web, self.home(name), method, body=body, **options)


def answer(status, body=None, **headers):
    def handler(exchange):
        text = exchange.origin.name.encode() if body is None else body
        exchange.reply(status, text, {"X-Server": exchange.origin.name, **headers}, reason="As It Is")
    return handler


def reset(exchange):
    exchange.reset()


RETRY_ON_STATUS = {"retry": {"on": ["502", "503", "504"]}}


class Causes(Servers):
    def test_a_reset_is_tried_again_only_when_it_is_a_cause(self):
        for causes, status in ((["reset"], 200), (["connect"], 502)):
            with self.subTest(causes):
                self.site(pool={"retry": {"on": causes}})
                self.says["a"] = reset
                self.assertEqual(self.fetch("a").status, status)
                self.assertEqual(len(self.seen("b")), 1 if status == 200 else 0)

    def test_a_refused_connection_is_tried_again_only_when_it_is_a_cause(self):
        self.site("b", nobodies="a", pool={"retry": {"on": ["reset"]}})
        self.assertEqual(self.fetch("a").status, 502)
        self.assertEqual(self.seen("b"), [])

    def test_a_timeout_is_tried_again_when_it_is_a_cause(self):
        done = threading.Event()
        self.addCleanup(done.set)
        self.site(pool={"retry": {"on": ["timeout"]}, "timeouts": {"response": "200ms"}})
        self.says["a"] = lambda exchange: done.wait(30)
        self.assertEqual(self.fetch("a").text, "b")
        self.assertEqual(self.fetch("a", "POST", b"once").status, 504)
        self.assertEqual((self.seen("a"), self.seen("b")), (["GET", "POST"], ["GET"]))
        page = self.proxy.page()
        self.assertEqual(page.sum("clockwise_retries_total", reason="timeout"), 1)
        self.assertEqual(page.sum("clockwise_backend_errors_total", backend="a", reason="timeout"), 2)

    def test_a_status_is_tried_again_when_it_is_a_cause(self):
        self.site(pool={"retry": {"on": ["503"]}})
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            with self.subTest(method):
                self.says["a"] = answer(503)
                got = self.fetch("a", method, b"x" if method == "PUT" else b"")
                self.assertEqual((got.status, got.value("x-server")), (200, "b"))
        self.assertEqual(self.seen("a"), self.seen("b"))
        self.says["a"] = answer(502)
        self.assertEqual(self.fetch("a").status, 502, "not among the causes")
        page = self.proxy.page()
        self.assertEqual(page.sum("clockwise_retries_total", reason="status"), 5)
        self.assertEqual(page.sum("clockwise_backend_requests_total", backend="a", code="5xx"), 6)
        self.assertEqual(page.sum("clockwise_backend_errors_total"), 0)
        self.assertEqual(page.sum("clockwise_backend_requests_in_flight"), 0)
        self.assertEqual(page.sum("clockwise_requests_routed_total", reason="failover"), 5)

    def test_an_unsafe_method_is_never_sent_twice(self):
        self.site("abc", pool={"retry": {"attempts": 5, "on": ["connect", "reset", "timeout", "502", "503", "504"]},
                               "timeouts": {"response": "200ms"}})
        done = threading.Event()
        self.addCleanup(done.set)
        faults = {"reset": (reset, 502), "status": (answer(503), 503),
                  "timeout": (lambda exchange: done.wait(30), 504)}
        for name, (fault, status) in faults.items():
            for method in ("POST", "PATCH"):
                with self.subTest(f"{method} {name}"):
                    self.says = dict.fromkeys("abc", fault)
                    before = sum(len(self.seen(n)) for n in "abc")
                    self.assertEqual(self.fetch("a", method, b"once").status, status)
                    self.assertEqual(sum(len(self.seen(n)) for n in "abc") - before, 1)
        page = self.proxy.page()
        self.assertEqual(page.sum("clockwise_retries_total"), 0)
        self.assertEqual(page.sum("clockwise_retries_suppressed_total", reason="unsafe_method"), 6)

    def test_a_body_that_was_passed_on_is_not_sent_again(self):
        self.site(pool={"retry": {"on": ["reset", "503"]}})
        for fault, status in ((reset, 502), (answer(503), 503)):
            self.says["a"] = fault
            self.assertEqual(self.fetch("a", "PUT", b"x" * 1_000_000).status, status)
        self.assertEqual(self.seen("b"), [])
        self.assertEqual(self.proxy.page().sum("clockwise_retries_suppressed_total", reason="body_sent"), 2)


class OwnAnswer(Servers):
    """When nobody has a better answer, the client gets the one that a server gave."""

    def check(self, got, name, status=503):
        self.assertEqual((got.status, got.text, got.value("x-server")), (status, f"busy {name}", name))
        self.assertEqual(got.value("retry-after"), "77")
        self.assertIsNone(got.value("proxy-status"))
        self.assertEqual(self.proxy.page().sum("clockwise_backend_requests_in_flight"), 0)
        # The client has its answer before the connection is given back.
        wait_until(lambda: self.proxy.page().sum("clockwise_backend_connections", state="active") == 0,
                   "all connections to be given back")

    @staticmethod
    def busy(name, status=503):
        return answer(status, f"busy {name}".encode(), **{"Retry-After": "77"})

    def test_when_all_servers_say_so(self):
        self.site("abc", pool=RETRY_ON_STATUS)
        self.says = {name: self.busy(name) for name in "abc"}
        with wire.Connection(self.proxy.web) as connection:
            for number in range(1, 4):
                got = connection.request("GET", self.home("a"))
                self.check(got, got.value("x-server"))
                self.assertEqual([len(self.seen(n)) for n in "abc"], [number] * 3)
        page = self.proxy.page()
        self.assertEqual(page.sum("clockwise_retries_suppressed_total", reason="no_candidate"), 3)
        self.assertEqual(page.sum("clockwise_backend_requests_total", code="5xx"), 9)
        self.assertEqual(page.sum("clockwise_http_requests_total", code="5xx"), 3)
        self.assertEqual(page.sum("clockwise_backend_connections_opened_total"), 3, "whole answers keep them")

    def test_when_the_tries_are_used_up(self):
        self.site("abc", pool={"retry": {"attempts": 1, "on": ["503"]}})
        self.says = {name: self.busy(name) for name in "abc"}
        got = self.fetch("a")
        self.check(got, got.value("x-server"))
        self.assertEqual(sum(len(self.seen(n)) for n in "abc"), 2)

    def test_when_there_is_no_other_server(self):
        self.site("a", pool=RETRY_ON_STATUS)
        self.says["a"] = self.busy("a", 504)
        self.check(self.fetch("a"), "a", 504)
        self.assertEqual(self.seen("a"), ["GET"])

    def test_when_the_budget_is_gone(self):
        self.site(pool={"retry": {"on": ["503"], "budget": "0%"}})
        self.says["a"] = self.busy("a")
        self.check(self.fetch("a"), "a")
        self.assertEqual(self.seen("b"), [])
        self.assertEqual(self.proxy.page().sum("clockwise_retries_suppressed_total", reason="budget"), 1)

    def test_when_the_others_cannot_be_reached(self):
        self.site("a", nobodies="bc", pool={"retry": {"attempts": 5, "on": ["connect", "503"]}})
        self.says["a"] = self.busy("a")
        for _ in range(3):
            self.check(self.fetch("a"), "a")
        self.assertEqual(len(self.seen("a")), 3)

    def test_when_the_others_reset(self):
        self.site(pool={"retry": {"on": ["connect", "reset", "503"]}})
        self.says = {"a": self.busy("a"), "b": reset}
        self.check(self.fetch("a"), "a")

    def test_when_the_others_are_stuck_until_the_time_is_over(self):
        done = threading.Event()
        self.addCleanup(done.set)
        self.site(pool={"retry": {"on": ["503"]}, "timeouts": {"total": "400ms"}})
        self.says = {"a": self.busy("a"), "b": lambda exchange: done.wait(30)}
        self.check(self.fetch("a"), "a")

    def test_an_answer_larger_than_a_buffer_is_passed_on_whole(self):
        body = bytes(range(256)) * 4096
        self.site("a", nobodies="b", pool={"retry": {"on": ["connect", "503"]}})
        for handler in (answer(503, body), self.chunked(body)):
            self.says["a"] = handler
            got = self.fetch("a")
            self.assertEqual((got.status, got.cut, bytes(got.body) == body), (503, False, True))

    def test_an_answer_that_is_not_passed_on_ends_its_connection_unless_it_is_whole(self):
        body = b"x" * 1_000_000
        self.site(pool=RETRY_ON_STATUS)
        for handler in (answer(503, body), self.chunked(body), answer(503, b"small")):
            self.says["a"] = handler
            for _ in range(2):
                self.assertEqual(self.fetch("a").text, "b")
        self.assertTrue(self.origins["a"].wait(lambda: self.origins["a"].open_connections == 1))
        self.assertEqual(self.origins["a"].connections, 5)
        self.assertEqual(self.proxy.page().sum("clockwise_backend_connections", state="active"), 0)

    def test_a_client_that_leaves_between_two_tries_leaves_nothing_behind(self):
        self.site(pool=RETRY_ON_STATUS)
        asked = threading.Event()
        self.says = {"a": self.busy("a"), "b": lambda exchange: (asked.set(), exchange.sock.recv(1))}
        connection = wire.Connection(self.proxy.web)
        connection.send(wire.request_text("GET", self.home("a")))
        self.assertTrue(asked.wait(10))
        connection.abort()
        self.proxy.wait_metric(1, "clockwise_http_requests_total", code="aborted")
        page = self.proxy.page()
        self.assertEqual(page.sum("clockwise_backend_requests_in_flight"), 0)
        self.assertEqual(page.sum("clockwise_backend_connections", state="active"), 0)

    @staticmethod
    def chunked(body):
        def handler(exchange):
            exchange.send(b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body))
            exchange.send(body + b"\r\n0\r\n\r\n")
        return handler


class ResetBehindTheAnswer(Servers):
    """A server that resets its connection when all of its answer has arrived: the answer counts."""

    def test_the_whole_answer_is_delivered(self):
        self.site("a", pool={"retry": {"attempts": 0}})
        for size in (5, 100_000, 1_000_000):
            for chunked in (False, True):
                for reads_first in (False, True):
                    with self.subTest(size=size, chunked=chunked, reads_first=reads_first):
                        self.body, self.chunked, self.reads_first = b"x" * size, chunked, reads_first
                        for _ in range(10):
                            got = self.fetch("a", "POST", b"once")
                            self.assertEqual((got.status, got.cut, len(got.body)), (200, False, size))

    def handle(self, exchange, name):
        if self.reads_first:
            exchange.read_body()
        framing, body = b"Content-Length: %d" % len(self.body), self.body
        if self.chunked:
            framing, body = b"Transfer-Encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        exchange.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + framing + b"\r\n\r\n" + body)
        while struct.unpack("i", fcntl.ioctl(exchange.sock, termios.TIOCOUTQ, b"\0" * 4))[0] > 0:
            time.sleep(0.001)
        exchange.reset()


class Budgets(Servers):
    REQUESTS = 200

    def load(self, name="a"):
        started = time.monotonic()
        with wire.Connection(self.proxy.web) as connection:
            statuses = [connection.request("GET", self.home(name)).status for _ in range(self.REQUESTS)]
        return statuses, time.monotonic() - started

    def test_a_fault_of_all_servers_does_not_multiply_their_load(self):
        for fault in (reset, answer(503)):
            with self.subTest(fault):
                self.site("abcd", pool={"retry": {"attempts": 3, "on": ["reset", "503"], "budget": "20%"}})
                self.says = dict.fromkeys("abcd", fault)
                statuses, seconds = self.load()
                self.assertNotIn(200, statuses)
                attempts = sum(len(self.seen(n)) for n in "abcd")
                self.assertLessEqual(attempts, 1.2 * self.REQUESTS + 10 + seconds + 1)
                self.assertGreaterEqual(attempts, 1.2 * self.REQUESTS - 1, "the share is used")
                page = self.proxy.page()
                self.assertGreater(page.sum("clockwise_retries_suppressed_total", reason="budget"), 100)
                self.assertEqual(page.sum("clockwise_retries_total"), attempts - self.REQUESTS)

    def test_tries_that_sent_nothing_are_free(self):
        self.site("b", nobodies="a", pool={"retry": {"budget": "0%"}})
        statuses, _ = self.load()
        self.assertEqual(set(statuses), {200})
        page = self.proxy.page()
        self.assertEqual(page.sum("clockwise_retries_total", reason="connect"), self.REQUESTS)
        self.assertEqual(page.sum("clockwise_retries_suppressed_total"), 0)

    def test_a_reload_does_not_fill_it_again(self):
        self.site("ab", pool={"retry": {"on": ["503"], "budget": "1%"}})
        self.says["a"] = answer(503)
        started = time.monotonic()
        for number in range(5):
            with wire.Connection(self.proxy.web) as connection:
                for _ in range(20):
                    connection.request("GET", self.home("a"))
            self.proxy.document["pools"]["pages"]["timeouts"] = {"connect": f"{100 + number}ms"}
            self.assertEqual(self.proxy.reload(self.proxy.document).status, 200)
        self.assertLessEqual(len(self.seen("b")), 10 + 1 + time.monotonic() - started + 1)


class TotalTime(Servers):
    def test_a_stuck_server_does_not_hold_a_client_for_longer(self):
        done = threading.Event()
        self.addCleanup(done.set)

        def interim(exchange):
            while not done.wait(0.05):
                exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
                if len(self.origins["a"].requests) > 100:
                    return

        def drip(exchange):
            for octet in b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1000:
                exchange.send(bytes([octet]))
                if done.wait(0.05):
                    return

        self.site("ab", pool={"retry": {"attempts": 5, "on": ["timeout"]},
                              "timeouts": {"response": "30s", "total": "400ms"}})
        for name, fault in {"silent": lambda exchange: done.wait(30), "dripping": drip, "interim": interim}.items():
            with self.subTest(name):
                self.says = dict.fromkeys("ab", fault)
                started = time.monotonic()
                with wire.Connection(self.proxy.web) as connection:
                    got = connection.request("GET", self.home("a"))
                    while got.status < 200:
                        got = connection.response()
                self.assertEqual(got.status, 504)
                self.assertIn("http_response_timeout", got.value("proxy-status"))
                self.assertGreater(time.monotonic() - started, 0.35)
                self.assertLess(time.monotonic() - started, 5)
        self.assertEqual(self.proxy.page().sum("clockwise_backend_requests_in_flight"), 0)

    def test_all_tries_together_have_one(self):
        done = threading.Event()
        self.addCleanup(done.set)
        self.site("abcd", pool={"retry": {"attempts": 100, "on": ["timeout"]},
                                "timeouts": {"response": "250ms", "total": "700ms"}})
        self.says = dict.fromkeys("abcd", lambda exchange: done.wait(30))
        started = time.monotonic()
        self.assertEqual(self.fetch("a").status, 504)
        self.assertGreater(time.monotonic() - started, 0.65)
        self.assertIn(sum(len(self.seen(n)) for n in "abcd"), (2, 3))

    def test_it_does_not_run_while_the_request_is_on_its_way(self):
        self.site("a", pool={"timeouts": {"total": "300ms"}})
        with wire.Connection(self.proxy.web) as connection:
            connection.send(f"PUT {self.home('a')} HTTP/1.1\r\nHost: h\r\nContent-Length: 20\r\n\r\n".encode())
            for _ in range(20):
                connection.send(b"x")
                time.sleep(0.05)
            self.assertEqual(connection.response().status, 200)

    def test_it_ends_with_the_head_of_the_answer(self):
        def slow_body(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n")
            for _ in range(20):
                exchange.send(b"x")
                time.sleep(0.05)

        self.site("a", pool={"timeouts": {"total": "300ms"}})
        self.says["a"] = slow_body
        got = self.fetch("a")
        self.assertEqual((got.status, got.text, got.cut), (200, "x" * 20, False))


if __name__ == "__main__":
    unittest.main()
