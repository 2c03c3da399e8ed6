"""docs/reports/models/silicon.md and its figure, from what was judged."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

from ampsched.markdown import ALL_BUT_FIRST, page, table
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import opening
from ampsched_lab.silicon import rail, stated
from ampsched_lab.silicon.data import chips, coremark, kept, rows, seven_zip
from ampsched_lab.silicon.fit import BETWEEN_CHIPS, SHARES, fitted_law, sum_of
from ampsched_lab.silicon.judge import AIMS, FIT, JUDGE, Row, of_energy
from ampsched_lab.silicon.lot import halves

TEMPLATE = Path(__file__).with_name("template.md")
TITLES = {
    "coremark": "CoreMark, kinds",
    "seven-zip": "7-zip, kinds",
    "all-cores": "7-zip, all cores over sum",
    "energy": "energy of CoreMark",
}
ROLES = {FIT: "fitted on", JUDGE: "judges"}


def per_cent(value: float) -> str:
    """A share, signed if it is an error."""
    return f"{value:+.1%}"


class Results:
    """All comparisons."""

    def __init__(self, judged: Mapping[str, Any]) -> None:
        """Takes what was judged; energies need no simulation."""
        self.judged = judged
        self.rows = [Row(**row) for row in judged["rows"]]
        self.rows += [row for half in (FIT, JUDGE) for chip in halves()[half] for row in of_energy(chip)]

    def of(self, question: str, half: str | None = None) -> list[Row]:
        """Rows of a question, those that judge first."""
        found = [row for row in self.rows if row.question == question and half in {None, row.half}]
        return sorted(found, key=lambda row: row.half != JUDGE)

    def hits(self, question: str) -> tuple[int, int]:
        """How many rows that judge are within their aim, and how many there are."""
        found = self.of(question, JUDGE)
        return sum(row.is_hit for row in found), len(found)


def _rows(found: Iterable[Row], more: Callable[[Row], Sequence[str]] = lambda _: ()) -> list[list[str]]:
    return [
        [row.chip, row.what, ROLES[row.half], f"{row.measured:.3f}", f"{row.simulated:.3f}",
         f"{per_cent(row.error)}{'' if row.is_hit or row.half == FIT else ' ✗'}", *more(row)]
        for row in found
    ]  # fmt: skip


HEADS = ["chip", "what", "half", "measured", "simulated", "error"]


def _mean_error(found: Iterable[Row]) -> float:
    return mean(abs(row.error) for row in found)


def _all_cores(results: Results) -> str:
    tested = results.judged["tested"]

    def tried(row: Row) -> list[str]:
        found = [tested["ways"]["decompress"].get(row.chip), tested["ways"]["compress"].get(row.chip)]
        found += [tested[each].get(row.chip) for each in ("low", "smt", "unlimited")]
        return ["" if each is None else per_cent(each) for each in found]

    heads = [
        *HEADS,
        "decompression alone",
        "compression alone",
        f"memory of {tested['low_share']:.0%}",
        "siblings gain nothing",
        "no power limits",
    ]
    return table(heads, _rows(results.of("all-cores"), tried), ALL_BUT_FIRST)


def _energy(results: Results) -> str:
    found = []
    for half in (JUDGE, FIT):
        for chip in halves()[half]:
            own = [row for row in results.of("energy", half) if row.chip == chip]
            if own:
                worst = max(own, key=lambda row: abs(row.error))
                hits = sum(row.is_hit for row in own)
                found.append([
                    chip, ROLES[half], str(len(own)), str(hits), f"{_mean_error(own):.1%}",
                    per_cent(mean(row.error for row in own)), f"{per_cent(worst.error)} ({worst.what})",
                ])  # fmt: skip
    return table(
        ["chip", "half", "points", "within 10 %", "mean, absolute", "mean, signed", "worst"],
        found,
        ALL_BUT_FIRST,
    )


def _with_factors(found: Sequence[Row], of: Callable[[Row], str]) -> float:
    """The mean error if each chip, or each of its kinds, had a factor of its own."""
    errors = []
    for name in dict.fromkeys(map(of, found)):
        own = [row.simulated / row.measured for row in found if of(row) == name]
        factor = geometric_mean(own)
        errors += [abs(each / factor - 1) for each in own]
    return mean(errors)


def _directions(results: Results) -> str:
    missed = {(row.chip, row.what) for row in results.of("seven-zip", JUDGE) if not row.is_hit}
    return "; ".join(
        f"{chip} {what}: {per_cent(packed)} and {per_cent(unpacked)}"
        for chip, what, packed, unpacked in results.judged["tested"]["directions"]
        if (chip, what) in missed
    )


def _two_sources() -> float:
    """The largest difference of Tensor's powers at the frequencies that both sources have."""
    clusters = {"middle": "4", "big": "6"}
    found = []
    for name, policy in clusters.items():
        theirs = {int(row["mhz"]): float(row["active_mw"]) for row in rows("wattson")
                  if (row["chip"], row["policy"]) == ("Tensor", policy)}  # fmt: skip
        found += [
            theirs[mhz] / power
            for mhz, _, power in coremark("tensor-g1")[name]
            if mhz in theirs and mhz > 1000
        ]
    return max(found)


