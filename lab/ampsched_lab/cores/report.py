"""docs/reports/truth/cores.md on many cores, and its picture."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from ampsched.markdown import ALL_BUT_FIRST, page, table
from ampsched_lab.campaign.boot import KERNEL
from ampsched_lab.campaign.plan import Run
from ampsched_lab.campaign.store import Store
from ampsched_lab.cores.points import (
    BUILD_MS,
    CORES,
    CORES_PER_GROUP,
    CORES_PER_MESSENGER,
    GROUPS_MS,
    MIPS,
    PAIRS_MS,
    PEER,
    PEERS,
    QUANTA_US,
    QUEUES,
    REST_US,
    SCHEDULERS,
    TOLD_RATIO,
    WAKERS_MS,
    WARM_MS,
    WORKERS,
    Point,
    points,
)
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import opening

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN = {
    KERNEL: ("EEVDF", plots.GREY, "o"),
    PEER: ("scx_bpfland", plots.ORANGE, "s"),
    QUEUES: ("kernel's queues", plots.GREEN, "v"),
    "cfs": ("our cfs", plots.RED, "o"),
    "colab": ("our COLAB", plots.BLUE, "D"),
}
"""Name, colour and mark."""
STALE = "*"
"""Behind figures that were measured with other sources than today's."""

Programs = Mapping[str, Mapping[str, float]]
"""What the programs of a load have said, by their names."""


@dataclass(frozen=True)
class Figure:
    """A figure of a load.

    Attributes:
        mix: The load.
        what: Head of its table.
        of: The figure from the number of cores and what the programs have said.
        cost: What is drawn: in words, and the figure as a cost.
        digits: In the table.
    """

    mix: str
    what: str
    of: Callable[[int, Programs], float]
    cost: tuple[str, Callable[[float], float]] | None = None
    digits: int = 1


def _per_core_and_ms(program: str, count: str) -> Callable[[int, Programs], float]:
    def figure(cores: int, said: Programs) -> float:
        return said[program][count] / cores / (said[program]["ns"] / 1e6)

    return figure


def _us(program: str, name: str) -> Callable[[int, Programs], float]:
    return lambda cores, said: said[program][name] / 1e3


def _us_of_a_core(per_ms: float) -> float:
    return 1000 / per_ms


def _same(us: float) -> float:
    return us


JOBS = _per_core_and_ms("build", "jobs")
FIGURES = (
    Figure(
        "pairs",
        "pairs: wake-ups per core and ms",
        _per_core_and_ms("pairs", "wakeups"),
        ("µs of a core per wake-up", _us_of_a_core),
    ),
    Figure(
        "groups",
        "groups: messages per core and ms",
        _per_core_and_ms("groups", "messages"),
        ("µs of a core per message", _us_of_a_core),
    ),
    Figure("wakers", "wakers: p50 of waits (µs)", _us("wakers", "p50_ns")),
    Figure("wakers", "wakers: p99 of waits (µs)", _us("wakers", "p99_ns"), ("p99 of waits (µs)", _same)),
    Figure(
        "build",
        "build: jobs per core and s",
        lambda cores, said: 1000 * JOBS(cores, said),
        ("ms of a core per job", lambda per_s: 1000 / per_s),
        digits=0,
    ),
    Figure("wakers+build", "wakers beside a build: p50 of waits (µs)", _us("wakers", "p50_ns")),
    Figure(
        "wakers+build",
        "wakers beside a build: p99 of waits (µs)",
        _us("wakers", "p99_ns"),
        ("p99 of waits (µs)", _same),
    ),
    Figure(
        "wakers+build",
        "build beside wakers: jobs per core and s",
        lambda cores, said: 1000 * JOBS(cores, said),
        digits=0,
    ),
)
PANELS = tuple(figure for figure in FIGURES if figure.cost)

HEAD = f"""Written by `make -C lab truth-cores`. The cores are equal, each of {MIPS} MIPS; Linux 6.18, x86-64. Our policies \
need two kinds of cores, so they are told that the first half is {TOLD_RATIO - 1:.0%} faster. Each point is one boot \
that runs all loads in turn, with pauses; runs are exact, so none is repeated. The programs, in C, are in \
`lab/ampsched_lab/programs`; times are the guest's. Counting begins {WARM_MS} ms after a load's start (pairs: when all are \
there). The kernel's queues were not measured on 32 cores: the verifier needs too long for their loops over all CPUs.

* *Pairs* ({PAIRS_MS} ms): as many pairs of threads as cores; one works for 2 us, wakes the other and sleeps. Alone, \
with nothing but the work, a core would do 500 wake-ups in 1 ms.
* *Groups* ({GROUPS_MS} ms), as `hackbench`: for every {CORES_PER_GROUP} cores a group of {PEERS} processes that send \
messages of 100 bytes to each of {PEERS} others through pipes.
* *Wakers* ({WAKERS_MS} ms), as `schbench`: for every {CORES_PER_MESSENGER} cores a thread that wakes {WORKERS} \
others, each of which then works for 0.1 ms and rests for {REST_US / 2000:g} to {REST_US * 1.5 / 1000:g} ms. A wait is \
from before the waker's system call until the woken thread reads the clock.
* *Build* ({BUILD_MS} ms), as `make -j` with as many jobs as cores: each job executes a shell, which executes a \
compiler (0.1 to 1 ms of work, fresh memory, a file), then an assembler that reads and checks the file and computes \
for a quarter of that.
* *Wakers beside a build*: both at once."""


