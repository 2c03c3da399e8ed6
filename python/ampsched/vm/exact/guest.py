"""The first process of an exact guest: a shell script that mounts what programs expect, runs a command, hands out."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from ampsched.vm.guest import MOUNTS

OWN = Path("/ampsched")
"""Folder of what is not the user's."""
BUSYBOX = OWN / "busybox"
TOOLS = OWN / "bin"
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
exec 3>$(channel @OUTPUT@)
mkdir -p @CWD@ && cd @CWD@
@TRACE_BEGIN@
# The kernel has a few things to end.
sleep 1
files() { find . -type f -exec stat -c "%Z %n" {} +; }
files >/run/before
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
TRACE_BEGIN = f"""
cd /sys/kernel/tracing
echo {TRACE_KIB_PER_CORE} >buffer_size_kb
echo mono >trace_clock
echo 1 >events/sched/sched_switch/enable
echo 1 >events/sched/sched_waking/enable
cd - >/dev/null
echo 1 >/sys/kernel/tracing/tracing_on
"""
TRACE_END = f"""
echo 0 >/sys/kernel/tracing/tracing_on
cat /sys/kernel/tracing/trace >$(channel {TRACE})
"""


def init_script(
    command: Sequence[str], cwd: Path, path: str, variables: Mapping[str, str], *, trace: bool
) -> str:
    """The script that runs a command and switches the machine off.

    Args:
        command: Program and arguments.
        cwd: Where to run it; files that it leaves there are handed out.
        path: Where it finds programs (``$PATH``), before the tools of the guest.
        variables: Further variables of its environment.
        trace: Record who runs on which core.
    """
    exports = [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    values = {
        "MOUNTS": MOUNTS,
        "BUSYBOX": str(BUSYBOX),
        "BIN": str(TOOLS),
        "OUTPUT": OUTPUT,
        "RESULT": RESULT,
        "FILES": FILES,
        "CWD": shlex.quote(str(cwd)),
        "PATH": shlex.quote(path),
        "VARIABLES": "\n    ".join(exports) or ":",
        "COMMAND": shlex.join(command),
        "TRACE_BEGIN": TRACE_BEGIN if trace else "",
        "TRACE_END": TRACE_END if trace else "",
    }
    return re.sub("@([A-Z_]+)@", lambda found: values[found[1]], SCRIPT)
