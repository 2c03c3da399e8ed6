"""Mutated texts of every format, guided by the code that they reach (libFuzzer).

``corpus.json.gz`` holds what is kept of each format: an object of lists of texts, by the format's name. It is unpacked
for a run; ``attack.py --parts parsers --keep`` adds what reaches new code, minimises, and packs it again.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from progress import Progress
from workers import ROOT, Done, Failure, cargo, host, total

CORPUS = ROOT / "tests" / "attack" / "corpus.json.gz"
COVERAGE = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=3",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
]
"""What `cargo fuzz` passes, all of it stable, but for comparisons and indirect calls: to follow these takes half of the
time, and the words that a format compares with are in its seeds."""

STARTS_MAX = 20
LIMITS = ["-timeout=60", "-rss_limit_mb=1024", "-malloc_limit_mb=1024"]
"""No text may take longer than a minute, which is a second where nothing else runs, or more than 1 GB."""

KEPT, KEPT_BYTES = 60, 12_000
"""How many texts are kept of a format in the end, and how long they are together at most."""


@dataclass(frozen=True)
class Format:
    """A format, the longest text that is tried, in bytes, and its share of all texts."""

    name: str
    most: int
    share: int


def build_fuzzer() -> Path:
    """Builds the program that mutates; everything in it is compiled with coverage."""
    fuzz = ROOT / "fuzz"
    target = fuzz / "target"
    flags = " ".join([*COVERAGE, "--cfg=fuzzing"])
    cargo("--target", host(), "--target-dir", str(target), cwd=fuzz, environment={"RUSTFLAGS": flags})
    return target / host() / "attack" / "ampsched-fuzz"


def run(count: int, seed: int, jobs: int, out: Path, keep: bool, progress: Progress) -> Done:
    """So many texts in all, each format by its share."""
    fuzzer = build_fuzzer()
    unpack(CORPUS, out / "corpus")
    formats = list_formats(fuzzer, out / "seeds")
    shares = sum(format_.share for format_ in formats)
    with ThreadPoolExecutor(jobs) as pool:
        tasks = [
            pool.submit(one, fuzzer, format_, -(-count * format_.share // shares), seed, out, keep)
            for format_ in formats
        ]
        for task in as_completed(tasks):
            progress.add(task.result().count)
        if keep:
            pack(out / "corpus", CORPUS)
        return total(task.result() for task in tasks)


def unpack(packed: Path, folder: Path) -> None:
    """Writes each text of a packed corpus to a file, in a folder per format."""
    for name, texts in json.loads(gzip.decompress(packed.read_bytes())).items():
        (folder / name).mkdir(parents=True)
        for number, text in enumerate(texts):
            (folder / name / f"{number:03}").write_bytes(text.encode())


def pack(folder: Path, packed: Path) -> None:
    """Packs the files below a folder; the same texts give the same bytes.

    Formats read text: bytes that are not UTF-8 become what a format sees of them.
    """
    corpus = {
        each.name: sorted({path.read_bytes().decode(errors="replace") for path in each.iterdir()})
        for each in sorted(folder.iterdir())
    }
    packed.write_bytes(gzip.compress(json.dumps(corpus, indent=0).encode(), mtime=0))


def list_formats(fuzzer: Path, seeds: Path) -> list[Format]:
    """All formats; the seeds of each are written below a folder."""
    environment = {**os.environ, "SEEDS": str(seeds)}
    listed = subprocess.run([fuzzer], env=environment, check=True, capture_output=True, text=True).stdout
    rows = (line.split("\t") for line in listed.splitlines())
    return [Format(name, int(most), int(share)) for name, most, share in rows]


def one(fuzzer: Path, format_: Format, count: int, seed: int, out: Path, keep: bool) -> Done:
    """One format: libFuzzer is started again behind what ends it."""
    work, failed = out / format_.name, out / "failures" / format_.name
    work.mkdir(parents=True)
    failed.mkdir(parents=True)
    done, told = Done(), ""
    for start in range(STARTS_MAX):
        arguments = [
            f"-runs={count - done.count}",
            f"-seed={seed + start}",
            f"-max_len={format_.most}",
            f"-artifact_prefix={failed}/",
            *["-len_control=0", "-reload=0", "-print_final_stats=1", *LIMITS],
        ]
        folders = [work, out / "seeds" / format_.name, out / "corpus" / format_.name]
        told = fuzz(fuzzer, format_, arguments, [folder for folder in folders if folder.exists()], failed)
        done.count += last_number(r"number_of_executed_units: *(\d+)", told) or last_number(r"#(\d+)\b", told)
        if done.count >= count:
            break
    done.failures = [
        failure(path, format_, fuzzer) for path in sorted(failed.iterdir()) if path.suffix != ".txt"
    ]
    reached = last_number(r"cov: (\d+)", told)
    done.notes = [f"{format_.name}: {done.count:,} texts, {reached:,} places reached"]
    if keep:
        keep_corpus(fuzzer, format_, work, failed, out / "corpus" / format_.name)
    return done


def fuzz(fuzzer: Path, format_: Format, arguments: list[str], folders: list[Path], failed: Path) -> str:
    """Runs libFuzzer; what it said."""
    environment = {**os.environ, "FORMAT": format_.name, "FAILURES": str(failed)}
    command = [str(fuzzer), *arguments, *map(str, folders)]
    ran = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    return ran.stdout.decode(errors="replace")


def last_number(pattern: str, text: str) -> int:
    """The last number that a pattern finds; 0 if there is none."""
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def failure(path: Path, format_: Format, fuzzer: Path) -> Failure:
    """What an input that is written down has done."""
    said = path.with_name(path.name + ".txt")
    what = said.read_text() if said.exists() else path.name.split("-")[0]
    return Failure(
        f"{format_.name}: {what}",
        f"FORMAT={format_.name} {fuzzer.relative_to(ROOT)} {path.relative_to(ROOT)}",
    )


def keep_corpus(fuzzer: Path, format_: Format, work: Path, failed: Path, kept: Path) -> None:
    """Keeps some of the few texts that reach as much as all."""
    merged = work.with_name(work.name + "-merged")
    merged.mkdir()
    kept.mkdir(parents=True, exist_ok=True)
    fuzz(fuzzer, format_, ["-merge=1", *LIMITS], [merged, kept, work], failed)
    shutil.rmtree(kept)
    kept.mkdir()
    for path in chosen(merged):
        shutil.copy(path, kept)


def chosen(folder: Path) -> list[Path]:
    """Some texts of a folder, short and long ones alike."""
    texts = sorted(folder.iterdir(), key=lambda path: (path.stat().st_size, path.name))
    few, size = [], 0
    for path in texts[:: len(texts) // KEPT + 1]:
        size += path.stat().st_size
        if size <= KEPT_BYTES:
            few.append(path)
    return few
