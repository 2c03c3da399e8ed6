"""Runs a command under somebody else's sched_ext scheduler: ``python _under.py SCHEDULER [OPTION...] -- COMMAND``.

A file of its own that imports nothing of the package, like ``_runner.py``. The scheduler is started, the command is run
once the kernel says that a scheduler is enabled, and the scheduler is told to stop. Exit code: the command's, or 2 with
one line of error.
"""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

STATE = Path("/sys/kernel/sched_ext/state")
LOAD_S = 120.0
"""Longest time until the kernel has taken the scheduler: checking its program takes minutes where CPUs are emulated."""
END_S = 30.0
WORDS_S = 2.0
"""Longest wait for why a scheduler left: the kernel is rid of it before its process has noticed and says so."""
LOOK_S = 0.05


@contextmanager
def loaded(scheduler: list[str]) -> Iterator[None]:
    """A scheduler that is in the kernel while the block runs.

    Raises:
        RuntimeError: It cannot be started, is not taken by the kernel, or ends before the block does.
    """
    if _state() != "disabled":
        raise RuntimeError(f"{scheduler[0]}: {STATE} is {_state()}, not disabled")
    with tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(scheduler, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # noqa: S603
        except OSError as error:
            raise RuntimeError(f"{scheduler[0]}: cannot be run: {error.strerror}") from None
        try:
            _wait(process, log, "enabled", LOAD_S)
            yield
            if process.poll() is not None or _state() != "enabled":
                with suppress(subprocess.TimeoutExpired):
                    process.wait(WORDS_S)
                raise RuntimeError(f"{scheduler[0]}: ended while the programs ran{_last_words(log)}")
        finally:
            _stop(process)
        _wait(None, log, "disabled", END_S)


def _state() -> str:
    try:
        return STATE.read_text(encoding="ascii").strip()
    except OSError:
        raise RuntimeError(f"{STATE}: this kernel has no sched_ext") from None


def _wait(process: subprocess.Popen[bytes] | None, log: IO[bytes], state: str, limit_s: float) -> None:
    end_s = time.monotonic() + limit_s
    while _state() != state:
        if process is not None and process.poll() is not None:
            raise RuntimeError(f"the scheduler ended with {process.returncode}{_last_words(log)}")
        if time.monotonic() > end_s:
            raise RuntimeError(f"the scheduler is not {state} after {limit_s:g} s{_last_words(log)}")
        time.sleep(LOOK_S)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _last_words(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""


def _run(command: list[str]) -> int:
    """Exit code of a command, which is told to end if this process is."""
    process = subprocess.Popen(command)  # noqa: S603
    try:
        return process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise


def _main(arguments: list[str]) -> int:
    middle = arguments.index("--")
    try:
        with loaded(arguments[:middle]):
            return _run(arguments[middle + 1 :])
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(_main(sys.argv[1:]))
