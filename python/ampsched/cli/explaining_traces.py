"""``ampsched explain`` of a trace of a real scheduler."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from ampsched._core import InputError
from ampsched.cli import options
from ampsched.cli.output import Output
from ampsched.recording.around import Moment, Placed, Simulated, around, cpu_name, cpu_names, simulated
from ampsched.settings import SimulateSettings, catalog_of, declared
from ampsched.units import NS_PER_MS

Asked = tuple[str, float, float]
"""Thread, moment and window in ms."""


def show(
    file: Path,
    machine: tuple[str | None, str],
    policies: str | None,
    asked: Asked,
    settings: SimulateSettings,
    output: Output,
    *,
    values: bool,
) -> None:
    """Prints what the real scheduler did with a thread and, if the machine is known, what simulated ones do.

    Args:
        file: The trace.
        machine: The machine that it is of, if it is known, and which CPUs are of which of its clusters.
        policies: Policies as on the command line; `linux` of the trace's kernel by default.
        asked: What is asked for.
        settings: Those of the simulations.
        output: How to print it.
        values: Print the rule and the numbers behind each sentence, too.

    Raises:
        InputError: As of `around` and `simulated`; what is for simulations only, without a machine.
    """
    thread, at_ms, window_ms = asked
    of, cpus = machine
    usual = {name: row.setting.default for name, row in declared(SimulateSettings).items()}
    idle = [name for name, value in settings.items() if name in usual and str(value) != str(usual[name])]
    if not of and (policies or cpus or idle):
        options_of = {"--policy": policies, "--cpus": cpus}
        given = [f"{name} {value}" for name, value in options_of.items() if value]
        what = given[0] if given else f"the setting {idle[0]}"
        raise InputError(f"{what} needs --machine: the machine that {file} is of")
    on = catalog_of(settings).machine(of) if of else None
    names = options.split(policies, "policy") if policies else [""]
    seen, traced = around(file, on, thread, at_ms, window_ms, cpus)
    made = [
        simulated(traced, on, seen, at_ms, window_ms, name, **settings) for name in names if on and traced
    ]
    places = cpu_names(on, cpus), cpu_names(on)

    def text(console: Console) -> None:
        lines = _real(seen, places[0], at_ms)
        for place, each in enumerate(made):
            lines += _story(each) if place == 0 else ["", f"Under {each.policy}: {each.explanation.summary}"]
            lines += _difference(each, seen, places)
        print_lines(console, lines, values=values)

    rows = [{"by": "trace", **_row(step.at_ns, step.what, step.cpu, step.sentence)} for step in seen.steps]
    for each in made:
        for told in each.explanation.events:
            at_ns = told.at_ns - each.shift_ns
            rows.append({"by": each.policy, **_row(at_ns, told.what, told.core, told.sentence)})
    output.show(
        value=lambda: {"trace": asdict(seen), "simulated": list(map(asdict, made))},
        rows=lambda: rows,
        text=text,
    )


def print_lines(console: Console, lines: Iterable[str], *, values: bool) -> None:
    """Prints an explanation; what is indented and in brackets, the rule and its numbers, if it is asked for."""
    for line in lines:
        in_brackets = line.lstrip().startswith("[")
        if values or not in_brackets or not line.startswith(" "):
            style = "dim" if in_brackets else None
            console.print(line, style=style, soft_wrap=True, markup=False, highlight=False)


def _row(at_ns: int, what: str, core: int | None, sentence: str) -> dict[str, object]:
    return {"at_ns": at_ns, "what": what, "core": core, "sentence": sentence}


def _real(seen: Moment, names: Sequence[str], at_ms: float) -> list[str]:
    on = "on" if seen.state == "running" else "after"
    where = "" if seen.cpu is None else f" {on} {cpu_name(names, seen.cpu)}"
    lines = [f"In the trace {seen.name} {seen.tid} is {seen.state}{where} at {at_ms:.3f} ms."]
    if seen.namesakes:
        others = ", ".join(map(str, seen.namesakes[:8]))
        lines.append(
            f"[of {len(seen.namesakes) + 1} threads of that name the one with most CPU time; others: {others}]"
        )
    lines += [f"{step.at_ns / NS_PER_MS:>12.3f} ms  {step.sentence}." for step in seen.steps]
    return lines if seen.steps else [*lines, "Nothing happened to it within the window."]


def _story(made: Simulated) -> list[str]:
    lines = ["", f"Under {made.policy}, in a replay:", made.explanation.summary]
    for told in made.explanation.events:
        lines.append(f"{(told.at_ns - made.shift_ns) / NS_PER_MS:>12.3f} ms  {told.sentence}.")
        if details := told.details():
            lines.append(f"{'':>17}[{details}]")
    return [*lines, ""]


def _difference(made: Simulated, seen: Moment, places: tuple[Sequence[str], Sequence[str]]) -> list[str]:
    """How often the replay has put it elsewhere; names of CPUs in the trace and in the replay."""
    if not made.compared:
        return ["No wake-up of it can be compared: the trace or the replay has none."]
    lines = [f"Of {made.compared:,} wake-ups {_matched(made, seen)} {made.same:,} led to the same cluster."]
    if made.first is not None:
        number, other_number = made.first
        real, other = seen.placed[number], made.placed[other_number]
        lines.append(
            f"First difference: wake-up {number + 1:,}, {_where(real, places[0], 0)} in the trace, "
            f"{_where(other, places[1], made.shift_ns)} under {made.policy}:"
        )
        lines += [f"{'':>17}{line}" for line in made.why]
    return lines


def _matched(made: Simulated, seen: Moment) -> str:
    """How wake-ups were matched, and which were not."""
    real, other = len(seen.placed), len(made.placed)
    if real == other:
        return "in their order"
    counts = f"the trace has {real:,} and the replay {other:,}"
    if made.by == "time":
        return f"at the same time ({counts})"
    last = seen.placed[made.compared - 1]
    return f"in their order ({counts}: compared are those up to {last.woken_ns / NS_PER_MS:.3f} ms)"


def _where(placed: Placed, names: Sequence[str], shift_ns: int) -> str:
    return f"{cpu_name(names, placed.core)} at {(placed.runs_ns - shift_ns) / NS_PER_MS:.3f} ms"
