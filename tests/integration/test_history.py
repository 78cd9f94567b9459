"""The history of ring changes over restarts, and the way back to the ring before one of them."""

import json
import os
import pathlib
import shutil
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.clockwise import Proxy, Upstream, configuration, run, wait_until  # noqa: E402
from support.load import Load, brief  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site  # noqa: E402

FIGURES = ("id", "time", "cause", "trigger", "forced", "pool", "scheme", "digest_before", "digest_after",
           "moved_ratio", "minimum_ratio", "needless_ratio", "moves", "servers")


class World(unittest.TestCase):
    def setUp(self):
        self.a, self.b, self.c, self.d = (self.enterContext(Upstream(n)) for n in "abcd")

    def configuration(self, *servers, **top):
        return configuration(servers, **{"state_dir": "state", **top})


def remaps(proxy):
    return proxy.admin("/api/v1/remaps").json()


def rollback(proxy, number, force=False):
    return proxy.admin(f"/api/v1/remaps/{number}/rollback" + ("?force=1" if force else ""), method="POST")


def names(proxy):
    return [s["name"] for s in proxy.admin("/api/v1/pools/pages").json()["servers"]]


class Restarts(World):
    def test_the_history_outlives_a_stop_and_a_kill(self):
        with Proxy(self.configuration(self.a, self.b, self.c)) as proxy:
            self.assertEqual(proxy.reload(self.configuration(self.a, self.b, self.c, self.d)).status, 200)
            for n in range(200):
                proxy.get(f"/{n}")
            moved = remaps(proxy)["remaps"][0]["remapped_requests"]
            self.assertGreater(moved, 0)
            before = remaps(proxy)["remaps"]
            self.assertEqual(proxy.stop(), 0)

            proxy.start().wait_ready()
            after = remaps(proxy)
            self.assertEqual(after["total"], 0)
            self.assertEqual(after["remaps"], before)
            self.assertEqual(proxy.admin("/api/v1/pools/pages").json()["last_remap"]["id"], 1)

            # What an answer told is on the disk, whatever happens next.
            self.assertEqual(proxy.reload(self.configuration(self.a, self.b, self.c)).status, 200)
            before = remaps(proxy)["remaps"]
            self.assertEqual([r["id"] for r in before], [2, 1])
            proxy.kill()
            proxy.start().wait_ready()
            after = remaps(proxy)["remaps"]
            self.assertEqual([{k: r[k] for k in FIGURES} for r in after],
                             [{k: r[k] for k in FIGURES} for r in before])
            self.assertEqual(remaps(proxy)["total"], 0)
            self.assertEqual(os.stat(proxy.folder / "state").st_mode & 0o7777, 0o700)
            self.assertEqual(os.stat(proxy.folder / "state" / "remaps.json").st_mode & 0o7777, 0o600)

            # The way back leads over the restart.
            answer = rollback(proxy, 2)
            self.assertEqual(answer.status, 200, answer.text)
            self.assertEqual(answer.json()["pools"][0]["digest_after"], before[0]["digest_before"])
            self.assertEqual(remaps(proxy)["remaps"][0]["id"], 3)
            self.assertEqual(remaps(proxy)["total"], 1)
            self.assertEqual(proxy.metric("clockwise_remaps_total"), 1)

    def test_moved_requests_reach_the_file_while_the_proxy_runs(self):
        with Proxy(self.configuration(self.a, self.b)) as proxy:
            self.assertEqual(proxy.reload(self.configuration(self.a, self.b, self.c)).status, 200)
            for n in range(50):
                proxy.get(f"/{n}")
            counted = remaps(proxy)["remaps"][0]["remapped_requests"]
            self.assertGreater(counted, 0)
            file = proxy.folder / "state" / "remaps.json"
            wait_until(lambda: json.loads(file.read_text())["remaps"][0]["remapped_requests"] == counted,
                       "the count in the file", 30)

    def test_without_a_folder_it_ends_with_the_process(self):
        with Proxy(self.configuration(self.a, self.b, state_dir="")) as proxy:
            proxy.reload(self.configuration(self.a, self.b, self.c, state_dir=""))
            self.assertEqual(len(remaps(proxy)["remaps"]), 1)
            proxy.stop()
            proxy.start().wait_ready()
            self.assertEqual(remaps(proxy)["remaps"], [])

    def test_a_damaged_file_is_put_aside(self):
        proxy = Proxy(self.configuration(self.a))
        (proxy.folder / "state").mkdir()
        (proxy.folder / "state" / "remaps.json").write_text('{"format": "clockwise rem')
        with proxy:
            proxy.wait_log(r"remaps\.json.*is no history that can be read.*remaps\.json\.bad")
            self.assertEqual(remaps(proxy)["remaps"], [])
            self.assertEqual((proxy.folder / "state" / "remaps.json.bad").read_text(),
                             '{"format": "clockwise rem')

    def test_a_second_process_runs_without(self):
        with Proxy(self.configuration(self.a, self.b)) as first:
            state = str(first.folder / "state")
            with Proxy(self.configuration(self.a, self.b, state_dir=state)) as second:
                second.wait_log("another process uses")
                self.assertEqual(second.reload(self.configuration(self.a, self.b, self.c, state_dir=state)).status, 200)
                self.assertEqual(len(remaps(second)["remaps"]), 1)
            self.assertFalse((first.folder / "state" / "remaps.json").exists())

    def test_a_folder_that_cannot_be_used_stops_the_start(self):
        for folder in ("/proc/clockwise", "clockwise.yaml"):
            proxy = Proxy(self.configuration(self.a, state_dir=folder))
            self.assertEqual(proxy.start().wait_exit(), 1)
            self.assertRegex(proxy.log(), r"state_dir: \"\S*" + folder + r"\" cannot be used: \w+")
        checked = run("check", "-c", proxy.file)
        self.assertEqual(checked.returncode, 1)
        self.assertIn("state_dir", checked.stdout + checked.stderr)

    def test_a_folder_that_is_removed_is_made_again(self):
        with Proxy(self.configuration(self.a, self.b)) as proxy:
            state = proxy.folder / "state"
            self.assertEqual(proxy.reload(self.configuration(self.a, self.b, self.c)).status, 200)
            shutil.rmtree(state)
            self.assertEqual(proxy.reload(self.configuration(self.a, self.b)).status, 200)
            self.assertEqual([r["id"] for r in json.loads((state / "remaps.json").read_text())["remaps"]], [2, 1])
            self.assertEqual(os.stat(state).st_mode & 0o7777, 0o700)
            proxy.wait_log(r"state_dir: \S+state\" was gone, it is made again")
            self.assertNotIn("cannot be written", proxy.log())

    def test_a_folder_that_becomes_unusable_stops_nothing(self):
        with Proxy(self.configuration(self.a, self.b)) as proxy:
            state = proxy.folder / "state"
            shutil.rmtree(state)
            state.write_text("in its place")
            self.assertEqual(proxy.reload(self.configuration(self.a, self.b, self.c)).status, 200)
            proxy.wait_log(r"remaps\.json\" cannot be written")
            self.assertEqual(proxy.get("/x").status, 200)
            self.assertEqual(len(remaps(proxy)["remaps"]), 1)
            state.unlink()
            self.assertEqual(proxy.reload(self.configuration(self.a, self.b)).status, 200)
            proxy.wait_log(r"remaps\.json\" is written again")

    def test_the_total_is_the_sum_of_the_metric(self):
        def both(proxy):
            total, series = remaps(proxy)["total"], proxy.metric("clockwise_remaps_total")
            self.assertEqual(total, series)
            return total

        def with_others(count, *servers):
            config = self.configuration(*servers, metrics={"removed_grace": "0s"}, state_dir="")
            if count:
                others = [{"name": f"o{n}", "address": self.d.address} for n in range(count)]
                config["pools"]["others"] = {"servers": others}
            return config
        with Proxy(with_others(2, self.a, self.b)) as proxy:
            self.assertEqual(both(proxy), 0)
            self.assertEqual(proxy.reload(with_others(3, self.a, self.b, self.c)).status, 200)
            self.assertEqual(both(proxy), 2)
            self.assertEqual(proxy.reload(with_others(0, self.a, self.b, self.c)).status, 200)
            wait_until(lambda: proxy.metric("clockwise_remaps_total", pool="others") == 0, "the grace to end")
            self.assertEqual(both(proxy), 1)
            self.assertEqual(len(remaps(proxy)["remaps"]), 2)
            # A pool that comes back after its grace begins anew.
            self.assertEqual(proxy.reload(with_others(3, self.a, self.b, self.c)).status, 200)
            self.assertEqual(both(proxy), 1)
            self.assertEqual(proxy.reload(with_others(2, self.a, self.b, self.c)).status, 200)
            self.assertEqual(both(proxy), 2)

    def test_another_folder_needs_a_restart(self):
        with Proxy(self.configuration(self.a)) as proxy:
            answer = proxy.reload(self.configuration(self.a, state_dir="elsewhere")).json()
            self.assertEqual([n["path"] for n in answer["not_applied"]], ["state_dir"])


