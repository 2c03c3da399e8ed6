"""Sweeps: which simulations there are, what is run again, and that nothing is lost or counted twice."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars
import pytest
from conftest import Ampsched
from hypothesis import given
from hypothesis import strategies as st
from sweeping import POLICIES, WORKLOADS, contents, small

import ampsched
from ampsched import InputError, _core
from ampsched.statistics import estimate
from ampsched.sweeps import code
from ampsched.sweeps.folder import MARK
from ampsched.sweeps.grid import Axes, Pattern, sampled
from ampsched.sweeps.plan import Wanted, plan


@pytest.fixture(scope="module")
def one_process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What one process writes."""
    folder = tmp_path_factory.mktemp("one") / "results"
    small(folder)
    return contents(folder)


# Which simulations there are


@pytest.mark.parametrize(
    ("text", "all_of_it"),
    [
        ("colab", ["colab"]),
        ("colab:decay=0.8:literal=1", ["colab:decay=0.8:literal=1"]),
        ("colab:decay=0.5..1.0:3", ["colab:decay=0.5", "colab:decay=0.75", "colab:decay=1.0"]),
        ("colab:decay=0.5/0.9", ["colab:decay=0.5", "colab:decay=0.9"]),
        ("ferret:n=2..4:3:items=7", ["ferret:n=2:items=7", "ferret:n=3:items=7", "ferret:n=4:items=7"]),
        ("a:x=1/2:y=-1..1:2", ["a:x=1:y=-1", "a:x=1:y=1", "a:x=2:y=-1", "a:x=2:y=1"]),
        (
            "exynos5422:big=2@1600:little=0/4",
            ["exynos5422:big=2@1600:little=0", "exynos5422:big=2@1600:little=4"],
        ),
        ("dir/my.py:Class:epoch_ms=1..2:2", ["dir/my.py:Class:epoch_ms=1", "dir/my.py:Class:epoch_ms=2"]),
        ("big=ondemand:up_threshold=70/80", ["big=ondemand:up_threshold=70", "big=ondemand:up_threshold=80"]),
    ],
)
def test_a_text_stands_for_several(text: str, all_of_it: list[str]) -> None:
    assert list(Pattern.of(text, "policy").all()) == all_of_it


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("colab:decay=1.0..0.5:3", "the first number is not below the second"),
        ("colab:decay=0.5..1.0:1", "number of values = 1 is not within 2 to 10000"),
        ("colab:decay=0.5..1.0:six", '"six" is no number of values'),
        ("colab:decay=0.5..1.0", "has no number of values (such as 0.5..1:6)"),
        ("colab:decay=0.5..", "a range is of the form key=0.5..1.0:6"),
        ("colab:decay=0.5/0.5", "names a value twice"),
        ("colab:decay=1..1.0000001:9", "the values are not 6 digits apart"),
    ],
)
def test_a_wrong_range_is_refused(text: str, what: str) -> None:
    with pytest.raises(InputError) as raised:
        list(Pattern.of(text, "policy").all())
    assert what in str(raised.value)


@given(st.floats(-1e3, 1e3), st.floats(0.1, 1e3), st.integers(2, 20))
def test_values_of_a_range_are_even_and_keep_its_ends(low: float, width: float, count: int) -> None:
    high = low + width
    texts = list(Pattern.of(f"p:x={low:f}..{high:f}:{count}", "policy").all())
    values = [float(text.removeprefix("p:x=")) for text in texts]
    assert len(values) == count
    assert (values[0], values[-1]) == (float(f"{low:f}"), float(f"{high:f}"))
    for step, value in enumerate(values):
        assert value == pytest.approx(low + width * step / (count - 1), rel=1e-5, abs=2e-3)


