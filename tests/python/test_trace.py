"""Traces, decoded with Perfetto's own message types, say what the outcome says."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

import ampsched


@dataclass
class Slice:
    """An interval on a track."""

    name: str
    start_ns: int
    end_ns: int = -1
    instructions: int = 0
    values: dict[str, Any] = field(default_factory=dict)
    """Values by path, such as `why.rule`."""


@dataclass(frozen=True)
class Turn:
    """A thread's stay on a CPU, from one `sched_switch` to the next."""

    tid: int
    start_ns: int
    end_ns: int
    state: int


@dataclass
class Decoded:
    """A trace as a viewer reads it."""

    tracks: dict[int, Any] = field(default_factory=dict)
    slices: dict[int, list[Slice]] = field(default_factory=lambda: defaultdict(list))
    instants: dict[int, list[Slice]] = field(default_factory=lambda: defaultdict(list))
    counters: dict[str, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    """By the name of the track: times in ns and values."""
    events: dict[int, list[Any]] = field(default_factory=lambda: defaultdict(list))
    """The kernel's events of each CPU."""
    processes: dict[int, str] = field(default_factory=dict)
    threads: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Process and name of each thread."""
    cpus: list[str] = field(default_factory=list)

    def turns(self, cpu: int) -> list[Turn]:
        """Who has had a CPU; idle ones are left out."""
        found, on, since_ns = [], 0, 0
        for event in self.of_kind("sched_switch", cpu):
            switch = event.sched_switch
            assert switch.prev_pid == on, "who leaves is not who came"
            if on:
                found.append(Turn(on, since_ns, event.timestamp, switch.prev_state))
            on, since_ns = switch.next_pid, event.timestamp
        assert on == 0, "a turn does not end"
        return found

    def of_kind(self, kind: str, *cpus: int) -> list[Any]:
        """Events of one kind, on all CPUs or some, in the order of time."""
        own = [event for cpu in cpus or self.events for event in self.events[cpu]]
        return sorted((event for event in own if event.HasField(kind)), key=lambda event: event.timestamp)

    def named(self, tid: int) -> tuple[str, str]:
        """Names of a thread's process and of itself."""
        pid, name = self.threads[tid]
        return self.processes[pid], name


@dataclass
class Names:
    """Texts that are written once and then named by a number."""

    events: dict[int, str] = field(default_factory=dict)
    values: dict[int, str] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)

    def read(self, annotations: Any, group: str = "") -> dict[str, Any]:
        """Values by path."""
        found: dict[str, Any] = {}
        for each in annotations:
            name = group + self.values[each.name_iid]
            if each.dict_entries:
                found |= self.read(each.dict_entries, f"{name}.")
            elif each.HasField("string_value_iid"):
                found[name] = self.texts[each.string_value_iid]
            else:
                found[name] = getattr(each, each.WhichOneof("value"))
        return found


def decode(path: Path) -> Decoded:
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    decoded, names, now_ns = Decoded(), Names(), 0
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        data = packet.interned_data
        names.events.update((name.iid, name.name) for name in data.event_names)
        names.values.update((name.iid, name.name) for name in data.debug_annotation_names)
        names.texts.update((text.iid, text.str.decode()) for text in data.debug_annotation_string_values)
        decoded.cpus += [cpu.processor for cpu in packet.cpu_info.cpus]
        decoded.processes |= {each.pid: each.cmdline[0] for each in packet.process_tree.processes}
        decoded.threads |= {each.tid: (each.tgid, each.name) for each in packet.process_tree.threads}
        decoded.events[packet.ftrace_events.cpu] += packet.ftrace_events.event
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in decoded.tracks
            decoded.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            assert packet.sequence_flags & TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
            now_ns += packet.timestamp
            add(decoded, packet.track_event, names, now_ns)
    return decoded


def add(decoded: Decoded, event: Any, names: Names, now_ns: int) -> None:
    track = decoded.tracks[event.track_uuid]
    slices = decoded.slices[event.track_uuid]
    match event.type:
        case TrackEvent.TYPE_SLICE_BEGIN:
            assert not slices or slices[-1].end_ns >= 0, "a slice begins inside another"
            values = names.read(event.debug_annotations)
            slices.append(Slice(names.events[event.name_iid], now_ns, values=values))
        case TrackEvent.TYPE_SLICE_END:
            assert slices[-1].end_ns < 0, "a slice ends twice"
            slices[-1].end_ns = now_ns
            values = names.read(event.debug_annotations)
            slices[-1].instructions = values.pop("instructions", 0)
            slices[-1].values |= values
        case TrackEvent.TYPE_INSTANT:
            values = names.read(event.debug_annotations)
            instant = Slice(names.events[event.name_iid], now_ns, now_ns, values=values)
            decoded.instants[event.track_uuid].append(instant)
        case TrackEvent.TYPE_COUNTER:
            value = getattr(event, event.WhichOneof("counter_value_field"))
            decoded.counters[track.name].append((now_ns, value))


