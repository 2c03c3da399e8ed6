"""Clusters that share a regulator and a clock, by wattson's tables of power at pairs of frequencies.

The law is that of the simulator: power grows with `V^2 (f + d max(f, F))`, f being the core's clock, F that of the
other cluster or of the shared unit, V the higher of the voltages for both, and d what the shared unit draws beside a
core. It begins with what was measured for f while F was at its lowest. V for f is what the first column of the table
says (F at its lowest), V for F what its first row says (f at its lowest), and d the number with which every second of
the other points err least. The rest judges.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import sqrt
from statistics import geometric_mean, mean

from ampsched_lab.silicon.data import rows

SHARES = tuple(step / 50 for step in range(151))
"""Values of d that are tried."""
PAIRS = (
    ("MT6858", "0", "4"),
    ("MT6897", "0", "4"),
    ("MT6897", "0", "7"),
    ("Tensor G4", "0", "255"),
    ("Tensor G5", "0", "255"),
    ("Tensor G5", "5", "7"),
    ("Tensor G5", "7", "5"),
)
"""Device, policy, and the policy on which it depends; 255 is the shared unit. Tensor G1's table is too sparse."""

Point = tuple[float, float]


@cache
def measured(device: str, policy: str, other: str) -> Mapping[Point, float]:
    """Power of a busy core, in mW, by its frequency and that of what it depends on, in MHz."""
    found = {
        (float(row["mhz"]), _mhz(row["with_khz"])): float(row["active_mw"])
        for row in rows("wattson")
        if (row["chip"], row["policy"], row["with_policy"]) == (device, policy, other)
    }
    # Some points were not measured.
    return {point: mw for point, mw in found.items() if mw > 0}


def _mhz(text: str) -> float:
    """Of kHz, or of Hz as for one shared unit."""
    khz = float(text)
    return khz / (1e6 if khz >= 1e8 else 1e3)


@dataclass(frozen=True)
class Law:
    """The law of a pair.

    Attributes:
        alone: Power of a busy core by its frequency while the other clock is at its lowest, in mW.
        own: Square of the voltage by the core's frequency; only ratios count.
        other: The same that the other's frequency asks for.
        share: d.
    """

    alone: Mapping[float, float]
    own: Mapping[float, float]
    other: Mapping[float, float]
    share: float

    def power_mw(self, point: Point) -> float:
        """Power of a busy core."""
        mhz, with_mhz = point
        more = max(1.0, self.other[with_mhz] / self.own[mhz])
        return self.alone[mhz] * more * (1 + self.share * max(point) / mhz) / (1 + self.share)


def _rising(squares: Mapping[float, float]) -> dict[float, float]:
    """A slower clock needs no higher voltage: what a table says beyond that is a constant part of the power."""
    falling = sorted(squares, reverse=True)
    return dict(zip(falling, accumulate((squares[mhz] for mhz in falling), min), strict=True))


def law(table: Mapping[Point, float], share: float) -> Law:
    """The law of a table for one value of d, by its first column and its first row."""
    lowest = {mhz: min(with_mhz for each, with_mhz in table if each == mhz) for mhz, _ in table}
    first = min(lowest)

    def square(point: Point) -> float:
        return table[point] / (point[0] + share * max(point))

    own = _rising({mhz: square((mhz, with_mhz)) for mhz, with_mhz in lowest.items()})
    other = _rising({point[1]: square(point) for point in table if point[0] == first})
    return Law({mhz: table[mhz, with_mhz] for mhz, with_mhz in lowest.items()}, own, other, share)


def others(table: Mapping[Point, float]) -> list[Point]:
    """Points of which the law was not made, in order."""
    first, lowest = min(mhz for mhz, _ in table), min(with_mhz for _, with_mhz in table)
    known = {with_mhz for mhz, with_mhz in table if mhz == first}
    return sorted(point for point in table if point[0] > first and lowest < point[1] and point[1] in known)


def errors(
    table: Mapping[Point, float], points: list[Point], power_mw: Callable[[Point], float]
) -> list[float]:
    """0.05: 5 % too much."""
    return [power_mw(point) / table[point] - 1 for point in points]


def fitted(table: Mapping[Point, float]) -> Law:
    """The law with the d that every second point wants."""
    points = others(table)[::2]
    return min(
        (law(table, share) for share in SHARES),
        key=lambda tried: mean(map(abs, errors(table, points, tried.power_mw))),
    )


def judged() -> list[tuple[str, int, float, float, float, float]]:
    """Of each pair: its name, points that judge, d, and mean errors with nothing, a voltage, and a clock shared."""
    found = []
    for device, policy, other in PAIRS:
        table = measured(device, policy, other)
        points = others(table)[1::2]
        laws = fitted(table), law(table, 0.0)
        nothing, voltage, clock = (
            mean(map(abs, errors(table, points, way)))
            for way in (_as_alone(laws[0]), laws[1].power_mw, laws[0].power_mw)
        )
        what = "shared unit" if other == "255" else f"policy {other}"
        name = f"{device}, policy {policy} by {what}"
        found.append((name, len(points), laws[0].share, nothing, voltage, clock))
    return found


def _as_alone(law: Law) -> Callable[[Point], float]:
    """Power as if nothing were shared."""
    return lambda point: law.alone[point[0]]


def same_rail() -> float:
    """By how much voltages differ at most that Tensor G5's two tables of one rail ask for at one cluster's clocks."""
    ours, theirs = (fitted(measured("Tensor G5", *pair)) for pair in (("5", "7"), ("7", "5")))
    ratios = [sqrt(theirs.own[mhz] / ours.other[mhz]) for mhz in theirs.own.keys() & ours.other.keys()]
    return max(ratios) / geometric_mean(ratios) - 1
