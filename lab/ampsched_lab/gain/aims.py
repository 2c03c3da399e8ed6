"""What was asked of a policy in a kernel, and what came out: the section on it in the report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import NamedTuple

from ampsched import Periods
from ampsched.report.words import listed
from ampsched.statistics import Estimate, estimate
from ampsched_lab.best.choice import POLICY, candidate
from ampsched_lab.best.variants import ablations
from ampsched_lab.campaign.boot import KERNEL
from ampsched_lab.gain.machines import ARM, EARLIER, MACHINES, OURS, PEERS, X86, exact
from ampsched_lab.gain.mixes import MIXES
from ampsched_lab.gain.results import Results
from ampsched_lab.gain.simulated import Simulator
from ampsched_lab.truth.pairs.report import table

BETTER, WORST, APART = 0.10, 0.03, 0.03
"""H_ANTT: so much lower on average, nowhere more than so much higher; simulated, and measured, within so much."""
OTHERS = {X86: (KERNEL, *PEERS), ARM: (KERNEL,)}
LATE, MISSED = "wake-up p99 (us)", "missed deadlines"
LEFT_OUT = {name: ablations()[name] for name in ("periods", "roaming")}
"""By what is left out, the policy without it."""
BESIDE = (candidate(2), *LEFT_OUT.values(), "max-fair", "acfs")
"""Whose missed deadlines are simulated for comparison."""
PERIODIC = "deadlines"
"""The mix of sleepers that the simulator knows."""
OFFSETS = range(1, 31)
"""Of what is only simulated."""
TURN_US, MS_US = 50, 1000
"""What is apart by less than the turn of a virtual core is not told apart."""

Simulated = Mapping[tuple[str, str, str, str], Mapping[int, float]]


@dataclass(frozen=True)
class Seen:
    """What came out on a machine with a kind of kernel.

    Attributes:
        changes: H_ANTT against the best of the others, minus 1, by mix.
        late_us: 99th percentile of how late sleepers were, by mix: the policy's, and the least of the others.
        missed: Missed deadlines, in the same way.
        errors: Of the simulated H_ANTT, by mix.
    """

    machine: str
    architecture: str
    changes: Mapping[str, Estimate]
    late_us: Mapping[str, tuple[float, float]]
    missed: Mapping[str, tuple[float, float]]
    errors: Mapping[str, Estimate]

    @property
    def mean(self) -> float:
        return fmean(each.mean for each in self.changes.values())

    @property
    def worst(self) -> tuple[str, Estimate]:
        return max(self.changes.items(), key=lambda item: item[1].mean)

    @property
    def farthest_text(self) -> str:
        """The mix whose simulation is farthest off; empty if none was simulated."""
        if not self.errors:
            return ""
        mix, error = max(self.errors.items(), key=lambda item: abs(item[1].mean))
        return f"`{mix}` {error.mean:+.1%}"

    def row(self) -> list[str]:
        """Of the table."""
        mix, change = self.worst
        return [
            f"{self.machine} {'arm64' if self.architecture == ARM else 'x86'}",
            f"{self.mean:+.1%}",
            f"`{mix}` {change.mean:+.1%}",
            *(f"{own / MS_US:.1f} ({best / MS_US:.1f})" for own, best in self.late_us.values()),
            *(f"{own:.0%} ({best:.0%})" for own, best in self.missed.values()),
            self.farthest_text,
        ]


def seen(results: Results, simulated: Simulated, version: str = POLICY) -> list[Seen]:
    """Of a version of the policy, wherever all mixes were measured."""
    return [
        _seen(results, simulated, (machine, architecture, version), others)
        for machine in MACHINES
        for architecture, others in OTHERS.items()
        if all(results.cell(machine, architecture, version, mix.name) for mix in MIXES)
    ]


def _seen(results: Results, simulated: Simulated, at: tuple[str, str, str], others: Sequence[str]) -> Seen:
    machine, architecture, version = at
    changes: dict[str, Estimate] = {}
    late: dict[str, tuple[float, float]] = {}
    missed: dict[str, tuple[float, float]] = {}
    errors: dict[str, Estimate] = {}
    for mix in MIXES:
        ratios = [results.ratio(machine, architecture, mix.name, version, other) for other in others]
        changes[mix.name] = max((each for each in ratios if each), key=lambda each: each.mean)
        own, *rest = (results.cell(machine, architecture, name, mix.name) for name in (version, *others))
        for metric, into in ((LATE, late), (MISSED, missed)):
            values = [fmean(cell.values(metric)) for cell in (own, *rest) if cell and cell.values(metric)]
            if own and own.values(metric):
                into[mix.name] = values[0], min(values[1:])
        by_offset = simulated.get((*at, mix.name))
        if own and by_offset:
            errors[mix.name] = estimate([by_offset[offset] / own.h_antt[offset] - 1 for offset in own.rows])
    return Seen(machine, architecture, changes, late, missed, errors)


class Outcome(NamedTuple):
    """What came out of an aim."""

    text: str
    met: bool

    def __str__(self) -> str:
        return f"{self.text}; {'reached' if self.met else '**not reached**'}"


AIMS = (
    f"H_ANTT at least {BETTER:.0%} lower than under the best of the others, on average",
    f"no mix more than {WORST:.0%} higher",
    "sleepers no later (99th percentile) than under the best of the others",
    f"simulated and measured H_ANTT within {APART:.0%}",
)


def outcomes(found: Sequence[Seen]) -> list[Outcome]:
    """Of each aim; the last is missing if nothing was simulated."""
    mean = fmean(each.mean for each in found)
    worse = [
        f"`{mix}` on {each.machine} ({change.mean:+.1%})"
        for each in found
        for mix, change in each.changes.items()
        if change.mean > WORST
    ]
    pairs = [pair for each in found for pair in each.late_us.values()]
    later = sum(own > best + TURN_US for own, best in pairs)
    result = [
        Outcome(f"{mean:+.1%}", mean <= -BETTER),
        Outcome(listed(worse) or "none", not worse),
        Outcome(f"later on {later} of {len(pairs)} mixes with sleepers", not later),
    ]
    if errors := [abs(error.mean) for each in found for error in each.errors.values()]:
        apart = sum(error > APART for error in errors)
        text = f"{apart} of {len(errors)} mixes further apart, {fmean(errors):.1%} on average"
        result.append(Outcome(text, not apart))
    return result


def section(results: Results, simulated: Simulated) -> str:
    """Markdown; empty if the policy was not measured."""
    found = seen(results, simulated)
    if not found:
        return ""
    first = seen(results, simulated, EARLIER)
    before = outcomes(first) if first else []
    lines = [
        [aim, str(earlier or ""), str(now)]
        for aim, earlier, now in zip_longest(AIMS, before, outcomes(found), fillvalue="")
    ]
    blocks = [
        f"## {POLICY}",
        f"The policy was frozen before its first run here, and so was its second version; but what the first did here was known "
        f"by then. {BEST_OF_OTHERS}",
        table(["aim", "first version", "now"], lines),
        table(_heads(found[0]), [each.row() for each in found]),
        "The first version:" if first else "",
        table(_heads(first[0])[:-1], [each.row()[:-1] for each in first]) if first else "",
        others_apart(results, simulated),
        WHY,
        missed_text(results),
    ]
    return "\n\n".join(filter(None, blocks))


def _heads(found: Seen) -> list[str]:
    sleeping = [f"`{mix}`" for mix in found.late_us]
    return [
        "machine",
        "H_ANTT",
        "worst mix",
        *(f"{mix} late, ms" for mix in sleeping),
        *(f"{mix} missed" for mix in sleeping),
        "simulated, farthest",
    ]


def others_apart(results: Results, simulated: Simulated) -> str:
    """How far the simulations of our other policies are off; empty if none were measured."""
    errors = [
        abs(fmean(by_offset[offset] / results.cells[key].h_antt[offset] - 1 for offset in by_offset))
        for key, by_offset in simulated.items()
        if key[2] in OURS and key[2] != POLICY
    ]
    if not errors:
        return ""
    return (
        f"Simulations of our other policies are {fmean(errors):.1%} apart on average, on the same machines."
    )


def missed_text(results: Results) -> str:
    """What helps sleepers, by the simulator."""
    machine = next(name for name in MACHINES if (name, X86) in results.unit_us)
    mix = next(mix for mix in MIXES if mix.name == PERIODIC)
    with TemporaryDirectory() as folder:
        simulator = Simulator(Path(folder), machine, exact(machine, X86), results.unit_us[machine, X86])
        shares = {
            policy: fmean(
                _missed(simulator.outcome(mix, policy, offset).apps[0].periods) for offset in OFFSETS
            )
            for policy in (POLICY, *BESIDE)
        }
    without = {policy: f"abreast without {name}" for name, policy in LEFT_OUT.items()}
    texts = [f"{share:.1%} under {without.get(policy, f'`{policy}`')}" for policy, share in shares.items()]
    return (
        f"By the simulator, on {machine} over {len(OFFSETS)} offsets of `{PERIODIC}`, missed are "
        f"{', '.join(texts[:-1])} and {texts[-1]}."
    )


def _missed(periods: Periods | None) -> float:
    return periods.missed / periods.count if periods else 0.0


BEST_OF_OTHERS = """The others are EEVDF, scx_bpfland and scx_lavd on x86, EEVDF with capacities on arm64; each mix is \
compared with the best of them. Late is the 99th percentile of how late sleepers woke up; the best of the others is in \
brackets."""
WHY = """Under the first version sleepers ran late: a program that sleeps most of its time is hardly slowed down, so it had the \
least claim, and with that low weights. The second has none. Its sleepers wake up on any core, and those who run take turns as \
often as on a machine of one core."""
