"""Claims as data: what a file may say, how numbers are judged, and that the shipped ones are measured."""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import polars
import pytest
from conftest import ROOT

from ampsched._core import InputError
from ampsched.policy import PolicySpec
from ampsched.statistics import Estimate
from ampsched_lab.papers import claims as claims_page
from ampsched_lab.papers.registry import EXPERIMENTS, RULES
from ampsched_lab.shared.claims.comparisons import COMPARISONS, Published, Verdict
from ampsched_lab.shared.claims.dependence import dependence_records, dependence_section, dependences
from ampsched_lab.shared.claims.judging import Check, Claim, judge, measure, wide_claims
from ampsched_lab.shared.claims.measured import (
    UNITS,
    Count,
    Measured,
    Measurement,
    Measurements,
    Name,
    Number,
    Pair,
    Range,
    one_of,
)
from ampsched_lab.shared.claims.reading import parse_claims
from ampsched_lab.shared.claims.tables import (
    causes_section,
    changes_section,
    claim_records,
    claims_section,
    verdicts,
)
from ampsched_lab.shared.machines import changed_machine
from ampsched_lab.shared.progress import shares
from ampsched_lab.shared.reproduction import Repeats, seeds_text

EXPECTED = {"colab": 105, "prop-sp": 28, "chronaki": 60, "hfee": 42}


def estimate(mean: float, low: float, high: float) -> Number:
    return Number(Estimate(mean, low, high, n=3))


@pytest.mark.parametrize(
    ("ours", "paper", "verdict"),
    [
        ((-0.11, -0.12, -0.10), -0.11, "reproduced"),
        ((-0.09, -0.10, -0.08), -0.11, "reproduced"),
        ((-0.11, -0.16, -0.06), -0.18, "reproduced"),
        ((-0.11, -0.16, -0.06), -0.20, "direction only"),
        ((-0.11, -0.17, -0.05), -0.11, "direction only"),
        ((-0.20, -0.21, -0.19), -0.11, "direction only"),
        ((-0.02, -0.05, 0.01), -0.02, "not reproduced"),
        ((0.05, 0.04, 0.06), -0.05, "not reproduced"),
        ((0.45, 0.44, 0.46), 0.58, "direction only"),
        ((0.02, 0.01, 0.03), 0.0, "reproduced"),
        ((-0.05, -0.06, -0.03), 0.0, "reproduced"),
        ((-0.05, -0.06, -0.04), 0.0, "not reproduced"),
        ((0.0, -0.06, 0.06), 0.0, "not reproduced"),
    ],
)
def test_verdict_of_a_change(ours: tuple[float, float, float], paper: float, verdict: str) -> None:
    assert COMPARISONS["change"].judge(estimate(*ours), Published(paper)) == verdict


VALUE = Published(10.0, is_share=False)
MHZ = Published(1000, is_share=False, side_of=1400)
RANGE = Published((0.9, 2.4), is_share=False)


