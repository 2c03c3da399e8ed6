"""A recording that is named by its file, as every command simulates it: one set of conditions for all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ampsched._core import TYPICAL_PROFILE, InputError, Machine, Recording, Workload
from ampsched.catalog import Catalog, split_shares
from ampsched.files import named, shown
from ampsched.recording.check import Check, Reproduction, check, reproduce
from ampsched.recording.files import load
from ampsched.recording.goals import TIME
from ampsched.recording.model_error import ModelError, model_error
from ampsched.recording.refusal import reasons, reasons_before
from ampsched.recording.replay import number_of
from ampsched.recording.speedups import Speedup, known_speedup
from ampsched.spec import parse_spec

SPREAD = 0.05
"""By how much each piece of work may be less or more, as a part of it (ours: a recording is one run, and the next one
differs). Each seed has its own amounts, so that every policy meets the same ones."""
HANDS_OUT = ("are taken by who is free", "the next is started when any has ended")
"""How a replay's notes end that tell what is handed out anew."""


@dataclass(frozen=True, slots=True)
class Spread:
    """By how much pieces of work vary.

    Attributes:
        part: As a part of each, 0 to 1.
        why: How that is known, in words; empty if it is assumed or stated.
    """

    part: float
    why: str = ""

    @property
    def texts(self) -> list[str]:
        """In words; none if nothing varies because somebody says so."""
        if not self.part and not self.why:
            return []
        return [", ".join(filter(None, [f"each piece of work ±{100 * self.part:.2g} %", self.why]))]


ASSUMED = Spread(SPREAD)
"""What is taken for it where nobody knows."""


@dataclass(frozen=True)
class Conditions:
    """A recorded program as it is simulated on a machine.

    Attributes:
        workload: The program alone.
        recording: The recording.
        path: Its file.
        speedup: What is known of its speed-up.
        notes: What the replay honours differently, a sentence each.
        spread: By how much each piece of its work varies.
        catalog: Has its profile.
    """

    workload: Workload
    recording: Recording
    path: Path
    speedup: Speedup
    notes: tuple[str, ...]
    spread: Spread
    catalog: Catalog = field(repr=False)

    @cached_property
    def checked(self) -> Check | None:
        """How good the replay is; none if the recording does not tell its cores."""
        try:
            return check(self.recording, self.path, self.catalog)
        except InputError:
            return None

    @cached_property
    def model_error(self) -> ModelError | None:
        """How far predictions of such programs were off where that was measured; none if its kind is not known."""
        return model_error(self.recording, self.checked.follows) if self.checked else None

    @cached_property
    def against(self) -> list[str]:
        """Why the recording is no basis of advice, a reason each: what `advise` refuses, others say."""
        found = [each.why for each in reasons_before(self.recording)]
        if self.checked is None:
            return [*found, "its replay cannot be checked: the recording does not tell its cores"]
        return [*found, *(each.why for each in reasons(self.recording, self.checked, TIME))]

    @property
    def texts(self) -> list[str]:
        """What a reader must know of them, in words."""
        return [*self.spread.texts, f"speed-up {self.speedup.text}"]

    def again(self, params: Mapping[str, float] | None = None, *, like: str = TYPICAL_PROFILE) -> Conditions:
        """Those of the same recording with other parameters, or of a program that behaves otherwise; see `pose`."""
        return pose(self.catalog, self.recording, self.path, self.speedup, params, like, self.spread)

    def drawn(self, _seed: int) -> Workload:
        """The workload with a seed: a program alone starts at once."""
        return self.workload


def posed(catalog: Catalog, given: str, machine: str | Machine) -> Conditions:
    """The conditions of a recording that is named by its file, with parameters if there are some.

    Raises:
        InputError: The file is no recording, or a parameter is wrong.
    """
    whole, shares = split_shares(given)
    path, text = named(whole), ":".join(shares)
    params = dict(parse_spec(f"program:{text}", f"program {path}")[1]) if text else {}
    recording = load(path)
    stated = params.pop("speedup", None)
    speedup = known_speedup(json.loads(recording.info), catalog, machine, stated)
    conditions = pose(catalog, recording, path, speedup, params)
    name = conditions.workload.name
    return replace(conditions, workload=conditions.workload.named(f"{name}:{text}")) if text else conditions


def pose(
    catalog: Catalog,
    recording: Recording,
    path: Path,
    speedup: Speedup,
    params: Mapping[str, float] | None = None,
    like: str = TYPICAL_PROFILE,
    spread: Spread = ASSUMED,
) -> Conditions:
    """The conditions of a recording. What was handed out is handed out anew unless that does not fit: see `reproduce`.

    Args:
        catalog: Has the profile.
        recording: The recording.
        path: Its file.
        speedup: What is known of its speed-up.
        params: Parameters of recordings that are stated, by name.
        like: Profile that says how the program behaves, as far as the speed-up does not.
        spread: By how much pieces of its work vary, unless that is stated.

    Raises:
        InputError: A parameter is wrong.
    """
    stated = {"spread": spread.part, **(params or {})}
    spread = spread if stated["spread"] == spread.part else Spread(stated["spread"])
    name, core = shown(path), catalog.with_recording(str(path), recording, like).core
    ratio = {} if speedup.ratio is None else {"speedup": speedup.ratio}
    own = None if "sharing" in stated else _reproduced(catalog, recording, path)
    kept = own is not None and own.handed_out_s is not None
    shares = {"sharing": number_of(own.sharing)} if own and kept else {}
    workload = core.program(name, list({**stated, **ratio, **shares}.items()))
    notes = tuple(core.notes(name))
    if own and kept:
        notes = (*own.notes, *(note for note in notes if not note.endswith(HANDS_OUT)))
    return Conditions(workload, recording, path, speedup, notes, spread, catalog)


def _reproduced(catalog: Catalog, recording: Recording, path: Path) -> Reproduction | None:
    """How a replay fits on the recording's own cores; none if it does not tell them."""
    try:
        return reproduce(recording, path, catalog)
    except InputError:
        return None
