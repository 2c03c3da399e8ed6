"""A virtual machine from start to end: file server, QEMU, speeds of cores, and nothing left behind."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ampsched.children import child_in_group, ended_by_signals, last_line
from ampsched.vm.accelerator import Accelerator, find_accelerator
from ampsched.vm.error import VmError
from ampsched.vm.guest import EXIT, THROTTLE, Terminal, init_script
from ampsched.vm.kernel import fetch_kernel
from ampsched.vm.results import results
from ampsched.vm.shape import GROUP, Shape, cpu_groups

VIRTIOFSD = ("/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd")
READ_ONLY = Path(__file__).with_name("_read_only.py")
SOCKET_PATH_MAX = 107
"""unix(7)."""
START_S = 10
UNSAID = "no reason given"


@dataclass(frozen=True)
class Outcome:
    """What a command in the virtual machine did.

    Attributes:
        code: Its exit code; none if the machine went away before it ended.
        output: What it wrote.
        console: What the kernel wrote.
        timed_out: It was stopped at its time limit.
    """

    code: int | None
    output: str
    console: str
    timed_out: bool

    def results(self) -> list[Any]:
        """What a script of ours has found: the values in JSON behind ``RESULT`` in lines of the output, in order."""
        return results(self.output)


def run(
    command: Sequence[str],
    *,
    shape: Shape | None = None,
    memory_mb: int = 2048,
    limit_s: float = 300,
    throttle: bool = True,
    cwd: Path | None = None,
    echo: Callable[[str], None] = lambda text: None,
    tries: int = 1,
) -> Outcome:
    """Boots a virtual machine, runs a command as root in it and switches it off.

    Args:
        command: Program and arguments; what it writes goes nowhere but to its output, as the root is read-only.
        shape: Cores and their speeds.
        memory_mb: Memory in MB.
        limit_s: Time in s after which the machine is stopped.
        throttle: Give the cores their speeds before the command begins; else when it calls ``throttle``.
        cwd: Folder in which the command runs; the present one by default.
        echo: Is told the output line by line.
        tries: How often the machine may be booted until the command has ended or the time is over: translated
            instructions and a kernel that changes its own code do not always get along.

    Raises:
        VmError: Something that is needed is missing, or QEMU does not start.
    """
    for _ in range(tries):
        done = _run_once(command, shape or Shape(), memory_mb, limit_s, throttle, cwd, echo)
        if done.code is not None or done.timed_out:
            break
    return done


def _run_once(
    command: Sequence[str],
    shape: Shape,
    memory_mb: int,
    limit_s: float,
    throttle: bool,
    cwd: Path | None,
    echo: Callable[[str], None],
) -> Outcome:
    until = time.monotonic() + limit_s
    with _machine(command, shape, memory_mb, throttle, cwd, terminal=None) as machine:
        output, code, timed_out = "", None, False
        try:
            for line in machine.lines(until):
                if line.startswith(THROTTLE):
                    machine.throttle()
                elif line.startswith(EXIT):
                    code = int(line.removeprefix(EXIT))
                    break
                else:
                    output += line
                    echo(line)
        except TimeoutError:
            timed_out = True
        if code is not None:
            output = output.removesuffix("\n")
            machine.wait_for_power_off()
        return Outcome(code, output, machine.console(), timed_out)


def shell(*, shape: Shape | None = None, memory_mb: int = 2048) -> int:
    """Boots a virtual machine with a root shell on this terminal.

    Returns the shell's exit code; ``throttle`` in it sets the speeds.
    """
    if not sys.stdin.isatty():
        raise VmError("a shell needs a terminal; to run a command: ampsched vm quota run -- COMMAND")
    size = os.get_terminal_size(sys.stdin.fileno())
    terminal = Terminal(os.environ.get("TERM", "dumb"), size.lines, size.columns)
    with _machine(
        ["/bin/bash"], shape or Shape(), memory_mb, throttle=False, cwd=None, terminal=terminal
    ) as machine:
        saved = termios.tcgetattr(sys.stdin)
        tty.setraw(sys.stdin)
        try:
            return machine.talk()
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, saved)


@contextmanager
def _machine(
    command: Sequence[str],
    shape: Shape,
    memory_mb: int,
    throttle: bool,
    cwd: Path | None,
    terminal: Terminal | None,
) -> Iterator["_Machine"]:
    _check_tools()
    kernel = fetch_kernel()
    with ExitStack() as stack:
        stack.enter_context(ended_by_signals())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ampsched-vm-")))
        _check_folder(folder)
        here = (cwd or Path.cwd()).resolve()
        script = init_script(command, here, kernel.config, throttle=throttle, terminal=terminal)
        init = folder / "init"
        init.write_text(script, "utf-8")
        init.chmod(0o755)
        stack.enter_context(_file_server(folder / "files"))
        groups = stack.enter_context(cpu_groups(f"{GROUP}{os.getpid()}-{secrets.token_hex(4)}"))
        arguments = _qemu(kernel.image, find_accelerator(kernel.image), shape, memory_mb, folder)
        process = stack.enter_context(child_in_group(arguments))
        yield _Machine(process, folder, shape, groups.limit)


def _check_tools() -> None:
    if os.geteuid():
        raise VmError("the virtual machine shares this computer's files, for which it needs root (sudo)")
    if not shutil.which("qemu-system-x86_64"):
        raise VmError("qemu-system-x86_64 is missing (Debian: apt install qemu-system-x86)")
    _virtiofsd()


def _virtiofsd() -> str:
    for path in VIRTIOFSD:
        if Path(path).exists():
            return path
    raise VmError(
        "virtiofsd is missing (Debian 12: apt install qemu-system-common; newer: apt install virtiofsd)"
    )


@contextmanager
def _file_server(path: Path) -> Iterator[None]:
    """Serves this computer's root on a socket, through a read-only copy of its mounts: the guest cannot write."""
    root = path.parent / "root"
    root.mkdir()
    server = [_virtiofsd(), f"--socket-path={path}", "-o", f"source={root}", "-o", "cache=always"]
    server += ["-o", "sandbox=chroot", "--rlimit-nofile=65536"]
    with child_in_group(read_only_root(root, server)) as process:
        until = time.monotonic() + START_S
        while not path.exists():
            if process.poll() is not None or time.monotonic() > until:
                raise VmError(f"virtiofsd does not start: {last_line(process.stderr, UNSAID)}")
            time.sleep(0.02)
        yield


