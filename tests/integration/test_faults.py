"""What goes wrong around the proxy ends in a clear answer, a count and a proxy that goes on."""

import json
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import BINARY, free_port, wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.ring import Ring, xxh64  # noqa: E402
from support.scenario import Site  # noqa: E402


def nobody(name):
    """A server where nobody listens."""
    return {"name": name, "address": f"127.0.0.1:{free_port()}"}


def uri_owned_by(proxy, name):
    return next(uri for uri, owner in proxy.owners([f"/{n}" for n in range(500)]).items() if owner == name)


class UnreachableServers(unittest.TestCase):
    def test_a_refused_connection_goes_to_the_next_distinct_server_on_the_walk(self):
        origins = {n: self.enterContext(Origin(name=n)) for n in "bcd"}
        ring = Ring(dict.fromkeys("abcd", 1))
        with Site([nobody("a"), *origins.values()]) as proxy:
            uris = [f"/{n}" for n in range(200) if ring.owner(f"/{n}".encode()) == "a"]
            for number, uri in enumerate(uris):
                method, body = ("POST", b"x") if number % 2 else ("GET", b"")
                answer = wire.fetch(proxy.web, uri, method, body=body)
                self.assertEqual((answer.status, answer.value("x-server")), (200, ring.walk(uri.encode())[1]), uri)
            page = proxy.page()
            self.assertEqual(page.sum("clockwise_retries_total", reason="connect"), len(uris))
            self.assertEqual(page.sum("clockwise_backend_errors_total", backend="a", reason="connect"), len(uris))
            self.assertEqual(page.sum("clockwise_requests_routed_total"), len(uris))
            self.assertEqual(page.sum("clockwise_http_requests_total", code="2xx"), len(uris))
            self.assertEqual(page.sum("clockwise_http_request_errors_total"), 0)

    def check_no_backend(self, answer):
        self.assertIn(answer.status, (502, 503))
        self.assertLess(len(answer.body), 1000)
        self.assertIn("clockwise", answer.value("proxy-status"))
        self.assertRegex(answer.value("proxy-status"), r"error=\"?[a-z_]+")
        if answer.status == 503:
            self.assertRegex(answer.value("retry-after") or "", r"\A\d+\Z")
        self.assertNotRegex(answer.text, r"127\.0\.0\.1|\d+\.\d+\.\d+")

    def test_no_server_can_be_reached(self):
        with Site([nobody("a"), nobody("b"), nobody("c")]) as proxy, wire.Connection(proxy.web) as connection:
            answer = connection.request("GET", "/")
            self.check_no_backend(answer)
            self.assertTrue(answer.value("content-type").startswith("text/plain"))
            answer = connection.request("GET", "/", {"Accept": "application/json"})
            self.check_no_backend(answer)
            self.assertTrue(answer.value("content-type").startswith("application/json"))
            self.assertTrue(json.loads(answer.body))
            answer = connection.request("HEAD", "/")
            self.assertIn(answer.status, (502, 503))
            page = proxy.page()
            self.assertEqual(page.sum("clockwise_http_request_errors_total", reason="no_backend"), 3)
            self.assertEqual(page.sum("clockwise_http_requests_total", code="5xx"), 3)
            self.assertGreaterEqual(page.sum("clockwise_backend_errors_total", reason="connect"), 3)

    def test_every_server_is_taken_off_the_ring(self):
        with Origin(name="a") as a, Site([a], pool={"max_shrink": "100%", "max_remap": "100%"}) as proxy:
            self.assertEqual(wire.fetch(proxy.web).status, 200)
            answer = proxy.reload()
            self.assertEqual(answer.status, 200)
            proxy.write_servers([a.entry(state="down")])
            answer = proxy.reload(force=True)
            served = wire.fetch(proxy.web)
            if answer.status == 200:  # off the ring, not refused
                self.check_no_backend(served)
                self.assertEqual(proxy.page().sum("clockwise_http_request_errors_total", reason="no_backend"), 1)
            else:
                self.assertEqual(served.status, 200)

    def test_debug_headers_tell_where_the_request_belonged(self):
        def check(proxy, answer, uri):
            self.assertEqual(answer.value("clockwise-ring"), proxy.pool()["digest"])
            key = proxy.admin(f"/api/v1/pools/pages/lookup?key={uri}").json()["keys"][0]
            self.assertEqual(answer.value("clockwise-key-hash"), key["hash"])
            self.assertIsNone(answer.value("clockwise-server"))
            return int(key["hash"])
        with Site([nobody(n) for n in "abc"], listener={"debug_headers": True}) as proxy:
            answer = wire.fetch(proxy.web, "/x")
            self.assertEqual(answer.status, 502)
            self.assertEqual(check(proxy, answer, "/x"), xxh64(b"/x"))
            # Nobody routed these.
            for octets in (b"GET /x HTTP/1.1\r\n\r\n", b"GET /x HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n"):
                with wire.Connection(proxy.web) as connection:
                    connection.send(octets)
                    refused = connection.response()
                    self.assertEqual((refused.status, refused.value("clockwise-ring")), (400, None))
        with Site([{**nobody("a"), "state": "down"}], listener={"debug_headers": True}) as proxy:
            answer = wire.fetch(proxy.web, "/x")
            self.assertEqual(answer.status, 503)
            check(proxy, answer, "/x")
        with Site([nobody("a")]) as proxy:
            self.assertIsNone(wire.fetch(proxy.web, "/x").value("clockwise-ring"))

    def test_it_serves_again_as_soon_as_a_server_is_back(self):
        port = free_port()
        with Site([{"name": "a", "address": f"127.0.0.1:{port}"}]) as proxy:
            self.assertIn(wire.fetch(proxy.web).status, (502, 503))
            with Origin(name="a", port=port):
                self.assertEqual(wire.fetch(proxy.web).status, 200)

    def test_a_connect_timeout_goes_to_the_next_server(self):
        # A listener with a full backlog takes no connection and refuses none.
        with socket.socket() as full, Origin(name="b") as b:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            waiting = [self.hold(full.getsockname()) for _ in range(3)]
            silent = {"name": "a", "address": "127.0.0.1:%d" % full.getsockname()[1]}
            with Site([silent, b], pool={"timeouts": {"connect": "200ms"}}) as proxy:
                answer = wire.fetch(proxy.web, uri_owned_by(proxy, "a"))
                self.assertEqual((answer.status, answer.value("x-server")), (200, "b"))
                page = proxy.page()
                self.assertEqual(page.sum("clockwise_retries_total"), 1)
                self.assertEqual(page.sum("clockwise_backend_errors_total", backend="a"), 1)
            for sock in waiting:
                sock.close()

    @staticmethod
    def hold(address):
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(address)
        return sock


