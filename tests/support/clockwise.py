"""What integration tests share: run the proxy on free ports, talk to it, play its upstream servers.

    from support.clockwise import Proxy, Upstream, configuration

    with Upstream("a") as a, Upstream("b") as b:
        with Proxy(configuration([a, b])) as proxy:
            answer = proxy.get("/hello")          # through the listener
            status = proxy.admin("/api/v1/status").json()

Everything is bounded: each wait has a deadline and fails with the proxy's log. Nothing is left
behind: processes are ended by pid, files live in a temporary folder. Standard library only.
"""

import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = os.environ.get("CLOCKWISE", str(ROOT / "build" / "release" / "clockwise"))
SANITIZED = bool(os.environ.get("CLOCKWISE_SANITIZE"))
# Sanitized builds are several times slower.
DEADLINE = 60.0 if SANITIZED else 20.0


def free_port():
    """A TCP port of the loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, what, deadline=DEADLINE):
    """Polls until `condition()` is true and returns its value; AssertionError names `what`."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline:g} s: {what() if callable(what) else what}")
        time.sleep(0.01)


def run(*arguments, stdin="", deadline=DEADLINE, environment=None):
    """Runs a command of the binary to its end; returns CompletedProcess with text."""
    return subprocess.run([BINARY, *map(str, arguments)], input=stdin, text=True, timeout=deadline,
                          capture_output=True, env={**os.environ, **(environment or {})})


# --- configuration ---------------------------------------------------------------------------

def yaml(value, indent=0):
    """The YAML text of plain dicts, lists, strings, numbers and booleans."""
    pad = " " * indent
    if isinstance(value, dict) and value:
        return "".join(f"{pad}{key}:{_nested(item, indent)}" for key, item in value.items())
    if isinstance(value, list) and value:
        return "".join(f"{pad}- {json.dumps(item) if _flat(item) else yaml(item, indent + 2).lstrip()}"
                       + ("\n" if _flat(item) else "") for item in value)
    return f"{pad}{_scalar(value)}\n"


def _flat(value):
    return not isinstance(value, (dict, list)) or not value


def _nested(value, indent):
    return f" {_scalar(value)}\n" if _flat(value) else "\n" + yaml(value, indent + 2)


def _scalar(value):
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z/][A-Za-z0-9_./-]*|[0-9]+(ms|s|m|h|%|k)", value):
        return value
    return json.dumps(value)


def server(entry):
    """A server of the list: an Upstream, an address, or the dict itself."""
    if isinstance(entry, dict):
        return entry
    if isinstance(entry, Upstream):
        return {"name": entry.name, "address": entry.address}
    return {"name": entry.replace(".", "-").replace(":", "-"), "address": entry}


def configuration(servers, *, pool=None, listener=None, ring=None, **top):
    """A configuration as a dict: one listener `web` on a free port, one pool `pages`.

    `pool` and `listener` are merged over theirs, `ring` over the ring, anything else over the top
    level. The admin address is filled in by Proxy.
    """
    return {
        "workers": 1,
        "listeners": [{"name": "web", "address": "127.0.0.1:0", "pool": "pages", **(listener or {})}],
        "pools": {"pages": {**({"ring": ring} if ring else {}),
                            "servers": [server(s) for s in servers], **(pool or {})}},
        "access_log": "off",
        **top,
    }


# --- the proxy -------------------------------------------------------------------------------

class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def __repr__(self):
        return f"Answer({self.status}, {self.body[:200]!r})"


def request(port, target, method="GET", body=None, headers=None, host="127.0.0.1", deadline=DEADLINE):
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection(host, port, timeout=deadline)
    try:
        connection.request(method, target, body=body, headers=headers or {})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


