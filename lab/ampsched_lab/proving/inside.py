"""Runs in the guest: ``inside.py KINDS -- COMMAND``. It lets files tell kinds of cores, and becomes the command.

Linux tells nothing of unequal cores in x86-64 guests. KINDS is a line of kHz, a number per CPU: in the place of each
CPU's folder comes a copy that has them as the highest frequency, too, as computers' folders have. It imports nothing of
the package.
"""

import ctypes
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

CPUS = Path("/sys/devices/system/cpu")
COPIES = Path("/tmp/cpus")  # noqa: S108 (the guest's own)
COPIED = ("topology", "online")
BIND = 0x1000
"""MS_BIND of include/uapi/linux/mount.h."""


def tell(khz: list[str]) -> None:
    """Puts folders in the places of CPUs' own."""
    libc = ctypes.CDLL(None, use_errno=True)
    for cpu, each in enumerate(khz):
        copy, own = COPIES / f"cpu{cpu}", CPUS / f"cpu{cpu}"
        (copy / "cpufreq").mkdir(parents=True)
        (copy / "cpufreq/cpuinfo_max_freq").write_text(f"{each}\n", "ascii")
        for name in COPIED:
            for file in [own / name, *sorted((own / name).glob("*"))]:
                place = copy / file.relative_to(own)
                place.parent.mkdir(parents=True, exist_ok=True)
                with suppress(OSError):  # folders, and what cannot be read there
                    shutil.copyfile(file, place)
        if libc.mount(bytes(copy), bytes(own), None, BIND, None):
            raise OSError(ctypes.get_errno(), f"{own} cannot be covered")


if __name__ == "__main__":
    tell(sys.argv[1].split(","))
    os.execvp(sys.argv[3], sys.argv[3:])  # noqa: S606