@given(st.integers(0, 2**63), st.integers(1, 30))
def test_a_sample_is_of_the_grid_and_the_same_for_the_same_seed(seed: int, count: int) -> None:
    texts = {"machine": ["2B2S", "4B4S"], "policy": ["colab:decay=0..1", "wash:sigma=1/2"]}
    axes = Axes({name: [Pattern.of(text, name) for text in each] for name, each in texts.items()})
    found = sampled(axes, count, seed)
    assert found == sampled(axes, count, seed)
    assert len(found) == len({tuple(each.values()) for each in found}) <= count
    for each in found:
        assert each["machine"] in texts["machine"]
        name, _, value = each["policy"].partition("=")
        assert name == "wash:sigma" or 0 <= float(value) <= 1


def test_a_sample_has_the_first_policy_at_every_place() -> None:
    found = plan(Wanted(["2B2S", "4B4S"], WORKLOADS, ["cfs", "colab:decay=0..1"], sample=5)).points
    places = {(point.machine.name, point.workload.digest) for point in found}
    assert len({point.policy.name for point in found}) > 2
    for place in places:
        here = [p.policy.name for p in found if (p.machine.name, p.workload.digest) == place]
        assert "cfs" in here


def test_keys_tell_everything_apart_that_changes_a_result() -> None:
    def keys(**more: Any) -> set[str]:
        wanted = {"machines": ["2B2S"], "workloads": ["cpu-bound"], "policies": ["cfs"]}
        return {point.key for point in plan(Wanted(**{**wanted, "core_order": "as-is", **more})).points}

    cases: Sequence[dict[str, Any]] = [
        {},
        {"machines": ["2B4S"]},
        {"workloads": ["cpu-bound:n=3"]} if _has_param() else {"workloads": ["ferret"]},
        {"policies": ["linux"]},
        {"policies": ["cfs:latency_ms=7"]},
        {"seeds": (2,)},
        {"core_order": "big-first"},
        {"settings": {"energy": True}},
        {"settings": {"repetitions": 2}},
        {"settings": {"limit_s": 5.0}},
        {"options": {"noise": ["idle"]}},
        {"options": {"overhead": ["decision_ns=150"]}},
        {"options": {"governor": ["schedutil"]}},
        {"options": {"governor": ["ondemand"]}},
        {"options": {"factors": ["none"]}},
        {"options": {"factors": ["predicted"]}},
    ]
    found = [keys(**case) for case in cases]
    assert all(len(each) == 1 for each in found)
    assert len(set.union(*found)) == len(cases)
    assert keys(settings={"check": True}) == keys(), "checking changes no result"


def _has_param() -> bool:
    return any(name == "n" for name, _ in ampsched.Catalog.shipped().core.params("cpu-bound"))


# What is run again


def test_the_same_sweep_runs_nothing_and_a_greater_one_what_is_missing(tmp_path: Path) -> None:
    first = small(tmp_path / "r")
    assert first.simulated == first.frame.height == 48
    again = small(tmp_path / "r")
    assert again.simulated == 0
    assert again.frame.equals(first.frame)
    more = small(tmp_path / "r", repeat=3)
    assert (more.simulated, more.frame.height) == (24, 72)


def test_changed_code_runs_all_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(tmp_path / "r")
    monkeypatch.setattr(_core, "CODE_DIGEST", "another engine")
    code.engine.cache_clear()
    assert small(tmp_path / "r").simulated == 48
    code.engine.cache_clear()


def test_an_edited_python_policy_runs_anew_and_so_does_one_whose_import_is_edited(
    tmp_path: Path, ampsched_process: Ampsched
) -> None:
    policy, helper = tmp_path / "mine.py", tmp_path / "helper_of_mine.py"
    text = "import ampsched\nimport helper_of_mine\n\n\nclass Mine(ampsched.Policy):\n    base = 'cfs'\n"
    policy.write_text(text)
    helper.write_text("X = 1\n")

    def simulated() -> int:
        found = ampsched.sweep("2B2S", "cpu-bound", ["cfs", f"{policy}:Mine"], folder=tmp_path / "r", jobs=1)
        return int(found.simulated)

    assert [simulated(), simulated()] == [4, 0]
    policy.write_text(text + "    name = 'mine'\n")
    assert simulated() == 2
    helper.write_text("X = 2\n")
    with pytest.raises(
        InputError, match=r"helper_of_mine\.py: has changed since this process has imported it"
    ):
        simulated()
    arguments = [
        "-m",
        "2B2S",
        "-w",
        "cpu-bound",
        "-p",
        "cfs,mine.py:Mine",
        "--out",
        "r",
        "--jobs",
        "1",
        "--json",
    ]
    assert json.loads(ampsched_process("sweep", *arguments).out)["simulated"] == 2


