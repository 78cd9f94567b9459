"""The shared cache as RFC 9111 describes it: what is stored, for how long, and what is made of it."""

import email.parser
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.caching import (Caching, Document, answer, cache_status, date, members,  # noqa: E402
                             not_modified, reset)
from support.origin import Origin  # noqa: E402

# With a validator and already older than it may be: it is stored, and validated when it is asked for.
STALE = {"age": "70", "etag": '"v1"'}
FIVE_HUNDREDS = (500, 502, 503, 504)


class Storing(Caching):
    """RFC 9111 section 3."""

    def test_which_answers_are_stored(self):
        self.site()
        old = date(-100_000)
        self.check_reuse([
            ("a lifetime", answer("max-age=60"), True),
            ("a lifetime for shared caches", answer("s-maxage=60"), True),
            ("Expires", answer(expires=date(60)), True),
            ("public and a date to guess from", answer("public", last_modified=old), True),
            ("a date to guess from", answer(last_modified=old), True),
            ("an unknown directive", answer("foobar, max-age=60"), True),
            ("nothing", answer(), False),
            ("public and nothing to guess from", answer("public"), False),
            ("no-store", answer("no-store"), False),
            ("no-store beside a lifetime", answer("max-age=60, no-store"), False),
            ("no-store on a line of its own", answer(["max-age=60", "no-store"]), False),
            ("No-StOrE", answer("max-age=60, No-StOrE"), False),
            ("private", answer("private, max-age=60"), False),
            ("private beside s-maxage", answer("private, s-maxage=60"), False),
            ("a lifetime of 0", answer("max-age=0"), False),
            ("the name of a directive in a string", answer('x="no-store, private", max-age=60'), True),
        ])

    def test_any_final_status_with_a_lifetime(self):
        """Section 3: the status need not be cacheable by default when the lifetime is explicit."""
        self.site()
        for status in (200, 203, 204, 299, 300, 301, 302, 303, 307, 308, 400, 403, 404, 405, 410, 414,
                       451, 499, 500, 501, 502, 503, 504, 599):
            with self.subTest(status):
                target = f"/{status}"
                self.assertEqual(self.fill(target, answer("max-age=60", status=status)).status, status)
                got = self.assert_stored(target, "" if status == 204 else "1")
                self.assertEqual(got.status, status)

    def test_must_understand(self):
        """Section 5.2.2.3: it overrules no-store for a status whose rules are known."""
        self.site()
        control = "max-age=60, no-store, must-understand"
        self.check_reuse([("known", answer(control), True), ("404", answer(control, status=404), True),
                          ("unknown", answer(control, status=599), False),
                          ("without no-store", answer("max-age=60, must-understand", status=599), False)])

    def test_a_newer_answer_with_no_store_is_passed_on_and_renews_nothing(self):
        self.site()
        self.fill("/", answer("max-age=60", **STALE), answer("no-store"))
        self.assert_fetched("/", "2")
        self.assert_fetched("/", "3")

    def test_answers_to_requests_with_authorization(self):
        """Section 3.5: only what the answer allows shared caches to store."""
        self.site()
        self.check_reuse(
            [("a lifetime", answer("max-age=60"), False), ("Expires", answer(expires=date(60)), False),
             ("public", answer("public, max-age=60"), True),
             ("must-revalidate", answer("must-revalidate, max-age=60"), True),
             ("s-maxage", answer("s-maxage=60"), True),
             ("proxy-revalidate", answer("proxy-revalidate, max-age=60"), False)],
            headers={"Authorization": "Basic Zm9vOmJhcg=="})

    def test_fields_that_private_or_no_cache_name(self):
        """Sections 5.2.2.4 and 5.2.2.7: the rest is stored."""
        self.site()
        for directive in ("private", "no-cache"):
            for names, gone in (("X-Secret", ["x-secret"]), ("x-secret, Set-Cookie2", ["x-secret", "set-cookie2"])):
                with self.subTest(f'{directive}="{names}"'):
                    target = f"/{directive}-{len(gone)}"
                    first = self.fill(target, answer(f'max-age=60, {directive}="{names}"', x_secret="s",
                                                     set_cookie2="a=b", x_open="o"))
                    self.assertEqual(first.value("X-Secret"), "s")
                    got = self.assert_stored(target)
                    self.assertEqual([got.value(name) for name in gone], [None] * len(gone))
                    self.assertEqual(got.value("X-Open"), "o")

    def test_set_cookie(self):
        """Section 7.3: it does not forbid storing; by default only answers meant for all are."""
        cookie = {"set_cookie": "id=1"}
        for mode, reused, kept in (("bypass", False, None), ("store", True, "id=1"), ("strip", True, None)):
            with self.subTest(mode):
                self.site({"set_cookie": mode})
                self.assertEqual(self.fill("/", answer("max-age=60", **cookie)).value("Set-Cookie"), "id=1")
                got = self.assert_stored("/") if reused else self.assert_fetched("/")
                self.assertEqual(got.value("Set-Cookie"), kept if reused else "id=1")
                for control in ("public, max-age=60", "s-maxage=60"):
                    self.fill("/all", answer(control, **cookie))
                    self.assertEqual(self.assert_stored("/all").value("Set-Cookie"),
                                     None if mode == "strip" else "id=1", control)

    def test_a_cookie_of_the_request_changes_nothing(self):
        self.site()
        self.fill("/", answer("max-age=60"), headers={"Cookie": "a=1"})
        self.assert_stored("/", headers={"Cookie": "b=2"})

    def test_fields_of_one_connection_are_not_stored(self):
        """RFC 9110 section 7.6.1."""
        self.site()
        hop = {"connection": "X-Hop, x-other", "x_hop": "1", "x_other": "2", "keep_alive": "timeout=9",
               "proxy_connection": "keep-alive", "proxy_authenticate": 'Basic realm="x"', "te": "gzip",
               "proxy_authentication_info": "x=1", "proxy_authorization": "Basic eA==",
               "upgrade": "h2c"}
        first = self.fill("/", answer("max-age=60", x_kept="3", **hop))
        self.assertEqual([first.value("X-Hop"), first.value("X-Other"), first.value("Keep-Alive")], [None] * 3)
        got = self.assert_stored("/")
        for name in hop:
            if name != "connection":
                self.assertIsNone(got.value(name.replace("_", "-")), name)
        self.assertEqual(got.value("X-Kept"), "3")

    def test_connection_cannot_name_control_fields_away(self):
        self.site()
        self.fill("/", answer("max-age=60", connection="Cache-Control, Age, Content-Length, Date, ETag, Vary",
                              age="5", etag='"v1"', vary="X-Kind"), headers={"X-Kind": "1"})
        got = self.assert_stored("/", headers={"X-Kind": "1"})
        self.assertEqual((got.value("Cache-Control"), got.value("Content-Length")), ("max-age=60", "1"))
        self.assertGreaterEqual(int(got.value("Age")), 5)
        self.assert_fetched("/", headers={"X-Kind": "2"})

    def test_all_other_fields_are_stored_as_they_came(self):
        """Section 3.1: unknown and obsolete ones too, and Content-Range without a meaning."""
        self.site()
        said = {"Content-Type": "text/x; charset=utf-8", "Content-Language": "de", "X-Unknown": 'a, "b", c',
                "Set-Cookie2": "a=b", "Content-Range": "xyz", "Warning": '199 - "x"', "Pragma": "x",
                "Content-Location": "/elsewhere", "P3p": "CP=x", "Link": "</s.css>; rel=preload",
                "Content-Security-Policy": "default-src 'self'", "Strict-Transport-Security": "max-age=1",
                "Etag": '"a b"', "Last-Modified": date(-1000), "Expires": date(600), "Date": date(-2),
                "X-Empty": "", "X-Obs": "caf\xe9"}
        self.fill("/", answer("max-age=60", **{n.replace("-", "_").lower(): v for n, v in said.items()}))
        got = self.assert_stored("/")
        self.assertEqual({n: got.value(n) for n in said}, said)

    def test_lines_of_one_name_stay_several(self):
        self.site()
        self.fill("/", answer("max-age=60", link=["</a>", "</b>"], www_authenticate=["Basic", "Digest x=1"]))
        got = self.assert_stored("/")
        self.assertEqual(got.values("Link"), [b"</a>", b"</b>"])
        self.assertEqual(got.values("WWW-Authenticate"), [b"Basic", b"Digest x=1"])

    def test_answers_that_end_too_soon_are_not_stored(self):
        """Section 3.3."""
        self.site()
        head = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nDate: " + date().encode()
        for what, octets in (("length", b"\r\nContent-Length: 10\r\n\r\n12345"),
                             ("chunk", b"\r\nTransfer-Encoding: chunked\r\n\r\na\r\n12345"),
                             ("last chunk", b"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n")):
            for ending in ("close", "reset"):
                with self.subTest(what, ending=ending):
                    target = f"/{what}-{ending}".replace(" ", "-")

                    def broken(exchange, octets=octets, ending=ending):
                        exchange.send(head + octets)
                        exchange.close() if ending == "close" else exchange.reset()
                    self.says(target, broken, answer("max-age=60", body=b"whole"))
                    first = self.get(target)
                    self.assertTrue(first.cut or first.status in (502, 504), first.start)
                    self.assert_fetched(target, "whole")
                    self.assert_stored(target, "whole")

    def test_bodies_of_any_framing_are_given_with_their_length(self):
        self.site()
        head = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nDate: " + date().encode()

        def close(exchange):
            exchange.send(head + b"\r\nConnection: close\r\n\r\nhello")
            exchange.close()

        scripts = {"/length": lambda e: e.send(head + b"\r\nContent-Length: 5\r\n\r\nhello"),
                   "/chunked": lambda e: e.send(head + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
                                                b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
                   "/close": close, "/none": lambda e: e.send(head + b"\r\nContent-Length: 0\r\n\r\n")}
        for target, script in scripts.items():
            with self.subTest(target):
                body = "" if target == "/none" else "hello"
                self.assertEqual(self.fill(target, script).text, body)
                got = self.assert_stored(target, body)
                self.assertEqual((got.value("Content-Length"), got.faults), (str(len(body)), []))

    def test_an_empty_body_is_stored(self):
        self.site()
        self.fill("/", answer("max-age=60", body=b""))
        self.assert_stored("/", "")

    def test_trailers_never_become_fields_of_the_head(self):
        """RFC 9110 section 6.5."""
        self.site()
        self.fill("/", lambda e: e.send(
            b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTrailer: X-Sum, Cache-Control\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nCache-Control: no-store\r\n\r\n"))
        got = self.assert_stored("/", "ok")
        self.assertEqual((got.value("X-Sum"), got.value("Cache-Control")), (None, "max-age=60"))

    def test_only_get_is_answered_from_the_store(self):
        self.site()
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "M-SEARCH", "PROPFIND"):
            with self.subTest(method):
                target = f"/{method}"
                self.says(target, answer("max-age=60"))
                for _ in range(2):
                    self.get(target, method=method, body=b"" if method == "OPTIONS" else b"x")
                self.assertEqual(self.asked(target), 2)
                self.assert_fetched(target, "3")

    def test_a_get_with_a_body_puts_nothing_into_the_store(self):
        """RFC 9110 section 9.3.1: such content has no meaning, yet an origin may look at it."""
        self.site()
        self.says("/", lambda e: answer("max-age=60", body=b"for " + e.read_body())(e))
        self.get("/", body=b"evil")
        self.assertEqual(self.get("/").text, "for ")
        self.assert_stored("/", "for ")

    def test_an_answer_of_our_own_is_not_stored(self):
        self.site({"negative_ttl": "60s"}, pool={"retry": {"attempts": 0}})
        self.says("/", reset, answer("max-age=60", body=b"back"))
        self.assertEqual(self.get("/").status, 502)
        self.assert_fetched("/", "back")

    def test_no_upstream_no_memory_of_it(self):
        self.site(pool={"retry": {"attempts": 0}})
        port = self.origin.port
        self.origin.stop()
        self.assertIn(self.get("/").status, (502, 503))
        self.says("/", answer("max-age=60", body=b"back"))
        with Origin(self._answer, name="a", port=port):
            self.assertEqual(self.get("/").text, "back")

    def test_answers_that_are_too_large_pass_through(self):
        self.site({"size": "1MiB", "max_object": "64k"})
        for what, size, reused in (("small", 60_000, True), ("large", 70_000, False)):
            for framing in ("length", "chunked"):
                with self.subTest(what, framing=framing):
                    body = b"x" * size
                    said = answer("max-age=60", body=body)
                    if framing == "chunked":
                        said = answer("max-age=60", body=b"%x\r\n%s\r\n0\r\n\r\n" % (size, body),
                                      transfer_encoding="chunked")
                    target = f"/{what}-{framing}"
                    self.assertEqual(len(self.fill(target, said).body), size)
                    check = self.assert_stored if reused else self.assert_fetched
                    check(target, body.decode())


class Freshness(Caching):
    """RFC 9111 section 4.2."""

    def test_cache_control(self):
        self.site()
        past, future = date(-1000), date(1000)
        self.check_reuse([
            ("s-maxage before max-age", answer("max-age=0, s-maxage=60"), True),
            ("the other way round", answer("s-maxage=60, max-age=0"), True),
            ("on two lines", answer(["max-age=0", "s-maxage=60"]), True),
            ("s-maxage of 0", answer("max-age=60, s-maxage=0"), False),
            ("s-maxage and a past Expires", answer("max-age=0, s-maxage=60", expires=past), True),
            ("max-age and a past Expires", answer("max-age=60", expires=past), True),
            ("max-age and an invalid Expires", answer("max-age=60", expires="0"), True),
            ("max-age of 0 and a future Expires", answer("max-age=0", expires=future), False),
            ("2147483647", answer("max-age=2147483647"), True),
            ("2147483648", answer("max-age=2147483648"), True),
            ("99999999999", answer("max-age=99999999999"), True),
            ("30 digits", answer("max-age=" + "9" * 30), True),
            ("leading zeros", answer("max-age=0060"), True),
            ("any case", answer("MaX-AgE=60"), True),
            ("a quoted string", answer('max-age="60"'), True),
            ("a directive in a string before", answer('x="max-age=60", max-age=0'), False),
            ("a directive in a string behind", answer('max-age=0, x="max-age=60"'), False),
            ("an escaped quote in a string", answer('x="\\", max-age=60, \\"", max-age=0'), False),
            ("a string without an end", answer('x="max-age=60, no-store'), False),
            ("empty members", answer(", ,max-age=60,,"), True),
            ("single quotes", answer("max-age='60'"), False),
            ("a blank before =", answer("max-age =60"), False),
            ("a blank behind =", answer("max-age= 60"), False),
            ("a fraction", answer("max-age=60.0"), False),
            ("a letter before", answer("max-age=a60"), False),
            ("a letter behind", answer("max-age=60a"), False),
            ("negative", answer("max-age=-60"), False),
            ("a plus sign", answer("max-age=+60"), False),
            ("no value", answer("max-age"), False),
            ("an empty value", answer("max-age="), False),
            ("twice, the first larger", answer("max-age=60, max-age=0"), False),
            ("twice, the second larger", answer("max-age=0, max-age=60"), False),
            ("twice on two lines", answer(["max-age=0", "max-age=60"]), False),
            ("twice the same", answer("max-age=60, max-age=60"), True),
        ])

    def test_expires(self):
        """Section 5.3, dates as RFC 9110 section 5.6.7."""
        self.site()
        self.check_reuse([(text, answer(expires=text), reused) for text, reused in (
            ("Tue, 19 Jan 2038 14:14:08 GMT", True), ("Sun, 21 Nov 2286 04:46:39 GMT", True),
            ("Fri, 31 Dec 9999 23:59:59 GMT", True), ("Thursday, 18-Aug-50 02:01:18 GMT", True),
            ("Thu Aug  8 02:01:18 2050", True), ("THU, 18 Aug 2050 02:01:18 GMT", True),
            ("Thu, 18 AUG 2050 02:01:18 GMT", True), ("Thu, 18 Aug 2050 02:01:18 gMT", True),
            ("Sunday, 06-Nov-94 08:49:37 GMT", False), ("0", False), ("-1", False), ("never", False),
            ("Thu, 18 Aug 2050 02:01:18 UTC", False), ("Thu, 18 Aug 2050 02:01:18 AEST", False),
            ("Thu, 18 Aug 2050 02:01:18 +0000", False), ("Thu, 18 Aug 50 02:01:18 GMT", False),
            ("Thu 18 Aug 2050 02:01:18 GMT", False), ("Thu, 18  Aug  2050 02:01:18 GMT", False),
            ("Thu, 18-Aug-2050 02:01:18 GMT", False), ("Thu, 18 Aug 2050 02.01.18 GMT", False),
            ("Thu, 18 Aug 2050 2:01:18 GMT", False), ("Thu, 31 Feb 2050 02:01:18 GMT", False))])
        self.check_reuse([("several lines", answer(expires=[date(60), date(61)]), False)])

    def test_expires_is_counted_from_date(self):
        self.site()
        self.check_reuse([
            ("both fast", answer(date=date(400), expires=date(300)), False),
            ("both fast and apart", answer(date=date(400), expires=date(4000)), True),
            ("both slow", answer(date=date(-4000), expires=date(-100)), False),
            ("the same", answer(date=(now := date()), expires=now), False),
            ("no date", answer(date=None, expires=date(60)), True),
            ("an invalid date", answer(date="foo", expires=date(60)), True),
            ("older than apart, slow", answer(date=date(-10), expires=date(10), age="25"), False),
            ("older than apart, fast", answer(date=date(10), expires=date(20), age="15"), False),
        ])

    def test_age(self):
        """Sections 4.2.3 and 5.1."""
        self.site()
        self.check_reuse([(f"Age: {' / '.join(lines)}", answer("max-age=3600", age=lines), reused)
                          for lines, reused in (
            (["7200"], False), (["3599999999"], False), (["2147483647"], False), (["2147483648"], False),
            (["9" * 30], False), (["60"], True), (["7200, 0"], False), (["0, 7200"], True),
            (["7200", "0"], False), (["0", "7200"], True), (["0, 0"], True), (["60", "60"], True),
            (["abc"], True), (["-7200"], True), (["7200.0"], True), (["7200;x=1"], True), ([""], True))])
        self.check_reuse([("a date of long ago", answer("max-age=3600", date=date(-7200)), False),
                          ("a date to come", answer("max-age=3600", date=date(7200)), True)])

    def test_a_guess_from_last_modified(self):
        """Section 4.2.2 and RFC 9110 section 15.1."""
        self.site()
        old = {"last_modified": date(-10_000)}
        self.check_reuse(
            [(f"{status}", answer(status=status, **old), True)
             for status in (200, 203, 300, 301, 308, 404, 405, 410, 414, 501)] +
            [(f"{status}", answer(status=status, **old), False)
             for status in (201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599)] +
            [("599 and public", answer("public", status=599, **old), True),
             ("a tenth of its age", answer(age="900", **old), True),
             ("older than a tenth", answer(age="1100", **old), False),
             ("a day at most", answer(age="90000", last_modified=date(-10_000_000)), False),
             ("nearly a day", answer(age="80000", last_modified=date(-10_000_000)), True),
             ("modified in the future", answer(last_modified=date(1000)), False),
             ("only an entity tag", answer(etag='"v1"'), False)])
        self.fill("/204", answer(status=204, **old))
        self.assert_stored("/204", "")

    def test_no_guess_when_told_so(self):
        self.site({"heuristic": "off"})
        self.check_reuse([("old", answer(last_modified=date(-100_000)), False)])

    def test_what_the_operator_says_of_answers_that_say_nothing(self):
        self.site({"default_ttl": "60s", "negative_ttl": "60s", "heuristic": "off"})
        self.check_reuse([("nothing", answer(), True), ("404", answer(status=404), True),
                          ("410", answer(status=410), True), ("a lifetime", answer("max-age=0"), False),
                          ("no-store", answer("no-store"), False), ("503", answer(status=503), False)])

    def test_age_is_sent_with_what_is_stored(self):
        """Section 5.1: once, and never with an answer of the origin that had none."""
        self.site()
        self.assertIsNone(self.fill("/", answer("max-age=60")).value("Age"))
        self.assertEqual(len(self.assert_stored("/").values("Age")), 1)
        self.assertEqual(self.fill("/30", answer("max-age=60", age="30")).value("Age"), "30")
        got = self.assert_stored("/30")
        self.assertEqual(len(got.values("Age")), 1)
        self.assertGreaterEqual(int(got.value("Age")), 30)
        self.fill("/two", answer("max-age=60", age=["30", "7"]))
        self.assertEqual(len(self.assert_stored("/two").values("Age")), 1)

    def test_age_counts_from_date_and_through_the_delay_of_the_origin(self):
        self.site()
        self.fill("/date", answer("max-age=3600", date=date(-100)))
        self.assertGreaterEqual(int(self.assert_stored("/date").value("Age")), 100)

        def slow(exchange):
            exchange.request.finished = self.origin.wait(lambda: False, 1.1)
            answer("max-age=60", age="10", date=None)(exchange)
        self.fill("/slow", slow)
        self.assertGreaterEqual(int(self.assert_stored("/slow").value("Age")), 11)

    def test_date_and_expires_stay(self):
        """RFC 9110 section 6.6.1."""
        self.site()
        said = {"date": date(-20), "expires": date(600)}
        first = self.fill("/", answer("max-age=60", **said))
        got = self.assert_stored("/")
        for message in (first, got):
            self.assertEqual((message.value("Date"), message.value("Expires")), (said["date"], said["expires"]))

    def test_pragma_and_warning(self):
        """Sections 5.4 and 5.5: the one is ignored, the other is never made."""
        self.site()
        self.fill("/", answer("max-age=60", pragma="no-cache"), headers={"Pragma": "no-cache"})
        got = self.assert_stored("/", headers={"Pragma": "no-cache"})
        self.assertIsNone(got.value("Warning"))
        self.fill("/stale", answer("max-age=60, stale-while-revalidate=60", **STALE))
        self.assertIsNone(self.get("/stale").value("Warning"))


class Keys(Caching):
    """RFC 9111 sections 2 and 4.1."""

    def test_what_makes_another_key(self):
        self.site()
        for what, first, second, same in (
                ("query", ("/q?a=1", "h.example"), ("/q?a=2", "h.example"), False),
                ("order of the query", ("/q?a=1&b=2", "h.example"), ("/q?b=2&a=1", "h.example"), False),
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

    def test_a_target_in_absolute_form_is_the_same(self):
        self.site()
        self.fill("/a?b", answer("max-age=60"))
        with wire.Connection(self.proxy.web) as connection:
            got = connection.request("GET", "http://H.example:80/a?b", host="other.example")
            self.assertEqual((got.text, self.asked("/a?b")), ("1", 1))

    def test_a_key_of_ones_own(self):
        self.site({"key": "{scheme}://{host}{uri:normalized}|{header:X-Kind}", "key_ignore": ["utm_*"]})
        self.fill("/a?b=2&utm_source=x&a=1", answer("max-age=60"), headers={"X-Kind": "1"})
        self.says("/a?a=1&b=2", answer("max-age=60", body=b"other"))
        self.assertEqual(self.get("/a?a=1&b=2", {"X-Kind": "1"}).text, "1")
        self.assertEqual(self.get("/a?a=1&b=2", {"X-Kind": "2"}).text, "other")

    def test_vary(self):
        """Section 4.1: rows of Vary, the first request's fields, the second's, whether they match."""
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
                ("Accept-Language", {"Accept-Language": "en, de"}, {"Accept-Language": "de, en"}, True),
                ("Accept-Language", {"Accept-Language": "en, de"}, {"Accept-Language": "eN,  De"}, True),
                ("Accept-Language", {"Accept-Language": "en;q=0.5, de"}, {"Accept-Language": "de, en;q=0.5"}, True),
                ("Accept-Language", {"Accept-Language": "en;q=0.5, de"}, {"Accept-Language": "de;q=0.5, en"}, False),
                ("Accept-Language", {"Accept-Language": "en"}, {"Accept-Language": "en, de"}, False),
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
        """Section 4.1: it may differ from answer to answer; of several that match, the latest Date wins."""
        self.site()
        self.says("/", answer("max-age=60", vary="Foo", date=date(-9)),
                  answer("max-age=60", vary="Bar", date=date(-5)),
                  answer("max-age=60"))
        self.assertEqual(self.get("/", {"Foo": "1", "Bar": "1"}).text, "1")
        self.assertEqual(self.get("/", {"Foo": "2", "Bar": "2"}).text, "2")
        self.assertEqual(self.get("/", {"Foo": "1", "Bar": "3"}).text, "1")
        self.assertEqual(self.get("/", {"Foo": "3", "Bar": "2"}).text, "2")
        self.assertEqual(self.get("/", {"Foo": "1", "Bar": "2"}).text, "2", "both match, the second is newer")
        self.assertEqual(self.get("/", {"Foo": "4", "Bar": "4"}).text, "3")
        self.assertEqual(self.get("/", {"Foo": "5", "Bar": "5"}).text, "3", "that one goes with all")


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
                self.fill(target, answer("max-age=60", age="70", **fields), not_modified("max-age=60"))
                got = self.get(target)
                self.assertEqual((got.status, got.text, self.asked(target)), (200, "1", 2))
                asked = self.requests(target)[-1]
                self.assertEqual((asked.value("If-None-Match"), asked.value("If-Modified-Since")),
                                 (fields.get("etag"), fields.get("last_modified")))
                self.assert_stored(target)

    def test_no_cache_is_stored_and_validated_each_time(self):
        """Section 5.2.2.4."""
        self.site()
        for control in ("no-cache", "max-age=60, no-cache", "max-age=60, No-CaChE", 's-maxage=60, no-cache'):
            with self.subTest(control):
                target = "/" + control.replace(" ", "").replace(",", "-")
                self.fill(target, answer(control, etag='"v1"'), not_modified())
                for times in (2, 3):
                    self.assertEqual((self.get(target).text, self.asked(target)), ("1", times))
                    self.assertEqual(self.requests(target)[-1].value("If-None-Match"), '"v1"')

    def test_the_request_carries_the_fields_of_vary(self):
        self.site()
        self.fill("/", answer("max-age=60", vary="Foo", **STALE), not_modified("max-age=60"), headers={"Foo": "1"})
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
        before = {"x_note": "old", "x_kept": "kept", "expires": date(10), "content_security_policy": "a",
                  "content_location": "/a", "x_two": ["1", "2"]}
        after = {"x_note": "new", "x_added": "added", "expires": date(600), "content_security_policy": "b",
                 "content_location": "/b", "x_two": ["3"], "etag": '"v2"', "connection": "X-Hop",
                 "x_hop": "1", "content_length": "99", "keep_alive": "timeout=3"}
        self.fill("/", answer("max-age=60", **STALE, **before), not_modified("max-age=60", **after))
        validated, stored = self.get("/"), self.assert_stored("/")
        for got in (validated, stored):
            self.assertEqual((got.status, got.text, got.value("Content-Length")), (200, "1", "1"))
            self.assertEqual({name: got.value(name) for name in ("X-Note", "X-Added", "X-Kept", "X-Two", "ETag")},
                             {"X-Note": "new", "X-Added": "added", "X-Kept": "kept", "X-Two": "3", "ETag": '"v2"'})
            for name in ("expires", "content_security_policy", "content_location"):
                self.assertEqual(got.value(name.replace("_", "-")), after[name])
            self.assertEqual((got.value("X-Hop"), got.value("Keep-Alive")), (None, None))

    def test_a_304_updates_cookies_where_they_are_stored(self):
        self.site({"set_cookie": "store"})
        self.fill("/", answer("max-age=60", set_cookie="id=1", **STALE), not_modified("max-age=60", set_cookie="id=2"))
        self.get("/")
        self.assertEqual(self.assert_stored("/").value("Set-Cookie"), "id=2")

    def test_the_lifetime_is_that_of_the_304(self):
        self.site()
        for control, lines in (("max-age=60", {}), (None, {"expires": date(60)})):
            self.fill("/", answer("max-age=60", **STALE), not_modified(control, **lines), answer("max-age=60"))
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
                self.fill(target, answer("max-age=60", x_old="1", **STALE), answer("max-age=60", status=status))
                got = self.assert_fetched(target)
                self.assertEqual((got.status, got.value("X-Old")), (status, None))
                self.assertEqual(self.assert_stored(target, "2").status, status)

    def test_a_304_that_nobody_asked_for_is_not_stored(self):
        self.site()
        self.says("/", not_modified("max-age=60", etag='"v1"'), answer("max-age=60", body=b"whole"))
        self.get("/")
        self.assert_fetched("/", "whole")

    def test_conditions_on_a_fresh_answer(self):
        """Section 4.3.2 and RFC 9110 section 13: rows of the stored fields, the request's, the status."""
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
                ({**strong, **dated}, {"If-None-Match": '"v1"', "If-Modified-Since": date(-4000)}, 304),
                ({**strong, **dated}, {"If-None-Match": '"v2"', "If-Modified-Since": modified}, 200))):
            with self.subTest(stored=stored, asked=asked):
                target = f"/{number}"
                self.fill(target, answer("max-age=60", **stored))
                got = self.assert_stored(target, "" if status == 304 else "1", headers=asked)
                self.assertEqual(got.status, status)

    def test_an_old_form_of_date_in_a_condition(self):
        self.site()
        self.fill("/", answer("max-age=60", last_modified="Sun, 06 Nov 1994 08:49:37 GMT"))
        for form in ("Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"):
            self.assertEqual(self.assert_stored("/", "", headers={"If-Modified-Since": form}).status, 304)

    def test_what_a_304_to_a_client_carries(self):
        """RFC 9110 section 15.4.5."""
        self.site()
        said = {"Date": date(-3), "ETag": '"v1"', "Expires": date(60), "Content-Location": "/x", "Vary": "Foo",
                "Cache-Control": "max-age=60"}
        self.fill("/", answer(**{n.replace("-", "_").lower(): v for n, v in said.items()}))
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
        self.assertEqual((got.status, got.value("Content-Length"), got.value("X-Note")), (200, "5", "1"))
        self.assertEqual(len(got.values("Age")), 1)
        self.assertEqual(self.assert_stored("/", "", method="HEAD", headers={"If-None-Match": "*"}).status, 304)

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
        for what, new in (("the same", Document(b"1")), ("another version", Document(b"other", etag='"v2"')),
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
            self.fill_stale(f"/{status}", "max-age=60, stale-if-error=600", answer("no-store", status=status))
            self.assertEqual(self.get(f"/{status}").status, status)

    def test_unless_told_otherwise_a_dead_origin_is_stood_in_for(self):
        for setting, status in ((None, 200), ("600s", 200), ("0s", 502), ("5s", 502)):
            with self.subTest(setting):
                self.site({"stale_if_error": setting} if setting else {}, pool={"retry": {"attempts": 0}})
                self.fill_stale("/", "max-age=60", reset)
                self.assertEqual(self.get("/").status, status)

    def test_never_past_what_forbids_it(self):
        """Whatever the operator or stale-if-error says (sections 5.2.2.2, 5.2.2.4, 5.2.2.8, 5.2.2.10)."""
        self.site({"stale_if_error": "1h", "stale_while_revalidate": "1h"}, pool={"retry": {"attempts": 0}})
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
        self.fill_stale("/", "max-age=60, stale-while-revalidate=600", answer("max-age=60"), age="700")
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


class Ranges(Caching):
    """RFC 9110 section 14 and 15.3.7, RFC 9111 sections 3.3 and 3.4."""
    BODY = bytes(range(48, 58)) * 10    # 100 octets, "0123456789" ten times

    def stored(self, **fields):
        self.fill("/", answer("max-age=60", **{"body": self.BODY, "etag": '"v1"', "content_type": "text/x", **fields}))

    def check_range(self, value, first, last):
        got = self.assert_stored("/", self.BODY[first:last + 1].decode(), headers={"Range": value})
        self.assertEqual((got.status, got.value("Content-Range")), (206, f"bytes {first}-{last}/100"), value)
        self.assertEqual((got.value("Content-Length"), got.value("ETag")), (str(last - first + 1), '"v1"'))
        self.assertEqual((len(got.values("Age")), got.value("Content-Type")), (1, "text/x"))

    def test_one_range_of_a_stored_answer(self):
        self.site()
        self.stored()
        for value, first, last in (("bytes=0-0", 0, 0), ("bytes=0-9", 0, 9), ("bytes=5-", 5, 99),
                                   ("bytes=-1", 99, 99), ("bytes=-30", 70, 99), ("bytes=90-1000", 90, 99),
                                   ("bytes=-1000", 0, 99), ("bytes=0-", 0, 99), ("BYTES=1-2", 1, 2),
                                   ("bytes=7-7,", 7, 7)):
            with self.subTest(value):
                self.check_range(value, first, last)

    def test_a_range_beyond_the_end(self):
        self.site()
        self.stored()
        for value in ("bytes=100-", "bytes=100-200", "bytes=-0", "bytes=500-501,600-"):
            with self.subTest(value):
                got = self.get("/", {"Range": value})
                self.assertEqual((got.status, got.value("Content-Range"), self.asked("/")), (416, "bytes */100", 1))
        self.assert_stored("/", self.BODY.decode())

    def test_what_is_no_range_is_ignored(self):
        self.site()
        self.stored()
        for value in ("lines=1-2", "bytes", "bytes=", "bytes=a-b", "bytes=5-2", "bytes=1-2-3", "bytes=1 - 2",
                      "bytes=--1", "1-2", "bytes=99999999999999999999-1"):
            with self.subTest(value):
                self.assertEqual(self.assert_stored("/", self.BODY.decode(), headers={"Range": value}).status, 200)

    def test_head_has_no_range(self):
        self.site()
        self.stored()
        got = self.get("/", {"Range": "bytes=0-1"}, method="HEAD")
        self.assertEqual((got.status, got.value("Content-Length")), (200, "100"))

    def parts(self, got):
        """[(Content-Range, body)] of a multipart answer."""
        text = f"Content-Type: {got.value('Content-Type')}\r\n\r\n".encode("latin-1") + bytes(got.body)
        return [(part["Content-Range"], part.get_payload()) for part in
                email.parser.BytesParser().parsebytes(text).get_payload()]

    def test_several_ranges(self):
        self.site()
        self.stored(body=self.BODY * 100)
        got = self.get("/", {"Range": "bytes=0-1,5000-5009,-1"})
        self.assertEqual((got.status, self.asked("/")), (206, 1))
        self.assertTrue(got.value("Content-Type").startswith("multipart/byteranges"))
        self.assertIsNone(got.value("Content-Range"))
        self.assertEqual(self.parts(got), [("bytes 0-1/10000", "01"), ("bytes 5000-5009/10000", "0123456789"),
                                           ("bytes 9999-9999/10000", "9")])
        self.assertEqual(bytes(got.body).count(b"Content-Type: text/x"), 3)

    def test_many_ranges_do_not_make_a_large_answer(self):
        self.site()
        self.stored()
        for value in ("bytes=" + ",".join(["0-"] * 1000), "bytes=" + ",".join(["0-99"] * 500),
                      "bytes=" + ",".join(f"{n}-{n + 1}" for n in range(0, 98, 1)),
                      "bytes=" + ",".join("0-0" for _ in range(2000))):
            with self.subTest(value[:20]):
                got = self.get("/", {"Range": value})
                self.assertIn(got.status, (200, 206, 416))
                self.assertLess(len(got.body), 4 * len(self.BODY) + 2048)

    def test_if_range(self):
        """RFC 9110 section 13.1.5: by strong comparison only."""
        modified, now = date(-3600), date()
        self.site()
        for number, (stored, condition, status) in enumerate((
                ({"etag": '"v1"'}, '"v1"', 206), ({"etag": '"v1"'}, '"v2"', 200),
                ({"etag": 'W/"v1"'}, 'W/"v1"', 200), ({"etag": '"v1"'}, 'W/"v1"', 200),
                ({"etag": 'W/"v1"'}, '"v1"', 200),
                ({"last_modified": modified}, modified, 206), ({"last_modified": modified}, date(-3000), 200),
                ({"last_modified": now, "date": now}, now, 200), ({"etag": '"v1"'}, modified, 200),
                ({"last_modified": modified}, '"v1"', 200))):
            with self.subTest(stored=stored, condition=condition):
                target = f"/{number}"
                self.fill(target, answer("max-age=60", body=self.BODY, **stored))
                got = self.get(target, {"Range": "bytes=0-1", "If-Range": condition})
                self.assertEqual((got.status, self.asked(target)), (status, 1))
                self.assertEqual(bytes(got.body), self.BODY[:2] if status == 206 else self.BODY)

    def test_if_none_match_goes_first(self):
        self.site()
        self.stored()
        got = self.get("/", {"Range": "bytes=0-1", "If-None-Match": '"v1"'})
        self.assertEqual((got.status, self.asked("/")), (304, 1))

    def test_only_200_has_ranges(self):
        self.site()
        self.fill("/404", answer("max-age=60", status=404, body=b"gone"))
        self.assertEqual(self.assert_stored("/404", "gone", headers={"Range": "bytes=0-1"}).status, 404)

    def test_a_part_is_never_given_for_the_whole(self):
        self.site()
        self.says("/", Document(self.BODY))
        got = self.get("/", {"Range": "bytes=10-19"})
        self.assertEqual((got.status, got.text, got.value("Content-Range")), (206, "0123456789", "bytes 10-19/100"))
        self.assertEqual(bytes(self.get("/").body), self.BODY)
        self.assert_stored("/", self.BODY.decode())
        self.check_range_of_document()

    def check_range_of_document(self):
        got = self.assert_stored("/", "89", headers={"Range": "bytes=98-99"})
        self.assertEqual(got.status, 206)

    def test_parts_of_two_versions_are_never_joined(self):
        self.site()
        document = Document(b"a" * 100)
        self.says("/", document)
        self.assertEqual(self.get("/", {"Range": "bytes=0-49"}).text, "a" * 50)
        document.body, document.etag = b"b" * 100, '"v2"'
        self.get("/", {"Range": "bytes=50-99"})
        got = self.get("/")
        self.assertEqual((got.status, len(set(got.body))), (200, 1), "one version only")

    def test_parts_that_contradict_themselves_are_not_stored(self):
        self.site()
        for number, fields in enumerate(({"content_range": "bytes 0-9/100"}, {"content_range": "bytes 4-1/10"},
                                         {"content_range": "bytes 8-12/10"}, {}, {"content_range": "0-4/10"},
                                         {"content_range": "bytes 0-4/*"})):
            with self.subTest(fields):
                target = f"/{number}"
                self.says(target, answer("max-age=60", status=206, body=b"01234", etag='"v1"', **fields),
                          Document(self.BODY, etag='"v2"'))
                self.get(target, {"Range": "bytes=0-4"})
                self.assertEqual(bytes(self.get(target).body), self.BODY)

    def test_a_206_that_nobody_asked_for_is_no_answer_to_all(self):
        self.site()
        self.says("/", answer("max-age=60", status=206, body=b"01234", content_range="bytes 0-4/100"),
                  answer("max-age=60", body=self.BODY))
        self.get("/")
        self.assert_fetched("/", self.BODY.decode())

    def test_an_origin_without_ranges(self):
        self.site()
        self.says("/", answer("max-age=60", body=self.BODY))
        got = self.get("/", {"Range": "bytes=10-19"})
        self.assertIn((got.status, bytes(got.body)), ((206, self.BODY[10:20]), (200, self.BODY)))
        self.assert_stored("/", "01", headers={"Range": "bytes=10-11"})


class Targeted(Caching):
    """RFC 9213."""

    def test_it_alone_rules(self):
        self.site()
        self.check_reuse([(f"{targeted} / {control}", answer(control, cdn_cache_control=targeted, **more), reused)
                          for targeted, control, more, reused in (
            ("max-age=60", None, {}, True), ("max-age=60", "no-store", {}, True),
            ("max-age=60", "max-age=0", {}, True), ("max-age=60", "private", {}, True),
            ("max-age=60", None, {"expires": date(-60)}, True), ("max-age=60", None, {"expires": "0"}, True),
            ("max-age=0", "max-age=60", {}, False), ("max-age=0", None, {"expires": date(60)}, False),
            ("max-age=60", None, {"age": "70"}, False), ("no-store", "max-age=60", {}, False),
            ("private", "max-age=60", {}, False), ("no-cache", "max-age=60", {}, False),
            ("max-age=2147483648", None, {}, True), ("max-age=99999999999", None, {}, True),
            ("foo, max-age=60", None, {}, True), ("max-age=60;x=1", None, {}, True),
            ("max-age=0, s-maxage=60", None, {}, True), ("max-age=0, max-age=60", None, {}, True),
            (["max-age=0", "max-age=60"], None, {}, True))])

    def test_an_invalid_one_is_ignored_as_a_whole(self):
        self.site()
        for value in ("max-age=60, &&&", 'max-age="60"', "max-age =60", "max-age= 60", "max-age=60,", "MaX-AgE=60",
                      "max-age=60.5", "max-age=60 x", "", "max-age=60, no-store=\"x"):
            self.check_reuse([(f"{value!r} and no-store", answer("no-store", cdn_cache_control=value), False),
                              (f"{value!r} and max-age", answer("max-age=60", cdn_cache_control=value), True)])

    def test_it_is_passed_on(self):
        self.site()
        said = "max-age=60, x"
        self.assertEqual(self.fill("/", answer(cdn_cache_control=said)).value("CDN-Cache-Control"), said)
        self.assertEqual(self.assert_stored("/").value("CDN-Cache-Control"), said)

    def test_a_name_of_ones_own(self):
        self.site({"targeted": ["Clockwise-Cache-Control", "CDN-Cache-Control"]})
        fields = {"clockwise_cache_control": "max-age=60", "cdn_cache_control": "no-store"}
        self.check_reuse([("the first", answer("no-store", **fields), True),
                          ("the second", answer("no-store", cdn_cache_control="max-age=60"), True),
                          ("the first is invalid", answer("max-age=60", **{**fields, "clockwise_cache_control": "&"}), False)])

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
        self.assertEqual((self.get("/vary", {"Foo": "2", **only}).status, self.asked("/vary")), (504, 1))

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
                (fresh, "no-cache", False), (fresh, "max-age=0", False), (fresh, "max-age=10", False),
                (fresh, "max-age=50", True), (fresh, "min-fresh=10", True), (fresh, "min-fresh=50", False),
                (fresh, "NO-CACHE", False), (fresh, "foo", True),
                (stale, "max-stale", True), (stale, "max-stale=1000", True), (stale, "max-stale=1", False),
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
            for status, invalidated in ((200, True), (204, True), (201, True), (302, True), (400, False),
                                        (404, False), (500, False), (503, False)):
                with self.subTest(method, status=status):
                    target = f"/{method}-{status}"
                    self.fill(target, answer("max-age=60"), answer("no-store", status=status), answer("max-age=60"))
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
        self.says("/", *[answer("max-age=60", vary="Foo")] * 3, answer("no-store"), answer("max-age=60", vary="Foo"))
        for value in "123":
            self.get("/", {"Foo": value})
        self.get("/", method="POST", body=b"x")
        for number, value in enumerate("123"):
            self.assert_fetched("/", str(number + 5), headers={"Foo": value})

    def test_places_that_the_answer_names(self):
        self.site()
        for name in ("location", "content_location"):
            for place, invalidated in (("/a?b", True), ("http://h.example/a?b", True), ("http://H.EXAMPLE:80/a?b", True),
                                       ("a?b", True), ("./x/../a?b", True), ("http://other.example/a?b", False),
                                       ("https://h.example/a?b", False), ("http://h.example:81/a?b", False),
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


class Interim(Caching):
    """RFC 9110 section 15.2."""

    def test_they_pass_at_once_and_leave_nothing(self):
        self.site()

        def hints(exchange):
            exchange.send(b"HTTP/1.1 102 Processing\r\n\r\n")
            for number in range(2):
                exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </%d>\r\nX-Hint: %d\r\n\r\n" % (number, number))
            exchange.origin.wait(lambda: self.seen, 20)
            answer("max-age=60")(exchange)

        self.seen = False
        self.says("/", hints)
        connection = self.start("/")
        interim = [connection.head() for _ in range(3)]
        self.seen = True
        self.assertEqual([(m.status, m.value("Link")) for m in interim], [(102, None), (103, "</0>"), (103, "</1>")])
        final = connection.response()
        self.assertEqual((final.status, final.value("Link"), final.value("X-Hint")), (200, None, None))
        got = self.assert_stored("/")
        self.assertEqual((got.interim, got.value("Link"), got.value("X-Hint")), ([], None, None))


class Framing(Caching):
    """RFC 9112 sections 6 and 7: what cannot be delimited for sure is not stored."""

    def raw(self, octets):
        def script(exchange):
            exchange.send(octets)
            exchange.close()
        return script

    def check_refused(self, octets):
        self.says("/", self.raw(octets), answer("max-age=60", body=b"whole"))
        first = self.get("/")
        self.assertTrue(first.status == 502 or first.cut, first.start)
        self.assert_fetched("/", "whole")

    def test_two_lengths(self):
        self.site(pool={"retry": {"attempts": 0}})
        self.check_refused(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n"
                           b"Content-Length: 5\r\n\r\nabcde")

    def test_an_unknown_coding_is_never_stored_as_plain(self):
        self.site(pool={"retry": {"attempts": 0}})
        self.says("/", self.raw(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
                                b"Transfer-Encoding: foo, chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
                  answer("max-age=60", body=b"whole"))
        self.assertEqual(self.get("/").status, 502)
        self.assert_fetched("/", "whole")

    def test_more_than_the_length(self):
        """The declared part is the body; what comes behind it is not the answer to the next request."""
        self.site()
        self.fill("/", lambda e: e.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n\r\n"
                                        b"abcHTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\nevil"))
        self.assert_stored("/", "abc")
        self.assertEqual(self.fill("/next", answer("max-age=60", body=b"good")).text, "good")
        self.assert_stored("/next", "good")

    def test_a_length_beside_chunks(self):
        self.site()
        self.says("/", lambda e: e.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n"
                                        b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"))
        first = self.get("/")
        self.assertIn((first.status, first.text), ((200, "abcde"), (502, first.text)))
        again = self.get("/")
        self.assertIn((again.status, again.text), ((200, "abcde"), (502, again.text)))
        self.assertEqual(again.faults, [])


class Told(Caching):
    """Cache-Status (RFC 9211) and the other fields that say what happened."""

    def status_of(self, target, headers=None, **options):
        return cache_status(self.get(target, headers, **options))

    def test_miss_and_hit(self):
        self.site()
        self.says("/", answer("max-age=60"))
        first = self.status_of("/")
        self.assertEqual((first["fwd"], first["stored"]), ("uri-miss", True))
        self.assertNotIn("hit", first)
        again = self.status_of("/")
        self.assertTrue(again["hit"])
        self.assertNotIn("fwd", again)
        self.assertIn(int(again["ttl"]), range(30, 61))

    def test_not_stored(self):
        self.site()
        self.says("/", answer("no-store"))
        told = self.status_of("/")
        self.assertEqual(told["fwd"], "uri-miss")
        self.assertNotIn("stored", told)

    def test_vary_miss(self):
        self.site()
        self.fill("/", answer("max-age=60", vary="Foo"), headers={"Foo": "1"})
        told = self.status_of("/", {"Foo": "2"})
        self.assertEqual((told["fwd"], told["stored"]), ("vary-miss", True))

    def test_stale(self):
        self.site()
        self.fill("/", answer("max-age=60", **STALE), not_modified("max-age=60"))
        told = self.status_of("/")
        self.assertEqual((told["fwd"], told["fwd-status"]), ("stale", "304"))
        self.fill("/new", answer("max-age=60", **STALE), answer("max-age=60"))
        told = self.status_of("/new")
        self.assertEqual((told["fwd"], told.get("fwd-status", "200"), told["stored"]), ("stale", "200", True))

    def test_method_and_request(self):
        self.site({"request_cache_control": "honour"})
        self.says("/", answer("max-age=60", etag='"v1"'))
        self.assertEqual(self.status_of("/", method="POST", body=b"x")["fwd"], "method")
        self.get("/")
        self.assertEqual(self.status_of("/", {"Cache-Control": "no-cache"})["fwd"], "request")

    def test_an_answer_of_our_own(self):
        self.site(pool={"retry": {"attempts": 0}})
        self.says("/", reset)
        got = self.get("/")
        self.assertEqual(got.status, 502)
        told = cache_status(got)
        self.assertNotIn("stored", told)
        self.assertNotIn("hit", told)
        self.assertNotIn("hit", self.status_of("/cold", {"Cache-Control": "only-if-cached"}))

    def test_members_of_others_stay_before_ours(self):
        """RFC 9211 section 2."""
        self.site()
        first = self.fill("/", answer("max-age=60", cache_status='"inner, one"; hit; ttl=7'))
        self.assertEqual([name for name, _ in members(first)], ['"inner, one"', "clockwise"])
        got = self.assert_stored("/")
        self.assertEqual([name for name, _ in members(got)], ['"inner, one"', "clockwise"])
        self.assertTrue(cache_status(got)["hit"])

    def test_the_key_on_demand(self):
        self.site({"show_key": True})
        self.fill("/a?b", answer("max-age=60"))
        self.assertEqual(self.status_of("/a?b")["key"], "http://h.example/a?b")
        self.site()
        self.fill("/a?b", answer("max-age=60"))
        self.assertNotIn("key", self.status_of("/a?b"))

    def test_via_once(self):
        """RFC 9110 section 7.6.3."""
        self.site()
        first = self.fill("/", answer("max-age=60", via="1.0 inner"))
        for got in (first, self.assert_stored("/"), self.get("/", {"Range": "bytes=0-0"})):
            self.assertEqual(re.split(r", ?", got.value("Via")), ["1.0 inner", "1.1 clockwise"])

    def test_a_pool_without_a_cache_says_nothing(self):
        self.site()
        with Origin(lambda e: e.reply(200, b"x", {"Cache-Control": "max-age=60"}), name="b") as other:
            self.proxy.document["pools"]["plain"] = {"servers": [other.entry()]}
            self.proxy.document["listeners"][0]["routes"] = [{"match": {"path_prefix": "/plain"}, "pool": "plain"}]
            self.assertEqual(self.proxy.reload(self.proxy.document).status, 200)
            for _ in range(2):
                self.assertIsNone(self.get("/plain").value("Cache-Status"))
            self.assertEqual(len(other.requests), 2)


if __name__ == "__main__":
    unittest.main()
