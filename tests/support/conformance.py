#!/usr/bin/env python3
"""Byte-exact HTTP/1.1 cases: the runner is the client and the origin server, the proxy is between.

    conformance.py --proxy 127.0.0.1:8080 --origin-port 9001 tests/golden/http1/*.json

A case file is {"cases": [...], "tables": [...]}. Text stands for octets (latin-1); $TOK becomes the 14
octets that name this run of the case. A table is a case with `values`, {name: text}: each makes a case of
its own, `id` followed by the name, in which $V is the text. A case has `id`, `group`, `title`, `rfc`,
`level` (must, should, best) and

client   what the client does: a text is sent; {"rep": s, "n": k} sends s k times; {"drip": s} sends
         octet by octet; {"await": k} waits for k final responses; {"await100": s} waits up to s
         seconds for an interim one; {"sleep": s}; {"fin": 1} half-closes; {"close": 1}; {"rst": 1}
methods  the methods it uses, in order, since a response to HEAD has no body (default: GET)
origin   what the origin does with a request of this case: a text is sent; "@body" reads the request
         body; "@default" reads it and answers 200; {"rep", "n"}, {"sleep"}, {"close"}, {"rst"}.
         A list of lists: one script per request, the last one for all that follow
side     "response" when the origin's answer is what is tried out, else the request is
t        seconds until a case without an answer counts as unanswered
noprobe  nothing more is sent on the same connection
expect   ok: the outcomes that are allowed
           of a request:  forward  every request arrived once and was answered by its own response
                          reject   refused with an error or closed; the origin got nothing complete
                          local    answered by the proxy itself without an error
                          wait     no answer, nothing forwarded
           of a response: relay, bad-gateway (a 5xx of the proxy's own), incomplete (the client can
                          tell that it was cut)
         n: requests that the client sent (1)         resps: final responses to wait for (n)
         max_resps: more are a fault                   max_fwd: so often may the origin see it
         status: allowed for a reject or relay         close: after a reject the connection closes
         close_fwd: also after a forward               second: the second response is "own" if there
                                                       is one, or "must" come unless closed
         fwd: method, target, host, body, body_len, has, lacks, as_base (fields that any request gets)
         resp: status, body, has, lacks, nobody, not_chunked of the first final response

Hard faults are never allowed, whatever the case expects: a smuggled request, a malformed or ambiguous
message passed on, more requests than were sent, a response that belongs to another request, responses
out of order, and a proxy that no longer answers. After each case a probe follows on the same connection
(if it is still open) and on new ones.

The octets of a case may come in several ways, and none of them may change what happens (WAYS):
plain, one by one, on a connection that served a request before, or right behind a request that still
waits for its answer.
"""

import argparse
import json
import pathlib
import re
import socket
import sys
import threading
import time
import uuid

if __name__ == "__main__":
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support import wire
from support.origin import Origin

_TOKEN = re.compile(rb"tk[0-9a-f]{12}")
_OWN_ERROR = re.compile(r"4\d\d|501|505")
WAYS = ("plain", "dripped", "kept", "pipelined")
MOST_DRIPPED = 700      # octets of a case that are worth being sent one by one
ANSWER_SECONDS = 2.0    # until a case counts as unanswered
PROBE_SECONDS = 10.0    # until the proxy counts as stuck
QUIET_SECONDS = 0.1     # surplus responses show up within this time


def octets(text, token):
    return text.encode("latin-1").replace(b"$TOK", token)


# --- the origin ------------------------------------------------------------------------------

class ScriptedOrigin(Origin):
    """Numbers every request, answers with the number, and plays the script of the request's case."""

    def __init__(self, port=0):
        self.scripts = {}  # token -> [scripts left, the last one stays]
        self._numbers = 0
        super().__init__(self._play, name="origin", port=port)

    def of_token(self, token):
        return [r for r in list(self.requests) if token in r.head]

    def _script(self, request):
        found = _TOKEN.search(request.target) or _TOKEN.search(request.head)
        with self._changed:
            self._numbers += 1
            request.number = self._numbers
            left = self.scripts.get(found[0]) if found else None
            if not left:
                return ["@default"], b""
            return (left.pop(0) if len(left) > 1 else left[0]), found[0]

    def _play(self, exchange):
        script, token = self._script(exchange.request)
        for step in script:
            if step == "@body":
                exchange.read_body()
            elif step == "@default":
                exchange.read_body()
                exchange.reply(200, b"origin\n", {"X-Number": exchange.request.number, "Cache-Control": "no-store"})
            elif isinstance(step, str):
                exchange.send(octets(step, token))
            elif "rep" in step:
                exchange.send(octets(step["rep"], token) * step["n"])
            elif "sleep" in step:
                time.sleep(step["sleep"])
            elif "close" in step:
                exchange.close()
            elif "rst" in step:
                exchange.reset()


