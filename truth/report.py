"""The tables of docs/explanation/truth.md."""

import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ampsched.markdown import wrapped
from truth.measure import FOREIGN_MAX, Run
from truth.scenarios import Scenario

BEGIN = "<!-- begin: written by make truth -->"
END = "<!-- end: written by make truth -->"
TURNAROUND_AIM = 0.10
SWITCHES_AIM = 2.0


@dataclass(frozen=True)
class Pair:
    """A scenario's medians on the kernel, and its simulation."""

    scenario: Scenario
    real: Run
    ours: Run
    with_wakeup: Run
    """The simulation with this computer's wake-up latency."""

    @property
    def turnaround_error(self) -> float:
        return self.ours.turnaround_ns / self.real.turnaround_ns - 1

    @property
    def turnaround_error_with_wakeup(self) -> float:
        return self.with_wakeup.turnaround_ns / self.real.turnaround_ns - 1

    @property
    def share_error(self) -> float:
        """Largest difference of a thread's share; threads of one nice value and name are interchangeable."""
        return max(
            abs(ours - real)
            for ours, real in zip(sorted_shares(self.ours), sorted_shares(self.real), strict=True)
        )

    @property
    def switch_factor(self) -> float:
        return (self.ours.voluntary + self.ours.involuntary) / max(
            1, self.real.voluntary + self.real.involuntary
        )


def sorted_shares(run: Run) -> list[float]:
    """All shares in ascending order."""
    return sorted(run.shares())


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])


def ms(ns: float) -> str:
    return f"{ns / 1e6:,.0f}"


def summary(pairs: list[Pair]) -> str:
    """One row per scenario."""
    header = [
        "scenario",
        "turnaround, kernel (ms)",
        "simulated",
        "error",
        "error with this wake-up",
        "largest share error",
        "switches, kernel",
        "simulated",
        "factor",
    ]
    rows = [
        [
            f"`{pair.scenario.name}`",
            ms(pair.real.turnaround_ns),
            ms(pair.ours.turnaround_ns),
            f"{pair.turnaround_error:+.1%}",
            f"{pair.turnaround_error_with_wakeup:+.1%}",
            f"{pair.share_error:.3f}",
            f"{pair.real.voluntary + pair.real.involuntary:,}",
            f"{pair.ours.voluntary + pair.ours.involuntary:,}",
            f"{pair.switch_factor:.2f}",
        ]
        for pair in pairs
    ]
    return table(header, rows)


def details(pair: Pair) -> str:
    """One row per thread."""
    header = [
        "thread",
        "end, kernel (ms)",
        "simulated",
        "share, kernel",
        "simulated",
        "blocked / preempted, kernel",
        "simulated",
    ]
    rows = [
        [
            real.name,
            ms(real.end_ns),
            ms(ours.end_ns),
            f"{real_share:.3f}",
            f"{our_share:.3f}",
            f"{real.voluntary:,} / {real.involuntary:,}",
            f"{ours.voluntary:,} / {ours.involuntary:,}",
        ]
        for real, ours, real_share, our_share in zip(
            pair.real.threads, pair.ours.threads, pair.real.shares(), pair.ours.shares(), strict=True
        )
    ]
    return f"**`{pair.scenario.name}`**: {pair.scenario.what}.\n\n{table(header, rows)}"


def disturbed(pairs: list[Pair]) -> str:
    """A sentence on the scenarios for which the computer was never idle enough."""
    bad = [
        f"`{pair.scenario.name}` ({pair.real.foreign:.0%})"
        for pair in pairs
        if pair.real.foreign > FOREIGN_MAX
    ]
    if not bad:
        return f"In every run that counts, other programs and the hypervisor took at most {FOREIGN_MAX:.0%} of the CPUs' time."
    return (
        f"Other programs and the hypervisor took more than {FOREIGN_MAX:.0%} of the CPUs' time, at most as stated, "
        f"in: {', '.join(bad)}. These rows are less certain."
    )


def tables(pairs: list[Pair], host: dict[str, str], wakeup_ns: float, day: date, repetitions: int) -> str:
    """Everything that the page shows of a measurement."""
    good_turnaround = sum(abs(pair.turnaround_error) <= TURNAROUND_AIM for pair in pairs)
    good_switches = sum(1 / SWITCHES_AIM <= pair.switch_factor <= SWITCHES_AIM for pair in pairs)
    aims = (
        f"Turnaround within {TURNAROUND_AIM:.0%}: {good_turnaround} of {len(pairs)} scenarios. "
        f"Context switches within a factor of {SWITCHES_AIM:g}: {good_switches} of {len(pairs)}."
    )
    facts = ", ".join(f"{key} {value}" if key != "kernel" else value for key, value in host.items())
    return "\n\n".join(
        [
            f"Measured on {day.isoformat()}: {facts}. Medians of {repetitions} runs.",
            f"Waking a thread on an idle CPU takes {wakeup_ns / 1000:.1f} us on this computer.",
            aims,
            summary(pairs),
            disturbed(pairs),
            "## Thread by thread",
            *(details(pair) for pair in pairs),
        ]
    )


def replace_tables(page: Path, text: str) -> None:
    """Puts the tables into the page, between its two marks; what people wrote around them stays."""
    old = page.read_text()
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if not pattern.search(old):
        raise SystemExit(f"{page}: the marks {BEGIN} and {END} are missing")
    page.write_text(wrapped(pattern.sub(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", old)))
