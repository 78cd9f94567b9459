#!/usr/bin/env python3
"""What one request costs, in units that do not depend on how busy the machine is: one that is
proxied, and, with --cache, one that is answered from the cache.

Runs `clockwise serve` with one worker before four small origins and drives 64 keep-alive clients
over 1,000 keys with 1 KiB answers, three times:

  instructions   in user space, under callgrind; whole process, counters zeroed after a warm-up
  system calls   counted by strace over the whole process, attached after a warm-up
  allocations    of the heap, counted by bench/malloc_count.c after a warm-up

Each is divided by the number of requests and held against its limit; the exit code is 0 when all
stay within. Needs valgrind, strace and a compiler ($CC, $CXX; default clang-19, clang++-19).
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ORIGINS = 4


def wait_for(what, seconds, condition):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"check_budget: {what} did not happen within {seconds} s")
        time.sleep(0.02)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def build_tools(folder):
    """Compiles the load program and the counter; returns their paths."""
    load, counter = folder / "load", folder / "malloc_count.so"
    subprocess.run([os.environ.get("CXX", "clang++-19"), "-std=c++20", "-O2",
                    HERE / "load.cpp", "-o", load], check=True)
    subprocess.run([os.environ.get("CC", "clang-19"), "-O2", "-shared", "-fPIC",
                    HERE / "malloc_count.c", "-o", counter], check=True)
    return load, counter


@contextlib.contextmanager
def process(argv, **kwargs):
    child = subprocess.Popen([str(a) for a in argv], **kwargs)
    try:
        yield child
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
        child.wait()


@contextlib.contextmanager
def origins(load, body):
    with contextlib.ExitStack() as stack:
        ports = []
        for _ in range(ORIGINS):
            child = stack.enter_context(process([load, "origin", body], stdin=subprocess.PIPE,
                                                stdout=subprocess.PIPE, text=True))
            ports.append(int(child.stdout.readline().split()[1]))
        yield ports


def configuration(port, admin, servers, cache):
    lines = "\n".join(f"      - {{name: origin-{i}, address: '127.0.0.1:{p}'}}"
                      for i, p in enumerate(servers, 1))
    use, caches = ("\n    cache: main", "caches:\n  main: {size: 256MiB}\n") if cache else ("", "")
    return f"""workers: 1
admin: {{address: '127.0.0.1:{admin}'}}
access_log: off
listeners:
  - {{name: web, address: '127.0.0.1:{port}', protocol: http, pool: pages}}
