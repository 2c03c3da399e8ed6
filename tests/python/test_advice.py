"""Advice on recorded programs: what is compared, what is refused, what is said."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ampsched import Catalog, InputError, simulate
from ampsched._core import simulated_counter_names, simulated_counters
from ampsched.cli import main
from ampsched.cli.advising import lines
from ampsched.recording import Recording, load, save
from ampsched.recording.advice import advise, best_of
from ampsched.recording.answer import BASELINE, Choice
from ampsched.recording.check import check
from ampsched.recording.cores import Cores
from ampsched.recording.imports import import_file
from ampsched.recording.machine import machine_text, recorded_machine
from ampsched.recording.model_error import KINDS, kind_of, model_error
from ampsched.recording.refusal import FIRST_CHOICE
from ampsched.recording.search import Found, Tried
from ampsched.recording.setting import Setting
from ampsched.statistics import Estimate
from ampsched.uncertainty import Word

ROOT = Path(__file__).resolve().parents[2]
EXACT = ROOT / "docs/reports/recordings/exact"
UNEVEN = EXACT / "barriers-uneven.ampr"
POLICIES = ("linux", "acfs", "colab")


def edited(path: Path, folder: Path, **facts: object) -> Path:
    """A recording of which something else is known as a whole."""
    data = load(path).to_bytes()
    info = {**json.loads(load(path).info), **facts}
    out = folder / "edited.ampr"
    out.write_bytes(data)
    save(load(out).with_info(json.dumps(info)), out)
    return out


def test_the_answer_has_everything_that_a_decision_needs() -> None:
    found = advise(UNEVEN, "2B2S", POLICIES, repeat=3)
    assert abs(found.check.error) < 0.05
    assert {choice.policy for choice in found.choices} == {"acfs", "colab"}
    changes = [choice.change.mean for choice in found.choices]
    assert changes == sorted(changes)
    # Measured on slow cores of the same machine; so nothing has to be supposed.
    assert found.speedup.startswith("2.6")
    assert found.best_if == {}
    # Four threads with shares of 1 to 7 ms up to each barrier.
    assert found.shared > 0.95
    (piecewise,) = found.loops
    assert piecewise.schedule.name == "piece by piece"
    assert piecewise.change.high < -0.2
    text = "\n".join(lines(found, "2B2S", ["./uneven"]))
    assert len(text.splitlines()) <= 24
    assert text.startswith(f"Simulated on 2B2S: {found.best.policy} is ")
    assert json.dumps(found.to_dict())


def test_h36_1_the_answer_says_how_siblings_are_modelled() -> None:
    for machine, is_told in (("i7-1360p", True), ("2B2S", False)):
        advice = advise(UNEVEN, machine, ("linux", "cfs"), repeat=2)
        told = [line for line in lines(advice, machine, ["./uneven"]) if line.startswith("siblings: ")]
        assert [("p 0.60" in line) for line in told] == [True] * is_told


def test_h35_5_the_models_own_error_is_told_by_what_the_program_is_like() -> None:
    processes, threads = load(EXACT / "build-make.ampr"), load(UNEVEN)
    told = [(processes, 1.0, "processes"), (threads, 1.0, "threads"), (processes, 0.8, "waiting")]
    for recording, follows, kind in told:
        found = model_error(recording, follows)
        assert found.kind == kind_of(recording, follows) == kind
        assert 0 < found.mean <= abs(found.worst)
        assert found.programs > 1
    assert {kind for *_, kind in told} == set(KINDS)
    advice = advise(UNEVEN, "2B2S", ("linux", "acfs"), repeat=2)
    assert f"model: {advice.model_error.text}" in lines(advice, "2B2S", ["./uneven"])
    assert advice.to_dict()["model_error"]["kind"] == "threads"


@pytest.mark.parametrize(
    ("known", "target"),
    [
        ({"command": ["sort", "my file"]}, ("sort", "my file")),
        ({"command": ["cat", "\\xff"]}, ("COMMAND",)),
        ({"command": []}, ("COMMAND",)),
        ({"command": ["postgres"], "window_ns": 5}, ("--pid", "PID")),
    ],
)
def test_what_is_suggested_names_the_program(
    tmp_path: Path, known: dict[str, object], target: tuple[str, ...]
) -> None:
    found = advise(edited(UNEVEN, tmp_path, **known), "2B2S", POLICIES, repeat=2)
    assert found.target == target


def test_of_equally_good_settings_the_least_effort_is_suggested() -> None:
    found = advise(UNEVEN, "2B2S", ("linux", "acfs"), repeat=2)
    big = Cores("the big cores", (0, 1))

    def suggested(alike: str, *tried: tuple[Setting, float, float], word: Word = "better") -> list[str]:
        """Of settings with these changes and half intervals; those that are no worse than the best."""
        rows = [
            Tried(setting, (1 + mean, 1 + mean), Estimate(mean, mean - half, mean + half, 2))
            for setting, mean, half in tried
        ]
        verdict = replace(found.verdict, word=word, alike=tuple(alike.split(";")))
        made = replace(found, found=Found(tuple(rows), ()), verdict=verdict)
        return [each.setting.name for each in made.choices_of_settings]

    camp, abreast, hsp = (Setting(name) for name in ("camp", "abreast", "hsp"))
    pinned = Setting(cores=big)
    assert suggested("camp;abreast", (camp, -0.2, 0.01), (abreast, -0.195, 0.01)) == ["abreast", "camp"]
    assert suggested("camp", (camp, -0.2, 0.01), (hsp, -0.15, 0.01), (abreast, -0.1, 0.01)) == [
        "camp",
        "hsp",
        "abreast",
    ]
    # Nothing but `taskset` is needed for what is no worse than a scheduler.
    alike = f"camp;abreast;{pinned.name}"
    tried = ((camp, -0.2, 0.01), (abreast, -0.2, 0.01), (pinned, -0.195, 0.01))
    assert suggested(alike, *tried) == ["linux on the big cores", "abreast", "camp"]
    # Equal to the best, but perhaps no better than the usual one.
    assert suggested("camp;abreast", (camp, -0.2, 0.01), (abreast, -0.1, 0.2)) == ["camp"]
    assert suggested("camp", (camp, 0.2, 0.01), (abreast, 0.3, 0.2)) == []
    assert suggested("camp", (camp, -0.2, 0.01), word="not known") == []


def test_another_machine_makes_the_speedup_a_guess_that_is_said() -> None:
    found = advise(UNEVEN, "4B4S", ("linux", "acfs"), repeat=2)
    assert found.speedup.startswith("not known")
    assert set(found.best_if) == {"little", "much"}
    # Four threads on eight cores: linux leaves some on slow ones, which costs the more the slower these are.
    assert set(found.change_if) == {"little", "much"}
    assert found.advised != found.usual
    for word, each in found.change_if.items():
        (told,) = (line for line in lines(found, "4B4S", []) if line.startswith("speed-up: "))
        assert f"{100 * each.mean:+.1f} % if it gains {word}" in told
        assert -0.9 < each.mean < 0
    stated = advise(UNEVEN, "4B4S", ("linux", "acfs"), speedup=1.5, repeat=2)
    assert (stated.speedup, stated.best_if, stated.change_if) == ("stated: 1.5", {}, {})


def test_counters_of_the_machines_cores_tell_the_speedup(tmp_path: Path) -> None:
    catalog = Catalog.shipped()
    # What the core model counts of a program on a Golden Cove: the shipped model was trained with such rows.
    rows = simulated_counters(catalog.core, catalog.machine("hybrid-8P16E"))
    (values,) = (values for profile, cluster, _, values in rows if (profile, cluster) == ("fft", 0))
    counts = dict(zip(simulated_counter_names(), values, strict=True))
    counted = edited(UNEVEN, tmp_path, machine="", counters={"golden-cove": counts})
    found = advise(counted, "hybrid-8P16E", ("linux", "acfs"), repeat=2, anyway=True)
    assert found.speedup.endswith("predicted from what the processor counted"), found.speedup
    assert found.best_if == {}
    # Counted on cores that this machine does not have.
    assert advise(counted, "2B2S", ("linux", "acfs"), repeat=2, anyway=True).speedup.startswith("not known")


def test_a_replay_that_misses_the_recording_is_no_basis(tmp_path: Path) -> None:
    slow = edited(UNEVEN, tmp_path, wall_ns=400_000_000, foreign=0.08, machine="")
    with pytest.raises(
        InputError,
        match=rf"where the program took 0.4 s, because other programs took 8% of the CPUs' time.*{FIRST_CHOICE}",
    ):
        advise(slow, "2B2S", POLICIES, repeat=2)
    found = advise(slow, "2B2S", POLICIES, repeat=2, anyway=True)
    assert found.check.error < -0.5
    assert "where the program took 0.4 s" in found.answer("2B2S")[0]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            {"foreign": 0.75},
            r"other programs took 75% of the CPUs' time meanwhile, at most 10% .*quiet computer",
        ),
        ({"exit_code": 1}, "the program has ended with exit code 1 "),
        ({"exit_code": 139}, "the program was ended by SIGSEGV"),
    ],
)
def test_what_disturbed_a_recording_is_refused_and_said(
    tmp_path: Path, facts: dict[str, float], message: str
) -> None:
    """Recordings made while others used 75 to 91 % of the processor were accepted."""
    disturbed = edited(UNEVEN, tmp_path, **facts)
    with pytest.raises(InputError, match=message):
        advise(disturbed, "2B2S", POLICIES, repeat=2)
    found = advise(disturbed, "2B2S", POLICIES, repeat=2, anyway=True)
    first, second, *_ = lines(found, "2B2S", [])
    assert first == f"no basis of advice: {found.overridden[0]}"
    assert second.startswith("Simulated on 2B2S: ")
    assert advise(UNEVEN, "2B2S", POLICIES, repeat=2).overridden == ()


def test_a_recording_says_on_what_it_was_made(tmp_path: Path) -> None:
    catalog = Catalog.shipped()
    cores = [{"speed": 1.0, "kind": ""}] * 2 + [{"speed": 0.4, "kind": ""}] * 2
    info = {**json.loads(load(UNEVEN).info), "machine": "", "cores": cores, "wakeup_ns": 12_345}
    machine = recorded_machine(info, catalog, "x.ampr")
    assert "wakeup_latency_ns = 12345" in machine_text(cores, 12_345)
    assert "context_switch_ns = 0" in machine_text(cores, None)
    fast, slow = (
        simulate(part, "cpu-bound:length_ms=10", "rr").makespan_ns
        for part in (machine.only_big(), machine.only_little())
    )
    assert slow > 2 * fast
    with pytest.raises(InputError, match=r"x\.ampr: says nothing of the cores"):
        recorded_machine({**info, "cores": []}, catalog, "x.ampr")
    empty = edited(UNEVEN, tmp_path, wall_ns=0)
    with pytest.raises(InputError, match="nothing was recorded"):
        check(load(empty), empty, catalog)


def test_recordings_stand_wherever_a_workload_is_asked_for(tmp_path: Path) -> None:
    catalog = Catalog.shipped()
    alone = simulate("2B2S", UNEVEN, "linux")
    fast = simulate("2B2S", f"{UNEVEN}:speed=0.5", "linux")
    assert fast.makespan_ns > 1.5 * alone.makespan_ns
    balanced = simulate("2B2S", f"{UNEVEN}:sharing=2", "linux")
    assert balanced.makespan_ns < 0.9 * alone.makespan_ns
    mix = tmp_path / "mix.toml"
    mix.write_text(
        f'[workloads.mix]\napps = [{{ program = "{UNEVEN}", params = {{ speedup = 2.0 }} }}, {{ program = "dedup" }}]\n'
    )
    assert [app.name for app in simulate("2B2S", mix, BASELINE).apps] == ["barrier", "dedup"]
    assert ("program", True) in [(kind, "barrier" in text) for kind, text in catalog.describe(str(UNEVEN))]
    for wrong, message in [
        (f"{UNEVEN}:speedup=99", "speedup: 99 is not within 1 to 50"),
        (f"{UNEVEN}:speed=0", "speed: 0 is not above 0"),
        (f"{UNEVEN}:sharing=7", "sharing: 7 is no whole number from 0 to 6"),
        (f"{UNEVEN}:sped=1", 'did you mean "speed"'),
        ("missing.ampr", "No such file"),
    ]:
        with pytest.raises(InputError, match=message):
            simulate("2B2S", wrong, "cfs")


def test_notes_say_what_a_replay_does_differently(tmp_path: Path) -> None:
    recording: Recording = import_file(ROOT / "lab/calibration/recordings/ferret_400q.npz.zst")
    save(recording, tmp_path / "ferret.ampr")
    notes = Catalog.shipped().notes(str(tmp_path / "ferret.ampr"))
    assert notes == ["jobs of 4 threads are taken by who is free"]


def test_the_command_answers_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["advise", str(UNEVEN), "-m", "2B2S", "-p", "linux,acfs", "-r", "2"])
    assert ended.value.code == 0
    assert "Simulated on 2B2S: " in capsys.readouterr().out
    (tmp_path / "no.ampr").write_text("text")
    (tmp_path / "trace.txt").write_text("text")
    for arguments, message in [
        (["advise", str(tmp_path / "no.ampr")], "is no recording"),
        (["advise", str(tmp_path / "trace.txt")], "turn a trace into a recording first: ampsched import"),
        (["advise", str(UNEVEN), "-m", "nowhere"], "nowhere"),
        (["advise", f"{UNEVEN}:speedup=2"], "takes a recording without parameters (see --speedup)"),
        (["advise", str(UNEVEN), "extra"], "is a recording, so extra has no meaning behind it"),
        (["advise", "--", "no-such-program-here"], "there is no such program"),
    ]:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "sees"), [("", "capacities"), ("cortex-a7", "capacities"), ("gracemont", "priorities")]
)
def test_the_kernel_of_unequal_cores_knew_that_they_differ(tmp_path: Path, kind: str, sees: str) -> None:
    """Long threads stayed on little cores beside idle big ones, so replays of traces of phones took twice as long."""
    cores = [{"speed": 1.0, "kind": ""}] * 2 + [{"speed": 0.3, "kind": kind}] * 2
    text = machine_text(cores, None)
    assert f'[kernel]\nsees = "{sees}"' in text
    assert "[kernel]" not in machine_text([{"speed": 1.0, "kind": kind}] * 4, None)
    (tmp_path / "cores.toml").write_text(text)
    (tmp_path / "hogs.toml").write_text(
        '[[threads]]\nname = "hog"\ncount = 4\nbody = [ { run_us = 300000, profile = "fft" } ]\n'
    )
    took_ms = (
        simulate(tmp_path / "cores.toml", tmp_path / "hogs.toml", "linux", core_order="as-is").makespan_ns
        / 1e6
    )
    # Two threads of 300 ms end on fast cores; what the others have left by then, 210 ms, moves there.
    assert took_ms < 600 if sees == "capacities" else took_ms <= 1100


def test_the_table_has_the_setting_of_the_headline_and_todays() -> None:
    """Rows are sorted by the mean, and of equals the one with the least effort is advised: it was not among them."""
    found = advise(UNEVEN, "2B2S", POLICIES, repeat=2)
    big = Setting(cores=Cores("the big cores", (0, 1)))
    rows = [
        Tried(setting, (0.8, 0.8), Estimate(-0.2 + step / 1e4, -0.21, -0.19, 2))
        for step, setting in enumerate((*map(Setting, ("acfs", "camp", "colab", "hsp")), big))
    ]
    usual = Tried(found.usual, (1.0, 1.0), Estimate(0, 0, 0, 2))
    verdict = replace(found.verdict, word="better", best=big.name, alike=tuple(r.setting.name for r in rows))
    made = replace(found, found=Found((*rows, usual), ()), verdict=verdict)
    text = lines(made, "2B2S", ["./uneven"])
    assert text[0] == "Simulated on 2B2S: linux on the big cores is better for barrier than linux"
    shown = [line.split("  ")[1] for line in text if line.startswith("  ")][:5]
    assert shown == ["acfs", "camp", "colab", "linux on the big cores (0-1)", "linux"]
    (advised,) = (line for line in text if line.endswith("(advised)"))
    assert advised.startswith("  linux on the big cores (0-1)")
    values = made.to_dict()
    assert (
        [row["name"] for row in values["settings"] if row["is_advised"]] == [big.name] == [values["advised"]]
    )
    assert [row["verdict"] for row in values["settings"] if row["verdict"]] == ["better"]
    assert values["verdict"]["best"] == big.name


def test_another_policy_is_named_only_if_it_is_better_by_more_than_the_margin() -> None:
    """The line about speed-ups named the first of equals."""
    choices = [
        Choice(name, Estimate(mean, mean, mean, 1)) for name, mean in (("camp", -0.2), ("hsp", -0.195))
    ]
    assert best_of(choices, "hsp", 0.01) == "hsp"
    assert best_of(choices, "hsp", 0.001) == "camp"


def test_numbers_of_threads_are_compared_on_the_machine_that_was_asked_about() -> None:
    found = replace(advise(UNEVEN, "2B2S", POLICIES, repeat=2), is_openmp=True, target=("./my loop",))
    (told,) = (line for line in lines(found, "2B2S", []) if line.startswith("threads: "))
    assert told.endswith("ampsched advise -m 2B2S -- env OMP_NUM_THREADS={threads} './my loop'")
    (told,) = (line for line in lines(found, "this computer", []) if line.startswith("threads: "))
    assert told.endswith("ampsched advise -- env OMP_NUM_THREADS={threads} './my loop'")
