"""The first process of an exact guest: a shell script that mounts what programs expect, runs a command, hands out."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from ampsched.vm.exact.trace import EVENTS, KERNEL_THREADS

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
"""What a guest shows of its kernel."""
OWN = Path("/ampsched")
"""Folder of what is not the user's."""
BUSYBOX = OWN / "busybox"
TOOLS = OWN / "bin"
MODULES = OWN / "modules"
OUTPUT, RESULT, FILES, TRACE = "output", "result", "files", "trace"
CHANNELS = (OUTPUT, RESULT, FILES, TRACE)
"""Names of the channels out of the guest."""

SCRIPT = """#!@BUSYBOX@ sh
export PATH=@BIN@
mkdir -p @BIN@ && @BUSYBOX@ --install -s @BIN@
@MOUNTS@
chmod 1777 /tmp /dev/shm
ip link set lo up
echo ampsched-vm >/proc/sys/kernel/hostname
channel() {
    for port in /sys/class/virtio-ports/*; do
        read -r name <$port/name
        [ "$name" = $1 ] && echo /dev/${port##*/}
    done
}
@BEGIN@
exec 3>$(channel @OUTPUT@)
mkdir -p @CWD@ && cd @CWD@
@TRACE_PREPARE@
# The kernel has a few things to end.
sleep 1
files() { find . -type f -exec stat -c "%Z %n" {} +; }
# Not empty: from an empty list busybox takes nothing to differ.
{ echo none; files; } >/run/before
@TRACE_BEGIN@
read -r began _ </proc/uptime
(
    export PATH=@PATH@:@BIN@
    @VARIABLES@
    exec @COMMAND@
) </dev/null >&3 2>&3
code=$?
read -r ended _ </proc/uptime
@TRACE_END@
exec 3>&-
echo "$code $began $ended" >$(channel @RESULT@)
# By when they were changed, for programs may give what they write an older date.
files | grep -vxFf /run/before | cut -d " " -f 2- | tr "\\n" "\\0" | xargs -0 -r tar -cf - >$(channel @FILES@)
sync
poweroff -f
"""

TRACE_KIB_PER_CORE = 16384
_TRACE_PREPARE = """
cd /sys/kernel/tracing
echo 0 >tracing_on
echo @KIB@ >buffer_size_kb
echo mono >trace_clock
echo 1 >options/record-tgid
for event in @EVENTS@; do
    [ -e events/$event ] && echo 1 >events/$event/enable
done
cd - >/dev/null
"""
TRACE_BEGIN = """
echo 1 >/sys/kernel/tracing/tracing_on
"""
TRACE_END = f"""
echo 0 >/sys/kernel/tracing/tracing_on
{{
    cat /sys/kernel/tracing/trace
    echo "{KERNEL_THREADS} 2 $(cat /proc/2/task/2/children)"
}} >$(channel {TRACE})
"""


def _trace_prepare(events: Mapping[str, str]) -> str:
    names = " ".join(f"{group}/{event}" for event, group in events.items())
    return _TRACE_PREPARE.replace("@KIB@", str(TRACE_KIB_PER_CORE)).replace("@EVENTS@", names)


def init_script(
    command: Sequence[str],
    cwd: Path,
    path: str,
    variables: Mapping[str, str],
    *,
    trace: bool,
    events: Mapping[str, str] = EVENTS,
    begin: str = "",
) -> str:
    """The script that runs a command and switches the machine off.

    Args:
        command: Program and arguments.
        cwd: Where to run it; files that it leaves there are handed out.
        path: Where it finds programs (``$PATH``), before the tools of the guest.
        variables: Further variables of its environment.
        trace: Record who runs on which core.
        events: The events that are recorded then, with their groups.
        begin: What else has to be done before.
    """
    exports = [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    values = {
        "MOUNTS": MOUNTS,
        "BUSYBOX": str(BUSYBOX),
        "BIN": str(TOOLS),
        "BEGIN": begin,
        "OUTPUT": OUTPUT,
        "RESULT": RESULT,
        "FILES": FILES,
        "CWD": shlex.quote(str(cwd)),
        "PATH": shlex.quote(path),
        "VARIABLES": "\n    ".join(exports) or ":",
        "COMMAND": shlex.join(command),
        "TRACE_PREPARE": _trace_prepare(events) if trace else "",
        "TRACE_BEGIN": TRACE_BEGIN if trace else "",
        "TRACE_END": TRACE_END if trace else "",
    }
    return re.sub("@([A-Z_]+)@", lambda found: values[found[1]], SCRIPT)
