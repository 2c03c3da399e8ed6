"""Machines whose cores have two threads, and kernels that know which cores to use first."""

import re
from pathlib import Path

import pytest

from ampsched import Catalog
from ampsched.vm import exact

MACHINE = Catalog.shipped().machine("i7-1360p").part(["p=4", "e0=1", "e1=0"])
"""Two cores of two threads, 0 to 3, and one of one thread."""
SPEED = MACHINE.siblings[0][2]
LIMIT_S = 600
TOLERANCE = 0.005
"""Ticks and the shells' start are no part of the loop."""

# Who shares a core, and the CPU time of a loop in ns on some CPUs at once.
SCRIPT = """
cat /sys/devices/system/cpu/cpu?/topology/thread_siblings_list
echo Y >/sys/kernel/debug/sched/verbose
for cpu in 0 4; do echo cpu$cpu $(cat /sys/kernel/debug/sched/domains/cpu$cpu/domain0/name); done
loop() {
    taskset -c $1 sh -c '
        read -r begin _ </proc/self/schedstat
        i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done
        read -r end _ </proc/self/schedstat
        echo took $((end - begin))'
}
for cpus in 2 "2 3" "0 2" "2 4"; do
    for cpu in $cpus; do echo on $cpu of $cpus $(loop $cpu) & done
    wait
done
"""


def guest(**changes: object) -> exact.Exact:
    return exact.Exact(MACHINE, mips=500.0, **changes)  # type: ignore[arg-type]


def run(machine: exact.Exact, script: str, trace: Path | None = None) -> exact.Done:
    done = exact.run(
        machine, exact.Work(["sh", "-c", script], cwd=Path("/tmp")), trace=trace, limit_s=LIMIT_S
    )
    assert done.code == 0, (done.output, done.console)
    return done


@pytest.mark.parametrize("architecture", ["x86_64", "aarch64"])
def test_busy_siblings_have_part_of_their_speed(architecture: str) -> None:
    done = run(guest(architecture=architecture), SCRIPT)
    print(done.output)
    lines = done.output.splitlines()
    assert lines[:5] == ["0-1", "0-1", "2-3", "2-3", "4"]
    assert lines[5] == "cpu0 SMT"
    assert re.fullmatch("cpu4 (MC|PKG)", lines[6])
    took = {
        (cpus, int(cpu)): int(ns)
        for cpu, cpus, ns in re.findall(r"^on (\d) of (.*) took (\d+)$", done.output, re.MULTILINE)
    }
    alone = took["2", 2]
    assert [took["2 3", cpu] for cpu in (2, 3)] == pytest.approx([alone / SPEED] * 2, rel=TOLERANCE)
    assert [took["0 2", cpu] for cpu in (0, 2)] == pytest.approx([alone] * 2, rel=TOLERANCE)
    assert took["2 4", 2] == pytest.approx(alone, rel=TOLERANCE)
    assert took["2 4", 4] > 1.2 * alone


def test_two_runs_are_the_same() -> None:
    script = (
        "for n in 1 2 3; do (i=0; while [ $i -lt 9999 ]; do i=$((i+1)); done) & done; wait; cat /proc/uptime"
    )
    one, other = (run(guest(priorities=True), script + " /proc/schedstat /proc/interrupts") for _ in range(2))
    assert one.output == other.output
    assert one.console == other.console
    assert one.report is not None
    assert other.report is not None
    assert (one.report.virtual_s, one.report.instructions) == (
        other.report.virtual_s,
        other.report.instructions,
    )


# A program that never waits, kept on the slow core at first: the CPU on which it is in the end.
LEFT_ON_THE_SLOW_CORE = """
taskset -c 4 sh -c '
    i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done
    read -r line </proc/$$/stat
    set -- $line
    echo ${39}' &
sleep 0.1
taskset -cp 0-4 $! >/dev/null
wait
"""


@pytest.mark.parametrize("knows", [False, True])
def test_kernels_with_priorities_fetch_programs_from_slow_cores(knows: bool) -> None:
    place = int(run(guest(priorities=knows), LEFT_ON_THE_SLOW_CORE).output)
    assert (place < 4) == knows


# Programs that never wait: the CPUs on which they are in the end.
HOGS = """
for n in $(seq {hogs}); do
    sh -c '
        i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done
        read -r line </proc/$$/stat
        set -- $line
        echo on ${{39}}' &
done
wait
"""


# Two have cores of their own beside the shell that starts them. Of three, one has to be parted from its sibling when
# the shell waits; policies that fetch programs from the slow core show nothing of that in the end.
@pytest.mark.parametrize(
    ("policy", "hogs"), [("rr", 2), ("abreast", 2), ("colab", 2), ("gts", 2), ("cfs", 3)]
)
def test_policies_fill_cores_with_both_threads_idle_first(policy: str, hogs: int, loader: Path) -> None:
    machine = guest()
    words, needed = exact.under(policy, machine, ["sh", "-c", HOGS.format(hogs=hogs)], loader)
    done = exact.run(machine, exact.Work(words, needed), limit_s=LIMIT_S)
    assert done.code == 0, (done.output, done.console)
    cpus = [int(cpu) for cpu in re.findall(r"^on (\d)$", done.output, re.MULTILINE)]
    assert len({cpu // 2 for cpu in cpus}) == hogs, (cpus, done.output)
