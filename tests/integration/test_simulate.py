"""`clockwise simulate`: published runs to the digit, experiments of one's own, the picture."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.clockwise import BINARY, DEADLINE, run  # noqa: E402

# What the programs of the articles print.
PUBLISHED = {
    "sha256-3to4": [
        "modulo changed=74934 A=24841 B=24912 C=25394 D=24853",
        "1 token changed=6166 A=71518 B=16010 C=6306 D=6166",
        "128 tokens changed=26510 A=23047 B=25048 C=25395 D=26510",
    ],
    "sha1-4to5": [
        "moved share: modulo 0.79931, ring 0.2166, all to e",
        "1 token a=31181 b=12292 c=4595 d=51932",
        "150 tokens a=24708 b=23553 c=24735 d=27004",
    ],
    "siphash-4to5": [
        "modulo moved 79759",
        "1 token moved 21811, load 9435 12964 30800 24990 21811",
        "10 tokens moved 21213, load 15269 20689 24837 17992 21213",
        "50 tokens moved 17352, load 24833 22778 19146 15891 17352",
        "100 tokens moved 19195, load 21347 19633 21701 18124 19195",
        "200 tokens moved 19377, load 17961 19792 21131 21739 19377",
        "500 tokens moved 19911, load 19831 20705 19780 19773 19911",
    ],
}
ROW = {"scheme", "points", "servers_before", "servers_after", "keys", "moved", "moved_ratio",
       "minimum_ratio", "needless_ratio", "max_over_mean", "max_over_min", "deviation_ratio",
       "counts"}


def simulate(*arguments):
    return run("simulate", *arguments, deadline=3 * DEADLINE)


def rows(*arguments):
    result = simulate(*arguments, "--json")
    assert result.returncode == 0 and result.stderr == "", result.stderr
    return json.loads(result.stdout)["rows"]


class Presets(unittest.TestCase):
    def test_print_the_published_figures(self):
        for preset, lines in PUBLISHED.items():
            with self.subTest(preset):
                result = simulate("--preset", preset)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                printed = result.stdout.splitlines()
                for line in lines:
                    self.assertTrue(any(found.startswith(line) for found in printed),
                                    f"{line} is not in\n{result.stdout}")

    def test_as_json(self):
        modulo, one, many = rows("--preset", "sha256-3to4")
        self.assertEqual([row["scheme"] for row in (modulo, one, many)],
                         ["modulo", "custom", "custom"])
        self.assertEqual([row["points"] for row in (modulo, one, many)], [None, 1, 128])
        self.assertEqual([row["moved"] for row in (modulo, one, many)], [74934, 6166, 26510])
        self.assertEqual(many["counts"], {"A": 23047, "B": 25048, "C": 25395, "D": 26510})
        self.assertEqual((many["servers_before"], many["servers_after"]), (3, 4))

    def test_are_listed(self):
        listed = simulate("--preset", "list").stdout
        self.assertEqual([line.split()[0] for line in listed.splitlines()], list(PUBLISHED))
        named = json.loads(simulate("--preset", "list", "--json").stdout)["presets"]
        self.assertEqual([preset["name"] for preset in named], list(PUBLISHED))

    def test_a_full_disk_is_an_error_of_any_command(self):
        for arguments in (["simulate", "--preset", "list"], ["simulate", "--preset", "list", "--json"],
                          ["--help"], ["simulate", "--keys", "10", "--points", "1"]):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                done = subprocess.run([BINARY, *arguments], stdout=full, stderr=subprocess.PIPE, text=True,
                                      timeout=DEADLINE, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn("cannot write to standard output: No space left on device", done.stderr)

    def test_a_wrong_name_gets_the_right_ones(self):
        result = simulate("--preset", "sha256-3to5")
        self.assertEqual(result.returncode, 1)
        self.assertIn('did you mean "sha256-3to4"?', result.stderr)

    def test_take_no_settings(self):
        self.assertEqual(simulate("--preset", "sha256-3to4", "--keys", "10").returncode, 2)


class Experiments(unittest.TestCase):
    def test_rows_are_as_documented(self):
        found = rows("--keys", "2000", "--points", "1,100", "--scheme",
                     "modulo,clockwise,slots,rendezvous,jump,maglev,bounded")
        self.assertEqual([(row["scheme"], row["points"]) for row in found],
                         [("modulo", None), ("clockwise", 1), ("clockwise", 100), ("slots", None),
                          ("rendezvous", None), ("jump", None), ("maglev", None), ("bounded", 1),
                          ("bounded", 100)])
        for row in found:
            with self.subTest(row["scheme"]):
                self.assertEqual(set(row), ROW)
                self.assertEqual((row["keys"], row["servers_before"], row["servers_after"]),
                                 (2000, 4, 5))
                self.assertEqual(sum(row["counts"].values()), 2000)
                self.assertAlmostEqual(row["moved_ratio"], row["moved"] / 2000, 15)
                self.assertAlmostEqual(row["minimum_ratio"], 0.2, 15)
                mean = 2000 / 5
                counts = row["counts"].values()
                self.assertAlmostEqual(row["max_over_mean"], max(counts) / mean, 12)
                if min(counts):
                    self.assertAlmostEqual(row["max_over_min"], max(counts) / min(counts), 12)
                deviation = (sum((count - mean) ** 2 for count in counts) / 5) ** 0.5 / mean
                self.assertAlmostEqual(row["deviation_ratio"], deviation, 12)

    def test_what_moves_needlessly(self):
        by_scheme = {row["scheme"]: row for row in rows(
            "--scheme", "modulo,clockwise,slots,rendezvous,jump", "--points", "100")}
        self.assertGreater(by_scheme["modulo"]["needless_ratio"], 0.5)
        for scheme in ("clockwise", "slots", "rendezvous", "jump"):
            self.assertEqual(by_scheme[scheme]["needless_ratio"], 0, scheme)

    def test_shrinking_and_weights(self):
        row, = rows("--scheme", "clockwise", "--points", "200", "--nodes", "A=2,B,C", "--remove", "B")
        self.assertEqual((row["servers_before"], row["servers_after"]), (3, 2))
        self.assertAlmostEqual(row["minimum_ratio"], 0.25, 12)
        self.assertEqual((row["needless_ratio"], set(row["counts"])), (0, {"A", "C"}))

    def test_parameters_reach_their_scheme(self):
        plain, = rows("--scheme", "custom", "--points", "50", "--keys", "1000")
        other, = rows("--scheme", "custom", "--points", "50", "--keys", "1000", "--hash", "sha256",
                      "--label", "node:{name}:{i}", "--bits", "256")
        self.assertNotEqual(plain["counts"], other["counts"])
        published, = rows("--scheme", "custom", "--hash", "sha256", "--label", "node:{name}:{i}",
                          "--bits", "256", "--points", "128", "--nodes", "A,B,C", "--add", "D")
        self.assertEqual(published["moved"], 26510)

    def test_every_scheme_of_the_product(self):
        for scheme in ("clockwise,nginx,nginx-hash,ketama,libketama,libmemcached,spymemcached,"
                       "twemproxy,haproxy,varnish,envoy,maglev,custom,modulo").split(","):
            with self.subTest(scheme):
                row = rows("--scheme", scheme, "--keys", "1000", "--points", "20", "--nodes",
                           "10.0.0.1:80,10.0.0.2:80", "--add", "10.0.0.3:80")[0]
                self.assertEqual(sum(row["counts"].values()), 1000)

    def test_the_table_shows_the_law(self):
        result = simulate("--keys", "20000", "--points", "1,100")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("20000 keys, key:0 to key:19999, on 4 servers, plus node-5; "
                      "at least 20.00 % must move.\n", result.stdout)
        self.assertRegex(result.stdout, r"clockwise +100 .* 0\.089 +0\.100\n")

    def test_what_is_wrong_is_said(self):
        cases = [
            (("--scheme", "clockwize"), 'no scheme "clockwize", did you mean "clockwise"?'),
            (("--scheme", "zzz"), "there is: clockwise, nginx,"),
            (("--nodes", "A,A"), "the server A is there twice"),
            (("--nodes", "A", "--remove", "B"), 'there is no server "B" among --nodes'),
            (("--nodes", "1", "--remove", "1"), "after the change there is no server"),
            (("--key-format", "key"), "needs {} once"),
            (("--keys", "0"), "0 keys"),
            (("--label", "{name}"), "takes the parameter label; custom would"),
            (("--scheme", "custom", "--hash", "sha265"), 'custom: hash "sha265" is none'),
            (("--scheme", "maglev", "--table", "100"), "maglev: "),
            (("--points", "1000000", "--nodes", "100"), "would fit"),
            (("--svg", "/no/such/folder/x.svg", "--keys", "10"), "/no/such/folder/x.svg: cannot be written"),
        ]
        for arguments, message in cases:
            with self.subTest(arguments):
                result = simulate(*arguments)
                self.assertEqual((result.returncode, result.stdout), (1, ""))
                self.assertIn(message, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)
        for arguments in (("--points", "0"), ("--points", "x"), ("--bits", "33"), ("--balance", "0.5")):
            with self.subTest(arguments):
                self.assertEqual(simulate(*arguments).returncode, 2)


class Picture(unittest.TestCase):
    def test_is_one_document_without_scripts_or_references(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "out.svg"
            result = simulate("--svg", file, "--keys", "2000", "--points", "1,10,100", "--json")
            self.assertEqual(result.returncode, 0, result.stderr)
            text = file.read_text()
        root = xml.etree.ElementTree.fromstring(text)
        space = "{http://www.w3.org/2000/svg}"
        self.assertEqual(root.tag, space + "svg")
        self.assertEqual(len(root.findall(f".//{space}circle")), 3 * 5 + 1)
        words = " ".join("".join(element.itertext()) for element in root.iter(space + "text"))
        for word in ("Keys that moved", "1/√V", "modulo", "clockwise, 100 points", "20.0 %"):
            self.assertIn(word, words)
        for foreign in ("<script", "href", "url("):
            self.assertNotIn(foreign, text)


if __name__ == "__main__":
    unittest.main()
