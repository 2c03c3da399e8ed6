"""Sources can be read side by side: no line is too long, but where a text or a pragma stands that cannot be broken."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import ROOT

from ampsched.markdown import WIDTH

FOLDERS = (
    "crates",
    "docs",
    "fuzz",
    "lab",
    "packaging",
    "python",
    "tests",
    "tools",
)
"""Besides what lies beside them."""
DATA = ("python/ampsched/data", "crates/model/tests/corpus", "crates/model/tests/rtapp")
"""Inputs: written by programs, or wrong on purpose."""
RUST_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(?P<mark>#*)".*?"(?P=mark)|b?"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', re.DOTALL
)
TOML_TEXT = re.compile(r'"""(?:\\.|[^\\])*?"""|"(?:\\.|[^"\\\n])*"', re.DOTALL)
PRAGMA = re.compile(r" *# (?:noqa|type: ignore|pragma).*")


def without_texts(pattern: re.Pattern[str], source: str) -> str:
    """A source without what stands in quotation marks; its comments stay."""

    def kept(found: re.Match[str]) -> str:
        text = found.group()
        return text if text.startswith(("//", "/*")) else '"' + "\n" * text.count("\n") + '"'

    return pattern.sub(kept, source)


def python_without_texts(source: str) -> str:
    """A Python source without the lines on which texts stand; docstrings and comments stay."""
    tree = ast.parse(source)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts: set[int] = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        if is_text and id(node) not in docs:
            texts.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(source.splitlines(), start=1)
    return "\n".join("" if number in texts else PRAGMA.sub("", line) for number, line in lines)


def rust_without_texts(source: str) -> str:
    return without_texts(RUST_TOKEN, source)


def toml_without_texts(source: str) -> str:
    return without_texts(TOML_TEXT, source)


READABLE: dict[str, Callable[[str], str]] = {
    ".rs": rust_without_texts,
    ".py": python_without_texts,
    ".toml": toml_without_texts,
    ".sh": str,
}


def sources(suffix: str) -> Iterator[Path]:
    inner = (path for folder in FOLDERS for path in (ROOT / folder).rglob(f"*{suffix}"))
    for path in (*ROOT.glob(f"*{suffix}"), *inner):
        name = path.relative_to(ROOT)
        if not name.is_relative_to("fuzz/target") and not any(name.is_relative_to(data) for data in DATA):
            yield path


def too_long(suffix: str, source: str) -> list[int]:
    lines = READABLE[suffix](source).splitlines()
    return [number for number, line in enumerate(lines, start=1) if len(line) > WIDTH]


@pytest.mark.parametrize("suffix", READABLE)
def test_no_line_is_too_long(suffix: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources(suffix)
        for number in too_long(suffix, path.read_text(encoding="utf-8"))
    ]
    assert found == [], f"more than {WIDTH} columns"


def test_long_lines_are_found() -> None:
    words = "word " * WIDTH
    rust = f'// {words}\nlet a = "{words}";\nlet b = r#"\n{words} " {words}\n"#;\nlet c = [{words}];'
    assert too_long(".rs", rust) == [1, 6]
    python = (
        f'"""A.\n\n{words}\n"""\na = "{words}"\n# {words}\nb = 1\n"""{words}"""\nc = 1  # noqa: {words}\n'
    )
    assert too_long(".py", python) == [3, 6, 8]
    assert too_long(".toml", f'# {words}\na = "{words}"\nb = """\n{words}\n"""\nc = [{"1, " * WIDTH}]\n') == [
        1,
        6,
    ]
    assert too_long(".sh", f"# {words}\n") == [1]
