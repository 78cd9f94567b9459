"""Start, signals, reload and stop of the running proxy, seen from outside."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from support.clockwise import (BINARY, DEADLINE, Proxy, Upstream, answer, configuration, free_port,
                               request, run, wait_until)


def servers(count, first=9001):
    """Servers that no test sends a request to."""
    return [{"name": f"s{i + 1}", "address": f"127.0.0.1:{first + i}"} for i in range(count)]


def names(proxy):
    return [s["name"] for s in proxy.admin("/api/v1/pools/pages").json()["servers"]]


@contextlib.contextmanager
def service_manager():
    """What systemd listens at, and the path to it."""
    with tempfile.TemporaryDirectory() as folder, \
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = os.path.join(folder, "notify")
        manager.bind(path)
        manager.settimeout(DEADLINE)
        yield manager, path


def is_refused(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=DEADLINE).close()
    except ConnectionRefusedError:
        return True
    return False


class StartErrors(unittest.TestCase):
    """Each is one clear message and exit 1, never a hang."""

    def start(self, text=None, path=None):
        with tempfile.TemporaryDirectory(prefix="clockwise-test-") as folder:
            file = pathlib.Path(path or pathlib.Path(folder) / "clockwise.yaml")
            if text is not None:
                file.write_text(text)
            return run("serve", "-c", file)

    def test_missing_file(self):
        done = self.start()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.strip().splitlines()), 1, done.stderr)
        self.assertIn("clockwise.yaml", done.stderr)

    def test_folder(self):
        done = self.start(path=tempfile.gettempdir())
        self.assertEqual(done.returncode, 1)
        self.assertIn("directory", done.stderr)

    def test_no_permission(self):
        if os.geteuid() == 0:
            self.skipTest("root may read everything")
        with tempfile.NamedTemporaryFile() as file:
            os.chmod(file.name, 0)
            self.assertEqual(run("serve", "-c", file.name).returncode, 1)

    def test_bad_yaml_is_printed_as_check_prints_it(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "clockwise.yaml"
            file.write_text("listeners:\n  - nome: web\n")
            serve, check = run("serve", "-c", file), run("check", "-c", file)
        self.assertEqual((serve.returncode, check.returncode), (1, 1))
        self.assertRegex(serve.stderr, r"clockwise\.yaml:2:5: ")
        for line in serve.stderr.splitlines():
            self.assertIn(line, check.stderr + check.stdout)

    def start_with(self, config):
        proxy = Proxy(config).start()
        code = proxy.wait_exit()
        return code, proxy.log()

    def test_listener_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            code, log = self.start_with(
                configuration(servers(1), listener={"address": f"127.0.0.1:{port}"}))
        self.assertEqual(code, 1)
        self.assertRegex(log, rf"listener web: cannot listen on 127\.0\.0\.1:{port}: .*in use")

    def test_port_of_another_proxy_is_in_use(self):
        with Proxy(configuration(servers(1))) as first:
            code, log = self.start_with(
                configuration(servers(1), listener={"address": f"127.0.0.1:{first.port()}"}))
        self.assertEqual(code, 1)
        self.assertIn("in use", log)

    def test_admin_port_in_use(self):
        proxy = Proxy(configuration(servers(1)))
        with socket.create_server(("127.0.0.1", proxy.admin_port)):
            self.assertEqual(proxy.start().wait_exit(), 1)
        self.assertIn(f"127.0.0.1:{proxy.admin_port}", proxy.log())

    def test_server_name_that_does_not_resolve(self):
        code, log = self.start_with(
            configuration([{"name": "a", "address": "nowhere.invalid:80"}]))
        self.assertEqual(code, 1)
        self.assertIn('"nowhere.invalid:80" does not resolve', log)

    def test_too_few_descriptors(self):
        proxy = Proxy(configuration(servers(1)))
        done = subprocess.run(["sh", "-c", 'ulimit -n 64; exec "$0" serve -c "$1"', BINARY,
                               str(proxy.file)], capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual(done.returncode, 1)
        self.assertIn("open files is 64", done.stderr)

    def test_a_limit_of_open_files_that_is_enough_to_start_is_enough_to_serve(self):
        with Upstream("a") as upstream:
            proxy = Proxy(configuration([upstream]))
            needed = re.search(r"need at least (\d+)", self.under(64, proxy))
            self.assertTrue(needed, proxy.log())
            self.assertIn("need at least", self.under(int(needed[1]) - 1, proxy))
            proxy.process = self.spawn(int(needed[1]), proxy)
            self.addCleanup(proxy.kill)
            proxy.wait_ready()
            with contextlib.ExitStack() as clients:
                for _ in range(8):
                    client = http.client.HTTPConnection("127.0.0.1", proxy.port(), timeout=DEADLINE)
                    clients.callback(client.close)
                    client.request("GET", "/")
                    response = client.getresponse()
                    self.assertEqual((response.status, len(response.read()) > 0), (200, True))
            self.assertEqual(proxy.stop(), 0)

    @staticmethod
    def spawn(limit, proxy):
        with open(proxy.log_path, "ab") as log:
            return subprocess.Popen(["sh", "-c", f'ulimit -n {limit}; exec "$0" serve -c "$1"', BINARY, str(proxy.file)],
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def under(self, limit, proxy):
        """What a start with that limit says, which must fail."""
        self.assertEqual(self.spawn(limit, proxy).wait(DEADLINE), 1)
        return proxy.log().splitlines()[-1]


class CommandLine(unittest.TestCase):
    def test_wrong_usage_is_one_line_and_exit_2(self):
        for arguments in ([], ["frobnicate"], ["--frobnicate"], ["serve"], ["serve", "--nonsense"],
                          ["serve", "--listen", "127.0.0.1:1"], ["check"], ["-t"],
                          ["serve", "-c", "x", "--log-level", "loud"],
                          ["plan", "--max-remap", "20", "a", "b"]):
            with self.subTest(arguments):
                done = run(*arguments)
                self.assertEqual(done.returncode, 2, done)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertEqual(done.stdout, "")

    def test_version_and_help(self):
        self.assertRegex(run("--version").stdout, r"^clockwise \d+\.\d+\.\d+ \(revision ")
        for arguments in (["--help"], ["serve", "--help"], ["plan", "--help"]):
            self.assertEqual(run(*arguments).returncode, 0)
        self.assertIn("lookup", run("--help").stdout)

    def test_nginx_habits(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "clockwise.yaml"
            file.write_text(run("serve", "--listen", "127.0.0.1:0", "--to",
                                "127.0.0.1:9001,127.0.0.1:9002", "--print-config").stdout)
            self.assertEqual(run("-t", "-c", file).returncode, 0)
            file.write_text("nonsense: true\n")
            self.assertEqual(run("-t", "-c", file).returncode, 1)
            self.assertEqual(run("-c", file).returncode, 1)

    def test_print_config_says_what_is_wrong(self):
        done = run("serve", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:99999", "--print-config")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("99999", done.stderr)


class Signals(unittest.TestCase):
    def test_each_stop_signal_ends_with_0(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            with self.subTest(number):
                with Proxy(configuration(servers(2), workers=2)) as proxy:
                    proxy.signal(number)
                    self.assertEqual(proxy.wait_exit(), 0)

    def slow_proxy(self, release, **top):
        def handler(received, peer):
            release.wait(DEADLINE)
            return answer(b"late")
        upstream = Upstream("a", handler)
        return upstream, Proxy(configuration([upstream], **top))

    def test_a_request_in_flight_is_finished(self):
        release, answers = threading.Event(), []
        upstream, proxy = self.slow_proxy(release)
        with upstream, proxy:
            port = proxy.port()
            client = threading.Thread(target=lambda: answers.append(request(port, "/")))
            client.start()
            wait_until(lambda: upstream.requests, "request at the server")
            proxy.signal(signal.SIGTERM)
            wait_until(lambda: proxy.admin("/readyz").status == 503, "not ready while stopping")
            # Readiness fails first; the workers stop accepting soon after.
            wait_until(lambda: is_refused(port), "new connections to be refused")
            release.set()
            client.join(DEADLINE)
            self.assertEqual(proxy.wait_exit(), 0)
        self.assertEqual((answers[0].status, answers[0].body), (200, b"late"))

    def test_shutdown_timeout_and_second_signal_end_the_wait(self):
        for second in (False, True):
            release = threading.Event()
            upstream, proxy = self.slow_proxy(release, shutdown_timeout="60s" if second else "100ms")
            with self.subTest(second_signal=second), upstream, proxy:
                client = socket.create_connection(("127.0.0.1", proxy.port()))
                client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                wait_until(lambda: upstream.requests, "request at the server")
                proxy.signal(signal.SIGTERM)
                proxy.wait_log("SIGTERM: stopping")
                if second:
                    proxy.signal(signal.SIGTERM)
                self.assertEqual(proxy.wait_exit(), 0)
                client.close()
                release.set()

    def test_sigusr2_is_not_supported_and_changes_nothing(self):
        with Upstream("a") as upstream, Proxy(configuration([upstream])) as proxy:
            proxy.signal(signal.SIGUSR2)
            proxy.wait_log("SIGUSR2: .*not supported")
            self.assertEqual(proxy.get("/").status, 200)

    def stuck(self, proxy):
        """Starts with a stderr that takes nothing more and that nobody reads; returns its ends."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        proxy.process = subprocess.Popen([BINARY, "serve", "-c", str(proxy.file)], stdin=subprocess.DEVNULL,
                                         stdout=writer, stderr=writer)
        self.addCleanup(proxy.kill)
        proxy.wait_ready()
        own = os.open(f"/proc/self/fd/{writer}", os.O_WRONLY | os.O_NONBLOCK)  # the mode is of this end alone
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(own, b"x")
        os.close(own)
        return reader

    def test_a_stuck_stderr_holds_up_neither_reload_nor_stop(self):
        proxy = Proxy(configuration(servers(2)))
        self.stuck(proxy)
        for count in (3, 4, 5):
            self.assertEqual(proxy.reload(configuration(servers(count))).json()["result"], "applied")
        for _ in range(100):
            proxy.signal(signal.SIGUSR2)
        self.assertEqual(len(names(proxy)), 5)
        self.assertEqual(proxy.stop(), 0)

    def test_a_stuck_stderr_holds_up_no_second_signal(self):
        release = threading.Event()
        self.addCleanup(release.set)
        port = free_port()  # the log, which would name it, is not to be had
        upstream, proxy = self.slow_proxy(release, shutdown_timeout="60s", listener={"address": f"127.0.0.1:{port}"})
        with upstream:
            self.stuck(proxy)
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                wait_until(lambda: upstream.requests, "request at the server")
                proxy.signal(signal.SIGTERM)
                wait_until(lambda: proxy.admin("/readyz").status == 503, "not ready while stopping")
                proxy.signal(signal.SIGTERM)
                self.assertEqual(proxy.wait_exit(), 0)

    def test_a_stderr_that_is_read_again_loses_nothing_that_waited(self):
        proxy = Proxy(configuration(servers(2)))
        reader = self.stuck(proxy)
        self.assertEqual(proxy.reload(configuration(servers(3))).status, 200)
        text = bytearray()
        collector = threading.Thread(target=lambda: [text.extend(piece) for piece in iter(lambda: os.read(reader, 65536), b"")],
                                     daemon=True)
        collector.start()
        self.assertEqual(proxy.stop(), 0)
        wait_until(lambda: b"stopped\n" in text, "the last line")
        self.assertIn(b"reload", text)

    def test_sigusr1_reopens_the_access_log(self):
        with Upstream("a") as upstream, tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "access.log"
            with Proxy(configuration([upstream], access_log={"file": str(log)})) as proxy:
                proxy.get("/one")
                wait_until(lambda: log.exists() and "/one" in log.read_text(), "first line")
                log.rename(log.with_suffix(".1"))
                proxy.signal(signal.SIGUSR1)
                wait_until(log.exists, "new file")
                proxy.get("/two")
                wait_until(lambda: "/two" in log.read_text(), "second line")
                line = json.loads(log.read_text().splitlines()[-1])
                self.assertEqual((line["status"], line["server"], line["target"]), (200, "a", "/two"))

    def test_a_service_manager_that_watches_is_answered(self):
        with service_manager() as (manager, path):
            told = {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "400000"}
            with Proxy(configuration(servers(2), workers=2), environment=told) as proxy:
                self.assertIn(b"READY=1", manager.recv(4096))
                for _ in range(3):
                    self.assertEqual(manager.recv(4096), b"WATCHDOG=1")
                proxy.signal(signal.SIGTERM)
                self.assertIn(b"STOPPING=1", manager.recv(4096))

    def test_a_service_manager_is_told(self):
        with service_manager() as (manager, path):
            with Proxy(configuration(servers(2)), environment={"NOTIFY_SOCKET": path}) as proxy:
                self.assertIn(b"READY=1", manager.recv(4096))
                proxy.reload(configuration(servers(3)))
                self.assertIn(b"RELOADING=1\nMONOTONIC_USEC=", manager.recv(4096))
                self.assertIn(b"READY=1", manager.recv(4096))
                wait_until(lambda: proxy.metric("clockwise_config_reloads_total", trigger="watch") > 0,
                           "the watch has seen the file too")
                manager.recv(4096), manager.recv(4096)
                proxy.signal(signal.SIGTERM)
                self.assertIn(b"STOPPING=1", manager.recv(4096))


