"""Active checks: a server that fails them is left out, and its keys come home once it passes again."""

import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import SANITIZED, free_port, wait_until  # noqa: E402
from support.origin import Origin, echo  # noqa: E402
from support.ring import Ring  # noqa: E402
from support.scenario import Site  # noqa: E402

NGINX = shutil.which("nginx")
INTERVAL = "500ms" if SANITIZED else "150ms"  # a check of a busy machine must not fail by itself
KEYS = [f"/{n}" for n in range(300)]


def checks(**rules):
    return {"path": "/health", "interval": INTERVAL, "timeout": INTERVAL, "rise": 2, "fall": 3, **rules}


class Checked(Origin):
    """Answers checks as `self.check` does, everything else by an echo."""

    def __init__(self, name):
        self.check = lambda exchange: exchange.reply(200, b"fine")
        self.checks = []
        super().__init__(self.answer, name=name)

    def answer(self, exchange):
        if not exchange.request.target.startswith(b"/health"):
            return echo(exchange)
        self.checks.append(exchange.request)
        return self.check(exchange)

    def fail(self, status=503):
        self.check = lambda exchange: exchange.reply(status, b"ill")

    def pass_(self):
        self.check = lambda exchange: exchange.reply(200, b"fine")


class Site3(unittest.TestCase):
    def start(self, rules=None, names="abc", servers=None, **pool):
        self.origins = {n: self.enterContext(Checked(n)) for n in names}
        self.ring = Ring(dict.fromkeys(names, 1))
        self.prepare()
        self.proxy = self.enterContext(Site(servers or list(self.origins.values()),
                                            pool={"health": checks(**(rules or {})), **pool}))
        return self.proxy

    def prepare(self):
        pass

    def places(self):
        return {key: wire.fetch(self.proxy.web, key).value("x-server") for key in KEYS}

    def expected(self, *out):
        return {key: next(s for s in self.ring.walk(key.encode()) if s not in out) for key in KEYS}

    def wait_up(self, up, name="a"):
        wait_until(lambda: self.proxy.page().sum("clockwise_backend_up", backend=name) == up,
                   lambda: f"{name} up: {up}\n{self.proxy.log()}")

    def wait_checks(self, name="a", more=3):
        origin = self.origins[name]
        target = len(origin.checks) + more
        wait_until(lambda: len(origin.checks) >= target, f"{more} checks of {name}")


class FallAndRise(Site3):
    def test_keys_go_to_the_next_and_come_home_and_no_other_key_moves(self):
        proxy = self.start(names="abcd")
        self.assertEqual(self.places(), self.expected())
        self.origins["b"].fail()
        self.wait_up(0, "b")
        self.assertEqual(self.places(), self.expected("b"))
        self.origins["b"].pass_()
        self.wait_up(1, "b")
        self.assertEqual(self.places(), self.expected())
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_backend_transitions_total"), 2)
        self.assertEqual(page.sum("clockwise_backend_ejections_total"), 0)
        self.assertGreaterEqual(page.sum("clockwise_backend_health_checks_total", backend="b", result="fail"), 2)
        self.assertGreaterEqual(page.sum("clockwise_backend_health_checks_total", backend="a", result="pass"), 2)
        self.assertEqual(page.sum("clockwise_remaps_total"), 0)
        self.assertIn("server b is down: its checks fail, the last: status 503", proxy.log())
        self.assertIn("server b is back: its checks pass", proxy.log())

    def test_the_first_check_decides_by_itself(self):
        self.prepare = lambda: self.origins["a"].fail()
        self.start({"fall": 1000})
        self.wait_up(0)

    def test_one_failure_now_and_then_changes_nothing(self):
        def every_other(exchange):
            exchange.reply(200 if len(self.origins["a"].checks) % 2 else 503, b"")

        proxy = self.start()
        self.wait_checks()
        self.origins["a"].check = every_other
        self.wait_checks(more=16)
        self.assertEqual(proxy.page().sum("clockwise_backend_transitions_total"), 0)
        self.assertGreaterEqual(proxy.page().sum("clockwise_backend_health_checks_total", result="fail"), 6)

    def test_when_all_checks_fail_the_ring_serves_on(self):
        proxy = self.start()
        for origin in self.origins.values():
            origin.fail()
        wait_until(lambda: proxy.page().sum("clockwise_pool_panic") == 1, "panic")
        for name in "abc":
            self.wait_up(0, name)
        self.assertEqual(self.places(), self.expected())
        proxy.wait_log("panic: 1 of 3 servers can be used, so health is left out of account")


