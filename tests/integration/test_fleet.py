"""Do many proxies place every key alike? `clockwise fleet` against real ones."""

import json
import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.clockwise import Upstream, answer, free_port, run  # noqa: E402
from support.scenario import Site  # noqa: E402


def entry(name, port, **more):
    return {"name": name, "address": f"127.0.0.1:{port}", **more}


class Fleet(unittest.TestCase):
    """The servers need not exist: nothing is asked of them."""

    def proxy(self, servers, **config):
        return self.enterContext(Site(servers, **config))

    @staticmethod
    def url(proxy):
        return f"http://127.0.0.1:{proxy.admin_port}"

    def fleet(self, *urls, expect):
        """The document and the text, which must end alike."""
        done = run("fleet", "--json", *urls)
        text = run("fleet", *urls)
        self.assertEqual((done.returncode, text.returncode), (expect, expect), done.stderr + text.stderr)
        return json.loads(done.stdout), text

    def test_order_address_and_health_are_no_difference(self):
        one = self.proxy([entry("a", 1, weight=2), entry("b", 2), entry("c", 3)])
        lost = {"name": "c", "address": "lost.invalid:80"}
        two = self.proxy([lost, entry("a", 8, weight=2), entry("b", 7, zone="z")], pool={"resolve": "lazy"})
        self.assertEqual([s["health"] for s in two.pool()["servers"]], ["down", "up", "up"])
        three = self.proxy([entry("b", 2), entry("a", 1, weight=2), entry("c", 3)])
        urls = [self.url(p) for p in (one, two, three)]
        document, text = self.fleet(*urls, expect=0)
        digest = one.pool()["digest"]
        self.assertEqual(document, {
            "agree": True, "differences": [],
            "proxies": [{"url": url, "pools": [{"pool": "pages", "digest": digest}]} for url in urls]})
        self.assertEqual(text.stdout, f"pool pages: 3 of 3 agree\n  {digest}  {', '.join(urls)}\n")

    def test_a_server_of_another_weight_is_named_with_its_proxy(self):
        servers = [entry("a", 1), entry("b", 2), entry("c", 3)]
        usual, other, third = (self.proxy(servers), self.proxy([servers[0], entry("b", 2, weight=2), servers[2]]),
                               self.proxy(servers))
        urls = [self.url(p) for p in (other, usual, third)]
        document, text = self.fleet(*urls, expect=3)
        self.assertFalse(document["agree"])
        self.assertEqual(document["differences"], [
            {"pool": "pages", "server": "b", "urls": [urls[0]],
             "findings": [{"text": "weight 2 instead of 1", "urls": [urls[0]]}]}])
        self.assertEqual(text.stdout.splitlines(), [
            "pool pages: 2 rings, the most common at 2 of 3",
            f"  {usual.pool()['digest']}  {urls[1]}, {urls[2]}",
            f"  {other.pool()['digest']}  {urls[0]}",
            f"  server b: weight 2 instead of 1, at {urls[0]}"])

        # The list is put right, and the fleet agrees.
        other.change(servers)
        self.fleet(*urls, expect=0)

    def test_every_kind_of_difference_is_told(self):
        servers = [entry("a", 1), entry("b", 2), entry("c", 3)]
        usual = self.proxy(servers)
        for name, other, config, server, text in [
            ("missing", servers[:2], {}, "c", "missing"),
            ("surplus", [*servers, entry("d", 4)], {}, "d", "only there, weight 1"),
            ("draining", [*servers[:2], entry("c", 3, state="draining")], {}, "c",
             "state draining instead of active"),
            ("label", [*servers[:2], entry("c", 3, label="x")], {}, "c", "label x instead of c"),
            ("points", servers, {"ring": {"points": 512}}, None, "points 512 instead of 1024"),
        ]:
            with self.subTest(name):
                odd = self.proxy(other, **config)
                document, _ = self.fleet(self.url(usual), self.url(odd), expect=3)
                (difference,) = document["differences"]
                self.assertEqual((difference["server"], difference["urls"]), (server, [self.url(odd)]))
                self.assertEqual([f["text"] for f in difference["findings"]], [text])

    def test_where_order_counts_it_is_told_as_what_it_changes(self):
        servers = [entry("a", 1), entry("b", 2)]
        for scheme, wanted in [
            ("haproxy", [("a", "id 2 instead of 1"), ("b", "id 1 instead of 2")]),
            ("modulo", [(None, "the servers are listed in another order, which this scheme goes by")]),
        ]:
            with self.subTest(scheme):
                one, two = (self.proxy(order, ring={"scheme": scheme}) for order in (servers, servers[::-1]))
                document, _ = self.fleet(self.url(one), self.url(two), expect=3)
                self.assertEqual([(d["server"], d["findings"][0]["text"]) for d in document["differences"]], wanted)

    def test_a_proxy_that_does_not_answer_is_named_and_the_others_are_compared(self):
        servers = [entry("a", 1), entry("b", 2)]
        urls = [self.url(self.proxy(servers)), f"http://127.0.0.1:{free_port()}", self.url(self.proxy(servers))]
        document, text = self.fleet(*urls, expect=1)
        self.assertFalse(document["agree"])
        self.assertEqual(document["proxies"][1]["pools"], [])
        self.assertIn(urls[1], document["proxies"][1]["error"])
        self.assertIn("pool pages: 2 of 2 agree", text.stdout)
        self.assertIn(f"clockwise fleet: cannot reach the proxy at {urls[1]}", text.stderr)

        other = self.url(self.proxy([entry("a", 1), entry("b", 2, weight=3)]))
        document, _ = self.fleet(*urls, other, expect=1)
        self.assertEqual([d["server"] for d in document["differences"]], ["b"])

    def test_what_is_no_proxy_is_an_error(self):
        web = self.enterContext(Upstream("web"))
        for url in (f"http://{web.address}", "https://127.0.0.1:1", "unix:", "http://"):
            done = run("fleet", url)
            self.assertEqual(done.returncode, 1, url)
            self.assertIn(" is not ", done.stderr)
        self.assertEqual(run("fleet").returncode, 2)
        self.assertEqual(run("fleet", "--timeout", "soon", "unix:/x").returncode, 2)

    def test_proxies_without_pools_have_nothing_to_compare(self):
        bare = self.enterContext(Upstream("bare", handler=lambda *_: answer(b'{"pools": []}')))
        document, text = self.fleet(*[f"http://{bare.address}"] * 2, expect=0)
        self.assertTrue(document["agree"])
        self.assertEqual(text.stdout, "no pools at 2 of 2 proxies: nothing to compare\n")

    def test_a_silent_proxy_holds_up_no_other(self):
        silent = threading.Event()
        self.addCleanup(silent.set)
        mute = self.enterContext(Upstream("mute", handler=lambda *_: silent.wait() and None))
        url = self.url(self.proxy([entry("a", 1)]))
        begun = time.monotonic()
        done = run("fleet", "--json", "--timeout", "300ms", *[f"http://{mute.address}"] * 5, url)
        self.assertLess(time.monotonic() - begun, 5)
        self.assertEqual(done.returncode, 1)
        proxies = json.loads(done.stdout)["proxies"]
        self.assertEqual([bool(p.get("error")) for p in proxies], [True] * 5 + [False])
        self.assertIn("no answer from the proxy", proxies[0]["error"])

    def test_the_digest_is_the_same_in_api_metrics_and_header(self):
        web = self.enterContext(Upstream("a"))
        proxy = self.proxy([{"name": "a", "address": web.address}], listener={"debug_headers": True})
        answer = proxy.get("/x")
        digest = proxy.pool()["digest"]
        self.assertEqual((answer.headers["Clockwise-Server"], answer.headers["Clockwise-Ring"]), ("a", digest))
        self.assertEqual(proxy.page().series("clockwise_ring_info")[0][0]["digest"], digest)
        quiet = self.proxy([{"name": "a", "address": web.address}])
        self.assertIsNone(quiet.get("/x").headers["Clockwise-Ring"])


if __name__ == "__main__":
    unittest.main()
