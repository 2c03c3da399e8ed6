"""Advice on interactive programs: what counts is found in the recording and said."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ampsched import Catalog, InputError
from ampsched.cli import main
from ampsched.cli.advising import lines
from ampsched.recording import load, save
from ampsched.recording.advice import advise
from ampsched.recording.answer import BASELINE, Advice
from ampsched.recording.goals import GOALS, GoalName, goal_of, interaction
from ampsched.recording.imports import import_file
from ampsched.recording.search import Found, Tried
from ampsched.recording.setting import Setting
from ampsched.report import Asked, advising
from ampsched.statistics import Estimate

ROOT = Path(__file__).resolve().parents[2]
UNEVEN = ROOT / "docs/reports/recordings/exact/barriers-uneven.ampr"
PERIOD_US = 16_667
LATE = 20
"""This frame's main thread works for 12 ms, and its render thread until 18 ms after vsync."""


def app(frames: int = 40, *, marked: bool = True) -> Iterator[str]:
    """Text of an app at 60 Hz: vsync wakes its main thread, which works for 4 ms; after 3 it wakes a drawing one."""
    idle, main, render = "<idle>-0     (-----)", "app-10       (   10)", "RenderThread-11 (   10)"
    for frame in range(frames):
        wakes, sleeps, ends = (11_000, 12_000, 18_000) if frame == LATE else (3_000, 4_000, 8_000)
        marks = [
            (main, 0, ".....", 150, f"tracing_mark_write: B|10|Choreographer#doFrame {frame}"),
            (main, 0, ".....", sleeps - 50, "tracing_mark_write: E|10"),
            (render, 1, ".....", wakes + 150, f"tracing_mark_write: B|10|DrawFrames {frame}"),
            (render, 1, ".....", ends - 50, "tracing_mark_write: E|10"),
        ]
        told = [
            (idle, 0, "d.h2.", 0, "sched_waking: comm=app pid=10 prio=120 target_cpu=000"),
            (idle, 0, "d..2.", 100, switch("swapper", 0, "R", "app", 10)),
            (main, 0, "d..2.", wakes, "sched_waking: comm=RenderThread pid=11 prio=120 target_cpu=001"),
            (idle, 1, "d..2.", wakes + 100, switch("swapper", 0, "R", "RenderThread", 11)),
            (main, 0, "d..2.", sleeps, switch("app", 10, "S", "swapper", 0)),
            (render, 1, "d..2.", ends, switch("RenderThread", 11, "S", "swapper", 0)),
            *(marks if marked else []),
        ]
        for thread, core, flags, us, event in sorted(told, key=lambda row: row[3]):
            seconds, rest = divmod(1_000 + frame * PERIOD_US + us, 1_000_000)
            yield f"{thread} [{core:03}] {flags} {seconds}.{rest:06}: {event}\n"


def switch(name: str, tid: int, state: str, to_name: str, to_tid: int) -> str:
    left = f"prev_comm={name} prev_pid={tid} prev_prio=120 prev_state={state}"
    return f"sched_switch: {left} ==> next_comm={to_name} next_pid={to_tid} next_prio=120"


def imported(folder: Path, *, speeds: tuple[float, ...] = (), marked: bool = True) -> Path:
    text = folder / "app.txt"
    text.write_text("".join(app(marked=marked)))
    save(import_file(text, speeds=speeds), folder / "app.ampr")
    return folder / "app.ampr"


def answer(path: Path, machine: str, goal: GoalName | None = None) -> tuple[Advice, str]:
    found = advise(path, machine, ("linux", "acfs", "gts"), goal=goal, speedup=2.5, repeat=2)
    return found, "\n".join(lines(found, machine, []))


def test_of_an_interactive_recording_frames_count(tmp_path: Path) -> None:
    path = imported(tmp_path)
    found = interaction(load(path))
    assert found is not None
    assert {key: found["frames"][key] for key in ("marked", "frames", "late")} == {
        "marked": True,
        "frames": 39,
        "late": 1,
    }
    advice, text = answer(path, "juno")
    assert (advice.goal.name, advice.goal.governor) == ("frames", "schedutil")
    assert (
        "goal: frames (a period of 16.7 ms was found in marked frames of RenderThread; 1 of 39 were late)"
        in text
    )
    assert "governor schedutil" in text
    assert f"{BASELINE} takes" not in text
    assert len(text.splitlines()) <= 20
    page = advising.page(advice.to_dict(), Asked("ampsched advise"))
    assert advice.metric.name in page.certainty.lower()
    assert " points, by chance ±" in page.certainty
    with pytest.raises(InputError, match="no basis of advice"):
        answer(path, "juno", "time")


