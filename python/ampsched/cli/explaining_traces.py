"""``ampsched explain`` of a trace of a real scheduler."""

from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from ampsched._core import Machine
from ampsched.catalog import Catalog
from ampsched.cli.output import Output
from ampsched.recording.around import Around, Placed, Simulated, around, place_name, simulated
from ampsched.units import NS_PER_MS

Asked = tuple[str, float, float]
"""Thread, moment and window in ms."""


def show(file: Path, machine: str | None, policy: str | None, asked: Asked, output: Output) -> None:
    """Prints what the real scheduler did with a thread and, if the machine is known, what a simulated one does.

    Raises:
        InputError: As of `around` and `simulated`.
    """
    thread, at_ms, window_ms = asked
    on = Catalog.shipped().machine(machine) if machine else None
    seen = around(file, on, thread, at_ms, window_ms)
    made = simulated(file, on, seen, at_ms, window_ms, policy or "") if on else None

    def text(console: Console) -> None:
        for line in (*_real(seen, on, at_ms), *(_made(made, seen, on, at_ms) if made and on else ())):
            style = "dim" if line.lstrip().startswith("[") else None
            console.print(line, style=style, soft_wrap=True, markup=False, highlight=False)

    rows = [{"by": "trace", **_row(step.at_ns, step.what, step.cpu, step.sentence)} for step in seen.steps]
    for told in made.explanation.events if made else ():
        at_ns = told.at_ns - (made.shift_ns if made else 0)
        rows.append({"by": made.policy if made else "", **_row(at_ns, told.what, told.core, told.sentence)})
    output.show(
        value=lambda: {"trace": asdict(seen), "simulated": asdict(made) if made else None},
        rows=lambda: rows,
        text=text,
    )


def _row(at_ns: int, what: str, core: int | None, sentence: str) -> dict[str, object]:
    return {"at_ns": at_ns, "what": what, "core": core, "sentence": sentence}


def _real(seen: Around, machine: Machine | None, at_ms: float) -> list[str]:
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


def _made(made: Simulated, seen: Around, machine: Machine, at_ms: float) -> list[str]:
    lines = ["", f"Under {made.policy}, in a replay:", made.explanation.summary]
    for told in made.explanation.events:
        lines.append(f"{(told.at_ns - made.shift_ns) / NS_PER_MS:>12.3f} ms  {told.sentence}.")
        if details := told.details():
            lines.append(f"{'':>17}[{details}]")
    lines.append("")
    if not made.compared:
        return [*lines, "No wake-up of it can be compared: the trace or the replay has none."]
    lines.append(f"Of {made.compared:,} wake-ups in their order {made.same:,} led to the same cluster.")
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
