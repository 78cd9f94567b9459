"""Items of memcached as resources of HTTP: keys, values, methods, conditions, errors, and the pool behind."""

import gzip
import hashlib
import pathlib
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import Proxy, free_port, wait_until  # noqa: E402
from support.memcached import Client, Memcached, Scripted, needs_memcached  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.page import Page  # noqa: E402


class Front(unittest.TestCase):
    """A listener of HTTP in front of memcached servers."""

    def start(self, servers, *, pool=None, settings=None, pools=None, listener=None, **top):
        self.servers = servers
        self.proxy = self.enterContext(Proxy({
            "workers": 1,
            "access_log": "off",
            "listeners": [{"name": "web", "address": "127.0.0.1:0", "pool": "mc", **(listener or {})}],
            "pools": {"mc": {"protocol": "memcached", "servers": [s.entry() for s in servers],
                             "memcached": settings or {}, **(pool or {})}, **(pools or {})},
            **top,
        }))
        self.web = ("127.0.0.1", self.proxy.port())

    def start_one(self, **options):
        self.server = self.enterContext(Memcached("a"))
        self.start([self.server], **options)

    def ask(self, method, target, body=b"", host="h.example", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return wire.fetch(self.web, target, method, named, body, host=host)

    def get(self, target, **headers):
        return self.ask("GET", target, **headers)

    def stored(self, key):
        with Client(("127.0.0.1", self.server.port)) as client:
            return client.get(key)

    def store(self, key, value, flags=0):
        answer = self.server.ask(b"set %s %d 0 %d\r\n%s\r\n" % (key, flags, len(value), value))
        self.assertEqual(answer, b"STORED\r\n")

    def count(self, command, result):
        return Page(self.proxy.admin("/metrics").text).sum("clockwise_memcached_commands_total", command=command,
                                                           result=result)


@needs_memcached
class Keys(Front):
    """The key of nginx's `$uri?$args`, and what is escaped, digested or refused."""

    CASES = [
        ("/a", b"/a?"),
        ("/a?", b"/a?"),
        ("/a?b=1", b"/a?b=1"),
        ("/a%20b", b"/a%20b?"),
        ("/caf%C3%A9", "/caf\u00e9?".encode()),
        ("/x?q=%20", b"/x?q=%2520"),
        ("//a//b/./c/../d", b"/a/b/d?"),
        ("/%0d%0aset", b"/%0D%0Aset?"),
        ("/a%25b", b"/a%25b?"),
        ("/a%7Fb", b"/a\x7fb?"),
        ("/a%3Fb", b"/a?b?"),
    ]

    def test_the_default_key_is_the_one_of_nginx(self):
        self.start_one()
        for target, key in self.CASES:
            with self.subTest(target=target):
                self.store(key, b"value of " + target.encode())
                answer = self.get(target)
                self.assertEqual((answer.status, answer.text), (200, "value of " + target))

    def test_a_template_is_escaped_the_same_way(self):
        self.start_one(settings={"key": "{host}{uri}"})
        self.store(b"127.0.0.1/a%2520b", b"one")
        self.assertEqual(self.get("/a%20b", host="127.0.0.1").text, "one")

    def test_a_long_key_is_digested(self):
        self.start_one(settings={"writable": True})
        for length in (249, 250, 400):
            with self.subTest(length=length):
                full = ("/" + "k" * (length - 2) + "?").encode()
                target = full[:-1].decode()
                wanted = full if len(full) <= 250 else full[:217] + b"~" + hashlib.sha256(full).hexdigest()[:32].encode()
                self.assertEqual(self.ask("PUT", target, b"x").status, 201)
                self.assertEqual(self.stored(wanted), b"x")
                self.assertEqual(self.get(target).text, "x")
        self.assertEqual(Page(self.proxy.admin("/metrics").text).sum("clockwise_memcached_keys_digested_total"), 2)

    def test_a_path_above_its_root_has_no_key(self):
        self.start_one(settings={"writable": True})
        self.store(b"/a?", b"of another")
        for target in ("/../a", "/..", "/b/../../a", "/%2e%2e/a", "/b/%2E./../a", "/b%2F..%2f..%2fa", "/./../a", "//..//a"):
            for method in ("GET", "HEAD", "PUT", "DELETE"):
                with self.subTest(target=target, method=method):
                    self.assertEqual(self.ask(method, target, b"x" if method == "PUT" else b"").status, 400)
        self.assertEqual(self.stored(b"/a?"), b"of another")
        for target in ("/b/../a", "/b/c/../..//a", "/%2e/a", "/b/%2e%2e/a", "/..a/../a", "/.../../a", "/a?x=/../.."):
            with self.subTest(target=target):
                self.assertIn(self.get(target).status, (200, 404))

    def test_a_path_that_is_not_decoded_is_taken_as_it_is(self):
        self.start_one(settings={"key": "{uri}"})
        self.store(b"/../a", b"as it is")
        self.assertEqual(self.get("/../a").text, "as it is")

    def test_a_long_key_can_be_refused(self):
        self.start_one(settings={"long_key": "reject"})
        self.assertEqual(self.get("/" + "k" * 248).status, 404)
        self.assertEqual(self.get("/" + "k" * 249).status, 414)


@needs_memcached
class Reading(Front):
    def test_an_item_is_the_answer(self):
        self.start_one()
        self.store(b"/p.html?", b"<p>")
        answer = self.get("/p.html")
        self.assertEqual((answer.status, answer.text), (200, "<p>"))
        self.assertEqual(answer.value("content-type"), "text/html")
        self.assertEqual(answer.value("content-length"), "3")
        self.assertEqual(answer.value("via"), "1.1 clockwise")
        self.assertEqual(answer.value("cache-status"), "clockwise; hit")
        self.assertIsNotNone(answer.value("date"))
        self.assertIsNone(answer.value("accept-ranges"))
        wait_until(lambda: self.count("get", "hit") == 1, "the hit is counted")

    def test_a_miss_is_404(self):
        self.start_one()
        answer = self.get("/none")
        self.assertEqual(answer.status, 404)
        self.assertEqual(answer.value("cache-status"), "clockwise; fwd=uri-miss")
        wait_until(lambda: self.count("get", "miss") == 1, "the miss is counted")

    def test_head_has_the_lengths_of_get(self):
        self.start_one()
        self.store(b"/a?", b"12345")
        answer = self.ask("HEAD", "/a")
        self.assertEqual((answer.status, answer.value("content-length"), bytes(answer.body)), (200, "5", b""))
        self.assertEqual(self.ask("HEAD", "/b").status, 404)

    def test_types(self):
        self.start_one(settings={"default_type": "text/x-own", "types": {"HTML": "text/x-page", "x1": "a/b"}})
        for target, wanted in (("/a", "text/x-own"), ("/a.html", "text/x-page"), ("/a.X1", "a/b"), ("/a.css", "text/css"),
                               ("/a.b/c", "text/x-own"), ("/a.css?x.html", "text/css")):
            with self.subTest(target=target):
                self.store(target.encode() + (b"" if "?" in target else b"?"), b"x")
                self.assertEqual(self.get(target).value("content-type"), wanted)

    def test_values_of_every_size_arrive_whole(self):
        self.start_one()
        with wire.Connection(self.web) as client:
            for size in (0, 1, 2, 1000, 16_384, 32_700, 32_768, 40_000, 100_000, 1_000_000):
                with self.subTest(size=size):
                    value = bytes(i * 7 % 251 for i in range(size)) if size < 5000 else (b"0123456789abcdef" * (size // 16 + 1))[:size]
                    self.store(b"/size?%d" % size, value)
                    client.send(wire.request_text("GET", f"/size?{size}"))
                    answer = client.response()
                    self.assertEqual(answer.status, 200)
                    self.assertEqual(bytes(answer.body), value)

    def test_a_value_that_a_reader_takes_slowly_is_whole(self):
        self.start_one()
        value = bytes(range(256)) * 4000
        self.store(b"/big?", value)
        with wire.Connection(self.web, receive_buffer=4096) as slow:
            slow.send(wire.request_text("GET", "/big"))
            with wire.Connection(self.web) as other:  # who is not held back by the first
                other.send(wire.request_text("GET", "/big"))
                self.assertEqual(bytes(other.response().body), value)
            self.assertEqual(bytes(slow.response().body), value)

    def test_requests_follow_one_another_on_a_connection(self):
        self.start_one()
        for i in range(20):
            self.store(b"/%d?" % i, b"%d" % i)
        with wire.Connection(self.web) as client:
            client.send(b"".join(wire.request_text("GET", f"/{i}") for i in range(25)))
            for i in range(25):
                answer = client.response()
                self.assertEqual(answer.status, 200 if i < 20 else 404)
                if i < 20:
                    self.assertEqual(answer.text, str(i))

    def test_packed_values(self):
        self.start_one()
        text = b"packed " * 1000
        self.store(b"/z?", gzip.compress(text), flags=2)
        packed = self.get("/z", Accept_Encoding="gzip, br")
        self.assertEqual(packed.value("content-encoding"), "gzip")
        self.assertEqual(gzip.decompress(bytes(packed.body)), text)
        for accepts in ({}, {"Accept_Encoding": "identity"}, {"Accept_Encoding": "gzip;q=0"}):
            with self.subTest(accepts=accepts):
                plain = self.get("/z", **accepts)
                self.assertIsNone(plain.value("content-encoding"))
                self.assertEqual(bytes(plain.body), text)
                self.assertEqual(plain.value("vary"), "Accept-Encoding")
        self.store(b"/broken?", b"no gzip", flags=2)
        self.assertEqual(self.get("/broken").status, 502)

    def test_other_flags_mean_nothing(self):
        self.start_one()
        self.store(b"/f?", b"x", flags=4294967295 - 2)
        self.assertIsNone(self.get("/f").value("content-encoding"))

    def test_the_unique_is_the_tag(self):
        self.start_one()
        self.store(b"/a?", b"one")
        tag = self.get("/a").value("etag")
        self.assertRegex(tag, r'^"\d+"$')
        known = self.get("/a", If_None_Match=tag)
        self.assertEqual((known.status, known.value("etag"), bytes(known.body)), (304, tag, b""))
        self.assertEqual(self.get("/a", If_None_Match=f'"0", W/{tag}').status, 304)
        self.assertEqual(self.get("/a", If_None_Match="*").status, 304)
        self.store(b"/a?", b"two")
        self.assertEqual(self.get("/a", If_None_Match=tag).status, 200)

    def test_without_tags(self):
        self.start_one(settings={"etag": "off"})
        self.store(b"/a?", b"one")
        self.assertIsNone(self.get("/a").value("etag"))

    def test_a_large_value_that_is_known_is_not_sent(self):
        self.start_one()
        self.store(b"/a?", b"x" * 200_000)
        tag = self.get("/a").value("etag")
        self.assertEqual(self.get("/a", If_None_Match=tag).status, 304)

    def test_stored_answers(self):
        self.start_one(settings={"layout": "http"})
        self.store(b"/a?", b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nX-Own: 1\r\nContent-Length: 9\r\n\r\nbody")
        answer = self.get("/a")
        self.assertEqual((answer.status, answer.text), (200, "body"))
        self.assertEqual((answer.value("content-type"), answer.value("x-own")), ("a/b", "1"))
        self.assertEqual(answer.value("content-length"), "4")
        self.store(b"/gone?", b"HTTP/1.1 410 Gone\r\n\r\n")
        self.assertEqual(self.get("/gone").status, 410)
        self.store(b"/raw?", b"no answer")
        self.assertEqual(self.get("/raw").status, 502)


@needs_memcached
class Writing(Front):
    def test_nothing_is_written_unless_allowed(self):
        self.start_one()
        self.store(b"/a?", b"x")
        for method in ("PUT", "DELETE", "POST", "PATCH", "OPTIONS", "BREW"):
            with self.subTest(method=method):
                answer = self.ask(method, "/a", b"y" if method in ("PUT", "POST", "PATCH") else b"")
                self.assertEqual(answer.status, 405)
                self.assertEqual(answer.value("allow"), "GET, HEAD")
        self.assertEqual(self.stored(b"/a?"), b"x")

    def test_put_and_delete(self):
        self.start_one(settings={"writable": True})
        self.assertEqual(self.ask("PUT", "/a", b"one").status, 201)
        self.assertEqual(self.stored(b"/a?"), b"one")
        replaced = self.ask("PUT", "/a", b"two")
        self.assertEqual((replaced.status, bytes(replaced.body)), (204, b""))
        self.assertEqual(self.get("/a").text, "two")
        self.assertEqual(self.ask("DELETE", "/a").status, 204)
        self.assertEqual(self.ask("DELETE", "/a").status, 404)
        self.assertEqual(self.get("/a").status, 404)
        answer = self.ask("POST", "/a", b"x")
        self.assertEqual((answer.status, answer.value("allow")), (405, "GET, HEAD, PUT, DELETE"))

    def test_bodies_in_chunks_and_empty_ones(self):
        self.start_one(settings={"writable": True})
        with wire.Connection(self.web) as client:
            client.send(b"PUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
            client.send(b"4\r\ndefg\r\n0\r\n\r\n")
            self.assertEqual(client.response("PUT").status, 201)
            client.send(b"PUT /e HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n")
            self.assertEqual(client.response("PUT").status, 201)
        self.assertEqual(self.stored(b"/c?"), b"abcdefg")
        self.assertEqual(self.stored(b"/e?"), b"")

    def test_a_body_cut_short_stores_nothing(self):
        self.start_one(settings={"writable": True})
        with wire.Connection(self.web) as client:
            client.send(b"PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc")
            client.sock.shutdown(socket.SHUT_WR)
            self.assertEqual(client.response("PUT").status, 400)
        self.assertIsNone(self.stored(b"/a?"))

    def test_conditions(self):
        self.start_one(settings={"writable": True})
        self.assertEqual(self.ask("PUT", "/a", b"0", If_Match="*").status, 412)
        self.assertEqual(self.ask("PUT", "/a", b"0", If_Match='"1"').status, 412)
        self.assertEqual(self.ask("PUT", "/a", b"1", If_None_Match="*").status, 201)
        self.assertEqual(self.ask("PUT", "/a", b"2", If_None_Match="*").status, 412)
        self.assertEqual(self.ask("PUT", "/a", b"3", If_Match="*").status, 204)
        old = self.get("/a").value("etag")
        self.assertEqual(self.ask("PUT", "/a", b"4", If_Match=old).status, 204)
        self.assertEqual(self.ask("PUT", "/a", b"5", If_Match=old).status, 412)
        new = self.get("/a").value("etag")
        self.assertEqual(self.ask("PUT", "/a", b"6", If_Match=f"W/{new}").status, 412)
        self.assertEqual(self.ask("PUT", "/a", b"7", If_Match=f'{old}, {new}').status, 204)
        self.assertEqual(self.get("/a").text, "7")
        self.assertEqual(self.ask("DELETE", "/a", If_Match=old).status, 412)
        self.assertEqual(self.ask("DELETE", "/a", If_Match=self.get("/a").value("etag")).status, 204)

    def ttl(self, key):
        return self.server.ask(b"mg %s t\r\n" % key).split()[1]

    def test_lifetimes(self):
        self.start_one(settings={"writable": True, "ttl": "50s", "max_ttl": "100s"})
        self.ask("PUT", "/a", b"x")
        self.assertIn(self.ttl(b"/a?"), (b"t50", b"t49"))
        self.ask("PUT", "/a", b"x", Cache_Control="max-age=70")
        self.assertIn(self.ttl(b"/a?"), (b"t70", b"t69"))
        self.ask("PUT", "/a", b"x", Cache_Control="max-age=5000")
        self.assertIn(self.ttl(b"/a?"), (b"t100", b"t99"))
        self.ask("PUT", "/a", b"x", Cache_Control="max-age=0")
        self.assertIsNone(self.stored(b"/a?"))

    def test_a_lifetime_above_thirty_days(self):
        self.start_one(settings={"writable": True})
        self.ask("PUT", "/a", b"x", Cache_Control="max-age=3000000")
        self.assertIn(int(self.ttl(b"/a?")[1:]), range(2_999_990, 3_000_001))
        self.ask("PUT", "/b", b"x")
        self.assertEqual(self.ttl(b"/b?"), b"t-1")

    def test_a_packed_body_is_marked(self):
        self.start_one(settings={"writable": True})
        packed = gzip.compress(b"text")
        self.assertEqual(self.ask("PUT", "/a", packed, Content_Encoding="gzip").status, 201)
        self.assertEqual(self.get("/a").text, "text")
        self.assertEqual(self.get("/a", Accept_Encoding="gzip").value("content-encoding"), "gzip")
        self.assertEqual(self.ask("PUT", "/b", b"x", Content_Encoding="br").status, 415)

    def test_the_type_is_kept_where_there_is_room(self):
        self.start_one(settings={"writable": True, "layout": "http"})
        self.assertEqual(self.ask("PUT", "/a", b"x", Content_Type="text/x-own").status, 201)
        answer = self.get("/a")
        self.assertEqual((answer.text, answer.value("content-type")), ("x", "text/x-own"))

    def test_a_value_that_is_too_large_leaves_none_behind(self):
        self.start_one(settings={"writable": True})
        for framing in ("length", "chunks"):
            with self.subTest(framing=framing):
                self.store(b"/a?", b"old")
                with wire.Connection(self.web) as client:
                    if framing == "length":
                        client.send(b"PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 5000000\r\n\r\n")
                    else:
                        client.send(b"PUT /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1e8480\r\n")
                        threading.Thread(target=lambda: self.pour(client, 2_000_000), daemon=True).start()
                    self.assertEqual(client.response("PUT").status, 413)
                wait_until(lambda: self.stored(b"/a?") is None, "the old value is gone")

    @staticmethod
    def pour(client, size):
        try:
            client.send(b"x" * size)
        except OSError:
            pass

    def test_a_value_that_the_server_refuses_as_too_large(self):
        self.start_one(settings={"writable": True})
        self.store(b"/a?", b"old")
        # Below the size of an item, but not with what the server keeps beside the value.
        self.assertEqual(self.ask("PUT", "/a", b"x" * 1_048_570).status, 413)
        self.assertIsNone(self.stored(b"/a?"))

    def test_the_client_is_told_to_go_on(self):
        self.start_one(settings={"writable": True})
        with wire.Connection(self.web) as client:
            client.send(b"PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n")
            self.assertEqual(client.head("PUT").status, 100)
            client.send(b"x")
            self.assertEqual(client.response("PUT").status, 201)


class Errors(Front):
    """One server whose answers the test writes."""

    def scripted(self, answer, **options):
        self.server = self.enterContext(Scripted("a", lambda line, data, peer: answer(line) if callable(answer) else answer))
        self.start([self.server], **options)

    CASES = [
        ("another key", b"VALUE other 0 1 1\r\nx\r\nEND\r\n"),
        ("no answer at all", b"hello\r\n"),
        ("an absurd length", b"VALUE /a? 0 9223372036854775807 1\r\n"),
        ("no CRLF behind the value", b"VALUE /a? 0 1 1\r\nxyEND\r\n"),
        ("no END", b"VALUE /a? 0 1 1\r\nx\r\nSTORED\r\n"),
        ("a value twice", b"VALUE /a? 0 1 1\r\nx\r\nVALUE /a? 0 1 1\r\nx\r\nEND\r\n"),
        ("an error of the server", b"SERVER_ERROR out of memory\r\n"),
        ("an error of the client", b"CLIENT_ERROR bad command line format\r\n"),
        ("an unknown command", b"ERROR\r\n"),
    ]

    def test_what_is_no_answer_is_502(self):
        for name, answer in self.CASES:
            with self.subTest(name):
                self.scripted(answer)
                self.assertEqual(self.get("/a").status, 502)
                # Nothing of it is left for the next.
                self.assertEqual(self.get("/a").status, 502)

    LARGE = b"VALUE /a? 0 200000 1\r\n" + b"x" * 200_000
    CUT = [
        ("no CRLF behind it", LARGE + b"yEND\r\n"),
        ("no END", LARGE + b"\r\nSTORED\r\n"),
        ("another value", LARGE + b"\r\nVALUE /b? 0 1 1\r\nx\r\nEND\r\n"),
        ("the end of the connection", LARGE[:150_000]),
        ("the end of the connection before the last octet", LARGE[:-1]),
        ("the end of the connection before END", LARGE + b"\r\n"),
    ]

    def test_a_large_value_that_goes_wrong_is_visibly_cut(self):
        for name, answer in self.CUT:
            def handler(line, data, peer, answer=answer):
                peer.sendall(answer)
                return None
            with self.subTest(name):
                self.server = self.enterContext(Scripted("a", handler))
                self.start([self.server])
                for _ in range(2):
                    with wire.Connection(self.web) as client:
                        client.send(wire.request_text("GET", "/a"))
                        taken = client.response()
                    self.assertTrue(taken.cut or taken.status == 502, taken.status)
                # A connection that is out of step is not used again.
                self.assertEqual(self.server.connections, self.server.count(b"gets"))

    def test_another_large_value_is_502(self):
        self.scripted(b"VALUE /b? 0 200000 1\r\n" + b"x" * 200_000 + b"\r\nEND\r\n")
        self.assertEqual(self.get("/a").status, 502)

    def test_a_server_that_resets(self):
        def handler(line, data, peer):
            wire.abort(peer)
        self.server = self.enterContext(Scripted("a", handler))
        self.start([self.server])
        self.assertEqual(self.get("/a").status, 502)

    def test_a_kept_connection_that_is_reset_is_replaced_once(self):
        self.server = self.enterContext(Scripted("a"))
        self.start([self.server])
        self.assertEqual(self.get("/warm").status, 404)

        def second(line, data, peer):
            return b"VALUE /a? 0 1 1\r\nx\r\nEND\r\n"

        def first(line, data, peer):
            self.server.handler = second
            wire.abort(peer)
        self.server.handler = first
        self.assertEqual(self.get("/a").text, "x")
        self.assertEqual(self.server.connections, 2)

    def test_octets_on_an_idle_connection_are_for_nobody(self):
        peers = []

        def handler(line, data, peer):
            peers.append(peer)
            return b"END\r\n"
        self.server = self.enterContext(Scripted("a", handler))
        self.start([self.server])
        self.assertEqual(self.get("/a").status, 404)
        peers[0].sendall(b"VALUE /a? 0 4 1\r\nevil\r\nEND\r\n")
        wait_until(lambda: not self.server.open, "the connection is closed")
        self.assertEqual(self.get("/a").status, 404)

    def test_no_server_on_the_ring(self):
        self.server = self.enterContext(Scripted("a"))
        self.start([type("Down", (), {"entry": lambda _: self.server.entry(state="down")})()])
        self.assertEqual(self.get("/a").status, 503)
        self.assertEqual(self.server.seen, [])

    WRITES = [
        (b"SERVER_ERROR object too large for cache\r\n", 413),
        (b"SERVER_ERROR out of memory storing object\r\n", 507),
        (b"SERVER_ERROR out of memory\r\n", 502),
        (b"CLIENT_ERROR bad data chunk\r\n", 502),
        (b"ERROR\r\n", 502),
        (b"VALUE /a? 0 1 1\r\nx\r\nEND\r\n", 502),
        (b"DELETED\r\n", 502),
        (b"\0\r\n", 502),
        (None, 502),
    ]

    def test_what_a_server_says_to_a_write(self):
        self.scripted(b"", settings={"writable": True, "down_after": 1000})
        for says, status in self.WRITES:
            self.server.handler = lambda line, data, peer, says=says: b"EN\r\n" if line.startswith(b"mg") else says
            for conditions in ({}, {"If_None_Match": "*"}, {"If_Match": "*"}, {"If_Match": '"5"'}):
                with self.subTest(says=says, conditions=conditions):
                    self.assertEqual(self.ask("PUT", "/a", b"x", **conditions).status, status)

    def test_what_a_server_says_to_a_delete(self):
        self.scripted(b"", settings={"writable": True, "down_after": 1000})
        for says, status in ((b"SERVER_ERROR no\r\n", 502), (b"CLIENT_ERROR no\r\n", 502), (b"ERROR\r\n", 502), (None, 502),
                             (b"STORED\r\n", 502), (b"DELETED\r\n", 204), (b"NOT_FOUND\r\n", 404)):
            with self.subTest(says):
                self.server.handler = lambda line, data, peer, says=says: says
                self.assertEqual(self.ask("DELETE", "/a").status, status)

    def test_a_write_whose_client_left_is_finished(self):
        release = threading.Event()
        self.addCleanup(release.set)
        self.scripted(lambda line: b"EN\r\n" if line.startswith(b"mg") else release.wait(20) and b"STORED\r\n",
                      settings={"writable": True}, pool={"timeouts": {"response": "20s"}})
        with wire.Connection(self.web) as client:
            client.send(wire.request_text("PUT", "/a", body=b"x" * 100_000))
            wait_until(lambda: self.server.count(b"set"), "it is written")
            wire.abort(client.sock)
            wait_until(lambda: Page(self.proxy.admin("/metrics").text).sum("clockwise_http_requests_in_flight") == 0,
                       "the client has left")
        release.set()
        wait_until(lambda: self.count("set", "stored") == 1, "what came of it is counted")

    def test_a_server_that_is_not_there(self):
        port = free_port()
        self.start([type("Gone", (), {"entry": lambda _: {"name": "a", "address": f"127.0.0.1:{port}"}})()])
        for _ in range(5):
            self.assertEqual(self.get("/a").status, 502)

    def test_a_server_that_says_nothing(self):
        release = threading.Event()
        self.addCleanup(release.set)
        self.scripted(lambda line: release.wait(30) and b"END\r\n", pool={"timeouts": {"response": "200ms"}})
        self.assertEqual(self.get("/a").status, 504)

    def test_a_value_that_breaks_off_is_not_taken_for_whole(self):
        self.scripted(b"VALUE /a? 0 200000 1\r\n" + b"x" * 100_000)
        with wire.Connection(self.web) as client:
            client.send(wire.request_text("GET", "/a"))
            wait_until(lambda: self.server.count(b"gets") > 0, "it was asked")
            self.server.drop_connections()
            answer = client.response()
        self.assertTrue(answer.cut or answer.status == 502)

    def test_no_memory_for_a_value(self):
        self.scripted(lambda line: b"EN\r\n" if line.startswith(b"mg") else b"SERVER_ERROR out of memory storing object\r\n",
                      settings={"writable": True})
        self.assertEqual(self.ask("PUT", "/a", b"x").status, 507)


class Failover(Front):
    """`failover: next`: the next server on the ring is asked in the same request."""

    FAST = {"timeouts": {"connect": "300ms", "response": "300ms"}}

    def start_two(self, home, *, failover="next", settings=None, **options):
        """Two servers: each has the key `self.target` leads to, and `home` is what its owner answers."""
        self.home, self.next = None, None
        answers = {}

        def handler(name):
            return lambda line, data, peer: answers[name](line, data, peer)

        def echo(line, data, peer):
            verb = line.split()[0]
            if verb == b"gets":
                return b"VALUE %s 0 9 1\r\nfrom next\r\nEND\r\n" % line.split()[1]
            return {b"mg": b"EN\r\n", b"delete": b"DELETED\r\n"}.get(verb, b"STORED\r\n")
        servers = {name: self.enterContext(Scripted(name, handler(name))) for name in "ab"}
        answers.update(a=echo, b=echo)
        self.start(list(servers.values()), pool={"failover": failover, **self.FAST, **options.pop("pool", {})},
                   settings={"writable": True, "down_after": 1000, **(settings or {})}, **options)
        self.target = "/item"
        self.get(self.target)
        owner = next(name for name, server in servers.items() if server.seen)
        self.home, self.next = servers[owner], servers["b" if owner == "a" else "a"]
        for server in servers.values():
            server.seen.clear()
        if home == "gone":
            self.home.close()
        else:
            answers[owner] = home

    FAULTS = [("gone", "gone"), ("closed", lambda line, data, peer: None), ("late", lambda line, data, peer: b""),
              ("garbage", lambda line, data, peer: b"\0\r\n"),
              ("a value that breaks off", lambda line, data, peer: peer.sendall(b"VALUE /item? 0 100 1\r\nx"))]

    def test_a_read_is_answered_by_the_next(self):
        for name, fault in self.FAULTS:
            for method in ("GET", "HEAD"):
                with self.subTest(name, method=method):
                    self.start_two(fault)
                    answer = self.ask(method, self.target)
                    self.assertEqual((answer.status, answer.value("content-length")), (200, "9"))
                    self.assertEqual(self.next.seen, [b"gets /item?"])

    def test_only_if_it_may(self):
        self.start_two("gone", failover="fail_fast")
        self.assertEqual(self.get(self.target).status, 502)
        self.assertEqual(self.next.seen, [])

    def test_what_a_server_says_counts(self):
        for says, status in ((b"END\r\n", 404), (b"SERVER_ERROR out of memory\r\n", 502)):
            self.start_two(lambda line, data, peer, says=says: says)
            self.assertEqual(self.get(self.target).status, status)
            self.assertEqual(self.next.seen, [])

    def test_when_all_fail(self):
        self.start_two("gone")
        self.next.close()
        self.assertEqual(self.get(self.target).status, 502)

    def test_the_fallback_is_asked_after_all(self):
        with Origin(lambda exchange: exchange.reply(body=b"from the origin"), name="o") as origin:
            self.start_two("gone", pool={"fallback": "origin"}, pools={"origin": {"servers": [origin.entry()]}},
                           settings={"budget": "10s"})
            self.assertEqual(self.get(self.target).text, "from next")
            self.next.close()
            self.assertEqual(self.get(self.target).text, "from the origin")

    def test_all_together_cost_no_more_than_the_budget(self):
        with Origin(lambda exchange: exchange.reply(body=b"from the origin"), name="o") as origin:
            self.start_two(lambda line, data, peer: b"", pools={"origin": {"servers": [origin.entry()]}},
                           pool={"fallback": "origin", "timeouts": {"response": "20s"}}, settings={"budget": "50ms"})
            self.assertEqual(self.get(self.target).text, "from the origin")
            self.assertEqual(self.next.seen, [])

    def test_a_write_goes_there_for_a_short_time(self):
        self.start_two("gone", settings={"failover_ttl": "7s"})
        for headers, wanted in (({}, b"7"), ({"Cache_Control": "max-age=3"}, b"3"), ({"Cache_Control": "max-age=5000000"}, b"7"),
                                ({"Cache_Control": "max-age=0"}, b"-1")):
            self.assertEqual(self.ask("PUT", self.target, b"x", **headers).status, 201)
            self.assertEqual(self.next.seen[-1].split(), [b"set", b"/item?", b"0", wanted, b"1"])
        self.assertEqual(self.ask("DELETE", self.target).status, 204)

    def test_a_write_that_may_have_been_done_is_not_done_again(self):
        for fault in (lambda line, data, peer: b"", lambda line, data, peer: None):
            self.start_two(fault)
            self.assertIn(self.ask("PUT", self.target, b"x").status, (502, 504))
            self.assertEqual(self.next.seen, [])

    def test_what_is_filled_into_it_lives_as_short(self):
        def handler(exchange):
            exchange.reply(body=b"origin", headers={"Cache-Control": "max-age=100"})
        with Origin(handler, name="o") as origin:
            self.start_two("gone", pool={"fallback": "origin"}, pools={"origin": {"servers": [origin.entry()]}},
                           settings={"budget": "10s", "fill": True, "failover_ttl": "7s", "down_after": 1})
            self.next.handler = lambda line, data, peer: {b"gets": b"END\r\n", b"mg": b"EN\r\n", b"delete": b"DELETED\r\n"}.get(
                line.split()[0], b"STORED\r\n")
            self.assertEqual(self.get(self.target).text, "origin")
            wait_until(lambda: self.next.count(b"set"), "it is filled")
            self.assertEqual(next(line for line in self.next.seen if line.startswith(b"set")).split()[3], b"7")


class Holding(Front):
    """What slow clients make the proxy hold is bounded; nobody else waits for them."""

    SIZE = 8_000_000  # more than the system takes for a client that does not read

    def start_large(self, **options):
        value = b"x" * self.SIZE

        def handler(line, data, peer):
            words = line.split()
            if words[0] != b"gets":
                return b"EN\r\n" if words[0] == b"mg" else b"STORED\r\n"
            one = value if b"/big" in words[1] else b"small"
            return b"VALUE %s 0 %d 1\r\n%s\r\nEND\r\n" % (words[1], len(one), one)
        self.server = self.enterContext(Scripted("a", handler))
        pool = {"timeouts": {"response": "20s"}, **options.pop("pool", {})}
        self.start([self.server], listener={"limits": {"buffered": "18m"}}, pool=pool, settings={"budget": "20s"}, **options)

    def resident(self):
        status = pathlib.Path(f"/proc/{self.proxy.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024

    def slow(self, target="/big"):
        client = self.enterContext(wire.Connection(self.web, receive_buffer=4096))
        client.send(wire.request_text("GET", target))
        return client

    def test_values_that_slow_clients_do_not_take(self):
        self.start_large()
        self.get("/big")
        before = self.resident()
        slow = [self.slow(), self.slow()]
        heads = [client.head() for client in slow]
        self.assertEqual([head.status for head in heads], [200, 200])
        for _ in range(20):
            refused = self.get("/big")
            self.assertEqual((refused.status, refused.value("retry-after")), (503, "1"))
        self.assertEqual(self.get("/small").text, "small")
        self.assertLess(self.resident() - before, 64 << 20)
        wire.read_body(heads[0], slow[0].reader)
        self.assertEqual(bytes(heads[0].body), b"x" * self.SIZE)
        wait_until(lambda: self.get("/big").status == 200, "there is room again")

    def test_a_client_that_leaves_makes_room(self):
        self.start_large()
        slow = [self.slow(), self.slow()]
        for client in slow:
            self.assertEqual(client.head().status, 200)
        self.assertEqual(self.get("/big").status, 503)
        wire.abort(slow[0].sock)
        wait_until(lambda: self.get("/big").status == 200, "there is room again")

    def test_the_fallback_answers_where_there_is_no_room(self):
        with Origin(lambda exchange: exchange.reply(body=b"from the origin"), name="o") as origin:
            self.start_large(pool={"fallback": "origin"}, pools={"origin": {"servers": [origin.entry()]}})
            for client in (self.slow(), self.slow()):
                self.assertEqual(client.head().status, 200)
            self.assertEqual(self.get("/big").text, "from the origin")

    def test_bodies_that_slow_clients_send(self):
        answers = {b"mg": b"EN\r\n", b"set": b"STORED\r\n"}
        self.server = self.enterContext(Scripted("a", lambda line, data, peer: answers[line.split()[0]]))
        self.start([self.server], listener={"limits": {"buffered": "1m"}}, settings={"writable": True})

        def received():
            return Page(self.proxy.admin("/metrics").text).sum("clockwise_http_received_bytes_total", listener="web")
        slow = self.enterContext(wire.Connection(self.web))
        slow.send(b"PUT /a HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n" + b"x" * 800_000)
        wait_until(lambda: received() >= 800_000, "the most of it is there")
        self.assertEqual(self.ask("PUT", "/b", b"y" * 400_000).status, 503)
        self.assertEqual(self.ask("PUT", "/c", b"y" * 1000).status, 201)
        slow.send(b"x" * 100_000)
        # Who is alone has the room that it needs.
        self.assertEqual(slow.response("PUT").status, 201)
        self.assertEqual(self.ask("PUT", "/b", b"y" * 400_000).status, 201)

    def test_a_packed_value_that_does_not_fit_unpacked(self):
        packed = gzip.compress(bytes(30_000_000))
        big = b"x" * 8_000_000

        def handler(line, data, peer):
            value, flags = (packed, 2) if b"/packed" in line else (big, 0)
            return b"VALUE %s %d %d 1\r\n%s\r\nEND\r\n" % (line.split()[1], flags, len(value), value)
        self.server = self.enterContext(Scripted("a", handler))
        self.start([self.server], listener={"limits": {"buffered": "18m"}})
        self.assertEqual(len(self.get("/packed").body), 30_000_000)
        slow = self.slow()
        self.assertEqual(slow.head().status, 200)
        self.assertEqual(self.get("/packed").status, 503)
        self.assertEqual(self.get("/packed", Accept_Encoding="gzip").status, 200)


@needs_memcached
class Fallback(Front):
    def start_with_origin(self, handler=None, settings=None, pool=None, **options):
        self.origin = self.enterContext(Origin(handler or (lambda exchange: exchange.reply(body=b"from the origin")), name="o"))
        self.start_one(settings={"budget": "20s", **(settings or {})}, pool={"fallback": "origin", **(pool or {})},
                       pools={"origin": {"servers": [self.origin.entry()]}}, **options)

    def test_a_miss_is_answered_by_the_fallback(self):
        self.start_with_origin()
        self.store(b"/a?", b"stored")
        self.assertEqual(self.get("/a").text, "stored")
        answer = self.get("/b")
        self.assertEqual(answer.text, "from the origin")
        self.assertIn("clockwise; fwd=uri-miss", answer.value("cache-status"))
        self.assertIsNone(self.stored(b"/b?"))

    def test_the_fallback_may_have_a_cache_of_its_own(self):
        for settings in ({}, {"fill": True}):
            with self.subTest(settings):
                handler = lambda exchange: exchange.reply(200, exchange.request.target, {"Cache-Control": "max-age=100"})  # noqa: E731
                self.origin = self.enterContext(Origin(handler, name="o"))
                self.start_one(settings=settings, pool={"fallback": "origin"}, caches={"c": {"size": "4MiB"}},
                               pools={"origin": {"servers": [self.origin.entry()], "cache": "c"}})
                answers = [self.get("/a") for _ in range(2)]
                self.assertEqual([a.text for a in answers], ["/a"] * 2)
                if not settings:
                    self.assertIn("; hit", answers[1].value("cache-status"))
                    self.assertIsNone(self.stored(b"/a?"))
                    self.assertEqual(len(self.origin.requests), 1)
                self.assertEqual(self.get("/b").text, "/b")

    def test_other_methods_go_there_too(self):
        self.start_with_origin()
        self.assertEqual(self.ask("POST", "/a", b"x").text, "from the origin")

    def test_a_pool_that_is_down_is_no_error(self):
        self.start_with_origin()
        self.server.stop()
        for _ in range(6):
            self.assertEqual(self.get("/a").text, "from the origin")

    def test_a_pool_that_hangs_costs_no_more_than_its_budget(self):
        self.start_with_origin(settings={"budget": "60ms"}, pool={"timeouts": {"response": "20s"}})
        self.assertEqual(self.get("/warm").status, 200)
        self.server.freeze()
        self.addCleanup(self.server.thaw)
        began = time.monotonic()
        self.assertEqual(self.get("/a").text, "from the origin")
        self.assertLess(time.monotonic() - began, 10)  # far below what the pool would have taken


@needs_memcached
class Filling(Fallback):
    """`fill`: what the fallback answers is found in the pool afterwards."""

    def start_filling(self, handler, layout="raw", **settings):
        self.start_with_origin(handler, settings={"fill": True, "layout": layout, **settings})

    @staticmethod
    def answer(body=b"from the origin", status=200, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return lambda exchange: exchange.reply(status, body, named)

    def asked(self):
        return len(self.origin.requests)

    def test_the_second_request_finds_it_in_the_pool(self):
        self.start_filling(self.answer(Cache_Control="max-age=100"))
        self.assertEqual(self.get("/a").text, "from the origin")
        wait_until(lambda: self.stored(b"/a?") == b"from the origin", "it is stored")
        ttl = int(self.server.ask(b"mg /a? t\r\n").split()[1][1:])
        self.assertIn(ttl, range(90, 101))
        self.assertEqual(self.get("/a").value("cache-status"), "clockwise; hit")
        self.assertEqual(self.asked(), 1)

    def test_a_pool_without_servers_on_its_ring_keeps_nothing(self):
        for scheme in ("ketama", "maglev"):
            with self.subTest(scheme):
                self.start_with_origin(self.answer(Cache_Control="max-age=100"), settings={"fill": True},
                                       pool={"ring": {"scheme": scheme, "replicas": 2}})
                name = self.server.entry()["name"]
                answer = self.proxy.admin(f"/api/v1/pools/mc/servers/{name}?force=1", method="PUT", body='{"state": "draining"}')
                self.assertEqual(answer.status, 200, answer.text)
                for target in ("/a", "/b", "/a"):
                    self.assertEqual(self.get(target).text, "from the origin")

    def test_what_may_not_be_kept_is_not(self):
        for name, headers in (("no-store", {"Cache_Control": "no-store"}), ("private", {"Cache_Control": "private, max-age=9"}),
                              ("nothing said", {}), ("a cookie", {"Cache_Control": "max-age=9", "Set_Cookie": "a=b"}),
                              ("a choice", {"Cache_Control": "max-age=9", "Vary": "Accept-Language"}),
                              ("stale at once", {"Cache_Control": "max-age=0"})):
            with self.subTest(name):
                self.start_filling(self.answer(**headers))
                self.assertEqual(self.get("/a").text, "from the origin")
                self.assertEqual(self.get("/a").text, "from the origin")
                self.assertGreaterEqual(self.asked(), 1)
                self.assertIsNone(self.stored(b"/a?"))

    def test_an_error_is_not_stored(self):
        self.start_filling(self.answer(status=503, Cache_Control="max-age=100"))
        self.assertEqual(self.get("/a").status, 503)
        self.assertIsNone(self.stored(b"/a?"))

    def test_a_status_needs_the_layout_that_has_room_for_it(self):
        self.start_filling(self.answer(b"none", status=404), layout="http", negative_ttl="50s")
        self.assertEqual(self.get("/a").status, 404)
        wait_until(lambda: self.stored(b"/a?") is not None, "it is stored")
        self.assertTrue(self.stored(b"/a?").startswith(b"HTTP/1.1 404 Not Found\r\n"))
        again = self.get("/a")
        self.assertEqual((again.status, again.text), (404, "none"))
        self.assertEqual(self.asked(), 1)

    def test_many_who_wait_are_one_fetch(self):
        release = threading.Event()

        def slow(exchange):
            release.wait(20)
            exchange.reply(body=b"slow", headers={"Cache-Control": "max-age=100"})

        self.start_filling(slow, budget="2s")
        clients = [self.enterContext(wire.Connection(self.web)) for _ in range(50)]
        for client in clients:
            client.send(wire.request_text("GET", "/a"))
        wait_until(lambda: self.asked() == 1, "the origin is asked")
        page = lambda: Page(self.proxy.admin("/metrics").text)  # noqa: E731
        wait_until(lambda: page().sum("clockwise_cache_collapsed_waiting") >= 49 or self.asked() > 1, "all others wait")
        release.set()
        for client in clients:
            self.assertEqual(client.response().text, "slow")
        self.assertEqual(self.asked(), 1)

    def test_what_others_deleted_is_fetched_again(self):
        self.start_filling(self.answer(Cache_Control="max-age=100"))
        self.get("/a")
        wait_until(lambda: self.stored(b"/a?") is not None, "it is stored")
        self.server.ask(b"delete /a?\r\n")
        self.assertEqual(self.get("/a").text, "from the origin")
        self.assertEqual(self.asked(), 2)


if __name__ == "__main__":
    unittest.main()
