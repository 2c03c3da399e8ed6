"""The report: what was measured, with intervals, and what the simulator says of the same mixes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ampsched.files import writing
from ampsched.markdown import wrapped
from ampsched.metrics import slowdowns
from ampsched.statistics import Estimate, estimate
from ampsched_lab.campaign.boot import KERNEL
from ampsched_lab.campaign.store import Store
from ampsched_lab.gain import aims
from ampsched_lab.gain.machines import ARM, EARLIER, LINUX, MACHINES, OURS, PEERS, X86, exact
from ampsched_lab.gain.mixes import MIXES, Chosen
from ampsched_lab.gain.results import METRICS, Cell, Results
from ampsched_lab.gain.simulated import Simulator
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import opening
from ampsched_lab.truth.pairs.report import table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AIM, WORST = 0.10, 0.03
OFFSETS_AIM = 30
FIGURE = "h-antt.svg"
TABLE = "gain.csv"
SHOWN = (
    (X86, KERNEL),
    (ARM, KERNEL),
    (X86, "scx_bpfland"),
    (X86, "scx_lavd"),
    (X86, "abreast"),
    (X86, "colab"),
    (X86, "max-fair"),
    (X86, "acfs"),
    (X86, "equal-progress"),
    (ARM, "equal-progress"),
)
"""Systems and schedulers of which all metrics are in the report. Chosen before anything was measured, by what the first
sketches had; abreast came later."""
SIMULATED = {KERNEL: "eevdf"} | {policy: policy for policy in OURS}
"""What stands for what in the simulator."""


def title(architecture: str, scheduler: str) -> str:
    """A scheduler's name in tables."""
    if scheduler == KERNEL:
        return "EEVDF with capacities (arm64)" if architecture == ARM else "EEVDF, blind (x86)"
    return f"{scheduler} ({'arm64' if architecture == ARM else 'x86'})"


def plain(value: Estimate | None, digits: int = 3) -> str:
    """Mean and half the interval; the mean alone of a single run."""
    if value is None:
        return ""
    half = f" ± {value.half_width:.{digits}f}" if value.n > 1 else ""
    return f"{value.mean:.{digits}f}{half}"


def percent(value: Estimate) -> str:
    interval = f" [{value.low:+.1%}, {value.high:+.1%}]" if value.n > 1 else ""
    return f"{value.mean:+.1%}{interval}"


@dataclass(frozen=True)
class Against:
    """H_ANTT under a policy over that under the best of the others, minus 1, for each mix; the worst of the systems.

    On x86 the others are bpfland and lavd, on arm64 EEVDF with capacities; a policy is compared with those of its own
    system, and the less favourable result counts.
    """

    policy: str
    changes: dict[str, Estimate]
    comparisons: int
    """Of mixes, on all systems."""

    @property
    def mean(self) -> float:
        return fmean(each.mean for each in self.changes.values())

    @property
    def met(self) -> list[str]:
        return [mix for mix, change in self.changes.items() if change.mean <= -AIM]

    @property
    def worse(self) -> list[str]:
        return [mix for mix, change in self.changes.items() if change.mean > WORST]

    @property
    def is_reached(self) -> bool:
        """Whether the aim is."""
        return len(self.met) * 2 >= len(self.changes) and not self.worse


def against(results: Results, machine: str, policy: str) -> Against | None:
    """None if the policy was not measured on this machine beside any of the others."""
    changes, comparisons = {}, 0
    for mix in MIXES:
        found = [
            change
            for architecture, others in ((X86, PEERS), (ARM, (KERNEL,)))
            if (change := _against_best(results, machine, architecture, mix.name, policy, others))
        ]
        if found:
            changes[mix.name] = max(found, key=lambda change: change.mean)
            comparisons += len(found)
    return Against(policy, changes, comparisons) if changes else None


def _against_best(
    results: Results, machine: str, architecture: str, mix: str, policy: str, others: Sequence[str]
) -> Estimate | None:
    changes = [results.ratio(machine, architecture, mix, policy, other) for other in others]
    found = [change for change in changes if change]
    return max(found, key=lambda change: change.mean) if found else None


