"""What pages begin with that compare simulations with measurements.

``python -m ampsched_lab.shared.summaries PAGE ...`` writes it.

Their data are the errors in their tables. From these the opening is made, three sentences and a figure; a page that has
one gets it anew.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from ampsched.markdown import plain, wrapped
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import opening

ROOT = Path(__file__).resolve().parents[3]
PER_CENT = re.compile(r"([+-]?\d+(?:\.\d+)?) ?%")


@dataclass(frozen=True)
class Kind:
    """How a page is read.

    Attributes:
        figure: File of its figure, beside the page.
        what: Its figures are of, several.
        within: Errors of at most so much are counted.
        head: Of the column of errors; or none, and `ratio` is given.
        ratio: Numbers of two columns, what was measured and what is ours, in tables whose second column is `head`.
        name: Head of the column that names a figure; by default the first.
        group: Head of the column by whose cells errors are told apart; by default they are by sections.
        needs: Head of a column without which a table does not count.
        beside: What errors are against.
        off: How they differ from it.
        leaves_out: Rows with this in them set what others are compared with.
        text: What the figure shows if it is not made here.
    """

    figure: str
    what: str
    within: float
    head: str = "error"
    ratio: tuple[int, int] | None = None
    name: str | None = None
    group: str | None = None
    needs: str | None = None
    beside: str = "what was measured"
    off: str = "off"
    leaves_out: str | None = None
    text: str | None = None


PAGES = {
    "docs/reports/truth/kernel.md": Kind("kernel.svg", "turnarounds of programs", 0.05, group="scheduler"),
    "docs/reports/truth/linux.md": Kind("linux.svg", "turnarounds of programs", 0.1, needs="switches"),
    "docs/reports/truth/host.md": Kind("host.svg", "programs", 0.05, group="scenario"),
    "docs/reports/truth/costs.md": Kind("costs.svg", "figures", 0.1),
    "docs/reports/truth/contention.md": Kind("contention.svg", "figures", 0.1, leaves_out=r"\(sets |\(in what sets "),
    "docs/reports/truth/quantum.md": Kind(
        "quantum.svg", "mean turnarounds", 0.05, head="spread", group="scheduler", beside="each other at all quanta",
        off="apart",
    ),
    "docs/reports/truth/siblings.md": Kind("siblings.svg", "mean and last turnarounds", 0.05, group="kernel, priorities"),
    "docs/reports/models/core-model.md": Kind("core-model.svg", "ratios and speeds", 0.2, beside="published figures"),
    "docs/reports/models/power.md": Kind(
        "power.svg", "workloads on a cluster", 0.1, head="mean error", name="workload", group="cluster",
        needs="use", text="Power by frequency, measured and modelled, for each workload",
    ),
    "docs/reports/models/programs.md": Kind(
        "programs.svg", "segments of programs", 0.1, head="segment", ratio=(2, 3), group="program",
        beside="the recordings",
    ),
}  # fmt: skip
"""Pages of this kind."""


@dataclass(frozen=True)
class Error:
    """An error in a table: 0.05 is 5 % too much."""

    group: str
    name: str
    value: float


def errors(text: str, kind: Kind) -> list[Error]:
    """All errors in a page's tables, in their order."""
    return [
        error for section, heads, rows in _tables(text) for error in _of_table(section, heads, rows, kind)
    ]


def _tables(text: str) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """The section, heads and rows of each table."""
    section, table = "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        if len(table) > 2:
            yield section, table[0], table[2:]
        table = []
        if line.startswith("##"):
            section = plain(line.lstrip("# "))


def _of_table(
    section: str, heads: Sequence[str], rows: Sequence[Sequence[str]], kind: Kind
) -> Iterator[Error]:
    names = [plain(head).partition(" (")[0] for head in heads]
    if kind.head not in names or (kind.needs and kind.needs not in names):
        return
    group = names.index(kind.group) if kind.group in names else None
    own = names.index(kind.name) if kind.name else 0
    last = ""
    for row in rows:
        last = row[0] or last
        if kind.leaves_out and re.search(kind.leaves_out, " ".join(row)):
            continue
        where = (plain(row[group]) if group is not None else section).partition(":")[0]
        name = plain(row[own]) if row[own] else f"{plain(last)}, {plain(row[1])}"
        for value in _values(row, names, kind):
            yield Error(where, name, value)