class MovedRequests(World):
    def counted(self, before, after):
        """Requests with another owner than before, as the clients saw it and as the history counts it."""
        with Proxy(configuration([self.a, self.b, self.c], ring=before)) as proxy:
            def owners():
                return [proxy.get(f"/{n}?k={n % 7}").text for n in range(200)]
            first = owners()
            answer = proxy.reload(configuration([self.a, self.b, self.c], ring=after), force=True)
            self.assertEqual(answer.status, 200, answer.text)
            second = owners()
            moved = sum(x != y for x, y in zip(first, second))
            return moved, remaps(proxy)["remaps"][0]["remapped_requests"]

    def test_whatever_the_change_was(self):
        for before, after in (({"points": 20}, {"points": 40}),
                              ({}, {"scheme": "nginx"}),
                              ({"scheme": "maglev"}, {"scheme": "clockwise"}),
                              ({"key": "{uri}"}, {"key": "{query:k}"}),
                              ({"key": "{query:k}"}, {"key": "{header:host}{path}"}),
                              ({"hash_tag": "/?"}, {"hash_tag": ""})):
            with self.subTest(before=before, after=after):
                seen, counted = self.counted(before, after)
                self.assertGreater(seen, 0)
                self.assertEqual(counted, seen)


class Rollback(World):
    def test_under_traffic_no_request_fails(self):
        origins = [self.enterContext(Origin(brief, name=n)) for n in "abcd"]
        entries = [o.entry() for o in origins]
        less, more = configuration(entries[:3], workers=2), configuration(entries, workers=2)
        with Proxy(less) as proxy:
            with Load(("127.0.0.1", proxy.port())) as load:
                self.assertEqual(proxy.reload(more).status, 200)
                for step in range(1, 21):
                    answer = rollback(proxy, step)
                    self.assertEqual(answer.status, 200, answer.text)
                    self.assertEqual(answer.json()["result"], "applied")
                    self.assertEqual(len(names(proxy)), 3 if step % 2 else 4)
                    self.assertEqual(load.failures, [])
            self.assertEqual(load.failures, [])
            self.assertEqual(remaps(proxy)["total"], 21)
            self.assertEqual(proxy.metric("clockwise_remaps_total", cause="api"), 20)
            self.assertEqual(proxy.metric("clockwise_retries_total"), 0)

    def test_differs_from_the_file_until_the_file_changes(self):
        first = self.configuration({"name": "a", "address": self.a.address, "weight": 2}, self.b, self.c)
        second = self.configuration(self.a, self.b, self.d)
        with Proxy(first) as proxy:
            self.assertEqual(proxy.reload(second).status, 200)
            answer = rollback(proxy, 1).json()
            self.assertEqual((answer["result"], answer["trigger"], answer["forced"]), ("applied", "api", False))
            self.assertEqual(answer["not_applied"], [])
            self.assertEqual(names(proxy), ["a", "b", "c"])
            servers = proxy.admin("/api/v1/pools/pages").json()["servers"]
            self.assertEqual([s["overridden"] for s in servers], [["weight"], [], ["added"]])
            status = proxy.admin("/api/v1/status").json()
            self.assertEqual(status["differs_from_file"],
                             [{"pool": "pages", "server": "a", "overridden": ["weight"]},
                              {"pool": "pages", "server": "c", "overridden": ["added"]},
                              {"pool": "pages", "server": "d", "overridden": ["removed"]}])
            self.assertEqual(status["last_reload"]["result"], "applied")

            self.assertEqual(proxy.reload(second).json()["result"], "unchanged")
            self.assertEqual(names(proxy), ["a", "b", "c"])
            self.assertEqual(proxy.reload({**second, "shutdown_timeout": "7s"}).json()["result"], "applied")
            self.assertEqual(names(proxy), ["a", "b", "c"])

            third = self.configuration(self.a, self.b, self.c, self.d)
            self.assertEqual(proxy.reload(third).json()["result"], "applied")
            proxy.wait_log("pool pages: the file has changed")
            self.assertEqual(names(proxy), ["a", "b", "c", "d"])
            self.assertEqual(proxy.admin("/api/v1/status").json()["differs_from_file"], [])

    def test_keys_go_where_they_went(self):
        keys = [f"/{n}" for n in range(300)]
        with Proxy(self.configuration(self.a, self.b, self.c)) as proxy:
            def owners():
                return {k: proxy.get(k).text for k in keys}
            before = owners()
            proxy.reload(self.configuration(self.a, self.b, self.d))
            self.assertNotEqual(owners(), before)
            rollback(proxy, 1)
            self.assertEqual(owners(), before)

    def test_a_server_that_moved_stays_where_it_is(self):
        moved = self.enterContext(Upstream("moved"))
        with Proxy(self.configuration(self.a, self.b)) as proxy:
            self.assertEqual(proxy.reload(self.configuration(self.a, self.b, self.c)).status, 200)
            b = {"name": "b", "address": moved.address}
            answer = proxy.reload(self.configuration(self.a, b, self.c)).json()
            self.assertEqual((answer["result"], answer["pools"][0]["moved_ratio"]), ("applied", 0))
            answer = rollback(proxy, 1).json()
            self.assertEqual([s["changes"] for s in answer["pools"][0]["servers"]], [[], [], ["removed"]])
            self.assertEqual(proxy.admin("/api/v1/status").json()["differs_from_file"],
                             [{"pool": "pages", "server": "c", "overridden": ["removed"]}])
            self.assertEqual({proxy.get(f"/{n}").text for n in range(50)}, {"a", "moved"})

    def test_the_guards_stand_before_it_too(self):
        few, many = self.configuration(self.a), self.configuration(self.a, self.b, self.c, self.d)
        with Proxy(few) as proxy:
            self.assertEqual(proxy.reload(many).status, 409)
            self.assertEqual(proxy.reload(force=True).status, 200)
            refused = rollback(proxy, 1)
            self.assertEqual(refused.status, 409)
            self.assertEqual(refused.json()["error"]["code"], "max_shrink")
            self.assertEqual(refused.json()["pools"][0]["guard"]["refused_by"], "max_shrink")
            self.assertIn("forced rollback", proxy.log())
            self.assertEqual(len(names(proxy)), 4)
            self.assertEqual(proxy.metric("clockwise_remap_refused_total"), 2)
            forced = rollback(proxy, 1, force=True)
            self.assertEqual(forced.status, 200)
            self.assertTrue(forced.json()["forced"])
            self.assertEqual([r["forced"] for r in remaps(proxy)["remaps"]], [True, True])
            self.assertEqual(rollback(proxy, 1).json()["result"], "unchanged")

    def test_a_list_in_a_file_is_edited_there(self):
        with Site([self.entry("a"), self.entry("b")]) as proxy:
            proxy.change([self.entry("a", weight=3), self.entry("c")], force=True)
            answer = rollback(proxy, 1, force=True)
            self.assertEqual(answer.status, 409)
            error = answer.json()["error"]
            self.assertEqual(error["code"], "from_file")
            self.assertIn(str(proxy.servers_file), error["message"])
            self.assertIn(f"remove c; set the weight of a to 1; add b at {self.b.address}, weight 1",
                          error["message"])
            self.assertEqual(names(proxy), ["a", "c"])

    def test_the_order_is_edited_there_too(self):
        abc, cab = ([self.entry(n) for n in names] for names in ("abc", "cab"))
        with Site(abc, ring={"scheme": "nginx-hash"}) as proxy:
            self.assertIsNotNone(proxy.change(cab, force=True))
            message = rollback(proxy, 1).json()["error"]["message"]
            self.assertIn("edit it: set the order of the servers to a, b, c", message)
            self.assertIsNotNone(proxy.change(abc, force=True))
            self.assertIn("it says the same already", rollback(proxy, 1).json()["error"]["message"])

    def entry(self, name, **settings):
        return {"name": name, "address": getattr(self, name).address, **settings}

    def test_what_is_not_there(self):
        with Proxy(self.configuration(self.a)) as proxy:
            for number in ("1", "0", "x"):
                answer = rollback(proxy, number)
                self.assertEqual(answer.status, 404, answer.text)
                self.assertEqual(answer.json()["error"]["code"], "not_found")


