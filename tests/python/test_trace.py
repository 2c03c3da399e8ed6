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


@dataclass
class Decoded:
    """A trace as a viewer reads it."""

    tracks: dict[int, Any] = field(default_factory=dict)
    slices: dict[int, list[Slice]] = field(default_factory=lambda: defaultdict(list))
    instants: dict[int, list[Slice]] = field(default_factory=lambda: defaultdict(list))
    counters: dict[int, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    starts: Counter[int] = field(default_factory=Counter)
    """Flows by where they begin."""
    ends: Counter[int] = field(default_factory=Counter)
    """Flows by where they end."""

    def named(self, name: str) -> list[Slice]:
        """The slices of the only track of that name."""
        (uuid,) = [uuid for uuid, track in self.tracks.items() if title(track) == name]
        return self.slices[uuid]


def title(track: Any) -> str:
    return track.thread.thread_name or track.name


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
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in decoded.tracks
            decoded.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if packet.HasField("track_event"):
            assert packet.sequence_flags & TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
            now_ns += packet.timestamp
            add(decoded, packet.track_event, names, now_ns)
    return decoded


def add(decoded: Decoded, event: Any, names: Names, now_ns: int) -> None:
    assert event.track_uuid in decoded.tracks
    slices = decoded.slices[event.track_uuid]
    decoded.starts.update(event.flow_ids)
    decoded.ends.update(event.terminating_flow_ids)
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
            decoded.counters[event.track_uuid].append((now_ns, event.counter_value))


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
    kinds = ["big cortex-a57 2000 MHz"] * 2 + ["little cortex-a53 1200 MHz"] * 2
    for number, (core, kind) in enumerate(zip(outcome.cores, kinds, strict=True)):
        slices = decoded.named(f"core {number} {kind}")
        assert sum(each.end_ns - each.start_ns for each in slices) == core.busy_ns
        assert slices[-1].end_ns <= outcome.makespan_ns


def test_threads_run_and_retire_as_the_outcome_says(traced: tuple[ampsched.Outcome, Decoded]) -> None:
    outcome, decoded = traced
    instructions: Counter[str] = Counter()
    for uuid, track in decoded.tracks.items():
        if title(track).startswith("core "):
            for each in decoded.slices[uuid]:
                instructions[each.name] += each.instructions
    for thread in outcome.threads:
        name = f"{outcome.apps[thread.app].name}/{thread.name}"
        assert instructions[name] == thread.instructions
        slices = [
            each
            for uuid, track in decoded.tracks.items()
            if title(track) == thread.name and in_app(decoded, track, outcome.apps[thread.app].name)
            for each in decoded.slices[uuid]
        ]
        assert sum(each.end_ns - each.start_ns for each in slices) == thread.run_ns


def in_app(decoded: Decoded, track: Any, app: str) -> bool:
    """Whether a thread's track belongs to an application's process."""
    processes = {
        each.process.pid: each.process.process_name for each in decoded.tracks.values() if each.process.pid
    }
    return processes.get(track.thread.pid) == app


def test_arrows_lead_from_wakers_to_woken(traced: tuple[ampsched.Outcome, Decoded]) -> None:
    outcome, decoded = traced
    # A thread that is forked is "woken" by its creator, too.
    assert 0 < len(decoded.starts) <= outcome.counts.wakeups + len(outcome.threads)
    assert set(decoded.starts.values()) == {1}
    assert decoded.ends == decoded.starts


def test_every_turn_tells_why_it_began_and_why_it_ended(
    traced: tuple[ampsched.Outcome, Decoded],
) -> None:
    outcome, decoded = traced
    turns = [each for slices in decoded.slices.values() for each in slices]
    # Each is on the track of its core and on that of its thread.
    assert len(turns) == 2 * outcome.counts.dispatches
    for turn in turns:
        assert turn.values["why.rule"].split(":")[0].split(" step ")[0] in ("order", "steal"), turn
        assert turn.values["why.because"]
        assert turn.values["end.because"]
        # Whoever is pulled off another core has not waited.
        assert "why.gain" in turn.values or turn.values["why.waited_ns"] >= 0


def test_decisions_are_instants_with_a_reason(traced: tuple[ampsched.Outcome, Decoded]) -> None:
    outcome, decoded = traced
    instants = [each for track in decoded.instants.values() for each in track]
    decided = [each for each in instants if not each.name.startswith("wakes ")]
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
    counters = [uuid for uuid, track in decoded.tracks.items() if track.name.endswith("run queue")]
    assert len(counters) == 4
    values = [value for uuid in counters for _, value in decoded.counters[uuid]]
    assert min(values) == 0
    assert max(values) >= 1


def test_trace_of_many_switches_is_small(tmp_path: Path) -> None:
    """50 MB is the limit for 10 s; switching every millisecond on four cores is much."""
    path = tmp_path / "out.pftrace"
    outcome = ampsched.simulate("2B2S", "rand-9", "rr", trace=path)
    seconds = outcome.makespan_ns / 1e9
    assert seconds > 1
    assert path.stat().st_size / seconds < 5e6
