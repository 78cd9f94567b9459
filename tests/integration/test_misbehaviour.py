"""Servers and clients that break every promise, while others use the same proxy.

Each test lets one kind of trouble loose on a proxy with one worker. Meanwhile bystanders ask another server,
each answer must be their own; afterwards nothing is in flight, memory has not grown, and no client got a
5xx that was not due. docs/failure-modes.md names the test of each behaviour.
"""

import json
import pathlib
import resource
import socket
import sys
import threading
import time
import unittest
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import SANITIZED, free_port, wait_until  # noqa: E402
from support.origin import Origin, echo  # noqa: E402
from support.scenario import Site  # noqa: E402

MIB = 1 << 20
MEMORY = (256 if SANITIZED else 64) * MIB  # what trouble may cost
HEAD = b"HTTP/1.1 200 OK\r\n"
BLOCK = b"x" * 65536


def endless(exchange):
    """A GiB to whoever takes it."""
    exchange.read_body()
    exchange.send(HEAD + b"Content-Length: %d\r\n\r\n" % (1024 * MIB))
    while True:
        exchange.send(BLOCK)


class Bystanders:
    """Clients of the good server, each on a connection of its own; whatever is wrong is in `faults`."""

    def __init__(self, proxy, uris, count=2):
        self.served = [0] * count
        self.faults = []
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(proxy.web, uris, n), daemon=True)
                         for n in range(count)]
        for thread in self._threads:
            thread.start()

    def _run(self, address, uris, number):
        try:
            with wire.Connection(address) as connection:
                while not self._stop.is_set():
                    self._ask(connection, uris[self.served[number] % len(uris)])
                    self.served[number] += 1
                    time.sleep(0.002)
        except (OSError, wire.Quiet) as error:
            self.faults.append(repr(error))

    def _ask(self, connection, uri):
        nonce = uuid.uuid4().hex
        answer = connection.request("POST", uri, {"X-Nonce": nonce}, b"body")
        if answer.status != 200 or answer.faults or not answer.complete:
            self.faults.append(f"{uri} got {answer}")
            return
        seen = json.loads(answer.body)
        if (seen["target"], seen["body_size"]) != (uri, 4) or ["X-Nonce", nonce] not in seen["fields"]:
            self.faults.append(f"{uri} got the answer of {seen}")

    def go_on(self):
        """Waits until each of them has had five more answers."""
        before = list(self.served)
        wait_until(lambda: self.faults or all(n >= b + 5 for n, b in zip(self.served, before)),
                   "the bystanders to be served")

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(20)


class Trouble(unittest.TestCase):
    due_5xx = 0     # what clients of the bad server must get, and no more

    def begin(self, bad=echo, *, port=None, **options):
        """A proxy in front of `good` and `bad`, with its bystanders. `bad`: a handler, or who listens at `port`."""
        self.done = threading.Event()
        self.good = self.enterContext(Origin(name="good"))
        if port is None:
            self.bad = self.enterContext(Origin(bad, name="bad"))
            port = self.bad.port
        servers = [self.good, {"name": "bad", "address": f"127.0.0.1:{port}"}]
        self.proxy = self.enterContext(Site(servers, **options))
        owners = self.proxy.owners([f"/{n}" for n in range(400)])
        self.uris = {name: [u for u, owner in owners.items() if owner == name] for name in set(owners.values())}
        self.others = Bystanders(self.proxy, self.uris["good"])
        self.others.go_on()
        self.memory = self.proxy.resident_bytes()
        self.addCleanup(self.end)
        self.addCleanup(self.done.set)
        return self.proxy

    def end(self):
        self.others.go_on()
        self.others.stop()
        self.assertEqual(self.others.faults, [])
        for name in ("clockwise_http_requests_in_flight", "clockwise_backend_requests_in_flight"):
            wait_until(lambda name=name: self.proxy.page().sum(name) == 0, f"{name} at 0")
        self.assertEqual(self.proxy.page().sum("clockwise_http_requests_total", code="5xx"), self.due_5xx)
        self.assertLess(self.proxy.resident_bytes() - self.memory, MEMORY)

    def connect(self, **options):
        return self.enterContext(wire.Connection(self.proxy.web, **options))

    def ask(self, method="GET", body=b"", connection=None, number=0):
        """One request for the bad server."""
        uri = self.uris["bad"][number % len(self.uris["bad"])]
        if connection:
            return connection.request(method, uri, body=body)
        return wire.fetch(self.proxy.web, uri, method, body=body)

    def send_request(self, method="GET", fields="", body=b""):
        """The request is on its way to the bad server; gives back the connection."""
        connection = self.connect()
        connection.send(f"{method} {self.uris['bad'][0]} HTTP/1.1\r\nHost: h\r\n{fields}\r\n".encode() + body)
        return connection

    def errors(self, reason):
        return self.proxy.page().sum("clockwise_backend_errors_total", backend="bad", reason=reason)


