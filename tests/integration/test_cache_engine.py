"""The cache under load and under attack: one fetch for many, bounded memory, purges, faults."""

import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.caching import (Caching, Document, answer, cache_status, hang, not_modified,  # noqa: E402
                             reset)
from support.clockwise import SANITIZED, wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
STALE = {"age": "70", "etag": '"v1"'}
MANY = 30 if SANITIZED else 100


class Coalescing(Caching):
    """One fetch for each key and variant (RFC 9111 section 4, last paragraph)."""

    def texts(self, clients):
        return [client.response().text for client in clients]

    def test_many_clients_one_fetch(self):
        self.site()
        gate = self.gate(answer("max-age=60"))
        self.says("/", gate)
        clients = self.crowd(MANY, "/")
        self.wait_collapsed(MANY - 1)
        gate.open()
        answers = [client.response() for client in clients]
        self.assertEqual({(a.status, a.text) for a in answers}, {(200, "1")})
        self.assertEqual(self.asked("/"), 1)
        self.assertEqual(sum("collapsed" in cache_status(a) for a in answers), MANY - 1)
        self.assert_stored("/")

    def test_over_several_workers(self):
        self.site(workers=4)
        gate = self.gate(answer("max-age=60"))
        self.says("/", gate)
        clients = self.crowd(40, "/")
        self.wait_collapsed(39)
        gate.open()
        self.assertEqual(set(self.texts(clients)), {"1"})
        self.assertEqual(self.asked("/"), 1)
        for _ in range(40):
            self.assert_stored("/")

    def by_kind(self, exchange):
        answer("max-age=60", vary="Kind", body=exchange.request.values("Kind")[0])(exchange)

    def test_ten_variants_ten_fetches(self):
        """Nobody knows of the variants before the first answer is there."""
        self.site()
        held = threading.Event()
        self.addCleanup(held.set)

        def script(exchange):
            held.wait(60)
            self.by_kind(exchange)
        self.says("/", script)
        clients = self.crowd(MANY, "/", lambda n: {"Kind": f"k{n % 10}"})
        self.wait_collapsed(MANY - 10)
        held.set()
        self.assertEqual(self.texts(clients), [f"k{n % 10}" for n in range(MANY)])
        self.assertEqual(self.asked("/"), 10)

    def test_ten_known_variants_ten_fetches(self):
        self.site()
        self.fill("/", self.by_kind, headers={"Kind": "first"})
        held = threading.Event()
        self.addCleanup(held.set)
        self.says("/", lambda e: (held.wait(60), self.by_kind(e)))
        before = self.asked("/")
        clients = self.crowd(MANY, "/", lambda n: {"Kind": f"k{n % 10}"})
        self.wait_collapsed(MANY - 10)
        self.assertEqual(self.asked("/") - before, 10, "each variant has its own leader")
        held.set()
        self.assertEqual(self.texts(clients), [f"k{n % 10}" for n in range(MANY)])
        self.assertEqual(self.asked("/") - before, 10)

    def test_what_is_not_to_be_shared_does_not_queue(self):
        """All that wait leave at once, and the next ones do not wait at all."""
        self.site()
        size = 50
        for control in ("no-store", "private, max-age=60", None):
            with self.subTest(control):
                target = f"/{control}".replace(" ", "")
                go = threading.Event()
                self.addCleanup(go.set)
                together = []

                def script(exchange, target=target, go=go, together=together, control=control):
                    if exchange.nth == 1:
                        go.wait(60)
                    else:
                        wanted = size * (1 + (exchange.nth - 1) // size)
                        together.append(exchange.origin.wait(lambda: self.asked(target) >= wanted, 15))
                    answer(control)(exchange)
                self.says(target, script)
                clients = self.crowd(size, target)
                self.wait_collapsed(size - 1)
                go.set()
                self.assertEqual(len(set(self.texts(clients))), size)
                self.assertEqual(len(set(self.texts(self.crowd(size, target)))), size)
                self.assertEqual((len(together), all(together)), (2 * size - 1, True))

    def test_waiters_leave_on_the_head_not_on_the_end(self):
        self.site()
        go = threading.Event()
        self.addCleanup(go.set)
        body = self.gate(answer("no-store", body=b"x" * 1000), first=10)

        def leader(exchange):
            go.wait(60)
            body(exchange)
        self.says("/", leader, answer("no-store", body=b"own"))
        clients = self.crowd(10, "/")
        self.wait_collapsed(9)
        go.set()
        self.assertEqual(sorted(c.response().text for c in clients[1:]), ["own"] * 9)
        body.open()
        self.assertEqual(len(clients[0].response().body), 1000)

    def test_what_becomes_shareable_is_shared_again(self):
        self.site()
        self.fill("/", answer("no-store"), answer("no-store"), answer("max-age=60"))
        self.assert_fetched("/", "2")
        self.assert_fetched("/", "3")
        self.assert_stored("/", "3")

    def test_a_mark_that_is_switched_off(self):
        self.site({"hit_for_miss": "0s"})
        self.fill("/", answer("no-store"), gate := self.gate(answer("no-store")), answer("no-store"))
        clients = self.crowd(5, "/")
        self.wait_collapsed(4)
        gate.open()
        self.assertEqual(sorted(self.texts(clients)), ["2", "3", "4", "5", "6"])

    def assert_together(self, size, target, headers=None, method="GET", **options):
        """The origin holds each answer until it has seen all the requests."""
        self.says(target, lambda e: (e.origin.wait(lambda: self.asked(target) >= size, 15),
                                     answer("max-age=60")(e)))
        clients = self.crowd(size, target, headers, method=method, **options)
        self.assertEqual({client.response(method).status for client in clients}, {200})
        self.assertEqual(self.asked(target), size)

    def test_unsafe_methods_are_never_joined(self):
        self.site()
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            self.assert_together(5, f"/{method}", method=method, body=b"x")

    def test_nor_requests_with_authorization_of_what_is_unknown(self):
        self.site()
        self.assert_together(5, "/", headers=lambda n: {"Authorization": f"Basic {n}"})

    def test_nor_requests_with_a_body(self):
        self.site()
        self.assert_together(5, "/", body=b"x")

    def test_nor_when_switched_off(self):
        self.site({"coalesce": False})
        self.assert_together(5, "/")

    def test_a_number_of_waiters(self):
        self.site({"coalesce_waiters": 5})
        self.says("/", lambda e: (e.origin.wait(lambda: self.asked("/") >= 5, 15), answer("max-age=60")(e)))
        clients = self.crowd(10, "/")
        self.assertEqual(len([c.response() for c in clients]), 10)
        self.assertEqual(self.asked("/"), 5, "one leads, five wait, four ask for themselves")

    def test_a_time_to_wait(self):
        self.site({"coalesce_timeout": "200ms"})
        gate = self.gate(answer("max-age=60", body=b"late"))
        self.says("/", gate, answer("max-age=60", body=b"own"))
        leader = self.start("/")
        self.wait_asked("/", 1)
        self.assertEqual(self.get("/").text, "own")
        gate.open()
        self.assertEqual(leader.response().text, "late")

    def test_a_leader_whose_origin_fails_does_not_let_all_loose(self):
        self.site({"coalesce_timeout": "10s"}, pool={"retry": {"attempts": 0}})
        gate = self.gate(reset)
        self.says("/", gate, answer("max-age=60", body=b"good"))
        clients = self.crowd(20, "/")
        self.wait_collapsed(19)
        gate.open()
        answers = [client.response() for client in clients]
        for got in answers:
            self.assertIn((got.status, got.text if got.status == 200 else ""), ((200, "good"), (502, "")))
        self.assertLessEqual(self.asked("/"), 3)

    def test_conditions_and_methods_of_those_who_wait_are_their_own(self):
        self.site()
        gate = self.gate(answer("max-age=60", etag='"v1"', body=b"0123456789"))
        self.says("/", gate)
        clients = [(self.start("/"), "GET"), (self.start("/", {"If-None-Match": '"v1"'}), "GET"),
                   (self.start("/", {"If-None-Match": '"v2"'}), "GET"), (self.start("/", method="HEAD"), "HEAD")]
        self.wait_asked("/", 1)
        gate.open()
        got = [client.response(method) for client, method in clients]
        self.assertEqual([(a.status, a.text) for a in got],
                         [(200, "0123456789"), (304, ""), (200, "0123456789"), (200, "")])

    def test_a_waiter_that_leaves_harms_nobody(self):
        self.site()
        gate = self.gate(answer("max-age=60"))
        self.says("/", gate)
        clients = self.crowd(10, "/")
        self.wait_collapsed(9)
        for client in clients[5:]:
            client.abort()
        gate.open()
        self.assertEqual(set(self.texts(clients[:5])), {"1"})
        wait_until(lambda: self.proxy.page().sum("clockwise_cache_collapsed_waiting") == 0, "nobody waits")
        self.assertEqual(self.asked("/"), 1)


class Streaming(Caching):
    """Who comes while an answer arrives has its octets as they arrive."""
    BODY = bytes(range(256)) * 400      # 100 KiB

    def held(self, first=50_000, chunked=False, control="max-age=60"):
        fields = {"transfer_encoding": "chunked"} if chunked else {}
        gate = self.gate(answer(control, body=self.BODY, etag='"v1"', **fields), first, chunked)
        self.says("/", gate)
        return gate

    def begin(self, headers=None, octets=1000):
        """A client that has the head and so many octets of the body."""
        client = self.start("/", headers)
        client.message = client.head()
        client.pieces = wire.body_pieces(client.message, client.reader)
        client.read = b""
        while len(client.read) < octets:
            client.read += next(client.pieces)
        return client

    def finish(self, client):
        for piece in client.pieces:
            client.read += piece
        return client.read

    def test_followers_do_not_wait_for_the_end(self):
        for chunked in (False, True):
            with self.subTest(chunked=chunked):
                self.site()
                gate = self.held(chunked=chunked)
                clients = [self.begin() for _ in range(10)]
                self.assertTrue(all(c.read == self.BODY[:len(c.read)] for c in clients))
                self.assertEqual(self.asked("/"), 1)
                gate.open()
                for client in clients:
                    self.assertEqual(self.finish(client), self.BODY)
                    self.assertTrue(client.message.complete)
                self.assertEqual(self.asked("/"), 1)
                self.assert_stored("/", self.BODY.decode("latin-1"))

    def test_ranges_of_what_is_there_already(self):
        self.site()
        gate = self.held()
        leader = self.begin()
        got = self.get("/", {"Range": "bytes=10-99"})
        self.assertEqual((got.status, bytes(got.body)), (206, self.BODY[10:100]))
        self.assertEqual(self.asked("/"), 1)
        behind = self.start("/", {"Range": "bytes=99990-99999"})
        gate.open()
        got = behind.response()
        self.assertEqual((got.status, bytes(got.body)), (206, self.BODY[99990:100000]))
        self.assertEqual(self.finish(leader), self.BODY)

    def test_the_leader_leaves(self):
        self.site()
        gate = self.held()
        leader = self.begin()
        followers = [self.begin() for _ in range(3)]
        leader.abort()
        gate.open()
        for follower in followers:
            self.assertEqual(self.finish(follower), self.BODY)
        self.assertEqual(self.asked("/"), 1)
        self.assert_stored("/", self.BODY.decode("latin-1"))

    def test_the_leader_leaves_before_the_head(self):
        self.site()
        gate = self.gate(answer("max-age=60"))
        self.says("/", gate)
        leader = self.start("/")
        self.wait_asked("/", 1)
        followers = self.crowd(3, "/")
        self.wait_collapsed(3)
        leader.abort()
        gate.open()
        texts = {follower.response().text for follower in followers}
        self.assertEqual(len(texts), 1)
        self.assertLessEqual(self.asked("/"), 2)

    def test_the_last_client_leaves_late(self):
        """Half of it is in: the rest is worth fetching."""
        self.site()
        gate = self.held(first=90_000)
        self.begin(octets=80_000).abort()
        self.proxy.wait_metric(1, "clockwise_http_requests_total", code="aborted")
        gate.open()
        self.wait_stored("/", self.BODY.decode("latin-1"))
        self.assertEqual(self.asked("/"), 1)

    def test_the_last_client_leaves_early(self):
        self.site()
        gate = self.held(first=5_000)
        self.begin().abort()
        wait_until(lambda: gate.called_off, "the fetch to be called off")
        self.assertEqual(self.proxy.page().sum("clockwise_cache_objects"), 0)

    def test_how_much_counts_as_late(self):
        self.site({"finish_fill": "0%"})
        gate = self.held(first=5_000)
        self.begin().abort()
        self.proxy.wait_metric(1, "clockwise_http_requests_total", code="aborted")
        gate.open()
        self.wait_stored("/", self.BODY.decode("latin-1"))
        self.assertEqual(self.asked("/"), 1)

    def test_a_slow_reader_does_not_hold_the_others(self):
        self.site({"size": "64MiB", "max_object": "16MiB"})
        body = bytes(range(256)) * (12 * MIB // 256)
        self.says("/", answer("max-age=60", body=body))
        for slow_leads in (True, False):
            slow = self.enterContext(wire.Connection(self.proxy.web, receive_buffer=16384))
            slow.send(wire.request_text("GET", "/"))
            head = slow.head()
            got = self.get("/")
            self.assertEqual((bytes(got.body) == body, self.asked("/")), (True, 1), f"leads: {slow_leads}")
            self.assertEqual(b"".join(wire.body_pieces(head, slow.reader)) == body, True)

    def test_what_is_too_large_to_be_stored_takes_little_memory(self):
        size = (16 if SANITIZED else 64) * MIB
        self.site({"size": "8MiB", "max_object": "1MiB"})

        def script(exchange):
            block = b"x" * (64 * KIB)
            head = answer("max-age=60", content_length=str(size)).octets(b"", bodiless=True)
            exchange.send(head)
            for _ in range(size // len(block)):
                exchange.send(block)
        self.says("/", script)
        before = self.proxy.resident_bytes()
        with wire.Connection(self.proxy.web, timeout=60) as connection:
            connection.send(wire.request_text("GET", "/"))
            head = connection.head()
            self.assertEqual(sum(len(p) for p in wire.body_pieces(head, connection.reader)), size)
        self.assertLess(self.proxy.resident_bytes() - before, 16 * MIB if not SANITIZED else 256 * MIB)
        self.assertEqual(self.proxy.page().sum("clockwise_cache_objects"), 0)


class Behind(Caching):
    """Validation beside the answers, and origins that do not answer (RFC 5861)."""

    def test_a_crowd_within_stale_while_revalidate(self):
        self.site()
        gate = self.gate(answer("max-age=60"))
        self.fill("/", answer("max-age=60, stale-while-revalidate=600", **STALE), gate)
        clients = self.crowd(50, "/")
        self.assertEqual({client.response().text for client in clients}, {"1"})
        self.wait_asked("/", 2)
        self.assertEqual(self.get("/").text, "1")
        self.assertEqual(self.asked("/"), 2, "one validation for all of them")
        gate.open()
        self.wait_stored("/", "2")
        self.assertEqual(self.asked("/"), 2)

    def test_a_304_in_the_background(self):
        self.site()
        self.fill("/", answer("max-age=60, stale-while-revalidate=600", **STALE), not_modified("max-age=60"))
        self.assertEqual(self.get("/").text, "1")
        got = self.wait_stored("/", "1")
        self.assertLess(int(got.value("Age")), 60)
        self.assertEqual(self.asked("/"), 2)

    def test_a_background_that_fails_harms_nobody(self):
        self.site(pool={"retry": {"attempts": 0}})
        self.fill("/", answer("max-age=60, stale-while-revalidate=600", **STALE), reset,
                  answer("no-store", status=503), answer("max-age=60"))
        wait_until(lambda: self.get("/").text == "4", "the validation that succeeds")

    def test_no_client_is_needed_for_the_background(self):
        self.site()
        gate = self.gate(answer("max-age=60"))
        self.fill("/", answer("max-age=60, stale-while-revalidate=600", **STALE), gate)
        self.assertEqual(self.get("/").text, "1")    # its connection is closed by now
        self.wait_asked("/", 2)
        gate.open()
        self.wait_stored("/", "2")

    def test_one_validation_for_all_that_wait(self):
        self.site()
        gate = self.gate(not_modified("max-age=60"))
        self.fill("/", answer("max-age=60, must-revalidate", **STALE), gate)
        clients = self.crowd(30, "/")
        self.wait_collapsed(29)
        gate.open()
        self.assertEqual({client.response().text for client in clients}, {"1"})
        self.assertEqual(self.asked("/"), 2)

    def test_an_origin_that_hangs(self):
        """The limit for a validation that a stale answer can stand in for is short."""
        self.site({"stale_after": "100ms"}, pool={"timeouts": {"response": "10m"}})
        self.fill("/", answer("max-age=60, stale-if-error=600", **STALE), hang)
        clients = self.crowd(20, "/")
        for client in clients:
            got = client.response()
            self.assertEqual((got.status, got.text, cache_status(got)["fwd"]), (200, "1", "stale"))
        self.assertEqual(self.asked("/"), 2)

    def test_an_origin_that_hangs_after_the_head(self):
        self.site({"stale_after": "100ms"}, pool={"timeouts": {"response": "300ms"}})
        self.fill("/", answer("max-age=60, stale-if-error=600", **STALE),
                  self.gate(answer("max-age=60", body=b"x" * 100), first=10))
        got = self.get("/")
        self.assertTrue(got.text == "1" or got.cut, got.start)

    def test_a_late_answer_is_not_lost(self):
        self.site({"stale_after": "100ms"})
        gate = self.gate(answer("max-age=60"))
        self.fill("/", answer("max-age=60, stale-if-error=600", **STALE), gate)
        self.assertEqual(self.get("/").text, "1")
        gate.open()
        self.wait_stored("/", "2")
        self.assertEqual(self.asked("/"), 2)

    def test_hanging_without_a_stale_answer_is_a_504(self):
        self.site({"stale_after": "100ms"}, pool={"timeouts": {"response": "300ms"}, "retry": {"attempts": 0}})
        self.fill("/", answer("max-age=60, must-revalidate", **STALE), hang)
        self.assertEqual(self.get("/").status, 504)
        self.says("/cold", hang)
        self.assertEqual(self.get("/cold").status, 504)

    def test_refresh_ahead(self):
        self.site({"refresh_ahead": "50%"})
        self.fill("/", answer("max-age=100", age="70", etag='"v1"'), answer("max-age=100"))
        self.assertEqual(self.get("/").text, "1")
        self.wait_stored("/", "2")
        self.fill("/young", answer("max-age=100", age="10", etag='"v1"'), answer("max-age=100"))
        for _ in range(5):
            self.assert_stored("/young")


class Purging(Caching):
    """POST /api/v1/caches/NAME/purge."""
    LONG = "max-age=600"

    def fill_all(self, *targets, host="h.example", **fields):
        for target in targets:
            self.fill(target, answer(self.LONG, **fields), host=host)

    def test_by_url(self):
        self.site()
        self.fill_all("/a", "/b", "/a?x")
        self.assert_purged(1, url="http://h.example/a")
        self.assert_fetched("/a")
        self.assert_stored("/b")
        self.assert_stored("/a?x")
        self.assert_purged(0, url="http://h.example/none")
        self.assert_purged(0, url="http://other.example/b")
        self.assert_purged(1, url="http://H.EXAMPLE:80/b")
        self.assert_fetched("/b")

    def test_by_url_all_variants(self):
        self.site()
        self.says("/", answer(self.LONG, vary="Foo"))
        for value in "123":
            self.get("/", {"Foo": value})
        self.assert_purged(3, url="http://h.example/")
        for number, value in enumerate("123"):
            self.assert_fetched("/", str(number + 4), headers={"Foo": value})

    def test_by_prefix(self):
        self.site()
        self.fill_all("/img/a", "/img/b?c", "/imgs", "/css/a")
        self.fill("/img/a", answer(self.LONG), host="other.example")
        self.assert_purged(2, prefix="http://h.example/img/")
        for target in ("/imgs", "/css/a"):
            self.assert_stored(target)
        self.assert_stored("/img/a", host="other.example")
        self.assert_fetched("/img/b?c")

    def test_by_host(self):
        self.site()
        self.fill_all("/a", "/b")
        self.fill("/a", answer(self.LONG), host="other.example")
        self.assert_purged(2, host="h.example")
        self.assert_stored("/a", host="other.example")
        self.assert_fetched("/b")

    def test_by_tag(self):
        self.site()
        self.fill_all("/1", cache_tag="news, sport")
        self.fill_all("/2", cache_tag="news")
        self.fill_all("/3", surrogate_key="sport weather")
        self.fill_all("/4", cache_tag=["weather", "sports"])
        self.fill_all("/5")
        self.assert_purged(2, tag="sport")
        self.assert_fetched("/1")
        self.assert_fetched("/3")
        for target in ("/2", "/4", "/5"):
            self.assert_stored(target)
        self.assert_purged(0, tag="new")

    def test_all(self):
        self.site()
        self.fill_all(*(f"/{n}" for n in range(50)))
        self.assert_purged(50, all=True)
        wait_until(lambda: self.proxy.page().sum("clockwise_cache_objects") == 0, "the store is empty")
        for number in range(0, 50, 7):
            self.assert_fetched(f"/{number}")

    def test_softly(self):
        """Stale from now on, but there for validation and for an origin that fails."""
        self.site(pool={"retry": {"attempts": 0}})
        for target in ("/a", "/b"):
            self.fill(target, answer(self.LONG, etag='"v1"'), not_modified(self.LONG) if target == "/a" else reset)
        self.assert_purged(1, url="http://h.example/a", soft=True)
        self.assertEqual((self.get("/a").text, self.requests("/a")[-1].value("If-None-Match")), ("1", '"v1"'))
        self.assert_stored("/a")
        self.assert_purged(2, all=True, soft=True)
        got = self.get("/b")
        self.assertEqual((got.status, got.text, cache_status(got)["fwd"]), (200, "1", "stale"))

    def test_what_is_under_way_is_purged_too(self):
        for what in ({"url": "http://h.example/"}, {"prefix": "http://h.example/"}, {"host": "h.example"},
                     {"tag": "t"}, {"all": True}):
            with self.subTest(what):
                self.site()
                gate = self.gate(answer(self.LONG, body=b"old" * 1000, cache_tag="t"), first=10)
                self.says("/", gate, answer(self.LONG, body=b"new"))
                client = self.start("/")
                head = client.head()
                self.assertEqual(self.purge(**what).status, 200)
                self.assertEqual(self.get("/").text, "new", "from the moment of the answer")
                gate.open()
                self.assertEqual(len(wire.read_body(head, client.reader).body), 3000)
                self.assert_stored("/", "new")

    def test_what_has_been_asked_but_not_answered_is_purged_too(self):
        self.site()
        gate = self.gate(answer(self.LONG, body=b"old"))
        self.says("/", gate, answer(self.LONG, body=b"new"))
        client = self.start("/")
        self.wait_asked("/", 1)
        self.assertEqual(self.purge(url="http://h.example/").status, 200)
        gate.open()
        self.assertEqual(client.response().text, "old")
        self.assertEqual(self.get("/").text, "new")

    def test_filled_again_after_a_purge(self):
        self.site()
        for what in ({"prefix": "http://h.example/"}, {"host": "h.example"}, {"tag": "t"}, {"all": True}):
            self.fill("/", answer(self.LONG, cache_tag="t"))
            self.assert_purged(1, **what)
            self.assert_fetched("/")
            self.assert_stored("/", "2")
            self.assert_purged(1, **what)

    def test_over_several_workers(self):
        self.site(workers=4)
        for number in range(40):
            self.fill_all(f"/{number}")
        self.assert_purged(40, host="h.example")
        for number in range(40):
            self.assert_fetched(f"/{number}")

    def test_what_it_refuses(self):
        self.site()
        for body, status in (("", 400), ("{", 400), ("[]", 400), ("{}", 400), ('{"url": 1}', 400), ('{"url": ""}', 400),
                             ('{"all": false}', 400), ('{"url": "http://h/a", "all": true}', 400),
                             ('{"what": "x"}', 400), ('{"url": "/a"}', 400)):
            with self.subTest(body):
                got = self.proxy.admin("/api/v1/caches/store/purge", method="POST", body=body)
                self.assertEqual(got.status, status)
                self.assertIn("message", got.json()["error"])
        self.assertEqual(self.proxy.admin("/api/v1/caches/none/purge", method="POST", body='{"all": true}').status, 404)
        self.assertEqual(self.proxy.admin("/api/v1/caches/store/purge").status, 405)

    def test_it_asks_for_the_token(self):
        self.site()
        document = {**self.proxy.document, "admin": {"address": f"127.0.0.1:{self.proxy.admin_port}", "token": "secret"}}
        self.assertEqual(self.proxy.reload(document).status, 200)
        self.fill_all("/")
        self.assertEqual(self.purge(all=True).status, 401)
        self.assert_stored("/")
        got = self.proxy.admin("/api/v1/caches/store/purge", method="POST", body='{"all": true}',
                               headers={"Authorization": "Bearer secret"})
        self.assertEqual((got.status, got.json()), (200, {"purged": 1}))

    def test_it_is_counted(self):
        self.site()
        self.fill_all("/a")
        for what in ({"url": "http://h.example/a"}, {"prefix": "http://h.example/"}, {"host": "h.example"},
                     {"tag": "t"}, {"all": True}):
            self.assertEqual(self.purge(**what).status, 200)
            self.assertEqual(self.proxy.page().sum("clockwise_cache_purges_total", scope=next(iter(what))), 1)


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
        self.assertGreater(self.proxy.page().sum("clockwise_cache_evictions_total", reason="size"), 0)

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
        self.many((f"/{n}" for n in range(2000)), answer("max-age=600", x_large="h" * 20_000, body=b""))
        self.check_bounded(before)

    def test_a_flood_of_variants(self):
        self.site({"size": "8MiB", "max_object": "1MiB", "vary_limit": 50})
        before = self.proxy.resident_bytes()
        count = 1000 if SANITIZED else 5000
        self.many(("/" for _ in range(count)), answer("max-age=600", vary="Foo"), lambda n: {"Foo": f"{n}" * 50})
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


class Reloads(Caching):
    """The key has nothing of the upstream in it."""

    def test_a_changed_server_list_keeps_what_is_stored(self):
        self.site(names="ab")
        for number in range(50):
            self.fill(f"/{number}", answer("max-age=600"))
        with Origin(self._answer, name="c") as third:
            self.proxy.change([self.origins[0], third], force=True)
            for number in range(50):
                self.assert_stored(f"/{number}")
            self.assertEqual(len(third.requests), 0)

    def test_a_server_that_is_gone(self):
        self.site(pool={"max_shrink": "100%"}, names="ab")
        self.fill("/", answer("max-age=600"))
        for origin in self.origins:
            origin.stop()
        self.assert_stored("/")

    def test_other_settings_keep_it_too(self):
        self.site()
        self.fill("/", answer("max-age=600"))
        self.proxy.document["caches"]["store"]["stale_if_error"] = "10s"
        self.proxy.document["pools"]["pages"]["timeouts"] = {"response": "5s"}
        self.assertEqual(self.proxy.reload(self.proxy.document).status, 200)
        self.assert_stored("/")

    def test_a_cache_switched_off_and_on(self):
        self.site()
        self.fill("/", answer("max-age=600"))
        self.proxy.document["pools"]["pages"]["cache"] = "off"
        self.assertEqual(self.proxy.reload(self.proxy.document).status, 200)
        got = self.get("/")
        self.assertEqual((got.text, got.value("Cache-Status")), ("2", None))
        self.proxy.document["pools"]["pages"]["cache"] = "store"
        self.assertEqual(self.proxy.reload(self.proxy.document).status, 200)
        self.assertIn(self.get("/").text, ("1", "3"))

    def test_a_reload_while_it_is_filled(self):
        self.site()
        gate = self.gate(answer("max-age=600", body=b"x" * 1000), first=10)
        self.says("/", gate)
        client = self.start("/")
        head = client.head()
        follower = self.start("/")
        self.proxy.document["pools"]["pages"]["timeouts"] = {"response": "50s"}
        self.assertEqual(self.proxy.reload(self.proxy.document).status, 200)
        gate.open()
        self.assertEqual(len(wire.read_body(head, client.reader).body), 1000)
        self.assertEqual(len(follower.response().body), 1000)
        self.assert_stored("/", "x" * 1000)


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
        self.check_broken(lambda e: (e.send(b"zz\r\ngarbage"), e.close()), transfer_encoding="chunked")

    def test_silence(self):
        self.site(pool={"retry": {"attempts": 0}, "timeouts": {"response": "300ms"}})
        self.says("/", self.gate(answer("max-age=600", body=self.BODY), first=50_000),
                  answer("max-age=600", body=b"whole"))
        self.assertTrue(self.get("/").cut)
        self.assert_fetched("/", "whole")

    def test_a_broken_validation_leaves_the_stored_answer(self):
        self.site({"stale_if_error": "600s"}, pool={"retry": {"attempts": 0}})
        self.fill("/", answer("max-age=60", **STALE),
                  lambda e: (e.send(answer("max-age=60").octets(self.BODY, bodiless=True) + b"x" * 10), e.close()),
                  not_modified("max-age=60"))
        got = self.get("/")
        self.assertTrue(got.cut or got.text == "1", got.start)
        again = self.get("/")
        self.assertIn((again.status, again.text), ((200, "1"), (200, "3")))
        self.assertFalse(again.cut)

    def test_a_304_for_another_version(self):
        """RFC 9111 section 4.3.4: a validator that does not match freshens nothing."""
        self.site()
        self.fill("/", answer("max-age=60", body=b"one", **STALE), not_modified("max-age=60", etag='"v9"'),
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
        evil = {"X-Forwarded-Host": "evil.example", "X-Original-URL": "/evil", "X-Rewrite-URL": "/evil",
                "X-HTTP-Method-Override": "DELETE", "X-HTTP-Method": "DELETE", "X-Method-Override": "DELETE",
                "X-Forwarded-Proto": "evil", "X-Host": "evil.example", "X-Forwarded-Server": "evil.example",
                "X-Forwarded-Scheme": "evil", "X-Forwarded-Port": "666", "X-Forwarded-Prefix": "/evil",
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
            self.assertEqual((got.status, bytes(got.body)), (206, document.body[number:number + 501]))
        self.assertEqual(bytes(self.get("/").body), document.body)
        self.assertLessEqual(self.proxy.page().sum("clockwise_cache_objects"), 4)

    def test_a_key_is_one_key(self):
        """Nothing that a client writes makes two targets meet."""
        self.site({"key": "{host}{uri}"})
        self.says("/b", answer("max-age=60", body=b"b"))
        self.says("/a/b", answer("max-age=60", body=b"ab"))
        self.assertEqual(self.get("/b", host="h/a").status, 400)
        self.assertEqual(self.get("/a/b", host="h").text, "ab")


class Counted(Caching):
    def test_what_became_of_requests(self):
        self.site(pool={"retry": {"attempts": 0}})
        self.fill("/", answer("max-age=60", body=b"x" * 1000))
        for _ in range(3):
            self.get("/")
        self.fill("/no", answer("no-store"))
        self.get("/no", method="POST", body=b"x")
        self.fill("/old", answer("max-age=60", **STALE), not_modified("max-age=60"))
        self.get("/old")
        self.fill("/dead", answer("max-age=60", **STALE), reset)
        self.get("/dead")
        page = self.proxy.page()
        wanted = {"hit": 3, "miss": 4, "bypass": 1, "revalidated": 1, "stale": 1}
        self.assertEqual({r: page.sum("clockwise_cache_requests_total", result=r) for r in wanted}, wanted)
        self.assertEqual(page.sum("clockwise_cache_revalidations_total", result="not_modified"), 1)
        self.assertEqual(page.sum("clockwise_cache_revalidations_total", result="failed"), 1)
        self.assertGreaterEqual(page.sum("clockwise_cache_sent_bytes_total", source="store"), 3000)
        self.assertGreaterEqual(page.sum("clockwise_cache_sent_bytes_total", source="origin"), 1000)
        self.assertEqual(page.sum("clockwise_cache_objects"), 3)
        self.assertGreater(page.sum("clockwise_cache_stored_bytes"), 1000)
        self.assertEqual(page.sum("clockwise_cache_limit_bytes"), 512 * MIB)

    def test_invalidated_and_purged(self):
        self.site()
        self.fill("/a", answer("max-age=60"))
        self.get("/a", method="POST", body=b"x")
        self.assertEqual(self.proxy.page().sum("clockwise_cache_evictions_total", reason="invalidated"), 1)
        self.fill("/b", answer("max-age=60"))
        self.purge(url="http://h.example/b")
        self.proxy.wait_metric(1, "clockwise_cache_evictions_total", reason="purged")


if __name__ == "__main__":
    unittest.main()
