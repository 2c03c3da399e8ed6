"""What an exact virtual machine is given: files, the first script, the clock's settings, the command line."""

import os
import platform
import py_compile
import random
import stat
import subprocess
import tarfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from ampsched import Catalog
from ampsched.vm import VmError
from ampsched.vm.archive import Archive
from ampsched.vm.exact import Exact, Report, Work, core_options, find_program, loader, run, under
from ampsched.vm.exact.clock import CLASSES_MAX, CORES_MAX, clock_file, settings
from ampsched.vm.exact.costs import ClassCosts
from ampsched.vm.exact.devicetree import Cluster
from ampsched.vm.exact.elf import MACHINES, Elf
from ampsched.vm.exact.foreign import Foreign
from ampsched.vm.exact.guest import CHANNELS, init_script
from ampsched.vm.exact.initramfs import Initramfs, interpreter_of, needed_libraries
from ampsched.vm.exact.machine import lost_events, unpack
from ampsched.vm.exact.qemu import Boot, architecture
from ampsched.vm.kernel import Kernel

ONE = (64, 64, 64, 64, 64)


def entries(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """Mode and content of the files of a newc archive, by name (its documentation, not our writer)."""
    found, at = {}, 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        size, name_size = fields[6], fields[11]
        begin = at + 110
        name = archive[begin : begin + name_size - 1].decode()
        content = (begin + name_size + 3) & ~3
        if name == "TRAILER!!!":
            return found
        assert name not in found
        found[name] = (fields[1], archive[content : content + size])
        at = (content + size + 3) & ~3


def written(files: Initramfs, folder: Path) -> dict[str, tuple[int, bytes]]:
    files.write(folder / "archive")
    return entries((folder / "archive").read_bytes())


def test_files_keep_their_places_and_folders_come_first(tmp_path: Path) -> None:
    data = tmp_path / "a" / "data"
    data.parent.mkdir()
    data.write_bytes(b"12345")
    data.chmod(0o640)
    data.parent.chmod(0o700)
    files = Initramfs()
    files.include(tmp_path / "a")
    found = written(files, tmp_path)
    name = str(data).lstrip("/")
    assert found[name] == (stat.S_IFREG | 0o640, b"12345")
    assert found[str(data.parent).lstrip("/")] == (stat.S_IFDIR | 0o700, b"")
    names = list(found)
    assert all(
        names.index(str(folder)[1:]) < names.index(name) for folder in data.parents if folder != Path("/")
    )


def test_links_on_the_way_are_kept(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "up").symlink_to("../link/file")
    files = Initramfs()
    files.include(tmp_path / "link" / "up")
    found = written(files, tmp_path)
    base = str(tmp_path).lstrip("/")
    assert found[f"{base}/link"] == (stat.S_IFLNK | 0o777, b"real")
    assert found[f"{base}/real/up"] == (stat.S_IFLNK | 0o777, b"../link/file")
    assert found[f"{base}/real/file"][1] == b"x"


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(VmError, match="circle"):
        Initramfs().include(tmp_path / "a")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VmError, match="no file and no folder"):
        Initramfs().include(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(VmError, match="no file and no folder"):
        Initramfs().include(tmp_path / "pipe")


def test_equal_files_make_equal_archives(tmp_path: Path) -> None:
    archives = []
    for name in ("one", "two"):
        files = Initramfs()
        files.text(Path("/etc/x"), "y")
        files.program(Path("/bin/sh"))
        files.character_device(Path("/dev/console"), 5, 1)
        files.write(tmp_path / name)
        archives.append((tmp_path / name).read_bytes())
    assert archives[0] == archives[1]


def test_modules_of_python_stay_compiled(tmp_path: Path) -> None:
    """All files have the same date in a guest, that of a compiled module's source, too."""
    source, dated, hashed = (tmp_path / name for name in ("m.py", "dated.pyc", "hashed.pyc"))
    source.write_text("x = 1\n")
    py_compile.compile(str(source), str(dated))
    py_compile.compile(
        str(source), str(hashed), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
    )
    (tmp_path / "short.pyc").write_bytes(b"x")
    files = Initramfs()
    files.include(tmp_path)
    archive = tmp_path.parent / f"{tmp_path.name}-archive"
    files.write(archive)
    found = {Path(name).name: content for name, (_, content) in entries(archive.read_bytes()).items()}
    assert (
        found["dated.pyc"]
        == dated.read_bytes()[:8] + bytes(4) + dated.read_bytes()[12:]
        != dated.read_bytes()
    )
    assert (found["hashed.pyc"], found["short.pyc"]) == (hashed.read_bytes(), b"x")


def test_a_program_brings_its_libraries_and_their_loader(tmp_path: Path) -> None:
    files = Initramfs()
    files.program(Path("/bin/sh"))
    names = written(files, tmp_path)
    said = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout
    needed = {Path(word).resolve() for word in said.split() if word.startswith("/")}
    assert needed
    assert {str(path).lstrip("/") for path in needed} <= names.keys()


def test_a_link_to_a_program_brings_the_libraries_beside_the_program(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib").mkdir()
    (tmp_path / "own.c").write_text("int own(void) { return 0; }")
    (tmp_path / "main.c").write_text("int own(void); int main(void) { return own(); }")
    library, program, link = tmp_path / "lib/libown.so", tmp_path / "bin/program", tmp_path / "program"
    made = (
        ("-shared", "-fPIC", "-o", library, "own.c"),
        ("-Wl,-rpath,$ORIGIN/../lib", "-o", program, "main.c", "-Llib", "-lown"),
    )
    for words in made:
        subprocess.run(["cc", *words], cwd=tmp_path, check=True)
    link.symlink_to(program)
    files = Initramfs()
    files.program(link)
    assert str(library).lstrip("/") in written(files, tmp_path)


def test_a_script_brings_what_executes_it(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env sh\ntrue\n")
    script.chmod(0o755)
    shell = interpreter_of(script)
    assert shell is not None
    assert shell.name == "sh"
    files = Initramfs()
    files.program(script)
    assert str(shell.resolve()).lstrip("/") in written(files, tmp_path)
    assert interpreter_of(Path("/bin/sh")) is None
    script.write_text("#!/no/such/interpreter\n")
    with pytest.raises(VmError, match="/no/such/interpreter is missing"):
        interpreter_of(script)


def test_programs_that_are_not_for_the_guest_are_refused(tmp_path: Path) -> None:
    files = Initramfs("aarch64" if platform.machine() == "x86_64" else "x86_64")
    with pytest.raises(VmError, match="is not built for the guest's architecture"):
        files.program(Path("/bin/sh"))
    assert find_program("sh", tmp_path, files.architecture) is None
    program = foreign_shell(tmp_path / "foreign", files.architecture).read_bytes()
    (tmp_path / "cut").write_bytes(program[:40])
    with pytest.raises(VmError, match="no whole program"):
        files.program(tmp_path / "cut")


def foreign_shell(path: Path, architecture: str) -> Path:
    """This computer's shell, which says that it is built for another architecture."""
    program = bytearray(Path("/bin/sh").read_bytes())
    program[18:20] = MACHINES[architecture].to_bytes(2, "little")
    path.write_bytes(program)
    return path


def test_programs_of_another_architecture_bring_its_libraries(tmp_path: Path) -> None:
    architecture = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    program = foreign_shell(tmp_path / "program", architecture)
    elf = Elf.read(program)
    assert elf is not None
    assert elf.loader is not None
    assert elf.needed
    cache = tmp_path / "cache"
    files = Initramfs(architecture, Foreign(Fetched(cache), tmp_path / "own"))
    with pytest.raises(VmError, match=f"neither here nor among those that are fetched for {architecture}"):
        files.program(program)
    # The archive has all; this computer has one, too.
    wanted = {Path(elf.loader).name, *elf.needed}
    own = tmp_path / "own" / f"usr/{architecture}-linux-gnu/lib"
    fetched = cache / f"libraries-{architecture}" / f"lib/{architecture}-linux-gnu"
    for folder, names in ((fetched, wanted), (own, elf.needed[:1])):
        folder.mkdir(parents=True)
        for name in names:
            (folder / "real").write_bytes(folder.name.encode())
            (folder / name).symlink_to("real")
    files = Initramfs(architecture, Foreign(Fetched(cache), tmp_path / "own"))
    files.program(program)
    found = written(files, tmp_path)
    common = f"usr/lib/{architecture}-linux-gnu"
    assert found[f"{common}/{elf.needed[0]}"][1] == b"lib"
    for name in elf.needed[1:]:
        assert found[f"{common}/{name}"][1] == f"{architecture}-linux-gnu".encode()
    # Where the program wants its loader, by the links of this computer.
    place = Path(elf.loader).parent.resolve() / Path(elf.loader).name
    assert found[str(place).lstrip("/")][1] == f"{architecture}-linux-gnu".encode()


def test_what_programs_say_of_themselves_is_read(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    for name, options in (("plain", ["-Wl,-rpath,$ORIGIN/a:/b"]), ("static", ["-static"])):
        command = ["cc", "-o", str(tmp_path / name), str(tmp_path / "main.c"), *options]
        subprocess.run(command, check=True)
    plain, static = Elf.read(tmp_path / "plain"), Elf.read(tmp_path / "static")
    assert plain is not None
    assert static is not None
    assert (plain.machine, plain.folders) == (MACHINES[platform.machine()], ("$ORIGIN/a", "/b"))
    assert "libc.so.6" in plain.needed
    assert plain.loader is not None
    assert Path(plain.loader).exists()
    assert (static.loader, static.needed) == (None, ())
    assert Elf.read(tmp_path / "main.c") is None
    (tmp_path / "small").write_bytes(b"\x7fELF\x01\x01" + bytes(12) + (40).to_bytes(2, "little"))
    assert Elf.read(tmp_path / "small") == Elf(40, None, (), ())


@pytest.mark.parametrize("seed", range(20))
def test_spoilt_programs_are_refused_or_read(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    program = bytearray(Path("/bin/sh").read_bytes()[:4096])
    for _ in range(30):
        program[draw.randrange(4, 1024)] = draw.randrange(256)
    (tmp_path / "spoilt").write_bytes(program)
    with suppress(VmError):
        assert Elf.read(tmp_path / "spoilt") is not None


def test_a_run_path_comes_first(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(
        ["cc", "-o", str(tmp_path / "main"), str(tmp_path / "main.c"), "-Wl,-rpath,$ORIGIN"], check=True
    )
    elf = Elf.read(tmp_path / "main")
    assert elf is not None
    for name in elf.needed:
        (tmp_path / name).touch()
    library = tmp_path / "cache" / f"libraries-{platform.machine()}/lib/{platform.machine()}-linux-gnu"
    library.mkdir(parents=True)
    (library / Path(elf.loader or "").name).touch()
    foreign = Foreign(Fetched(tmp_path / "cache"), tmp_path / "nothing")
    found = foreign.needed([tmp_path / "main"], platform.machine())
    assert {path for path, place in found.items() if path == place} == {
        tmp_path / name for name in elf.needed
    }


def test_no_libraries_of_what_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("#!/bin/sh\n")
    assert needed_libraries([tmp_path / "text"]) == []


def test_the_clock_is_told_classes_once() -> None:
    big, little = ClassCosts(1_000_000, ONE), ClassCosts(400_000, (64, 128, 64, 192, 64))
    assert settings([big, little, big], 50) == (
        "quantum_ns 50000\nclass 1000000 64 64 64 64 64\nclass 400000 64 128 64 192 64\ncpu 0\ncpu 1\ncpu 0\n"
    )
    with pytest.raises(VmError, match=r"quantum 0\.5 us: from 1 to 10000 us"):
        settings([big], 0.5)
    with pytest.raises(VmError, match="513 cores of 1 kinds: at most 512 cores of 16 kinds"):
        settings([big] * 513, 50)


def test_cores_are_those_of_the_machine() -> None:
    lines = Exact(Catalog.shipped().machine("2B2S")).clock_settings().splitlines()
    assert [line for line in lines if line.startswith("cpu")] == ["cpu 0", "cpu 0", "cpu 1", "cpu 1"]
    assert core_options(Exact(Catalog.shipped().machine("2B2S")))[:2] == ["--big=0,1", "--little=2,3"]
    # Numbers follow the clusters, classes their speed.
    assert core_options(Exact(Catalog.shipped().machine("exynos5422")))[:2] == [
        "--big=4,5,6,7",
        "--little=0,1,2,3",
    ]


@pytest.mark.parametrize(
    ("machine", "architecture", "model"),
    [
        ("2B2S", "aarch64", "cortex-a57"),
        ("hikey960", "aarch64", "cortex-a57"),
        ("tensor", "aarch64", "cortex-a76"),
        ("hybrid-8P16E", "aarch64", "cortex-a76"),
        ("2B2S", "x86_64", "max"),
    ],
)
def test_cores_can_do_what_those_of_the_machine_can(machine: str, architecture: str, model: str) -> None:
    guest = Exact(Catalog.shipped().machine(machine), architecture=architecture)
    assert guest.cpu_model() == model
    assert replace(guest, cpu="neoverse-n1").cpu_model() == "neoverse-n1"


def test_a_policy_gets_the_command() -> None:
    guest = Exact(Catalog.shipped().machine("2B2S"))
    words, needed = under("colab:literal=1", guest, ["sh", "-p"], Path("/bin/loader"))
    assert words[:2] == ["/bin/loader", "run"]
    assert "--policy=colab:literal=1" in words
    assert words[-3:] == ["--", "sh", "-p"]
    assert [path.name for path in needed] == ["sh"]


def test_the_clock_s_report_is_read() -> None:
    text = "virtual_ns 1500000000\nhost_s 4.250\nquanta 3\ncpu0_instructions 7\ncpu1_instructions 5\n"
    assert Report.read(text) == Report(1.5, 4.25, (7, 5))


def test_lost_events_are_counted(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    assert lost_events(trace) == 0
    trace.write_text("# tracer: nop\n#\n# entries-in-buffer/entries-written: 70/100   #P:4\n")
    assert lost_events(trace) == 30


@pytest.mark.parametrize("kind", ["above", "absolute", "link", "device"])
def test_nothing_gets_out_of_the_folder(kind: str, tmp_path: Path) -> None:
    entry = tarfile.TarInfo({"above": "../x", "absolute": "/x/../../y"}.get(kind, "x"))
    if kind == "link":
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc"
    elif kind == "device":
        entry.type = tarfile.CHRTYPE
    with tarfile.open(tmp_path / "files", "w") as files:
        files.addfile(entry)
    with pytest.raises(VmError, match="what the virtual machine hands out is refused"):
        unpack(tmp_path / "files", tmp_path / "a" / "out")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["out"]
    assert list((tmp_path / "a" / "out").iterdir()) == []


def test_files_get_into_the_folder(tmp_path: Path) -> None:
    (tmp_path / "result").write_bytes(b"7")
    (tmp_path / "result").chmod(0o750)
    with tarfile.open(tmp_path / "files", "w") as files:
        files.add(tmp_path / "result", "./sub/result")
    unpack(tmp_path / "files", tmp_path / "out")
    found = tmp_path / "out" / "sub" / "result"
    assert (found.read_bytes(), stat.S_IMODE(found.stat().st_mode)) == (b"7", 0o750)


def test_limits_are_those_of_the_clock() -> None:
    header = (Path(__file__).resolve().parents[2] / "crates/live/exact/machine.h").read_text()
    assert f"MAX_CPUS = {CORES_MAX}, MAX_CLASSES = {CLASSES_MAX}" in header


def test_words_of_the_script_are_quoted() -> None:
    script = init_script(["a b", "@CWD@", "$x"], Path("/w d"), "/bin", {"K": "v'w"}, trace=False)
    assert "exec 'a b' @CWD@ '$x'" in script
    assert "mkdir -p '/w d' && cd '/w d'" in script
    assert "tracing_on" not in script
    assert "sched_switch" in init_script(["a"], Path("/"), "/bin", {}, trace=True)
    for text in (script, init_script(["a"], Path("/"), "/bin", {"K": "v'w"}, trace=True)):
        subprocess.run(["sh", "-n"], input=text, text=True, check=True)


class Fetched(Archive):
    """An archive from which nothing needs to be fetched."""

    def folder(self, name: str) -> Path:
        return self.cache / name


@pytest.mark.parametrize("name", ["x86_64", "aarch64"])
def test_the_command_line_has_one_thread_and_no_clock_of_the_host(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def tree(*arguments: object) -> bytes:
        asked.append(arguments)
        return b"tree"

    monkeypatch.setattr("ampsched.vm.exact.qemu.device_tree", tree)
    kernel = Kernel(tmp_path / "vmlinuz", tmp_path / "config", "6.18")
    clusters = [Cluster([0, 1], 5), Cluster([2, 3], 2)]
    boot = Boot(
        Fetched(tmp_path), architecture(name), kernel, clusters, 512, 50, Path("/lib/clock.so"), "own"
    )
    text = " ".join(boot.command(tmp_path))
    assert f"-cpu {'own,-monitor' if name == 'x86_64' else 'own'} " in text
    assert f"qemu-system-{name}" in text
    assert "-smp 4" in text
    assert "-accel tcg,thread=single" in text
    assert "-rtc clock=vm,base=" in text
    assert f"-plugin /lib/clock.so,settings={tmp_path}/clock.txt,report={tmp_path}/report.txt" in text
    assert all(f"name={channel}" in text for channel in CHANNELS)
    assert ("-dtb" in text) == bool(asked) == (name == "aarch64")


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMPSCHED_EXACT_CLOCK", str(tmp_path / "none.so"))
    with pytest.raises(
        VmError,
        match=r"none.so: the clock of exact virtual machines is missing. Wheels do not have it: .*make build",
    ):
        clock_file()
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    foreign = "aarch64" if platform.machine() == "x86_64" else "x86_64"
    with pytest.raises(
        VmError, match=rf"{foreign}/ampsched-live-scx is missing.*own architecture only.*make live-arm64"
    ):
        loader(foreign)
    with pytest.raises(VmError, match="nosuch: there is no such program"):
        find_program("nosuch", tmp_path, platform.machine())
    with pytest.raises(VmError, match='unknown architecture "mips"'):
        run(Exact(Catalog.shipped().machine("2B2S"), architecture="mips"), Work(["true"]))
