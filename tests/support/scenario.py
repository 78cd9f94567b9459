"""What several integration tests start from: a proxy whose server list lives in a file of its own."""

import json
import os
import re

from support.clockwise import Proxy, configuration, wait_until, yaml
from support.page import Page


class Site(Proxy):
    """A proxy in front of `servers` (Origin objects or entries), read from upstreams.yaml.

    `pool`, `listener`, `ring` and further keys are merged into the configuration.
    """

    def __init__(self, servers, *, pool=None, files=None, environment=None, arguments=(), **config):
        document = configuration([], pool={**(pool or {}), "servers_from": {"file": "upstreams.yaml"}}, **config)
        del document["pools"]["pages"]["servers"]
        self.document = document
        super().__init__(document, files={"upstreams.yaml": servers_text(servers), **(files or {})},
                         environment=environment, arguments=arguments)
        self.servers_file = self.folder / "upstreams.yaml"

    @property
    def web(self):
        return "127.0.0.1", self.port()

    def write_servers(self, servers):
        """The way editors save: a new file renamed over the old one. Text is written as it is."""
        fresh = self.folder / ".upstreams.new"
        fresh.write_text(servers if isinstance(servers, str) else servers_text(servers), encoding="utf-8")
        os.rename(fresh, self.servers_file)

    def change(self, servers, force=False):
        """Writes the list, reloads and returns the REPORT of the pool; None when nothing changed."""
        last = self.newest_remap()
        self.write_servers(servers)
        answer = self.reload(force=force)
        if answer.status != 200:
            raise AssertionError(f"reload refused: {answer.text}")
        reports = answer.json()["pools"]
        if reports:
            return reports[0]
        # The watch may have been faster; then the call found nothing left to do.
        newest = self.newest_remap()
        return newest if newest != last else None

    def newest_remap(self):
        remaps = self.admin("/api/v1/remaps").json()["remaps"]
        return remaps[0] if remaps else None

    def pool(self):
        return self.admin("/api/v1/pools/pages").json()

    def page(self):
        return Page(self.admin("/metrics").text)

    def wait_metric(self, at_least, name, **labels):
        """Waits until the sum of these series reaches `at_least`; returns it."""
        return wait_until(lambda: (total := self.page().sum(name, **labels)) >= at_least and total,
                          lambda: f"{name}{labels} at {self.page().series(name)}, wanted {at_least}")

    def owners(self, keys):
        """{key: server} by `clockwise lookup` on the files as they are now."""
        from support.clockwise import run
        done = run("lookup", "-c", self.file, "--json", "-", stdin="".join(k + "\n" for k in keys))
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        return {entry["key"]: entry["server"] for entry in json.loads(done.stdout)["keys"]}

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) * 1024

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            words = stat.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def servers_text(servers):
    return yaml({"servers": [s if isinstance(s, dict) else s.entry() for s in servers]})
