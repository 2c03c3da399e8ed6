"""docs/reports/models/selftest.md and its figure, from what was measured."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from ampsched.markdown import page, table
from ampsched.proving.measuring import Measured
from ampsched.proving.programs import PROGRAMS
from ampsched.proving.report import Proof, errors_of
from ampsched.recording.cores import Cores
from ampsched.recording.model_error import model_error_of
from ampsched.recording.setting import Setting
from ampsched.statistics import Estimate
from ampsched_lab.campaign.store import Store
from ampsched_lab.proving.run import PLACES, ROUNDS, SELFTEST_S, read
from ampsched_lab.settings import judge, plan
from ampsched_lab.settings import report as settings
from ampsched_lab.settings.run import RESULTS as RECORDED
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import counted, opening

TEMPLATE = Path(__file__).with_name("template.md")


def selftests(values: Mapping[str, Any]) -> dict[str, list[Proof]]:
    """What self-tests have found, by machine."""
    return {
        name: [_proof(row, row["setting"]) for row in report["proofs"]] for name, report in values.items()
    }


def checks(values: Mapping[str, Any]) -> dict[str, list[Proof]]:
    """What checks have found, by machine."""
    return {
        name: [_proof(row | {"program": row["name"]}, row | {"policy": plan.LINUX}) for row in rows]
        for name, rows in values.items()
    }


def _proof(row: Mapping[str, Any], given: Mapping[str, Any]) -> Proof:
    """A row of a file, with the band that the product's tables give today."""
    cpus = given["cpus"]
    # A report has no more than their number: a name for readers.
    cores = (
        None
        if not cpus
        else Cores(f"{cpus} cores", tuple(range(cpus)))
        if isinstance(cpus, int)
        else Cores(given["cores"], tuple(cpus))
    )
    setting = Setting(given["policy"], given["threads"], cores)
    measured = Measured(**{**row["measured"], "change": Estimate(**row["measured"]["change"])})
    band = errors_of(setting, model_error_of(row["kind"])).band(row["predicted"])
    return Proof(row["kind"], row["program"], setting, row["predicted"], band, measured)


def answer(tests: Mapping[str, Sequence[Proof]], checked: Mapping[str, Sequence[Proof]], picture: str) -> str:
    """The first paragraph and the figure."""
    errors = "; ".join(
        f"{fmean(abs(each.error) for each in rows):.1%} off on {name}, at worst {_worst(rows):+.1%}"
        for name, rows in tests.items()
    )
    every = [each for rows in (*tests.values(), *checked.values()) for each in rows]
    known = [each for each in every if each.measured.change.half_width <= plan.NEAR]
    pairs = counted(min(each.measured.pairs for rows in tests.values() for each in rows), "pair")
    loops = [
        (each.measured.change.mean, _campaign_of(name, each))
        for name, rows in checked.items()
        for each in rows
    ]
    same = sum((ours < 0) == (theirs < 0) for ours, theirs in loops)
    off = fmean(abs(ours - theirs) for ours, theirs in loops)
    return opening(
        [
            f"**In exact machines the times that `ampsched selftest` predicts are {errors}, by {pairs} each.**",
            f"Of {len(known)} changes that it and `ampsched advise --check` measured to {100 * plan.NEAR:.0f} points, "
            f"{sum(each.is_inside for each in known)} lie in the bands that the product states.",
            f"The loop of `--check` called the advised setting faster or slower as a campaign did that had run there "
            f"before, for {same} of {len(loops)} programs; their changes differ by {100 * off:.1f} points on average.",
        ],
        picture,
        "Errors of predicted times of self-tests and checks, by machine",
    )


def _worst(rows: Sequence[Proof]) -> float:
    return max((each.error for each in rows), key=abs)


def _campaign_of(name: str, proof: Proof) -> float:
    """The change of its time that a campaign measured in the same machine, each setting once."""
    place = _place(name)
    [kind] = (each for each in plan.KINDS if each.name == proof.program)
    times = judge.measured(Store(RECORDED), place, kind)
    return times[_setting(proof)] / times[place.usual] - 1


def _place(name: str) -> plan.Place:
    [place] = (each for each in PLACES if each.name == name)
    return place


def _setting(proof: Proof) -> plan.Setting:
    """The advised setting, as the campaign calls it."""
    cores, threads = proof.advised.cores, proof.advised.threads
    assert cores
    assert threads
    return plan.Setting(threads, cores.cpus)