# --- the client ------------------------------------------------------------------------------

class Client:
    """Plays the client's steps while a thread reads whatever comes back.

    `ahead` is the target of a request before them, whose answer becomes `answer_ahead`.
    """

    def __init__(self, address, methods, way="plain", ahead=None):
        self._methods = methods
        self._dripping = way == "dripped"
        self._ahead = ahead
        self._unsent = b""
        self.answer_ahead = None
        self._changed = threading.Condition()
        self.responses, self.interim = [], []
        self.ended = False          # by the proxy
        self.closed = False         # by the case
        self.half_closed = False
        self._sock = socket.create_connection(address, timeout=PROBE_SECONDS)
        self._sock.settimeout(None)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        if ahead:
            self._unsent = wire.request_text("GET", ahead)
        if way == "kept":
            self.send(b"")
            self.wait(lambda: self.answer_ahead or self.ended, PROBE_SECONDS)

    @property
    def complete(self):
        return [r for r in self.responses if r.complete]

    def _method(self):
        index = len(self.responses)
        return self._methods[index] if index < len(self._methods) else "GET"

    def _read(self):
        reader = wire.Reader(self._sock)
        try:
            if self._ahead:
                answer = wire.read_body(wire.read_response_head(reader), reader)
                with self._changed:
                    self.answer_ahead = answer
                    self._changed.notify_all()
            while True:
                message = wire.read_response_head(reader, self._method())
                interim = 100 <= message.status < 200 and message.status != 101
                with self._changed:
                    (self.interim if interim else self.responses).append(message)
                    self._changed.notify_all()
                if not interim:
                    wire.read_body(message, reader)
                with self._changed:
                    self._changed.notify_all()
                if message.cut:
                    break
        except (wire.Quiet, OSError):
            pass
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def wait(self, condition, seconds):
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    def send(self, data):
        """False when the proxy does not take it."""
        data, self._unsent = self._unsent + data, b""
        try:
            self._sock.sendall(data)
            return True
        except OSError:
            return False

    def play(self, steps, token):
        for step in steps:
            if isinstance(step, str) and not self._dripping:
                self.send(octets(step, token))
            elif isinstance(step, str) or "drip" in step:
                for octet in octets(step if isinstance(step, str) else step["drip"], token):
                    self.send(bytes([octet]))
                    time.sleep(0.0005)
            elif "rep" in step:
                self._send_repeated(octets(step["rep"], token), step["n"])
            elif "await" in step:
                self.wait(lambda s=step: len(self.complete) >= s["await"] or self.ended, 5)
            elif "await100" in step:
                self.wait(lambda: self.interim or self.responses or self.ended, step["await100"])
            elif "sleep" in step:
                time.sleep(step["sleep"])
            elif "fin" in step:
                self.half_closed = True
                self._shut(socket.SHUT_WR)
            else:
                self.close(reset="rst" in step)
                self.closed = True

    def _send_repeated(self, block, count):
        """In pieces, so that an early refusal ends the sending."""
        per_piece = max(1, 65536 // len(block))
        while count > 0 and not self.ended and self.send(block * min(count, per_piece)):
            count -= per_piece

    def _shut(self, how):
        try:
            self._sock.shutdown(how)
        except OSError:
            pass

    def close(self, reset=False):
        if reset:
            self._shut(socket.SHUT_RD)  # a reader inside recv() would keep the socket open
            self._thread.join(PROBE_SECONDS)
            wire.abort(self._sock)
        else:
            self._shut(socket.SHUT_RDWR)
            self._sock.close()


# --- what happened ---------------------------------------------------------------------------

class Observation:
    """One run of one case: what the client got and what the origin saw."""

    def __init__(self, case, token, client, origin):
        self.case = case
        self.expect = case["expect"]
        self.token = token
        self.client = client
        self.origin = origin
        self.sent = self.expect.get("n", 1)
        self.wanted = self.expect.get("resps", self.sent)
        self.of_response = case.get("side") == "response"

    def at_origin(self):
        return self.origin.of_token(self.token)

    def answered(self):
        client = self.client
        return (client.ended or len(client.complete) >= self.wanted
                or any(r.status >= 400 for r in client.complete))

    def own(self, response):
        """The request that this response answers; None when no request of this case has its number."""
        number = response.value("x-number")
        return next((r for r in self.at_origin() if number and r.number == int(number)), None)

    def outcome(self):
        return self._response_outcome() if self.of_response else self._request_outcome()

    def _response_outcome(self):
        if not self.client.responses:
            return "incomplete" if self.client.ended else "silent"
        first = self.client.responses[0]
        if not first.complete:
            return "incomplete" if first.cut else "hang"
        if first.status >= 500 and first.value("x-from-origin") is None and first.value("x-number") is None:
            return "bad-gateway"
        return "relay"

    def _request_outcome(self):
        arrived = [r for r in self.at_origin() if r.complete]
        answers = self.client.complete
        if self.client.closed:
            return "forward" if len(arrived) == self.sent else "reject" if not arrived else "partly forwarded"
        if arrived:
            own = [r for r in answers if r.status == 200 and self.own(r)]
            if len(arrived) == self.sent and len(own) >= min(self.sent, self.wanted):
                return "forward"
            return f"{len(arrived)} forwarded, answers {[r.status for r in answers]}"
        if answers:
            return "reject" if answers[0].status >= 400 else "local"
        return "reject" if self.client.ended else "wait"


# --- the judge -------------------------------------------------------------------------------

def hard_faults(seen):
    yield from _faults_at_origin(seen)
    yield from _faults_at_client(seen)


def _faults_at_origin(seen):
    requests = seen.at_origin()
    for request in requests:
        if b"SMUG" in request.start:
            yield f"smuggled request at the origin: {request.start[:80]!r}"
        for fault in request.faults:
            yield f"malformed request at the origin: {fault}"
    repeated = [r for r in requests if not r.target.endswith(b"/second")]
    if seen.of_response:
        if len(repeated) > seen.expect.get("max_fwd", 3):
            yield f"the origin saw the request {len(repeated)} times"
    elif len([r for r in requests if r.complete]) > seen.sent:
        yield f"{len(requests)} requests at the origin, {seen.sent} were sent"


def _faults_at_client(seen):
    responses = seen.client.responses
    for response in responses:
        for fault in response.faults:
            yield f"malformed response at the client: {fault}"
        if re.search(rb"POISON|SMUG", response.head + response.body):
            yield "octets of another message reached the client"
    most = seen.expect.get("max_resps", max(seen.wanted, 1))
    if len(responses) > most:
        yield f"{len(responses)} responses, at most {most} are due"
    order = [request.number for request in map(seen.own, seen.client.complete) if request]
    targets = [seen.own(r).target for r in seen.client.complete if seen.own(r)]
    if len(set(order)) != len(order):
        yield "one response given twice"
    if seen.sent > 1 and targets != sorted(targets, key=_place(seen)):
        yield f"responses out of order: {targets}"
    for response in seen.client.complete:
        if response.value("x-number") and not seen.own(response):
            yield "response of another request"


def _place(seen):
    """Where a target stands in what the client sent."""
    sent = b"".join(octets(s, seen.token) for s in seen.case["client"] if isinstance(s, str))
    return lambda target: sent.find(target + b" ")


def soft_faults(seen, outcome):
    expect, client = seen.expect, seen.client
    if outcome not in expect["ok"]:
        yield f"outcome {outcome!r}, allowed: {'/'.join(expect['ok'])}"
    final = client.complete
    if final and outcome == "reject" and not _OWN_ERROR.match(str(final[0].status)) \
            and final[0].status not in expect.get("status", []):
        yield f"refused with {final[0].status}"
    if final and "status" in expect and outcome in ("reject", "local", "relay") \
            and final[0].status not in expect["status"]:
        yield f"status {final[0].status}, allowed: {expect['status']}"
    must_close = (expect.get("close") and outcome in ("reject", "local")) or \
                 (expect.get("close_fwd") and outcome == "forward")
    if must_close and not client.closed and not client.wait(lambda: client.ended, 3):
        yield "the connection was kept open"
    if outcome == "reject" and not seen.of_response and not client.closed:
        if not seen.origin.wait(lambda: all(r.complete or r.cut for r in seen.at_origin()), 5):
            yield "the request was refused but is still open at the origin"
    if "second" in expect:
        yield from _second(seen)
    arrived = [r for r in seen.at_origin() if r.complete]
    if arrived and "fwd" in expect and outcome in ("forward", "relay"):
        yield from _forwarded(expect["fwd"], arrived[0], seen)
    if final and "resp" in expect and outcome in ("forward", "relay", "local"):
        yield from _responded(expect["resp"], final[0], seen)


def _second(seen):
    responses = seen.client.responses
    if len(responses) < 2:
        if seen.expect["second"] == "must" and not seen.client.ended:
            yield "no answer to the second request"
    elif responses[1].complete and responses[1].status == 200:
        request = seen.own(responses[1])
        if not request or not request.target.endswith(b"/second"):
            yield "the second answer is not its own"


def _listed(value):
    return value if isinstance(value, list) else [value]


def _fields(wanted, message, seen, where):
    for name, value in wanted.get("has", {}).items():
        have = message.value(name)
        if have is None or (value is not None and octets(value, seen.token).decode("latin-1") != have):
            yield f"{name} {where}: {have!r}"
    for name in wanted.get("lacks", []):
        if message.values(name):
            yield f"{name} reached {where}: {message.value(name)!r}"


def _forwarded(wanted, request, seen):
    method, host = request.method.decode("latin-1"), request.value("host")
    if "method" in wanted and method not in _listed(wanted["method"]):
        yield f"method at the origin: {method!r}"
    if "target" in wanted and request.target not in [octets(t, seen.token) for t in _listed(wanted["target"])]:
        yield f"target at the origin: {request.target[:100]!r}"
    if "host" in wanted and host not in _listed(wanted["host"]):
        yield f"Host at the origin: {host!r}"
    if "body" in wanted and request.body != octets(wanted["body"], seen.token):
        yield f"body at the origin: {bytes(request.body[:60])!r}"
    if "body_len" in wanted and len(request.body) != wanted["body_len"]:
        yield f"{len(request.body)} octets of body at the origin"
    yield from _fields(wanted, request, seen, "the origin")
    for name in wanted.get("as_base", []):
        if seen.origin.plain.values(name) and not request.values(name):
            yield f"the proxy's own {name} was removed by the client"


def _responded(wanted, response, seen):
    if "status" in wanted and response.status not in _listed(wanted["status"]):
        yield f"status at the client: {response.status}"
    if "body" in wanted and response.body != octets(wanted["body"], seen.token):
        yield f"body at the client: {bytes(response.body[:60])!r}"
    if wanted.get("nobody") and response.body:
        yield "a body where none may be"
    if wanted.get("not_chunked") and response.framing == "chunked":
        yield "chunked to an HTTP/1.0 client"
    if wanted.get("no_interim") and seen.client.interim:
        yield "1xx to an HTTP/1.0 client"
    yield from _fields(wanted, response, seen, "the client")


# --- running ---------------------------------------------------------------------------------

class Verdict:
    def __init__(self, case, outcome, hard, soft, seen, way="plain"):
        self.id, self.level = f"{case['id']}, {way}", case.get("level", "must")
        self.outcome, self.hard, self.soft = outcome, list(dict.fromkeys(hard)), list(dict.fromkeys(soft))
        self.statuses = [r.status for r in seen.client.responses] if seen else []

    @property
    def passed(self):
        return not self.hard and not self.soft

    def __str__(self):
        problems = [f"HARD {p}" for p in self.hard] + self.soft
        return f"{self.id} [{self.level}] {self.outcome} {self.statuses}: " + ("ok" if self.passed else "; ".join(problems))


class Runner:
    """Runs one case after the other: what a server sends unasked on an idle connection would otherwise
    be a fair answer to another case's request."""

    def __init__(self, proxy, origin):
        self.proxy = proxy
        self.origin = origin
        wire.fetch(proxy, "/plain")
        origin.plain = next(r for r in origin.requests if r.target == b"/plain")

    def run(self, case, way="plain"):
        token = f"tk{uuid.uuid4().hex[:12]}".encode()
        script = case.get("origin")
        if script:
            self.origin.scripts[token] = list(script) if isinstance(script[0], list) else [script]
        ahead = f"/plain-{uuid.uuid4().hex}" if way in ("kept", "pipelined") else None
        try:
            client = Client(self.proxy, case.get("methods", ["GET"]), way, ahead)
        except OSError as error:
            return Verdict(case, "dead", [f"no connection: {error}"], [], None, way)
        try:
            outcome, hard, soft, seen = self._judge(case, token, client)
            if ahead and not client.closed and not self._is_own(client.answer_ahead, ahead):
                hard.append(f"the request ahead got {client.answer_ahead}")
            return Verdict(case, outcome, hard, soft, seen, way)
        finally:
            client.close()

    def _judge(self, case, token, client):
        seen = Observation(case, token, client, self.origin)
        client.play(case["client"], token)
        if client.closed:
            self.origin.wait(lambda: all(r.complete or r.cut for r in seen.at_origin()), 1)
        else:
            client.wait(seen.answered, max(case.get("t", 0), ANSWER_SECONDS))
            surplus = len(client.responses)
            client.wait(lambda: len(client.responses) > surplus or client.ended, QUIET_SECONDS)
        outcome = seen.outcome()
        soft = list(soft_faults(seen, outcome))
        hard = list(hard_faults(seen)) + list(self._probes(seen, outcome))
        late = [f for f in hard_faults(seen) if f not in hard and "responses" not in f]
        return outcome, hard + late, soft, seen

    def _probes(self, seen, outcome):
        if self._may_go_on(seen, outcome):
            yield from self._probe_same(seen)
        for _ in range(2):
            yield from self._probe_new()

    @staticmethod
    def _may_go_on(seen, outcome):
        client = seen.client
        return not (client.closed or client.ended or client.half_closed or seen.case.get("noprobe")) \
            and outcome in ("forward", "relay", "reject", "local", "bad-gateway") \
            and all(r.complete for r in client.responses)

    def _probe_same(self, seen):
        """The next request on this connection gets its own answer, an error of the proxy, or an end."""
        client, before = seen.client, len(seen.client.responses)
        target = f"/probe-{uuid.uuid4().hex}"
        client.send(wire.request_text("GET", target))
        if not client.wait(lambda: client.ended or len(client.complete) > before, PROBE_SECONDS):
            yield "no answer to a probe on the same connection"
        for response in client.responses[before:]:
            if response.complete and not self._answers(response, target):
                yield f"a probe on the same connection got {response.status} of another request"
        del client.responses[before:]

    def _probe_new(self):
        target = f"/probe-{uuid.uuid4().hex}"
        try:
            response = wire.fetch(self.proxy, target)
        except (OSError, wire.Quiet) as error:
            yield f"a probe on a new connection failed: {error!r}"
            return
        if not response.complete or response.status != 200 or not self._answers(response, target):
            yield f"a probe on a new connection got {response.status}: {response.text[:60]!r}"

    def _answers(self, response, target):
        if response.value("x-number") is None:
            return 400 <= response.status < 600
        return self._is_own(response, target)

    def _is_own(self, response, target):
        number = response.value("x-number") if response and response.complete else None
        return number is not None and any(
            r.number == int(number) and r.target == target.encode() for r in list(self.origin.requests))

    def strays(self):
        """Requests at the origin that no case and no probe sent."""
        return [r.head[:120] for r in self.origin.requests
                if not _TOKEN.search(r.head) and not r.target.startswith((b"/probe-", b"/plain"))]


def load(files):
    documents = [json.loads(pathlib.Path(file).read_text(encoding="utf-8")) for file in files]
    return [case for document in documents
            for case in document.get("cases", []) + [c for t in document.get("tables", []) for c in _rows(t)]]


def _rows(table):
    """The cases of a table, one for each of its values."""
    def put(part, value):
        if isinstance(part, str):
            return part.replace("$V", value)
        if isinstance(part, list):
            return [put(p, value) for p in part]
        if isinstance(part, dict):
            return {put(k, value): put(p, value) for k, p in part.items()}
        return part

    case = {key: part for key, part in table.items() if key != "values"}
    for name, value in table["values"].items():
        yield {**put(case, value), "id": f"{table['id']}-{name}"}


def comes(case, way):
    """True when the octets of a case can come this way."""
    if way != "dripped":
        return True
    texts = [step for step in case["client"] if isinstance(step, str)]
    return sum(map(len, texts)) <= MOST_DRIPPED and not any(
        "rep" in step or "drip" in step for step in case["client"] if isinstance(step, dict))


def main():
    parser = argparse.ArgumentParser(description="Runs HTTP/1.1 cases against a proxy.")
    parser.add_argument("--proxy", required=True, help="HOST:PORT")
    parser.add_argument("--origin-port", type=int, required=True, help="where the proxy expects its server")
    parser.add_argument("--only", default="", help="ids that contain one of these, comma separated")
    parser.add_argument("--ways", default="plain", help=f"how the octets come: {', '.join(WAYS)}; comma separated")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    host, port = options.proxy.rsplit(":", 1)
    cases = [c for c in load(options.files) if any(o in c["id"] for o in options.only.split(","))]
    with ScriptedOrigin(options.origin_port) as origin:
        runner = Runner((host, int(port)), origin)
        verdicts = [runner.run(case, way) for way in options.ways.split(",") for case in cases if comes(case, way)]
        strays = runner.strays()
    failed = [v for v in verdicts if not v.passed]
    print(*failed, *(f"stray request {s!r}" for s in strays), sep="\n")
    print(f"{len(verdicts) - len(failed)} of {len(verdicts)} pass, {sum(bool(v.hard) for v in verdicts)} with a hard fault")
    sys.exit(bool(strays or any(v.hard or v.level == "must" for v in failed)))


if __name__ == "__main__":
    main()
