"""Two settings of a program, run alternately on this computer until their difference is known.

Each pair runs both once, in an order that is drawn, so what changes slowly hits both alike; the change is the mean of
the pairs' ratios. Whoever looks after each pair and stops when chance has made the interval short stops too early too
often. So there are looks at `looks` pairs only, and intervals are Student's of `LEVEL`: of normal pairs the mean is
independent of the spread, by which alone the end is chosen, so how often an interval that is reported holds the truth
follows from the spreads at the looks. It is least where the spread of a pair is 1.5 times the wanted half-width: 95.8 %
with 97.5 % at each look; 92.2 % it would be with 95 %.
"""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ampsched._core import InputError
from ampsched.children import SIGNALLED, end, with_parent
from ampsched.files import shown
from ampsched.proving._timed import MARK
from ampsched.proving.energy import Meter
from ampsched.recording.check import LINUX
from ampsched.recording.disturbance import Disturbance
from ampsched.recording.setting import Setting
from ampsched.statistics import Estimate
from ampsched.uncertainty import paired

TIMED = Path(__file__).with_name("_timed.py")
WANTED = 0.02
"""Half-width of the interval from which on a change is known: in parts of today's time, or of the other if longer."""
FIRST_LOOK, GROWTH = 5, 1.5
LEVEL = 0.975
"""Of Student's interval at each look, so that the one that is reported holds the truth with 95 % at least."""
PAIRS_MIN = 2
"""Whatever the time."""
SAID_MAX = 300
"""Characters of what a failed program has said."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A run.

    Attributes:
        wall_s: From its begin to the end of all that it has started, in s.
        energy_j: What the computer used meanwhile, in J; none if nothing tells it.
    """

    wall_s: float
    energy_j: float | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured.

    Attributes:
        change: Of the time, from today's setting to the other: -0.1 is 10 % less; see `LEVEL`.
        energy: The same of the energy; none if nothing tells it.
        today_s, advised_s: Mean times.
        pairs: How often both ran.
        took_s: How long all of it took, in s.
        is_known: Whether `WANTED` was reached, and not the end of the time.
        foreign: The share of the CPUs' time that others took meanwhile, 0 to 1; none if the kernel does not tell.
        seed: Of the orders.
    """

    change: Estimate
    energy: Estimate | None
    today_s: float
    advised_s: float
    pairs: int
    took_s: float
    is_known: bool
    foreign: float | None
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def looks() -> Iterator[int]:
    """After how many pairs one may stop because the change is known: 5, 8, 12, 18, 27 and so on."""
    count = FIRST_LOOK
    while True:
        yield count
        count = math.ceil(count * GROWTH)


def measure(
    command: Sequence[str],
    today: Setting,
    advised: Setting,
    *,
    cpus: str | None = None,
    time_s: float = 120.0,
    seed: int = 1,
    meter: Meter | None = None,
    progress: Callable[[int, float], object] = lambda pairs, half_width: None,
) -> Measured:
    """Runs a command alternately in two settings, once each beforehand, until the change is known or a time is over.

    Args:
        command: Program and arguments. It gets no input; its output is thrown away.
        today: What is compared with.
        advised: What is put to the test.
        cpus: What Linux calls its cores, if not as the machine does.
        time_s: How long all of it may take, in s; but `PAIRS_MIN` pairs run in any case.
        seed: Of the orders within pairs.
        meter: What tells the energy of a run.
        progress: Called after each pair with their number and the half-width.

    Raises:
        InputError: A setting changes clocks, or the program cannot be run or fails.
    """
    settings = (today, advised)
    for each in settings:
        if each.governor:
            raise InputError(
                f'"{each.name}" cannot be put to the test here: clocks are set by nobody meanwhile'
            )

    def timed(setting: Setting) -> Timed:
        return run(setting, command, cpus if setting is advised else None, meter)

    draw = random.Random(seed)  # noqa: S311
    begin_s, disturbance = time.monotonic(), Disturbance()
    pair_s = math.fsum(timed(each).wall_s for each in settings)
    runs: tuple[list[Timed], list[Timed]] = ([], [])
    at = looks()
    look, is_known = next(at), False
    while len(runs[0]) < PAIRS_MIN or time.monotonic() - begin_s + pair_s <= time_s:
        for place in draw.sample((0, 1), 2):
            runs[place].append(timed(settings[place]))
        count, found = len(runs[0]), ratio(_walls(runs[0]), _walls(runs[1]))
        pair_s = max(pair_s, runs[0][-1].wall_s + runs[1][-1].wall_s)
        progress(count, found.half_width)
        if count == look:
            is_known, look = found.half_width <= WANTED * max(1.0, 1 + found.mean), next(at)
            if is_known:
                break
    mine, others = _joules(runs[1]), _joules(runs[0])
    return Measured(
        ratio(_walls(runs[0]), _walls(runs[1])),
        ratio(others, mine) if others and mine else None,
        fmean(_walls(runs[0])),
        fmean(_walls(runs[1])),
        len(runs[0]),
        time.monotonic() - begin_s,
        is_known,
        disturbance.share(),
        seed,
    )


def ratio(today: Sequence[float], advised: Sequence[float]) -> Estimate:
    """The change of values in pairs; see `LEVEL`."""
    return paired(advised, today, LEVEL)


def _walls(runs: Sequence[Timed]) -> list[float]:
    return [each.wall_s for each in runs]


def _joules(runs: Sequence[Timed]) -> list[float]:
    """Energy of each run; empty if that of one is not known."""
    found = [each.energy_j for each in runs if each.energy_j is not None]
    return found if len(found) == len(runs) else []


def run(
    setting: Setting, command: Sequence[str], cpus: str | None = None, meter: Meter | None = None
) -> Timed:
    """Runs a command in a setting.

    Raises:
        InputError: It cannot be run, or fails.
    """
    files = meter.files if meter else []
    timer = [sys.executable, "-I", "-S", str(TIMED), *files, "--"]
    words = setting.argv([*timer, *command], cpus)
    if setting.policy != LINUX:
        place = words.index("ampsched")
        words[place : place + 1] = [sys.executable, "-m", "ampsched"]
    code, output, said = _wait_for(words)
    told = [line.split()[1:] for line in output.splitlines() if line.startswith(MARK)]
    ended = int(told[-1][1]) if told and code == 0 else (code or 1)
    if ended != 0:
        how = f"exit code {ended if ended > 0 else SIGNALLED - ended}"
        last = " ".join(said.split())[-SAID_MAX:]
        raise InputError(
            f'{shown(command[0])} fails in the setting "{setting.name}": {how}{f": {last}" if last else ""}'
        )
    took_ns, _, *counters = map(int, told[-1])
    before, after = counters[: len(files)], counters[len(files) :]
    return Timed(took_ns / 1e9, meter.joules(before, after) if meter else None)


def _wait_for(words: Sequence[str]) -> tuple[int, str, str]:
    """Exit code of a command, its output and its errors; whatever ends this process ends all of its group."""
    try:
        process = subprocess.Popen(  # noqa: S603 (the user's own)
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=with_parent(signal.SIGTERM),
        )
    except OSError as error:
        raise InputError(f"{words[0]}: cannot be executed: {error.strerror}") from None
    try:
        output, said = process.communicate()
    except BaseException:
        end(process)  # a live session undoes what it has done
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, output.decode(errors="replace"), said.decode(errors="replace")
