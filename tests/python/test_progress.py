"""Progress of long work: which part of how many, and how long it may still take."""

import pytest

from ampsched.cli import progress
from ampsched.cli.progress import Course, Phases, progress_bar


class Clock:
    s = 0.0

    def __call__(self) -> float:
        return self.s


def test_the_part_of_all_and_the_time_left_are_told() -> None:
    clock = Clock()
    course = Course(4, clock)
    course.begin("replaying")
    assert course.words() == "replaying: part 1 of 4"
    clock.s = 30.0
    course.done, course.total = 1, 2
    assert course.words() == "replaying: part 1 of 4, 1 of 2, about 4 min left"
    clock.s = 60.0
    course.begin("simulating")
    assert course.words() == "simulating: part 2 of 4, about 3 min left"
    course.begin("thinking")
    course.done, course.total = 1, 1
    assert course.words() == "thinking: part 3 of 4, 1 of 1, about 20 s left"


def test_parts_that_nobody_has_counted_are_numbered_and_timed_by_themselves() -> None:
    clock = Clock()
    course = Course(None, clock)
    course.begin("a")
    clock.s = 1000.0
    course.begin("b")
    clock.s, course.done, course.total = 1010.0, 1, 5
    assert course.words() == "b: part 2, 1 of 5, about 40 s left in it"


def test_more_parts_than_were_expected_are_counted() -> None:
    course = Course(1, Clock())
    course.begin("a")
    course.begin("b")
    assert course.words() == "b: part 2 of 2"


@pytest.mark.parametrize(("s", "text"), [(0.2, "1 s"), (89, "89 s"), (100, "2 min"), (7200, "2.0 h")])
def test_times_are_as_long_as_they_need(s: float, text: str) -> None:
    assert progress._duration(s) == text


def test_without_a_terminal_there_is_a_line_per_part_and_then_one_every_few_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    phases = Phases(2)
    phases.begin("first")
    phases.progress(1, 3)
    monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
    phases.progress(2, 3)
    phases.end()
    assert capsys.readouterr().err == "first: part 1 of 2 ...\nfirst: part 1 of 2, 2 of 3 ...\n"


def test_a_bar_without_a_terminal_is_a_line_every_few_seconds(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with progress_bar("Simulating") as step:
        step(1, 3)
        monkeypatch.setattr(progress, "LINE_EVERY_S", 0.0)
        step(2, 3)
    with progress_bar("Simulating", hidden=True) as step:
        step(2, 3)
    assert capsys.readouterr().err == "Simulating: 2 of 3 ...\n"
