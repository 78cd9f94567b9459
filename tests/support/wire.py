"""HTTP/1.1 as octets: a strict reader of messages for both ends of a connection, and a plain client.

The reader repairs nothing. What it can still make sense of it returns together with a list of faults,
so that a test can say "the proxy forwarded a malformed message" instead of failing somewhere else.
"""

import re
import socket
import struct
from dataclasses import dataclass, field

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+\Z")
_REQUEST_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([!-~\x80-\xff]+) HTTP/1\.([01])\Z")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([1-9][0-9]{2}) ([\t -~\x80-\xff]*)\Z")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,16})((?:[ \t]*;[\t -~\x80-\xff]*)*)\Z")

MAX_LINE = 4 << 20


class Cut(Exception):
    """The stream ended inside a message."""


class Quiet(Exception):
    """The stream ended where a message could have begun."""


@dataclass
class Message:
    start: bytes = b""
    fields: list = field(default_factory=list)  # (name, value), in order
    head: bytes = b""                           # as received, blank line included
    body: bytearray = field(default_factory=bytearray)
    trailers: list = field(default_factory=list)
    framing: str = "none"                       # none, length, chunked, close
    length: int = 0                             # for framing "length"
    complete: bool = False
    cut: bool = False                           # the stream ended before the message did
    faults: list = field(default_factory=list)
    # requests
    method: bytes = b""
    target: bytes = b""
    minor: int = 1
    # responses
    status: int = 0

    def values(self, name):
        wanted = name.lower().encode() if isinstance(name, str) else name.lower()
        return [value for key, value in self.fields if key.lower() == wanted]

    def value(self, name):
        """The values of all lines of that name as one text; None when there is none."""
        found = self.values(name)
        return b", ".join(found).decode("latin-1") if found else None

    def tokens(self, name):
        return [t.strip().lower() for v in self.values(name) for t in v.split(b",") if t.strip()]

    @property
    def text(self):
        return bytes(self.body).decode("latin-1")


class Reader:
    """The octets that arrive on one connection."""

    def __init__(self, sock):
        self.sock = sock
        self.buffer = bytearray()
        self.ended = False
        self.reset = False

    def fill(self):
        """Waits for more octets; False at the end of the stream."""
        if self.ended:
            return False
        try:
            octets = self.sock.recv(1 << 18)
        except (ConnectionError, BrokenPipeError):
            self.reset, octets = True, b""
        if not octets:
            self.ended = True
        self.buffer += octets
        return bool(octets)

    def line(self):
        """One line with its LF."""
        searched = 0
        while (end := self.buffer.find(b"\n", searched)) < 0:
            searched = len(self.buffer)
            if searched > MAX_LINE or not self.fill():
                raise Cut
        return self.take(end + 1)

    def take(self, count):
        octets = bytes(self.buffer[:count])
        del self.buffer[:count]
        return octets

    def pieces(self, count):
        """`count` octets in the pieces in which they arrive; Cut when there are fewer."""
        while count:
            if not self.buffer and not self.fill():
                raise Cut
            piece = self.take(min(count, len(self.buffer)))
            count -= len(piece)
            yield piece


def _content(line, faults, where):
    """A line without its end, with what is wrong about it noted."""
    if line.endswith(b"\r\n"):
        line = line[:-2]
    else:
        line = line[:-1]
        faults.append(f"bare LF ends a line of the {where}")
    if b"\r" in line:
        faults.append(f"bare CR in the {where}")
    if b"\0" in line:
        faults.append(f"NUL in the {where}")
    return line


def _split_field(line, faults, where):
    name, colon, value = line.partition(b":")
    if line[:1] in b" \t":
        faults.append(f"folded line in the {where}")
    elif not colon:
        faults.append(f"line without a colon in the {where}: {line[:40]!r}")
    elif not _TOKEN.match(name):
        faults.append(f"bad field name in the {where}: {name[:40]!r}")
    return name, value.strip(b" \t")


def _read_head(reader):
    message = Message()
    if not reader.buffer and not reader.fill():
        raise Quiet
    raw = bytearray()
    try:
        while True:
            line = reader.line()
            raw += line
            content = _content(line, message.faults, "head")
            if not content:
                if message.start:
                    break
                message.faults.append("empty line before the first line")
            elif not message.start:
                message.start = content
            else:
                message.fields.append(_split_field(content, message.faults, "head"))
    except Cut:
        message.head = bytes(raw + reader.buffer)
        message.start = message.start or message.head.split(b"\r\n")[0]
        message.cut = True
        if not message.head:
            raise Quiet from None
        return message
    message.head = bytes(raw)
    return message


