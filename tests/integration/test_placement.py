"""A pool configured as a peer was places every key where the peer did.

tests/golden/placement has the owners that each peer gave. The unit tests of the ring hold the
builders against them; here the whole way is walked, from YAML to `clockwise lookup`: parameters,
labels, ids, weights and states as a user writes them.
"""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.clockwise import ROOT, run, yaml  # noqa: E402

GOLDEN = ROOT / "tests" / "golden" / "placement"


def haproxy(parameters):
    hashing = {name: parameters[name] for name in ("hash", "avalanche") if name in parameters}
    return {"scheme": "haproxy", **hashing}


def envoy(parameters):
    names = {"min_ring": "min_size", "max_ring": "max_size", "hash": "hash"}
    return {"scheme": "envoy", **{names[name]: value for name, value in parameters.items()}}


def twemproxy(parameters):
    return {"scheme": "twemproxy", **parameters}


def libmemcached(parameters):
    named = {} if parameters["hash"] == "default" else parameters
    return {"scheme": "libmemcached", **named}


# From the scheme of a file and the parameters of a set to `ring:`. The Thai article is missing:
# its labels are binary, which no configuration can say.
RINGS = {
    "proposed-xxh64": lambda p: {"points": p["vnodes"]},
    "nginx-consistent": lambda p: {"scheme": "nginx"},
    "nginx-hash": lambda p: {"scheme": "nginx-hash"},
    "libketama": lambda p: {"scheme": "libketama"},
    "libmemcached-ketama-weighted": lambda p: {"scheme": "ketama"},
    "libmemcached-ketama": libmemcached,
    "libmemcached-ketama-spy": lambda p: {"scheme": "spymemcached", "form": "libmemcached", **p},
    "spymemcached-ketama": lambda p: {"scheme": "spymemcached"},
    "twemproxy": twemproxy,
    "haproxy-consistent": haproxy,
    "varnish-shard": lambda p: {"scheme": "varnish", "points": p.get("replicas", 67)},
    "envoy-ring-hash": envoy,
    "envoy-maglev": lambda p: {"scheme": "maglev", "table": p.get("table_size", 65537)},
    "seed-id-sha1": lambda p: {"scheme": "custom", "hash": "sha1", "points": p["vnodes"]},
    "seed-ja-sha256": lambda p: {"scheme": "custom", "hash": "sha256", "points": p["vnodes"],
                                 "label": "node:{name}:{i}", "bits": 256},
}


def server(index, given):
    """Named by its place in the list, which is what `owner` of a set counts."""
    out = {"name": f"s{index}", "address": f"127.0.0.1:{index + 1}",
           "label": given.get("label", given["name"])}
    out.update({name: given[name] for name in ("weight", "id") if name in given})
    if given.get("down"):
        out["state"] = "down"
    return out


def questions(vectors, one):
    """(key as it is looked up, index of its owner) for each key of a set that a line can hold."""
    parameters = one.get("params", {})
    cut = (vectors["scheme"] == "haproxy-consistent" and not parameters.get("whole")
           and parameters.get("balance") != "hdr")  # what its `balance uri` hashes
    for key, owner in zip(one.get("keys", vectors.get("keys")), one["owner"]):
        if "\n" not in key:
            yield (key.split("?", 1)[0] if cut else key), owner


class Placement(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.file = pathlib.Path(self.folder.name) / "clockwise.yaml"

    def look_up(self, vectors, one, asked):
        self.file.write_text(yaml({
            "listeners": [{"name": "web", "address": "127.0.0.1:0", "pool": "p"}],
            "pools": {"p": {"ring": RINGS[vectors["scheme"]](one.get("params", {})),
                            "servers": [server(i, s) for i, s in enumerate(one["servers"])]}}}))
        arguments = ["--hashes"] if one.get("keys_are_hashes") else []
        result = run("lookup", "-c", self.file, *arguments, "-",
                     stdin="".join(f"{key}\n" for key, _ in asked))
        self.assertEqual(result.returncode, 0, result.stderr)
        return [line.split("\t")[-2] for line in result.stdout.splitlines()]

    def test_every_vector_of_every_peer(self):
        graded = 0
        for path in sorted(GOLDEN.glob("*.json")):
            vectors = json.loads(path.read_text())
            if vectors["scheme"] not in RINGS:
                continue
            for one in vectors["sets"]:
                if "grid" in one:
                    continue  # a histogram, which the unit tests hold
                asked = list(questions(vectors, one))
                with self.subTest(path.stem, set=one["id"]):
                    owners = self.look_up(vectors, one, asked)
                    self.assertEqual(owners, [f"s{owner}" for _, owner in asked])
                    graded += len(asked)
        self.assertGreater(graded, 40_000)

    def test_a_position_beyond_the_ring_is_refused(self):
        servers = [{"name": "10.0.0.1:80"}, {"name": "10.0.0.2:80"}]
        vectors, one = {"scheme": "nginx-consistent"}, {"servers": servers, "keys_are_hashes": True}
        self.assertEqual(len(self.look_up(vectors, one, [("4294967295", 0)])), 1)
        result = run("lookup", "-c", self.file, "--hashes", "4294967296")
        self.assertEqual(result.returncode, 1)
        self.assertIn('"4294967296" is not a position of this ring, 0 to 4294967295', result.stderr)

    def test_every_scheme_has_vectors(self):
        files = {json.loads(path.read_text())["scheme"] for path in GOLDEN.glob("*.json")}
        self.assertEqual(files - set(RINGS), {"seed-th-siphash13"})


if __name__ == "__main__":
    unittest.main()
