"""How sure answers are: chance, the model's own error, and one answer for one question."""

import json
import math
import random
from pathlib import Path

import pytest

import ampsched
from ampsched import Catalog, InputError
from ampsched.cli import main
from ampsched.cli.advising import lines
from ampsched.placed import Placed, is_recording, noise_beside
from ampsched.recording import load, save
from ampsched.recording.advice import advise
from ampsched.recording.conditions import SPREAD
from ampsched.recording.mixed import START_SPREAD
from ampsched.recording.model_error import KINDS, model_error
from ampsched.report import Asked, advising
from ampsched.statistics import LEVEL
from ampsched.uncertainty import COVERED, ModelErrors, judge, paired, sentences

ROOT = Path(__file__).resolve().parents[2]
EXACT = ROOT / "docs/reports/recordings/exact"
MAKE = EXACT / "build-make.ampr"
TRIALS = 2000
TOLERANCE = 4 * math.sqrt(LEVEL * (1 - LEVEL) / TRIALS)
"""Four standard deviations of a share of so many trials."""


@pytest.mark.parametrize("draws", [2, 3, 5, 12])
@pytest.mark.parametrize("own", [0.0, 0.02, 0.1])
def test_paired_intervals_hold_the_true_difference_in_95_of_100_cases(draws: int, own: float) -> None:
    """Draws that all policies share are far apart; what is a policy's own is small, or there is hardly any."""
    chance = random.Random(f"{draws} {own}")
    truth, held = -0.1, 0
    for _ in range(TRIALS):
        shared = [chance.uniform(50, 200) for _ in range(draws)]
        mine = [value * (1 + truth + own * chance.gauss(0, 1)) for value in shared]
        found = paired(mine, shared)
        held += found.low - 1e-12 <= truth <= found.high + 1e-12
    assert held / TRIALS == pytest.approx(LEVEL if own else 1.0, abs=TOLERANCE)


@pytest.mark.parametrize("n", [19, 39, 99])
def test_the_models_band_holds_what_would_be_measured(n: int) -> None:
    """Errors of one kind, skewed as the measured ones are: the next one is inside as often as is promised."""
    chance = random.Random(n)

    def error() -> float:
        return 0.1 * chance.expovariate(1.0) - 0.05

    held = 0
    for _ in range(TRIALS):
        low, high = ModelErrors(tuple(error() for _ in range(n))).band(-0.2)
        held += low <= 0.8 * math.exp(error()) - 1 <= high
    # Ranks are whole: at least what is promised, and no more than two ranks beyond.
    assert COVERED - TOLERANCE <= held / TRIALS <= COVERED + 2 / (n + 1) + TOLERANCE


def test_the_shipped_errors_make_bands() -> None:
    recording = load(MAKE)
    for follows, kind in ((1.0, "processes"), (0.5, "waiting")):
        found = model_error(recording, follows)
        assert found.kind == kind
        assert len(found.change) > 10
        low, high = found.of_changes.band(0.0)
        assert low < 0 < high
        assert found.date
    assert set(KINDS) == {"waiting", "processes", "threads"}


STEADY = ModelErrors(tuple(0.01 * step for step in range(-10, 11)))
WILD = ModelErrors(tuple(0.1 * step for step in range(-10, 11)))
FIRST = [100.0, 110.0, 90.0]


@pytest.mark.parametrize(
    ("factors", "errors", "word"),
    [
        ((0.7, 0.71, 0.69), STEADY, "better"),
        ((0.7, 0.71, 0.69), None, "better in simulation"),
        ((0.5, 0.51, 0.49), WILD, "probably better"),
        ((0.7, 0.71, 0.69), WILD, "not known"),  # 13 of 21 checks would leave the sign
        ((0.7, 1.1, 0.69), STEADY, "not known"),
        ((1.2, 1.1, 1.3), STEADY, "first"),
        ((0.995, 0.994, 0.996), ModelErrors((0.0,) * 30), "not known"),  # the first is no worse within 1 %
    ],
)
def test_both_bands_must_be_clear_of_zero(
    factors: tuple[float, ...], errors: ModelErrors | None, word: str
) -> None:
    draws = {"linux": FIRST, "b": [value * factor for value, factor in zip(FIRST, factors, strict=True)]}
    verdict = judge(draws, errors)
    assert verdict.word == word
    assert verdict.is_worth_it == (word in ("better", "probably better", "better in simulation"))
    # The same with more being better.
    turned = {name: [1 / value for value in values] for name, values in draws.items()}
    mirrored = None if errors is None else ModelErrors(tuple(-error for error in errors.values))
    assert judge(turned, mirrored, more_is_better=True).word == word


