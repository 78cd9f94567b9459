"""The cache under load: one fetch for many, and octets as they arrive."""

import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.caching import (Caching, STALE, answer, cache_status,  # noqa: E402
                             hang, not_modified, reset)
from support.clockwise import SANITIZED, wait_until  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
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
        self.wait_asked("/", before + 10)
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
                        together.append(exchange.origin.wait(lambda: self.asked(target) >= wanted,
                                                             15))
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
        self.fill("/", answer("no-store"), gate := self.gate(answer("no-store")),
                  answer("no-store"))
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
        self.says("/", lambda e: (e.origin.wait(lambda: self.asked("/") >= 5, 15),
                                  answer("max-age=60")(e)))
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
            self.assertIn((got.status, got.text if got.status == 200 else ""),
                          ((200, "good"), (502, "")))
        self.assertLessEqual(self.asked("/"), 3)

    def test_conditions_and_methods_of_those_who_wait_are_their_own(self):
        self.site()
        gate = self.gate(answer("max-age=60", etag='"v1"', body=b"0123456789"))
        self.says("/", gate)
        clients = [(self.start("/"), "GET"), (self.start("/", {"If-None-Match": '"v1"'}), "GET"),
                   (self.start("/", {"If-None-Match": '"v2"'}), "GET"),
                   (self.start("/", method="HEAD"), "HEAD")]
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
        wait_until(lambda: self.proxy.page().sum("clockwise_cache_collapsed_waiting") == 0,
                   "nobody waits")
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
            self.assertEqual((bytes(got.body) == body, self.asked("/")), (True, 1),
                             f"leads: {slow_leads}")
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
        self.assertLess(self.proxy.resident_bytes() - before,
                        16 * MIB if not SANITIZED else 256 * MIB)
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
        self.fill("/", answer("max-age=60, stale-while-revalidate=600", **STALE),
                  not_modified("max-age=60"))
        self.assertEqual(self.get("/").text, "1")
        got = self.wait_stored("/", "1")
        self.assertLess(int(got.value("Age")), 60)
        self.assertEqual(self.asked("/"), 2)

    def test_a_background_that_fails_harms_nobody(self):
        self.site(pool={"retry": {"attempts": 0}})
        self.fill("/", answer("max-age=60, stale-while-revalidate=600", **STALE), reset,
                  answer("no-store", status=503), answer("max-age=60"))
        wait_until(lambda: self.get("/").text == "4", "the validation that succeeds")

    def test_a_background_that_is_of_no_use_keeps_its_connection(self):
        for what, said in (("not shared", answer("no-store", body=b"own")),
                           ("failed", answer("no-store", status=503, body=b"failed"))):
            with self.subTest(what):
                self.site(workers=1, pool={"retry": {"attempts": 0}})
                self.fill("/", answer("max-age=60, stale-while-revalidate=600", **STALE), said)
                self.assertEqual(self.get("/").text, "1")
                self.proxy.wait_metric(1, "clockwise_cache_revalidations_total")
                self.get("/other")
                self.assertEqual(self.origin.connections, 1)

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
        self.site({"stale_after": "100ms"}, pool={"timeouts": {"response": "300ms"},
                                                  "retry": {"attempts": 0}})
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


if __name__ == "__main__":
    unittest.main()
