"""Everything that is shipped can be used."""

from pathlib import Path

import pytest
from conftest import ROOT

import ampsched
from ampsched.catalog import FOLDERS, KINDS, Catalog

DATA = ROOT / "python/ampsched/data"
CATALOG = Catalog.shipped()


def names(kind: str) -> list[str]:
    return [entry.name for entry in CATALOG.entries(kind)]  # type: ignore[arg-type]


def test_every_shipped_file_is_in_the_catalogue() -> None:
    for kind in ("machine", "core_type", "program"):
        stems = {path.stem for path in (DATA / FOLDERS[kind]).glob("*.*")}
        assert stems == set(names(kind))
    assert len(names("workload")) >= 26 + 15 + 38
    assert len(names("profile")) >= 40


@pytest.mark.parametrize("kind", KINDS)
def test_everything_has_a_description(kind: str) -> None:
    for entry in CATALOG.entries(kind):  # type: ignore[arg-type]
        assert entry.description, entry.name


@pytest.mark.parametrize("machine", names("machine"))
def test_every_machine_runs_every_policy(machine: str) -> None:
    for info in ampsched.policies():
        outcome = ampsched.simulate(machine, "two-threads", info.name, check=True)
        assert outcome.makespan_ns > 0
        assert sum(core.busy_ns for core in outcome.cores) > 0


@pytest.mark.parametrize("workload", names("workload"))
def test_every_workload_loads(workload: str) -> None:
    loaded = CATALOG.workload(workload)
    assert loaded.apps
    assert all(threads >= 1 for _, _, threads in loaded.apps)


@pytest.mark.parametrize("program", names("program"))
def test_every_program_runs(program: str) -> None:
    outcome = ampsched.simulate("4B4S", program, "cfs", limit_s=3000)
    assert all(thread.instructions > 0 for thread in outcome.threads if thread.run_ns > 1_000_000)


def test_machines_can_be_reordered() -> None:
    machine = CATALOG.machine("exynos5422")
    orders = [[row[4] for row in machine.ordered(fastest_first=first).clusters] for first in (True, False)]
    assert orders == [[1, 0], [0, 1]]
    assert machine.all_big().clusters[0][2] == machine.cores == 8


def test_content_ignores_names_only() -> None:
    two, four = CATALOG.machine("2B4S"), CATALOG.machine("4B2S")
    assert two.content() != four.content()
    assert two.all_big().content() == four.all_big().content()
    mix = CATALOG.workload("sync-2")
    assert mix.alone(0).content() != mix.alone(1).content()
    with pytest.raises(IndexError, match="no application 2"):
        mix.alone(2)


def test_shipped_catalogue_is_not_changed_by_files(tmp_path: Path) -> None:
    file = tmp_path / "sync-1.toml"
    file.write_text('[workloads.mine]\napps = [{ program = "fft" }]\n')
    assert CATALOG.with_files(file).workload("mine").name == "mine"
    assert "mine" not in names("workload")