@pytest.mark.parametrize(
    ("kind", "ours", "paper", "verdict"),
    [
        ("change", Number(0.10), Published(0.05), "direction only"),
        ("up to", estimate(-0.11, -0.12, -0.10), Published(-0.11), "direction only"),
        ("up to", estimate(-0.11, -0.22, 0.01), Published(-0.11), "not reproduced"),
        ("up to", estimate(0.11, 0.10, 0.12), Published(-0.11), "not reproduced"),
        ("value", Number(10.3), VALUE, "reproduced"),
        ("value", Number(10.4), VALUE, "not reproduced"),
        ("value", estimate(10.5, 10.1, 10.9), VALUE, "reproduced"),
        ("value", estimate(10.0, 9.4, 10.6), VALUE, "not reproduced"),
        ("value", Number(0.53), Published(0.5), "reproduced"),
        ("value", Number(1000), MHZ, "reproduced"),
        ("value", Number(900), MHZ, "direction only"),
        ("value", Number(1500), MHZ, "not reproduced"),
        ("count", Count(26, 38), Published(25 / 38), "reproduced"),
        ("count", Count(26, 38), Published(24 / 38), "direction only"),
        ("count", Count(4, 9), Published(7 / 9), "not reproduced"),
        ("range", Range(0.88, 2.46), RANGE, "reproduced"),
        ("range", Range(0.8, 2.4), RANGE, "direction only"),
        ("range", Range(0.1, 0.2), RANGE, "not reproduced"),
        ("within", Range(0.0, 0.1), Published((0.0, 0.1)), "reproduced"),
        ("within", Range(0.0, 0.101), Published((0.0, 0.1)), "not reproduced"),
        ("alike", Range(10.0, 10.3), Published(), "reproduced"),
        ("alike", Range(10.0, 10.31), Published(), "not reproduced"),
        ("below", Number(0.49), Published(0.5), "reproduced"),
        ("below", Number(0.5), Published(0.5), "not reproduced"),
        ("below", estimate(0.48, 0.45, 0.51), Published(0.5), "not reproduced"),
        ("above", Count(5, 9), Published(0.5), "reproduced"),
        ("above", Count(1, 2), Published(0.5), "not reproduced"),
        ("above", estimate(0.52, 0.49, 0.55), Published(0.5), "not reproduced"),
        ("at most", Number(0.02), Published(0.02), "reproduced"),
        ("at most", Number(0.021), Published(0.02), "not reproduced"),
        ("at least", Number(0.5), Published(0.5), "reproduced"),
        ("at least", Number(0.49), Published(0.5), "not reproduced"),
        ("ordering", Pair.of([1.0, 1.1], [2.0, 2.1]), Published(), "reproduced"),
        ("ordering", Pair.of([2.0], [2.0]), Published(), "not reproduced"),
        ("ordering", Pair.of([1.0, 2.0], [2.0, 2.1]), Published(), "not reproduced"),
        ("name", Name("W2"), Published("W2"), "reproduced"),
        ("name", Name("W1"), Published("W2"), "not reproduced"),
    ],
)
def test_verdicts(kind: str, ours: Measured, paper: Published, verdict: Verdict) -> None:
    assert isinstance(ours, COMPARISONS[kind].takes)
    assert COMPARISONS[kind].judge(ours, paper) == verdict


def test_every_kind_of_comparison_is_tested_and_used() -> None:
    [marks] = (mark for mark in test_verdicts.pytestmark if mark.name == "parametrize")
    assert {row[0] for row in marks.args[1]} == COMPARISONS.keys()
    checks = [claim.check for claim in all_claims() if isinstance(claim.check, Check)]
    assert {
        name for name, kind in COMPARISONS.items() if any(check.comparison is kind for check in checks)
    } == (COMPARISONS.keys())


@pytest.mark.parametrize(
    ("measured", "unit", "text"),
    [
        (estimate(-0.112, -0.12, -0.104), "%", "-11.2 % [-12.0, -10.4]"),
        (Number(Estimate(0.5, 0.4, 0.6, n=1), of="sync-2"), "%", "+50.0 % (sync-2)"),
        (Number(0.25), "%", "+25.0 %"),
        (estimate(0.63, 0.62, 0.64), "% of all", "63 % [62, 64]"),
        (estimate(9.5, 9.4, 9.6), "", "9.50"),
        (Number(900), "MHz", "900 MHz"),
        (Number(900, text="slow"), "MHz", "slow"),
        (Count(7, 9), "%", "7 of 9"),
        (Range(0.2, 0.61), "", "0.20 to 0.61"),
        (Range(0.0, 0.0947, digits=".1f"), "% of all", "0.0 to 9.5 %"),
        (Pair.of([0.1], [0.2]), "%", "+10.0 % against +20.0 %"),
        (Name("W2"), "", "W2"),
    ],
)
def test_numbers_as_printed(measured: Measured, unit: str, text: str) -> None:
    assert measured.printed(UNITS[unit]) == text


measurement = Measurements({float: lambda text: float(one_of("place", ("1", "2"))(text))})


@measurement
def gain(
    results: dict[float, float], *, place: float, metric: Literal["h_antt", "h_stp"] = "h_antt"
) -> Number:
    return Number(results[place] if metric == "h_antt" else -results[place])


@measurement
def winners(results: dict[float, float]) -> Count:
    return Count(sum(value < 0 for value in results.values()), len(results))


HEAD = '[fig1]\nsource = "Figure 1"\n[fig1.A]\ntext = "a"\n'
GAIN = 'measure = { name = "gain", place = "1" }\n'


def parse(text: str, **others: str):
    return parse_claims({"claims.toml": text, **others}, {"fig1": measurement}, ["share"])