pools:
  pages:
    protocol: http{use}
    servers:
{lines}
{caches}"""


def is_ready(admin):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{admin}/readyz", timeout=2) as answer:
            return answer.status == 200
    except OSError:
        return False


class Proxy:
    """A running proxy and its clients; `run(n)` sends n requests and insists that all succeed."""

    def __init__(self, child, clients):
        self.pid, self._clients = child.pid, clients

    def run(self, requests):
        self._clients.stdin.write(f"run {requests}\n")
        self._clients.stdin.flush()
        line = self._clients.stdout.readline()
        if not line:
            sys.exit("check_budget: the load client ended")
        result = json.loads(line)
        if result["failed"]:
            sys.exit(f"check_budget: {result['failed']} of {requests} requests failed")
        return result


@contextlib.contextmanager
def proxy(options, load, folder, ports, before=(), environment=None):
    port, admin = free_port(), free_port()
    config = folder / "clockwise.yaml"
    config.write_text(configuration(port, admin, ports, options.cache))
    argv = [*before, options.binary, "serve", "-c", config, "--log-level", "error"]
    with process(argv, env={**os.environ, **(environment or {})}) as child:
        def settled():
            if child.poll() is not None:
                sys.exit("check_budget: the proxy did not start")
            return is_ready(admin)
        wait_for("the start of the proxy", 120, settled)
        with process([load, "client", port, options.clients, 1000], stdin=subprocess.PIPE,
                     stdout=subprocess.PIPE, text=True) as clients:
            running = Proxy(child, clients)
            running.run(options.clients * 50)
            yield running


def instructions(options, load, folder, ports):
    before = ["valgrind", "--tool=callgrind", "--quiet",
              f"--callgrind-out-file={folder}/callgrind.out"]
    with proxy(options, load, folder, ports, before) as running:
        def control(flag):
            subprocess.run(["callgrind_control", flag, str(running.pid)], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        control("--zero")
        running.run(options.requests)
        control("--dump")
        dump = folder / "callgrind.out.1"
        wait_for("the callgrind dump", 60, dump.exists)
        totals = []
        wait_for("the end of the callgrind dump", 60, lambda: totals.extend(
            re.findall(r"^totals: (\d+)", dump.read_text(errors="replace"), re.M)) or totals)
        return int(totals[-1]) / options.requests, ""


def threads_traced(pid):
    statuses = [t.read_text() for t in pathlib.Path(f"/proc/{pid}/task").glob("*/status")]
    return all("TracerPid:\t0\n" not in s for s in statuses)


def system_calls(options, load, folder, ports):
    with proxy(options, load, folder, ports) as running:
        summary = folder / "strace.out"
        argv = ["strace", "-f", "-c", "-o", summary, "-p", running.pid]
        with process(argv, stderr=subprocess.DEVNULL) as tracer:
            wait_for("attaching strace", 20, lambda: threads_traced(running.pid))
            running.run(options.requests)
            tracer.send_signal(signal.SIGINT)
            tracer.wait(30)
    calls = {name: int(count) for count, name in
             re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(?:\d+ +)?(\w+)$", summary.read_text(), re.M)
             if name != "total"}
    top = sorted(calls.items(), key=lambda item: -item[1])[:5]
    detail = ", ".join(f"{name} {count / options.requests:.2f}" for name, count in top)
    return sum(calls.values()) / options.requests, detail


def allocations(options, counter, load, folder, ports):
    count = folder / "allocations"
    environment = {"LD_PRELOAD": str(counter), "MALLOC_COUNT_FILE": str(count)}
    with proxy(options, load, folder, ports, environment=environment) as running:
        def now():
            return struct.unpack("=Q", count.read_bytes())[0]
        start = now()
        running.run(options.requests)
        once = now() - start
        running.run(2 * options.requests)
        twice = now() - start - once
    # Each run opens its connections anew; what twice the requests cost more is what requests cost. The
    # control thread looks at its files now and then: less than one in a hundred requests is 0.
    more = max(0, twice - once)
    return round(more / options.requests, 2), f"{more} more in {options.requests} more requests"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", nargs="?", default="build/release/clockwise")
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--body", type=int, default=1024, help="octets of an answer")
    parser.add_argument("--cache", action="store_true", help="hits, with limits of their own")
    parser.add_argument("--instructions", type=float, metavar="LIMIT")
    parser.add_argument("--system-calls", type=float, metavar="LIMIT")
    parser.add_argument("--allocations", type=float, default=0, metavar="LIMIT")
    parser.add_argument("--only", choices=["instructions", "system-calls", "allocations"])
    options = parser.parse_args()
    if options.instructions is None:
        options.instructions = 6_000 if options.cache else 12_000
    if options.system_calls is None:
        options.system_calls = 2.1 if options.cache else 5.0
    return options


def main():
    options = arguments()
    options.binary = pathlib.Path(options.binary).resolve()
    for tool in ("valgrind", "strace"):
        if not shutil.which(tool):
            sys.exit(f"check_budget: {tool} is missing")
    within = True
    with tempfile.TemporaryDirectory(prefix="clockwise-budget-") as name:
        folder = pathlib.Path(name)
        load, counter = build_tools(folder)
        with origins(load, options.body) as ports:
            measures = {
                "instructions": (options.instructions, lambda: instructions(options, load, folder, ports)),
                "system-calls": (options.system_calls, lambda: system_calls(options, load, folder, ports)),
                "allocations": (options.allocations,
                                lambda: allocations(options, counter, load, folder, ports)),
            }
            for title, (limit, measure) in measures.items():
                if options.only not in (None, title):
                    continue
                value, detail = measure()
                within = within and value <= limit
                verdict = "ok" if value <= limit else "TOO MANY"
                print(f"{title:<13} {value:>9.2f} a request, limit {limit:g}: {verdict}"
                      + (f"  ({detail})" if detail else ""), flush=True)
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
