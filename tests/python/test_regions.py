"""Parallel regions: task graphs inside programs, from files and on the command line."""

import json
from pathlib import Path

import pytest
from conftest import Ampsched

import ampsched

PROGRAM = """\
name = "graph"
[params]
n = 2
[regions.r]
graph = "{graph}"
policy = "{policy}"
work_us = 1000
[[threads]]
name = "worker"
count = "n"
body = [{{ tasks = "r", profile = "blackscholes" }}]
"""


@pytest.fixture
def write(tmp_path: Path) -> "Write":
    """Writes a program with a region, the file of its graph and a workload beside it; returns the workload's path."""
    return Write(tmp_path)


class Write:
    """See `write`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, graph: str = "graphs/g.csv", policy: str = "fifo") -> str:
        (self.folder / "graphs").mkdir(exist_ok=True)
        (self.folder / "graphs/g.csv").write_text("a,4,,\nb,4,,\nc,4,,a;b\n")
        (self.folder / "p.toml").write_text(PROGRAM.format(graph=graph, policy=policy))
        mix = (
            '[workloads.w]\napps = [{ program = "./p.toml" }, { program = "./p.toml", params = { n = 1 } }]\n'
        )
        (self.folder / "w.toml").write_text(mix)
        return str(self.folder / "w.toml")


def test_a_graph_is_found_beside_its_program(write: Write) -> None:
    workload = write()
    outcome = ampsched.simulate("sym-4", workload, "cfs")
    two, one = (app.turnaround_ns / 1e6 for app in outcome.apps)
    # 4 ms for a and b together and 4 ms for c, and 12 ms one after the other; switches cost some microseconds.
    assert two == pytest.approx(8, rel=0.01)
    assert one == pytest.approx(12, rel=0.01)


def test_policies_of_both_levels_are_compared_from_the_command_line(
    write: Write, ampsched_here: Ampsched
) -> None:
    for policy in ("fifo", "cats:steal=1", "heft"):
        workload = write(policy=policy)
        ended = ampsched_here("compare", "-m", "2B2S", "-w", workload, "-p", "cfs,gts,colab", "--json")
        assert ended.code == 0, ended.err
        assert [row["policy"] for row in json.loads(ended.out)["summary"]] == ["cfs", "gts", "colab"]
    described = ampsched_here("describe", str(Path(workload).parent / "p.toml")).out
    assert "graphs/g.csv under heft, 2 workers" in described


@pytest.mark.parametrize(
    ("graph", "policy", "message"),
    [
        ("graphs/h.csv", "fifo", "p.toml:5: regions.r.graph: file"),
        (
            "fluidanimat",
            "fifo",
            'p.toml:4: regions.r: unknown task program "fluidanimat" (did you mean "fluidanimate"?)',
        ),
        (
            "graphs/g.csv",
            "hefty",
            'p.toml:4: regions.r: unknown task policy "hefty" (did you mean "heft"?)',
        ),
    ],
)
def test_what_is_wrong_is_one_line(
    write: Write, ampsched_here: Ampsched, graph: str, policy: str, message: str
) -> None:
    ended = ampsched_here("simulate", "-m", "2B2S", "-w", write(graph, policy), "-p", "cfs")
    assert ended.code == 2
    assert message in ended.err.replace("\n", " ")
    assert "Traceback" not in ended.err