def read_only_root(root: Path, command: Sequence[str]) -> list[str]:
    """A command that shows another command alone this computer's root in a folder, read-only, and becomes that."""
    return ["unshare", "--mount", sys.executable, "-I", "-S", str(READ_ONLY), str(root), *command]


def _check_folder(folder: Path) -> None:
    """Refuses folders that QEMU, virtiofsd or the guest's kernel cannot be told of.

    Raises:
        VmError: The path is too long for sockets, or has a comma, a quotation mark or a control character.
    """
    text = str(folder)
    wrong = [letter for letter in text if letter in ',"' or not letter.isprintable()]
    if wrong or len(os.fsencode(folder / "files")) > SOCKET_PATH_MAX:
        why = (
            f"{wrong[0]!r} in its path"
            if wrong
            else f"a path that is too long for sockets ({SOCKET_PATH_MAX} bytes)"
        )
        raise VmError(
            f"{folder}: a virtual machine cannot have its files in a folder with {why} (TMPDIR names another)"
        )


def _qemu(kernel: Path, accelerator: Accelerator, shape: Shape, memory_mb: int, folder: Path) -> list[str]:
    boot = "console=ttyS0 panic=-1 rootfstype=virtiofs root=hostroot ro"
    if shape.steady:
        boot += " idle=poll"
    boot += f' "init={folder}/init"'  # what stands in quotation marks may have spaces
    options = {
        "accel": accelerator.value,
        "cpu": accelerator.cpu,
        "machine": "q35",
        "smp": str(shape.cores),
        "m": f"{memory_mb}M",
        "object": f"memory-backend-memfd,id=mem,size={memory_mb}M,share=on",
        "numa": "node,memdev=mem",
        "display": "none",
        "monitor": "none",
        "nic": "none",
        "kernel": str(kernel),
        "append": boot,
        "qmp": f"unix:{folder}/qmp,server=on,wait=off",
        "device": "vhost-user-fs-pci,chardev=files,tag=hostroot",
    }
    arguments = [word for name, value in options.items() for word in (f"-{name}", value)]
    arguments += ["-no-reboot", "-chardev", f"socket,id=files,path={folder}/files"]
    # The first serial line is the kernel's console, the second the command's terminal.
    arguments += ["-serial", f"file:{folder}/console"]
    arguments += ["-chardev", "stdio,id=command,signal=off", "-serial", "chardev:command"]
    return [*(["chrt", "--batch", "0"] if shape.batch else []), "qemu-system-x86_64", *arguments]


