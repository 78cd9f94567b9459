"""A slow server has its request asked elsewhere too: the first answer counts, the other is called off."""

import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site  # noqa: E402


class Servers(unittest.TestCase):
    """Servers whose behaviour a test sets, by name: `self.says["a"] = handler`."""

    def site(self, names="ab", after="50ms", budget="100%", **pool):
        self.says, self.origins = {}, {}
        self.done = threading.Event()
        self.addCleanup(self.done.set)
        for name in names:
            self.origins[name] = self.enterContext(Origin(lambda e, n=name: self.handle(e, n), name=name))
        hedge = {"after": after, "budget": budget}
        self.proxy = self.enterContext(Site([*self.origins.values()], pool={"hedge": hedge, **pool}))
        self.homes = self.proxy.owners([f"/{n}" for n in range(500)])

    def handle(self, exchange, name):
        exchange.read_body()
        self.says.get(name, self.quick)(exchange)

    def quick(self, exchange, status=200):
        exchange.reply(status, exchange.origin.name.encode())

    def stuck(self, exchange):
        """Never answers, and notices when it is called off."""
        exchange.sock.settimeout(20)
        exchange.origin.called_off = exchange.sock.recv(1) == b""
        exchange.origin.notify()
        exchange.reset()

    def slow(self, seconds):
        def handler(exchange):
            self.done.wait(seconds)
            self.quick(exchange)
        return handler

    def home(self, name):
        return next(target for target, owner in self.homes.items() if owner == name)

    def fetch(self, name, method="GET", body=b""):
        return wire.fetch(self.proxy.web, self.home(name), method, body=body)

    def seen(self, name):
        return len(self.origins[name].requests)

    def check_hedges(self, **results):
        # A client may have its answer a moment before the connection is given back.
        page = wait_until(self.settled, "no attempt is left")
        for result in ("won", "lost", "cancelled"):
            self.assertEqual(page.sum("clockwise_hedges_total", result=result), results.get(result, 0), result)
        return page

    def settled(self):
        page = self.proxy.page()
        left = page.sum("clockwise_backend_requests_in_flight") + page.sum("clockwise_backend_connections", state="active")
        return page if left == 0 else None


class Race(Servers):
    def test_the_second_answers_first(self):
        self.site()
        self.says["a"] = self.stuck
        for method in ("GET", "HEAD"):
            got = self.fetch("a", method)
            self.assertEqual((got.status, got.text), (200, "b" if method == "GET" else ""))
            self.assertTrue(self.origins["a"].wait(lambda: getattr(self.origins["a"], "called_off", False)))
        self.assertEqual((self.seen("a"), self.seen("b")), (2, 2))
        page = self.check_hedges(won=2)
        self.assertEqual(page.sum("clockwise_backend_errors_total"), 0, "slow is no error")
        self.assertEqual(page.sum("clockwise_retries_total"), 0)
        self.assertEqual(page.sum("clockwise_http_requests_total", code="2xx"), 2)
        self.assertEqual(page.sum("clockwise_requests_routed_total", reason="failover"), 2)

    def test_the_first_answers_first(self):
        self.site()
        self.says = {"a": self.slow(0.3), "b": self.stuck}
        self.assertEqual(self.fetch("a").text, "a")
        self.assertTrue(self.origins["b"].wait(lambda: getattr(self.origins["b"], "called_off", False)))
        page = self.check_hedges(lost=1)
        self.assertEqual(page.sum("clockwise_requests_routed_total", reason="home"), 1)

    def test_who_is_quick_is_not_hedged(self):
        self.site(after="5s")
        with wire.Connection(self.proxy.web) as connection:
            for _ in range(50):
                self.assertEqual(connection.request("GET", self.home("a")).text, "a")
        self.assertEqual(self.seen("b"), 0)
        self.check_hedges()

    def test_both_are_stuck(self):
        self.site(timeouts={"response": "300ms"})
        self.says = {"a": self.stuck, "b": self.stuck}
        self.assertEqual(self.fetch("a").status, 504)
        self.assertEqual((self.seen("a"), self.seen("b")), (1, 1))
        self.check_hedges(won=1)

    def test_the_time_for_all_ends_both(self):
        self.site(timeouts={"total": "300ms"})
        self.says = {"a": self.stuck, "b": self.stuck}
        started = time.monotonic()
        self.assertEqual(self.fetch("a").status, 504)
        self.assertLess(time.monotonic() - started, 5)
        self.check_hedges(cancelled=1)

    def test_a_client_that_leaves_ends_both(self):
        self.site()
        self.says = {"a": self.stuck, "b": self.stuck}
        connection = wire.Connection(self.proxy.web)
        connection.send(wire.request_text("GET", self.home("a")))
        self.assertTrue(self.origins["b"].wait(lambda: self.seen("b") == 1))
        connection.abort()
        for origin in self.origins.values():
            self.assertTrue(origin.wait(lambda o=origin: getattr(o, "called_off", False)))
        self.proxy.wait_metric(1, "clockwise_http_requests_total", code="aborted")
        self.check_hedges(cancelled=1)

    def test_answers_of_any_size_and_framing_win(self):
        body = bytes(range(256)) * 8192

        def big(exchange):
            exchange.reply(200, body)

        def chunked(exchange):
            exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body))
            exchange.send(body + b"\r\n0\r\n\r\n")

        def dripping(exchange):
            for octet in b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc":
                exchange.send(bytes([octet]))

        self.site()
        self.says["a"] = self.stuck
        for handler, wanted in ((big, body), (chunked, body), (dripping, b"abc")):
            self.says["b"] = handler
            got = self.fetch("a")
            self.assertEqual((got.status, got.cut, bytes(got.body) == wanted), (200, False, True))
        self.check_hedges(won=3)


