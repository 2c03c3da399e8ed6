"""Perfetto's own tables, as its trace processor fills them from a trace, say what the outcome says."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import ROOT
from trace_processor import Ask, Rows, ask, needs_trace_processor

import ampsched

__all__ = ["ask"]  # a fixture
pytestmark = needs_trace_processor

PAGE = ROOT / "docs/howto/read-a-trace.md"
# Of the programs' own threads: not idle, not the kernel's.
OWN = "join thread t using (utid) join process p using (upid) where pid > 2"
RUNNING = f"select p.name app, t.name thread, sum(dur) ns from sched {OWN} group by utid"


def _by_name(rows: Rows) -> Counter[tuple[str, str]]:
    times: Counter[tuple[str, str]] = Counter()
    for row in rows:
        times[row["app"], row["thread"]] += row["ns"]
    return times


def _of(outcome: ampsched.Outcome) -> Counter[tuple[str, str]]:
    times: Counter[tuple[str, str]] = Counter()
    for thread in outcome.threads:
        times[outcome.apps[thread.app].name, thread.name] += thread.big_ns + thread.little_ns
    return times


@pytest.mark.parametrize("policy", ["linux", "cfs", "colab", "max-fair", "rr"])
def test_running_times_of_a_mix_of_ten_seconds_are_the_outcome_s_to_the_nanosecond(
    policy: str, ask: Ask, tmp_path: Path
) -> None:
    trace = tmp_path / "out.pftrace"
    outcome = ampsched.simulate("2B2S", "sync-2", policy, repetitions=6, trace=trace)
    assert outcome.makespan_ns > 10e9
    running, cores, slept, woken, wrong = ask(
        trace,
        RUNNING,
        f"select cpu, sum(dur) ns from sched {OWN} group by cpu",
        f"select count(*) n from thread_state {OWN} and state = 'S' and dur >= 0",
        "select count(*) n, count(distinct waker_utid) wakers from thread_state where waker_utid is not null",
        "select name, value from stats where value != 0 and severity != 'info'",
    )
    assert _by_name(running) == _of(outcome)
    assert [row["ns"] for row in cores] == [core.busy_ns for core in outcome.cores]
    assert slept[0]["n"] == outcome.counts.wakeups
    # Every thread but each program's first one is created, or woken, by another one.
    assert woken[0]["n"] > outcome.counts.wakeups / 2
    assert woken[0]["wakers"] > 1
    assert wrong == []


def test_states_of_threads_fit_the_outcome(ask: Ask, tmp_path: Path) -> None:
    """A thread that is taken from a core is not shown as waiting while it runs on the other one."""
    trace = tmp_path / "out.pftrace"
    outcome = ampsched.simulate("2B2S", "sync-2", "colab", trace=trace)
    query = f"select p.name app, t.name thread, sum(dur) ns from thread_state {OWN} and state = '%s' group by utid"
    running, waiting, ready = ask(trace, query % "Running", query % "R+", query % "R")
    assert _by_name(running) == _of(outcome)
    waited_ns = sum(thread.ready_ns for thread in outcome.threads)
    assert sum(row["ns"] for row in waiting + ready) == waited_ns


def test_frequencies_and_power_are_those_of_the_outcome(ask: Ask, tmp_path: Path) -> None:
    trace = tmp_path / "out.pftrace"
    outcome = ampsched.simulate("hikey960", "sync-2", "cfs", governor="schedutil", energy=True, trace=trace)
    clocks, powers = ask(
        trace,
        "select cpu, ts, value from counter c join cpu_counter_track t on c.track_id = t.id where t.name = 'cpufreq'"
        " order by ts",
        "select t.name, ts, value from counter c join track t on c.track_id = t.id where t.name glob '* power'"
        " order by ts",
    )
    for first_cpu, cluster in zip((0, 4), outcome.clusters, strict=True):
        own = [(row["ts"], int(row["value"]) // 1000) for row in clocks if row["cpu"] == first_cpu]
        held: Counter[int] = Counter()
        for (from_ns, mhz), (to_ns, _) in pairwise([*own, (outcome.makespan_ns, 0)]):
            held[mhz] += to_ns - from_ns
        assert +held == {mhz: ns for mhz, ns in cluster.residency if ns}
        drawn = [(row["ts"], row["value"]) for row in powers if row["name"] == f"{cluster.name} power"]
        uj = sum(
            mw * (to_ns - from_ns) / 1e6
            for (from_ns, mw), (to_ns, _) in pairwise([*drawn, (outcome.makespan_ns, 0)])
        )
        energy = cluster.energy
        assert energy is not None
        assert uj == pytest.approx(energy.running_uj + energy.idle_uj + energy.uncore_uj, rel=1e-6)


def test_noise_is_kernel_threads_and_interrupts(ask: Ask, tmp_path: Path) -> None:
    trace = tmp_path / "out.pftrace"
    outcome = ampsched.simulate("2B2S", "sync-2", "cfs", noise="busy", trace=trace)
    running, kernel, interrupts = ask(
        trace,
        RUNNING,
        "select sum(dur) ns from sched join thread using (utid) join process p using (upid) where pid = 2",
        "select count(*) n from slice join track t on slice.track_id = t.id where t.type = 'cpu_irq'",
    )
    assert _by_name(running) == _of(outcome)
    assert kernel[0]["ns"] > 1e6
    assert 0 < interrupts[0]["n"] < outcome.counts.noise


def test_the_pages_queries_answer(ask: Ask, tmp_path: Path) -> None:
    queries = [block.split("```")[0] for block in PAGE.read_text("utf-8").split("```sql\n")[1:]]
    assert len(queries) >= 3
    trace = tmp_path / "colab.pftrace"
    ampsched.simulate("2B2S", "sync-1", "colab", trace=trace)
    for query, rows in zip(queries, ask(trace, *queries), strict=True):
        assert rows, query
