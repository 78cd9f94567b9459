"""A cache whose answers stand in memcached too, where several proxies share them."""

import pathlib
import signal
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.caching import STALE, Document, answer, cache_status, not_modified, reset  # noqa: E402
from support.clockwise import SANITIZED, run, wait_until  # noqa: E402
from support.memcached import Memcached, Scripted, needs_memcached  # noqa: E402
from support.shared import Shared, entry, entry_key, summed  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
LONG = "max-age=600"


def body_of(size):
    return b"".join(b"%015d\n" % n for n in range(size // 16))


@needs_memcached
class Sharing(Shared):
    def test_what_one_proxy_has_fetched_the_others_have(self):
        self.share(3)
        first = self.put("/a", answer(LONG, content_type="text/plain", x_thing=["1", "2"]))
        self.assertEqual(cache_status(first).get("fwd"), "uri-miss")
        got = self.assert_shared("/a", at=1)
        self.assertEqual(got.values("X-Thing"), [b"1", b"2"])
        self.assertEqual(got.value("Content-Type"), "text/plain")
        self.assertEqual(got.status, 200)
        again = cache_status(self.assert_stored("/a"))
        self.assertEqual((again.get("hit"), again.get("detail")), (True, None), "it is here now")
        self.assert_shared("/a", at=2)
        self.assertEqual(self.asked("/a"), 1)

    def test_a_restart_loses_nothing(self):
        self.share(1)
        self.put("/a", answer(LONG))
        self.assertEqual(self.proxy.stop(), 0)
        self.another()
        self.assert_shared("/a", at=1)

    def test_several_workers(self):
        self.share(2, workers=2)
        self.put("/a", answer(LONG))
        self.put("/b", answer(LONG))
        self.assert_shared("/a", at=1)
        self.assert_shared("/b")

    def test_it_is_as_old_as_it_was(self):
        self.share()
        self.put("/a", answer("max-age=60", age="40"))
        got = self.assert_shared("/a", at=1)
        self.assertIn(int(got.value("Age")), range(40, 50))
        self.assertIn(int(cache_status(got)["ttl"]), range(10, 21))
        self.assertEqual(len(got.values("Age")), 1)

    def test_the_client_gets_what_it_asks_for(self):
        self.share()
        self.put("/a", answer(LONG, body=b"0123456789", etag='"v1"'))
        part = self.at(1).get("/a", {"Range": "bytes=2-4"})
        self.assertEqual((part.status, part.text), (206, "234"))
        self.put("/b", answer(LONG, body=b"0123456789", etag='"v1"'))
        same = self.at(1).get("/b", {"If-None-Match": '"v1"'})
        self.assertEqual((same.status, same.text), (304, ""))
        self.put("/c", answer(LONG, status=404, body=b"none"))
        gone = self.at(1).get("/c")
        self.assertEqual((gone.status, gone.text), (404, "none"))
        self.put("/d", answer(LONG, body=b""))
        self.assert_shared("/d", "", at=1)
        self.assertEqual([self.asked(t) for t in ("/a", "/b", "/c", "/d")], [1] * 4)

    def test_a_body_whose_length_nobody_tells(self):
        self.share()
        body = body_of(300 * KIB)
        self.put("/a", self.gated(answer(LONG, body=body, transfer_encoding="chunked"), len(body)))
        self.assert_shared("/a", body.decode(), at=1)

    def gated(self, then, size):
        gate = self.gate(then, first=size, chunked=True)
        gate.open()
        return gate

    def test_what_is_not_for_others_is_not_there(self):
        self.share()
        for what, said, headers in [("no-store", answer("no-store"), None),
                                    ("private", answer("private, max-age=60"), None),
                                    ("cookie", answer(LONG, set_cookie="a=b"), None),
                                    ("authorization", answer(LONG), {"Authorization": "Basic x"})]:
            with self.subTest(what):
                target = "/" + what
                self.at(0).fill(target, said, headers=headers)
                self.wait_gone(target)
                self.assert_fetched(target, "2", headers)

    def test_who_has_the_authority_gets_what_all_may_have(self):
        self.share()
        self.put("/a", answer("public, max-age=60"))
        self.assert_shared("/a", at=1, headers={"Authorization": "Basic x"})
        self.put("/b", answer("max-age=60"))
        self.assert_fetched("/b", headers={"Authorization": "Basic x"})

    def test_it_stays_as_long_as_it_is_of_use(self):
        self.share(1, cache={"stale_if_error": "100s"})
        for target, said, seconds in [
                ("/fresh", answer("max-age=50"), 150),
                ("/validated", answer("no-cache", etag='"1"'), 300),
                ("/swr", answer("max-age=50, stale-while-revalidate=200"), 250),
                ("/never", answer("max-age=50, must-revalidate"), 50),
                ("/aged", answer("max-age=50", age="20"), 130),
                ("/year", answer("max-age=31536000"), 31536100)]:
            with self.subTest(target):
                self.put(target, said)
                left = self.time_to_live(entry_key(target))
                # Of more than 30 days the server gets the date, and its clock may be a second behind.
                self.assertIn(left, range(seconds - 15, seconds + 2))

    def test_namespaces_keep_caches_apart(self):
        self.share(1, cache={"namespace": "one"})
        self.put("/a", answer(LONG))
        self.assertIsNotNone(self.item("/a", space="one"))
        self.another(namespace="two")
        self.at(1).assert_fetched("/a")

    def test_other_rules_keep_caches_apart(self):
        for other in ({"key": "{scheme}://{host}{path}"}, {"set_cookie": "strip"}, {"surrogate_control": True}):
            with self.subTest(other):
                self.share(1)
                self.put("/a", answer(LONG))
                self.another(**other)
                self.at(1).assert_fetched("/a", "2")
                wait_until(lambda: self.nodes[1].written() == 1, "it is written")
                self.another(**other)
                self.assert_shared("/a", "2", at=2)

    def test_the_items_are_where_the_ring_has_them(self):
        servers = [self.enterContext(Memcached(f"m{n}")) for n in range(3)]
        self.share(2, servers)
        targets = [f"/{n}" for n in range(12)]
        for target in targets:
            self.put(target, answer(LONG))
        keys = {target: entry_key(target).decode() for target in targets}
        done = run("lookup", "-c", self.proxy.file, "--pool", "mc", "-", stdin="".join(k + "\n" for k in keys.values()))
        owners = dict(line.split("\t")[:2] for line in done.stdout.splitlines())
        for target in targets:
            held = [s.name for i, s in enumerate(servers) if self.item(target, i)]
            self.assertEqual(held, [owners[keys[target]]])
            self.assert_shared(target, at=1)
        self.assertGreater(len(set(owners.values())), 1)


@needs_memcached
class Varying(Shared):
    def test_each_finds_its_variant(self):
        self.share()
        self.says("/a", answer(LONG, vary="Foo"))
        for number, value in enumerate(["x", "y", None]):
            headers = {"Foo": value} if value else None
            self.assertEqual(self.at(0).get("/a", headers).text, str(number + 1))
            self.wait_written(number + 1)
        for number, value in enumerate(["x", "y", None]):
            self.assert_shared("/a", str(number + 1), {"Foo": value} if value else None, at=1)
        got = self.assert_fetched("/a", "4", {"Foo": "z"})
        self.assertEqual(cache_status(got)["fwd"], "vary-miss")

    def test_more_fields_may_come_to_decide(self):
        self.share()
        self.says("/a", answer(LONG, vary="Foo"), answer(LONG, vary="Bar"))
        asked = [{"Foo": "1", "Bar": "1"}, {"Foo": "2", "Bar": "2"}]
        for number, headers in enumerate(asked):
            self.assertEqual(self.at(0).get("/a", headers).text, str(number + 1))
            self.wait_written(number + 1)
        # Under both fields there is a place for each; what stood under one alone is not found again.
        self.assert_shared("/a", "2", asked[1], at=1)
        self.assert_fetched("/a", "3", {"Foo": "3", "Bar": "3"})
        self.wait_written(1, node=1)
        self.assert_shared("/a", "3", {"Foo": "3", "Bar": "3"}, at=self.another())

    def test_the_fields_may_cease_to_decide(self):
        self.share()
        self.says("/a", answer("max-age=60", vary="Foo", **STALE), answer(LONG))
        self.at(0).get("/a", {"Foo": "1"})
        self.wait_written(1)
        self.assertEqual(self.get("/a", {"Foo": "1"}).text, "2")
        self.wait_written(2)
        self.assert_shared("/a", "2", {"Foo": "other"}, at=1)

    def test_a_star_is_for_nobody(self):
        self.share()
        self.at(0).fill("/a", answer(LONG, vary="*"))
        self.wait_gone("/a")
        self.at(1).assert_fetched("/a")

    def test_equal_words_are_equal_there_too(self):
        self.share()
        self.put("/a", answer(LONG, vary="Accept-Encoding, Accept-Language"),
                 headers={"Accept-Encoding": "gzip, br", "Accept-Language": "de, EN;q=0.5"})
        self.assert_shared("/a", at=1, headers={"Accept-Encoding": "br,gzip", "Accept-Language": "de,en;q=0.5"})


@needs_memcached
class Large(Shared):
    def parts_of(self, target, server=0):
        """Keys of the items that begin with that of the target."""
        key = entry_key(target)
        keys = [line.split(b" ")[0][4:].replace(b"%3A", b":") for line in self.servers[server].dump()]
        return [k for k in keys if k.startswith(key + b":")]

    def test_an_answer_above_the_item_size_is_split(self):
        self.share(3)
        body = body_of(3 * MIB + 16)
        self.put("/a", answer(LONG, body=body))
        self.assertLess(len(self.item("/a")), KIB)
        self.assertEqual(len(self.parts_of("/a")), 7)
        got = self.assert_shared("/a", body.decode(), at=1)
        self.assertEqual(int(got.value("Content-Length")), len(body))
        part = self.at(2).get("/a", {"Range": "bytes=1048576-1048591"})
        self.assertEqual((part.status, part.body), (206, body[MIB:MIB + 16]))
        self.assertEqual(self.asked("/a"), 1)

    def test_around_the_item_size(self):
        self.share()
        for size in (MIB - 2048, MIB - 512, MIB, MIB + 512, 2 * 512 * KIB + 16):
            with self.subTest(size):
                target = f"/{size}"
                body = body_of(size)
                self.put(target, answer(LONG, body=body))
                self.assert_shared(target, body.decode(), at=1)

    def test_with_one_part_missing_it_is_a_miss(self):
        self.share()
        body = body_of(2 * MIB)
        self.put("/a", answer(LONG, body=body))
        before = self.parts_of("/a")
        self.servers[0].ask(b"delete " + sorted(before)[1] + b"\r\n")
        self.at(1).assert_fetched("/a", body.decode())
        # A new answer has new parts: the manifest never leads to old ones.
        self.wait_written(1, node=1)
        self.assertEqual(len(set(self.parts_of("/a")) - set(before)), 4)
        self.assert_shared("/a", body.decode(), at=self.another())

    def test_with_a_part_of_another_answer_it_is_a_miss(self):
        self.share()
        body = body_of(2 * MIB)
        self.put("/a", answer(LONG, body=body))
        keys = sorted(self.parts_of("/a"))
        other = self.value(keys[0])
        self.put_item(keys[1], other)
        self.at(1).assert_fetched("/a", body.decode())

    def test_what_would_take_too_many_parts_stays_here(self):
        self.share(2, [self.enterContext(Memcached("m1", "-I", "512k"))], cache={"max_object": "64m"})
        self.nodes[0].wait_metric(1, "clockwise_backend_connections_opened_total", backend="m1")
        body = body_of(34 * MIB)
        self.at(0).fill("/a", answer(LONG, body=body))
        self.wait_written(1, result="too_large")
        self.assert_stored("/a", body.decode())
        self.wait_gone("/a")
        self.at(1).assert_fetched("/a", body.decode())
        self.put("/b", answer(LONG, body=body_of(700 * KIB)))
        self.assert_shared("/b", body_of(700 * KIB).decode(), at=1)
        self.assertEqual(self.nodes[0].page().sum("clockwise_cache_admissions_rejected_total", tier="memcached"), 1)

    def test_what_is_too_large_for_one_of_the_proxies(self):
        self.share(1)
        self.put("/a", answer(LONG, body=body_of(100 * KIB)))
        self.another(max_object="64k")
        self.at(1).assert_fetched("/a", body_of(100 * KIB).decode())


@needs_memcached
class Validating(Shared):
    def test_a_stale_one_is_validated_and_renewed_for_all(self):
        self.share(3)
        self.put("/a", answer("max-age=60", **STALE), not_modified("max-age=60", etag='"v1"'))
        got = self.at(1).get("/a")
        status = cache_status(got)
        self.assertEqual((got.text, status["fwd"], status["fwd-status"]), ("1", "stale", "304"))
        self.assertEqual(self.requests("/a")[1].value("If-None-Match"), '"v1"')
        self.wait_written(1, node=1)
        self.assert_shared("/a", at=2)
        self.assertEqual(self.nodes[1].shared("stale"), 1)
        self.assertEqual(self.asked("/a"), 2)

    def test_a_new_one_takes_its_place(self):
        self.share(3)
        self.put("/a", answer("max-age=60", **STALE), answer(LONG, etag='"v2"'))
        self.assertEqual(self.at(1).get("/a").text, "2")
        self.wait_written(1, node=1)
        self.assert_shared("/a", "2", at=2)

    def test_a_split_one_is_validated_too(self):
        self.share(3)
        body = body_of(2 * MIB)
        self.put("/a", answer("max-age=60", body=body, **STALE), not_modified("max-age=60", etag='"v1"'))
        self.assertEqual(self.at(1).get("/a").body, body)
        self.wait_written(1, node=1)
        self.assert_shared("/a", body.decode(), at=2)
        self.assertEqual(self.asked("/a"), 2)

    def test_a_newer_one_there_spares_the_validation(self):
        self.share()
        self.put("/a", answer("max-age=60", **STALE), not_modified("max-age=60", etag='"v1"'))
        self.wait_clock(1.1)  # what is of the same second may be the same answer
        self.at(1).get("/a")
        self.wait_written(1, node=1)
        self.assert_shared("/a", at=0)
        self.assertEqual(self.asked("/a"), 2)

    def test_it_stands_in_when_the_origin_fails(self):
        self.share()
        for number, said in enumerate([reset, answer(status=503)]):
            with self.subTest(number):
                target = f"/{number}"
                self.put(target, answer("max-age=60, stale-if-error=600", age="70"), said)
                got = self.at(1).get(target)
                self.assertEqual((got.status, got.text, cache_status(got)["fwd"]), (200, "1", "stale"))

    def test_it_stands_in_for_all_who_wait(self):
        self.share()
        gate = self.gate(reset)
        self.put("/a", answer("max-age=60, stale-if-error=600", age="70"), gate)
        self.at(1)
        crowd = self.crowd(10, "/a")
        self.wait_asked("/a", 2)
        gate.open()
        self.assertEqual([c.response().text for c in crowd], ["1"] * 10)

    def test_it_stands_in_when_the_origin_is_slow(self):
        self.share(cache={"stale_after": "50ms"})
        gate = self.gate(answer(LONG))
        self.put("/a", answer("max-age=60, stale-if-error=600", age="70"), gate)
        got = self.at(1).get("/a")
        self.assertEqual((got.text, cache_status(got)["fwd"]), ("1", "stale"))
        gate.open()
        self.wait_new("/a", "2", 1)

    def test_it_is_given_while_the_origin_is_asked(self):
        self.share()
        gate = self.gate(answer(LONG))
        self.put("/a", answer("max-age=60, stale-while-revalidate=600", age="70"), gate)
        got = self.at(1).get("/a")
        self.assertEqual((got.text, cache_status(got)["fwd"]), ("1", "stale"))
        gate.open()
        self.wait_new("/a", "2", 1)

    def test_not_past_what_the_answer_says(self):
        self.share()
        self.put("/a", answer("max-age=60, must-revalidate", **STALE), reset)
        self.assertEqual(self.at(1).get("/a").status, 502)


@needs_memcached
class Stampede(Shared):
    def looked(self, node, times):
        """That proxy has asked the pool so often."""
        self.nodes[node].wait_metric(times, "clockwise_memcached_commands_total", command="get", result="hit")

    def test_of_all_clients_of_all_proxies_one_fetches(self):
        self.share(2, cache={"pool_wait": "60s"})
        gate = self.gate(answer(LONG))
        self.says("/a", gate)
        crowds = []
        for node in (0, 1):
            self.at(node)
            crowds += self.crowd(50, "/a")
            self.wait_collapsed(49)
            self.wait_asked("/a", 1)
        self.looked(1, 2)
        gate.open()
        self.assertEqual({c.response().text for c in crowds}, {"1"})
        self.assertEqual(self.asked("/a"), 1)
        self.assertEqual(self.nodes[1].shared("hit"), 1)

    def test_variants_are_fetched_once_each(self):
        self.share(2, cache={"pool_wait": "60s"})
        self.put("/a", answer(LONG, vary="Foo"), headers={"Foo": "0"})
        gate = self.gate(answer(LONG, vary="Foo"))
        self.says("/a", gate)
        crowds = [self.at(0).crowd(10, "/a", {"Foo": "1"})]
        self.wait_asked("/a", 2)  # the first proxy has the lease
        crowds.append(self.at(1).crowd(10, "/a", {"Foo": "1"}))
        self.looked(1, 3)
        gate.open()
        self.assertEqual({c.response().text for crowd in crowds for c in crowd}, {"1"})
        self.assertEqual(self.asked("/a"), 2)

    def test_who_waits_goes_on_when_there_is_nothing_to_wait_for(self):
        self.share(2, cache={"pool_wait": "600s"})
        for number, said in enumerate([answer("no-store"), answer("private"), reset]):
            with self.subTest(number):
                target = f"/{number}"
                gate = self.gate(said)
                again = [reset] if said is reset else []  # who is cut off before an answer tries once more
                self.says(target, gate, *again, answer("no-store"))
                first = self.at(0).start(target)
                self.wait_asked(target, 1)
                before = self.nodes[1].page().sum("clockwise_memcached_commands_total", command="get", result="hit")
                second = self.at(1).start(target)
                self.looked(1, before + 1)
                gate.open()
                self.assertEqual(second.response().text, "3" if again else "2")
                first.response()

    def test_nobody_waits_for_ever(self):
        self.share(1, cache={"pool_wait": "100ms"})
        # A proxy that marked the place and was never heard of again.
        self.assertIn(b"W", self.servers[0].ask(b"mg " + entry_key("/a") + b" v c N600\r\n"))
        self.says("/a", answer(LONG))
        begin = time.monotonic()
        self.assertEqual(self.get("/a").text, "1")
        self.assertGreaterEqual(time.monotonic() - begin, 0.1)
        self.wait_written(1)
        self.assert_shared("/a", at=self.another())

    def test_nobody_waits_where_it_is_off(self):
        self.share(1, cache={"pool_wait": "0s"})
        self.servers[0].ask(b"mg " + entry_key("/a") + b" v c N600\r\n")
        self.says("/a", answer(LONG))
        self.assertEqual(self.get("/a").text, "1")
        self.assertEqual(self.proxy.page().sum("clockwise_memcached_commands_total", command="get"), 1)

    def test_a_slow_answer_takes_no_newer_ones_place(self):
        self.share(2, cache={"pool_wait": "0s"})
        gate = self.gate(answer(LONG))
        self.says("/a", gate, answer(LONG))
        slow = self.at(0).start("/a")
        self.wait_asked("/a", 1)
        self.assertEqual(self.at(1).get("/a").text, "2")
        self.wait_written(1, node=1)
        gate.open()
        self.assertEqual(slow.response().text, "1")
        self.wait_written(1, result="outdated")
        self.assert_shared("/a", "2", at=self.another())


@needs_memcached
class Failing(Shared):
    """Whatever is wrong with the pool, clients get the origin's answers."""

    def served(self, target="/a"):
        """Both proxies fetch for themselves, and keep what they fetched."""
        self.says(target, answer(LONG))
        for node in range(len(self.nodes)):
            self.at(node).assert_fetched(target, str(node + 1))
            self.assert_stored(target, str(node + 1))

    def test_a_pool_that_is_not_there(self):
        self.share(2, [Memcached("m1")])
        for target in ("/a", "/b", "/c", "/d"):
            self.served(target)
        self.assertEqual(self.nodes[1].shared("error"), 4)
        self.nodes[1].wait_metric(1, "clockwise_cache_shared_writes_total", result="error")

    def test_a_pool_without_servers(self):
        self.share(1)
        self.proxy.reload(self.document(servers=[self.servers[0]]))
        down = self.document()
        down["pools"]["mc"]["servers"] = [self.servers[0].entry(weight=0)]
        down["pools"]["mc"]["max_remap"] = "100%"
        reply = self.proxy.reload(down, force=True)
        if reply.status == 200:
            self.served()

    def test_a_pool_that_dies_and_comes_back(self):
        self.share()
        self.put("/a", answer(LONG))
        self.servers[0].stop()
        self.at(1).assert_fetched("/a")
        self.assert_stored("/a", "2")
        self.servers[0].start()

        def works():
            target = f"/{time.monotonic_ns()}"
            self.says(target, answer(LONG))
            self.at(0).get(target)
            return wait_until(lambda: sum(self.nodes[0].written(r) for r in ("stored", "error")) and True, "a write") \
                and self.item(target)
        wait_until(works, "the pool works again")

    def test_a_pool_that_hangs_costs_the_budget_and_soon_nothing(self):
        self.share(1, cache={"pool_budget": "50ms"})
        self.put("/warm", answer(LONG))
        self.servers[0].freeze()
        self.addCleanup(self.servers[0].thaw)
        for number in range(3):
            target = f"/{number}"
            self.says(target, answer(LONG))
            begin = time.monotonic()
            self.assertEqual(self.get(target).text, "1")
            self.assertLess(time.monotonic() - begin, 5 if SANITIZED else 0.9)
        self.assertGreaterEqual(self.proxy.shared("late"), 3)
        # From then on it is not asked, but now and then.
        for number in range(3, 23):
            self.says(f"/{number}", answer(LONG))
            self.assertEqual(self.get(f"/{number}").text, "1")
        self.assertGreater(self.proxy.shared("error"), 0)
        self.servers[0].thaw()

        def works():
            target = f"/{time.monotonic_ns()}"
            self.says(target, answer(LONG))
            self.get(target)
            return self.proxy.written() > 1
        wait_until(works, "the pool works again")

    def test_a_server_that_is_late(self):
        late = threading.Event()
        self.addCleanup(late.set)

        def slow(line, data, peer):
            if line.startswith(b"mg clockwise:purges"):
                return b"EN\r\n"
            late.wait(60)
            return b"EN\r\n" if line.startswith(b"mg") else b"STORED\r\n"
        scripted = self.enterContext(Scripted("m1", slow))
        self.share(1, [scripted], cache={"pool_budget": "20ms"}, mc={"timeouts": {"response": "60s"}})
        self.says("/a", answer(LONG))
        self.assertEqual(self.get("/a").text, "1")
        self.assertEqual(self.proxy.shared("late"), 1)
        late.set()

    def scripted(self, reply, **options):
        """A pool whose answer to each look-up is `reply`; a function of the line gets asked."""
        def handler(line, data, peer):
            if line.startswith((b"mg clockwise:purges", b"md")):
                return b"EN\r\n" if line.startswith(b"mg") else b"HD\r\n"
            if not line.startswith(b"mg"):
                return b"STORED\r\n"
            return reply(line, peer) if callable(reply) else reply
        self.share(1, [self.enterContext(Scripted("m1", handler))], memcached={"down_after": 1000}, **options)

    def test_answers_that_are_none(self):
        value = entry("/a")
        for what, reply in [
                ("an error", b"ERROR\r\n"),
                ("a server error", b"SERVER_ERROR out of memory\r\n"),
                ("another protocol", b"HTTP/1.1 400 Bad Request\r\n\r\n"),
                ("another answer", b"STORED\r\n"),
                ("octets", b"\0\xff\r\n"),
                ("the end", None),
                ("a value without its end", b"VA 5 c1\r\nhelloXX"),
                ("a length that is none", b"VA -1 c1\r\n\r\n"),
                ("a length that cannot be", b"VA 4294967295 c1\r\n"),
                ("too much", b"VA %d c1\r\n%s\r\nVA 1 c1\r\nx\r\n" % (len(value), value)),
                ("a value that breaks off", lambda line, peer: (peer.sendall(b"VA %d c1\r\n" % len(value) + value[:50]),
                                                               peer.shutdown(socket.SHUT_RDWR))[0])]:
            with self.subTest(what):
                self.scripted(reply)
                self.says("/x", answer(LONG))
                got = self.get("/x")
                self.assertEqual((got.status, got.text), (200, "1"))

    def test_values_that_are_no_entries(self):
        good = entry("/a")
        self.scripted(lambda line, peer: b"VA %d c1\r\n%s\r\n" % (len(self.stands), self.stands))
        for what, stands in [
                ("a value of another program", b"hello"),
                ("an empty one", b""),
                ("one with another octet", good[:-10] + bytes([good[-10] ^ 1]) + good[-9:]),
                ("one with another sum", good[:-4] + b"\0\0\0\0"),
                ("one that is cut", good[:-20]),
                ("one with a sum that fits what was cut", summed(good[:60])),
                ("one of a later version", entry("/a", version=2)),
                ("one for another key", entry("/a", key=b"http://h.example/b")),
                ("one of a kind that is not known", entry("/a", kind=9)),
                ("one whose head is none", entry("/a", head=b"A: b\r\n\r\nHTTP/1.1 200 OK\r\n")),
                ("one that is too old", entry("/a", received=1000)),
                ("a manifest of nothing", entry("/a", b"", kind=1, parts=(100, 50, 7)))]:
            with self.subTest(what):
                self.stands = stands
                self.says("/a", answer("no-store"))
                self.proxy.admin("/api/v1/caches/store/purge", method="POST", body='{"all": true}')
                got = self.get("/a")
                self.assertEqual((got.status, got.text), (200, "1"))

        def is_taken():
            self.stands = entry("/a")  # the purges concern what was fetched before, and a moment longer
            return self.get("/a").text == "foreign"
        wait_until(is_taken, "a good one is taken")

    def test_one_bad_server_concerns_its_keys_only(self):
        servers = [self.enterContext(Memcached("m1")), Memcached("m2")]
        self.share(2, servers)
        for number in range(20):
            self.says(f"/{number}", answer(LONG))
            self.assertEqual(self.at(0).get(f"/{number}").text, "1")
        wait_until(lambda: sum(self.nodes[0].written(r) for r in ("stored", "error")) == 20, "all are written or not")
        there = [n for n in range(20) if self.item(f"/{n}")]
        self.assertTrue(0 < len(there) < 20)
        for number in there:
            self.assert_shared(f"/{number}", at=1)


@needs_memcached
class Purged(Shared):
    SCOPES = [{"url": "http://h.example/a"}, {"prefix": "http://h.example/a"}, {"host": "h.example"}, {"tag": "news"},
              {"all": True}]

    def test_a_purge_is_not_lost_by_a_stop(self):
        for scope in self.SCOPES:
            with self.subTest(scope):
                self.share(2)
                self.put("/a", answer(LONG, cache_tag="news"))
                self.at(0).assert_purged(1, **scope)
                self.nodes[0].signal(signal.SIGTERM)
                self.assertEqual(self.nodes[0].wait_exit(), 0)
                wait_until(lambda: self.item("/a") is None or self.value(b"clockwise:purges"), "the servers know")
                self.at(1)
                wait_until(lambda: self.get("/a").text == "2", "the other proxy has heard of it")

    def test_at_once_here_and_soon_for_all(self):
        for scope in self.SCOPES:
            with self.subTest(scope):
                self.share()
                self.put("/a", answer(LONG, cache_tag="news"))
                self.put("/other", answer(LONG), host="other.example")
                self.assert_shared("/a", at=1)
                self.at(0).assert_purged(2 if "all" in scope else 1, **scope)
                self.assert_fetched("/a")
                self.wait_new("/a", "2", 1)
                # What was fetched since then is there for all.
                self.wait_written(3)
                self.assert_shared("/a", "2", at=self.another())
                if "all" not in scope:
                    self.assert_shared("/other", host="other.example")

    def test_what_nobody_here_has_goes_too(self):
        for scope in self.SCOPES:
            with self.subTest(scope):
                self.share()
                self.put("/a", answer(LONG, cache_tag="news"))
                self.at(1).assert_purged(0, **scope)
                self.assert_fetched("/a")
                self.wait_new("/a", self.get("/a").text, 0)

    def test_a_proxy_that_starts_later_knows(self):
        self.share(1)
        self.put("/a", answer(LONG, cache_tag="news"))
        self.assert_purged(1, tag="news")
        wait_until(lambda: self.value(b"clockwise:purges"), "the list in the pool")
        self.assertEqual(self.proxy.stop(), 0)
        self.another()
        wait_until(lambda: self.nodes[1].page().sum("clockwise_memcached_commands_total") or True, "it runs")
        self.wait_new("/a", "2", 1)

    def test_softly(self):
        self.share()
        self.put("/a", answer(LONG, etag='"v1"'), not_modified(LONG, etag='"v1"'))
        self.at(0).assert_purged(1, url="http://h.example/a", soft=True)
        got = self.get("/a")
        self.assertEqual((got.text, cache_status(got)["fwd-status"]), ("1", "304"))
        self.assertEqual(self.asked("/a"), 2)
        wait_until(lambda: self.asked("/a") >= 2 and self.at(1).get("/a").text == "1", "the other proxy")

    def test_all_variants(self):
        self.share()
        self.says("/a", answer(LONG, vary="Foo"))
        for number in "123":
            self.at(0).get("/a", {"Foo": number})
            self.wait_written(int(number))
        self.assert_purged(3, url="http://h.example/a")
        self.wait_gone("/a")
        for number in "123":
            self.assert_fetched("/a", str(int(number) + 3), headers={"Foo": number})

    def test_an_unsafe_request_removes_it(self):
        self.share()
        self.says("/a", answer(LONG), answer(status=204), answer(LONG))
        self.at(0).get("/a")
        self.wait_written(1)
        self.assert_shared("/a", at=1)
        self.at(0).get("/a", method="POST", body=b"x")
        self.assertEqual(self.get("/a").text, "3")
        self.wait_written(2)
        self.assert_shared("/a", "3", at=self.another())

    def test_while_the_pool_does_not_answer(self):
        self.share(2, cache={"pool_budget": "500ms"})
        self.put("/a", answer(LONG, cache_tag="news"))
        self.servers[0].freeze()
        self.addCleanup(self.servers[0].thaw)
        self.at(0).assert_purged(1, tag="news")
        self.assert_fetched("/a")
        self.servers[0].thaw()
        wait_until(lambda: self.value(b"clockwise:purges"), "the list in the pool")
        self.says("/a", answer(LONG))
        self.wait_new("/a", "1", 1)

    def test_the_owner_before_a_change_of_the_ring_forgets_it_too(self):
        servers = [self.enterContext(Memcached("m1")), self.enterContext(Memcached("m2"))]
        self.share(1, servers)
        self.proxy.reload(self.document(servers=servers[:1]), force=True)
        for number in range(10):
            self.put(f"/{number}", answer(LONG))
        self.assertEqual(self.proxy.reload(self.document(servers=servers), force=True).status, 200)
        for number in range(10):
            self.assertIsNotNone(self.item(f"/{number}"))
            self.assert_purged(1, url=f"http://h.example/{number}")
        for number in range(10):
            self.wait_gone(f"/{number}")

    def test_a_list_that_is_none_is_replaced(self):
        self.share(1)
        self.put_item(b"clockwise:purges", b"garbage")
        self.put("/a", answer(LONG, cache_tag="news"))
        self.assert_purged(1, tag="news")
        wait_until(lambda: self.value(b"clockwise:purges") not in (None, b"garbage"), "a list")
        self.wait_new("/a", "2", self.another())

    def test_every_server_has_the_list(self):
        servers = [self.enterContext(Memcached(f"m{n}")) for n in range(3)]
        self.share(2, servers)
        self.at(0).assert_purged(0, tag="news")
        for number in range(3):
            wait_until(lambda: self.value(b"clockwise:purges", number), "the list on each server")
        lists = {self.value(b"clockwise:purges", n) for n in range(3)}
        self.assertEqual(len(lists), 1)
        servers[1].stop()
        servers[1].start()
        wait_until(lambda: self.value(b"clockwise:purges", 1) in lists, "the list on the one that lost it")


@needs_memcached
class Running(Shared):
    def test_what_is_counted(self):
        self.share()
        self.put("/a", answer(LONG, body=b"x" * 1000))
        self.assert_shared("/a", "x" * 1000, at=1)
        first, second = (node.page() for node in self.nodes)
        self.assertEqual(first.sum("clockwise_cache_objects", tier="memcached"), 1)
        self.assertIn(first.sum("clockwise_cache_stored_bytes", tier="memcached"), range(1000, 1500))
        self.assertEqual(first.sum("clockwise_cache_shared_lookups_total", result="miss"), 1)
        self.assertEqual(second.sum("clockwise_cache_requests_total", result="hit"), 1)
        self.assertEqual(second.sum("clockwise_cache_requests_total", result="miss"), 0)
        self.assertEqual(second.sum("clockwise_cache_fetches_total"), 0)
        self.assertEqual(second.sum("clockwise_cache_sent_bytes_total", source="store"), 1000)
        self.at(0).assert_purged(1, url="http://h.example/a")
        self.nodes[0].wait_metric(1, "clockwise_cache_evictions_total", tier="memcached", reason="purged")

    def test_a_cache_in_memory_alone_has_no_such_series(self):
        self.share(1)
        document = self.document()
        document["caches"]["store"] = {"size": "64MiB"}
        self.assertEqual(self.proxy.reload(document).status, 200)
        self.assertEqual(self.proxy.page().series("clockwise_cache_objects", tier="memcached"), [])
        self.says("/a", answer(LONG))
        self.assertEqual(self.get("/a").text, "1")
        self.assertIsNone(self.item("/a"))

    def test_reloads_in_the_middle_of_it(self):
        self.share(1)
        gate = self.gate(answer(LONG))
        self.says("/a", gate)
        slow = self.start("/a")
        self.wait_asked("/a", 1)
        other = self.enterContext(Memcached("m2"))
        self.assertEqual(self.proxy.reload(self.document(servers=[*self.servers, other]), force=True).status, 200)
        gate.open()
        self.assertEqual(slow.response().text, "1")
        wait_until(lambda: sum(self.proxy.written(r) for r in ("stored", "outdated", "error")), "the write has ended")
        self.assert_stored("/a")

    def test_a_stop_in_the_middle_of_it(self):
        self.share(1, cache={"pool_wait": "600s"})
        self.servers[0].ask(b"mg " + entry_key("/a") + b" v c N600\r\n")
        self.says("/a", answer(LONG))
        waiting = self.start("/a")
        self.proxy.wait_metric(1, "clockwise_memcached_commands_total", command="get")
        waiting.close()
        self.assertEqual(self.proxy.stop(), 0)

    def test_a_document_of_the_origin_in_all_its_versions(self):
        self.share(2)
        document = Document(b"one", control="max-age=60", etag='"1"')
        self.put("/a", document)
        self.assert_shared("/a", "one", at=1)
        document.body, document.etag = b"two", '"2"'
        self.at(0).assert_purged(1, url="http://h.example/a")
        self.wait_new("/a", "two", 0)
        self.wait_new("/a", "two", 1)


if __name__ == "__main__":
    unittest.main()
