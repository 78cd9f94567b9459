"""Routes of a listener: host and path say which pool answers, also while the configuration changes."""

import copy
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import Proxy, configuration, wait_until  # noqa: E402
from support.load import Load  # noqa: E402
from support.origin import Origin, echo  # noqa: E402
from support.page import Page  # noqa: E402
from support.ring import Ring  # noqa: E402

THUMBS = {"match": {"host": "img.example.com", "path_prefix": "/thumb/"}, "pool": "images"}


class Site(unittest.TestCase):
    """One listener before the pool `pages` and others; each pool has the servers of its name."""

    def start(self, routes, handler=echo, pools=None, listeners=()):
        """`pools`: {name: {"servers": "ab", further settings}}, a letter for each server; `listeners`: more of them."""
        pools = pools or {"images": {"servers": "i"}}
        names = "p" + "".join(pool["servers"] for pool in pools.values())
        self.origins = {name: self.enterContext(Origin(handler, name=name)) for name in names}
        self.document = configuration([self.origins["p"].entry()], listener={"routes": routes}, workers=2)
        self.document["listeners"] += listeners
        for name, pool in pools.items():
            self.document["pools"][name] = {**pool, "servers": [self.origins[n].entry() for n in pool["servers"]]}
        self.proxy = self.enterContext(Proxy(self.document))
        self.web = ("127.0.0.1", self.proxy.port())

    def changed(self, **listener):
        """The document with other settings of its listener."""
        document = copy.deepcopy(self.document)
        document["listeners"][0].update(listener)
        return document

    def reload(self, document):
        answer = self.proxy.reload(document, force=True)
        self.assertEqual(answer.status, 200, answer.text)

    def server_of(self, target, host):
        return wire.fetch(self.web, target, host=host).value("x-server")

    def in_flight(self, target, host, address=None):
        """A client that waits for the answer."""
        client = self.enterContext(wire.Connection(address or self.web))
        client.send(wire.request_text("GET", target, host=host))
        return client

    def seen(self, name):
        return len(self.origins[name].requests)

    def queued(self, requests):
        wait_until(lambda: Page(self.proxy.admin("/metrics").text).sum("clockwise_backend_queue") == requests,
                   f"{requests} requests in the queue")


