#!/bin/sh
# live-arm64.sh SYSROOT CARGO-OPTION...: builds the program that loads policies into a kernel for arm64, linked
# statically, by clang and the linker that comes with Rust. SYSROOT has Debian's headers and libraries for arm64
# (sysroot-aarch64 in python/ampsched/vm/packages.toml). Says in one line what is missing.
set -eu

stop() {
    echo "ampsched: $1" >&2
    exit 1
}

sysroot=$1
shift
target=aarch64-unknown-linux-gnu
sh "$(dirname "$0")/check-bpf.sh" || exit 1
clang=${BPF_CLANG:-$(command -v clang-19 || command -v clang)}
[ -e "$sysroot/usr/lib/aarch64-linux-gnu/libelf.a" ] || stop "$sysroot: has no libelf for arm64"
rust=$(rustc --print sysroot)
[ -d "$rust/lib/rustlib/$target/lib" ] || stop "Rust cannot build for arm64 (rustup target add $target)"
linker=$(ls "$rust"/lib/rustlib/*/bin/gcc-ld/ld.lld 2>/dev/null | head -n 1)
[ -n "$linker" ] || linker=$(command -v ld.lld-19 || command -v ld.lld) ||
    stop "no linker for arm64 (Rust's own toolchain has one; Debian: apt install lld-19)"

# LLVM's, as that of Debian's binutils knows this computer's programs only.
AR=$("$clang" --print-prog-name=llvm-ar)
CC_aarch64_unknown_linux_gnu=$clang
CFLAGS_aarch64_unknown_linux_gnu="--sysroot=$sysroot"
CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$clang
CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static \
-C link-arg=--target=$target -C link-arg=--sysroot=$sysroot -C link-arg=--ld-path=$linker"
LIBBPF_SYS_LIBRARY_PATH_aarch64_unknown_linux_gnu=$sysroot/usr/lib/aarch64-linux-gnu
export AR CC_aarch64_unknown_linux_gnu CFLAGS_aarch64_unknown_linux_gnu
export LIBBPF_SYS_LIBRARY_PATH_aarch64_unknown_linux_gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS
exec cargo build --target $target -p ampsched-scx --features bpf,libbpf-sys/static --bin ampsched-live-scx "$@"