def test_a_claim_is_read_measured_and_judged() -> None:
    claims = parse(
        'rules = "Rules."\ncompare = "change"\n[causes]\nshort = """\nShare\n{share:.0%}."""\n'
        + HEAD + GAIN + 'paper = -12\ncause = "short"\n'
        + '[fig1.B]\ntext = "b"\nmeasure = "winners"\ncompare = "count"\npaper = [2, 2]\n'
        + '[fig1.C]\ntext = "c"\nsource = "section 3"\nsaid = "+20 %"\nuntestable = "a\\nphone"\n'
    )  # fmt: skip
    judged = judge(claims.of("fig1"), {1.0: -0.3, 2.0: -0.1}, facts={"share": 0.5})
    assert claims.rules == "Rules."
    assert [(each.claim.id, each.claim.source, each.claim.published) for each in judged] == [
        ("A", "Figure 1", "-12 %"), ("B", "Figure 1", "2 of 2"), ("C", "section 3", "+20 %"),
    ]  # fmt: skip
    assert [each.result.verdict for each in judged] == ["direction only", "reproduced", "not testable here"]
    assert [each.result.text for each in judged] == ["-30.0 %", "2 of 2", "a phone"]
    assert "| ~ | A | a | -12 % | -30.0 % | direction only |" in claims_section(judged)
    assert causes_section(judged).endswith("- **A:** Share 50%.")
    assert claim_records(judged)[1]["value"] == 1.0
    assert verdicts(judged)["reproduced"] == 1
    assert not judge(claims.of("fig1"), {1.0: -0.12, 2.0: -0.1}, facts={"share": 0.5})[0].cause


def test_claims_apart_are_shown_with_the_reason_and_not_counted() -> None:
    claims = parse(
        'compare = "change"\n' + HEAD + GAIN + "paper = -12\n"
        + '[fig1.B]\ntext = "b"\nmeasure = "winners"\ncompare = "count"\npaper = [2, 2]\napart = "the number of A"\n'
    ).of("fig1")  # fmt: skip
    judged = judge(claims, {1.0: -0.12, 2.0: -0.1})
    assert verdicts(judged) == {"reproduced": 1}
    counted, apart = claims_section(judged).split("## Not counted")
    assert "| A | a |" in counted
    assert "| B |" not in counted
    assert "| ✓ | B | b | 2 of 2 | 2 of 2 | reproduced | the number of A |" in apart
    assert [each["apart"] for each in claim_records(judged)] == [None, "the number of A"]
    assert claims_section(judged[1:]).startswith("## Not counted")


def test_seeds_are_added_until_intervals_are_narrow_or_there_are_enough() -> None:
    asked = []

    def run(seeds: range, claims: Sequence[Claim] | None) -> list[int]:
        asked.append((list(seeds), claims and [claim.id for claim in claims]))
        return list(seeds)

    [claim] = parse('compare = "change"\n' + HEAD + GAIN + "paper = -12\n").all
    repeats = Repeats.of(2, 7)
    results, count = repeats.until_narrow(run, list.__add__, lambda found: [claim] * (len(found) < 3))
    assert (results, count) == ([1, 2, 3, 4], 4)
    assert asked == [([1, 2], None), ([3, 4], ["A"])]
    assert repeats.until_narrow(run, list.__add__, lambda _: [claim]) == ([1, 2, 3, 4, 5, 6, 7], 7)
    assert Repeats.of(5, 3) == Repeats.of(5, None) == Repeats(5, 5)
    assert seeds_text({"a": 3, "b": 3}) == "seeds 1 to 3"
    assert seeds_text({"a": 3, "b": 6, "c": 50}) == "seeds 1 to 3 (a), 1 to 6 (b) and 1 to 50 (c)"


def test_more_seeds_are_asked_for_only_where_an_interval_could_be_too_wide_for_a_verdict() -> None:
    claims = parse('compare = "change"\n' + HEAD + GAIN + "paper = -12\n").all

    def wide(half: float, n: int) -> bool:
        value = Estimate(-0.12, -0.12 - half, -0.12 + half, n)
        check = claims[0].check
        assert isinstance(check, Check)
        measured = replace(check, measurement=Measurement("gain", Number, lambda _: Number(value), {}))
        return bool(wide_claims([replace(claims[0], check=measured)], None))

    assert [wide(0.05, 3), wide(0.06, 3), wide(0.0, 1), wide(0.0, 0)] == [False, True, True, False]


