"""clockwise import: the pools of nginx, nutcracker and HAProxy, each run for real beside the YAML made of
its configuration. Every key must be where the peer itself puts it."""
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.clockwise import (  # noqa: E402
    BINARY, DEADLINE, ROOT, Upstream, free_port, run, wait_until)

GOLDEN = ROOT / "tests" / "golden" / "import"
KEYS = 2000
WINDOW = 100  # requests under way on one connection


def program(name):
    """The path of a peer, or None."""
    return shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")


def needs(name, package):
    return unittest.skipUnless(program(name), f"{name} is not installed (Debian package {package})")


class Peer:
    """A peer that runs in the foreground, in a folder of its own, until the block ends."""

    def __init__(self, command, ports, folder):
        self.command, self.ports = command, ports
        self.log = pathlib.Path(folder, "peer.log")

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            for port in self.ports:
                wait_until(lambda: self.listens(port), lambda: f"{self.command[0]}\n{self.log.read_text()}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def listens(self, port):
        assert self.process.poll() is None, self.log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            return False

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait(DEADLINE)


def ask_all(port, requests, read_answer):
    """Sends every request on one connection and returns what `read_answer(stream)` makes of each answer."""
    answers = []
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as peer, peer.makefile("rb") as stream:
        for start in range(0, len(requests), WINDOW):
            window = requests[start:start + WINDOW]
            peer.sendall(b"".join(window))
            answers += [read_answer(stream) for _ in window]
    return answers


def read_http(stream):
    """The body of an answer with a length."""
    status, length = stream.readline(), 0
    assert b" 200 " in status, status
    while (line := stream.readline().strip()):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return stream.read(length).decode()


def http_request(target, fields=b""):
    return b"GET " + target + b" HTTP/1.1\r\nHost: site.example\r\n" + fields + b"\r\n"


def uris(count=KEYS):
    """Targets as clients send them: queries, encodings, dots, raw UTF-8."""
    shapes = ["/item/{}", "/img/{}.jpg?w=100", "/a//b/../{}", "/caf%C3%A9/{}", "/кеш/{}", "/{}?", "/s?q={}%20x+y",
              "/{}" + "x" * 200]
    return [shapes[i % len(shapes)].format(i).encode() for i in range(count)]


def imported(path, folder, *arguments):
    """The configuration that an import writes, as a path, and its notes."""
    result = run("import", path, *arguments)
    assert result.returncode == 0, result.stderr
    out = pathlib.Path(folder, "imported.yaml")
    out.write_text(result.stdout)
    return out, result.stderr


def served(config, ports, folder):
    """The proxy on an imported configuration, whose admin address is made a free one."""
    config.write_text(config.read_text().replace("127.0.0.1:9901", f"127.0.0.1:{free_port()}"))
    return Peer([BINARY, "serve", "-c", str(config)], ports, folder)


def owners(config, pool, keys):
    """address of the owner by `clockwise lookup`, for each key."""
    command = [BINARY, "lookup", "-c", str(config), "--pool", pool, "-"]
    result = subprocess.run(command, input=b"\n".join(keys) + b"\n",
                            capture_output=True, timeout=DEADLINE)
    assert result.returncode == 0, result.stderr
    return [line.rsplit(b"\t", 1)[1].decode() for line in result.stdout.splitlines()]


class Comparison(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="clockwise-import-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def file(self, name, text):
        path = pathlib.Path(self.folder, name)
        path.write_text(text)
        return path

    def upstreams(self, count):
        """HTTP servers that answer with their own address."""
        servers = []
        for _ in range(count):
            server = Upstream("unnamed")
            self.addCleanup(server.close)
            body = server.address.encode()
            server.handler = (lambda received, peer, body=body:
                              b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            servers.append(server)
        return servers

    def same(self, keys, peer, here):
        """Fails with the first key that differs."""
        wrong = [(key, a, b) for key, a, b in zip(keys, peer, here) if a != b]
        self.assertEqual(len(peer), len(keys))
        self.assertEqual(len(here), len(keys))
        self.assertFalse(wrong, f"{len(wrong)} of {len(keys)} keys differ, the first: {wrong[:1]}")
        self.assertGreater(len(set(peer)), 1, "all keys on one server")


@needs("nginx", "nginx-light")
class Nginx(Comparison):
    BLOCKS = {
        "pages": "hash $request_uri consistent; {servers}",
        "plain": "hash $request_uri; {servers}",
    }
    LISTS = {
        "equal": ["", "", "", ""],
        "weights": ["weight=3", "", "weight=2", "weight=10"],
        "down": ["", "down", "", "weight=2"],
        "zeros": ["", "weight=2", "", ""],  # 127.0.0.1:08080, which is another text to its ring
    }

    def configuration(self, servers):
        listeners, ports = ["include *-[e-z]*.upstream;", "include *-d???.upstream;"], {}
        for method, block in self.BLOCKS.items():
            for shape, parameters in self.LISTS.items():
                name, port = f"{method}-{shape}", free_port()
                ports[name] = port
                zero = "0" if shape == "zeros" else ""
                lines = " ".join(f"server 127.0.0.1:{zero}{s.port} {p};" for s, p in zip(servers, parameters))
                self.file(f"{name}.upstream",
                          f"upstream {name} {{ {block.replace('{servers}', lines)} keepalive 8; }}")
                listeners.append(
                    f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{name};"
                    " proxy_http_version 1.1; proxy_set_header Connection ''; } }")
        paths = "".join(f"{kind}_temp_path {self.folder}/{kind};\n"
                        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        text = (f"daemon off; pid {self.folder}/pid; error_log stderr; worker_processes 1;\n"
                "events { worker_connections 512; }\n"
                f"http {{ access_log off; keepalive_requests 100000;\n{paths}"
                + "\n".join(listeners) + "\n}\n")
        return self.file("nginx.conf", text), ports

    def test_every_key_is_where_nginx_puts_it(self):
        path, ports = self.configuration(self.upstreams(4))
        config, notes = imported(path, self.folder)
        self.assertIn("nginx's", notes)
        keys = uris()
        command = [program("nginx"), "-p", self.folder, "-c", str(path)]
        with Peer(command, ports.values(), self.folder):
            for pool, port in ports.items():
                with self.subTest(pool=pool):
                    chosen = ask_all(port, [http_request(key) for key in keys], read_http)
                    self.same(keys, chosen, owners(config, pool, keys))


class Memcached:
    """Answers every get with its own address. `path`: listens on a unix socket instead of a port."""

    def __init__(self, path=None):
        if path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(path)
            self.listener.listen(16)
            self.text, self.address = path, f"unix:{path}"
        else:
            self.listener = socket.create_server(("127.0.0.1", 0), backlog=16)
            self.text = self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    OTHER = {b"version": b"VERSION 1.6.18\r\n", b"stats": b"END\r\n", b"mn": b"MN\r\n"}  # asked by a proxy

    def serve(self, peer):
        value = self.address.encode()
        with peer, peer.makefile("rb") as stream:
            for line in stream:
                verb, *words = line.split()
                unique = b" 1" if verb == b"gets" else b""
                peer.sendall(self.OTHER.get(verb) or b"VALUE %s 0 %d%s\r\n%s\r\nEND\r\n"
                             % (words[0], len(value), unique, value))


def read_value(stream):
    head = stream.readline()
    assert head.startswith(b"VALUE "), head
    value = stream.read(int(head.split()[3]) + 2)[:-2].decode()
    assert stream.readline() == b"END\r\n"
    return value


def cache_keys(count=KEYS):
    """Keys as memcached clients send them: tags in braces, UTF-8, short ones."""
    shapes = ["user:{}", "{{tag{}}}rest", "pre{{{}}}post", "ключ:{}", "/page/{}?a=b", "{}", "a{{b{}", "x{{}}{}"]
    return [shapes[i % len(shapes)].format(i).encode() for i in range(count)]


@needs("nginx", "nginx-light")
class NginxMemcached(Comparison):
    def test_every_item_is_asked_for_where_nginx_asks(self):
        servers = [Memcached() for _ in range(4)]
        for server in servers:
            self.addCleanup(server.close)
        lines = " ".join(f"server {server.address};" for server in servers)
        port = free_port()
        path = self.file("nginx.conf", f"daemon off; pid {self.folder}/pid; error_log stderr; worker_processes 1;\n"
                         "events { worker_connections 512; }\n"
                         "http { access_log off; keepalive_requests 100000;\n"
                         + "".join(f"{kind}_temp_path {self.folder}/{kind};\n"
                                   for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
                         + f"upstream mc {{ hash $memcached_key consistent; {lines} keepalive 8; }}\n"
                         f"server {{ listen 127.0.0.1:{port}; location / {{\n"
                         f"memcached_connect_timeout {DEADLINE:.0f}s; memcached_read_timeout {DEADLINE:.0f}s;\n"
                         "set $memcached_key \"$uri?$args\"; memcached_pass mc; } } }\n")
        config, notes = imported(path, self.folder)
        self.assertNotIn("keys will move", notes)
        # Of a key with a % nginx hashes the plain form, as a note says.
        keys = [key for key in uris() if b"%" not in key]
        requests = [http_request(key) for key in keys]
        with Peer([program("nginx"), "-p", self.folder, "-c", str(path)], [port], self.folder):
            chosen = ask_all(port, requests, read_http)
        with served(config, [port], self.folder):
            self.same(keys, chosen, ask_all(port, requests, read_http))


@needs("nutcracker", "nutcracker")
class Nutcracker(Comparison):
    # Names neither in the order of the file nor of one length: nutcracker sorts its list by them.
    NAMED = ["zeta", "b", "alpha", "odd:11211"]
    WEIGHTS = [1, 3, 2, 1]

    def configuration(self, servers):
        hashes = ["fnv1a_64", "md5", "murmur", "jenkins", "one_at_a_time", "crc32a", "hsieh"]
        pools = {}
        for number, name in enumerate(hashes):
            pools[name] = {"hash": name, "distribution": "modula" if number % 3 == 1 else "ketama"}
        pools["tagged"] = {"hash": "fnv1a_32", "distribution": "ketama", "hash_tag": "{}"}
        pools["unnamed"] = {"hash": "fnv1a_64", "distribution": "ketama", "unnamed": True}
        pools["large"] = {"hash": "md5", "distribution": "ketama", "factor": 15000}
        text, ports = "", {}
        for name, settings in pools.items():
            ports[name] = free_port()
            text += f"{name}:\n  listen: 127.0.0.1:{ports[name]}\n  timeout: {1000 * DEADLINE:.0f}\n"
            text += "".join(f"  {key}: {json.dumps(value)}\n" for key, value in settings.items()
                            if key in ("hash", "distribution", "hash_tag"))
            text += "  servers:\n"
            for server, alias, weight in zip(servers, self.NAMED, self.WEIGHTS):
                behind = "" if "unnamed" in settings else f" {alias}"
                text += f"   - {server.text}:{weight * settings.get('factor', 1)}{behind}\n"
        return self.file("nutcracker.yml", text), ports

    def test_every_key_is_where_nutcracker_puts_it(self):
        servers = [Memcached(), Memcached(), Memcached(f"{self.folder}/mc.sock"), Memcached()]
        for server in servers:
            self.addCleanup(server.close)
        path, ports = self.configuration(servers)
        config, _ = imported(path, self.folder)
        keys = cache_keys()
        command = [program("nutcracker"), "-c", str(path), "-a", "127.0.0.1", "-s", str(free_port()), "-v", "0",
                   "-p", f"{self.folder}/pid"]
        requests, chosen = [b"get %s\r\n" % key for key in keys], {}
        with Peer(command, ports.values(), self.folder):
            for pool, port in ports.items():
                with self.subTest(pool=pool):
                    chosen[pool] = ask_all(port, requests, read_value)
                    self.same(keys, chosen[pool], owners(config, pool, keys))
        with served(config, ports.values(), self.folder):
            for pool, port in ports.items():
                with self.subTest(served=pool):
                    self.same(keys, chosen[pool], ask_all(port, requests, read_value))


@needs("haproxy", "haproxy")
class Haproxy(Comparison):
    BACKENDS = {
        "pages": ("balance uri\n hash-type consistent", "path"),
        "whole": ("balance uri whole\n hash-type consistent crc32 avalanche", "uri"),
        "session": ("balance hdr(x-session)\n hash-type consistent djb2", "header"),
        "wt6": ("balance uri whole\n hash-type consistent wt6", "uri"),
    }
    PARAMETERS = ["weight 20", "", "weight 10 disabled", "id 9 weight 30", "backup", ""]

    def configuration(self, servers):
        text = "defaults\n mode http\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n"
        ports = {}
        for name, (lines, _) in self.BACKENDS.items():
            ports[name] = free_port()
            text += f"frontend f-{name}\n bind 127.0.0.1:{ports[name]}\n default_backend {name}\n"
            text += f"backend {name}\n {lines}\n"
            text += "".join(f" server s{i} {server.address} {parameters}\n"
                            for i, (server, parameters) in enumerate(zip(servers, self.PARAMETERS)))
        return self.file("haproxy.cfg", text), ports

    def test_every_key_is_where_haproxy_puts_it(self):
        path, ports = self.configuration(self.upstreams(len(self.PARAMETERS)))
        config, _ = imported(path, self.folder)
        # HAProxy refuses raw UTF-8 in a target.
        targets = [uri for uri in uris() if uri.isascii()]
        with Peer([program("haproxy"), "-db", "-f", str(path)], ports.values(), self.folder):
            for pool, (_, kind) in self.BACKENDS.items():
                with self.subTest(pool=pool):
                    fields = b"X-Session: %s\r\n" if kind == "header" else b""
                    chosen = ask_all(ports[pool], [http_request(uri, fields % uri if fields else b"")
                                                   for uri in targets], read_http)
                    keys = [uri.split(b"?")[0] if kind == "path" else uri for uri in targets]
                    self.same(keys, chosen, owners(config, pool, keys))


class Command(unittest.TestCase):
    def test_check_accepts_what_is_written(self):
        for name in ("haproxy.cfg", "nutcracker.yml", "mcrouter.json", "mcrouter_prefixes.json"):
            with self.subTest(file=name), tempfile.TemporaryDirectory() as folder:
                config, notes = imported(GOLDEN / name, folder)
                self.assertNotIn("refuses", notes)
                result = run("check", "-c", config)
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_what_this_release_lacks_is_no_fault_of_the_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "nutcracker.yml")
            path.write_text((GOLDEN / "nutcracker.yml").read_text()
                            .replace("127.0.0.1:22123", "127.0.0.1:22121"))  # twice
            result = run("import", path)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("nutcracker.yml is taken over, but this release refuses the YAML", result.stderr)
            line = [number for number, text in enumerate(result.stdout.splitlines(), 1)
                    if "127.0.0.1:22121" in text][1]
            self.assertRegex(result.stderr, rf"\n  line {line}: .*duplicate listener address")
            proved = run("import", path, "--prove", 100)
            self.assertEqual(proved.returncode, 0, proved.stderr)

    def test_what_is_written_can_be_looked_up(self):
        for name, pool in (("nginx.conf", "pages"), ("nginx.conf", "mc"), ("haproxy.cfg", "pages"),
                           ("envoy.yaml", "pages"), ("nutcracker.yml", "alpha"), ("mcrouter.json", "gutter")):
            with self.subTest(file=name, pool=pool), tempfile.TemporaryDirectory() as folder:
                config, _ = imported(GOLDEN / name, folder)
                result = run("lookup", "-c", config, "--pool", pool, "/a")
                self.assertEqual(result.returncode, 0, result.stderr)

    def test_prove_counts_and_says_what_it_cannot_compare(self):
        result = run("import", GOLDEN / "haproxy.cfg", "--prove", 1000)
        self.assertEqual(result.returncode, 1, result.stderr)  # two pools of this file cannot be kept
        self.assertIn("haproxy.cfg: pool pages: 0 differences over 1000 keys\n", result.stderr)
        self.assertIn("pool by_client: keys move: balance source", result.stderr)
        self.assertIn("pool plain: nothing to compare: the source looks at no key", result.stderr)

    def test_prove_succeeds_where_every_key_stays(self):
        result = run("import", GOLDEN / "nutcracker.yml", "--prove", 1000)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("pool alpha: 0 differences over 1000 keys\n", result.stderr)

    def test_the_format_can_be_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "pools.txt")
            path.write_text((GOLDEN / "mcrouter.json").read_text().replace('"route"', '"routes"'))
            guessed = run("import", path)
            self.assertEqual(guessed.returncode, 1)
            self.assertIn("looks like no format that is known; name it with --from nginx, nutcracker, "
                          "haproxy, mcrouter, envoy", guessed.stderr)
            named = run("import", path, "--from", "mcrouter")
            self.assertEqual(named.returncode, 0, named.stderr)
            self.assertIn("scheme: clockwise", named.stdout)
            self.assertIn("keys will move: mcrouter places by ch3", named.stderr)

    def test_a_syntax_error_has_its_place(self):
        path = GOLDEN / "bad" / "nginx-quote.conf"
        result = run("import", path)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(f"{path}:2:12: the quote is never closed\n", result.stderr)

    def test_a_missing_file_is_an_error(self):
        result = run("import", "/nonexistent/nginx.conf")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nonexistent/nginx.conf cannot be read", result.stderr)


if __name__ == "__main__":
    unittest.main()