class Matching(Site):
    def test_the_first_route_that_matches_names_the_pool(self):
        self.start([THUMBS, {"match": {"host": "*.example.com"}, "pool": "sub"},
                    {"match": {"path_prefix": "/thumb/"}, "pool": "pages"},
                    {"match": {"path_prefix": "/th"}, "pool": "sub"}],
                   pools={"images": {"servers": "i"}, "sub": {"servers": "s"}})
        for target, host, server in [
                ("/thumb/1", "img.example.com", "i"), ("/thumb/1", f"IMG.Example.com:{self.web[1]}", "i"),
                ("/full/1", "img.example.com", "s"), ("/thumb/1", "a.b.example.com", "s"),
                ("/thumb/1", "example.com", "p"), ("/this", "example.com", "s"),
                ("/", "example.com", "p"), ("/?/thumb/", "example.com", "p"),
                ("http://img.example.com/thumb/2", "example.com", "i")]:
            with self.subTest(target=target, host=host):
                self.assertEqual(self.server_of(target, host), server)
        with wire.Connection(self.web) as connection:
            for host, server in [("example.com", "p"), ("img.example.com", "i"), ("example.com", "p")]:
                self.assertEqual(connection.request("GET", "/thumb/1", host=host).value("x-server"), server)

    def test_a_pool_of_a_route_has_its_own_settings(self):
        def failing(exchange):
            if exchange.origin.name == "i":
                exchange.read_body()
                return exchange.reply(503, b"not now")
            return echo(exchange)

        key = next(f"/thumb/{n}" for n in range(100)
                   if Ring({"i": 1, "j": 1}).owner(f"/thumb/{n}".encode()) == "i")
        self.start([THUMBS], failing, {"images": {"servers": "ij", "retry": {"on": ["503"]}}})
        self.assertEqual(self.server_of(key, "img.example.com"), "j")
        self.assertEqual((self.seen("i"), self.seen("j"), self.seen("p")), (1, 1, 0))

    def test_a_slow_server_of_a_route_has_its_request_asked_beside(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def slow(exchange):
            if exchange.origin.name == "i":
                go.wait(20)
            echo(exchange)

        key = next(f"/thumb/{n}" for n in range(100)
                   if Ring({"i": 1, "j": 1}).owner(f"/thumb/{n}".encode()) == "i")
        self.start([THUMBS], slow, {"images": {"servers": "ij", "hedge": {"after": "50ms", "budget": "100%"}}})
        self.assertEqual(self.server_of(key, "img.example.com"), "j")
        self.assertEqual((self.seen("i"), self.seen("j"), self.seen("p")), (1, 1, 0))


class Changes(Site):
    def test_no_request_fails_while_a_route_changes(self):
        self.start([THUMBS], pools={"images": {"servers": "i"}, "other": {"servers": "o"}})
        with Load(self.web, prefix="/thumb/", host="img.example.com") as load:
            for step in range(30):
                pool, server = [("other", "o"), ("images", "i"), ("pages", "p")][step % 3]
                routes = [] if pool == "pages" else [{**THUMBS, "pool": pool}]
                self.reload(self.changed(routes=routes))
                self.assertEqual(self.server_of("/thumb/1", "img.example.com"), server)
                load.wait_more()
                self.assertEqual(load.failures, [])
        self.assertEqual(load.failures, [])

    def test_an_unknown_pool_is_named_and_changes_nothing(self):
        self.start([THUMBS])
        answer = self.proxy.reload(self.changed(routes=[{**THUMBS, "pool": "image"}]))
        self.assertEqual(answer.status, 409)
        error = answer.json()["error"]
        self.assertIn('listeners[0].routes[0].pool: "image" is not a pool, did you mean "images"?', error["message"])
        lines = self.proxy.file.read_text().splitlines()
        position = error["position"]
        self.assertTrue(lines[position["line"] - 1][position["column"] - 1:].startswith("image"))
        self.assertEqual(self.server_of("/thumb/1", "img.example.com"), "i")

    def hold(self, routes, pools, **options):
        """Starts with servers that answer nothing until `self.go` is set."""
        self.go = threading.Event()
        self.addCleanup(self.go.set)

        def slow(exchange):
            if exchange.origin.name == "i":
                self.go.wait(20)
            echo(exchange)

        self.start(routes, slow, pools, **options)

    def test_who_waits_for_a_connection_stays_with_the_pool_of_its_route(self):
        self.hold([THUMBS], {"images": {"servers": "i", "connections": {"max": 1}}, "spare": {"servers": "s"}})
        first = self.in_flight("/thumb/1", "img.example.com")
        self.assertTrue(self.origins["i"].wait(lambda: self.seen("i") == 1))
        waiting = [self.in_flight("/thumb/1", "img.example.com") for _ in range(5)]
        self.queued(5)
        document = copy.deepcopy(self.document)
        document["pools"]["images"]["servers"] = [self.origins["s"].entry()]
        self.reload(document)
        for client in waiting:
            self.assertEqual(client.response().value("x-server"), "s")
        self.go.set()
        self.assertEqual(first.response().value("x-server"), "i")
        self.assertEqual(self.seen("p"), 0)

    def test_the_clients_of_a_listener_that_leaves_stay_with_its_routes(self):
        self.hold([], {"images": {"servers": "i", "connections": {"max": 1}}, "spare": {"servers": "s"}},
                  listeners=[{"name": "old", "address": "127.0.0.1:0", "pool": "pages", "routes": [THUMBS]}])
        old = ("127.0.0.1", self.proxy.port("old"))
        first = self.in_flight("/thumb/1", "img.example.com", old)
        self.assertTrue(self.origins["i"].wait(lambda: self.seen("i") == 1))
        waiting = self.in_flight("/thumb/1", "img.example.com", old)
        self.queued(1)
        document = copy.deepcopy(self.document)
        document["listeners"].pop()
        document["pools"]["images"]["servers"] = [self.origins["s"].entry()]
        self.reload(document)
        self.assertEqual(waiting.response().value("x-server"), "s")
        self.go.set()
        self.assertEqual(first.response().value("x-server"), "i")

    def test_a_pool_that_leaves_with_its_route_is_stood_in_for(self):
        self.hold([THUMBS], {"images": {"servers": "i", "connections": {"max": 1}}})
        first = self.in_flight("/thumb/1", "img.example.com")
        self.assertTrue(self.origins["i"].wait(lambda: self.seen("i") == 1))
        waiting = self.in_flight("/thumb/1", "img.example.com")
        self.queued(1)
        document = self.changed(routes=[])
        del document["pools"]["images"]
        self.reload(document)
        self.assertEqual(waiting.response().value("x-server"), "p")
        self.go.set()
        self.assertEqual(first.response().value("x-server"), "i")


if __name__ == "__main__":
    unittest.main()
