"""`clockwise check` and `clockwise init` as a user meets them."""

import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.clockwise import ROOT, run  # noqa: E402


class Check(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name) / "clockwise.yaml"

    def test_the_shipped_files_are_valid_and_without_warnings(self):
        for name in ("clockwise.yaml", "every-option.yaml", "nginx-drop-in.yaml",
                     "haproxy-drop-in.yaml"):
            with self.subTest(name):
                result = run("check", "-c", ROOT / "config" / name)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn("is valid: 1 listener, 1 pool,", result.stdout)

    def test_every_problem_is_printed_with_its_place(self):
        self.file.write_text("workerz: 2\nworkers: 0\n")
        result = run("check", "-c", self.file)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f'{self.file}:1:1: workerz: unknown key "workerz", did you mean "workers"?\n'
                      "  workerz: 2\n  ^\n", result.stderr)
        self.assertIn(f"{self.file}:2:10: workers: ", result.stderr)
        self.assertIn("is not valid: 4 problems", result.stderr)

    def test_what_is_not_a_file_is_named(self):
        for path, reason in ((self.file, "no such file"), (self.folder.name, "is a directory")):
            result = run("check", "-c", path)
            self.assertEqual(result.returncode, 1)
            self.assertIn(f"{path}: cannot be read: {reason}", result.stderr)

    def test_a_pipe_does_not_block(self):
        os.mkfifo(self.file)
        result = run("check", "-c", self.file)
        self.assertEqual(result.returncode, 1)
        self.assertIn("is not a regular file", result.stderr)

    def test_variables_come_from_the_environment(self):
        text = (ROOT / "config" / "clockwise.yaml").read_text()
        self.file.write_text(text.replace("upstreams.yaml", str(ROOT / "config" / "upstreams.yaml"))
                             + "\nworkers: ${CLOCKWISE_TEST_WORKERS}\n")
        self.assertEqual(run("check", "-c", self.file).returncode, 1)
        self.assertEqual(
            run("check", "-c", self.file, environment={"CLOCKWISE_TEST_WORKERS": "3"}).returncode, 0)

    def test_problems_of_the_upstream_file_carry_its_path(self):
        (self.file.parent / "list.yaml").write_text("servers:\n  - {name: a, address: 1}\n")
        self.file.write_text("listeners: [{name: web, address: '127.0.0.1:0', pool: p}]\n"
                             "pools: {p: {servers_from: {file: list.yaml}}}\n")
        result = run("check", "-c", self.file)
        self.assertIn(f'{self.file.parent / "list.yaml"}:2:24: servers[0].address: "1"',
                      result.stderr)


    def test_what_would_stop_the_start_is_found_too(self):
        log = self.file.parent / "none" / "access.log"
        self.file.write_text("listeners: [{name: web, address: '127.0.0.1:0', pool: p}]\n"
                             "pools: {p: {servers: [{name: a, address: 'nowhere.invalid:80'}]}}\n"
                             f"access_log: {{file: {log}}}\n")
        result = run("check", "-c", self.file)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f'{self.file}:2:42: pools.p.servers[0].address: "nowhere.invalid:80" '
                      "does not resolve\n", result.stderr)
        self.assertIn(f"{self.file}:3:20: access_log.file: cannot open {log}: ", result.stderr)
        self.file.write_text("listeners: [{name: web, address: '127.0.0.1:0', pool: p}]\n"
                             "pools: {p: {servers: [{name: a, address: '10.0.0.1:80'}]}}\n"
                             f"access_log: {{file: {log.parent.parent / 'access.log'}}}\n")
        self.assertEqual(run("check", "-c", self.file).returncode, 0)
        self.assertFalse((log.parent.parent / "access.log").exists())

    def test_the_access_log_stands_beside_the_file(self):
        self.file.write_text("listeners: [{name: web, address: '127.0.0.1:0', pool: p}]\n"
                             "pools: {p: {servers: [{name: a, address: '10.0.0.1:80'}]}}\n"
                             "access_log: {file: logs/access.log}\n")
        log = self.file.parent / "logs" / "access.log"
        self.assertIn(f"access_log.file: cannot open {log}: ", run("check", "-c", self.file).stderr)
        log.parent.mkdir()
        self.assertEqual(run("check", "-c", self.file).returncode, 0)


class Lookup(unittest.TestCase):
    def test_a_key_is_taken_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "clockwise.yaml"
            file.write_text("listeners: [{name: web, address: '127.0.0.1:0', pool: p}]\n"
                            "pools: {p: {servers: [{name: a, address: '10.0.0.1:80'}]}}\n")
            keys = ["/a", "", "[a,b]", "[]", "++", "\x01a", "%%", "'q'", '"q"', "a,b", "check", " "]
            result = run("lookup", "-c", file, *keys)
            self.assertEqual(result.stdout, "".join(f"{key}\ta\t10.0.0.1:80\n" for key in keys))


    def test_of_memcached_servers_a_key_is_that_of_the_item(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "clockwise.yaml"
            file.write_text("listeners: [{name: mc, address: '127.0.0.1:0', protocol: memcached, pool: p}]\n"
                            "pools:\n  p:\n    protocol: memcached\n    ring: {replicas: 2}\n    servers:\n"
                            "      - {name: a, address: '10.0.0.1:11211', label: '10.0.0.1:11211'}\n"
                            "      - {name: b, address: '10.0.0.2:11211', label: '10.0.0.2:11211'}\n"
                            "      - {name: c, address: '10.0.0.3:11211', label: '10.0.0.3:11211'}\n"
                            "    memcached: {namespace: 'app:'}\n")
            plain = run("lookup", "-c", file, "user:1", "app:user:1")
            owners = [line.split("\t")[1] for line in plain.stdout.splitlines()]
            self.assertEqual(owners, [owners[0]] * 2, plain.stderr)
            two = run("lookup", "-c", file, "--replicas", 2, "user:1").stdout.rstrip("\n").split("\t")
            key = json.loads(run("lookup", "-c", file, "--json", "app:user:1").stdout)["keys"][0]
            self.assertEqual(key["key"], "app:user:1")
            self.assertEqual(key["replicas"], [two[1], two[3]])
            explained = json.loads(run("explain", "-c", file, "--json", "app:user:1").stdout)
            self.assertEqual(explained["canonical_key"], "user:1")
            self.assertEqual(explained["replicas"], key["replicas"])


class Init(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_the_starter_is_valid(self):
        file = pathlib.Path(self.folder.name) / "new.yaml"
        self.assertEqual(run("init", file).returncode, 0)
        self.assertTrue(file.read_text().startswith(
            "# yaml-language-server: $schema=./clockwise.schema.json\n"))
        result = run("check", "-c", file)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_file_is_never_overwritten(self):
        file = pathlib.Path(self.folder.name) / "mine.yaml"
        file.write_text("mine\n")
        result = run("init", file)
        self.assertEqual(result.returncode, 1)
        self.assertIn("exists already", result.stderr)
        self.assertEqual(file.read_text(), "mine\n")

    def test_a_missing_folder_is_an_error(self):
        self.assertEqual(run("init", pathlib.Path(self.folder.name) / "no" / "x.yaml").returncode, 1)


if __name__ == "__main__":
    unittest.main()
