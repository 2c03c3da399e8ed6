"""What `make demo` prints of COLAB: one short table, with what the product alone needs."""

import subprocess
import sys

import pytest

from ampsched_lab.papers.colab import demo
from ampsched_lab.papers.colab.setup import BASELINE, MACHINES, POLICIES, workloads


def test_the_demo_runs_all_mixes_on_all_machines() -> None:
    assert len(workloads()) == 26
    assert len(MACHINES) == 4
    assert (BASELINE.policy, "wash", "colab") == POLICIES


def test_the_demo_prints_one_table_that_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "MACHINES", ("2B2S",))
    monkeypatch.setattr(demo, "SEEDS", 2)
    steps: list[tuple[int, int]] = []
    comparison = demo.run(lambda done, total: steps.append((done, total)))
    assert steps[-1] == (26 * 3 * 2 * 2, 26 * 3 * 2 * 2)
    assert {run.core_order for run in comparison.runs} == {"big-first", "little-first"}
    head, *rows = demo.lines(comparison)
    assert len(rows) == len(demo.SHOWN)
    assert max(map(len, [head, *rows])) <= 80
    assert "-11 %" in rows[0]


def test_the_demo_needs_nothing_but_what_the_product_needs() -> None:
    code = (
        "import sys, ampsched_lab.papers.colab.demo;"
        "print(sorted({'matplotlib', 'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"
