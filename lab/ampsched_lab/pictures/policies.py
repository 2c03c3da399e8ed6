"""Draws the pictures of the reference page of policies: ``python lab/ampsched_lab/pictures/policies.py [FOLDER]``.

``policies.svg`` shows what each policy changes against `linux`, on average over COLAB's mixes (CGO 2020, Table 4) on
two big and two little cores, with true speed-ups: mean slowdown of the programs, and unfairness (greatest slowdown over
smallest). ``policies/NAME.svg`` shows one policy: which thread of a small mix (policies_mix.toml) has which kind of
core when, and its place among all policies in the two quantities above.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

import ampsched
from ampsched import Catalog, Timeline
from ampsched.policy import policies
from ampsched_lab.shared import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FOLDER = Path(__file__).resolve().parents[3] / "docs/reference"
MACHINE, BASELINE = "2B2S", "linux"
SOURCE = "COLAB (CGO 2020), Table 4"
BETTER, WORSE = plots.BLUE, plots.RED
"""Colour-blind safe (Okabe and Ito)."""
MIX = Path(__file__).parent / "policies_mix.toml"
MIX_MACHINE = "exynos5422-2B2S"
"""Of the shipped machines of two big and two little cores the one whose power, heat and clocks are known."""
SHOWN_MS = (1000, 1201)
"""What is shown of the mix: some policies decide once in a second."""
BAR_PT = 8.0
"""Height of a bar."""
BIG, LITTLE = plots.BLUE, plots.ORANGE
GAP_MS = 0.25
"""Turns of a thread with less between them are drawn as one: less than half a point."""


@dataclass(frozen=True)
class Change:
    """What a policy changes, in per cent; less is better."""

    slowdown: float
    unfairness: float


SHORT = {"slowdown": "H_ANTT", "unfairness": "unfairness"}
QUANTITIES = {"slowdown": "mean slowdown (H_ANTT)", "unfairness": "unfairness"}
"""Fields of a change, and their names."""


def mixes() -> list[str]:
    """The names of the workloads."""
    entries = Catalog.shipped().entries("workload")
    return [entry.name for entry in entries if entry.description.startswith(SOURCE)]


def changes() -> dict[str, Change]:
    """By policy, the best first."""
    names = [BASELINE, *(info.name for info in policies() if info.name != BASELINE)]
    rows = ampsched.compare(MACHINE, mixes(), names, repeat=1).summary()
    by_case = {(row.workload, row.policy): row for row in rows}
    workloads = list(dict.fromkeys(row.workload for row in rows))

    def change(name: str) -> Change:
        own = [(by_case[each, name], by_case[each, BASELINE]) for each in workloads]
        unfairness = mean(ours.unfairness / base.unfairness - 1 for ours, base in own)
        return Change(100 * mean(ours.h_antt_change.mean for ours, _ in own), 100 * unfairness)

    found = {name: change(name) for name in names if name != BASELINE}
    return dict(sorted(found.items(), key=lambda item: item[1].slowdown))


def draw(found: Mapping[str, Change], path: Path) -> None:
    """Two columns of bars, a row per policy."""
    better = sum(change.slowdown < 0 for change in found.values())
    with plots.canvas(path, "policies", (1, 2), 0.21 * len(found) + 1.2) as (whole, [axes]):
        for panel, (field, title) in zip(axes, QUANTITIES.items(), strict=True):
            values = [getattr(change, field) for change in found.values()]
            colours = [BETTER if value < 0 else WORSE for value in values]
            panel.barh(list(found), values, color=colours, height=0.7)
            panel.margins(y=0.01)
            panel.invert_yaxis()
            panel.axvline(0, color="black", linewidth=0.8)
            panel.set_title(title)
            panel.set_xlabel(f"change against {BASELINE}, %")
        axes[1].set_yticklabels([])
        plots.head(whole, f"{better} of {len(found)} policies slow programs down less than {BASELINE} does")


def mix_under(policy: str) -> Timeline:
    """The mix under a policy."""
    return ampsched.timeline(MIX_MACHINE, MIX, policy, energy=True)


def draw_one(policy: str, timeline: Timeline, found: Mapping[str, Change], path: Path) -> None:
    """Threads over time on the left, the policy's place among all on the right."""
    with plots.canvas(path, policy, (1, 2), 1.9, width_ratios=(1.0, 0.45)) as (whole, [[threads, places]]):
        _draw_threads(timeline, threads)
        _draw_places(policy, {**found, BASELINE: Change(0.0, 0.0)}, places)
        plots.head(whole, "", threads)


def _draw_threads(timeline: Timeline, axes: "Axes") -> None:
    machine = timeline.machine
    ranks = [machine.clusters[owner][4] for owner in machine.cluster_of_core]
    for is_big, colour, label in ((True, BIG, "on a big core"), (False, LITTLE, "on a little core")):
        x, y = [], []
        for row in range(len(timeline.threads)):
            own = [
                (turn.start_ns / 1e6, turn.end_ns / 1e6)
                for turn in timeline.turns
                if turn.thread == row and (ranks[turn.core] == max(ranks)) == is_big
            ]
            for start, end in joined(clipped(sorted(own))):
                x += [start, end, nan]
                y += [row, row, nan]
        axes.plot(x, y, color=colour, linewidth=BAR_PT, solid_capstyle="butt", label=label)
    names = [app if name == "main" else name for _, app, name in timeline.threads]
    axes.set_yticks(range(len(names)), names)
    axes.set(xlim=SHOWN_MS, ylim=(len(names) - 0.5, -0.5), xlabel="ms", xticks=range(*SHOWN_MS, 50))


def clipped(times: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """What of them is shown."""
    least, most = SHOWN_MS
    parts = ((max(least, start), min(most, end)) for start, end in times)
    return [(start, end) for start, end in parts if start < end]


def joined(times: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Times in order, those with hardly anything between them as one."""
    found: list[tuple[float, float]] = []
    for start, end in times:
        if found and start - found[-1][1] < GAP_MS:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def _draw_places(policy: str, found: Mapping[str, Change], axes: "Axes") -> None:
    labels = []
    for row, (field, name) in enumerate(SHORT.items()):
        values = {each: getattr(change, field) for each, change in found.items()}
        x = [each for value in values.values() for each in (value, value, nan)]
        axes.plot(x, [row - 0.25, row + 0.25, nan] * len(values), color=plots.GREY, linewidth=0.6)
        axes.plot(values[policy], row, marker="D", color=plots.BLACK, linestyle="")
        labels.append(f"{name}\n{values[policy]:+.1f} %")
    axes.set_yticks(range(len(labels)), labels)
    axes.set(
        ylim=(len(labels) - 0.5, -0.5), xlabel=f"% against {BASELINE};\ngrey: other policies", xticks=(0, 50)
    )
    axes.axvline(0, zorder=0, **plots.REFERENCE)


def main() -> None:
    """Simulates and draws."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    (folder / "policies").mkdir(parents=True, exist_ok=True)
    found = changes()
    draw(found, folder / "policies.svg")
    for info in policies():
        draw_one(info.name, mix_under(info.name), found, folder / "policies" / f"{info.name}.svg")


if __name__ == "__main__":
    main()
