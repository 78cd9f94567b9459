"""Which stored answer a request meets, and what takes it away (RFC 9111, RFC 9213)."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.caching import Caching, STALE, answer, date, not_modified  # noqa: E402


class Keys(Caching):
    """RFC 9111 sections 2 and 4.1."""

    def test_what_makes_another_key(self):
        self.site()
        for what, first, second, same in (
                ("query", ("/q?a=1", "h.example"), ("/q?a=2", "h.example"), False),
                ("order of the query", ("/q?a=1&b=2", "h.example"), ("/q?b=2&a=1", "h.example"),
                 False),
                ("empty query", ("/q", "h.example"), ("/q?", "h.example"), False),
                ("case of the path", ("/q", "h.example"), ("/Q", "h.example"), False),
                ("escapes", ("/q%61", "h.example"), ("/qa", "h.example"), False),
                ("host", ("/q", "h.example"), ("/q", "i.example"), False),
                ("port", ("/q", "h.example:81"), ("/q", "h.example"), False),
                ("case of the host", ("/q", "h.example"), ("/q", "H.ExAmPlE"), True),
                ("default port", ("/q", "h.example"), ("/q", "h.example:80"), True),
                ("nothing", ("/q?a=1", "h.example"), ("/q?a=1", "h.example"), True)):
            with self.subTest(what):
                self.assertEqual(self.purge(all=True).status, 200)
                self.says(first[0], answer("max-age=60"))
                self.says(second[0], answer("max-age=60"))
                before = len(self.origin.requests)
                self.get(first[0], host=first[1])
                self.get(second[0], host=second[1])
                self.assertEqual(len(self.origin.requests) - before, 1 if same else 2)

    def test_what_was_kept_under_other_rules_is_not_given(self):
        """Another key names other things by the same text, and fields may be in what is kept that are now taken out."""
        cases = (
            ({"key": "{host}{path}"}, {"key": "{host}{uri}"}, "/x?user=1", "/x"),
            ({"key": "{host}{uri:normalized}", "key_ignore": ["user"]},
             {"key": "{host}{uri:normalized}", "key_ignore": ["q"]}, "/x?user=1", "/x"),
            ({"set_cookie": "store"}, {"set_cookie": "strip"}, "/x", "/x"),
            ({"surrogate_control": False}, {"surrogate_control": True}, "/x", "/x"),
        )
        for before, after, first, second in cases:
            with self.subTest(before=before, after=after):
                self.site(cache=before)
                told = {"set_cookie": "a=b"} if "set_cookie" in after else {"surrogate_control": "max-age=60"}
                self.says(first, answer("public, max-age=60", body="first", **told))
                self.get(first)
                self.proxy.document["caches"]["store"].update(after)
                self.proxy.write(self.proxy.document)
                self.assertEqual(self.proxy.reload().status, 200)
                self.says(second, answer("public, max-age=60", body="second", **told))
                self.assertEqual(self.get(second).text, "second")
                got = self.assert_stored(second, "second")
                if "set_cookie" in after:
                    self.assertEqual(got.values("set-cookie"), [])
                if "surrogate_control" in after:
                    self.assertEqual(got.values("surrogate-control"), [])

    def test_a_target_in_absolute_form_is_the_same(self):
        self.site()
        self.fill("/a?b", answer("max-age=60"))
        with wire.Connection(self.proxy.web) as connection:
            got = connection.request("GET", "http://H.example:80/a?b", host="other.example")
            self.assertEqual((got.text, self.asked("/a?b")), ("1", 1))

    def test_a_key_of_ones_own(self):
        self.site({"key": "{scheme}://{host}{uri:normalized}|{header:X-Kind}",
                   "key_ignore": ["utm_*"]})
        self.fill("/a?b=2&utm_source=x&a=1", answer("max-age=60"), headers={"X-Kind": "1"})
        self.says("/a?a=1&b=2", answer("max-age=60", body=b"other"))
        self.assertEqual(self.get("/a?a=1&b=2", {"X-Kind": "1"}).text, "1")
        self.assertEqual(self.get("/a?a=1&b=2", {"X-Kind": "2"}).text, "other")

    def test_vary(self):
        """Section 4.1: Vary, the first request's fields, the second's, whether they match."""
        self.site()
        for number, (vary, first, second, same) in enumerate((
                ("Foo", {"Foo": "1"}, {"Foo": "1"}, True),
                ("foo", {"FOO": "1"}, {"fOO": "1"}, True),
                ("Foo", {"Foo": "1"}, {"Foo": "2"}, False),
                ("Foo", {"Foo": "a"}, {"Foo": "A"}, False),
                ("Foo", {"Foo": "1"}, {}, False),
                ("Foo", {}, {"Foo": "1"}, False),
                ("Foo", {"Foo": ""}, {}, False),
                ("Foo", {}, {}, True),
                ("Foo", {"Foo": "1", "Other": "2"}, {"Foo": "1", "Other": "3"}, True),
                ("Foo, Bar", {"Foo": "1", "Bar": "a"}, {"Bar": "a", "Foo": "1"}, True),
                ("Foo, Bar", {"Foo": "1", "Bar": "a"}, {"Foo": "1", "Bar": "b"}, False),
                ("Foo, Bar", {"Foo": "1"}, {"Foo": "1"}, True),
                (["Foo", "Bar"], {"Foo": "1", "Bar": "a"}, {"Foo": "1", "Bar": "b"}, False),
                ("Foo,Bar,Baz", {"Foo": "1", "Baz": "x"}, {"Foo": "1", "Baz": "x"}, True),
                ("Foo", {"Foo": "1,2"}, {"Foo": " 1 ,  2 "}, True),
                ("Foo", {"Foo": "1,2"}, {"Foo": "2,1"}, False),
                ("Foo", {"Foo": "a b"}, {"Foo": "ab"}, False),
                ("Accept-Language", {"Accept-Language": "en, de"}, {"Accept-Language": "de, en"},
                 True),
                ("Accept-Language", {"Accept-Language": "en, de"}, {"Accept-Language": "eN,  De"},
                 True),
                ("Accept-Language", {"Accept-Language": "en;q=0.5, de"},
                 {"Accept-Language": "de, en;q=0.5"}, True),
                ("Accept-Language", {"Accept-Language": "en;q=0.5, de"},
                 {"Accept-Language": "de;q=0.5, en"}, False),
                ("Accept-Language", {"Accept-Language": "en"}, {"Accept-Language": "en, de"},
                 False),
                ("", {"Foo": "1"}, {"Foo": "2"}, True),
                ("*", {}, {}, False), ("*, *", {}, {}, False), (", *", {}, {}, False),
                (["", "*"], {}, {}, False), ("*, Foo", {}, {}, False), ("Foo, *", {}, {}, False),
                (["Foo", "Bar, *"], {}, {}, False))):
            with self.subTest(vary=vary, first=first, second=second):
                target = self.says(f"/{number}", answer("max-age=60", vary=vary))
                self.get(target, first)
                self.assertEqual(self.get(target, second).text, "1" if same else "2")

    def test_lines_of_one_field_are_one_value(self):
        self.site()
        self.fill("/", answer("max-age=60", vary="Foo"), headers={"Foo": "1, 2"})
        with wire.Connection(self.proxy.web) as connection:
            connection.send(b"GET / HTTP/1.1\r\nHost: h.example\r\nFoo: 1\r\nFoo: 2\r\n\r\n")
            self.assertEqual(connection.response().text, "1")

    def test_many_variants_of_one_key(self):
        self.site()
        self.says("/", *[answer("max-age=60", vary="Foo")] * 20)
        for number in range(20):
            self.assertEqual(self.get("/", {"Foo": f"{number}"}).text, f"{number + 1}")
        for number in range(20):
            self.assertEqual(self.get("/", {"Foo": f"{number}"}).text, f"{number + 1}")
        self.assertEqual(self.asked("/"), 20)

    def test_the_oldest_variant_leaves(self):
        self.site({"vary_limit": 3})
        self.says("/", answer("max-age=60", vary="Foo"))
        for number in range(4):
            self.get("/", {"Foo": f"{number}"})
        for number in (1, 2, 3):
            self.assertEqual(self.get("/", {"Foo": f"{number}"}).text, f"{number + 1}")
        self.assertEqual(self.get("/", {"Foo": "0"}).text, "5")

    def test_each_stored_answer_goes_by_its_own_vary(self):
        """Section 4.1: it may differ; of several that match, the latest Date wins."""
        self.site()
        self.says("/", answer("max-age=60", vary="Foo", date=date(-9)),
                  answer("max-age=60", vary="Bar", date=date(-5)),
                  answer("max-age=60"))
        self.assertEqual(self.get("/", {"Foo": "1", "Bar": "1"}).text, "1")
        self.assertEqual(self.get("/", {"Foo": "2", "Bar": "2"}).text, "2")
        self.assertEqual(self.get("/", {"Foo": "1", "Bar": "3"}).text, "1")
        self.assertEqual(self.get("/", {"Foo": "3", "Bar": "2"}).text, "2")
        self.assertEqual(self.get("/", {"Foo": "1", "Bar": "2"}).text, "2",
                         "both match, the second is newer")
        self.assertEqual(self.get("/", {"Foo": "4", "Bar": "4"}).text, "3")
        self.assertEqual(self.get("/", {"Foo": "5", "Bar": "5"}).text, "3",
                         "that one goes with all")


class Targeted(Caching):
    """RFC 9213."""

    def test_it_alone_rules(self):
        self.site()
        self.check_reuse([(f"{targeted} / {control}", answer(control, cdn_cache_control=targeted,
                                                             **more), reused)
                          for targeted, control, more, reused in (
            ("max-age=60", None, {}, True), ("max-age=60", "no-store", {}, True),
            ("max-age=60", "max-age=0", {}, True), ("max-age=60", "private", {}, True),
            ("max-age=60", None, {"expires": date(-60)}, True),
            ("max-age=60", None, {"expires": "0"}, True),
            ("max-age=0", "max-age=60", {}, False), ("max-age=0", None, {"expires": date(60)},
                                                     False),
            ("max-age=60", None, {"age": "70"}, False), ("no-store", "max-age=60", {}, False),
            ("private", "max-age=60", {}, False), ("no-cache", "max-age=60", {}, False),
            ("max-age=2147483648", None, {}, True), ("max-age=99999999999", None, {}, True),
            ("foo, max-age=60", None, {}, True), ("max-age=60;x=1", None, {}, True),
            ("max-age=0, s-maxage=60", None, {}, True), ("max-age=0, max-age=60", None, {}, True),
            (["max-age=0", "max-age=60"], None, {}, True))])

    def test_an_invalid_one_is_ignored_as_a_whole(self):
        self.site()
        for value in ("max-age=60, &&&", 'max-age="60"', "max-age =60", "max-age= 60",
                      "max-age=60,", "MaX-AgE=60",
                      "max-age=60.5", "max-age=60 x", "", "max-age=60, no-store=\"x"):
            self.check_reuse([(f"{value!r} and no-store", answer("no-store",
                                                                 cdn_cache_control=value), False),
                              (f"{value!r} and max-age", answer("max-age=60",
                                                                cdn_cache_control=value), True)])

    def test_it_is_passed_on(self):
        self.site()
        said = "max-age=60, x"
        self.assertEqual(self.fill("/", answer(cdn_cache_control=said)).value("CDN-Cache-Control"),
                         said)
        self.assertEqual(self.assert_stored("/").value("CDN-Cache-Control"), said)

    def test_a_name_of_ones_own(self):
        self.site({"targeted": ["Clockwise-Cache-Control", "CDN-Cache-Control"]})
        fields = {"clockwise_cache_control": "max-age=60", "cdn_cache_control": "no-store"}
        self.check_reuse([("the first", answer("no-store", **fields), True),
                          ("the second", answer("no-store", cdn_cache_control="max-age=60"), True),
                          ("the first is invalid", answer("max-age=60",
                                                          **{**fields,
                                                             "clockwise_cache_control": "&"}),
                           False)])

    def test_surrogate_control(self):
        self.site({"surrogate_control": True})
        first = self.fill("/", answer("no-store", surrogate_control="max-age=60"))
        got = self.assert_stored("/")
        self.assertEqual([m.value("Surrogate-Control") for m in (first, got)], [None, None])


class RequestDirectives(Caching):
    """RFC 9111 section 5.2.1: by default clients cannot make the origin work."""

    def test_ignored(self):
        self.site()
        self.fill("/", answer("max-age=60", age="10", etag='"v1"'))
        for control in ("no-cache", "max-age=0", "max-age=5", "min-fresh=1000", "max-stale=1000"):
            self.assert_stored("/", headers={"Cache-Control": control})
        self.fill("/stale", answer("max-age=60", **STALE), answer("max-age=60"))
        self.assert_fetched("/stale", headers={"Cache-Control": "max-stale=1000"})

    def test_only_if_cached(self):
        self.site()
        self.says("/", answer("max-age=60"))
        only = {"Cache-Control": "only-if-cached"}
        self.assertEqual((self.get("/", only).status, self.asked("/")), (504, 0))
        self.get("/")
        self.assert_stored("/", headers=only)
        self.fill("/stale", answer("max-age=60", **STALE))
        self.assertEqual((self.get("/stale", only).status, self.asked("/stale")), (504, 1))
        self.fill("/vary", answer("max-age=60", vary="Foo"), headers={"Foo": "1"})
        self.assertEqual((self.get("/vary", {"Foo": "2", **only}).status, self.asked("/vary")),
                         (504, 1))

    def test_no_store(self):
        self.site()
        self.says("/", answer("max-age=60"))
        self.get("/", {"Cache-Control": "no-store"})
        self.assert_fetched("/")
        self.assert_stored("/", "2")

    def test_honoured(self):
        self.site({"request_cache_control": "honour"})
        fresh, stale = answer("max-age=60", age="20", etag='"v1"'), answer("max-age=60", **STALE)
        must = answer("max-age=60, must-revalidate", **STALE)
        for number, (said, control, reused) in enumerate((
                (fresh, "no-cache", False), (fresh, "max-age=0", False),
                (fresh, "max-age=10", False),
                (fresh, "max-age=50", True), (fresh, "min-fresh=10", True),
                (fresh, "min-fresh=50", False),
                (fresh, "NO-CACHE", False), (fresh, "foo", True),
                (stale, "max-stale", True), (stale, "max-stale=1000", True),
                (stale, "max-stale=1", False),
                (must, "max-stale", False), (must, "max-stale=1000", False))):
            with self.subTest(control=control, said=said.lines):
                target = f"/{number}"
                self.fill(target, said, answer("max-age=60"))
                check = self.assert_stored if reused else self.assert_fetched
                check(target, headers={"Cache-Control": control})

    def test_honoured_no_cache_validates(self):
        self.site({"request_cache_control": "honour"})
        self.fill("/", answer("max-age=60", etag='"v1"'), not_modified("max-age=60"))
        got = self.get("/", {"Cache-Control": "no-cache"})
        self.assertEqual((got.text, self.requests("/")[-1].value("If-None-Match")), ("1", '"v1"'))


class Invalidation(Caching):
    """RFC 9111 section 4.4."""

    def test_unsafe_and_unknown_methods(self):
        self.site()
        for method in ("POST", "PUT", "PATCH", "DELETE", "M-SEARCH", "MAKE-UP"):
            for status, invalidated in ((200, True), (204, True), (201, True), (302, True),
                                        (400, False),
                                        (404, False), (500, False), (503, False)):
                with self.subTest(method, status=status):
                    target = f"/{method}-{status}"
                    self.fill(target, answer("max-age=60"), answer("no-store", status=status),
                              answer("max-age=60"))
                    self.get(target, method=method, body=b"x")
                    self.assert_fetched(target, "3") if invalidated else self.assert_stored(target)

    def test_safe_methods_do_not(self):
        self.site()
        for method in ("HEAD", "OPTIONS"):
            self.fill("/", answer("max-age=60"))
            self.get("/", method=method)
            self.assertEqual(self.get("/").text, "1")
            self.says("/", answer("no-store"))

    def test_all_variants_leave(self):
        self.site()
        self.says("/", *[answer("max-age=60", vary="Foo")] * 3, answer("no-store"),
                  answer("max-age=60", vary="Foo"))
        for value in "123":
            self.get("/", {"Foo": value})
        self.get("/", method="POST", body=b"x")
        for number, value in enumerate("123"):
            self.assert_fetched("/", str(number + 5), headers={"Foo": value})

    def test_places_that_the_answer_names(self):
        self.site()
        for name in ("location", "content_location"):
            for place, invalidated in (("/a?b", True), ("http://h.example/a?b", True),
                                       ("http://H.EXAMPLE:80/a?b", True),
                                       ("a?b", True), ("./x/../a?b", True),
                                       ("http://other.example/a?b", False),
                                       ("https://h.example/a?b", False),
                                       ("http://h.example:81/a?b", False),
                                       ("/a?c", False), ("//h.example/a?b", True)):
                with self.subTest(name, place=place):
                    self.fill("/a?b", answer("max-age=60"), answer("max-age=60"))
                    self.says("/form", answer("no-store", **{name: place}))
                    self.get("/form", method="POST", body=b"x")
                    self.assert_fetched("/a?b") if invalidated else self.assert_stored("/a?b")
                    self.says("/a?b", answer("no-store"))
                    self.get("/a?b", method="POST", body=b"x")

    def test_places_of_a_failed_request_stay(self):
        self.site()
        self.fill("/a", answer("max-age=60"))
        self.says("/form", answer("no-store", status=500, location="/a"))
        self.get("/form", method="POST", body=b"x")
        self.assert_stored("/a")


if __name__ == "__main__":
    unittest.main()
