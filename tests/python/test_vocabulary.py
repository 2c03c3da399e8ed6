"""Sources use the kernel's and the field's words (docs/explanation/glossary.md); private words do not come back."""

import re
import subprocess

import pytest
from conftest import ROOT

C = (".c", ".h")
RUST = (".rs",)
BANNED = [
    (C, r"\bapart\b(?=\s+\w+\s+\*?\w+\()", "__noinline"),
    (C, r"\b(?:get|put)\(", "READ_ONCE() or WRITE_ONCE()"),
    (C, r"\bcan_go_on\b", "can_loop"),
    (C, r"\bleast_of\b|\bgreatest_of\b", "min() or max()"),
    (C, r"\b(?:welcome|bid_farewell)\(", "init_thread() or exit_thread()"),
    (C, r"\b(?:come_in|take_out|taken_out)\b", "enqueue or dequeue"),
    (C, r"\bleave_for\b", "block()"),
    (C, r"->(?:before|behind)\b", "prev or next"),
    (C, r"->looks\b", "need_resched"),
    (C, r"\bNOBODY\b", "NO_CORE"),
    (RUST, r"\bmattering\b", "outstanding"),
    (RUST, r"\bbury_orphans\b", "reap_orphans"),
    (RUST, r"\btend_journal\b", "compact_journal"),
    (RUST, r"\bstruct Around\b", "a name for what it holds"),
    (RUST, r"\bstruct Card\b", "Registration"),
    (RUST, r"\bfn told\b|\bstruct Told\b", "a name for what is stated or has changed"),
    (C, r"\b[Ww]hoever\b|\b[Ss]omebody\b|\bso many\b", "the CPU, thread or task that acts, or the number"),
]
"""Which sources, what may not be in them, and what to write instead."""


def found(name: str, text: str) -> list[str]:
    """Lines with a word that has a better one."""
    rules = [(re.compile(banned), better) for ends, banned, better in BANNED if name.endswith(ends)]
    lines = enumerate(text.splitlines(), start=1)
    return [
        f"{name}:{number}: `{hit[0]}`: write {better}"
        for number, line in lines
        for banned, better in rules
        if (hit := banned.search(line))
    ]


def test_private_words_do_not_come_back() -> None:
    folders = ["crates"]
    listed = subprocess.run(
        ["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = [name for name in listed.stdout.split("\0") if name.endswith(C + RUST) and (ROOT / name).exists()]
    assert len(names) > 100
    bad = [line for name in names for line in found(name, (ROOT / name).read_text("utf-8"))]
    assert not bad, "\n".join(bad)


MODULES = {"passing": "forwarding", "openings": "summaries", "sides": "pairs", "halves": "two_kinds"}
"""Names that files and folders had, and what they are called."""


def test_private_names_of_modules_do_not_come_back() -> None:
    command = ["git", "ls-files", "-z", "*.py", "*.rs"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    parts = {part.partition(".")[0] for name in listed.split("\0") for part in name.split("/")}
    assert "ampsched_lab" in parts
    assert parts & MODULES.keys() == set()


@pytest.mark.parametrize(
    ("name", "line"),
    [("a.h", "    if (get(s->idle))"), ("a.c", "own->behind = NONE;"), ("a.rs", "fn bury_orphans() {"),
     ("a.h", "/* Whoever holds it. */")],
)  # fmt: skip
def test_they_are_found(name: str, line: str) -> None:
    (message,) = found(name, line)
    assert message.startswith(f"{name}:1: `")


def test_the_glossary_is_in_order_and_short() -> None:
    text = (ROOT / "docs/explanation/glossary.md").read_text("utf-8")
    terms = re.findall(r"^\* \*\*(.+?)\*\*", text, re.MULTILINE)
    assert len(text.split()) <= 1200
    assert len(terms) > 40
    assert len(set(terms)) == len(terms)
    assert [term.lower() for term in terms] == sorted(term.lower() for term in terms)
