"""The cache under attack: bounded memory, broken origins, answers that a client tries to make."""

import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.caching import Caching, Document, STALE, answer, not_modified  # noqa: E402
from support.clockwise import SANITIZED, wait_until  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20


class Memory(Caching):
    """What is held is bounded by `size`, whatever is asked for."""
    SIZE = 8 * MIB
    SLACK = (256 if SANITIZED else 24) * MIB

    def many(self, targets, script, headers=None):
        """Asks for each on one connection."""
        self.proxy_scripts(script)
        with wire.Connection(self.proxy.web) as connection:
            for number, target in enumerate(targets):
                got = connection.request("GET", target, headers(number) if headers else None)
                self.assertEqual(got.status, 200)

    def proxy_scripts(self, script):
        self.scripts = _All(script)

    def held(self):
        return self.proxy.page().sum("clockwise_cache_stored_bytes")

    def check_bounded(self, before):
        self.assertLessEqual(self.held(), self.SIZE)
        self.assertLess(self.proxy.resident_bytes() - before, self.SIZE + self.SLACK)

    def test_large_answers(self):
        self.site({"size": "8MiB", "max_object": "1MiB"})
        before = self.proxy.resident_bytes()
        body = b"x" * (200 * KIB)
        for _ in range(3):
            self.many((f"/{n}" for n in range(200)), answer("max-age=600", body=body))
            self.check_bounded(before)
        self.assertGreater(self.held(), self.SIZE // 3, "it is used")
        self.assertGreater(self.proxy.page().sum("clockwise_cache_evictions_total", reason="size"),
                           0)

    def test_small_answers_with_long_keys(self):
        """Keys, heads and the index count too."""
        self.site({"size": "8MiB", "max_object": "1MiB"})
        before = self.proxy.resident_bytes()
        count = 2000 if SANITIZED else 20_000
        self.many((f"/{n}?{'k' * 1000}" for n in range(count)), answer("max-age=600", body=b""))
        self.check_bounded(before)
        self.assertLess(self.proxy.page().sum("clockwise_cache_objects"), self.SIZE / 1000)

    def test_large_heads(self):
        self.site({"size": "8MiB", "max_object": "1MiB"})
        before = self.proxy.resident_bytes()
        self.many((f"/{n}" for n in range(2000)), answer("max-age=600", x_large="h" * 20_000,
                                                         body=b""))
        self.check_bounded(before)

    def test_a_flood_of_variants(self):
        self.site({"size": "8MiB", "max_object": "1MiB", "vary_limit": 50})
        before = self.proxy.resident_bytes()
        count = 1000 if SANITIZED else 5000
        self.many(("/" for _ in range(count)), answer("max-age=600", vary="Foo"),
                  lambda n: {"Foo": f"{n}" * 50})
        self.check_bounded(before)
        self.assertLessEqual(self.proxy.page().sum("clockwise_cache_objects"), 50)
        self.assert_fetched("/", headers={"Foo": "0" * 50}, body=str(count + 1))

    def test_a_flood_of_what_cannot_be_stored(self):
        """What is remembered of it counts too."""
        self.site({"size": "1MiB", "max_object": "64k"})
        before = self.proxy.resident_bytes()
        count = 2000 if SANITIZED else 20_000
        self.many((f"/{n}?{'k' * 500}" for n in range(count)), answer("no-store"))
        self.assertLess(self.proxy.resident_bytes() - before, MIB + self.SLACK)
        self.assertLessEqual(self.held(), MIB)

    def test_many_fills_at_once(self):
        self.site({"size": "8MiB", "max_object": "1MiB"})
        before = self.proxy.resident_bytes()
        body = b"x" * MIB
        gates = [self.gate(answer("max-age=600", body=body), first=MIB - 10) for _ in range(40)]
        clients = []
        for number, gate in enumerate(gates):
            clients.append(self.start(self.says(f"/{number}", gate)))
        heads = [client.head() for client in clients]
        for client in clients:
            while len(client.reader.buffer) < MIB - 10:
                self.assertTrue(client.reader.fill())
        self.check_bounded(before)
        for gate in gates:
            gate.open()
        for client, head in zip(clients, heads):
            self.assertEqual(len(wire.read_body(head, client.reader).body), MIB)
        self.check_bounded(before)

    def test_what_is_asked_for_often_stays(self):
        """A scan of what nobody asks for again does not push it out."""
        self.site({"size": "8MiB", "max_object": "1MiB"})
        hot = [f"/hot{n}" for n in range(20)]
        body = b"x" * (20 * KIB)
        for target in hot:
            self.fill(target, answer("max-age=600", body=body))
        for _ in range(3):
            for target in hot:
                self.get(target)
        self.many((f"/cold{n}" for n in range(2000)), answer("max-age=600", body=body))
        before = sum(self.asked(target) for target in hot)
        for target in hot:
            self.get(target)
        self.assertLessEqual(sum(self.asked(target) for target in hot) - before, 2)

    def test_a_smaller_size_after_a_reload(self):
        self.site({"size": "16MiB", "max_object": "1MiB"})
        self.many((f"/{n}" for n in range(100)), answer("max-age=600", body=b"x" * (100 * KIB)))
        self.assertGreater(self.held(), 4 * MIB)
        self.proxy.document["caches"]["store"]["size"] = "4MiB"
        self.assertEqual(self.proxy.reload(self.proxy.document).status, 200)
        self.many((f"/{n}" for n in range(100)), answer("max-age=600", body=b"x" * (100 * KIB)))
        wait_until(lambda: self.held() <= 4 * MIB, lambda: f"4 MiB at most, {self.held()} are held")
        self.assertEqual(self.proxy.page().sum("clockwise_cache_limit_bytes"), 4 * MIB)


class _All(dict):
    """One script for every target."""

    def __init__(self, script):
        super().__init__()
        self.script = [script]

    def get(self, _target, _default=None):
        return self.script


class Faults(Caching):
    """What came broken is never given as whole, to nobody."""
    BODY = b"x" * 100_000

    def check_broken(self, breaks, **fields):
        """`breaks(exchange)` ends the body of 100000 octets after 50000."""
        self.site(pool={"retry": {"attempts": 0}})
        go = threading.Event()
        self.addCleanup(go.set)

        def script(exchange):
            exchange.send(answer("max-age=600", **fields).octets(self.BODY, bodiless=True))
            body = self.BODY[:50_000]
            exchange.send(b"%x\r\n%s\r\n" % (len(body), body) if fields else body)
            go.wait(60)
            breaks(exchange)
        self.says("/", script, answer("max-age=600", body=b"whole"))
        leader, follower = self.start("/"), None
        heads = [leader.head()]
        follower = self.start("/")
        heads.append(follower.head())
        go.set()
        for head, client in zip(heads, (leader, follower)):
            self.assertEqual((head.status, wire.read_body(head, client.reader).cut), (200, True))
        self.assert_fetched("/", "whole")
        self.assert_stored("/", "whole")

    def test_cut_short(self):
        self.check_broken(lambda e: e.close())

    def test_reset(self):
        self.check_broken(lambda e: e.reset())

    def test_chunks_without_an_end(self):
        self.check_broken(lambda e: e.close(), transfer_encoding="chunked")

    def test_garbage_for_a_chunk(self):
        self.check_broken(lambda e: (e.send(b"zz\r\ngarbage"), e.close()),
                          transfer_encoding="chunked")

    def test_silence(self):
        self.site(pool={"retry": {"attempts": 0}, "timeouts": {"response": "300ms"}})
        self.says("/", self.gate(answer("max-age=600", body=self.BODY), first=50_000),
                  answer("max-age=600", body=b"whole"))
        self.assertTrue(self.get("/").cut)
        self.assert_fetched("/", "whole")

    def test_a_broken_validation_leaves_the_stored_answer(self):
        self.site({"stale_if_error": "600s"}, pool={"retry": {"attempts": 0}})
        self.fill("/", answer("max-age=60", **STALE),
                  lambda e: (e.send(answer("max-age=60").octets(self.BODY,
                                                                bodiless=True) + b"x" * 10),
                             e.close()),
                  not_modified("max-age=60"))
        got = self.get("/")
        self.assertTrue(got.cut or got.text == "1", got.start)
        again = self.get("/")
        self.assertIn((again.status, again.text), ((200, "1"), (200, "3")))
        self.assertFalse(again.cut)

    def test_a_304_for_another_version(self):
        """RFC 9111 section 4.3.4: a validator that does not match freshens nothing."""
        self.site()
        self.fill("/", answer("max-age=60", body=b"one", **STALE),
                  not_modified("max-age=60", etag='"v9"'),
                  answer("max-age=60", body=b"nine", etag='"v9"'))
        got = self.get("/")
        if got.text == "one":
            self.assertEqual(got.value("ETag"), '"v9"', "the origin renamed it")
        else:
            self.assertEqual(got.text, "nine")


class Poisoning(Caching):
    """No client can make the answer that others get (RFC 9111 section 7.1)."""

    def test_fields_that_are_not_in_the_key_do_not_reach_the_origin(self):
        self.site(listener={"forwarded": {"trust": []}})
        evil = {"X-Forwarded-Host": "evil.example", "X-Original-URL": "/evil",
                "X-Rewrite-URL": "/evil",
                "X-HTTP-Method-Override": "DELETE", "X-HTTP-Method": "DELETE",
                "X-Method-Override": "DELETE",
                "X-Forwarded-Proto": "evil", "X-Host": "evil.example",
                "X-Forwarded-Server": "evil.example",
                "X-Forwarded-Scheme": "evil", "X-Forwarded-Port": "666",
                "X-Forwarded-Prefix": "/evil",
                "Forwarded": "host=evil.example"}
        self.says("/", lambda e: answer("max-age=60", body=b"\n".join(
            n + b": " + v for n, v in e.request.fields))(e))
        seen = self.get("/", evil).text.lower()
        self.assertNotIn("evil", seen)
        self.assertNotIn("delete", seen)
        self.assertNotIn("666", seen)
        self.assertNotIn("evil", self.get("/").text)

    def test_the_host_is_in_the_key(self):
        self.site()
        self.says("/", lambda e: answer("max-age=60", body=e.request.values("Host")[0])(e))
        self.assertEqual(self.get("/", host="evil.example").text, "evil.example")
        self.assertEqual(self.get("/").text, "h.example")

    def test_an_error_that_a_client_provokes_is_not_kept(self):
        self.site(listener={"limits": {"header_size": "4k"}})
        self.says("/", lambda e: answer(None, status=400 if e.request.value("X-Bad") else 200)(e))
        self.assertEqual(self.get("/", {"X-Bad": "1"}).status, 400)
        self.assertEqual(self.get("/").status, 200)
        self.says("/large", answer("max-age=60"))
        self.assertEqual(self.get("/large", {"X-Large": "x" * 8000}).status, 431)
        self.assertEqual(self.get("/large").text, "1")

    def test_a_flood_of_ranges(self):
        self.site()
        document = Document(bytes(range(256)) * 400)
        self.says("/", document)
        for number in range(200):
            got = self.get("/", {"Range": f"bytes={number}-{number + 500}"})
            self.assertEqual((got.status, bytes(got.body)), (206,
                                                             document.body[number:number + 501]))
        self.assertEqual(bytes(self.get("/").body), document.body)
        self.assertLessEqual(self.proxy.page().sum("clockwise_cache_objects"), 4)

    def test_a_key_is_one_key(self):
        """Nothing that a client writes makes two targets meet."""
        self.site({"key": "{host}{uri}"})
        self.says("/b", answer("max-age=60", body=b"b"))
        self.says("/a/b", answer("max-age=60", body=b"ab"))
        self.assertEqual(self.get("/b", host="h/a").status, 400)
        self.assertEqual(self.get("/a/b", host="h").text, "ab")


if __name__ == "__main__":
    unittest.main()
