"""Draws the picture at the top of the README and of the site: ``python lab/ampsched_lab/pictures/first.py``.

It is what the README's example prints: how much longer or shorter a recorded parallel build takes than under Linux.
"""

import sys
from pathlib import Path

from ampsched.recording.advice import POLICIES, advise
from ampsched.recording.answer import Choice
from ampsched_lab.shared import plots

ROOT = Path(__file__).resolve().parents[3]
RECORDING = ROOT / "docs/reports/recordings/exact/build-make.ampr"
MACHINE = "2B2S"
PICTURE = ROOT / "docs/build-make.svg"
BETTER, OPEN, WORSE = plots.BLUE, plots.GREY, plots.RED
"""Colours (Okabe and Ito) of bars whose interval lies below, over and above 0."""


def colour(choice: Choice) -> str:
    """Of a bar."""
    if choice.change.low <= 0 <= choice.change.high:
        return OPEN
    return BETTER if choice.change.mean < 0 else WORSE


def draw(choices: tuple[Choice, ...], path: Path) -> None:
    """Bars with intervals, the best on top."""
    names = [choice.policy for choice in choices]
    means = [100 * choice.change.mean for choice in choices]
    halves = [100 * choice.change.half_width for choice in choices]
    with plots.canvas(path, "first", (1, 1), 3.4) as (whole, [[axes]]):
        axes.barh(
            names, means, xerr=halves, color=[colour(choice) for choice in choices], height=0.7, capsize=2
        )
        for place, (mean, half) in enumerate(zip(means, halves, strict=True)):
            axes.text(max(0, mean + half) + 0.3, place, f"{mean:+.0f} %", va="center")
        axes.invert_yaxis()
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_xlabel("change of the build's time against Linux, in %, with 95 % intervals")
        axes.margins(x=0.08)
        best = (
            f"{names[0]} shortens a recorded build by {-means[0]:.0f} %" if means[0] < 0 else "Linux is best"
        )
        plots.head(whole, f"{best} (simulated, on two big and two little cores)")


def main() -> None:
    """Simulates and draws."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    draw(advise(RECORDING, MACHINE, POLICIES).choices, path)


if __name__ == "__main__":
    main()
