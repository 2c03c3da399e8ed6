"""docs/reports/truth/host.md: how close simulations come to a computer as it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from ampsched_lab.truth.host.measure import FOREIGN_MAX, Host, Run
from ampsched_lab.truth.pairs.machine import FIELDS, Costs
from ampsched_lab.truth.pairs.report import table
from ampsched_lab.truth.pairs.workloads import Workload

TURNAROUND_AIM = 0.05
SWITCHES_AIM = 1.5
INTRODUCTION = """\
Written by `make -C lab truth-host`, which measures what scheduling costs on a computer with two equal CPUs, runs seven
programs there, and simulates them under `linux` as of that kernel. `make -C lab truth-host MORE=--measure` does it on yours.
Other programs, interrupts and perhaps a hypervisor take their share, so disturbed runs are repeated, and `tick_cost_ns`
includes whatever else interrupted. *If waking were free*: the same simulation on a machine that states no cost of a
wake-up."""


@dataclass(frozen=True)
class Pair:
    """A scenario on both sides.

    Attributes:
        scenario: What was run.
        real: On the computer's kernel.
        ours: Simulated.
        free: Simulated as if waking cost nothing.
    """

    scenario: Workload
    real: Run
    ours: Run
    free: Run

    @property
    def error(self) -> float:
        """Of the simulated turnaround."""
        return self.ours.turnaround_ns / self.real.turnaround_ns - 1

    @property
    def error_if_free(self) -> float:
        """The same if waking cost nothing."""
        return self.free.turnaround_ns / self.real.turnaround_ns - 1

    @property
    def factor(self) -> float:
        """Simulated switches as a multiple of the kernel's."""
        return self.ours.switches / max(1, self.real.switches)


def text_of(pairs: Sequence[Pair], host: Host, costs: Costs, policy: str, day: str, repetitions: int) -> str:
    """Everything that the page shows of a measurement."""
    good = sum(abs(pair.error) <= TURNAROUND_AIM for pair in pairs)
    near = sum(1 / SWITCHES_AIM <= pair.factor <= SWITCHES_AIM for pair in pairs)
    where = f"{host.cpu} (virtual machine)" if host.is_virtual else host.cpu
    return "\n\n".join(
        [
            f"Measured on {day}: Linux {host.kernel}, CONFIG_HZ {host.hz}, preemption {host.preemption}, {where}. "
            f"Simulated: `{policy}`. Medians of {repetitions} runs.",
            f"Turnaround within {TURNAROUND_AIM:.0%} (aim: all): {good} of {len(pairs)}; on average "
            f"{mean(abs(pair.error) for pair in pairs):.1%} off. "
            f"Switches within a factor of {SWITCHES_AIM:g}: {near} of {len(pairs)}.",
            _summary(pairs),
            disturbed(pairs),
            "What scheduling costs there, in ns: "
            + ", ".join(f"`{field}` {costs.fields(0)[field]:,}" for field in FIELDS)
            + ".",
        ]
    )


def _summary(pairs: Sequence[Pair]) -> str:
    header = [
        "scenario",
        "kernel (ms)",
        "simulated",
        "error",
        "if waking were free",
        "switches, kernel",
        "simulated",
        "factor",
    ]
    return table(header, [_row(pair) for pair in pairs])


def _row(pair: Pair) -> list[str]:
    return [
        f"`{pair.scenario.name}`: {pair.scenario.what}",
        f"{pair.real.turnaround_ns / 1e6:,.0f}",
        f"{pair.ours.turnaround_ns / 1e6:,.0f}",
        f"{pair.error:+.1%}",
        f"{pair.error_if_free:+.1%}",
        f"{pair.real.switches:,}",
        f"{pair.ours.switches:,}",
        f"{pair.factor:.2f}",
    ]


def disturbed(pairs: Sequence[Pair]) -> str:
    """A sentence on the scenarios for which the computer was never idle enough."""
    bad = [
        f"`{pair.scenario.name}` ({pair.real.foreign:.0%})"
        for pair in pairs
        if pair.real.foreign > FOREIGN_MAX
    ]
    limit = f"{FOREIGN_MAX:.0%} of the CPUs' time"
    if not bad:
        return f"In every run that counts, other programs and the hypervisor took at most {limit}."
    return (
        f"Other programs and the hypervisor took more than {limit}, at most as stated, in: {', '.join(bad)}. "
        "These rows are less certain."
    )