def test_one_draw_says_nothing_of_chance() -> None:
    verdict = judge({"linux": [100.0], "b": [50.0]}, STEADY)
    assert (verdict.word, verdict.best) == ("not known", "b")
    assert "chance is not known of one draw" in sentences(verdict, "mix", "2B2S", "turnaround", str)[1]


def test_what_was_never_measured_is_said_in_the_same_words() -> None:
    """It was "probably better", which stands for an error that was measured, and leaves the sign in most checks."""
    draws = {"linux": FIRST, "b": [70.0, 78.0, 62.0]}
    told = sentences(judge(draws), "mix", "2B2S", "turnaround", str)
    assert told[0] == "Simulated on 2B2S: b is better in simulation for mix than linux"
    assert told[2] == "how far the model is off here was not measured"
    measured = sentences(judge(draws, STEADY), "mix", "2B2S", "turnaround", str)
    assert "in simulation" not in measured[0]
    assert "not measured" not in measured[2]


def test_nothing_is_near_where_chance_is_wide() -> None:
    draws = {"linux": [100.0, 100.0, 100.0], "b": [60.0, 150.0, 80.0]}
    told = sentences(judge(draws), "mix", "2B2S", "latency", str)
    assert told[0] == (
        "Simulated on 2B2S: for mix no difference from linux can be shown (chance alone moves it by 117 %)"
    )
    close = {"linux": [100.0, 100.0, 100.0], "b": [96.0, 101.0, 98.0]}
    assert sentences(judge(close), "mix", "2B2S", "latency", str)[0].endswith("(not known); b comes closest")


def test_no_worse_is_paired_and_within_the_margin() -> None:
    draws = {"linux": [100, 200, 300], "a": [80, 160, 240], "b": [80.4, 160.9, 241], "c": [79, 170, 250]}
    assert judge(draws).alike == ("a", "b")
    assert judge(draws, margin=0.001).alike == ("a",)
    assert judge(draws, margin=1).alike == ("a", "b", "c", "linux")
    line = sentences(judge(draws), "mix", "2B2S", "turnaround", str)[-1]
    assert line == "no worse within 1 %: b"


def test_shares_are_told_in_points() -> None:
    verdict = judge({"linux": [0.4, 0.5], "b": [0.1, 0.2]}, of_shares=True)
    assert verdict.change.mean == pytest.approx(-0.3)
    told = sentences(verdict, "mix", "2B2S", "late frames", "{:.2f}".format)[1]
    assert told == "late frames 0.15 instead of 0.45: -30.0 points, by chance ±0.0"


@pytest.mark.parametrize(
    "margin", [-0.01, 1.5, float("nan")], ids=["less than nothing", "more than all", "no number"]
)
def test_a_margin_is_a_share(margin: float) -> None:
    with pytest.raises(InputError, match=r"margin = .* is not within 0 to 1"):
        ampsched.compare("2B2S", "fft", ["cfs"], margin=margin)


