"""Memcached as octets: real servers, servers whose answers a test scripts, clients, and a proxy before them.

    with Memcached("a") as a, Memcached("b") as b, Cluster([a, b]) as proxy, Client(proxy.memcached) as client:
        client.ask(b"set k 0 0 1\r\nx\r\n")   # b"STORED\r\n"

Answers are read up to the one of a `mn` that is sent behind what is asked, so that each octet too many is seen.
"""

import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from support.clockwise import DEADLINE, Proxy, free_port, wait_until
from support.page import Page
from support.wire import abort

PROGRAM = shutil.which("memcached")
needs_memcached = unittest.skipUnless(PROGRAM, "memcached is not installed")
END = b"MN\r\n"


class Memcached:
    """A memcached server on a port of the loopback. Stopped, started and frozen as a test wants it."""

    def __init__(self, name="plain", *options, port=0):
        self.name, self.options = name, options
        self.port = port or free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.process = None

    def entry(self, **more):
        return {"name": self.name, "address": self.address, **more}

    def start(self):
        self.process = subprocess.Popen([PROGRAM, "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-t", "1", "-u",
                                         "root", *self.options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._listens, f"memcached on {self.address}")
        return self

    def _listens(self):
        assert self.process.poll() is None, f"memcached ended with {self.process.returncode}"
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def stop(self):
        """As a crash: everything it held is gone."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        wait_until(self._is_stopped, "it has stopped")

    def _is_stopped(self):
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks.iterdir())

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def ask(self, octets):
        with Client(("127.0.0.1", self.port)) as client:
            return client.ask(octets)

    def dump(self):
        """A line about each item. The connection is the crawler's until its END: nothing can be asked behind it."""
        lines = [b"BUSY"]
        while lines[0].startswith(b"BUSY"):
            with Client(("127.0.0.1", self.port)) as client:
                lines = [client.send(b"lru_crawler metadump all\r\n").line()]
                while lines[-1] != b"END\r\n" and not lines[0].startswith(b"BUSY"):
                    lines.append(client.line())
        return lines[:-1]

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


class Client:
    """One connection that sends octets and reads answers."""

    def __init__(self, address, timeout=DEADLINE, receive_buffer=None):
        self.sock = socket.socket()
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(timeout)
        self.sock.connect(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, octets):
        self.sock.sendall(octets)
        return self

    def ask(self, octets):
        """Sends and returns all that is answered to it; what comes before the end of the connection, if that ends."""
        self.send(octets + b"mn\r\n")
        return self.answers()

    def answers(self, end=END):
        """All up to an answer to `mn`, without it."""
        searched = 0
        while True:
            # The line itself, and not the end of another one or of a value that holds one.
            at = self.buffer.find(end, max(0, searched - len(end)))
            while at > 0 and self.buffer[at - 2:at] != b"\r\n":
                at = self.buffer.find(end, at + 1)
            if at >= 0:
                break
            searched = len(self.buffer)
            if not self.fill():
                return self.take(len(self.buffer))
        answer = self.take(at)
        self.take(len(end))
        return answer

    def line(self):
        while (end := self.buffer.find(b"\n")) < 0:
            if not self.fill():
                return self.take(len(self.buffer))
        return self.take(end + 1)

    def octets(self, count):
        while len(self.buffer) < count and self.fill():
            pass
        return self.take(count)

    def rest(self):
        """Everything up to the end of the connection."""
        while self.fill():
            pass
        return self.take(len(self.buffer))

    def take(self, count):
        octets = bytes(self.buffer[:count])
        del self.buffer[:count]
        return octets

    def fill(self):
        try:
            received = self.sock.recv(1 << 18)
        except ConnectionError:
            received = b""
        self.buffer += received
        return bool(received)

    def finish(self):
        """Sends nothing more; returns everything that is answered."""
        self.sock.shutdown(socket.SHUT_WR)
        return self.rest()

    def get(self, key):
        """The value; None: a miss."""
        answer = self.ask(b"get " + key + b"\r\n")
        if answer == b"END\r\n":
            return None
        head, _, rest = answer.partition(b"\r\n")
        verb, found, _, size = head.split(b" ")
        assert (verb, found, len(rest)) == (b"VALUE", key, int(size) + 7) and rest.endswith(b"\r\nEND\r\n"), answer[:200]
        return rest[:-7]

    def set(self, key, value, exptime=0):
        return self.ask(b"set %s 0 %d %d\r\n%s\r\n" % (key, exptime, len(value), value))

    def abort(self):
        abort(self.sock)

    def close(self):
        self.sock.close()


class Scripted:
    """A server that answers what `handler(line, data, peer)` returns to each command; None ends the connection.

    `line` has no CRLF, `data` is the data block. `seen` lists the commands but for those with which the proxy
    asks who it is, `connections` counts what was accepted.
    """

    VERSION = b"VERSION 1.6.18\r\n"
    SETTINGS = b"STAT item_size_max 1048576\r\nEND\r\n"

    def __init__(self, name="scripted", handler=None, port=0):
        self.name = name
        self.handler = handler or (lambda line, data, peer: END if line == b"mn" else b"END\r\n")
        self.listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.seen, self.connections, self.open = [], 0, set()
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def entry(self, **more):
        return {"name": self.name, "address": self.address, **more}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        self.drop_connections()

    def drop_connections(self):
        with self.lock:
            peers = list(self.open)
        for peer in peers:
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def count(self, begin):
        """How many commands began so."""
        with self.lock:
            return sum(line.startswith(begin) for line in self.seen)

    def _accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.connections += 1
                self.open.add(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        try:
            with peer, peer.makefile("rb") as stream:
                while line := stream.readline():
                    reply = self._reply(line.rstrip(b"\r\n"), stream, peer)
                    if reply is None:
                        return
                    peer.sendall(reply)
        except OSError:
            pass
        finally:
            with self.lock:
                self.open.discard(peer)

    def _reply(self, line, stream, peer):
        if line == b"version":
            return self.VERSION
        if line == b"stats settings":
            return self.SETTINGS
        with self.lock:
            self.seen.append(line)
        return self.handler(line, self._data(line, stream), peer)

    @staticmethod
    def _data(line, stream):
        words = line.split(b" ")
        at = {b"ms": 2}.get(words[0], 4 if words[0] in (b"set", b"add", b"replace", b"append", b"prepend", b"cas") else 0)
        return stream.read(int(words[at]) + 2)[:-2] if at else b""


class Cluster(Proxy):
    """A proxy whose listener `mc` speaks memcached, before servers with an entry(). Merged: pool, memcached, ..."""

    def __init__(self, servers, *, memcached=None, pool=None, listener=None, **top):
        self.memcached_settings = {"retry_interval": "100ms", **(memcached or {})}
        self.pool_settings = pool or {}
        self.listener_settings = listener or {}
        self.top = top
        super().__init__(self.document(servers))

    def document(self, servers):
        return {
            "workers": 1,
            "listeners": [{"name": "mc", "address": "127.0.0.1:0", "protocol": "memcached", "pool": "items",
                           **self.listener_settings}],
            "pools": {"items": {"protocol": "memcached", "servers": [server.entry() for server in servers],
                                "memcached": self.memcached_settings, **self.pool_settings}},
            "access_log": "off",
            **self.top,
        }

    @property
    def memcached(self):
        return "127.0.0.1", self.port("mc")

    def client(self, **options):
        return Client(self.memcached, **options)

    def page(self):
        return Page(self.admin("/metrics").text)

    def holders(self, keys):
        """{key: servers}, as the configuration has them, the home first."""
        import json

        from support.clockwise import run
        done = run("lookup", "-c", self.file, "--json", "-", stdin="".join(k + "\n" for k in keys))
        assert done.returncode == 0, done.stderr
        return {entry["key"].encode(): entry["replicas"] for entry in json.loads(done.stdout)["keys"]}

    def owners(self, keys):
        """{key: server}: the home of each."""
        return {key: holders[0] for key, holders in self.holders(keys).items()}

    def keys_of(self, *names, count=1, prefix="k"):
        """Keys that these servers hold, in this order; further ones may hold them too."""
        found = [key for key, holders in self.holders(f"{prefix}{n}" for n in range(200 * count)).items()
                 if holders[:len(names)] == list(names)]
        return found[:count]

    def state(self, name):
        servers = self.admin("/api/v1/pools/items").json()["servers"]
        return next(server for server in servers if server["name"] == name)


def elapsed(action):
    """What the action returned, and the seconds that it took."""
    begin = time.monotonic()
    value = action()
    return value, time.monotonic() - begin


def scratch_folder():
    return tempfile.TemporaryDirectory(prefix="clockwise-test-")
