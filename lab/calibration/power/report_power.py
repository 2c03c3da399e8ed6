#!/usr/bin/env python3
"""Tables and plots of how far predicted power is from the measured one.

    python lab/calibration/power/report_power.py            writes them into docs/reports/models
    python lab/calibration/power/report_power.py --check    compares the tables instead; exit code 1 if they differ

Reads predicted.csv, which `cargo run -p ampsched-model --example published_power` prints.
"""

import argparse
import csv
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import law
import numpy as np
from fit_power import laws_and_network
from measured import CLUSTERS, FITTED, ROOT, WORKLOADS
from thermal import steady_errors

from ampsched_lab.shared import plots

PREDICTED = Path(__file__).parent / "predicted.csv"
PAGE = ROOT / "docs" / "reports" / "models" / "power.md"
PLOT = ROOT / "docs" / "reports" / "models" / "power.svg"
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"

Row = dict[str, str]


def predictions() -> list[Row]:
    """All measurements with what the model makes of them."""
    with PREDICTED.open() as file:
        return list(csv.DictReader(file))


def error(row: Row) -> float:
    """Predicted power relative to the measured one, minus 1."""
    return float(row["predicted_mw"]) / float(row["measured_mw"]) - 1


def spread(rows: Iterable[Row]) -> str:
    """Mean and worst error of some rows, as two cells."""
    errors = [error(row) for row in rows]
    worst = max(errors, key=abs)
    return f"{100 * np.mean(np.abs(errors)):.1f} % | {100 * worst:+.1f} %"


def of(rows: Iterable[Row], **values: str) -> list[Row]:
    """Rows with these values."""
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


def table(head: list[str], lines: Iterable[str]) -> str:
    """A table in Markdown; numbers to the right, the first two columns to the left."""
    rule = "|".join("---" if index < 2 else "---:" for index in range(len(head)))
    return "\n".join([f"| {' | '.join(head)} |", f"|{rule}|", *(f"| {line} |" for line in lines)])


def summary(rows: list[Row]) -> str:
    """Errors of the halves."""
    lines = []
    for cluster in CLUSTERS:
        own = of(rows, cluster=cluster)
        busy = of(own, measurement="busy")
        parts = [
            ("idle, fitted", of(own, measurement="idle")),
            ("one core busy, fitted columns", [row for row in busy if row["workload"] in FITTED]),
            ("one core busy, predicted columns", [row for row in busy if row["workload"] not in FITTED]),
            ("the same workloads by a stand-in's profile", of(own, measurement="profile")),
            ("four cores busy", of(own, measurement="four")),
        ]
        lines += [f"{cluster} | {what} | {len(part)} | {spread(part)}" for what, part in parts]
    return table(["cluster", "measurements", "points", "mean error", "worst"], lines)


def workloads(rows: list[Row]) -> str:
    """Errors by workload, and if its family is not fitted."""
    laws, network = laws_and_network()
    lines = []
    for cluster in CLUSTERS:
        left_out = law.left_out(cluster, network, laws[cluster].idle)
        for workload in WORKLOADS:
            part = of(rows, cluster=cluster, workload=workload, measurement="busy")
            use = "fitted" if workload in FITTED else "predicted"
            lines.append(
                f"{cluster} | {workload} | {use} | {spread(part)} | {100 * left_out[workload]:.1f} %"
            )
    return table(
        ["cluster", "workload", "use", "mean error", "worst", "mean error if its like is left out"], lines
    )


def operating_points(rows: list[Row]) -> str:
    """Errors by operating point."""
    lines = []
    for cluster in CLUSTERS:
        own = of(rows, cluster=cluster)
        for idle in of(own, measurement="idle"):
            busy = of(own, mhz=idle["mhz"], measurement="busy")
            fitted = [row for row in busy if row["workload"] in FITTED]
            others = [row for row in busy if row["workload"] not in FITTED]
            lines.append(
                f"{cluster} | {idle['mhz']} | {100 * error(idle):+.1f} % | {spread(fitted)} | {spread(others)}"
            )
    return table(
        ["cluster", "MHz", "idle", "fitted: mean", "worst", "predicted: mean", "worst"],
        lines,
    )


