"""The account of a change: the same from the command, the API and the reload, and right."""

import collections
import hashlib
import json
import math
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import account  # noqa: E402
from support.clockwise import ROOT, configuration, run, yaml  # noqa: E402
from support.ring import Ring  # noqa: E402
from support.scenario import Site, servers_text  # noqa: E402

# Placement of a scheme: how its points tell the owner of a position, and how many positions there are.
SCHEMES = {
    "clockwise": ("successor", 1 << 64),
    "nginx": ("successor", 1 << 32),
    "ketama": ("successor", 1 << 32),
    "haproxy": ("nearest", 1 << 32),
    "maglev": ("table", 1 << 64),
    "nginx-hash": ("table", 1 << 15),
}


def server(name, **more):
    return {"name": name, "address": "127.0.0.1:9", **more}


# One list after the other, each a change of the one before.
LISTS = [
    ("at first", [server(n) for n in "abcd"]),
    ("one added", [server(n) for n in "abcde"]),
    ("one removed from the middle", [server(n) for n in "abde"]),
    ("another weight", [server("a"), server("b", weight=3), server("d"), server("e")]),
    ("one renamed", [server("a"), server("b", weight=3), server("x"), server("e")]),
    ("off the ring", [server("a"), server("b", weight=3), server("x"), server("e", weight=0)]),
]


def weights(servers):
    return {s["name"]: s.get("weight", 1) for s in servers}


def on_ring(servers):
    return {name: weight for name, weight in weights(servers).items() if weight > 0}


