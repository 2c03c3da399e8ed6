"""``ampsched record``: small programs whose events are known are recorded as they are, whatever ends them."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ampsched import InputError, simulate
from ampsched.recording import Recording, load
from ampsched.recording.preload import record

SOURCES = Path(__file__).parent / "data/record"
COMPILER, CPP = shutil.which("cc"), shutil.which("c++")
CLANG = shutil.which("clang-19") or shutil.which("clang")
LLVM_MIN = 19
"""From which version on the tests know what LLVM's runtime of OpenMP tells."""
# A busy host may hold programs up while they are recorded.
pytestmark = [pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc)"), pytest.mark.flaky(reruns=2)]
KERNEL_CLOCK = {"AMPSCHED_RECORD_CLOCK": "kernel"}

Build = Callable[..., Path]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles a program, once; its file."""
    folder = tmp_path_factory.mktemp("programs")

    def compiled(source: str, *flags: str, name: str = "", compiler: str | None = None) -> Path:
        program = folder / (name or Path(source).stem)
        if not program.exists():
            compiler = compiler or (CPP if source.endswith("cpp") else COMPILER)
            command = [str(compiler), "-O1", "-pthread", *flags, str(SOURCES / source), "-o", str(program)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"{source} cannot be compiled: {done.stderr.splitlines()[0]}")
        return program

    return compiled


@pytest.fixture(scope="module")
def libomp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of LLVM's runtime of OpenMP."""
    missing = "(Debian: apt install clang-19 libomp-19-dev)"
    if CLANG is None:
        pytest.skip(f"no clang {missing}")
    version = subprocess.run([CLANG, "-dumpversion"], capture_output=True, text=True).stdout
    if int(version.split(".")[0]) < LLVM_MIN:
        pytest.skip(f"clang {version.strip()}, at least {LLVM_MIN} is needed {missing}")
    program = tmp_path_factory.mktemp("libomp") / "regions"
    compiled = [CLANG, "-fopenmp", str(SOURCES / "regions.c"), "-o", str(program)]
    if subprocess.run(compiled, capture_output=True).returncode:
        pytest.skip(f"clang has no libomp {missing}")
    loaded = subprocess.run(["ldd", str(program)], capture_output=True, text=True).stdout
    lines = [line.split() for line in loaded.splitlines()]
    return next(Path(line[2]).resolve().parent for line in lines if line[0].startswith("libomp"))


def command(*arguments: str | Path) -> list[str]:
    """Records what the library sees; test_record_both.py has what the kernel adds."""
    by = [] if "--recover" in arguments else ["--by", "library"]
    return [sys.executable, "-m", "ampsched", "record", *by, *map(str, arguments)]


