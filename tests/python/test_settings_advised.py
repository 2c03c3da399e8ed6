"""Settings that are advised: threads, cores, policy, clocks; what is tried, what is found, and what is typed."""

import json
from pathlib import Path
from statistics import fmean

import pytest
from synthetic import MS, Script

import ampsched
from ampsched import Catalog, InputError
from ampsched.cli import main
from ampsched.cli.advising import lines
from ampsched.comparison import per_seed
from ampsched.recording import Recording, load, preload, save
from ampsched.recording.advice import advise
from ampsched.recording.conditions import pose
from ampsched.recording.cores import core_sets, thread_counts
from ampsched.recording.search import GOVERNORS
from ampsched.recording.speedups import Speedup

COUNTS = (2, 4, 6)
POLICIES = ("linux", "acfs")


def divided(folder: Path, count: int, own_ms: float) -> Path:
    """A program whose threads share 240 ms of work evenly, each with work of its own besides."""
    script = Script()
    children = [script.start() for _ in range(count)]
    for child in children:
        script.work(child, round((240 / count + own_ms) * MS))
    for child in children:
        script.join(0, child)
    path = folder / f"prog.{count}.ampr"
    script.end(path, "prog", cores=count)
    return path


@pytest.mark.parametrize(
    ("machine", "counts"), [("2B4S", [2, 4, 6]), ("sym-2", [2]), ("snapdragon-865", [1, 4, 8])]
)
def test_as_many_threads_are_tried_as_sets_have_cores(machine: str, counts: list[int]) -> None:
    assert thread_counts(Catalog.shipped().machine(machine)) == counts


def test_few_threads_on_big_cores_win_where_each_has_work_of_its_own(tmp_path: Path) -> None:
    paths = {count: divided(tmp_path, count, own_ms=300) for count in COUNTS}
    found = advise(paths, "2B4S", POLICIES, speedup=2.5, repeat=3, anyway=True)
    assert found.usual.name == "6 threads under linux"
    assert found.advised.name == "2 threads under linux on the big cores"
    assert found.is_worth_it
    # Two big cores for 120 and 300 ms each.
    best = found.found.of(found.advised)
    assert best
    assert min(best.draws) == pytest.approx(0.42, rel=0.1)
    values = json.loads(json.dumps(found.to_dict()))
    assert values["advised"] == found.advised.name
    assert len(values["settings"]) == len(COUNTS) * 3 * len(POLICIES)
    kept = [row for row in values["settings"] if row["draws"] == 3]
    assert [row["change"] for row in kept] == sorted(row["change"] for row in kept)
    assert {row["draws"] for row in values["settings"]} == {1, 3}
    # What each part earns, one after the other, is what all earn.
    assert [each.setting.name for each in found.parts] == [
        "6 threads under linux",
        "2 threads under linux",
        "2 threads under linux on the big cores",
    ]


def test_a_single_draw_rules_out_nothing_that_is_best(tmp_path: Path) -> None:
    """The search tries few settings with all draws: it must find what a full table finds."""
    paths = {count: divided(tmp_path, count, own_ms=20 * count) for count in COUNTS}
    found = advise(paths, "2B4S", POLICIES, speedup=2.5, repeat=3, anyway=True)
    best = found.found.tried[0].value
    catalog, machine = Catalog.shipped(), Catalog.shipped().machine("2B4S")
    full = {}
    for count, path in paths.items():
        posed = pose(catalog, load(path), path, Speedup(2.5, "stated")).workload
        for cores in (None, *core_sets(machine)):
            workload = posed.on_cores(machine, cores.cpus) if cores else posed
            compared = ampsched.compare(machine, workload, POLICIES, repeat=3, limits=False, noise="idle")
            for policy in POLICIES:
                runs = compared.select(*compared.mixes()[0], policy)
                full[count, cores and cores.name, policy] = fmean(
                    per_seed(runs, lambda run: run.outcome.makespan_ns / 1e9)
                )
    assert best == pytest.approx(min(full.values()), rel=0.01)


