"""Stored answers that are validated, and those that are given stale (RFC 9111, RFC 5861)."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.caching import (Caching, Document, STALE, answer, as_arguments,  # noqa: E402
                             cache_status, date, not_modified, reset)

FIVE_HUNDREDS = (500, 502, 503, 504)


class Validation(Caching):
    """RFC 9111 section 4.3."""

    def test_what_is_asked_of_the_origin(self):
        self.site()
        modified = date(-1000)
        for what, fields in (("strong", {"etag": '"v1"'}), ("weak", {"etag": 'W/"v1"'}),
                             ("date", {"last_modified": modified}),
                             ("both", {"etag": '"v1"', "last_modified": modified})):
            with self.subTest(what):
                target = f"/{what}"
                self.fill(target, answer("max-age=60", age="70", **fields),
                          not_modified("max-age=60"))
                got = self.get(target)
                self.assertEqual((got.status, got.text, self.asked(target)), (200, "1", 2))
                asked = self.requests(target)[-1]
                self.assertEqual((asked.value("If-None-Match"), asked.value("If-Modified-Since")),
                                 (fields.get("etag"), fields.get("last_modified")))
                self.assert_stored(target)

    def test_no_cache_is_stored_and_validated_each_time(self):
        """Section 5.2.2.4."""
        self.site()
        for control in ("no-cache", "max-age=60, no-cache", "max-age=60, No-CaChE",
                        's-maxage=60, no-cache'):
            with self.subTest(control):
                target = "/" + control.replace(" ", "").replace(",", "-")
                self.fill(target, answer(control, etag='"v1"'), not_modified())
                for times in (2, 3):
                    self.assertEqual((self.get(target).text, self.asked(target)), ("1", times))
                    self.assertEqual(self.requests(target)[-1].value("If-None-Match"), '"v1"')

    def test_the_request_carries_the_fields_of_vary(self):
        self.site()
        self.fill("/", answer("max-age=60", vary="Foo", **STALE), not_modified("max-age=60"),
                  headers={"Foo": "1"})
        self.assertEqual(self.get("/", {"Foo": "1"}).text, "1")
        asked = self.requests("/")[-1]
        self.assertEqual((asked.value("Foo"), asked.value("If-None-Match")), ("1", '"v1"'))

    def test_the_tag_of_another_variant_is_not_asked_alone(self):
        self.site()
        self.fill("/", answer("max-age=60", vary="Foo", etag='"v1"'), headers={"Foo": "1"})
        self.assert_fetched("/", headers={"Foo": "2"})
        self.assertNotEqual(self.requests("/")[-1].value("If-None-Match"), '"v1"')

    def test_a_304_updates_what_is_stored(self):
        """Section 3.2: every field in it, but for those of the connection and Content-Length."""
        self.site()
        before = {"x_note": "old", "x_kept": "kept", "expires": date(10),
                  "content_security_policy": "a",
                  "content_location": "/a", "x_two": ["1", "2"]}
        after = {"x_note": "new", "x_added": "added", "expires": date(600),
                 "content_security_policy": "b",
                 "content_location": "/b", "x_two": ["3"], "etag": '"v2"', "connection": "X-Hop",
                 "x_hop": "1", "content_length": "99", "keep_alive": "timeout=3"}
        self.fill("/", answer("max-age=60", **STALE, **before), not_modified("max-age=60", **after))
        validated, stored = self.get("/"), self.assert_stored("/")
        for got in (validated, stored):
            self.assertEqual((got.status, got.text, got.value("Content-Length")), (200, "1", "1"))
            self.assertEqual({name: got.value(name) for name in ("X-Note", "X-Added", "X-Kept",
                                                                 "X-Two", "ETag")},
                             {"X-Note": "new", "X-Added": "added", "X-Kept": "kept", "X-Two": "3",
                              "ETag": '"v2"'})
            for name in ("expires", "content_security_policy", "content_location"):
                self.assertEqual(got.value(name.replace("_", "-")), after[name])
            self.assertEqual((got.value("X-Hop"), got.value("Keep-Alive")), (None, None))

    def test_a_304_updates_cookies_where_they_are_stored(self):
        self.site({"set_cookie": "store"})
        self.fill("/", answer("max-age=60", set_cookie="id=1", **STALE),
                  not_modified("max-age=60", set_cookie="id=2"))
        self.get("/")
        self.assertEqual(self.assert_stored("/").value("Set-Cookie"), "id=2")

    def test_the_lifetime_is_that_of_the_304(self):
        self.site()
        for control, lines in (("max-age=60", {}), (None, {"expires": date(60)})):
            self.fill("/", answer("max-age=60", **STALE), not_modified(control, **lines),
                      answer("max-age=60"))
            self.assertEqual(self.get("/").text, "1")
        self.fill("/short", answer("max-age=60", **STALE), not_modified("max-age=0"))
        for times in (2, 3):
            self.assertEqual((self.get("/short").text, self.asked("/short")), ("1", times))
        # Age and Date of the 304 count, not those of the answer that it confirms.
        self.fill("/age", answer("max-age=60", **STALE), not_modified("max-age=60"))
        self.get("/age")
        self.assertLess(int(self.assert_stored("/age").value("Age")), 60)

    def test_a_whole_answer_replaces(self):
        self.site()
        for status in (200, 404, 410):
            with self.subTest(status):
                target = f"/{status}"
                self.fill(target, answer("max-age=60", x_old="1", **STALE),
                          answer("max-age=60", status=status))
                got = self.assert_fetched(target)
                self.assertEqual((got.status, got.value("X-Old")), (status, None))
                self.assertEqual(self.assert_stored(target, "2").status, status)

    def test_a_304_that_nobody_asked_for_is_not_stored(self):
        self.site()
        self.says("/", not_modified("max-age=60", etag='"v1"'), answer("max-age=60", body=b"whole"))
        self.get("/")
        self.assert_fetched("/", "whole")

    def test_conditions_on_a_fresh_answer(self):
        """Section 4.3.2 and RFC 9110 section 13: the stored fields, the request's, the status."""
        self.site()
        modified, now = date(-3000), date()
        strong, dated = {"etag": '"v1"'}, {"last_modified": modified}
        for number, (stored, asked, status) in enumerate((
                (strong, {"If-None-Match": '"v1"'}, 304),
                (strong, {"If-None-Match": '"v2"'}, 200),
                (strong, {"If-None-Match": 'W/"v1"'}, 304),
                ({"etag": 'W/"v1"'}, {"If-None-Match": '"v1"'}, 304),
                ({"etag": 'W/"v1"'}, {"If-None-Match": 'W/"v1"'}, 304),
                (strong, {"If-None-Match": "*"}, 304),
                (strong, {"If-None-Match": '"v1", "v2", "v3"'}, 304),
                (strong, {"If-None-Match": '"v2","v1" ,"v3"'}, 304),
                (strong, {"If-None-Match": 'W/"v3", W/"v2", W/"v1"'}, 304),
                (strong, {"If-None-Match": '"v2, v1"'}, 200),
                ({"etag": '"a,b"'}, {"If-None-Match": '"x", "a,b"'}, 304),
                (strong, {"If-None-Match": ""}, 200),
                (dated, {"If-None-Match": '"v1"'}, 200),
                (dated, {"If-Modified-Since": modified}, 304),
                (dated, {"If-Modified-Since": date(-2000)}, 304),
                (dated, {"If-Modified-Since": date(-4000)}, 200),
                (dated, {"If-Modified-Since": "yesterday"}, 200),
                (dated, {"If-Modified-Since": date(-2000).replace("GMT", "UTC")}, 200),
                ({"date": now}, {"If-Modified-Since": now}, 304),
                ({"date": now}, {"If-Modified-Since": date(-3000)}, 200),
                ({**strong, **dated}, {"If-None-Match": '"v1"', "If-Modified-Since": date(-4000)},
                 304),
                ({**strong, **dated}, {"If-None-Match": '"v2"', "If-Modified-Since": modified},
                 200))):
            with self.subTest(stored=stored, asked=asked):
                target = f"/{number}"
                self.fill(target, answer("max-age=60", **stored))
                got = self.assert_stored(target, "" if status == 304 else "1", headers=asked)
                self.assertEqual(got.status, status)

    def test_an_old_form_of_date_in_a_condition(self):
        self.site()
        self.fill("/", answer("max-age=60", last_modified="Sun, 06 Nov 1994 08:49:37 GMT"))
        for form in ("Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"):
            self.assertEqual(self.assert_stored("/", "",
                                                headers={"If-Modified-Since": form}).status, 304)

    def test_what_a_304_to_a_client_carries(self):
        """RFC 9110 section 15.4.5."""
        self.site()
        said = {"Date": date(-3), "ETag": '"v1"', "Expires": date(60), "Content-Location": "/x",
                "Vary": "Foo",
                "Cache-Control": "max-age=60"}
        self.fill("/", answer(**as_arguments(said)))
        got = self.assert_stored("/", "", headers={"If-None-Match": '"v1"'})
        self.assertEqual({name: got.value(name) for name in said}, said)
        self.assertEqual(len(got.values("Age")), 1)
        self.assertIn("hit", cache_status(got))

    def test_a_condition_is_answered_after_validation(self):
        self.site()
        self.fill("/", answer("max-age=60", **STALE), not_modified("max-age=60", etag='"v1"'))
        got = self.get("/", {"If-None-Match": '"v1"'})
        self.assertEqual((got.status, self.asked("/")), (304, 2))
        self.assert_stored("/")

    def test_a_client_with_an_older_version_gets_the_stored_one(self):
        """The origin confirms what is stored, not what the client has."""
        self.site()
        self.fill("/", answer("max-age=60", age="70", etag='"v2"'), Document(b"two", etag='"v2"'))
        got = self.get("/", {"If-None-Match": '"v1"'})
        self.assertEqual((got.status, got.text), (200, "1"))

    def test_a_condition_does_not_keep_the_whole_from_the_store(self):
        """The store is filled with the answer to everybody, not with the 304 to one."""
        self.site()
        for condition in ({"If-None-Match": '"v1"'}, {"If-Modified-Since": date()}):
            self.says("/", Document(b"whole", last_modified=date(-100)))
            self.assertIn(self.get("/", condition).status, (200, 304))
            self.assertEqual(self.get("/").text, "whole")
            self.assert_stored("/", "whole")
            self.says("/", answer("no-store"))

    def test_head_is_answered_from_a_stored_get(self):
        self.site()
        self.fill("/", answer("max-age=60", body=b"hello", x_note="1"))
        got = self.assert_stored("/", "", method="HEAD")
        self.assertEqual((got.status, got.value("Content-Length"), got.value("X-Note")),
                         (200, "5", "1"))
        self.assertEqual(len(got.values("Age")), 1)
        self.assertEqual(self.assert_stored("/", "", method="HEAD",
                                            headers={"If-None-Match": "*"}).status, 304)

    def test_the_answer_to_head_is_never_that_to_get(self):
        self.site()
        self.says("/", Document(b"hello"))
        for _ in range(2):
            got = self.get("/", method="HEAD")
            self.assertEqual((got.status, got.value("Content-Length")), (200, "5"))
        self.assertEqual(self.get("/").text, "hello")
        self.assert_stored("/", "hello")

    def test_head_on_a_stale_answer(self):
        """Section 4.3.5: what it tells of the stored answer holds for GET."""
        self.site()
        for what, new in (("the same", Document(b"1")), ("another version",
                                                         Document(b"other", etag='"v2"')),
                          ("another length", Document(b"longer"))):
            with self.subTest(what):
                target = "/" + what.replace(" ", "-")
                self.fill(target, answer("max-age=60", **STALE), new)
                got = self.get(target, method="HEAD")
                self.assertEqual((got.status, got.text), (200, ""))
                if what == "another length":
                    continue  # the same tag for another body: either is the origin's own word
                self.assertEqual(self.get(target).text, new.body.decode())
                self.assert_stored(target, new.body.decode())

    def test_immutable(self):
        """RFC 8246: not validated while it is fresh, whoever asks; stale is stale."""
        self.site({"request_cache_control": "honour"})
        self.fill("/", answer("max-age=60, immutable", etag='"v1"'))
        for asked in ("no-cache", "max-age=0"):
            self.assert_stored("/", headers={"Cache-Control": asked})
        self.fill("/stale", answer("max-age=60, immutable", **STALE), not_modified("max-age=60"))
        self.get("/stale")
        self.assertEqual(self.asked("/stale"), 2)