@pytest.mark.parametrize(("goal", "unit"), [("latency", " ms"), ("energy", " J"), ("edp", " J ms")])
def test_other_goals_compare_what_they_say(tmp_path: Path, goal: GoalName, unit: str) -> None:
    advice, text = answer(imported(tmp_path, marked=False), "juno", goal)
    assert advice.goal.text.startswith(f"{goal} (asked for)")
    assert advice.baseline_value.mean > 0
    value = advice.metric.text(advice.baseline_value.mean)
    # Exactly the same with all policies, or a row of the table.
    assert f"\n{BASELINE}: {value}, and" in text or f"{value}  (as it is)" in text
    assert advice.metric.text(1.5).endswith(unit)
    assert [choice.change.mean for choice in advice.choices] == sorted(c.change.mean for c in advice.choices)


def test_goals_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    machine = Catalog.shipped().machine("2B2S")
    path = imported(tmp_path)
    for recording, goal, message in [
        (load(path), "energy", "2B2S says nothing of its power"),
        (load(UNEVEN), "frames", "no period of frames was found"),
        (load(UNEVEN), "speed", f'unknown goal "speed" \\(known: {", ".join(GOALS)}'),
    ]:
        with pytest.raises(InputError, match=message):
            goal_of(recording, machine, goal)  # type: ignore[arg-type]
    assert goal_of(load(UNEVEN), machine).name == "time"
    assert goal_of(load(path), machine).governor == "none"


def test_speeds_that_were_stated_are_the_speed_up(tmp_path: Path) -> None:
    found = advise(imported(tmp_path, speeds=(1.0, 0.4)), "2B2S", ("linux", "acfs"), repeat=2)
    assert found.speedup == "2.50, by the speeds of the recording's cores"
    assert found.best_if == {}


def test_h37_6_a_tie_prints_no_policy_twice() -> None:
    found = advise(UNEVEN, "2B2S", ("linux", "acfs", "acfs", "colab"), repeat=2)

    def told(count: int, change: Estimate) -> list[str]:
        rows = [Tried(Setting(f"policy-{number}"), (1.0, 1.0), change) for number in range(count)]
        usual = Tried(found.usual, (1.0, 1.0), Estimate(0, 0, 0, 2))
        return lines(replace(found, found=Found((usual, *rows), ()), loops=()), "2B2S", [])

    for count in (1, 2, 3, 4):
        names = [f"policy-{number}" for number in range(count)]
        (tie,) = (line for line in told(count, Estimate(0, 0, 0, 2)) if "exactly the same" in line)
        assert tie.endswith(f"the same with {', '.join(names)}")
        rows = [line.split()[0] for line in told(count, Estimate(0.1, 0, 0.2, 2)) if line[:2] == "  "]
        assert rows == [BASELINE, *names]
    assert [choice.policy for choice in found.choices].count("acfs") == 1
    with pytest.raises(
        InputError, match="sym-2: all cores are equal, so with linux alone there is nothing to try"
    ):
        advise(UNEVEN, "sym-2", ("linux",), repeat=2)
    alone = advise(UNEVEN, "2B2S", ("linux",), repeat=2)
    assert {each.setting.policy for each in alone.found.tried} == {"linux"}


def test_the_command_says_the_goal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = imported(tmp_path)
    for arguments, code, told in [
        (["-p", "gts", "-r", "2"], 0, "goal: frames"),
        (["--goal", "smooth"], 2, 'unknown goal "smooth" (known: '),
        (["--governor", "fast"], 2, "fast"),
    ]:
        with pytest.raises(SystemExit) as ended:
            main(["advise", str(path), "-m", "juno", *arguments])
        output = capsys.readouterr()
        assert (ended.value.code, told in output.out + output.err) == (code, True), output
