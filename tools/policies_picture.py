"""Draws the picture of the reference page of policies: ``python tools/policies_picture.py [FILE]``.

What each policy changes against `cfs`, on average over COLAB's mixes (CGO 2020, Table 4) on two big and two little
cores, with true speed-ups: mean slowdown of the programs, and unfairness (greatest slowdown over smallest).
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import ampsched
from ampsched import Catalog
from ampsched.experiments import plots
from ampsched.policy import policies

PICTURE = Path(__file__).resolve().parents[1] / "docs/reference/policies.svg"
MACHINE, BASELINE = "2B2S", "cfs"
SOURCE = "COLAB (CGO 2020), Table 4"
BETTER, WORSE = plots.BLUE, plots.RED
"""Colour-blind safe (Okabe and Ito)."""


@dataclass(frozen=True)
class Change:
    """What a policy changes, in per cent; less is better."""

    slowdown: float
    unfairness: float


def mixes() -> list[str]:
    """The names of the workloads."""
    entries = Catalog.shipped().entries("workload")
    return [entry.name for entry in entries if entry.description.startswith(SOURCE)]


def changes() -> dict[str, Change]:
    """By policy, the best first."""
    names = [BASELINE, *(info.name for info in policies() if info.name != BASELINE)]
    rows = ampsched.compare(MACHINE, mixes(), names).summary()
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
    panels = (("mean slowdown (H_ANTT)", "slowdown"), ("unfairness", "unfairness"))
    with plots.canvas(path, "policies", (1, 2), 0.21 * len(found) + 0.9) as (_, [axes]):
        for panel, (title, field) in zip(axes, panels, strict=True):
            values = [getattr(change, field) for change in found.values()]
            colours = [BETTER if value < 0 else WORSE for value in values]
            panel.barh(list(found), values, color=colours, height=0.7)
            panel.margins(y=0.01)
            panel.invert_yaxis()
            panel.axvline(0, color="black", linewidth=0.8)
            panel.set_title(title)
            panel.set_xlabel(f"change against {BASELINE}, %")
        axes[1].set_yticklabels([])


def main() -> None:
    """Simulates and draws."""
    draw(changes(), Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE)


if __name__ == "__main__":
    main()
