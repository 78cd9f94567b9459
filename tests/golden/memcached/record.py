#!/usr/bin/env python3
"""Records what a memcached server answers: each file beside this one is a list of [sent, answered].

    record.py [MEMCACHED]    starts that program (default: memcached) on a socket of its own

Octets stand as the characters of Latin-1; [text, times] in a list of parts is a repeated text. Each
case has a connection of its own, on which nothing more is sent, and starts with an empty server.
The lines are made from every verb and every way to spoil one of its words; `mn` at the end shows
whether what went before it was read as commands, as a data block, or thrown away.
"""

import json
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
STORAGE = ["set", "add", "replace", "append", "prepend", "cas"]
RETRIEVAL = ["get", "gets", "gat", "gats"]
META = ["mg", "ms", "md", "ma", "me"]
LONGEST = "k" * 250

NUMBERS = ["0", "1", "00", "007", "+7", "-0", "-1", "-2", "+", "-", "--1", "+-1", "7x", "x7", "x", "0x7", "7.0", "1e3",
           "\t7", "7\t", "7\tx", "7\r", "\x0b\x0c7", "7,", "2592000", "2592001", "2147483645", "2147483646",
           "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296",
           "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
           "18446744073709551615", "18446744073709551616", "-18446744073709551615", "-18446744073709551616",
           "99999999999999999999", "noreply"]
# Those that say how long a data block is have one of two octets behind them.
LENGTHS = ["+2", "02", "-2", "2x", "2\t", "2\tx", "\t2", "2.0", "0x2", "x", "-", "1", "0", "-0", "3", "4", "5", "30",
           "2147483645", "2147483646", "2147483647", "2147483648", "4294967295", "9223372036854775808",
           "18446744073709551618", "99999999999999999999", "noreply"]
KEYS = ["noreply", "0", "k\x01", "k\t", "k\r", "k\x7f", "k\xff", "\xc3\xa9", LONGEST, LONGEST + "k", "k" * 1000]


def line(*words):
    return " ".join(words) + "\r\n"


def spoiled(words):
    """A good line with more and fewer words, other blanks and other ends."""
    for count in range(1, len(words)):
        yield line(*words[:count])
        yield line(*words[:count], "noreply")
    for more in (["noreply"], ["x"], ["0"], ["noreply", "noreply"], ["x", "noreply"], ["noreply", "x"], ["x"] * 30):
        yield line(*words, *more)
    text = " ".join(words)
    yield text + "\n"
    yield text + "\r\r\n"
    yield text + " \r\n"
    yield "  " + text + "\r\n"
    yield "  ".join(words) + "   \r\n"
    yield "\t" + text + "\r\n"
    yield "\t".join(words) + "\r\n"
    yield text + "\0\r\n"
    yield text + "\0 noreply\r\n"
    yield text.replace(" ", "\0", 1) + "\r\n"
    yield text.upper() + "\r\n"
    yield words[0] + "x" + text[len(words[0]):] + "\r\n"
    yield text[:len(words[0]) - 1] + text[len(words[0]):] + "\r\n"


def replaced(words, at, values):
    for value in values:
        yield line(*words[:at], value, *words[at + 1:])


def storage():
    for verb in STORAGE:
        words = [verb, "k", "0", "0", "2"] + (["1"] if verb == "cas" else [])
        yield line(*words)
        yield from spoiled(words)
        yield from replaced(words, 1, KEYS)
        yield from replaced(words, 4, LENGTHS)
        for key in (LONGEST + "k", "k"):
            yield line(verb, key, "0", "0", "-1", *words[5:], "noreply")
        yield line(verb, "k", "x", *words[3:], "noreply")
        if verb in ("set", "cas"):
            for at in [2, 3, 5][:len(words) - 3]:
                yield from replaced(words, at, NUMBERS)


def retrieval():
    for verb in RETRIEVAL:
        words = [verb] + (["0"] if verb.startswith("gat") else []) + ["k"]
        yield line(*words)
        yield from spoiled(words)
        yield from replaced(words, len(words) - 1, KEYS)
        yield line(*words, LONGEST + "k", "l")
        yield line(*words, *[LONGEST] * 30, "noreply")
        if verb.startswith("gat"):
            yield from replaced(words, 1, NUMBERS)
        stored = "set k 5 0 2\r\nxx\r\nset l 0 0 0\r\n\r\n"
        yield stored + line(*words, "l", "missing", "k") + line(*words)


