"""simulate and compare from Python."""

import dataclasses
import json
from pathlib import Path
from statistics import fmean

import polars
import pytest

import ampsched
from ampsched import _core, execution, results
from ampsched.metrics import geometric_mean
from ampsched.outcome_parts import AppOutcome, CoreOutcome, Counts, ThreadOutcome, Totals
from ampsched.policy import PolicySpec
from ampsched.settings import RunSettings

PAIR = """
[queues.records]
capacity = 8

[[threads]]
name = "decoder"
body = [
  { loop = 50, body = [ { run_us = { mean = 400, cv = 0.2 }, profile = "dedup.refine" }, { push = "records" } ] },
  { close = "records" },
]

[[threads]]
name = "compressor"
body = [ { each = "records", body = [ { run_us = 1100, profile = "dedup.compress" } ] } ]
"""


def test_simulation_accounts_for_all_time() -> None:
    outcome = ampsched.simulate("2B2S", "sync-1", "cfs", check=True)
    assert [app.program for app in outcome.apps] == ["water_nsquared", "fmm"]
    assert len(outcome.cores) == 4
    for core in outcome.cores:
        assert core.busy_ns + core.idle_ns == outcome.makespan_ns
    run_ns = sum(thread.run_ns for thread in outcome.threads)
    assert run_ns == sum(core.busy_ns for core in outcome.cores)
    assert outcome.makespan_ns == max(app.start_ns + app.turnaround_ns for app in outcome.apps)
    assert 0 < outcome.utilisation <= 1


def test_outcome_keeps_what_the_simulator_reports() -> None:
    """A field that is added to the simulator's outcome must not be lost here."""
    catalog = ampsched.Catalog.shipped()
    spec = PolicySpec.of("cfs")
    job = execution.job_of(RunSettings(), catalog.machine("2B2S"), catalog.workload("sync-1"), spec)
    values = json.loads(_core.simulate(job))
    left_out = {"threads": {"instructions_demanded"}}
    for key, kind in {"apps": AppOutcome, "threads": ThreadOutcome, "cores": CoreOutcome}.items():
        known = {field.name for field in dataclasses.fields(kind)}
        assert set(values[key][0]) - left_out.get(key, set()) == known
    assert set(values["counts"]) == {field.name for field in dataclasses.fields(Counts)}
    assert set(values["totals"]) == {field.name for field in dataclasses.fields(Totals)}
    assert set(values) == {field.name for field in dataclasses.fields(ampsched.Outcome)}


def test_totals_are_those_of_threads_cores_and_clusters() -> None:
    outcome = ampsched.simulate("exynos5422-2B2S", "sync-2", "colab", energy=True)
    threads, totals = outcome.threads, outcome.totals
    used_uj = [cluster.energy.total_uj for cluster in outcome.clusters if cluster.energy]
    assert len(used_uj) == len(outcome.clusters)
    assert totals == Totals(
        threads=len(threads),
        utilisation=pytest.approx(fmean(core.utilisation for core in outcome.cores)),
        instructions=sum(thread.instructions for thread in threads),
        ready_ns=sum(thread.ready_ns for thread in threads),
        ready_ns_max=max(thread.ready_ns_max for thread in threads),
        blocked_ns=sum(thread.blocked_ns for thread in threads),
        energy_j=pytest.approx((sum(used_uj) + (outcome.board_uj or 0.0)) / 1e6),
    )


def test_an_outcome_is_the_same_however_little_of_it_is_kept() -> None:
    catalog, spec = ampsched.Catalog.shipped(), PolicySpec.of("colab")
    settings = RunSettings(energy=True)
    job = execution.job_of(settings, catalog.machine("exynos5422-2B2S"), catalog.workload("sync-2"), spec)
    whole, kept = (json.loads(_core.simulate(job, purpose)) for purpose in (None, _core.Summed()))
    assert [kept[name] for name in ("threads", "classes", "cores", "clusters")] == [[], [], [], []]
    assert whole["latency"]["upper_ns"]
    assert kept["latency"]["upper_ns"] == []
    same = set(whole) - {"apps", "threads", "classes", "cores", "clusters", "latency"}
    assert {name: kept[name] for name in same} == {name: whole[name] for name in same}
    assert [app["turnaround_ns"] for app in kept["apps"]] == [app["turnaround_ns"] for app in whole["apps"]]
    assert kept["latency"]["p99_ns"] == whole["latency"]["p99_ns"] > 0


