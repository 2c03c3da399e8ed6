"""Chance as several recordings of one command show it."""

import json
import math
import random
from pathlib import Path

import pytest
from synthetic import MS, Script

from ampsched import InputError
from ampsched.cli import main
from ampsched.cli.advising import lines
from ampsched.recording import load, save
from ampsched.recording.advice import advise
from ampsched.recording.conditions import ASSUMED
from ampsched.recording.several import Runs, spread_of


def run(folder: Path, name: str, factors: tuple[float, ...], command: str = "prog") -> Path:
    """A run in which threads do 100 ms times a factor each, in ten pieces."""
    script = Script()
    children = [script.start() for _ in factors]
    for child, factor in zip(children, factors, strict=True):
        for _ in range(10):
            script.work(child, round(10 * factor * MS))
    for child in children:
        script.join(0, child)
    path = folder / f"{name}.ampr"
    script.end(path, command, cores=len(factors) + 1)
    return path


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    factors = ((1.0, 1.0), (1.04, 0.98), (0.96, 1.01))
    return [run(tmp_path, name, each) for name, each in zip("abc", factors, strict=True)]


@pytest.mark.parametrize("half_width", [0.01, 0.05, 0.3])
def test_the_spread_is_that_which_made_the_work(half_width: float) -> None:
    """Threads' work evenly distributed within it: many runs of many threads show it."""
    chance = random.Random(str(half_width))
    means = [10.0 ** chance.uniform(6, 9) for _ in range(20)]

    def once() -> dict[tuple[str, int], float]:
        factors = (chance.uniform(1 - half_width, 1 + half_width) for _ in means)
        return {
            ("t", number): mean * each for number, (mean, each) in enumerate(zip(means, factors, strict=True))
        }

    assert spread_of([once() for _ in range(200)]) == pytest.approx(half_width, rel=0.1)


def test_a_copy_is_no_run_of_its_own(runs: list[Path], tmp_path: Path) -> None:
    """Copies said that work does not differ at all."""
    copy = tmp_path / "copy.ampr"
    copy.write_bytes(runs[1].read_bytes())
    with pytest.raises(InputError, match=rf"copy\.ampr: is a copy of .*{runs[1].name}"):
        Runs.of([*runs, copy])


def test_the_spread_of_few_runs_is_none_or_bounded() -> None:
    assert spread_of([{("t", 0): 5.0}, {("t", 0): 5.0}]) == 0
    assert spread_of([{("t", 0): 0.0}, {("t", 0): 0.0}]) == 0
    assert spread_of([{("t", 0): 1.0}, {("t", 0): 1000.0}]) == 1
    # Two runs that differ by 2 %: a deviation of 1.41 %.
    assert spread_of([{("t", 0): 0.99}, {("t", 0): 1.01}]) == pytest.approx(math.sqrt(3 * 2) * 0.01)


def test_several_recordings_take_the_place_of_what_is_assumed(runs: list[Path]) -> None:
    found = Runs.of(runs)
    # Of 201, 202 and 197 ms.
    assert found.path == runs[0]
    assert 0.04 < found.spread.part < 0.07
    assert Runs.of(runs[:1]) == Runs(runs[0], ASSUMED) == Runs.of(runs[0])
    advice = advise(runs, "2B2S", ("linux", "acfs"), repeat=2, anyway=True)
    said = (
        f"each piece of work ±{100 * found.spread.part:.2g} %, as in 3 recordings (a.ampr is the middle one)"
    )
    assert said in advice.conditions
    assert any(said in line for line in lines(advice, "2B2S", []))
    assumed = advise(runs[0], "2B2S", ("linux", "acfs"), repeat=2, anyway=True)
    assert "each piece of work ±5 %" in assumed.conditions
    assert assumed.verdict.values != advice.verdict.values


def test_a_folder_of_recordings_is_all_of_them(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    for target in ([str(runs[0].parent)], [str(each) for each in runs]):
        with pytest.raises(SystemExit) as ended:
            main(["advise", *target, "-m", "2B2S", "-p", "acfs", "-r", "2", "--anyway"])
        assert ended.value.code == 0
        assert "as in 3 recordings (a.ampr is the middle one)" in capsys.readouterr().out


def test_runs_that_are_not_alike_are_refused(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = run(tmp_path / "..", "other", (1.0, 1.0), command="other --fast")
    wide = run(tmp_path / "..", "wide", (1.0, 1.0, 1.0))
    cases = [
        (
            [runs[0], other],
            r"other.ampr: is of other --fast, .*a.ampr of prog \(several recordings: of one command\)",
        ),
        ([runs[0], wide], r"wide.ampr: has 4 threads, .*a.ampr has 3 .*\{threads\}"),
        ([runs[0], runs[0]], "a.ampr: is named twice"),
        ([], "no recording is given"),
    ]
    for paths, message in cases:
        with pytest.raises(InputError, match=message):
            Runs.of(paths)
    failed = tmp_path / "failed.ampr"
    recording = load(runs[1])
    save(recording.with_info(json.dumps({**json.loads(recording.info), "exit_code": 1})), failed)
    with pytest.raises(
        InputError, match=r"failed\.ampr is no basis of advice: the program has ended with exit code 1"
    ):
        Runs.of([runs[0], failed])
    assert Runs.of([runs[0], failed], anyway=True).spread.part > 0
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit) as ended:
        main(["advise", str(tmp_path / "empty"), "-m", "2B2S"])
    assert (ended.value.code, "empty: has no recordings (.ampr)" in capsys.readouterr().err) == (2, True)
