"""The list of generated files (tools/generated.toml), from which `make bless` works."""

import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from tools import bless

ROWS = bless.generated(bless.LIST.read_text(encoding="utf-8"))
# What generators write at the head of a file.
MARK = re.compile(r"(?i)\b(?:written|generated) by (?:`|lab/|tools/)|do not edit")


def matching(row: bless.Generated) -> set[str]:
    """The committed files of a row."""
    listed = subprocess.run(
        ["git", "ls-files", "--", *row.pathspecs()], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return set(listed.stdout.splitlines())


def test_every_pattern_matches_committed_files() -> None:
    for row in ROWS:
        for pattern in row.files:
            one = bless.Generated(row.name, (pattern,), row.command, row.read)
            assert matching(one), f"{row.name}: no file is called {pattern}"


def test_every_file_that_says_so_is_listed() -> None:
    known = set().union(*map(matching, ROWS))
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    folders = ("python/ampsched/", "docs/", "packaging/", "crates/live/scx/bpf/")
    for name in listed.stdout.splitlines():
        if name.startswith(folders) and Path(name).suffix in (".toml", ".md", ".h", ".json", ".py"):
            head = "".join((ROOT / name).read_text(encoding="utf-8").splitlines(keepends=True)[:6])
            assert name in known or not MARK.search(head), (
                f"{name} is generated: add it to tools/generated.toml"
            )


def _is_target(path: Path) -> bool:
    """Whether cargo takes a file in a folder of tests for a program of tests."""
    return (path.parents[1] / "Cargo.toml").exists()


def test_commands_name_targets_and_files_that_exist() -> None:
    for row in ROWS:
        for folder, target in re.findall(r"\bmake (?:-C (\w+) )?([\w-]+)", row.command):
            makefile = (ROOT / folder / "Makefile").read_text()
            assert f"\n{target}:" in makefile, f"{row.name}: make {target}"
        for test in re.findall(r"--test (\w+)", row.command):
            found = [path for path in (ROOT / "crates").rglob(f"tests/{test}.rs") if _is_target(path)]
            assert len(found) == 1, f"{row.name}: --test {test}: {found}"


def test_names_are_chosen() -> None:
    assert [row.name for row in bless.chosen(ROWS, ["reference", "golden"])] == ["golden", "reference"]
    assert all(not row.asked for row in bless.chosen(ROWS, []))
    with pytest.raises(SystemExit, match='nothing generated is called "goldn"'):
        bless.chosen(ROWS, ["goldn"])