class StaleConnections(unittest.TestCase):
    """The server closes an idle connection in the moment in which the next request is sent."""

    def setUp(self):
        # The first request on a connection is answered; the second one is read and then dropped.
        self.served = {}

        def handler(exchange):
            exchange.read_body()
            number = self.served[exchange.connection_number] = self.served.get(exchange.connection_number, 0) + 1
            if number > 1 and exchange.request.target == b"/drop":
                exchange.reset()
            exchange.reply(200, exchange.request.method)

        self.origin = self.enterContext(Origin(handler, name="a"))
        self.proxy = self.enterContext(Site([self.origin]))

    def drops(self):
        return [r.method for r in self.origin.requests if r.target == b"/drop"]

    def test_a_get_is_tried_again_on_a_fresh_connection(self):
        with wire.Connection(self.proxy.web) as connection:
            connection.request("GET", "/warm")
            answer = connection.request("GET", "/drop")
        self.assertEqual((answer.status, answer.text), (200, "GET"))
        self.assertEqual(self.drops(), [b"GET", b"GET"])
        self.assertEqual(self.proxy.page().sum("clockwise_retries_total", reason="stale_connection"), 1)

    def test_a_post_is_never_sent_twice(self):
        for method in ("POST", "PATCH"):
            with wire.Connection(self.proxy.web) as connection:
                connection.request("GET", "/warm")
                answer = connection.request(method, "/drop", body=b"once")
                self.assertEqual(answer.status, 502)
        self.assertEqual(self.drops(), [b"POST", b"PATCH"])
        page = self.proxy.page()
        self.assertEqual(page.sum("clockwise_retries_total"), 0)
        self.assertEqual(page.sum("clockwise_retries_suppressed_total", reason="unsafe_method"), 2)

    def test_a_connection_that_was_closed_while_idle_costs_nobody_a_request(self):
        for method in ("GET", "POST", "PUT"):
            wire.fetch(self.proxy.web, "/warm")
            self.origin.drop_connections()
            self.assertTrue(self.origin.wait(lambda: self.origin.open_connections == 0))
            answer = wire.fetch(self.proxy.web, "/", method, body=b"x" if method != "GET" else b"")
            self.assertEqual((answer.status, answer.text), (200, method))

    def test_a_reset_on_a_fresh_connection_is_an_error_of_that_server(self):
        with Origin(lambda exchange: exchange.reset(), name="a") as bad, Site([bad]) as proxy:
            self.assertEqual(wire.fetch(proxy.web, "/", "POST", body=b"x").status, 502)
            self.assertEqual(len(bad.requests), 1)
            page = proxy.page()
            self.assertEqual(page.sum("clockwise_backend_errors_total", backend="a", reason="reset"), 1)
            self.assertEqual(page.sum("clockwise_backend_requests_total", backend="a", code="error"), 1)


