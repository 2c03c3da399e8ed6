"""Settings of simulations: declared once, offered everywhere, and lost nowhere."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import Ampsched
from typer.core import TyperGroup
from typer.main import get_command

import ampsched
from ampsched import _core, api, docs
from ampsched.cli.app import app
from ampsched.settings import (
    AloneSettings,
    CompareSettings,
    MixSettings,
    ReferenceSettings,
    RunSettings,
    SimulateSettings,
    SweepSettings,
    complete,
    declared,
    only,
)

SETTINGS = {
    "simulate": SimulateSettings,
    "explain": SimulateSettings,
    "compare": CompareSettings,
    "limit": CompareSettings,
    "references": ReferenceSettings,
}
# The command "limit" compares, the function does not.
OF_COMMANDS = {**SETTINGS, "sweep": SweepSettings}
OF_FUNCTIONS = {**SETTINGS, "limit": ReferenceSettings, "optimum": ReferenceSettings}
# A sweep needs programs that end.
NOT_OF = {"sweep": {"until_ms"}}
MIX = ("-m", "exynos5422-2B2S", "-w", "fft", "-p", "cfs")
QUESTIONS = {"explain": ("--thread", "0", "--at", "1")}
# Another value than the default of each setting.
OTHER = {
    "seed": ("--seed", "7"),
    "factors": ("--factors", "none"),
    "noise": ("--noise", "idle"),
    "energy": ("--energy",),
    "repetitions": ("--repetitions", "2"),
    "limit_s": ("--limit-s", "50"),
    "check": ("--check",),
    "overhead": ("--overhead", "decision_ns=150"),
    "governor": ("--governor", "schedutil"),
    "core_order": ("--core-order", "big-first"),
    "until_ms": ("--until-ms", "50"),
    "catalog": ("--file", "fft.toml"),
    "repeat": ("--repeat", "2"),
    "jobs": ("--jobs", "1"),
}
FFT = '[[threads]]\nname = "t"\nbody = [ { run_us = 9000, profile = "fft" } ]\n'


def commands() -> Iterator[tuple[str, dict[str, Any]]]:
    """The commands that simulate, each with its options: they name a machine and a workload."""
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    for name, command in root.commands.items():
        options = {param.name: param for param in command.params if param.name}
        if {"machine", "workload"} <= options.keys():
            yield name, options


COMMANDS = dict(commands())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_simulates_offers_every_setting(name: str) -> None:
    every = {row for settings in SETTINGS.values() for row in declared(settings)} - {"repeat", "jobs"}
    assert every - NOT_OF.get(name, set()) <= COMMANDS[name].keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_function_can_be_told_its_command_can_be_told(name: str) -> None:
    options = COMMANDS[name]
    parameters = dict(inspect.signature(getattr(ampsched, name)).parameters)
    # A command has a progress bar, and one text for several policies.
    for own in ("progress", "policies"):
        parameters.pop(own, None)
    if (
        name == "sweep"
    ):  # its function is given an executor, and settings that may be lists; see OF_COMMANDS for those
        for own in ("executor", "options"):
            parameters.pop(own)
        assert {parameters.pop("folder").default, options["out"].default} == {None}
        assert parameters.pop("files").default == ()
        assert options["catalog"].default is None
    assert parameters.keys() <= options.keys()
    if name == "explain":  # of a trace it is linux of its kernel, else the function's
        assert (parameters.pop("policy").default, options["policy"].default) == ("cfs", None)
    for each in parameters.values():
        if each.default is not inspect.Parameter.empty:
            assert options[each.name].default == each.default, each.name


@dataclass
class Simulator:
    """What reaches the simulator."""

    jobs: list[object] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Simulator:
    """Watches what reaches the simulator, in a folder with a program of one's own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fft.toml").write_text(FFT)
    monkeypatch.setattr("ampsched.execution._alone_ns", {})
    seen = Simulator()
    job, batch, source = _core.Job, _core.run_batch, ampsched.Factors.source

    def watched_job(machine: Any, workload: Any, *policy: object, **settings: Any) -> object:
        known = {**settings, "factors": str(factors[-1])}
        # What is computed once for all policies is no setting, and two of them are never equal.
        known.pop("alone", None)
        seen.jobs.append((machine.content(), workload.content(), *policy, known))
        return job(machine, workload, *policy, **settings)  # type: ignore[arg-type]

    def watched_batch(jobs: list[_core.Job], processes: int, *rest: object) -> object:
        seen.batches.append(processes)
        return batch(jobs, processes, *rest)  # type: ignore[arg-type]

    factors: list[ampsched.Factors] = []

    def watched_source(self: ampsched.Factors, machine: ampsched.Machine) -> object:
        factors.append(self)
        return source(self, machine)

    monkeypatch.setattr(_core, "Job", watched_job)
    monkeypatch.setattr(_core, "run_batch", watched_batch)
    monkeypatch.setattr(ampsched.Factors, "source", watched_source)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    return seen


