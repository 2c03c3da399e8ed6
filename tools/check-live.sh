#!/bin/sh
# Says in one line what is missing for building policies for a kernel and trying them in a virtual machine.
set -u

stop() {
    echo "ampsched: $1" >&2
    exit 1
}

clang=${BPF_CLANG:-$(command -v clang-19 || command -v clang || echo clang-19)}
"$clang" --version >/dev/null 2>&1 ||
    stop "no clang; BPF programs need version 19 or newer (Debian: apt install clang-19)"
version=$("$clang" -dumpversion)
[ "${version%%.*}" -ge 19 ] || stop "$clang is $version; BPF programs need 19 or newer (Debian: apt install clang-19)"
for header in libelf.h zlib.h; do
    echo "#include <$header>" | cc -E - >/dev/null 2>&1 ||
        stop "$header is missing; libbpf needs it (Debian: apt install libelf-dev zlib1g-dev pkg-config)"
done
command -v pkg-config >/dev/null 2>&1 || stop "pkg-config is missing (Debian: apt install pkg-config)"
command -v qemu-system-x86_64 >/dev/null 2>&1 ||
    stop "qemu-system-x86_64 is missing (Debian: apt install qemu-system-x86)"
[ -x /usr/lib/qemu/virtiofsd ] || [ -x /usr/libexec/virtiofsd ] ||
    stop "virtiofsd is missing (Debian 12: apt install qemu-system-common; newer: apt install virtiofsd)"
command -v stress-ng >/dev/null 2>&1 || stop "stress-ng is missing (Debian: apt install stress-ng)"
command -v perf >/dev/null 2>&1 || stop "perf is missing (Debian: apt install linux-perf)"
command -v dpkg >/dev/null 2>&1 || stop "the kernel comes from Debian's archive, for which apt and dpkg are needed"
[ "$(id -u)" -eq 0 ] || stop "the virtual machine needs root"
