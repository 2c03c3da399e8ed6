#!/bin/sh
# Says in one line what is missing for building the program that loads policies into a kernel.
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