def four_cores(rows: list[Row]) -> str:
    """Errors with all cores busy."""
    lines = [
        f"{row['cluster']} | {row['workload']} | {row['mhz']} | {float(row['measured_mw']) / 1000:.2f} | "
        f"{float(row['predicted_mw']) / 1000:.2f} | {100 * error(row):+.1f} %"
        for row in of(rows, measurement="four")
    ]
    return table(["cluster", "workload", "MHz", "measured W", "predicted W", "error"], lines)


def temperatures(_: list[Row]) -> str:
    """Errors of the network at measured power."""
    lines = []
    for row, errors in steady_errors(laws_and_network()[1]):
        cells = " | ".join(f"{value:+.1f}" for value in errors)
        busy = f"{row['busy_cores']} x {row['workload']}"
        lines.append(f"{row['busy_cluster']} | {busy} | {row['mhz']} | {float(row['big_w']):.2f} | {cells}")
    return table(
        ["cluster", "busy", "MHz", "big W", *(f"core {core}, K" for core in range(4)), "case, K"],
        lines,
    )


SECTIONS: tuple[tuple[str, Callable[[list[Row]], str]], ...] = (
    ("### In short", summary),
    ("### By workload", workloads),
    ("### By operating point", operating_points),
    ("### All cores busy", four_cores),
    ("### Temperature at measured power", temperatures),
)


def tables() -> str:
    """All tables with their headings."""
    rows = predictions()
    return "\n\n".join(f"{heading}\n\n{section(rows)}" for heading, section in SECTIONS)


def page() -> str:
    """The page with the tables between its two marks."""
    before, rest = PAGE.read_text().split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{tables()}\n\n{END}{after}"


def plot() -> None:
    """Power by frequency: measured and predicted, for each column."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    with plots.canvas(PLOT, "power", (2, 5), 4.6, sharex="all", sharey="all") as (whole, axes):
        panels = [panel for row in axes for panel in row]
        for panel, workload in zip(panels, ("idle", *WORKLOADS), strict=True):
            measurement = "idle" if workload == "idle" else "busy"
            for cluster, colour in zip(CLUSTERS, (plots.BLUE, plots.RED), strict=True):
                part = of(predictions(), cluster=cluster, workload=workload, measurement=measurement)
                mhz = [float(row["mhz"]) for row in part]
                measured, predicted = (
                    [float(row[f"{kind}_mw"]) for row in part] for kind in ("measured", "predicted")
                )
                panel.plot(mhz, measured, "o", color=colour, markersize=3, label=f"{cluster}, measured")
                panel.plot(mhz, predicted, "-", color=colour, linewidth=1, label=f"{cluster}, model")
            use = "fitted" if measurement == "idle" or workload in FITTED else "predicted"
            panel.set(title=f"{workload}\n({use})", yscale="log")
            panel.yaxis.set_major_formatter(FuncFormatter(lambda mw, _: f"{mw:g}"))
            panel.yaxis.set_minor_formatter(NullFormatter())
            panel.grid(visible=True)
        whole.supxlabel("frequency, MHz", fontsize=plots.FONT_PT)
        whole.supylabel("power of the cluster, mW", fontsize=plots.FONT_PT)
        plots.head(whole, "Power by frequency", panels[0])


def main() -> int:
    """Writes or compares."""
    parser = argparse.ArgumentParser(description="Tables and plots of predicted and measured power.")
    parser.add_argument(
        "--check", action="store_true", help="compare the tables with the committed ones instead"
    )
    if parser.parse_args().check:
        if PAGE.read_text() != page():
            print(f"{PAGE.name} differs from what the predictions give", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(page())
    plot()
    return 0


if __name__ == "__main__":
    sys.exit(main())
