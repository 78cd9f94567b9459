#!/usr/bin/env python3
"""Seeds for the fuzzers that read HTTP: the messages of the byte-exact cases in tests/golden/http1.

    seeds.py FOLDER    one file for each message, its first octet the seed of the cuts
"""

import hashlib
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support import conformance  # noqa: E402

LONGEST = 2000


def text(steps):
    """What a script sends, the repeated parts a few times."""
    parts = [step if isinstance(step, str) else step.get("drip", "") + step.get("rep", "") * min(step.get("n", 0), 3)
             for step in steps if isinstance(step, (str, dict)) and step not in ("@body", "@default")]
    return conformance.octets("".join(parts), b"tk0")


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for case in conformance.load(sorted((ROOT / "tests" / "golden" / "http1").glob("*.json"))):
        origin = case.get("origin", [])
        for script in [case["client"], *(origin if origin and isinstance(origin[0], list) else [origin])]:
            message = text(script)
            if 0 < len(message) <= LONGEST:
                name = hashlib.sha1(message).hexdigest()
                (folder / name).write_bytes(b"\1" + message)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
