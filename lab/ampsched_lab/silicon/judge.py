"""Measured beside simulated, for every chip: rows, and what the headers of machine files say."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any

from ampsched_lab.silicon.chip import Kind, changed, everything, some, together
from ampsched_lab.silicon.data import SEVEN_ZIP, chips, coremark, kept, seven_zip
from ampsched_lab.silicon.fit import energies, law, memory_share
from ampsched_lab.silicon.lot import halves
from ampsched_lab.silicon.simulated import alone, profile, score

AIMS = {"coremark": 0.10, "seven-zip": 0.10, "all-cores": 0.08, "energy": 0.10, "facts": 0.10}
FIT, JUDGE = "fit", "judge"
JOHN = {"8 P-cores": 118.9, "16 E-cores": 80.9, "32 threads": 108.8}
"""Millions of candidates per second on an i9-13900, one thread on each P-core: openwall/john, issue 5435."""
LIMITED = {"45 W / no limit": 0.44, "65 W / no limit": 0.57, "95 W / no limit": 0.70}
"""Cinebench R23 on an i9-13900K whose power is limited: Boring Text Reviews, i9-13900K (2023)."""
SCALED = {"150 W / 253 W": 1 / (1.10 * 1.035), "205 W / 253 W": 1 / 1.035}
"""Encoding H.265 on one: about 10 % from 150 to 205 W and 3.5 % from there; r/hardware, January 2023."""
LLAMA = {"8 threads": 3.84, "4 big cores": 6.92}
"""Tokens per second on an RK3588: ggml-org/llama.cpp, issue 7176."""


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        question: A key of ``AIMS``.
        half: Whether the chip was fitted on or judges.
        chip: Its name.
        what: Of it.
        measured: A ratio, or mJ per iteration.
        simulated: The same.
    """

    question: str
    half: str
    chip: str
    what: str
    measured: float
    simulated: float

    @property
    def error(self) -> float:
        """0.05: 5 % too much."""
        return self.simulated / self.measured - 1

    @property
    def is_hit(self) -> bool:
        """Whether it is within its aim."""
        return abs(self.error) <= AIMS[self.question]


def half_of(chip: str) -> str:
    """The half that a chip's lot is."""
    return FIT if chip in halves()[FIT] else JUDGE


def scored(kind: Kind, program: str, mhz: int | None = None) -> float:
    """CoreMark, or MIPS of 7-zip (both ways: their sum), of one thread on a core of a kind."""
    programs = SEVEN_ZIP if program == "seven-zip" else (program,)
    return sum(score(each) * kind.speed(each, mhz) for each in programs)


def distinct(chip: str) -> list[Kind]:
    """Clusters that differ in their cores or their clock."""
    found = {(kind.core_type, kind.mhz, kind.l2_kib): kind for kind in reversed(Kind.of(chip))}
    return list(found.values())[::-1]


def of_coremark(chip: str) -> dict[str, float]:
    """CoreMark of each kind at its highest frequency, measured."""
    return {name: points[-1][1] for name, points in coremark(chip).items()}


def of_seven_zip(chip: str) -> dict[str, float]:
    """MIPS of each kind, both ways together, measured."""
    return {name: sum(rates.values()) for name, rates in seven_zip(chip).items() if name != "all"}


def ratios(question: str, chip: str, measured: Mapping[str, float]) -> Iterator[Row]:
    """Each kind over the fastest one."""
    kinds = [kind for kind in distinct(chip) if kind.name in measured]
    if len(kinds) < 2:
        return
    fastest = max(kinds, key=lambda kind: measured[kind.name])
    for kind in kinds:
        if kind is not fastest:
            yield Row(
                question, half_of(chip), chip, f"{kind.name} / {fastest.name}",
                measured[kind.name] / measured[fastest.name],
                scored(kind, question) / scored(fastest, question),
            )  # fmt: skip


def all_cores(chip: str, programs: Sequence[str] = SEVEN_ZIP) -> tuple[float, float]:
    """7-zip on all cores over the sum of all cores alone: measured, and simulated."""
    rates, factors = seven_zip(chip), kept("fitted")["all_threads"]
    kinds = Kind.of(chip)
    total = sum(rates["all"][each] for each in programs)
    singles = sum(kind.cores * rates[kind.name][each] for kind in kinds for each in programs)
    ours = sum(factors[each] * score(each) * everything(chip, each) for each in programs)
    ours_alone = sum(kind.cores * score(each) * kind.speed(each) for kind in kinds for each in programs)
    return total / singles, ours / ours_alone


