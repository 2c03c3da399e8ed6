"""The machine's file: what scheduling costs in the guest, measured by micro-benchmarks and by nothing else.

The rule: each field comes from one benchmark of `programs/costs.c`, for each class of cores. No value is chosen
by what a workload does; that there are `fork_ns` and ticks at all was learned from workloads.

| field | benchmark |
|---|---|
| ``wake_ns`` | time of the call that wakes a thread on another, idle CPU |
| ``fork_ns`` | time of the call that starts a thread on another, idle CPU |
| ``wakeup_latency_ns`` | a turn of two threads on two CPUs that wake each other, without its work |
| ``context_switch_ns`` | a turn of two threads on one CPU, without its work and ``wake_ns`` |
| ``migrate_same_cluster_ns`` | how much later a thread runs if the CPU to which it is woken is another one |
| ``migrate_cross_cluster_ns`` | the same, from a CPU of the other class |
| ``tick_cost_ns`` | what a loop of 0.4 s takes beyond its work, divided by its ticks |
| ``tick_ns`` | the kernel's configuration (``CONFIG_HZ``) |

What a look of a policy's slow plane takes of a core is no property of a machine: it is measured for each policy and
given to the simulation as its overhead.

What is less than nothing counts as nothing.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ampsched import Machine
from ampsched.vm.exact import Exact, Work, run, under
from ampsched.vm.kernel import fetch_kernel

NS_PER_S = 1_000_000_000
CAPACITY = 1024
"""Of the fastest core, as Linux counts."""
LIMIT_S = 3600.0
LOOK_WORK = 100_000_000
"""Iterations of each thread while looks are measured: 0.4 s on a fast core."""
FIELDS = (
    "context_switch_ns",
    "migrate_same_cluster_ns",
    "migrate_cross_cluster_ns",
    "wakeup_latency_ns",
    "wake_ns",
    "fork_ns",
    "tick_cost_ns",
)

Measured = Mapping[tuple[str, int], float]
"""Time in ns by benchmark and class, 0 the fastest."""


@dataclass(frozen=True)
class Costs:
    """What was measured under a scheduler.

    Attributes:
        measured: By benchmark and class; 0 is the fastest class.
        tick_ns: Period of the kernel's tick.
        left_out: Fields that the machine's file does not state, to see what they explain.
    """

    measured: Measured
    tick_ns: int
    left_out: frozenset[str] = frozenset()

    def without(self, *fields: str) -> "Costs":
        """The same, but for some fields."""
        return replace(self, left_out=frozenset(fields))

    @classmethod
    def load(cls, path: Path) -> "Costs":
        """What was saved."""
        saved = json.loads(path.read_text("utf-8"))
        return cls({(name, class_): ns for name, class_, ns in saved["measured"]}, saved["tick_ns"])

    def save(self, path: Path) -> None:
        """Keeps it in a file of JSON."""
        rows = [[name, class_, ns] for (name, class_), ns in sorted(self.measured.items())]
        path.write_text(json.dumps({"tick_ns": self.tick_ns, "measured": rows}, indent=1) + "\n", "utf-8")

    @property
    def classes(self) -> int:
        """Number of classes of cores."""
        return 1 + max(class_ for _, class_ in self.measured)

    @property
    def ns_per_iteration(self) -> float:
        """Of the loop, on the fastest cores."""
        return self.measured["iteration", 0]

    @property
    def ratio(self) -> float:
        """How much slower the loop is on the slowest cores."""
        return self.measured["iteration", self.classes - 1] / self.ns_per_iteration

    @property
    def start_us(self) -> float:
        """What the start of a program takes, on the fastest cores."""
        return self.measured["start of a program", 0] / 1000

    def fields(self, class_: int) -> dict[str, int]:
        """What the machine's file says of a class."""

        def ns(benchmark: str) -> float:
            return self.measured.get((benchmark, class_), 0.0)

        wake_ns = ns("waking call, another CPU")
        found = (
            ns("turn, same CPU") - wake_ns,
            ns("move within class"),
            ns("move between classes"),
            ns("turn, another CPU"),
            wake_ns,
            ns("start of a thread"),
            ns("tick"),
        )
        return {
            name: 0 if name in self.left_out else max(0, round(value))
            for name, value in zip(FIELDS, found, strict=True)
        }


def tick_ns(exact: Exact) -> int:
    """Period of the tick of an exact machine's kernel."""
    config = fetch_kernel(exact.kernel, exact.architecture, exact.archive).config
    assert config, "kernels of Debian come with their configuration"
    found = re.search(r"^CONFIG_HZ=(\d+)$", config.read_text("utf-8"), re.MULTILINE)
    assert found, "every kernel is built with some CONFIG_HZ"
    return NS_PER_S // int(found[1])


