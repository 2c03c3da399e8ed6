"""The matrix of kernels: what a guest says is judged, kept and shown; nothing is booted."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ampsched.vm.kernel import kernels
from ampsched_lab.kernels import report
from ampsched_lab.kernels.matrix import COLUMNS, GUEST, LOAD, LOAD_DID, Result, cells, lacking

OUTPUT = f"""7.3.4+deb13-cloud-amd64
policy rr
said ampsched-live-scx: rr on big 0-1, little 2-3 (stated by hand)
said load enabled enabled {LOAD_DID}
code 0
after disabled
log [    2.000000] begin
log [    3.250000] sched_ext: BPF scheduler "ampsched" enabled
log [    4.000000] sched_ext: BPF scheduler "ampsched" disabled (unregistered from user space)
policy gts
said error: scx: policy gts cannot run inside the kernel: it needs tracked load
code 2
after disabled
log [    4.100000] begin
policy big
said error: scx: the kernel refuses the programs: Argument list too long (os error 7)
code 2
after disabled
log [    5.000000] begin
policy half
said load enabled
"""


def test_what_the_guest_says_is_judged() -> None:
    runs, refused, fails = cells(OUTPUT)
    assert (runs.name, runs.load_s(), runs.runs(), runs.reason(), runs.faults()) == (
        "rr",
        1.25,
        True,
        None,
        [],
    )
    assert (refused.load_s(), refused.runs(), refused.reason()) == (None, False, "it needs tracked load")
    assert refused.faults() == []
    assert (fails.name, fails.runs(), fails.reason()) == ("big", False, None)
    assert len(fails.faults()) == 2, "neither exit code nor load are as they should be"
    assert "Argument list too long" in fails.faults()[0]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"after": "enabled"}, "the kernel's scheduler is enabled afterwards"),
        ({"code": 1}, "exit code 1"),
        ({"said": ("load enabled disabled " + LOAD_DID,)}, "the load says"),
        ({"said": ("load enabled enabled counted counted",)}, "the load says"),
        ({"said": ()}, "the load says []"),
        ({"log": ("[ 3.0] WARNING: CPU: 1 PID: 7",)}, "the kernel says: [ 3.0] WARNING"),
        ({"log": ("[ 3.0] sched_ext: runnable task stall (sh[12])",)}, "runnable task stall"),
    ],
)
def test_what_should_not_happen_is_a_fault(change: dict[str, object], fault: str) -> None:
    spoilt = replace(cells(OUTPUT)[0], **change)  # type: ignore[arg-type]
    assert any(fault in found for found in spoilt.faults()), spoilt.faults()


def test_others_may_exit_as_they_like_but_not_leave_the_load() -> None:
    peer = replace(cells(OUTPUT)[0], code=130)
    assert peer.faults(is_ours=False) == []
    assert peer.faults() != []
    assert replace(peer, said=()).faults(is_ours=False) != []
    # They need not load.
    log = peer.log[:1]
    out = replace(peer, code=1, said=("\x1b[31mError\x1b[0m: no such kfunc", "load disabled"), log=log)
    assert (out.load_s(), out.faults(is_ours=False), out.last_words()) == (None, [], "Error: no such kfunc")
    assert replace(out, log=(*log, "[ 3.0] BUG: x")).faults(is_ours=False) != []
    assert replace(out, after="enabled").faults(is_ours=False) != []


def test_the_page_has_a_column_for_each_kernel(tmp_path: Path) -> None:
    runs, refused, fails = cells(OUTPUT)
    newest, oldest = COLUMNS[3], COLUMNS[0]
    for column, policies in ((newest, (runs, refused)), (oldest, (runs, fails)), (oldest, (runs, refused))):
        report.add(tmp_path, report.Measured.of(Result(column, f"{column.kernel}.1", policies)))
    assert [each.column for each in report.read(tmp_path)] == [oldest, newest]
    page = (tmp_path / report.PAGE).read_text()
    assert "| policy | 6.16 x86-64 | 7.3 x86-64 |" in page
    assert "| rr | 1.25 | 1.25 |" in page
    assert "| gts | no | no |" in page
    assert "* gts: it needs tracked load\n" in page
    assert "no policy failed" in page
    peers = (
        replace(runs, name="scx_x", said=("no such field",)),
        replace(fails, name="scx_y", said=("no kfunc",)),
    )
    report.add(tmp_path, report.Measured.of(Result(oldest, "6.16.1", (runs, fails), peers)))
    page = (tmp_path / report.PAGE).read_text()
    assert "| big | **fails** |  |" in page
    assert "| gts |  | no |" in page
    assert "* gts: it needs tracked load (in 7.3 x86-64)\n" in page
    assert "* big in 6.16 x86-64: exit code 2" in page
    assert "| scx_x | **fails** |  |\n| scx_y | no |  |" in page
    assert "* scx_y: its last words are: no kfunc (in 6.16 x86-64)\n" in page


def test_what_the_doctor_says_is_read() -> None:
    assert lacking(OUTPUT) is None
    essential, note = {"is_essential": True}, {"is_essential": False}
    verdicts = {"gts": {"scx": [note, essential]}, "rr": {"scx": [note]}, "cfs": {"scx": []}}
    said = json.dumps({"policies": verdicts}, indent=1)
    output = OUTPUT.replace(
        "policy rr\n", "".join(f"doctor {line}\n" for line in said.splitlines()) + "policy rr\n"
    )
    assert lacking(output) == {"gts"}
    assert [cell.name for cell in cells(output)] == ["rr", "gts", "big"]


def test_columns_are_kernels_that_can_be_had() -> None:
    for column in COLUMNS:
        assert column.kernel in kernels(column.architecture), column
    assert len({column.title() for column in COLUMNS}) == len(COLUMNS)


@pytest.mark.parametrize("script", [GUEST, LOAD])
def test_scripts_are_shell(script: Path) -> None:
    subprocess.run(["sh", "-n", script], check=True)
