"""Measures what a step of a session inside the kernel costs by the number of threads; prints Markdown.

The kernel's interpreter runs in the measuring program itself, on real instructions: no virtual machine is needed. CPU
time of one process; absolute numbers are those of this computer. Needs what the kernel's back end is built with.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import measure

ROOT = Path(__file__).resolve().parents[2]
POLICIES = ("cfs", "rr", "colab", "hsp", "prop-sp", "max-fair")
STEP_NS = 10e6
# "Mostly sleeping": so many threads, of which so many have run since the last look.
MANY, SOME = 10_000, 100
CHANGED_TARGET_NS, SILENT_TARGET_NS, SHARE_TARGET = 1_000.0, 50.0, 0.01


@dataclass(frozen=True)
class Cost:
    """CPU time of a step in ns: the median, and the mean, which has what is done now and then in it, too."""

    median_ns: float
    mean_ns: float


@dataclass(frozen=True)
class Costs:
    """What steps cost, by the number of threads and of those that have run."""

    asleep: dict[tuple[int, int], Cost]
    waiting: dict[tuple[int, int], Cost]

    def silent_ns(self, others: dict[tuple[int, int], Cost]) -> float:
        """What each of many threads costs that does nothing."""
        few = min(threads for threads, _ in others)
        return (others[MANY, 0].median_ns - others[few, 0].median_ns) / (MANY - few)

    def changed_ns(self, others: dict[tuple[int, int], Cost]) -> float:
        """What each of many threads costs beside that which has done something."""
        return (others[MANY, MANY].mean_ns - others[MANY, 0].mean_ns) / MANY

    def growth(self) -> float:
        """How much more a thread costs among many than among few, if all have run."""
        few = min(threads for threads, _ in self.asleep)
        return (self.asleep[MANY, MANY].mean_ns / MANY) / (self.asleep[few, few].mean_ns / few)

    def share(self) -> float:
        """Share of a core that steps take, one per 10 ms, if most threads sleep."""
        return self.asleep[MANY, SOME].mean_ns / STEP_NS


def main() -> int:
    """Builds, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policies", nargs="*", default=POLICIES, help=f"policies ({' '.join(POLICIES)})")
    options = parser.parse_args()
    try:
        program = measure.build_example(ROOT, "ampsched-scx", "epoch_cost", features="bpf")
        found = {policy: costs(program, policy) for policy in options.policies}
    except measure.MeasurementFailed as error:
        print(f"epoch_cost: {error}", file=sys.stderr)
        return 1
    print("\n".join(report(found)))
    return 0


def costs(program: Path, policy: str) -> Costs:
    """What steps of a policy cost."""
    done = subprocess.run([str(program), policy], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise measure.MeasurementFailed(f"{program} {policy}: exit code {done.returncode}\n{done.stderr}")
    found = Costs({}, {})
    for line in done.stdout.splitlines():
        threads, changed, *times = map(int, line.split()[1:])
        found.asleep[threads, changed] = Cost(times[0], times[1])
        found.waiting[threads, changed] = Cost(times[2], times[3])
    return found


def report(found: dict[str, Costs]) -> Iterator[str]:
    """A table, and whether targets are reached."""
    yield f"A step each 10 ms, 8 cores; the last column: {MANY:,} threads of which {SOME} have run, the others sleep.\n"
    heads = (
        "policy",
        "ns per thread that has run",
        "if all wait",
        "growth",
        "ns per sleeping thread",
        "waiting",
    )
    yield "| " + " | ".join([*heads, "share of a core"]) + " |"
    yield "|---|" + "---:|" * len(heads)
    missed: list[str] = []
    for policy, own in found.items():
        changed = [own.changed_ns(others) for others in (own.asleep, own.waiting)]
        silent = [own.silent_ns(others) for others in (own.asleep, own.waiting)]
        cells = [f"{changed[0]:.0f}", f"{changed[1]:.0f}", f"{own.growth():.2f}"]
        cells += [f"{silent[0]:.1f}", f"{silent[1]:.1f}", f"{100 * own.share():.2f} %"]
        yield f"| `{policy}` | {' | '.join(cells)} |"
        if max(changed) > CHANGED_TARGET_NS or max(silent) > SILENT_TARGET_NS or own.share() > SHARE_TARGET:
            missed.append(f"`{policy}`")
    reached = f"missed by {', '.join(missed)}" if missed else "reached"
    yield (
        f"\nTargets: at most {CHANGED_TARGET_NS:.0f} ns and {SILENT_TARGET_NS:.0f} ns, and "
        f"{100 * SHARE_TARGET:.0f} % of a core: {reached}."
    )


if __name__ == "__main__":
    sys.exit(main())