class Rules(Site3):
    def check_passes(self):
        self.wait_checks()
        self.assertEqual(self.proxy.page().sum("clockwise_backend_health_checks_total", backend="a", result="fail"), 0)
        self.assertEqual(self.proxy.page().sum("clockwise_backend_up", backend="a"), 1)

    def test_method_path_and_host(self):
        self.start({"method": "HEAD", "path": "/health?full=1", "host": "www.example.com"})
        self.check_passes()
        request = self.origins["a"].checks[0]
        self.assertEqual((request.method, request.target), (b"HEAD", b"/health?full=1"))
        self.assertEqual(request.value("host"), "www.example.com")

    def test_the_host_is_the_address_by_default(self):
        self.start()
        self.check_passes()
        self.assertEqual(self.origins["a"].checks[0].value("host"), self.origins["a"].address)

    def test_status(self):
        self.prepare = lambda: self.origins["a"].fail(302)
        self.start({"status": ["200-299", 404]})
        self.wait_up(0)
        self.proxy.wait_log("server a is down: .*status 302")
        self.origins["a"].fail(404)
        self.wait_up(1)

    def test_a_port_of_its_own(self):
        with Checked("doctor") as doctor:
            self.start({"port": doctor.port})
            wait_until(lambda: len(doctor.checks) > 5, "checks there")
            self.assertEqual(self.origins["a"].checks, [])
            doctor.fail()
            wait_until(lambda: self.proxy.page().sum("clockwise_backend_up") == 0, "all down")

    def test_the_body_must_hold_the_text(self):
        def chunked(text):
            def check(exchange):
                exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for piece in (text[:3], text[3:]):
                    exchange.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                exchange.send(b"0\r\n\r\n")
            return check

        self.prepare = lambda: setattr(self.origins["a"], "check", chunked(b"all is well here"))
        self.start({"body": "is well"})
        self.check_passes()
        self.wait_up(0, "b")
        self.proxy.wait_log("server b is down: .*the body does not hold what it should")
        self.origins["a"].check = lambda exchange: exchange.reply(200, b"x" * 65536 + b"is well")
        self.wait_up(0)
        self.origins["a"].check = lambda exchange: exchange.reply(200, b"x" * 65529 + b"is well")
        self.wait_up(1)
        self.origins["a"].check = lambda exchange: exchange.reply(200, b"")
        self.wait_up(0)

    def test_a_check_that_takes_too_long_fails(self):
        def slow(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\n")
            for _ in range(300):  # each octet in time, the whole not
                exchange.send(b"X")
                exchange.origin.wait(lambda: False, 0.01)

        self.prepare = lambda: setattr(self.origins["a"], "check", slow)
        self.start({"timeout": "30ms"})
        self.wait_up(0)
        self.proxy.wait_log("server a is down: .*no answer in 30 ms")

    def test_what_is_not_http_fails_and_an_interim_answer_does_not(self):
        def odd(exchange):
            exchange.send(b"+PONG\r\n\r\n")
            exchange.close()

        def interim(exchange):
            exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
            exchange.reply(200, b"")

        self.prepare = lambda: (setattr(self.origins["a"], "check", odd), setattr(self.origins["b"], "check", interim))
        self.start()
        self.wait_up(0)
        self.proxy.wait_log("server a is down: .*no HTTP answer")
        self.wait_checks("b")
        self.assertEqual(self.proxy.page().sum("clockwise_backend_up", backend="b"), 1)

    def test_unix_sockets(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = f"{folder}/a.sock"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen()
        self.addCleanup(listener.close)

        def serve():
            try:
                while True:
                    peer, _ = listener.accept()
                    with peer:
                        peer.recv(4096)
                        peer.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
            except OSError:
                pass

        threading.Thread(target=serve, daemon=True).start()
        other = self.enterContext(Checked("b"))
        self.start(servers=[{"name": "a", "address": f"unix:{path}"}, other])
        self.wait_up(0)
        self.proxy.wait_log("server a is down: .*status 500")


class States(Site3):
    def test_draining_servers_are_checked_and_those_that_are_down_are_not(self):
        a, b, c = (self.enterContext(Checked(n)) for n in "abc")
        self.enterContext(Site([a, b.entry(state="draining"), c.entry(state="down")], pool={"health": checks()}))
        wait_until(lambda: len(a.checks) > 4 and len(b.checks) > 4, "checks")
        self.assertEqual(c.checks, [])

    def test_a_server_that_fails_and_is_set_down_has_not_recovered(self):
        proxy = self.start()
        self.origins["a"].fail()
        self.wait_up(0)
        answer = proxy.admin("/api/v1/pools/pages/servers/a", method="PUT", body='{"state": "down"}')
        self.assertEqual(answer.status, 200, answer.text)
        server = next(s for s in proxy.pool()["servers"] if s["name"] == "a")
        self.assertEqual((server["state"], server["health"]), ("down", "unknown"))
        self.assertIsNone(server["health_detail"]["since"])
        self.wait_checks("b")
        self.assertEqual(proxy.page().sum("clockwise_backend_transitions_total"), 1)
        self.assertNotIn("is back", proxy.log())
        proxy.admin("/api/v1/pools/pages/servers/a", method="PUT", body='{"state": "active"}')
        wait_until(lambda: proxy.page().sum("clockwise_backend_transitions_total") == 2, "its first check")
        self.assertEqual(self.places(), self.expected("a"))

    def test_health_outlives_a_reload(self):
        proxy = self.start()
        self.origins["a"].fail()
        self.wait_up(0)
        for retry in (0, 1):
            proxy.document["pools"]["pages"]["retry"] = {"attempts": retry}
            proxy.write(proxy.document)
            proxy.signal(signal.SIGHUP)
            proxy.wait_metric(retry + 1, "clockwise_config_reloads_total", result="applied", trigger="signal")
            self.assertEqual(self.places(), self.expected("a"))
        self.assertEqual(proxy.page().sum("clockwise_backend_transitions_total"), 1)
        self.wait_checks()
        del proxy.document["pools"]["pages"]["health"]
        self.assertEqual(proxy.reload(proxy.document).status, 200)
        self.wait_up(1)
        self.assertEqual(self.places(), self.expected())

    def test_a_new_interval_counts_at_once(self):
        proxy = self.start({"interval": "10m", "timeout": "1s"})
        self.wait_checks(more=1) if not self.origins["a"].checks else None
        proxy.document["pools"]["pages"]["health"] = checks()
        self.assertEqual(proxy.reload(proxy.document).status, 200)
        self.wait_checks(more=5)

    def test_a_server_that_is_gone_is_no_longer_checked(self):
        proxy = self.start()
        self.wait_checks("c")
        proxy.change([self.origins["a"], self.origins["b"]])
        before = len(self.origins["c"].checks)
        self.wait_checks("a", 5)
        self.assertLessEqual(len(self.origins["c"].checks), before + 1)  # one may have been under way


class Nginx:
    """A server of the real kind: a page and a health check, one process of its own."""

    def __init__(self, name, folder):
        self.name, self.port = name, free_port()
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir()
        self.conf = self.folder / "nginx.conf"
        self.conf.write_text(f"""
daemon off; master_process off; pid {self.folder}/pid; error_log {self.folder}/error.log;
events {{ }}
http {{
  access_log off;
  client_body_temp_path {self.folder}/b; proxy_temp_path {self.folder}/p; fastcgi_temp_path {self.folder}/f;
  uwsgi_temp_path {self.folder}/u; scgi_temp_path {self.folder}/s;
  server {{
    listen 127.0.0.1:{self.port};
    add_header X-Server {name} always;
    location / {{ return 200 "page"; }}
    location = /health {{ return 200 "fine"; }}
  }}
}}""")
        self.start()

    def start(self):
        self.process = subprocess.Popen([NGINX, "-c", self.conf, "-p", self.folder], stderr=subprocess.DEVNULL)
        wait_until(self.listens, "nginx")

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait(10)

    def entry(self):
        return {"name": self.name, "address": f"127.0.0.1:{self.port}"}


@unittest.skipUnless(NGINX, "no nginx on this machine")
class RealServers(Site3):
    def test_one_that_is_stopped_and_one_that_hangs(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        servers = {n: Nginx(n, folder) for n in "abc"}
        for server in servers.values():
            self.addCleanup(server.stop)
        self.ring = Ring(dict.fromkeys("abc", 1))
        self.proxy = self.enterContext(Site([s.entry() for s in servers.values()],
                                            pool={"health": checks(body="fine")}))
        self.assertEqual(self.places(), self.expected())
        servers["a"].stop()
        self.wait_up(0)
        self.proxy.wait_log("server a is down: its checks fail, the last: no connection")
        self.assertEqual(self.places(), self.expected("a"))
        servers["a"].start()
        self.wait_up(1)
        self.assertEqual(self.places(), self.expected())
        servers["b"].process.send_signal(signal.SIGSTOP)
        self.wait_up(0, "b")
        self.proxy.wait_log("server b is down: its checks fail, the last: no answer in")
        self.assertEqual(self.places(), self.expected("b"))
        servers["b"].process.send_signal(signal.SIGCONT)
        self.wait_up(1, "b")
        self.assertEqual(self.places(), self.expected())


if __name__ == "__main__":
    unittest.main()
