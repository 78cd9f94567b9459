"""What clients get of a stored answer: ranges, interim answers, what is told of it."""

import email.parser
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.caching import (Caching, Document, STALE, answer, cache_status, date,  # noqa: E402
                             members, not_modified, reset)
from support.origin import Origin  # noqa: E402


class Ranges(Caching):
    """RFC 9110 section 14 and 15.3.7, RFC 9111 sections 3.3 and 3.4."""
    BODY = bytes(range(48, 58)) * 10    # 100 octets, "0123456789" ten times

    def stored(self, **fields):
        self.fill("/", answer("max-age=60", **{"body": self.BODY, "etag": '"v1"',
                                               "content_type": "text/x", **fields}))

    def check_range(self, value, first, last):
        got = self.assert_stored("/", self.BODY[first:last + 1].decode(), headers={"Range": value})
        self.assertEqual((got.status, got.value("Content-Range")),
                         (206, f"bytes {first}-{last}/100"), value)
        self.assertEqual((got.value("Content-Length"), got.value("ETag")),
                         (str(last - first + 1), '"v1"'))
        self.assertEqual((len(got.values("Age")), got.value("Content-Type")), (1, "text/x"))

    def test_one_range_of_a_stored_answer(self):
        self.site()
        self.stored()
        for value, first, last in (("bytes=0-0", 0, 0), ("bytes=0-9", 0, 9), ("bytes=5-", 5, 99),
                                   ("bytes=-1", 99, 99), ("bytes=-30", 70, 99),
                                   ("bytes=90-1000", 90, 99),
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
                self.assertEqual((got.status, got.value("Content-Range"), self.asked("/")),
                                 (416, "bytes */100", 1))
        self.assert_stored("/", self.BODY.decode())

    def test_what_is_no_range_is_ignored(self):
        self.site()
        self.stored()
        for value in ("lines=1-2", "bytes", "bytes=", "bytes=a-b", "bytes=5-2", "bytes=1-2-3",
                      "bytes=1 - 2",
                      "bytes=--1", "1-2", "bytes=99999999999999999999-1"):
            with self.subTest(value):
                self.assertEqual(self.assert_stored("/", self.BODY.decode(),
                                                    headers={"Range": value}).status, 200)

    def test_head_has_no_range(self):
        self.site()
        self.stored()
        got = self.get("/", {"Range": "bytes=0-1"}, method="HEAD")
        self.assertEqual((got.status, got.value("Content-Length")), (200, "100"))

    def parts(self, got):
        """[(Content-Range, body)] of a multipart answer."""
        text = f"Content-Type: {got.value('Content-Type')}\r\n\r\n".encode() + bytes(got.body)
        return [(part["Content-Range"], part.get_payload()) for part in
                email.parser.BytesParser().parsebytes(text).get_payload()]

    def test_several_ranges(self):
        self.site()
        self.stored(body=self.BODY * 100)
        got = self.get("/", {"Range": "bytes=0-1,5000-5009,-1"})
        self.assertEqual((got.status, self.asked("/")), (206, 1))
        self.assertTrue(got.value("Content-Type").startswith("multipart/byteranges"))
        self.assertIsNone(got.value("Content-Range"))
        self.assertEqual(self.parts(got), [("bytes 0-1/10000", "01"),
                                           ("bytes 5000-5009/10000", "0123456789"),
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
                ({"last_modified": modified}, modified, 206),
                ({"last_modified": modified}, date(-3000), 200),
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
        self.assertEqual(self.assert_stored("/404", "gone", headers={"Range": "bytes=0-1"}).status,
                         404)

    def test_a_part_is_never_given_for_the_whole(self):
        self.site()
        self.says("/", Document(self.BODY))
        got = self.get("/", {"Range": "bytes=10-19"})
        self.assertEqual((got.status, got.text, got.value("Content-Range")),
                         (206, "0123456789", "bytes 10-19/100"))
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
        for number, fields in enumerate(({"content_range": "bytes 0-9/100"},
                                         {"content_range": "bytes 4-1/10"},
                                         {"content_range": "bytes 8-12/10"}, {},
                                         {"content_range": "0-4/10"},
                                         {"content_range": "bytes 0-4/*"})):
            with self.subTest(fields):
                target = f"/{number}"
                self.says(target, answer("max-age=60", status=206, body=b"01234", etag='"v1"',
                                         **fields),
                          Document(self.BODY, etag='"v2"'))
                self.get(target, {"Range": "bytes=0-4"})
                self.assertEqual(bytes(self.get(target).body), self.BODY)

    def test_a_206_that_nobody_asked_for_is_no_answer_to_all(self):
        self.site()
        self.says("/", answer("max-age=60", status=206, body=b"01234",
                              content_range="bytes 0-4/100"),
                  answer("max-age=60", body=self.BODY))
        self.get("/")
        self.assert_fetched("/", self.BODY.decode())

    def test_an_origin_without_ranges(self):
        self.site()
        self.says("/", answer("max-age=60", body=self.BODY))
        got = self.get("/", {"Range": "bytes=10-19"})
        self.assertIn((got.status, bytes(got.body)), ((206, self.BODY[10:20]), (200, self.BODY)))
        self.assert_stored("/", "01", headers={"Range": "bytes=10-11"})


class Interim(Caching):
    """RFC 9110 section 15.2."""

    def test_they_pass_at_once_and_leave_nothing(self):
        self.site()

        def hints(exchange):
            exchange.send(b"HTTP/1.1 102 Processing\r\n\r\n")
            for number in range(2):
                exchange.send(b"HTTP/1.1 103 X\r\nLink: </%d>\r\nX-Hint: 1\r\n\r\n" % number)
            exchange.origin.wait(lambda: self.seen, 20)
            answer("max-age=60")(exchange)

        self.seen = False
        self.says("/", hints)
        connection = self.start("/")
        interim = [connection.head() for _ in range(3)]
        self.seen = True
        self.assertEqual([(m.status, m.value("Link")) for m in interim],
                         [(102, None), (103, "</0>"), (103, "</1>")])
        final = connection.response()
        self.assertEqual((final.status, final.value("Link"), final.value("X-Hint")),
                         (200, None, None))
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
        """The declared part is the body; what comes behind it answers no other request."""
        self.site()
        head = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: "
        self.fill("/", lambda e: e.send(head + b"3\r\n\r\nabc" + head + b"4\r\n\r\nevil"))
        self.assert_stored("/", "abc")
        self.assertEqual(self.fill("/next", answer("max-age=60", body=b"good")).text, "good")
        self.assert_stored("/next", "good")

    def test_a_length_beside_chunks(self):
        self.site()
        self.says("/", lambda e: e.send(
            b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\n"
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
        self.assertEqual((told["fwd"], told.get("fwd-status", "200"), told["stored"]),
                         ("stale", "200", True))

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
        with Origin(lambda e: e.reply(200, b"x", {"Cache-Control": "max-age=60"}),
                    name="b") as other:
            self.proxy.document["pools"]["plain"] = {"servers": [other.entry()]}
            self.proxy.document["listeners"][0]["routes"] = [{"match": {"path_prefix": "/plain"},
                                                              "pool": "plain"}]
            self.assertEqual(self.proxy.reload(self.proxy.document).status, 200)
            for _ in range(2):
                self.assertIsNone(self.get("/plain").value("Cache-Status"))
            self.assertEqual(len(other.requests), 2)


if __name__ == "__main__":
    unittest.main()
