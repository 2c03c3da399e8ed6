"""A kernel's trace in the form of simulations: what becomes of its lines; no machine is started."""

import pytest
from test_trace import Decoded, decode

from ampsched import Catalog
from ampsched.vm.exact.trace import write_trace

# As Linux 6.18 writes it; the thread that wakes another one has a name that looks like a part of a line.
LINES = """\
# tracer: nop
#
# entries-in-buffer/entries-written: 12/12   #P:4
#
   a b-7 ] x-31      (     31) [000] d..2.     5.000000: sched_waking: comm=worker pid=33 prio=120 target_cpu=002
          <idle>-0       (-------) [002] d..2.     5.000010: sched_switch: prev_comm=swapper/2 prev_pid=0 \
prev_prio=120 prev_state=R ==> next_comm=worker next_pid=33 next_prio=120
   a b-7 ] x-31      (     31) [000] d.h2.     5.000015: sched_waking: comm=kworker/0:1 pid=9 prio=120 target_cpu=000
   a b-7 ] x-31      (     31) [000] d..2.     5.000020: sched_switch: prev_comm=a b-7 ] x prev_pid=31 \
prev_prio=120 prev_state=R+ ==> next_comm=kworker/0:1 next_pid=9 next_prio=120
     kworker/0:1-9       (      9) [000] d..2.     5.000030: sched_migrate_task: comm=a b-7 ] x pid=31 prio=120 \
orig_cpu=0 dest_cpu=1
     kworker/0:1-9       (      9) [000] d..2.     5.000031: cpu_frequency: state=900000 cpu_id=3
     kworker/0:1-9       (      9) [000] d..2.     5.000040: sched_switch: prev_comm=kworker/0:1 prev_pid=9 \
prev_prio=120 prev_state=I ==> next_comm=swapper/0 next_pid=0 next_prio=120
          <idle>-0       (-------) [001] d..2.     5.000050: sched_switch: prev_comm=swapper/1 prev_pid=0 \
prev_prio=120 prev_state=R ==> next_comm=a b-7 ] x next_pid=31 next_prio=120
          worker-33      (     31) [002] d..2.     5.000060: sched_switch: prev_comm=worker prev_pid=33 \
prev_prio=120 prev_state=S ==> next_comm=swapper/2 next_pid=0 next_prio=120
   a b-7 ] x-31      (     31) [001] d..2.     5.000070: sched_switch: prev_comm=a b-7 ] x prev_pid=31 \
prev_prio=120 prev_state=Z ==> next_comm=swapper/1 next_pid=0 next_prio=120
# kernel threads: 2 9
"""


@pytest.fixture(scope="module")
def decoded(tmp_path_factory: pytest.TempPathFactory) -> Decoded:
    folder = tmp_path_factory.mktemp("trace")
    (folder / "text").write_text(LINES, "utf-8")
    with (folder / "out.pftrace").open("wb") as file:
        write_trace(folder / "text", Catalog.shipped().machine("2B2S"), file)
    return decode(folder / "out.pftrace")


def turns(decoded: Decoded, cpu: int) -> list[tuple[int, int, int]]:
    """Thread, begin and end in us of all turns on a CPU."""
    return [(each.tid, each.start_ns // 1000, each.end_ns // 1000) for each in decoded.turns(cpu)]


def test_each_core_has_its_turns_and_its_class(decoded: Decoded) -> None:
    boss, kernel, worker = 31, 9, 33
    assert decoded.cpus == ["big cortex-a57 2000 MHz"] * 2 + ["little cortex-a53 1200 MHz"] * 2
    assert turns(decoded, 0) == [(boss, 20, 20), (kernel, 20, 40)]
    assert turns(decoded, 1) == [(boss, 50, 70)]
    assert turns(decoded, 2) == [(worker, 10, 60)]
    assert turns(decoded, 3) == []


def test_who_has_lost_its_core_is_ready_or_asleep(decoded: Decoded) -> None:
    interrupted, asleep = 0x800, 0x1
    states = [each.state for cpu in range(3) for each in decoded.turns(cpu)]
    assert states == [interrupted, asleep, asleep, asleep]


def test_threads_belong_to_their_processes(decoded: Decoded) -> None:
    assert decoded.threads == {31: (31, "a b-7 ] x"), 33: (31, "worker"), 9: (2, "kworker/0:1")}
    assert decoded.processes == {31: "a b-7 ] x", 2: "kernel"}


def test_wakers_are_told_but_not_who_was_interrupted(decoded: Decoded) -> None:
    wakings = decoded.of_kind("sched_waking")
    assert [(each.pid, each.sched_waking.pid, each.sched_waking.target_cpu) for each in wakings] == [
        (31, 33, 2),
        (0, 9, 0),
    ]


def test_queues_and_frequencies_are_counted(decoded: Decoded) -> None:
    queues = {
        name: [(at_ns // 1000, value) for at_ns, value in values] for name, values in decoded.counters.items()
    }
    big, little = "(big cortex-a57 2000 MHz)", "(little cortex-a53 1200 MHz)"
    assert queues == {
        f"core 0 {big} run queue": [(15, 1), (20, 2), (20, 1), (30, 0)],
        f"core 1 {big} run queue": [(30, 1), (50, 0)],
        f"core 2 {little} run queue": [(0, 1), (10, 0)],
    }
    clocks = [(each.timestamp, each.cpu_frequency) for each in decoded.of_kind("cpu_frequency")]
    assert [(at_ns, clock.cpu_id, clock.state) for at_ns, clock in clocks] == [
        (31_000, 2, 900_000),
        (31_000, 3, 900_000),
    ]
