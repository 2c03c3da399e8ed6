"""A recorded program does what it does without the recorder, and what is recorded is not lost."""

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ampsched import InputError
from ampsched.cli import main, recorded, render
from ampsched.files import temporary_folder
from ampsched.recording import load, preload, room

SOURCES = Path(__file__).parent / "data/record"
COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc)")
KERNEL_CLOCK = {"AMPSCHED_RECORD_CLOCK": "kernel"}


def build(folder: Path, source: str, *flags: str) -> Path:
    program = folder / Path(source).stem
    command = [str(COMPILER), "-O1", "-w", "-pthread", *flags, str(SOURCES / source), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"{source} cannot be compiled: {done.stderr.splitlines()[0]}")
    return program


@pytest.fixture(scope="module")
def folder_of_programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def locks(folder_of_programs: Path) -> Path:
    return build(folder_of_programs, "locks.c")


@pytest.fixture(scope="module")
def ends(folder_of_programs: Path) -> Path:
    return build(folder_of_programs, "ends.c")


def record(
    folder: Path, *arguments: str | bytes | Path, variables: dict[str, str] | None = None, **how: object
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "ampsched", "record", *arguments],
        cwd=folder,
        env=os.environ | (variables or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        **how,
    )


@pytest.mark.parametrize("clock", [{}, KERNEL_CLOCK], ids=["ticks", "kernel"])
def test_h34_02_calls_answer_alike_at_every_moment(
    folder_of_programs: Path, tmp_path: Path, clock: dict[str, str]
) -> None:
    """Calls by moments: cancelled, in the least stack, in a handler, in a sandbox, after jumps (`conform.c`)."""
    program = build(folder_of_programs, "conform.c", "-Wl,-z,now")
    plain = subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    done = record(tmp_path, "-o", "r.ampr", "--", program, variables=clock)
    assert done.returncode == plain.returncode == 0, done.stderr
    assert len(plain.stdout.splitlines()) > 800
    assert done.stdout == plain.stdout
    assert dict(load(tmp_path / "r.ampr").counts)["lock"] > 50_000


def test_h34_02_a_program_without_a_process_beside_it_makes_room_itself(locks: Path, tmp_path: Path) -> None:
    """As in a virtual machine."""
    folder = tmp_path / "parts"
    room.prepare(folder, {"name": "locks", "cores": [{"speed": 1.0}]}, 8, is_alone=True)
    done = subprocess.run([locks], env={**os.environ, **preload.variables(folder)})
    assert done.returncode == 0
    found = preload.recover(folder)
    assert dict(found.counts)["lock"] == 8000
    assert (folder / room.EVENTS).stat().st_size < 2 << 20, "no more than is needed"