def test_folders_are_put_together_by_copying(tmp_path: Path, one_process: dict[str, bytes]) -> None:
    small(tmp_path / "mine", repeat=1)
    small(tmp_path / "theirs", seed=2, repeat=1)
    shutil.copy(tmp_path / "theirs/table.parquet", tmp_path / "mine/added/theirs.parquet")
    assert small(tmp_path / "mine").simulated == 0
    assert contents(tmp_path / "mine") == one_process


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear")
    with pytest.raises(InputError, match=f"is no folder of a sweep's results .it has no file {MARK}"):
        small(tmp_path)
    (tmp_path / MARK).write_text("99\n")
    with pytest.raises(InputError, match="form '99' is not known"):
        small(tmp_path)


def test_a_cut_off_table_is_named(tmp_path: Path) -> None:
    small(tmp_path / "r")
    table = tmp_path / "r/table.parquet"
    table.write_bytes(table.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"table\.parquet: is no Parquet file: .*delete it"):
        small(tmp_path / "r")


# What comes out


def test_rows_are_those_of_compare() -> None:
    swept = (
        small()
        .frame.filter(polars.col("policy") == "colab:decay=0.75")
        .filter(polars.col("workload") == "cpu-bound")
    )
    compared = ampsched.compare("2B2S", "cpu-bound", ["colab:decay=0.75"], repeat=2).to_polars()
    keys = ["core_order", "seed"]
    for name in ("h_antt", "antt", "makespan_ns", "unfairness", "switches"):
        mine = swept.sort(keys)[name].to_list()
        assert mine == compared.sort(keys)[name].cast(polars.Float64).to_list()


def test_the_summary_is_that_of_compare() -> None:
    found = small(repeat=3)
    rows = found.summary(["h_antt"]).filter(workload="cpu-bound")
    compared = ampsched.compare("2B2S", "cpu-bound", rows["policy"].to_list(), repeat=3).summary()
    for mine, other in zip(rows.iter_rows(named=True), compared, strict=True):
        assert [mine["h_antt"], mine["h_antt_low"]] == pytest.approx([other.h_antt.mean, other.h_antt.low])
        change = [mine[f"h_antt_change{end}"] for end in ("", "_low", "_high")]
        assert change == pytest.approx(
            [other.h_antt_change.mean, other.h_antt_change.low, other.h_antt_change.high]
        )
    assert found.best().filter(workload="cpu-bound")["h_antt"][0] == pytest.approx(rows["h_antt"].min())


def test_values_of_a_parameter_are_different_questions() -> None:
    """`ferret:n=2,ferret:n=4,ferret:n=8` gave one row named ferret, the mean of three questions."""
    found = ampsched.sweep(
        "2B2S", ["ferret:n=1", "ferret:n=2", "ferret:n=3"], ["cfs", "static"], repeat=1, jobs=1
    )
    assert found.varied == ["workload:n"]
    rows = found.ranking("makespan_ns")
    assert rows["workload:n"].to_list() == [1, 1, 2, 2, 3, 3]
    for row in rows.iter_rows(named=True):
        here = found.frame.filter(policy=row["policy"]).filter(polars.col("workload:n") == row["workload:n"])
        assert row["makespan_ns"] == pytest.approx(here["makespan_ns"].mean())
    alone = ampsched.sweep("2B2S", ["ferret:n=1", "cpu-bound"], ["cfs", "static"], repeat=1, jobs=1)
    assert alone.varied == []
    assert alone.ranking("makespan_ns").height == 2


