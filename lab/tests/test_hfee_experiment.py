"""The experiment of HFEE: the closed loop, its parts, claims, determinism, and the committed report."""

from dataclasses import asdict
from pathlib import Path

import polars
import pytest

from ampsched_lab.papers.hfee import setup
from ampsched_lab.papers.hfee.measurements import Facts, has_single_peak
from ampsched_lab.papers.hfee.report import CLAIMS, PARTS, reproduce
from ampsched_lab.papers.hfee.runs import grid, hold, programs, schedulers
from ampsched_lab.papers.hfee.runs.schedulers import Results, Row
from ampsched_lab.papers.hfee.setup import (
    LINUX,
    MACHINES,
    PAPER,
    SCHEDULERS,
    SCRIPTS,
    STAND_INS,
    WORKLOADS,
)
from ampsched_lab.shared.claims.judging import judge

REPORT = Path(__file__).parents[2] / "docs" / "reports" / "hfee"


@pytest.fixture(scope="module")
def series() -> tuple[hold.Series, ...]:
    return hold.run(jobs=2)


def test_hfee_holds_its_threshold_wherever_its_clock_can(series) -> None:
    """In steady state, from the tenth epoch on; where no frequency in its range reaches it, that is what it says."""
    assert {each.machine for each in series} == set(MACHINES)
    verdicts = {(each.machine, each.mix): each.verdict for each in series}
    assert "missed" not in verdicts.values(), verdicts
    assert list(verdicts.values()).count("held") >= 8
    assert {"only below HFEE's range", "not attainable"} <= set(verdicts.values())


def test_hfee_s_clock_comes_down_within_ten_epochs_and_stays(series) -> None:
    for each in series:
        assert each.mean_mhz[0] == pytest.approx(2000)
        settled = each.mean_mhz[hold.SETTLED :]
        assert all(1250 <= mhz <= 1450 for mhz in settled), (each.machine, each.mix, settled)


def test_where_it_is_held_and_where_not(series) -> None:
    by_name = {(each.machine, each.mix): each for each in series}
    fair = by_name[SCRIPTS, "w2"]
    assert (fair.verdict, fair.reached_after) == ("held", 2)
    assert by_name[SCRIPTS, "w7"].reached_after is None
    assert by_name[SCRIPTS, "w7"].verdict == "not attainable"


def test_equal_speed_is_where_the_rates_cross() -> None:
    alone = programs.Alone("x", {200: 1.0, 300: 2.0, 400: 4.0}, {100: 1.0, 200: 3.0}, 1.0, 1.0)
    assert alone.equal_mhz == 350.0
    assert programs.Alone("x", {200: 5.0, 300: 6.0}, {100: 3.0}, 1.0, 1.0).equal_mhz is None


def test_repetitions_start_the_same_programs_in_other_orders() -> None:
    orders = [[app for app, _, _ in setup.in_order("w4", seed).apps] for seed in range(1, 5)]
    assert len({tuple(order) for order in orders}) > 1
    assert len({tuple(sorted(order)) for order in orders}) == 1
    with pytest.raises(ValueError, match="names every application once"):
        setup.mix("w4").reordered([0, 0, 1, 2, 3, 4])


def row(machine: str, mix: str, scheduler: str, seed: int, **values: float) -> Row:
    defaults = {
        "slowdowns": (1.0, 1.0 + values.get("spread", 0.5)),
        "makespan_s": values.get("makespan_s", 100.0),
        "energy_j": values.get("energy_j", 100.0),
    }
    clock = ((1200 if values.get("low") else 2000, 10**9),)
    big_s = values.get("big_s", 1.0)
    return Row(
        machine, mix, scheduler, seed, **defaults, instructions_per_j=1.0, big_s=big_s, little_s=1.0, big_mhz=clock,
        little_mhz=((1400, 10**9),), peak_c=50.0, throttled_s=0.0, migrations=1,
    )  # fmt: skip


def results(**of_scheduler: dict[str, float]) -> Results:
    rows = [
        row(
            machine,
            mix,
            each.name,
            seed,
            **of_scheduler.get(each.name.replace(", ", "_").replace("-", "_"), {}),
        )
        for machine in MACHINES
        for mix in WORKLOADS
        for seed in (1, 2)
        for each in (*SCHEDULERS, *STAND_INS)
    ]
    return Results(tuple(rows))