def test_h34_02_a_full_disk_loses_events_and_harms_nobody(
    locks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = os.posix_fallocate

    def full(file: int, offset: int, length: int) -> None:
        if offset + length > 2 << 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        given(file, offset, length)

    folder = tmp_path / "parts"
    room.prepare(folder, {"name": "locks", "cores": [{"speed": 1.0}]}, 64)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with room.making_room(folder):
        for _ in range(4):
            subprocess.run([locks], env={**os.environ, **preload.variables(folder)}, check=True)
    info = json.loads(preload.recover(folder).info)
    assert (folder / room.EVENTS).stat().st_size <= 2 << 20
    assert info["lost_events"] > 0 or any("Threads for which" in text for text in info["unknown"])


def test_h35_1_functions_of_the_programs_own_are_not_called_for_others(
    folder_of_programs: Path, tmp_path: Path
) -> None:
    program = build(folder_of_programs, "own.c", "-rdynamic")
    plain = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert record(tmp_path, "-o", "r.ampr", "--", program).stdout == plain.stdout == "1\n"


def test_h34_02_a_limited_address_space_stays_the_programs(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "import mmap; mmap.mmap(-1, 600 << 20); print('fits')"]
    script = f'ulimit -v {1200 << 10}; exec "$@"'
    done = record(tmp_path, "-o", "r.ampr", "--", "sh", "-c", script, "sh", *program)
    assert (done.returncode, done.stdout) == (0, "fits\n"), done.stderr
    assert len(load(tmp_path / "r.ampr").threads) == 1


@pytest.mark.parametrize("name", ["a b", "a:b", "$LIB", "${ORIGIN}", "caf\udce9", "$"])
def test_h34_02_a_folder_of_any_name_holds_a_recording(locks: Path, tmp_path: Path, name: str) -> None:
    """The dynamic linker separates paths at spaces and colons, and replaces words after `$`."""
    (tmp_path / name).mkdir()
    done = record(tmp_path, "-o", os.fsencode(f"{name}/r.ampr"), "--", locks)
    assert done.returncode == 0, done.stderr
    assert dict(load(tmp_path / name / "r.ampr").counts)["lock"] == 8000
    assert [file.name for file in (tmp_path / name).iterdir()] == ["r.ampr"]


def test_h34_02_a_program_with_address_sanitizer_is_recorded(
    tmp_path: Path, folder_of_programs: Path
) -> None:
    program = build(folder_of_programs, "ends.c", "-fsanitize=address")
    done = record(tmp_path, "-o", "r.ampr", "--", program)
    assert (done.returncode, "ASan" in done.stderr) == (5, False), done.stderr
    assert dict(load(tmp_path / "r.ampr").counts)["lock"] == 10


def test_h34_04_no_link_of_another_user_is_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("theirs")
    (tmp_path / "r.ampr.partial").symlink_to(victim)
    done = record(tmp_path, "-o", "r.ampr", "--", "true")
    assert done.returncode == 0, done.stderr
    assert victim.read_text() == "theirs"
    assert not (tmp_path / "r.ampr").is_symlink()
    (tmp_path / "s.ampr.parts").symlink_to(tmp_path)
    done = record(tmp_path, "-o", "s.ampr", "--", "true")
    assert done.returncode == 2
    assert "is there already" in done.stderr


def test_h34_05_arguments_are_bytes(tmp_path: Path) -> None:
    done = record(tmp_path, "-o", "r.ampr", "--", "true", b"caf\xe9")
    assert done.returncode == 0, done.stderr
    assert json.loads(load(tmp_path / "r.ampr").info)["command"] == ["true", "caf%e9"]


def test_h34_05_what_cannot_be_saved_is_kept_and_recovered(tmp_path: Path) -> None:
    """The program itself takes the place of its recording."""
    done = record(tmp_path, "-o", "r.ampr", "--", "mkdir", "r.ampr")
    assert done.returncode == 2
    assert done.stderr.startswith("error: r.ampr: Is a directory"), done.stderr
    assert "what was recorded is kept: ampsched record --recover r.ampr.parts -o FILE" in done.stderr
    done = record(tmp_path, "--recover", "r.ampr.parts", "-o", "s.ampr")
    assert done.returncode == 0, done.stderr
    info = json.loads(load(tmp_path / "s.ampr").info)
    assert (info["command"], info["exit_code"]) == (["mkdir", "r.ampr"], 0)


def test_h34_05_outputs_are_tried_before_the_program_runs(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for out, text in [
        ("x" * 245, "File name too long"),
        ("folder", "is no recording"),
        ("no/r", "no such folder"),
    ]:
        done = record(tmp_path, "-o", out, "--", "touch", "has-run")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert text in done.stderr
        assert not (tmp_path / "has-run").exists()
    assert [file.name for file in tmp_path.iterdir()] == ["folder"]


def test_h34_05_a_machine_does_not_start_for_an_output_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["vm", "record", "-o", str(tmp_path / "none/r.ampr"), "--", "no-such-program"])
    assert ended.value.code == 2
    assert "none/r.ampr: No such file or directory" in capsys.readouterr().err


def test_h34_05_a_limit_to_files_is_named_as_what_it_is(tmp_path: Path) -> None:
    limit = resource.prlimit(0, resource.RLIMIT_FSIZE)
    resource.prlimit(0, resource.RLIMIT_FSIZE, (100_000, limit[1]))  # of the child, which inherits it
    try:
        done = record(tmp_path, "-o", "r.ampr", "--", "touch", "has-run")
    finally:
        resource.prlimit(0, resource.RLIMIT_FSIZE, limit)
    assert done.returncode == 2
    assert done.stderr == "error: r.ampr.parts: cannot be written: File too large\n"
    assert list(tmp_path.iterdir()) == []


def advised(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["advise", *arguments])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_h34_13_advice_is_refused_before_anything_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ("--", "touch", "has-run")
    assert "typo" in advised(capsys, "-p", "linux,typo", *run)
    assert "nowhere" in advised(capsys, "-m", "nowhere", *run)
    assert "nosuch" in advised(capsys, "-p", "colab:nosuch=1", *run)
    assert "those of a command to execute stand behind --" in advised(capsys, "ls", "--la")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("segv", "the program was ended by SIGSEGV (exit code 139)"),
        ("_exit", "the program has ended with exit code 7"),
    ],
)
def test_h34_13_a_program_that_fails_is_no_basis_of_advice(
    ends: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    how: str,
    text: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = advised(capfd, "-m", "2B2S", "--", str(ends), how)
    assert f"  {text}\n" in said
    end = f"error: ends.ampr is no basis of advice: {text} (--anyway takes it as it is)"
    assert said.splitlines()[-1] == end


def test_h34_13_a_program_that_hardly_works_is_no_basis_of_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = advised(capfd, "-m", "2B2S", "--", "true")
    assert "at least 20 ms are needed (" in said.splitlines()[-1]


def test_h34_low_what_is_no_program_is_said_to_be_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    for name, text in [
        ("./text", "is not executable (chmod +x makes it so)"),
        ("/", "is a folder, no program"),
        ("./none", "there is no such program"),
        ("none-such", "there is no such program"),
    ]:
        done = record(tmp_path, "--", name)
        assert (done.returncode, done.stderr) == (2, f"error: {name}: {text}\n")


def test_h34_low_options_behind_the_program_are_its_own(tmp_path: Path) -> None:
    done = record(tmp_path, "-o", "r.ampr", "printf", "%s,", "-la", "--help")
    assert (done.returncode, done.stdout) == (0, "-la,--help,"), done.stderr
    assert json.loads(load(tmp_path / "r.ampr").info)["command"] == ["printf", "%s,", "-la", "--help"]


def test_h34_low_a_recordings_name_commands_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = record(tmp_path, "-o", "r.ampr", "--", "true")
    assert done.returncode == 0
    found = load(tmp_path / "r.ampr")
    named = found.with_info(json.dumps({**json.loads(found.info), "name": "\x1b]0;mine\x07"}))
    recorded.print_recording(render.console(), named)
    shown = capsys.readouterr().out
    assert "\x1b]" not in shown
    assert r"\x1b]0;mine\x07" in shown


def test_h34_low_a_temporary_folder_that_cannot_be_removed_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tempfile.TemporaryDirectory` recurses without end there (Python 3.11)."""

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "rmdir", refused)
    with temporary_folder("ampsched-", tmp_path) as folder:
        (folder / "file").touch()
    assert folder.is_dir()


def test_h34_05_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no folder of a recorder"):
        preload.recover(tmp_path)
    room.prepare(tmp_path / "parts", {"name": "none", "cores": [{"speed": 1.0}]}, 1)
    with (tmp_path / "parts" / room.CONTROL).open("r+b") as control:
        control.seek(16)
        control.write(b"\xff" * 8)  # more chunks are said to be taken than any file has
    with pytest.raises(InputError, match="no thread was recorded"):
        preload.recover(tmp_path / "parts")