def best_of(results: Results, machine: str) -> Against | None:
    """The best policy that we have, of those that were measured on most systems and mixes; none if nothing was."""
    found = [each for policy in OURS if (each := against(results, machine, policy))]
    complete = [each for each in found if each.comparisons == max(one.comparisons for one in found)]
    return min(complete, key=lambda each: each.mean, default=None)


def answer(results: Results) -> str:
    """What the report begins with: where the aim is reached, by how much, and where it is missed most."""
    best = {machine: each for machine in MACHINES if (each := best_of(results, machine))}
    if not best:
        return ""
    reached = [machine for machine, each in best.items() if each.is_reached]
    machine, worst = max(best.items(), key=lambda item: max(each.mean for each in item[1].changes.values()))
    mix, change = max(worst.changes.items(), key=lambda item: item[1].mean)
    means = ", ".join(f"{each.mean:+.1%} on {machine} (`{each.policy}`)" for machine, each in best.items())
    return opening(
        [
            f"**We aimed at an H_ANTT {AIM:.0%} below that of the best other scheduler on at least half of the mixes, and "
            f"nowhere more than {WORST:.0%} above it; {len(reached) or 'none'} of {len(best)} machines reached that"
            f"{': ' + ', '.join(reached) if reached else ''}.**",
            f"On average over the mixes, our best policy changes it by {means}.",
            f"The least favourable mix is `{mix}` on {machine}: {percent(change)}.",
        ],
        FIGURE,
        "H_ANTT under our policies against the best other scheduler, by machine and mix, with 95 % intervals",
    )


def verdict(results: Results) -> str:
    """A line per machine: the best policy that we have against the best of the others."""
    lines = []
    for machine in MACHINES:
        best = best_of(results, machine)
        lines.append(_verdict_of(machine, best, results) if best else f"* **{machine}**: not measured yet.")
    return "\n".join(lines)


def _verdict_of(machine: str, best: Against, results: Results) -> str:
    others = [
        title(architecture, name)
        for architecture, names in ((X86, PEERS), (ARM, (KERNEL,)))
        for name in names
        if any(results.cell(machine, architecture, name, mix.name) for mix in MIXES)
    ]
    worst = max(best.changes.items(), key=lambda item: item[1].mean)
    reached = "reached" if best.is_reached else "**not reached**"
    return (
        f"* **{machine}**: `{best.policy}`, {best.mean:+.1%} on average against the best of {', '.join(others)}; "
        f"{AIM:.0%} better on {len(best.met)} of {len(best.changes)} mixes, worst on `{worst[0]}` "
        f"({percent(worst[1])}). Aim {reached}."
    )


def h_antt_table(results: Results, machine: str) -> str:
    """H_ANTT of every scheduler and mix; runs per cell in the last column."""
    rows = []
    for architecture, scheduler in systems(results, machine):
        cells = [results.cell(machine, architecture, scheduler, mix.name) for mix in MIXES]
        counts = [len(cell.rows) if cell else 0 for cell in cells]
        means = [cell.estimate("H_ANTT") if cell else None for cell in cells]
        found = [each.mean for each in means if each]
        mean = f"{fmean(found):.3f}" if len(found) == len(MIXES) else ""
        rows.append([title(architecture, scheduler), *map(plain, means), mean, f"{min(counts)}"])
    rows.sort(key=lambda row: row[-2] or "9")
    return table(["scheduler", *(f"`{mix.name}`" for mix in MIXES), "mean", "offsets"], rows)


def systems(results: Results, machine: str) -> list[tuple[str, str]]:
    """Architectures and schedulers with runs on a machine."""
    found = dict.fromkeys(
        (architecture, scheduler) for name, architecture, scheduler, _ in results.cells if name == machine
    )
    return list(found)


def metrics_table(results: Results, machine: str, chosen: Iterable[tuple[str, str]]) -> str:
    """All metrics of some schedulers."""
    rows = []
    for mix in MIXES:
        for architecture, scheduler in chosen:
            cell = results.cell(machine, architecture, scheduler, mix.name)
            if cell:
                values = [_metric_text(cell, metric) for metric in METRICS if metric != "H_ANTT"]
                rows.append([f"`{mix.name}`", title(architecture, scheduler), *values])
    return table(["mix", "scheduler", *(metric for metric in METRICS if metric != "H_ANTT")], rows)