def of_energy(chip: str, values: Mapping[str, float] | None = None) -> Iterator[Row]:
    """Each operating point's energy by the law, or by one of other values."""
    used, points = values or kept("fitted")["energy"], iter(energies(chip))
    for name, measured in coremark(chip).items():
        for mhz, _, power in measured:
            if power:
                *arguments, energy = next(points)
                yield Row("energy", half_of(chip), chip, f"{name}, {mhz} MHz", energy, law(used, *arguments))


def facts() -> Iterator[Row]:
    """What is known of chips that are not in the data."""

    def fact(chip: str, what: str, measured: float, ours: float) -> Row:
        return Row("facts", JUDGE, chip, what, measured, ours)

    chip, program = "i9-13900k", "coremark"
    ratio, share = john()
    yield fact(chip, "john, 16 E-cores / 8 P-cores", JOHN["16 E-cores"] / JOHN["8 P-cores"], ratio)
    apart = JOHN["8 P-cores"] + JOHN["16 E-cores"]
    yield fact(chip, "john, 32 threads / (P + E)", JOHN["32 threads"] / apart, share)
    for what, measured in (*LIMITED.items(), *SCALED.items()):
        part, whole = (_limited(chip, program, word) for word in what.split(" / "))
        yield fact(chip, what, measured, part / whole)
    little, big, _ = Kind.of("rk3588")
    # These, too: each product of matrices.
    ours = 8 * little.speed(program) / (4 * big.speed(program))
    yield fact(
        "rk3588", "llama.cpp, 8 threads / 4 big cores", LLAMA["8 threads"] / LLAMA["4 big cores"], ours
    )


def john(e_speed: float = 1.0) -> tuple[float, float]:
    """E-cores over P-cores, and all threads over both alone, if E-cores were so fast: its threads share work evenly."""
    chip, program = "i9-13900k", "coremark"
    e_cores = {kind.name for kind in Kind.of(chip)} - {"p"}
    p = sum(some(chip, program, {"p"}, every=2))
    e = e_speed * sum(some(chip, program, e_cores))
    together = some(chip, program, {"p", *e_cores})
    first_e = sum(kind.cores * kind.threads for kind in Kind.of(chip) if kind.name == "p")
    # They wait for the last one.
    slowest = min(*together[:first_e], *(e_speed * each for each in together[first_e:]))
    return e / p, len(together) * slowest / (p + e)


def _limited(chip: str, program: str, limit: str) -> float:
    """What all hardware threads do under a power limit, such as `65 W`, or with none."""
    pl_mw = 1e6 if limit == "no limit" else 1000 * float(limit.removesuffix(" W"))
    return sum(changed(chip, program, (r"(pl[12]_mw) = \d+", rf"\1 = {pl_mw:.0f}"))[0])


def rows() -> list[Row]:
    """All comparisons that need simulations."""
    found: list[Row] = []
    for chip in sorted((*halves()[FIT], *halves()[JUDGE])):
        found += ratios("coremark", chip, of_coremark(chip))
        found += ratios("seven-zip", chip, of_seven_zip(chip))
        if seven_zip(chip):
            found.append(Row("all-cores", half_of(chip), chip, "7-zip, all / sum", *all_cores(chip)))
    return found + list(facts())


def tested() -> dict[str, Any]:
    """Causes of misses, each tried by itself: errors by chip that judges."""
    fitting, judging = ([chip for chip in halves()[half] if seven_zip(chip)] for half in (FIT, JUDGE))
    ways = {program: {chip: _error(all_cores(chip, [program])) for chip in judging} for program in SEVEN_ZIP}
    share, factors = memory_share(fitting, LOW_SHARES)
    low = {chip: _error((all_cores(chip)[0], _together(chip, share, factors))) for chip in judging}
    used, usual = kept("fitted")["memory_share"], kept("fitted")["all_threads"]
    with_limit = [chip for chip in judging if "limit" in chips()[chip]]
    one_less = {
        name: {
            chip: _error((all_cores(chip)[0], _together(chip, used, usual, change))) for chip in with_limit
        }
        for name, change in (
            ("smt", (r"smt_speed = [\d.]+", "smt_speed = 0.5")),
            ("unlimited", (r"(pl[12]_mw) = \d+", r"\1 = 1000000")),
        )
    }
    swapped = {
        f"{kind} as {other}": score("coremark") * found / MHZ
        for (kind, other), found in zip(SWAPS, alone_at([other for _, other in SWAPS]), strict=True)
    }
    return {
        "ways": ways, "low_share": share, "low": low, **one_less, "john_by_half": john(0.5)[1],
        "directions": [row for chip in judging for row in _directions(chip)], "swaps": swapped,
    }  # fmt: skip


