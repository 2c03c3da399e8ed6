"""A kernel's trace in the form of simulations: what becomes of its lines; no machine is started."""

import pytest
from test_trace import Decoded, Slice, decode

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


def slices(decoded: Decoded, name: str) -> list[tuple[str, int, int]]:
    """Name, begin and end in us of all that is on a track."""
    return [(each.name, each.start_ns // 1000, each.end_ns // 1000) for each in decoded.named(name)]


def test_each_core_has_its_turns_and_its_class(decoded: Decoded) -> None:
    boss, kernel = "a b-7 ] x 31/a b-7 ] x 31", "kernel/kworker/0:1 9"
    assert slices(decoded, "core 0 big cortex-a57 2000 MHz") == [(boss, 20, 20), (kernel, 20, 40)]
    assert slices(decoded, "core 1 big cortex-a57 2000 MHz") == [(boss, 50, 70)]
    assert slices(decoded, "core 2 little cortex-a53 1200 MHz") == [("a b-7 ] x 31/worker 33", 10, 60)]
    assert slices(decoded, "core 3 little cortex-a53 1200 MHz") == []


def test_threads_belong_to_their_processes(decoded: Decoded) -> None:
    processes = {
        track.thread.thread_name: track.thread.pid
        for track in decoded.tracks.values()
        if track.HasField("thread")
    }
    assert processes.keys() == {"a b-7 ] x 31", "worker 33", "kworker/0:1 9"}
    assert processes["worker 33"] == processes["a b-7 ] x 31"] != processes["kworker/0:1 9"]


def test_arrows_lead_from_wakers_but_not_from_who_was_interrupted(decoded: Decoded) -> None:
    instants: list[Slice] = [each for track in decoded.instants.values() for each in track]
    assert [each.name for each in instants] == ["wakes a b-7 ] x 31/worker 33"]
    assert decoded.starts == decoded.ends
    assert sum(decoded.starts.values()) == 1


def test_queues_and_frequencies_are_counted(decoded: Decoded) -> None:
    found = {
        track.name: [(at_ns // 1000, value) for at_ns, value in decoded.counters[uuid]]
        for uuid, track in decoded.tracks.items()
        if decoded.counters[uuid]
    }
    assert found == {
        "core 0 run queue": [(15, 1), (20, 2), (20, 1), (30, 0)],
        "core 1 run queue": [(30, 1), (50, 0)],
        "core 2 run queue": [(0, 1), (10, 0)],
        "little frequency": [(31, 900)],
    }
