"""Models of the pipelines dedup and ferret, from the figures of their stages."""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import toml_text as toml
from model import Fitted, Observed, segment_figures
from phases import hold_times
from rates import HOST_GHZ, counted, items, stage
from recording import CSIG, LOCK, START, Events, Recording, load

KERNEL_BOUND_PER_NS = 1.0
"""A stage with fewer counted instructions per recorded ns works mostly in the kernel, which is not counted."""


def _creation_order(recording: Recording) -> list[Events]:
    """Threads in the order in which the main thread created them."""
    created = sorted(recording.threads[1:], key=lambda events: int(events.obj[events.kind == START][0]))
    return [recording.threads[0], *created]


# ---- ferret ----------------------------------------------------------------------------------------------

QUERIES_COUNTED, QUERIES_RECORDED = 40, 400
"""Queries of the run whose instructions were counted, and of the recorded one."""

FERRET_STAGES = [("seg", "t_seg"), ("extract", "t_extract"), ("vec", "t_vec"), ("rank", "t_rank")]
"""Parallel stages: name in stages_items.csv, name in stages.csv."""


def ferret() -> Fitted:
    """Load, four stages of n threads, output; bounded queues between them."""
    recording = load("ferret_400q")
    threads = _creation_order(recording)
    lines = toml.head(
        "ferret",
        "PARSEC image search: load, segment, extract, query, rank, output.",
        "PARSEC 3.0, ferret-pthreads with 40 and 400 queries, top 50, depth 20",
        _ferret_notes(),
    )
    lines += [
        "[params]",
        "n = 4  # threads per parallel stage, besides main, load and out",
        f"queries = {QUERIES_COUNTED}",
    ]
    names = [name for name, _ in FERRET_STAGES] + ["out"]
    for name in names:
        capacity = items("ferret", name)["input_queue_capacity"]
        lines += ["", f"[queues.{name}]", f"capacity = {capacity}  # stages_items.csv"]
    lines += toml.thread(
        "main",
        "",
        [
            '{ fork = "load" },',
            *[f'{{ fork = "{name}", times = "n" }},' for name in names[:-1]],
            '{ fork = "out" },',
            "{ join = true },",
        ],
    )
    first = [_ferret_item("load", "t_load"), '{ push = "seg" },']
    lines += toml.thread("load", "0", [*toml.loop("queries", first), '{ close = "seg" },'])
    for (name, counted_name), following in zip(FERRET_STAGES, names[1:], strict=True):
        work = [_ferret_item(name, counted_name), f'{{ push = "{following}" }},']
        lines += toml.thread(
            name, "0", [*toml.block("each", f'"{name}"', work), f'{{ close = "{following}" }},']
        )
    lines += toml.thread("out", "0", toml.block("each", '"out"', [_ferret_item("out", "t_out")]))
    return Fitted(
        "ferret",
        toml.text(lines),
        _ferret_observed(threads),
        {"n": 4.0, "queries": float(QUERIES_RECORDED)},
        workers="rank",
        item_sources=("rank",),
    )


def _ferret_notes() -> list[str]:
    return [
        "Instructions per item: stages.csv / 40 queries (counted exactly on that input). Spread and queue"
        " capacities: stages_items.csv (400 queries). Log-normal; the lengths of one image's items in different stages"
        " are drawn independently.",
        "The default is the counted input of 40 queries; the recording has 400. Left out: loading of the data base by"
        " the main thread.",
    ]


def _ferret_item(name: str, counted_name: str) -> str:
    row = items("ferret", name)
    instructions = stage("ferret", counted_name) / QUERIES_COUNTED
    work = toml.compute(toml.number(instructions), f"ferret.{name}", float(row["cpu_us_cv"]))
    return f"{work}  # {row['cpu_us_mean']} us, cv {row['cpu_us_cv']} recorded"


