"""One question asked three ways: `advise`, if it is of a recording, `compare` and Python say the same."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

import ampsched
from ampsched.cli import main

RECORDINGS = Path("docs/reports/recordings/exact")
OF_NUMBERS = ("values", "band")
OF_WORDS = ("word", "best", "first", "alike", "agreeing", "margin")


@dataclass(frozen=True)
class Question:
    """What is asked.

    Attributes:
        machine, workload, policies: Of what.
        settings: How it is simulated, as Python's API calls it.
        speedup: Of a recording, if it is stated.
        margin: By how much worse counts as no worse.
    """

    machine: str
    workload: str
    policies: str
    settings: dict[str, Any] = field(default_factory=dict)
    speedup: float | None = None
    margin: float = 0.01

    @property
    def given(self) -> str:
        """The workload with its speed-up."""
        ratio = "" if self.speedup is None else f":speedup={self.speedup:g}"
        return f"{self.workload}{ratio}"

    @property
    def options(self) -> list[str]:
        """Its settings for the command."""
        own = {f"--{key.replace('_', '-')}": value for key, value in self.settings.items()}
        words = [[name] if value is True else [name, str(value)] for name, value in own.items()]
        return [word for each in words for word in each]


def recorded(name: str) -> str:
    return str(RECORDINGS / f"{name}.ampr")


DESCRIBED = """
[[threads]]
name = "reader"
count = 3
body = [{ loop = 20, body = [{ run_us = 900, profile = "fft" }, { sleep_us = 400 }] }]
"""

QUESTIONS = {
    "the README's, of a recording": Question("2B2S", recorded("build-make"), "linux,colab,camp,prop-sp,hsp"),
    "the README's, of a mix": Question("2B2S", "sync-2", "linux,wash,colab"),
    "a stated speed-up": Question("4B4S", recorded("hogs-hogs"), "linux,acfs,abreast", speedup=1.8),
    "few draws": Question("2B2S", recorded("barriers-even"), "linux,acfs", {"repeat": 2}),
    "a wide margin": Question(
        "2B2S", recorded("barriers-uneven"), "linux,acfs,colab", {"repeat": 3}, margin=0.2
    ),
    "a part of a machine": Question(
        "hybrid-8P16E:p=2:e1=0:e2=0:e3=0", recorded("pipelines-source"), "linux,abreast", {"repeat": 3}
    ),
    "another machine": Question(
        "hikey960", recorded("desktop-flac"), "linux,camp", {"repeat": 3}, speedup=2.2
    ),
    "a policy with parameters": Question(
        "2B2S", recorded("kinds-memory"), "linux,colab:literal=1", {"repeat": 2}
    ),
    "a seed": Question("4B4S", "sync-1", "cfs,wash,colab", {"seed": 7, "repeat": 3}),
    "a program of many threads": Question("4B4S", "ferret:n=8", "cfs,acfs", {"repeat": 2}),
    "repetitions": Question("2B2S", "fft", "linux,colab", {"repetitions": 2, "repeat": 2}),
    "one order, noise and costs": Question(
        "2B2S",
        "sync-2",
        "linux,acfs",
        {"core_order": "little-first", "noise": "busy", "overhead": "decision_ns=150", "repeat": 2},
    ),
    "energy and a governor": Question(
        "hikey960", "radix:n=4", "linux,acfs", {"governor": "schedutil", "energy": True, "repeat": 2}
    ),
}


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What a command says, as JSON."""
    with suppress(SystemExit):  # what has failed has said nothing that is JSON
        main([*words, "--format", "json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def same(one: dict[str, Any], other: dict[str, Any], scale: float = 1.0) -> None:
    """The same numbers and words; one's values are in other units by a scale."""
    one, other = (json.loads(json.dumps(each)) for each in (one, other))
    for name in OF_WORDS:
        assert one[name] == other[name], name
    assert [scale * value for value in one["values"]] == pytest.approx(other["values"], rel=1e-9)
    assert one["band"] == (other["band"] and pytest.approx(other["band"], rel=1e-9, abs=1e-9))
    assert one["change"] == pytest.approx(other["change"], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_a_question_has_one_answer_whoever_is_asked(
    question: Question, capsys: pytest.CaptureFixture[str]
) -> None:
    policies = question.policies.split(",")
    in_python = ampsched.compare(
        question.machine, question.given, policies, margin=question.margin, **question.settings
    )
    [mix] = in_python.mixes()
    verdict = asdict(in_python.verdict(*mix))
    margin = ["--margin", str(question.margin)]
    asked = ["-m", question.machine, "-p", question.policies, *margin]
    compared = said(capsys, "compare", *asked, "-w", question.given, *question.options)
    [row] = compared["verdicts"]
    same(row, verdict)
    assert row["text"] == in_python.sentences(*mix)
    assert compared["notes"] == list(in_python.notes)
    assert compared["summary"] == json.loads(json.dumps(in_python.to_dict()["summary"]))
    if question.workload.endswith(".ampr"):
        ratio = [] if question.speedup is None else ["--speedup", str(question.speedup)]
        advised = said(capsys, "advise", question.workload, *asked, *ratio, *question.options)
        # Advice has times in s.
        same(advised["policies"], verdict, 1000.0)
        assert advised["conditions"] == compared["notes"]
        changes = {each["policy"]: each["change"] for each in advised["choices"]}
        others = [each for each in in_python.summary() if each.policy != policies[0]]
        assert changes.keys() == {each.policy for each in others}
        assert advised["model_error"] == row["model_error"]
        if advised["verdict"]["best"] in policies:  # else cores decide, which are not compared
            name = mix[1].partition(":speedup")[0]
            assert advised["text"] == [line.replace(mix[1], name) for line in row["text"]]


def test_a_described_workload_has_one_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "readers.toml"
    path.write_text(DESCRIBED)
    question = Question("4B4S", str(path), "linux,acfs", {"repeat": 2})
    test_a_question_has_one_answer_whoever_is_asked(question, capsys)
