"""Several proxies before one pool that fill it: who misses an item at the same time fetches it once.

The lock that says who fetches stands beside the item, never in its place, and is gone when the fetch is over. Whatever
becomes of the one that has it, nobody waits for it longer than `memcached.budget`.
"""

import hashlib
import pathlib
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import Proxy, wait_until  # noqa: E402
from support.memcached import Memcached, Scripted, needs_memcached  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.page import Page  # noqa: E402

KEPT = {"Cache-Control": "max-age=100"}


def lock_key(key, space=b""):
    return space + b"clockwise-fetch:" + hashlib.sha256(key).hexdigest()[:32].encode()


class Proxies(unittest.TestCase):
    def start(self, server, handler, count=2, **settings):
        self.server = server
        self.origin = self.enterContext(Origin(handler, name="o"))
        document = {
            "workers": 1,
            "access_log": "off",
            "listeners": [{"name": "web", "address": "127.0.0.1:0", "pool": "mc"}],
            "pools": {"mc": {"protocol": "memcached", "servers": [server.entry()], "fallback": "origin",
                             "timeouts": {"response": "20s"}, "memcached": {"fill": True, **settings}},
                      "origin": {"servers": [self.origin.entry()]}},
        }
        self.proxies = [self.enterContext(Proxy(document)) for _ in range(count)]

    def ask(self, proxy, target="/a", clients=1):
        """Connections on which the target was asked for."""
        asked = [self.enterContext(wire.Connection(("127.0.0.1", proxy.port()))) for _ in range(clients)]
        for client in asked:
            client.send(wire.request_text("GET", target))
        return asked

    def get(self, proxy, target="/a"):
        return self.ask(proxy, target)[0].response()

    def fetched(self):
        return len(self.origin.requests)

    def wait_asked(self, target="/a", times=1):
        wait_until(lambda: self.fetched() == times, f"the origin is asked {times} times")

    def stat(self, name):
        lines = self.server.ask(b"stats\r\n").splitlines()
        return int(next(line.split()[2] for line in lines if line.startswith(b"STAT " + name + b" ")))

    def value(self, key):
        answer = self.server.ask(b"get " + key + b"\r\n")
        return None if answer == b"END\r\n" else answer.partition(b"\r\n")[2][:-len(b"\r\nEND\r\n")]

    def wait_unlocked(self, key=b"/a?"):
        wait_until(lambda: self.value(lock_key(key)) is None, "the lock is gone")

    def wait_for_the_lock(self, tries=2):
        wait_until(lambda: self.stat(b"cmd_set") >= tries, "another proxy has found the lock taken")


class Slow:
    """An origin that answers its first request once it is let, and all others at once."""

    def __init__(self, status=200, headers=KEPT):
        self.release, self.status, self.headers = threading.Event(), status, headers
        self.first = True

    def __call__(self, exchange):
        first, self.first = self.first, False
        if first:
            self.release.wait(60)
            return exchange.reply(self.status, b"first", self.headers)
        return exchange.reply(200, b"later", KEPT)


@needs_memcached
class OneFetch(Proxies):
    def start_slow(self, *options, status=200, headers=KEPT, **settings):
        self.origin_handler = Slow(status, headers)
        self.addCleanup(self.origin_handler.release.set)
        self.start(self.enterContext(Memcached("a", *options)), self.origin_handler, **settings)
        return self.proxies

    def waiting(self):
        return sum(Page(proxy.admin("/metrics").text).sum("clockwise_cache_collapsed_waiting") for proxy in self.proxies)

    def test_of_all_who_miss_it_in_all_proxies(self):
        one, two = self.start_slow(budget="60s")
        clients = self.ask(one, clients=25) + self.ask(two, clients=25)
        wait_until(lambda: self.waiting() == 48, "all wait for one of each proxy")
        self.wait_for_the_lock()
        self.origin_handler.release.set()
        for client in clients:
            self.assertEqual(client.response().text, "first")
        self.assertEqual(self.fetched(), 1)
        self.assertEqual(self.value(b"/a?"), b"first")
        self.wait_unlocked()
        self.assertEqual(self.get(two).value("cache-status"), "clockwise; hit")

    def test_the_item_is_no_value_to_others_before_it_is_there(self):
        one, two = self.start_slow(budget="60s")
        clients = self.ask(one) + self.ask(two)
        self.wait_for_the_lock()
        self.assertEqual(self.server.ask(b"mg /a? v\r\n"), b"EN\r\n")
        self.assertEqual(self.value(lock_key(b"/a?")), b"")
        self.origin_handler.release.set()
        for client in clients:
            self.assertEqual(client.response().text, "first")

    def test_a_holder_that_dies_holds_up_nobody_for_longer_than_the_budget(self):
        one, two = self.start_slow(budget="500ms")
        self.ask(one)
        self.wait_asked()
        client, = self.ask(two)
        one.kill()
        self.assertEqual(client.response().text, "later")
        self.assertEqual(self.fetched(), 2)
        # The lock that it has left goes by itself, and the item is there all the same.
        wait_until(lambda: self.value(b"/a?") == b"later", "it is stored")
        self.wait_unlocked()
        one.start().wait_ready()

    def test_a_fetch_that_fails_is_tried_by_the_next_at_once(self):
        one, two = self.start_slow(status=503, budget="60s")
        failing, = self.ask(one)
        self.wait_asked()
        waiting, = self.ask(two)
        self.wait_for_the_lock()
        self.origin_handler.release.set()
        self.assertEqual(failing.response().status, 503)
        self.assertEqual(waiting.response().text, "later")
        self.assertEqual(self.fetched(), 2)
        self.wait_unlocked()

    def test_what_is_not_to_be_stored_is_fetched_by_each(self):
        one, two = self.start_slow(headers={"Cache-Control": "no-store"}, budget="60s")
        first, = self.ask(one)
        self.wait_asked()
        waiting, = self.ask(two)
        self.wait_for_the_lock()
        self.origin_handler.release.set()
        self.assertEqual(first.response().text, "first")
        self.assertEqual(waiting.response().text, "later")

    def test_a_client_that_leaves_takes_the_lock_with_it(self):
        one, two = self.start_slow(budget="60s")
        leaving, = self.ask(one)
        self.wait_asked()
        waiting, = self.ask(two)
        self.wait_for_the_lock()
        wire.abort(leaving.sock)
        self.assertEqual(waiting.response().text, "later")

    def test_who_waits_looks_no_longer_than_its_budget(self):
        one, two = self.start_slow(budget="200ms")
        first, = self.ask(one)
        self.wait_asked()
        self.assertEqual(self.get(two).text, "later")
        self.origin_handler.release.set()
        self.assertEqual(first.response().text, "first")

    def test_the_lock_of_a_key_that_is_as_long_as_a_key_can_be(self):
        space = b"/" + b"n" * 199
        one, two = self.start_slow(budget="60s", namespace=space.decode())
        target = space + b"k" * 49
        clients = self.ask(one, target.decode()) + self.ask(two, target.decode())
        self.wait_for_the_lock()
        self.assertEqual(self.value(lock_key(target + b"?", space)), b"")
        self.origin_handler.release.set()
        for client in clients:
            self.assertEqual(client.response().text, "first")
        self.assertEqual(self.fetched(), 1)


