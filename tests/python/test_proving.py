"""What was predicted beside what is measured: stopping, energy, failures, and a file that names nobody."""

import json
import math
import os
import platform
import random
import sys
from dataclasses import replace
from itertools import islice
from pathlib import Path

import polars
import pytest

from ampsched import Catalog, InputError
from ampsched._core import CoreKind
from ampsched.calibration.calibrate import Calibration
from ampsched.cli import main
from ampsched.cli.proving import Checked, check_report, summary, write
from ampsched.proving import energy, programs, selftest
from ampsched.proving.energy import find_meter
from ampsched.proving.measuring import WANTED, Measured, looks, measure, ratio, run
from ampsched.proving.report import OWN, Proof, errors_of, report_text
from ampsched.proving.selftest import Selftest, settings_of
from ampsched.recording.cores import Cores
from ampsched.recording.model_error import model_error_of, setting_errors
from ampsched.recording.setting import Setting
from ampsched.statistics import Estimate

PROGRAMS = Path(programs.__file__)
MEASURED = Measured(Estimate(-0.2, -0.22, -0.18, 8), None, 1.0, 0.8, 8, 20.0, True, 0.02, 1)


def test_looks_are_few() -> None:
    assert list(islice(looks(), 6)) == [5, 8, 12, 18, 27, 41]


@pytest.mark.parametrize("spread", [1.0, 1.5, 2.0, 3.0])
def test_stopping_early_does_not_stop_too_early(spread: float) -> None:
    """Of normal pairs with a spread of so many wanted half-widths, at least 95 % of intervals hold the truth."""
    draw, truth, held, runs = random.Random(1), 0.8, 0, 1500
    for _ in range(runs):
        today, advised = [], []
        for look in looks():
            while len(today) < look:
                today.append(1.0)
                advised.append(truth + draw.gauss(0, spread * WANTED))
            found = ratio(today, advised)
            if found.half_width <= WANTED or look > 40:
                break
        held += found.low <= truth - 1 <= found.high
    # Three standard deviations of chance below.
    assert held / runs > 0.95 - 3 * math.sqrt(0.95 * 0.05 / runs)


def test_a_report_of_nothing_is_said_not_to_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write([], tmp_path / "report.json")
    assert capsys.readouterr().err.endswith("report.json is not written: nothing was measured\n")
    assert not (tmp_path / "report.json").exists()


def test_both_settings_run_and_the_change_is_told() -> None:
    script = "import os,time; time.sleep(0.06 if os.environ.get('SHORT') else 0.12)"
    command = [sys.executable, "-I", "-S", "-c", script]
    short = Setting(environment=(("SHORT", "1"),))
    found = measure(command, Setting(), short, time_s=30, seed=3)
    assert found.pairs in list(islice(looks(), 8)) or not found.is_known
    assert found.change.high < -0.1
    assert found.today_s > found.advised_s > 0.06
    assert found.energy is None


