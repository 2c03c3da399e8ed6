"""``ampsched advise``."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.console import Console

from ampsched._core import InputError
from ampsched.catalog import Catalog, is_this
from ampsched.cli import options, proving, render, reporting, typed
from ampsched.cli.keeping import Keeping, with_keeping
from ampsched.cli.output import Output, with_format
from ampsched.cli.progress import Phases
from ampsched.comparison import time_text
from ampsched.files import temporary_folder
from ampsched.kinds import RECORDING
from ampsched.recording.goals import GOALS, GOVERNOR, check_goal
from ampsched.uncertainty import MARGIN, UNMEASURED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ampsched.recording.answer import Advice
    from ampsched.recording.check import Check
    from ampsched.recording.goals import GoalName
    from ampsched.recording.search import Tried
    from ampsched.recording.setting import Setting

EXAMPLES = render.examples(
    "ampsched advise -- ./my_program --threads 4",
    "ampsched advise -- ./my_program --threads {threads}   (records it with several numbers of threads)",
    "ampsched advise my_program.ampr --machine hybrid-8P16E",
    "ampsched advise my_program.ampr -m pixel -p linux,abreast,colab --speedup 1.8",
    "ampsched advise first.ampr second.ampr third.ampr -m pixel   (runs of one command: how much they differ)",
    "ampsched advise app.ampr --machine pixel --goal energy",
)
SHOWN = 3


@with_format
@with_keeping
def advise(
    target: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RECORDINGS | -- COMMAND",
            help="A recording, or several of one command or a folder of them; or a command that is recorded first.",
        ),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            "-m",
            metavar="NAME",
            help="The machine to run it on; by default this computer.",
            autocompletion=options.complete_machine,
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAMES",
            help="Policies a,b, against linux; by default those for unequal cores. With linux alone: threads and cores only.",
            autocompletion=options.complete_policy,
        ),
    ] = None,
    speedup: Annotated[
        float | None,
        typer.Option(
            "--speedup",
            parser=options.number,
            metavar="RATIO",
            help="How many times as fast the program is on a fast core as on a slow one, if you know it; 0: as most are.",
        ),
    ] = None,
    goal: Annotated[
        str | None,
        typer.Option(
            "--goal",
            metavar="GOAL",
            help=f"What counts: {', '.join(GOALS)}; by default time, of an interactive recording frames or latency.",
            autocompletion=lambda: list(GOALS),
        ),
    ] = None,
    governor: Annotated[
        str | None,
        typer.Option(
            "--governor",
            metavar="NAMES",
            help=f"Who sets the frequencies; by default {GOVERNOR} if the goal is not time, else none.",
            autocompletion=options.complete_governor,
        ),
    ] = None,
    repeat: Annotated[
        int,
        typer.Option(
            "--repeat",
            "-r",
            parser=options.whole,
            metavar="N",
            help="Number of seeds: as many draws of all that is random, the same ones for every policy.",
        ),
    ] = 5,
    margin: options.Margin = MARGIN,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway",
            help="Answer even if the replay does not reproduce the recording, or the program has failed.",
        ),
    ] = False,
    html: options.Html = None,
    check: proving.Asked = False,
    check_time: proving.Seconds = 120.0,
    report: proving.Report = None,
    *,
    output: Output,
    keeping: Keeping,
) -> None:
    """Which policy and which cores are best for your program, by how much, how sure that is, and how to run it now.

    The recording is replayed on the machine under each policy: work and dependences, beside the system's own noise.
    First it is replayed on the cores that it was made on, on slower and faster ones, and on a single one. There is no
    advice if that takes more than 10 % longer or shorter than the recording, or breaks a law at another speed, as by
    going on before its cause; nor if the program has failed, has hardly worked, or, if the goal is time, mostly waits
    for other things than work, such as clocks.

    Of several recordings of a command the middle one is replayed, and pieces of its work vary as threads' work does
    from one recording to the next. Of a single one they vary by 5 %, which is assumed.

    Where {threads} stands in a command, numbers of threads are tried: as many as there are cores of each set, and as
    all cores. The answer then begins with how many threads are best on which cores.

    Interactive programs wait for vsync, timers or input, and take as long whatever one does: of them late frames,
    wake-up latency or energy are compared.

    With --apply, the best setting that needs no scheduler of ours is kept, and --undo takes it back.
    """
    if keeping.undo:
        keeping.take_back(target or [])
        return
    if not target:
        raise InputError("advise needs a recording or, behind --, a command")
    target = _listed(target)
    place = keeping.place(target, machine)
    if check:
        proving.check_asked(machine, goal, target, check_time, report)
    elif report:
        raise InputError("--report needs --check: nothing else is measured")
    from ampsched.recording.advice import POLICIES, check_request
    from ampsched.recording.advice import advise as answer
    from ampsched.recording.setting import PLACE

    policies = options.split(policy, "policy") if policy else POLICIES
    check_request(machine, policies)
    check_goal(goal, governor)
    with temporary_folder("ampsched-advise-") as folder:
        # This computer is measured when there is something to advise on; numbers of threads are those of its cores.
        is_open = any(PLACE in word for word in target)
        recording, command, checked = (Path(), target, None) if is_open else _recorded(target)
        name, where, usual = _machine(machine, folder)
        many = _recorded_with_threads(target, name, policies) if is_open else {}
        phases = Phases(hidden=output.is_data)
        try:
            found = answer(
                many or recording,
                name,
                policies,
                speedup=speedup,
                usual_speedup=usual,
                goal=cast("GoalName | None", goal),
                governor=governor,
                repeat=repeat,
                margin=margin,
                anyway=anyway,
                checked=checked,
                step=phases.begin,
                progress=phases.progress,
            )
        finally:
            phases.end()
        proved = proving.prove(found, target, check_time, output) if check else None

    def text(console: Console) -> None:
        for line in [*lines(found, where, command), *(proved.lines() if proved else [])]:
            console.print(line, soft_wrap=True)

    output.show(
        value=lambda: found.to_dict() | {"checked": proved and proved.to_dict()},
        rows=lambda: found.to_dict()["settings"],
        text=text,
    )
    reporting.advice(html, found, where, quiet=output.is_data)
    if proved:
        proving.write([proved.proof] if proved.proof else [], report)
    keeping.keep(place, [*(each.setting for each in found.choices_of_settings), found.usual])


def _listed(target: list[str]) -> list[str]:
    """The target; instead of a folder the recordings in it."""
    if len(target) != 1 or not Path(target[0]).is_dir():
        return target
    from ampsched.recording.several import recordings_in

    return [str(each) for each in recordings_in(Path(target[0]))]


def _recorded(target: list[str]) -> tuple[Path | list[Path], list[str], Check | None]:
    """The recordings; the command that they are of, if it was given, and how good its replay is, if that was tried."""
    if all(each.endswith(RECORDING) for each in target):
        return [Path(each) for each in target], [], None
    if f"{RECORDING}:" in target[0]:
        raise InputError(f"{target[0]}: advise takes a recording without parameters (see --speedup)")
    if len(target) > 1 and target[0].endswith(RECORDING):
        raise InputError(f"{target[0]}: is a recording, so {target[1]} has no meaning behind it")
    if len(target) == 1 and Path(target[0]).is_file() and not os.access(target[0], os.X_OK):
        raise InputError(
            f"{target[0]} is neither a recording nor executable (turn a trace into a recording first: ampsched import "
            f"{shlex.quote(target[0])} --machine NAME -o trace{RECORDING})"
        )
    from ampsched.cli.recording import default_out

    out = default_out(target)
    return out, target, _record(target, out)


def _record(command: list[str], out: Path) -> Check | None:
    """Records a command; how good its replay is, if that was tried."""
    from ampsched.cli.recording import check_replaceable, tell
    from ampsched.recording.preload import record

    check_replaceable(out)
    return tell(record(command, out).recording, out)


def _recorded_with_threads(target: list[str], machine: str, policies: Sequence[str]) -> dict[int, Path]:
    """Recordings of a command by the number of threads, if there is something to try."""
    from ampsched.cli.recording import default_out
    from ampsched.recording.advice import check_request
    from ampsched.recording.cores import thread_counts
    from ampsched.recording.setting import Setting

    check_request(machine, policies)
    found = {}
    for count in thread_counts(Catalog.shipped().machine(machine)):
        command = Setting(threads=count).with_threads(target)
        out = default_out(command).with_suffix(f".{count}{RECORDING}")
        _record(command, out)
        found[count] = out
    return found


def _machine(name: str | None, folder: Path) -> tuple[str, str, float | None]:
    """The machine, what it is called, and the speed-up of small programs on it if it is this computer."""
    if name is not None:
        return name, name, None
    from ampsched.calibration.calibrate import calibrate_briefly

    found = calibrate_briefly(folder)
    return str(found.machine), typed.HERE, found.usual_speedup


def lines(advice: Advice, where: str, command: list[str]) -> list[str]:
    """The answer, in some twenty lines."""
    from ampsched.recording.summary import follows_text

    is_time = advice.goal.name == "time"
    return [
        *advice.answer(where),
        *_time_lines(advice),
        *_part_lines(advice),
        "",
        *_setting_lines(advice),
        "",
        *([] if is_time and not advice.goal.is_interactive else [f"goal: {advice.goal.text}"]),
        f"conditions: {', '.join(each for each in advice.conditions if not each.startswith('speed-up'))}",
        f"replay: {advice.check.replayed_s:.3g} s on the recording's own cores, recorded {advice.check.recorded_s:.3g} s "
        f"({advice.check.error:+.1%})",
        f"cores: {follows_text(advice.check.follows, advice.check.rest)}",
        f"speed-up: {advice.speedup}{_sensitivity(advice)}",
        f"model: {advice.model_error.text if is_time else UNMEASURED.format(f'in {advice.metric.name}')}",
        *(
            f"siblings: {smt}"
            for smt in dict.fromkeys(run.outcome.smt for run in advice.comparison.runs)
            if smt
        ),
        *([advice.clocks] if advice.clocks else []),
        *(f"note: {each}" for each in (*advice.left_out, *advice.dropped)),
        *advice.notes[-1:] * is_this(where),
        *_loop_lines(advice),
        *_thread_lines(advice, where),
        typed.line(advice, where, command),
    ]


def _time_lines(advice: Advice) -> list[str]:
    """How long it takes so, if that is not what was compared."""
    found = [advice.found.of(each) for each in (advice.advised, advice.usual)]
    times = [time_text(1e3 * each.time_s) for each in found if each]
    if advice.goal.name == "time" or advice.goal.is_interactive or len(set(times)) < len(found):
        return []
    return [f"turnaround {times[0]} instead of {times[1]}"]


def _loop_lines(advice: Advice) -> list[str]:
    """What other schedules of its loops would gain, and what they need."""
    if not advice.loops:
        return []
    told = []
    for each in advice.loops[:SHOWN]:
        variables = "".join(f" ({name}={value})" for name, value in each.schedule.environment)
        change = f"{100 * each.change.mean:+.1f} % ±{100 * each.change.half_width:.1f}"
        told.append(f"  {each.schedule.name}{variables}: {change}; {each.schedule.needs}")
    return [f"loops: {advice.shared:.0%} of its work is shared by threads; by another schedule:", *told]


def _setting_lines(advice: Advice) -> list[str]:
    """The table: the advised setting, the best ones, those without a scheduler of ours, today's, the worst policy."""
    tried, usual = advice.found.tried, advice.usual
    others = [each for each in tried if each.setting != usual]
    if others and all(each.change.low == each.change.high == 0 for each in others):
        equals = ", ".join(each.setting.name for each in others)
        value = advice.metric.text(advice.baseline_value.mean)
        return [f"{usual.name}: {value}, and exactly the same with {equals}"]
    notes = _notes(advice)
    free = [each for each in others if each.setting.policy == usual.policy and each.change.mean < 0]
    shown = {*notes, *(each.setting for each in [*others[:SHOWN], *free[:SHOWN]])}
    rows = [each for each in tried if each.setting in shown]
    names = [_setting_text(each) for each in rows]
    width = max(map(len, names))
    told = [
        f"  {name:<{width}}  {_change(advice, each)}{f'  ({note})' if (note := notes.get(each.setting)) else ''}"
        for name, each in zip(names, rows, strict=True)
    ]
    return [f"settings that were tried: {advice.found.count}; among them, the best first:", *told]