def test_what_a_claim_depends_on() -> None:
    claims = parse(
        'compare = "change"\n' + HEAD + GAIN + "paper = -12\n"
        + '[fig1.B]\ntext = "b"\nmeasure = "winners"\ncompare = "count"\npaper = "all"\n'
        + '[fig1.C]\ntext = "c"\nmeasure = "winners"\ncompare = "below"\npaper = 0\n'
        + '[fig1.D]\ntext = "d"\nmeasure = "winners"\ncompare = "below"\npaper = 0\napart = "the same"\n'
        + '[fig1.E]\ntext = "e"\nsaid = "x"\nuntestable = "no"\n'
    ).of("fig1")  # fmt: skip
    found = dependences(
        claims, {"as judged": {1.0: -0.3, 2.0: -0.1}, "noise": {1.0: -0.2, 2.0: 0.1, 3.0: 0.1}}
    )
    assert [(each.claim.id, each.kind) for each in found] == [
        ("A", "always"),
        ("B", "if ..."),
        ("C", "contradicted"),
    ]
    assert found[1].exceptions == ["noise (✗ 1 of 3)"]
    text = dependence_section(found, "All claims with noise.")
    assert "Of 3 claims 1 hold always, 1 under some conditions, 1 never." in text
    assert "| B | b | all | ✓ 2 of 2 | if ... | noise (✗ 1 of 3) |" in text
    record = dependence_records(found)[3]
    assert (record["id"], record["condition"], record["verdict"]) == ("B", "noise", "not reproduced")


def test_a_reason_that_needs_what_was_not_measured_is_left_out() -> None:
    claims = parse(CHANGING.replace("change =", "cause =")).of("fig1")
    results = {1.0: 0.3, 2.0: -0.1}
    assert judge(claims, results, facts={"share": 0.5})[0].cause == "Starts, 50%."
    assert judge(claims, results)[0].cause == ""


def test_a_machine_is_changed_where_one_line_says_so() -> None:
    machine = changed_machine("2B2S", {"mhz = 1200": "mhz = 800"})
    assert (machine.name, machine.frequencies_mhz(1)) == ("2B2S", [800])
    with pytest.raises(ValueError, match='2B2S: "cores = 2" does not stand there once'):
        changed_machine("2B2S", {"cores = 2": "cores = 3"})


CHANGING = (
    'compare = "change"\n[causes]\nstart = "Starts, {share:.0%}."\n'
    + HEAD + GAIN + 'paper = -12\nchange = "start"\n'
    + '[fig1.B]\ntext = "b"\nmeasure = "winners"\ncompare = "count"\npaper = [2, 2]\nchange = "start"\n'
)  # fmt: skip


def test_verdicts_that_depend_on_what_stands_for_linux_are_listed_with_both_values_and_the_reason() -> None:
    claims = parse(CHANGING).of("fig1")
    others = {RULES: {1.0: -0.12, 2.0: -0.1}, "linux:kernel=7.3": {1.0: 0.1, 2.0: -0.1}}
    judged = judge(claims, {1.0: -0.3, 2.0: -0.1}, facts={"share": 0.5}, stand_ins=others)
    assert [each.is_changed for each in judged] == [True, False]
    assert [each.change for each in judged] == ["Starts, 50%.", ""]
    text = changes_section(judged, "linux:kernel=3.16")
    assert "1 of 2 verdicts differ. With `cfs` they were: 2 reproduced." in text
    assert "With `linux:kernel=3.16` they are: 1 direction only, 1 reproduced." in text
    assert "| id | claim | paper | `cfs` | `linux:kernel=3.16` | `linux:kernel=7.3` |" in text
    assert "| A | a | -12 % | ✓ -12.0 % | ~ -30.0 % | ✗ +10.0 % |" in text
    assert "| B |" not in text
    assert text.endswith("- **A:** Starts, 50%.")
    record = claim_records(judged)[0]
    assert (record["verdict"], record["cfs"], record["cfs_verdict"]) == (
        "direction only",
        "-12.0 %",
        "reproduced",
    )


def test_where_no_verdict_depends_on_linux_the_report_says_so() -> None:
    claims = parse(CHANGING).of("fig1")
    same = {1.0: -0.12, 2.0: -0.1}
    assert "0 of 2 verdicts differ" in changes_section(judge(claims, same, stand_ins={RULES: same}), "linux")
    assert "no claim of this report is about Linux" in changes_section(judge(claims, same), "linux")
    assert "cfs" not in claim_records(judge(claims, same))[0]
    assert not changes_section([], "linux")