def _framing(message):
    """Sets framing and length by what the fields say; notes whatever two readers could take differently."""
    lengths = message.values("content-length")
    codings = message.tokens("transfer-encoding")
    coded = bool(message.values("transfer-encoding"))
    if lengths and coded:
        message.faults.append("Content-Length beside Transfer-Encoding")
    if len(lengths) > 1:
        message.faults.append("several Content-Length lines")
    if coded and codings != [b"chunked"]:
        message.faults.append(f"Transfer-Encoding is not just chunked: {codings!r}")
    if coded and message.minor == 0:
        message.faults.append("Transfer-Encoding in HTTP/1.0")
    if coded:
        message.framing = "chunked" if codings[-1:] == [b"chunked"] else "close"
    elif lengths:
        message.framing = "length"
        if re.fullmatch(rb"[0-9]{1,18}", lengths[0]):
            message.length = int(lengths[0])
        else:
            message.faults.append(f"bad Content-Length {lengths[0][:40]!r}")


def read_request_head(reader):
    """The next request up to its body. Raises Quiet when the client is gone."""
    message = _read_head(reader)
    match = _REQUEST_LINE.match(message.start)
    if match:
        message.method, message.target, message.minor = match[1], match[2], int(match[3])
    else:
        if not message.cut:
            message.faults.append(f"bad request line {message.start[:80]!r}")
        words = message.start.split() + [b"", b""]
        message.method, message.target = words[0], words[1]
    hosts = len(message.values("host"))
    if not message.cut and (hosts > 1 or (hosts == 0 and message.minor == 1)):
        message.faults.append(f"{hosts} Host fields")
    _framing(message)
    if message.framing == "close":
        message.framing = "none"
    return message


def read_response_head(reader, method="GET"):
    message = _read_head(reader)
    match = _STATUS_LINE.match(message.start)
    if match:
        message.status = int(match[1])
        message.minor = int(message.start[7:8])
    elif not message.cut:
        message.faults.append(f"bad status line {message.start[:80]!r}")
    _framing(message)
    status = message.status
    if status < 200 or status == 204:
        if message.framing == "chunked":
            message.faults.append(f"{status} with Transfer-Encoding")
        message.framing = "none"
    elif method == "HEAD" or status == 304:
        message.framing = "none"
    elif message.framing == "none":
        message.framing = "close"
    return message


def _chunks(message, reader):
    while True:
        match = _CHUNK_LINE.match(_content(reader.line(), message.faults, "chunk line"))
        if not match:
            message.faults.append("bad chunk line")
            raise Cut
        size = int(match[1], 16)
        if size == 0:
            break
        yield from reader.pieces(size)
        if b"".join(reader.pieces(2)) != b"\r\n":
            message.faults.append("chunk data without CRLF behind it")
            raise Cut
    while line := _content(reader.line(), message.faults, "trailer section"):
        message.trailers.append(_split_field(line, message.faults, "trailer section"))


def body_pieces(message, reader):
    """The body as it arrives. Sets `complete` at its end, or `cut` when the stream ends before it."""
    try:
        if message.cut:
            raise Cut
        if message.framing == "length":
            yield from reader.pieces(message.length)
        elif message.framing == "chunked":
            yield from _chunks(message, reader)
        elif message.framing == "close":
            while reader.buffer or reader.fill():
                yield reader.take(len(reader.buffer))
            if reader.reset:
                raise Cut
        message.complete = True
    except Cut:
        message.cut = True


def read_body(message, reader):
    for piece in body_pieces(message, reader):
        message.body += piece
    return message


def abort(sock):
    """Ends a connection with a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def request_text(method, target, headers=None, body=b"", host="h.example", version="HTTP/1.1"):
    """A request as octets; Content-Length is added when there is a body."""
    lines = [f"{method} ".encode() + (target if isinstance(target, bytes) else target.encode()) +
             f" {version}".encode()]
    if host is not None:
        lines.append(f"Host: {host}".encode())
    for name, value in (headers or {}).items():
        lines.append(f"{name}: {value}".encode("latin-1"))
    if body:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


class Connection:
    """A client connection that sends what it is told and reads strict responses."""

    def __init__(self, address, timeout=15, receive_buffer=None):
        if receive_buffer:
            self.sock = socket.socket()
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            self.sock.settimeout(timeout)
            self.sock.connect(address)
        else:
            self.sock = socket.create_connection(address, timeout=timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = Reader(self.sock)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, octets):
        self.sock.sendall(octets)
        return self

    def head(self, method="GET"):
        """The next response head, final or interim."""
        return read_response_head(self.reader, method)

    def response(self, method="GET"):
        """The next final response with its body; the interim ones before it are in `.interim`."""
        interim = []
        while (message := self.head(method)).status // 100 == 1 and message.status != 101:
            interim.append(message)
        read_body(message, self.reader)
        message.interim = interim
        return message

    def request(self, method, target, headers=None, body=b"", **options):
        self.send(request_text(method, target, headers, body, **options))
        return self.response(method)

    def closed(self):
        """Waits for the peer's end of stream; False when octets arrive instead."""
        return not self.reader.buffer and not self.reader.fill()

    def abort(self):
        abort(self.sock)

    def close(self):
        self.sock.close()


def fetch(address, target="/", method="GET", headers=None, body=b"", **options):
    """One request on a connection of its own."""
    with Connection(address) as connection:
        return connection.request(method, target, headers, body, **options)