def tables_of_tests(tests: Mapping[str, Sequence[Proof]]) -> str:
    """A table per machine."""
    heads = ["program", "on", "predicted", "measured", "pairs", "error", "in the band"]
    return "\n\n".join(
        f"### {name}\n\n"
        + table(
            heads,
            [
                [
                    each.program or "",
                    each.advised.cores.name if each.advised.cores else "all",
                    f"{each.predicted:+.1%}",
                    _points(each.measured),
                    str(each.measured.pairs),
                    f"{each.error:+.1%}",
                    "✓" if each.is_inside else "✗",
                ]
                for each in rows
            ],
            (2, 3, 4, 5),
        )
        for name, rows in tests.items()
    )


def table_of_checks(checked: Mapping[str, Sequence[Proof]]) -> str:
    """What was advised, predicted, measured by the loop and measured by the campaign."""
    heads = [
        "program",
        "advised",
        "predicted",
        "loop",
        "pairs",
        "took, s",
        "campaign",
        "in the band",
        "known",
    ]
    cells = [
        [
            f"{each.program}, {name}",
            _place(name).words(_setting(each)),
            f"{each.predicted:+.1%}",
            _points(each.measured),
            str(each.measured.pairs),
            f"{each.measured.took_s:.0f}",
            f"{_campaign_of(name, each):+.1%}",
            "✓" if each.is_inside else "✗",
            "✓" if each.measured.is_known else "✗",
        ]
        for name, rows in checked.items()
        for each in rows
    ]
    return table(heads, cells, (2, 3, 4, 5, 6))


def missing(tests: Mapping[str, Sequence[Proof]]) -> str:
    """Programs that no self-test had time for."""
    found = {
        name: [each for each in PROGRAMS if each not in {row.program for row in rows}]
        for name, rows in tests.items()
    }
    told = [f"{', '.join(f'*{each}*' for each in names)} on {name}" for name, names in found.items() if names]
    return "; ".join(told) or "no program"


def _points(measured: Measured) -> str:
    return f"{measured.change.mean:+.1%} ±{measured.change.half_width:.1%}"


def table_of_people() -> str:
    """The direction that owners of unequal cores measured, beside our advice and the exact machines."""
    rows = settings.read()
    cells = []
    for each in settings.PUBLIC:
        direction = {True: "fast cores only", False: "all cores", None: ""}[each.fast_is_better]
        direction = ", ".join([direction] * bool(direction) + ["no figures"] * ("no figures" in each.said))
        for row in (row for row in rows if row.program == each.program):
            exact = row.fast_ms / row.usual_ms - 1
            agrees = (exact < 0) == each.fast_is_better and (row.advised != row.usual) == each.fast_is_better
            verdict = "" if each.fast_is_better is None else "✓" if agrees else "✗"
            advice = "refused" if row.refusal else row.advised
            cells.append([f"{each.program}, {row.machine}", direction, advice, f"{exact:+.1%}", verdict])
    return table(
        ["program", "people: faster on", "our advice", "exact: fast cores only", "agree"], cells, (3,)
    )


def draw(tests: Mapping[str, Sequence[Proof]], checked: Mapping[str, Sequence[Proof]], path: Path) -> None:
    """A row of marks for each machine and question."""
    strips = {
        f"{what}, {name}": [100 * each.error for each in rows]
        for what, by_name in (("selftest", tests), ("--check", checked))
        for name, rows in by_name.items()
    }
    plots.strips(path, "How far predicted times are off", strips, "error of the time, %", (0,))


def write(path: Path) -> None:
    """Writes the page and the figure beside it."""
    values = read()
    tests, checked = selftests(values["selftest"]), checks(values["checks"])
    picture = path.with_suffix(".svg")
    draw(tests, checked, picture)
    told: dict[str, Any] = {
        "opening": answer(tests, checked, picture.name),
        "rounds": ROUNDS,
        "time_s": SELFTEST_S,
        "tests": tables_of_tests(tests),
        "checks": table_of_checks(checked),
        "people": table_of_people(),
        "missing": missing(tests),
    }
    path.write_text(page(*TEMPLATE.read_text("utf-8").format(**told).strip().split("\n\n")), "utf-8")


def main() -> None:
    """Writes the page from what is kept."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--page", type=Path, required=True, help="the page to write")
    write(options.parse_args().page)


if __name__ == "__main__":
    main()
