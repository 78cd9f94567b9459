"""HTTP/1.1 by the letter: the byte-exact cases of tests/golden/http1, judged by tests/support/conformance.py."""

import pathlib
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import conformance  # noqa: E402
from support.scenario import Site  # noqa: E402

CASES = TESTS / "golden" / "http1"


class Conformance(unittest.TestCase):
    def judge(self, file):
        """Every must-level case passes, none has a hard fault; the others are reported."""
        with conformance.ScriptedOrigin() as origin, Site([origin]) as proxy:
            runner = conformance.Runner(proxy.web, origin)
            for case in conformance.load([CASES / file]):
                verdict = runner.run(case)
                with self.subTest(case["id"]):
                    self.assertFalse(verdict.hard or (verdict.soft and verdict.level == "must"), str(verdict))
                if not verdict.passed and verdict.level != "must":
                    print(f"not as it should be: {verdict}", file=sys.stderr)
            self.assertEqual(runner.strays(), [], "requests at the origin that nobody sent")

    def test_cases(self):
        self.judge("cases.json")

    def test_more_cases(self):
        self.judge("more.json")


if __name__ == "__main__":
    unittest.main()