def run(folder: Path, *arguments: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(*arguments),
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def recorded(folder: Path, program: Path, *arguments: str, code: int = 0, **environment: str) -> Recording:
    done = run(folder, "-o", "r.ampr", "--", program, *arguments, **environment)
    assert done.returncode == code, done.stderr
    assert sorted(file.name for file in folder.iterdir()) == ["r.ampr"], "only the recording stays"
    return load(folder / "r.ampr")


def counts(recording: Recording) -> dict[str, int]:
    return dict(recording.counts)


@pytest.mark.parametrize("clock", [{}, KERNEL_CLOCK], ids=["ticks", "kernel"])
def test_every_lock_is_seen(build: Build, tmp_path: Path, clock: dict[str, str]) -> None:
    found = counts(recorded(tmp_path, build("locks.c"), **clock))
    assert found == {
        "start": 5,
        "exit": 5,
        "create": 4,
        "join": 4,
        "lock": 8000,
        "trylock failed": 4000,
        "unlock": 8000,
        "lock for reading": 4000,
        "lock for writing": 4000,
        "unlock readers and writers": 8000,
        "spin lock": 4000,
        "spin unlock": 4000,
    }


@pytest.mark.parametrize("clock", [{}, KERNEL_CLOCK], ids=["ticks", "kernel"])
def test_every_way_to_wait_is_seen(build: Build, tmp_path: Path, clock: dict[str, str]) -> None:
    recording = recorded(tmp_path, build("waiting.c"), **clock)
    found = counts(recording)
    waits = found.pop("wait for condition")
    assert waits == found.pop("woken by condition") > 1
    assert (found.pop("read from stream"), found.pop("write to stream")) == (1, 2), (
        "a read that waits for 20 ms"
    )
    assert found == {
        "start": 3,
        "exit": 3,
        "create": 2,
        "join": 2,
        "lock": 3,
        "unlock": 3,
        "signal": 400,
        "broadcast": 1,
        "barrier": 400,
        "make barrier": 1,
        "wait for semaphore": 400,
        "post": 400,
        "sleep": 4,
        "yield": 1,
        "futex wait": 1,
        "futex wake": 1,
    }
    blocked_ns, known_ns = recording.blocked_ns
    assert known_ns > 40e6, "main waits for two threads, one of which waits for one that sleeps for 20 ms"
    assert blocked_ns - known_ns < 1e6, "a thread has written what is read after 20 ms"


REGIONS = {
    "start": 2,
    "exit": 2,
    "create": 1,
    "begin parallel region": 11,
    "end parallel region": 11,
    "begin share of region": 22,
    "end share of region": 22,
    "barrier of region": 42,
    "critical": 20,
    "critical end": 20,
    "take chunk": 648,
}


def test_openmp_of_gcc_is_seen(build: Build, tmp_path: Path) -> None:
    assert counts(recorded(tmp_path, build("regions.c", "-fopenmp"))) == REGIONS


def test_a_library_with_an_openmp_of_its_own_is_seen(build: Build, tmp_path: Path) -> None:
    """As extensions of Python load theirs: not visible to others, so neither to the recorder."""
    assert_regions_of_library(build("regions.c", "-fopenmp", "-shared", "-fPIC", name="regions.so"), tmp_path)


def assert_regions_of_library(library: Path, tmp_path: Path) -> None:
    """What the program of `REGIONS` does is seen if Python loads it as a library."""
    program = f"import ctypes, os; os._exit(ctypes.CDLL({str(library)!r}).main())"
    found = counts(recorded(tmp_path, Path(sys.executable), "-c", program))
    assert (found["begin parallel region"], found["begin share of region"], found["take chunk"]) == (
        11,
        22,
        648,
    )


def clang(build: Build, source: str, *flags: str, name: str = "") -> Path:
    return build(source, "-fopenmp", *flags, name=name or f"{Path(source).stem}-clang", compiler=CLANG)


def of_openmp(found: dict[str, int]) -> dict[str, int]:
    """Without the calls by which LLVM's runtime wakes its threads when it ends, or when a lock is free again."""
    of_runtime = ("lock", "unlock", "signal", "futex wake", "yield")
    return {word: count for word, count in found.items() if word not in of_runtime}


def test_openmp_of_clang_is_seen(build: Build, libomp: Path, tmp_path: Path) -> None:
    """As that of GCC is; and what its runtime does to wait and to wake is no event."""
    recording = recorded(tmp_path, clang(build, "regions.c"))
    assert of_openmp(counts(recording)) == REGIONS
    blocked_ns, known_ns = recording.blocked_ns
    assert blocked_ns == known_ns


def test_a_program_of_gcc_with_libomp_is_seen_once(build: Build, libomp: Path, tmp_path: Path) -> None:
    """LLVM's runtime has libgomp's functions, too, and tells itself what it does."""
    instead = build("regions.c", "-fopenmp").parent / "instead"
    instead.mkdir(exist_ok=True)
    if not (instead / "libgomp.so.1").exists():
        (instead / "libgomp.so.1").symlink_to(libomp / "libomp.so.5")
    program = [f"LD_LIBRARY_PATH={instead}", str(build("regions.c", "-fopenmp"))]
    found = counts(recorded(tmp_path, Path("env"), *program))
    assert of_openmp(found) == REGIONS
    untold = counts(recorded(tmp_path, Path("env"), "OMP_TOOL=disabled", *program))
    assert untold["take chunk"] == 648, "then calls of libgomp's functions tell"


def test_a_library_with_libomp_of_its_own_is_seen(build: Build, libomp: Path, tmp_path: Path) -> None:
    library = clang(build, "regions.c", "-shared", "-fPIC", name="regions-clang.so")
    assert_regions_of_library(library, tmp_path)


def test_a_runtime_that_begins_before_the_recorder_is_seen(
    build: Build, libomp: Path, tmp_path: Path
) -> None:
    early = clang(build, "early.c", "-shared", "-fPIC", name="early.so")
    program = clang(build, "teams.c", "-Wl,--no-as-needed", str(early), name="teams-early")
    found = counts(recorded(tmp_path, program, "nested"))
    assert (found["begin parallel region"], found["begin share of region"]) == (12, 24)


def test_a_thread_that_began_before_the_recorder_is_not_taken_for_the_first(
    build: Build, tmp_path: Path
) -> None:
    """It was: the program's time until its begin was missing, and processes might have got each other's numbers."""
    library = build("yielding.c", "-shared", "-fPIC", name="yielding.so")
    program = build("yielding.c", "-DPROGRAM", "-Wl,--no-as-needed", str(library))
    recording = recorded(tmp_path, program)
    assert counts(recording)["yield"] > 0
    assert counts(recording)["create"] == 1, (
        "the first thread has begun the other, so a replay starts it in time"
    )
    _, _, _, cpu_ns, _ = recording.threads[0]
    assert 50_000_000 <= cpu_ns <= json.loads(recording.info)["wall_ns"]


def test_another_tool_of_openmp_comes_first(build: Build, libomp: Path, tmp_path: Path) -> None:
    found = counts(recorded(tmp_path, clang(build, "regions.c"), OMP_TOOL_LIBRARIES="theirs.so"))
    assert found["create"] == 1
    assert "begin parallel region" not in found


def test_a_share_goes_on_while_its_thread_takes_tasks_at_its_end(
    build: Build, libomp: Path, tmp_path: Path
) -> None:
    recording = recorded(tmp_path, clang(build, "teams.c"), "tasks")
    found = counts(recording)
    assert found["take chunk"] == 41
    assert (found["begin share of region"], found["end share of region"]) == (2, 2)
    assert found["lock"] - found.get("signal", 0) in range(66, 69), "66 of the program's own, all seen"
    assert found["lock"] == found["unlock"]
    assert simulate("2B2S", str(tmp_path / "r.ampr"), "linux").makespan_ns > 0


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_teams_within_teams_meet_in_the_replay(
    build: Build, request: pytest.FixtureRequest, compiler: str, tmp_path: Path
) -> None:
    if compiler == "clang":
        request.getfixturevalue("libomp")
    program = clang(build, "teams.c") if compiler == "clang" else build("teams.c", "-fopenmp")
    found = counts(recorded(tmp_path, program, "nested"))
    assert (found["begin parallel region"], found["begin share of region"], found["barrier of region"]) == (
        12,
        24,
        18,
    )
    assert simulate("2B2S", str(tmp_path / "r.ampr"), "linux").makespan_ns > 0


def test_threads_of_openmp_leave_their_cores_unless_told_otherwise(tmp_path: Path) -> None:
    told = ("printenv", "OMP_WAIT_POLICY", "KMP_LOCK_KIND")
    assert run(tmp_path, "-o", "r.ampr", "--", *told).stdout == "passive\nfutex\n"
    done = run(tmp_path, "-o", "r.ampr", "--", *told, OMP_WAIT_POLICY="active", KMP_LOCK_KIND="tas")
    assert done.stdout == "active\ntas\n"


@pytest.mark.skipif(CPP is None, reason="no C++ compiler (c++)")
def test_cpp_is_seen(build: Build, tmp_path: Path) -> None:
    found = counts(recorded(tmp_path, build("queue.cpp")))
    assert (found["start"], found["create"], found["join"], found["broadcast"], found["sleep"]) == (
        4,
        3,
        3,
        1,
        1,
    )
    assert found["lock"] == found["unlock"] == 7
    assert found["wait for condition"] == found["woken by condition"]


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("segv", 128 + signal.SIGSEGV),
        ("kill", 128 + signal.SIGKILL),
        ("abort", 128 + signal.SIGABRT),
        ("_exit", 7),
    ],
)
def test_what_was_done_before_the_end_is_kept(build: Build, tmp_path: Path, how: str, code: int) -> None:
    recording = recorded(tmp_path, build("ends.c"), how, code=code)
    found = counts(recording)
    assert (found["start"], found["create"], found["lock"], found["unlock"]) == (2, 1, 5000, 5000)
    assert json.loads(recording.info)["exit_code"] == code