@pytest.mark.parametrize(
    ("said", "paper", "published"),
    [("", "0", "no effect"), ('said = "none"\n', "0", "none"), ('said = "over {}"\n', "5.5", "over +5.5 %")],
)
def test_how_the_paper_s_value_is_printed(said: str, paper: str, published: str) -> None:
    text = f'{HEAD}{GAIN}compare = "change"\n{said}paper = {paper}\n'
    assert parse(text).all[0].published == published


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[fig1", "claims.toml: Expected ']' at the end of a table declaration (at end of document)"),
        (HEAD + HEAD, "claims.toml: Cannot declare ('fig1',) twice"),
        (HEAD + '[fig1.A]\ntext = "a"\n', "claims.toml: Cannot declare ('fig1', 'A') twice"),
        ("[fig2.A]\n", 'claims.toml: unknown part "fig2" (did you mean "fig1"?)'),
        ('compar = "change"\n', 'claims.toml: unknown key "compar" (did you mean "compare"?)'),
        ('[fig1]\nsorce = "x"\n', 'claims.toml: part fig1: unknown key "sorce" (did you mean "source"?)'),
        (HEAD + 'mesure = "x"\n', 'claim A: unknown key "mesure" (did you mean "measure"?)'),
        ('[fig1.A]\ntext = "a"\n', 'claim A: there is no "source"'),
        ('[fig1.A]\nsource = "a"\n', 'claim A: there is no "text"'),
        (HEAD, 'claim A: there is no "compare"'),
        (
            HEAD + 'compare = "chnge"\npaper = 1\n',
            'claim A: unknown comparison "chnge" (did you mean "change"?)',
        ),
        (HEAD + 'compare = "change"\n' + GAIN, 'claim A: there is no "paper"'),
        (HEAD + 'compare = "change"\npaper = 1\n', 'claim A: there is no "measure"'),
        (
            HEAD + 'compare = "change"\npaper = "much"\n' + GAIN,
            "claim A: paper 'much' is no number, which comparison \"change\" takes",
        ),
        (
            HEAD + 'compare = "ordering"\npaper = 1\n' + GAIN,
            'claim A: comparison "ordering" takes no "paper"',
        ),
        (HEAD + 'compare = "change"\npaper = 1\nunit = "km"\n' + GAIN, 'claim A: unknown unit "km"'),
        (
            HEAD + 'compare = "change"\npaper = 1\nmeasure = "gian"\n',
            'claim A: unknown measurement "gian" (did you mean "gain"?)',
        ),
        (
            HEAD + 'compare = "change"\npaper = 1\nmeasure = "winners"\n',
            'claim A: measurement "winners" yields a count, comparison "change" takes a number',
        ),
        (
            HEAD + 'compare = "change"\npaper = 1\nmeasure = { name = "gain", plac = "1" }\n',
            'claim A: measurement "gain" has no "plac" (did you mean "place"?)',
        ),
        (
            HEAD + 'compare = "change"\npaper = 1\nmeasure = "gain"\n',
            'claim A: measurement "gain" needs "place"',
        ),
        (
            HEAD + 'compare = "change"\npaper = 1\nmeasure = { name = "gain", place = "3" }\n',
            'claim A: unknown place "3"',
        ),
        (
            HEAD
            + 'compare = "change"\npaper = 1\nmeasure = { name = "gain", place = "1", metric = "h_ant" }\n',
            'claim A: unknown metric "h_ant" (did you mean "h_antt"?)',
        ),
        (
            HEAD + 'compare = "change"\npaper = 1\nmeasure = { name = "gain", place = true }\n',
            "claim A: place True is no float",
        ),
        (HEAD + 'untestable = "no"\n', 'claim A: there is no "said"'),
        ("rules = 1\n", "claims.toml: rules 1 is no text"),
        ("[causes]\nc = 1\n", "claims.toml: c 1 is no text"),
        ('[fig1.A]\ntext = 1\nsource = "a"\n', "claim A: text 1 is no text"),
        (HEAD + 'compare = "change"\npaper = 1\nmeasure = 1\n', "claim A: name 1 is no text"),
        (HEAD + 'compare = "change"\npaper = 1\nsaid = 1\n' + GAIN, "claim A: said 1 is no text"),
        (
            HEAD + 'compare = "count"\npaper = [3, 2]\nmeasure = "winners"\n',
            'claim A: paper [3, 2] is no share, which comparison "count" takes',
        ),
        (
            HEAD + 'compare = "value"\npaper = 1\nside_of = "x"\n' + GAIN,
            "claim A: side_of 'x' is no number",
        ),
        (
            HEAD + 'untestable = "no"\nsaid = "x"\n' + GAIN,
            'claim A: it states "measure" and is "untestable"',
        ),
        (HEAD + 'untestable = "no"\nsaid = "x"\ncause = "c"\n', 'claim A: unknown cause "c"'),
        (HEAD + 'untestable = "no"\nsaid = "x"\nchange = "c"\n', 'claim A: unknown cause "c"'),
        ('[causes]\nc = "x"\n', 'claims.toml: cause "c" is no claim\'s'),
        ('[causes]\nc = "{shre}"\n', 'cause "c": unknown fact "shre" (did you mean "share"?)'),
    ],
)
def test_errors_name_file_claim_and_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        parse(text)
    assert str(error.value).startswith("claims.toml: ")
    assert message in str(error.value)