def verdicts(**of_scheduler: dict[str, float]) -> dict[str, str]:
    found = results(**of_scheduler)
    judged = judge(CLAIMS.of("schedulers"), found, facts=asdict(Facts.of(found)))
    return {each.claim.id: each.result.verdict for each in judged}


def test_another_scheduler_may_stand_in_for_linux() -> None:
    found = results(Linux={"makespan_s": 50.0}, cfs={"makespan_s": 80.0}).with_linux(STAND_INS[0])
    assert {each.makespan_s for each in found.rows if each.scheduler == LINUX.name} == {80.0}
    assert len(found.of(PAPER, "w1", LINUX.name)) == 2
    assert not found.of(PAPER, "w1", STAND_INS[0].name)


def test_facts_of_the_schedulers() -> None:
    facts = Facts.of(results(Linux={"big_s": 3.0, "makespan_s": 10.0}, Min_Fair={"makespan_s": 5.0}))
    assert (facts.linux_s, facts.min_fair_s) == (pytest.approx(10.0), pytest.approx(5.0))
    assert (facts.big_busy, facts.little_busy) == (pytest.approx(0.15), pytest.approx(0.05))


def test_claims_of_the_comparison_can_hold_and_fail() -> None:
    ours = {"makespan_s": 43.0, "energy_j": 67.0, "spread": 0.0, "low": 1.0}
    published = verdicts(HFEE=ours, Linux={"big_s": 0.5}, DTPM={"low": 1.0, "big_s": 0.5})
    for held in (
        "H7-Linux/2+2",
        "H8-Linux/2+2",
        "H9-Linux",
        "H9-Min-Fair",
        "H10-HFEE",
        "H10-Linux",
        "H10-little",
    ):
        assert published[held] == "reproduced", held
    otherwise = verdicts(HFEE={"makespan_s": 200.0, "energy_j": 200.0}, Linux={"big_s": 3.0, "low": 1.0})
    for missed in ("H6-Linux/2+2", "H7-Linux/2+2", "H8-Linux/2+2", "H9-Linux", "H10-HFEE", "H10-Linux"):
        assert otherwise[missed] == "not reproduced", missed


def test_metrics_of_a_row() -> None:
    record = row(PAPER, "w1", "HFEE", 1, makespan_s=2.0, energy_j=6.0).record()
    assert (record["power_w"], record["edp_js"], record["ed2p_js2"]) == (3.0, 12.0, 24.0)
    assert len([name for name in record if name.startswith("uniformity_")]) == 4
    assert schedulers.share_at_least(((1000, 1), (1500, 3)), 1400) == 0.75


def test_single_peaks_are_told_from_others() -> None:
    assert has_single_peak({1: 0.1, 2: 0.5, 3: 0.2})
    assert not has_single_peak({1: 0.1, 2: 0.5, 3: 0.2, 4: 0.4})


@pytest.fixture(scope="module")
def quick(tmp_path_factory) -> tuple[Path, str]:
    """The parts that take a second, written."""
    folder = tmp_path_factory.mktemp("hfee")
    result = reproduce("grid", jobs=2)
    result.write(folder)
    return folder, result.markdown()


def test_a_part_writes_its_figures_and_data(quick) -> None:
    folder, text = quick
    assert {file.name for file in folder.iterdir()} == {
        "report.md", "claims.csv", "grid.parquet", "grid.svg", "along-big.svg",
        "verdicts.svg",
    }  # fmt: skip
    points = polars.read_parquet(folder / "grid.parquet")
    assert len(points) == 15 * 19 + 2 * 19 * 12
    assert "H4a" in text


def test_the_committed_report_is_what_comes_out(quick) -> None:
    folder, _ = quick
    committed, ours = (polars.read_parquet(where / "grid.parquet") for where in (REPORT, folder))
    assert committed["uniformity"].to_list() == pytest.approx(ours["uniformity"].to_list(), rel=1e-9)
    text = (REPORT / "report.md").read_text()
    for line in polars.read_csv(REPORT / "claims.csv").iter_rows(named=True):
        assert (
            f"| {line['id']} | {line['claim']} | {line['paper']} | {line['ours']} | {line['verdict']} |"
            in text
        )
    assert all(f"## {part}: " in text for part in PARTS)


def test_best_frequencies(quick) -> None:
    points = tuple(
        grid.Point(**values) for values in polars.read_parquet(quick[0] / "grid.parquet").to_dicts()
    )
    assert all(grid.best_big_mhz(points, mix) < setup.F_THRESHOLD_MHZ for mix in WORKLOADS)
