"""The admin API answers in exactly the shapes that its users read."""

import json
import pathlib
import re
import select
import socket
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.account import differences  # noqa: E402
from support.clockwise import DEADLINE, request, run  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.ring import CIRCLE, Ring, minimum, moves, xxh64  # noqa: E402
from support.scenario import Site, servers_text  # noqa: E402

NUMBER = (int, float)
OPTIONAL_NUMBER, OPTIONAL_TEXT = (int, float, type(None)), (str, type(None))

MOVE = {"from": str, "to": str, "ratio": NUMBER}
SERVER_REPORT = {"name": str, "changes": [str], "address_before": OPTIONAL_TEXT, "address_after": OPTIONAL_TEXT,
                 "state_before": OPTIONAL_TEXT, "state_after": OPTIONAL_TEXT, "weight_before": OPTIONAL_NUMBER,
                 "weight_after": OPTIONAL_NUMBER, "expected_before": OPTIONAL_NUMBER, "expected_after": OPTIONAL_NUMBER,
                 "share_before": OPTIONAL_NUMBER, "share_after": OPTIONAL_NUMBER, "lost_ratio": NUMBER,
                 "gained_ratio": NUMBER}
GUARD = {"max_remap": NUMBER, "max_shrink": NUMBER, "shrink_ratio": NUMBER, "refused_by": OPTIONAL_TEXT}
HISTORY = {"pool": str, "scheme": str, "exact": bool, "digest_before": OPTIONAL_TEXT, "digest_after": OPTIONAL_TEXT,
           "moved_ratio": NUMBER, "minimum_ratio": NUMBER, "needless_ratio": NUMBER, "moves": [MOVE],
           "servers": [SERVER_REPORT]}
REPORT = {**HISTORY, "guard": GUARD}
COST = {"requests_per_second": OPTIONAL_NUMBER, "hit_ratio": OPTIONAL_NUMBER,
        "extra_fetches_per_second": OPTIONAL_NUMBER}
KEYS = {"total": int, "moved": int, "moves": [{"from": str, "to": str, "count": int}]}
REMAP = {"id": int, "time": str, "cause": str, "trigger": str, "forced": bool, "remapped_requests": int, **HISTORY}
POSITION = object()  # null, or file with line and column in whatever form
ERROR = {"code": str, "message": str, "position": POSITION}
SETTINGS = {"scheme": str, "points": int, "hash_tag": str, "key": str, "key_ignore": [str]}
HEALTH = {"since": OPTIONAL_TEXT, "cause": OPTIONAL_TEXT, "last_failure": object(), "ejections_in_a_row": int,
          "ejected_until": OPTIONAL_TEXT}
POOL = {"name": str, "protocol": str, "scheme": str, "digest": str, "ring": SETTINGS, "points_total": int,
        "panic": bool, "handoff_active": bool, "last_remap": object(), "servers": [{
            "name": str, "address": str, "zone": OPTIONAL_TEXT, "weight": NUMBER, "state": str, "health": str,
            "health_detail": HEALTH, "safe_to_stop": bool, "points": int, "expected_ratio": NUMBER, "share_ratio": NUMBER,
            "requests_total": {"2xx": int, "3xx": int, "4xx": int, "5xx": int, "error": int},
            "requests_in_flight": int, "connections": {"active": int, "idle": int},
            "latency_seconds": {"p50": OPTIONAL_NUMBER, "p90": OPTIONAL_NUMBER, "p99": OPTIONAL_NUMBER},
            "overridden": [str]}]}
LAST_REMAP = {"id": int, "time": str, "moved_ratio": NUMBER, "minimum_ratio": NUMBER}
RING = {"pool": str, "scheme": str, "digest": str, "points_total": int, "points": [{"position": str, "server": str}]}
KEY = {"key": str, "hash": str, "server": OPTIONAL_TEXT, "address": OPTIONAL_TEXT, "replicas": [str],
       "previous": OPTIONAL_TEXT}
POINT = {"position": str, "server": str}
WHY = {"canonical_key": OPTIONAL_TEXT, "slot": OPTIONAL_TEXT, "point_before": POINT, "points_after": [POINT],
       "walk": [{"position": OPTIONAL_TEXT, "server": str, "address": str, "state": str, "health": str,
                 "requests_in_flight": int}], "chosen": OPTIONAL_TEXT, "reason": OPTIONAL_TEXT}
