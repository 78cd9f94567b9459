"""A caching proxy in front of an origin that answers by a script.

    class Freshness(Caching):
        def test_max_age(self):
            self.site()
            self.says("/a", answer("max-age=60"))
            self.assertEqual(self.get("/a").text, "1")   # the origin's first answer to /a
            self.assertEqual(self.get("/a").text, "1")   # the same, from the store
            self.assertEqual(self.asked("/a"), 1)

The body of an answer is the number of times that the origin was asked for that target, unless the
script says otherwise: so a body tells whether it came from the store. Nothing here waits for an
answer to grow old: one that is to be stale says so with Age.
"""

import email.utils
import json
import re
import socket
import threading
import time
import unittest

from support import wire
from support.clockwise import wait_until
from support.origin import Origin
from support.scenario import Site

# Of an answer: already older than "max-age=60" allows, but with a validator. It is stored, and
# validated when it is asked for.
STALE = {"age": "70", "etag": '"v1"'}


def date(ahead=0):
    """An HTTP date so many seconds from now."""
    return email.utils.formatdate(time.time() + ahead, usegmt=True)


def answer(control=None, *, body=None, status=200, **fields):
    """An answer of the script: `control` is Cache-Control, a list of values means as many lines.

    Names are written with `_` for `-`. Date is now unless given; None leaves a field out.
    """
    lines = {"date": date(), "cache_control": control, **fields}
    return _Scripted(status, body, [(name.replace("_", "-").title(), value)
                                    for name, values in lines.items() if values is not None
                                    for value in (values if isinstance(values,
                                                                       list) else [values])])


def as_arguments(fields):
    """Fields by their names, as answer() takes them."""
    return {name.replace("-", "_").lower(): value for name, value in fields.items()}


class _Scripted:
    def __init__(self, status, body, lines):
        self.status, self.body, self.lines = status, body, lines

    def __call__(self, exchange):
        body = exchange.nth if self.body is None else self.body
        exchange.send(self.octets(body, exchange.request.method == b"HEAD"))

    def octets(self, body, bodiless=False):
        body = body if isinstance(body, bytes) else str(body).encode()
        bodiless = bodiless or self.status in (204, 304)
        names = {name for name, _ in self.lines}
        lines = [f"HTTP/1.1 {self.status} X", *(f"{n}: {v}" for n, v in self.lines)]
        if self.status not in (204, 304) and not names & {"Content-Length", "Transfer-Encoding"}:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (b"" if bodiless else body)


def not_modified(*control, **fields):
    """304 to whoever asks with a condition; what an origin says that has nothing new."""
    return answer(*control, status=304, **fields)


class Document:
    """A thing that an origin has: answers GET, HEAD, conditions and one range as RFC 9110 says.

    Changing `body` and `etag` is a new version of it.
    """

    def __init__(self, body, control="max-age=60", etag='"v1"', **fields):
        self.body, self.control, self.etag, self.fields = body, control, etag, fields

    def __call__(self, exchange):
        asked = exchange.request
        common = {"etag": self.etag, **self.fields}
        if asked.value("If-None-Match") == self.etag:
            return answer(self.control, status=304, **common)(exchange)
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", asked.value("Range") or "")
        if span and asked.value("If-Range") in (None, self.etag) and int(span[1]) < len(self.body):
            first = int(span[1])
            last = min(int(span[2] or len(self.body)), len(self.body) - 1)
            common["content_range"] = f"bytes {first}-{last}/{len(self.body)}"
            part = self.body[first:last + 1]
            return answer(self.control, status=206, body=part, **common)(exchange)
        return answer(self.control, body=self.body, **common)(exchange)


def hang(exchange):
    """Takes the request and never answers; ends when the other side does."""
    exchange.sock.settimeout(60)
    exchange.sock.recv(1)
    exchange.reset()


def reset(exchange):
    exchange.reset()


class Gate:
    """An origin that holds an answer back until the test lets it go.

    With `first`, the head and so many octets of the body are sent at once, the rest after open().
    """

    def __init__(self, then, first=None, chunked=False):
        self.then, self.first, self.chunked = then, first, chunked
        self.called_off = False
        self._opened = threading.Event()

    def open(self):
        self._opened.set()

    def __call__(self, exchange):
        if self.first is None:
            self._opened.wait(60)
            return self.then(exchange)
        body = self.then.body
        exchange.send(self.then.octets(body, bodiless=True))
        self._send(exchange, body[:self.first])
        while not self._opened.wait(0.01):
            if self._left(exchange):
                self.called_off = True
                exchange.reset()
        self._send(exchange, body[self.first:])
        if self.chunked:
            exchange.send(b"0\r\n\r\n")

    def _send(self, exchange, octets):
        exchange.send(b"%x\r\n%s\r\n" % (len(octets), octets) if self.chunked else octets)

    @staticmethod
    def _left(exchange):
        """Whether the other side has gone."""
        try:
            return exchange.sock.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


_STRING = r'"(?:\\.|[^"\\])*"'
_PARAMETER = re.compile(rf';\s*([a-z-]+)(?:=({_STRING}|[^;,"]*))?')
_MEMBER = re.compile(rf'\s*({_STRING}|[^;,"\s]+)((?:\s*{_PARAMETER.pattern})*)\s*(?:,|$)')