class BadAnswers(unittest.TestCase):
    GARBAGE = {
        "not HTTP": b"garbage\r\n\r\n", "another version": b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        "bad length": b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        "endless head": b"HTTP/1.1 200 OK\r\n" + b"X-A: " + b"v" * 200000,
        "unasked upgrade": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",
        "TLS": b"\x15\x03\x01\x00\x02\x02\x46", "nothing": b"", "half a head": b"HTTP/1.1 200 OK\r\nX-A: ",
    }

    def test_garbage_is_a_502_and_counted(self):
        def handler(exchange):
            exchange.read_body()
            exchange.send(self.GARBAGE[self.kind])
            exchange.close()

        with Origin(handler, name="a") as origin, Site([origin]) as proxy:
            for number, self.kind in enumerate(self.GARBAGE, 1):
                answer = wire.fetch(proxy.web, "/", "POST", body=b"x")
                self.assertEqual(answer.status, 502, self.kind)
                self.assertIn("clockwise", answer.value("proxy-status"), self.kind)
                page = proxy.page()
                self.assertEqual(page.sum("clockwise_backend_requests_total", code="error"), number, self.kind)
                self.assertEqual(page.sum("clockwise_backend_errors_total"), number, self.kind)
            self.assertGreaterEqual(page.sum("clockwise_backend_errors_total", reason="protocol"), 5)


    def test_an_answer_that_breaks_off_is_counted_by_reason(self):
        def handler(exchange):
            exchange.read_body()
            if exchange.request.target == b"/protocol":
                exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\nzz\r\n")
                exchange.close()
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart")
            exchange.reset()

        with Origin(handler, name="a") as origin, Site([origin]) as proxy:
            for reason in ("protocol", "reset"):
                answer = wire.fetch(proxy.web, f"/{reason}")
                self.assertTrue(answer.cut or answer.status == 502, reason)
                self.assertEqual(proxy.page().sum("clockwise_backend_errors_total", reason=reason), 1, reason)


