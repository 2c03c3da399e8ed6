#!/bin/sh
# Says in one line what is missing for building policies for a kernel and trying them in a virtual machine by quotas.
set -u

stop() {
    echo "ampsched: $1" >&2
    exit 1
}

sh "$(dirname "$0")/check-bpf.sh" || exit 1
command -v qemu-system-x86_64 >/dev/null 2>&1 ||
    stop "qemu-system-x86_64 is missing (Debian: apt install qemu-system-x86)"
[ -x /usr/lib/qemu/virtiofsd ] || [ -x /usr/libexec/virtiofsd ] ||
    stop "virtiofsd is missing (Debian 12: apt install qemu-system-common; newer: apt install virtiofsd)"
command -v perf >/dev/null 2>&1 || stop "perf is missing (Debian: apt install linux-perf)"
command -v dpkg >/dev/null 2>&1 || stop "the kernel comes from Debian's archive, for which apt and dpkg are needed"
[ "$(id -u)" -eq 0 ] || stop "the virtual machine needs root"
