"""The rules that a policy written in Python may replace; written by `make bless` from the table of words."""

from collections.abc import Sequence
from typing import Literal, TypedDict


class Rules(TypedDict, total=False):
    """Single rules that a policy written in Python replaces in those of its base."""

    queues: Literal["per_core", "per_cluster", "global"]
    """Which cores share a queue."""
    rating: Sequence[float]
    """How fast the policy takes the cores of each class to be for any thread, relative to the slowest,
    in units of 1 / `SPEED_ONE`. All loads that are compared between queues are weights per rated
    core."""
    order: Literal["fifo", "vruntime", "deadline", "highest_rank", "rounds"]
    """Which waiting thread comes first."""
    allocator: Literal[
        "wake_affine", "round_robin_in_class", "least_loaded_in_class", "least_loaded_with", "by_energy"
    ]
    """Where threads are put."""
    steal: Sequence[Literal["own_cluster", "other_clusters", "running_on_slower"]]
    """What an idle core tries, in order, after its own queue."""
    kick_idle: bool
    """Whether idle cores are told at once when a thread has to wait (else they look only when they
    become idle and when load is balanced)."""
    slice_ms: float | Literal["fixed", "latency_share", "request"]
    """How long a thread may run."""
    slice_by_speed: bool
    """Divide slices by the predicted speed on the core: equal work instead of equal time."""
    charge: Literal["time", "progress", "rated"]
    """What run time counts."""
    wake_preemption: Literal["never", "vruntime_gap", "scaled_vruntime_gap", "earlier_deadline", False]
    """Wake-up preemption."""
    sleeper_credit_ms: float
    """How far behind the queue's least virtual run time a woken thread may be (CFS: latency / 2)."""
    fork_debit: bool
    """A new thread starts one slice behind (CFS START_DEBIT)."""
    tick_ms: float | Literal[False]
    """Slices end at multiples of this, as with a periodic tick; exactly if absent."""
    balance: Literal[False]
    """Periodic load balancing."""
    balance_when: Literal["always", "over_utilised"]
    """When stealing and balancing happen at all."""