def test_a_thread_that_is_left_at_work_has_worked_until_the_end(build: Build, tmp_path: Path) -> None:
    recording = recorded(tmp_path, build("ends.c"), "leave")
    assert counts(recording)["exit"] == 2
    cpu_ns = recording.threads[1][3]
    assert 10e6 < cpu_ns < json.loads(recording.info)["wall_ns"]


def test_a_program_that_executes_another_one_is_one_thread(build: Build, tmp_path: Path) -> None:
    recording = recorded(tmp_path, build("ends.c"), "exec", code=5)
    assert counts(recording) == {"start": 1, "exit": 1, "lock": 20, "unlock": 20}


def test_children_are_seen_and_their_end_is_waited_for(build: Build, tmp_path: Path) -> None:
    recording = recorded(tmp_path, build("children.c"))
    assert [process for _, process, *_ in recording.threads] == [0, 1, 1, 2]
    assert counts(recording) == {"start": 4, "exit": 4, "create": 3, "join": 3, "lock": 100, "unlock": 100}
    assert recording.threads[3][0] == "true"


@pytest.mark.parametrize("pieces", [1, 200_000])
@pytest.mark.parametrize("clock", [{}, KERNEL_CLOCK], ids=["ticks", "kernel"])
def test_cpu_time_is_that_of_the_kernel(
    build: Build, tmp_path: Path, pieces: int, clock: dict[str, str]
) -> None:
    """Four threads on two cores or so: they lose them again and again, which the ticks alone would not show."""
    cores = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))
    pinned = ["taskset", "-c", cores] if shutil.which("taskset") else []
    program = [build("work.c"), str(pieces)]

    def told_ns(*words: object) -> list[int]:
        done = subprocess.run(
            [*pinned, *words], cwd=tmp_path, env=os.environ | clock, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return sorted(int(line) for line in done.stdout.splitlines())

    def recorded_ns() -> tuple[list[int], list[int]]:
        """By the kernel, and as recorded."""
        kernel_ns = told_ns(*command("-o", "r.ampr", "--", *program))
        recording = load(tmp_path / "r.ampr")
        return kernel_ns, sorted(cpu_ns for *_, cpu_ns, _ in recording.threads[1:])

    if clock and pieces > 1:
        # A system call at each event takes more than the work, and among work more than by itself: some of it stays.
        # What a busy host takes away counts as CPU time, so the shortest of several runs tell.
        runs = [(recorded_ns(), sum(told_ns(*program))) for _ in range(3)]
        kernel_ns, found_ns = min((sum(kernel), sum(found)) for (kernel, found), _ in runs)
        plain_ns = min(plain for _, plain in runs)
        assert abs(found_ns - plain_ns) < 0.75 * (kernel_ns - plain_ns)
        return
    kernel_each_ns, found_each_ns = recorded_ns()
    slack_ns = 0 if pieces == 1 else 2 * pieces * 100  # what the recorder takes
    for cpu_ns, kernel_ns in zip(found_each_ns, kernel_each_ns, strict=True):
        assert 0.99 * (kernel_ns - slack_ns) < cpu_ns < 1.01 * kernel_ns + 1e5


def wait_for(reached: Callable[[], bool]) -> None:
    for _ in range(200):
        if reached():
            return
        time.sleep(0.05)
    pytest.fail("nothing happened within 10 s")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_program(build: Build, tmp_path: Path, number: signal.Signals) -> None:
    recorder = subprocess.Popen(
        command("-o", "r.ampr", "--", build("ends.c"), "wait"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert recorder.stdout is not None
    assert recorder.stdout.readline() == b"waits\n"
    recorder.send_signal(number)
    assert recorder.wait(20) == 128 + number
    recorder.stdout.close()
    assert counts(load(tmp_path / "r.ampr"))["lock"] == 5000


def test_what_a_killed_recorder_leaves_becomes_a_recording(build: Build, tmp_path: Path) -> None:
    recorder = subprocess.Popen(
        command("-o", "r.ampr", "--", build("ends.c"), "wait"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert recorder.stdout is not None
    assert recorder.stdout.readline() == b"waits\n"
    os.killpg(recorder.pid, signal.SIGKILL)
    recorder.wait()
    recorder.stdout.close()
    refused = run(tmp_path, "-o", "r.ampr", "--", "true")
    assert refused.returncode == 2
    assert "--recover r.ampr.parts" in refused.stderr
    done = run(tmp_path, "--recover", "r.ampr.parts", "-o", "r.ampr")
    assert done.returncode == 0, done.stderr
    assert counts(load(tmp_path / "r.ampr"))["lock"] == 5000


def test_h34_a_program_that_cannot_be_waited_for_keeps_its_recording(
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = []

    def refused(process: subprocess.Popen[bytes]) -> int:
        left.append(process)
        raise PermissionError(errno.EACCES, "Permission denied")

    program = str(build("work.c"))
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(subprocess.Popen, "wait", refused)
        with pytest.raises(InputError, match="Permission denied") as failed:
            record([program, "1000"], Path("r.ampr"))
    left[0].wait()
    assert "--recover r.ampr.parts" in failed.value.__notes__[0]
    assert (tmp_path / "r.ampr.parts").is_dir()


def test_h34_no_program_runs_if_there_is_no_room_for_its_first_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = os.posix_fallocate

    def fallocate(descriptor: int, offset: int, length: int) -> None:
        if not os.readlink(f"/proc/self/fd/{descriptor}").endswith("/control"):
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
        place(descriptor, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", fallocate)
    with pytest.raises(InputError, match="no room for events: Disk quota exceeded"):
        record(["touch", str(tmp_path / "ran")], tmp_path / "r.ampr")
    assert list(tmp_path.iterdir()) == []


def test_events_without_room_are_counted(build: Build, tmp_path: Path) -> None:
    done = run(tmp_path, "-o", "r.ampr", "--limit-mb", "1", "--", build("work.c"), "100000")
    assert done.returncode == 0, done.stderr
    info = json.loads(load(tmp_path / "r.ampr").info)
    assert info["lost_events"] > 600_000
    assert "Events without room" in done.stderr


def test_standard_streams_are_the_programs(tmp_path: Path) -> None:
    done = subprocess.run(
        command("--", "cat"), cwd=tmp_path, input="text\n", capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "text\n")
    assert (tmp_path / "cat.ampr").exists()
    assert "next: ampsched advise cat.ampr" in done.stderr
    arguments = ("-o", "my file.ampr", "--", "cat")
    done = subprocess.run(
        command(*arguments), cwd=tmp_path, input="", capture_output=True, text=True, timeout=60
    )
    assert "next: ampsched advise 'my file.ampr'" in done.stderr


def test_bad_input_is_one_line(build: Build, tmp_path: Path) -> None:
    (tmp_path / "text.ampr").write_text("mine")
    static = build("ends.c", "-static", name="static")
    cases = {
        "which program": [],
        "no-such-program: there is no such program": ["--", "no-such-program"],
        "/etc/passwd: is not executable (chmod +x makes it so)": ["--", "/etc/passwd"],
        "is static, so it loads nothing of ours (try --system)": ["--", static],
        "is there already and is no recording": ["-o", "text.ampr", "--", "true"],
        "no such folder": ["-o", "nowhere/r.ampr", "--", "true"],
        "--recover needs -o FILE": ["--recover", "x"],
        "x: is no folder of a recorder": ["--recover", "x", "-o", "r.ampr"],
        "at least 1 is needed": ["--limit-mb", "0", "--", "true"],
        "and at most 1048576": ["--limit-mb", "9999999999", "--", "true"],
    }
    for text, arguments in cases.items():
        done = run(tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (2, ""), text
        assert done.stderr.startswith("error: "), text
        assert done.stderr.count("\n") == 1, text
        assert text in done.stderr
    assert (tmp_path / "text.ampr").read_text() == "mine"