def _metric_text(cell: Cell, metric: str) -> str:
    value = cell.estimate(metric)
    if metric == "missed deadlines" and value:
        half = f" ± {value.half_width:.1%}" if value.n > 1 else ""
        return f"{value.mean:.1%}{half}"
    return plain(value, 2 if metric in ("H_STP", "unfairness") else 0)


def simulated_cells(results: Results) -> dict[tuple[str, str, str, str], dict[int, float]]:
    """H_ANTT of the simulation of every run that the simulator knows, by cell and offset."""
    found = {}
    for (machine, architecture), unit_us in results.unit_us.items():
        own = exact(machine, architecture)
        with TemporaryDirectory() as folder:
            simulator = Simulator(Path(folder), machine, own, unit_us)
            for mix in filter(is_simulated, MIXES):
                alone_ns = simulator.alone_ns(mix)
                for key, cell in results.cells.items():
                    if key[:2] == (machine, architecture) and key[3] == mix.name and key[2] in SIMULATED:
                        found[key] = _simulate(simulator, mix, cell, alone_ns)
    return found


def _simulate(simulator: Simulator, mix: Chosen, cell: Cell, alone_ns: Sequence[float]) -> dict[int, float]:
    policy = SIMULATED[cell.scheduler]
    return {
        offset: fmean(slowdowns(simulator.turnarounds_ns(mix, policy, offset), alone_ns))
        for offset in cell.rows
    }


def is_simulated(mix: Chosen) -> bool:
    """Whether all of it is integer code, as the simulated machine has it."""
    return mix.is_synthetic and mix.name != "kinds"


def simulated_table(results: Results, simulated: dict[tuple[str, str, str, str], dict[int, float]]) -> str:
    """Kernel and simulator side by side."""
    rows = []
    for key, by_offset in simulated.items():
        machine, architecture, scheduler, mix = key
        cell = results.cells[key]
        real, own = estimate(list(cell.h_antt.values())), estimate(list(by_offset.values()))
        error = estimate([by_offset[offset] / cell.h_antt[offset] - 1 for offset in cell.rows])
        row = [machine, f"`{mix}`", title(architecture, scheduler), plain(real), plain(own), percent(error)]
        rows.append(row)
    rows.sort(key=lambda row: (list(MACHINES).index(row[0]), row[2], row[1]))
    return table(["machine", "mix", "scheduler", "H_ANTT, kernel", "simulated", "error"], rows)


