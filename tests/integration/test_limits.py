"""Limits and timeouts of a listener, and what happens when memory or descriptors run short."""

import pathlib
import resource
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import SANITIZED, wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site  # noqa: E402
from test_faults import ShortOfDescriptors  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20


class Limits(unittest.TestCase):
    def site(self, handler=None, listener=None, **limits):
        self.origin = self.enterContext(Origin(handler, name="a") if handler else Origin(name="a"))
        return self.enterContext(Site([self.origin], listener={**(listener or {}), "limits": limits}))

    def connect(self, proxy, **options):
        return self.enterContext(wire.Connection(proxy.web, **options))

    # --- targets

    def test_a_target_beyond_its_limit_is_a_414(self):
        proxy = self.site(uri_size="1k", header_size="16k")
        for target, status in (("/" + "u" * 1023, 200), ("/" + "u" * 1024, 414), ("/" + "u" * 9000, 414),
                               ("http://h.example/" + "u" * 1020, 414)):
            self.assertEqual(wire.fetch(proxy.web, target).status, status, len(target))
        self.assertEqual(proxy.page().sum("clockwise_http_request_errors_total", reason="uri_too_long"), 3)

    def test_a_target_of_8000_octets_works_without_settings(self):
        proxy = self.site()
        target = "/" + "u" * 7999
        self.assertEqual(wire.fetch(proxy.web, target).status, 200)
        self.assertEqual(self.origin.requests[-1].target, target.encode())

    # --- requests of one connection

    def test_the_last_request_of_a_connection_is_answered_with_close(self):
        proxy = self.site(requests=3)
        with wire.Connection(proxy.web) as connection:
            closes = [b"close" in connection.request("GET", f"/{n}").tokens("connection") for n in range(3)]
            self.assertEqual(closes, [False, False, True])
            self.assertTrue(connection.closed())
        self.assertEqual(wire.fetch(proxy.web).status, 200)

    def test_what_is_pipelined_behind_the_last_request_is_not_served(self):
        proxy = self.site(requests=2)
        connection = self.connect(proxy)
        connection.send(b"".join(wire.request_text("GET", f"/{n}") for n in range(5)))
        answers = [connection.response() for _ in range(2)]
        self.assertEqual([b"close" in a.tokens("connection") for a in answers], [False, True])
        self.assertTrue(connection.closed())
        self.assertEqual([r.target for r in self.origin.requests], [b"/0", b"/1"])

    # --- pipelines

    def test_a_long_pipeline_is_answered_whole_and_in_order(self):
        proxy = self.site(pipelined=2)
        text = b"".join(wire.request_text("OPTIONS", f"/{n}", {"Max-Forwards": "0"}) if n % 2 else
                        wire.request_text("GET", f"/{n}") for n in range(60))
        connection = self.connect(proxy)
        connection.send(text)
        answers = [connection.response() for _ in range(60)]
        self.assertEqual([a.status for a in answers], [200] * 60)
        served = [r.target.decode() for r in self.origin.requests]
        self.assertEqual(served, [f"/{n}" for n in range(0, 60, 2)])

    def test_a_pipeline_does_not_hold_up_other_clients(self):
        # Answers that the proxy gives by itself: without a limit one read is answered in one turn.
        proxy = self.site(pipelined=1)
        request = wire.request_text("OPTIONS", "/", {"Max-Forwards": "0"})
        greedy = self.connect(proxy, timeout=60)
        text, stop = request * 400, threading.Event()

        def send():
            try:
                while not stop.is_set():
                    greedy.sock.sendall(text)
            except OSError:
                pass

        def drain():
            try:
                while greedy.sock.recv(1 << 16):
                    pass
            except OSError:
                pass

        threads = [threading.Thread(target=each, daemon=True) for each in (send, drain)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                self.assertEqual(wire.fetch(proxy.web).status, 200)
        finally:
            stop.set()
            wire.abort(greedy.sock)
        for thread in threads:
            thread.join(10)

    def test_a_client_that_only_sends_is_stopped_by_its_own_socket(self):
        done = threading.Event()
        proxy = self.site(handler=lambda exchange: done.wait(30) and exchange.reply(200))
        self.addCleanup(done.set)
        connection = self.connect(proxy, timeout=1)
        before, sent = proxy.resident_bytes(), 0
        request = wire.request_text("GET", "/" + "x" * 1000)
        with self.assertRaises(TimeoutError):
            while sent < 64 * MIB:
                connection.sock.sendall(request * 64)
                sent += 64 * len(request)
        self.assertLess(proxy.resident_bytes() - before, 8 * MIB)

    # --- connections of one client

    def test_connections_of_one_client_are_limited_over_all_workers(self):
        origin = self.enterContext(Origin(name="a"))
        proxy = self.enterContext(Site([origin], workers=2, listener={"limits": {"per_client": 3}}))
        held = [self.connect(proxy) for _ in range(3)]
        for connection in held:
            self.assertEqual(connection.request("GET", "/").status, 200)
        for number in range(1, 9):  # whichever worker they reach
            answer = wire.fetch(proxy.web)
            self.assertEqual((answer.status, answer.value("retry-after")), (503, "1"))
            self.assertEqual(answer.tokens("connection"), [b"close"])
            self.assertEqual(proxy.page().sum("clockwise_http_connections_rejected_total", reason="limit"), number)
        with socket.socket() as other:  # another address of the loopback is another client
            other.bind(("127.0.0.2", 0))
            other.connect(proxy.web)
            other.sendall(wire.request_text("GET", "/"))
            self.assertIn(b" 200 ", other.recv(4096))
        held[0].close()
        wait_until(lambda: wire.fetch(proxy.web).status == 200, "the place of a connection that ended")

    def test_a_mapped_address_is_the_address_it_maps(self):
        origin = self.enterContext(Origin(name="a"))
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("no IPv6 here")
        proxy = self.enterContext(Site([origin], listener={"address": "[::1]:0", "limits": {"per_client": 1}}))
        address = "::1", proxy.port()
        with wire.Connection(address) as first:
            self.assertEqual(first.request("GET", "/").status, 200)
            self.assertEqual(wire.fetch(address).status, 503)
        wait_until(lambda: wire.fetch(address).status == 200, "the place of a connection that ended")

    def test_the_limit_may_change_at_a_reload(self):
        proxy = self.site()
        early = self.connect(proxy)
        early.request("GET", "/")
        document = proxy.document
        document["listeners"][0]["limits"] = {"per_client": 1}
        self.assertEqual(proxy.reload(document).status, 200)
        with wire.Connection(proxy.web) as first:
            self.assertEqual(first.request("GET", "/").status, 200)
            self.assertEqual(wire.fetch(proxy.web).status, 503)
        document["listeners"][0]["limits"] = {}
        self.assertEqual(proxy.reload(document).status, 200)
        early.close()
        self.assertEqual([wire.fetch(proxy.web).status for _ in range(3)], [200] * 3)

    # --- all connections

    def test_who_has_a_request_goes_before_who_has_none(self):
        proxy = self.site(max_connections=4)
        idle = []
        for _ in range(4):
            connection = self.connect(proxy)
            self.assertEqual(connection.request("GET", "/").status, 200)
            idle.append(connection)
        newcomer = self.connect(proxy)
        self.assertEqual(newcomer.request("GET", "/new").status, 200)
        self.assertTrue(idle[0].closed(), "the one that waited longest makes room")
        for connection in idle[1:]:
            self.assertEqual(connection.request("GET", "/").status, 200)
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_http_connections_rejected_total"), 0)
        self.assertEqual(page.sum("clockwise_http_connections"), 4)

    def test_who_has_a_request_goes_before_who_is_read_out(self):
        proxy = self.site(max_connections=4)
        refused = []
        for _ in range(4):
            connection = self.connect(proxy)
            connection.send(b"BAD\r\n\r\n")
            self.assertEqual(connection.response().status, 400)
            connection.send(b"x")  # goes on sending, as who has not seen the answer
            refused.append(connection)
        for _ in range(4):
            self.assertEqual(self.connect(proxy).request("GET", "/new").status, 200)
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_http_connections_rejected_total"), 0)
        self.assertEqual(page.sum("clockwise_http_connections"), 4)

    def test_what_was_admitted_goes_on_when_the_rest_is_refused(self):
        done = threading.Event()
        proxy = self.site(handler=lambda exchange: done.wait(30) and exchange.reply(200), max_connections=4)
        self.addCleanup(done.set)
        busy = [self.connect(proxy) for _ in range(4)]
        for connection in busy:
            connection.send(wire.request_text("GET", "/"))
        self.assertTrue(self.origin.wait(lambda: len(self.origin.requests) == 4))
        answer = wire.fetch(proxy.web)
        self.assertEqual((answer.status, answer.value("retry-after")), (503, "1"))
        done.set()
        self.assertEqual([c.response().status for c in busy], [200] * 4)


class Timeouts(unittest.TestCase):
    def site(self, handler=None, **timeouts):
        self.origin = self.enterContext(Origin(handler, name="a") if handler else Origin(name="a"))
        return self.enterContext(Site([self.origin], listener={"timeouts": timeouts}))

    def test_a_connection_that_sends_nothing_is_closed_after_first_byte(self):
        proxy = self.site(first_byte="200ms", idle="30s")
        with wire.Connection(proxy.web) as silent, wire.Connection(proxy.web) as kept:
            self.assertEqual(kept.request("GET", "/").status, 200)
            self.assertTrue(silent.closed())
            self.assertEqual(kept.request("GET", "/").status, 200, "that is for the first request only")
        self.assertEqual(proxy.page().sum("clockwise_http_requests_total", code="4xx"), 0)

    def test_first_byte_is_as_header_where_it_is_not_set(self):
        proxy = self.site(header="200ms", idle="30s")
        with wire.Connection(proxy.web) as silent:
            self.assertTrue(silent.closed())

    def drip(self, connection, first, octet=b"x"):
        """Sends `first`, then an octet at a time until the proxy has had enough."""
        stop = threading.Event()

        def send():
            try:
                connection.send(first)
                while not stop.wait(0.05):
                    connection.send(octet)
            except OSError:
                pass
        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)
        self.addCleanup(stop.set)

    def test_a_whole_request_has_one_deadline(self):
        proxy = self.site(request="500ms")
        for first in (b"GET / HTTP/1.1\r\nHost: h\r\nX-A: ",
                      b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n",
                      b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n30d40\r\n"):
            with wire.Connection(proxy.web) as connection:
                started = time.monotonic()
                self.drip(connection, first)
                answer = connection.response()
                self.assertEqual((answer.status, answer.tokens("connection")), (408, [b"close"]), first)
                self.assertGreater(time.monotonic() - started, 0.4, first)
        self.assertEqual(proxy.page().sum("clockwise_http_request_errors_total", reason="timeout"), 3)
        self.assertFalse(any(r.complete for r in self.origin.requests))

    def test_it_is_not_a_deadline_of_the_answer(self):
        def slow(exchange):
            exchange.read_body()
            threading.Event().wait(0.7)
            exchange.reply(200)
        proxy = self.site(slow, request="300ms")
        self.assertEqual(wire.fetch(proxy.web).status, 200)
        self.assertEqual(wire.fetch(proxy.web, "/", "POST", body=b"x" * 1000).status, 200)

    def test_a_client_that_takes_an_octet_at_a_time_costs_little(self):
        # Progress is progress: it may take as long as it likes, in bounded memory.
        def big(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            while True:
                exchange.send(b"x" * 65536)
        proxy = self.site(big, write="500ms")
        before = proxy.resident_bytes()
        readers = [self.enterContext(wire.Connection(proxy.web, receive_buffer=4096)) for _ in range(8)]
        for reader in readers:
            reader.send(wire.request_text("GET", "/"))
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            for reader in readers:
                self.assertTrue(reader.sock.recv(4096))
            time.sleep(0.02)
        self.assertLess(proxy.resident_bytes() - before, (64 if not SANITIZED else 256) * MIB)
        self.assertEqual(proxy.page().sum("clockwise_http_requests_in_flight"), 8)


class Memory(unittest.TestCase):
    """overload.memory: a size that the process is above from the start, or that a reload sets."""

    def test_new_work_is_turned_away_and_what_was_admitted_goes_on(self):
        release = threading.Event()
        self.addCleanup(release.set)

        def handler(exchange):
            if exchange.request.target == b"/slow":
                release.wait(30)
            exchange.reply(200, b"done")
        # A ring that is larger than the smallest limit there is.
        with Origin(handler, name="a") as origin, \
                Site([origin], ring={"points": 3000000}, overload={"memory": "off"}) as proxy:
            kept, busy = wire.Connection(proxy.web), wire.Connection(proxy.web)
            self.assertEqual(kept.request("GET", "/").status, 200)
            busy.send(wire.request_text("GET", "/slow"))
            self.assertTrue(origin.wait(lambda: len(origin.requests) == 2))

            self.assertEqual(proxy.reload({**proxy.document, "overload": {"memory": "16m"}}).status, 200)
            proxy.wait_log(r"overload: \d+ MiB resident, more than 16 MiB")
            answer = kept.request("GET", "/")
            self.assertEqual((answer.status, answer.tokens("connection")), (503, [b"close"]))
            self.assertEqual(answer.value("retry-after"), "1")
            self.assertTrue(kept.closed())
            answer = wire.fetch(proxy.web)
            self.assertEqual((answer.status, answer.value("retry-after")), (503, "1"))
            self.assertEqual(proxy.page().sum("clockwise_http_connections_rejected_total", reason="memory"), 2)
            self.assertEqual(proxy.admin("/readyz").status, 200)
            release.set()
            self.assertEqual(busy.response().status, 200, "it was admitted before")

            self.assertEqual(proxy.reload({**proxy.document, "overload": {"memory": "100g"}}).status, 200)
            proxy.wait_log(r"overload: \d+ MiB resident: new work is taken again")
            self.assertEqual(wire.fetch(proxy.web).status, 200)
            self.assertEqual(proxy.log().count("overload:"), 2, "once each way")
            kept.close()
            busy.close()


class FewDescriptors(ShortOfDescriptors):
    LIMIT = 160


class Descriptors(unittest.TestCase):
    def test_idle_clients_make_room_and_the_admin_side_stays_reachable(self):
        # More connections are allowed than there are descriptors for.
        with Origin(name="a") as origin, FewDescriptors([origin], listener={"limits": {"max_connections": 5000}}) as proxy:
            crowd = []
            for number in range(300):
                connection = wire.Connection(proxy.web)
                self.assertEqual(connection.request("GET", f"/{number}").status, 200, number)
                crowd.append(connection)
                if number % 50 == 0:
                    self.assertEqual(proxy.admin("/healthz").status, 200)
            page = proxy.page()
            self.assertEqual(page.sum("clockwise_http_connections_rejected_total"), 0)
            self.assertLess(page.value("process_open_fds"), FewDescriptors.LIMIT - 16)
            for connection in crowd:
                connection.close()
            self.assertEqual(wire.fetch(proxy.web).status, 200)

    def test_no_server_is_blamed_for_what_this_machine_lacks(self):
        release = threading.Event()
        self.addCleanup(release.set)

        def handler(exchange):
            release.wait(30)
            exchange.reply(200)
        outlier = {"consecutive_failures": 1, "success_gap": "0%"}
        with Origin(handler, name="a") as a, Origin(handler, name="b") as b, \
                FewDescriptors([a, b], pool={"outlier": outlier}, listener={"limits": {"max_connections": 5000}}) as proxy:
            crowd = [wire.Connection(proxy.web) for _ in range(100)]
            for number, connection in enumerate(crowd):
                connection.send(wire.request_text("GET", f"/{number}"))
            proxy.wait_metric(1, "clockwise_http_requests_total", code="5xx")
            page = proxy.page()
            self.assertEqual(page.sum("clockwise_backend_errors_total"), 0)
            self.assertEqual(page.sum("clockwise_backend_ejections_total"), 0)
            self.assertEqual(page.sum("clockwise_retries_total"), 0, "another server would need the same")
            release.set()
            refused = []
            for connection in crowd:
                try:
                    answer = connection.response()
                    if answer.status != 200:
                        refused.append((answer.status, answer.value("retry-after"), answer.value("proxy-status")))
                except (OSError, wire.Quiet):
                    pass  # turned away before it was read
                connection.close()
            self.assertIn((503, "1", "clockwise; error=proxy_internal_error"), refused)

    def test_busy_clients_beyond_the_descriptors_are_refused_and_the_rest_is_served(self):
        release = threading.Event()
        self.addCleanup(release.set)

        def handler(exchange):
            if exchange.request.target == b"/slow":
                release.wait(30)
            exchange.reply(200)
        with Origin(handler, name="a") as origin, FewDescriptors([origin], listener={"limits": {"max_connections": 5000}}) as proxy:
            crowd = [wire.Connection(proxy.web) for _ in range(200)]
            for connection in crowd:
                try:
                    connection.send(wire.request_text("GET", "/slow"))
                except OSError:
                    pass
            wait_until(lambda: proxy.page().sum("clockwise_http_connections_accepted_total") >= 200, "all accepted")
            before, started = proxy.cpu_seconds(), time.monotonic()
            for _ in range(10):
                self.assertEqual(proxy.admin("/healthz").status, 200)
            wait_until(lambda: time.monotonic() - started > 1.0, "a second of watching")
            self.assertLess(proxy.cpu_seconds() - before, 0.5, "it spins")
            release.set()
            served = 0
            for connection in crowd:
                try:
                    served += connection.response().status == 200
                except (OSError, wire.Quiet):
                    pass
                connection.close()
            self.assertGreaterEqual(served, 32)
            wait_until(lambda: wire.fetch(proxy.web).status == 200, "served again")


class Crowds(unittest.TestCase):
    IDLE = 5000
    ABORTED = 2000 if SANITIZED else 20000

    @staticmethod
    def room_for(wanted):
        """How many connections this process and the proxy may have, at most `wanted`."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return min(wanted, hard - 500)

    def settled(self, proxy, base, margin):
        wait_until(lambda: proxy.resident_bytes() <= base + margin,
                   lambda: f"memory back at {base >> 10} KiB; it is {proxy.resident_bytes() >> 10} KiB")

    def test_idle_connections_cost_less_than_a_kibibyte_each(self):
        count = self.room_for(self.IDLE)
        origin = self.enterContext(Origin(name="a"))
        proxy = self.enterContext(Site([origin], listener={"limits": {"max_connections": count + 10}}))
        for _ in range(3):
            wire.fetch(proxy.web)
        base = proxy.resident_bytes()
        crowd = []
        for number in range(count):
            sock = socket.create_connection(proxy.web)
            sock.sendall(wire.request_text("GET", f"/{number % 100}"))
            self.assertIn(b" 200 ", sock.recv(4096))
            crowd.append(sock)
        each = (proxy.resident_bytes() - base) / count
        self.assertEqual(proxy.page().sum("clockwise_http_connections", state="idle"), count)
        for sock in crowd:
            sock.close()
        wait_until(lambda: proxy.page().sum("clockwise_http_connections") == 0, "all closed")
        if not SANITIZED:
            self.assertLess(each, KIB)
            self.settled(proxy, base, 3 * MIB)

    def test_memory_returns_after_many_aborted_requests(self):
        def handler(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\npart")
            exchange.read_body()
        origin = self.enterContext(Origin(handler, name="a"))
        proxy = self.enterContext(Site([origin]))
        request = wire.request_text("GET", "/", {"X-Long": "v" * 2000})

        def abort(count):
            for _ in range(count):
                sock = socket.create_connection(proxy.web)
                sock.sendall(request)
                wire.abort(sock)
        abort(500)
        idle = lambda: proxy.page().sum("clockwise_http_connections") == 0
        wait_until(idle, "the first ones gone")
        base = proxy.resident_bytes()
        abort(self.ABORTED)
        wait_until(idle, "all gone")
        self.assertEqual(proxy.page().sum("clockwise_http_requests_in_flight"), 0)
        wait_until(lambda: proxy.page().sum("clockwise_backend_requests_in_flight") == 0, "no request at the server")
        if not SANITIZED:
            self.settled(proxy, base, 12 * MIB)  # blocks and exchanges that are kept for use


if __name__ == "__main__":
    unittest.main()
