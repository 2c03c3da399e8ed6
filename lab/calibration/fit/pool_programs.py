"""Models of the programs whose threads take work from a shared counter: bodytrack and freqmine."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import median

import numpy as np
import toml_text as toml
from model import Fitted, Observed, segment_figures
from rates import rate
from recording import BAR, LOCK, OMPBEG, OMPCRIT, OMPEND, OMPFORK, START, Events, Recording, load

CAMERAS, KERNELS, LAYERS = 4, 3, 5
"""bodytrack: images per frame, passes over each image, annealing layers (its source and command)."""


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _cv(values: Sequence[float]) -> float:
    mean = _mean(values)
    return sqrt(_mean([(value - mean) ** 2 for value in values])) / mean if mean > 0 else 0.0


def _recorded(values: Sequence[float]) -> str:
    """A comment with a sum of recorded CPU times."""
    return f"  # {sum(values) / 1e6:.3g} ms recorded"


# ---- bodytrack -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Region:
    """A parallel region of bodytrack: the main thread's work before it, the first worker's, and the items."""

    serial_ns: int
    setup_ns: int
    items_ns: list[int]


def bodytrack() -> Fitted:
    """Main thread, one loader thread and workers that draw tickets for rows or particles."""
    recording = load("bodytrack")
    conversion = rate("bodytrack", "bodytrack")
    regions, output_ns = _regions(recording)
    loader_ns = min(events.total_cpu() for events in recording.threads)
    text = toml.text(_bodytrack_lines(regions, output_ns, loader_ns, conversion.per_ns, conversion.source))
    items = [item for region in regions for item in region.items_ns]
    per_thread = [events.total_cpu() for events in _bodytrack_workers(recording)]
    modelled = (
        sum(items) + output_ns + loader_ns + sum(region.serial_ns + region.setup_ns for region in regions)
    )
    observed = Observed(
        giga_instructions=modelled * conversion.per_ns / 1e9,
        barriers=2 * len(regions),
        pairs=0,
        thinning=1,
        items=len(items),
        segments=segment_figures("item", [item * conversion.per_ns for item in items]),
        imbalance=max(per_thread) / _mean(per_thread),
    )
    return Fitted("bodytrack", text, observed, {"n": 4.0}, item_sources=("rows", "weights", "samples"))


def _bodytrack_workers(recording: Recording) -> list[Events]:
    """Threads that take part in more than one barrier, in order of creation."""
    workers = [events for events in recording.threads[1:] if (events.kind == BAR).sum() > 0]
    return sorted(workers, key=lambda events: int(events.obj[events.kind == START][0]))


def _regions(recording: Recording) -> tuple[list[Region], int]:
    """The parallel regions with items, and the main thread's work after the last one."""
    main, workers = recording.threads[0], _bodytrack_workers(recording)
    end_barrier = int(main.obj[main.kind == BAR][0])
    ends = np.flatnonzero(main.kind == BAR)
    begins = np.flatnonzero(main.kind == LOCK)
    commands = {int(obj) for obj in main.obj[main.kind == LOCK]}
    parts = [_tickets(events, end_barrier, commands) for events in workers]
    regions: list[Region] = []
    used = np.cumsum(main.cpu)
    for number in range(len(ends)):
        takes = [part[number] for part in parts]
        if sum(len(take) for take in takes) == 0:
            break
        begin = max(position for position in begins if position < ends[number])
        since = used[ends[number - 1]] if number else used[begin] - main.cpu[begin]
        # The first worker resets the counter; every worker's last ticket tells it that none is left.
        items = [int(cpu) for index, take in enumerate(takes) for cpu in take[2 if index == 0 else 1 :]]
        regions.append(Region(int(used[begin] - since), int(takes[0][0]), items))
    return regions, int(used[-1] - used[ends[len(regions) - 1]])


def _tickets(events: Events, end_barrier: int, commands: set[int]) -> list[list[int]]:
    """Per region the CPU time before each visit to the ticket counter."""
    is_end = (events.kind == BAR) & (events.obj == end_barrier)
    region = np.cumsum(is_end) - is_end
    visits = (events.kind == LOCK) & ~np.isin(events.obj, list(commands))
    return [
        [int(cpu) for cpu in events.cpu[visits & (region == number)]]
        for number in range(int(region.max()) + 1)
    ]


