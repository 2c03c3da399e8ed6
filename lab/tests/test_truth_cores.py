"""What scheduling costs on many cores: the loads do what the page says, figures are computed as it says.

Nothing here boots a machine; tests/live does.
"""

import json
import subprocess
from pathlib import Path

import pytest
import zstandard

from ampsched_lab.campaign.boot import KERNEL
from ampsched_lab.campaign.plan import Run
from ampsched_lab.campaign.store import Store, digest
from ampsched_lab.cores import report
from ampsched_lab.cores.points import POLICIES, SCHEDULERS, SOURCES, Point, points

NAMES = ("pairs", "groups", "wakers", "build")
SMALL = {
    "pairs": ("--pairs", "2", "--ms", "20"),
    "groups": ("--groups", "2", "--senders", "2", "--receivers", "3", "--ms", "20", "--warm-ms", "1"),
    "wakers": ("--messengers", "2", "--workers", "3", "--ms", "60", "--warm-ms", "1"),
    "build": ("--jobs", "2", "--ms", "200", "--warm-ms", "1"),
}


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled programs."""
    folder = tmp_path_factory.mktemp("cores")
    for name in NAMES:
        sources = [SOURCES / f"{name}.c", SOURCES / "truth.c"]
        subprocess.run(["cc", "-O1", "-std=gnu11", "-pthread", "-o", folder / name, *sources], check=True)
    return folder


def said(binaries: Path, name: str, folder: Path) -> dict:
    words = [binaries / name, *SMALL[name]]
    done = subprocess.run(words, capture_output=True, check=True, cwd=folder)
    return json.loads(done.stdout)


def test_pairs_wake_each_other(binaries: Path, tmp_path: Path) -> None:
    found = said(binaries, "pairs", tmp_path)
    assert found["pairs"] == 2
    assert found["wakeups"] > 10
    assert found["ns"] >= 20_000_000


def test_all_messages_of_groups_arrive(binaries: Path, tmp_path: Path) -> None:
    found = said(binaries, "groups", tmp_path)
    assert found["lost"] == 0
    assert found["messages"] > 100


def test_waits_of_woken_threads_are_in_the_histogram(binaries: Path, tmp_path: Path) -> None:
    found = said(binaries, "wakers", tmp_path)
    assert found["workers"] == 6
    assert sum(count for _, count in found["below_ns"]) == found["wakeups"] > 10
    assert found["p50_ns"] <= found["p99_ns"] <= found["most_ns"] < found["below_ns"][-1][0]


def test_a_build_leaves_nothing(binaries: Path, tmp_path: Path) -> None:
    found = said(binaries, "build", tmp_path)
    assert found["jobs"] > 2
    assert found["failed"] == 0
    assert list(tmp_path.iterdir()) == []


def test_a_job_fails_if_its_file_is_wrong(binaries: Path, tmp_path: Path) -> None:
    """So what the processes of a build say of each other counts."""
    subprocess.run([binaries / "build", "compile", "7"], check=True, cwd=tmp_path)
    (tmp_path / "7.s").write_bytes(bytes((tmp_path / "7.s").stat().st_size))
    done = subprocess.run([binaries / "build", "assemble", "7"], capture_output=True, cwd=tmp_path)
    assert (done.returncode, b"not what was written" in done.stderr) == (1, True)


def test_cores_are_equal_and_ours_are_told_otherwise(tmp_path: Path) -> None:
    point = Point(8, 2.0)
    exact = point.guest(tmp_path, tmp_path).exact
    assert [cluster.speed for cluster in exact.clusters()] == [1_000_000] * 2
    words = point.scheduler("cfs", tmp_path, Path("loader")).command(exact)
    assert words[-3:] == ["--big=0-3", "--little=4-7", "--ratio=1.01"]
    assert point.scheduler(KERNEL, tmp_path).command(exact) == []
    assert point.scheduler("scx_bpfland", tmp_path).command(exact) == ["/campaign/bin/scx_bpfland"]


def test_short_boots_come_first() -> None:
    assert [point.name for point in points((4, 8), (2.0, 50.0))] == ["4-50us", "4-2us", "8-50us", "8-2us"]


def test_loads_are_not_traced_and_belong_to_their_sources(tmp_path: Path) -> None:
    point = Point(4, 50.0)
    guest, scheduler = point.guest(tmp_path, tmp_path), point.scheduler(KERNEL, tmp_path)
    runs = [Run(mix, 0) for mix in point.mixes()]
    assert all(run.lines()[0].endswith("\tuntraced") for run in runs)
    assert len({digest(guest, scheduler, run) for run in runs}) == len(runs)
    assert {source for run in runs for source in run.mix.sources} == {
        *(SOURCES / f"{name}.c" for name in NAMES), SOURCES / "truth.c", SOURCES / "truth.h",
    }  # fmt: skip


ROWS = {
    "pairs": {"pairs": {"wakeups": 12_000, "ns": 30_000_000}},
    "groups": {"groups": {"messages": 4_000, "ns": 20_000_000}},
    "wakers": {"wakers": {"p50_ns": 5_000, "p99_ns": 40_500}},
    "build": {"build": {"jobs": 80, "ns": 40_000_000}},
    "wakers+build": {"wakers": {"p50_ns": 6_000, "p99_ns": 99_000}, "build": {"jobs": 40, "ns": 45_000_000}},
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """One point, measured under one of our policies with today's sources."""
    point, store = Point(4, 2.0), Store(tmp_path / "results")
    guest, scheduler = point.guest(tmp_path, tmp_path), point.scheduler("cfs", tmp_path, Path("loader"))
    rows = [
        {
            "mix": mix.name,
            "offset": 0,
            "digest": digest(guest, scheduler, Run(mix, 0)),
            "programs": [{"name": name, "report": own} for name, own in ROWS[mix.name].items()],
        }
        for mix in point.mixes()
    ]
    store.add(guest.name, guest.system, scheduler.name, rows)
    return store


def results(store: Store) -> report.Results:
    folder = store.root.parent
    return report.Results.read(store, folder, folder, folder)


def test_figures_are_per_core(store: Store) -> None:
    text = report.text(results(store), "p.svg")
    for value in ("100.0", "50.0", "5.0", "40.5", "500", "6.0", "99.0", "222"):
        assert text.count(f"| 4 cores, 2 µs |  |  |  | {value} |") == 1
    assert "other sources" not in text


def test_what_was_measured_with_other_sources_is_marked(store: Store) -> None:
    [path] = store.root.rglob("*.jsonl.zst")
    text = zstandard.decompress(path.read_bytes()).replace(b'"digest": "', b'"digest": "x')
    path.write_bytes(zstandard.compress(text))
    text = report.text(results(store), "p.svg")
    assert "| 100.0* |" in text
    assert "other sources than today's" in text


def test_costs_are_drawn(store: Store, tmp_path: Path) -> None:
    report.draw(results(store), tmp_path / "p.svg")
    marks = (tmp_path / "p.svg").read_text().lower().count(report.SHOWN["cfs"][1].lower())
    assert marks > len(report.PANELS), "a mark in each panel of a quantum, and the legend's"
    assert set(report.SHOWN) == set(SCHEDULERS) >= set(POLICIES)