class Stale(Caching):
    """RFC 9111 section 4.2.4 and RFC 5861."""

    def failures(self):
        yield "reset", reset
        yield "no head", lambda e: e.close()
        yield "garbage", lambda e: (e.send(b"garbage\r\n\r\n"), e.close())
        for status in FIVE_HUNDREDS:
            yield f"{status}", answer("no-store", status=status, body=b"failed")

    def fill_stale(self, target, control, then, age="70", **fields):
        self.fill(target, answer(control, age=age, etag='"v1"', **fields), then)

    def test_stale_if_error(self):
        self.site({"stale_if_error": "0s"}, pool={"retry": {"attempts": 0}})
        for what, failure in self.failures():
            with self.subTest(what):
                target = "/" + what.replace(" ", "-")
                self.fill_stale(target, "max-age=60, stale-if-error=600", failure)
                got = self.get(target)
                self.assertEqual((got.status, got.text), (200, "1"))
                self.assertGreaterEqual(int(got.value("Age")), 70)
                self.assertEqual(cache_status(got)["fwd"], "stale")

    def test_stale_if_error_when_nobody_listens(self):
        self.site({"stale_if_error": "0s"}, pool={"retry": {"attempts": 0}})
        self.fill_stale("/", "max-age=60, stale-if-error=600", reset)
        self.origin.stop()
        got = self.get("/")
        self.assertEqual((got.status, got.text), (200, "1"))

    def test_stale_if_error_has_an_end(self):
        self.site({"stale_if_error": "0s"}, pool={"retry": {"attempts": 0}})
        for what, failure in self.failures():
            with self.subTest(what):
                target = "/" + what.replace(" ", "-")
                self.fill_stale(target, "max-age=60, stale-if-error=600", failure, age="700")
                self.assertIn(self.get(target).status, FIVE_HUNDREDS)

    def test_what_is_no_error_replaces(self):
        self.site()
        for status in (404, 403, 410, 301):
            self.fill_stale(f"/{status}", "max-age=60, stale-if-error=600",
                            answer("no-store", status=status))
            self.assertEqual(self.get(f"/{status}").status, status)

    def test_unless_told_otherwise_a_dead_origin_is_stood_in_for(self):
        for setting, status in ((None, 200), ("600s", 200), ("0s", 502), ("5s", 502)):
            with self.subTest(setting):
                self.site({"stale_if_error": setting} if setting else {},
                          pool={"retry": {"attempts": 0}})
                self.fill_stale("/", "max-age=60", reset)
                self.assertEqual(self.get("/").status, status)

    def test_never_past_what_forbids_it(self):
        """Whatever the operator says (sections 5.2.2.2, 5.2.2.4, 5.2.2.8, 5.2.2.10)."""
        self.site({"stale_if_error": "1h", "stale_while_revalidate": "1h"},
                  pool={"retry": {"attempts": 0}})
        for directive in ("must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=60"):
            for more in ("", ", stale-if-error=600", ", stale-while-revalidate=600"):
                for what, failure in self.failures():
                    with self.subTest(directive + more, failure=what):
                        target = "/" + (directive + more + what).replace(" ", "-").replace(",", "")
                        self.fill_stale(target, f"max-age=60, {directive}{more}", failure)
                        got = self.get(target)
                        self.assertIn(got.status, FIVE_HUNDREDS)
                        self.assertNotEqual(got.text, "1")

    def test_no_cache_is_not_given_though_it_is_fresh(self):
        self.site(pool={"retry": {"attempts": 0}})
        self.fill("/", answer("max-age=60, no-cache", etag='"v1"'), reset)
        self.assertEqual(self.get("/").status, 502)

    def test_stale_while_revalidate(self):
        self.site()
        self.fill_stale("/", "max-age=60, stale-while-revalidate=600", answer("max-age=60"))
        got = self.get("/")
        self.assertEqual(got.text, "1")
        self.assertGreaterEqual(int(got.value("Age")), 70)
        self.wait_asked("/", 2)
        self.assertEqual(self.requests("/")[-1].value("If-None-Match"), '"v1"')

    def test_stale_while_revalidate_has_an_end(self):
        self.site()
        self.fill_stale("/", "max-age=60, stale-while-revalidate=600", answer("max-age=60"),
                        age="700")
        self.assert_fetched("/")

    def test_a_setting_where_the_answer_does_not_say(self):
        self.site({"stale_while_revalidate": "600s"})
        self.fill_stale("/", "max-age=60", answer("max-age=60"))
        self.assertEqual(self.get("/").text, "1")
        self.fill_stale("/never", "max-age=60, stale-while-revalidate=0", answer("max-age=60"))
        self.assert_fetched("/never")

    def test_stale_without_leave_is_validated(self):
        self.site()
        self.fill_stale("/", "max-age=60", answer("max-age=60"))
        self.assert_fetched("/")


if __name__ == "__main__":
    unittest.main()
