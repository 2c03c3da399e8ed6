"""How long an author of a policy waits from an edit to a comparison's table: `make try` in a copy of the checkout."""

import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from measure import MeasurementFailed

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from checkout import Copy, copy

POLICY = "author-loop"
FILE = f"crates/policy/src/policies/{POLICY.replace('-', '_')}.rs"
TARGET_S = 15.0


@dataclass(frozen=True)
class Wait:
    """What one `make try` took."""

    wall_s: float
    cpu_s: float


def report(rounds: int) -> Iterator[str]:
    """Edits a new policy and tries it, so often."""
    checkout = copy("author-loop")
    _make(checkout, "new")
    first = _try(checkout)
    waits = [_edit_and_try(checkout, number) for number in range(rounds)]
    walls_s = sorted(wait.wall_s for wait in waits)
    median_s, cpu_s = statistics.median(walls_s), statistics.median(wait.cpu_s for wait in waits)
    yield "### From an edit of a policy to a result\n"
    yield (
        f"`make try` after an edit of a policy in Rust, until the comparison with `cfs` is printed: {median_s:.1f} s "
        f"({walls_s[0]:.1f} to {walls_s[-1]:.1f}), {cpu_s:.1f} s of CPU time; target at most {TARGET_S:.0f} s: "
        f"{'reached' if median_s <= TARGET_S else 'missed'}. The first time, with its row added: {first.wall_s:.1f} s, "
        f"{first.cpu_s:.1f} s of CPU time.\n"
    )


def _edit_and_try(checkout: Copy, number: int) -> Wait:
    """Changes a constant that the compiler has to compile into the policy."""
    file = checkout.folder / FILE
    text, edits = re.subn(
        r"speedup\.or\([^)]*\)", f"speedup.or(1.{number + 1})", file.read_text(encoding="utf-8")
    )
    if edits != 1:
        raise MeasurementFailed(f"{FILE}: {edits} places to edit")
    file.write_text(text, encoding="utf-8")
    return _try(checkout)


def _try(checkout: Copy) -> Wait:
    start_s, used_s = time.monotonic(), _cpu_s()
    printed = _make(checkout, "try")
    if POLICY not in printed:
        raise MeasurementFailed(f"make try printed no row for {POLICY}:\n{printed}")
    return Wait(time.monotonic() - start_s, _cpu_s() - used_s)


def _cpu_s() -> float:
    """CPU time of all processes that were started and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _make(checkout: Copy, target: str) -> str:
    done = subprocess.run(
        ["make", target, f"POLICY={POLICY}"],
        cwd=checkout.folder,
        env=checkout.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise MeasurementFailed(f"make {target}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
