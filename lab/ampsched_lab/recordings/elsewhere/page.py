"""The page of a set of programs, its picture, and the product's table of errors."""

from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil, exp
from pathlib import Path
from statistics import fmean, median

from ampsched.markdown import wrapped
from ampsched.recording import model_error
from ampsched.uncertainty import COVERED, ModelErrors
from ampsched_lab.recordings.elsewhere.found import AWARE, MEASURED, NAMES, RUNS, SCHEDULERS, UNAWARE, Found
from ampsched_lab.recordings.elsewhere.measure import CALIBRATED_ON
from ampsched_lab.recordings.elsewhere.programs import SETS, Program
from ampsched_lab.shared import plots
from ampsched_lab.shared.summary import opening

MEAN_AIM, WORST_AIM, ACCEPTED_AIM, WIDTH_AIM = 0.06, 0.15, 20 / 24, 0.12

TITLES = {
    SETS[0]: "Recorded on one computer, predicted for others",
    SETS[1]: "Fifteen further programs, predicted for other computers",
}
HEAD = """# {title}

<!-- Written by make -C lab truth-elsewhere. -->

{answer}
"""
ABOUT = {
    SETS[0]: """
Each program is recorded on two equal cores of an ordinary computer, as users do. From the recordings alone it is
predicted for machines with unequal cores. An exact virtual machine with such cores then runs the same program with the
same files, in virtual time. Only how fast a program's instructions are on either kind of core is fitted: its CPU time
on two fast and on two slow cores of such a machine tells, and, as the computer's speed varies from run to run, that of
plain runs how fast it was while it recorded. The {count} programs and the rule were written down before the
measurement: the error is the mean prediction of {runs} recordings against the runs there, and a program counts as
refused if `ampsched advise` refuses all its recordings, or if it cannot be recorded.

Linux does not know in these machines which cores are fast. Where a program's threads begin is chance there, and a
program of one thread takes 1 or 2.7 times as long by that; so it runs, and is predicted, twice: with the fast cores
numbered first, and with the slow ones. Under `acfs`, which knows the cores, chance has less to say, and errors are
those of the recordings.

All instructions take the same time in these machines. On the computer that records they do not: what starts and loads
programs takes longer for an instruction than a loop does, as it meets cold caches. One speed for a whole program can't
tell that: `node` has worked for 70 to 110 ms here when its script begins, and for 23 ms there, so it is predicted to
take too long. To tell such errors from those of replays, each program is also recorded on two fast cores of such a
machine, once, as all runs there are alike.

That replays hand out work anew was built with `pigz`, `xargs`, `rayon`, `python-threads`, `python-multiprocessing`,
`go`, `jvm`, `tbb` and OpenMP's programs in view; the others judge it. [Fifteen further programs](elsewhere-further.md)
were measured when all of this had been built.
""",
    SETS[1]: """
How this was measured stands on [the page of the first 24 programs](elsewhere.md). These {count} wait in other ways, and
were written down before they were measured, {runs} recordings each.
Six faults that they have shown are mended, so they do not judge these: the first thread's begin where a library has
started others, and who started those (`ffmpeg`); what a wait by epoll or poll has found (`asyncio`, `erlang`), also
if it was the end; who has ended waits by futexes of their own (`erlang`); jobs with short parts between them
(`lbzip2`, which was 22 % too short).
""",
}
"""How a set was measured."""


