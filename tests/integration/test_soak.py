"""Everything at once for a while; afterwards nothing is left of it.

Clients that ask, pipeline, abort, drip and do not read; servers that fail, stall and come back; reloads of
the list, the workers and the log. Memory, descriptors and every gauge return to where they began.
"""

import os
import pathlib
import random
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import SANITIZED, wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site  # noqa: E402

SECONDS = 12
MIB = 1 << 20
GAUGES = ["clockwise_http_requests_in_flight", "clockwise_backend_requests_in_flight", "clockwise_http_connections"]


def trouble(exchange):
    """What the server does depends on the target."""
    target = exchange.request.target
    if target.startswith(b"/reset"):
        exchange.reset()
    if target.startswith(b"/cut"):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\npart")
        exchange.reset()
    if target.startswith(b"/slow"):
        time.sleep(0.2)
    if target.startswith(b"/big"):
        exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4194304\r\n\r\n")
        for _ in range(64):
            exchange.send(b"x" * 65536)
        return
    exchange.read_body()
    exchange.reply(500 if target.startswith(b"/fail") else 200, b"x" * 1000)


class Clients:
    """Threads that misbehave until they are told to stop; `faults`: what must never be."""

    def __init__(self, address):
        self.address = address
        self.stop = threading.Event()
        self.faults, self.answers = [], 0
        kinds = [self.plain, self.plain, self.pipeline, self.abort, self.drip, self.no_reader, self.upload]
        self.threads = [threading.Thread(target=self.run, args=(kind, seed), daemon=True)
                        for seed, kind in enumerate(kinds)]
        for thread in self.threads:
            thread.start()

    def run(self, kind, seed):
        choose = random.Random(seed)
        while not self.stop.is_set():
            try:
                with wire.Connection(self.address, timeout=20) as connection:
                    kind(connection, choose)
            except (OSError, wire.Quiet, wire.Cut):
                pass

    def note(self, answer, what):
        self.answers += 1
        if answer.faults or answer.status not in (200, 408, 500, 502, 503, 504):
            self.faults.append((what, answer.status, answer.faults))

    def plain(self, connection, choose):
        for _ in range(choose.randint(1, 20)):
            target = choose.choice(["/a", "/b", "/fail", "/reset", "/cut", "/slow"]) + str(choose.randint(0, 99))
            answer = connection.request("GET", target)
            self.note(answer, target)
            if answer.cut or b"close" in answer.tokens("connection"):
                return

    def pipeline(self, connection, choose):
        count = choose.randint(2, 30)
        connection.send(b"".join(wire.request_text("GET", f"/p{n}") for n in range(count)))
        for _ in range(choose.randint(0, count)):
            self.note(connection.response(), "pipeline")

    def abort(self, connection, choose):
        connection.send(wire.request_text("GET", choose.choice(["/a", "/slow", "/big"]))[:choose.randint(1, 60)])
        wire.abort(connection.sock)

    def drip(self, connection, _):
        for octet in wire.request_text("GET", "/drip"):
            connection.send(bytes([octet]))
            time.sleep(0.005)
        self.note(connection.response(), "drip")

    def no_reader(self, connection, _):
        connection.send(wire.request_text("GET", "/big"))
        time.sleep(0.3)

    def upload(self, connection, choose):
        size = choose.choice([10, 100_000, 1_000_000])
        connection.send(b"POST /u HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size)
        connection.send(b"x" * (size if choose.random() < 0.7 else size // 2))
        if choose.random() < 0.7:
            self.note(connection.response(), "upload")

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(30)


class Soak(unittest.TestCase):
    def test_nothing_is_left_of_a_bad_day(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        servers = [self.enterContext(Origin(trouble, name=name)) for name in "abc"]
        proxy = self.enterContext(Site(
            servers, workers=2, access_log={"file": f"{folder}/0.log"},
            pool={"max_remap": "100%", "max_shrink": "100%", "timeouts": {"idle": "1s", "response": "2s"}},
            listener={"timeouts": {"idle": "2s", "write": "2s", "body": "2s", "header": "2s"}}))
        for number in range(200):
            wire.fetch(proxy.web, f"/{number}")
        wait_until(lambda: proxy.page().sum("clockwise_backend_connections") == 0, "idle connections closed")
        descriptors, memory = self.descriptors(proxy), proxy.resident_bytes()

        clients, end, round_ = Clients(proxy.web), time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            round_ += 1
            proxy.write_servers([s.entry() for s in servers if s.name != "abc"[round_ % 4:][:1]])
            self.assertEqual(proxy.reload(force=True).status, 200)
            servers[round_ % 3].drop_connections()
            if round_ % 3 == 0:
                document = {**proxy.document, "workers": 1 + round_ % 2,
                            "access_log": {"file": f"{folder}/{round_}.log"}}
                self.assertEqual(proxy.reload(document).status, 200)
            time.sleep(0.2)
        clients.end()
        self.assertEqual(proxy.reload({**proxy.document, "workers": 2}).status, 200)
        self.assertEqual(clients.faults, [])
        self.assertGreater(clients.answers, 100)

        for name in GAUGES + ["clockwise_backend_connections"]:
            wait_until(lambda name=name: proxy.page().sum(name) == 0,
                       lambda name=name: f"{name} back at 0: {proxy.page().series(name)}")
        # The log of another round, pipes that are kept for the next big body.
        wait_until(lambda: self.descriptors(proxy) <= descriptors + 2 * 2 * 32 + 4,
                   lambda: f"{descriptors} descriptors, not {self.descriptors(proxy)}")
        if not SANITIZED:
            wait_until(lambda: proxy.resident_bytes() <= memory + 16 * MIB,
                       lambda: f"{memory >> 20} MiB, not {proxy.resident_bytes() >> 20}")
        self.assertEqual(wire.fetch(proxy.web, "/after").status, 200)

    @staticmethod
    def descriptors(proxy):
        return len(os.listdir(f"/proc/{proxy.process.pid}/fd"))


if __name__ == "__main__":
    unittest.main()
