"""PUT /api/v1/pools/P/servers/S: the state and the weight of a server at run time."""

import json
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import run, wait_until  # noqa: E402
from support.origin import Origin, echo  # noqa: E402
from support.ring import Ring  # noqa: E402
from support.scenario import Site  # noqa: E402

KEYS = [f"/{n}" for n in range(200)]


class Cluster(unittest.TestCase):
    def start(self, handler=echo, **options):
        self.origins = {n: self.enterContext(Origin(handler, name=n)) for n in "abcd"}
        self.proxy = self.enterContext(Site(list(self.origins.values()), **options))
        return self.proxy

    def put(self, server, change, force=False, **options):
        body = change if isinstance(change, str) else json.dumps(change)
        return self.proxy.admin(f"/api/v1/pools/pages/servers/{server}" + ("?force=1" if force else ""),
                                method="PUT", body=body, **options)

    def server(self, name):
        return next(s for s in self.proxy.pool()["servers"] if s["name"] == name)

    def places(self):
        return {key: wire.fetch(self.proxy.web, key).value("x-server") for key in KEYS}

    def expected(self, **weights):
        ring = Ring({n: w for n, w in {**dict.fromkeys("abcd", 1), **weights}.items() if w})
        return {key: ring.owner(key.encode()) for key in KEYS}


