"""``ampsched explain`` of a trace of a real scheduler."""

from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from ampsched._core import InputError, Machine
from ampsched.cli import options
from ampsched.cli.output import Output
from ampsched.recording.around import Moment, Placed, Simulated, around, place_name, simulated
from ampsched.settings import SimulateSettings, catalog_of, declared
from ampsched.units import NS_PER_MS

Asked = tuple[str, float, float]
"""Thread, moment and window in ms."""


def show(
    file: Path,
    machine: str | None,
    policies: str | None,
    asked: Asked,
    settings: SimulateSettings,
    output: Output,
) -> None:
    """Prints what the real scheduler did with a thread and, if the machine is known, what simulated ones do.

    Args:
        file: The trace.
        machine: The machine that it is of, if it is known.
        policies: Policies as on the command line; `linux` of the trace's kernel by default.
        asked: What is asked for.
        settings: Those of the simulations.
        output: How to print it.

    Raises:
        InputError: As of `around` and `simulated`; what is for simulations only, without a machine.
    """
    thread, at_ms, window_ms = asked
    usual = {name: row.setting.default for name, row in declared(SimulateSettings).items()}
    idle = [name for name, value in settings.items() if name in usual and str(value) != str(usual[name])]
    if not machine and (policies or idle):
        what = f"--policy {policies}" if policies else f"the setting {idle[0]}"
        raise InputError(f"{what} needs --machine: the machine that {file} is of")
    on = catalog_of(settings).machine(machine) if machine else None
    names = options.split(policies, "policy") if policies else [""]
    seen = around(file, on, thread, at_ms, window_ms)
    made = [simulated(file, on, seen, at_ms, window_ms, name, **settings) for name in names] if on else []

    def text(console: Console) -> None:
        lines = _real(seen, on, at_ms)
        for place, each in enumerate(made):
            lines += _story(each) if place == 0 else ["", f"Under {each.policy}: {each.explanation.summary}"]
            lines += _difference(each, seen, on) if on else []
        for line in lines:
            style = "dim" if line.lstrip().startswith("[") else None
            console.print(line, style=style, soft_wrap=True, markup=False, highlight=False)

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


def _row(at_ns: int, what: str, core: int | None, sentence: str) -> dict[str, object]:
    return {"at_ns": at_ns, "what": what, "core": core, "sentence": sentence}


def _real(seen: Moment, machine: Machine | None, at_ms: float) -> list[str]:
    where = (
        ""
        if seen.cpu is None
        else f" {'on' if seen.state == 'running' else 'after'} {place_name(machine, seen.cpu)}"
    )
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


def _difference(made: Simulated, seen: Moment, machine: Machine) -> list[str]:
    if not made.compared:
        return ["No wake-up of it can be compared: the trace or the replay has none."]
    lines = [f"Of {made.compared:,} wake-ups in their order {made.same:,} led to the same cluster."]
    if made.first is not None:
        real, other = seen.placed[made.first], made.placed[made.first]
        lines.append(
            f"First difference: wake-up {made.first + 1:,}, {_where(real, machine, 0)} in the trace, "
            f"{_where(other, machine, made.shift_ns)} under {made.policy}:"
        )
        lines += [f"{'':>17}{line}" for line in made.why]
    return lines


def _where(placed: Placed, machine: Machine, shift_ns: int) -> str:
    return f"{place_name(machine, placed.core)} at {(placed.runs_ns - shift_ns) / NS_PER_MS:.3f} ms"