MHZ = 1000
SWAPS = (("icestorm", "cortex-a76"), ("firestorm", "cortex-x1"), ("cortex-a77", "cortex-a76"))
"""Core types of chips that judge, and the next documented ones that are wider or narrower."""


def alone_at(core_types: Sequence[str]) -> list[float]:
    """Million instructions of CoreMark per second at 1 GHz on each."""
    return alone([(core, 512, MHZ) for core in core_types], profile("coremark"))


def _directions(chip: str) -> Iterator[tuple[str, str, float, float]]:
    """Chip, kinds, and errors of the ratio of compression and of decompression."""
    rates = seven_zip(chip)
    kinds = distinct(chip)
    fastest = max(kinds, key=lambda kind: sum(rates[kind.name].values()))
    for kind in kinds:
        if kind is not fastest:
            errors = [
                _error(
                    (
                        rates[kind.name][each] / rates[fastest.name][each],
                        scored(kind, each) / scored(fastest, each),
                    )
                )
                for each in SEVEN_ZIP
            ]
            yield chip, f"{kind.name} / {fastest.name}", errors[0], errors[1]


LOW_SHARES = (0.1, 0.15, 0.2, 0.3, 0.4)
"""Of the memory's peak: less than streams get."""


def _error(pair: tuple[float, float]) -> float:
    return pair[1] / pair[0] - 1


def _together(chip: str, share: float, factors: Mapping[str, float], *changes: tuple[str, str]) -> float:
    """7-zip on all cores over the sum, with another memory or other changes."""
    singles = {
        each: sum(kind.cores * score(each) * kind.speed(each) for kind in Kind.of(chip)) for each in SEVEN_ZIP
    }
    peak = chips()[chip]["memory"][0]
    ours = sum(
        singles[each] * factors[each] * together(chip, each, peak * share, *changes) for each in SEVEN_ZIP
    )
    return ours / sum(singles.values())


def frequencies(chip: str) -> list[tuple[str, int, float, float]]:
    """Of each kind: points, mean and worst error of CoreMark at lower frequencies over that at the highest."""
    found = []
    for kind in Kind.of(chip):
        points = coremark(chip).get(kind.name)
        if points:
            top = scored(kind, "coremark") / points[-1][1]
            errors = [scored(kind, "coremark", mhz) / rate / top - 1 for mhz, rate, _ in points[:-1]]
            found.append((kind.name, len(points), sum(map(abs, errors)) / len(errors), max(errors, key=abs)))
    return found


def rates() -> list[tuple[str, str, float, float]]:
    """CoreMark per MHz of each core type at its highest frequency: half, core type, measured, simulated."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for half in (FIT, JUDGE):
        for chip in halves()[half]:
            for kind in distinct(chip):
                if kind.name in coremark(chip):
                    ours = scored(kind, "coremark") / kind.mhz
                    found.setdefault((half, kind.core_type), (of_coremark(chip)[kind.name] / kind.mhz, ours))
    return [(*key, *pair) for key, pair in found.items()]


def headers(found: Sequence[Row]) -> dict[str, list[str]]:
    """What each machine file says of itself."""
    said = {}
    for chip in chips():
        own = [row for row in found if row.chip == chip and row.question != "energy"]
        parts = [
            f"{WORDS[row.question]}{row.what} {row.measured:.2f} measured, {row.simulated:.2f} simulated"
            for row in own
        ]
        if not own:
            kinds = distinct(chip)
            fast, slow = (pick(kinds, key=lambda kind: scored(kind, "coremark")) for pick in (max, min))
            ratio = scored(slow, "coremark") / scored(fast, "coremark")
            parts = [f"speeds *unchecked*: CoreMark {slow.name} / {fast.name} {ratio:.2f} simulated"]
        elif chip in halves()[FIT]:
            parts.insert(0, "the programs were fitted on this chip")
        text = "; ".join(parts)
        said[chip] = wrap(f"{text[0].upper()}{text[1:]}.", 116)
    return said


WORDS = {"coremark": "CoreMark ", "seven-zip": "7-zip ", "all-cores": "", "facts": ""}


def judged() -> dict[str, Any]:
    """All that the page and the files are made of."""
    found = rows()
    return {
        "rows": [asdict(row) for row in found],
        "rates": rates(),
        "headers": headers(found),
        "tested": tested(),
        "frequencies": {
            chip: frequencies(chip) for chip in (*halves()[FIT], *halves()[JUDGE]) if coremark(chip)
        },
    }
