"""What tests of sweeps share."""

from pathlib import Path
from typing import Any

import ampsched

POLICIES = ["cfs", "colab:decay=0.5..1.0:3"]
WORKLOADS = ["cpu-bound", "ferret:n=1/2"]


def small(folder: Path | None = None, **more: Any) -> Any:
    """A sweep of 36 simulations of a millisecond each."""
    return ampsched.sweep("2B2S", WORKLOADS, POLICIES, folder=folder, **{"repeat": 2, "jobs": 1, **more})


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
