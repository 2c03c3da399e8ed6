"""Small files that would take all memory, and long ones: one budget for every reader (34.7)."""

import io
import os
import struct
import zipfile
from pathlib import Path

import polars
import pytest
from conftest import Ampsched

from ampsched._core import MEMORY_BYTES_MAX, InputError, check_memory
from ampsched.files import read_bytes, read_parquet

READERS = [
    ("describe", "{}.toml"),
    ("simulate", "-m", "2B2S", "-w", "{}.ampr"),
    ("simulate", "-m", "2B2S", "-w", "{}.json"),
    ("lift", "{}.ampr"),
    ("advise", "{}.ampr", "-m", "2B2S"),
    ("import", "{}.data"),
    ("import-rtapp", "{}.json"),
    ("report", "{}.json", "--html", "{}-r.html"),
    ("train", "{}.parquet", "--big", "a", "--little", "b"),
    ("counters", "import", "{}.csv", "--from", "csv", "-o", "{}-out.csv"),
    ("tasks", "draw", "{}.csv"),
    ("tasks", "describe", "{}.dot"),
]


@pytest.mark.parametrize("arguments", READERS)
def test_h34_07_a_sparse_file_and_one_without_end_are_refused(
    ampsched_here: Ampsched, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    for suffix in (".toml", ".ampr", ".json", ".data", ".parquet", ".csv", ".dot"):
        with (tmp_path / f"sparse{suffix}").open("wb") as file:
            os.truncate(file.fileno(), 20 << 30)
        (tmp_path / f"zero{suffix}").symlink_to("/dev/zero")
    for name in ("sparse", "zero"):
        ended = ampsched_here(*(each.format(tmp_path / name) for each in arguments))
        assert ended.code == 2
        assert f"{tmp_path / name}." in ended.err
        assert " MiB, which is the limit (take a part of it)" in ended.err


def wide(rows: int) -> bytes:
    """A table of 40 columns, all alike, in a small file."""
    column = polars.repeat(1.5, rows, eager=True)
    buffer = io.BytesIO()
    polars.DataFrame({f"c{number}": column for number in range(40)}).write_parquet(buffer)
    return buffer.getvalue()


def test_h34_07_a_small_table_takes_no_more_memory_than_its_length_allows(
    ampsched_here: Ampsched, tmp_path: Path
) -> None:
    table = tmp_path / "t.parquet"
    table.write_bytes(wide(1000))
    assert read_parquet(table).shape == (1000, 40)
    assert read_parquet(table, ["c7"]).shape == (1000, 1)
    table.write_bytes(wide(1_000_000))
    assert table.stat().st_size < 200_000
    with pytest.raises(
        InputError, match=r"t\.parquet: takes more than 256 MiB of memory, which is the limit of a file"
    ):
        read_parquet(table)
    ended = ampsched_here("train", str(table), "--big", "a", "--little", "b")
    assert (ended.code, ended.err.count("error:")) == (2, 1)


LOCK = 5
"""The number of the kind of an event that takes a lock."""


def array(count: int, value: int) -> bytes:
    """A number again and again, as numpy writes it."""
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({count},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + bytes([value]) * count


def columns(count: int) -> bytes:
    """A recording as columns, of events that are all alike."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("t", "dt", "cpu", "wait", "obj", "kf", "aux"):
            content = array(1 if name == "t" else count, LOCK if name == "kf" else 0)
            archive.writestr(f"t0_{name}.npy", content)
    return buffer.getvalue()


def test_h34_07_a_small_archive_takes_no_more_memory_than_its_length_allows(
    ampsched_here: Ampsched, tmp_path: Path
) -> None:
    file = tmp_path / "r.npz"
    file.write_bytes(columns(1000))
    assert ampsched_here("import", str(file)).code == 0
    file.write_bytes(columns(5_000_000))
    assert file.stat().st_size < 100_000
    ended = ampsched_here("import", str(file))
    assert ended.code == 2
    assert f"{file}: takes more than 256 MiB of memory, which is the limit of a file of " in ended.err


def test_h34_07_the_limit_grows_with_the_file(tmp_path: Path) -> None:
    check_memory("f", 0, 256 << 20)
    check_memory("f", 4 << 20, 1000 << 20)
    check_memory("f", MEMORY_BYTES_MAX, MEMORY_BYTES_MAX)
    for file_bytes, wanted in ((0, (256 << 20) + 1), (4 << 20, 1001 << 20), (1 << 40, MEMORY_BYTES_MAX + 1)):
        with pytest.raises(InputError, match=r"^f: takes more than \d+ MiB .*take a part of it"):
            check_memory("f", file_bytes, wanted)
    (tmp_path / "f").write_bytes(b"abc")
    assert read_bytes(tmp_path / "f", 3) == b"abc"
    with pytest.raises(InputError, match="longer than 0 MiB"):
        read_bytes(tmp_path / "f", 2)
