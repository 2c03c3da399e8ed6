"""Runs measuring programs as processes of their own: their result, peak memory, medians over rounds."""

import json
import os
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path


class MeasurementFailed(RuntimeError):
    """A measuring program failed; the message holds what it said."""


@dataclass(frozen=True)
class Sample:
    """What one run of a measuring program tells."""

    dispatches: int
    cpu_s: float
    start_s: float
    peak_mib: float
    version: str

    @property
    def per_s(self) -> float:
        """Dispatches per second of CPU time."""
        return self.dispatches / self.cpu_s

    @property
    def ns_per_dispatch(self) -> float:
        """CPU time per dispatch in ns, start-up included."""
        return 1e9 * self.cpu_s / self.dispatches


def run(command: list[str]) -> Sample:
    """Runs a program that prints one JSON object with `dispatches` and `cpu_s`."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        text, errors = process.stdout.read(), process.stderr.read()
        # Unlike `wait`, this also tells the peak memory of this very process.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise MeasurementFailed(f"{' '.join(command)}: exit code {process.returncode}\n{errors}")
    values = json.loads(text)
    return Sample(
        dispatches=int(values["dispatches"]),
        cpu_s=float(values["cpu_s"]),
        start_s=float(values.get("start_s", 0.0)),
        peak_mib=usage.ru_maxrss / 1024,
        version=str(values.get("version", "")),
    )


def rounds(commands: dict[str, list[str]], count: int) -> dict[str, list[Sample]]:
    """Runs all commands `count` times, interleaved, so that all meet the same state of the computer."""
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for _ in range(count):
        for name, command in commands.items():
            samples[name].append(run(command))
    return samples


def median_per_s(samples: list[Sample]) -> float:
    """Median dispatches per second."""
    return statistics.median(sample.per_s for sample in samples)


def median_ratio(samples: list[Sample], others: list[Sample]) -> float:
    """Median over the rounds of the ratio of two speeds measured in the same round."""
    pairs = zip(samples, others, strict=True)
    return statistics.median(sample.per_s / other.per_s for sample, other in pairs)


def build_example(root: Path, package: str, example: str, features: str = "") -> Path:
    """Builds a measuring program and returns its path."""
    command = ["cargo", "build", "--release", "--locked", "--quiet"]
    command += ["--package", package, "--example", example, "--features", features]
    subprocess.run(command, cwd=root, check=True)
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    target = Path(json.loads(metadata.stdout)["target_directory"])
    return target / "release" / "examples" / example
