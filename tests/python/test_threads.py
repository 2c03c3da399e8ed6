"""How many threads: which numbers are tried, what is compared, and what the command says and types."""

import json
from pathlib import Path

import pytest
from synthetic import MS, Script

from ampsched import Catalog, InputError
from ampsched.cli import main
from ampsched.recording import Recording, load, preload, save
from ampsched.recording.threads import compare_threads, thread_counts

COUNTS = {2: 2, 4: 4, 6: 6}


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
    found = compare_threads(paths, "2B4S", speedup=2.5, repeat=3, anyway=True)
    assert found.usual.name == "6 threads on all cores"
    assert found.best.name == found.settings[0].name == "2 threads on only big"
    assert found.verdict.is_worth_it
    # Two big cores for 120 and 300 ms each.
    assert min(found.best.draws) == pytest.approx(420, rel=0.1)
    values = json.loads(json.dumps(found.to_dict()))
    assert values["settings"][0]["cpus"] == [0, 1]
    assert len(values["settings"]) == len(COUNTS) * 3
    changes = [row["change"] for row in values["settings"]]
    assert changes == sorted(changes)


def test_many_threads_stay_where_all_work_is_shared(tmp_path: Path) -> None:
    paths = {count: divided(tmp_path, count, own_ms=0) for count in (2, 4)}
    found = compare_threads(paths, "sym-4", repeat=2, anyway=True)
    assert found.best == found.usual
    assert found.answer("here")[0].startswith("Simulated on here: stay with 4 threads on all cores for ")


def test_recordings_that_are_no_basis_are_refused(tmp_path: Path) -> None:
    paths = {count: divided(tmp_path, count, own_ms=0) for count in (2, 6)}
    disturbed = load(paths[2])
    save(disturbed.with_info(json.dumps({**json.loads(disturbed.info), "foreign": 0.5})), paths[2])
    with pytest.raises(InputError, match=r"prog\.2\.ampr: other programs took 50%"):
        compare_threads(paths, "2B4S", repeat=2)
    with pytest.raises(InputError, match="no recording is given"):
        compare_threads({}, "2B4S")


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
    assert told[0].startswith("Simulated on 2B4S: 2 threads on only big is ")
    assert "the rest is about 2 of them:" in told
    assert told[-1].startswith("on 2B4S: ")
    assert told[-1].endswith("prog -t 2")
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--json", "--", "prog", "-t", "{threads}"])
    values = json.loads(capsys.readouterr().out)
    assert values["threads"]["verdict"]["best"] == "2 threads on only big"
    with pytest.raises(SystemExit):
        main([*arguments, "--json", "prog.2.ampr"])
    assert json.loads(capsys.readouterr().out)["threads"] is None
