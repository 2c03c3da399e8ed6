#!/bin/sh
# guest-cc.sh ARCHITECTURE SYSROOT OPTION...: compiles a C program for guests of an architecture: this computer's by cc,
# aarch64 by clang and the linker that comes with Rust, with Debian's headers and libraries for arm64 in SYSROOT
# (sysroot-aarch64 in python/ampsched/vm/packages.toml). Says in one line what is missing.
set -eu

stop() {
    echo "ampsched: $1" >&2
    exit 1
}

architecture=$1
sysroot=$2
shift 2
[ "$architecture" = "$(uname -m)" ] && exec cc "$@"
[ "$architecture" = aarch64 ] || stop "$architecture: no compiler for such guests"
clang=$(command -v clang-19 || command -v clang) || stop "no clang for arm64 (Debian: apt install clang-19)"
linker=$(ls "$(rustc --print sysroot)"/lib/rustlib/*/bin/gcc-ld/ld.lld 2>/dev/null | head -n 1)
[ -n "$linker" ] || linker=$(command -v ld.lld-19 || command -v ld.lld) ||
    stop "no linker for arm64 (Rust's own toolchain has one; Debian: apt install lld-19)"
exec "$clang" --target=aarch64-linux-gnu --sysroot="$sysroot" --ld-path="$linker" "$@"
