"""What several tests need."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Files of tests run side by side: threads of libraries would only wait for each other, and spin while they do.
for each in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(each, "1")

import pytest  # noqa: E402

from ampsched.cli import main  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]

# Whoever started the tests in the background ignores some of these, and every program that they start would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_DFL)


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    code: int
    out: str
    err: str


Ampsched = Callable[..., Finished]


@pytest.fixture
def ampsched_here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Ampsched:
    """Runs the command line in this process, on a terminal of 80 columns without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str) -> Finished:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        captured = capsys.readouterr()
        return Finished(int(ended.value.code or 0), captured.out, captured.err)

    return run


def command_path() -> str:
    """The command ``ampsched``: in the path, or beside the interpreter."""
    return shutil.which("ampsched") or str(Path(sys.executable).parent / "ampsched")


@pytest.fixture
def ampsched_process(tmp_path: Path) -> Ampsched:
    """Runs the command as a process of its own, in an empty folder."""

    def run(*arguments: str) -> Finished:
        command = [command_path(), *arguments]
        environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
        ended = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        return Finished(ended.returncode, ended.stdout, ended.stderr)

    return run


def has(text: str, word: str, count: int = 1) -> bool:
    """Whether a word stands in a text so often, and not as a part of a longer number or name."""
    before, after = r"(?<![\w.,+-])", r"(?![\w%]|[.,]\d)"
    pattern = (
        f"{before if word[0] not in '+-±' else ''}{re.escape(word)}{after if word[-1].isalnum() else ''}"
    )
    return len(re.findall(pattern, text)) >= count
