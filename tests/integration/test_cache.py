"""The shared cache as RFC 9111 describes it: what is stored, and for how long."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.caching import Caching, STALE, answer, as_arguments, date, reset  # noqa: E402
from support.origin import Origin  # noqa: E402


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
            ("directives in a string", answer('x="no-store, private", max-age=60'), True),
        ])

    def test_any_final_status_with_a_lifetime(self):
        """Section 3: the status need not be cacheable by default when the lifetime is explicit."""
        self.site()
        for status in (200, 203, 204, 299, 300, 301, 302, 303, 307, 308,
                       400, 403, 404, 405, 410, 414, 451, 499, 500, 501, 502, 503, 504, 599):
            with self.subTest(status):
                target = f"/{status}"
                self.assertEqual(self.fill(target, answer("max-age=60", status=status)).status,
                                 status)
                got = self.assert_stored(target, "" if status == 204 else "1")
                self.assertEqual(got.status, status)

    def test_must_understand(self):
        """Section 5.2.2.3: it overrules no-store for a status whose rules are known."""
        self.site()
        control = "max-age=60, no-store, must-understand"
        alone = "max-age=60, must-understand"
        self.check_reuse([("known", answer(control), True),
                          ("404", answer(control, status=404), True),
                          ("unknown", answer(control, status=599), False),
                          ("without no-store", answer(alone, status=599), False)])

    def test_a_newer_answer_with_no_store_is_passed_on_and_renews_nothing(self):
        self.site()
        self.fill("/", answer("max-age=60", **STALE), answer("no-store"))
        self.assert_fetched("/", "2")
        self.assert_fetched("/", "3")

    def test_answers_to_requests_with_authorization(self):
        """Section 3.5: only what the answer allows shared caches to store."""
        self.site()
        self.check_reuse(
            [("a lifetime", answer("max-age=60"), False),
             ("Expires", answer(expires=date(60)), False),
             ("public", answer("public, max-age=60"), True),
             ("must-revalidate", answer("must-revalidate, max-age=60"), True),
             ("s-maxage", answer("s-maxage=60"), True),
             ("proxy-revalidate", answer("proxy-revalidate, max-age=60"), False)],
            headers={"Authorization": "Basic Zm9vOmJhcg=="})

    def test_fields_that_private_or_no_cache_name(self):
        """Sections 5.2.2.4 and 5.2.2.7: the rest is stored."""
        self.site()
        for directive in ("private", "no-cache"):
            for names, gone in (("X-Secret", ["x-secret"]),
                                ("x-secret, Set-Cookie2", ["x-secret", "set-cookie2"])):
                with self.subTest(f'{directive}="{names}"'):
                    target = f"/{directive}-{len(gone)}"
                    first = self.fill(target, answer(f'max-age=60, {directive}="{names}"',
                                                     x_secret="s", set_cookie2="a=b", x_open="o"))
                    self.assertEqual(first.value("X-Secret"), "s")
                    got = self.assert_stored(target)
                    self.assertEqual([got.value(name) for name in gone], [None] * len(gone))
                    self.assertEqual(got.value("X-Open"), "o")

    def test_set_cookie(self):
        """Section 7.3: it does not forbid storing; by default only answers meant for all are."""
        cookie = {"set_cookie": "id=1"}
        for mode, reused, kept in (("bypass", False, None), ("store", True, "id=1"),
                                   ("strip", True, None)):
            with self.subTest(mode):
                self.site({"set_cookie": mode})
                self.assertEqual(self.fill("/", answer("max-age=60", **cookie)).value("Set-Cookie"),
                                 "id=1")
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
        hop = {"connection": "X-Hop, x-other", "x_hop": "1", "x_other": "2",
               "keep_alive": "timeout=9", "proxy_connection": "keep-alive", "te": "gzip",
               "proxy_authenticate": 'Basic realm="x"',
               "proxy_authentication_info": "x=1", "proxy_authorization": "Basic eA==",
               "upgrade": "h2c"}
        first = self.fill("/", answer("max-age=60", x_kept="3", **hop))
        self.assertEqual([first.value("X-Hop"), first.value("X-Other"), first.value("Keep-Alive")],
                         [None] * 3)
        got = self.assert_stored("/")
        for name in hop:
            if name != "connection":
                self.assertIsNone(got.value(name.replace("_", "-")), name)
        self.assertEqual(got.value("X-Kept"), "3")

    def test_connection_cannot_name_control_fields_away(self):
        self.site()
        named = "Cache-Control, Age, Content-Length, Date, ETag, Vary"
        self.fill("/", answer("max-age=60", connection=named, age="5", etag='"v1"', vary="X-Kind"),
                  headers={"X-Kind": "1"})
        got = self.assert_stored("/", headers={"X-Kind": "1"})
        self.assertEqual((got.value("Cache-Control"), got.value("Content-Length")),
                         ("max-age=60", "1"))
        self.assertGreaterEqual(int(got.value("Age")), 5)
        self.assert_fetched("/", headers={"X-Kind": "2"})

    def test_all_other_fields_are_stored_as_they_came(self):
        """Section 3.1: unknown and obsolete ones too, and Content-Range without a meaning."""
        self.site()
        said = {"Content-Type": "text/x; charset=utf-8", "Content-Language": "de",
                "X-Unknown": 'a, "b", c',
                "Set-Cookie2": "a=b", "Content-Range": "xyz", "Warning": '199 - "x"', "Pragma": "x",
                "Content-Location": "/elsewhere", "P3p": "CP=x", "Link": "</s.css>; rel=preload",
                "Content-Security-Policy": "default-src 'self'",
                "Strict-Transport-Security": "max-age=1",
                "Etag": '"a b"', "Last-Modified": date(-1000), "Expires": date(600),
                "Date": date(-2),
                "X-Empty": "", "X-Obs": "caf\xe9"}
        self.fill("/", answer("max-age=60", **as_arguments(said)))
        got = self.assert_stored("/")
        self.assertEqual({n: got.value(n) for n in said}, said)

    def test_lines_of_one_name_stay_several(self):
        self.site()
        self.fill("/", answer("max-age=60", link=["</a>", "</b>"],
                              www_authenticate=["Basic", "Digest x=1"]))
        got = self.assert_stored("/")
        self.assertEqual(got.values("Link"), [b"</a>", b"</b>"])
        self.assertEqual(got.values("WWW-Authenticate"), [b"Basic", b"Digest x=1"])

    def test_answers_that_end_too_soon_are_not_stored(self):
        """Section 3.3."""
        self.site()
        head = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nDate: " + date().encode()
        for what, octets in (("length", b"\r\nContent-Length: 10\r\n\r\n12345"),
                             ("chunk", b"\r\nTransfer-Encoding: chunked\r\n\r\na\r\n12345"),
                             ("last chunk",
                              b"\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n")):
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
                   "/close": close,
                   "/none": lambda e: e.send(head + b"\r\nContent-Length: 0\r\n\r\n")}
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
            b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
            b"X-Sum: 1\r\nCache-Control: no-store\r\n\r\n"))
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
            ("Sunday, 06-Nov-94 08:49:37 GMT", False), ("0", False), ("-1", False),
            ("never", False),
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
            (["7200"], False), (["3599999999"], False), (["2147483647"], False),
            (["2147483648"], False),
            (["9" * 30], False), (["60"], True), (["7200, 0"], False), (["0, 7200"], True),
            (["7200", "0"], False), (["0", "7200"], True), (["0, 0"], True), (["60", "60"], True),
            (["abc"], True), (["-7200"], True), (["7200.0"], True), (["7200;x=1"], True),
            ([""], True))])
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
                          ("410", answer(status=410), True),
                          ("a lifetime", answer("max-age=0"), False),
                          ("no-store", answer("no-store"), False),
                          ("503", answer(status=503), False)])

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
            self.assertEqual((message.value("Date"), message.value("Expires")),
                             (said["date"], said["expires"]))

    def test_pragma_and_warning(self):
        """Sections 5.4 and 5.5: the one is ignored, the other is never made."""
        self.site()
        self.fill("/", answer("max-age=60", pragma="no-cache"), headers={"Pragma": "no-cache"})
        got = self.assert_stored("/", headers={"Pragma": "no-cache"})
        self.assertIsNone(got.value("Warning"))
        self.fill("/stale", answer("max-age=60, stale-while-revalidate=60", **STALE))
        self.assertIsNone(self.get("/stale").value("Warning"))


if __name__ == "__main__":
    unittest.main()
