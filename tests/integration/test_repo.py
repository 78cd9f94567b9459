"""Rules that hold for the whole tree and that no compiler checks."""
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CODE = {".cpp", ".h", ".c", ".py", ".cmake", ".sh", ".md", ".yaml", ".yml", ".json", ".in", ""}


def tracked():
    """Files that belong to the project; a tarball without git is walked."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True)
    if listed.returncode == 0:
        paths = [ROOT / line for line in listed.stdout.splitlines()]
    else:
        paths = [p for p in ROOT.glob("**/*") if "build" not in p.relative_to(ROOT).parts]
    return sorted(p for p in paths if p.is_file())


def sources(suffixes):
    return [p for p in tracked() if p.suffix in suffixes and p.relative_to(ROOT).parts[0] == "src"]


def without_comments_and_strings(code):
    """The same text with comments and literals blanked, line numbers kept."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', re.S)
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), code)


def statements(code):
    """(line number, text) of each piece of code between `;`, `{` of a block and `}` of a block.

    Braces inside parentheses and after `=` or a name in an expression stay in their statement, so
    that a braced operand of co_await is seen whole.
    """
    start, depth = 0, 0
    for at, c in enumerate(code):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif depth == 0 and (c == ";" or (c == "{" and opens_block(code[start:at])) or c == "}"):
            yield code.count("\n", 0, start) + 1, code[start:at]
            start = at + 1


def opens_block(before):
    """A `{` opens a block unless the statement so far awaits something."""
    return "co_await" not in before or before.rstrip().endswith(")") and re.match(
        r"\s*(if|for|while|switch)\b", before) is not None


def await_fault(statement):
    """Why this statement is unsafe with g++ 12, or None."""
    awaits = [m.start() for m in re.finditer(r"\bco_await\b", statement)]
    if not awaits:
        return None
    if len(awaits) > 1:
        return "two co_await in one statement"
    operand = statement[awaits[0]:]
    if re.search(r"\?[^?]*:(?!:)", statement.replace("::", "  ")):
        return "co_await beside ?:"
    if "&&" in statement.replace("auto&&", "") or "||" in statement:
        return "co_await beside && or ||"
    if "{" in operand:
        return "a braced list in the operand of co_await"
    if re.search(r"[(,]\s*\[", operand):
        return "a lambda in the operand of co_await"
    return None


class CoAwait(unittest.TestCase):
    """g++ 12 miscompiles these forms without a warning: a double free at run time."""

    def test_sources_keep_to_one_plain_await_a_statement(self):
        for path in sources({".cpp", ".h"}):
            code = without_comments_and_strings(path.read_text())
            for line, statement in statements(code):
                with self.subTest(file=str(path.relative_to(ROOT)), line=line):
                    self.assertIsNone(await_fault(statement), statement.strip())

    def test_the_check_finds_what_it_looks_for(self):
        rows = {
            "plain": ("auto r = co_await f(a, b);", None),
            "discarded": ("co_await timer.async_wait(kTuple);", None),
            "two statements": ("auto a = co_await f(); auto b = co_await g();", None),
            "in a block": ("for (;;) { co_await f(x); }", None),
            "conditional": ("auto r = b ? co_await f() : 1;", "co_await beside ?:"),
            "and": ("if (a && co_await f()) { g(); }", "co_await beside && or ||"),
            "nested": ("co_await f(co_await g());", "two co_await in one statement"),
            "braces": ("co_await f(A{x, 1});", "a braced list in the operand of co_await"),
            "braced list": ("co_await f({x, 1});", "a braced list in the operand of co_await"),
            "lambda": ("co_await run([q](int i) { return i; });", "a braced list in the operand of co_await"),
            "a string that looks like one": ('log("co_await a ? b : c");', None),
            "a comment that looks like one": ("// co_await f(co_await g())\nf();", None),
        }
        for name, (code, wanted) in rows.items():
            with self.subTest(name):
                faults = [await_fault(s) for _, s in statements(without_comments_and_strings(code))]
                self.assertEqual([f for f in faults if f], [wanted] if wanted else [])


class Tree(unittest.TestCase):
    def test_required_top_level(self):
        for name in ("src", "config", "tests", "docker", "CMakeLists.txt", "README.md", "dev", "LICENSE",
                     "CHANGELOG.md", "CONTRIBUTING.md"):
            self.assertTrue((ROOT / name).exists(), name)

    def test_no_path_of_somebodys_machine(self):
        absolute = re.compile(r"(?<![\w./-])/(home|work|root|Users)/\w")
        for path in tracked():
            if path.suffix in CODE and path.name != pathlib.Path(__file__).name:
                text = path.read_text(errors="replace")
                with self.subTest(file=str(path.relative_to(ROOT))):
                    self.assertIsNone(absolute.search(text))

    def test_no_work_left_in_comments(self):
        marks = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")) + r")\b")
        for path in tracked():
            if path.suffix in {".cpp", ".h", ".py", ".cmake"}:
                with self.subTest(file=str(path.relative_to(ROOT))):
                    self.assertIsNone(marks.search(path.read_text()))

    def test_headers_are_guarded_and_say_what_they_are(self):
        for path in sources({".h"}):
            lines = path.read_text().splitlines()
            with self.subTest(file=str(path.relative_to(ROOT))):
                self.assertTrue(lines[0].startswith("// "), "opens with a comment")
                self.assertIn("#pragma once", lines)

    def test_links_between_documents_lead_somewhere(self):
        link = re.compile(r"\]\(([^)#:\s]+)(#[^)]*)?\)")
        for path in tracked():
            if path.suffix == ".md":
                for target, _ in link.findall(path.read_text()):
                    with self.subTest(file=str(path.relative_to(ROOT)), link=target):
                        self.assertTrue((path.parent / target).exists())


if __name__ == "__main__":
    unittest.main()
