"""The schema for editors and `clockwise check` judge the same files alike.

The files of tests/golden/config that say `# schema accepts` or `# schema refuses` are JSON below
their first comment lines, so that both can read them. What the program refuses for its meaning (a
name used twice, a pool that is not there) no schema can know: those files do not say it.
"""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.clockwise import ROOT, run  # noqa: E402
from support.json_schema import Schema  # noqa: E402

GOLDEN = ROOT / "tests" / "golden" / "config"
MAIN = Schema(ROOT / "config" / "clockwise.schema.json")
UPSTREAMS = Schema(ROOT / "config" / "upstreams.schema.json")


def judged_by_both(verdict):
    """(path, document) of each golden file that both must judge so."""
    for path in sorted(GOLDEN.glob("*/*.yaml")):
        lines = path.read_bytes().decode("utf-8", "replace").splitlines()
        if f"# schema {verdict}" in lines:
            yield path, json.loads("\n".join(line for line in lines if not line.startswith("#")))


def below(node):
    """The schemas in a map, but for rules on settings that stand elsewhere."""
    return [child for keyword, child in node.items() if keyword != "allOf"]


def settings(node):
    """Every (name, schema) of a setting."""
    if isinstance(node, dict):
        for name, child in node.get("properties", {}).items():
            yield name, child
        for child in below(node):
            yield from settings(child)
    elif isinstance(node, list):
        for child in node:
            yield from settings(child)


def maps(node):
    if isinstance(node, dict):
        if "properties" in node:
            yield node
        for child in below(node):
            yield from maps(child)
    elif isinstance(node, list):
        for child in node:
            yield from maps(child)


class Agreement(unittest.TestCase):
    def test_both_accept_the_good_files(self):
        files = list(judged_by_both("accepts"))
        self.assertGreaterEqual(len(files), 8)
        for path, document in files:
            with self.subTest(path.name):
                self.assertEqual(MAIN.faults(document), [])
                result = run("check", "-c", path)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_both_refuse_the_bad_files(self):
        files = list(judged_by_both("refuses"))
        self.assertGreaterEqual(len(files), 60)
        for path, document in files:
            with self.subTest(path.name):
                self.assertNotEqual(MAIN.faults(document), [])
                result = run("check", "-c", path)
                self.assertEqual(result.returncode, 1, result.stdout)

    def test_every_server_list_is_an_upstream_file_too(self):
        for path, document in judged_by_both("accepts"):
            for pool in document["pools"].values():
                with self.subTest(path.name):
                    self.assertEqual(UPSTREAMS.faults({"servers": pool["servers"]}), [])
        self.assertNotEqual(UPSTREAMS.faults({"server": []}), [])
        self.assertNotEqual(UPSTREAMS.faults({"servers": []}), [])


class Shape(unittest.TestCase):
    def test_every_setting_says_what_it_is_and_its_default(self):
        for schema in (MAIN, UPSTREAMS):
            for name, setting in settings(schema.root):
                with self.subTest(name):
                    self.assertIn("description", setting)
                    self.assertIn("default", setting)

    def test_no_map_takes_unknown_keys(self):
        for schema in (MAIN, UPSTREAMS):
            for one in maps(schema.root):
                self.assertIs(one.get("additionalProperties"), False, list(one["properties"]))

    def test_the_defaults_are_valid(self):
        # Needed, or the name of the server: no value of their own to show.
        exceptions = {"listeners", "pools", "servers", "servers_from", "label", "id"}
        for name, setting in settings(MAIN.root):
            if name not in exceptions:
                with self.subTest(name):
                    self.assertEqual(list(MAIN._faults(setting, setting["default"], name)), [])


if __name__ == "__main__":
    unittest.main()
