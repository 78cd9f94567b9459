"""The URI decides: each request reaches the server that `clockwise lookup` names, its octets untouched."""

import collections
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import run  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site  # noqa: E402

ODD_URIS = [
    "/", "//", "/?", "/??", "/a//b", "/a/./b/../c", "/%2F", "/a%2Fb", "/a%2fb", "/%41", "/A", "/a;p=1", "/a?q=1&r=%20",
    "/a?x=/../y", "/?a=b?c", "/~user/", "/a+b", "/a%00b", "/%zz", "/a|b", "/a%C3%A9", "/caf\u00e9", "/\u65e5\u672c/\u8a9e?q=\u00fc",
    "/'quoted'", "/a,b;c=d:e@f!g$h&i*j(k)", "/" + "x" * 4000, "/a?" + "y" * 3000, "/index.html?", "/a=b", "/.", "/..",
]


def uris(count):
    draw = random.Random(7)
    made = [f"/{draw.choice('abcdef')}/{draw.getrandbits(32):x}" + draw.choice(["", ".html", "?v=1", "/"])
            for _ in range(count - len(ODD_URIS))]
    return ODD_URIS + made


class Routing(unittest.TestCase):
    def setUp(self):
        self.origins = [self.enterContext(Origin(name=name)) for name in "abcde"]

    def site(self, servers, **config):
        return self.enterContext(Site(servers, **config))

    def test_each_uri_reaches_the_server_that_lookup_names_with_its_octets_untouched(self):
        a, b, c, d, e = self.origins
        proxy = self.site([a.entry(weight=2), b.entry(weight=0.5), c, d, e])
        wanted = uris(200)
        owners = proxy.owners(wanted)
        self.assertEqual(set(owners.values()), set("abcde"))
        with wire.Connection(proxy.web) as connection:
            for uri in wanted:
                octets = uri.encode("utf-8")
                answer = connection.request("GET", octets)
                self.assertEqual(answer.status, 200, uri)
                self.assertEqual(answer.value("x-server"), owners[uri], uri)
                origin = self.origins["abcde".index(owners[uri])]
                self.assertEqual(origin.requests[-1].target, octets)

    def test_every_worker_routes_alike(self):
        proxy = self.site(self.origins, workers=3)
        wanted = uris(60)
        owners = proxy.owners(wanted)
        for uri in wanted:
            answer = wire.fetch(proxy.web, uri.encode("utf-8"))
            self.assertEqual(answer.value("x-server"), owners[uri], uri)

    def test_absolute_form_is_the_same_key_as_origin_form(self):
        proxy = self.site(self.origins)
        wanted = [u for u in uris(80) if not u.startswith("//")]
        owners = proxy.owners(wanted)
        with wire.Connection(proxy.web) as connection:
            for uri in wanted:
                answer = connection.request("GET", b"http://h.example" + uri.encode("utf-8"))
                self.assertEqual(answer.value("x-server"), owners[uri], uri)
                origin = self.origins["abcde".index(owners[uri])]
                self.assertEqual(origin.requests[-1].target, uri.encode("utf-8"))

    def test_method_and_host_do_not_move_a_key(self):
        proxy = self.site(self.origins)
        owner = proxy.owners(["/one"])["/one"]
        for method, host in [("GET", "h.example"), ("POST", "h.example"), ("DELETE", "other.example")]:
            self.assertEqual(wire.fetch(proxy.web, "/one", method, host=host).value("x-server"), owner)

    def test_load_follows_the_weights(self):
        a, b, c, *_ = self.origins
        proxy = self.site([a.entry(weight=1), b.entry(weight=2), c.entry(weight=5)])
        shares = {s["name"]: s["share_ratio"] for s in proxy.pool()["servers"]}
        for name, weight in (("a", 1), ("b", 2), ("c", 5)):
            self.assertAlmostEqual(shares[name], weight / 8, delta=0.03)
        count, got = 2000, collections.Counter()
        with wire.Connection(proxy.web) as connection:
            for n in range(count):
                got[connection.request("GET", f"/item/{n}").value("x-server")] += 1
        for name, share in shares.items():
            # Four standard deviations of a fair draw.
            self.assertAlmostEqual(got[name] / count, share, delta=4 * (share * (1 - share) / count) ** 0.5)

    def test_servers_off_the_ring_get_nothing(self):
        a, b, c, d, _ = self.origins
        proxy = self.site([a, b.entry(state="draining"), c.entry(state="down"), d.entry(weight=0)])
        with wire.Connection(proxy.web) as connection:
            for uri in uris(120):
                self.assertEqual(connection.request("GET", uri.encode("utf-8")).value("x-server"), "a")
        self.assertEqual([len(o.requests) for o in (b, c, d)], [0, 0, 0])

    def test_a_label_is_what_the_ring_hashes(self):
        a, b, c, *_ = self.origins
        wanted = uris(100)
        plain = self.site([a, b, c])
        before = plain.owners(wanted)
        # Each server carries the label of another: every key follows the label.
        turned = {"a": "b", "b": "c", "c": "a"}
        labelled = self.site([o.entry(label=turned[o.name]) for o in (a, b, c)])
        after = labelled.owners(wanted)
        self.assertEqual({u: turned[s] for u, s in after.items()}, before)
        for uri in wanted[:40]:
            self.assertEqual(wire.fetch(labelled.web, uri.encode("utf-8")).value("x-server"), after[uri])

    def test_lookup_takes_raw_octets_as_keys(self):
        proxy = self.site(self.origins)
        done = run("lookup", "-c", proxy.file, "/caf\u00e9", "/%2F", "/?")
        self.assertEqual(done.returncode, 0, done.stderr)
        for line, key in zip(done.stdout.splitlines(), ["/caf\u00e9", "/%2F", "/?"], strict=True):
            self.assertEqual(line.split("\t")[0], key)
            self.assertEqual(wire.fetch(proxy.web, key.encode("utf-8")).value("x-server"), line.split("\t")[1])


if __name__ == "__main__":
    unittest.main()
