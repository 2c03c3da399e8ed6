"""One boot of a campaign: a scheduler is put into the kernel, the director carries out its runs."""

import json
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ampsched.vm.error import VmError
from ampsched.vm.exact import Exact, Work, core_options, run
from ampsched_lab.campaign.plan import Run, plan

HOME = Path("/campaign")
"""Folder of the campaign's files in the guest; the same wherever the checkout is, so that equal inputs give equal
guests."""
PATH = "/campaign/bin:/usr/bin:/bin"
LIMIT_S = 3600.0
"""Of this computer's time per boot."""
KERNEL = "eevdf-kernel"
"""The kernel's own scheduler."""
TRACES = "traces"
"""Folder of the guest that gets what it hands out of runs."""

SCRIPT = """#!/bin/sh
# Puts a scheduler into the kernel, lets the director carry out the plan, and takes the scheduler away again.
echo 0 >/proc/sys/kernel/randomize_va_space
state=/sys/kernel/sched_ext/state
wait_for() {
    for _ in $(seq 3600); do
        read -r now <$state
        [ "$now" = $1 ] && return
        sleep 0.05
    done
    cat log >&2
    echo "the scheduler is not $1" >&2
    exit 3
}
if [ -n "$SCHEDULER" ]; then
    $SCHEDULER >log 2>&1 &
    wait_for enabled
    sleep 0.5
fi
director plan
code=$?
if [ -n "$SCHEDULER" ]; then
    read -r now <$state
    [ "$now" = enabled ] || { cat log >&2; echo "the scheduler ended while programs ran" >&2; exit 3; }
    kill -INT $!
    wait_for disabled
fi
exit $code
"""


@dataclass(frozen=True)
class Scheduler:
    """What is in the kernel.

    Attributes:
        name: Names a file.
        words: Program and arguments that put it there, none for the kernel's own; the first is a path of this
            computer.
        is_ours: Is told of the cores by the options of ``ampsched live run``.
        told: What ours is told of the cores, if not what they are.
    """

    name: str
    words: tuple[str, ...] = ()
    is_ours: bool = False
    told: tuple[str, ...] = ()

    def command(self, exact: Exact) -> list[str]:
        """Its command in the guest."""
        if not self.words:
            return []
        options = (self.told or core_options(exact)) if self.is_ours else []
        return [str(HOME / "bin" / Path(self.words[0]).name), *self.words[1:], *options]


def ours(policy: str, loader: Path, *options: str) -> Scheduler:
    """One of our policies, by the loader that puts it into a kernel; it schedules everything."""
    words = (str(loader), "run", "--backend=scx", "--everything", f"--policy={policy}", *options)
    return Scheduler(policy, words, is_ours=True)


@dataclass(frozen=True)
class Guest:
    """A machine with a kernel, and the programs of its architecture.

    Attributes:
        name: Of the machine; names a folder.
        exact: The machine itself.
        programs: Folder of compiled programs, with the director.
        files: What all mixes need beside them: files of this computer by their paths in the guest.
    """

    name: str
    exact: Exact
    programs: Path
    files: Mapping[Path, Path] = field(default_factory=dict)

    @property
    def system(self) -> str:
        """Kernel and architecture; names a folder."""
        return f"{self.exact.architecture}-{self.exact.kernel}"


def boot(
    guest: Guest, scheduler: Scheduler, runs: Sequence[Run], traces: Path | None = None
) -> list[dict[str, Any]]:
    """What the director says of each run, see director.c.

    Args:
        guest: The machine.
        scheduler: What is in its kernel.
        runs: In this order.
        traces: Folder that gets the kernel's trace of each run, with who woke whom, which takes a bit of time more.

    Raises:
        VmError: The machine or the scheduler does not work, or a program has failed.
    """
    with tempfile.TemporaryDirectory(prefix="ampsched-campaign-") as folder:
        work = _work(Path(folder), guest, scheduler, runs, "" if traces is None else str(HOME / TRACES))
        out = Path(folder) / "out"
        done = run(guest.exact, work, out=out if traces else None, limit_s=LIMIT_S)
        if traces and (out / TRACES).exists():
            shutil.copytree(out / TRACES, traces, dirs_exist_ok=True)
    what = f"{guest.name} {guest.system} {scheduler.name}"
    if done.code != 0:
        last = (done.output.strip() or done.console.strip()).splitlines()[-5:]
        raise VmError(f"{what}: {'stopped at its limit' if done.timed_out else '; '.join(last)}")
    found = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
    for each, expected in zip(found, runs, strict=True):
        failed = [program["name"] for program in each["programs"] if program["code"]]
        if each["key"] != expected.key or failed:
            raise VmError(
                f"{what}: run {each['key']}: {', '.join(failed)} failed: {done.output.strip()[-500:]}"
            )
    return found


def _work(folder: Path, guest: Guest, scheduler: Scheduler, runs: Sequence[Run], traces: str) -> Work:
    placed = {HOME / "bin" / file.name: file for file in sorted(guest.programs.iterdir())} | dict(guest.files)
    for each in runs:
        placed |= dict(each.mix.files)
    if scheduler.words:
        placed[HOME / "bin" / Path(scheduler.words[0]).name] = Path(scheduler.words[0])
    for name, content, mode in (
        ("plan", plan(runs, _classes(guest.exact), traces), 0o644),
        ("boot.sh", SCRIPT, 0o755),
    ):
        (folder / name).write_text(content, "utf-8")
        (folder / name).chmod(mode)
        placed[HOME / name] = folder / name
    variables = {"SCHEDULER": shlex.join(scheduler.command(guest.exact)), "HOME": "/root"}
    words = ["sh", str(PurePosixPath(HOME, "boot.sh"))]
    linked = [Path(word) for word in scheduler.words[:1]]
    return Work(words, variables=variables, cwd=HOME, placed=placed, linked=linked, path=PATH)


def _classes(exact: Exact) -> list[int]:
    return [exact.machine.clusters[owner][4] for owner in exact.machine.cluster_of_core]