class Rules(Servers):
    def test_only_safe_methods_without_a_body(self):
        self.site()
        self.says["a"] = self.slow(0.3)
        for method, body in (("POST", b"x"), ("PUT", b"x"), ("DELETE", b""), ("OPTIONS", b""), ("GET", b"x")):
            self.assertEqual(self.fetch("a", method, body).text, "a")
        self.assertEqual(self.seen("b"), 0)
        self.check_hedges()

    def test_one_for_each_request(self):
        self.site("abc", timeouts={"response": "400ms"})
        self.says = dict.fromkeys("abc", self.stuck)
        self.assertEqual(self.fetch("a").status, 504)
        self.assertEqual(sum(self.seen(n) for n in "abc"), 2)

    def test_a_share_of_the_requests_at_most(self):
        self.site(after="10ms", budget="10%")
        self.says["a"] = self.slow(0.05)
        with wire.Connection(self.proxy.web) as connection:
            for _ in range(60):
                self.assertEqual(connection.request("GET", self.home("a")).status, 200)
        self.assertLessEqual(self.seen("b"), 0.1 * 60 + 1)
        self.assertGreaterEqual(self.seen("b"), 0.1 * 60 - 1, "the share is used")

    def test_nobody_else_to_ask(self):
        self.site("a")
        self.says["a"] = self.slow(0.2)
        self.assertEqual(self.fetch("a").text, "a")
        self.check_hedges()

    def test_a_quantile_is_learned(self):
        self.site(after="p90")
        with wire.Connection(self.proxy.web) as connection:
            for number in range(100):
                self.says["a"] = self.slow(0.1 if number % 20 == 0 and number > 40 else 0.001)
                self.assertEqual(connection.request("GET", self.home("a")).status, 200)
        # Once it is known what is usual, a request that takes 100 times as long is late.
        before = self.seen("b")
        self.says["a"] = self.stuck
        self.assertEqual(self.fetch("a").text, "b")
        self.assertEqual(self.seen("b"), before + 1)

    def test_a_full_server_is_not_waited_for(self):
        self.site(connections={"max": 1})
        self.says["b"] = self.stuck
        with wire.Connection(self.proxy.web) as other:
            other.send(wire.request_text("POST", self.home("b"), body=b"x"))
            self.assertTrue(self.origins["b"].wait(lambda: self.seen("b") == 1))
            self.says["a"] = self.slow(0.3)
            self.assertEqual(self.fetch("a").text, "a")
            self.assertEqual(self.seen("b"), 1)
            other.abort()