class Proxy:
    """A running `clockwise serve`. Enter waits until it is ready; leave stops it gracefully.

    `config` is a dict (see configuration()) or YAML text. Text must name its own admin address:
    write `{admin}` for the port to have it filled in.
    """

    def __init__(self, config, *, arguments=(), files=None, environment=None, folder=None):
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="clockwise-test-"))
        self.keep_folder = folder is not None
        self.file = self.folder / "clockwise.yaml"
        self.admin_port = free_port()
        self.arguments, self.environment = list(arguments), environment or {}
        for name, text in (files or {}).items():
            (self.folder / name).write_text(text)
        self.write(config)
        self.process = None
        self.log_path = self.folder / "stderr.log"

    # Start and stop

    def start(self):
        """Starts the process without waiting."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [BINARY, "serve", "-c", str(self.file), *self.arguments], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, env={**os.environ, **self.environment})
        return self

    def wait_ready(self, deadline=DEADLINE):
        def ready():
            assert self.process.poll() is None, f"exit {self.process.returncode} at the start\n{self.log()}"
            try:
                return self.admin("/readyz").status == 200
            except OSError:
                return False
        wait_until(ready, lambda: f"ready\n{self.log()}", deadline)
        return self

    def __enter__(self):
        try:
            return self.start().wait_ready()
        except BaseException:
            self.kill()
            raise

    def __exit__(self, *error):
        code = self.stop()
        if error[0] is None:
            assert code == 0, f"exit {code} after a graceful stop\n{self.log()}"
        else:
            print(self.log()[-4000:])
        if not self.keep_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def signal(self, number):
        self.process.send_signal(number)

    def wait_exit(self, deadline=DEADLINE):
        """The exit code; kills the process when the deadline passes."""
        try:
            return self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"still running after {deadline:g} s\n{self.log()}") from None

    def stop(self):
        """SIGTERM; returns the exit code."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.wait_exit()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    # Configuration

    def text(self, config):
        if isinstance(config, str):
            return config.replace("{admin}", str(self.admin_port))
        return yaml({"admin": {"address": f"127.0.0.1:{self.admin_port}"}, **config})

    def write(self, config):
        """Replaces the file as careful editors do: a new file renamed over the old one."""
        fresh = self.folder / ".clockwise.yaml.new"
        fresh.write_text(self.text(config))
        os.rename(fresh, self.file)

    def reload(self, config=None, force=False):
        """Writes `config` if given and asks for a reload through the API; returns the Answer."""
        if config is not None:
            self.write(config)
        return self.admin("/api/v1/reload" + ("?force=1" if force else ""), method="POST")

    # Looking

    def log(self):
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def wait_log(self, pattern, deadline=DEADLINE):
        """Waits for a line that matches and returns the match."""
        return wait_until(lambda: re.search(pattern, self.log(), re.MULTILINE),
                          lambda: f"log line {pattern!r}\n{self.log()}", deadline)

    def port(self, listener="web"):
        """The port that a listener took, from the log line `listener NAME on ADDRESS`."""
        found = self.wait_log(rf"listener {re.escape(listener)} on \S*:(\d+)")
        return int(found.group(1))

    def get(self, target, **options):
        return request(self.port(), target, **options)

    def admin(self, target, **options):
        return request(self.admin_port, target, **options)

    def metrics(self):
        """Every sample of /metrics: {(name, ((label, value), …)): float}, labels sorted."""
        samples = {}
        for line in self.admin("/metrics").text.splitlines():
            if line.startswith("#") or not line:
                continue
            head, value = re.fullmatch(r"(.*\S)\s+(\S+)", line).groups()
            name, _, labels = head.partition("{")
            pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)
            samples[name, tuple(sorted(pairs))] = float(value)
        return samples

    def metric(self, name, **labels):
        """The sum of all samples of that name whose labels contain `labels`; 0 when there is none."""
        wanted = set(labels.items())
        return sum(value for (found, pairs), value in self.metrics().items()
                   if found == name and wanted <= set(pairs))


# --- upstream servers ------------------------------------------------------------------------

class Received:
    """One request as an upstream server saw it."""

    def __init__(self, head, body, connection):
        lines = head.decode("latin-1").split("\r\n")
        self.head, self.body, self.connection = head, body, connection
        self.method, self.target, self.version = lines[0].split(" ", 2)
        self.fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:] if line]

    def field(self, name, default=None):
        """The first field of that name."""
        return next((v for n, v in self.fields if n.lower() == name.lower()), default)


def answer(body=b"", status="200 OK", fields=(), length=True):
    """The bytes of a whole response."""
    lines = [f"HTTP/1.1 {status}", *(f"{n}: {v}" for n, v in fields)]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class Upstream:
    """An HTTP/1.1 server whose answers a test scripts.

    `handler(received, socket)` returns the bytes to send; None: it sent what it wanted itself and
    the connection is closed. Default: the server's name, with keep-alive. `requests` lists what
    came, `connections` counts what was accepted.
    """

    def __init__(self, name, handler=None, port=0):
        self.name = name
        self.handler = handler or (lambda received, peer: answer(name.encode(), fields=[("Server-Name", name)]))
        self.requests, self.connections = [], 0
        self.listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.open = set()
        self.lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    def close(self):
        """Stops listening and drops every connection."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)  # wakes the accepting thread
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

    def _accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.connections += 1
                number = self.connections
                self.open.add(peer)
            threading.Thread(target=self._serve, args=(peer, number), daemon=True).start()

    def _serve(self, peer, number):
        try:
            with peer, peer.makefile("rb") as stream:
                while (received := self._receive(stream, number)) is not None:
                    with self.lock:
                        self.requests.append(received)
                    reply = self.handler(received, peer)
                    if reply is None:
                        return
                    peer.sendall(reply)
        except OSError:
            pass
        finally:
            with self.lock:
                self.open.discard(peer)

    @staticmethod
    def _receive(stream, number):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline(65536)
            if not line:
                return None
            head += line
        received = Received(head[:-4], b"", number)
        if "chunked" in received.field("Transfer-Encoding", "").lower():
            received.body = Upstream._chunks(stream)
        else:
            received.body = stream.read(int(received.field("Content-Length", "0")))
        return received

    @staticmethod
    def _chunks(stream):
        body = b""
        while size := int(stream.readline().split(b";")[0], 16):
            body += stream.read(size)
            stream.readline()
        while stream.readline().strip():
            pass  # trailers
        return body
