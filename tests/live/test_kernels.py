"""The matrix of kernels: policies load, run a mixed load and let go, or are refused by name. Needs no rights.

A small part runs by default. ``campaign-kernels`` has every policy on every kernel (``KERNELS=all``) and writes
what it finds into a folder (``REPORT``); ``KERNELS`` may also name columns, such as ``7.3/cortex-a57``.
"""

import os
import platform
import sys
from pathlib import Path

import pytest

from ampsched import policies
from ampsched.vm import exact
from ampsched_lab.kernels import report
from ampsched_lab.kernels.matrix import COLUMNS, Column, run

ROOT = Path(__file__).resolve().parents[2]
KERNELS, REPORT = os.environ.get("KERNELS", ""), os.environ.get("REPORT", "")
PEERS = [ROOT / ".build/peers/bin" / name for name in ("scx_bpfland", "scx_lavd")]
X86 = [column for column in COLUMNS if column.architecture == "x86_64"]
# One of each order of queues, and one that is refused: shared out, as loading takes long. The verifier of 6.16 would
# crash at eevdf.
SOME = {X86[0]: ("rr", "a-dwrr", "eevdf"), X86[-1]: ("cfs", "eevdf", "colab", "gts")}
"""What is tried by default: on the oldest and the newest kernel of x86-64."""


def name_of(column: Column) -> str:
    return f"{column.kernel}/{column.cpu}"


def wanted() -> list[Column]:
    """The columns that are asked for."""
    if KERNELS == "all":
        return list(COLUMNS)
    named = {name_of(column): column for column in COLUMNS}
    return [named[name] for name in KERNELS.split(",")] if KERNELS else list(SOME)


def progress(column: Column, text: str) -> None:
    """Says which policy a campaign is at."""
    for line in text.splitlines():
        if KERNELS and line.startswith("policy "):
            print(f"{name_of(column)}: {line.removeprefix('policy ')}", file=sys.__stderr__, flush=True)


@pytest.mark.parametrize("column", wanted(), ids=name_of)
def test_policies_run_in_a_kernel_or_are_refused_by_name(column: Column, loader: Path) -> None:
    names = [policy.name for policy in policies()] if KERNELS else SOME[column]
    program = exact.loader(column.architecture) if KERNELS else loader
    # Peers and the doctor are built for this computer.
    is_own = column.architecture == platform.machine()
    peers = [peer for peer in PEERS if KERNELS and is_own and peer.exists()]
    doctor = program.with_name("ampsched-live") if is_own else None
    result = run(column, names, program, peers, doctor, lambda text: progress(column, text))
    if REPORT:
        report.add(Path(REPORT), report.Measured.of(result))
    assert [cell.name for cell in result.policies] == list(names)
    assert {cell.name: cell.faults() for cell in result.policies if cell.faults()} == {}
    refused = {cell.name for cell in result.policies if cell.reason()}
    assert refused | {cell.name for cell in result.policies if cell.runs()} == set(names)
    if is_own:
        assert result.lacking is not None
        assert refused == result.lacking & set(names)
    # Whether others load is not for us to say; a kernel that they leave spoilt is.
    assert [f"{peer.name}: {peer.last_words()}" for peer in result.peers if peer.after != "disabled"] == []
