"""Training rows: counts of a program on one kind of core, and the speed-up that is to be predicted from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ampsched._core import InputError

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Rows of one kind of core.

    A row is a window of a program. `counts` (rows x counters) has NaN where a counter is missing. `groups` says which
    rows belong
    together: a group is never split between training and testing.
    """

    name: str
    core_type: str
    mhz: float | None
    is_big: bool
    """Whether the counters are those of the faster cores."""
    counters: tuple[str, ...]
    counts: Array
    programs: tuple[str, ...]
    groups: tuple[str, ...]
    speedup: Array
    """Speed on the fastest cores / speed on the slowest, >0."""
    pie: Array
    """What PIE's formula predicts, by row; NaN where its inputs are missing."""
    notes: tuple[str, ...] = ()
    """What cleaning did."""

    def __len__(self) -> int:
        return len(self.programs)

    def column(self, counter: str) -> Array:
        """Counts of a counter.

        Raises:
            KeyError: If the set does not have it.
        """
        if counter not in self.counters:
            raise KeyError(counter)
        return self.counts[:, self.counters.index(counter)]

    def rows(self, chosen: Sequence[int] | NDArray[np.bool_] | NDArray[np.intp]) -> "TrainingSet":
        """Some of the rows."""
        picked = np.arange(len(self))[np.asarray(chosen)]
        return replace(
            self,
            counts=self.counts[picked],
            programs=tuple(self.programs[row] for row in picked),
            groups=tuple(self.groups[row] for row in picked),
            speedup=self.speedup[picked],
            pie=self.pie[picked],
        )

    def with_groups(self, groups: Sequence[str]) -> "TrainingSet":
        """The same rows, held together otherwise."""
        return replace(self, groups=tuple(groups))


def clean(rows: TrainingSet) -> TrainingSet:
    """Removes what cannot be used, and says what that was in `notes`.

    Rows without instructions, cycles or a speed-up above 0 go; so do counters that any remaining row lacks, and those
    that never change per instruction. Counts below 0 are missing.

    Raises:
        InputError: If fewer than three groups are left.
    """
    notes = list(rows.notes)
    counts = np.where(rows.counts < 0, np.nan, rows.counts)
    negative = int((rows.counts < 0).sum())
    if negative:
        notes.append(f"{negative} counts below 0 taken as missing")
    rows = replace(rows, counts=counts)
    usable = (rows.column("instructions") > 0) & (rows.column("cycles") > 0) & (rows.speedup > 0)
    if not usable.all():
        notes.append(
            f"{int((~usable).sum())} of {len(rows)} rows without instructions, cycles or speed-up left out"
        )
    rows = rows.rows(usable)
    if len(set(rows.groups)) < 3:
        hint = "cross-validation leaves out one program at a time"
        raise InputError(f"{rows.name}: {len(set(rows.groups))} programs, at least 3 are needed ({hint})")
    per_instruction = rows.counts / rows.column("instructions")[:, None]
    complete: NDArray[np.bool_] = np.asarray(np.isfinite(rows.counts).all(axis=0))
    changes: NDArray[np.bool_] = np.zeros(len(rows.counters), dtype=bool)
    changes[complete] = np.ptp(per_instruction[:, complete], axis=0) > 0
    keep = [
        bool(varies) or name in ("instructions", "cycles")
        for name, varies in zip(rows.counters, changes, strict=True)
    ]
    whole: list[bool] = list(complete.tolist())
    left_out = [(name, full) for name, kept, full in zip(rows.counters, keep, whole, strict=True) if not kept]
    gone = [name for name, full in left_out if not full]
    flat = [name for name, full in left_out if full]
    notes += [f"incomplete counters left out: {', '.join(gone)}"] if gone else []
    notes += [f"counters that never change left out: {', '.join(flat)}"] if flat else []
    kept_names = tuple(name for name, kept in zip(rows.counters, keep, strict=True) if kept)
    return replace(rows, counters=kept_names, counts=rows.counts[:, np.array(keep)], notes=tuple(notes))