def text_of(
    all_programs: Sequence[Program],
    rows: Mapping[str, Found],
    of: str = SETS[0],
    every: Sequence[Found] = (),
) -> str:
    """The page of a set; `every`: what is known of all programs, for the bands of the product's table."""
    tried = [(program, rows.get(program.name, Found())) for program in all_programs]
    known = [(program, row) for program, row in tried if row.is_known]
    taken = [(program, row) for program, row in known if not row.refused and row.predicted]
    one, other = (f"`{name}`, {_mean(_errors(taken, name))}" for name in SCHEDULERS)
    there = _mean(_errors(taken, AWARE, is_there=True))
    accepted = ceil(ACCEPTED_AIM * len(tried))
    answer = opening(
        [
            f"**{len(taken)} of {len(known)} programs are accepted (aim: {accepted} of {len(tried)}).**",
            f"Under a scheduler that knows the cores, {other}; by recordings made on two fast cores of such a "
            f"machine, whose instructions take as long, {there}.",
            f"Under one that does not, so that placing is chance, {one}.",
        ],
        f"{NAMES[of]}.svg",
        "Errors of predicted times by program",
    )
    about = ABOUT[of].format(runs=RUNS, count=len(tried))
    lines = [HEAD.format(title=TITLES[of], answer=answer), about.lstrip()]
    ran = {name for _, row in known for times in row.measured.values() for name in times}
    if len(ran) < len(CALIBRATED_ON):
        lines += [f"They ran on {' and '.join(sorted(ran))} so far.", ""]
    for name in filter(partial(_errors, known), SCHEDULERS):
        lines += [f"## Errors of predicted times under `{name}`", "", *_table(known, name), ""]
    lines += [
        f"## Errors by recordings made there, under `{AWARE}`",
        "",
        *_table(known, AWARE, is_there=True),
        "",
    ]
    lines += ["## By kind of program", "", *_kinds(taken), ""]
    if every:
        lines += [*_bands(every), ""]
    if left := [f"`{program.name}`" for program, row in tried if not row.is_known]:
        lines += [f"Not measured yet: {', '.join(left)}.", ""]
    lines += ["## What went wrong", ""]
    wrong = [(program, row.refused or row.failed) for program, row in known if row.refused or row.failed]
    lines += [f"* `{program.name}`: {' '.join(why.split())}" for program, why in wrong] or ["Nothing."]
    return wrapped("\n".join(lines) + "\n")


Known = Sequence[tuple[Program, Found]]


def _errors(known: Known, scheduler: str, is_there: bool = False) -> list[float]:
    return [error for _, row in known for error in row.errors(scheduler, is_there).values()]


def _kinds(taken: Known) -> list[str]:
    """A row for each kind of program."""
    ways = {name: (name, False) for name in SCHEDULERS} | {f"{AWARE}, recorded there": (AWARE, True)}
    heads = " | ".join(f"{way}: mean error | worst" for way in ways)
    lines = [f"| kind | programs | {heads} |", "|---|---|" + "---|---|" * len(ways)]
    for kind in dict.fromkeys(program.kind for program, _ in taken):
        own = [(program, row) for program, row in taken if program.kind == kind]
        found = [_errors(own, *way) for way in ways.values()]
        cells = [
            f"{fmean(map(abs, errors)):.1%} | {max(errors, key=abs):+.1%}" if errors else " | "
            for errors in found
        ]
        lines.append(f"| {kind} | {len(own)} | {' | '.join(cells)} |")
    return lines


def _bands(rows: Sequence[Found]) -> list[str]:
    """How wide the bands of the table are, and what they hold of programs that have no part in them."""
    lines = [
        "## Bands of the model's error",
        "",
        f"Answers of `ampsched` state a band of {COVERED:.0%} by the errors of programs of the same kind, of both sets. "
        "Here each program is judged by the others' errors. Of a change, what is measured is chance, too: each order "
        "of the cores ran once.",
        "",
        f"| question | predictions | inside their band (aim: {COVERED:.0%}) | half the width, median (aim: {WIDTH_AIM:.0%}) |",
        "|---|---|---|---|",
    ]
    questions = {
        f"time under `{AWARE}`": lambda row: list(row.logs(AWARE).values()),
        f"change from `{UNAWARE}` to `{AWARE}`": Found.changes,
    }
    for question, errors_of in questions.items():
        held, widths = [], []
        for row in rows:
            alike = [
                other for other in rows if other is not row and other.like == row.like and not other.refused
            ]
            errors = [] if row.refused else errors_of(row)
            low, high = ModelErrors(tuple(each for other in alike for each in errors_of(other))).band(0.0)
            held += [low <= exp(error) - 1 <= high for error in errors]
            widths += [(high - low) / 2] * len(errors)
        lines.append(f"| {question} | {len(held)} | {fmean(held):.0%} | {median(widths):.1%} |")
    return lines