class Costs(Proxies):
    """Servers whose answers the test writes."""

    def start_scripted(self, handler, **settings):
        self.start(self.enterContext(Scripted("a", lambda line, data, peer: handler(line))),
                   lambda exchange: exchange.reply(200, b"origin", KEPT), **settings)
        return self.proxies

    def test_a_hit_asks_for_no_lock(self):
        one, _ = self.start_scripted(lambda line: b"VALUE /a? 0 1 1\r\nx\r\nEND\r\n")
        self.assertEqual(self.get(one).text, "x")
        self.assertEqual(self.server.seen, [b"gets /a?"])

    def test_a_pool_that_is_not_filled_has_none(self):
        one, _ = self.start_scripted(lambda line: b"END\r\n", fill=False)
        self.assertEqual(self.get(one).text, "origin")
        self.assertEqual(self.server.seen, [b"gets /a?"])

    def test_what_a_miss_asks(self):
        answers = {b"gets": b"END\r\n", b"add": b"STORED\r\n", b"mg": b"EN\r\n", b"set": b"STORED\r\n", b"delete": b"DELETED\r\n"}
        one, _ = self.start_scripted(lambda line: answers[line.split()[0]], budget="20s")
        self.assertEqual(self.get(one).text, "origin")
        wait_until(lambda: self.server.count(b"delete"), "the lock is deleted")
        self.assertEqual([line.split()[0] for line in self.server.seen], [b"gets", b"add", b"mg", b"set", b"delete"])
        self.assertEqual(self.server.seen[1], b"add " + lock_key(b"/a?") + b" 0 21 0")

    def test_a_server_that_cannot_lock_is_not_waited_for(self):
        for says in (b"ERROR\r\n", b"SERVER_ERROR out of memory storing object\r\n", b"nonsense\r\n", None):
            with self.subTest(says):
                one, two = self.start_scripted(lambda line: b"END\r\n" if line.startswith(b"get") else says, budget="60s")
                self.assertEqual(self.get(one).text, "origin")
                self.assertEqual(self.get(two).text, "origin")

    def test_a_server_that_hangs_costs_no_more_than_the_budget(self):
        one, two = self.start_scripted(lambda line: b"END\r\n" if line.startswith(b"get") else b"", budget="100ms")
        for client in self.ask(one, clients=5) + self.ask(two, clients=5):
            self.assertEqual(client.response().text, "origin")

    def test_an_item_that_came_meanwhile_is_taken_from_the_pool(self):
        stored = []

        def handler(line):
            if line.startswith(b"add"):
                stored.append(line)
                return b"STORED\r\n"
            if line.startswith(b"mg"):
                return b"HD\r\n"
            if line.startswith(b"gets") and stored:
                return b"VALUE /a? 0 5 1\r\nthere\r\nEND\r\n"
            return b"DELETED\r\n" if line.startswith(b"delete") else b"END\r\n"

        one, _ = self.start_scripted(handler, budget="20s")
        self.assertEqual(self.get(one).text, "there")
        self.assertEqual(self.fetched(), 0)
        wait_until(lambda: self.server.count(b"delete"), "the lock is deleted")

    def test_an_item_that_is_gone_again_is_fetched(self):
        one, _ = self.start_scripted(lambda line: {b"gets": b"END\r\n", b"add": b"NOT_STORED\r\n", b"mg": b"HD\r\n"}.get(
            line.split()[0], b"STORED\r\n"), budget="200ms")
        self.assertEqual(self.get(one).text, "origin")


if __name__ == "__main__":
    unittest.main()