def test_frames_have_a_row_each() -> None:
    outcome = ampsched.simulate("2B2S", "sync-2")
    threads = outcome.to_polars()
    assert threads.height == len(outcome.threads) == 18
    assert threads["app"].unique(maintain_order=True).to_list() == ["dedup", "fluidanimate"]
    assert threads["instructions"].sum() == sum(thread.instructions for thread in outcome.threads)
    assert outcome.apps_to_polars().height == 2
    assert outcome.cores_to_polars()["core"].to_list() == [0, 1, 2, 3]
    assert json.loads(json.dumps(outcome.to_dict()))["makespan_ns"] == outcome.makespan_ns


def test_seed_decides_the_amounts() -> None:
    first, again, other = (ampsched.simulate("2B2S", "ferret", seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.makespan_ns != other.makespan_ns


def test_core_order_decides_who_gets_big_cores() -> None:
    big = ampsched.simulate("2B2S", "single-fft", core_order="big-first")
    little = ampsched.simulate("2B2S", "single-fft", core_order="little-first")
    assert ampsched.simulate("2B2S", "single-fft") == big
    assert big.threads[0].big_ns > 0
    assert little != big


def test_until_stops_an_endless_program(tmp_path: Path) -> None:
    file = tmp_path / "endless.toml"
    file.write_text(
        '[[threads]]\nname = "t"\nbody = [ { loop = "forever", body = [ { run_us = 1000, profile = "fft" } ] } ]\n'
    )
    outcome = ampsched.simulate("sym-2", file, until_ms=25)
    assert outcome.makespan_ns == 25_000_000
    with pytest.raises(ampsched.InputError, match=r"repeats for ever, and nothing ends it"):
        ampsched.simulate("sym-2", file)
    file.write_text('[[threads]]\nname = "t"\nbody = [ { run_us = 3e6, profile = "fft" } ]\n')
    with pytest.raises(ampsched.InputError, match=r"has not ended after 2 s"):
        ampsched.simulate("sym-2", file, limit_s=2)


LENGTHS = """
[[threads]]
name = "t"
body = [ { run_us = "us", profile = "fft" } ]
[params]
us = 1000
"""


@pytest.fixture
def unequal(tmp_path: Path) -> str:
    """A workload of programs of 2 and 5 ms."""
    (tmp_path / "length.toml").write_text(LENGTHS)
    (tmp_path / "mix.toml").write_text(
        '[workloads.unequal]\napps = [{ program = "length.toml", name = "short", params = { us = 2000 } }, '
        '{ program = "length.toml", name = "long", params = { us = 5000 } }]\n'
    )
    return str(tmp_path / "mix.toml")


def test_repetitions_go_on_until_the_slowest_has_ended_so_often(unequal: str) -> None:
    once = ampsched.simulate("sym-2", unequal)
    short, long = ampsched.simulate("sym-2", unequal, repetitions=3).apps
    assert [app.completions_ns for app in once.apps] == [(app.turnaround_ns,) for app in once.apps]
    assert (len(short.completions_ns), len(long.completions_ns)) == (7, 3)
    # A thread's first start on a core costs a switch, so the first turnaround is that without repetitions.
    assert (short.completions_ns[0], long.completions_ns[0]) == tuple(app.turnaround_ns for app in once.apps)
    for app in (short, long):
        assert app.turnaround_ns == pytest.approx(geometric_mean(app.completions_ns), abs=1)
        assert app.threads == len(app.completions_ns) + (app is short)


def test_repetitions_reach_mixes_baselines_and_notes(unequal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[int | None] = []
    job = _core.Job

    def counting(*arguments: object, **settings: object) -> object:
        jobs.append(settings["repetitions"])  # type: ignore[arg-type]
        return job(*arguments, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(_core, "Job", counting)
    result = ampsched.compare("sym-2", unequal, ["cfs"], repetitions=3, repeat=1)
    assert jobs == [3, 3, 3], "the mix, whose job is that of its limit, and each program alone"
    (run,) = result.runs
    assert [len(app.completions_ns) for app in run.outcome.apps] == [7, 3]
    assert run.metrics.h_ntt == pytest.approx([1, 1], rel=1e-3)
    assert result.notes[-1] == "each program at least 3 times"
    assert ampsched.compare("sym-2", unequal, ["cfs"], repeat=1).notes == result.notes[:-1]


def test_comparison_summarises_runs() -> None:
    result = ampsched.compare("2B2S", ["sync-1", "nsync-1"], ["cfs", "static"], repeat=2)
    assert len(result.runs) == 2 * 2 * 2 * 2
    rows = {(row.workload, row.policy): row for row in result.summary()}
    runs = result.select("2B2S", "nsync-1", "static")
    assert {(run.core_order, run.seed) for run in runs} == {
        (order, seed) for order in ("big-first", "little-first") for seed in (1, 2)
    }
    assert rows["nsync-1", "static"].h_antt.mean == pytest.approx(fmean(run.metrics.h_antt for run in runs))
    by_seed = {
        policy: [
            fmean(run.metrics.h_antt for run in result.select("2B2S", "nsync-1", policy) if run.seed == seed)
            for seed in (1, 2)
        ]
        for policy in result.policies
    }
    changes = [mine / first - 1 for mine, first in zip(by_seed["static"], by_seed["cfs"], strict=True)]
    assert rows["nsync-1", "static"].h_antt_change.mean == pytest.approx(fmean(changes))
    assert rows["nsync-1", "cfs"].h_antt_change.mean == 0.0
    assert rows["nsync-1", "cfs"].h_antt_change.n == 2


def test_baselines_are_runs_alone_on_big_cores() -> None:
    result = ampsched.compare("2B2S", "sync-2", ["cfs"], core_order="big-first", repeat=1)
    (run,) = result.runs
    catalog = ampsched.Catalog.shipped()
    workload, big = catalog.workload("sync-2"), catalog.machine("2B2S").all_big()
    assert big.cores == 4
    alone = [ampsched.simulate(big, workload.alone(app)).apps[0].turnaround_ns for app in range(2)]
    assert list(run.alone_ns) == alone
    mix = [app.turnaround_ns for app in run.outcome.apps]
    assert run.metrics.h_ntt == pytest.approx([a / b for a, b in zip(mix, alone, strict=True)])
    same = catalog.machine("2B2S").ordered(fastest_first=True)
    here = [ampsched.simulate(same, workload.alone(app)).apps[0].turnaround_ns for app in range(2)]
    assert run.metrics.antt == pytest.approx(fmean(a / b for a, b in zip(mix, here, strict=True)))


def test_baselines_are_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """dedup with four threads per stage is in both mixes; all-big machines of 2B4S and 4B2S are the same."""
    monkeypatch.setattr(execution, "_alone_ns", {})
    counted: list[int] = []
    run_all = execution.run_all

    def counting(jobs: list[object], *rest: object) -> list[ampsched.Outcome]:
        counted.append(len(jobs))
        return run_all(jobs, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(execution, "run_all", counting)
    arguments = {"core_order": "big-first", "policies": ["cfs"], "repeat": 1}
    ampsched.compare(["2B4S", "4B2S"], "sync-2", **arguments)  # type: ignore[arg-type]
    # Two mixes; two programs alone on six big cores and on each of two machines.
    assert counted == [2 + 2 + 4]
    ampsched.compare(["2B4S", "4B2S"], "sync-2", **arguments)  # type: ignore[arg-type]
    assert counted == [2 + 2 + 4, 2]


def test_comparison_frames() -> None:
    result = ampsched.compare("2B2S", "sync-2", ["cfs", "rr"], repeat=1)
    frame = result.to_polars()
    assert frame.height == 4
    assert frame["policy"].to_list() == ["cfs", "cfs", "rr", "rr"]
    assert frame.select(polars.col("h_antt", "h_stp", "antt", "stp").is_null().any()).row(0) == (False,) * 4
    apps = result.apps_to_polars()
    assert apps.height == 8
    assert (apps["turnaround_ns"] / apps["alone_ns"] - apps["h_ntt"]).abs().max() == pytest.approx(0)
    assert result.threads_to_polars().height == 4 * 18
    assert json.loads(json.dumps(result.to_dict()))["policies"] == ["cfs", "rr"]


def test_equal_cores_have_one_order() -> None:
    result = ampsched.compare("sym-2", "single-fft", ["cfs"], repeat=1)
    assert [run.core_order for run in result.runs] == ["big-first"]


def test_progress_reaches_the_total() -> None:
    seen: list[tuple[int, int]] = []
    ampsched.compare("2B2S", "sync-1", ["cfs"], progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
    assert seen[-1][0] == seen[-1][1]


def test_exception_in_progress_goes_through() -> None:
    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ampsched.compare("2B2S", "sync-1", ["cfs"], progress=stop)


def test_files_are_found_beside_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "pair.toml").write_text(PAIR)
    mix = tmp_path / "mixes.toml"
    mix.write_text(
        '[workloads.night]\napps = [{ program = "pair.toml" }]\n'
        '[workloads.evening]\napps = [{ program = "pair.toml" }, { program = "swaptions", params = { n = 2 } }]\n'
    )
    outcome = ampsched.simulate("2B2S", f"{mix}:evening", "eevdf")
    assert [app.program for app in outcome.apps] == ["pair", "swaptions"]
    assert ampsched.simulate("2B2S", tmp_path / "pair.toml").apps[0].threads == 2


def test_user_files_take_the_place_of_shipped_ones(tmp_path: Path) -> None:
    file = tmp_path / "ferret.toml"
    file.write_text(PAIR)
    catalog = ampsched.Catalog.shipped().with_files(file)
    assert ampsched.simulate("2B2S", "ferret", catalog=catalog).apps[0].threads == 2
    assert ampsched.simulate("2B2S", "ferret").apps[0].threads > 2


def test_results_do_not_depend_on_processes() -> None:
    one, two = (ampsched.compare("2B4S", "rand-1", ["cfs", "wash"], jobs=jobs) for jobs in (1, 2))
    assert one == two


@pytest.mark.parametrize(
    "text",
    [
        "oracle",
        "noisy:cv=0.2:stale_ms=100",
        "constant:1.5",
        "none",
        "noisy:cv=0:stale_ms=0",
        "sampled:interval_ms=200",
    ],
)
def test_factors_survive_printing(text: str) -> None:
    assert str(ampsched.Factors.parse(text)) == text


def test_factors_reach_the_policy() -> None:
    blind, knowing = (
        ampsched.simulate("2B2S", "rand-1", "colab", factors=kind) for kind in ("none", "oracle")
    )
    assert blind != knowing
    # The error of a noisy factor without noise is nothing, and it is always fresh.
    exact = ampsched.simulate("2B2S", "rand-1", "colab", factors="noisy:cv=0:stale_ms=0")
    assert exact == knowing


def test_overhead_is_charged_to_the_mix_but_not_to_its_baselines() -> None:
    free = ampsched.compare("2B2S", "sync-1", ["colab"], repeat=1)
    costs = "decision_ns=20000:epoch_us=500"
    charged = ampsched.compare("2B2S", "sync-1", ["colab"], overhead=costs, repeat=1)
    assert charged.summary()[0].h_antt.mean > 1.01 * free.summary()[0].h_antt.mean
    assert [run.alone_ns for run in charged.runs] == [run.alone_ns for run in free.runs]
    assert "overhead decision_ns=20000:epoch_us=500" in charged.notes
    assert ampsched.simulate("2B2S", "sync-1", "colab", overhead="none") == ampsched.simulate(
        "2B2S", "sync-1", "colab"
    )


def test_governors_set_frequencies_of_the_mix_but_not_of_its_baselines() -> None:
    def run(governor: str) -> ampsched.Comparison:
        return ampsched.compare(
            "exynos5422-2B2S", "sync-1", ["cfs"], governor=governor, energy=True, core_order="as-is"
        )

    highest, saving = run("none"), run("powersave")
    assert saving.runs[0].outcome.makespan_ns > 3 * highest.runs[0].outcome.makespan_ns
    assert [run.alone_ns for run in saving.runs] == [run.alone_ns for run in highest.runs]
    assert "governor powersave" in saving.notes
    assert all(cluster.mean_mhz < 201 for cluster in saving.runs[0].outcome.clusters)
    mixed = ampsched.simulate("exynos5422-2B2S", "sync-1", governor="big=performance,little=powersave")
    assert [cluster.residency[0][0] for cluster in mixed.clusters] == [200, 2000]


@pytest.mark.parametrize(
    "text", ["none", "schedutil", "ondemand:up_threshold=80", "big=performance,little=userspace:mhz=500"]
)
def test_governors_survive_printing(text: str) -> None:
    assert str(ampsched.Governors.parse(text)) == text


def test_a_policy_says_what_it_cannot_do_on_a_machine() -> None:
    result = ampsched.compare(
        ["2B2S", "exynos5422-2B2S"], "sync-1", ["cfs", "eas", "dtpm"], core_order="as-is", limit_s=60
    )
    unknown = "the machine has no energy model (no power is known of its clusters): it schedules as cfs does"
    assert result.caveats() == [
        f"eas on 2B2S: {unknown}",
        "dtpm on 2B2S: power and heat of the machine are not known: it keeps to no limit",
        "dtpm on exynos5422-2B2S: without energy accounting no sensor tells it anything: it keeps to no limit",
    ]
    assert result.to_dict()["caveats"] == result.caveats()
    assert ampsched.simulate("exynos5422-2B2S", "sync-1", "dtpm", energy=True).caveat is None


def test_nothing_is_said_of_energy_where_nobody_asked_for_it() -> None:
    assert ampsched.compare("2B2S", "sync-1", ["linux"], core_order="as-is").caveats() == []
    values = {"clusters": [{"energy": {}}], "caveat": f"no power: {results._BY_CAPACITY}"}
    assert results._caveat(values) == values["caveat"]
    assert results._caveat({"clusters": [{"energy": None}], "caveat": "another"}) == "another"


def test_h36_1_a_comparison_says_once_how_siblings_are_modelled() -> None:
    result = ampsched.compare("i7-1360p", "barrier-loop", ("cfs", "iks"))
    smt, blind = result.caveats()
    assert smt.startswith("i7-1360p: each of two busy threads of a core (SMT)")
    assert blind == "iks on i7-1360p: takes the two threads of a core (SMT) for two cores"


def test_every_governor_runs() -> None:
    for info in ampsched.governors():
        machine = "exynos5422-2B2S"
        outcome = ampsched.simulate(machine, "sync-1", "gts", governor=info.name, until_ms=50, check=True)
        assert outcome == ampsched.simulate(machine, "sync-1", "gts", governor=info.name, until_ms=50)


@pytest.mark.parametrize("text", ["none", "decision_ns=150:epoch_us=20", "decision_ns=0:epoch_us=2.5"])
def test_overheads_survive_printing(text: str) -> None:
    assert str(ampsched.Overhead.parse(text)) == text


def test_one_thread_is_not_called_threads() -> None:
    assert repr(ampsched.simulate("2B2S", "cpu-bound:length_ms=5", "cfs")).endswith(" ms, 1 thread>")
