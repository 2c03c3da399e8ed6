"""``ampsched selftest``, and ``ampsched advise --check``: what was predicted beside what is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ampsched._core import InputError
from ampsched.catalog import is_this
from ampsched.cli import options, render
from ampsched.cli.consoles import errors
from ampsched.cli.output import Output, with_format
from ampsched.cli.progress import Phases
from ampsched.cli.typed import runnable
from ampsched.files import PROOF, check_target, check_writable
from ampsched.kinds import RECORDING

if TYPE_CHECKING:
    from ampsched.proving.report import Proof
    from ampsched.proving.selftest import Selftest
    from ampsched.recording.answer import Advice
    from ampsched.statistics import Estimate

EXAMPLES = render.examples("ampsched selftest", "ampsched selftest --quick --report selftest.json")
TIME_S, QUICK_S = 600.0, 120.0
REPORT = "Write a small file to attach to an issue: predictions, measurements, kinds of cores, version of the kernel; "
_HOW: dict[str, Any] = {"rich_help_panel": "Prove it here"}


def _needs_check(context: typer.Context, option: typer.CallbackParam, value: float) -> float:
    """Refuses an option that is given without ``--check``, which is read first.

    Raises:
        InputError: It is.
    """
    source = context.get_parameter_source(option.name or "")
    is_given = source is not None and source.name == "COMMANDLINE"
    if is_given and not context.params.get("check"):
        raise InputError(f"{option.opts[0]} {value:g}: nothing is measured without --check")
    return value


Asked = Annotated[
    bool,
    typer.Option(
        "--check",
        is_eager=True,
        help="Then run it here, alternately as today and as advised, without input, and say what was measured.",
        **_HOW,
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        "--check-time",
        parser=options.number,
        callback=_needs_check,
        metavar="X",
        help="About how many seconds --check may take; it ends once the difference is known to 2 %.",
        **_HOW,
    ),
]
Report = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help=f"{REPORT}nothing that names anybody.", **_HOW),
]
Seed = Annotated[
    int, typer.Option("--seed", parser=options.whole, metavar="N", help="Seed of the order of runs.")
]


@with_format
def selftest(
    quick: Annotated[bool, typer.Option("--quick", help="Two minutes instead of ten.")] = False,
    report: Report = None,
    seed: Seed = 1,
    *,
    output: Output,
) -> None:
    """Say how exact the simulator is on this computer: predict small programs here, and run them.

    Six programs are recorded: threads and processes with equal shares, threads with barriers, with a queue, beside one
    that sleeps, and a pipeline. Each is predicted for half of the cores, for one if there are few, and for each kind of
    cores; then it runs alternately there and on all cores, until the change is known to 2 % or its part of the time is
    over. Other programs that run meanwhile make the answer worse.
    """
    from ampsched.proving import selftest as proving
    from ampsched.proving.energy import find_meter

    check_report(report)
    phases = Phases(hidden=output.is_data)

    def step(what: str, done: int, total: int) -> None:
        phases.begin(f"{what} ({done} of {total} comparisons done)")

    try:
        found = proving.selftest(
            time_s=QUICK_S if quick else TIME_S, seed=seed, meter=find_meter(), step=step
        )
    finally:
        phases.end()
    output.show(
        value=found.to_dict,
        rows=lambda: found.to_dict()["rows"],
        text=lambda console: print_selftest(console, found),
    )
    write(found.proofs, report)


def print_selftest(console: Console, found: Selftest) -> None:
    """Prints the table, and what it amounts to."""
    table = render.table("program", "setting", "predicted", "measured", "pairs", "error")
    for each in found.proofs:
        table.add_row(
            each.program or "",
            each.advised.name,
            f"{each.predicted:+.1%}",
            _points(each.measured.change),
            str(each.measured.pairs),
            f"{each.error:+.1%}",
        )
    console.print(table)
    for line in summary(found):
        console.print(line, soft_wrap=True, markup=False)


def summary(found: Selftest) -> list[str]:
    """What the table amounts to, for those who see it for the first time."""
    late = [each for each in found.proofs if not each.measured.is_known]
    return [
        *(_exactness(found) if found.proofs else ["Nothing was measured."]),
        *([f"Not known to 2 %, as the time was over: {_names(late)}"] if late else []),
        *dict.fromkeys(_disturbed(each) for each in found.proofs if _disturbed(each)),
        f"Energy: {_energies(found.proofs) or f'not measured: {found.meter}'}",
        *(f"Left out: {each}" for each in found.left),
    ]


def _exactness(found: Selftest) -> list[str]:
    """How far predictions are off here, and what that means for answers."""
    worst, (inside, judged) = found.worst, found.inside
    return [
        f"Predicted times are {found.mean:.1%} off on this computer on average, and {worst.error:+.1%} at worst "
        f"({_names([worst])}); +: longer than measured.",
        f"Elsewhere they were {found.shipped:.1%} off, which is why ampsched advise states a range beside each "
        f"prediction: {inside} of {judged} changes measured here lie within theirs.",
    ]


def _names(proofs: Sequence[Proof]) -> str:
    """Programs, each with its settings."""
    settings: dict[str, list[str]] = {}
    for each in proofs:
        settings.setdefault(each.program or "", []).append(each.advised.name)
    return "; ".join(f"{program}, {', '.join(names)}" for program, names in settings.items())


def _energies(proofs: Sequence[Proof]) -> str:
    known = [(each, each.measured.energy) for each in proofs if each.measured.energy is not None]
    return "; ".join(f"{each.program}, {each.advised.name} {energy.mean:+.1%}" for each, energy in known)


def _disturbed(proof: Proof) -> str:
    """What is said if others have taken much."""
    from ampsched.recording.refusal import FOREIGN_MAX

    share = proof.measured.foreign or 0.0
    return f"{proof.program}: other programs took {share:.0%} of the CPUs" if share > FOREIGN_MAX else ""


@dataclass(frozen=True, slots=True)
class Checked:
    """What ``advise --check`` has found.

    Attributes:
        proof: What was predicted and measured; none if no other setting is advised that could run.
        energy: What told energy, or why nothing did.
    """

    proof: Proof | None = None
    energy: str = ""

    def lines(self) -> list[str]:
        """In words."""
        if self.proof is None:
            return ["checked here: nothing, as no other setting is advised that could run"]
        proof, measured, change = self.proof, self.proof.measured, self.proof.measured.change
        took = f"{measured.pairs} pairs, {measured.took_s:.0f} s, orders by seed {measured.seed}"
        low, high = (f"{100 * end:+.0f}" for end in proof.band)
        told = [
            f"checked here: {proof.advised.name} takes {_time(measured.advised_s)} instead of "
            f"{_time(measured.today_s)}: {_points(change)} ({took})",
            f"predicted: {proof.predicted:+.1%}, with the model's own error {low} to {high} %: what was measured is "
            f"{'inside' if proof.is_inside else 'outside'}",
        ]
        if not measured.is_known:
            told.append("the time was over before the change was known to 2 % (--check-time sets it)")
        energy = measured.energy
        told.append(
            f"energy: not measured: {self.energy}"
            if energy is None
            else f"energy, by {self.energy}: {_points(energy)}; it was not predicted"
        )
        if measured.foreign is not None:
            told.append(f"other programs took {measured.foreign:.0%} of the CPUs' time meanwhile")
        return told

    def to_dict(self) -> dict[str, Any] | None:
        """Plain values, for JSON."""
        return None if self.proof is None else {**self.proof.to_dict(), "energy_by": self.energy}


def check_asked(
    machine: str | None, goal: str | None, target: list[str], time_s: float, report: Path | None
) -> None:
    """Tries what ``--check`` is asked for, before anything is recorded.

    Raises:
        InputError: It cannot be measured here, or nothing is to be measured.
    """
    if machine is not None and not is_this(machine):
        raise InputError(f"--check: it runs on this computer, not on {machine} (leave --machine out)")
    if goal not in (None, "time"):
        raise InputError(f"--check: it measures times, and the goal is {goal}")
    if target[0].endswith(RECORDING):
        raise InputError(
            f"--check: {target[0]} is a recording; the command is needed, as in advise --check -- COMMAND"
        )
    if not time_s > 0:
        raise InputError(f"--check-time {time_s:g} is not above 0")
    check_report(report)


def check_report(report: Path | None) -> None:
    """Tries whether the file can be written.

    Raises:
        InputError: It is a folder, its folder is missing, or it is something else than a report.
        OSError: It cannot be written.
    """
    if report is not None:
        check_target("--report", report, PROOF)
        check_writable(report)


def prove(advice: Advice, command: list[str], time_s: float, output: Output) -> Checked:
    """Runs what was advised beside what is done today.

    Raises:
        InputError: The program cannot be run in one of both, or fails.
    """
    from ampsched.proving.energy import find_meter
    from ampsched.proving.measuring import measure
    from ampsched.proving.report import Proof, errors_of

    if advice.goal.name != "time":
        raise InputError(f"--check: it measures times, and the goal is {advice.goal.text} (see --goal)")
    best = runnable(advice)
    if best is None:
        return Checked()
    today, advised, predicted = advice.usual, best.setting, best.change.mean
    meter, why = find_meter()
    phases = Phases(hidden=output.is_data)
    try:
        phases.begin("running today's setting and the advised one alternately")
        measured = measure(command, today, advised, time_s=time_s, meter=meter)
    finally:
        phases.end()
    errors = advice.model_error
    band = errors_of(advised, errors).band(predicted)
    return Checked(Proof(errors.kind, None, advised, predicted, band, measured), meter.name if meter else why)


def write(proofs: Sequence[Proof], report: Path | None) -> None:
    """Writes the file that is asked for, and shows what is in it."""
    if report is None:
        return
    if not proofs:
        errors().print(f"{report} is not written: nothing was measured", soft_wrap=True, markup=False)
        return
    from ampsched.proving.report import write_report

    text = write_report(proofs, report)
    told = f"written: {report}, which holds no more than this:\n{text}"
    errors().print(told, soft_wrap=True, markup=False, highlight=False)


def _points(change: Estimate) -> str:
    return f"{change.mean:+.1%} ±{change.half_width:.1%}"


def _time(seconds: float) -> str:
    from ampsched.comparison import time_text

    return time_text(1e3 * seconds)