@pytest.fixture(scope="module", params=["cfs", "colab", "rr"])
def traced(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[ampsched.Outcome, Decoded]:
    path = tmp_path_factory.mktemp("trace") / "out.pftrace"
    outcome = ampsched.simulate("2B2S", "sync-2", request.param, trace=path)
    assert outcome.threads == ampsched.simulate("2B2S", "sync-2", request.param).threads
    return outcome, decode(path)


def test_cores_are_busy_as_long_as_the_outcome_says(traced: tuple[ampsched.Outcome, Decoded]) -> None:
    outcome, decoded = traced
    assert decoded.cpus == ["big cortex-a57 2000 MHz"] * 2 + ["little cortex-a53 1200 MHz"] * 2
    for number, core in enumerate(outcome.cores):
        turns = decoded.turns(number)
        assert sum(each.end_ns - each.start_ns for each in turns) == core.busy_ns
        assert turns[-1].end_ns <= outcome.makespan_ns


def test_threads_run_and_retire_as_the_outcome_says(traced: tuple[ampsched.Outcome, Decoded]) -> None:
    outcome, decoded = traced
    run_ns: Counter[tuple[str, str]] = Counter()
    instructions: Counter[tuple[str, str]] = Counter()
    for turn in (each for cpu in range(4) for each in decoded.turns(cpu)):
        run_ns[decoded.named(turn.tid)] += turn.end_ns - turn.start_ns
    for uuid, track in decoded.tracks.items():
        for each in decoded.slices[uuid]:
            instructions[decoded.named(track.thread.tid)] += each.instructions
    for thread in outcome.threads:
        name = (outcome.apps[thread.app].name, thread.name)
        assert instructions[name] == thread.instructions
        assert run_ns[name] == thread.run_ns


def test_wake_ups_name_the_waker(traced: tuple[ampsched.Outcome, Decoded]) -> None:
    outcome, decoded = traced
    wakings = decoded.of_kind("sched_waking")
    # The first threads are woken by nobody; one that is created by its creator.
    assert len(wakings) == outcome.counts.wakeups + len(outcome.threads)
    assert {each.sched_waking.pid for each in wakings} == decoded.threads.keys()
    assert {each.pid for each in wakings} <= {0} | decoded.threads.keys()
    assert any(each.pid for each in wakings)


def test_every_turn_tells_why_it_began_and_why_it_ended(
    traced: tuple[ampsched.Outcome, Decoded],
) -> None:
    outcome, decoded = traced
    turns = [each for slices in decoded.slices.values() for each in slices]
    assert len(turns) == outcome.counts.dispatches
    for turn in turns:
        assert turn.values["why.rule"].split(":")[0].split(" step ")[0] in ("order", "steal"), turn
        assert turn.values["why.because"] == turn.name
        assert turn.values["end.because"]
        # Whoever is pulled off another core has not waited.
        assert "why.gain" in turn.values or turn.values["why.waited_ns"] >= 0


def test_decisions_are_instants_with_a_reason(traced: tuple[ampsched.Outcome, Decoded]) -> None:
    outcome, decoded = traced
    decided = [each for track in decoded.instants.values() for each in track]
    assert all(each.values["why.because"] for each in decided)
    placed = [each for each in decided if each.name.startswith("put on core ")]
    assert len(placed) >= outcome.counts.wakeups + len(outcome.threads)
    assert {each.values["why.rule"].split(":")[0] for each in placed} == {"allocator"}
    interrupts = [each for each in decided if each.name.startswith("interrupts ")]
    assert len(interrupts) == outcome.counts.preemptions
    planned = [each for each in decided if each.values["why.rule"] == "plan"]
    if outcome.policy == "colab":
        assert any(each.values["why.epoch"] > 1 for each in planned)
        assert {"speedup", "speedup_kind", "speedup_age_ns"} <= {
            name.removeprefix("why.") for each in planned for name in each.values
        }
    else:
        assert planned == []


def test_run_queues_are_counted(traced: tuple[ampsched.Outcome, Decoded]) -> None:
    _, decoded = traced
    queues = [values for name, values in decoded.counters.items() if name.endswith("run queue")]
    assert len(queues) == 4
    lengths = [length for values in queues for _, length in values]
    assert min(lengths) == 0
    assert max(lengths) >= 1


def test_trace_of_many_switches_is_small(tmp_path: Path) -> None:
    """50 MB is the limit for 10 s; switching every millisecond on four cores is much."""
    path = tmp_path / "out.pftrace"
    outcome = ampsched.simulate("2B2S", "rand-9", "rr", trace=path)
    seconds = outcome.makespan_ns / 1e9
    assert seconds > 1
    assert path.stat().st_size / seconds < 2e6