def changes():
    for words in (["delete", "k"], ["incr", "k", "1"], ["decr", "k", "1"], ["touch", "k", "0"]):
        yield line(*words)
        yield from spoiled(words)
        yield from replaced(words, 1, KEYS)
        yield from replaced(words[:2] + ["0"], 2, NUMBERS)
        yield "set k 0 0 2\r\n10\r\n" + line(*words) + line(*words) + "get k\r\n"
        yield "set k 0 0 2\r\nxx\r\n" + line(*words) + "get k\r\n"
    for second in ("0", "5", "noreply"):
        for third in ("0", "5", "noreply"):
            yield line("delete", "k", second, third)
    yield "set k 0 0 20\r\n18446744073709551615\r\nincr k 1\r\nget k\r\n"
    yield "set k 0 0 2\r\n10\r\ndecr k 11\r\nget k\r\nincr k 18446744073709551615\r\n"


def meta():
    numbered = {"N": NUMBERS, "T": NUMBERS, "R": NUMBERS, "C": NUMBERS, "F": NUMBERS, "J": NUMBERS, "D": NUMBERS}
    for verb in META:
        words = [verb, "k"] + (["2"] if verb == "ms" else [])
        yield line(*words)
        yield from spoiled(words)
        yield from replaced(words, 1, KEYS)
        for flag in map(chr, [*range(33, 128), 0xe9, 1, 9]):
            yield line(*words, flag)
            yield line(*words, flag + "0")
        for flag, values in numbered.items():
            for value in ["", *values] if verb in ("mg", "ma") or flag in "TC" else ["", "x", "1"]:
                yield line(*words, flag + value)
        for flags in ("v v", "v vx", "k q v q", "q", "q k", "b b", "c T0 c", "M", "MS", "MI", "MM", "ME", "MA", "MP",
                      "MR", "MD", "M+", "M-", "Mi", "Ms", "MSS", "Z Tx", "Tx Z", "Tx Dx", "Dx Tx", "Dx Tx Jx", "Tx Fx",
                      "Fx", "b Tx", "Tx b", "MZ O" + "o" * 40, "O" + "o" * 30, "O" + "o" * 31, "O" + "o" * 32,
                      "O" + "o" * 31 + " k", "O" + "o" * 40 + " Z", "noreply", "k v t f c s", "q O1 Tx", "I T30"):
            yield line(*words, *flags.split())
        for key in ("YWJj", "YWI=", "YQ==", "YR==", "YWJ", "YW", "Y", "Y===", "====", "=", "YWJj!", "!!!!", "YW-j",
                    "YW_j", "YWI=YWJj", "YWI=YWJ", "YWI=Y", "=YWJ", "Y=WJ", "YW=j", "IA==", "AA==", "DQo=",
                    "YWJj\r", "/+8=", "YWFh" * 62, "YWFh" * 62 + "YQ"):
            yield line(verb, key, *words[2:], "b")
            yield line(verb, key, *words[2:], "k", "b")
        for count in (15, 16, 17, 18, 19, 22, 40):
            yield line(*words, *"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"[:count])
            yield line(*words, *"bcfhkIlLOPqstuv"[:count], "T0", "F0", "R0", "N0", "C0", "D1")
    yield from replaced(["ms", "k", "2"], 2, LENGTHS)
    yield from replaced(["ms", "k", "2", "Z"], 2, LENGTHS)
    yield from replaced(["ms", "k", "2", "q"], 2, LENGTHS)
    yield from ("ms k S2\r\n", "ms k T0 2\r\n", "mn x y\r\n", "mn noreply\r\n", "mnx\r\n", "mx k\r\n", "m\r\n", "mgk\r\n")


def stored_meta():
    stored = "ms YWJj 2 b F5\r\nxx\r\n"
    for rest in ("mg abc v k f s t c O7", "mg YWJj b k v", "mg YWJj k", "mg abc", "mg abc q", "mg abc s v q O1", "get abc",
                 "me abc", "me YWJj b", "md abc k O3", "md abc q", "md abc I", "ma abc", "ms abc 0 ME", "ms abc 1 MA c k"):
        block = "" if not rest.startswith("ms") else "\r\n" if " 0 " in rest else "y\r\n"
        yield stored + rest + "\r\n" + block
    yield stored + "md abc I T30\r\nmg abc v\r\nmg abc v\r\n"
    yield "mg k N30 v\r\nmg k v t\r\n"
    yield "ma k N0 J13 v\r\nma k v D5\r\nma k MD D20 v\r\nma k\r\nma k c t k O1\r\nma k q\r\n"
    yield "ma k N0 v t\r\nma k C1\r\nma k C999\r\nmd k C999\r\n"


