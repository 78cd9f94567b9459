"""A server that fails real requests is left out for a while, and nobody else's keys notice."""

import pathlib
import signal
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import wait_until  # noqa: E402
from support.origin import Origin, echo  # noqa: E402
from support.ring import Ring  # noqa: E402
from support.scenario import Site  # noqa: E402

KEYS = [f"/{n}" for n in range(300)]
LONG = "10m"  # longer than any test


def outlier(**rules):
    return {"consecutive_failures": 3, "success_gap": "0%", "eject": LONG, "max_eject": LONG, **rules}


class Cluster(unittest.TestCase):
    """Three servers or more on a ring that is computed here once more."""

    def start(self, names="abc", handlers=None, pool=None, rules=None, **options):
        self.origins = {n: self.enterContext(Origin((handlers or {}).get(n, echo), name=n)) for n in names}
        self.ring = Ring(dict.fromkeys(names, 1))
        settings = {"outlier": outlier(**(rules or {})), **(pool or {})}
        self.proxy = self.enterContext(Site(list(self.origins.values()), pool=settings, **options))
        return self.proxy

    def owned_by(self, name):
        return [key for key in KEYS if self.ring.owner(key.encode()) == name]

    def server_of(self, key, method="GET"):
        """Who answered; a connection of its own, so that any worker may get it."""
        answer = wire.fetch(self.proxy.web, key, method)
        return answer.value("x-server") if answer.status == 200 else answer.status

    def places(self):
        return {key: self.server_of(key) for key in KEYS}

    def expected(self, *out):
        return {key: next(s for s in self.ring.walk(key.encode()) if s not in out) for key in KEYS}

    def fail_until_ejected(self, name):
        keys = iter(self.owned_by(name) * 5)
        wait_until(lambda: self.server_of(next(keys)) and self.up(name) == 0, f"{name} ejected")

    def up(self, name):
        return self.proxy.page().sum("clockwise_backend_up", backend=name)

    def restart(self, name):
        port = self.origins[name].port
        self.origins[name] = self.enterContext(Origin(name=name, port=port))