@dataclass(frozen=True)
class Results:
    """By point, scheduler and load what its programs have said, and whether today's would say so, too."""

    loads: Mapping[tuple[Point, str, str], tuple[Programs, bool]]

    @classmethod
    def read(cls, store: Store, folder: Path, programs: Path, peers: Path) -> "Results":
        """All that is in a store.

        Args:
            store: Of the runs.
            folder: For files of machines.
            programs: Of the guests.
            peers: Other schedulers' programs.
        """
        loads = {}
        for point in points(CORES, QUANTA_US):
            guest = point.guest(folder, programs)
            for name in SCHEDULERS:
                rows = store.read(guest.name, guest.system, name)
                runs = [Run(mix, 0) for mix in point.mixes() if (mix.name, 0) in rows]
                missing = store.missing(guest, point.scheduler(name, peers, Path("loader")), runs)
                for run in runs:
                    said = {each["name"]: each["report"] for each in rows[run.mix.name, 0]["programs"]}
                    loads[point, name, run.mix.name] = said, run not in missing
        return cls(loads)

    def value(self, figure: Figure, point: Point, scheduler: str) -> float | None:
        """A figure, if it was measured."""
        found = self.loads.get((point, scheduler, figure.mix))
        return figure.of(point.cores, found[0]) if found else None

    def cell(self, figure: Figure, point: Point, scheduler: str) -> str:
        """A figure in a table."""
        found = self.loads.get((point, scheduler, figure.mix))
        if found is None:
            return ""
        said, is_fresh = found
        return f"{figure.of(point.cores, said):.{figure.digits}f}{'' if is_fresh else STALE}"


def text(results: Results, picture: str) -> str:
    """The page's text.

    Args:
        results: What there is.
        picture: Its place, seen from the page.
    """
    tables = [_table(results, figure) for figure in FIGURES]
    is_stale = not all(is_fresh for _, is_fresh in results.loads.values())
    notes = [f"A {STALE} marks what was measured with other sources than today's."] if is_stale else []
    return page(
        "# What scheduling costs on many cores",
        answer(results, picture),
        "## How it is done",
        HEAD,
        *tables,
        *notes,
    )


def answer(results: Results, picture: str) -> str:
    """What scheduling costs where it is hardest: on the most cores, at the shortest quantum."""
    point = Point(max(CORES), min(QUANTA_US))
    named = {figure.mix: figure for figure in PANELS}
    sentences = [_compared(results, named[mix], point) for mix in ("pairs", "wakers", "build")]
    return opening(sentences, picture, "What scheduling costs on 4 to 32 cores, by scheduler and quantum")


def _compared(results: Results, figure: Figure, point: Point) -> str:
    """A cost under all schedulers that were measured at a point, the least first."""
    what, as_cost = figure.cost or ("", _same)
    values = {SHOWN[name][0]: results.value(figure, point, name) for name in SCHEDULERS}
    costs = sorted((as_cost(value), name) for name, value in values.items() if value is not None)
    listed = ", ".join(f"{cost:.1f} ({name})" for cost, name in costs) or "not measured"
    return f"On {point.cores} cores *{figure.mix}* takes, in {what}: {listed}."


def _table(results: Results, figure: Figure) -> str:
    rows = [
        [f"{cores} cores, {quantum_us:g} µs", *cells]
        for quantum_us in QUANTA_US
        for cores in CORES
        if any(cells := [results.cell(figure, Point(cores, quantum_us), name) for name in SCHEDULERS])
    ]
    return table([figure.what, *(SHOWN[name][0] for name in SCHEDULERS)], rows, ALL_BUT_FIRST)


def draw(results: Results, path: Path) -> None:
    """Costs by number of cores: a column of panels per load, a row per quantum."""
    shape = (len(PANELS), len(QUANTA_US))
    with plots.canvas(path, "cores", shape, 1.5 * shape[0] + 1.1, sharex="all", sharey="row") as (
        whole,
        axes,
    ):
        for row, figure in enumerate(PANELS):
            for column, quantum_us in enumerate(QUANTA_US):
                panel = axes[row][column]
                what = _draw_panel(panel, results, figure, quantum_us)
                if row == 0:
                    panel.set_title(f"quantum {quantum_us:g} µs")
                if column == 0:
                    panel.set_ylabel("\n".join([figure.mix, *wrap(what, 18)]))
        for panels in axes:
            panels[0].set_ylim(bottom=0)
        whole.supxlabel("cores", fontsize=plots.FONT_PT)
        plots.head(
            whole, "What scheduling costs (the kernel's queues were measured on up to 16 cores)", axes[0][0]
        )


def _draw_panel(panel: "Axes", results: Results, figure: Figure, quantum_us: float) -> str:
    """Draws one load at one quantum; returns what is on the y axis."""
    what, as_cost = figure.cost or ("", _same)
    for name in SCHEDULERS:
        title, colour, mark = SHOWN[name]
        found = [
            (cores, as_cost(value))
            for cores in CORES
            if (value := results.value(figure, Point(cores, quantum_us), name)) is not None
        ]
        panel.plot(*_columns(found), marker=mark, markersize=3.5, linewidth=1, color=colour, label=title)
    panel.set_ymargin(0.12)
    panel.set_xscale("log", base=2)
    panel.set_xticks(CORES, [str(cores) for cores in CORES])
    panel.grid(axis="y")
    return what


def _columns(rows: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in rows], [y for _, y in rows]