def control():
    for words in (["version"], ["verbosity", "0"], ["flush_all"], ["flush_all", "0"]):
        yield line(*words)
        yield from spoiled(words)
    yield from replaced(["verbosity", "0"], 1, NUMBERS)
    yield from replaced(["flush_all", "0"], 1, [number for number in NUMBERS if number != "-1"])
    yield from ("stats reset\r\n", "stats nothing\r\n", "stats noreply\r\n", "quit\r\n", "quit now\r\n", "quit noreply\r\n",
                "quit\n", "\r\n", "\n", " \r\n", "   \n", "\r\r\n", "\0\r\n", "\0get k\r\n", "x\r\n", "xx\r\n", "noreply\r\n",
                "GET k\r\n", "Get k\r\n", "gett k\r\n", "ge k\r\n", "g k\r\n", "set\r\n", "settings\r\n", "unknown a b c\r\n",
                "flush\r\n", "flush_all_\r\n", "verbosit 1\r\n", "sta\r\n", "\xc3\xa9\r\n", "\x01\r\n", "STATS\r\n",
                "deleted k\r\n", "lush_all\r\n", "get k\r\nget k\r\n\r\nget k\r\n", "k" * 2000 + "\r\n", "k" * 5000 + "\r\n")


def large():
    """Values that no server takes: is the block thrown away, and what of the old value?"""
    for verb in STORAGE:
        unique = " 1" if verb == "cas" else ""
        for noreply in ("", " noreply"):
            yield ["set k 0 0 1\r\nx\r\n", f"{verb} k 0 0 1100000{unique}{noreply}\r\n", ["x" * 100, 11000], "\r\nget k\r\n"]
    for flags in ("", " q", " ME", " MA", " C1"):
        yield ["set k 0 0 1\r\nx\r\n", f"ms k 1100000{flags}\r\n", ["x" * 100, 11000], "\r\nget k\r\n"]
    for flags in ("Z", "MZ", "O" + "o" * 40):
        yield ["set k 0 0 1\r\nx\r\n", f"ms k 1100000 {flags}\r\n", ["x" * 100, 11000], "\r\nget k\r\n"]
    yield ["set k 0 0 1100000\r\n", ["x", 100]]
    yield ["get", [" " + LONGEST, 1000], "\r\n"]
    yield ["gets", [" k", 30000], " noreply\r\n"]


def stricter():
    """Where Clockwise refuses what the server takes, each with a reason in the test."""
    for length in ("4294967296", "4294967298", "-4294967294", "-9223372036854775808"):
        yield f"set k 0 0 {length}\r\n"
        yield f"ms k {length}\r\n"
    yield "bget k\r\n"
    yield "\x80\r\n"
    yield "lru mode flat\r\n"
    yield "slabs automove 1\r\n"
    yield "cache_memlimit 64\r\n"
    yield ["mg k", [" ", 9000], "\r\n"]


GROUPS = [storage, retrieval, changes, meta, stored_meta, control, large, stricter]


def octets(sent):
    if isinstance(sent, str):
        return sent.encode("latin-1")
    return b"".join(octets(part) if isinstance(part, str) else octets(part[0]) * part[1] for part in sent)


def with_end(group, sent):
    """What is sent after the line: a data block where a verb could have one, then mn."""
    end = "mn\r\n"
    if group.__name__ in ("storage", "meta", "stricter"):
        verb = (sent if isinstance(sent, str) else sent[0]).split(" ")[0].strip("\t").lower()
        if verb.startswith(("ms", *STORAGE)):
            end = "xx\r\n" + ("get k\r\n" if verb == "set" else "") + "mn\r\n"
    return sent + end if isinstance(sent, str) else [*sent, end]


class Server:
    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory()
        self.path = self.folder.name + "/socket"
        self.process = subprocess.Popen([program, "-s", self.path, "-u", "root"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        while self.process.poll() is None:
            try:
                self.ask(b"version\r\n")
                return self
            except OSError:
                time.sleep(0.01)
        sys.exit("memcached does not start")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def ask(self, text):
        """All that is answered until the server, seeing no more coming, closes."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.path)
            answer = bytearray()
            try:
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
            except BrokenPipeError:
                pass
            while received := connection.recv(1 << 16):
                answer += received
            return bytes(answer)

    def largest_value(self):
        low, high = 0, 1 << 20
        while low < high:
            size = (low + high + 1) // 2
            if self.ask(b"set k 0 0 %d\r\n%s\r\n" % (size, b"x" * size)) == b"STORED\r\n":
                low = size
            else:
                high = size - 1
        return low


def record(server, group):
    cases = []
    for sent in dict.fromkeys(json.dumps(with_end(group, sent)) for sent in group()):
        server.ask(b"flush_all\r\n")
        answered = server.ask(octets(json.loads(sent))).decode("latin-1")
        cases.append(f"[{sent}, {json.dumps(answered)}]")
    return cases


def main(program):
    for group in GROUPS:
        # One server for each group: uniques count from its start.
        with Server(program) as server:
            version = server.ask(b"version\r\n").decode().split()[1]
            cases = record(server, group)
            head = json.dumps({"server": version, "largest_value": server.largest_value()})
            text = head[:-1] + ', "cases": [\n' + ",\n".join(cases) + "\n]}\n"
            (HERE / f"{group.__name__}.json").write_text(text)
            print(f"{group.__name__}: {len(cases)}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "memcached")
