"""What a user can see is documented: commands and flags, options, metrics, verbs of ./dev."""
import json
import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("CLOCKWISE", str(ROOT / "build" / "release" / "clockwise"))


def text(name):
    return (ROOT / name).read_text()


def help_of(*command):
    return subprocess.run([BINARY, *command, "--help"], capture_output=True, text=True, timeout=60).stdout


def property_names(schema):
    """Every key that the schema lets a user write, wherever it stands."""
    if isinstance(schema, dict):
        for name, below in schema.get("properties", {}).items():
            yield name
            yield from property_names(below)
        for key, below in schema.items():
            if key != "properties":
                yield from property_names(below)
    elif isinstance(schema, list):
        for below in schema:
            yield from property_names(below)


class Documented(unittest.TestCase):
    def test_every_command_and_flag(self):
        page = text("docs/cli.md")
        commands = re.findall(r"^  ([a-z]+)  ", help_of(), re.M)
        self.assertIn("serve", commands)
        for command in commands:
            with self.subTest(command=command):
                self.assertTrue(f"## {command}\n" in page)
            for flag in set(re.findall(r"--[a-z][a-z-]+", help_of(command))) - {"--help"}:
                with self.subTest(command=command, flag=flag):
                    self.assertTrue(flag in page)

    def test_every_option_of_the_configuration(self):
        page = text("docs/configuration.md") + text("config/every-option.yaml")
        for name in sorted(set(property_names(json.loads(text("config/clockwise.schema.json"))))):
            with self.subTest(option=name):
                self.assertTrue(re.search(rf"\b{re.escape(name)}\b", page))

    def test_every_metric(self):
        page = text("docs/metrics.md")
        sources = "".join(p.read_text() for p in (ROOT / "src").glob("*/*.cpp"))
        metrics = set(re.findall(r'"(clockwise_[a-z0-9_]+)"', sources))
        self.assertTrue(metrics)
        for name in sorted(metrics):
            with self.subTest(metric=name):
                self.assertTrue(name in page)

    def test_every_verb(self):
        page = text("docs/building.md") + text("README.md")
        verbs = re.findall(r"^  ([a-z]+) ", subprocess.run(
            [ROOT / "dev", "--help"], capture_output=True, text=True, timeout=60).stdout, re.M)
        self.assertIn("demo", verbs)
        for verb in verbs:
            with self.subTest(verb=verb):
                self.assertTrue(f"./dev {verb}" in page)

    def test_every_failure_mode_names_tests_that_exist(self):
        tests = set()
        for file in (ROOT / "tests" / "integration").glob("test_*.py"):
            tests.update(re.findall(r"^ +def (test_\w+)", file.read_text(), re.M))
        for file in (ROOT / "tests" / "unit").glob("*/*_test.cpp"):
            tests.update(".".join(names) for names in re.findall(r"^TEST(?:_[FP])?\((\w+), (\w+)\)", file.read_text(), re.M))
        rows = [line for line in text("docs/failure-modes.md").splitlines()
                if line.startswith("|") and not line.startswith(("| fault |", "| --- |"))]
        self.assertGreater(len(rows), 30)
        for row in rows:
            fault, *_, last = [cell.strip() for cell in row.strip("|").split(" | ")]
            with self.subTest(fault=fault):
                named = re.findall(r"`([\w.]+)`", last)
                self.assertTrue(named, "the last column names no test")
                self.assertEqual([name for name in named if name not in tests], [])

    def test_changelog_has_an_unreleased_section(self):
        self.assertIn("## [Unreleased]", text("CHANGELOG.md"))


if __name__ == "__main__":
    unittest.main()
