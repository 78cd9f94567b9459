"""The default placement scheme and the remap account once more, written from their recipe alone.

Point i of a server is XXH64(NAME-i), seed 0; a server has floor(1024 x weight + 0.5) points; a key
belongs to the first point at or after its hash. Slow and plain on purpose: it judges the program.
"""

import bisect
import math

_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MASK = (1 << 64) - 1
CIRCLE = 1 << 64


def _rotate(value, bits):
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _round(lane, word):
    return _rotate((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _word(octets, at, size=8):
    return int.from_bytes(octets[at:at + size], "little")


def xxh64(octets):
    """XXH64 with seed 0."""
    length, at = len(octets), 0
    if length >= 32:
        lanes = [(_P1 + _P2) & _MASK, _P2, 0, -_P1 & _MASK]
        while at + 32 <= length:
            lanes = [_round(lane, _word(octets, at + 8 * i)) for i, lane in enumerate(lanes)]
            at += 32
        hash_ = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            hash_ = ((hash_ ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        hash_ = _P5
    hash_ = (hash_ + length) & _MASK
    while at + 8 <= length:
        hash_ = (_rotate(hash_ ^ _round(0, _word(octets, at)), 27) * _P1 + _P4) & _MASK
        at += 8
    if at + 4 <= length:
        hash_ = (_rotate(hash_ ^ (_word(octets, at, 4) * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    while at < length:
        hash_ = _rotate(hash_ ^ (octets[at] * _P5 & _MASK), 11) * _P1 & _MASK
        at += 1
    for shift, prime in ((33, _P2), (29, _P3)):
        hash_ = (hash_ ^ (hash_ >> shift)) * prime & _MASK
    return hash_ ^ (hash_ >> 32)


class Ring:
    def __init__(self, weights, points=1024):
        """`weights`: {name: weight} of the servers on the ring."""
        self.weights = dict(weights)
        self.points = sorted((xxh64(f"{name}-{i}".encode()), name) for name, weight in self.weights.items()
                             for i in range(math.floor(points * weight + 0.5)))
        self.positions = [position for position, _ in self.points]

    def owner_at(self, position):
        at = bisect.bisect_left(self.positions, position)
        return self.points[at % len(self.points)][1]

    def owner(self, key):
        return self.owner_at(xxh64(key))

    def walk(self, key):
        """Every server, in the order in which the walk from the key meets it first."""
        start = bisect.bisect_left(self.positions, xxh64(key))
        turned = self.points[start:] + self.points[:start]
        return list(dict.fromkeys(name for _, name in turned))

    def shares(self):
        shares = dict.fromkeys(self.weights, 0)
        before = self.positions[-1] - CIRCLE
        for position, name in self.points:
            shares[name] += position - before
            before = position
        return {name: arc / CIRCLE for name, arc in shares.items()}

    def expected(self):
        total = sum(self.weights.values())
        return {name: weight / total for name, weight in self.weights.items()}


def moves(before, after):
    """{(from, to): share of the circle} of all that changes hands."""
    moved = {}
    edges = sorted(set(before.positions) | set(after.positions))
    start = edges[-1] - CIRCLE
    for edge in edges:
        pair = before.owner_at(edge), after.owner_at(edge)
        if pair[0] != pair[1]:
            moved[pair] = moved.get(pair, 0) + edge - start
        start = edge
    return {pair: arc / CIRCLE for pair, arc in moved.items()}


def minimum(before, after):
    """The least that any placement would have to move."""
    old, new = before.expected(), after.expected()
    return sum(max(0.0, share - old.get(name, 0.0)) for name, share in new.items())
