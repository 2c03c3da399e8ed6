"""The first process of the guest: a shell script that makes a usable system of the host's read-only root."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# Lines that the guest writes into the channel for the host.
EXIT = "\x01ampsched-vm exit "
THROTTLE = "\x01ampsched-vm throttle"

MOUNTS = """mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup"""
"""What every guest shows of its kernel."""

SCRIPT = """#!/bin/sh
export PATH=/run/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run/home TERM=${TERM:-dumb}
@MOUNTS@
mount -t tmpfs tmpfs /run
mkdir -p /run/bin /run/home /run/cwd /run/config
# libbpf reads the kernel's configuration there.
@CONFIG@
mount --bind @CWD@ /run/cwd
mount -t tmpfs tmpfs /tmp
mount --bind /run/config /boot
[ -d @CWD@ ] || mkdir -p @CWD@
mountpoint -q @CWD@ || mount --bind /run/cwd @CWD@
cat >/run/bin/throttle <<'END'
#!/bin/sh
# Asks the host to give the cores their speeds, and waits until it has.
terminal=$(stty -g </dev/ttyS1)
stty -echo </dev/ttyS1
printf '@THROTTLE@\\n' >/dev/ttyS1
read -r answer </dev/ttyS1
stty "$terminal" </dev/ttyS1
END
chmod +x /run/bin/throttle
ip link set lo up 2>/dev/null
echo ampsched-vm >/proc/sys/kernel/hostname
cd @CWD@
@TTY@
@THROTTLE_NOW@
@COMMAND@
code=$?
printf '\\n@EXIT@%d\\n' $code >/dev/ttyS1
sync
echo o >/proc/sysrq-trigger
sleep 60
"""


@dataclass(frozen=True)
class Terminal:
    """The terminal that the command talks to.

    Attributes:
        name: What ``$TERM`` says.
        rows: Lines that it shows.
        columns: Characters per line.
    """

    name: str
    rows: int
    columns: int


def init_script(
    command: Sequence[str], cwd: Path, config: Path | None, *, throttle: bool, terminal: Terminal | None
) -> str:
    """The script that runs a command and powers off.

    Args:
        command: Program and arguments.
        cwd: Where to run it; the only folder below ``/tmp`` that the guest sees.
        config: The kernel's configuration, if there is one.
        throttle: Give the cores their speeds before the command.
        terminal: What the command talks to; if absent, it has nothing to read.
    """
    words = shlex.join(command)
    if terminal:
        size = f"rows {terminal.rows} columns {terminal.columns}"
        # Open as long as the machine runs, as its size is forgotten when nobody has it open.
        tty = f"exec 9<>/dev/ttyS1; stty sane {size} <&9; export TERM={shlex.quote(terminal.name)}"
        run = f"setsid -c {words} <>/dev/ttyS1 >&0 2>&1 9>&-"
    else:
        tty, run = "stty raw -echo </dev/ttyS1", f"{words} </dev/null >/dev/ttyS1 2>&1"
    values = {
        "MOUNTS": MOUNTS,
        "CONFIG": f"cp {shlex.quote(str(config))} /run/config/" if config else "",
        "CWD": shlex.quote(str(cwd)),
        "THROTTLE": _printf(THROTTLE),
        "EXIT": _printf(EXIT),
        "TTY": tty,
        "THROTTLE_NOW": "throttle" if throttle else "",
        "COMMAND": run,
    }
    script = SCRIPT
    for name, value in values.items():
        script = script.replace(f"@{name}@", value)
    return script


def _printf(text: str) -> str:
    return text.replace("\x01", "\\001")