class Reload(unittest.TestCase):
    def test_by_api(self):
        with Proxy(configuration(servers(4))) as proxy:
            reply = proxy.reload(configuration(servers(5)))
            self.assertEqual(reply.status, 200, reply)
            report = reply.json()
            self.assertEqual((report["result"], report["trigger"]), ("applied", "api"))
            self.assertAlmostEqual(report["pools"][0]["moved_ratio"], 0.2, delta=0.05)
            self.assertEqual(names(proxy), ["s1", "s2", "s3", "s4", "s5"])
            self.assertEqual(proxy.metric("clockwise_remaps_total", pool="pages"), 1)
            self.assertEqual(proxy.admin("/api/v1/remaps").json()["total"], 1)
            again = proxy.reload()
            self.assertEqual(again.json()["result"], "unchanged")

    def test_by_signal(self):
        with Proxy(configuration(servers(4))) as proxy:
            proxy.write(configuration(servers(5)))
            proxy.signal(signal.SIGHUP)
            wait_until(lambda: proxy.metric("clockwise_config_reloads_total", trigger="signal") == 1,
                       lambda: f"a reload by signal\n{proxy.log()}")
            self.assertEqual(len(names(proxy)), 5)

    def test_by_watch_however_the_file_is_written(self):
        with Proxy(configuration(servers(4))) as proxy:
            proxy.file.write_text(proxy.text(configuration(servers(5))))
            wait_until(lambda: len(names(proxy)) == 5, "written in place")
            proxy.write(configuration(servers(6)))
            wait_until(lambda: len(names(proxy)) == 6, "renamed over")
            self.assertGreater(proxy.metric("clockwise_config_reloads_total", trigger="watch",
                                            result="applied"), 0)

    def test_by_watch_of_the_upstream_file(self):
        def upstream_file(count):
            return "servers:\n" + "".join(f"  - {json.dumps(s)}\n" for s in servers(count))
        config = configuration([], pool={"servers_from": {"file": "upstreams.yaml"}})
        del config["pools"]["pages"]["servers"]
        with Proxy(config, files={"upstreams.yaml": upstream_file(4)}) as proxy:
            (proxy.folder / "upstreams.yaml").write_text(upstream_file(5))
            wait_until(lambda: len(names(proxy)) == 5, lambda: f"five servers\n{proxy.log()}")

    def test_waits_for_a_writer(self):
        with Proxy(configuration(servers(4))) as proxy:
            text = proxy.text(configuration(servers(5)))
            with open(proxy.file, "w") as writer:
                writer.write(text[:len(text) // 2])
                writer.flush()
                reply = []
                caller = threading.Thread(target=lambda: reply.append(proxy.reload()))
                caller.start()
                caller.join(0.5)
                self.assertTrue(caller.is_alive(), "half a file was read")
                writer.write(text[len(text) // 2:])
            caller.join(DEADLINE)
            self.assertEqual(reply[0].status, 200, reply)
            self.assertEqual(len(names(proxy)), 5)
            self.assertEqual(proxy.metric("clockwise_config_reloads_total", result="invalid"), 0)

    def test_bad_file_changes_nothing(self):
        with Proxy(configuration(servers(4))) as proxy:
            reply = proxy.reload("pools: {pages: {servers: [{name: a}]}}\n")
            self.assertEqual(reply.status, 409)
            self.assertEqual(reply.json()["error"]["code"], "invalid")
            self.assertTrue(reply.json()["errors"])
            self.assertEqual(len(names(proxy)), 4)
            self.assertEqual(proxy.metric("clockwise_config_last_reload_successful"), 0)
            proxy.file.unlink()
            self.assertEqual(proxy.reload().json()["error"]["code"], "unreadable")
            self.assertEqual(proxy.admin("/readyz").status, 200)

    def test_guards_refuse_until_forced(self):
        with Proxy(configuration(servers(8))) as proxy:
            proxy.write(configuration(servers(3)))
            for _ in range(2):
                reply = proxy.reload()
                self.assertEqual((reply.status, reply.json()["error"]["code"]), (409, "max_shrink"))
            self.assertEqual(reply.json()["pools"][0]["guard"]["refused_by"], "max_shrink")
            self.assertEqual(len(names(proxy)), 8)
            self.assertGreaterEqual(proxy.metric("clockwise_remap_refused_total", pool="pages"), 2)
            forced = proxy.reload(force=True)
            self.assertEqual((forced.status, forced.json()["forced"]), (200, True))
            self.assertEqual(len(names(proxy)), 3)
            refused = proxy.reload(configuration(servers(12)))
            self.assertEqual(refused.json()["error"]["code"], "max_remap")

    def test_address_change_moves_no_key_and_requests_follow(self):
        with Upstream("old") as old, Upstream("new") as new:
            def config(upstream):
                return configuration([{"name": "a", "address": upstream.address}])
            with Proxy(config(old)) as proxy:
                self.assertEqual(proxy.get("/").body, b"old")
                reply = proxy.reload(config(new)).json()
                self.assertEqual(reply["pools"][0]["moved_ratio"], 0)
                self.assertEqual(proxy.get("/").body, b"new")
                self.assertEqual(proxy.metric("clockwise_remaps_total"), 0)
                self.assertEqual(proxy.metric("clockwise_backend_requests_total", backend="a",
                                              code="2xx"), 2)

    def test_listeners_come_and_go(self):
        with Upstream("a") as upstream:
            one = configuration([upstream])
            two = configuration([upstream])
            extra = free_port()
            two["listeners"].append({"name": "extra", "address": f"127.0.0.1:{extra}", "pool": "pages"})
            with Proxy(one) as proxy:
                port = proxy.port()
                self.assertEqual(proxy.reload(two).json()["not_applied"], [])
                self.assertEqual(request(extra, "/").status, 200)
                proxy.reload(one)
                with self.assertRaises(OSError):
                    request(extra, "/")
                self.assertEqual(request(port, "/").status, 200)
                with socket.create_server(("127.0.0.1", extra)):
                    refused = proxy.reload(two)
                    self.assertEqual(refused.status, 409)
                    self.assertIn("in use", refused.text)

    def test_what_needs_a_restart_is_said(self):
        with Proxy(configuration(servers(4))) as proxy:
            reply = proxy.reload(configuration(servers(5), workers=1000, state_dir="/x")).json()
            self.assertEqual(reply["result"], "applied")
            self.assertEqual([left["path"] for left in reply["not_applied"]], ["workers", "state_dir"])

    def test_no_request_fails_during_reloads(self):
        with Upstream("a") as a, Upstream("b") as b, Upstream("c") as c:
            with Proxy(configuration([a, b], pool={"max_remap": "100%", "max_shrink": "100%"})) as proxy:
                port, failures, counted, stop = proxy.port(), [], [0], threading.Event()

                def client():
                    while not stop.is_set():
                        reply = request(port, f"/{counted[0]}")
                        counted[0] += 1
                        if reply.status != 200:
                            failures.append(reply)
                clients = [threading.Thread(target=client) for _ in range(2)]
                for each in clients:
                    each.start()
                for i in range(30):
                    chosen = [a, b, c] if i % 2 == 0 else [a, b]
                    reply = proxy.reload(configuration(
                        chosen, pool={"max_remap": "100%", "max_shrink": "100%"}))
                    self.assertEqual(reply.status, 200, reply)
                stop.set()
                for each in clients:
                    each.join(DEADLINE)
                self.assertEqual(failures, [])
                self.assertGreater(counted[0], 0)
                self.assertEqual(proxy.metric("clockwise_remaps_total"), 30)


class PortZero(unittest.TestCase):
    def test_all_workers_share_the_port_that_was_taken(self):
        with Upstream("a") as upstream, Proxy(configuration([upstream], workers=2)) as proxy:
            port = proxy.port()
            self.assertNotEqual(port, 0)
            for _ in range(20):
                self.assertEqual(proxy.get("/").status, 200)
            proxy.reload(configuration([upstream, "127.0.0.1:9"], workers=2, pool={"max_remap": "100%"}))
            self.assertEqual(request(port, "/").status in (200, 502, 503), True)


if __name__ == "__main__":
    unittest.main(verbosity=1)