def _values(row: Sequence[str], names: Sequence[str], kind: Kind) -> Iterator[float]:
    if kind.ratio is None:
        yield from (float(found) / 100 for found in PER_CENT.findall(row[names.index(kind.head)]))
        return
    measured, ours = (row[column] for column in kind.ratio)
    if re.fullmatch(r"[\d.]+", measured) and re.fullmatch(r"[\d.]+", ours) and float(measured):
        yield float(ours) / float(measured) - 1


def answer(found: Sequence[Error], kind: Kind) -> str:
    """How near they are, where they are nearest and where farthest."""
    good = sum(abs(each.value) <= kind.within for each in found)
    by_group = {
        name: mean(abs(each.value) for each in found if each.group == name) for name in _groups(found)
    }
    if "" in by_group:
        raise ValueError(f"a table has neither a section nor the column {kind.group!r}")
    least, most = min(by_group, key=by_group.__getitem__), max(by_group, key=by_group.__getitem__)
    worst = max(found, key=lambda each: abs(each.value))
    form = "+.1%" if any(each.value < 0 for each in found) else ".1%"
    where = "" if worst.group == worst.name.partition(":")[0] else f" ({worst.group})"
    return opening(
        [
            f"**Of {len(found):,} {kind.what} {good:,} are within {kind.within:.0%} of {kind.beside}, and the mean is "
            f"{mean(abs(each.value) for each in found):.1%} {kind.off}.**",
            f"The nearest are those of *{least}* ({by_group[least]:.1%} {kind.off} on average), the farthest those of *{most}* "
            f"({by_group[most]:.1%}).",
            f"The worst single one is *{worst.name}*{where}, {format(worst.value, form)}.",
        ],
        kind.figure,
        kind.text or f"Errors of all {kind.what} against {kind.beside}",
    )


def _groups(found: Sequence[Error]) -> list[str]:
    return list(dict.fromkeys(each.group for each in found))


def draw(found: Sequence[Error], kind: Kind, path: Path) -> None:
    """A row of marks for each group."""
    rows = {name: [100 * each.value for each in found if each.group == name] for name in _groups(found)}
    most = 100 * kind.within
    limits = (-most, 0, most) if any(each.value < 0 for each in found) else (0, most)
    good = sum(abs(each.value) <= kind.within for each in found)
    title = f"{good:,} of {len(found):,} {kind.what} are within {most:g} % of {kind.beside}"
    plots.strips(path, title, rows, f"error in %; lines at 0 and {most:g} %", limits)


def opened(text: str, kind: Kind) -> str:
    """A page with its opening, in the place of an older one."""
    title, _, rest = text.partition("\n\n")
    old = re.match(rf"\*\*Of [^|]*?\n\n!\[[^]]*\]\({re.escape(kind.figure)}\)\n\n", rest)
    return wrapped(f"{title}\n\n{answer(errors(text, kind), kind)}\n\n{rest[old.end() if old else 0 :]}")


def write(path: Path, text: str, kind: Kind) -> None:
    """Writes a page with its opening, and the figure beside it."""
    path.write_text(opened(text, kind), "utf-8")
    if not kind.text:
        draw(errors(text, kind), kind, path.with_name(kind.figure))


def kind_of(path: Path) -> Kind:
    """Of a page of that name, wherever it is written."""
    return next(kind for name, kind in PAGES.items() if Path(name).name == path.name)


def main() -> None:
    """Gives pages their openings anew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", type=Path, nargs="+", help="such as docs/reports/models/core-model.md")
    for path in parser.parse_args().pages:
        write(path, path.read_text("utf-8"), kind_of(path))


if __name__ == "__main__":
    main()