def draw(results: Results, path: Path) -> None:
    """What policies change against the best other scheduler: a panel per machine, a row of points per mix."""
    machines = [machine for machine in MACHINES if systems(results, machine)]
    shape = (max(1, -(-len(machines) // 2)), 2)
    best = {machine: each for machine in machines if (each := best_of(results, machine))}
    with plots.canvas(path, "gain", shape, 2.1 * shape[0] + 1.0, sharex="all", sharey="row") as (whole, axes):
        panels = [panel for row in axes for panel in row]
        for panel, machine in zip(panels, machines, strict=False):
            found = {
                "the best policy of the machine": best.get(machine),
                "abreast": against(results, machine, "abreast"),
            }
            _draw_machine(panel, found)
            panel.set_title(f"{machine}: {best[machine].policy}" if machine in best else machine)
        for unused in panels[len(machines) :]:
            unused.set_visible(False)
        whole.supxlabel(
            f"H_ANTT against the best other scheduler, in % (lines: 0, aims {-100 * AIM:.0f} and +{100 * WORST:.0f})",
            fontsize=plots.FONT_PT,
        )
        plots.head(whole, _message(list(best.values())), *panels)


def _message(best: Sequence[Against]) -> str:
    means = sorted(-100 * each.mean for each in best)
    if not means or means[0] < 0:
        return "What policies change in a real kernel"
    return (
        f"In real kernels, our best policies lower H_ANTT by {means[0]:.0f} to {means[-1]:.0f} % on average"
    )


def _draw_machine(panel: "Axes", found: Mapping[str, Against | None]) -> None:
    names = [mix.name for mix in MIXES]
    for place, ((label, each), colour, mark) in enumerate(
        zip(found.items(), (plots.BLUE, plots.ORANGE), "os", strict=True)
    ):
        for mix, change in each.changes.items() if each else ():
            panel.errorbar(
                100 * change.mean, names.index(mix) + 0.3 * (place - 0.5), xerr=100 * change.half_width, fmt=mark,
                markersize=4, color=colour, elinewidth=0.8, label=label,
            )  # fmt: skip
    for limit in (-100 * AIM, 0, 100 * WORST):
        panel.axvline(limit, zorder=0, **plots.REFERENCE | {"linestyle": "-" if limit == 0 else ":"})
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.grid(axis="y")


def write_csv(results: Results, path: Path) -> None:
    """Every metric of every cell."""
    with writing(path) as binary:
        lines = [["machine", "architecture", "scheduler", "mix", "metric", "mean", "low", "high", "offsets"]]
        for key, cell in results.cells.items():
            for metric in METRICS:
                value = cell.estimate(metric)
                if value:
                    numbers = [f"{each:.6g}" for each in (value.mean, value.low, value.high)]
                    lines.append([*key, metric, *numbers, str(value.n)])
        text = "\n".join(",".join(row) for row in lines) + "\n"
        binary.write(text.encode())


def corrected(results: Results) -> str:
    """What the mixes of the first edition say of COLAB on the machine of then."""
    changes = {
        mix: results.ratio("2B2S", X86, mix, "colab", KERNEL) for mix in ("locks", "pipelines", "hogs")
    }
    found = [f"`{mix}` {percent(change)}" for mix, change in changes.items() if change]
    if not found:
        return "the same has not been measured yet."
    return f"COLAB's H_ANTT against that of the same blind EEVDF is: {', '.join(found)}."


def mix_text(mix: Chosen) -> str:
    parts = "; ".join(f"`{name}`: {each.what}" for name, each in mix.programs.items())
    return f"* `{mix.name}`, {mix.what}: {parts}."


def counts_text(results: Results) -> str:
    """How much has been measured."""
    counts = [len(cell.rows) for cell in results.cells.values()]
    if not counts:
        return "Nothing has been measured yet."
    measured = {scheduler for _, _, scheduler, _ in results.cells}
    least, most = min(counts), max(counts)
    offsets = f"{least}" if least == most else f"{least} to {most}"
    ours = ", ".join(f"`{policy}`" for policy in OURS if policy in measured)
    single = " Cells with one offset have no interval." if least == 1 else ""
    return (
        f"{sum(counts)} runs in {len(counts)} cells so far, of machine, system, scheduler and mix, with "
        f"{offsets} start offsets each (the aim is {OFFSETS_AIM}); `make -C lab gain` goes on where it "
        f"stopped. Of our policies these were measured: {ours or 'none'}.{single}"
    )


def write(out: Path, store: Store) -> None:
    """Writes report.md, the figure and the table of everything."""
    results = Results.read(store, list(MACHINES), (KERNEL, *PEERS, *OURS, EARLIER))
    simulated = simulated_cells(results)
    out.mkdir(parents=True, exist_ok=True)
    draw(results, out / FIGURE)
    write_csv(results, out / TABLE)
    machines = [machine for machine in MACHINES if systems(results, machine)]
    blocks = [
        "# What policies gain in a real kernel",
        answer(results),
        "## Machine by machine",
        VERDICT.format(aim=AIM, worst=WORST),
        verdict(results),
        aims.section(results, simulated),
        "## How it was measured",
        INTRODUCTION.format(linux=LINUX),
        counts_text(results),
        CORRECTION.format(found=corrected(results)),
        "## Mixes",
        "\n".join(mix_text(mix) for mix in MIXES),
        *(block for machine in machines for block in _machine_blocks(results, machine)),
        "## Prediction and reality",
        PREDICTION,
        simulated_table(results, simulated),
        *_failures_blocks(store),
        "## What to bear in mind",
        LIMITS,
    ]
    (out / "report.md").write_text(wrapped("\n\n".join(filter(None, blocks)) + "\n"), encoding="utf-8")


def _failures_blocks(store: Store) -> list[str]:
    failures = store.failures()
    return ["## What could not be run", "\n".join(f"* {each}" for each in failures)] if failures else []


def _machine_blocks(results: Results, machine: str) -> list[str]:
    shown = [key for key in SHOWN if key in systems(results, machine)]
    return [
        f"## {machine}",
        "H_ANTT:",
        h_antt_table(results, machine),
        f"Everything else, for some schedulers; [{TABLE}]({TABLE}) has all:",
        metrics_table(results, machine, shown),
    ]


INTRODUCTION = """Made by `make -C lab gain`: mixes of real programs under the kernel's own EEVDF, under every policy of ours \
that can run in a kernel, and under the sched_ext schedulers scx_bpfland 1.1.4 and scx_lavd 1.1.4, in Linux {linux} of \
Debian, on [exact virtual machines](../../howto/run-a-policy-in-the-kernel.md) whose cores are as unequal as the \
machine's file says: each kind of instruction costs on each core type what the core model says. Programs begin at \
moments that are drawn once, the same for all schedulers; runs are exact, so these start offsets are the sample. \
Nothing was tuned: mixes, amounts and offsets were fixed before a policy was measured, all schedulers run with their \
defaults and schedule everything in the guest, and our policies are told the cores' ratio for integer code and \
nothing of the programs.

H_ANTT is the mean slowdown of a mix's programs against running alone on as many cores of the fastest type (lower is \
better), H_STP the sum of their progress, unfairness the greatest slowdown over the smallest. Wake-ups and deadlines \
are those of programs that sleep until a given time. ± and brackets are 95 % intervals over offsets."""

VERDICT = """The best policy that we have, by the mean over mixes, against the best of EEVDF with capacities, \
scx_bpfland and scx_lavd for each mix. An x86 kernel is never told of capacities and the two peers are measured \
there, so the policy is compared with them on x86 and with EEVDF on arm64, pair by pair of equal offsets, and the less \
favourable of the two counts. Aim: H_ANTT {aim:.0%} lower on at least half of the mixes, and nowhere more than \
{worst:.0%} higher."""

CORRECTION = """**A correction.** The first edition of this report measured on fast cores that pause, by CPU quotas, \
with time 20 times slower, and found COLAB's H_ANTT 5.3 % above EEVDF's [-1.8 %, +12.3 %] on `locks`, `pipelines` and \
`hogs`. A little core that has used up its quota gives a running thread away only when its next period begins, \
milliseconds later; COLAB moves running threads, EEVDF hardly ever does. That conclusion is withdrawn. On cores that \
are exactly slow, {found}"""

PREDICTION = """The simulator knows of a machine its speeds for integer code, and what an amount of work takes alone; \
nothing was fitted to a mix. Mixes of integer code only are simulated, with the same start offsets: what gains \
differently, and real programs, it would have to be told of first. EEVDF with capacities is beside the simulator's \
EEVDF, which knows no capacities. Errors are of H_ANTT, run by run."""

LIMITS = """* Offsets vary when programs begin, nothing else: intervals say how much luck is in a schedule, not how other \
programs, kernels or machines would do.
* Which of our policies is the best one is chosen by the same runs that the verdict is on.
* Runs of a boot follow each other after a pause of 0.3 s, with new processes and empty folders, on the same beat of the \
clock. What the kernel keeps longer than that (intervals of its balancers, which core they looked at last, what \
its memory allocators hold) is not reset. A boot carries out the same runs in the same order every time, so results are the \
same, to the byte; but a run that followed others would differ as much as with another offset.
* EEVDF and `abreast` were measured later than the others, after the machine's clock had learnt to tell the guest the \
date. That changes a run as much as another offset does: EEVDF's turnarounds moved by less than 1 % on average, single \
runs by up to 72 %, up and down.
* Cores take turns of 50 us: locks that are held for microseconds are never contended here, and what happens within a turn \
on different cores has no order. The mixes' critical sections are milliseconds long. Wake-up latencies below 50 us say \
nothing.
* Caches are not modelled in these runs, so a move costs the kernel's work only, and programs that wait for memory gain \
as much as those that load from the L1 do.
* Costs of instructions are the core model's; x86 and arm64 guests of a machine have the same, whatever they are called.
* The work of schedulers is charged as instructions of the guest, those of BPF programs included; the verifier's, when \
they are loaded, is not part of a run.
* Background: the policies' own process, kernel threads and the director that starts programs are scheduled beside the \
mixes, as on any computer."""