def _notes(advice: Advice) -> dict[Setting, str]:
    """What is said of some settings: what today's is, which is advised, which policy is the worst on all cores."""
    usual = advice.usual
    notes = {usual: "as it is"}
    of_policies = [each for each in advice.found.tried if replace(each.setting, policy=usual.policy) == usual]
    if len(of_policies) > SHOWN + 1 and of_policies[-1].setting != usual:
        notes[of_policies[-1].setting] = f"the worst of {len(of_policies)} policies on all cores"
    best = next(
        (each.setting for each in advice.found.tried if each.setting.name == advice.verdict.best), None
    )
    if best is not None and best != usual:
        notes[best] = "best" if advice.is_worth_it else "nearest"
    if advice.is_worth_it:
        notes[advice.advised] = "advised"
    return notes


def _thread_lines(advice: Advice, where: str) -> list[str]:
    """How to compare numbers of threads, if OpenMP decides on them."""
    if not advice.is_openmp or advice.usual.threads is not None or advice.target[0] == "--pid":
        return []
    machine = "" if where == typed.HERE else f" -m {shlex.quote(where)}"
    return [
        "threads: OpenMP may start fewer on fewer cores; to compare: "
        f"ampsched advise{machine} -- env OMP_NUM_THREADS={{threads}} {shlex.join(advice.target)}"
    ]


