"""Proxies that share answers in memcached servers, and what stands there, as octets.

    class Sharing(Shared):
        def test_one_fetch_for_two(self):
            self.share()                       # two proxies, one memcached server, one origin
            self.fill("/a", answer("max-age=60"))
            self.wait_written()
            self.assert_shared("/a", at=1)     # the other proxy has it without asking the origin
"""

import hashlib
import struct
import threading
import time

from support.caching import Caching, cache_status
from support.clockwise import Proxy, wait_until
from support.memcached import Memcached
from support.origin import Origin
from support.scenario import Site

_CRC = []
for _octet in range(256):
    for _ in range(8):
        _octet = (_octet >> 1) ^ (0x82F63B78 if _octet & 1 else 0)
    _CRC.append(_octet)


def crc32c(octets):
    crc = 0xFFFFFFFF
    for octet in octets:
        crc = (crc >> 8) ^ _CRC[(crc ^ octet) & 255]
    return crc ^ 0xFFFFFFFF


def summed(octets):
    return octets + struct.pack("<I", crc32c(octets))


def entry_key(target, host="h.example", space="clockwise"):
    """Where what answers a target stands."""
    digest = hashlib.sha256(f"http://{host}{target}".encode()).hexdigest()
    return f"{space}:{digest[:32]}".encode()


def entry(target, body=b"foreign", *, host="h.example", key=None, received=0, lifetime=60, version=1, kind=0,
          head=b"Content-Type: text/plain\r\n", parts=None):
    """An entry as a proxy writes it; `received`: so many seconds ago."""
    key = key or f"http://{host}{target}".encode()
    ms = int((time.time() - received) * 1000)
    length, part_size, generation = parts or (len(body), 0, 0)
    front = b"clw" + struct.pack("<BBBHqqIIIIQQIHHHH", version, kind, 0, 200, ms, ms, 0, lifetime, 0, 0, generation,
                                 length, part_size, len(key), len(head), 0, 0)
    return summed(front + key + head + body)


class Node(Site):
    """One of the proxies."""

    def __init__(self, document):
        self.document = document
        Proxy.__init__(self, document)

    def shared(self, result):
        return self.page().sum("clockwise_cache_shared_lookups_total", result=result)

    def written(self, result="stored"):
        return self.page().sum("clockwise_cache_shared_writes_total", result=result)


class Shared(Caching):
    def share(self, proxies=2, servers=None, *, cache=None, memcached=None, pool=None, mc=None, **config):
        """Starts the proxies; `cache`, `pool` and `mc` are settings of the cache and of the two pools."""
        self.scripts, self.counts, self.lock = {}, {}, threading.Lock()
        self.origins = [self.enterContext(Origin(self._answer, name="a"))]
        self.origin = self.origins[0]
        self.servers = servers if servers is not None else [self.enterContext(Memcached("m1"))]
        self.settings = {"cache": cache or {}, "memcached": memcached or {}, "pool": pool or {}, "mc": mc or {},
                         "config": config}
        self.nodes = [self.enterContext(Node(self.document())) for _ in range(proxies)]
        self.proxy = self.nodes[0]

    def document(self, servers=None, **cache):
        settings = self.settings
        return {
            "workers": 1,
            "access_log": "off",
            "listeners": [{"name": "web", "address": "127.0.0.1:0", "pool": "pages"}],
            "pools": {
                "pages": {"servers": [self.origin.entry()], "cache": "store", **settings["pool"]},
                "mc": {"protocol": "memcached", "servers": [s.entry() for s in servers or self.servers],
                       "memcached": {"retry_interval": "100ms", **settings["memcached"]}, **settings["mc"]},
            },
            # A busy machine is no slow pool.
            "caches": {"store": {"store": "memcached", "pool": "mc", "pool_budget": "2s", **settings["cache"],
                                 **cache}},
            **settings["config"],
        }

    def another(self, **cache):
        """One more proxy, which knows nothing."""
        node = self.enterContext(Node(self.document(**cache)))
        self.nodes.append(node)
        return node

    def at(self, node):
        """The proxy that is asked from here on."""
        self.proxy = self.nodes[node] if isinstance(node, int) else node
        return self

    def wait_written(self, count=1, node=0, result="stored"):
        self.nodes[node].wait_metric(count, "clockwise_cache_shared_writes_total", result=result)

    def put(self, target, *script, headers=None, **options):
        """Has an answer fetched by the first proxy, and waits until it is in the pool."""
        before = self.nodes[0].written()
        got = self.at(0).fill(target, *script, headers=headers, **options)
        self.wait_written(before + 1)
        return got

    def assert_shared(self, target, body="1", headers=None, at=None, **options):
        """The answer comes from the pool."""
        if at is not None:
            self.at(at)
        got = self.assert_stored(target, body, headers, **options)
        status = cache_status(got)
        self.assertEqual((status.get("hit"), status.get("detail")), (True, "shared"), got.value("Cache-Status"))
        return got

    def item(self, target, server=0, **options):
        """What stands under the key of a target; None: nothing."""
        return self.value(entry_key(target, **options), server)

    def value(self, key, server=0):
        answer = self.servers[server].ask(b"mg " + key + b" v\r\n")
        if answer == b"EN\r\n":
            return None
        head, _, rest = answer.partition(b"\r\n")
        assert head.startswith(b"VA "), answer[:100]
        return rest[:int(head.split(b" ")[1])]

    def time_to_live(self, key, server=0):
        answer = self.servers[server].ask(b"mg " + key + b" t\r\n")
        return int(answer.split(b" t")[1].split()[0])

    def put_item(self, key, value, server=0, exptime=0):
        answer = self.servers[server].ask(b"set %s 0 %d %d\r\n%s\r\n" % (key, exptime, len(value), value))
        self.assertEqual(answer, b"STORED\r\n")

    def wait_gone(self, target, server=0):
        wait_until(lambda: self.item(target, server) is None, f"{target} gone from the pool")

    def wait_clock(self, seconds):
        """Until it is so much later."""
        end = time.monotonic() + seconds
        wait_until(lambda: time.monotonic() > end, f"{seconds} s later")

    def wait_new(self, target, body, node):
        """Until that proxy gives this body."""
        return wait_until(lambda: self.at(node).get(target).text == body, f"{body} for {target}")