class Ejection(Cluster):
    def test_keys_of_a_failed_server_go_to_the_next_and_come_home_and_no_other_key_moves(self):
        proxy = self.start("abcde", rules={"eject": "300ms"})
        self.assertEqual(self.places(), self.expected())
        self.origins["c"].stop()
        self.assertEqual(self.places(), self.expected("c"))
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_backend_up", backend="c"), 0)
        self.assertGreaterEqual(page.sum("clockwise_backend_ejections_total", backend="c"), 1)
        self.assertGreaterEqual(page.sum("clockwise_requests_routed_total", reason="failover"),
                                len(self.owned_by("c")))
        self.assertEqual(page.sum("clockwise_backend_ejections_total"),
                         page.sum("clockwise_backend_ejections_total", backend="c"))
        self.restart("c")
        keys = iter(self.owned_by("c") * 100)
        wait_until(lambda: self.server_of(next(keys)) == "c", "c tried again")
        self.assertEqual(self.places(), self.expected())
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_backend_up"), 5)
        self.assertEqual(page.sum("clockwise_backend_transitions_total", backend="c"), 2)
        self.assertEqual(page.sum("clockwise_remaps_total"), 0)
        self.assertIn("server c is back", proxy.log())

    def test_an_ejected_server_is_not_asked(self):
        proxy = self.start()
        self.origins["a"].stop()
        self.fail_until_ejected("a")
        errors = proxy.page().sum("clockwise_backend_errors_total", backend="a")
        self.assertEqual(errors, 3)
        self.assertEqual(self.places(), self.expected("a"))
        self.assertEqual(proxy.page().sum("clockwise_backend_errors_total", backend="a"), errors)
        proxy.wait_log("server a is out for 600 s: 3 requests in a row failed, the last: no connection")

    def test_timeouts_eject(self):
        def silent(exchange):
            if exchange.origin.name != "b" or exchange.request.target == b"/well":
                return echo(exchange)
            exchange.origin.wait(lambda: False, 30)

        proxy = self.start(handlers=dict.fromkeys("abc", silent), pool={"timeouts": {"response": "100ms"}})
        statuses = [self.server_of(key) for key in self.owned_by("b")[:6]]
        self.assertEqual(statuses[:3], [504] * 3)
        self.assertNotIn(504, statuses[3:])
        self.assertEqual(proxy.page().sum("clockwise_backend_ejections_total", backend="b"), 1)

    def test_resets_eject_and_a_success_between_them_does_not(self):
        broken = set()

        def handler(exchange):
            exchange.read_body()
            if exchange.origin.name == "b" and exchange.request.target in broken:
                exchange.reset()
            echo(exchange)

        proxy = self.start(handlers=dict.fromkeys("abc", handler))
        keys = self.owned_by("b")
        broken.update(key.encode() for key in keys[:2])
        for _ in range(5):
            for key in keys[:3]:
                # A new connection of the server each time: an end of a kept one tells nothing.
                self.origins["b"].drop_connections()
                wait_until(lambda: not proxy.page().sum("clockwise_backend_connections", backend="b", state="idle"),
                           "no idle connection")
                self.server_of(key)
        self.assertEqual(proxy.page().sum("clockwise_backend_ejections_total"), 0)
        broken.update(key.encode() for key in keys)
        self.fail_until_ejected("b")

    def test_the_end_of_a_kept_connection_is_no_evidence(self):
        def every_fourth_closes(exchange):
            exchange.read_body()
            exchange.count = getattr(exchange.origin, "count", 0) + 1
            exchange.origin.count = exchange.count
            if exchange.count % 4 == 0:
                exchange.reset()
            echo(exchange)

        proxy = self.start("ab", handlers=dict.fromkeys("ab", every_fourth_closes), rules={"consecutive_failures": 1})
        with wire.Connection(proxy.web) as connection:
            for key in KEYS[:120]:
                connection.request("GET", key)
        page = proxy.page()
        self.assertGreater(page.sum("clockwise_retries_total", reason="stale_connection"), 10)
        self.assertEqual(page.sum("clockwise_backend_ejections_total"), 0)

    def test_a_second_request_beside_a_slow_one_tells_too(self):
        def slow(exchange):
            exchange.origin.wait(lambda: False, 0.2)
            echo(exchange)

        proxy = self.start(handlers={"a": slow}, rules={"consecutive_failures": 1},
                           pool={"hedge": {"after": "20ms", "budget": "100%"}})
        self.origins["b"].stop()
        key = next(key for key in KEYS if self.ring.walk(key.encode())[:2] == ["a", "b"])
        self.assertEqual(self.server_of(key), "a")
        self.assertEqual(self.up("b"), 0)
        self.assertEqual(proxy.page().sum("clockwise_hedges_total", result="cancelled"), 1)
        self.assertEqual(self.server_of(key), "c", "the second request of the next one passes b by")

    def test_hedging_hides_no_server_that_hangs(self):
        done = threading.Event()
        self.addCleanup(done.set)

        def first_resets_then_hangs(exchange):
            exchange.read_body()
            if len(exchange.origin.requests) == 1:
                exchange.reset()
            done.wait(30)

        proxy = self.start(handlers={"a": first_resets_then_hangs},
                           rules={"consecutive_failures": 2, "eject": "50ms"},
                           pool={"hedge": {"after": "100ms", "budget": "100%"}, "timeouts": {"response": "400ms"}})
        key = self.owned_by("a")[0]
        # After a failure nobody is called off: the next request is waited for.
        self.assertIn(self.server_of(key), ("b", "c"))
        self.assertEqual(self.server_of(key), 504)
        self.assertEqual(proxy.page().sum("clockwise_backend_ejections_total", backend="a"), 1)
        # Each trial is waited for as well, and fails.
        wait_until(lambda: self.server_of(key) == 504, "a trial")
        proxy.wait_log("server a stays out for .*: the request that tried it failed")
        self.assertEqual(proxy.page().sum("clockwise_hedges_total"), 0)

    def test_no_more_than_max_ejected_are_out(self):
        proxy = self.start("abcd", rules={"max_ejected": "50%"}, pool={"panic": "0%"})
        for name in "abc":
            self.origins[name].stop()
        self.places()
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_backend_up"), 2)
        self.assertEqual(page.sum("clockwise_backend_ejections_total"), 2)
        self.assertEqual(self.places(), self.expected("a", "b", "c"))
        proxy.wait_log("server [abc] is spared although")

    def test_a_server_that_answers_5xx_falls_behind_the_rest(self):
        def ill(exchange):
            exchange.read_body()
            exchange.reply(500, b"no")

        proxy = self.start(handlers={"c": ill}, rules={"success_gap": "20%", "min_requests": 20, "interval": "500ms"})
        wait_until(lambda: 500 not in self.places().values(), "c ejected")
        self.assertEqual(self.places(), self.expected("c"))
        proxy.wait_log(r"server c is out .* requests failed in 0.5 s, more than of the other servers")

    def test_workers_share_what_they_know(self):
        proxy = self.start(workers=2, rules={"consecutive_failures": 6})
        self.origins["a"].stop()
        self.fail_until_ejected("a")
        page = proxy.page()
        self.assertLessEqual(page.sum("clockwise_backend_errors_total", backend="a"), 8)
        self.assertEqual(page.sum("clockwise_backend_ejections_total", backend="a"), 1)
        self.assertEqual(self.places(), self.expected("a"))

    def test_a_failed_trial_ejects_for_longer(self):
        proxy = self.start(rules={"eject": "50ms"})
        self.origins["a"].stop()
        keys = iter(self.owned_by("a") * 100)
        wait_until(lambda: self.server_of(next(keys)) and
                   proxy.page().sum("clockwise_backend_ejections_total", backend="a") >= 4, "several ejections")
        self.assertEqual(proxy.page().sum("clockwise_backend_transitions_total", backend="a"), 1)
        proxy.wait_log("server a stays out for .*: the request that tried it failed")