def test_one_question_has_one_answer() -> None:
    """`advise` said camp -22.3 %, `compare` -19.5 % or colab -16.5 %: other noise, other speed-ups, other orders."""
    policies = ("linux", "camp", "colab")
    advice = advise(MAKE, "2B2S", policies)
    compared = ampsched.compare("2B2S", str(MAKE), policies)
    assert compared.verdict("2B2S", "make") == advice.of_policies or [
        pytest.approx(1e3 * value) for value in advice.of_policies.values
    ] == list(compared.verdict("2B2S", "make").values)
    for name in ("best", "word", "alike", "agreeing"):
        assert getattr(compared.verdict("2B2S", "make"), name) == getattr(advice.of_policies, name)
    told = sentences(advice.of_policies, "make", "2B2S", "turnaround", advice.metric.text)
    metric = compared.decisive("2B2S", "make")
    assert sentences(compared.verdict("2B2S", "make"), "make", "2B2S", metric.name, metric.text) == told
    assert advice.conditions == compared.notes
    swept = ampsched.sweep("2B2S", str(MAKE), policies, repeat=5).frame
    for policy in policies:
        ours = [run.outcome.makespan_ns for run in compared.select("2B2S", "make", policy)]
        theirs = swept.filter(swept["policy"] == policy)["makespan_ns"].to_list()
        assert sorted(ours) == sorted(theirs)
    first = compared.select("2B2S", "make", "camp")[0]
    alone = ampsched.simulate("2B2S", MAKE, "camp", core_order="big-first", seed=first.seed)
    assert alone.makespan_ns == first.outcome.makespan_ns


def workload(folder: Path, name: str, *apps: str) -> str:
    """A file with a workload of these programs."""
    path = folder / f"{name}.toml"
    path.write_text(f"[workloads.{name}]\napps = [{', '.join(f'{{ {app} }}' for app in apps)}]\n")
    return str(path)


def test_a_recording_in_a_workload_file_is_the_one_that_is_named_by_its_file(tmp_path: Path) -> None:
    """In a workload file it had no speed-up of its own, no noise, and no pieces of work that vary."""
    file = workload(tmp_path, "make", f'program = "{MAKE}"')
    policies = ["linux", "camp"]
    named, within = (ampsched.compare("2B2S", given, policies, repeat=2) for given in (str(MAKE), file))
    assert within.notes == named.notes
    assert within.verdict("2B2S", "make") == named.verdict("2B2S", "make")
    assert within.verdict("2B2S", "make").band is not None
    assert [run.outcome for run in within.runs] == [run.outcome for run in named.runs]
    assert ampsched.simulate("2B2S", file, "camp", seed=3) == ampsched.simulate("2B2S", MAKE, "camp", seed=3)
    assert ampsched.limit("2B2S", file) == ampsched.limit("2B2S", MAKE)
    frames = [
        ampsched.sweep("2B2S", given, policies, repeat=2).frame["makespan_ns"] for given in (file, str(MAKE))
    ]
    assert frames[0].to_list() == frames[1].to_list()
    # The same where the file is one of the catalogue.
    known = ampsched.compare("2B2S", "make", policies, repeat=2, catalog=Catalog.shipped().with_files(file))
    assert [run.outcome for run in known.runs] == [run.outcome for run in named.runs]


def test_what_a_workload_file_states_of_a_recording_holds(tmp_path: Path) -> None:
    file = workload(tmp_path, "make", f'program = "{MAKE}", params = {{ speedup = 1.5, spread = 0 }}')
    stated = ampsched.compare("2B2S", file, ["linux"], repeat=1)
    assert "speed-up stated: 1.5" in stated.notes
    assert not any("piece of work" in note for note in stated.notes)
    text = ampsched.compare("2B2S", f"{MAKE}:speedup=1.5:spread=0", ["linux"], repeat=1)
    assert [run.outcome.makespan_ns for run in stated.runs] == [run.outcome.makespan_ns for run in text.runs]