class Plan(unittest.TestCase):
    def placement(self, proxy, scheme):
        points = proxy.admin("/api/v1/pools/pages/ring").json()["points"]
        rule, positions = SCHEMES[scheme]
        if rule == "table":
            return [p["server"] for p in points]
        return account.circle([(int(p["position"]), p["server"]) for p in points], positions, rule == "nearest")

    def expected(self, scheme, before, after):
        rule, positions = SCHEMES[scheme]
        if rule == "table":
            return account.moves_in_table(before, after, positions)
        return account.moves_on_circle(before, after)

    def by_command(self, proxy, before, after):
        for name, servers in (("old.yaml", before), ("new.yaml", after)):
            (proxy.folder / name).write_text(servers_text(servers))
        done = run("plan", "--json", "-c", proxy.file, proxy.folder / "old.yaml", proxy.folder / "new.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["pools"]

    def by_api(self, proxy, after):
        answer = proxy.admin("/api/v1/pools/pages/plan", method="POST", body=servers_text(after))
        self.assertEqual(answer.status, 200, answer.text)
        reports = answer.json()["pools"]
        for report in reports:  # what only a running proxy can tell
            report.pop("seen_keys", None)
            report.pop("cost", None)
        return reports

    def check(self, report, expected, before, after):
        self.assertIs(report["exact"], True)
        self.assertEqual([(m["from"], m["to"]) for m in report["moves"]], sorted(expected))
        for move in report["moves"]:
            self.assertAlmostEqual(move["ratio"], expected[move["from"], move["to"]], delta=1e-12)
        self.assertAlmostEqual(report["moved_ratio"], sum(expected.values()), delta=1e-9)
        self.assertAlmostEqual(report["minimum_ratio"], account.minimum(on_ring(before), on_ring(after)), delta=1e-9)
        self.assertAlmostEqual(report["needless_ratio"], account.needless(expected, weights(before), weights(after)),
                               delta=1e-9)
        for ratio, side in (("lost_ratio", 0), ("gained_ratio", 1)):
            for entry in report["servers"]:
                share = sum(v for pair, v in expected.items() if pair[side] == entry["name"])
                self.assertAlmostEqual(entry[ratio], share, delta=1e-9)

    def test_all_three_answers_agree_and_are_right_under_every_kind_of_scheme(self):
        for scheme in SCHEMES:
            with Site(LISTS[0][1], ring={"scheme": scheme}, pool={"max_remap": "100%", "max_shrink": "100%"}) as proxy:
                before, was = LISTS[0][1], self.placement(proxy, scheme)
                for name, after in LISTS[1:]:
                    with self.subTest(scheme=scheme, change=name):
                        by_command, by_api = self.by_command(proxy, before, after), self.by_api(proxy, after)
                        by_reload = proxy.change(after)
                        now = self.placement(proxy, scheme)
                        self.assertEqual(account.differences(by_command, by_api), [])
                        for part in by_reload.keys() & by_command[0].keys():
                            self.assertEqual(account.differences(by_command[0][part], by_reload[part]), [], part)
                        self.check(by_command[0], self.expected(scheme, was, now), before, after)
                    before, was = after, now


class Golden(unittest.TestCase):
    """tests/golden/plan: the document, its members in their order, and each figure worked out once more from
    the recipe of the scheme, by nothing of the program."""
    FOLDER = ROOT / "tests" / "golden" / "plan"
    # name: (address, weight, state) before and after, as in old.yaml and new.yaml; None: not there.
    POOLS = {
        "pages": ({"a": ("10.0.0.1:80", 1, "active"), "b": ("10.0.0.2:80", 2, "active"),
                   "c": ("10.0.0.3:80", 1, "active"), "d": ("10.0.0.4:80", 1, "draining"),
                   "e": ("10.0.0.5:80", 1, "active"), "f": ("10.0.0.6:80", 1, "down")},
                  {"a": ("10.0.0.9:80", 1, "active"), "b": ("10.0.0.2:80", 3, "active"),
                   "d": ("10.0.0.4:80", 1, "active"), "e": ("10.0.0.5:80", 1, "active"),
                   "f": ("10.0.0.6:80", 1, "down"), "g": ("10.0.0.7:80", 0.5, "active")}),
        "same": ({"x": ("10.0.1.1:80", 1, "active"), "y": ("10.0.1.2:80", 0, "active")},) * 2,
        "wholly-new": (None, {"z": ("10.0.2.1:80", 1, "active")}),
    }
    GUARDS = {"pages": (0.3, 0.5, "max_remap"), "same": (0.6, 0.5, None), "wholly-new": (0.6, 0.5, None)}

    def document(self):
        done = run("plan", "--json", "--keys", self.FOLDER / "requests.txt", self.FOLDER / "old.yaml",
                   self.FOLDER / "new.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 of 61 lines have no request", done.stderr)
        return done.stdout

    @staticmethod
    def members(text):
        """The names of all members in the order in which they stand."""
        names = []
        json.loads(text, object_pairs_hook=lambda pairs: names.append([name for name, _ in pairs]) or dict(pairs))
        return names

    def keys(self, pool):
        for line in (self.FOLDER / "requests.txt").read_text().splitlines()[1:]:
            host, target = line.split(":443 ")[0], line.split('"GET ')[1].split(" ")[0]
            yield (host + target.split("?")[0] if pool == "pages" else target).encode()

    def server(self, name, sides, rings, moves):
        def ratio(index):
            return math.fsum(share for pair, share in moves.items() if pair[index] == name)
        was, now = (side.get(name) for side in sides)
        changes = (["added"] if was is None else ["removed"] if now is None else
                   [what for what, at in (("weight", 1), ("state", 2), ("address", 0)) if was[at] != now[at]])
        entry = {"name": name, "changes": changes, "lost_ratio": ratio(0), "gained_ratio": ratio(1)}
        for when, told, ring in (("before", was, rings[0]), ("after", now, rings[1])):
            weight = ring.weights.get(name, 0) if ring else 0
            entry |= {f"address_{when}": told and told[0], f"weight_{when}": told and told[1],
                      f"state_{when}": told and told[2],
                      f"expected_{when}": told and weight / sum(ring.weights.values()),
                      f"share_{when}": told and (ring.shares()[name] if weight else 0)}
        return entry

    def report(self, pool):
        """A REPORT without its digests."""
        sides = [side or {} for side in self.POOLS[pool]]
        rings = [Ring({name: weight for name, (_, weight, state) in side.items() if weight > 0 and state == "active"},
                      points=64) if side else None for side in sides]
        both = all(rings)
        moves = account.moves_on_circle(*(account.circle(ring.points, 1 << 64) for ring in rings)) if both else {}
        owners = [tuple(ring.owner(key) if ring else None for ring in rings) for key in self.keys(pool)]
        moved = collections.Counter(pair for pair in owners if both and pair[0] != pair[1])
        remap, shrink, refused = self.GUARDS[pool]
        gone = len(sides[0].keys() - sides[1].keys()) / len(sides[0]) if sides[0] else 0
        weights_of = [{n: w if s == "active" else 0 for n, (_, w, s) in side.items()} for side in sides]
        return {
            "pool": pool, "scheme": "clockwise", "exact": True, "moved_ratio": math.fsum(moves.values()),
            "minimum_ratio": account.minimum(*(ring.weights for ring in rings)) if both else 0,
            "needless_ratio": account.needless(moves, *weights_of),
            "moves": [{"from": a, "to": b, "ratio": share} for (a, b), share in sorted(moves.items())],
            "servers": [self.server(name, sides, rings, moves) for name in sorted(sides[0].keys() | sides[1].keys())],
            "guard": {"max_remap": remap, "max_shrink": shrink, "shrink_ratio": gone, "refused_by": refused},
            "keys": {"total": len(owners), "moved": sum(moved.values()),
                     "moves": [{"from": a, "to": b, "count": count} for (a, b), count in sorted(moved.items())]},
        }

    def test_the_document_is_as_it_was(self):
        golden = (self.FOLDER / "report.json").read_text()
        found = self.document()
        self.assertEqual(account.differences(json.loads(golden), json.loads(found), within=1e-15), [])
        self.assertEqual(self.members(golden), self.members(found))

    def test_every_figure_of_it_follows_from_the_recipe(self):
        reports = json.loads((self.FOLDER / "report.json").read_text())["pools"]
        self.assertEqual([report["pool"] for report in reports], sorted(self.POOLS))
        for report in reports:
            before, after = report.pop("digest_before"), report.pop("digest_after")
            self.assertEqual(account.differences(self.report(report["pool"]), report, within=1e-12), [])
            self.assertEqual(before is None, report["pool"] == "wholly-new")
            self.assertEqual(before == after, report["pool"] == "same")
            self.assertRegex(after, "^[0-9a-f]{16}$")


class PlanCommand(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else yaml(content))
        return path

    def lists(self, before="abcd", after="abcde"):
        return (self.write("old.yaml", servers_text([server(n) for n in before])),
                self.write("new.yaml", servers_text([server(n) for n in after])))

    def report(self, *arguments, stdin=""):
        done = run("plan", "--json", *arguments, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        (report,) = json.loads(done.stdout)["pools"]
        return report, done.stderr

    def test_between_two_schemes_is_an_estimate_that_says_so(self):
        files = [self.write(f"{scheme}.yaml", configuration([server(n) for n in "abcd"], ring={"scheme": scheme}))
                 for scheme in ("ketama", "maglev")]
        report, _ = self.report(*files)
        self.assertEqual((report["scheme"], report["exact"]), ("maglev", False))
        self.assertAlmostEqual(report["moved_ratio"], 0.75, delta=0.05)
        self.assertEqual(report["needless_ratio"], report["moved_ratio"])
        self.assertEqual(report["minimum_ratio"], 0)
        text = run("plan", *files).stdout
        self.assertIn("new ring settings: about ", text)

    def test_what_a_change_costs(self):
        files = self.lists()
        report, _ = self.report("--hit-ratio", "90%", "--rate", "2000", *files)
        cost = report["cost"]
        self.assertEqual((cost["hit_ratio"], cost["requests_per_second"]), (0.9, 2000))
        self.assertAlmostEqual(cost["extra_fetches_per_second"], report["moved_ratio"] * 1800, delta=1e-6)
        self.assertNotIn("cost", self.report(*files)[0])
        text = run("plan", "--hit-ratio", "0.9", "--rate", "2000", *files).stdout
        self.assertRegex(text, r"at a hit ratio of 90 % and 2,000 requests/s: \d+ more fetches per second")

    def test_a_cost_that_cannot_be(self):
        files = self.lists()
        for flag, values in (("--rate", ["nan", "inf", "1e300", "-5", "1e3", ""]),
                             ("--hit-ratio", ["nan", "90", "-5%", "101%", "0x1", ""]),
                             ("--max-remap", ["nan", "20", "x"])):
            for value in values:
                done = run("plan", flag, value, *files)
                self.assertEqual((done.returncode, done.stdout), (2, ""), (flag, value))
                self.assertIn(f'{flag}: "{value}" is ', done.stderr)
        alone = run("plan", "--rate", "100", *files)
        self.assertEqual(alone.returncode, 0)
        self.assertIn("note: --rate tells what the change costs only with --hit-ratio", alone.stderr)
        self.assertNotIn("note", run("plan", "--rate", "100", "--hit-ratio", "90%", *files).stderr)

    def test_one_side_from_standard_input(self):
        before, after = self.lists()
        full = [self.write(f"{name}.yaml", configuration([server(n) for n in name])) for name in ("abcd", "abcde")]
        for old, new in ((before, after), full):
            expected, _ = self.report(old, new)
            self.assertEqual(self.report("-", new, stdin=old.read_text())[0], expected)
            self.assertEqual(self.report(old, "-", stdin=new.read_text())[0], expected)
        for arguments in (["-", "-"], ["--keys", "-", before, "-"]):
            done = run("plan", *arguments)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("only one of OLD, NEW and --keys can be standard input", done.stderr)
        done = run("plan", "-", after, stdin="servers: [")
        self.assertEqual(done.returncode, 1)
        self.assertIn("-:1", done.stderr)

    def test_a_change_after_which_no_key_has_an_owner(self):
        before, _ = self.lists("ab", "ab")
        after = self.write("down.yaml", servers_text([server(n, state="down") for n in "ab"]))
        text = run("plan", "--keys", "-", "--hit-ratio", "90%", before, after, stdin="/a\n/b\n").stdout
        self.assertIn("a now down, b now down: no key has an owner any more\n", text)
        self.assertIn("none of your 2 keys has an owner\n", text)
        self.assertNotIn("moved", text)

    def test_keys_from_a_file_and_from_stdin_count_alike(self):
        files = self.lists()
        keys = "".join(f"/item/{n}\n" for n in range(5000))
        by_file, _ = self.report("--keys", self.write("keys", keys), *files)
        by_stdin, _ = self.report("--keys", "-", *files, stdin=keys)
        self.assertEqual(by_file["keys"], by_stdin["keys"])
        self.assertEqual(by_file["keys"]["total"], 5000)
        self.assertAlmostEqual(by_file["keys"]["moved"] / 5000, by_file["moved_ratio"], delta=0.03)
        self.assertIn(f"{by_file['keys']['moved']:,} of 5,000 of your keys move",
                      run("plan", "--keys", "-", *files, stdin=keys).stdout)

    def test_keys_of_every_log_format_count_alike(self):
        files = self.lists()
        uris = [f"/item/{n}?page={n % 7}" for n in range(300)]
        combined = "".join(f'10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "GET {u} HTTP/1.1" 200 7 "-" "curl"\n'
                           for u in uris)
        formats = {
            "plain": "".join(u + "\n" for u in uris),
            "combined": combined + '10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "-" 400 0 "-" "-"\n',
            "nginx": "".join(json.dumps({"time": "t", "request_uri": u, "status": 200}) + "\n" for u in uris),
            "ours": "".join(json.dumps({"client": "10.0.0.1", "method": "GET", "target": u}) + "\n" for u in uris),
        }
        counted = {name: self.report("--keys", self.write(name, text), *files) for name, text in formats.items()}
        for name, (report, said) in counted.items():
            self.assertEqual(report["keys"], counted["plain"][0]["keys"], name)
            self.assertEqual("1 of 301 lines have no request" in said, name == "combined", said)

    def test_of_memcached_servers_the_keys_of_items_are_counted(self):
        def pool(count):
            names = [f"10.0.0.{n}:11211" for n in range(1, count + 1)]
            return self.write(f"mc{count}.yaml", json.dumps({
                "listeners": [{"name": "web", "address": "127.0.0.1:0", "pool": "mc"}],
                "pools": {"mc": {"protocol": "memcached",
                                 "servers": [{"name": name, "address": name} for name in names]}}}))

        def owners(path, keys):
            found = run("lookup", "-c", path, "-", stdin="".join(key + "\n" for key in keys))
            return [line.split("\t")[1] for line in found.stdout.splitlines()]

        targets = [f"/a%20b/{n}?q=%20" for n in range(500)] + [f"/{n}/{'x' * 300}" for n in range(500)]
        items = [f"/a%20b/{n}?q=%2520" for n in range(500)]
        for n in range(500):
            whole = f"/{n}/{'x' * 300}?"
            items.append(f"{whole[:217]}~{hashlib.sha256(whole.encode()).hexdigest()[:32]}")
        log = self.write("log", "".join(json.dumps({"method": "GET", "target": t}) + "\n" for t in targets))
        before, after = pool(4), pool(5)
        moved = sum(a != b for a, b in zip(owners(before, items), owners(after, items)))
        report, _ = self.report("--keys", log, before, after)
        self.assertEqual(report["keys"]["total"], 1000)
        self.assertEqual(report["keys"]["moved"], moved)

    def test_a_large_pool_fits_on_a_screen(self):
        names = [f"cache-{n:04}.example" for n in range(1000)]
        before = self.write("old.yaml", servers_text([server(n) for n in names]))
        after = self.write("new.yaml", servers_text([server(n) for n in names] + [server("fresh")]))
        done = run("plan", before, after)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertLess(len(lines), 60)
        self.assertLessEqual(max(map(len, lines)), 120)
        self.assertIn("and 981 more servers; --json has them all", done.stdout)
        self.assertNotIn("\x1b", done.stdout)

    def test_a_file_of_keys_that_cannot_be_read(self):
        done = run("plan", "--keys", self.folder / "absent", *self.lists())
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("absent: No such file or directory", done.stderr)


if __name__ == "__main__":
    unittest.main()