@dataclass
class _Machine:
    """A running machine: its process, its files, and how to limit its threads."""

    process: subprocess.Popen[bytes]
    folder: Path
    shape: Shape
    limit: Callable[[int, dict[int, int], int], None]

    def throttle(self) -> None:
        """Gives the cores their speeds and tells the guest."""
        quotas = dict(zip(self._threads(), self.shape.quotas_us(), strict=True))
        self.limit(self.process.pid, quotas, self.shape.period_us)
        self._send(b"ok\n")

    def _threads(self) -> list[int]:
        """Threads that run the virtual cores, in their order."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(START_S)
            connection.connect(str(self.folder / "qmp"))
            with connection.makefile("rw") as stream:
                stream.readline()
                for name in ("qmp_capabilities", "query-cpus-fast"):
                    stream.write(json.dumps({"execute": name}))
                    stream.flush()
                    answer = json.loads(stream.readline())
        cores = sorted(answer["return"], key=lambda core: int(core["cpu-index"]))
        return [int(core["thread-id"]) for core in cores]

    def _send(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def lines(self, until: float) -> Iterator[str]:
        """Lines that the command writes; raises TimeoutError at a time (monotonic clock)."""
        assert self.process.stdout
        os.set_blocking(self.process.stdout.fileno(), False)
        rest = b""
        while True:
            chunk = self.process.stdout.read()
            if chunk == b"":
                if rest:
                    yield rest.decode(errors="replace")
                self._explain_early_end()
                return
            *whole, rest = (rest + (chunk or b"")).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace") + "\n"
            if time.monotonic() > until:
                raise TimeoutError
            if not chunk:
                time.sleep(0.01)

    def _explain_early_end(self) -> None:
        if self.process.wait() and not self.console():
            raise VmError(f"QEMU does not start: {last_line(self.process.stderr, UNSAID)}")

    def wait_for_power_off(self) -> None:
        """Waits until the machine is off, a few seconds at most."""
        try:
            self.process.wait(START_S)
        except subprocess.TimeoutExpired:
            return

    def console(self) -> str:
        """What the kernel has written."""
        path = self.folder / "console"
        return path.read_text("utf-8", errors="replace") if path.exists() else ""

    def talk(self) -> int:
        """Connects this terminal with the guest's until the shell ends."""
        import selectors

        assert self.process.stdout
        out = self.process.stdout.fileno()
        os.set_blocking(out, False)
        code, seen = 0, b""
        with selectors.DefaultSelector() as selector:
            selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
            selector.register(out, selectors.EVENT_READ)
            while self.process.poll() is None:
                for key, _ in selector.select(0.2):
                    data = os.read(key.fd, 4096)
                    if key.fd != out:
                        self._send(data)
                        continue
                    seen = (seen + data)[-4096:]
                    if THROTTLE.encode() in seen:
                        seen = b""
                        self.throttle()
                    elif EXIT.encode() in seen and b"\n" in seen.split(EXIT.encode())[1]:
                        return int(seen.split(EXIT.encode())[1].split()[0])
                    else:
                        os.write(sys.stdout.fileno(), data)
        return code
