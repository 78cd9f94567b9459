"""Bodies pass in both directions, whole, in order and in constant memory."""

import hashlib
import pathlib
import socket
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import SANITIZED, wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site  # noqa: E402

MIB = 1 << 20
BIG = (40 if SANITIZED else 200) * MIB
MEMORY = (256 if SANITIZED else 64) * MIB     # growth of resident memory; a sanitizer needs more
# What may wait between a stalled reader and the server: the proxy's buffer and the kernel's, both ways.
AHEAD = 4 * MIB
HELD = MIB + 256 * 1024                       # a pipe of 1 MiB for large bodies, and a buffer
BLOCK = bytes(range(256)) * 256               # 64 KiB


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def send_big(send, size, framing):
    """`size` octets of body in one of the framings; returns their digest."""
    digest = hashlib.sha1()
    for _ in range(size // len(BLOCK)):
        digest.update(BLOCK)
        send(chunk(BLOCK) if framing == "chunked" else BLOCK)
    if framing == "chunked":
        send(b"0\r\n\r\n")
    return digest.hexdigest()


FRAMING_FIELD = {"length": f"Content-Length: {BIG}\r\n", "chunked": "Transfer-Encoding: chunked\r\n", "close": ""}


def digest_of(pieces):
    digest, size = hashlib.sha1(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    return digest.hexdigest(), size


class Streaming(unittest.TestCase):
    def site(self, handler, listener=None, pool=None, **origin):
        self.origin = self.enterContext(Origin(handler, name="a", **origin))
        return self.enterContext(Site([self.origin], listener=listener, pool=pool))

    # --- large bodies

    def download(self, framing):
        sent = {}

        def handler(exchange):
            exchange.read_body()
            exchange.send(f"HTTP/1.1 200 OK\r\n{FRAMING_FIELD[framing]}\r\n".encode())
            sent["digest"] = send_big(exchange.send, BIG, framing)
            if framing == "close":
                exchange.close()

        proxy = self.site(handler)
        before = proxy.resident_bytes()
        with wire.Connection(proxy.web, timeout=60) as connection:
            connection.send(wire.request_text("GET", "/big"))
            head = connection.head()
            digest, size = digest_of(wire.body_pieces(head, connection.reader))
        self.assertTrue(head.complete)
        # Whoever has read all may be faster than who has sent it and only notes it down.
        wait_until(lambda: "digest" in sent, "the server to be done")
        self.assertEqual((digest, size), (sent["digest"], BIG))
        self.assertLess(proxy.resident_bytes() - before, MEMORY)

    def test_large_download_with_content_length(self):
        self.download("length")

    def test_large_download_chunked(self):
        self.download("chunked")

    def test_large_download_delimited_by_close(self):
        self.download("close")

    def upload(self, framing):
        got = {}

        def handler(exchange):
            got["digest"], got["size"] = digest_of(exchange.pieces())
            exchange.reply(200, b"taken")

        proxy = self.site(handler)
        before = proxy.resident_bytes()
        with wire.Connection(proxy.web, timeout=60) as connection:
            connection.send(f"POST /big HTTP/1.1\r\nHost: h\r\n{FRAMING_FIELD[framing]}\r\n".encode())
            digest = send_big(connection.send, BIG, framing)
            self.assertEqual(connection.response().text, "taken")
        self.assertEqual((got["digest"], got["size"]), (digest, BIG))
        self.assertEqual(self.origin.requests[-1].framing, framing)
        self.assertLess(proxy.resident_bytes() - before, MEMORY)

    def test_large_upload_with_content_length(self):
        self.upload("length")

    def test_large_upload_chunked(self):
        self.upload("chunked")

    # --- backpressure

    def stalled(self, count):
        """Waits until `count()` stays the same for a while, and returns it."""
        seen = []

        def still():
            seen.append(count())
            return len(seen) > 40 and len(set(seen[-40:])) == 1 and seen[-1] > 0
        wait_until(still, lambda: f"the sender to stall, it sent {count()}", 60)
        return count()

    def test_a_client_that_does_not_read_stops_the_upstream(self):
        sent = [0]

        def handler(exchange):
            exchange.read_body()
            exchange.send(f"HTTP/1.1 200 OK\r\n{FRAMING_FIELD['length']}\r\n".encode())

            def count(data):
                exchange.send(data)
                sent[0] += len(data)
            send_big(count, BIG, "length")

        proxy = self.site(handler)
        before = proxy.resident_bytes()
        with wire.Connection(proxy.web, timeout=60, receive_buffer=65536) as connection:
            connection.send(wire.request_text("GET", "/big"))
            head = connection.head()
            self.assertLess(self.stalled(lambda: sent[0]), self.in_kernel() + AHEAD)
            self.assert_little_is_held(
                proxy, "clockwise_backend_received_bytes_total", "clockwise_http_sent_bytes_total")
            self.assertLess(proxy.resident_bytes() - before, 16 * MIB if not SANITIZED else MEMORY)
            _, size = digest_of(wire.body_pieces(head, connection.reader))
        self.assertEqual(size, BIG)

    def test_an_upstream_that_does_not_read_stops_the_client(self):
        go, sent = threading.Event(), [0]

        def handler(exchange):
            go.wait(60)
            exchange.received = digest_of(exchange.pieces())[1]
            exchange.reply(200, str(exchange.received).encode())

        proxy = self.site(handler, receive_buffer=65536)
        before = proxy.resident_bytes()
        with wire.Connection(proxy.web, timeout=60) as connection:
            connection.send(f"POST /big HTTP/1.1\r\nHost: h\r\n{FRAMING_FIELD['length']}\r\n".encode())

            def push():
                def count(data):
                    connection.send(data)
                    sent[0] += len(data)
                send_big(count, BIG, "length")
            pusher = threading.Thread(target=push, daemon=True)
            pusher.start()
            self.assertLess(self.stalled(lambda: sent[0]), self.in_kernel() + AHEAD)
            self.assert_little_is_held(
                proxy, "clockwise_http_received_bytes_total", "clockwise_backend_sent_bytes_total")
            self.assertLess(proxy.resident_bytes() - before, 16 * MIB if not SANITIZED else MEMORY)
            go.set()
            self.assertEqual(connection.response().text, str(BIG))
            pusher.join(60)

    def assert_little_is_held(self, proxy, read, written):
        """What the proxy has read and not yet written is bounded by its pipe, not by the body."""
        page = proxy.page()
        self.assertLess(page.sum(read) - page.sum(written), HELD)

    @staticmethod
    def in_kernel():
        """The most that socket buffers hold on both hops, by the limits of this machine."""
        largest = 0
        for name in ("tcp_rmem", "tcp_wmem"):
            with open(f"/proc/sys/net/ipv4/{name}", encoding="ascii") as limits:
                largest += int(limits.read().split()[2])
        return 2 * largest

    # --- framing of small answers

    def test_no_body_for_head_204_and_304(self):
        def handler(exchange):
            exchange.read_body()
            status = int(exchange.request.target[1:])
            length = b"" if status == 204 else b"Content-Length: 1234\r\n"
            exchange.send(b"HTTP/1.1 %d X\r\n%sETag: \"e\"\r\n\r\n" % (status, length))

        proxy = self.site(handler)
        with wire.Connection(proxy.web) as connection:
            for method, status in [("HEAD", 200), ("GET", 204), ("GET", 304), ("HEAD", 404), ("GET", 204)]:
                answer = connection.request(method, f"/{status}")
                self.assertEqual((answer.status, answer.body, answer.faults), (status, b"", []))
                self.assertEqual(answer.value("etag"), '"e"')
                self.assertEqual(answer.value("content-length"), None if status == 204 else "1234")

    def test_empty_bodies(self):
        def handler(exchange):
            exchange.read_body()
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                          if exchange.request.target == b"/chunked" else
                          b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        proxy = self.site(handler)
        with wire.Connection(proxy.web) as connection:
            for target in ("/chunked", "/length", "/chunked"):
                answer = connection.request("GET", target)
                self.assertEqual((answer.status, answer.body, answer.complete), (200, b"", True))
            connection.send(b"POST /length HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
            self.assertEqual(connection.response().status, 200)

    def test_chunks_arrive_before_the_response_ends(self):
        go = threading.Event()

        def handler(exchange):
            exchange.read_body()
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"first"))
            go.wait(20)
            exchange.send(chunk(b"second") + b"0\r\n\r\n")

        proxy = self.site(handler)
        with wire.Connection(proxy.web) as connection:
            connection.send(wire.request_text("GET", "/events"))
            head = connection.head()
            pieces = wire.body_pieces(head, connection.reader)
            self.assertEqual(next(pieces), b"first")
            go.set()
            self.assertEqual(b"".join(pieces), b"second")

    def test_request_chunks_reach_the_server_before_the_request_ends(self):
        seen = threading.Event()

        def handler(exchange):
            for piece in exchange.pieces():
                exchange.request.body += piece
                seen.set()
            exchange.reply(200, bytes(exchange.request.body))

        proxy = self.site(handler)
        with wire.Connection(proxy.web) as connection:
            connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"first"))
            self.assertTrue(seen.wait(20))
            connection.send(chunk(b"second") + b"0\r\n\r\n")
            self.assertEqual(connection.response().text, "firstsecond")

    def test_trailers_are_dropped_or_stay_trailers(self):
        def handler(exchange):
            exchange.read_body()
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"body") +
                          b"0\r\nX-After: 1\r\n\r\n")

        proxy = self.site(handler)
        with wire.Connection(proxy.web) as connection:
            for _ in range(2):
                connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"ask") +
                                b"0\r\nX-Forwarded-For: 6.6.6.6\r\nX-Before: 1\r\n\r\n")
                answer = connection.response()
                self.assertEqual((answer.text, answer.values("x-after")), ("body", []))
                request = self.origin.requests[-1]
                self.assertEqual((bytes(request.body), request.values("x-before")), (b"ask", []))
                self.assertNotIn("6.6.6.6", request.value("x-forwarded-for"))

    # --- interim answers

    def test_a_server_that_asks_for_the_body_gets_it(self):
        proxy = self.site(None or (lambda exchange: exchange.reply(200, exchange.read_body())))
        with wire.Connection(proxy.web) as connection:
            connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
            self.assertEqual(connection.head().status, 100)
            connection.send(b"hello")
            self.assertEqual(connection.response().text, "hello")
            self.assertEqual(connection.request("GET", "/next").status, 200)

    def test_a_server_that_refuses_the_body_never_sees_it_as_a_request(self):
        proxy = self.site(lambda exchange: exchange.send(
            b"HTTP/1.1 417 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno") or exchange.close())
        with wire.Connection(proxy.web) as connection:
            connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 30\r\nExpect: 100-continue\r\n\r\n")
            answer = connection.response()
            self.assertEqual((answer.status, answer.text), (417, "no"))
            self.assertTrue(connection.closed())
        self.assertEqual(len(self.origin.requests), 1)

    def test_interim_answers_are_passed_on_to_http_1_1_only(self):
        def handler(exchange):
            exchange.read_body()
            exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" * 2)
            exchange.reply(200, b"ok")

        proxy = self.site(handler)
        with wire.Connection(proxy.web) as connection:
            answer = connection.request("GET", "/")
            self.assertEqual([(i.status, i.value("link")) for i in answer.interim], [(103, "</a.css>")] * 2)
            self.assertEqual(answer.text, "ok")
        answer = wire.fetch(proxy.web, "/", version="HTTP/1.0")
        self.assertEqual((answer.interim, answer.text), ([], "ok"))

    # --- clients of the past, and impatient ones

    def test_http_1_0_clients(self):
        def handler(exchange):
            exchange.read_body()
            if exchange.request.target == b"/chunked":
                exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"body") + b"0\r\n\r\n")
            else:
                exchange.reply(200, b"body")

        proxy = self.site(handler)
        with wire.Connection(proxy.web) as connection:
            answer = connection.request("GET", "/chunked", version="HTTP/1.0")
            self.assertEqual((answer.text, answer.framing), ("body", "close"))
            self.assertTrue(connection.closed())
        with wire.Connection(proxy.web) as connection:
            answer = connection.request("GET", "/length", version="HTTP/1.0")
            self.assertEqual(answer.text, "body")
            self.assertTrue(connection.closed())
        with wire.Connection(proxy.web) as connection:
            for _ in range(3):
                answer = connection.request("GET", "/length", {"Connection": "keep-alive"}, version="HTTP/1.0")
                self.assertEqual((answer.text, answer.tokens("connection")), ("body", [b"keep-alive"]))

    def test_fifty_pipelined_requests_are_answered_in_order(self):
        def handler(exchange):
            body = exchange.read_body()
            exchange.reply(200, exchange.request.target + b" " + body)

        proxy = self.site(handler)
        with wire.Connection(proxy.web) as connection:
            connection.send(b"".join(
                wire.request_text("POST", f"/{n}", body=b"b%d" % n) if n % 3 else wire.request_text("GET", f"/{n}")
                for n in range(50)))
            for n in range(50):
                self.assertEqual(connection.response().text, f"/{n} " + (f"b{n}" if n % 3 else ""))

    # --- aborts

    def test_a_client_that_goes_ends_the_upstream_transfer(self):
        for leave in ("close", "abort"):
            gone = threading.Event()

            def handler(exchange, gone=gone):
                exchange.read_body()
                exchange.send(f"HTTP/1.1 200 OK\r\n{FRAMING_FIELD['length']}\r\n".encode())
                try:
                    send_big(exchange.send, BIG, "length")
                except OSError:
                    gone.set()
                    raise

            proxy = self.site(handler)
            connection = wire.Connection(proxy.web)
            connection.send(wire.request_text("GET", "/big"))
            next(wire.body_pieces(connection.head(), connection.reader))
            getattr(connection, leave)()
            self.assertTrue(gone.wait(20), leave)
            proxy.wait_metric(1, "clockwise_http_requests_total", code="aborted")

    def test_a_client_that_resets_while_it_waits_ends_the_work_upstream(self):
        left = threading.Event()

        def handler(exchange):
            exchange.read_body()
            exchange.reader.fill()  # nothing more comes; returns when the proxy is gone
            left.set()
            exchange.close()

        proxy = self.site(handler)
        connection = wire.Connection(proxy.web)
        connection.send(wire.request_text("GET", "/"))
        self.assertTrue(self.origin.wait(lambda: self.origin.requests and self.origin.requests[0].complete))
        connection.abort()
        self.assertTrue(left.wait(20))
        proxy.wait_metric(1, "clockwise_http_requests_total", code="aborted")

    def test_a_client_that_resets_while_its_answer_stalls_ends_the_work_upstream(self):
        for size in (100, 10_000_000):  # through the buffer, and by splice
            left = threading.Event()

            def handler(exchange, size=size, left=left):
                exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\npart" % size)
                exchange.reader.fill()  # nothing more comes; returns when the proxy is gone
                left.set()
                exchange.close()

            proxy = self.site(handler)
            connection = wire.Connection(proxy.web)
            connection.send(wire.request_text("GET", "/"))
            self.assertEqual(connection.head().status, 200)
            connection.abort()
            self.assertTrue(left.wait(10), size)
            proxy.wait_metric(1, "clockwise_http_requests_total", code="aborted")

    def test_a_client_that_half_closes_still_gets_its_answer(self):
        go = threading.Event()

        def handler(exchange):
            exchange.read_body()
            go.wait(20)
            exchange.reply(200, b"late")

        proxy = self.site(handler)
        with wire.Connection(proxy.web) as connection:
            connection.send(wire.request_text("GET", "/"))
            connection.sock.shutdown(socket.SHUT_WR)
            self.assertTrue(self.origin.wait(lambda: self.origin.requests))
            go.set()
            self.assertEqual(connection.response().text, "late")
            self.assertTrue(connection.closed())

    def test_a_client_that_goes_inside_its_body_aborts_the_request_upstream(self):
        proxy = self.site(lambda exchange: exchange.reply(200, exchange.read_body()))
        connection = wire.Connection(proxy.web)
        connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"part"))
        self.assertTrue(self.origin.wait(lambda: self.origin.requests and self.origin.requests[0].body == b"part"))
        connection.abort()
        self.assertTrue(self.origin.wait(lambda: self.origin.requests[0].cut))

    def test_a_cut_answer_looks_cut(self):
        def handler(exchange):
            exchange.read_body()
            framing, end = exchange.request.target[1:].decode().split("/")
            body = chunk(b"part") if framing == "chunked" else b"part"
            exchange.send(f"HTTP/1.1 200 OK\r\n{FRAMING_FIELD[framing]}\r\n".encode() + body)
            if end == "close":
                exchange.close()
            exchange.reset()

        proxy = self.site(handler)
        for target in ("/length/close", "/length/reset", "/chunked/close", "/chunked/reset", "/close/reset"):
            answer = wire.fetch(proxy.web, target)
            self.assertTrue(answer.cut or answer.status == 502, target)
        self.assertEqual(wire.fetch(proxy.web, "/close/close").text, "part")


if __name__ == "__main__":
    unittest.main()
