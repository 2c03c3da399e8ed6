"""Training: selection, regressions, validation, and model files that the compiled part reads as Python does."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from conftest import Ampsched

import ampsched
from ampsched import _core, counters
from ampsched._core import InputError
from ampsched.catalog import Catalog
from ampsched.models import load_models, model_names, models_for
from ampsched.training import costs
from ampsched.training.features import Feature, candidates, events, matrix
from ampsched.training.measured import measured_rows
from ampsched.training.model import Method, default_method, fit
from ampsched.training.pie import Pair, pie_from_big, pie_from_little
from ampsched.training.pmu import Pmu, pmu_of
from ampsched.training.quantity import Quantity, from_speedup, relative_weights, to_speedup
from ampsched.training.ridge import Folds
from ampsched.training.rows import TrainingSet, clean
from ampsched.training.selection import backward, forward, select
from ampsched.training.simulated import Noise, simulated_rows, with_noise
from ampsched.training.train import model_file, train
from ampsched.training.validation import (
    constant,
    errors,
    labels,
    learning_curve,
    leave_one_out,
    loss,
    trained,
)

WIDE = Pmu(32, frozenset({"cycles", "instructions"}))


def rows(count: int = 30, seed: int = 1, *, is_big: bool = True) -> TrainingSet:
    """Programs whose speed-up is 1 + 2 x misses + 0.5 x branches per cycle, beside two counters that say nothing."""
    random = np.random.default_rng(seed)
    cycles = random.uniform(1e6, 2e6, count)
    share = random.uniform(0.1, 0.9, (count, 4))
    names = ("instructions", "cycles", "l2_misses", "branches", "loads", "stores")
    counts = np.column_stack([random.uniform(1e6, 2e6, count), cycles, *(share.T * cycles)])
    programs = tuple(f"p{number}" for number in range(count))
    speedup = 1 + 2 * share[:, 0] + 0.5 * share[:, 1]
    return TrainingSet(
        "made", "core", 1000.0, is_big, names, counts, programs, programs, speedup, np.full(count, np.nan)
    )


def shipped(machine: str, noise: Noise | None = None) -> list[TrainingSet]:
    found = Catalog.shipped().machine(machine)
    return simulated_rows(found, {core: pmu_of(core) for _, core, *_ in found.clusters}, noise=noise)


def test_a_linear_law_is_found_again() -> None:
    made = rows()
    method = Method("cycles", "linear", 2)
    found = fit(made, method, WIDE)
    assert set(map(str, found.features)) == {"l2_misses/cycles", "branches/cycles"}
    outcome = errors(made, leave_one_out(made, trained(method, WIDE)))
    assert outcome.r2 > 0.99
    assert outcome.labels > 0.9


def test_selection_stays_within_the_pmu() -> None:
    made = rows()
    features = candidates(made.counters, "cycles")
    values = matrix(made, features)
    for slots in (1, 2, 3):
        pmu = Pmu(slots, frozenset({"cycles"}))
        chosen = [features[place] for place in select(features, values, made.speedup, 6, pmu)]
        assert chosen
        assert pmu.events(events(chosen)) <= slots
    assert len(select(features, values, made.speedup, 3, WIDE)) == 3


def test_costs_are_found_again_and_never_negative() -> None:
    random = np.random.default_rng(1)
    stalled, events = random.uniform(0.05, 0.4, 40), random.uniform(0.0, 0.2, 40)
    features = [Feature("stall_memory_cycles", "cycles"), Feature("branches", "cycles")]
    values = np.column_stack([stalled, events])
    # A busy cycle costs 3, a stalled one 1, an event 2 cycles.
    line = costs.fit(features, values, 3 * (1 - stalled) + 1 * stalled + 2 * events)
    assert line.intercept_ == pytest.approx(3)
    assert line.coef_ == pytest.approx([-2, 2])
    # What would need negative costs gets none: a stalled cycle is worth at least nothing, and so is an event.
    line = costs.fit(features, values, 3 * (1 - stalled) - 0.5 * stalled - 1 * events + 0.2)
    assert line.intercept_ + line.coef_[0] >= -1e-12
    assert line.coef_[1] >= -1e-12


def test_folds_fit_what_a_fit_without_the_group_gives() -> None:
    random = np.random.default_rng(2)
    values, noise = random.standard_normal((12, 3)), random.standard_normal(12)
    target, weights = values @ [1.0, -2.0, 0.0] + 3 + 0.1 * noise, random.uniform(0.5, 2, 12)
    groups = [f"g{number % 4}" for number in range(12)]
    folds = Folds.of(values, target, weights, groups)
    found = folds.left_out([[0, 1], [2, 1]], 0.01)
    for row in range(12):
        kept = np.array([group != groups[row] for group in groups])
        alone = Folds.of(
            values[kept], target[kept], weights[kept], [group for group in groups if group != groups[row]]
        )
        for number, choice in enumerate(([0, 1], [2, 1])):
            assert found[row, number] == pytest.approx(
                alone.line(choice, 0.01).predict(values[row : row + 1, choice])[0]
            )
    # Without a penalty: weighted least squares.
    design = np.column_stack([np.ones(12), values]) * np.sqrt(weights)[:, None]
    expected, *_ = np.linalg.lstsq(design, target * np.sqrt(weights), rcond=None)
    line = folds.line([0, 1, 2], 0.0)
    assert [line.intercept_, *line.coef_] == pytest.approx(expected.tolist())


def test_selection_by_errors_takes_what_helps_and_fits() -> None:
    features = candidates(("instructions", "cycles", "a", "b", "c"), "cycles")
    worth = {0: 3.0, 1: 2.0, 2: 0.0, 3: 1.0}

    def error(choices: Sequence[Sequence[int]]) -> np.ndarray:
        return np.array([10 - sum(worth[place] for place in choice) for choice in choices])

    pmu = Pmu(2, frozenset({"cycles"}))
    assert forward(features, 6, pmu, error) == [0, 1]
    assert sorted(backward(features, range(4), 6, pmu, error)) == [0, 1]
    # What does not help is not added.
    assert forward(features, 6, WIDE, error) == [0, 1, 3]


@pytest.mark.parametrize("quantity", ["speedup", "slowdown", "log_speedup"])
def test_quantities_go_back_and_stay_in_range(quantity: Quantity) -> None:
    speedups = np.array([1.5, 2.0, 4.0])
    values = from_speedup(quantity, speedups)
    assert to_speedup(quantity, values, (1.0, 5.0)) == pytest.approx(speedups)
    assert to_speedup(quantity, values, (1.8, 3.0)) == pytest.approx([1.8, 2.0, 3.0])
    extreme = to_speedup(quantity, np.array([-1e9, 1e9]), (1.8, 3.0))
    assert set(extreme) <= {1.8, 3.0}
    # A change of 1 % of the speed-up weighs the same everywhere.
    change = from_speedup(quantity, 1.01 * speedups) - values
    weighed = change**2 * relative_weights(quantity, speedups)
    assert weighed == pytest.approx(weighed[0])


def test_defaults_differ_by_direction() -> None:
    assert default_method(is_big=True).quantity(is_big=True) == "speedup"
    assert default_method(is_big=False).quantity(is_big=False) == "log_speedup"
    assert default_method(3, is_big=True).counters == 3


def test_loss_by_hand() -> None:
    # Mean 2.5, standard deviation 1.118: 4 is high, and so is none but that.
    truth = np.array([1.0, 2.0, 3.0, 4.0])
    assert loss(truth, truth) == 0
    assert loss(truth, np.array([1.0, 2.0, 9.0, 4.0])) == pytest.approx(1 - 3 / 4)
    assert loss(np.full(3, 2.0), truth[:3]) == 0


def test_turns_follow_from_the_number_of_events() -> None:
    pmu = Pmu(4, frozenset({"cycles"}))
    assert pmu.running_share(["cycles", "a", "b", "c", "d"]) == 1.0
    assert pmu.running_share(["a", "b", "c", "d", "e"]) == 0.8
    assert pmu_of("cortex-a7").counters == 4
    assert pmu_of("never-heard-of").counters == 6


def test_groups_are_never_split() -> None:
    made = rows(12).with_groups(["a", "b", "c"] * 4)
    seen: list[tuple[set[str], set[str]]] = []

    def watch(training: TrainingSet, test: TrainingSet) -> np.ndarray:
        seen.append((set(training.groups), set(test.groups)))
        return constant(training, test)

    leave_one_out(made, watch)
    assert seen == [({"b", "c"}, {"a"}), ({"a", "c"}, {"b"}), ({"a", "b"}, {"c"})]


def test_cleaning_says_what_it_leaves_out() -> None:
    made = rows(10)
    counts = made.counts.copy()
    counts[0, 0] = 0
    counts[1, 4] = -5
    counts[:, 5] = counts[:, 0] * 0.25
    cleaned = clean(replace(made, counts=counts))
    assert len(cleaned) == 9
    assert cleaned.counters == ("instructions", "cycles", "l2_misses", "branches")
    assert cleaned.notes == (
        "1 counts below 0 taken as missing",
        "1 of 10 rows without instructions, cycles or speed-up left out",
        "incomplete counters left out: loads",
        "counters that never change left out: stores",
    )
    with pytest.raises(InputError, match="2 programs, at least 3 are needed"):
        clean(rows(2))


def test_labels_by_hand() -> None:
    # Mean 2, standard deviation 0.8165: high from 2.408, low up to 1.592.
    assert labels(np.array([1.0, 2.0, 3.0])).tolist() == [-1, 0, 1]
    assert labels(np.array([2.0, 2.0])).tolist() == [0, 0]


def test_errors_by_hand() -> None:
    made = replace(rows(4), speedup=np.array([1.0, 2.0, 3.0, 4.0]))
    found = errors(made, np.array([1.1, 2.0, 2.7, 4.0]))
    assert found.mean == pytest.approx((0.1 + 0 + 0.1 + 0) / 4)
    assert found.worst == pytest.approx(0.1)
    assert found.r2 == pytest.approx(1 - (0.01 + 0.09) / 5)
    assert found.rank == 1.0
    assert found.mean_interval[0] <= found.mean <= found.mean_interval[1]


def test_pie_by_its_vector() -> None:
    # Base CPI 1.1 and memory CPI 0.9 at MLP 1; 0.02 misses and 128 entries give MLP 2.56: 2 / (0.25 + 0.9 / 2.56).
    pair = Pair(big_width=4, big_window=128, little_width=2, big_per_little_clock=1)
    little = pie_from_little(pair, np.array([2.0]), np.array([0.9]), np.array([0.02]))
    assert little[0] == pytest.approx(2 / (0.25 + 0.9 / 2.56))
    big = pie_from_big(pair, np.array([1.0]), np.array([0.5]), np.array([0.02]))
    assert big[0] == pytest.approx(0.5 + 0.5 * 2.56)


def test_noise_has_the_stated_spread_and_spares_fixed_counters() -> None:
    exact = shipped("2B2S")[0]
    pmu = Pmu(4, frozenset({"cycles"}))
    spoilt = with_noise(exact, Noise(0.01, turns=True), pmu, seed=1)
    cycles, loads = exact.counters.index("cycles"), exact.counters.index("loads")
    ratio = np.ones_like(spoilt.counts)
    np.divide(spoilt.counts, np.repeat(exact.counts, 10, axis=0), out=ratio, where=spoilt.counts > 0)
    wanted = _core.counter_cv(0.01, pmu.running_share(exact.counters))
    assert ratio[:, cycles].std() == pytest.approx(0.01, rel=0.1)
    assert ratio[:, loads].std() == pytest.approx(wanted, rel=0.15)


METHODS = (
    None,
    Method("cycles", "linear"),
    Method("cycles", "trees"),
    Method("cycles", "costs"),
    Method("cycles", "ridge", selection="forward"),
    Method("instructions", "ridge", target="log"),
)


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("machine", ["2B2S", "tensor"])
def test_the_compiled_part_predicts_what_python_predicts(method: Method | None, machine: str) -> None:
    models = train(shipped(machine), method)
    text = json.dumps(model_file("test", models, {}))
    read = _core.Models.parse("m.json", text)
    for number, made in enumerate(models):
        compiled = read.predict(number, list(made.rows.counters), made.rows.counts.tolist())
        expected = made.fitted.predict(made.rows)
        assert [row[0] for row in compiled] == pytest.approx(expected.tolist(), rel=1e-5)
        assert all(row[1] < 1e-6 and row[2] for row in compiled)


@pytest.mark.parametrize("machine", ["2B2S", "opteron-2FC-2SC"])
def test_shipped_models_are_what_training_gives(machine: str) -> None:
    models = models_for(Catalog.shipped().machine(machine))
    for number, made in enumerate(train(shipped(machine))):
        compiled = models.predict(number, list(made.rows.counters), made.rows.counts.tolist())
        assert [row[0] for row in compiled] == pytest.approx(
            made.fitted.predict(made.rows).tolist(), rel=1e-5
        )


def test_every_shipped_model_can_be_read() -> None:
    assert "colab-table2" in model_names()
    for name in model_names():
        assert load_models(name).name == name


def test_colab_printed_model_by_hand() -> None:
    # An example mix of 10^6 instructions: the sum moves the speed-up by about a thousandth.
    names = ["instructions", "fp_regfile_writes", "fetch_branches", "rename_sq_full_events", "idle_cycles"]
    names += ["l1d_tags_in_use", "fetch_icache_retry_stall_cycles"]
    model = load_models("colab-table2")
    [(speedup, _, known)] = model.predict(0, names, [[1e6, 2e5, 1.5e5, 1e4, 5e4, 512, 2e4]])
    assert speedup == pytest.approx(2.6121, abs=5e-5)
    assert known


def test_machines_without_a_model_are_refused() -> None:
    with pytest.raises(InputError, match="all its cores are equally fast"):
        shipped("sym-4")
    text = (Path(ampsched.__file__).parent / "data/machines/2B2S.toml").read_text().replace("2000", "1900")
    core = Catalog.shipped().core.copy()
    core.add("machine", "odd", "odd.toml", text)
    with pytest.raises(InputError, match=r"machine 2B2S: no shipped model knows cortex-a53 at 1200 MHz and"):
        models_for(core.machine("odd"))


def table(programs: int, *, clock: float = 1.0) -> pl.DataFrame:
    """Counter table of programs that are (2 + number / 10) times as fast on the big core."""
    parts = []
    for core_type, factor in (("big", 1.0), ("little", 2.0)):
        for number in range(programs):
            time = 1.0 if factor == 1.0 else (2.0 + number / 10) * clock
            for counter, value in (
                ("instructions", 1e6),
                ("cycles", 1e6 * time),
                ("loads", 1e3 * (number + 1) ** 2),
            ):
                parts.append((f"p{number}", core_type, time, counter, value))
    long = pl.DataFrame(
        parts, schema=["program", "core_type", "duration_s", "counter", "value"], orient="row"
    )
    empty = [name for name in counters.COLUMNS if name not in long.columns]
    return long.with_columns(pl.lit(None).alias(name) for name in empty)


def test_measured_speedups_are_ratios_of_time_per_instruction() -> None:
    big, little = measured_rows(table(5), "big", "little")
    assert big.speedup.tolist() == pytest.approx([2.0, 2.1, 2.2, 2.3, 2.4])
    assert little.speedup.tolist() == big.speedup.tolist()
    assert big.is_big
    assert not little.is_big
    with pytest.raises(InputError, match=r'no core_type "bigg" \(did you mean "big"\?\)'):
        measured_rows(table(5), "bigg", "little")


def test_learning_curves_fall_for_a_law_that_can_be_learnt() -> None:
    curve = learning_curve(rows(40), trained(Method("cycles", "linear", 2), WIDE), (6, 30))
    assert curve[1][1] < curve[0][1]


def test_train_by_command(ampsched_here: Ampsched, tmp_path: Path) -> None:
    out = tmp_path / "m.json"
    finished = ampsched_here("train", "--machine", "2B2S", "-k", "4", "-o", str(out))
    assert finished.code == 0, finished.err
    assert "cortex-a57: costs, 4 counters per cycle; 51 rows" in finished.out
    assert "cortex-a53: ridge of the logarithm, 4 counters by forward per cycle" in finished.out
    assert len(json.loads(out.read_text())["models"][0]["features"]) <= 4
    used = ampsched_here(
        "simulate", "-m", "2B2S", "-w", "sync-1", "-p", "colab", "--factors", f"predicted:{out}"
    )
    assert used.code == 0, used.err
    measured = tmp_path / "t.parquet"
    counters.write_counters(table(6).cast({"window": pl.UInt32}), measured)
    finished = ampsched_here("train", str(measured), "--big", "big", "--little", "little", "-o", str(out))
    assert finished.code == 0, finished.err
    assert "6 rows of 6 programs" in finished.out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("train",), "nothing to train from: name counter tables, or --machine"),
        (("train", "t.parquet"), "counter tables need --big and --little"),
        (("train", "t.parquet", "-m", "2B2S"), "--machine and counter tables exclude each other"),
        (("train", "-m", "2B2S", "-k", "0"), "--counters 0 is not within 1 to 32"),
        (
            ("train", "-m", "2B2S", "--regression", "costs", "--per", "instructions"),
            "--regression costs counts per cycle; leave out --per instructions",
        ),
        (("train", "-m", "2B2S", "-o", "m.txt"), '--out m.txt: a model file ends with ".json"'),
        (("train", "-m", "sym-4"), "machine sym-4: all its cores are equally fast"),
        (("simulate", "-m", "2B2S", "-w", "fft", "--factors", "predicted:colab"), 'unknown model "colab"'),
        (
            ("simulate", "-m", "2B2S", "-w", "fft", "--factors", "predicted:no.json"),
            "no.json: cannot be read",
        ),
        (
            ("simulate", "-m", "2B2S", "-w", "fft", "--factors", "predicted:cw=1"),
            'predicted has no parameter "cw"',
        ),
    ],
)
def test_bad_input(ampsched_here: Ampsched, arguments: tuple[str, ...], expected: str) -> None:
    finished = ampsched_here(*arguments)
    assert finished.code == 2
    assert finished.err.startswith("error: ")
    assert expected in finished.err
    assert finished.err.count("\n") == 1


def test_without_scikit_learn_the_error_says_how_to_install_it(
    ampsched_here: Ampsched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    finished = ampsched_here("train", "-m", "2B2S")
    assert finished.code == 2
    assert "pip install 'ampsched[train]'" in finished.err


def test_features_name_themselves() -> None:
    assert str(Feature("instructions", "cycles")) == "IPC"
    assert str(Feature("loads", "instructions")) == "loads/instructions"


def test_predicted_factors_reach_the_policy() -> None:
    kinds = ("oracle", "predicted", "predicted:colab-table2", "predicted:cv=0.5")
    runs = {kind: ampsched.simulate("2B2S", "rand-1", "colab", factors=kind) for kind in kinds}
    assert len({run.makespan_ns for run in runs.values()}) == len(kinds)
    again = ampsched.simulate("2B2S", "rand-1", "colab", factors="predicted:cv=0.5")
    assert again == runs["predicted:cv=0.5"]
    constant = ampsched.simulate("2B2S", "rand-1", "colab", factors="constant:2.6109")
    assert constant.makespan_ns == runs["predicted:colab-table2"].makespan_ns


def test_low_a_file_that_training_would_not_read_is_refused(ampsched_here: Ampsched, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('[[threads]]\nname = "t"\nbody = [{ sleep_us = 1 }]\n')
    finished = ampsched_here("train", "t.parquet", "--big", "a", "--little", "b", "--file", str(file))
    assert (finished.code, finished.err) == (
        2,
        "error: --file adds to the catalogue, which --machine reads; counter tables need none\n",
    )
