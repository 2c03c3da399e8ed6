"""What is told of one thread agrees with the run, and bad questions get an answer in one line."""

from itertools import pairwise

import pytest
from conftest import Ampsched

import ampsched


@pytest.fixture(scope="module", params=["cfs", "eevdf", "rr", "colab"])
def answer(request: pytest.FixtureRequest) -> ampsched.Explanation:
    return ampsched.explain("2B2S", "rand-9", request.param, thread=5, at_ms=60, window_ms=50)


def test_turns_are_told_from_beginning_to_end(answer: ampsched.Explanation) -> None:
    own = [told for told in answer.events if told.what in ("runs", "stops")]
    assert len(own) > 2
    for before, after in pairwise(own):
        if before.what == "runs":
            assert (after.what, after.core) == ("stops", before.core)
        else:
            assert after.what == "runs"
    assert all(before.at_ns <= after.at_ns for before, after in pairwise(answer.events))


def test_the_state_at_the_moment_follows_from_what_is_told(answer: ampsched.Explanation) -> None:
    states = {"runs": "running", "placed": "waiting", "moved": "waiting", "stops": None}
    last = [told for told in answer.events if told.what in states and told.at_ns <= answer.at_ns][-1]
    assert states[last.what] in (answer.state, None)
    assert (last.core, last.at_ns) == (answer.core, answer.since_ns)
    assert answer.name in answer.summary
    assert f"{answer.since_ns / 1e6:.3f} ms" in answer.summary


def test_every_decision_names_its_rule(answer: ampsched.Explanation) -> None:
    by = {"runs": ("order", "steal"), "placed": ("allocator",), "passed": ("order", "steal")}
    for told in answer.events:
        if told.what in by:
            assert told.rule is not None
            assert told.rule.startswith(by[told.what])
            assert told.because
            assert told.because in told.sentence


def test_who_runs_instead_is_told_while_the_thread_waits() -> None:
    answer = ampsched.explain("2B2S", "rand-9", "rr", thread=5, at_ms=60, window_ms=50)
    instead = [told for told in answer.events if told.what == "instead"]
    passed = [told for told in answer.events if told.what == "passed"]
    assert instead
    assert passed
    assert all(told.other and told.other != answer.name for told in instead)
    # The core chose the one that its order puts first.
    firsts = {(told.at_ns, told.core): told.values.get("first") for told in passed}
    for told in instead:
        assert firsts.get((told.at_ns, told.core)) in (told.other, None)


def test_a_thread_by_name_is_the_thread_by_number() -> None:
    by_number = ampsched.explain("2B2S", "sync-1", "cfs", thread=2, at_ms=10)
    assert ampsched.explain("2B2S", "sync-1", "cfs", thread=by_number.name, at_ms=10) == by_number


def test_a_policy_that_decides_itself_says_so() -> None:
    class First(ampsched.Policy):
        """Puts every thread on the first core that it may use."""

        base = "rr"

        def place(self, view: ampsched.View, thread: int) -> int:
            return next(core for core in range(4) if view.may_run(thread, core))

    answer = ampsched.explain("2B2S", "sync-1", First, thread=0, at_ms=0, window_ms=50)
    placed = [told for told in answer.events if told.what == "placed"]
    assert {told.rule for told in placed} == {"the policy's own code"}
    assert {told.core for told in placed} == {0}


ASK = ("explain", "-m", "2B2S", "-w", "sync-1", "-p", "colab")


def test_the_command_prints_what_the_function_returns(ampsched_here: Ampsched) -> None:
    answer = ampsched.explain("2B2S", "sync-1", "colab", thread=1, at_ms=30, window_ms=2)
    question = ("--thread", "1", "--at", "30", "--window", "2")
    printed = ampsched_here(*ASK, *question, "--json")
    assert printed.code == 0
    assert ampsched.Explanation.from_json(printed.out) == answer
    told = ampsched_here(*ASK, *question, "--values")
    assert told.code == 0
    assert told.out.splitlines() == list(answer.lines())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--thread", "fmm/wrker.1", "--at", "30"), 'did you mean "fmm/worker.1"?'),
        (("--thread", "999", "--at", "30"), 'no thread "999" has started by 35.000 ms'),
        (("--thread", "1", "--at", "1e8"), "is after the end of the run at"),
        (("--thread", "1", "--at", "-1"), "at_ms = -1 is not within 0 to 1e+09"),
        (("--thread", "1", "--at", "1", "--window", "-2"), "window_ms = -2 is not within"),
        (("--thread", "1", "--at", "soon"), "is not a number"),
    ],
)
def test_bad_questions_are_one_line(ampsched_here: Ampsched, options: tuple[str, ...], words: str) -> None:
    ended = ampsched_here(*ASK, *options)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert len(ended.err.splitlines()) == 1
    assert words in ended.err


def test_the_command_tells_in_words_and_values_if_it_is_asked(ampsched_here: Ampsched) -> None:
    line = ("explain", "-m", "2B2S", "-w", "sync-2", "-p", "colab", "--thread", "0", "--at", "10")
    words, values = ampsched_here(*line).out, ampsched_here(*line, "--values").out
    assert "vruntime_gap" in values
    assert [each for each in values.splitlines() if "  [" not in each] == words.splitlines()