def _frequencies(results: Results) -> str:
    found = [
        [chip, name, str(points), f"{average:.1%}", per_cent(worst)]
        for chip, kinds in results.judged["frequencies"].items()
        for name, points, average, worst in kinds
    ]
    return table(["chip", "kind", "points", "mean error", "worst"], found, ALL_BUT_FIRST)


def _misses(found: Sequence[Row]) -> str:
    listed = [f"{row.chip} {row.what} ({per_cent(row.error)})" for row in found if not row.is_hit]
    return f"{'; '.join(listed)}." if listed else "None."


def values(results: Results, picture: str) -> dict[str, str]:
    """All that the template asks for, by name."""
    judged, tested, fitted = results.judged, results.judged["tested"], kept("fitted")
    compress = [
        sum_of(chip, "compress") for half in (FIT, JUDGE) for chip in halves()[half] if seven_zip(chip)
    ]
    before = fitted_law(halves()[FIT], constant=False)
    of_law = {
        half: [row for chip in halves()[half] for row in of_energy(chip, before)] for half in (FIT, JUDGE)
    }
    rates = {core: real for _, core, real, _ in judged["rates"]}
    m1, slow = coremark("apple-m1")["performance"], coremark("snapdragon-765g")["gold"]
    facts = {row.what: row for row in results.of("facts")}
    energy = results.of("energy", JUDGE)
    found = {
        "opening": answer(results, picture),
        "chips": str(len(chips())),
        "able": str(len(halves()[FIT]) + len(halves()[JUDGE])),
        "unchecked": str(len(chips()) - len({row.chip for row in results.rows})),
        "singly": str(len({row.chip for row in results.of("facts")})),
        "judges": ", ".join(halves()[JUDGE]),
        "fits": ", ".join(halves()[FIT]),
        "memory_share": f"{fitted['memory_share']:.0%}",
        "between_chips": f"{BETWEEN_CHIPS:g}",
        "lowest_share": f"{min(SHARES):.0%}",
        "low_share": f"{tested['low_share']:.0%}",
        "factor_compress": f"{fitted['all_threads']['compress']:.2f}",
        "factor_decompress": f"{fitted['all_threads']['decompress']:.2f}",
        "fit_seven_zip": f"{_mean_error(results.of('seven-zip', FIT)):.1%}",
        "fit_coremark": f"{_mean_error(results.of('coremark', FIT)):.1%}",
        "ratios": table([*HEADS, "program"], _rows([*results.of("coremark"), *results.of("seven-zip")], _program), ALL_BUT_FIRST),
        "rates": table(
            ["core type", "half", "measured", "simulated", "error"],
            [[core, ROLES[half], f"{real:.2f}", f"{ours:.2f}", per_cent(ours / real - 1)]
             for half, core, real, ours in judged["rates"]],
            ALL_BUT_FIRST,
        ),
        "misses_ratios": _misses([*results.of("coremark", JUDGE), *results.of("seven-zip", JUDGE)]),
        "frequencies": _frequencies(results),
        "all_cores": _all_cores(results),
        "decompress_hits": str(sum(abs(each) <= AIMS["all-cores"] for each in tested["ways"]["decompress"].values())),
        "compress_low": f"{min(compress):.2f}",
        "compress_high": f"{max(compress):.2f}",
        "unlimited": per_cent(tested["unlimited"]["i7-1360p"]),
        "limited": per_cent(next(row.error for row in results.of("all-cores") if row.chip == "i7-1360p")),
        "energy_points": str(len(energy)),
        "energy": _energy(results),
        "fit_energy_before": f"{_mean_error(of_law[FIT]):.0%}",
        "energy_before": f"{_mean_error(of_law[JUDGE]):.0%}",
        "fit_energy": f"{_mean_error(results.of('energy', FIT)):.0%}",
        "energy_after": f"{_mean_error(energy):.0%}",
        "energy_factor": f"{_with_factors(energy, lambda row: row.chip):.0%}",
        "energy_factors": f"{_with_factors(energy, lambda row: row.chip + row.what.partition(',')[0]):.0%}",
        "directions": _directions(results),
        "icestorm_as_a76": per_cent(tested["swaps"]["icestorm as cortex-a76"] / rates["icestorm"] - 1),
        "firestorm_as_x1": per_cent(tested["swaps"]["firestorm as cortex-x1"] / rates["firestorm"] - 1),
        "a77_as_a76": per_cent(tested["swaps"]["cortex-a77 as cortex-a76"] / rates["cortex-a77"] - 1),
        "m1_low": f"{max(rate / mhz for mhz, rate, _ in m1):.2f}",
        "m1_top": f"{m1[-1][1] / m1[-1][0]:.2f}",
        "half_at_lowest": f"{slow[0][1] / slow[0][0] / (slow[-1][1] / slow[-1][0]):.2f}",
        "two_sources": f"{_two_sources():.2f} times",
        "facts": table(HEADS, _rows(results.of("facts")), ALL_BUT_FIRST),
        "john_half": f"{facts['john, 16 E-cores / 8 P-cores'].simulated / 2:.2f}",
        "john_half_all": f"{tested['john_by_half']:.2f}",
        "law_power": f"{fitted['intel']['power']:.1f}",
        "rails": table(
            ["power of", "points", "d", "nothing shared", "voltage", "voltage and clock"],
            [[what, str(points), f"{share:.2f}", *(f"{each:.1%}" for each in errors)]
             for what, points, share, *errors in rail.judged()],
            ALL_BUT_FIRST,
        ),
        "same_rail": f"{rail.same_rail():.0%}",
        **stated.means(results.rows),
        "hits_facts": str(results.hits("facts")[0]),
        "all_facts": str(results.hits("facts")[1]),
        "llama_half": f"{facts['llama.cpp, 8 threads / 4 big cores'].simulated / 2:.2f}",
    }  # fmt: skip
    for question in TITLES:
        hits, number = results.hits(question)
        name = question.replace("-", "_")
        found |= {f"hits_{name}": str(hits), f"all_{name}": str(number)}
    return found