def test_ids_are_unique_in_all_files() -> None:
    claim = HEAD + 'untestable = "no"\nsaid = "x"\n'
    with pytest.raises(InputError, match=r"^draft\.toml: claim A: there is another claim of that id$"):
        parse(claim, **{"draft.toml": claim})


def all_claims():
    return [claim for row in EXPERIMENTS.values() for claim in row.load().CLAIMS.all]


def package(name: str) -> Path:
    return ROOT / "lab/ampsched_lab/papers" / name.replace("-", "_")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_has_the_same_files(name: str) -> None:
    files = {path.stem if path.is_file() else path.name for path in package(name).iterdir()}
    assert files >= {"__init__", "setup", "runs", "measurements", "claims", "figures", "report"}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_measurement_is_used_by_a_claim(name: str) -> None:
    """That every claim has a measurement is checked whenever claims are read."""
    report = EXPERIMENTS[name].load()
    assert set(report.MEASUREMENTS) <= set(report.PARTS)
    used = {claim.check.measurement.name for claim in report.CLAIMS.all if isinstance(claim.check, Check)}
    registered = {each for of_part in report.MEASUREMENTS.values() for each in of_part.names()}
    assert registered == used


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_committed_claims_are_those_of_the_data(name: str) -> None:
    claims = EXPERIMENTS[name].load().CLAIMS.all
    assert len(claims) == EXPECTED[name]
    committed = polars.read_csv(ROOT / "docs/reports" / name / "claims.csv", infer_schema_length=None)
    ours = [(claim.id, claim.text, claim.source, claim.published) for claim in claims]
    assert sorted(committed.select("id", "claim", "source", "paper").rows()) == sorted(ours)
    for claim in claims:
        if isinstance(claim.check, str):
            assert measure(claim, None).verdict == "not testable here"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_changed_verdict_of_the_committed_report_has_its_reason(name: str) -> None:
    committed = polars.read_csv(ROOT / "docs/reports" / name / "claims.csv", infer_schema_length=None)
    reasons = {claim.id for claim in EXPERIMENTS[name].load().CLAIMS.all if claim.change}
    changed = set[str]()
    if f"{RULES}_verdict" in committed.columns:
        changed = set(committed.filter(polars.col("verdict") != polars.col(f"{RULES}_verdict"))["id"])
    assert changed == reasons
    report = (ROOT / "docs/reports" / name / "report.md").read_text(encoding="utf-8")
    changes = report.split("## What changes with the kernel's own scheduler", 1)[1].split("\n## ", 1)[0]
    assert all(f"| {id_} |" in changes for id_ in changed)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_report_says_what_stands_for_linux(name: str) -> None:
    baseline = EXPERIMENTS[name].baseline
    assert PolicySpec.of(baseline.policy).label == baseline.policy
    report = (ROOT / "docs/reports" / name / "report.md").read_text(encoding="utf-8")
    assert f"`{baseline.policy}`. {baseline.why}" in " ".join(report.split())


def test_rules_and_causes_are_the_data_s() -> None:
    for name in EXPERIMENTS:
        stated = tomllib.loads((package(name) / "claims.toml").read_text(encoding="utf-8"))
        report = (ROOT / "docs/reports" / name / "report.md").read_text(encoding="utf-8")
        assert " ".join(stated["rules"].split()) in " ".join(report.split())


def test_progress_of_runs_that_follow_one_another_is_one() -> None:
    seen: list[tuple[int, int]] = []
    steps = shares(lambda done, total: seen.append((done, total)), {"a": 30, "b": 10})
    steps["a"](1, 2)
    steps["a"](2, 2)
    steps["b"](5, 5)
    assert seen == [(15, 40), (30, 40), (40, 40)]
    shares(None, {"a": 1})["a"](1, 1)


def test_the_page_of_what_claims_depend_on_is_that_of_the_reports() -> None:
    page = claims_page.text_of({name: claims_page.claims_of(name) for name in EXPERIMENTS})
    assert claims_page.PAGE.read_text("utf-8") == page
