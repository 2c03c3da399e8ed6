"""Writes the workload files of the COLAB experiments, with thread counts that meet the papers' totals.

The papers print the threads of a whole workload, not of each program. Rule: the parameters n of a
workload's programs are as equal as the total allows (least sum of squared deviations from their mean); fft,
radix, ocean_cp and fluidanimate only run with a power of two; fmm, water_nsquared and water_spatial have
two threads (COLAB, section 5.1). Of equal choices the one with more threads in the first programs counts.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

LIMITED = {"fmm": 2, "water_nsquared": 2, "water_spatial": 2}
"""Programs with a fixed parameter n."""

POWER_OF_TWO = {"fft", "radix", "ocean_cp", "fluidanimate"}
"""Programs that refuse other numbers of threads."""

SINGLE_THREADED = {"mcf", "bzip2"}

THREADS = {
    "blackscholes": (1, 1),
    "bodytrack": (2, 1),
    "dedup": (3, 3),
    "ferret": (3, 4),
    "fluidanimate": (1, 1),
    "swaptions": (1, 1),
}
"""Threads for parameter n are a + b n (table of benchmarks in the LaTeX draft); the others have n."""

DEFAULT_N = 4
"""Parameter n where no total is printed."""


def threads(program: str, n: int) -> int:
    """Threads of a program with parameter n."""
    if program in SINGLE_THREADED:
        return 1
    fixed, per_n = THREADS.get(program, (0, 1))
    return fixed + per_n * n


def choices(program: str, most: int) -> list[int]:
    """Values of n that a program accepts."""
    if program in LIMITED:
        return [LIMITED[program]]
    if program in POWER_OF_TWO:
        return [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= most]
    return list(range(1, most + 1))


def split(programs: Sequence[str], total: int) -> list[int]:
    """Parameters n of the programs by the rule above."""
    free = [program for program in programs if program not in LIMITED]
    fixed = sum(threads(program, LIMITED[program]) for program in programs if program in LIMITED)
    fitting = list(_combinations(free, total - fixed))
    if not fitting:
        raise ValueError(f"no thread counts of {', '.join(programs)} add up to {total}")
    best = min(fitting, key=lambda combination: (_unevenness(combination), tuple(-n for n in combination)))
    chosen = dict(zip(free, best, strict=True))
    return [LIMITED.get(program) or chosen[program] for program in programs]


def _combinations(programs: Sequence[str], total: int) -> Iterator[tuple[int, ...]]:
    """All parameters with which the programs have `total` threads."""
    if not programs:
        if total == 0:
            yield ()
        return
    for n in choices(programs[0], total):
        rest = total - threads(programs[0], n)
        if rest >= 0:
            yield from ((n, *others) for others in _combinations(programs[1:], rest))


def _unevenness(values: Sequence[int]) -> Fraction:
    if not values:
        return Fraction(0)
    mean = Fraction(sum(values), len(values))
    return sum(((value - mean) ** 2 for value in values), Fraction(0))


CGO: dict[str, tuple[str, int]] = {
    "sync-1": ("water_nsquared fmm", 4),
    "sync-2": ("dedup fluidanimate", 18),
    "sync-3": ("water_nsquared fmm fluidanimate bodytrack", 9),
    "sync-4": ("dedup ferret fmm water_nsquared", 20),
    "nsync-1": ("water_spatial lu_cb", 4),
    "nsync-2": ("blackscholes swaptions", 16),
    "nsync-3": ("radix fft water_spatial lu_cb", 8),
    "nsync-4": ("blackscholes ocean_cp lu_ncb swaptions", 20),
    "comm-1": ("water_nsquared blackscholes", 4),
    "comm-2": ("ferret dedup", 16),
    "comm-3": ("water_nsquared fft radix bodytrack", 9),
    "comm-4": ("blackscholes dedup ferret water_nsquared", 20),
    "comp-1": ("water_spatial fmm", 4),
    "comp-2": ("fluidanimate swaptions", 17),
    "comp-3": ("lu_ncb fmm water_spatial lu_cb", 8),
    "comp-4": ("fluidanimate ocean_cp lu_ncb swaptions", 20),
    "rand-1": ("lu_cb dedup", 19),
    "rand-2": ("lu_ncb bodytrack", 10),
    "rand-3": ("ferret water_spatial", 9),
    "rand-4": ("ocean_cp fft", 8),
    "rand-5": ("freqmine water_nsquared", 6),
    "rand-6": ("water_spatial fmm fft fluidanimate", 21),
    "rand-7": ("fmm water_spatial ferret swaptions", 20),
    "rand-8": ("water_spatial water_nsquared ferret freqmine", 17),
    "rand-9": ("blackscholes bodytrack dedup fluidanimate", 55),
    "rand-10": ("lu_cb lu_ncb bodytrack dedup", 53),
}
"""COLAB (CGO 2020), Table 4: programs and total of threads."""

NEW: dict[str, tuple[str, int]] = {
    **{
        f"tex-{name}": CGO[name]
        for name in ("sync-1", "sync-2", "sync-3", "sync-4", "nsync-2", "nsync-3", "comp-1")
    },
    "tex-nsync-1": ("radix fft", 4),
    "tex-nsync-4": ("blackscholes ocean_cp lu_cb swaptions", 20),
    "tex-comm-1": ("water_nsquared fft", 4),
    "tex-comm-2": ("radix blackscholes", 16),
    "tex-comm-3": ("water_nsquared fft radix blackscholes", 8),
    "tex-comm-4": ("bodytrack dedup ferret fft", 20),
    "tex-comp-2": ("fluidanimate swaptions", 16),
    "tex-comp-3": CGO["comp-3"],
    "tex-comp-4": ("fluidanimate ocean_cp lu_cb swaptions", 20),
}
"""LaTeX draft, "Compositions New"."""

TEX: dict[str, str] = {
    "2B-1": "blackscholes radix",
    "2B-2": "fft swaptions",
    "2B-3": "lu_cb dedup",
    "2B-4": "lu_ncb bodytrack",
    "2B-5": "ferret fluidanimate",
    "2B-6": "freqmine water_nsquared",
    "2B-7": "ocean_cp fft",
    "2B-8": "ferret water_spatial",
    "2B-9": "fluidanimate fmm",
    "2B-10": "fmm water_spatial",
    "4B-1": "blackscholes bodytrack radix lu_ncb",
    "4B-2": "water_spatial fmm fft fluidanimate",
    "4B-3": "lu_cb water_nsquared fmm freqmine",
    "4B-4": "lu_cb lu_ncb bodytrack dedup",
    "4B-5": "radix lu_ncb lu_cb fft",
    "4B-6": "blackscholes bodytrack dedup fluidanimate",
    "4B-7": "radix ocean_cp blackscholes swaptions",
    "4B-8": "water_spatial water_nsquared ferret freqmine",
    "4B-9": "fmm water_spatial ferret swaptions",
    "4B-10": "ocean_cp fft fluidanimate swaptions",
    "3B-1": "blackscholes radix mcf",
    "3B-2": "fft swaptions mcf",
    "3B-3": "freqmine swaptions mcf",
    "3B-4": "blackscholes freqmine bzip2",
    "3B-5": "radix lu_ncb bzip2",
    "3B-6": "fluidanimate freqmine bzip2",
    "3B-7": "blackscholes fluidanimate bzip2",
    "3B-8": "dedup fluidanimate bzip2",
    "3B-9": "lu_cb swaptions bzip2",
    "6B-1": "blackscholes bodytrack radix lu_ncb mcf bzip2",
    "6B-2": "fft radix blackscholes fluidanimate mcf bzip2",
    "6B-3": "blackscholes dedup freqmine swaptions mcf bzip2",
    "6B-4": "lu_cb lu_ncb bodytrack dedup mcf bzip2",
    "6B-5": "radix lu_ncb lu_cb fft mcf bzip2",
    "6B-6": "blackscholes freqmine swaptions fluidanimate mcf bzip2",
    "6B-7": "lu_ncb ocean_cp bodytrack swaptions mcf bzip2",
    "6B-8": "lu_cb ocean_cp dedup swaptions mcf bzip2",
    "6B-9": "ocean_cp fft fluidanimate swaptions mcf bzip2",
}
"""LaTeX draft, random mixes; 3B-5 in its later version, 6B-7 in its first."""

SINGLE = (
    "blackscholes bodytrack dedup ferret fluidanimate freqmine swaptions radix lu_ncb lu_cb ocean_cp"
    " water_nsquared water_spatial fmm fft"
)
"""The 15 programs of Figure 4."""

RULE = (
    "The paper prints only the sum of threads. The parameters n are as equal as it allows (least squares);",
    "fft, radix, ocean_cp and fluidanimate need a power of two; fmm and the two waters have two threads.",
)


def files() -> dict[str, str]:
    """Workload files by name."""
    return {
        "colab-cgo": _file(
            ["COLAB (CGO 2020), Table 4: the 26 multiprogrammed workloads.", *RULE],
            _with_totals(CGO, "COLAB (CGO 2020), Table 4"),
        ),
        "colab-tex": _file(
            [f"COLAB, LaTeX draft, random mixes: n = {DEFAULT_N} everywhere, 2 for fmm and the two waters."],
            _with_defaults(
                {f"tex-{name}": mix for name, mix in TEX.items()}, "COLAB, LaTeX draft, random mixes"
            ),
        ),
        "colab-tex-new": _file(
            ['COLAB, LaTeX draft, "Compositions New".', *RULE],
            _with_totals(NEW, "COLAB, LaTeX draft, Compositions New"),
        ),
        "colab-single": _file(
            ["COLAB (CGO 2020), Figure 4: single programs on 2B2S, as many threads as cores (n = 4)."],
            _with_defaults({f"single-{name}": name for name in SINGLE.split()}, "COLAB (CGO 2020), Figure 4"),
        ),
    }


def _with_totals(compositions: dict[str, tuple[str, int]], source: str) -> Iterator[str]:
    for name, (programs, total) in compositions.items():
        names = programs.split()
        yield from _workload(name, f"{source}: {total} threads.", names, split(names, total))


def _with_defaults(compositions: dict[str, str], source: str) -> Iterator[str]:
    for name, programs in compositions.items():
        names = programs.split()
        parameters = [LIMITED.get(program, DEFAULT_N) for program in names]
        total = sum(threads(program, n) for program, n in zip(names, parameters, strict=True))
        yield from _workload(name, f"{source}: {total} threads.", names, parameters)


def _workload(
    name: str, description: str, programs: Sequence[str], parameters: Sequence[int]
) -> Iterator[str]:
    yield from ("", f"[workloads.{name}]", f'description = "{description}"', "apps = [")
    for program, n in zip(programs, parameters, strict=True):
        parameter = "" if program in SINGLE_THREADED else f", params = {{ n = {n} }}"
        count = threads(program, n)
        yield f'  {{ program = "{program}"{parameter} }},  # {count} thread{"s" if count > 1 else ""}'
    yield "]"


def _file(comments: Sequence[str], lines: Iterator[str]) -> str:
    head = [
        "# Written by lab/calibration/fit/workloads.py; run lab/calibration/fit/fit.py instead of editing this file.",
        *(f"# {line}" for line in comments),
    ]
    return "\n".join([*head, *lines]) + "\n"