class Order(World):
    """Where the scheme goes by the order of the list, another order is another ring."""

    SCHEMES = ({"scheme": "modulo"}, {"scheme": "nginx-hash"}, {"scheme": "haproxy"},
               {"scheme": "twemproxy", "distribution": "modula"})

    def reordered(self, ring, *servers):
        return configuration(servers, ring=ring, pool={"max_remap": "100%"})

    def test_is_a_change_that_can_be_rolled_back(self):
        for ring in self.SCHEMES:
            first = self.reordered(ring, self.a, self.b, self.c)
            second = self.reordered(ring, self.b, self.a, self.c)
            with self.subTest(ring=ring), Proxy(first) as proxy:
                def owners():
                    return [proxy.get(f"/{n}").text for n in range(100)]
                before = owners()
                answer = proxy.reload(second)
                self.assertEqual(answer.status, 200, answer.text)
                self.assertEqual(answer.json()["result"], "applied")
                (report,) = answer.json()["pools"]
                self.assertNotEqual(report["digest_before"], report["digest_after"])
                self.assertGreater(report["moved_ratio"], 0.1)
                self.assertEqual(report["minimum_ratio"], 0)
                self.assertAlmostEqual(report["needless_ratio"], report["moved_ratio"], delta=1e-9)
                self.assertNotEqual(owners(), before)
                self.assertEqual(remaps(proxy)["total"], 1)
                self.assertEqual(proxy.metric("clockwise_remaps_total"), 1)
                self.assertEqual(proxy.reload(second).json()["result"], "unchanged")

                back = rollback(proxy, 1)
                self.assertEqual(back.json()["result"], "applied", back.text)
                self.assertEqual(back.json()["pools"][0]["digest_after"], report["digest_before"])
                self.assertEqual(owners(), before)
                self.assertEqual(proxy.admin("/api/v1/status").json()["differs_from_file"],
                                 [{"pool": "pages", "server": None, "overridden": ["order"]}])
                self.assertEqual(proxy.reload(second).json()["result"], "unchanged")
                self.assertEqual(names(proxy), ["a", "b", "c"])
                self.assertEqual(proxy.reload(first).json()["result"], "unchanged")
                self.assertEqual(proxy.admin("/api/v1/status").json()["differs_from_file"], [])
                self.assertEqual(remaps(proxy)["total"], 2)

    def test_is_no_change_elsewhere(self):
        for ring in ({"scheme": "clockwise"}, {"scheme": "ketama"}, {"scheme": "maglev"}):
            with self.subTest(ring=ring), Proxy(self.reordered(ring, self.a, self.b, self.c)) as proxy:
                digest = proxy.admin("/api/v1/pools/pages").json()["digest"]
                answer = proxy.reload(self.reordered(ring, self.c, self.a, self.b))
                self.assertEqual(answer.json()["result"], "unchanged")
                self.assertEqual(proxy.admin("/api/v1/pools/pages").json()["digest"], digest)
                self.assertEqual(remaps(proxy)["total"], 0)


if __name__ == "__main__":
    unittest.main()
