"""What live traffic says about a change: the keys seen lately, and the fetches that the change would cost."""

import itertools
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site, servers_text  # noqa: E402

COUNT = 1200


def cache(hits_of_ten):
    """A server that says of every tenth request how many it had in its cache."""
    number = itertools.count()

    def handler(exchange):
        exchange.read_body()
        hit = next(number) % 10 < hits_of_ten
        exchange.reply(200, b"x", {"X-Cache": "HIT from here" if hit else "MISS from here"})
    return handler


class Traffic(unittest.TestCase):
    def origins(self, names, handler=None):
        return [self.enterContext(Origin(**({"handler": handler} if handler else {}), name=name)) for name in names]

    def ask(self, proxy, uris):
        with wire.Connection(proxy.web) as connection:
            for uri in uris:
                self.assertEqual(connection.request("GET", uri).status, 200)

    def plan(self, proxy, servers):
        answer = proxy.admin("/api/v1/pools/pages/plan", method="POST", body=servers_text(servers))
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json()["pools"][0]

    def test_a_plan_counts_the_keys_that_were_asked_for(self):
        a, b, c = self.origins("abc")
        proxy = self.enterContext(Site([a, b], workers=2))
        self.assertEqual(self.plan(proxy, [a, b, c])["seen_keys"], {"total": 0, "moved": 0, "moves": []})
        wanted = [f"/item/{n}" for n in range(COUNT)]
        self.ask(proxy, wanted)
        report = self.plan(proxy, [a, b, c])

        before = proxy.owners(wanted)
        proxy.write_servers([a, b, c])
        after = proxy.owners(wanted)
        moved = [(before[u], after[u]) for u in wanted if before[u] != after[u]]
        self.assertEqual(report["seen_keys"], {
            "total": COUNT, "moved": len(moved),
            "moves": [{"from": f, "to": t, "count": moved.count((f, t))} for f, t in sorted(set(moved))]})
        # These servers say nothing about a cache.
        cost = report["cost"]
        self.assertGreater(cost["requests_per_second"], 0)
        self.assertIsNone(cost["hit_ratio"])
        self.assertIsNone(cost["extra_fetches_per_second"])

    def test_the_cost_of_a_change_follows_from_rate_hits_and_keys(self):
        a, b, c = self.origins("abc", cache(hits_of_ten=8))
        proxy = self.enterContext(Site([a, b]))
        self.ask(proxy, (f"/item/{n}" for n in range(COUNT)))
        planned = self.plan(proxy, [a, b, c])
        seen = planned["seen_keys"]
        self.assert_cost(planned["cost"], share=seen["moved"] / seen["total"])

        proxy.write_servers([a, b, c])
        done = proxy.reload().json()
        reported = done["pools"] or [None]
        if reported[0]:  # else the watch was faster
            self.assertNotIn("seen_keys", reported[0])
            self.assert_cost(reported[0]["cost"], share=seen["moved"] / seen["total"])
        # The keys of before are known to the new ring too: taking the server away moves those it got.
        back = self.plan(proxy, [a, b])["seen_keys"]
        self.assertEqual((back["total"], back["moved"]), (COUNT, seen["moved"]))
        self.assertEqual({move["from"] for move in back["moves"]}, {"c"})

    def assert_cost(self, cost, share):
        self.assertAlmostEqual(cost["hit_ratio"], 0.8, delta=0.01)
        self.assertGreater(cost["requests_per_second"], 0)
        self.assertAlmostEqual(cost["extra_fetches_per_second"],
                               cost["requests_per_second"] * cost["hit_ratio"] * share, places=6)

    def test_another_key_starts_anew(self):
        a, b, c = self.origins("abc")
        proxy = self.enterContext(Site([a, b]))
        self.ask(proxy, ["/a", "/b"])
        proxy.document["pools"]["pages"]["ring"] = {"key": "{path}"}
        self.assertEqual(proxy.reload(proxy.document, force=True).status, 200)
        self.assertEqual(self.plan(proxy, [a, b, c])["seen_keys"]["total"], 0)
        self.ask(proxy, ["/a", "/a?b"])
        self.assertEqual(self.plan(proxy, [a, b, c])["seen_keys"]["total"], 2)


if __name__ == "__main__":
    unittest.main()