def _bodytrack_lines(
    regions: list[Region], output_ns: int, loader_ns: int, per_ns: float, source: str
) -> list[str]:
    images = regions[: CAMERAS * KERNELS]
    layers = regions[CAMERAS * KERNELS :]
    weights, resampling = layers[0::2], layers[1::2]
    assert len(resampling) == LAYERS, "bodytrack: unexpected number of parallel regions"

    def work(ns: float, cv: float = 0.0) -> str:
        return toml.compute(toml.number(ns * per_ns), "bodytrack", cv)

    def serial(group: Sequence[Region]) -> str:
        times = [region.serial_ns for region in group]
        return work(_mean(times)) + _recorded(times)

    def takes(pool: str, group: Sequence[Region]) -> list[str]:
        items = [item for region in group for item in region.items_ns]
        setup_ns = _mean([region.setup_ns for region in group])
        setup = toml.number(setup_ns * per_ns)
        first = [f'{{ compute = "{setup} * max(0, 1 - index)", profile = "bodytrack" }},']
        body = f'{{ dynamic = "{pool}", body = [ {work(_mean(items), _cv(items))} ] }},'
        return [*(first if setup_ns > 10_000 else []), body + _recorded(items)]

    def region_of(steps: list[str]) -> list[str]:
        return ['{ barrier = "start" },', *steps, '{ barrier = "end" },']

    kernels = [images[kernel::KERNELS] for kernel in range(KERNELS)]
    main_images = [line for group in kernels for line in [serial(group), *region_of([])]]
    start_ns = weights[0].serial_ns
    worker = [
        *toml.loop(str(CAMERAS), [line for group in kernels for line in region_of(takes("rows", group))]),
        *toml.loop(
            str(LAYERS),
            [*region_of(takes("weights", weights[:-1])), *region_of(takes("samples", resampling))],
        ),
        *region_of(takes("weights", weights[-1:])),
    ]
    main = [
        '{ fork = "loader" }, { fork = "worker", times = "n" },',
        '{ sem_wait = "loaded" },',
        *toml.loop(str(CAMERAS), main_images),
        work(start_ns) + _recorded([start_ns]),
        *toml.loop(str(LAYERS), [*region_of([]), serial(resampling), *region_of([]), serial(weights[1:])]),
        *region_of([]),
        work(output_ns) + _recorded([output_ns]),
        "{ join = true },",
    ]
    notes = [
        f"Instructions = recorded CPU ns x {per_ns:.3f}: {source}.",
        "The main thread starts a parallel region (recorded: broadcast of a command; here: barrier start), the workers"
        " draw tickets until none is left and meet it at barrier end. Only creation of the threads is left out.",
        f"Four images, {KERNELS} passes each, then {LAYERS} annealing layers of two regions and a last weighting.",
    ]
    lines = toml.head(
        "bodytrack",
        "PARSEC body tracking, 1 frame, 4 cameras, 10000 particles, 5 layers.",
        "PARSEC 3.0, bodytrack sequenceB_1 4 1 10000 5 0 4, recorded",
        notes,
    )
    lines += ["[params]", "n = 4  # workers, besides the main and the loader thread"]
    for pool, group in (("rows", images), ("weights", weights), ("samples", resampling)):
        lines += ["", f"[pools.{pool}]", f"total = {len(group[0].items_ns)}  # tickets per region, recorded"]
        assert all(len(region.items_ns) == len(group[0].items_ns) for region in group), (
            "bodytrack: tickets differ"
        )
    lines += ["", "[semaphores.loaded]"]
    for barrier in ("start", "end"):
        lines += ["", f"[barriers.{barrier}]", 'parties = "n + 1"']
    lines += toml.thread("main", "", main)
    loader = f'{work(loader_ns)} {{ sem_post = "loaded" }},{_recorded([loader_ns])}'
    lines += toml.thread("loader", "0", [loader])
    return lines + toml.thread("worker", "0", worker)


# ---- freqmine --------------------------------------------------------------------------------------------

IMBALANCE_DYNAMIC = 1.2
"""A region whose busiest thread exceeds the mean by more must have shared its work dynamically."""

ITEMS_MAX = 1000
"""Most items assumed in a region whose items left no events."""

SERIAL_MIN_NS = 1_000
"""Shorter stretches between regions are left out."""

REGION_MIN_NS = 100_000
"""Regions with less work than this in all threads are only their barriers."""


@dataclass(frozen=True)
class OmpRegion:
    """A parallel region of freqmine: the first thread's work before it, and each thread's work in it."""

    serial_ns: int
    thread_ns: list[int]
    items_ns: list[int]
    """CPU time before each critical section."""
    hold_ns: list[int]
    last_wait_ns: int
    """Wall time between the first and the last thread's end."""


def freqmine() -> Fitted:
    """OpenMP regions between serial parts of the first thread; dynamic loops in the long ones."""
    recording = load("freqmine_250k")
    conversion = rate("freqmine", "freqmine_250k")
    regions = [
        _omp_region(recording, number) for number in range(int((recording.threads[0].kind == OMPBEG).sum()))
    ]
    per_thread = [
        sum(region.thread_ns[thread] for region in regions) for thread in range(len(recording.threads))
    ]
    mined = [region for region in regions if region.items_ns]
    modelled = sum(per_thread) + sum(region.serial_ns for region in regions)
    observed = Observed(
        giga_instructions=modelled * conversion.per_ns / 1e9,
        barriers=2 * len(regions),
        pairs=sum(len(region.items_ns) for region in mined),
        thinning=1,
        items=sum(len(region.items_ns) for region in mined),
        segments=segment_figures(
            "item", [item * conversion.per_ns for region in mined for item in region.items_ns]
        ),
        imbalance=max(per_thread) / _mean(per_thread),
    )
    text = toml.text(_freqmine_lines(regions, conversion.per_ns, conversion.source))
    sources = tuple(f"region{number}" for number, region in enumerate(regions, start=1) if region.items_ns)
    return Fitted("freqmine", text, observed, {"n": 4.0}, item_sources=sources)


