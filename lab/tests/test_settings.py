"""Settings that are advised: the rule, the verdict, and the page; nothing is booted."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ampsched_lab.campaign.store import Store
from ampsched_lab.settings import judge, report
from ampsched_lab.settings.plan import (
    AGAIN,
    ALL,
    FOLDER,
    KINDS,
    LINUX,
    NEAR,
    PLACES,
    SETTINGS_MAX,
    Setting,
    exact,
    mix,
)
from ampsched_lab.settings.run import RESULTS

ROOT = Path(__file__).resolve().parents[2]
PLACE, KIND = PLACES[0], KINDS[0]
TIMES = {
    PLACE.usual: 100.0,
    Setting(4, (0, 1, 2, 3)): 90.0,
    Setting(8, (0, 1, 2, 3)): 88.0,
    Setting(2, (0, 1)): 180.0,
}


def verdict(setting: Setting, times: dict[Setting, float] = TIMES) -> judge.Judged:
    return judge.judge(PLACE, KIND, times, judge.Advised(setting, {setting: 99.0}))


def test_the_rule_names_few_settings_and_all_that_the_product_may_advise() -> None:
    from ampsched.recording.cores import core_sets

    for place in PLACES:
        settings = place.settings()
        assert len(set(settings)) == len(settings) <= SETTINGS_MAX
        assert place.usual in settings
        machine = exact(place.name).machine
        assert place.usual.threads == machine.cores
        offered = [place.cores[ALL], *(each.cpus for each in core_sets(machine))]
        assert {Setting(count, cpus) for count in place.recorded() for cpus in offered} <= set(settings)
    assert len(KINDS) == 10


def test_a_run_binds_the_program_to_the_setting_s_cores() -> None:
    [program] = mix(KIND, Setting(3, (1, 4))).programs
    assert program.words[1:] == ("-c", "1,4", "/campaign/bin/openmp", "layers", "3")


def test_advice_is_met_within_3_per_cent_of_the_best_and_worse_is_told() -> None:
    near = verdict(Setting(4, (0, 1, 2, 3)))
    assert (near.best, near.best_ms, near.tried) == ("8 on 4 big", 88.0, 4)
    assert near.gap == pytest.approx(90 / 88 - 1)
    assert near.is_met and not near.is_worse
    assert (near.offered, near.offered_ms, near.errors) == ("4 on 4 big", 90.0, (pytest.approx(0.1),))
    left = verdict(PLACE.usual)
    assert not left.is_met and not left.is_worse
    assert verdict(Setting(2, (0, 1))).is_worse
    edge = {**TIMES, Setting(4, (0, 1, 2, 3)): 88 * (1 + NEAR) + 0.1}
    assert not verdict(Setting(4, (0, 1, 2, 3)), edge).is_met


def test_a_program_that_cannot_be_advised_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "nothing.ampr"
    path.write_bytes(b"no recording")
    machine = tmp_path / "machine.toml"
    machine.write_text(judge.described(PLACE), "utf-8")
    answer = judge.advised({8: path}, machine, PLACE.usual)
    assert answer.setting == PLACE.usual
    assert str(tmp_path) not in answer.refusal != ""


def test_directions_are_compared_with_what_people_measured() -> None:
    each = report.PUBLIC[0]
    row = verdict(Setting(4, (0, 1, 2, 3)))
    assert report._direction(each, row) == "✓"
    assert report._direction(each, verdict(PLACE.usual)) == "✗"
    assert report._direction(each, replace(row, refusal="why")) == "refused"
    assert report._direction(replace(each, fast_is_better=None), row) == "nothing to compare"


@pytest.mark.parametrize("source", ["threads", "openmp"])
def test_every_program_runs_with_any_number_of_threads(source: str, tmp_path: Path) -> None:
    program = tmp_path / source
    words = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-std=gnu11", "-pthread", "-fopenmp"]
    subprocess.run([*words, "-o", program, FOLDER / f"{source}.c"], check=True)
    for kind in (kind for kind in KINDS if kind.source == source):
        for threads in ("1", "3"):
            subprocess.run([program, kind.name, threads], check=True, timeout=30)
    assert subprocess.run([program, "nothing", "2"], capture_output=True).returncode == 1


def test_the_verdicts_are_those_of_what_was_measured() -> None:
    """One program anew: all take `python -m ampsched_lab.settings.report`."""
    kept = report.read()[0]
    place = next(place for place in PLACES if place.name == kept.machine)
    kind = next(kind for kind in KINDS if kind.name == kept.program)
    times = judge.measured(Store(RESULTS), place, kind)
    assert {setting for setting in place.settings() if setting.policy == LINUX} <= times.keys()
    assert kept.best_ms == min(times.values())
    assert kept.usual_ms == times[place.usual]


def test_the_page_is_that_of_what_was_judged(tmp_path: Path) -> None:
    report.write(tmp_path / "settings.md")
    page = (tmp_path / "settings.md").read_text("utf-8")
    assert page == (ROOT / "docs/reports/models/settings.md").read_text("utf-8"), "make bless ONLY=settings"
    assert json.loads((RESULTS / report.FILE).read_text("utf-8"))


def test_what_is_missed_is_run_again_from_further_starts(tmp_path: Path) -> None:
    answer = judge.Advised(PLACE.usual, {PLACE.usual: 99.0})
    case = judge.Case(PLACE, KIND, TIMES, answer, judge.judge(PLACE, KIND, TIMES, answer))
    assert case.best == Setting(8, (0, 1, 2, 3))
    assert judge.again(tmp_path, case) is None
    rows = [
        {"mix": mix(KIND, setting).name, "offset": sample, "turnaround_ns": (ms + sample) * 1e6}
        for setting, ms in ((case.answer.setting, 100), (case.best, 80))
        for sample in AGAIN
    ]
    Store(tmp_path).add(PLACE.name, "x86_64-6.18", "eevdf-kernel", rows)
    assert judge.again(tmp_path, case) == (104, 84)
    assert "| +23.8% |" in report.causes([replace(case.row, again_ms=(104, 84))])
