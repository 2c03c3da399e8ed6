"""``ampsched advise``."""

from __future__ import annotations

import os
import shlex
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
    from ampsched.recording.advice import Advice, Choice
    from ampsched.recording.check import Check
    from ampsched.recording.goals import GoalName
    from ampsched.recording.search import Tried
    from ampsched.statistics import Estimate

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
            help="Where it shall run; this computer if absent.",
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
            help="How many times as fast the program is on a fast core as on a slow one, if you know it.",
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
        raise InputError("--report: there is nothing measured to write without --check")
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
        many = _recorded_with_threads(target, name) if is_open else {}
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
    if proved and proved.proof:
        proving.write([proved.proof], report)
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
            f"{target[0]}: is neither a recording nor executable (of a trace make a recording first: ampsched import "
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


def _recorded_with_threads(target: list[str], machine: str) -> dict[int, Path]:
    """Recordings of a command by the number of threads."""
    from ampsched.cli.recording import default_out
    from ampsched.recording.cores import thread_counts
    from ampsched.recording.setting import Setting

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
    from ampsched.recording.advice import BASELINE
    from ampsched.recording.summary import follows_text

    is_time = advice.goal.name == "time"
    takes = " takes" if is_time else f": {advice.metric.name}"
    told = [
        *advice.answer(where),
        *_time_lines(advice),
        "",
        f"{BASELINE}{takes} {advice.metric.text(advice.baseline_value.mean)}{'; other policies:' if advice.choices else ''}",
        *_choice_lines(advice),
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
    ]
    return [
        *told,
        *_loop_lines(advice),
        *_setting_lines(advice),
        *_part_lines(advice),
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
        change = f"{each.change.mean:+.1%} ±{each.change.half_width:.1%}"
        told.append(f"  {each.schedule.name}{variables}: {change}; {each.schedule.needs}")
    return [f"loops: {advice.shared:.0%} of its work is shared by threads; by another schedule:", *told]


def _setting_lines(advice: Advice) -> list[str]:
    """The best settings of threads, cores and clocks: what the table of policies does not show."""
    others = [each for each in advice.found.tried if each.setting.effort(advice.usual) % 8]
    shown = others[:SHOWN]
    if not shown:
        return []
    texts = [_setting_text(each) for each in shown]
    width = max(map(len, texts))
    rows = [
        f"  {text:<{width}}  {_change(advice, each.change, each.value)}"
        for text, each in zip(texts, shown, strict=True)
    ]
    told = [f"other settings: {len(others)} of {advice.found.count} tried came near; the best:", *rows]
    if advice.is_openmp and advice.usual.threads is None:
        command = shlex.join(advice.target)
        told.append(
            "threads: OpenMP may start fewer on fewer cores; to compare: ampsched advise -- env "
            f"OMP_NUM_THREADS={{threads}} {command}"
        )
    return told


def _setting_text(tried: Tried) -> str:
    cores = tried.setting.cores
    return f"{tried.setting.name}{f' ({cores.list})' if cores else ''}"


def _part_lines(advice: Advice) -> list[str]:
    """What each part of the advised setting earns, if it has several; why it is not the best, if it is not."""
    advised, best, parts = advice.advised, advice.setting.best, advice.parts
    told = []
    if advice.is_worth_it and advised.name != best:
        told.append(
            f"advised: {advised.name}, no worse than {best} within {100 * advice.setting.margin:.3g} %, and less effort"
        )
    if len(parts) > 2:
        pairs = pairwise(parts)
        each = (f"{mine.value / before.value - 1:+.1%} {mine.setting.name}" for before, mine in pairs)
        told.append(f"part by part: {'; then '.join(each)}")
    return told


def _choice_lines(advice: Advice) -> list[str]:
    """The best policies and the worst, each once; if none differs, the baseline alone."""
    from ampsched.recording.advice import BASELINE

    choices = advice.choices
    if not choices:
        return []
    if all(choice.change.low == choice.change.high == 0 for choice in choices):
        text = advice.metric.text(advice.baseline_value.mean)
        return [
            f"  {BASELINE:<16} {text}  (and exactly the same under {', '.join(c.policy for c in choices)})"
        ]
    worst = (
        [f"{_choice_line(advice, choices[-1])}  (worst of {len(choices)})"] if len(choices) > SHOWN else []
    )
    return [*(_choice_line(advice, choice) for choice in choices[:SHOWN]), *worst]


def _choice_line(advice: Advice, choice: Choice) -> str:
    return (
        f"  {choice.policy:<16} {_change(advice, choice.change, choice.value.mean if choice.value else None)}"
    )


def _change(advice: Advice, change: Estimate, value: float | None) -> str:
    """What is compared, and by how much it changes; of one draw nobody knows what is chance."""
    metric, baseline = advice.metric, advice.baseline_value.mean
    if metric.is_share:
        chance = f" ±{100 * change.half_width:.1f}" if change.n > 1 else ""
        text = metric.text(baseline + change.mean if value is None else value)
        return f"{text}  {100 * change.mean:+7.1f}{chance} points"
    chance = f" ±{change.half_width:.1%}" if change.n > 1 else ""
    return f"{metric.text(baseline * (1 + change.mean) if value is None else value)}  {change.mean:+7.1%}{chance}"


def _sensitivity(advice: Advice) -> str:
    """Whether the best policy would be another one if the program's speed-up were."""
    others = {word: name for word, name in advice.best_if.items() if name != advice.best.policy}
    if not advice.best_if:
        return ""
    if not others:
        return "; the best policy is the same if it gains little or much from fast cores"
    return "; " + ", ".join(f"if it gains {word}, {name} is best" for word, name in others.items())
