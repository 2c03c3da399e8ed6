"""The page of an advice for a recorded program."""

from collections.abc import Mapping
from typing import Any

from ampsched.recording.summary import follows_text
from ampsched.report import comparing, words
from ampsched.report.asked import Asked
from ampsched.report.page import Cell, Facts, Head, Notes, Page, Row, Section, Table
from ampsched.report.parts import policies_section, repeat_section
from ampsched.report.words import MINUS, number, percent

Values = Mapping[str, Any]


def page(values: Values, asked: Asked, runs: Values | None = None) -> Page:
    """The page of an advice.

    Args:
        values: Those of `Advice.to_dict`.
        asked: What it came from.
        runs: Those of the comparison behind it, if it is known.
    """
    choices = values["choices"]
    behind = comparing.page(runs, asked) if runs else None
    name = f"{values['program']} on {values['machine']}"
    answer, certainty = _answer(values, name)
    of_settings, of_policies = _settings(values), _table(values)
    sections = [
        Section("Policies on all cores", (of_policies,)) if of_settings else None,
        Section(
            "The replay",
            (Facts(tuple(_facts(values))), *((Notes(tuple(values["notes"])),) if values["notes"] else ())),
        ),
        *(
            behind.sections
            if behind
            else (policies_section([each["policy"] for each in choices]), repeat_section(asked))
        ),
    ]
    return Page(
        f"Advice: {name}",
        answer,
        (of_settings or of_policies, *(behind.blocks[1:] if behind else ())),
        tuple(section for section in sections if section),
        behind.groups if behind else (),
        certainty=certainty,
    )


def _settings(values: Values) -> Table | None:
    """All settings that were tried, the advised one in bold; earlier versions have saved none."""
    tried = values.get("settings", ())
    rows = [
        Row(
            (
                Cell(each["policy"]),
                *((Cell(str(each["threads"]), each["threads"]),) if each["threads"] else ()),
                Cell(each["cores"]),
                Cell(" ".join(map(str, each["cpus"] or ()))),
                Cell(_extra(each)),
                Cell(_chance(each), each["change"]),
            ),
            each["policy"],
            values["is_worth_it"] and each["name"] == values["advised"],
        )
        for each in tried
    ]
    if not rows:
        return None
    heads = (
        Head("policy", False),
        *((Head("threads"),) if tried[0]["threads"] else ()),
        Head("cores", False),
        Head("CPUs", False),
        Head("besides", False),
        Head(_metric(values).lower()),
    )
    note = f"Against {values['usual']} on all cores; {MINUS} is better. Without ±: a single draw has ruled it out."
    return Table("All settings that were tried", heads, tuple(rows), note)


def _extra(each: Values) -> str:
    governor = [f"governor {each['governor']}"] if each["governor"] else []
    return ", ".join([*(f"{name}={value}" for name, value in each["environment"].items()), *governor])


def _chance(each: Values) -> str:
    chance = f" ±{number(100 * each['half_width'], 1)}" if each["draws"] > 1 else ""
    return f"{percent(each['change'])}{chance}"


def _answer(values: Values, name: str) -> tuple[str, str]:
    """The answer in a sentence, and how sure it is, as the console tells both."""
    if values.get("text"):
        return words.told(values["text"])
    # What earlier versions have saved says less.
    best, baseline, goal = values["choices"][0], values["baseline"], _goal(values)
    spread = f"{percent(best['change'])} ±{number(100 * best['half_width'], 1)}"
    sure = f"{_metric(values)} against {baseline}: {spread} (95 %)."
    if not values["is_worth_it"]:
        better = "is faster" if goal["name"] == "time" else f"has {goal['less']}"
        return (
            f"Simulated: stay with {baseline}: no policy {better} for {name} by more than its interval.",
            sure,
        )
    by = f"{number(-100 * best['change'], 1)} {goal['unit']} {goal['less']}"
    return f"Simulated: {best['policy']} is best for {name}: {by} than under {baseline}.", sure


def _table(values: Values) -> Table:
    rows = []
    for choice in values["choices"]:
        low, high = choice["change"] - choice["half_width"], choice["change"] + choice["half_width"]
        # What earlier versions have saved tells no draws, and has had several.
        is_known = values.get("verdict", {}).get("change", {}).get("n", 2) > 1
        sure = is_known and (low > 0 or high < 0)
        tone = ("good" if high < 0 else "bad") if sure else ""
        chance = f" ±{number(100 * choice['half_width'], 1)}" if is_known else ""
        text = f"{percent(choice['change'])}{chance}"
        cells = (
            Cell(choice["policy"]),
            Cell(text, choice["change"], tone),
            Cell("yes" if sure else "no" if is_known else "unknown"),
        )
        # What earlier versions have saved knows policies only.
        best = values["choices"][0]["policy"] if "advised" not in values else values["advised"]
        is_best = values["is_worth_it"] and choice["policy"] == best
        rows.append(Row(cells, choice["policy"], is_best))
    heads = (
        Head("policy", False),
        Head(_metric(values).lower()),
        Head("beyond chance?", False, "Whether the 95 % interval excludes 0."),
    )
    note = f"Against {values['baseline']}, which has {_goal(values)['baseline_text']}; {MINUS} is better."
    if _goal(values)["name"] == "time":
        note = f"Against {values['baseline']}, which takes {values['baseline_s']:.3g} s; {MINUS} is shorter."
    return Table("Policies on all cores", heads, tuple(rows), note)


def _goal(values: Values) -> Values:
    """What was compared; earlier versions have saved no goal, and compared turnarounds."""
    found = values.get("goal", {"name": "time", "metric": "turnaround", "less": "shorter"})
    return {**found, "unit": "points" if found["metric"] == "late frames" else "%"}


def _metric(values: Values) -> str:
    name: str = _goal(values)["metric"]
    return name[:1].upper() + name[1:]


def _facts(values: Values) -> list[tuple[str, str]]:
    error = values["replayed_s"] / values["recorded_s"] - 1
    told = f"{values['replayed_s']:.3g} s, recorded {values['recorded_s']:.3g} s ({percent(error)})"
    rows = [
        *([("goal", f"{goal['name']} ({goal['why']})")] if (goal := values.get("goal")) else []),
        ("on the recording's own cores", told),
        # What earlier versions have saved says less.
        *([("on faster cores", follows_text(values["follows"], values["rest"]))] if "rest" in values else []),
        *(("a defect", line) for line in values.get("violations", ())),
        ("speed-up of the program", values["speedup"]),
        *([("the model's own error", values["model_error"]["text"])] if "model_error" in values else []),
    ]
    rows += [(f"if it gains {word}", f"{policy} is best") for word, policy in values["best_if"].items()]
    rows += [
        (f"{values['advised']} if it gains {word}", percent(change))
        for word, change in values.get("change_if", {}).items()
    ]
    loops = values.get("loops", {"schedules": ()})
    rows += [
        (
            f"loops: {each['schedule']}",
            f"{loops['share']:.0%} of its work is shared by threads; {values['baseline']} changes by "
            f"{percent(each['change'])}; {each['needs']}",
        )
        for each in loops["schedules"]
    ]
    return rows