def measure(exact: Exact, programs: Path, policy: str | None) -> Costs:
    """Runs the micro-benchmarks in a guest, under one of our policies or the kernel's own scheduler.

    Raises:
        VmError: The machine or the policy does not work.
    """
    tick = tick_ns(exact)
    cpus = [core for cluster in exact.clusters() for core in cluster.cores[:2]]
    words = [str(programs / "costs"), "--cpus", ",".join(map(str, cpus)), "--tick-ns", str(tick)]
    command, files = under(policy, exact, words) if policy else (words, [])
    done = run(exact, Work(command, files=files), limit_s=LIMIT_S)
    assert done.code == 0, done.output + done.console
    return Costs(read(done.output), tick)


def look_us(exact: Exact, programs: Path, policy: str) -> float:
    """What a look of a policy's slow plane takes, by its own account, while four threads keep the cores busy.

    Raises:
        VmError: The machine or the policy does not work.
    """
    words = [str(programs / "hogs"), "--calibrations", "0", "--nice", "0,0,0,0", "--work", str(LOOK_WORK)]
    command, files = under(policy, exact, words)
    done = run(exact, Work(command, files=files), limit_s=LIMIT_S)
    assert done.code == 0, done.output + done.console
    return read_look_us(done.output)


def read_look_us(output: str) -> float:
    """What a session says of its looks when it ends; 0 if it never looked for its policy."""
    found = re.search(r" (\d+) epochs, .* (\d+) us per look at ", output)
    assert found, output
    return float(found[2]) if int(found[1]) else 0.0


def read(output: str) -> Measured:
    """What the micro-benchmarks print."""
    rows = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {(row["benchmark"], row["class"]): row["ns"] for row in rows}


Points = Sequence[tuple[int, float, float]]
"""An energy model: MHz, capacity, power in mW at each frequency."""


def machine_file(
    name: str,
    what: str,
    machine: Machine,
    speeds: Sequence[float],
    costs: Costs,
    energy: Sequence[Points] = (),
    *,
    sees: str = "nothing",
) -> str:
    """A machine's file with what was measured.

    Args:
        name: Of the machine.
        what: One line.
        machine: Its clusters.
        speeds: Speed of each cluster's cores in million instructions per second.
        costs: What was measured on it.
        energy: Energy model of each cluster, if frequencies change. A core that executes one instruction per cycle has
            as many MHz as that makes.
        sees: How the kernel tells cores apart: ``nothing`` or ``capacities``.
    """
    lines = [f'name = "{name}"', f'description = "{what}"', ""]
    lines += [
        "# Written by `make -C lab truth` from micro-benchmarks (lab/ampsched_lab/truth/pairs/machine.py); nothing is fitted."
    ]
    ranks = sorted(set(speeds), reverse=True)
    for number, ((cluster, _, cores, _, class_), mips) in enumerate(
        zip(machine.clusters, speeds, strict=True)
    ):
        lines += ["", "[[clusters]]", f'name = "{cluster}"', 'core_type = "generic"', f"cores = {cores}"]
        lines += [f"class = {class_}"]
        speeds_of_two = {both for one, _, both in machine.siblings if machine.cluster_of_core[one] == number}
        lines += [line for both in speeds_of_two for line in ("threads_per_core = 2", f"smt_speed = {both}")]
        if energy:
            lines += _frequencies(energy[number], mips, mips / ranks[0])
        else:
            lines += [f"opps = [{{ mhz = {mips:.0f}, volt = 1.0 }}]"]
        rank = ranks.index(mips)
        if rank:
            lines += [
                "",
                "[clusters.costs]",
                *(f"{field} = {ns}" for field, ns in costs.fields(rank).items()),
            ]
    lines += ["", "[costs]", *(f"{field} = {ns}" for field, ns in costs.fields(0).items())]
    if "tick_ns" not in costs.left_out:
        lines.append(f"tick_ns = {costs.tick_ns}")
    lines += ["", "[kernel]", f'sees = "{sees}"', 'last_level_cache = "machine"']
    return "\n".join([*lines, ""])


def _frequencies(points: Points, mips: float, share: float) -> list[str]:
    """A cluster's frequencies and energy model; capacities are those that Linux works out from its speed."""
    highest = max(mhz for mhz, _, _ in points)
    opps, energy = [], []
    for mhz, _, power_mw in sorted(points):
        own_mhz = round(mips * mhz / highest)
        opps.append(f"  {{ mhz = {own_mhz}, volt = 1.0 }},")
        capacity = int(int(CAPACITY * share) * mhz / highest)
        energy.append(f"  {{ mhz = {own_mhz}, capacity = {capacity}, power_mw = {power_mw:g} }},")
    return ["opps = [", *opps, "]", "energy_model = [", *energy, "]"]