class Servers(Trouble):
    def script(self, *steps):
        """A server that plays these steps for each request: octets, seconds of sleep, or "reset", "close", "hang"."""
        def handler(exchange):
            exchange.read_body()
            for step in steps:
                if step == "reset":
                    exchange.reset()
                elif step == "close":
                    exchange.close()
                elif step == "hang":
                    self.done.wait(30)
                elif isinstance(step, bytes):
                    exchange.send(step)
                else:
                    time.sleep(step)
        return handler

    def test_a_server_that_closes_every_fourth_request_on_a_kept_connection(self):
        served = {}

        def handler(exchange):
            number = served[exchange.connection_number] = served.get(exchange.connection_number, 0) + 1
            exchange.read_body()
            if number % 4 == 0:
                exchange.close()
            echo(exchange)

        self.begin(handler)
        connections = [self.connect() for _ in range(4)]
        for number in range(200):
            answer = self.ask(connection=connections[number % 4], number=number)
            self.assertEqual(answer.status, 200)
        self.assertGreater(self.proxy.page().sum("clockwise_retries_total", reason="stale_connection"), 10)
        self.assertEqual(self.errors("reset"), 0)

    def test_a_server_that_refuses(self):
        self.begin(port=free_port())
        for method, body in (("GET", b""), ("POST", b"x"), ("PUT", b"y" * 100_000), ("DELETE", b"")):
            self.assertEqual(self.ask(method, body).status, 200)
        self.assertGreaterEqual(self.errors("connect"), 4)

    def test_a_server_whose_accept_queue_is_full(self):
        with socket.socket() as full:
            full.bind(("127.0.0.1", 0))
            full.listen(0)
            waiting = [socket.socket() for _ in range(3)]
            for sock in waiting:
                self.addCleanup(sock.close)
                sock.setblocking(False)
                sock.connect_ex(full.getsockname())
            self.begin(port=full.getsockname()[1], pool={"timeouts": {"connect": "200ms"}})
            connection = self.send_request()
            self.others.go_on()
            self.assertEqual(connection.response().status, 200)
            self.assertGreaterEqual(self.errors("timeout"), 1)

    def test_a_server_that_accepts_and_is_silent(self):
        self.due_5xx = 1
        self.begin(self.script("hang"), pool={"timeouts": {"response": "500ms"}})
        connection = self.send_request()
        self.others.go_on()
        self.assertEqual(connection.response().status, 504)
        self.assertGreaterEqual(self.errors("timeout"), 1)

    def test_a_server_that_resets_before_the_head(self):
        self.due_5xx = 1
        self.begin(self.script("reset"))
        self.assertEqual(self.ask().status, 200, "from the next server")
        self.assertEqual(self.ask("POST", b"once").status, 502)
        self.assertEqual(len([r for r in self.bad.requests if r.method == b"POST"]), 1)

    def test_a_server_that_resets_inside_the_head(self):
        self.due_5xx = 1
        self.begin(self.script(HEAD + b"X-A: ", 0.05, "reset"))
        self.assertEqual(self.ask().status, 502)

    def test_a_server_that_resets_behind_the_head(self):
        self.begin(self.script(HEAD + b"Content-Length: 5\r\n\r\n", 0.05, "reset"))
        answer = self.ask()
        self.assertEqual((answer.status, answer.cut), (200, True))
        self.assertGreaterEqual(self.errors("reset"), 1)

    def test_a_server_that_resets_inside_the_body(self):
        self.begin(self.script(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", 0.05, "reset"))
        self.assertTrue(self.ask().cut)

    def test_a_server_that_sends_half_an_answer_and_hangs(self):
        self.begin(self.script(HEAD + b"Content-Length: 10\r\n\r\nhello", "hang"), pool={"timeouts": {"response": "500ms"}})
        connection = self.send_request()
        self.others.go_on()
        answer = connection.response()
        self.assertEqual((bytes(answer.body), answer.cut), (b"hello", True))
        self.assertTrue(connection.closed())

    def test_a_server_that_drips(self):
        # 32 octets, one every 100 ms: longer in all than timeouts.response, but never silent for it.
        answer = HEAD + b"Content-Length: 12\r\n\r\n"
        self.begin(self.script(answer, *[step for octet in b"dripping on," for step in (0.1, bytes([octet]))]),
                   pool={"timeouts": {"response": "500ms"}})
        connection = self.send_request()
        self.others.go_on()
        self.assertEqual(connection.response().text, "dripping on,")

    def test_a_server_whose_head_drips(self):
        self.due_5xx = 1
        self.begin(self.script(HEAD, *[step for _ in range(100) for step in (0.05, b"X-A: b\r\n")]),
                   pool={"timeouts": {"response": "500ms"}})
        connection = self.send_request()
        self.others.go_on()
        self.assertEqual(connection.response().status, 504)

    def test_a_server_whose_head_does_not_end(self):
        def handler(exchange):
            exchange.send(HEAD)
            while True:
                exchange.send(b"X-A: b\r\n" * 1000)

        self.due_5xx = 1
        self.begin(handler)
        self.assertEqual(self.ask().status, 502)
        self.assertGreaterEqual(self.errors("protocol"), 1)
        self.assertTrue(self.bad.wait(lambda: self.bad.open_connections == 0))

    def test_a_server_that_only_announces(self):
        def handler(exchange):
            while True:
                exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")

        self.due_5xx = 1
        self.begin(handler)
        answer = self.ask()
        self.assertEqual(answer.status, 502)
        self.assertLess(len(answer.interim), 100)
        self.assertTrue(self.bad.wait(lambda: self.bad.open_connections == 0))

    def test_a_server_whose_chunks_do_not_end(self):
        def handler(exchange):
            exchange.read_body()
            exchange.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            while True:
                exchange.send(b"10000\r\n" + BLOCK + b"\r\n")

        self.begin(handler)
        connection = self.send_request()
        head = connection.head()
        pieces = wire.body_pieces(head, connection.reader)
        size = 0
        while size < 20 * MIB:
            size += len(next(pieces))
        self.others.go_on()
        connection.close()
        self.assertTrue(self.bad.wait(lambda: self.bad.open_connections == 0), "the transfer goes on for nobody")

    def test_a_server_that_answers_twice(self):
        answer = HEAD + b"X-Server: bad\r\nContent-Length: 4\r\n\r\n"
        self.begin(self.script(answer + b"mine" + answer + b"POIS"))
        with self.connect() as connection:
            for number in range(20):
                self.assertEqual(self.ask(connection=connection, number=number).text, "mine")
        self.assertEqual(self.bad.connections, 20, "none is used again")

    def test_a_server_that_answers_twice_after_an_answer_of_any_size(self):
        """Where an answer ends does not depend on what one read, or one splice, happened to take."""
        poison = HEAD + b"Content-Length: 4\r\n\r\nPOIS"

        def handler(exchange):
            exchange.read_body()
            size = int(exchange.request.value("x-size"))
            head = HEAD + b"Content-Length: %07d\r\n\r\n" % size
            # What a read takes is a power of two; the answer ends there, or near.
            exchange.send(head + b"x" * (size - len(head)) + b"y" * len(head) + poison)

        self.begin(handler)
        head = len(HEAD + b"Content-Length: 1234567\r\n\r\n")
        sizes = [2 ** n - head * (n % 2) + near for n in range(11, 22) for near in (-head, 0, 1)]
        requests = [wire.request_text("GET", self.uris["bad"][0], {"X-Size": size}) for size in sizes for _ in range(2)]
        connection = self.connect().send(b"".join(requests))
        for size in sizes:
            for _ in range(2):
                answer = connection.response()
                self.assertEqual((answer.status, len(answer.body)), (200, size))
                self.assertNotIn(b"POIS", answer.body)

    def test_a_server_that_sends_while_idle(self):
        self.begin(self.script(HEAD + b"Content-Length: 4\r\n\r\nmine", 0.05,
                               b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\n\r\nPOIS"))
        with self.connect() as connection:
            for number in range(5):
                self.assertEqual(self.ask(connection=connection, number=number).text, "mine")
                # By then its unasked answer is here.
                self.assertTrue(self.bad.wait(lambda: self.bad.open_connections == 0))

    def test_a_server_that_speaks_first(self):
        """What comes before the request was sent is no answer to it."""
        listener = self.enterContext(socket.create_server(("127.0.0.1", 0)))
        greeted = []

        def serve():
            while True:
                try:
                    sock, _ = listener.accept()
                    sock.sendall(b"220 mail.example ESMTP ready\r\n")
                except OSError:
                    return
                greeted.append(sock)
        threading.Thread(target=serve, daemon=True).start()
        self.due_5xx = 1
        self.begin(port=listener.getsockname()[1])
        self.assertEqual(self.ask().status, 502)
        for sock in greeted:
            sock.close()

    def test_a_server_whose_length_is_wrong(self):
        for body, length, cut in ((b"hello", 3, False), (b"hello", 9, True)):
            with self.subTest(length=length):
                self.begin(self.script(HEAD + b"Content-Length: %d\r\n\r\n" % length + body, "hang"),
                           pool={"timeouts": {"response": "500ms"}})
                answer = self.ask()
                self.assertEqual((bytes(answer.body), answer.cut), (body[:length], cut))
                self.done.set()
                self.doCleanups()

    def test_a_server_that_never_reads_the_body(self):
        self.due_5xx = 1
        self.begin(lambda exchange: self.done.wait(30), pool={"timeouts": {"response": "1s"}})
        connection = self.connect(timeout=30)
        connection.send(f"POST {self.uris['bad'][0]} HTTP/1.1\r\nHost: h\r\nContent-Length: {200 * MIB}\r\n\r\n".encode())
        sender = threading.Thread(target=self.push, args=(connection, 200 * MIB), daemon=True)
        sender.start()
        self.others.go_on()
        self.assertEqual(connection.response("POST").status, 504)
        connection.close()
        sender.join(20)

    @staticmethod
    def push(connection, size):
        try:
            for _ in range(size // len(BLOCK)):
                connection.send(BLOCK)
        except OSError:
            pass

    def early(self, last):
        """A server that refuses an upload in the middle of it."""
        def handler(exchange):
            next(exchange.pieces())
            exchange.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
            if last == "close":
                exchange.close()
            time.sleep(0.1)
            exchange.reset()

        self.begin(handler)
        connection = self.connect()
        connection.send(f"POST {self.uris['bad'][0]} HTTP/1.1\r\nHost: h\r\nContent-Length: {20 * MIB}\r\n\r\n".encode())
        sender = threading.Thread(target=self.push, args=(connection, 20 * MIB), daemon=True)
        sender.start()
        answer = connection.response("POST")
        self.assertEqual((answer.status, answer.text), (413, "big"))
        self.others.go_on()
        connection.close()
        sender.join(20)

    def test_a_server_that_answers_413_and_closes_while_the_body_comes(self):
        self.early("close")

    def test_a_server_that_answers_413_and_resets_while_the_body_comes(self):
        self.early("reset")

    def test_a_server_that_half_closes_behind_each_answer(self):
        ended = threading.Semaphore(0)

        def handler(exchange):
            echo(exchange)
            exchange.sock.shutdown(socket.SHUT_WR)
            ended.release()

        self.begin(handler)
        with self.connect() as connection:
            for number in range(30):
                answer = self.ask("POST" if number % 2 else "GET", connection=connection, number=number)
                self.assertEqual(answer.status, 200)
                # A POST that crossed with the end could not be sent again.
                self.assertTrue(ended.acquire(timeout=10))

    def test_a_server_that_half_closes_before_it_answers(self):
        def handler(exchange):
            exchange.read_body()
            exchange.sock.shutdown(socket.SHUT_WR)
            self.done.wait(0.2)

        self.due_5xx = 1
        self.begin(handler)
        self.assertEqual(self.ask().status, 200, "from the next server")
        self.assertEqual(self.ask("POST", b"x").status, 502)

    def test_all_servers_die_and_come_back(self):
        ports = {name: free_port() for name in ("a", "b", "c")}
        with Site([{"name": n, "address": f"127.0.0.1:{p}"} for n, p in ports.items()]) as proxy:
            for _ in range(3):
                origins = [Origin(name=n, port=p) for n, p in ports.items()]
                # Nothing is remembered against them: the first request is served.
                for number in range(30):
                    self.assertEqual(wire.fetch(proxy.web, f"/{number}").status, 200)
                for origin in origins:
                    origin.stop()
                for number in range(30):
                    self.assertIn(wire.fetch(proxy.web, f"/{number}").status, (502, 503, 504))
            self.assertEqual(proxy.page().sum("clockwise_http_requests_in_flight"), 0)


class Clients(Trouble):
    def crowd(self, count, octets=b""):
        """So many connections, each having sent this."""
        sockets = []
        for _ in range(count):
            sock = socket.create_connection(self.proxy.web, timeout=20)
            self.addCleanup(sock.close)
            if octets:
                sock.sendall(octets)
            sockets.append(sock)
        return sockets

    def test_clients_whose_heads_drip(self):
        self.begin(listener={"timeouts": {"header": "1s"}})
        crowd = [self.connect() for _ in range(200)]
        for connection in crowd:
            connection.send(b"GET / HTTP/1.1\r\nHost: h\r\n")
        timed_out = lambda: self.proxy.page().sum("clockwise_http_request_errors_total", reason="timeout")
        deadline = time.monotonic() + 30
        while timed_out() < len(crowd) and time.monotonic() < deadline:
            for connection in crowd:
                connection.send(b"X: y\r\n")
            self.others.go_on()
        self.assertEqual(timed_out(), len(crowd))
        for connection in crowd:
            self.assertEqual(connection.response().status, 408)
            self.assertTrue(connection.closed())

    def test_clients_whose_bodies_stall(self):
        self.begin(listener={"timeouts": {"body": "500ms"}})
        part = f"POST {self.uris['bad'][0]} HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\npart".encode()
        crowd = [self.connect() for _ in range(50)]
        for connection in crowd:
            connection.send(part)
        self.others.go_on()
        for connection in crowd:
            self.assertEqual(connection.response("POST").status, 408)
        self.assertTrue(self.bad.wait(lambda: len(self.bad.requests) == 50 and all(r.cut for r in self.bad.requests)))

    def test_clients_that_read_slowly(self):
        self.begin(endless)
        crowd = [self.connect(receive_buffer=65536) for _ in range(8)]
        for connection in crowd:
            connection.send(wire.request_text("GET", self.uris["bad"][0]))
        for connection in crowd:
            self.assertEqual(connection.head().status, 200)
        for _ in range(20):
            for connection in crowd:
                connection.reader.fill()
                connection.reader.buffer.clear()
            self.others.go_on()
        self.assertLess(self.proxy.resident_bytes() - self.memory, MEMORY)
        for connection in crowd:
            connection.close()
        self.assertTrue(self.bad.wait(lambda: self.bad.open_connections == 0))

    def test_clients_that_ask_and_never_read(self):
        """Answers that nobody takes stop the reading of requests."""
        def handler(exchange):
            exchange.read_body()
            exchange.reply(200, BLOCK * 4)

        self.begin(handler)
        connection = self.connect(receive_buffer=4096)
        connection.sock.setblocking(False)
        request = wire.request_text("GET", self.uris["bad"][0]) * 100
        sent = 0
        try:
            while sent < 50 * MIB:
                sent += connection.sock.send(request)
                time.sleep(0.001)
        except BlockingIOError:
            pass
        self.others.go_on()
        asked = len(self.bad.requests)
        self.others.go_on()
        self.assertLess(len(self.bad.requests), asked + 100, "it goes on asking")
        self.assertLess(self.proxy.resident_bytes() - self.memory, MEMORY)
        connection.close()

    def test_clients_that_leave_inside_an_upload(self):
        self.begin()
        for leave in ("close", "abort"):
            for framing, part in (("Content-Length: 1000000\r\n", BLOCK), ("Transfer-Encoding: chunked\r\n", b"5\r\nhello\r\n")):
                seen = len(self.bad.requests)
                connection = self.send_request("POST", framing, part)
                self.assertTrue(self.bad.wait(lambda: len(self.bad.requests) > seen and self.bad.requests[-1].body))
                getattr(connection, leave)()
                self.assertTrue(self.bad.wait(lambda: self.bad.requests[-1].cut), (leave, framing))
                self.assertFalse(self.bad.requests[-1].complete)

    def test_clients_that_leave_inside_a_download(self):
        self.begin(endless)
        for leave in ("close", "abort"):
            connection = self.send_request()
            self.assertEqual(connection.head().status, 200)
            getattr(connection, leave)()
            self.assertTrue(self.bad.wait(lambda: self.bad.open_connections == 0), leave)
        self.proxy.wait_metric(2, "clockwise_http_requests_total", code="aborted")

    def test_clients_that_reset_while_they_wait(self):
        def handler(exchange):
            exchange.read_body()
            exchange.reader.fill()  # returns when the proxy has left
            exchange.close()

        self.begin(handler)
        crowd = [self.send_request() for _ in range(50)]
        self.assertTrue(self.bad.wait(lambda: len(self.bad.requests) == 50))
        for connection in crowd:
            connection.abort()
        self.assertTrue(self.bad.wait(lambda: self.bad.open_connections == 0))

    def test_clients_that_half_close(self):
        self.begin()
        for request in (wire.request_text("GET", self.uris["bad"][0]),
                        wire.request_text("POST", self.uris["bad"][0], body=b"body"),
                        wire.request_text("GET", self.uris["bad"][0]) * 5):
            connection = self.connect().send(request)
            connection.sock.shutdown(socket.SHUT_WR)
            for _ in range(request.count(b"HTTP/1.1")):
                self.assertEqual(connection.response().status, 200)
            self.assertTrue(connection.closed())

    def pipeline(self, count):
        uris = self.uris["bad"] + self.uris["good"]
        targets = [f"{uris[n % len(uris)]}" for n in range(count)]
        requests = b"".join(wire.request_text("POST", t, {"X-Number": n}, b"b" * (n % 50)) if n % 3 else
                            wire.request_text("GET", t, {"X-Number": n}) for n, t in enumerate(targets))
        return targets, requests

    def test_clients_that_pipeline_a_hundred_requests(self):
        self.begin()
        targets, requests = self.pipeline(100)
        connection = self.connect().send(requests)
        for number, target in enumerate(targets):
            seen = json.loads(connection.response().body)
            self.assertEqual(seen["target"], target)
            self.assertIn(["X-Number", str(number)], seen["fields"])

    def test_clients_that_pipeline_a_hundred_requests_and_leave(self):
        self.begin()
        _, requests = self.pipeline(100)
        for leave in ("close", "abort"):
            for _ in range(10):
                connection = wire.Connection(self.proxy.web).send(requests)
                getattr(connection, leave)()
        self.others.go_on()
        for request in self.bad.requests + self.good.requests:
            self.assertEqual(request.faults, [])

    def test_clients_that_speak_another_language(self):
        self.due_5xx = 1  # to HTTP/2: 505
        self.begin()
        languages = {
            "tls": bytes.fromhex("16030100c8010000c40303") + bytes(range(190)),
            "http/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
            "redis": b"*1\r\n$4\r\nPING\r\n",
            "proxy protocol": b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
            "nothing": b"\0" * 100 + b"\n",
            "every octet": bytes(range(1, 256)) + b"\n",
        }
        for name, octets in languages.items():
            with self.subTest(name):
                connection = self.connect().send(octets + (b"\n" if name == "tls" else b""))
                answer = connection.response()
                self.assertIn(answer.status, (400, 505))
                self.assertTrue(connection.closed())
        self.assertEqual(self.bad.requests, [])

    def test_a_tls_hello_without_a_line_end(self):
        """A plain port that waits for the line end would leave a TLS client to its own timeout."""
        self.begin()
        hello = bytes.fromhex("16030100c8010000c40303") + bytes(b for b in range(0x20, 0xe0))
        connection = self.connect().send(hello)
        self.assertEqual(connection.response().status, 400)
        self.assertTrue(connection.closed())

    def test_clients_that_connect_and_are_silent(self):
        self.begin(listener={"timeouts": {"header": "500ms", "idle": "500ms"}})
        crowd = self.crowd(200)
        self.others.go_on()
        for sock in crowd:
            self.assertEqual(sock.recv(100), b"", "closed without a word")
        self.assertEqual(self.proxy.page().sum("clockwise_http_request_errors_total"), 0)

    def test_clients_that_connect_and_leave(self):
        self.begin()
        for number in range(1000):
            sock = socket.create_connection(self.proxy.web, timeout=10)
            if number % 3 == 0:
                sock.sendall(b"GET / HT")
            if number % 2:
                wire.abort(sock)
            sock.close()
        self.others.go_on()
        wait_until(lambda: self.proxy.page().sum("clockwise_http_connections") <= 3, "their connections to end")

    def test_thousands_of_connections(self):
        count = min(3000, (resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 400) // 2)
        self.begin()
        before = self.proxy.resident_bytes()
        crowd = self.crowd(count)
        wait_until(lambda: self.proxy.page().sum("clockwise_http_connections") >= count, "all to be accepted")
        self.others.go_on()
        if not SANITIZED:
            self.assertLess((self.proxy.resident_bytes() - before) / count, 4096, "octets for an idle connection")
        for sock in crowd[::100]:
            sock.sendall(wire.request_text("GET", self.uris["bad"][0]))
            self.assertTrue(sock.recv(1000).startswith(b"HTTP/1.1 200 "))
        for sock in crowd:
            sock.close()

    def test_clients_that_send_too_much_of_everything(self):
        self.begin(listener={"limits": {"body_size": "1m"}})
        uri = self.uris["bad"][0].encode()
        start = b"GET " + uri + b" HTTP/1.1\r\nHost: h\r\n"
        chunked = b"POST " + uri + b" HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        too_much = {
            "target": (b"GET /" + b"a" * MIB + b" HTTP/1.1\r\nHost: h\r\n\r\n", 414),
            "fields": (start + b"a: b\r\n" * 100_000 + b"\r\n", 431),
            "value": (start + b"X: " + b"v" * MIB + b"\r\n\r\n", 431),
            "name": (start + b"X" * MIB + b": v\r\n\r\n", 431),
            "method": (b"G" * MIB + b" / HTTP/1.1\r\nHost: h\r\n\r\n", 414),
            "length": (b"POST " + uri + b" HTTP/1.1\r\nHost: h\r\nContent-Length: 9000000000000000000\r\n\r\n", 413),
            "chunks": (chunked + (b"1000\r\n" + b"c" * 4096 + b"\r\n") * 1000, 413),
            "chunk size": (chunked + b"1" + b"0" * MIB, 400),
            "extension": (chunked + b"1;" + b"e" * MIB, 400),
            "trailers": (chunked + b"0\r\n" + b"t: u\r\n" * 200_000 + b"\r\n", 400),
        }
        for name, (octets, status) in too_much.items():
            with self.subTest(name):
                connection = self.connect()
                sender = threading.Thread(target=self.push, args=(connection, octets), daemon=True)
                sender.start()
                self.assertEqual(connection.response().status, status)
                self.others.go_on()
                connection.close()
                sender.join(20)
        self.assertTrue(self.bad.wait(lambda: self.bad.open_connections == 0))
        self.assertFalse([r for r in self.bad.requests if r.complete])

    @staticmethod
    def push(connection, octets):
        try:
            connection.send(octets)
        except OSError:
            pass

    def test_a_client_whose_chunks_are_one_octet(self):
        self.begin()
        count = 20_000 if SANITIZED else 200_000
        connection = self.send_request("POST", "Transfer-Encoding: chunked\r\n")
        connection.send(b"1\r\nx\r\n" * count + b"0\r\n\r\n")
        self.others.go_on()
        self.assertEqual(json.loads(connection.response("POST").body)["body_size"], count)

    def test_a_client_that_waits_for_a_100_and_never_sends(self):
        self.begin(listener={"timeouts": {"body": "500ms"}})
        connection = self.send_request("POST", "Content-Length: 5\r\nExpect: 100-continue\r\n")
        self.others.go_on()
        answer = connection.response("POST")
        self.assertEqual((answer.status, len(answer.interim)), (408, 1))
        self.assertTrue(self.bad.wait(lambda: self.bad.requests[-1].cut))

    def test_more_connections_than_are_allowed(self):
        self.begin(listener={"limits": {"max_connections": 20}})
        crowd = self.crowd(40)  # silent ones make room for each other, busy ones do not
        self.others.go_on()
        self.assertLessEqual(self.proxy.page().sum("clockwise_http_connections"), 20)
        self.others.go_on()
        for sock in crowd:
            sock.close()
        wait_until(lambda: self.proxy.page().sum("clockwise_http_connections") <= 2, "room")
        self.assertEqual(self.ask().status, 200)


if __name__ == "__main__":
    unittest.main()