class Timeouts(unittest.TestCase):
    def test_a_server_that_does_not_answer_is_a_504(self):
        done = threading.Event()
        self.addCleanup(done.set)
        with Origin(lambda exchange: done.wait(30), name="a") as origin, \
                Site([origin], pool={"timeouts": {"response": "300ms"}}) as proxy:
            started = time.monotonic()
            answer = wire.fetch(proxy.web)
            self.assertEqual(answer.status, 504)
            self.assertIn("clockwise", answer.value("proxy-status"))
            self.assertGreater(time.monotonic() - started, 0.25)
            page = proxy.page()
            self.assertEqual(page.sum("clockwise_backend_errors_total", reason="timeout"), 1)
            self.assertEqual(len(origin.requests), 1, "a timeout is not tried again by default")

    def test_a_server_that_stalls_inside_its_answer_cuts_it(self):
        done = threading.Event()
        self.addCleanup(done.set)

        def handler(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\npart")
            done.wait(30)

        with Origin(handler, name="a") as origin, Site([origin], pool={"timeouts": {"response": "300ms"}}) as proxy:
            answer = wire.fetch(proxy.web)
            self.assertEqual((answer.status, answer.cut), (200, True))
            self.assertEqual(proxy.page().sum("clockwise_backend_errors_total", reason="timeout"), 1)

    def site(self, **timeouts):
        origin = self.enterContext(Origin(name="a"))
        return self.enterContext(Site([origin], listener={"timeouts": timeouts}))

    def test_a_head_that_does_not_end_is_a_408(self):
        proxy = self.site(header="300ms")
        with wire.Connection(proxy.web) as connection:
            connection.send(b"GET / HTTP/1.1\r\nHost: h\r\nX-A: ")
            answer = connection.response()
            self.assertEqual((answer.status, answer.tokens("connection")), (408, [b"close"]))
            self.assertTrue(connection.closed())
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_http_request_errors_total", reason="timeout"), 1)
        self.assertEqual(page.sum("clockwise_http_requests_total", code="4xx"), 1)

    def test_a_dripping_head_has_one_deadline(self):
        proxy = self.site(header="500ms")
        with wire.Connection(proxy.web) as connection:
            started = time.monotonic()
            stop = threading.Event()

            def drip():
                connection.send(b"GET / HTTP/1.1\r\nHost: h\r\nX-A: ")
                try:
                    while not stop.wait(0.05):
                        connection.send(b"x")
                except OSError:
                    pass
            thread = threading.Thread(target=drip, daemon=True)
            thread.start()
            try:
                self.assertEqual(connection.response().status, 408)
            except wire.Quiet:
                pass  # closed at once, with octets of ours on the way
            stop.set()
            thread.join(10)
            self.assertLess(time.monotonic() - started, 5)

    def test_a_silent_connection_is_closed_without_a_word(self):
        proxy = self.site(header="300ms", idle="300ms")
        with wire.Connection(proxy.web) as connection:
            self.assertTrue(connection.closed())
        self.assertEqual(proxy.page().sum("clockwise_http_requests_total"), 0)

    def test_an_idle_connection_is_closed_without_a_word(self):
        proxy = self.site(idle="300ms")
        with wire.Connection(proxy.web) as connection:
            for _ in range(2):
                self.assertEqual(connection.request("GET", "/").status, 200)
            self.assertTrue(connection.closed())

    def test_a_body_that_stalls_is_a_408_and_aborted_upstream(self):
        proxy = self.site(body="300ms")
        with wire.Connection(proxy.web) as connection:
            connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\npart")
            self.assertEqual(connection.response().status, 408)
            self.assertTrue(connection.closed())
        self.assertEqual(proxy.page().sum("clockwise_http_request_errors_total", reason="timeout"), 1)

    def test_a_client_that_takes_nothing_is_dropped(self):
        gone = threading.Event()

        def handler(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
            try:
                while True:
                    exchange.send(b"x" * 65536)
            except OSError:
                gone.set()
                raise

        with Origin(handler, name="a") as origin, Site([origin], listener={"timeouts": {"write": "300ms"}}) as proxy:
            with wire.Connection(proxy.web, receive_buffer=65536) as connection:
                connection.send(wire.request_text("GET", "/"))
                self.assertTrue(gone.wait(20))

    def test_an_upstream_connection_is_not_kept_longer_than_its_idle_time(self):
        with Origin(name="a") as origin, Site([origin], pool={"timeouts": {"idle": "300ms"}}) as proxy:
            wire.fetch(proxy.web)
            self.assertTrue(origin.wait(lambda: origin.open_connections == 0))
            self.assertEqual(wire.fetch(proxy.web).status, 200)
            self.assertEqual(origin.connections, 2)


class Limits(unittest.TestCase):
    def site(self, **limits):
        self.origin = self.enterContext(Origin(name="a"))
        return self.enterContext(Site([self.origin], listener={"limits": limits}))

    def refused(self, proxy, octets, status, reason):
        before = proxy.page().sum("clockwise_http_request_errors_total", reason=reason)
        with wire.Connection(proxy.web) as connection:
            connection.send(octets)
            answer = connection.response()
            self.assertEqual(answer.status, status)
            self.assertTrue(connection.closed())
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_http_request_errors_total", reason=reason), before + 1)
        self.assertEqual([r for r in self.origin.requests if r.complete], [])

    def test_limits_of_the_head(self):
        proxy = self.site(header_size="16k", headers=20)
        self.refused(proxy, wire.request_text("GET", "/", {"X-A": "v" * 20000}), 431, "header_too_large")
        self.refused(proxy, wire.request_text("GET", "/", {f"X-{n}": "v" for n in range(25)}), 431, "header_too_large")
        self.refused(proxy, wire.request_text("GET", "/" + "u" * 40000), 414, "uri_too_long")
        self.assertEqual(wire.fetch(proxy.web, "/" + "u" * 8000).status, 200)

    def test_limit_of_the_body(self):
        proxy = self.site(body_size="1k")
        self.assertEqual(wire.fetch(proxy.web, "/", "POST", body=b"x" * 1024).status, 200)
        self.origin.requests.clear()
        self.refused(proxy, wire.request_text("POST", "/", body=b"x" * 1025), 413, "body_too_large")
        self.refused(proxy, b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n800\r\n" + b"x" * 2048 +
                     b"\r\n0\r\n\r\n", 413, "body_too_large")

    def test_requests_that_are_refused_are_counted_by_reason(self):
        proxy = self.site()
        self.refused(proxy, b"GET / HTTP/1.1\r\nBad Name: x\r\nHost: h\r\n\r\n", 400, "malformed")
        self.refused(proxy, b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"0\r\n\r\n", 400, "framing")
        with wire.Connection(proxy.web) as connection:
            self.assertIn(connection.request("CONNECT", "h:443").status, (405, 501))
        self.assertEqual(proxy.page().sum("clockwise_http_request_errors_total", reason="method"), 1)

    def test_connections_above_the_limit_wait_or_are_refused_and_counted(self):
        proxy = self.site(max_connections=8)
        held = []
        try:
            for _ in range(8):
                connection = wire.Connection(proxy.web)
                self.assertEqual(connection.request("GET", "/").status, 200)
                held.append(connection)
            # All of them are idle: what comes next may take the place of one, wait, or be refused.
            for _ in range(4):
                connection = wire.Connection(proxy.web, timeout=1)
                held.append(connection)
                try:
                    connection.request("GET", "/")
                except (OSError, wire.Quiet):
                    pass
            page = proxy.page()
            self.assertLessEqual(page.sum("clockwise_http_connections"), 8)
        finally:
            for connection in held:
                connection.close()
        self.assertTrue(wait_until(lambda: wire.fetch(proxy.web).status == 200, "a free place"))

    def test_connections_above_the_limit_are_counted_as_rejected(self):
        done = threading.Event()
        self.addCleanup(done.set)

        def handler(exchange):
            done.wait(30)
            exchange.reply(200)

        with Origin(handler, name="a") as origin, Site([origin], listener={"limits": {"max_connections": 4}}) as proxy:
            busy = [wire.Connection(proxy.web) for _ in range(4)]
            for connection in busy:
                connection.send(wire.request_text("GET", "/"))
            self.assertTrue(origin.wait(lambda: len(origin.requests) == 4))
            surplus = wire.Connection(proxy.web)
            surplus.send(wire.request_text("GET", "/"))
            proxy.wait_metric(1, "clockwise_http_connections_rejected_total", reason="limit")
            done.set()
            for connection in busy:
                self.assertEqual(connection.response().status, 200)
                connection.close()
            surplus.close()


class ShortOfDescriptors(Site):
    LIMIT = 128

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", f'ulimit -n {self.LIMIT}; exec "$@"', "sh", BINARY, "serve", "-c", str(self.file)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self


class Descriptors(unittest.TestCase):
    def test_a_proxy_short_of_descriptors_does_not_spin_and_recovers(self):
        with Origin(name="a") as origin, ShortOfDescriptors([origin]) as proxy:
            self.crowd(proxy)

    def crowd(self, proxy):
        crowd = [socket.create_connection(proxy.web, timeout=10) for _ in range(300)]
        before, started = proxy.cpu_seconds(), time.monotonic()
        for sock in crowd:
            sock.settimeout(0.01)
        wait_until(lambda: time.monotonic() - started > 1.0, "a second of watching")
        self.assertLess(proxy.cpu_seconds() - before, 0.5, "it spins")
        self.assertEqual(proxy.admin("/healthz").status, 200, "the admin listener has descriptors of its own")
        for sock in crowd:
            sock.close()
        self.assertTrue(wait_until(lambda: self.served(proxy), "a served request"))

    @staticmethod
    def served(proxy):
        try:
            with wire.Connection(proxy.web, timeout=2) as connection:
                return connection.request("GET", "/").status == 200
        except (OSError, wire.Quiet):
            return False


class Start(unittest.TestCase):
    """Each fault of a start is one clear line and exit code 1."""

    def fails(self, proxy, *words):
        proxy.start()
        try:
            self.assertEqual(proxy.wait_exit(), 1)
            for word in words:
                self.assertTrue(re.search(word, proxy.log()), f"{word!r} in\n{proxy.log()}")
        finally:
            proxy.kill()

    def test_a_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.fails(Site([nobody("a")], listener={"address": f"127.0.0.1:{port}"}), "web", str(port), "in use")

    def test_an_unreadable_upstream_file(self):
        proxy = Site([nobody("a")])
        proxy.servers_file.unlink()
        self.fails(proxy, "upstreams.yaml")

    def test_an_invalid_file_names_the_place(self):
        proxy = Site([nobody("a")])
        proxy.write_servers("servers:\n  - {name: a, address: 127.0.0.1:99999}\n")
        self.fails(proxy, r"upstreams\.yaml:2:\d+: .*99999")

    def test_a_name_that_does_not_resolve(self):
        self.fails(Site([{"name": "a", "address": "no-such-host.invalid:80"}]), "no-such-host.invalid")

    def test_a_name_that_does_not_resolve_may_be_left_for_later(self):
        with Origin(name="b") as b, \
                Site([{"name": "a", "address": "no-such-host.invalid:80"}, b], pool={"resolve": "lazy"}) as proxy:
            answer = wire.fetch(proxy.web, uri_owned_by(proxy, "a"))
            self.assertEqual((answer.status, answer.value("x-server")), (200, "b"))
            page = proxy.page()
            self.assertEqual(page.value("clockwise_backend_up", backend="a"), 0)
            self.assertGreater(page.sum("clockwise_backend_errors_total", backend="a", reason="resolve"), 0)


if __name__ == "__main__":
    unittest.main()