def test_a_change_has_the_interval_of_means_over_places() -> None:
    found = small(repeat=3)
    change = found.change("colab:decay=0.5", "makespan_ns")
    per_seed = []
    for seed in (1, 2, 3):
        changes = []
        for _, here in found.frame.filter(seed=seed).group_by("workload"):
            mean = {
                policy: here.filter(policy=policy)["makespan_ns"].mean()
                for policy in ("cfs", "colab:decay=0.5")
            }
            changes.append(mean["colab:decay=0.5"] / mean["cfs"] - 1)
        per_seed.append(sum(changes) / len(changes))
    wanted = estimate(per_seed)
    assert [change.mean, change.low, change.high] == pytest.approx([wanted.mean, wanted.low, wanted.high])
    assert change.n == 3


def test_nobody_beats_a_pareto_front_and_it_beats_all_others() -> None:
    found = small()
    front = found.pareto("h_antt", "h_stp")
    on_it = {(row["workload"], row["policy"]) for row in front.iter_rows(named=True)}
    everyone = found.summary(["h_antt", "h_stp"]).rows(named=True)

    def beaten(row: dict[str, Any]) -> bool:
        rivals = [other for other in everyone if other["workload"] == row["workload"]]
        return any(
            other["h_antt"] <= row["h_antt"]
            and other["h_stp"] >= row["h_stp"]
            and (other["h_antt"], other["h_stp"]) != (row["h_antt"], row["h_stp"])
            for other in rivals
        )

    assert on_it == {(row["workload"], row["policy"]) for row in everyone if not beaten(row)}


def test_a_simulation_that_fails_has_a_row_that_says_why() -> None:
    found = ampsched.sweep("2B2S", ["cpu-bound", "ferret:n=1"], ["cfs", "rr"], limit_s=4, jobs=1)
    bad = found.frame.filter(polars.col("error").is_not_null())
    assert 0 < bad.height < found.frame.height
    assert bad["h_antt"].null_count() == bad.height
    assert "has not ended after 4 s" in found.failures()[0]
    with pytest.raises(InputError, match="every simulation failed"):
        ampsched.sweep("2B2S", "cpu-bound", ["cfs", "rr"], limit_s=1e-6, jobs=1)


def test_pictures_have_the_same_bytes_every_time(tmp_path: Path) -> None:
    from ampsched.sweeps import figures

    found = small()
    for number in (1, 2):
        figures.draw(found, tmp_path / f"curve{number}.svg")
        figures.draw_front(found, tmp_path / f"front{number}.svg", "h_antt", "unfairness")
    assert (tmp_path / "curve1.svg").read_bytes() == (tmp_path / "curve2.svg").read_bytes()
    assert (tmp_path / "front1.svg").read_bytes() == (tmp_path / "front2.svg").read_bytes()


# The optimiser


def test_the_optimiser_is_the_same_every_time_and_judges_by_other_workloads_and_seeds(tmp_path: Path) -> None:
    def run() -> Any:
        return ampsched.optimise(
            "2B2S",
            "colab:decay=0.1..1.0:epoch_ms=5/20",
            train="cpu-bound",
            test="ferret",
            trials=6,
            baseline="cfs",
            folder=tmp_path / "r",
            repeat=2,
            jobs=1,
        )

    first, second = run(), run()
    assert first.to_dict() == second.to_dict()
    assert first.trials["policy"].n_unique() > 3
    best = first.trials.sort("change")[0]
    assert (best["policy"][0], best["change"][0]) == (first.policy, first.train.mean)
    test = ampsched.sweep("2B2S", "ferret", ["cfs", first.policy], seed=3, repeat=2, jobs=1)
    assert test.change(first.policy) == first.test
    assert first.default == "colab"


