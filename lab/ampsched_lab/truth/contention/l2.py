"""A shared L2: simulations beside the caches of the exact virtual machine, driven by themselves."""

import subprocess
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from pathlib import Path

from ampsched_lab.truth.contention.simulated import Site, speeds
from ampsched_lab.truth.pairs.report import table

EXACT = Path(__file__).parents[4] / "crates/live/exact"
L2_KIB, L2_CYCLES, MEMORY_CYCLES = 1024, 20, 100
MEASURED_KIB = (512, 2048)
INSTRUCTIONS = 20_000_000
PATTERNS = {
    "skewed 4 MiB": "skewed:4096:0.3",
    "skewed 32 MiB": "skewed:32768:0.3",
    "rare 32 MiB": "skewed:32768:0.03",
    "uniform 3 MiB": "uniform:3072:0.05",
    "stream 64 MiB": "stream:65536:0.02",
}


def section(folder: Path) -> str:
    """Compares them.

    Args:
        folder: For files.
    """
    program = _compiled(folder)
    profiles = {name: _profile(program, pattern) for name, pattern in PATTERNS.items()}
    groups = [[name] for name in PATTERNS] + [
        list(pair) for pair in combinations_with_replacement(PATTERNS, 2)
    ]
    groups += [["skewed 4 MiB", "skewed 32 MiB", "uniform 3 MiB", "stream 64 MiB"]]
    rows, errors = [], []
    for group in groups:
        real = [cycles for cycles, _, _ in _run(program, L2_KIB, [PATTERNS[name] for name in group])]
        site = Site(4, L2_KIB, L2_CYCLES, MEMORY_CYCLES, cluster={"l2_contention": "true"})
        ours = [1 / speed for speed in speeds(folder, site, [profiles[name] for name in group])]
        own = [found / expected - 1 for found, expected in zip(ours, real, strict=True)]
        errors += own if len(group) > 1 else []
        cells = (", ".join(form.format(each) for each in values) for form, values in (
            ("{:.2f}", real), ("{:.2f}", ours), ("{:+.1%}", own),
        ))  # fmt: skip
        rows.append([" + ".join(group), *cells])
    header = ["threads", "cycles per instruction in the caches", "simulated", "error"]
    within = sum(abs(error) <= 0.1 for error in errors)
    return "\n\n".join([
        table(header, rows),
        f"Together: mean absolute error {sum(map(abs, errors)) / len(errors):.1%}, greatest "
        f"{max(map(abs, errors)):.1%}, {within} of {len(errors)} within 10 %.",
    ])  # fmt: skip


def _compiled(folder: Path) -> Path:
    program = folder / "shared_l2"
    sources = [Path(__file__).with_name("shared_l2.c"), EXACT / "caches.c"]
    subprocess.run(
        ["cc", "-O2", "-Wall", "-Werror", f"-I{EXACT}", "-o", program, *sources, "-lm"], check=True
    )
    return program


def _run(program: Path, l2_kib: int, patterns: Sequence[str]) -> list[tuple[float, float, float]]:
    words = [
        str(program),
        str(l2_kib),
        str(L2_CYCLES),
        str(L2_CYCLES + MEMORY_CYCLES),
        str(INSTRUCTIONS),
        *patterns,
    ]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    rows = (map(float, line.split()) for line in text.splitlines())
    return [(first, second, third) for first, second, third in rows]


def _profile(program: Path, pattern: str) -> Mapping[str, float]:
    """What a profile is told of a pattern: misses alone, of the L1 and of an L2 of two sizes."""
    (_, l1, small), (_, _, large) = (_run(program, kib, [pattern])[0] for kib in MEASURED_KIB)
    return {"l1d_mpki": 1000 * l1, "l2_512k_mpki": 1000 * small, "l2_2m_mpki": 1000 * min(small, large)}
