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

    def start(self, servers, *, pool=None, settings=None, pools=None, listener=None):
        self.servers = servers
        self.proxy = self.enterContext(Proxy({
            "workers": 1,
            "access_log": "off",
            "listeners": [{"name": "web", "address": "127.0.0.1:0", "pool": "mc", **(listener or {})}],
            "pools": {"mc": {"protocol": "memcached", "servers": [s.entry() for s in servers],
                             "memcached": settings or {}, **(pool or {})}, **(pools or {})},
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


@needs_memcached
class Fallback(Front):
    def start_with_origin(self, handler=None, settings=None, pool=None, **options):
        self.origin = self.enterContext(Origin(handler or (lambda exchange: exchange.reply(body=b"from the origin")), name="o"))
        self.start_one(settings=settings, pool={"fallback": "origin", **(pool or {})},
                       pools={"origin": {"servers": [self.origin.entry()]}}, **options)

    def test_a_miss_is_answered_by_the_fallback(self):
        self.start_with_origin()
        self.store(b"/a?", b"stored")
        self.assertEqual(self.get("/a").text, "stored")
        answer = self.get("/b")
        self.assertEqual(answer.text, "from the origin")
        self.assertIn("clockwise; fwd=uri-miss", answer.value("cache-status"))
        self.assertIsNone(self.stored(b"/b?"))

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