class Change(Cluster):
    def test_a_drained_server_ends_its_requests_and_then_may_be_stopped(self):
        go = threading.Event()

        def slow(exchange):
            if exchange.request.target.endswith(b"?slow"):
                go.wait(20)
            echo(exchange)

        proxy = self.start(slow, workers=2)
        key = next(f"/{n}?slow" for n in range(100)
                   if Ring(dict.fromkeys("abcd", 1)).owner(f"/{n}?slow".encode()) == "a")
        answers = []
        clients = [threading.Thread(target=lambda: answers.append(wire.fetch(proxy.web, key))) for _ in range(4)]
        for client in clients:
            client.start()
        self.origins["a"].wait(lambda: len(self.origins["a"].requests) == 4)
        answer = self.put("a", {"state": "draining"})
        self.assertEqual(answer.status, 200, answer.text)
        report = answer.json()
        self.assertEqual((report["result"], report["trigger"], report["forced"]), ("applied", "api", False))
        self.assertEqual([m["from"] for m in report["pools"][0]["moves"]], ["a"] * 3)
        server = self.server("a")
        self.assertEqual((server["state"], server["requests_in_flight"], server["safe_to_stop"]),
                         ("draining", 4, False))
        self.assertEqual(server["overridden"], ["state"])
        self.assertEqual(self.places(), self.expected(a=0))
        go.set()
        for client in clients:
            client.join()
        self.assertEqual([a.status for a in answers], [200] * 4)
        wait_until(lambda: self.server("a")["safe_to_stop"], "safe to stop")
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_remaps_total", cause="drain"), 1)
        self.assertEqual(page.sum("clockwise_backend_draining", backend="a"), 1)
        self.assertEqual(page.sum("clockwise_backend_up", backend="a"), 0)
        self.assertFalse(self.server("b")["safe_to_stop"])
        self.assertEqual(proxy.newest_remap()["cause"], "drain")
        self.assertEqual(proxy.admin("/api/v1/status").json()["differs_from_file"],
                         [{"pool": "pages", "server": "a", "overridden": ["state"]}])

        back = self.put("a", {"state": "active"})
        self.assertEqual(back.json()["result"], "applied")
        self.assertEqual(self.places(), self.expected())
        self.assertEqual(proxy.newest_remap()["cause"], "api")
        self.assertEqual(proxy.admin("/api/v1/status").json()["differs_from_file"], [])
        self.assertEqual(self.put("a", {"state": "active"}).json()["result"], "unchanged")

    def first_way(self, *servers):
        """A key whose walk begins with these servers."""
        ring = Ring(dict.fromkeys("abcd", 1))
        return next(key for key in KEYS if tuple(ring.walk(key.encode())[:len(servers)]) == servers)

    def in_flight(self, key):
        """A client that waits for the answer to `key`."""
        client = self.enterContext(wire.Connection(self.proxy.web))
        client.send(wire.request_text("GET", key))
        return client

    def test_a_further_try_goes_by_the_newest_ring(self):
        fail = threading.Event()

        def failing(exchange):
            if exchange.origin.name != "b":
                return echo(exchange)
            fail.wait(20)
            exchange.reset()

        self.start(failing)
        client = self.in_flight(self.first_way("b", "a", "c"))
        self.assertTrue(self.origins["b"].wait(lambda: len(self.origins["b"].requests) == 1))
        self.assertEqual(self.put("a", {"state": "draining"}).status, 200)
        self.assertTrue(self.server("a")["safe_to_stop"])
        fail.set()
        self.assertEqual(client.response().value("x-server"), "c")
        self.assertEqual(len(self.origins["a"].requests), 0)

    def test_a_second_request_beside_a_slow_one_goes_to_nobody_who_left(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def slow(exchange):
            if exchange.origin.name == "b":
                go.wait(20)
            echo(exchange)

        self.start(slow, pool={"hedge": {"after": "2s", "budget": "100%"}})
        client = self.in_flight(self.first_way("b", "a", "c"))
        self.assertTrue(self.origins["b"].wait(lambda: len(self.origins["b"].requests) == 1))
        self.assertEqual(self.put("a", {"state": "draining"}).status, 200)
        # A request that came later is hedged, and so the earlier one would have been by then.
        later = self.in_flight(self.first_way("b", "c"))
        self.assertEqual(later.response().value("x-server"), "c")
        go.set()
        self.assertEqual(client.response().value("x-server"), "b")
        self.assertEqual(len(self.origins["a"].requests), 0)

    def test_who_waits_for_a_connection_goes_elsewhere(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def slow(exchange):
            if exchange.origin.name == "a":
                go.wait(20)
            echo(exchange)

        for failover in ("next", "fail_fast"):
            with self.subTest(failover=failover):
                go.clear()
                proxy = self.start(slow, pool={"failover": failover, "connections": {"max": 1}})
                key = self.first_way("a", "b")
                first = self.in_flight(key)
                self.assertTrue(self.origins["a"].wait(lambda: len(self.origins["a"].requests) == 1))
                waiting = [self.in_flight(key) for _ in range(5)]
                proxy.wait_metric(5, "clockwise_backend_queue", backend="a")
                self.assertEqual(self.put("a", {"state": "draining"}).status, 200)
                for client in waiting:
                    self.assertEqual(client.response().value("x-server"), "b")
                go.set()
                self.assertEqual(first.response().value("x-server"), "a")
                self.assertEqual(len(self.origins["a"].requests), 1)
                self.assertEqual(proxy.page().sum("clockwise_backend_queue"), 0)

    def test_a_weight(self):
        proxy = self.start()
        self.assertEqual(self.put("b", {"weight": 2.5}).json()["result"], "applied")
        self.assertEqual(self.places(), self.expected(b=2.5))
        self.assertEqual(self.server("b")["weight"], 2.5)
        self.assertEqual(self.server("b")["overridden"], ["weight"])
        self.assertEqual(proxy.page().sum("clockwise_backend_weight", backend="b"), 2.5)
        both = self.put("b", {"weight": 1, "state": "down"})
        self.assertEqual(both.json()["result"], "applied")
        self.assertEqual(self.server("b")["overridden"], ["state"])
        self.assertEqual(self.put("b", {"state": "draining"}).json()["result"], "applied")
        self.assertEqual(self.server("b")["state"], "draining")

    def test_it_lasts_until_the_file_says_something_else_of_that_server(self):
        proxy = self.start()
        self.put("a", {"state": "draining"})
        a, b, c, d = self.origins.values()
        extra = self.enterContext(Origin(name="e"))
        proxy.change([a, b, c, d, extra])
        self.assertEqual(self.server("a")["state"], "draining")
        proxy.change([a, b.entry(weight=2), c, d, extra])
        self.assertEqual(self.server("a")["state"], "draining")
        proxy.change([a.entry(weight=2), b, c, d, extra])
        self.assertEqual((self.server("a")["state"], self.server("a")["overridden"]), ("active", []))
        proxy.wait_log("server a of pool pages: the file has changed, so it replaces what was set at run time")

    def test_the_guards_apply(self):
        proxy = self.start(pool={"max_remap": "10%"})
        refused = self.put("a", {"state": "draining"})
        self.assertEqual(refused.status, 409)
        self.assertEqual(refused.json()["error"]["code"], "max_remap")
        self.assertEqual(self.server("a")["state"], "active")
        self.assertEqual(proxy.page().sum("clockwise_remap_refused_total"), 1)
        self.assertEqual(self.put("a", {"state": "draining"}, force=True).json()["forced"], True)
        self.assertEqual(self.server("a")["state"], "draining")

    def test_what_is_wrong_is_named_and_changes_nothing(self):
        proxy = self.start(ring={"scheme": "ketama"})
        for server, body, status, message in (
                ("x", {"weight": 1}, 404, 'pool pages has no server named "x"'),
                ("a", {"wieght": 1}, 400, 'unknown field "wieght"; there are: state, weight'),
                ("a", {"weight": "1"}, 400, 'weight: "1" is not a number from 0 to 10000'),
                ("a", {"state": "gone"}, 400, 'state: "gone" is not one of active, draining, down'),
                ("a", '{"weight": -0.0}', 400, "weight: -0 is not a number from 0 to 10000"),
                ("a", '{"weight": 1e-320}', 400, "e-320 is not a number from 0 to 10000"),
                ("a", r'{"state": "down", "st\u0061te": "active"}', 400, "state: stands twice"),
                ("x" * 8000, {"weight": 1}, 404, "…"),
                ("a", '{"weight": 1', 400, "the body is not JSON"),
                ("a", {"weight": 1.5}, 409, "is not a whole number, as scheme ketama needs it")):
            answer = self.put(server, body)
            self.assertEqual(answer.status, status, answer.text)
            self.assertIn(message, answer.json()["error"]["message"])
            self.assertIsNone(answer.json()["error"]["position"])
        answer = proxy.admin("/api/v1/pools/nope/servers/a", method="PUT", body='{"weight": 1}')
        self.assertEqual((answer.status, answer.json()["error"]["message"]), (404, 'no pool is named "nope"'))
        for name in "abcd":
            self.assertEqual(self.server(name)["overridden"], [])
        self.assertEqual(proxy.page().sum("clockwise_remaps_total"), 0)

    def test_the_token(self):
        proxy = self.start()
        proxy.document["admin"] = {"address": f"127.0.0.1:{proxy.admin_port}", "token": "secret"}
        proxy.reload(proxy.document)
        self.assertEqual(self.put("a", {"weight": 2}).status, 401)
        self.assertEqual(self.put("a", {"weight": 2}, headers={"Authorization": "Bearer secret"}).status, 200)


class Look(Cluster):
    """The look-up of the API tells whom a request would ask now."""

    def test_an_ejected_server_is_passed_by(self):
        proxy = self.start(pool={"outlier": {"consecutive_failures": 1, "eject": "10m", "max_eject": "10m"}})
        ring = Ring(dict.fromkeys("abcd", 1))
        key = KEYS[0]
        home, after = ring.walk(key.encode())[:2]
        look = lambda: proxy.admin(f"/api/v1/pools/pages/lookup?key={key}").json()["keys"][0]  # noqa: E731
        self.assertEqual((look()["chosen"], look()["reason"]), (home, "home"))
        self.origins[home].stop()
        wire.fetch(proxy.web, key)
        found = look()
        self.assertEqual((found["server"], found["chosen"], found["reason"]), (home, after, "failover"))
        self.assertEqual([step["health"] for step in found["walk"]], ["ejected", "up", "up", "up"])
        text = run("explain", "--admin", f"http://127.0.0.1:{proxy.admin_port}", key).stdout
        self.assertIn(f"chosen    {after}, failover: {home} cannot be used\n", text)
        self.assertRegex(text, rf"(?m)^ *1\. {home} .* ejected ")
        server = self.server(home)
        self.assertEqual(server["health"], "ejected")
        detail = server["health_detail"]
        self.assertEqual(detail["last_failure"]["cause"], "request: no connection")
        self.assertIn("a request failed: no connection", detail["cause"])
        self.assertEqual(detail["ejections_in_a_row"], 1)
        self.assertIsNotNone(detail["ejected_until"])


if __name__ == "__main__":
    unittest.main()
