"""Purges, reloads and what is counted of a cache."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.caching import Caching, STALE, answer, cache_status, not_modified, reset  # noqa: E402
from support.clockwise import wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402

MIB = 1 << 20


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
        self.assert_purged(1, host="h.example:80")
        self.assert_fetched("/b", "3")

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
        wait_until(lambda: self.proxy.page().sum("clockwise_cache_objects") == 0,
                   "the store is empty")
        for number in range(0, 50, 7):
            self.assert_fetched(f"/{number}")

    def test_softly(self):
        """Stale from now on, but there for validation and for an origin that fails."""
        self.site(pool={"retry": {"attempts": 0}})
        for target in ("/a", "/b"):
            self.fill(target, answer(self.LONG, etag='"v1"'),
                      not_modified(self.LONG) if target == "/a" else reset)
        self.assert_purged(1, url="http://h.example/a", soft=True)
        self.assertEqual((self.get("/a").text, self.requests("/a")[-1].value("If-None-Match")),
                         ("1", '"v1"'))
        self.assert_stored("/a")
        self.assert_purged(2, all=True, soft=True)
        got = self.get("/b")
        self.assertEqual((got.status, got.text, cache_status(got)["fwd"]), (200, "1", "stale"))

    def test_what_is_under_way_is_purged_too(self):
        for what in ({"url": "http://h.example/"}, {"prefix": "http://h.example/"},
                     {"host": "h.example"},
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
        for what in ({"prefix": "http://h.example/"}, {"host": "h.example"}, {"tag": "t"},
                     {"all": True}):
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
        for body, status in (("", 400), ("{", 400), ("[]", 400), ("{}", 400), ('{"url": 1}', 400),
                             ('{"url": ""}', 400),
                             ('{"all": false}', 400), ('{"url": "http://h/a", "all": true}', 400),
                             ('{"what": "x"}', 400), ('{"url": "/a"}', 400)):
            with self.subTest(body):
                got = self.proxy.admin("/api/v1/caches/store/purge", method="POST", body=body)
                self.assertEqual(got.status, status)
                self.assertIn("message", got.json()["error"])
        self.assertEqual(self.proxy.admin("/api/v1/caches/none/purge", method="POST",
                                          body='{"all": true}').status, 404)
        self.assertEqual(self.proxy.admin("/api/v1/caches/store/purge").status, 405)

    def test_it_asks_for_the_token(self):
        self.site(token="secret")
        self.fill_all("/")
        self.assertIn(self.purge(all=True).status, (401, 403))
        self.assert_stored("/")
        got = self.proxy.admin("/api/v1/caches/store/purge", method="POST", body='{"all": true}',
                               headers={"Authorization": "Bearer secret"})
        self.assertEqual((got.status, got.json()), (200, {"purged": 1}))

    def test_it_is_counted(self):
        self.site()
        self.fill_all("/a")
        for what in ({"url": "http://h.example/a"}, {"prefix": "http://h.example/"},
                     {"host": "h.example"},
                     {"tag": "t"}, {"all": True}):
            self.assertEqual(self.purge(**what).status, 200)
            self.assertEqual(self.proxy.page().sum("clockwise_cache_purges_total",
                                                   scope=next(iter(what))), 1)


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
        self.assertEqual({r: page.sum("clockwise_cache_requests_total", result=r) for r in wanted},
                         wanted)
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
        self.assertEqual(self.proxy.page().sum("clockwise_cache_evictions_total",
                                               reason="invalidated"), 1)
        self.fill("/b", answer("max-age=60"))
        self.purge(url="http://h.example/b")
        self.proxy.wait_metric(1, "clockwise_cache_evictions_total", reason="purged")


if __name__ == "__main__":
    unittest.main()
