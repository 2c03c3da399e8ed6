"""Models of programs whose threads do not interact: blackscholes, swaptions, mcf, bzip2."""

from math import sqrt

import toml_text as toml
from model import Fitted, Observed, Segments, segment_figures
from rates import counted, rate
from recording import load

SWAPTIONS = 32
"""Swaptions of the recorded input; each is priced by itself."""

BZIP2_BLOCKS = 14
"""12 MB in blocks of 900 kB."""


def independent_workers(name: str, description: str, command: str, pieces: int, excluded: str) -> Fitted:
    """A main thread that starts workers and waits for them; each does its share in `pieces` pieces."""
    recording = load(name)
    conversion = rate(name, name)
    shares = [events.total_cpu() for events in recording.threads[1:]]
    mean = sum(shares) / len(shares)
    spread = sqrt(sum((share - mean) ** 2 for share in shares) / (len(shares) - 1)) / mean
    total = toml.number(sum(shares) * conversion.per_ns)
    per_piece = f"{total} / n" if pieces == 1 else f"total / n / {pieces}"
    notes = [
        f"Instructions = recorded CPU ns x {conversion.per_ns:.3f}: {conversion.source}.",
        f"Left out: {excluded}.",
        f"Recorded CPU time of the workers: {', '.join(f'{share / 1e6:.1f}' for share in shares)} ms.",
    ]
    source = f"PARSEC 3.0, {command}, recorded"
    lines = toml.head(name, description, source, notes)
    lines += [
        "[params]",
        "n = 4  # workers, besides the main thread, which only waits for them",
        f"total = {total}  # instructions of all workers",
    ]
    lines += toml.thread("main", "", ['{ fork = "worker", times = "n" },', "{ join = true },"])
    per_piece = "total / n" if pieces == 1 else f"total / n / {pieces}"
    # Independent pieces: their spread is that of a thread times the root of their number.
    work = toml.compute(per_piece, name, spread * sqrt(pieces))
    lines += toml.thread("worker", "0", [work] if pieces == 1 else toml.loop(str(pieces), [work]))
    observed = Observed(
        giga_instructions=sum(shares) * conversion.per_ns / 1e9,
        barriers=0,
        pairs=0,
        thinning=1,
        items=0,
        segments=segment_figures("thread", [share * conversion.per_ns for share in shares]),
        imbalance=max(shares) / mean,
    )
    return Fitted(name, toml.text(lines), observed, {"n": 4.0})


def blackscholes() -> Fitted:
    """Static shares of the options, no synchronisation."""
    return independent_workers(
        "blackscholes",
        "PARSEC option pricing, 65536 options, 100 passes.",
        "blackscholes 4 in_64K.txt prices.txt",
        1,
        "reading and writing of the options by the main thread (22 % of the CPU time)",
    )


def swaptions() -> Fitted:
    """Static shares of the swaptions, no synchronisation."""
    return independent_workers(
        "swaptions",
        "PARSEC swaption pricing, 32 swaptions, 50000 trials.",
        "swaptions -ns 32 -sm 50000 -nt 4",
        SWAPTIONS // 4,
        "the set-up by the main thread (0.3 ms)",
    )


def single_thread(name: str, description: str, pieces: int, note: str) -> Fitted:
    """One thread that computes."""
    row = counted(name)
    instructions = int(row["instr"])
    notes = [f"{instructions} instructions counted by cachegrind: {row['input']} (profiles.csv). {note}"]
    lines = toml.head(name, description, "instruction count of a stand-in run, see the comment", notes)
    lines += ["[params]", f"total = {instructions}  # instructions"]
    work = toml.compute("total" if pieces == 1 else f"total / {pieces}", name)
    lines += toml.thread("main", "", [work] if pieces == 1 else toml.loop(str(pieces), [work]))
    observed = Observed(
        giga_instructions=instructions / 1e9,
        barriers=0,
        pairs=0,
        thinning=1,
        items=0,
        segments=Segments("thread", float(instructions), 0.0),
        imbalance=1.0,
    )
    return Fitted(name, toml.text(lines), observed, workers="main")


def mcf() -> Fitted:
    """Network simplex."""
    description = "Single-threaded network simplex, a stand-in for SPEC 429.mcf."
    return single_thread("mcf", description, 1, "No phases are known.")


def bzip2() -> Fitted:
    """Block-sorting compression."""
    return single_thread(
        "bzip2",
        "Single-threaded bzip2 of 12 MB, as SPEC 401.bzip2.",
        BZIP2_BLOCKS,
        f"{BZIP2_BLOCKS} blocks of 900 kB.",
    )
