"""What the process may do, what it shows, and what nobody can write into its logs."""

import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unicodedata
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import BINARY, free_port, run, wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.scenario import Site  # noqa: E402

TOKEN = "s3cret-t0ken-of-the-test"


@unittest.skipUnless(os.geteuid() == 0, "only root can become another user")
class User(unittest.TestCase):
    def setUp(self):
        self.nobody = pwd.getpwnam("nobody")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="clockwise-test-"))
        os.chmod(self.folder, 0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.origin = self.enterContext(Origin(name="a"))

    def site(self, listener=None, **top):
        proxy = Site([self.origin], listener=listener, user="nobody", **top)
        os.chmod(proxy.folder, 0o755)
        return proxy

    def test_it_serves_as_that_user_and_cannot_go_back(self):
        state, log = self.folder / "state", self.folder / "access.log"
        with self.site(state_dir=str(state), access_log={"file": str(log)}, workers=2) as proxy:
            uid, gid = str(self.nobody.pw_uid), str(self.nobody.pw_gid)
            for task in os.listdir(f"/proc/{proxy.process.pid}/task"):
                with open(f"/proc/{proxy.process.pid}/task/{task}/status", encoding="ascii") as lines:
                    facts = dict(line.rstrip("\n").split(":\t", 1) for line in lines if ":\t" in line)
                self.assertEqual(facts["Uid"].split(), [uid] * 4, facts["Name"])
                self.assertEqual(facts["Gid"].split(), [gid] * 4, facts["Name"])
                self.assertEqual(int(facts["CapEff"], 16) | int(facts["CapPrm"], 16), 0, facts["Name"])
                self.assertNotIn("0", facts["Groups"].split(), facts["Name"])
                self.assertEqual(facts["NoNewPrivs"], "1", facts["Name"])
            self.assertEqual(wire.fetch(proxy.web).status, 200)
            for path in (state, log, *state.iterdir()):
                self.assertEqual(path.stat().st_uid, self.nobody.pw_uid, path)
            self.assertGreater(proxy.page().value("process_open_fds"), 5)

            # What needs files and sockets later works as that user too.
            log.rename(log.with_suffix(".1"))
            os.chown(self.folder, self.nobody.pw_uid, -1)
            proxy.signal(signal.SIGUSR1)
            wait_until(log.exists, "a new access log")
            self.assertEqual(proxy.change([self.origin.entry(), {"name": "b", "address": f"127.0.0.1:{free_port()}"}],
                                          force=True)["pool"], "pages")
            self.assertIn("remaps.json", os.listdir(state))

    def test_a_low_port_is_taken_at_the_start_and_refused_at_a_reload(self):
        low = next((port for port in range(800, 1000) if self.is_free(port)), None)
        if low is None:
            self.skipTest("no free port below 1024")
        with self.site(listener={"address": f"127.0.0.1:{low}"}) as proxy:
            self.assertEqual(wire.fetch(("127.0.0.1", low)).status, 200)
            document = proxy.document
            other = next(port for port in range(low + 1, 1024) if self.is_free(port))
            document["listeners"].append({"name": "more", "address": f"127.0.0.1:{other}", "pool": "pages"})
            refused = proxy.reload(document)
            try:
                unprivileged = int(pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
            except OSError:
                unprivileged = 1024
            if other < unprivileged:
                self.assertEqual(refused.status, 409)
                self.assertRegex(refused.text, rf"listener more.*{other}.*no permission")
            self.assertEqual(wire.fetch(("127.0.0.1", low)).status, 200)

    @staticmethod
    def is_free(port):
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return True
        except OSError:
            return False

    def test_an_unknown_user_stops_the_start(self):
        for user, word in (("no-such-user", "no user"), ("nobody:no-such-group", "no group")):
            proxy = Site([self.origin], user=user).start()
            self.addCleanup(shutil.rmtree, proxy.folder, ignore_errors=True)
            self.assertEqual(proxy.wait_exit(), 1)
            self.assertIn(word, proxy.log())

    def test_who_is_not_root_cannot_become_another(self):
        proxy = Site([self.origin], user="daemon")
        self.addCleanup(shutil.rmtree, proxy.folder, ignore_errors=True)
        for path in (proxy.folder, *proxy.folder.iterdir()):
            os.chown(path, self.nobody.pw_uid, -1)
        done = subprocess.run([BINARY, "serve", "-c", str(proxy.file)], user="nobody", group=self.nobody.pw_gid,
                              extra_groups=[], capture_output=True, text=True, timeout=20)
        if "Permission denied" in done.stderr and done.returncode == 126:
            self.skipTest("the binary cannot be run by others here")
        self.assertEqual(done.returncode, 1)
        self.assertIn("only root can become", done.stderr)


@unittest.skipUnless(os.geteuid() == 0 and shutil.which("unshare"), "needs a mount namespace")
class ReadOnlyRoot(unittest.TestCase):
    def test_it_runs_where_nothing_can_be_written(self):
        with Origin(name="a") as origin:
            proxy = Site([origin])
            # A namespace of its own in which everything is read-only.
            script = 'mount --make-rprivate / && mount -o remount,ro,bind / && exec "$@"'
            with open(proxy.log_path, "ab") as log:
                proxy.process = subprocess.Popen(
                    ["unshare", "--mount", "sh", "-c", script, "sh", BINARY, "serve", "-c", str(proxy.file)],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            try:
                wait_until(lambda: "admin on" in proxy.log() or proxy.process.poll() is not None, "a start")
                if proxy.process.poll() is not None:
                    self.skipTest(f"no read-only mount here: {proxy.log()[-200:]}")
                proxy.wait_ready()
                self.assertEqual(wire.fetch(proxy.web).status, 200)
                self.assertEqual(proxy.reload().status, 200)
            finally:
                if proxy.process.poll() is None:
                    self.assertEqual(proxy.stop(), 0)
                shutil.rmtree(proxy.folder, ignore_errors=True)


class Secrets(unittest.TestCase):
    """admin.token is asked for by every call that changes something, and is shown nowhere."""

    CHANGES = [("POST", "/api/v1/reload"), ("POST", "/api/v1/reload?force=1"), ("POST", "/api/v1/remaps/1/rollback"),
               ("PUT", "/api/v1/pools/pages/servers/a")]
    READS = ["/metrics", "/healthz", "/readyz", "/api/v1/status", "/api/v1/pools", "/api/v1/pools/pages",
             "/api/v1/pools/pages/ring", "/api/v1/pools/pages/lookup?key=x", "/api/v1/remaps", "/"]

    def setUp(self):
        self.origin = self.enterContext(Origin(name="a"))
        self.proxy = Site([self.origin], environment={"CLOCKWISE_ADMIN_TOKEN": TOKEN}, arguments=["--log-level", "debug"])
        text = self.proxy.file.read_text()
        self.proxy.file.write_text(re.sub(r"(?m)^admin:$", "admin:\n  token: ${CLOCKWISE_ADMIN_TOKEN}", text))
        self.enterContext(self.proxy)

    def call(self, method, target, authorization=None):
        headers = {"Authorization": authorization} if authorization else {}
        return self.proxy.admin(target, method=method, headers=headers)

    def test_changes_need_exactly_the_token(self):
        wrong = [None, "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Bearer {TOKEN.upper()}",
                 TOKEN, f"Basic {TOKEN}", f"Bearer  {TOKEN} ", f"Bearer {TOKEN}\t"]
        for method, target in self.CHANGES:
            for authorization in wrong:
                answer = self.call(method, target, authorization)
                if authorization and authorization.split() == ["Bearer", TOKEN]:
                    continue  # blanks around a field value are not part of it
                self.assertEqual(answer.status, 401, (target, authorization))
                self.assertIn("Bearer", answer.headers["WWW-Authenticate"])
        self.assertEqual(self.call("POST", "/api/v1/reload", f"Bearer {TOKEN}").status, 200)

    def test_the_token_is_shown_nowhere(self):
        self.call("POST", "/api/v1/reload", f"Bearer {TOKEN}")
        self.call("POST", "/api/v1/reload", "Bearer wrong")
        for target in self.READS:
            self.assertNotIn(TOKEN, self.call("GET", target).text, target)
        self.assertNotIn(TOKEN, self.proxy.log())
        environment = {"CLOCKWISE_ADMIN_TOKEN": TOKEN}
        checked = run("check", "-c", self.proxy.file, environment=environment)
        self.assertNotIn(TOKEN, checked.stdout + checked.stderr)

    def test_a_broken_file_does_not_show_the_token(self):
        self.proxy.file.write_text(self.proxy.file.read_text() + "nonsense: 1\n")
        self.call("POST", "/api/v1/reload", f"Bearer {TOKEN}")
        checked = run("check", "-c", self.proxy.file, environment={"CLOCKWISE_ADMIN_TOKEN": TOKEN})
        self.assertEqual(checked.returncode, 1)
        self.assertNotIn(TOKEN, checked.stdout + checked.stderr + self.proxy.log())
        self.assertNotIn(TOKEN, self.call("GET", "/api/v1/status").text)

    def test_the_proxy_port_serves_no_admin_call(self):
        for target in self.READS:
            answer = wire.fetch(self.proxy.web, target, headers={"Authorization": f"Bearer {TOKEN}"})
            self.assertEqual(answer.value("x-server"), "a", target)

    def test_no_path_leads_out_of_the_api(self):
        for target in ("/../etc/passwd", "/..%2f..%2fetc/passwd", "/api/v1/../../etc/passwd", "//etc/passwd",
                       "/api/v1/pools/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "/api/v1/pools/%00",
                       "/static/../../../etc/passwd", "/api/v1/pools/pages/../../status"):
            answer = self.proxy.admin(target)
            self.assertIn(answer.status, (400, 404), target)
            self.assertNotIn("root:", answer.text, target)


class RefusedInTheLog(unittest.TestCase):
    """What the proxy refuses is logged with what of it was understood."""

    def test_each_refusal_has_a_line(self):
        cases = {400: b"GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",
                 405: b"TRACE /b HTTP/1.1\r\nHost: h\r\n\r\n",
                 408: b"GET /c",
                 414: b"GET /d" + b"d" * 9000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
                 417: b"GET /e HTTP/1.1\r\nHost: h\r\nExpect: x\r\n\r\n",
                 431: b"GET /f HTTP/1.1\r\nHost: h\r\n" + b"X: y\r\n" * 300 + b"\r\n"}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "access.log"
            with Origin(name="a") as origin, Site([origin], access_log={"file": str(file)},
                                                  listener={"timeouts": {"header": "300ms"},
                                                            "limits": {"uri_size": "4k"}}) as proxy:
                for status, octets in cases.items():
                    with self.subTest(status), wire.Connection(proxy.web) as connection:
                        connection.send(octets)
                        self.assertEqual(connection.response().status, status)
                with wire.Connection(proxy.web) as connection:
                    connection.send(b"\x16\x03\x01\x00\n\n\r\n")
                    self.assertEqual(connection.response().status, 400)
                wait_until(lambda: file.exists() and file.read_bytes().count(b"\n") == len(cases) + 1, "the lines")
            lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line, (status, octets) in zip(lines, cases.items()):
            method, target = octets.split(b" ")[:2]
            self.assertEqual((line["status"], line["method"], line["target"]),
                             (status, method.decode(), target.decode()[:1024 - len(method) - 1]))
            self.assertTrue(line["reason"])
            self.assertEqual((line["server"], line["attempts"], line["request_id"]), ("", 0, ""))
        self.assertEqual((lines[-1]["status"], lines[-1]["target"]), (400, ""))

    def test_the_id_is_the_one_that_the_server_got(self):
        sent = [None, "mine", "with blank", "x" * 129]
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "access.log"
            with Origin(name="a") as origin, Site([origin], access_log={"file": str(file)}) as proxy:
                for value in sent:
                    headers = {} if value is None else {"X-Request-Id": value}
                    self.assertEqual(proxy.get("/", headers=headers).status, 200)
                wait_until(lambda: file.exists() and file.read_bytes().count(b"\n") == len(sent), "the lines")
                got = [request.value("x-request-id") for request in origin.requests]
            logged = [json.loads(line)["request_id"] for line in file.read_text().splitlines()]
        self.assertEqual(logged, got)
        self.assertEqual(logged[1], "mine")
        self.assertEqual(len(set(logged)), len(sent))
        self.assertTrue(all(logged))


class Logs(unittest.TestCase):
    """No octet from the wire can begin a line, end a field or reach a terminal."""

    HOSTILE = [b"/\x80\xff\xfe", b"/%0a%0d%1b[31m", b'/"quote"\\back', b"/\xc3\xa9\xe2\x80\xa8", b"/{}$`'<>|",
               b"/\xed\xa0\x80", b"/\xf4\x90\x80\x80", b"/" + bytes(range(0xa0, 0x100))]
    VALUES = [b"\x80\xff", b'"', b"\\", b"\\\"", b"a\tb", b"\xe2\x80\xae", b"'; DROP", b"\xc2\x9b31m", b"\xe2\x81\xa6x", b"\xc0\xaf", bytes(range(0x80, 0x100))]

    def lines(self, form):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "access.log"
            with Origin(name="a") as origin, Site([origin], access_log={"file": str(file), "format": form}) as proxy:
                sent = 0
                for target in self.HOSTILE:
                    sent += self.send(proxy, b"GET " + target + b" HTTP/1.1\r\nHost: h\r\n\r\n")
                for value in self.VALUES:
                    sent += self.send(proxy, b"GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: " + value + b"\r\nReferer: " +
                                      value + b"\r\nX-Request-Id: " + value + b"\r\n\r\n")
                # Refused, and logged or not: never with its octets as they came.
                for octets in (b"GET /\x1b]0;x\x07 HTTP/1.1\r\nHost: h\r\n\r\n", b"GET / HTTP/1.1\r\nHost: h\x7f\r\n\r\n",
                               b"GET /\x7f HTTP/1.1\r\nHost: h\r\n\r\n", b"G\x00T / HTTP/1.1\r\nHost: h\r\n\r\n",
                               b"GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: a\rb\r\n\r\n",
                               b"GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: \x1b[2J\r\n\r\n"):
                    self.send(proxy, octets)
                wait_until(lambda: file.exists() and file.read_bytes().count(b"\n") >= sent, "the lines")
                process_log = proxy.log_path.read_bytes()
            raw = file.read_bytes()
        self.assertTrue(raw.endswith(b"\n"))
        for octets in (raw, process_log):
            text = octets.decode("utf-8")
            acts = {c for c in text.replace("\n", "") if unicodedata.category(c) in ("Cc", "Zl", "Zp") or
                    unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")}
            self.assertEqual(acts, set())
        return raw.decode("utf-8").split("\n")[:-1]

    @staticmethod
    def send(proxy, octets):
        with wire.Connection(proxy.web) as connection:
            connection.send(octets)
            return connection.response().status == 200

    def test_json(self):
        for line in self.lines("json"):
            record = json.loads(line)
            self.assertIsInstance(record["status"], int)

    def test_combined(self):
        field = r'"(?:[^"\\]|\\.)*"'
        form = re.compile(rf"\S+ \S+ \S+ \[[^\]]+\] {field} \d{{3}} \S+ {field} {field}.*\Z")
        for line in self.lines("combined"):
            self.assertRegex(line, form)


def late(test):
    """An event, and a handler that answers once it is set."""
    release = threading.Event()
    test.addCleanup(release.set)

    def handler(exchange):
        release.wait(30)
        exchange.reply(200, b"late")
    return release, handler


class Stop(unittest.TestCase):
    def test_reloads_while_it_stops_change_nothing_and_kill_nobody(self):
        release, handler = late(self)
        with Origin(handler, name="a") as origin, Site([origin]) as proxy:
            client = self.enterContext(wire.Connection(proxy.web))
            client.send(wire.request_text("GET", "/"))
            self.assertTrue(origin.wait(lambda: origin.requests))
            proxy.signal(signal.SIGTERM)
            proxy.wait_log("SIGTERM: stopping")
            extra = free_port()
            document = proxy.document
            document["listeners"].append({"name": "more", "address": f"127.0.0.1:{extra}", "pool": "pages"})
            proxy.write(document)
            for _ in range(3):
                proxy.signal(signal.SIGHUP)
            proxy.wait_log("is stopping, nothing changes")
            with self.assertRaises(OSError):
                socket.create_connection(("127.0.0.1", extra), timeout=1)
            release.set()
            answer = client.response()
            self.assertEqual((answer.status, answer.text), (200, "late"))
            self.assertIn(b"close", answer.tokens("connection"))
            self.assertTrue(client.closed())
            self.assertEqual(proxy.wait_exit(), 0)

    def test_who_has_connected_before_the_stop_is_answered(self):
        # Connections in the backlog of a listening socket are reset by its close.
        with Origin(name="a") as origin, Site([origin]) as proxy:
            for _ in range(3):
                wire.fetch(proxy.web)
            clients = [wire.Connection(proxy.web) for _ in range(50)]
            proxy.signal(signal.SIGTERM)
            statuses = []
            for client in clients:
                client.send(wire.request_text("GET", "/"))
                answer = client.response()
                statuses.append((answer.status, answer.tokens("connection")))
                client.close()
            self.assertEqual(proxy.wait_exit(), 0)
            self.assertEqual({status for status, _ in statuses}, {200})
            self.assertEqual(statuses[-1][1], [b"close"])

    def test_workers_and_access_log_change_under_load(self):
        with tempfile.TemporaryDirectory() as folder, Origin(name="a") as origin, Site([origin], workers=1) as proxy:
            stop, failures, served = threading.Event(), [], [0]

            def load():
                while not stop.is_set():
                    try:
                        with wire.Connection(proxy.web) as connection:
                            for _ in range(5):
                                answer = connection.request("GET", "/")
                                served[0] += 1
                                if answer.status != 200:
                                    failures.append(answer.start)
                                if b"close" in answer.tokens("connection"):
                                    break
                    except (OSError, wire.Quiet, wire.Cut) as error:
                        failures.append(repr(error))
            threads = [threading.Thread(target=load, daemon=True) for _ in range(4)]
            for thread in threads:
                thread.start()
            busy = {}
            for number, workers in enumerate((3, 1, 2, 4, 2)):
                log = pathlib.Path(folder) / f"{number}.log"
                document = {**proxy.document, "workers": workers, "access_log": {"file": str(log)}}
                answer = proxy.reload(document)
                self.assertEqual((answer.status, answer.json()["not_applied"]), (200, []), answer.text)
                self.assertEqual(proxy.admin("/api/v1/status").json()["workers"], workers)
                now = served[0]
                wait_until(lambda: served[0] > now + 50, "requests")
                wait_until(lambda: log.exists() and log.stat().st_size > 0, "lines in the new log")
                for worker, before in busy.items():
                    now = proxy.page().value("clockwise_worker_busy_seconds_total", worker=worker)
                    self.assertGreaterEqual(now, before, worker)
                busy = {str(n): proxy.page().value("clockwise_worker_busy_seconds_total", worker=str(n))
                        for n in range(workers)}
            stop.set()
            for thread in threads:
                thread.join(20)
            self.assertEqual(failures, [])
            total = served[0]
            self.assertEqual(proxy.page().sum("clockwise_http_requests_total", code="2xx"), total)
            wait_until(lambda: self.threads(proxy) == 2, lambda: f"two workers, not {self.threads(proxy)}")

    @staticmethod
    def threads(proxy):
        folder = pathlib.Path(f"/proc/{proxy.process.pid}/task")
        return sum((task / "comm").read_text().startswith("worker-") for task in folder.iterdir())

    def test_a_server_that_leaves_finishes_what_it_has(self):
        release, handler = late(self)
        with Origin(handler, name="a") as leaving, Origin(name="b") as staying:
            with Site([leaving], pool={"max_shrink": "100%", "max_remap": "100%"}) as proxy:
                client = wire.Connection(proxy.web)
                client.send(wire.request_text("GET", "/"))
                self.assertTrue(leaving.wait(lambda: leaving.requests))
                self.assertIsNotNone(proxy.change([staying], force=True))
                self.assertEqual(wire.fetch(proxy.web).value("x-server"), "b")
                release.set()
                answer = client.response()
                self.assertEqual((answer.status, answer.text), (200, "late"))
                self.assertEqual(client.request("GET", "/").value("x-server"), "b")
                client.close()


if __name__ == "__main__":
    unittest.main()
