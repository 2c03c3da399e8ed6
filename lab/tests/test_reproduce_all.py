"""``ampsched reproduce all``: what it runs, keeps and says."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from ampsched.cli import main
from ampsched_lab.papers.registry import EXPERIMENTS
from ampsched_lab.shared import resuming

CLAIMS = "id,verdict,apart\nA,reproduced,\nB,direction only,\nC,reproduced,the number of A\n"


class Fakes:
    """Experiments that write three claims, one of them apart, and note how they were run."""

    def __init__(self) -> None:
        self.runs: list[tuple[object, ...]] = []
        self.broken = ""

    def load(self, name: str) -> SimpleNamespace:
        """In the place of an experiment's module."""

        def reproduce(*arguments: object) -> SimpleNamespace:
            self.runs.append((name, *arguments[:3], arguments[4]))
            if name == self.broken:
                raise KeyboardInterrupt
            return SimpleNamespace(write=write, markdown=lambda: f"# {name}")

        def write(folder: Path) -> list[Path]:
            (folder / "report.md").write_text(f"# {name}\n", "utf-8")
            (folder / "claims.csv").write_text(CLAIMS, "utf-8")
            return [folder / "report.md"]

        return SimpleNamespace(PARTS=("one",), reproduce=reproduce)

    @property
    def names(self) -> list[object]:
        """The experiments that were run, in order."""
        return [run[0] for run in self.runs]


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    found = Fakes()
    monkeypatch.setattr(type(EXPERIMENTS["colab"]), "load", lambda self: found.load(self.name))
    return found


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", *map(str, arguments)])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_all_runs_every_experiment_and_says_how_claims_fared(
    fakes: Fakes, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run("all", "--out", tmp_path, "--repeats", 2, "--max-repeats", 4, "--jobs", 1) == 0
    assert fakes.runs == [(name, None, 1, 2, 4) for name in EXPERIMENTS]
    said = capsys.readouterr().out
    for name, experiment in EXPERIMENTS.items():
        (row,) = (line for line in said.splitlines() if line.startswith(f"{experiment.paper} "))
        assert row.removeprefix(experiment.paper).split() == ["2", "1", "1", "0", "0"], (
            "claims apart do not count"
        )
        assert f"report: {tmp_path / name / 'report.md'}" in said


def test_what_is_there_is_not_run_again_unless_seeds_or_code_differ(
    fakes: Fakes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, *others = EXPERIMENTS
    fakes.broken = second
    assert run("all", "--out", tmp_path) == 130
    assert fakes.names == [first, second]
    fakes.broken, fakes.runs = "", []
    assert run("all", "--out", tmp_path) == 0
    assert fakes.names == [second, *others]
    fakes.runs = []
    assert run("all", "--out", tmp_path) == 0
    assert fakes.names == []
    (tmp_path / second / "report.md").unlink()
    assert run("all", "--out", tmp_path) == 0
    assert fakes.names == [second]
    fakes.runs = []
    assert run("all", "--out", tmp_path, "--repeats", 4) == 0
    assert fakes.names == list(EXPERIMENTS)
    fakes.runs = []
    stamp = resuming.stamp
    monkeypatch.setattr(resuming, "stamp", lambda *seeds: f"other code {stamp(*seeds)}")
    assert run("all", "--out", tmp_path, "--repeats", 4) == 0
    assert fakes.names == list(EXPERIMENTS)


def test_a_part_is_one_paper_s(fakes: Fakes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("all", "--only", "one", "--out", tmp_path) == 2
    assert '--only "one": names a part of one paper, not of all' in capsys.readouterr().err
    assert not fakes.runs
