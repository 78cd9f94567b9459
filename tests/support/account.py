"""What a change moves, worked out from the points that the admin API shows before and after it.

Slow and plain on purpose: it judges the program. A placement is a list of (end, owner): who owns the
positions up to and with `end`, the last one being the last position there is; or a table, whose slots
take the positions by their remainder.
"""

import bisect
import math


def circle(points, positions, nearest=False):
    """The placement of a circle. `points`: (position, server), of equal positions the owner first."""
    owner = {}
    for position, server in points:
        owner.setdefault(position, server)
    places = sorted(owner)
    first, last = places[0], places[-1]
    if not nearest:
        return [(place, owner[place]) for place in places if place < positions - 1] + [
            (positions - 1, owner.get(positions - 1, owner[first]))]
    ends = [(place + (after - place) // 2, owner[place]) for place, after in zip(places, places[1:])]
    across = last + (first + positions - last) // 2
    if across < positions - 1:
        return ends + [(across, owner[last]), (positions - 1, owner[first])]
    return ([(across - positions, owner[last])] if across >= positions else []) + ends + [
        (positions - 1, owner[last])]


def moves_on_circle(before, after):
    """{(from, to): share} of all that changes hands between two placements of one circle."""
    ends = sorted({end for placement in (before, after) for end, _ in placement})
    keys = [[end for end, _ in placement] for placement in (before, after)]
    moved, start = {}, 0
    for end in ends:
        pair = tuple(placement[bisect.bisect_left(of, end)][1]
                     for placement, of in zip((before, after), keys))
        if pair[0] != pair[1]:
            moved[pair] = moved.get(pair, 0) + end + 1 - start
        start = end + 1
    return {pair: count / (ends[-1] + 1) for pair, count in moved.items()}


def moves_in_table(before, after, positions):
    """The same for two tables over `positions`."""
    period = min(math.lcm(len(before), len(after)), positions)
    moved = {}
    for rest in range(period):
        pair = before[rest % len(before)], after[rest % len(after)]
        if pair[0] != pair[1]:
            moved[pair] = moved.get(pair, 0) + (positions - 1 - rest) // period + 1
    return {pair: count / positions for pair, count in moved.items()}


def minimum(before, after):
    """The least that any placement would move. Both: {name: weight} of the servers on the ring."""
    was, now = sum(before.values()), sum(after.values())
    return sum(max(0.0, weight / now - before.get(name, 0) / was) for name, weight in after.items())


def needless(moves, before, after):
    """What of `moves` is between servers of one weight in both lists ({name: weight}, 0: off the ring)."""
    same = {name for name in before.keys() & after.keys() if before[name] == after[name]}
    return sum(share for pair, share in moves.items() if same.issuperset(pair))


def differences(one, other, within=1e-9, path="$"):
    """Where two JSON documents differ by more than the last digits of numbers."""
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return [f"{path}: {sorted(one)} and {sorted(other)}"]
        return [d for key in one for d in differences(one[key], other[key], within, f"{path}.{key}")]
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return [f"{path}: {len(one)} and {len(other)} entries"]
        return [d for n, pair in enumerate(zip(one, other)) for d in differences(*pair, within, f"{path}[{n}]")]
    numbers = (int, float)
    if isinstance(one, numbers) and isinstance(other, numbers) and not isinstance(one, bool):
        return [] if abs(one - other) <= within else [f"{path}: {one} and {other}"]
    return [] if one == other else [f"{path}: {one!r} and {other!r}"]
