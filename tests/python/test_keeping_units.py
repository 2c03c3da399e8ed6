"""Drop-ins of services: which one a recording asks for, and whether systemd knows it."""

import json
from pathlib import Path

import pytest

from ampsched import InputError
from ampsched.cli.keeping import Keeping
from ampsched.keeping import applied, places
from ampsched.keeping.applied import apply
from ampsched.keeping.places import is_unit, place_of
from ampsched.recording import load, save
from ampsched.recording.cores import Cores
from ampsched.recording.setting import Setting

THREADS = Path(__file__).parents[2] / "docs/reports/recordings/exact/barriers-uneven.ampr"
FIRST = Setting(cores=Cores("first", (0,)))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, for root, too; and a place for programs."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(applied, "STATE_OF_ROOT", tmp_path / "state")
    monkeypatch.setattr(places, "SYSTEM_UNITS", tmp_path / ".config/systemd/user")
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    systemctl(tmp_path, "exit 0")
    return tmp_path


def systemctl(home: Path, answer: str) -> None:
    """A systemctl that says something, and writes down what it was asked."""
    program = home / "bin/systemctl"
    program.write_text(f'#!/bin/sh\necho "$@" >>{home}/asked\n{answer}\n')
    program.chmod(0o755)


def a_recording(home: Path, name: str) -> str:
    """One of processes that ran already."""
    found = load(THREADS)
    info = json.loads(found.info) | {"name": name, "command": ["served", "-x"], "window_ns": 10**9}
    save(found.with_info(json.dumps(info)), home / "window.ampr")
    return str(home / "window.ampr")


def asking(to: str | None = None) -> Keeping:
    return Keeping(apply=True, to=to, undo=False, yes=True)


def test_what_was_recorded_of_a_service_is_kept_for_it(home: Path) -> None:
    place = asking().place([a_recording(home, "served@x.service")], None)
    assert place is not None
    assert place.name == "unit:served@x.service"
    assert (home / "asked").read_text().endswith("cat --no-pager -- served@x.service\n")
    asking().keep(place, [FIRST])
    assert "CPUAffinity=0\n" in place.path.read_text()
    named = asking("unit:other").place([a_recording(home, "served@x.service")], None)
    assert named is not None
    assert named.name == "unit:other.service"


@pytest.mark.parametrize("name", ["served", "app.slice", "my group", "-x.service", "a/b.service"])
def test_what_was_recorded_of_other_processes_needs_a_place(home: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"window.ampr is of processes that ran already .*where\? "):
        asking().place([a_recording(home, name)], None)


@pytest.mark.parametrize(
    ("answer", "known"),
    [
        ("exit 0", True),
        ("echo 'No files found for served.service.' >&2; exit 1", False),
        ("echo 'System has not been booted with systemd as init system (PID 1).' >&2; exit 1", None),
        ("kill -9 $$", None),
    ],
)
def test_systemd_is_asked_whether_there_is_such_a_unit(home: Path, answer: str, known: bool | None) -> None:
    systemctl(home, answer)
    assert is_unit(["systemctl", "--user"], "served.service") is known
    assert (home / "asked").read_text() == "--user cat --no-pager -- served.service\n"
    if known is False:
        with pytest.raises(InputError, match=r"unit:served.service: there is no such unit \(see: systemctl"):
            place_of("unit:served", [])
        return
    place = place_of("unit:served", [])
    assert ("is not known, as systemd does not answer here" in place.then) == (known is None)
    assert "not known" not in place.undone
    assert place.undone.endswith("restart served.service")


def test_without_systemctl_nobody_is_asked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home / "none"))
    assert is_unit(["systemctl"], "served.service") is None


def test_a_service_is_restarted_when_it_is_taken_back(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = place_of("unit:served", [])
    apply(place, place.text(FIRST))
    Keeping(apply=False, to=None, undo=True, yes=True).take_back(["served"])
    assert "taken back: unit:served.service; then: systemctl" in capsys.readouterr().err
    assert not place.path.parent.exists()