def _ferret_observed(threads: list[Events]) -> Observed:
    names = [("load", "t_load"), *FERRET_STAGES, ("out", "t_out")]
    total = sum(stage("ferret", name) for _, name in names) / QUERIES_COUNTED * QUERIES_RECORDED
    rank = [events for events in threads if _ferret_stage(events, threads) == "rank"]
    lengths = [cpu for events in rank for cpu in _ferret_lengths(events)]
    per_item = stage("ferret", "t_rank") / QUERIES_COUNTED
    mean = sum(lengths) / len(lengths)
    loads = [events.total_cpu() for events in rank]
    return Observed(
        giga_instructions=total / 1e9,
        barriers=0,
        pairs=0,
        thinning=1,
        items=len(lengths),
        segments=segment_figures("rank item", [length / mean * per_item for length in lengths]),
        imbalance=max(loads) / (sum(loads) / len(loads)),
    )


def _ferret_stage(events: Events, threads: list[Events]) -> str:
    """The stage of a thread: main creates load, then four threads per stage, then out."""
    position = next(index for index, other in enumerate(threads) if other is events)
    names = ["main", "load", *[name for name, _ in FERRET_STAGES for _ in range(4)], "out"]
    return names[position]


def _ferret_lengths(events: Events) -> list[int]:
    """CPU time of the items: before each lock of the following stage's queue, the last one closes it."""
    locks = np.flatnonzero(events.kind == LOCK)
    following = events.obj[locks[1]]
    return [int(cpu) for cpu in events.cpu[locks[events.obj[locks] == following]]][: len(locks) // 2 - 1]


# ---- dedup -----------------------------------------------------------------------------------------------

TAR_COUNTED_MB, TAR_RECORDED_MB = 32, 46
"""Inputs of the run whose instructions were counted and of the recorded one."""

CHUNKS_PER_BATCH = 20
"""Unique chunks that a compressing thread takes at once (batch_in in stages_items.csv)."""


@dataclass(frozen=True)
class DedupStage:
    """A stage: instructions and spread of the part of it that belongs to one batch."""

    name: str
    instructions: float
    cv: float
    source: str

    def work(self, share: float = 1.0, less: float = 0.0) -> str:
        """A compute step for a share of a batch."""
        amount = toml.number(self.instructions * share - less)
        return toml.compute(amount, f"dedup.{self.name}", self.cv / sqrt(share))


def dedup() -> Fitted:
    """Fragment, n refine, n deduplicate, n compress threads, reorder; batches in queues."""
    recording = load("dedup")
    threads = _creation_order(recording)
    chunks = int(items("dedup", "Deduplicate")["items"])
    unique = int(items("dedup", "Compress")["items"])
    compressing = threads[10:14]
    lengths = _compress_batches(compressing)
    batches = len(lengths)
    mean = sum(lengths) / batches
    spread = sqrt(sum((length - mean) ** 2 for length in lengths) / batches) / mean
    lines = _dedup_lines(threads, chunks, unique, batches, spread)
    loads = [events.total_cpu() for events in compressing]
    per_batch = _dedup_stage("compress", "Compress", unique, batches).instructions
    total = sum(_dedup_stage(*names, 1, 1).instructions for names in DEDUP_STAGES)
    observed = Observed(
        giga_instructions=total / 1e9,
        barriers=0,
        pairs=chunks,
        thinning=chunks / batches,
        items=batches,
        segments=segment_figures("compress batch", [length / mean * per_batch for length in lengths]),
        imbalance=max(loads) / (sum(loads) / len(loads)),
    )
    return Fitted(
        "dedup", toml.text(lines), observed, {"n": 4.0}, workers="compress", item_sources=("unique",)
    )


DEDUP_STAGES = [
    ("fragment", "Fragment"),
    ("refine", "FragmentRefine"),
    ("deduplicate", "Deduplicate"),
    ("compress", "Compress"),
    ("reorder", "Reorder"),
]
"""Name of the profile and of the rows in the CSV files."""

REFINE_CHUNK_CV = 1.39
"""Spread of the CPU time per fine chunk (note in stages_items.csv; the row itself is per coarse chunk)."""


def _dedup_stage(profile: str, name: str, count: int, batches: int) -> DedupStage:
    """A stage's work per batch, when `count` items make up `batches` batches."""
    row = items("dedup", name)
    instructions = stage("dedup", name) * TAR_RECORDED_MB / TAR_COUNTED_MB
    recorded_ns = _fragment_ns() if name == "Fragment" else float(row["cpu_ms_total"]) * 1e6
    source = f"{instructions / 1e6:.1f}e6 counted instructions scaled from {TAR_COUNTED_MB} to {TAR_RECORDED_MB} MB"
    if instructions < KERNEL_BOUND_PER_NS * recorded_ns:
        per_ns = float(counted("dedup")["native_x86_ipc_est"]) * HOST_GHZ
        instructions = recorded_ns * per_ns
        source = f"{recorded_ns / 1e6:.1f} ms recorded, mostly in the kernel, x {per_ns:.3f} instructions/ns"
    cv = REFINE_CHUNK_CV if name == "FragmentRefine" else float(row["cpu_us_cv"])
    return DedupStage(profile, instructions / batches, cv / sqrt(count / batches), source)


def _fragment_ns() -> int:
    """CPU time of the fragmenting thread, the first that the main thread creates after its helpers."""
    return _creation_order(load("dedup"))[_FRAGMENT].total_cpu()


_FRAGMENT = 1
"""Position of the fragmenting thread in order of creation; then refine, deduplicate, compress, reorder."""


def _dedup_lines(threads: list[Events], chunks: int, unique: int, batches: int, spread: float) -> list[str]:
    stages = {name: _dedup_stage(name, row, chunks, batches) for name, row in DEDUP_STAGES}
    compress = replace(_dedup_stage("compress", "Compress", unique, batches), cv=spread)
    reorder = _dedup_stage("reorder", "Reorder", chunks, 2 * batches)
    fragment = _dedup_stage("fragment", "Fragment", 1, 1)
    first = _first_coarse_batches(threads, batches)
    buckets, hold = _bucket_locks(threads, stages["deduplicate"], chunks, batches)
    works = (fragment, stages["refine"], stages["deduplicate"], compress, reorder)
    notes = [
        *[f"{each.name}: {each.source}." for each in works],
        f"A batch is what a compressing thread takes at once: {CHUNKS_PER_BATCH} unique chunks out of"
        f" {chunks / batches:.1f} ({unique} of {chunks} chunks are unique); the recording has {batches}. The spread"
        " of compressing a batch is recorded; elsewhere it is that of a chunk (stages_items.csv) / square root of the"
        " number of chunks.",
        "The fragmenting thread hands over the first coarse chunk, and all others before that one is refined; a"
        f" refining thread takes whatever waits, so in the recording one refined {first} and another {batches - first}"
        f" of {batches} batches and the other two none. Which threads these are is open here too.",
        f"Lock pairs of the hash table: {chunks} recorded, one per batch simulated ({chunks / batches:.1f} times as"
        " long, the array as many times smaller).",
        "Left out: opening of the input by the main thread; that reorder writes in order (chunks that come early wait"
        " in memory, no thread waits).",
    ]
    lines = toml.head(
        "dedup",
        "PARSEC compression with deduplication of 46 MB.",
        "PARSEC 3.0, dedup -c -p -v -t 4 -i dd.in -o dd.out, recorded",
        notes,
    )
    lines += [
        "[params]",
        "n = 4  # threads per parallel stage, besides main, fragment and reorder",
        "",
        "[semaphores.coarse]",
        "",
        "[pools.first]",
        "total = 1",
        "",
        "[pools.others]",
        "total = 1",
    ]
    capacity = items("dedup", "Compress")["input_queue_capacity"]
    for name in ("fine", "unique", "done"):
        lines += ["", f"[queues.{name}]", f"capacity = {capacity}  # stages_items.csv"]
    lines += ["", "[mutexes.bucket]", f"count = {buckets}"]
    lines += toml.thread(
        "main",
        "",
        [
            '{ fork = "fragment" },',
            *[f'{{ fork = "{name}", times = "n" }},' for name in ("refine", "deduplicate", "compress")],
            '{ fork = "reorder" },',
            "{ join = true },",
        ],
    )
    lines += toml.thread(
        "fragment",
        "0",
        [
            toml.compute(toml.number(fragment.instructions), "dedup.fragment"),
            '{ loop = "n", body = [ { sem_post = "coarse" } ] },',
        ],
    )
    refine = [stages["refine"].work(), '{ push = "fine" },']
    lines += toml.thread(
        "refine",
        "0",
        [
            '{ sem_wait = "coarse" },',
            *toml.block("dynamic", '"first"', toml.loop(str(first), refine)),
            *toml.block("dynamic", '"others"', toml.loop(str(batches - first), refine)),
            '{ close = "fine" },',
        ],
    )
    lines += toml.thread(
        "deduplicate",
        "0",
        [
            *toml.block(
                "each",
                '"fine"',
                [
                    stages["deduplicate"].work(less=hold),
                    *toml.critical_section("bucket", toml.number(hold), "dedup.deduplicate"),
                    '{ push = "unique" }, { push = "done" },',
                ],
            ),
            '{ close = "unique" }, { close = "done" },',
        ],
    )
    lines += toml.thread(
        "compress",
        "0",
        [
            *toml.block("each", '"unique"', [compress.work(), '{ push = "done" },']),
            '{ close = "done" },',
        ],
    )
    return lines + toml.thread("reorder", "0", toml.block("each", '"done"', [reorder.work()]))


def _first_coarse_batches(threads: list[Events], batches: int) -> int:
    """Batches that come from the coarse chunk that was taken first: the smaller share of the two busy refiners."""
    signals = sorted(int((events.kind == CSIG).sum()) for events in threads[2:6])
    return round(batches * signals[-2] / (signals[-1] + signals[-2]))


def _bucket_locks(
    threads: list[Events], deduplicate: DedupStage, chunks: int, batches: int
) -> tuple[int, float]:
    """Size of the thinned mutex array, and instructions in a critical section that stands for a batch."""
    locks, mutexes, hold_ns = 0, set(), 0
    for events in threads[6:10]:
        hold = hold_times(events)
        queue_mutexes = _queue_mutexes(events)
        own = np.flatnonzero((events.kind == LOCK) & ~np.isin(events.obj, queue_mutexes))
        locks += len(own)
        mutexes |= {int(obj) for obj in events.obj[own]}
        hold_ns += int(hold[own].sum())
    stage_ns = float(items("dedup", "Deduplicate")["cpu_ms_total"]) * 1e6
    per_ns = deduplicate.instructions * batches / stage_ns
    return max(1, round(len(mutexes) / (chunks / batches))), hold_ns / locks * chunks / batches * per_ns


def _queue_mutexes(events: Events) -> list[int]:
    """Mutexes under which the thread signals: those of queues."""
    signals = np.flatnonzero(events.kind == CSIG)
    return sorted(
        {int(events.obj[max(p for p in range(signal) if events.kind[p] == LOCK)]) for signal in signals}
    )


def _compress_batches(threads: list[Events]) -> list[int]:
    """CPU time of each batch: from the signal that it was taken to the signal that it was handed on."""
    lengths: list[int] = []
    for events in threads:
        used = np.cumsum(events.cpu)
        signals = np.flatnonzero(events.kind == CSIG)
        taken, handed_on = signals[0::2], signals[1::2]
        lengths += [int(length) for length in used[handed_on] - used[taken]]
    return lengths
