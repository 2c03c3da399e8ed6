"""Task graphs that all tools get: random layers and tiled Cholesky factorisation, as CSV.

One line per task, `id,work,kind,dep;dep`, predecessors first; work in Gflop.
"""

import random
from collections.abc import Iterator
from pathlib import Path

LAYER_TASKS = 100
SEED = 42


def layered(tasks: int) -> str:
    """Layers of 100 tasks of 1 to 10 Gflop, each with one to three random predecessors in the layer before."""
    rng = random.Random(SEED)
    lines = []
    for task in range(tasks):
        start = task // LAYER_TASKS * LAYER_TASKS
        before: list[int] = []
        if start > 0:
            count = rng.randint(1, 3)
            before = sorted(rng.sample(range(start - LAYER_TASKS, start), count))
        lines.append(line(task, rng.uniform(1, 10), "L", before))
    return "".join(lines)


def cholesky(tiles: int) -> str:
    """Right-looking Cholesky factorisation of tiles x tiles; POTRF 1/3, TRSM and SYRK 1, GEMM 2 Gflop."""
    writer: dict[tuple[int, int], int] = {}
    lines = []
    for task, (kind, work, reads, writes) in enumerate(cholesky_tasks(tiles)):
        before = {writer[tile] for tile in (*reads, writes) if tile in writer}
        writer[writes] = task
        lines.append(line(task, work, kind, sorted(before)))
    return "".join(lines)


def cholesky_tasks(
    tiles: int,
) -> Iterator[tuple[str, float, tuple[tuple[int, int], ...], tuple[int, int]]]:
    """Kind, work, tiles read, tile written of each task in program order."""
    for k in range(tiles):
        yield "POTRF", 1 / 3, (), (k, k)
        for m in range(k + 1, tiles):
            yield "TRSM", 1.0, ((k, k),), (m, k)
        for m in range(k + 1, tiles):
            yield "SYRK", 1.0, ((m, k),), (m, m)
            for n in range(k + 1, m):
                yield "GEMM", 2.0, ((m, k), (n, k)), (m, n)


def line(task: int, work: float, kind: str, before: list[int]) -> str:
    """A task's line."""
    return f"{task},{work:.6f},{kind},{';'.join(map(str, before))}\n"


GRAPHS = {
    "layered10k": lambda: layered(10_000),
    "layered100k": lambda: layered(100_000),
    "chol38": lambda: cholesky(38),
    "chol83": lambda: cholesky(83),
}


def write(folder: Path) -> dict[str, Path]:
    """Writes all graphs into a folder; returns their files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.csv" for name in GRAPHS}
    for name, file in files.items():
        file.write_text(GRAPHS[name]())
    return files
