"""Why a key is where it is: `clockwise explain`, by the file and by the proxy that runs."""

import json
import os
import pathlib
import random
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import BINARY, DEADLINE, Upstream, answer, run  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.ring import Ring, xxh64  # noqa: E402
from support.scenario import Site  # noqa: E402


SCHEMES = ["nginx", "nginx-hash", "ketama", "libketama", "libmemcached", "spymemcached", "twemproxy", "haproxy",
           "varnish", "envoy", "maglev", "custom", "modulo"]


def explain(*arguments, octets=None):
    """The document; keys may be octets."""
    done = subprocess.run([BINARY, "explain", "--json", *arguments], input=octets, capture_output=True,
                          timeout=DEADLINE, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode("utf-8", "replace"))
    return json.loads(done.stdout)


def keys(count):
    """Targets that a request line can carry, many of them not UTF-8."""
    draw = random.Random(11)
    return [b"/" + bytes(draw.choice(range(0x80, 0x100)) for _ in range(draw.randrange(4)))
            + f"{draw.getrandbits(40):x}".encode() for _ in range(count)]


class Explain(unittest.TestCase):
    def setUp(self):
        self.origins = [self.enterContext(Origin(name=name)) for name in "abcd"]

    def site(self, servers, **config):
        return self.enterContext(Site(servers, listener={"debug_headers": True}, **config))

    @staticmethod
    def url(proxy):
        return f"http://127.0.0.1:{proxy.admin_port}"

    def test_file_and_proxy_and_the_real_choice_agree_for_any_octets(self):
        a, b, c, d = self.origins
        proxy = self.site([a, b.entry(weight=2), c, d.entry(state="draining")])
        ring = Ring({"a": 1, "b": 2, "c": 1})
        wanted = keys(200)
        offline = explain("-c", proxy.file, "-", octets=b"".join(key + b"\n" for key in wanted))["keys"]
        live = explain("--admin", self.url(proxy), "-", octets=b"".join(key + b"\n" for key in wanted))["keys"]
        self.assertEqual((len(offline), len(live)), (200, 200))
        with wire.Connection(proxy.web) as connection:
            for key, by_file, by_proxy in zip(wanted, offline, live):
                answer = connection.request("GET", key)
                self.assertEqual(answer.value("clockwise-server"), by_proxy["chosen"], key)
                self.assertEqual(answer.value("clockwise-key-hash"), by_proxy["hash"], key)
                walk = [(s["server"], s["state"]) for s in by_file["walk"]]
                self.assertEqual(walk, [*((n, "active") for n in ring.walk(key)), ("d", "draining")], key)
                self.assertEqual((by_file["chosen"], by_file["reason"]), (ring.owner(key), "home"))
                self.assertEqual({s["health"] for s in by_file["walk"]}, {"unknown"})
                self.assertEqual({s["health"] for s in by_proxy["walk"]}, {"up"})
                self.assertEqual([s["requests_in_flight"] for s in by_proxy["walk"]], [0] * 4)
                for document in (by_file, by_proxy):
                    for step in document["walk"]:
                        step.pop("health"), step.pop("requests_in_flight")
                self.assertEqual(by_file, by_proxy)

    def test_every_scheme_explains_the_choice_it_makes(self):
        a, b, c, d = self.origins
        for scheme in SCHEMES:
            with self.subTest(scheme):
                proxy = self.site([a, b, c.entry(state="down"), d], ring={"scheme": scheme})
                wanted = [f"/{i}" for i in range(20)]
                live = explain("--admin", self.url(proxy), *wanted)["keys"]
                self.assertEqual([k["chosen"] for k in live], [proxy.owners(wanted)[k] for k in wanted])
                with wire.Connection(proxy.web) as connection:
                    for key, told in zip(wanted, live):
                        answer = connection.request("GET", key.encode())
                        self.assertEqual(answer.value("clockwise-server"), told["chosen"], key)
                        self.assertEqual(sorted(s["server"] for s in told["walk"]), list("abcd"), key)
                        self.assertEqual((told["walk"][-1]["server"], told["walk"][-1]["position"]), ("c", None))
                        positions = [told["slot"] or told["hash"]] + [p["position"] for p in told["points_after"]]
                        self.assertTrue(all(p.isdecimal() for p in positions), key)

    def test_one_key_is_an_object_of_its_own(self):
        proxy = self.site(self.origins)
        key = "/one?two=3"
        document = explain("-c", proxy.file, key)
        looked_up = json.loads(run("lookup", "-c", proxy.file, "--json", key).stdout)
        self.assertEqual(document.pop("pool"), "pages")
        self.assertEqual({name: document[name] for name in looked_up["keys"][0]}, looked_up["keys"][0])
        ring = Ring(dict.fromkeys("abcd", 1))
        at = next((i for i, p in enumerate(ring.positions) if p >= xxh64(key.encode())), 0)
        around = [ring.points[(at + i) % len(ring.points)] for i in range(-1, 4)]
        told = [document["point_before"], *document["points_after"]]
        self.assertEqual([(int(p["position"]), p["server"]) for p in told], around)
        self.assertEqual(document["walk"][0]["position"], document["points_after"][0]["position"])
        self.assertEqual((document["canonical_key"], document["slot"]), (key, None))
        several = explain("-c", proxy.file, key, "/other")
        self.assertEqual([k["key"] for k in several["keys"]], [key, "/other"])
        self.assertEqual({"pool": "pages", **several["keys"][0]}, {"pool": "pages", **document})

    def test_keys_are_taken_as_they_are(self):
        proxy = self.site(self.origins)
        odd = ["[a,b]", "++", "\x01x", "", "a b", "%2F", "-x"]
        document = explain("-c", proxy.file, "--", *odd)
        self.assertEqual([k["key"] for k in document["keys"]], odd)
        self.assertEqual([k["hash"] for k in document["keys"]], [str(xxh64(k.encode())) for k in odd])
        self.assertEqual([k["hash"] for k in explain("--admin", self.url(proxy), "--", *odd)["keys"]],
                         [k["hash"] for k in document["keys"]])
        raw = explain("-c", proxy.file, os.fsdecode(b"/caf\xe9"))
        self.assertEqual((raw["key"], raw["hash"]), ("/caf\ufffd", str(xxh64(b"/caf\xe9"))))

    def test_a_server_without_an_address_is_passed_over(self):
        a, b, *_ = self.origins
        lost = {"name": "lost", "address": "lost.invalid:80"}
        proxy = self.site([a, b, lost], pool={"resolve": "lazy"})
        ring = Ring({"a": 1, "b": 1, "lost": 1})
        key = next(k for k in (f"/{i}" for i in range(1000)) if ring.owner(k.encode()) == "lost")
        next_owner = ring.walk(key.encode())[1]
        live = explain("--admin", self.url(proxy), key)
        self.assertEqual((live["server"], live["chosen"], live["reason"]), ("lost", next_owner, "failover"))
        self.assertEqual(live["walk"][0]["health"], "down")
        self.assertEqual(proxy.get(key).headers["Clockwise-Server"], next_owner)
        text = run("explain", "--admin", self.url(proxy), key).stdout
        self.assertIn(f"chosen    {next_owner}, failover: lost cannot be used\n", text)
        self.assertEqual(explain("-c", proxy.file, key)["chosen"], "lost")

    def test_the_previous_owner_is_named_after_a_change(self):
        a, b, c, d = self.origins
        proxy = self.site([a, b, c])
        before, after = Ring(dict.fromkeys("abc", 1)), Ring(dict.fromkeys("abcd", 1))
        key = next(k for k in (f"/{i}" for i in range(1000)) if after.owner(k.encode()) == "d")
        self.assertIsNone(explain("--admin", self.url(proxy), key)["previous"])
        proxy.change([a, b, c, d])
        live = explain("--admin", self.url(proxy), key)
        self.assertEqual((live["chosen"], live["previous"]), ("d", before.owner(key.encode())))

    def test_the_text_is_a_picture(self):
        proxy = self.site(self.origins)
        done = run("explain", "-c", proxy.file, "/x")
        self.assertEqual(done.returncode, 0, done.stderr)
        owner = Ring(dict.fromkeys("abcd", 1)).owner(b"/x")
        for part in ('key       "/x"\n', f"hash      {xxh64(b'/x')}\n", "\npoints around it\n", "   the key\n",
                     f"\nwalk\n  1. {owner} ", f"\nchosen    {owner}, its home: the first point at or after"):
            self.assertIn(part, done.stdout)

    def test_what_cannot_be_explained(self):
        proxy = self.site(self.origins)
        for arguments, code, words in [
            (["/x"], 2, "-c FILE or --admin URL"), (["-c", proxy.file], 2, "KEY"),
            (["-c", "/none.yaml", "/x"], 1, "/none.yaml"),
            (["-c", proxy.file, "--pool", "none", "/x"], 1, 'no pool "none"'),
            (["--admin", self.url(proxy), "--pool", "none", "/x"], 1, 'no pool is named "none"'),
            (["--admin", "http://127.0.0.1:1", "/x"], 1, "cannot reach the proxy"),
            (["--admin", f"http://{self.origins[0].address}", "/x"], 1, "is not the admin address"),
        ]:
            with self.subTest(arguments):
                done = run("explain", *arguments)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stdout, "")

    def answering(self, **answers):
        """The admin address of something that answers each path with a JSON value, or octets."""
        def respond(received, _):
            body = answers["lookup" if received.target.split("?")[0].endswith("/lookup") else "pools"]
            return answer(body if isinstance(body, bytes) else json.dumps(body).encode())
        return f"http://{self.enterContext(Upstream('odd', handler=respond)).address}"

    def test_answers_that_no_proxy_gives(self):
        pools = {"pools": [{"name": "pages", "digest": "d", "servers": []}]}
        for name, answers, words in [
            ("no pools", {"pools": {"pools": []}}, "has no pools"),
            ("no JSON", {"pools": b"<html>"}, "is not the admin address of a proxy: status 200, and no JSON object"),
            ("cut JSON", {"pools": b'{"pools": ['}, "is not the admin address of a proxy"),
            ("an array", {"pools": []}, "is not the admin address of a proxy"),
            ("pools of another kind", {"pools": {"pools": 3}}, "is not the admin address of a proxy: no pools"),
            ("a pool that is a number", {"pools": {"pools": [1]}}, "is not the admin address of a proxy: a pool"),
            ("a pool without a name", {"pools": {"pools": [{}]}}, "is not the admin address of a proxy: a pool"),
            ("no keys", {"pools": pools, "lookup": {}}, "asked for 1 keys, it answers 0"),
            ("a key that is a number", {"pools": pools, "lookup": {"keys": [1]}}, "too old to explain a key"),
            ("no JSON of the key", {"pools": pools, "lookup": b"?"}, "is not the admin address of a proxy"),
        ]:
            with self.subTest(name):
                done = run("explain", "--admin", self.answering(**answers), "/x")
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_a_key_of_the_wrong_shape_is_still_printed(self):
        key = {"key": "/x", "walk": [1, {"server": 2}], "points_after": ["?"], "chosen": "a", "reason": "home"}
        url = self.answering(pools={"pools": [{"name": "pages", "digest": "d"}]}, lookup={"keys": [key]})
        done = run("explain", "--admin", url, "/x")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("chosen    a, its home", done.stdout)

    def test_an_admin_address_that_is_none(self):
        for url in ("http://127.0.0.1:65536", "127.0.0.1:99999999999999999999", "http://127.0.0.1:0"):
            done = run("explain", "--admin", url, "/x")
            self.assertEqual(done.returncode, 1)
            self.assertIn(f'"{url}" is not an admin address: a port is 1 to 65535', done.stderr)


if __name__ == "__main__":
    unittest.main()
