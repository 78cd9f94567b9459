"""connections.max: no server ever has more, and who has to wait is served in turn, told in time, or let go."""

import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import SANITIZED, wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site  # noqa: E402


class Gate:
    """An origin's handler: each request waits until the test lets one more through."""

    def __init__(self, seconds=None):
        self.passes = threading.Semaphore(0)
        self.seconds = seconds
        self.lock = threading.Lock()
        self.now = self.most = 0
        self.order = []

    def __call__(self, exchange):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.order.append(exchange.request.target.decode())
        if self.seconds is None:
            self.passes.acquire(timeout=30)
        else:
            time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        exchange.read_body()
        exchange.reply(200, b"ok")

    def open(self, count=1000):
        for _ in range(count):
            self.passes.release()


class Clients:
    """Requests in flight, each on a connection of its own."""

    def __init__(self, proxy):
        self.proxy = proxy
        self.connections = []

    def send(self, target="/", method="GET", body=b""):
        connection = wire.Connection(self.proxy.web)
        connection.send(wire.request_text(method, target, body=body))
        self.connections.append(connection)
        return connection

    def close(self):
        for connection in self.connections:
            connection.close()


class Queue(unittest.TestCase):
    def site(self, gate=None, workers=1, **connections):
        self.gate = gate or Gate()
        self.addCleanup(self.gate.open)
        self.origin = self.enterContext(Origin(self.gate, name="a"))
        self.proxy = self.enterContext(Site([self.origin], pool={"connections": connections}, workers=workers))
        self.clients = Clients(self.proxy)
        self.addCleanup(self.clients.close)

    def wait_waiting(self, count):
        wait_until(lambda: self.proxy.page().sum("clockwise_backend_queue") == count, f"{count} in the queue")

    def wait_asked(self, count):
        self.assertTrue(self.origin.wait(lambda: len(self.origin.requests) == count))

    def check_503(self, answer):
        self.assertEqual(answer.status, 503)
        self.assertIn("connection_limit_reached", answer.value("proxy-status"))
        self.assertRegex(answer.value("retry-after"), r"\A\d+\Z")

    def test_they_are_served_in_the_order_of_their_arrival(self):
        self.site(max=1)
        first = self.clients.send("/first")
        self.wait_asked(1)
        waiting = []
        for number in range(8):
            method = "POST" if number % 2 else "GET"
            waiting.append(self.clients.send(f"/{number}", method, b"x" if method == "POST" else b""))
            self.wait_waiting(number + 1)
        self.gate.open(1)
        self.assertEqual(first.response().status, 200)
        late = self.clients.send("/late")
        self.gate.open()
        for connection in [*waiting, late]:
            self.assertEqual(connection.response().status, 200)
        self.assertEqual(self.gate.order, ["/first", *(f"/{n}" for n in range(8)), "/late"])
        self.assertEqual((self.gate.most, self.origin.connections), (1, 1))
        page = self.proxy.page()
        self.assertEqual(page.sum("clockwise_backend_queue"), 0)
        self.assertEqual(page.sum("clockwise_backend_queue_rejected_total"), 0)
        self.assertEqual(page.sum("clockwise_backend_requests_total", code="2xx"), 10)
        self.assertEqual(page.sum("clockwise_backend_errors_total"), 0)

    def test_one_more_than_the_queue_holds_is_told_at_once(self):
        self.site(max=1, queue=2)
        held = [self.clients.send("/held")]
        self.wait_asked(1)
        held += [self.clients.send("/waiting") for _ in range(2)]
        self.wait_waiting(2)
        self.check_503(self.clients.send("/refused").response())
        self.gate.open()
        for connection in held:
            self.assertEqual(connection.response().status, 200)
        self.assertNotIn("/refused", self.gate.order)
        page = self.proxy.page()
        self.assertEqual(page.sum("clockwise_backend_queue_rejected_total", backend="a", reason="full"), 1)
        self.assertEqual(page.sum("clockwise_http_requests_total", code="5xx"), 1)

    def test_without_a_queue_nobody_waits(self):
        self.site(max=1, queue=0)
        held = self.clients.send("/held")
        self.wait_asked(1)
        self.check_503(self.clients.send("/refused").response())
        self.gate.open()
        self.assertEqual(held.response().status, 200)

    def test_who_waits_too_long_is_told(self):
        self.site(max=1, queue_timeout="300ms")
        held = self.clients.send("/held")
        self.wait_asked(1)
        started = time.monotonic()
        self.check_503(self.clients.send("/waiting").response())
        self.assertGreater(time.monotonic() - started, 0.25)
        page = self.proxy.page()
        self.assertEqual(page.sum("clockwise_backend_queue"), 0)
        self.assertEqual(page.sum("clockwise_backend_queue_rejected_total", backend="a", reason="timeout"), 1)
        self.assertEqual(page.sum("clockwise_backend_errors_total"), 0, "it says nothing about the server")
        self.gate.open()
        self.assertEqual(held.response().status, 200)
        self.assertEqual(self.clients.send("/later").response().status, 200)
        self.assertEqual(self.gate.order, ["/held", "/later"])

    def test_the_wait_counts_in_the_time_for_all(self):
        self.gate = Gate()
        self.addCleanup(self.gate.open)
        with Origin(self.gate, name="a") as origin, \
                Site([origin], pool={"connections": {"max": 1}, "timeouts": {"total": "400ms"}}) as proxy:
            clients = Clients(proxy)
            connections = [clients.send() for _ in range(3)]
            for connection in connections:
                self.assertEqual(connection.response().status, 504)
            clients.close()
            self.gate.open()

    def test_a_client_that_leaves_is_taken_out(self):
        self.site(max=1)
        held = self.clients.send("/held")
        self.wait_asked(1)
        for leave in (wire.Connection.close, wire.Connection.abort):
            gone = self.clients.send("/gone")
            self.wait_waiting(1)
            leave(gone)
            self.wait_waiting(0)
        self.gate.open()
        self.assertEqual(held.response().status, 200)
        self.assertEqual(self.clients.send("/next").response().status, 200)
        self.assertEqual(self.gate.order, ["/held", "/next"])
        self.assertEqual(self.proxy.page().sum("clockwise_http_requests_total", code="aborted"), 2)

    def test_a_connection_that_ends_makes_room(self):
        self.site(max=1)
        held = self.clients.send("/held")
        self.wait_asked(1)
        waiting = self.clients.send("/waiting")
        self.wait_waiting(1)
        held.abort()
        self.wait_asked(2)
        self.gate.open()
        self.assertEqual(waiting.response().status, 200)

    def test_a_higher_limit_lets_them_in(self):
        self.site(max=1)
        for number in range(3):
            self.clients.send(f"/{number}")
        self.wait_asked(1)
        self.wait_waiting(2)
        self.proxy.document["pools"]["pages"]["connections"] = {"max": 3}
        self.assertEqual(self.proxy.reload(self.proxy.document).status, 200)
        self.wait_asked(3)
        self.gate.open()
        for connection in self.clients.connections:
            self.assertEqual(connection.response().status, 200)

    def test_a_lower_limit_ends_what_is_open_beyond_it(self):
        self.site(max=6)
        busy = [self.clients.send(f"/{n}") for n in range(6)]
        self.wait_asked(6)
        self.gate.open(2)
        wait_until(lambda: self.idle() == 2, "two idle connections")
        self.reload_with(max=2)
        self.assertEqual(self.idle(), 0, "idle ones are open too")
        waiting = [self.clients.send(f"/waiting/{n}") for n in range(8)]
        self.wait_waiting(8)
        self.gate.most = 0
        self.gate.open(3)
        wait_until(lambda: self.connections() == 2, "as many as there may be")
        self.gate.open()
        for connection in [*busy, *waiting]:
            self.assertEqual(connection.response().status, 200)
        self.assertLessEqual(self.connections(), 2)
        self.reload_with(max=2, max_idle=0)
        wait_until(lambda: self.origin.open_connections == 0, "none is kept")
        self.assertEqual(self.connections(), 0)

    def idle(self):
        return self.proxy.page().sum("clockwise_backend_connections", state="idle")

    def connections(self):
        return self.proxy.page().sum("clockwise_backend_connections")

    def reload_with(self, **connections):
        self.proxy.document["pools"]["pages"]["connections"] = connections
        self.assertEqual(self.proxy.reload(self.proxy.document).status, 200)

    def test_a_server_that_moves_or_leaves_forgets_nobody(self):
        for leaves in (False, True):
            with self.subTest(leaves=leaves):
                self.site(max=1)
                for number in range(4):
                    self.clients.send(f"/{number}")
                self.wait_asked(1)
                self.wait_waiting(3)
                with Origin(name="a" if not leaves else "b") as other:
                    self.proxy.write_servers([other])
                    self.assertEqual(self.proxy.reload(force=True).status, 200)
                    self.gate.open()
                    for connection in self.clients.connections:
                        self.assertEqual(connection.response().status, 200)
                    self.assertEqual(wire.fetch(self.proxy.web).value("x-server"), other.name)
                self.assertEqual(self.gate.most, 1)

    def test_a_stop_waits_for_those_in_the_queue(self):
        self.site(Gate(seconds=0.05), max=1)
        connections = [self.clients.send(f"/{n}") for n in range(5)]
        self.wait_asked(1)
        self.proxy.signal(15)
        for connection in connections:
            self.assertEqual(connection.response().status, 200)

    def test_the_limit_holds_for_all_workers_together(self):
        for most in (1, 3):
            with self.subTest(most=most):
                self.site(Gate(seconds=0.01), workers=2, max=most, queue=1000, queue_timeout="20s")
                connections = [self.clients.send(f"/{n}") for n in range(80)]
                for connection in connections:
                    self.assertEqual(connection.response().status, 200)
                self.assertLessEqual(self.gate.most, most)
                self.assertEqual(len(self.gate.order), 80)
                page = self.proxy.page()
                self.assertEqual(page.sum("clockwise_backend_queue"), 0)
                self.assertLessEqual(page.sum("clockwise_backend_connections"), most)

    @unittest.skipIf(SANITIZED, "measures time")
    def test_no_worker_keeps_another_waiting_for_ever(self):
        self.site(Gate(seconds=0.01), workers=2, max=1, queue=1000, queue_timeout="3s")
        end = time.monotonic() + 5
        statuses = []

        def ask():
            with wire.Connection(self.proxy.web) as connection:
                while time.monotonic() < end:
                    statuses.append(connection.request("GET", "/").status)

        threads = [threading.Thread(target=ask) for _ in range(16)]  # on both workers, all but surely
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual(set(statuses), {200})
        self.assertEqual(self.gate.most, 1)


if __name__ == "__main__":
    unittest.main()