def reached(run: Ampsched, simulator: Simulator, name: str, *options: str) -> tuple[object, ...]:
    """What reaches the simulator from a command."""
    simulator.jobs.clear()
    simulator.batches.clear()
    ended = run(name, *MIX, *QUESTIONS.get(name, ()), *options)
    assert ended.code == 0, ended.err
    return list(simulator.jobs), list(simulator.batches)


@pytest.mark.parametrize(
    ("name", "setting"), [(name, row) for name in COMMANDS for row in declared(OF_COMMANDS[name])]
)
def test_every_setting_reaches_the_simulator(
    ampsched_here: Ampsched, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, name: str, setting: str
) -> None:
    # There is a limit of repeated programs whose amounts are known.
    known = OTHER["catalog"] if setting == "repetitions" else ()
    plain = reached(ampsched_here, simulator, name, *known)
    monkeypatch.setattr("ampsched.execution._alone_ns", {})
    assert plain != reached(ampsched_here, simulator, name, *known, *OTHER[setting])


def test_the_trace_of_a_comparison_is_of_the_run_that_was_compared(
    ampsched_here: Ampsched, simulator: Simulator
) -> None:
    """Energy was left out: the trace of a policy that looks at sensors was that of another run."""
    # Two ends contradict each other.
    left_out = ("core_order", "repeat", "jobs", "until_ms")
    others = [OTHER[row] for row in declared(CompareSettings) if row not in left_out]
    words = [word for option in others for word in option]
    jobs, _ = reached(ampsched_here, simulator, "compare", *words, "--trace", "t.pftrace")
    assert isinstance(jobs, list)
    *compared, traced = jobs
    assert traced in compared


def test_runs_alone_have_the_settings_of_the_mix_but_those_that_concern_policies(
    ampsched_here: Ampsched, simulator: Simulator
) -> None:
    words = [word for row in declared(MixSettings) for word in OTHER[row]]
    jobs, _ = reached(ampsched_here, simulator, "compare", *words, "--repeat", "1")
    given = [row[-1] for row in jobs]  # type: ignore[attr-defined]
    mix = given[-1]
    own = {"overhead_ns": (0, 0), "governors": []}
    assert given.count(mix) == 2, "two orders of cores"
    assert [each for each in given if each != mix] == [{**mix, **own}] * (len(given) - 2)


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_every_setting_is_documented(name: str) -> None:
    function = getattr(api, name)
    doc = inspect.getdoc(function)
    assert doc
    chapter = docs.python_page().split(f"\n## {name}\n")[1].split("\n## ")[0]
    for row in declared(OF_FUNCTIONS[name]).values():
        assert f"    {row.name}: {row.setting.help}" in doc
        assert f"- `{row.name}`: " in chapter
        assert f"{row.name}={row.setting.default!r}" in chapter.replace("\n", " ")


def test_a_setting_that_does_not_exist_is_a_mistake_of_the_caller() -> None:
    for wrong in ({"enrgy": True}, {"jobz": 5.0}):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{next(iter(wrong))}'"):
            ampsched.compare("2B2S", "fft", ["cfs"], **wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="RunSettings has no jobs"):
        complete(RunSettings, {"jobs": 2})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"core_order": "both"},
            'unknown value of core_order "both" \\(known: as-is, big-first, little-first',
        ),
        ({"until_ms": 0}, r"until_ms = 0 is not above 0 and at most 1e\+09"),
        ({"until_ms": float("nan")}, "until_ms = nan is not above 0"),
        ({"limit_s": 1e7}, r"limit_s = 1e\+07 is not above 0 and at most 1e\+06"),
        ({"seed": -1}, "seed = -1 is not within 0 to 18446744073709551615"),
        ({"repetitions": 0}, "repetitions = 0 is not within 1 to 10000"),
        ({"factors": "orakel"}, 'unknown source of factors "orakel"'),
    ],
)
def test_values_are_checked_before_anything_is_looked_up(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ampsched.InputError, match=words):
        ampsched.simulate("no machine", "no workload", **given)


def test_a_complete_value_stays_as_it_is() -> None:
    once = complete(RunSettings, {"governor": "schedutil", "until_ms": 3})
    assert complete(RunSettings, once) == once
    assert only(AloneSettings, once).keys() == declared(AloneSettings).keys()
    assert once["governor"] == ampsched.Governors.parse("schedutil")


def test_options_are_called_like_the_settings() -> None:
    for name, options in COMMANDS.items():
        for row in declared(OF_COMMANDS[name]).values():
            (flag,) = (flag for flag in options[row.name].opts if flag.startswith("--"))
            own = row.setting.option
            assert flag == (own.flag if own else "--" + row.name.replace("_", "-"))
