"""A scripted upstream server that works with octets: it streams, stalls, breaks and counts.

    def handler(exchange):
        exchange.read_body()
        exchange.reply(200, b"hello")

    with Origin(handler, name="a") as origin:
        origin.entry(weight=2)  # its line in a list of servers
        origin.requests         # every request seen, in the order of arrival

One thread a connection. A handler that returns without closing keeps the connection; what it did not
read of the request body is read for it. Without a handler it echoes what it was asked. Where
whole requests and canned answers are enough, use support.clockwise.Upstream.
"""

import json
import socket
import threading
import time

from support import wire


class Gone(Exception):
    """The handler closed the connection."""


class Exchange:
    """One request on one connection, told to the handler."""

    def __init__(self, origin, sock, reader, request, number):
        self.origin = origin
        self.sock = sock
        self.reader = reader
        self.request = request
        self.connection_number = number
        self._body_read = False

    def pieces(self):
        self._body_read = True
        return wire.body_pieces(self.request, self.reader)

    def read_body(self):
        """The request body; sends 100 Continue first when the client waits for it."""
        if not self._body_read:
            if self.expects_continue:
                self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            for piece in self.pieces():
                self.request.body += piece
            self.origin.notify()
        return bytes(self.request.body)

    @property
    def expects_continue(self):
        return b"100-continue" in self.request.tokens("expect") and self.request.framing != "none"

    def send(self, octets):
        self.sock.sendall(octets)

    def reply(self, status=200, body=b"", headers=None, reason="OK"):
        lines = [f"HTTP/1.1 {status} {reason}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        lines.append(f"Content-Length: {len(body)}")
        text = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        self.send(text if self.request.method == b"HEAD" else text + body)

    def close(self):
        """An orderly end: FIN, then wait for the other side's."""
        self.sock.shutdown(socket.SHUT_WR)
        self.sock.settimeout(5)
        while self.reader.fill():
            self.reader.buffer.clear()
        raise Gone

    def reset(self):
        wire.abort(self.sock)
        raise Gone


def echo(exchange):
    """What the server saw, as JSON, and its name in a field."""
    body = exchange.read_body()
    request = exchange.request
    seen = {"server": exchange.origin.name, "method": request.method.decode("latin-1"),
            "target": request.target.decode("latin-1"), "body_size": len(body),
            "fields": [[n.decode("latin-1"), v.decode("latin-1")] for n, v in request.fields]}
    exchange.reply(200, json.dumps(seen).encode(), {"Content-Type": "application/json",
                                                    "X-Server": exchange.origin.name})


class Origin:
    def __init__(self, handler=echo, name="origin", port=0, receive_buffer=None):
        self.handler = handler
        self.name = name
        self.requests = []
        self.connections = 0
        self.failures = []
        self._open = set()
        self._changed = threading.Condition()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if receive_buffer:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen(1024)
        self.port = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def entry(self, **options):
        return {"name": self.name, "address": self.address, **options}

    def stop(self):
        """No new connections, and an end to those that are open."""
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        self.drop_connections()

    def drop_connections(self):
        with self._changed:
            sockets = list(self._open)
        for sock in sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def notify(self):
        with self._changed:
            self._changed.notify_all()

    def wait(self, condition, seconds=10):
        """Waits until `condition()` holds; whether it did."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not (held := condition()) and time.monotonic() < deadline:
                self._changed.wait(0.02)  # a body grows without notice
        return bool(held)

    @property
    def open_connections(self):
        return len(self._open)

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._changed:
                self.connections += 1
                number = self.connections
                self._open.add(sock)
                self._changed.notify_all()
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock, number):
        reader = wire.Reader(sock)
        try:
            while self._serve_one(sock, reader, number):
                pass
        except (wire.Quiet, Gone, OSError):
            pass
        finally:
            with self._changed:
                self._open.discard(sock)
                self._changed.notify_all()
            sock.close()

    def _serve_one(self, sock, reader, number):
        request = wire.read_request_head(reader)
        request.arrived = time.monotonic()
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        if request.cut:
            return False
        exchange = Exchange(self, sock, reader, request, number)
        try:
            self.handler(exchange)
            exchange.read_body()
        finally:
            self.notify()
        closes = b"close" in request.tokens("connection") or request.minor == 0
        return request.complete and not closes
