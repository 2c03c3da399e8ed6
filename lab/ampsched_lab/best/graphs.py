"""Random graphs of tasks that programs execute by a runtime, alone and beside a program of the random mixes.

The rule: layers of tasks with random links, blocked Cholesky factorisations, or chains of unequal length behind one
task; four or eight workers; tasks of 0.3 to 48 ms, handed out in the order in which they are ready, or by CATS.
"""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from ampsched._core import Workload
from ampsched.catalog import Catalog
from ampsched_lab.best.mixes import Role, line_of, some_program

COUNT = 16
ALONE, BESIDE = "alone", "beside"
PROFILE = "blackscholes"


def graph_mixes(role: Role) -> list[Workload]:
    """Each graph alone and beside another program; the same at each call."""
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{role}-graph-{number}" for number in range(1, COUNT + 1)]
        text = "".join(_workloads(name, Path(folder)) for name in names)
        path = Path(folder) / "mixes.toml"
        path.write_text(text)
        catalog = Catalog.shipped()
        return [catalog.workload(f"{path}:{name}-{how}") for name in names for how in (ALONE, BESIDE)]


def _workloads(name: str, folder: Path) -> str:
    dice = random.Random(name)  # noqa: S311 (no secrets)
    make: Callable[[random.Random], list[str]] = dice.choice([_layers, _cholesky, _chains])
    (folder / f"{name}.csv").write_text("\n".join(make(dice)) + "\n")
    policy, work_us = dice.choice(["fifo", "cats"]), dice.choice([300, 1000, 3000])
    (folder / f"{name}.toml").write_text(
        f'name = "{name}"\n[params]\nn = {dice.choice([4, 8])}\n'
        f'[regions.tasks]\ngraph = "{name}.csv"\npolicy = "{policy}"\nwork_us = {work_us}\n'
        f'[[threads]]\nname = "worker"\ncount = "n"\nbody = [{{ tasks = "tasks", profile = "{PROFILE}" }}]\n'
    )
    own = line_of(f"./{name}.toml", {})
    other = line_of(*some_program(dice))
    return "".join(
        f"[workloads.{name}-{how}]\napps = [\n{lines}]\n"
        for how, lines in ((ALONE, own), (BESIDE, own + other))
    )


def _row(task: str, work: float, before: list[str]) -> str:
    return f"{task},{work:g},,{';'.join(before)}"


def _layers(dice: random.Random) -> list[str]:
    width, last, rows = dice.choice([3, 6, 12]), list[str](), []
    for layer in range(dice.choice([20, 40])):
        names = [f"t{layer}_{number}" for number in range(dice.randint(1, width))]
        for name in names:
            before = dice.sample(last, min(len(last), dice.randint(1, 3)))
            rows.append(_row(name, dice.choice([1, 2, 4, 8, 16]), before))
        last = names
    return rows


def _cholesky(dice: random.Random) -> list[str]:
    """POTRF, TRSM, and SYRK or GEMM on blocks; their work is as in LAPACK's counts, roughly."""
    blocks, rows = dice.choice([6, 8, 10]), []

    def updated(step: int, row: int, column: int) -> list[str]:
        return [f"s{step - 1}_{row}_{column}"] if step else []

    for step in range(blocks):
        rows.append(_row(f"p{step}", 3, updated(step, step, step)))
        below = range(step + 1, blocks)
        rows += [_row(f"r{step}_{row}", 4, [f"p{step}", *updated(step, row, step)]) for row in below]
        for row in below:
            for column in range(step + 1, row + 1):
                panels = dict.fromkeys([f"r{step}_{row}", f"r{step}_{column}"])
                rows.append(_row(f"s{step}_{row}_{column}", 6, [*panels, *updated(step, row, column)]))
    return rows


def _chains(dice: random.Random) -> list[str]:
    rows = [_row("first", 2, [])]
    for chain in range(dice.choice([4, 8, 12])):
        before = "first"
        for link in range(dice.randint(3, 40)):
            name = f"c{chain}_{link}"
            rows.append(_row(name, dice.choice([2, 5, 9]), [before]))
            before = name
    return rows
