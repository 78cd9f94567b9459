"""The arrows between modules point one way: every #include agrees with CMakeLists.txt."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULE = re.compile(r"^clockwise_module\((\w+)\s+USES\s*([^)]*)\)", re.M)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def arrows():
    text = (ROOT / "CMakeLists.txt").read_text()
    return {name: set(used.split()) for name, used in MODULE.findall(text)}


def includes():
    """(file, module of the file, included path), for all of src/ below its modules."""
    for path in sorted((ROOT / "src").glob("*/**/*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        module = path.relative_to(ROOT / "src").parts[0]
        for included in INCLUDE.findall(path.read_text()):
            yield path.relative_to(ROOT), module, included


class Layers(unittest.TestCase):
    def test_every_include_follows_an_arrow(self):
        allowed = arrows()
        for path, module, included in includes():
            target = included.split("/")[0]
            with self.subTest(file=str(path), include=included):
                self.assertTrue((ROOT / "src" / included).is_file(), "no such header below src/")
                self.assertIn(target, allowed[module] | {module})

    def test_every_folder_is_a_declared_module(self):
        folders = {p.name for p in (ROOT / "src").iterdir() if p.is_dir()}
        self.assertEqual(folders - set(arrows()), set())

    def test_the_arrows_have_no_cycle(self):
        # A module may use only modules that are declared above it.
        above = set()
        for module, used in arrows().items():
            with self.subTest(module=module):
                self.assertLessEqual(used, above)
            above.add(module)

    def test_pure_modules_include_no_sockets_and_no_threads(self):
        impure = re.compile(
            r"#\s*include\s+<(boost/(asio|beast)[/.]|sys/socket|netinet/|sys/epoll|thread|mutex|fstream)")
        for module in ("ring", "simulate", "http", "memcached"):
            for path in sorted((ROOT / "src" / module).glob("**/*")):
                if path.suffix in (".h", ".cpp"):
                    with self.subTest(file=str(path.relative_to(ROOT))):
                        self.assertIsNone(impure.search(path.read_text()))


if __name__ == "__main__":
    unittest.main()
