"""Guests that change their frequencies, and what their traces tell."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

from ampsched import Catalog
from ampsched.vm import exact
from ampsched.vm.exact import trace

MACHINE = "hikey960"
"""Two clusters of four, five frequencies each, with known powers."""
TOLERANCE = 0.005
"""Ticks are no part of a loop; the slower the core, the more of its time they take."""
MIPS = 5000
"""So fast that ticks, of which there are 250 per second, take some thousandths of the slowest core's time."""
LIMIT_S = 3000


def run(cwd: Path, script: str, governor: str, file: Path | None = None, **changes: Any) -> exact.Done:
    guest = exact.Exact(
        Catalog.shipped().machine(MACHINE), architecture="aarch64", governor=governor, **changes
    )
    done = exact.run(guest, exact.Work(["sh", "-euc", script], cwd=cwd), trace=file, limit_s=LIMIT_S)
    assert done.code == 0, (done.output, done.console)
    return done


# One shell on the last core of each cluster, the first ones having the kernel's own work: a loop at each frequency,
# kHz, and the CPU time that it took in ns, which the kernel only counts when a thread gives its core away.
SCALING = """
cd /sys/devices/system/cpu/cpufreq
for policy in policy0 policy4; do
    taskset -c $((${policy#policy} + 3)) sh -c '
        for khz in $(cat $0/scaling_available_frequencies); do
            echo $khz >$0/scaling_setspeed
            sleep 0.001
            read -r begin _ </proc/self/schedstat
            i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done
            sleep 0.001
            read -r end _ </proc/self/schedstat
            echo $0 $khz $((end - begin))
        done' $policy
done
"""


@pytest.mark.parametrize("kernel", ["6.18", "7.3"])
def test_a_loop_takes_as_much_longer_as_its_clock_is_slower(kernel: str, tmp_path: Path) -> None:
    done = run(tmp_path, SCALING, "userspace", kernel=kernel, mips=MIPS)
    took: dict[str, dict[int, int]] = {}
    for policy, khz, ns in (line.split() for line in done.output.splitlines()):
        took.setdefault(policy, {})[int(khz)] = int(ns)
    machine = Catalog.shipped().machine(MACHINE)
    stated = [[mhz * 1000 for mhz in machine.frequencies_mhz(cluster)] for cluster in (0, 1)]
    assert [sorted(took["policy0"]), sorted(took["policy4"])] == stated
    for times in took.values():
        cycles = {khz: khz * ns for khz, ns in times.items()}
        print(times, {khz: each / cycles[max(cycles)] for khz, each in cycles.items()})
        for each in cycles.values():
            assert abs(each / cycles[max(cycles)] - 1) < TOLERANCE


# Idle, then busy on one core, then idle: kHz of both clusters each time. Before that, whether EAS was started.
LOAD = """
echo Y >/sys/kernel/debug/sched/verbose
cd /sys/devices/system/cpu/cpufreq
for governor in performance schedutil; do
    for policy in policy*; do echo $governor >$policy/scaling_governor; done
    sleep 0.1
done
dmesg | grep 'sched_energy_set' | tail -n 1
dmesg | grep 'root_domain.*pd' | tail -n 1
sleep 0.3
cat policy*/scaling_cur_freq
taskset -c 4 sh -c 'i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done' &
sleep 0.3
cat policy*/scaling_cur_freq
wait
sleep 0.3
cat policy*/scaling_cur_freq
"""


def test_schedutil_follows_load_and_energy_is_known(tmp_path: Path) -> None:
    file = tmp_path / "load.pftrace"
    done = run(tmp_path, LOAD, "schedutil", file)
    eas, domains, *khz = done.output.splitlines()
    assert eas.endswith("starting EAS")
    assert re.search(r"pd4:\{ cpus=4-7 nr_pstate=5 \} pd0:\{ cpus=0-3 nr_pstate=5 \}", domains)
    idle, busy, idle_again = (tuple(map(int, khz[i : i + 2])) for i in (0, 2, 4))
    highest = max(Catalog.shipped().machine(MACHINE).frequencies_mhz(1)) * 1000
    print(idle, busy, idle_again)
    assert busy[1] == highest
    assert idle[1] < highest
    assert idle_again[1] < highest
    check_trace(file, highest // 1000)


# A thread that works for 23 of 25 ms, and then for 1 of 16 on a big core. A wait of `read` creates no process.
BURST = """
mkfifo /run/never
exec 3<>/run/never
echo N >/sys/module/damon_stat/parameters/enabled
cat >/run/burst <<'END'
printf burst >/proc/self/comm
periods() {
    n=0
    while [ $n -lt $1 ]; do
        i=0; while [ $i -lt $2 ]; do i=$((i+1)); done
        read -t $3 -u 3 x
        n=$((n+1))
    done
}
periods ROUNDS 1350 0.002
periods 40 78 0.015
END
sh /run/burst || true
"""
AGAIN_MS = 512 + 5 * 16
"""A timer of the kernel's own on an idle core (`kcompactd`), and the time in which the thread's utilisation falls."""


@pytest.mark.parametrize("rounds", [30, 44])
def test_h34_11_energy_counts_again_soon_after_a_burst(rounds: int, tmp_path: Path) -> None:
    """What `linux` does in a simulation (crates/policy/src/fair/nohz.rs); with DAMON's thread it is sooner."""
    file = tmp_path / "burst.trace"
    run(tmp_path, BURST.replace("ROUNDS", str(rounds)), "schedutil", file)
    with file.open(errors="replace") as lines:
        switches = [event for event in trace.events(lines) if event.kind == trace.SWITCH]
    began = {int(each.values["to_tid"]): each for each in switches if each.values["to"] == "burst"}
    (tid,) = began
    turns, since_ns = [], None
    for event in switches:
        if int(event.values["from_tid"]) == tid and since_ns is not None:
            turns.append((since_ns / 1e6, event.at_ns / 1e6, event.core))
        since_ns = event.at_ns if int(event.values["to_tid"]) == tid else since_ns
    burst_end_ms = max(end for begin, end, _ in turns if end - begin > 10)
    on_big_ms = max(end for _, end, core in turns if core >= 4)
    print(rounds, burst_end_ms, on_big_ms, turns[-1])
    assert burst_end_ms < on_big_ms < burst_end_ms + AGAIN_MS
    assert turns[-1][2] < 4


def check_trace(path: Path, highest_mhz: int) -> None:
    """The loop is on its core for most of the time, and the kernel says its cluster's highest frequency."""
    told = Trace()
    told.ParseFromString(path.read_bytes())
    events = sorted(
        (
            event
            for packet in told.packet
            if packet.ftrace_events.cpu == 4
            for event in packet.ftrace_events.event
        ),
        key=lambda event: event.timestamp,
    )
    mhz = {event.cpu_frequency.state // 1000 for event in events if event.HasField("cpu_frequency")}
    switches = [event for event in events if event.HasField("sched_switch")]
    turns = [
        (after.timestamp - before.timestamp, before.sched_switch.next_comm)
        for before, after in pairwise(switches)
        if before.sched_switch.next_pid
    ]
    assert highest_mhz in mhz
    assert len(mhz) > 1
    longest_ns, name = max(turns)
    assert name == "sh"
    assert longest_ns > 100_000_000
