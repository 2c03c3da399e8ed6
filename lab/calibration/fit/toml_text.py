"""Writes program files in the workload language, with the source of each number beside it."""

from collections.abc import Iterable

GENERATED = (
    "# Written by lab/calibration/fit/fit.py from recordings; run it again instead of editing this file."
)
WIDTH = 110


def number(value: float) -> str:
    """Six significant digits without an exponent, from 100 on a whole number."""
    if value < 0:
        raise ValueError(f"negative amount {value}")
    if value >= 100:
        return str(round(float(f"{value:.6g}")))
    return f"{value:.4f}".rstrip("0").rstrip(".")


def amount(mean: str, cv: float = 0.0) -> str:
    """An amount of the workload language around an expression; spreads below 1 % are left out."""
    quoted = mean if _is_number(mean) else f'"{mean}"'
    return quoted if cv < 0.01 else f"{{ mean = {quoted}, cv = {cv:.2f} }}"


def _is_number(text: str) -> bool:
    return all(character in "0123456789." for character in text)


def compute(mean: str, profile: str, cv: float = 0.0) -> str:
    """A compute step."""
    return f'{{ compute = {amount(mean, cv)}, profile = "{profile}" }},'


def loop(count: str, body: Iterable[str]) -> list[str]:
    """A loop step over the lines of a body."""
    return block("loop", count if _is_number(count) else f'"{count}"', body)


def block(keyword: str, value: str, body: Iterable[str]) -> list[str]:
    """A step with a body."""
    return [f"{{ {keyword} = {value}, body = [", *indented(body), "] },"]


def indented(lines: Iterable[str]) -> list[str]:
    """Lines of a body."""
    return ["  " + line for line in lines]


def critical_section(mutex: str, hold: str, profile: str) -> list[str]:
    """Lock, work, unlock."""
    return [f'{{ lock = "{mutex}" }}, {compute(hold, profile)} {{ unlock = "{mutex}" }},']


def comment(text: str) -> list[str]:
    """A comment, wrapped."""
    lines, line = [], "#"
    for word in text.split():
        if len(line) + 1 + len(word) > WIDTH:
            lines.append(line)
            line = "#"
        line += " " + word
    return [*lines, line]


def thread(name: str, count: str, body: Iterable[str]) -> list[str]:
    """A thread group; an empty count means one thread."""
    lines = ["", "[[threads]]", f'name = "{name}"']
    if count:
        lines.append(f"count = {count if _is_number(count) else chr(34) + count + chr(34)}")
    return [*lines, "body = [", *indented(body), "]"]


def head(name: str, description: str, source: str, notes: Iterable[str]) -> list[str]:
    """Name, description, source and notes on the model."""
    lines = [GENERATED, ""]
    for note in notes:
        lines += comment(note)
    return [*lines, f'name = "{name}"', f'description = "{description}"', f'source = "{source}"', ""]


def text(lines: Iterable[str]) -> str:
    """The file."""
    return "\n".join(line.rstrip() for line in lines) + "\n"
