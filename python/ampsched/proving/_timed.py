"""Runs a command and says how long it took, with all that it started: ``python _timed.py FILES -- COMMAND``.

A file of its own that imports nothing of the package, so that it starts soon, also inside of a live session. What
outlives the process that has started it becomes a child of this one, which waits for it. FILES are counters of energy,
which are read before and after. The last line of its output is `MARK`, the time in ns, the exit code, and the counters
before and after. The command gets no input, and its output is thrown away when it has ended.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time

MARK = "ampsched-timed"
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
"""include/uapi/linux/prctl.h."""


def main(files: list[str], command: list[str]) -> None:
    """Runs the command."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    # A file, as some programs do less if nobody reads them.
    with tempfile.TemporaryFile() as output:
        before = _read(files)
        begin_ns = time.monotonic_ns()
        try:
            process = subprocess.Popen(  # noqa: S603 (the user's own)
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                preexec_fn=lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
            )
        except OSError as error:
            sys.exit(f"cannot be executed: {error.strerror}")
        code = process.wait()
        while True:
            try:
                os.wait()
            except ChildProcessError:
                break
        took_ns = time.monotonic_ns() - begin_ns
        after = _read(files)
    print(MARK, took_ns, code, *before, *after, flush=True)


def _read(files: list[str]) -> list[int]:
    """The counters; -1 of one that cannot be read."""
    found = []
    for name in files:
        try:
            with open(name, encoding="ascii") as file:  # noqa: PTH123 (imports less)
                found.append(int(file.read()))
        except (OSError, ValueError):
            found.append(-1)
    return found


if __name__ == "__main__":
    place = sys.argv.index("--")
    main(sys.argv[1:place], sys.argv[place + 1 :])