class Failures(Servers):
    """The second attempt stands in when the first one fails."""

    def fails(self, seconds, how):
        def handler(exchange):
            self.done.wait(seconds)
            how(exchange)
        return handler

    def test_of_the_first(self):
        self.site(retry={"on": ["503"]})
        self.says["b"] = self.slow(0.5)
        for how in (lambda e: e.reset(), lambda e: e.send(b"garbage\r\n\r\n"), lambda e: self.quick(e, 503)):
            self.says["a"] = self.fails(0.15, how)
            self.assertEqual(self.fetch("a").text, "b")
        self.assertEqual((self.seen("a"), self.seen("b")), (3, 3), "no retry on top of it")
        page = self.check_hedges(won=3)
        self.assertEqual(page.sum("clockwise_retries_total"), 0)

    def test_of_the_second(self):
        self.site(retry={"on": ["503"]})
        self.says["a"] = self.slow(0.3)
        for how in (lambda e: e.reset(), lambda e: e.send(b"garbage\r\n\r\n"), lambda e: self.quick(e, 503)):
            self.says["b"] = how
            self.assertEqual(self.fetch("a").text, "a")
        self.check_hedges(cancelled=3)

    def test_an_error_of_the_second_does_not_end_the_first(self):
        self.site(retry={"on": []})
        self.says = {"a": self.slow(0.3)}
        for status in (500, 503):
            self.says["b"] = lambda e, s=status: self.quick(e, s)
            got = self.fetch("a")
            self.assertEqual((got.status, got.text), (200, "a"))
        page = self.check_hedges(cancelled=2)
        self.assertEqual(page.sum("clockwise_backend_requests_total", backend="b", code="5xx"), 2)

    def test_an_error_of_the_first_is_its_answer(self):
        self.site(retry={"on": []})
        self.says = {"a": self.fails(0.15, lambda e: self.quick(e, 500)), "b": self.stuck}
        self.assertEqual(self.fetch("a").status, 500)
        self.assertTrue(self.origins["b"].wait(lambda: getattr(self.origins["b"], "called_off", False)))
        self.check_hedges(lost=1)

    def test_of_both(self):
        self.site()
        self.says = {"a": self.fails(0.15, lambda e: e.reset()), "b": self.fails(0.3, lambda e: e.reset())}
        self.assertEqual(self.fetch("a").status, 502)
        self.check_hedges(won=1)

    def test_an_answer_kept_aside_is_passed_on(self):
        self.site(retry={"on": ["503"]})
        self.says = {"a": self.fails(0.15, lambda e: self.quick(e, 503)), "b": self.fails(0.4, lambda e: e.reset())}
        got = self.fetch("a")
        self.assertEqual((got.status, got.text), (503, "a"))
        self.check_hedges(won=1)

    def test_a_reload_under_way_harms_nobody(self):
        self.site(after="20ms")
        self.says["a"] = self.slow(0.1)
        stop = threading.Event()
        statuses = []

        def ask():
            while not stop.is_set():
                statuses.append(self.fetch("a").status)

        thread = threading.Thread(target=ask)
        thread.start()
        hedge = self.proxy.document["pools"]["pages"].pop("hedge")
        for number in range(10):
            if number % 2:
                self.proxy.document["pools"]["pages"]["hedge"] = hedge
            else:
                self.proxy.document["pools"]["pages"].pop("hedge", None)
            self.assertEqual(self.proxy.reload(self.proxy.document).status, 200)
            seen = len(statuses)
            self.assertTrue(self.origins["a"].wait(lambda s=seen: len(statuses) > s))
        stop.set()
        thread.join(20)
        self.assertEqual(set(statuses), {200})


if __name__ == "__main__":
    unittest.main()