def _mean(errors: Sequence[float]) -> str:
    """The mean error, and the worst, in words."""
    if not errors:
        return "nothing is known"
    mean, worst = fmean(map(abs, errors)), max(errors, key=abs)
    return (
        f"predicted times are {mean:.1%} off on average (aim: {MEAN_AIM:.0%}) and {worst:+.1%} at worst "
        f"(aim: {WORST_AIM:.0%})"
    )


def table_of(rows: Sequence[Found]) -> str:
    """The product's table: errors of predictions by recordings made here, under the scheduler that knows the cores.

    Empty if there is none of some kind.
    """
    lines = [
        "# Written by make -C lab truth-elsewhere: errors of predicted times, as parts of the time; of changes from",
        f"# {UNAWARE} to {AWARE} ln(measured / predicted).",
        f'date = "{MEASURED}"',
    ]
    for kind in model_error.KINDS:
        own = [row.errors(AWARE).values() for row in rows if row.like == kind and not row.refused]
        errors = [error for each in own for error in each]
        if not errors:
            return ""
        mean, worst = fmean(map(abs, errors)), max(errors, key=abs)
        count = sum(1 for each in own if each)
        lines += ["", f"[{kind}]", f"programs = {count}", f"runs = {len(errors)}"]
        lines += [f"mean = {mean:.4f}", f"worst = {worst:.4f}"]
        changes = [error for row in rows if row.like == kind and not row.refused for error in row.changes()]
        lines.append(f"change = [{', '.join(f'{error:.3f}' for error in sorted(changes))}]")
    return "\n".join(lines) + "\n"


def draw(all_programs: Sequence[Program], rows: Mapping[str, Found], path: Path) -> None:
    """A row of marks for each program under the scheduler that knows the cores, and one of all under Linux."""
    unaware, aware = SCHEDULERS
    known = [(program, rows[program.name]) for program in all_programs if program.name in rows]
    taken = [(program, row) for program, row in known if row.predicted]
    strips = {program.name: list(row.errors(aware).values()) for program, row in taken}
    off = fmean([abs(error) for errors in strips.values() for error in errors] or [0])
    strips["all, recorded there"] = _errors(taken, aware, is_there=True)
    strips[f"all, {unaware}"] = _errors(taken, unaware)
    per_cent = {name: [100 * error for error in errors] for name, errors in strips.items() if errors}
    title = f"Predicted times are {off:.1%} off on average on other machines".replace("%", " %")
    plots.strips(path, title, per_cent, f"error of the time, %; under {aware} if no other is named", (0,))


def _table(known: Known, scheduler: str, is_there: bool = False) -> list[str]:
    names = list(CALIBRATED_ON)
    lines = [
        f"| program | kind | here, ms | follows the cores | gain of fast cores | {' | '.join(names)} | |",
        "|---|---|---|---|---|" + "---|" * len(names) + "---|",
    ]
    for program, row in known:
        errors = row.errors(scheduler, is_there)
        cells = [f"{errors[name]:+.1%}" if name in errors else "" for name in names]
        note = "refused" if row.refused else "did not run there" if row.failed else ""
        here = median(each.wall_ns for each in row.plain) / 1e6
        facts = [f"{program.name}: {program.what}", program.kind, f"{here:,.0f}", f"{row.follows:.0%}"]
        lines.append(f"| {' | '.join([*facts, f'{row.speedup(names[0]):.2f}', *cells, note])} |")
    return lines
