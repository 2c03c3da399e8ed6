"""Two runs with the same seed give the same bytes, whatever --jobs is."""

import hashlib
from pathlib import Path

import pytest
from conftest import Ampsched


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_json_of_compare(ampsched_process: Ampsched) -> None:
    arguments = (
        "compare",
        "-m",
        "2B2S,4B4S",
        "-w",
        "rand-1",
        "-p",
        "cfs,wash,colab",
        "--repeat",
        "2",
        "--json",
    )
    outputs = {ampsched_process(*arguments, "--jobs", jobs).out for jobs in ("1", "2", "1")}
    assert len(outputs) == 1
    assert '"h_antt"' in outputs.pop()


def test_json_of_repetitions(ampsched_process: Ampsched) -> None:
    arguments = ("compare", "-m", "2B2S", "-w", "sync-1", "-p", "cfs,colab", "--repetitions", "3", "--json")
    outputs = {ampsched_process(*arguments, "--jobs", jobs).out for jobs in ("1", "2")}
    assert len(outputs) == 1
    assert '"h_antt"' in outputs.pop()


@pytest.mark.parametrize("policy", ["cfs", "eevdf", "colab", "wash"])
def test_traces(ampsched_process: Ampsched, tmp_path: Path, policy: str) -> None:
    contents = set()
    for name in ("a.pftrace", "b.pftrace"):
        ended = ampsched_process("simulate", "-m", "2B2S", "-w", "sync-1", "-p", policy, "--trace", name)
        assert ended.code == 0
        contents.add((tmp_path / name).read_bytes())
    assert len(contents) == 1