def test_recordings_of_a_mix_start_when_the_seed_says(tmp_path: Path) -> None:
    hogs = EXACT / "hogs-hogs.ampr"
    file = workload(tmp_path, "both", f'program = "{MAKE}"', f'program = "{hogs}"', 'program = "fft"')
    compared = ampsched.compare("2B2S", file, ["linux", "camp"], repeat=3)
    starts = {
        policy: [
            tuple(app.start_ns for app in run.outcome.apps) for run in compared.select("2B2S", "both", policy)
        ]
        for policy in compared.policies
    }
    assert starts["linux"] == starts["camp"]
    assert len(set(starts["linux"])) == 3
    shortest_ns = min(json.loads(load(path).info)["wall_ns"] for path in (MAKE, hogs))
    for first, second, described in starts["linux"]:
        assert 0 <= first <= START_SPREAD * shortest_ns
        assert 0 <= second <= START_SPREAD * shortest_ns
        assert described == 0
    assert f"recordings start within {START_SPREAD * shortest_ns / 1e6:.3g} ms, by the seed" in compared.notes
    assert sum("piece of work ±5 %" in note for note in compared.notes) == 2
    assert compared.verdict("2B2S", "both").band is None
    run = compared.select("2B2S", "both", "camp")[0]
    alone = ampsched.simulate("2B2S", file, "camp", core_order=run.core_order, seed=run.outcome.seed)
    assert alone.makespan_ns == run.outcome.makespan_ns
    swept = ampsched.sweep("2B2S", file, ["linux", "camp"], repeat=3).frame["makespan_ns"].to_list()
    assert sorted(swept) == sorted(run.outcome.makespan_ns for run in compared.runs)
    # Who says that nothing varies means starts, too.
    params = "params = { spread = 0 }"
    fixed = workload(tmp_path, "fixed", f'program = "{MAKE}", {params}', f'program = "{hogs}", {params}')
    still = ampsched.compare("2B2S", fixed, ["linux"], repeat=2)
    assert {app.start_ns for run in still.runs for app in run.outcome.apps} == {0}
    assert not any("start within" in note for note in still.notes)


def test_every_policy_meets_the_same_draws_and_has_a_spread_of_its_own() -> None:
    compared = ampsched.compare("2B2S", str(MAKE), ["linux", "acfs", "camp"], core_order="as-is")
    for policy in compared.policies:
        runs = compared.select("2B2S", "make", policy)
        assert len({run.outcome.makespan_ns for run in runs}) == len(runs)
    work = {
        policy: [run.alone_ns for run in compared.select("2B2S", "make", policy)]
        for policy in compared.policies
    }
    assert work["linux"] == work["acfs"] == work["camp"]


def test_the_conditions_of_a_recording_are_those_of_its_machine() -> None:
    catalog = Catalog.shipped()
    same, other = (Placed.of(catalog, str(MAKE), catalog.machine(name)) for name in ("2B2S", "4B4S"))
    assert same.notes(named=False)[1].startswith("speed-up 2.7")
    assert "not known" in other.notes(named=False)[1]
    assert other.notes(named=True)[0] == f"make on 4B4S: each piece of work ±{100 * SPREAD:g} %"
    stated = Placed.of(catalog, f"{MAKE}:speedup=1.5:spread=0", catalog.machine("2B2S"))
    assert stated.notes(named=False) == ["speed-up stated: 1.5"]
    assert stated.workload.name == "make:speedup=1.5:spread=0"
    for wrong in ("spread=2", "spread=-0.1", "sped=1"):
        with pytest.raises(InputError):
            Placed.of(catalog, f"{MAKE}:{wrong}", catalog.machine("2B2S"))


def test_noise_is_what_fits_unless_somebody_says_otherwise() -> None:
    assert [is_recording(each) for each in ("a.ampr", "a.ampr:speedup=2", Path("b.ampr"), "ferret", 3)] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert str(noise_beside("auto", "ferret")) == "none"
    assert str(noise_beside("auto", "ferret", "a.ampr")) == "idle"
    assert str(noise_beside("busy", "a.ampr")) == str(noise_beside("busy")) == "busy"
    outcome = ampsched.simulate("2B2S", MAKE)
    assert outcome.noise is not None
    assert ampsched.simulate("2B2S", MAKE, noise="none").noise is None


def test_verdicts_are_part_of_the_result() -> None:
    compared = ampsched.compare("2B2S", str(MAKE), ["linux", "camp"], repeat=2)
    (row,) = json.loads(json.dumps(compared.to_dict()))["verdicts"]
    assert row["metric"] == "turnaround"
    assert row["model_error"]["kind"] == "processes"
    assert row["best"] == "camp"
    mix = ampsched.compare("2B2S", "sync-1", ["linux", "camp"], repeat=2).to_dict()["verdicts"][0]
    assert (mix["model_error"], mix["band"]) == (None, None)


def test_the_best_schedule_of_a_recording_is_sought_without_noise(tmp_path: Path) -> None:
    path = EXACT / "hogs-hogs.ampr"
    with pytest.raises(InputError) as failed:
        ampsched.optimum("2B2S", path, simulations=1)
    assert "noise" not in str(failed.value)
    with pytest.raises(InputError, match="noise"):
        ampsched.optimum("2B2S", path, simulations=1, noise="idle")


