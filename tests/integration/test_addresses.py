"""Listeners and servers on unix sockets and IPv6, and what servers are told about the client."""

import json
import os
import pathlib
import socket
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import Proxy, Upstream, configuration  # noqa: E402


def fetch(sock, request=b"GET / HTTP/1.1\r\nHost: h.example\r\nConnection: close\r\n\r\n"):
    """One request on a connected socket, closed after it."""
    with sock:
        sock.settimeout(15)
        sock.sendall(request)
        reader = wire.Reader(sock)
        return wire.read_body(wire.read_response_head(reader), reader)


def unix_socket(path):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    return sock


class UnixListener(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory(prefix="clockwise-test-"))
        self.path = os.path.join(folder, "web.sock")
        self.upstream = self.enterContext(Upstream("a"))

    def config(self, name="web", **options):
        document = configuration([self.upstream], workers=2, **options)
        document["listeners"][0].update(name=name, address=f"unix:{self.path}")
        return document

    def test_all_workers_serve_it(self):
        with Proxy(self.config()) as proxy:
            idle = [unix_socket(self.path) for _ in range(8)]
            for sock in [*idle, unix_socket(self.path)]:
                self.assertEqual(fetch(sock).text, "a")
            self.assertEqual(proxy.metric("clockwise_http_requests_total", listener="web", code="2xx"), 9)
        self.assertEqual(self.upstream.requests[0].field("X-Forwarded-For"), "unknown")
        self.assertFalse(os.path.exists(self.path), "the socket's file is left behind")

    def test_a_file_that_a_killed_process_left_is_replaced(self):
        killed = Proxy(self.config())
        with killed:
            self.assertEqual(fetch(unix_socket(self.path)).status, 200)
            killed.kill()
            killed.process.returncode = 0  # as wanted
        self.assertTrue(os.path.exists(self.path))
        with Proxy(self.config()):
            self.assertEqual(fetch(unix_socket(self.path)).status, 200)

    def test_the_path_of_a_running_proxy_is_not_taken(self):
        with Proxy(self.config()):
            other = Proxy(self.config()).start()
            self.assertEqual(other.wait_exit(), 1)
            self.assertRegex(other.log(), r"listener web: cannot listen on unix:\S+: .*in use")
            self.assertEqual(fetch(unix_socket(self.path)).status, 200)

    def test_it_keeps_serving_under_another_name(self):
        with Proxy(self.config()) as proxy:
            self.assertEqual(proxy.reload(self.config("other")).status, 200)
            self.assertEqual(fetch(unix_socket(self.path)).status, 200)
            self.assertGreaterEqual(proxy.metric("clockwise_http_requests_total", code="2xx"), 1)


class UnixServer(unittest.TestCase):
    def serve(self, path):
        listener = self.enterContext(socket.socket(socket.AF_UNIX))
        listener.bind(path)
        listener.listen(8)

        def accept():
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(sock,), daemon=True).start()

        def answer(sock):
            reader = wire.Reader(sock)
            with sock:
                try:
                    while True:
                        request = wire.read_body(wire.read_request_head(reader), reader)
                        text = json.dumps([request.value("host"), len(request.body), request.faults]).encode()
                        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))
                except (wire.Quiet, OSError):
                    return
        threading.Thread(target=accept, daemon=True).start()

    def test_it_is_served_from(self):
        with tempfile.TemporaryDirectory(prefix="clockwise-test-") as folder:
            path = os.path.join(folder, "a.sock")
            self.serve(path)
            with Proxy(configuration([{"name": "a", "address": f"unix:{path}"}])) as proxy:
                web = "127.0.0.1", proxy.port()
                self.assertEqual(json.loads(wire.fetch(web).text), ["h.example", 0, []])
                self.assertEqual(json.loads(wire.fetch(web, method="POST", body=b"x" * 3_000_000).text),
                                 ["h.example", 3_000_000, []])
                # An HTTP/1.0 request may come without Host, but may not go on without one.
                self.assertEqual(json.loads(wire.fetch(web, host=None, version="HTTP/1.0").text), ["localhost", 0, []])


class Refusals(unittest.TestCase):
    """What the proxy refuses by itself says so as its other errors do."""

    def test_form_and_reason(self):
        rows = [("malformed", b"GET / HTTP/1.1\r\nHost: a b\r\nAccept: application/json\r\n\r\n", 400, "http_request_error"),
                ("method", b"TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", 405, "http_request_denied"),
                ("framing", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\n", 400, "http_request_error"),
                ("body", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999\r\n\r\n", 413, "http_request_error")]
        with Upstream("a") as a, Proxy(configuration([a], listener={"limits": {"body_size": 100}})) as proxy:
            for name, request, status, reason in rows:
                with self.subTest(name):
                    answer = fetch(socket.create_connection(("127.0.0.1", proxy.port())), request)
                    self.assertEqual((answer.status, answer.value("proxy-status")), (status, f"clockwise; error={reason}"))
                    if name == "malformed":
                        self.assertEqual(json.loads(answer.text)["error"]["code"], reason)
            with wire.Connection(("127.0.0.1", proxy.port())) as connection:
                connection.send(b"HEAD / HTTP/1.1\r\nHost: a b\r\n\r\n")
                self.assertEqual(connection.response("HEAD").status, 400)
                self.assertTrue(connection.closed(), "a refusal of HEAD has no body")


if __name__ == "__main__":
    unittest.main()
