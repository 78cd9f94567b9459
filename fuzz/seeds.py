#!/usr/bin/env python3
"""Seeds for the fuzzers of the protocols: what is sent and answered in the cases of tests/golden.

    seeds.py FOLDER    in its http, memcached_command and memcached_reply: one file for each message,
                       its first octet the seed of the cuts
"""

import hashlib
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import conformance  # noqa: E402

GOLDEN = ROOT / "tests" / "golden"
LONGEST = 2000


def text(steps):
    """What a script sends, the repeated parts a few times."""
    parts = [step if isinstance(step, str) else step.get("drip", "") + step.get("rep", "") * min(step.get("n", 0), 3)
             for step in steps if isinstance(step, (str, dict)) and step not in ("@body", "@default")]
    return conformance.octets("".join(parts), b"tk0")


def http():
    for case in conformance.load(sorted((GOLDEN / "http1").glob("*.json"))):
        origin = case.get("origin", [])
        for script in [case["client"], *(origin if origin and isinstance(origin[0], list) else [origin])]:
            yield text(script)


def memcached(side):
    for file in sorted((GOLDEN / "memcached").glob("*.json")):
        for case in json.loads(file.read_text())["cases"]:
            if isinstance(case[side], str):
                yield case[side].encode("latin-1")


def write(folder, messages):
    folder.mkdir(parents=True, exist_ok=True)
    for message in messages:
        if 0 < len(message) <= LONGEST:
            name = hashlib.sha1(message).hexdigest()
            (folder / name).write_bytes(b"\1" + message)


def main(folder):
    write(folder / "http", http())
    write(folder / "memcached_command", memcached(0))
    write(folder / "memcached_reply", memcached(1))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
