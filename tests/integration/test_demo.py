"""`clockwise demo --once` plays its scenario anywhere, fails no request and leaves nothing behind."""
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = os.environ.get("CLOCKWISE", str(ROOT / "build" / "release" / "clockwise"))


def processes_of(folder):
    """Command lines that name a file below this folder."""
    found = []
    for cmdline in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = cmdline.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(folder) in words:
            found.append(words)
    return found


class Demo(unittest.TestCase):
    def test_scenario_outside_a_checkout(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([BINARY, "demo", "--once"], cwd=folder, text=True, capture_output=True,
                                  timeout=240, env={**os.environ, "TMPDIR": folder})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout, r"added cache-5: \d+\.\d % of the keys moved to it, minimum "
                                          r"16\.7 %, 0 between other servers, 0 requests failed")
            self.assertIn("removed cache-2: ", done.stdout)
            self.assertIn("every one was answered by the owner of its key", done.stdout)
            self.assertNotIn("\x1b", done.stdout)
            self.assertEqual(os.listdir(folder), [])
            self.assertEqual(processes_of(folder), [])


if __name__ == "__main__":
    unittest.main()