class Panic(Cluster):
    def test_when_most_are_out_health_is_left_out_of_account(self):
        proxy = self.start("abcd", rules={"max_ejected": "100%"})
        for name in "abc":
            self.origins[name].stop()
        self.places()
        wait_until(lambda: proxy.page().sum("clockwise_pool_panic") == 1, "panic")
        proxy.wait_log("panic: 1 of 4 servers can be used")
        # The home is asked again, and the first further try goes to the one that is well.
        before = proxy.page().sum("clockwise_backend_errors_total", backend="a")
        keys = self.owned_by("a")[:10]
        self.assertEqual([self.server_of(key) for key in keys], ["d"] * 10)
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_backend_errors_total", backend="a"), before + 10)

    def test_nobody_is_refused_without_a_try(self):
        proxy = self.start(rules={"max_ejected": "100%"}, pool={"panic": "0%"})
        for origin in self.origins.values():
            origin.stop()
        self.assertEqual(set(self.places().values()), {502})
        self.assertEqual(proxy.page().sum("clockwise_backend_up"), 0)
        for name in "abc":
            self.restart(name)
        self.assertEqual(self.places(), self.expected())


class FailFast(Cluster):
    def test_nobody_else_answers(self):
        proxy = self.start(pool={"failover": "fail_fast"})
        self.origins["a"].stop()
        keys = self.owned_by("a")
        self.assertEqual([self.server_of(key) for key in keys[:3]], [502] * 3)
        self.assertEqual({self.server_of(key) for key in keys}, {503})
        places = self.places()
        self.assertEqual({key: s for key, s in places.items() if s != 503},
                         {key: s for key, s in self.expected().items() if s != "a"})
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_backend_errors_total", backend="a"), 3)
        self.assertEqual(page.sum("clockwise_retries_total"), 0)
        # The keys of a were served by nobody, so they count as those whose home cannot be used.
        self.assertEqual(page.sum("clockwise_requests_routed_total", reason="failover"), 3 + 2 * len(keys))
        self.assertEqual(page.sum("clockwise_requests_routed_total", reason="home"), len(KEYS) - len(keys))
        self.assertEqual(page.sum("clockwise_requests_routed_total"), page.sum("clockwise_http_requests_total"))


class Reload(Cluster):
    def test_health_outlives_a_reload_and_ends_with_the_address(self):
        proxy = self.start()
        self.origins["a"].stop()
        self.fail_until_ejected("a")
        for retry in (1, 2):
            proxy.document["pools"]["pages"]["retry"] = {"attempts": retry}
            proxy.write(proxy.document)
            proxy.signal(signal.SIGHUP)
            proxy.wait_metric(retry, "clockwise_config_reloads_total", result="applied", trigger="signal")
        self.assertEqual(self.up("a"), 0)
        self.assertEqual(self.places(), self.expected("a"))
        moved = self.enterContext(Origin(name="a"))
        proxy.change([moved, self.origins["b"], self.origins["c"]])
        self.assertEqual(self.up("a"), 1)
        self.assertEqual(self.places(), self.expected())

    def test_without_the_rules_nobody_is_out(self):
        proxy = self.start()
        self.origins["a"].stop()
        self.fail_until_ejected("a")
        del proxy.document["pools"]["pages"]["outlier"]
        self.assertEqual(proxy.reload(proxy.document).status, 200)
        self.assertEqual(self.up("a"), 1)
        proxy.document["pools"]["pages"]["outlier"] = outlier()
        self.assertEqual(proxy.reload(proxy.document).status, 200)
        self.assertEqual(self.up("a"), 1)


if __name__ == "__main__":
    unittest.main()