def test_many_threads_stay_where_all_work_is_shared(tmp_path: Path) -> None:
    paths = {count: divided(tmp_path, count, own_ms=0) for count in (2, 4)}
    found = advise(paths, "sym-4", POLICIES, repeat=2, anyway=True)
    assert found.advised == found.usual
    assert lines(found, "sym-4", ["prog", "-t", "{threads}"])[-1] == "on sym-4: prog -t 4"


def test_recordings_that_are_no_basis_are_refused_or_left_out(tmp_path: Path) -> None:
    paths = {count: divided(tmp_path, count, own_ms=0) for count in (2, 6)}
    good = load(paths[2])

    def disturb(count: int) -> None:
        recording = load(paths[count])
        info = {**json.loads(recording.info), "foreign": 0.5}
        save(recording.with_info(json.dumps(info)), paths[count])

    disturb(2)
    found = advise(paths, "2B4S", POLICIES, speedup=2.5, repeat=2)
    assert {each.setting.threads for each in found.found.tried} == {6}
    (left_out,) = (note for note in found.left_out)
    assert left_out.startswith("2 threads are left out: ")
    assert "other programs took 50%" in left_out
    assert f"note: {left_out}" in lines(found, "2B4S", [])
    save(good, paths[2])
    disturb(6)
    with pytest.raises(InputError, match=r"prog\.6\.ampr is no basis of advice: other programs took 50%"):
        advise(paths, "2B4S", POLICIES, repeat=2)
    with pytest.raises(InputError, match="no recording is given"):
        advise({}, "2B4S", POLICIES)


def test_clocks_are_tried_where_energy_counts(tmp_path: Path) -> None:
    path = divided(tmp_path, 4, own_ms=50)
    found = advise(path, "pixel", POLICIES, speedup=2.5, repeat=2, goal="energy", anyway=True)
    tried = {each.setting.governor for each in found.found.tried}
    assert tried == {None, *GOVERNORS} - {"schedutil"}  # which is what there is
    asked = advise(
        path, "pixel", POLICIES, speedup=2.5, repeat=2, goal="energy", governor="powersave", anyway=True
    )
    assert {each.setting.governor for each in asked.found.tried} == {None}


def test_the_command_records_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded: list[list[str]] = []

    def record(command: list[str], out: Path) -> object:
        recorded.append(command)
        recording: Recording = load(divided(tmp_path, int(command[-1]), own_ms=300))
        save(recording, out)
        return type("Told", (), {"recording": recording})

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preload, "record", record)
    arguments = ["advise", "-m", "2B4S", "-p", "linux,acfs", "-r", "2", "--speedup", "2.5", "--anyway"]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--", "prog", "-t", "{threads}"])
    assert ended.value.code == 0
    assert recorded == [["prog", "-t", str(count)] for count in COUNTS]
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("Simulated on 2B4S: 2 threads under linux on the big cores is ")
    assert told[-1] == "on 2B4S: taskset --cpu-list 0-1 prog -t 2"
    assert any(line.startswith("part by part: ") for line in told)
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--json", "--", "prog", "-t", "{threads}"])
    values = json.loads(capsys.readouterr().out)
    assert values["advised"] == "2 threads under linux on the big cores"
    with pytest.raises(SystemExit):
        main([*arguments, "--json", "prog.2.ampr"])
    assert json.loads(capsys.readouterr().out)["usual"] == "linux"


def test_what_is_best_elsewhere_is_not_kept_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for arguments, code, told in [
        (["--apply", "-m", "2B2S", "x.ampr"], 2, "what is best on 2B2S is not kept on this computer"),
        (["--undo"], 0, "nothing is applied by this user"),
        (["--yes", "x.ampr"], 2, "--yes goes with --apply or --undo"),
        ([], 2, "advise needs a recording or, behind --, a command"),
    ]:
        with pytest.raises(SystemExit) as ended:
            main(["advise", *arguments])
        assert ended.value.code == code
        assert told in capsys.readouterr().err