def test_what_is_no_basis_of_advice_is_said_by_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`advise` refused a failed program, and `compare` and `sweep` called a policy better for it."""
    recording, path = load(MAKE), tmp_path / "failed.ampr"
    save(recording.with_info(json.dumps({**json.loads(recording.info), "exit_code": 1})), path)
    why = "no basis of advice: the program has ended with exit code 1"
    first = f"{why}; what follows was simulated all the same"
    asked = ["-m", "2B2S", "-w", str(path), "-p", "linux,camp", "-r", "2"]
    for command in ("compare", "sweep"):
        page = tmp_path / f"{command}.html"
        out = [] if command == "compare" else ["--out", str(tmp_path / "out")]
        with pytest.raises(SystemExit) as ended:
            main([command, *asked, *out, "--html", str(page)])
        assert ended.value.code == 0
        said = [line for line in capsys.readouterr().out.splitlines() if line]
        assert said[0] == first
        assert not any(line.startswith("Simulated on") for line in said)
        assert f'<p class="answer">{first}.</p>' in page.read_text()
    compared = ampsched.compare("2B2S", str(path), ["linux", "camp"], repeat=1)
    assert compared.caveats()[0].endswith(why)
    assert not any("no basis" in each for each in ampsched.compare("2B2S", str(MAKE), ["linux"]).caveats())
    both = ampsched.sweep(["2B2S", "4B4S"], str(path), ["linux", "camp"], repeat=2).verdicts("h_antt")
    assert both.told() == [f"no basis of advice: make: {first.removeprefix('no basis of advice: ')}"]
    values = advise(path, "2B2S", ("linux", "camp"), repeat=2, anyway=True).to_dict()
    assert values["no_basis"] == ["the program has ended with exit code 1"]
    assert {row["no_basis"] for row in values["settings"]} == set(values["no_basis"])


def test_recordings_of_programs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """`compare` made the mean of two recordings of it, and judged by that."""
    other, mine = tmp_path / "make.ampr", ["linux", "camp"]
    other.write_bytes((EXACT / "hogs-hogs.ampr").read_bytes())
    recording = load(other)
    save(recording.with_info(json.dumps({**json.loads(recording.info), "name": "make"})), other)
    both = ampsched.compare("2B2S", [str(MAKE), str(other)], mine, repeat=2)
    names = [workload for _, workload in both.mixes()]
    assert names == ["make (build-make.ampr)", "make (make.ampr)"]
    for name, path in zip(names, (MAKE, other), strict=True):
        alone = ampsched.compare("2B2S", str(path), mine, repeat=2)
        times = [run.outcome.makespan_ns for run in both.select("2B2S", name, "camp")]
        assert times == [run.outcome.makespan_ns for run in alone.select("2B2S", "make", "camp")]


def test_the_limit_is_that_of_the_draws_that_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """It was that of the first draw, so that a policy could beat it."""
    arguments = ["-m", "2B2S", "-w", str(MAKE), "-p", "linux,camp", "--json"]
    told = []
    for command in ("limit", "compare"):
        with pytest.raises(SystemExit):
            main([command, *arguments])
        told.append(json.loads(capsys.readouterr().out))
    limit, compared = told[0]["limit"], told[1]["summary"][0]
    assert limit["h_antt"] == pytest.approx(compared["h_antt_limit"])
    assert limit["h_stp"] == pytest.approx(compared["h_stp_limit"])
    assert limit["makespan_ns"] == pytest.approx(1e6 * compared["makespan_limit_ms"])


def test_one_draw_shows_no_interval() -> None:
    advice = advise(MAKE, "2B2S", ("linux", "camp"), repeat=1)
    text = lines(advice, "2B2S", [])
    assert not any("±0.0" in line for line in text)
    sections = {each.title: each for each in advising.page(advice.to_dict(), Asked()).sections}
    (told,) = sections["Policies on all cores"].blocks
    assert {row.cells[2].text for row in told.rows} == {"unknown"}
