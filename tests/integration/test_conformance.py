"""HTTP/1.1 by the letter: the byte-exact cases of tests/golden/http1, judged by tests/support/conformance.py.

The four ways in which the octets of a case may come run side by side, each against a proxy of its own.
The case files come in every way; of the tables each case comes in one, in turn, so that a table has them
all. CLOCKWISE_EVERY_WAY=1 has every case come in every way.
"""

import concurrent.futures
import os
import pathlib
import sys
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import conformance  # noqa: E402
from support.scenario import Site  # noqa: E402

CASES = TESTS / "golden" / "http1"
EVERY_WAY = bool(os.environ.get("CLOCKWISE_EVERY_WAY"))


def lane(number, cases):
    """The verdicts on these cases in one of the ways, and the requests that nobody sent."""
    way = conformance.WAYS[number]
    with conformance.ScriptedOrigin() as origin, \
            Site([origin], workers=1 + number % 2, listener={"debug_headers": number > 1}) as proxy:
        runner = conformance.Runner(proxy.web, origin)
        return [runner.run(case, way) for case in cases if conformance.comes(case, way)], runner.strays()


class Conformance(unittest.TestCase):
    def judge(self, lanes):
        """Every must-level case passes, none has a hard fault; the others are reported."""
        with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
            for verdicts, strays in pool.map(lane, range(len(lanes)), lanes):
                for verdict in verdicts:
                    with self.subTest(verdict.id):
                        self.assertFalse(verdict.hard or (verdict.soft and verdict.level == "must"), str(verdict))
                    if not verdict.passed and verdict.level != "must":
                        print(f"not as it should be: {verdict}", file=sys.stderr)
                self.assertEqual(strays, [], "requests at the origin that nobody sent")

    def test_cases(self):
        cases = conformance.load([CASES / "cases.json", CASES / "more.json"])
        self.judge([cases] * len(conformance.WAYS))

    def test_tables(self):
        cases = conformance.load([CASES / "tables.json"])
        ways = len(conformance.WAYS)
        self.judge([cases] * ways if EVERY_WAY else [cases[n::ways] for n in range(ways)])


if __name__ == "__main__":
    unittest.main()