def _omp_region(recording: Recording, number: int) -> OmpRegion:
    main = recording.threads[0]
    fork = np.flatnonzero(main.kind == OMPFORK)[number]
    thread_ns, items, holds, ends = [], [], [], []
    for events in recording.threads:
        begin = np.flatnonzero(events.kind == OMPBEG)[number]
        end = np.flatnonzero(events.kind == OMPEND)[number]
        thread_ns.append(int(events.cpu[begin + 1 : end + 1].sum()))
        ends.append(int(events.at[end]))
        criticals = np.flatnonzero(events.kind[begin : end + 1] == OMPCRIT) + begin
        items += [int(cpu) for cpu in events.cpu[criticals]]
        holds += [int(cpu) for cpu in events.cpu[criticals + 1]]
    serial_ns = int(main.cpu[fork]) if number else 0  # before the first region: reading the input
    return OmpRegion(serial_ns, thread_ns, items, holds, max(ends) - min(ends))


def _freqmine_lines(regions: list[OmpRegion], per_ns: float, source: str) -> list[str]:
    notes = [
        f"Instructions = recorded CPU ns x {per_ns:.3f}: {source}.",
        "Nine OpenMP regions; the first thread works alone before each. Left out: reading the input before the first"
        " region, and the CPU time that threads spend in active waiting after a region's end.",
        "In the two long regions an item ends with a critical section, so their number and lengths are recorded"
        " (quantiles from minimum to maximum in steps of 5 %; median of the critical sections). The items of the other"
        " dynamic loops left no events; their length is taken as the time between the first and the last thread's end,"
        " its upper limit.",
    ]
    lines = toml.head(
        "freqmine",
        "PARSEC frequent itemset mining, 250000 transactions, minimum support 8.",
        "PARSEC 3.0, freqmine fm_250k.dat 8, recorded with 4 threads",
        notes,
    )
    lines += ["[params]", "n = 4  # threads", "", "[mutexes.merge]", "", "[barriers.phase]", 'parties = "n"']
    body: list[str] = []
    for number, region in enumerate(regions, start=1):
        pool, steps = _freqmine_region(region, f"region{number}", per_ns)
        if pool:
            lines += ["", f"[pools.region{number}]", f"total = {pool}"]
        if region.serial_ns > SERIAL_MIN_NS:
            serial = toml.number(region.serial_ns * per_ns)
            step = f'{{ compute = "{serial} * max(0, 1 - index)", profile = "freqmine" }},'
            body.append(step + _recorded([region.serial_ns]))
        body += ['{ barrier = "phase" },', *steps, '{ barrier = "phase" },']
    return lines + toml.thread("worker", "n", body)


def _freqmine_region(region: OmpRegion, pool: str, per_ns: float) -> tuple[int, list[str]]:
    """Size of the region's pool (0: none) and its steps."""
    total_ns = sum(region.thread_ns)
    recorded = _recorded(region.thread_ns)
    if total_ns < REGION_MIN_NS:
        return 0, []
    if region.items_ns:
        return len(region.items_ns), _recorded_items(region, pool, per_ns, recorded)
    if max(region.thread_ns) <= IMBALANCE_DYNAMIC * _mean(region.thread_ns):
        share = f"{toml.number(total_ns * per_ns)} / n"
        return 0, [toml.compute(share, "freqmine", _cv(region.thread_ns)) + recorded]
    count = min(ITEMS_MAX, ceil(total_ns / region.last_wait_ns))
    item = toml.compute(toml.number(total_ns / count * per_ns), "freqmine")
    return count, [f'{{ dynamic = "{pool}", body = [ {item} ] }},{recorded}']


def _recorded_items(region: OmpRegion, pool: str, per_ns: float, recorded: str) -> list[str]:
    ordered = sorted(region.items_ns)
    points = [ordered[round(i * (len(ordered) - 1) / 20)] for i in range(21)]
    # Straight lines between quantiles overestimate a skewed distribution; the scale restores the mean.
    implied = sum(points) - (points[0] + points[-1]) / 2
    scale = _mean(ordered) * (len(points) - 1) / implied
    quantiles = ", ".join(toml.number(point * per_ns) for point in points)
    hold = toml.number(median(region.hold_ns) * per_ns)
    return [
        f'{{ dynamic = "{pool}", body = [{recorded}',
        f'  {{ compute = {{ quantiles = [{quantiles}], scale = {scale:.4f} }}, profile = "freqmine" }},',
        *toml.indented(toml.critical_section("merge", hold, "freqmine")),
        "] },",
    ]
