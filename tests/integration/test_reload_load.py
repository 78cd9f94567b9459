"""Reloads under load: no request fails, nothing is counted backwards, a bad file changes nothing."""

import contextlib
import os
import pathlib
import random
import re
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import SANITIZED, free_port, run, wait_until  # noqa: E402
from support.load import Load, brief  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site, servers_text  # noqa: E402

RELOADS = 200 if SANITIZED else 1000


def counters(page):
    return {key: value for key, value in page.samples.items()
            if re.search(r"_(total|count|sum|bucket)\Z", key[0])}


class UnderLoad(unittest.TestCase):
    def setUp(self):
        self.origins = {n: self.enterContext(Origin(brief, name=n)) for n in "abcdef"}
        self.elsewhere = self.enterContext(Origin(brief, name="d"))  # the other address of d
        self.draw = random.Random(1)

    def next_list(self, step):
        """Servers come and go, change weight and address; a, b and c stay as they are."""
        a, b, c, d, e, f = self.origins.values()
        servers = [a, b, c, d if step % 3 else self.elsewhere,
                   e.entry(weight=self.draw.choice([0.5, 1, 1.5, 2]))]
        if step % 2:
            servers.append(f)
        if step % 7 == 0:
            self.draw.shuffle(servers)
        return servers

    def test_no_request_fails_and_no_counter_goes_back(self):
        with Site(list(self.origins.values()), workers=2) as proxy:
            with Load(proxy.web) as load:
                before = counters(proxy.page())
                for step in range(RELOADS):
                    proxy.write_servers(self.next_list(step))
                    answer = proxy.reload()
                    self.assertEqual(answer.status, 200, answer.text)
                    if step % 20 == 0:
                        now = counters(proxy.page())
                        back = {k: (v, now.get(k)) for k, v in before.items() if now.get(k, -1) < v}
                        self.assertEqual(back, {})
                        before = now
                    self.assertEqual(load.failures, [])
            self.assertEqual(load.failures, [])
            self.assertGreater(load.served, RELOADS // 2)
            page = proxy.page()
            self.assertEqual(page.sum("clockwise_http_requests_total"), load.served)
            self.assertEqual(page.sum("clockwise_http_requests_total", code="2xx"), load.served)
            self.assertGreaterEqual(page.sum("clockwise_config_reloads_total"), RELOADS)
            self.assertEqual(page.sum("clockwise_config_last_reload_successful"), 1)
            self.assertEqual(page.sum("clockwise_retries_total"), 0)

    def test_servers_that_stay_keep_their_connections(self):
        a, b, c, *_ = self.origins.values()
        with Site([a, b]) as proxy:
            with wire.Connection(proxy.web) as connection:
                for n in range(20):
                    connection.request("GET", f"/{n}")
                opened = a.connections + b.connections
                for step in range(10):
                    proxy.change([a, b, c.entry(weight=0.1 + step / 10)])
                    for n in range(20):
                        self.assertEqual(connection.request("GET", f"/{n}").status, 200)
                self.assertEqual(a.connections + b.connections, opened)

    def test_an_answer_in_flight_survives_the_removal_of_its_server(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def slow(exchange):
            exchange.read_body()
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfirst")
            go.wait(30)
            exchange.send(b"later")

        with Origin(slow, name="slow") as old, contextlib.ExitStack() as stack:
            a, b = self.origins["a"], self.origins["b"]
            proxy = stack.enter_context(Site([old, a, b]))
            uri = next(u for u, owner in proxy.owners([f"/{n}" for n in range(100)]).items() if owner == "slow")
            connection = stack.enter_context(wire.Connection(proxy.web))
            connection.send(wire.request_text("GET", uri))
            head = connection.head()
            pieces = wire.body_pieces(head, connection.reader)
            self.assertEqual(next(pieces), b"first")
            report = proxy.change([a, b])
            self.assertEqual([s["changes"] for s in report["servers"] if s["name"] == "slow"], [["removed"]])
            self.assertIn(wire.fetch(proxy.web, uri).value("x-server"), ("a", "b"))
            self.assertEqual(proxy.page().sum("clockwise_backend_requests_in_flight", backend="slow"), 1)
            go.set()
            self.assertEqual(b"".join(pieces), b"later")
            self.assertTrue(head.complete)
            self.assertIn(connection.request("GET", uri).value("x-server"), ("a", "b"))
            wait_until(lambda: proxy.page().value("clockwise_backend_up", backend="slow") is None, "its gauges to go")
            wait_until(lambda: not old.open_connections, "the end of its connections")

    def test_a_change_that_is_still_counted_stands_other_positions(self):
        """Of one server nothing moves, whatever places it, but a position is another number."""
        a, b, *_ = self.origins.values()
        for before, after in (("ketama", "clockwise"), ("nginx", "clockwise"), ("clockwise", "maglev")):
            with self.subTest(before=before, after=after), Site([a, b], ring={"scheme": before}) as proxy:
                uris = [f"/{n}" for n in range(40)]
                moved = sum(owner == "b" for owner in proxy.owners(uris).values())
                proxy.change([a], force=True)
                proxy.document["pools"]["pages"]["ring"]["scheme"] = after
                proxy.write(proxy.document)
                self.assertEqual(proxy.reload(force=True).status, 200)
                self.assertEqual(proxy.pool()["scheme"], after)
                self.assertEqual(proxy.admin("/api/v1/pools/pages/lookup?key=/1").status, 200)
                self.assertEqual([wire.fetch(proxy.web, uri).status for uri in uris], [200] * 40)
                self.assertEqual(proxy.page().sum("clockwise_remapped_requests_total"), moved)

    def test_a_new_address_under_an_old_name_moves_no_key(self):
        a, b, d = self.origins["a"], self.origins["b"], self.origins["d"]
        with Site([a, b, d]) as proxy:
            uris = [f"/{n}" for n in range(60)]
            before = {u: wire.fetch(proxy.web, u).value("x-server") for u in uris}
            remaps = proxy.admin("/api/v1/remaps").json()["total"]
            seen = len(d.requests)
            proxy.write_servers([a, b, self.elsewhere])
            answer = proxy.reload().json()
            if answer["result"] == "applied":
                (report,) = answer["pools"]
                self.assertEqual((report["moved_ratio"], report["moves"], report["minimum_ratio"]), (0, [], 0))
                self.assertEqual([s["changes"] for s in report["servers"]], [[], [], ["address"]])
            self.assertEqual({u: wire.fetch(proxy.web, u).value("x-server") for u in uris}, before)
            self.assertEqual(len(d.requests), seen)
            self.assertGreater(len(self.elsewhere.requests), 0)
            self.assertEqual(proxy.admin("/api/v1/remaps").json()["total"], remaps)


class Files(unittest.TestCase):
    def setUp(self):
        self.a, self.b, self.c = (self.enterContext(Origin(brief, name=n)) for n in "abc")

    def names(self, proxy):
        return [s["name"] for s in proxy.pool()["servers"]]

    def test_a_bad_file_changes_nothing_and_shows(self):
        good = servers_text([self.a, self.b])
        bad = {
            "cut": ("servers:\n  - {name: a, addr", "invalid"),
            "empty": ("", "invalid"),
            "no servers": ("servers: []\n", "invalid"),
            "unknown key": (good + "    wieght: 2\n", "invalid"),
            "two of one name": (servers_text([self.a, self.a]), "invalid"),
            "weight": (servers_text([self.a.entry(weight=-1)]), "invalid"),
            "gone": (None, "unreadable"),
        }
        with Site([self.a, self.b]) as proxy:
            digest, running = proxy.pool()["digest"], proxy.page().series("clockwise_config_info")
            for name, (text, code) in bad.items():
                with self.subTest(name):
                    if text is None:
                        os.unlink(proxy.servers_file)
                    else:
                        proxy.write_servers(text)
                    answer = proxy.reload()
                    self.assertEqual(answer.status, 409, answer.text)
                    document = answer.json()
                    self.assertEqual(document["error"]["code"], code)
                    self.assertIn("upstreams.yaml", document["error"]["message"] + str(document["error"]["position"]))
                    self.assertEqual(wire.fetch(proxy.web).status, 200)
                    self.assertEqual(proxy.pool()["digest"], digest)
                    page = proxy.page()
                    self.assertEqual(page.value("clockwise_config_last_reload_successful"), 0)
                    self.assertGreaterEqual(page.sum("clockwise_config_reloads_total", trigger="api", result=code), 1)
                    self.assertEqual(page.series("clockwise_config_info"), running)
                    last = proxy.admin("/api/v1/status").json()["last_reload"]
                    self.assertEqual(last["result"], code)
                    self.assertTrue(last["errors"])
                    self.assertRegex(proxy.log(), r"upstreams\.yaml")
            proxy.write_servers(good)
            self.assertEqual(proxy.reload().status, 200)
            self.assertEqual(proxy.page().value("clockwise_config_last_reload_successful"), 1)

    def test_the_same_content_in_other_words_changes_nothing(self):
        with Site([self.a, self.b]) as proxy:
            digest = proxy.pool()["digest"]
            for text in (servers_text([self.b, self.a]), "# a comment\n" + servers_text([self.a, self.b]),
                         servers_text([self.a.entry(weight=1, state="active"), self.b])):
                proxy.write_servers(text)
                self.assertEqual(proxy.reload().status, 200)
                self.assertEqual(proxy.pool()["digest"], digest)
            self.assertEqual(proxy.admin("/api/v1/remaps").json()["total"], 0)
            self.assertEqual(proxy.page().sum("clockwise_remaps_total"), 0)

    def test_guards_refuse_and_force_passes(self):
        for guard, pool, servers in [("max_remap", {}, [self.a, self.b, self.c.entry(weight=10)]),
                                     ("max_shrink", {"max_remap": "100%"}, [self.a])]:
            before = [self.a, self.b] if guard == "max_remap" else [self.a, self.b, self.c]
            with self.subTest(guard), Site(before, pool=pool) as proxy:
                digest = proxy.pool()["digest"]
                proxy.write_servers(servers)
                answer = proxy.reload()
                self.assertEqual(answer.status, 409, answer.text)
                document = answer.json()
                self.assertEqual(document["error"]["code"], guard)
                (report,) = document["pools"]
                self.assertEqual(report["guard"]["refused_by"], guard)
                self.assertEqual(proxy.pool()["digest"], digest)
                page = proxy.page()
                self.assertGreaterEqual(page.sum("clockwise_remap_refused_total"), 1)
                self.assertGreaterEqual(page.sum("clockwise_config_reloads_total", result="refused", trigger="api"), 1)
                self.assertEqual(run("reload", "--admin", f"http://127.0.0.1:{proxy.admin_port}").returncode, 3)
                answer = proxy.reload(force=True)
                self.assertEqual(answer.status, 200, answer.text)
                self.assertTrue(answer.json()["forced"])
                self.assertEqual(self.names(proxy), [s["name"] if isinstance(s, dict) else s.name for s in servers])
                self.assertTrue(proxy.admin("/api/v1/remaps").json()["remaps"][0]["forced"])

    def test_the_command_reloads_and_prints_the_report(self):
        with Site([self.a, self.b]) as proxy:
            url = f"http://127.0.0.1:{proxy.admin_port}"
            proxy.write_servers([self.a, self.b, self.c])
            done = run("reload", "--admin", url)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.names(proxy), ["a", "b", "c"])
            proxy.write_servers("servers: [")
            done = run("reload", "--admin", url)
            self.assertEqual(done.returncode, 1)
            self.assertIn("upstreams.yaml:1:", done.stdout + done.stderr)
        self.assertEqual(run("reload", "--admin", f"http://127.0.0.1:{free_port()}").returncode, 1)

    # --- triggers

    def reloads(self, proxy, **labels):
        return proxy.page().sum("clockwise_config_reloads_total", **labels)

    def test_the_three_triggers(self):
        with Site([self.a, self.b]) as proxy:
            self.assertEqual(self.reloads(proxy, trigger="start", result="applied"), 1)
            proxy.write_servers([self.a, self.b, self.c])
            proxy.signal(signal.SIGHUP)
            proxy.wait_metric(1, "clockwise_config_reloads_total", trigger="signal")
            self.assertEqual(self.names(proxy), ["a", "b", "c"])
            proxy.write_servers([self.a, self.c])
            self.assertEqual(proxy.reload().status, 200)
            self.assertEqual(self.reloads(proxy, trigger="api"), 1)
            self.assertEqual(self.names(proxy), ["a", "c"])
            proxy.write_servers([self.a, self.b, self.c.entry(weight=2)])
            wait_until(lambda: self.names(proxy) == ["a", "b", "c"], "the watch to notice")
            # What a reload brings runs a moment before its outcome is on record.
            wait_until(lambda: self.reloads(proxy, trigger="watch", result="applied") +
                       self.reloads(proxy, trigger="poll", result="applied") >= 1, "its outcome")
            self.assertEqual(proxy.page().value("clockwise_config_watch_up"), 1)

    def test_what_was_just_turned_down_is_not_turned_down_again_by_the_watch(self):
        with Site([self.a, self.b]) as proxy:
            os.unlink(proxy.servers_file)
            self.assertEqual(proxy.reload().status, 409)
            # The watch has looked, and the next call comes after whatever it did.
            wait_until(lambda: proxy.page().value("clockwise_config_watch_up") == 0, "the watch to look")
            self.assertEqual(proxy.admin("/api/v1/status").json()["last_reload"]["trigger"], "api")
            proxy.signal(signal.SIGHUP)
            proxy.wait_metric(1, "clockwise_config_reloads_total", trigger="signal", result="unreadable")
            self.assertEqual(proxy.reload().status, 409)
            self.assertEqual(self.reloads(proxy, trigger="api", result="unreadable"), 2)
            self.assertEqual(self.reloads(proxy, trigger="watch") + self.reloads(proxy, trigger="poll"), 0)
            self.assertEqual(len(re.findall(r"unreadable, the running configuration stays", proxy.log())), 3)

    def test_the_watch_sees_a_file_written_in_place_once_it_is_closed(self):
        with Site([self.a, self.b]) as proxy:
            whole = servers_text([self.a, self.b, self.c])
            half = servers_text([self.a])  # valid, but not what is meant
            with open(proxy.servers_file, "w", encoding="utf-8") as file:
                file.write(half)
                file.flush()
                started = time.monotonic()
                wait_until(lambda: time.monotonic() - started > 0.8, "longer than the time to settle")
                file.write(whole[len(half):])
            wait_until(lambda: self.names(proxy) == ["a", "b", "c"], "the whole file")
            wait_until(lambda: self.reloads(proxy, result="applied") == 2, "its outcome")
            self.assertEqual(proxy.admin("/api/v1/remaps").json()["total"], 1)
            self.assertEqual(self.reloads(proxy, result="refused"), 0)

    def test_the_watch_sees_the_symlink_swap_of_a_config_map(self):
        proxy = Site([self.a, self.b])
        folder = proxy.folder

        def publish(version, servers):
            (folder / version).mkdir()
            (folder / version / "upstreams.yaml").write_text(servers_text(servers))
            os.symlink(version, folder / "..data_tmp")
            os.rename(folder / "..data_tmp", folder / "..data")

        proxy.servers_file.unlink()
        publish("..1", [self.a, self.b])
        os.symlink("..data/upstreams.yaml", proxy.servers_file)
        with proxy:
            for version, servers in (("..2", [self.a, self.b, self.c]), ("..3", [self.a, self.b])):
                publish(version, servers)
                wait_until(lambda s=servers: self.names(proxy) == [o.name for o in s], f"version {version}")

    def test_the_watch_sees_a_file_that_comes_back(self):
        with Site([self.a, self.b]) as proxy:
            os.unlink(proxy.servers_file)
            proxy.wait_metric(1, "clockwise_config_reloads_total", result="unreadable")
            self.assertEqual(wire.fetch(proxy.web).status, 200)
            proxy.write_servers([self.a, self.b, self.c])
            wait_until(lambda: self.names(proxy) == ["a", "b", "c"], "the new file")
            proxy.wait_metric(1, "clockwise_config_last_reload_successful")

    def test_the_watch_sees_the_main_file(self):
        with Site([self.a, self.b]) as proxy:
            proxy.document["pools"]["pages"]["ring"] = {"points": 512}
            proxy.document["pools"]["pages"]["max_remap"] = "100%"
            proxy.write(proxy.document)
            wait_until(lambda: proxy.pool()["points_total"] == 1024, "the new number of points")

    # --- what else a reload may change

    def test_a_listener_is_added_or_the_answer_says_why_not(self):
        port = free_port()
        with Site([self.a]) as proxy:
            proxy.document["listeners"].append({"name": "second", "address": f"127.0.0.1:{port}", "pool": "pages"})
            proxy.write(proxy.document)
            answer = proxy.reload()
            self.assertEqual(answer.status, 200, answer.text)
            if answer.json()["not_applied"]:
                self.assertIn("listeners", answer.json()["not_applied"][0]["path"])
            else:
                self.assertEqual(wire.fetch(("127.0.0.1", port)).status, 200)
            self.assertEqual(wire.fetch(proxy.web).status, 200)

    def test_timeouts_and_limits_apply_to_the_next_request(self):
        with Site([self.a]) as proxy, wire.Connection(proxy.web) as connection:
            self.assertEqual(connection.request("POST", "/", body=b"x" * 2000).status, 200)
            proxy.document["listeners"][0]["limits"] = {"body_size": "1k"}
            proxy.write(proxy.document)
            self.assertEqual(proxy.reload().status, 200)
            self.assertEqual(wire.fetch(proxy.web, "/", "POST", body=b"x" * 2000).status, 413)


class Stop(unittest.TestCase):
    def test_a_graceful_stop_finishes_what_is_in_flight(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def slow(exchange):
            exchange.read_body()
            go.wait(30)
            exchange.reply(200, b"done")

        with Origin(slow, name="a") as origin, Site([origin]) as proxy:
            idle = wire.Connection(proxy.web)
            busy = wire.Connection(proxy.web)
            busy.send(wire.request_text("GET", "/"))
            self.assertTrue(origin.wait(lambda: origin.requests))
            proxy.signal(signal.SIGTERM)
            self.assertTrue(idle.closed())
            wait_until(lambda: not self.accepts(proxy.web), "the listener to close")
            go.set()
            answer = busy.response()
            self.assertEqual((answer.text, answer.tokens("connection")), ("done", [b"close"]))
            self.assertTrue(busy.closed())
            self.assertEqual(proxy.wait_exit(), 0)

    def test_a_second_signal_stops_at_once(self):
        done = threading.Event()
        self.addCleanup(done.set)
        with Origin(lambda exchange: done.wait(60), name="a") as origin, \
                Site([origin], shutdown_timeout="60s") as proxy:
            busy = wire.Connection(proxy.web)
            busy.send(wire.request_text("GET", "/"))
            self.assertTrue(origin.wait(lambda: origin.requests))
            proxy.signal(signal.SIGTERM)
            wait_until(lambda: not self.accepts(proxy.web), "the listener to close")
            proxy.signal(signal.SIGTERM)
            self.assertEqual(proxy.wait_exit(10), 0)

    @staticmethod
    def accepts(address):
        try:
            wire.Connection(address, timeout=1).close()
            return True
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main()
