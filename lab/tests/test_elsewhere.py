"""Recorded here, judged elsewhere: what a program needs, how its speed is fitted, and what the page says."""

import math
import os
import tomllib
from pathlib import Path

import pytest

from ampsched_lab.recordings.elsewhere.found import NAMES, Found, kept_rows
from ampsched_lab.recordings.elsewhere.measure import Timed
from ampsched_lab.recordings.elsewhere.page import table_of, text_of
from ampsched_lab.recordings.elsewhere.programs import ALWAYS, HERE, files_of, programs
from ampsched_lab.recordings.exact import machine_text

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT / "docs/reports/recordings"


def test_there_are_24_programs_of_six_kinds() -> None:
    assert len(programs()) == 24
    assert {program.kind for program in programs()} == {
        "threads", "processes", "interpreters", "managed", "servers", "runtimes"
    }  # fmt: skip
    assert len(programs("further")) == 15
    for program in [*programs(), *programs("further")]:
        own = [word for word in program.words if (HERE / "sources" / word).suffix in {".sh", ".py", ".js"}]
        assert all((HERE / "sources" / word).is_file() for word in own), program.name


def test_the_files_of_a_program_are_those_that_it_found(tmp_path: Path) -> None:
    own, other, folder = tmp_path / "own", tmp_path / "other", tmp_path / "folder"
    own.mkdir()
    folder.mkdir()
    (own / "input").touch()
    other.touch()
    trace = "\n".join(
        [
            f'1 openat(AT_FDCWD</x>, "{own}/input", O_RDONLY) = 3<{own}/input>',
            f'1 openat(AT_FDCWD</x>, "other", O_RDONLY) = 4<{other}>',
            f'2 execve("{other}", ["other"], 0x7f /* 3 vars */ <unfinished ...>',
            f'1 newfstatat(AT_FDCWD</x>, "{folder}", {{}}, 0) = 0',
            f'1 openat(AT_FDCWD</x>, "{tmp_path}/none", O_RDONLY) = -1 ENOENT (No such file)',
            '1 openat(AT_FDCWD</x>, "/proc/self/maps", O_RDONLY) = 5</proc/1/maps>',
        ]
    )
    files, folders = files_of(os.fsencode(trace), own)
    assert files == [*ALWAYS, other]
    assert folders == [folder.resolve()]


def test_a_program_is_as_fast_there_as_here() -> None:
    # Half a second here; a second at 1000 MIPS, so 2000 MIPS are as fast; slow cores then take 1.5 s.
    fast, slow = Timed(1, 1_000_000_000), Timed(1, 1_500_000_000)
    found = Found(mips={"2B2S": 2000}, fast={"2B2S": fast}, slow={"2B2S": slow})
    assert found.speedup("4B4S") == pytest.approx(3)
    assert found.speedup("2P4E") == 0
    # Two orders of the cores.
    found.measured = {"linux": {"2B2S": [90, 110], "4B4S": [100, 100]}}
    found.predicted = {"linux": {"2B2S": 105.0}}
    assert found.errors("linux") == pytest.approx({"2B2S": 0.05})
    assert found.errors("acfs") == {}
    found.predicted_there = {"linux": {"4B4S": 90.0}}
    assert found.errors("linux", is_there=True) == pytest.approx({"4B4S": -0.1})


def test_the_products_table_has_the_errors_of_each_kind() -> None:
    def row(like: str, times: list[int], predicted: float, refused: str = "") -> Found:
        own = Found(like=like, refused=refused)
        own.measured = {"acfs": {"2B2S": times}, "linux": {"2B2S": [190, 210]}}
        own.predicted = {"acfs": {"2B2S": predicted}, "linux": {"2B2S": 180.0}}
        return own

    rows = [
        row("threads", [100], 90.0),
        row("threads", [100], 104.0),
        row("processes", [100], 100.0),
        row("waiting", [100], 300.0, "too little"),
    ]
    assert table_of(rows) == "", "none that waits is accepted"
    table = tomllib.loads(table_of([*rows, row("waiting", [100], 101.0)]))
    # Predicted as half the time, or 104 of 180; measured as half of it.
    change = [round(math.log(0.5 / (104 / 180)), 3), 0.0]
    assert table["threads"] == {"programs": 2, "runs": 2, "mean": 0.07, "worst": -0.1, "change": change}
    assert table["waiting"]["programs"] == 1


def test_the_products_table_is_that_of_what_is_kept() -> None:
    files = (REPORTS / f"{name}.json" for name in NAMES.values())
    rows = [row for file in files for row in kept_rows(file).values()]
    assert (ROOT / "python/ampsched/data/model-errors.toml").read_text("utf-8") == table_of(rows)


def test_costs_of_a_faster_machine_are_lower_but_ticks_are_not() -> None:
    once, twice = (tomllib.loads(machine_text("2B2S", factor))["costs"] for factor in (1.0, 0.5))
    assert twice["context_switch_ns"] == pytest.approx(once["context_switch_ns"] / 2, abs=1)
    assert twice["tick_ns"] == once["tick_ns"]


def test_the_page_counts_who_was_refused_or_did_not_run() -> None:
    first, second, third = programs()[:3]
    times = [Timed(200_000_000, 1)] * 3
    rows = {
        first.name: Found(
            plain=times,
            measured={"linux": {"2B2S": [100, 100]}, "acfs": {"2B2S": [100]}},
            predicted={"linux": {"2B2S": 110.0}, "acfs": {"2B2S": 98.0}},
            predicted_there={"linux": {"2B2S": 100.0}, "acfs": {"2B2S": 99.0}},
        ),
        second.name: Found(
            plain=times,
            refused="too little",
            measured={"linux": {"2B2S": [100, 100]}},
            predicted={"linux": {"2B2S": 300.0}},
        ),
        third.name: Found(plain=times, failed="no end"),
    }
    page = text_of(programs(), rows)
    flat = " ".join(page.split())
    assert "**1 of 3 programs are accepted (aim: 20 of 24).**" in flat
    assert "`acfs`, predicted times are 2.0 % off on average (aim: 6 %) and -2.0 % at worst" in flat
    assert "`linux`, predicted times are 10.0 % off on average (aim: 6 %) and +10.0 % at worst" in flat
    assert "whose instructions take as long, predicted times are 1.0 % off on average" in flat
    assert "| 1 | 10.0 % | +10.0 % | 2.0 % | -2.0 % | 1.0 % | -1.0 % |" in page
    assert "+10.0 %" in page
    assert "+200.0 %" in page
    assert f"* `{second.name}`: too little" in page
    assert f"* `{third.name}`: no end" in page
    assert f"Not measured yet: `{programs()[3].name}`," in page
