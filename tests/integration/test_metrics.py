"""The metrics page: every metric of the catalogue is there, right, and moves; its linter is content."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire  # noqa: E402
from support.clockwise import SANITIZED, free_port, request, wait_until  # noqa: E402
from support.origin import Origin  # noqa: E402
from support.ring import Ring, minimum, moves  # noqa: E402
from support.scenario import Site  # noqa: E402

# The catalogue as far as this release has the feature: type, labels, and whether the story below
# makes it move.
CATALOGUE = {
    "clockwise_build_info": ("gauge", {"version", "revision", "compiler"}, False),
    "process_start_time_seconds": ("gauge", set(), False),
    "process_cpu_seconds_total": ("counter", set(), True),
    "process_resident_memory_bytes": ("gauge", set(), True),
    "process_open_fds": ("gauge", set(), True),
    "process_max_fds": ("gauge", set(), False),
    "clockwise_worker_busy_seconds_total": ("counter", {"worker"}, True),
    "clockwise_worker_loop_delay_seconds": ("histogram", set(), True),
    "clockwise_log_messages_dropped_total": ("counter", set(), False),  # a test of its own
    "clockwise_metrics_series": ("gauge", set(), True),
    "clockwise_metrics_series_suppressed_total": ("counter", set(), False),  # a test of its own
    "clockwise_metrics_render_duration_seconds": ("gauge", set(), True),
    "clockwise_config_reloads_total": ("counter", {"trigger", "result"}, True),
    "clockwise_config_last_reload_successful": ("gauge", set(), True),
    "clockwise_config_last_reload_success_timestamp_seconds": ("gauge", set(), True),
    "clockwise_config_last_reload_attempt_timestamp_seconds": ("gauge", set(), True),
    "clockwise_config_reload_duration_seconds": ("histogram", set(), True),
    "clockwise_config_info": ("gauge", {"digest"}, True),
    "clockwise_config_watch_up": ("gauge", set(), False),
    "clockwise_ring_info": ("gauge", {"pool", "digest", "placement"}, True),
    "clockwise_ring_backends": ("gauge", {"pool", "state"}, True),
    "clockwise_ring_share_ratio": ("gauge", {"pool", "backend"}, True),
    "clockwise_backend_weight": ("gauge", {"pool", "backend"}, True),
    "clockwise_ring_build_duration_seconds": ("histogram", {"pool"}, True),
    "clockwise_remaps_total": ("counter", {"pool", "cause"}, True),
    "clockwise_remap_keyspace_moved_total": ("counter", {"pool", "cause"}, True),
    "clockwise_remap_last_moved_ratio": ("gauge", {"pool"}, True),
    "clockwise_remap_last_minimum_ratio": ("gauge", {"pool"}, True),
    "clockwise_remap_last_lost_ratio": ("gauge", {"pool", "backend"}, True),
    "clockwise_remap_last_gained_ratio": ("gauge", {"pool", "backend"}, True),
    "clockwise_remap_last_timestamp_seconds": ("gauge", {"pool"}, True),
    "clockwise_remapped_requests_total": ("counter", {"pool", "cause"}, True),
    "clockwise_remap_refused_total": ("counter", {"pool"}, True),
    "clockwise_handoff_active": ("gauge", {"pool"}, False),        # no handoff in this release
    "clockwise_handoff_requests_total": ("counter", {"pool", "result"}, False),
    "clockwise_requests_routed_total": ("counter", {"pool", "reason"}, True),
    "clockwise_retries_total": ("counter", {"pool", "reason"}, True),
    "clockwise_backend_requests_total": ("counter", {"pool", "backend", "code"}, True),
    "clockwise_backend_requests_in_flight": ("gauge", {"pool", "backend"}, True),
    "clockwise_backend_request_duration_seconds": ("histogram", {"pool", "backend"}, True),
    "clockwise_backend_sent_bytes_total": ("counter", {"pool", "backend"}, True),
    "clockwise_backend_received_bytes_total": ("counter", {"pool", "backend"}, True),
    "clockwise_backend_connections": ("gauge", {"pool", "backend", "state"}, True),
    "clockwise_backend_connections_opened_total": ("counter", {"pool", "backend"}, True),
    "clockwise_backend_errors_total": ("counter", {"pool", "backend", "reason"}, True),
    "clockwise_backend_up": ("gauge", {"pool", "backend"}, True),
    "clockwise_http_requests_total": ("counter", {"listener", "code"}, True),
    "clockwise_http_request_duration_seconds": ("histogram", {"listener"}, True),
    "clockwise_http_requests_in_flight": ("gauge", {"listener"}, True),
    "clockwise_http_connections": ("gauge", {"listener", "state"}, True),
    "clockwise_http_connections_accepted_total": ("counter", {"listener"}, True),
    "clockwise_http_connections_rejected_total": ("counter", {"listener", "reason"}, False),  # test_faults.py
    "clockwise_http_request_errors_total": ("counter", {"listener", "reason"}, True),
    "clockwise_http_received_bytes_total": ("counter", {"listener"}, True),
    "clockwise_http_sent_bytes_total": ("counter", {"listener"}, True),
}

# The same of a pool with a cache.
CACHE_CATALOGUE = {
    "clockwise_cache_requests_total": ("counter", {"pool", "cache", "result"}, True),
    "clockwise_cache_fetches_total": ("counter", {"pool", "cache", "reason"}, True),
    "clockwise_cache_stored_bytes": ("gauge", {"cache", "tier"}, True),
    "clockwise_cache_limit_bytes": ("gauge", {"cache", "tier"}, True),
    "clockwise_cache_objects": ("gauge", {"cache", "tier"}, True),
    "clockwise_cache_evictions_total": ("counter", {"cache", "tier", "reason"}, True),
    "clockwise_cache_admissions_rejected_total": ("counter", {"cache", "tier"}, False),  # a unit test
    "clockwise_cache_collapsed_waiting": ("gauge", {"cache"}, True),
    "clockwise_cache_purges_total": ("counter", {"cache", "scope", "result"}, True),
    "clockwise_cache_sent_bytes_total": ("counter", {"cache", "source"}, True),
    "clockwise_cache_revalidations_total": ("counter", {"cache", "result"}, True),
    "clockwise_cache_eviction_age_seconds": ("histogram", {"cache"}, True),
}

# Every value of these labels has its series from the first scrape on.
VALUES = {
    ("clockwise_config_reloads_total", "result"): {"applied", "unchanged", "invalid", "refused", "unreadable"},
    ("clockwise_requests_routed_total", "reason"): {"home", "failover", "overflow", "hot", "drain", "ramp"},
    ("clockwise_retries_total", "reason"): {"connect", "reset", "timeout", "status", "stale_connection"},
    ("clockwise_backend_requests_total", "code"): {"2xx", "3xx", "4xx", "5xx", "error"},
    ("clockwise_backend_connections", "state"): {"active", "idle"},
    ("clockwise_backend_errors_total", "reason"): {"resolve", "connect", "tls", "timeout", "reset", "protocol"},
    ("clockwise_http_requests_total", "code"): {"2xx", "3xx", "4xx", "5xx", "aborted"},
    ("clockwise_http_connections", "state"): {"active", "idle"},
    ("clockwise_http_connections_rejected_total", "reason"): {"limit", "memory", "tls", "shutdown"},
    ("clockwise_http_request_errors_total", "reason"): {
        "malformed", "framing", "header_too_large", "uri_too_long", "body_too_large", "timeout", "method", "no_backend"},
    ("clockwise_ring_backends", "state"): {"configured", "usable", "down", "draining", "ramping"},
}

CACHE_VALUES = {
    ("clockwise_cache_requests_total", "result"): {"hit", "stale", "revalidated", "miss", "collapsed", "bypass"},
    ("clockwise_cache_fetches_total", "reason"): {"miss", "revalidate", "background", "prefetch"},
    ("clockwise_cache_stored_bytes", "tier"): {"memory"},
    ("clockwise_cache_evictions_total", "reason"): {"size", "expired", "purged", "invalidated"},
    ("clockwise_cache_purges_total", "scope"): {"url", "prefix", "host", "tag", "all"},
    ("clockwise_cache_purges_total", "result"): {"ok", "error"},
    ("clockwise_cache_sent_bytes_total", "source"): {"store", "origin"},
    ("clockwise_cache_revalidations_total", "result"): {"not_modified", "replaced", "failed"},
}
EVICTION_AGES = ["1", "10", "60", "600", "3600", "21600", "86400", "604800", "+Inf"]

BACKEND_BUCKETS = ["0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "1", "5", "+Inf"]
CLIENT_BUCKETS = ["0.00025", "0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1",
                  "2.5", "5", "10", "30", "+Inf"]


def series_of(page, name):
    """The series of a metric, those of a histogram included."""
    kind = {**CATALOGUE, **CACHE_CATALOGUE}[name][0]
    suffixes = ("", "_bucket", "_sum", "_count") if kind == "histogram" else ("",)
    return {key: value for key, value in page.samples.items() if key[0] in {name + s for s in suffixes}}


def answer_as_asked(exchange):
    """The status that the path names; anything else is answered 200."""
    exchange.read_body()
    word = exchange.request.target.split(b"/")[1].split(b"?")[0]
    exchange.reply(int(word) if word in (b"304", b"404", b"500") else 200, b"" if word == b"304" else b"body")


# By the first word of the path. Nothing has to grow old: what is to be stale says so with Age.
CACHED = {
    b"fresh": {"Cache-Control": "max-age=60"},
    b"large": {"Cache-Control": "max-age=60"},
    b"short": {"Cache-Control": "max-age=1"},
    b"private": {"Cache-Control": "no-store"},
    b"soon": {"Cache-Control": "max-age=60", "Age": "50"},
    b"aged": {"Cache-Control": "max-age=60, stale-while-revalidate=600", "Age": "70"},
    b"same": {"Cache-Control": "max-age=60", "Age": "70", "ETag": '"1"'},
    b"other": {"Cache-Control": "max-age=60", "Age": "70", "ETag": '"1"'},
    b"dead": {"Cache-Control": "max-age=60, stale-if-error=600", "Age": "70", "ETag": '"1"'},
}


def answer_to_cache(exchange):
    exchange.read_body()
    word = exchange.request.target.split(b"/")[1]
    asked = exchange.request.value("If-None-Match")
    if asked and word == b"dead":
        exchange.reset()
    if asked and word == b"same":
        return exchange.reply(304, b"", CACHED[word], "Not Modified")
    return exchange.reply(200, b"x" * (100_000 if word == b"large" else 100), CACHED.get(word))


class MetricsCase(unittest.TestCase):
    def origins(self, names, handler=answer_as_asked):
        return [self.enterContext(Origin(handler, name=n)) for n in names]

    def site(self, servers, **config):
        return self.enterContext(Site(servers, **config))

    def lint(self, page):
        promtool = shutil.which("promtool")
        self.assertTrue(promtool, "promtool is not installed (Debian: prometheus)")
        done = subprocess.run([promtool, "check", "metrics"], input=page.text, text=True, capture_output=True,
                              timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))


class Lint(MetricsCase):
    def test_the_page_is_clean_at_start_after_traffic_and_after_reloads(self):
        a, b, c = self.origins("abc")
        proxy = self.site([a, b])
        self.lint(proxy.page())
        with wire.Connection(proxy.web) as connection:
            for target in ("/", "/404", "/500", "/304"):
                connection.request("GET", target)
        self.lint(proxy.page())
        for step in range(20):
            proxy.change([a, b, c.entry(weight=1 + step)] if step < 4 else [a, b.entry(weight=1 + step / 40)], force=True)
        proxy.write_servers("servers: [")
        proxy.reload()
        self.lint(proxy.page())

    def test_the_page_is_clean_with_one_and_with_300_servers(self):
        (a,) = self.origins("a")
        proxy = self.site([a])
        self.lint(proxy.page())
        many = [a, *({"name": f"s{n}", "address": f"127.0.0.1:{20000 + n}"} for n in range(299))]
        proxy.change(many, force=True)
        page = proxy.page()
        self.lint(page)
        self.assertEqual(len(page.series("clockwise_backend_up")), 300)
        self.assertAlmostEqual(page.sum("clockwise_ring_share_ratio"), 1, delta=1e-9)

    def test_openmetrics_and_compression_when_asked(self):
        (a,) = self.origins("a")
        proxy = self.site([a])
        self.assertTrue(proxy.admin("/metrics").headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        answer = proxy.admin("/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        if answer.headers["Content-Type"].startswith("application/openmetrics-text"):
            self.assertTrue(answer.text.endswith("# EOF\n"))
        import gzip
        answer = proxy.admin("/metrics", headers={"Accept-Encoding": "gzip"})
        if answer.headers["Content-Encoding"] == "gzip":
            self.assertIn(b"clockwise_build_info", gzip.decompress(answer.body))

    def test_filters(self):
        (a,) = self.origins("a")
        proxy = self.site([a])
        text = proxy.admin("/metrics?name=clockwise_backend_up").text
        self.assertEqual({line.split("{")[0] for line in text.splitlines() if line and line[0] != "#"},
                         {"clockwise_backend_up"})
        self.assertNotIn('pool="', proxy.admin("/metrics?pool=other").text)


class Catalogue(MetricsCase):
    def test_every_metric_is_there_from_the_first_scrape_with_its_type_and_labels(self):
        proxy = self.site(self.origins("ab"))
        page = proxy.page()
        types = dict(line.split()[2:4] for line in page.text.splitlines() if line.startswith("# TYPE "))
        for name, (kind, labels, _) in CATALOGUE.items():
            with self.subTest(name):
                self.assertEqual(types.get(name), kind)
                found = series_of(page, name)
                if not name.startswith(("clockwise_remap_last", "clockwise_handoff")):
                    self.assertTrue(found, "no series")
                for _, pairs in found:
                    self.assertEqual({label for label, _ in pairs} - {"le"}, labels)
        for (name, label), values in VALUES.items():
            with self.subTest(name, label=label):
                self.assertEqual({s[label] for s, _ in page.series(name)}, values)
        for name, buckets in (("clockwise_backend_request_duration_seconds", BACKEND_BUCKETS),
                              ("clockwise_http_request_duration_seconds", CLIENT_BUCKETS)):
            found = {float(s["le"]) for s, _ in page.series(name + "_bucket")}
            self.assertEqual(found, {float(b) for b in buckets}, name)
        self.assertEqual(page.sum("clockwise_build_info"), 1)
        self.assertAlmostEqual(page.sum("process_start_time_seconds"), time.time(), delta=60)
        self.assertEqual(page.sum("process_max_fds"), self.limit_of(proxy))

    @staticmethod
    def limit_of(proxy):
        with open(f"/proc/{proxy.process.pid}/limits", encoding="ascii") as limits:
            return next(int(line.split()[3]) for line in limits if line.startswith("Max open files"))

    def test_every_metric_that_can_move_is_made_to_move(self):
        pages = self.story()
        still = []
        for name, (_, _, moves_) in CATALOGUE.items():
            if moves_ and not any(series_of(pages[0], name) != series_of(page, name) for page in pages[1:]):
                still.append(name)
        self.assertEqual(still, [])
        last = pages[-1]
        unmoved = []
        for name, label, values in [
            ("clockwise_config_reloads_total", "trigger", {"start", "watch", "signal", "api"}),
            ("clockwise_config_reloads_total", "result", VALUES["clockwise_config_reloads_total", "result"]),
            ("clockwise_requests_routed_total", "reason", {"home", "failover"}),
            ("clockwise_retries_total", "reason", {"connect", "stale_connection"}),
            ("clockwise_backend_requests_total", "code", VALUES["clockwise_backend_requests_total", "code"]),
            ("clockwise_backend_errors_total", "reason", {"connect", "timeout", "reset", "protocol"}),
            ("clockwise_http_requests_total", "code", VALUES["clockwise_http_requests_total", "code"]),
            ("clockwise_http_request_errors_total", "reason", VALUES["clockwise_http_request_errors_total", "reason"]),
        ]:
            unmoved += [f"{name}{{{label}={v}}}" for v in sorted(values) if not last.sum(name, **{label: v})]
        self.assertEqual(unmoved, [])

    def story(self):
        """Everything that happens to a proxy, in one life; a scrape after each event."""
        hold, end = threading.Event(), threading.Event()
        self.addCleanup(end.set)
        kept = {}

        def handler(exchange):
            if exchange.request.target.startswith(b"/hold"):
                hold.wait(30)
            elif exchange.request.target.startswith(b"/silent"):
                end.wait(30)
            elif exchange.request.target.startswith(b"/garbage"):
                exchange.send(b"garbage\r\n\r\n")
                exchange.close()
            elif exchange.request.target.startswith(b"/reset"):
                exchange.read_body()
                exchange.reset()
            elif exchange.request.target.startswith(b"/stale"):
                if kept.get(exchange.connection_number):
                    exchange.reset()
            kept[exchange.connection_number] = True
            answer_as_asked(exchange)

        a, b = self.origins("ab", handler)
        (c,) = self.origins("c")
        nowhere = {"name": "n", "address": f"127.0.0.1:{free_port()}"}
        proxy = self.site([a, b], pool={"timeouts": {"response": "300ms"}},
                          listener={"limits": {"body_size": "1k"}, "timeouts": {"header": "300ms"}})
        pages = [proxy.page()]

        def scrape():
            pages.append(proxy.page())

        with wire.Connection(proxy.web) as connection:
            for target in ("/", "/304", "/404", "/500", "/stale/1", "/stale/2", "/stale/3"):
                connection.request("GET", target)
            scrape()
            connection.send(wire.request_text("GET", "/hold"))
            wait_until(lambda: any(r.target == b"/hold" for r in a.requests + b.requests), "the request")
            scrape()
            hold.set()
            connection.response()
        for octets in (b"GET / HTTP/1.1\r\nA B: c\r\n\r\n",
                       b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n",
                       wire.request_text("GET", "/", {"A": "v" * 50000}), wire.request_text("GET", "/" + "u" * 60000),
                       wire.request_text("POST", "/", body=b"x" * 2000), wire.request_text("CONNECT", "h:1"),
                       b"GET / HTTP/1.1\r\nHost:",
                       *(wire.request_text("POST", f"/{word}", body=b"x") for word in ("silent", "garbage", "reset"))):
            with wire.Connection(proxy.web) as connection:
                connection.send(octets)
                try:
                    connection.response()
                except (OSError, wire.Quiet):
                    pass
            scrape()
        connection = wire.Connection(proxy.web)
        connection.send(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nx")
        wait_until(lambda: proxy.page().sum("clockwise_http_requests_in_flight"), "a request in flight")
        connection.abort()
        proxy.wait_metric(1, "clockwise_http_requests_total", code="aborted")
        self.reloads(proxy, a, b, c, nowhere, scrape)
        return pages

    def reloads(self, proxy, a, b, c, nowhere, scrape):
        proxy.change([a, b, c])
        with wire.Connection(proxy.web) as connection:
            for n in range(50):
                connection.request("GET", f"/{n}")
        scrape()
        self.assertEqual(proxy.reload().status, 200)                      # unchanged
        proxy.write_servers([a.entry(weight=0.5), b, c.entry(weight=30)])
        self.assertEqual(proxy.reload().status, 409)                      # refused
        proxy.write_servers("servers: [")
        self.assertEqual(proxy.reload().status, 409)                      # invalid
        scrape()
        os.unlink(proxy.servers_file)
        self.assertEqual(proxy.reload().status, 409)                      # unreadable
        proxy.write_servers([a, b, c.entry(weight=2)])                    # watch
        wait_until(lambda: proxy.page().sum("clockwise_config_reloads_total", trigger="watch", result="applied"), "watch")
        proxy.write_servers([a, b, c.entry(state="draining")])
        proxy.signal(signal.SIGHUP)
        proxy.wait_metric(1, "clockwise_config_reloads_total", trigger="signal")
        scrape()
        proxy.change([a, nowhere], force=True)
        with wire.Connection(proxy.web) as connection:
            for n in range(20):
                connection.request("GET", f"/{n}")
        scrape()
        proxy.change([nowhere], force=True)
        wire.fetch(proxy.web)
        scrape()

    def test_dropped_log_lines_are_counted(self):
        (a,) = self.origins("a")
        proxy = Site([a])
        fifo = proxy.folder / "access.fifo"
        os.mkfifo(fifo)
        reader = os.open(fifo, os.O_RDWR)  # never read
        proxy.write({**proxy.document, "access_log": {"file": str(fifo), "format": "json"}})
        try:
            with proxy, wire.Connection(proxy.web) as connection:
                deadline = time.monotonic() + 60
                while not proxy.page().sum("clockwise_log_messages_dropped_total") and time.monotonic() < deadline:
                    for _ in range(100):
                        self.assertEqual(connection.request("GET", "/" + "l" * 7000).status, 200)
                self.assertGreater(proxy.page().sum("clockwise_log_messages_dropped_total"), 0)
        finally:
            os.close(reader)

    def test_series_above_the_limit_are_suppressed_and_counted(self):
        servers = [{"name": f"s{n}", "address": f"127.0.0.1:{20000 + n}"} for n in range(100)]
        proxy = self.site(servers, metrics={"max_series": 1000})
        page = proxy.page()
        self.assertGreater(page.sum("clockwise_metrics_series_suppressed_total"), 0)
        self.assertLess(len(page.samples), 1010)  # the page's figures about itself are always there
        self.lint(page)


class Caches(MetricsCase):
    """A pool that caches, from its first scrape until the cache is gone."""

    def caching(self, handler=answer_to_cache, **config):
        settings = {"size": "1MiB", "stale_if_error": "0s", "refresh_ahead": "50%"}
        return self.site(self.origins("a", handler), caches={"store": settings}, **config,
                         pool={"cache": "store", "retry": {"attempts": 0}})

    def purge(self, proxy, **what):
        return proxy.admin("/api/v1/caches/store/purge", method="POST", body=json.dumps(what)).status

    def test_every_metric_is_there_from_the_first_scrape(self):
        page = self.caching().page()
        self.lint(page)
        types = dict(line.split()[2:4] for line in page.text.splitlines() if line.startswith("# TYPE "))
        for name, (kind, labels, _) in CACHE_CATALOGUE.items():
            with self.subTest(name):
                self.assertEqual(types.get(name), kind)
                found = series_of(page, name)
                self.assertTrue(found, "no series")
                for _, pairs in found:
                    self.assertEqual({label for label, _ in pairs} - {"le"}, labels)
        for (name, label), values in CACHE_VALUES.items():
            with self.subTest(name, label=label):
                self.assertEqual({s[label] for s, _ in page.series(name)}, values)
        self.assertEqual({float(s["le"]) for s, _ in page.series("clockwise_cache_eviction_age_seconds_bucket")},
                         {float(age) for age in EVICTION_AGES})
        self.assertEqual(page.sum("clockwise_cache_limit_bytes"), 1 << 20)
        self.assertEqual(page.value("clockwise_metrics_series"), len(page.samples))

    def test_every_metric_that_can_move_is_made_to_move(self):
        go_on = threading.Event()
        self.addCleanup(go_on.set)

        def handler(exchange):
            if exchange.request.target == b"/fresh/held":
                go_on.wait(30)
            answer_to_cache(exchange)

        proxy = self.caching(handler)
        pages = [proxy.page()]
        with wire.Connection(proxy.web) as connection:
            for target in ("fresh/1", "private", "soon", "aged", "same", "other", "dead", "fresh/2", "short"):
                for _ in range(2):
                    self.assertEqual(connection.request("GET", "/" + target).status, 200, target)
            self.assertEqual(connection.request("POST", "/fresh/1", body=b"x").status, 200)
        pages.append(proxy.page())
        with wire.Connection(proxy.web) as first, wire.Connection(proxy.web) as second:
            for connection in (first, second):
                connection.send(wire.request_text("GET", "/fresh/held"))
            proxy.wait_metric(1, "clockwise_cache_collapsed_waiting")
            pages.append(proxy.page())
            go_on.set()
            self.assertEqual([c.response().status for c in (first, second)], [200, 200])
        for what in ({"url": "http://h.example/fresh/2"}, {"prefix": "x"}, {"host": "x"}, {"tag": "x"}):
            self.assertEqual(self.purge(proxy, **what), 200)
        self.assertEqual(self.purge(proxy, all=False), 400)
        self.assertEqual(self.purge(proxy, all=True, soft=True), 200)
        proxy.wait_metric(1, "clockwise_cache_evictions_total", reason="expired")
        with wire.Connection(proxy.web) as connection:
            for number in range(12):
                connection.request("GET", f"/large/{number}")
        pages.append(proxy.page())
        proxy.document["caches"]["store"]["size"] = "2MiB"
        self.assertEqual(proxy.reload(proxy.document).status, 200)
        pages.append(proxy.page())
        self.lint(pages[-1])
        self.assertEqual([name for name, (_, _, moves_) in CACHE_CATALOGUE.items() if moves_ and not any(
            series_of(pages[0], name) != series_of(page, name) for page in pages[1:])], [])
        self.assertEqual([f"{name}{{{label}={v}}}" for (name, label), values in CACHE_VALUES.items()
                          for v in sorted(values) if not pages[-1].sum(name, **{label: v})], [])

    def test_counters_outlive_the_store_the_pool_and_for_a_while_the_cache(self):
        proxy = self.caching(metrics={"removed_grace": "2s"})
        with wire.Connection(proxy.web) as connection:
            for number in range(12):
                connection.request("GET", f"/large/{number}")
        self.assertEqual(self.purge(proxy, all=True), 200)
        counters = [n for n, (kind, _, _) in CACHE_CATALOGUE.items() if kind != "gauge"]

        def counted(page):
            return {name: series_of(page, name) for name in counters}

        before = counted(proxy.page())
        self.assertEqual(proxy.page().sum("clockwise_cache_requests_total", result="miss"), 12)
        del proxy.document["pools"]["pages"]["cache"]
        proxy.document["caches"]["store"]["size"] = "2MiB"
        self.assertEqual(proxy.reload(proxy.document).status, 200)
        page = proxy.page()
        self.assertEqual(counted(page), before)
        self.assertEqual(page.sum("clockwise_cache_objects"), 0)
        of_pool = ("clockwise_cache_requests_total", "clockwise_cache_fetches_total")
        wait_until(lambda: not proxy.page().series(of_pool[0]), "the series of the pool to go", 30)
        page = proxy.page()
        self.assertEqual(counted(page), {**before, **dict.fromkeys(of_pool, {})})
        self.assertEqual(proxy.admin("/api/v1/caches/store").json()["requests_total"]["miss"], 12)
        del proxy.document["caches"]
        self.assertEqual(proxy.reload(proxy.document).status, 200)
        page = proxy.page()
        self.assertEqual(page.series("clockwise_cache_stored_bytes"), [])
        self.assertEqual(counted(page), {**before, **dict.fromkeys(of_pool, {})})
        wait_until(lambda: "clockwise_cache" not in proxy.page().text, "its last series to go", 30)


class Figures(MetricsCase):
    def test_sums_match_what_the_client_sent(self):
        proxy = self.site(self.origins("abc"), workers=2)
        sent = {"2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0}
        for _ in range(5):
            with wire.Connection(proxy.web) as connection:
                for target, code in [("/", "2xx"), ("/x", "2xx"), ("/304", "3xx"), ("/404", "4xx"), ("/500", "5xx")]:
                    connection.request("GET", target)
                    sent[code] += 1
        with wire.Connection(proxy.web) as connection:
            connection.send(b"broken\r\n\r\n")
            self.assertEqual(connection.response().status, 400)
        page = proxy.page()
        routed = sum(sent.values())
        self.assertEqual({c: page.sum("clockwise_backend_requests_total", code=c) for c in sent}, sent)
        self.assertEqual(page.sum("clockwise_requests_routed_total"), routed)
        self.assertEqual(page.sum("clockwise_requests_routed_total", reason="home"), routed)
        self.assertEqual(page.sum("clockwise_http_requests_total"), routed + 1)
        self.assertEqual(page.sum("clockwise_http_request_duration_seconds_count"), routed + 1)
        self.assertEqual(page.sum("clockwise_backend_request_duration_seconds_count"), routed)
        self.assertEqual(page.sum("clockwise_http_connections_accepted_total"), 6)
        self.assertEqual(page.sum("clockwise_http_requests_in_flight"), 0)
        self.assertEqual(page.sum("clockwise_backend_requests_in_flight"), 0)

    def test_bytes_match_what_passed(self):
        (a,) = self.origins("a", lambda exchange: exchange.reply(200, exchange.read_body() * 2))
        proxy = self.site([a])
        with wire.Connection(proxy.web) as connection:
            sent = wire.request_text("POST", "/", body=b"x" * 100000)
            connection.send(sent)
            answer = connection.response()
        page = proxy.page()
        self.assertEqual(page.sum("clockwise_http_received_bytes_total"), len(sent))
        self.assertEqual(page.sum("clockwise_http_sent_bytes_total"), len(answer.head) + len(answer.body))
        request_ = a.requests[0]
        self.assertEqual(page.sum("clockwise_backend_sent_bytes_total"), len(request_.head) + len(request_.body))
        self.assertEqual(page.sum("clockwise_backend_received_bytes_total"),
                         len(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n") + 200000)

    def test_remap_figures_equal_an_independent_account(self):
        a, b, c, d, e = self.origins("abcde")
        proxy = self.site([a, b, c, d])
        before, total = Ring(dict.fromkeys("abcd", 1)), 0.0
        for weights, servers in [
            (dict(zip("abcde", [1] * 5)), [a, b, c, d, e]),
            (dict(a=1, b=2.5, c=1, d=1, e=1), [a, b.entry(weight=2.5), c, d, e]),
            (dict(a=1, b=2.5, d=1, e=1), [a, b.entry(weight=2.5), c.entry(state="draining"), d, e]),
            (dict(a=0.3, b=2.5, e=1), [a.entry(weight=0.3), b.entry(weight=2.5), e]),
        ]:
            proxy.change(servers)
            after = Ring(weights)
            moved = moves(before, after)
            total += sum(moved.values())
            page = proxy.page()
            self.assertAlmostEqual(page.value("clockwise_remap_last_moved_ratio"), sum(moved.values()), delta=1e-6)
            self.assertAlmostEqual(page.value("clockwise_remap_last_minimum_ratio"), minimum(before, after), delta=1e-6)
            self.assertAlmostEqual(page.sum("clockwise_remap_keyspace_moved_total"), total, delta=1e-6)
            for metric, side in (("lost", 0), ("gained", 1)):
                found = {s["backend"]: v for s, v in page.series(f"clockwise_remap_last_{metric}_ratio")}
                self.assertAlmostEqual(sum(found.values()), sum(moved.values()), delta=1e-6)
                for name in set(before.weights) | set(after.weights):
                    share = sum(v for pair, v in moved.items() if pair[side] == name)
                    self.assertAlmostEqual(found.get(name, 0), share, delta=1e-6)
            shares = {s["backend"]: v for s, v in page.series("clockwise_ring_share_ratio")}
            self.assertAlmostEqual(sum(shares.values()), 1, delta=1e-6)
            for name, share in after.shares().items():
                self.assertAlmostEqual(shares[name], share, delta=1e-6)
            before = after
        self.assertEqual(page.sum("clockwise_remaps_total", cause="reload"), 4)

    def test_order_of_the_list_does_not_change_the_digest(self):
        a, b, c = self.origins("abc")
        digests = [self.site(list(order)).page().series("clockwise_ring_info")[0][0]["digest"]
                   for order in ((a, b, c), (c, a, b))]
        self.assertEqual(digests[0], digests[1])

    def test_the_states_of_the_ring(self):
        a, b, c, d = self.origins("abcd")
        proxy = self.site([a, b, c.entry(state="draining"), d.entry(state="down")])
        page = proxy.page()
        states = {s["state"]: v for s, v in page.series("clockwise_ring_backends")}
        self.assertEqual((states["configured"], states["draining"], states["down"]), (4, 1, 1))
        self.assertEqual({s["backend"]: v for s, v in page.series("clockwise_backend_up")}, {"a": 1, "b": 1, "c": 0, "d": 0})

    def test_uris_and_hosts_make_no_series(self):
        (a,) = self.origins("a")
        proxy = self.site([a])
        wire.fetch(proxy.web)
        series = set(proxy.page().samples)
        count, batch = (2000 if SANITIZED else 10000), 50
        with wire.Connection(proxy.web) as connection:
            for start in range(0, count, batch):
                connection.send(b"".join(wire.request_text("GET", f"/u/{n}?q={n}", host=f"h{n}.example")
                                         for n in range(start, start + batch)))
                for _ in range(batch):
                    self.assertEqual(connection.response().status, 200)
        page = proxy.page()
        self.assertEqual(set(page.samples), series)
        self.assertEqual(page.sum("clockwise_http_requests_total"), count + 1)
        self.assertEqual(proxy.page().value("clockwise_metrics_series"), len(page.samples))

    def test_a_server_that_left_keeps_its_counters_for_the_grace_time_only(self):
        a, b = self.origins("ab")
        proxy = self.site([a, b], metrics={"removed_grace": "1s"})
        with wire.Connection(proxy.web) as connection:
            for n in range(20):
                connection.request("GET", f"/{n}")
        served = proxy.page().sum("clockwise_backend_requests_total", backend="b")
        self.assertGreater(served, 0)
        proxy.change([a], force=True)
        page = proxy.page()
        for gauge in ("clockwise_backend_up", "clockwise_ring_share_ratio", "clockwise_backend_weight",
                      "clockwise_backend_connections"):
            self.assertEqual(page.series(gauge, backend="b"), [], gauge)
        self.assertEqual(page.sum("clockwise_backend_requests_total", backend="b"), served)
        self.assertGreater(page.sum("clockwise_remap_last_lost_ratio", backend="b"), 0)
        wait_until(lambda: 'backend="b"' not in proxy.page().text, "its last series to go", 30)

    def test_a_server_that_returns_within_the_grace_time_goes_on_counting(self):
        a, b = self.origins("ab")
        proxy = self.site([a, b])
        with wire.Connection(proxy.web) as connection:
            for n in range(20):
                connection.request("GET", f"/{n}")
        served = proxy.page().sum("clockwise_backend_requests_total", backend="b")
        proxy.change([a], force=True)
        proxy.change([a, b], force=True)
        self.assertEqual(proxy.page().sum("clockwise_backend_requests_total", backend="b"), served)
        self.assertEqual(proxy.page().value("clockwise_backend_up", backend="b"), 1)


class Scrape(MetricsCase):
    """A real Prometheus reads the page."""

    def setUp(self):
        binary = shutil.which("prometheus")
        self.assertTrue(binary, "prometheus is not installed (Debian: prometheus)")
        self.folder = tempfile.mkdtemp(prefix="clockwise-prometheus-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.binary, self.port = binary, free_port()

    def prometheus(self, target):
        config = pathlib.Path(self.folder, "prometheus.yml")
        config.write_text("global: {scrape_interval: 1s, scrape_timeout: 1s}\n"
                          f"scrape_configs: [{{job_name: clockwise, static_configs: [{{targets: ['{target}']}}]}}]\n")
        process = subprocess.Popen(
            [self.binary, f"--config.file={config}", f"--storage.tsdb.path={self.folder}/data",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

    def query(self, expression):
        try:
            answer = request(self.port, "/api/v1/query?query=" + urllib.parse.quote(expression))
        except OSError:
            return None
        if answer.status != 200:
            return None
        result = json.loads(answer.body)["data"]["result"]
        return float(result[0]["value"][1]) if result else None

    def test_a_prometheus_stores_what_the_page_says(self):
        proxy = self.site(self.origins("abc"))
        with wire.Connection(proxy.web) as connection:
            for n in range(25):
                connection.request("GET", f"/{n}")
        self.prometheus(f"127.0.0.1:{proxy.admin_port}")
        wait_until(lambda: self.query("up{job='clockwise'}") == 1, "a scrape", 60)
        self.assertEqual(self.query("sum(clockwise_http_requests_total)"), 25)
        self.assertAlmostEqual(self.query("sum(clockwise_ring_share_ratio)"), 1, delta=1e-9)
        self.assertEqual(self.query("count(clockwise_backend_up == 1)"), 3)
        self.assertEqual(self.query("scrape_samples_scraped"), len(proxy.page().samples))


if __name__ == "__main__":
    unittest.main()