def members(message):
    """The members of Cache-Status (RFC 9211), nearest the origin first: [(name, parameters)]."""
    return [(name, {key: value.strip('"') if value else True
                    for key, value in _PARAMETER.findall(parameters)})
            for name, parameters, *_ in _MEMBER.findall(message.value("Cache-Status") or "")]


def cache_status(message):
    """The parameters of our member; it is the last one and the only one of that name."""
    found = members(message)
    assert [name for name, _ in found].count("clockwise") == 1 and found[-1][0] == "clockwise", (
        f"Cache-Status: {message.value('Cache-Status')}")
    return found[-1][1]


class Caching(unittest.TestCase):
    def site(self, cache=None, pool=None, names="a", token=None, **config):
        """Starts the proxy; `cache` are settings of the cache, `token` is that of its admin API."""
        self.scripts, self.lock = {}, threading.Lock()
        self.counts = {}
        self.origins = [self.enterContext(Origin(self._answer, name=name)) for name in names]
        self.origin = self.origins[0]
        proxy = Site(self.origins, pool={"cache": "store", **(pool or {})},
                     caches={"store": cache or {}}, **config)
        if token:
            admin = {"address": f"127.0.0.1:{proxy.admin_port}", "token": token}
            proxy.write({**proxy.document, "admin": admin})
        self.proxy = self.enterContext(proxy)
        return proxy

    def _answer(self, exchange):
        exchange.read_body()
        target = exchange.request.target.decode("latin-1")
        with self.lock:
            exchange.nth = self.counts[target] = self.counts.get(target, 0) + 1
            script = self.scripts.get(target) or self.scripts.get(target.partition("?")[0])
            script = script[min(exchange.nth, len(script)) - 1] if script else answer("no-store")
        script(exchange)

    def says(self, target, *script):
        """What the origin answers to it: the first time, the second, …, the last one for ever."""
        with self.lock:
            self.scripts[target] = script
            self.counts.pop(target, None)
        return target

    def asked(self, target):
        """How often the origin was asked for it."""
        return len(self.requests(target))

    def requests(self, target):
        return [r for o in self.origins for r in o.requests if r.target == target.encode("latin-1")]

    def wait_asked(self, target, times):
        wait_until(lambda: self.asked(target) >= times,
                   lambda: f"{times} requests for {target}, the origin saw {self.asked(target)}")

    def get(self, target, headers=None, method="GET", body=b"", **options):
        return wire.fetch(self.proxy.web, target, method, headers, body, **options)

    def start(self, target, headers=None, method="GET", **options):
        """Sends a request and returns its connection; the answer is read by .response()."""
        connection = self.enterContext(wire.Connection(self.proxy.web))
        return connection.send(wire.request_text(method, target, headers, **options))

    def fill(self, target, *script, headers=None, **options):
        """Has the first answer stored: asks once."""
        self.says(target, *script)
        first = self.get(target, headers, **options)
        self.assertFalse(first.cut)
        return first

    def assert_stored(self, target, body="1", headers=None, **options):
        """The answer is given without a request to the origin."""
        before = self.asked(target)
        got = self.get(target, headers, **options)
        self.assertEqual((got.text, self.asked(target) - before), (body, 0),
                         got.value("Cache-Status"))
        return got

    def assert_fetched(self, target, body="2", headers=None, **options):
        """The whole answer is the origin's, to this request."""
        before = self.asked(target)
        got = self.get(target, headers, **options)
        self.assertEqual((got.text, self.asked(target) - before), (body, 1),
                         got.value("Cache-Status"))
        return got

    def gate(self, then, first=None, chunked=False):
        """A Gate that is open at the end of the test at the latest."""
        gate = Gate(then, first, chunked)
        self.addCleanup(gate.open)
        return gate

    def crowd(self, size, target, headers=None, **options):
        """So many clients ask at once. `headers` may be a function of the client's number."""
        return [self.start(target, headers(n) if callable(headers) else headers, **options)
                for n in range(size)]

    def wait_collapsed(self, waiting):
        """Until so many requests wait for the fetch of another."""
        return self.proxy.wait_metric(waiting, "clockwise_cache_collapsed_waiting")

    def purge(self, **what):
        return self.proxy.admin("/api/v1/caches/store/purge", method="POST", body=json.dumps(what),
                                headers={"Content-Type": "application/json"})

    def assert_purged(self, count, **what):
        got = self.purge(**what)
        self.assertEqual((got.status, got.json()), (200, {"purged": count}))

    def wait_stored(self, target, body, headers=None):
        """Until it is given from the store with this body."""
        def stored():
            got = self.get(target, headers)
            return got.text == body and cache_status(got).get("hit") and got
        return wait_until(stored, f"{target} in the store")

    def check_reuse(self, rows, **options):
        """Rows of (what it is about, the origin's answer, whether a second client gets it)."""
        for number, (what, said, reused) in enumerate(rows):
            with self.subTest(what):
                target = f"/{what.replace(' ', '-').encode().hex()[:24]}-{number}"
                self.fill(target, said, **options)
                self.assert_stored(target) if reused else self.assert_fetched(target)