@pytest.mark.parametrize(
    ("script", "message"),
    [("import sys; sys.exit(3)", "exit code 3"), ("import os; os.kill(os.getpid(), 9)", "exit code 137")],
)
def test_a_program_that_fails_is_not_measured(script: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(Setting(), [sys.executable, "-c", script])
    with pytest.raises(InputError, match="no-such-program"):
        run(Setting(), ["no-such-program-here"])
    with pytest.raises(InputError, match="clocks are set by nobody"):
        measure(["true"], Setting(), Setting(governor="powersave"))


def test_a_run_ends_with_all_that_it_has_started() -> None:
    script = "import os,time\nif os.fork() == 0:\n    time.sleep(0.3)\n    os._exit(0)"
    assert run(Setting(), [sys.executable, "-c", script]).wall_s > 0.3


def test_the_setting_holds_while_it_runs() -> None:
    cpu = min(os.sched_getaffinity(0))
    script = f"import os,sys; sys.exit(os.sched_getaffinity(0) != {{{cpu}}})"
    run(Setting(cores=Cores("one", (cpu,))), [sys.executable, "-c", script])


def test_energy_is_read_where_it_is_and_never_invented(tmp_path: Path) -> None:
    assert find_meter(tmp_path) == (None, "neither RAPL nor a sensor of hwmon nor a battery in use tells it")
    battery = tmp_path / "power_supply/BAT0"
    battery.mkdir(parents=True)
    (battery / "energy_now").write_text("1000\n")
    (battery / "status").write_text("Charging\n")
    assert find_meter(tmp_path)[0] is None
    (battery / "status").write_text("Discharging\n")
    meter, _ = find_meter(tmp_path)
    assert meter
    assert meter.joules([1000], [990]) == pytest.approx(10 * energy.UJ_PER_UWH / 1e6)
    assert meter.joules([1000], [1000]) is None
    package = tmp_path / "powercap/intel-rapl:0"
    package.mkdir(parents=True)
    for name, text in (("name", "package-0"), ("energy_uj", "5"), ("max_energy_range_uj", "99")):
        (package / name).write_text(f"{text}\n")
    meter, _ = find_meter(tmp_path)
    assert meter
    assert meter.name == "RAPL: package-0"
    assert meter.joules([90], [10]) == pytest.approx(20e-6)  # it began anew after 99
    assert meter.joules([-1], [10]) is None


def test_a_report_names_nobody() -> None:
    cores = Cores("only /home/me", (0, 2))
    mine = Proof("threads", None, Setting("./secret.py", 4, cores), -0.3, (-0.4, 0.1), MEASURED)
    shipped = Proof("threads", "queue", Setting("colab:decay=0.3"), -0.3, (-0.4, 0.1), MEASURED)
    text = report_text([mine, shipped])
    for secret in ("secret", "/home", platform.node(), platform.release()):
        assert secret not in text
    values = json.loads(text)
    assert [each["setting"]["policy"] for each in values["proofs"]] == [OWN, "colab:decay=0.3"]
    assert values["proofs"][0]["setting"]["cpus"] == 2
    assert mine.error == pytest.approx(0.7 / 0.8 - 1)
    assert mine.is_inside


def test_a_report_may_have_any_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proof = Proof("threads", "queue", Setting("colab"), -0.3, (-0.4, 0.1), MEASURED)
    path = tmp_path / os.fsdecode(b"n\xff.json")
    write([proof], path)
    assert json.loads(path.read_text())["format"] == "ampsched-proof"
    assert "which holds no more than this" in capsys.readouterr().err
    for bad in (tmp_path, tmp_path / "none/r.json"):
        with pytest.raises((InputError, OSError)):
            check_report(bad)


def test_what_was_checked_is_told() -> None:
    proof = Proof("threads", None, Setting("colab"), -0.25, (-0.4, -0.21), MEASURED)
    told = "\n".join(Checked(proof, "no meter").lines())
    assert "checked here: colab takes 800 ms instead of 1 s: -20.0% ±2.0% (8 pairs, 20 s" in told
    assert "predicted: -25.0%, with the model's own error -40 to -21 %" in told
    assert "inside" in told
    assert Checked().lines() == ["checked here: nothing, as no other setting is advised that could run"]


def test_a_self_test_says_what_its_numbers_mean_and_what_is_not_known() -> None:
    late = replace(MEASURED, is_known=False, foreign=0.3)
    rows = (
        Proof("threads", "queue", Setting("colab"), -0.2, (-0.4, -0.1), MEASURED),
        Proof("threads", "barriers", Setting(), -0.3, (-0.4, -0.25), late),
    )
    lines = summary(Selftest(rows, ("sleeper, linux: the time was over",), "no meter"))
    assert lines[0] == (
        "Predicted times are 6.3% off on this computer on average, and -12.5% at worst (barriers, linux); "
        "+: longer than measured."
    )
    assert lines[1].startswith("Elsewhere they were ")
    assert lines[1].endswith("1 of 2 changes measured here lie within theirs.")
    assert lines[2:] == [
        "Not known to 2 %, as the time was over: barriers, linux",
        "barriers: other programs took 30% of the CPUs",
        "Energy: not measured: no meter",
        "Left out: sleeper, linux: the time was over",
    ]
    assert summary(Selftest((), (), "no meter"))[0] == "Nothing was measured."


def test_settings_and_policies_are_judged_by_errors_of_their_own() -> None:
    known = model_error_of("threads")
    assert errors_of(Setting(threads=4), known) == setting_errors()
    assert errors_of(Setting("colab"), known) == known.of_changes


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        ("2B2S", ["the big cores", "the little cores", "one core"]),
        ("sym-4", ["half of the cores", "one core"]),
    ],
)
def test_a_computer_is_tested_in_settings_that_it_has(machine: str, names: list[str]) -> None:
    found = settings_of(Catalog.shipped().machine(machine))
    assert [each.cores.name for each in found if each.cores] == names


def test_a_self_test_records_where_cpu_time_is_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On slow cores the same work takes more CPU time, and no recording tells by how much."""
    kinds = (CoreKind("slow", "generic", [0]), CoreKind("fast", "generic", [1]))
    rows = [("integer", "slow", 1.0), ("integer", "fast", 2.5)]
    speeds = polars.DataFrame(rows, schema=["kernel", "kind", "rounds_per_s"], orient="row")
    found = Calibration(kinds, speeds, (), (tmp_path / "machine.toml",), ())
    set_to: list[object] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, cpus: set_to.append(cpus))
    monkeypatch.setattr(selftest, "record", lambda *_: set_to.append("recorded"))
    monkeypatch.setattr(selftest, "posed", lambda *_: None)
    monkeypatch.setattr(selftest, "Trials", lambda *_: None)
    catalog = Catalog.shipped()
    selftest._recorded(["true"], tmp_path / "r.ampr", catalog.machine("2B2S"), found, catalog)
    assert set_to == [[1], "recorded", os.sched_getaffinity(0)]


@pytest.mark.parametrize("name", list(programs.PROGRAMS))
def test_programs_of_the_self_test_work_and_end(name: str) -> None:
    run(Setting(), [sys.executable, "-I", "-S", str(PROGRAMS), name, "2"])  # raises if it fails
    assert os.times().children_user > 0


def test_what_cannot_be_checked_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, told in [
        (["--check", "-m", "2B2S", "--", "true"], "--check: it runs on this computer, not on 2B2S"),
        (["--check", "--goal", "energy", "--", "true"], "--check: it measures times, and the goal is energy"),
        (["--check", "x.ampr"], "--check: x.ampr is a recording"),
        (["--check", "--check-time", "0", "--", "true"], "--check-time 0 is not above 0"),
        (["--check-time", "0", "--check", "--", "true"], "--check-time 0 is not above 0"),
        (["--check-time", "9", "--", "true"], "--check-time 9: nothing is measured without --check"),
        (["--report", str(tmp_path / "r"), "--", "true"], "--report needs --check: nothing else is measured"),
    ]:
        with pytest.raises(SystemExit) as ended:
            main(["advise", *arguments])
        assert ended.value.code == 2
        assert told in capsys.readouterr().err