def test_the_optimiser_refuses_what_is_no_search() -> None:
    with pytest.raises(InputError, match="has no range to search"):
        ampsched.optimise("2B2S", "colab", train="cpu-bound", test="ferret")
    with pytest.raises(InputError, match="is in the training set and in the test set"):
        ampsched.optimise("2B2S", "colab:decay=0..1", train=["ferret", "cpu-bound"], test="ferret")


# The command


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (["-p", "cfs,colab:decay=1..0:3"], "the first number is not below the second"),
        (["-p", "cfs,colab:dcay=0..1:3"], 'policy colab has no parameter "dcay" (did you mean "decay"?)'),
        (["-p", "cfs,colab:decay=0..2:3"], "parameter decay = 2 is not within 0 to 1"),
        (["-p", "cfs,cfs"], 'policy "cfs" is given twice'),
        (["-p", "cfs", "--governor", "ondemnd"], 'did you mean "ondemand"?'),
        (["-p", "cfs", "--metric", "h_ant"], 'unknown metric "h_ant" (did you mean "h_antt"?)'),
        (["-p", "cfs,rr", "--metric", "energy_j"], "was not measured"),
        (["-p", "cfs", "--plot", "x.pdf"], "does not end with .svg or .png"),
        (["-p", "cfs", "--sample", "3"], "a sample needs a second policy"),
        (["-p", "colab:decay=0..1,cfs", "--sample", "3"], "the first policy"),
        (["-p", "cfs,rr", "--pareto", "h_antt"], "needs two metrics"),
        (["-p", "cfs,rr", "--train", "sync-1"], "go with --optimise"),
        (["-p", "cfs,colab:decay=0..1", "--optimise", "3"], "--workload does not go with --optimise"),
        (["-p", "cfs,rr", "--out", "/proc/x"], "/proc/x"),
        (["-p", "cfs,rr", "--dask", "tcp://127.0.0.1:1"], "no scheduler answers"),
    ],
)
def test_bad_input_is_one_line(ampsched_here: Ampsched, more: list[str], what: str) -> None:
    ended = ampsched_here("sweep", "-m", "2B2S", "-w", "cpu-bound", "--jobs", "1", *more)
    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert what in ended.err


def test_the_command_prints_what_python_returns(ampsched_here: Ampsched, tmp_path: Path) -> None:
    arguments = [
        "sweep",
        "-m",
        "2B2S",
        "-w",
        "cpu-bound,ferret:n=1/2",
        "-p",
        ",".join(POLICIES),
        "--repeat",
        "2",
    ]
    kept = ["--jobs", "1", "--out", str(tmp_path / "r")]
    found = json.loads(ampsched_here(*arguments, *kept, "--json").out)
    assert found["simulated"] == 48
    assert found["simulations"] == small().to_dict()["simulations"]
    ended = ampsched_here(
        *arguments, *kept, "--pareto", "h_antt,unfairness", "--plot", str(tmp_path / "p.svg")
    )
    assert ended.code == 0
    for text in (
        "48 simulations, 0 of them new",
        "colab:decay=0.75",
        "changes are against cfs",
        "plot written to",
    ):
        assert text in ended.out
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")


def test_options_are_swept_over(ampsched_here: Ampsched) -> None:
    arguments = ["-m", "exynos5422", "-w", "cpu-bound", "-p", "linux", "--energy", "--core-order", "as-is"]
    more = [
        "--governor",
        "ondemand:up_threshold=60/90",
        "--governor",
        "none",
        "--noise",
        "none",
        "--noise",
        "idle",
    ]
    found = json.loads(ampsched_here("sweep", *arguments, *more, "--jobs", "1", "--json").out)
    rows = found["simulations"]
    assert len(rows) == 6
    assert {row["governor"] for row in rows} == {
        "none",
        "ondemand:up_threshold=60",
        "ondemand:up_threshold=90",
    }
    assert {row["noise"] for row in rows} == {"none", "idle"}
    assert all(row["energy_j"] > 0 for row in rows)