LOOKUP = {"pool": str, "keys": [KEY]}
EXPLAINED = {"pool": str, "keys": [{**KEY, **WHY}]}
APPLIED = {"result": str, "trigger": str, "forced": bool, "config_digest": str, "duration_seconds": NUMBER,
           "pools": [REPORT], "not_applied": [{"path": str, "reason": str}]}


def misfits(value, shape, path="$"):
    """Where `value` differs from `shape`: missing and surplus keys, other types."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{path}: {value!r} is not an object"]
        wrong = [f"{path}.{key}: missing" for key in shape.keys() - value.keys()]
        wrong += [f"{path}.{key}: not in the contract" for key in value.keys() - shape.keys()]
        return wrong + [w for key in shape.keys() & value.keys()
                        for w in misfits(value[key], shape[key], f"{path}.{key}")]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{path}: {value!r} is not a list"]
        return [w for n, item in enumerate(value) for w in misfits(item, shape[0], f"{path}[{n}]")]
    if not isinstance(shape, (type, tuple)):
        return []
    number_for_bool = isinstance(value, bool) and bool not in (shape if isinstance(shape, tuple) else (shape,))
    return [] if isinstance(value, shape) and not number_for_bool else [f"{path}: {value!r} is not {shape}"]


class Api(unittest.TestCase):
    def setUp(self):
        self.origins = [self.enterContext(Origin(name=n)) for n in "abcde"]

    def site(self, servers, **config):
        return self.enterContext(Site(servers, **config))

    def get(self, proxy, target, shape, status=200):
        answer = proxy.admin(target)
        self.assertEqual(answer.status, status, answer.text)
        self.assertTrue(answer.headers["Content-Type"].startswith("application/json"))
        document = answer.json()
        self.assertEqual(misfits(document, shape), [])
        return document

    def close(self, one, other):
        """Equal but for the last digits of numbers."""
        self.assertEqual(differences(one, other), [])

    # --- reading

    def test_health_and_readiness(self):
        proxy = self.site(self.origins)
        self.assertEqual([proxy.admin(t).status for t in ("/healthz", "/readyz")], [200, 200])
        self.assertEqual(proxy.admin("/healthz", method="HEAD").body, b"")

    def test_status(self):
        proxy = self.site(self.origins)
        status = proxy.admin("/api/v1/status").json()
        self.assertRegex(status["version"], r"\A\d+\.\d+\.\d+")
        self.assertEqual(status["workers"], 1)
        self.assertEqual(misfits(status["config"], {"file": str, "digest": str}), [])
        self.assertEqual(status["config"]["file"], str(proxy.file))
        self.assertRegex(status["config"]["digest"], r"\A[0-9a-f]{12}\Z")
        last = status["last_reload"]
        self.assertEqual(misfits(last, {"result": str, "trigger": str, "time": str, "errors": [ERROR]}), [])
        self.assertEqual((last["result"], last["trigger"], last["errors"]), ("applied", "start", []))
        self.assertIn(str(proxy.port()), json.dumps(status), "the port that the listener took")
        page = proxy.page()
        self.assertEqual(page.series("clockwise_config_info")[0][0]["digest"], status["config"]["digest"])

    def test_pools(self):
        a, b, c, d, e = self.origins
        proxy = self.site([a.entry(weight=2, zone="z1"), b.entry(weight=0.5), c.entry(state="draining"),
                           d.entry(state="down"), e.entry(weight=0)])
        pools = self.get(proxy, "/api/v1/pools", {"pools": [POOL]})["pools"]
        pool = self.get(proxy, "/api/v1/pools/pages", POOL)
        self.assertEqual(pools, [pool])
        self.assertEqual((pool["name"], pool["protocol"], pool["scheme"]), ("pages", "http", "clockwise"))
        self.assertRegex(pool["digest"], r"\A[0-9a-f]{16}\Z")
        self.assertEqual((pool["points_total"], pool["last_remap"], pool["handoff_active"]), (2560, None, False))
        servers = {s["name"]: s for s in pool["servers"]}
        self.assertEqual([s["name"] for s in pool["servers"]], list("abcde"))
        self.assertEqual([s["state"] for s in pool["servers"]], ["active", "active", "draining", "down", "active"])
        self.assertEqual([s["points"] for s in pool["servers"]], [2048, 512, 0, 0, 0])
        self.assertEqual([s["expected_ratio"] for s in pool["servers"]], [0.8, 0.2, 0, 0, 0])
        self.assertEqual((servers["a"]["zone"], servers["a"]["address"]), ("z1", a.address))
        for name, share in Ring({"a": 2, "b": 0.5}).shares().items():
            self.assertAlmostEqual(servers[name]["share_ratio"], share, delta=1e-12)

    def test_pool_counts_requests(self):
        proxy = self.site(self.origins[:1])
        with wire.Connection(proxy.web) as connection:
            for _ in range(10):
                connection.request("GET", "/")
            server = proxy.pool()["servers"][0]
            self.assertEqual(server["requests_total"], {"2xx": 10, "3xx": 0, "4xx": 0, "5xx": 0, "error": 0})
            self.assertEqual((server["requests_in_flight"], server["connections"]), (0, {"active": 0, "idle": 1}))
            latency = server["latency_seconds"]
            self.assertTrue(0 < latency["p50"] <= latency["p90"] <= latency["p99"] < 10)

    def test_ring(self):
        proxy = self.site([self.origins[0], self.origins[1].entry(weight=0.5)])
        ring = self.get(proxy, "/api/v1/pools/pages/ring", RING)
        expected = Ring({"a": 1, "b": 0.5}).points
        self.assertEqual([(int(p["position"]), p["server"]) for p in ring["points"]], expected)
        self.assertEqual((ring["points_total"], ring["digest"]), (1536, proxy.pool()["digest"]))

    def test_lookup(self):
        proxy = self.site(self.origins)
        ring = Ring(dict.fromkeys("abcde", 1))
        for key, sent in [("/", "/"), ("/a?b=c&d", "/a%3Fb%3Dc%26d"), ("/a%2Fb", "/a%252Fb"), ("/\u00e9", "/%C3%A9")]:
            document = self.get(proxy, f"/api/v1/pools/pages/lookup?key={sent}", EXPLAINED)
            (entry,) = document["keys"]
            octets = key.encode("utf-8")
            self.assertEqual((entry["key"], entry["hash"]), (key, str(xxh64(octets))))
            self.assertEqual((entry["server"], entry["replicas"][:1]), (ring.owner(octets), [ring.owner(octets)]))
            self.assertEqual(entry["address"], next(o.address for o in self.origins if o.name == entry["server"]))
            self.assertIsNone(entry["previous"])
            done = run("lookup", "-c", proxy.file, "--json", key)
            self.assertEqual(misfits(json.loads(done.stdout), LOOKUP), [])
            self.assertEqual(json.loads(done.stdout)["keys"], [{name: entry[name] for name in KEY}])

    def test_lookup_of_a_position_beyond_the_ring_is_refused(self):
        proxy = self.site(self.origins, ring={"scheme": "nginx"})
        lookup = "/api/v1/pools/pages/lookup?hash="
        self.assertEqual(proxy.admin(f"{lookup}{2 ** 32 - 1}").status, 200)
        for position in (2 ** 32, 2 ** 64 - 1, 2 ** 64, -1):
            answer = proxy.admin(f"{lookup}{position}")
            self.assertEqual(answer.status, 400)
            self.assertIn("0 to 4294967295", answer.json()["error"]["message"])

    # --- changes: three ways to the same account

    def test_plan_by_command_by_api_and_the_reload_agree(self):
        a, b, c, d, e = self.origins
        changes = {
            "add": ([a, b, c, d], [a, b, c, d, e]),
            "remove": ([a, b, c, d], [a, b, d]),
            "weight": ([a, b, c], [a, b.entry(weight=2.5), c]),
            "drain": ([a, b, c], [a, b, c.entry(state="draining")]),
            "rename and weigh": ([a, b, c, d], [a.entry(weight=0.7), b, c, e]),
        }
        for name, (before, after) in changes.items():
            with self.subTest(name):
                proxy = self.site(before)
                (proxy.folder / "old.yaml").write_text(servers_text(before))
                (proxy.folder / "new.yaml").write_text(servers_text(after))
                done = run("plan", "--json", "-c", proxy.file, proxy.folder / "old.yaml", proxy.folder / "new.yaml")
                self.assertEqual(done.returncode, 0, done.stderr)
                by_command = json.loads(done.stdout)
                self.assertEqual(misfits(by_command, {"pools": [REPORT]}), [])
                answer = proxy.admin("/api/v1/pools/pages/plan", method="POST", body=servers_text(after))
                self.assertEqual(answer.status, 200, answer.text)
                by_api = answer.json()
                self.check_live(by_api)
                self.assertEqual(misfits(by_api, {"pools": [REPORT]}), [])
                self.close(by_command, by_api)
                proxy.write_servers(after)
                answer = proxy.reload()
                self.assertEqual(answer.status, 200, answer.text)
                document = answer.json()
                self.check_live(document)
                self.assertEqual(misfits(document, APPLIED), [])
                self.assertEqual((document["result"], document["trigger"], document["forced"]), ("applied", "api", False))
                self.close(by_command["pools"], document["pools"])
                self.check_account(document["pools"][0], before, after)
                self.check_history(proxy, document["pools"][0])

    def check_live(self, answer):
        """Takes out what only a running proxy knows of a change: its cost, and the keys it has seen."""
        for report in answer["pools"]:
            seen = report.pop("seen_keys", None)
            self.assertEqual(misfits(seen, KEYS) if seen else [], [])
            self.assertEqual(misfits(report.pop("cost"), COST), [])

    @staticmethod
    def weights(servers):
        entries = [s if isinstance(s, dict) else s.entry() for s in servers]
        return {s["name"]: s.get("weight", 1) for s in entries if s.get("state", "active") == "active"}

    def check_account(self, report, before, after):
        old, new = Ring(self.weights(before)), Ring(self.weights(after))
        expected = moves(old, new)
        self.assertEqual([(m["from"], m["to"]) for m in report["moves"]], sorted(expected))
        for move in report["moves"]:
            self.assertAlmostEqual(move["ratio"], expected[move["from"], move["to"]], delta=1e-12)
        self.assertAlmostEqual(report["moved_ratio"], sum(expected.values()), delta=1e-9)
        self.assertAlmostEqual(report["minimum_ratio"], minimum(old, new), delta=1e-9)
        self.assertEqual(report["needless_ratio"], 0)
        for server in report["servers"]:
            name = server["name"]
            for side, ring in (("before", old), ("after", new)):
                if server[f"weight_{side}"] is not None:
                    self.assertAlmostEqual(server[f"share_{side}"], ring.shares().get(name, 0), delta=1e-12)
                    self.assertAlmostEqual(server[f"expected_{side}"], ring.expected().get(name, 0), delta=1e-12)
            for change, side in (("lost_ratio", 0), ("gained_ratio", 1)):
                share = sum(v for pair, v in expected.items() if pair[side] == name)
                self.assertAlmostEqual(server[change], share, delta=1e-12)

    def check_history(self, proxy, report):
        history = self.get(proxy, "/api/v1/remaps", {"total": int, "remaps": [REMAP]})
        self.assertEqual(history["total"], 1)
        entry = history["remaps"][0]
        self.close({k: entry[k] for k in HISTORY}, {k: report[k] for k in HISTORY})
        self.assertEqual((entry["cause"], entry["trigger"], entry["forced"]), ("reload", "api", False))
        last = proxy.pool()["last_remap"]
        self.assertEqual(misfits(last, LAST_REMAP), [])
        self.assertEqual((last["id"], last["moved_ratio"]), (entry["id"], entry["moved_ratio"]))

    def test_requests_whose_owner_a_change_moved_are_counted(self):
        a, b, c, d, e = self.origins
        proxy = self.site([a, b, c, d])
        proxy.change([a, b, c, d, e])
        old, new = Ring(dict.fromkeys("abcd", 1)), Ring(dict.fromkeys("abcde", 1))
        uris = [f"/{n}" for n in range(300)]
        with wire.Connection(proxy.web) as connection:
            for uri in uris:
                connection.request("GET", uri)
        moved = sum(old.owner(u.encode()) != new.owner(u.encode()) for u in uris)
        self.assertEqual(proxy.newest_remap()["remapped_requests"], moved)
        self.assertEqual(proxy.page().sum("clockwise_remapped_requests_total"), moved)

    def test_plan_counts_the_users_own_keys(self):
        a, b, c, *_ = self.origins
        proxy = self.site([a, b])
        keys = [f"/{n}" for n in range(1000)]
        for name, text in (("old.yaml", servers_text([a, b])), ("new.yaml", servers_text([a, b, c])),
                           ("keys", "".join(k + "\n" for k in keys))):
            (proxy.folder / name).write_text(text)
        done = run("plan", "--json", "-c", proxy.file, "--keys", proxy.folder / "keys",
                   proxy.folder / "old.yaml", proxy.folder / "new.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        (report,) = json.loads(done.stdout)["pools"]
        self.assertEqual(misfits(report, {**REPORT, "keys": KEYS}), [])
        old, new = Ring({"a": 1, "b": 1}), Ring({"a": 1, "b": 1, "c": 1})
        moved = [k for k in keys if old.owner(k.encode()) != new.owner(k.encode())]
        self.assertEqual((report["keys"]["total"], report["keys"]["moved"]), (1000, len(moved)))
        self.assertEqual(sum(m["count"] for m in report["keys"]["moves"]), len(moved))

    def test_plan_refuses_above_the_limit(self):
        a, b, *_ = self.origins
        proxy = self.site([a, b])
        (proxy.folder / "old.yaml").write_text(servers_text([a]))
        (proxy.folder / "new.yaml").write_text(servers_text([a, b]))
        for limit, code in (("20%", 3), ("0.2", 3), ("90%", 0)):
            done = run("plan", "-c", proxy.file, "--max-remap", limit,
                       proxy.folder / "old.yaml", proxy.folder / "new.yaml")
            self.assertEqual(done.returncode, code, done.stderr)

    def test_an_unchanged_reload(self):
        proxy = self.site(self.origins)
        document = proxy.reload().json()
        self.assertEqual(misfits(document, APPLIED), [])
        self.assertEqual((document["result"], document["pools"]), ("unchanged", []))

    def test_a_refused_reload(self):
        proxy = self.site(self.origins)
        proxy.write_servers("servers:\n  - {name: a, address: 1.2.3.4:99999}\n  - {name: b b, address: x}\n")
        answer = proxy.reload()
        self.assertEqual(answer.status, 409)
        document = answer.json()
        self.assertEqual(misfits({"error": document["error"], "errors": document["errors"]},
                                 {"error": ERROR, "errors": [ERROR]}), [])
        self.assertEqual(document["error"]["code"], "invalid")
        self.assertGreaterEqual(len(document["errors"]), 2)
        self.assertTrue(document["error"]["position"])

    # --- errors and rights

    def test_errors(self):
        proxy = self.site(self.origins)
        for method, target, status in [
            ("GET", "/api/v1/nothing", 404), ("GET", "/api/v1/pools/none", 404),
            ("GET", "/api/v1/pools/none/ring", 404), ("GET", "/api/v1/pools/pages/lookup", 400),
            ("GET", "/api/v1/reload", 405), ("DELETE", "/api/v1/status", 405), ("POST", "/metrics", 405),
        ]:
            answer = proxy.admin(target, method=method)
            self.assertEqual(answer.status, status, f"{method} {target}")
            self.assertEqual(misfits(answer.json(), {"error": ERROR}), [], f"{method} {target}")
        answer = proxy.admin("/api/v1/pools/pages/plan", method="POST", body="servers: [")
        self.assertEqual(answer.status, 400)
        self.assertEqual(misfits(answer.json()["error"], ERROR), [])

    def test_bad_requests_do_not_end_the_admin_listener(self):
        proxy = self.site(self.origins)
        for octets in (b"garbage\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01",
                       b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 5000):
            with socket.create_connection(("127.0.0.1", proxy.admin_port), timeout=5) as sock:
                try:
                    sock.sendall(octets)
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(65536):
                        pass
                except OSError:
                    pass  # dropped at once
        self.assertEqual(proxy.admin("/healthz").status, 200)

    def test_a_large_plan_holds_up_nothing_and_waits_in_a_short_line(self):
        proxy = self.site(self.origins)

        def ask(servers):
            body = servers_text([{"name": f"s{n}", "address": "127.0.0.1:1"} for n in range(servers)]).encode()
            sock = self.enterContext(socket.create_connection(("127.0.0.1", proxy.admin_port), timeout=DEADLINE))
            sock.sendall(b"POST /api/v1/pools/pages/plan HTTP/1.0\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
                         % len(body) + body)
            return sock

        def all_are_read():
            for _ in range(20):
                self.assertEqual(proxy.admin("/healthz").status, 200)
        large = ask(3900)  # almost four million points
        all_are_read()
        waiting = [ask(2) for _ in range(15)]
        all_are_read()
        for sock in [ask(2) for _ in range(5)]:
            refused = sock.makefile("rb").read()
            self.assertRegex(refused, rb"\AHTTP/1\.[01] 503 ")
            self.assertIn(b"Retry-After: 1\r\n", refused)
            self.assertIn(b'"code": "busy"', refused)
        self.assertIn("clockwise_build_info", proxy.admin("/metrics").text)
        self.assertEqual(select.select([large, *waiting], [], [], 0)[0], [], "the large plan is under way")
        for sock in [large, *waiting]:
            self.assertIn(b'"moved_ratio"', sock.makefile("rb").read())

    def test_a_token_guards_changes_and_nothing_else(self):
        proxy = Site(self.origins)
        proxy.write({**proxy.document, "admin": {"address": f"127.0.0.1:{proxy.admin_port}", "token": "s3cret"}})
        with proxy:
            for given, status in [(None, 401), ("Bearer wrong", 401), ("Basic s3cret", 401),
                                  ("Bearer s3cret", 200), ("bearer s3cret", 200)]:
                headers = {"Authorization": given} if given else {}
                answer = proxy.admin("/api/v1/reload", method="POST", headers=headers)
                if status == 401:
                    self.assertIn(answer.status, (401, 403), headers)
                    self.assertEqual(misfits(answer.json(), {"error": ERROR}), [])
                else:
                    self.assertEqual(answer.status, 200, headers)
            for target in ("/metrics", "/healthz", "/api/v1/status", "/api/v1/pools"):
                self.assertEqual(proxy.admin(target).status, 200, target)
            self.assertNotIn("s3cret", proxy.log() + proxy.admin("/api/v1/status").text)
            url = f"http://127.0.0.1:{proxy.admin_port}"
            done = run("reload", "--admin", url, environment={"CLOCKWISE_ADMIN_TOKEN": "s3cret"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(run("reload", "--admin", url).returncode, 1)

    @staticmethod
    def address_of_this_machine():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))
                address = probe.getsockname()[0]
            except OSError:
                return None
        return None if address.startswith("127.") else address

    def test_without_a_token_changes_come_from_the_loopback_only(self):
        address = self.address_of_this_machine()
        if not address:
            self.skipTest("this machine has no address but the loopback")
        proxy = Site(self.origins)
        proxy.write({**proxy.document, "admin": {"address": f"0.0.0.0:{proxy.admin_port}"}})
        with proxy:
            self.assertEqual(proxy.reload().status, 200)
            self.assertEqual(request(proxy.admin_port, "/api/v1/status", host=address).status, 200)
            answer = request(proxy.admin_port, "/api/v1/reload", "POST", host=address)
            self.assertEqual(answer.status, 403)
            self.assertEqual(misfits(answer.json(), {"error": ERROR}), [])

    def test_the_proxy_port_never_serves_the_admin_api(self):
        proxy = self.site(self.origins)
        for target in ("/metrics", "/healthz", "/api/v1/status"):
            self.assertTrue(wire.fetch(proxy.web, target).value("x-server"), target)

    def test_positions_fit_the_circle(self):
        proxy = self.site(self.origins[:2])
        positions = [int(p["position"]) for p in proxy.admin("/api/v1/pools/pages/ring").json()["points"]]
        self.assertEqual(positions, sorted(positions))
        self.assertLess(positions[-1], CIRCLE)

    def test_numbers_carry_all_their_digits(self):
        a, b, *_ = self.origins
        proxy = self.site([a, b])
        text = proxy.admin("/api/v1/pools/pages").text
        share = re.search(r'"share_ratio":\s*([0-9.eE+-]+)', text)[1]
        self.assertEqual(float(share), Ring({"a": 1, "b": 1}).shares()["a"])


if __name__ == "__main__":
    unittest.main()