def _program(row: Row) -> list[str]:
    return [TITLES[row.question].partition(",")[0]]


def answer(results: Results, picture: str) -> str:
    """The first paragraph and the figure."""
    said = []
    for question in ("coremark", "seven-zip", "all-cores", "energy"):
        hits, number = results.hits(question)
        said.append(f"{hits} of {number} ({TITLES[question]}, within {AIMS[question]:.0%})")
    worst = max((row for question in TITLES for row in results.of(question, JUDGE) if question != "energy"),
                key=lambda row: abs(row.error))  # fmt: skip
    sentences = [
        f"**On chips that were not fitted on, these figures meet their aims: {'; '.join(said)}.**",
        "Speeds of unequal cores can be told from public descriptions of their chips; what all cores do together only "
        "in part, and energy not at all without a measurement.",
        f"The worst speed is *{worst.chip}, {worst.what}*, {per_cent(worst.error)}.",
    ]
    return opening(sentences, picture, "Errors on chips that judge, by question")


def draw(results: Results, path: Path) -> None:
    """A row of marks for each question."""
    errors = {
        # Whole per cents are enough for the eye, and a mark for each of hundreds of points is not.
        title: sorted({round(100 * row.error) for row in results.of(question, JUDGE)})
        for question, title in TITLES.items()
    }
    plots.strips(path, "Errors on chips that judge", errors, "error in %; lines at 0 and 10 %", (-10, 0, 10))


def write(path: Path) -> None:
    """Writes the page and the figure beside it."""
    results = Results(kept("judged"))
    picture = path.with_suffix(".svg")
    draw(results, picture)
    template = TEMPLATE.read_text("utf-8")
    path.write_text(page(*template.format(**values(results, picture.name)).strip().split("\n\n")), "utf-8")
