"""Campaigns of runs in exact virtual machines: what is run, what is kept, how they go on."""

import json
from pathlib import Path

import pytest
import zstandard

from ampsched import Catalog
from ampsched.vm.error import VmError
from ampsched.vm.exact import Exact
from ampsched_lab.campaign import run as campaign
from ampsched_lab.campaign.boot import Guest, Scheduler, ours
from ampsched_lab.campaign.plan import START_US, Mix, Program, Run, plan
from ampsched_lab.campaign.run import Group, carry_out
from ampsched_lab.campaign.store import Store, digest

PAIR = Mix(
    "pair", "Two.", (Program("one", ("/bin/one", "--n", "1")), Program("two", ("/bin/two",), True, "/inner"))
)
SOLO = Mix("solo", "One.", (Program("one", ("/bin/one",)),))


def guest(folder: Path, **changes: object) -> Guest:
    return Guest("2B2S", Exact(Catalog.shipped().machine("2B2S"), **changes), folder)  # type: ignore[arg-type]


def test_offsets_are_samples_of_their_own_and_the_same_everywhere() -> None:
    samples = [tuple(PAIR.starts_us(offset)) for offset in range(1, 31)]
    assert len(set(samples)) == 30
    assert samples == [tuple(PAIR.starts_us(offset)) for offset in range(1, 31)]
    assert all(0 <= start_us < START_US for sample in samples for start_us in sample)
    assert PAIR.starts_us(0) == [0, 0]


def test_the_plan_is_what_the_director_reads() -> None:
    first, second = PAIR.starts_us(3)
    assert plan([Run(PAIR, 3)], [1, 1, 0]).splitlines() == [
        "settle_us\t300000",
        "classes\t1\t1\t0",
        "run\t30000000\tpair 3",
        f"start\t{first}\tone\t\tquiet\t/bin/one\t--n\t1",
        f"start\t{second}\ttwo\t/inner\treport\t/bin/two",
        "go",
    ]


def test_our_policies_are_told_of_the_cores(tmp_path: Path) -> None:
    exact = guest(tmp_path).exact
    words = ours("colab", Path("/x/loader")).command(exact)
    assert words[0] == "/campaign/bin/loader"
    assert {"--policy=colab", "--everything", "--big=0,1", "--little=2,3"} <= set(words)
    assert Scheduler("kernel").command(exact) == []


def account(run: Run) -> dict:
    return {"key": run.key, "programs": [], "makespan_ns": 1}


@pytest.fixture
def boots(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """Each boot's scheduler and runs; nothing is booted."""
    made: list[tuple[str, list[str]]] = []

    def boot(_guest: Guest, scheduler: Scheduler, runs: list[Run]) -> list[dict]:
        made.append((scheduler.name, [run.key for run in runs]))
        return [account(run) for run in runs]

    monkeypatch.setattr(campaign, "boot", boot)
    return made


def test_all_groups_get_the_first_block_before_one_gets_the_second(tmp_path: Path, boots: list) -> None:
    groups = [Group(guest(tmp_path), Scheduler(name), (PAIR, SOLO)) for name in ("a", "b")]
    store = Store(tmp_path / "runs")
    assert carry_out(groups, [[1, 2], [3]], store, tell=lambda _: None) == []
    assert [name for name, _ in boots] == ["a", "b", "a", "b"]
    assert boots[0][1] == ["pair 1", "solo 1", "pair 2", "solo 2"]
    assert set(store.read("2B2S", "x86_64-6.18", "a")) == {
        (name, n) for name in ("pair", "solo") for n in (1, 2, 3)
    }


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path, boots: list) -> None:
    groups = [Group(guest(tmp_path), Scheduler("a"), (PAIR,))]
    store = Store(tmp_path / "runs")
    carry_out(groups, [[1]], store, tell=lambda _: None)
    carry_out(groups, [[1], [2]], store, tell=lambda _: None)
    assert [keys for _, keys in boots] == [["pair 1"], ["pair 2"]]
    text = zstandard.decompress((tmp_path / "runs/2B2S.jsonl.zst").read_bytes()).decode()
    assert [json.loads(line)["offset"] for line in text.splitlines()] == [1, 2]
    carry_out(groups, [[3]], store, until_s=0, tell=lambda _: None)
    assert len(boots) == 2


def test_a_boot_that_fails_has_no_results_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def boot(_guest: Guest, scheduler: Scheduler, runs: list[Run]) -> list[dict]:
        if scheduler.name == "a":
            raise VmError("a does not work")
        return [account(run) for run in runs]

    monkeypatch.setattr(campaign, "boot", boot)
    groups = [Group(guest(tmp_path), Scheduler(name), (SOLO,)) for name in ("a", "b")]
    store = Store(tmp_path / "runs")
    assert carry_out(groups, [[1]], store, tell=lambda _: None) == ["a does not work"]
    assert [len(store.read("2B2S", "x86_64-6.18", name)) for name in ("a", "b")] == [0, 1]


def test_what_was_run_otherwise_is_run_anew(tmp_path: Path) -> None:
    run, scheduler = Run(PAIR, 1), Scheduler("a", ("/x/a",))
    own = digest(guest(tmp_path), scheduler, run)
    assert own == digest(guest(tmp_path / "elsewhere"), Scheduler("a", ("/y/a",)), run)
    others = [
        digest(guest(tmp_path, quantum_us=4), scheduler, run),
        digest(guest(tmp_path), Scheduler("a", ("/x/a", "--option")), run),
        digest(guest(tmp_path), scheduler, Run(PAIR, 2)),
    ]
    assert own not in others