def _setting_text(tried: Tried) -> str:
    cores = tried.setting.cores
    return f"{tried.setting.name}{f' ({cores.list})' if cores else ''}"


def _part_lines(advice: Advice) -> list[str]:
    """What each part of the advised setting earns, if it has several; why it is not the best, if it is not."""
    advised, best, parts = advice.advised, advice.verdict.best, advice.parts
    told = []
    if advice.is_worth_it and advised.name != best:
        told.append(
            f"advised: {advised.name}, no worse than {best} within {100 * advice.verdict.margin:.3g} %, and less effort"
        )
    if len(parts) > 2:
        pairs = pairwise(parts)
        each = (f"{mine.value / before.value - 1:+.1%} {mine.setting.name}" for before, mine in pairs)
        told.append(f"part by part: {'; then '.join(each)}")
    return told


def _change(advice: Advice, tried: Tried) -> str:
    """What is compared of a setting, and by how much it changes; of one draw nobody knows what is chance."""
    value, change = advice.metric.text(tried.value), tried.change
    if tried.setting == advice.usual:
        return value
    unit = "points" if advice.metric.is_share else "%"
    chance = f" ±{100 * change.half_width:.1f}" if change.n > 1 else ""
    return f"{value}  {100 * change.mean:+7.1f} {unit}{chance}"


def _sensitivity(advice: Advice) -> str:
    """What the advised setting would change, and which policy would be best, if the speed-up were another."""
    unit = "points" if advice.metric.is_share else "%"
    gains = [f"{100 * each.mean:+.1f} {unit} if it gains {word}" for word, each in advice.change_if.items()]
    told = [f"{advice.advised.name}: {', '.join(gains)} from fast cores"] if gains else []
    others = {word: name for word, name in advice.best_if.items() if name != advice.best.policy}
    told += [f"the best policy is then {name} (gains {word})" for word, name in others.items()]
    if advice.best_if and not others:
        told.append("the best policy is the same if it gains little or much from fast cores")
    return "".join(f"; {each}" for each in told)
