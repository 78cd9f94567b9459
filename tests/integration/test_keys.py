"""ring.key decides: what a request is hashed by, and that it reaches the server that `clockwise lookup` names."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import configuration, run, wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site  # noqa: E402


class Keys(unittest.TestCase):
    def setUp(self):
        self.origins = [self.enterContext(Origin(name=name)) for name in "abcde"]

    def site(self, **ring):
        return self.enterContext(Site(self.origins, ring=ring, listener={"debug_headers": "on"}))

    def hashed_by(self, proxy, key):
        """What `clockwise lookup` says about a key: its hash and its server."""
        done = run("lookup", "-c", proxy.file, "--json", key)
        self.assertEqual(done.returncode, 0, done.stderr)
        entry = json.loads(done.stdout)["keys"][0]
        return int(entry["hash"]), entry["server"]

    def assert_key(self, proxy, key, target, headers=None, **options):
        answer = wire.fetch(proxy.web, target, headers=headers, **options)
        self.assertEqual(answer.status, 200, target)
        seen = int(answer.value("clockwise-key-hash")), answer.value("x-server")
        self.assertEqual(seen, self.hashed_by(proxy, key), f"{target} {headers} is not hashed by {key!r}")

    def test_parts_of_the_target(self):
        proxy = self.site(key="{path}|{query}|{query:id}")
        self.assert_key(proxy, "/a%2F//b|x=1&id=%41&id=2|%41", "/a%2F//b?x=1&id=%41&id=2")
        self.assert_key(proxy, "/a||", "/a")
        self.assert_key(proxy, "/a||", "/a?")

    def test_absolute_form_is_the_same_key_as_origin_form(self):
        proxy = self.site(key="{scheme}://{host}{uri}")
        key = "http://img.example/a//b?c=%20"
        self.assert_key(proxy, key, "/a//b?c=%20", host="Img.Example:8080")
        self.assert_key(proxy, key, "http://IMG.example:8080/a//b?c=%20", host="another.example")
        self.assert_key(proxy, "http://img.example/?q", "http://img.example?q")

    def test_a_header(self):
        proxy = self.site(key="{header:X-Tenant}")
        for tenant in ("one", "two", "three"):
            self.assert_key(proxy, tenant, f"/{tenant}/a", {"x-tenant": tenant})
            self.assert_key(proxy, tenant, "/b", {"X-TENANT": tenant})
        # Without the header the key would be empty.
        self.assert_key(proxy, "/b?c", "/b?c")

    def test_a_cookie(self):
        proxy = self.site(key="session {cookie:sid}")
        for session in ("0f3a", "1b7c"):
            for target in ("/", "/b"):
                self.assert_key(proxy, f"session {session}", target, {"Cookie": f"xsid=1; sid={session}; sid=2"})
        self.assert_key(proxy, "session ", "/", {"Cookie": "a=b"})

    def test_the_method_and_the_client(self):
        proxy = self.site(key="{method} {client_ip}")
        self.assert_key(proxy, "GET 127.0.0.1", "/a")
        self.assert_key(proxy, "PUT 127.0.0.1", "/b", method="PUT", body=b"x")

    def test_a_decoded_path(self):
        proxy = self.site(key="{path:decoded}?{query}")
        for target in ("/a b/c?d=%20", "/a%20b//./x/../c?d=%20", "/a%20b%2Fc?d=%20"):
            self.assert_key(proxy, "/a b/c?d=%20", target.replace("a b", "a%20b"))
        self.assert_key(proxy, "/a?", "/a")

    def test_a_normal_form_and_what_it_ignores(self):
        proxy = self.site(key="{uri:normalized}", key_ignore=["utm_*", "gclid"])
        for target in ("/%61?b=2&a=1", "/a?a=1&b=2", "/a?utm_source=x&a=%31&gclid=y&b=2", "/a?&b=2&&a=1"):
            self.assert_key(proxy, "/a?a=1&b=2", target)
            received = [r.target.decode() for origin in self.origins for r in origin.requests]
            self.assertEqual(received.count(target), 1, "the target goes on as it came")
        self.assert_key(proxy, "/a", "/a?utm_x")

    def test_a_key_that_changes_with_the_configuration(self):
        proxy = self.site()
        self.assert_key(proxy, "/a?b", "/a?b")
        proxy.document["pools"]["pages"]["ring"] = {"key": "{path}"}
        self.assertEqual(proxy.reload(proxy.document, force=True).status, 200)
        wait_until(lambda: int(wire.fetch(proxy.web, "/a?b").value("clockwise-key-hash"))
                   == self.hashed_by(proxy, "/a")[0], "requests hashed by the new key")

    def test_a_literal_brace_is_refused_with_its_place(self):
        proxy = self.site()
        for key, rule in (("{uri}}", "has a } without a {"), ("{header:}", "unknown placeholder {header:}")):
            proxy.write(configuration(["127.0.0.1:1"], ring={"key": key}))
            done = run("check", "-c", proxy.file)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f'pools.pages.ring.key: "{key}" {"has an " if "unknown" in rule else ""}{rule}', done.stderr)


if __name__ == "__main__":
    unittest.main()
