#!/bin/sh
# wheels.sh SYSROOT OUT [ARCHITECTURE...]: builds a wheel for each architecture (x86_64, aarch64) into OUT: the library,
# man pages, and the programs ampsched-live and ampsched-live-scx, for computers that have no compiler. PATH leads to
# maturin, cargo-zigbuild, wheel and auditwheel. SYSROOT has Debian's headers and libraries for arm64, as for
# live-arm64.sh. PROFILE is cargo's (release).
set -eu

# The oldest C library that the wheels run with: that of RHEL 8; every Debian with Python 3.11 has a newer one.
GLIBC=2.28

stop() {
    echo "ampsched: $1" >&2
    exit 1
}

sysroot=$1
out=$2
shift 2
tools=$(dirname "$0")
profile=${PROFILE:-release}
built=${CARGO_TARGET_DIR:-target}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sh "$tools/check-bpf.sh" || exit 1
rust=$(rustc --print sysroot)
export "CARGO_PROFILE_$(echo "$profile" | tr a-z A-Z)_STRIP=symbols"

# static TARGET: builds ampsched-live-scx without shared libraries, as not every computer has libelf.
static() {
    set -- "$1" --locked --quiet --profile "$profile"
    if [ "$1" = aarch64-unknown-linux-gnu ]; then
        shift
        sh "$tools/live-arm64.sh" "$sysroot" "$@"
    else
        CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static" \
            LIBBPF_SYS_LIBRARY_PATH_x86_64_unknown_linux_gnu=/usr/lib/x86_64-linux-gnu \
            cargo build --target "$@" -p ampsched-scx --features bpf,libbpf-sys/static --bin ampsched-live-scx
    fi
}

# add_license FOLDER: says in an unpacked wheel that ampsched-live-scx is under the GPL, and adds that license.
add_license() {
    info=$(echo "$1"/*.dist-info)
    cp "$tools/../crates/live/scx/LICENSE" "$info/licenses/LICENSE-GPL-2.0"
    sed -i -e 's/^License-Expression: .*/License-Expression: (Apache-2.0 OR MIT) AND GPL-2.0-only/' \
        -e '0,/^License-File:/s//License-File: LICENSE-GPL-2.0\n&/' "$info/METADATA"
    grep -q '^License-File: LICENSE-GPL-2.0$' "$info/METADATA" || stop "$info/METADATA names no licenses"
}

# check WHEEL TAG: stops unless everything in the wheel runs where its tag says.
check() {
    auditwheel show "$1" >"$work/shown" || stop "$1: $(cat "$work/shown")"
    found=$(tr '\n' ' ' <"$work/shown" | sed -n 's/.*following platform tag: *"\([^"]*\)".*/\1/p')
    minor=$(echo "$found" | sed -n 's/^manylinux_2_\([0-9]*\)_.*/\1/p')
    [ -n "$minor" ] && [ "$minor" -le "${GLIBC#2.}" ] || stop "$1: needs ${found:-another system} ($2 is promised)"
}

[ $# -gt 0 ] || set -- x86_64 aarch64
for architecture; do
    target=$architecture-unknown-linux-gnu
    tag=manylinux_$(echo $GLIBC | tr . _)
    [ -d "$rust/lib/rustlib/$target/lib" ] ||
        stop "Rust cannot build for $architecture (rustup target add $target)"
    maturin build --quiet --profile "$profile" --locked --zig --compatibility "$tag" --target "$target" \
        --interpreter "$(command -v python)" --out "$work/$architecture"
    cargo zigbuild --locked --quiet --profile "$profile" \
        --target "$target.$GLIBC" -p ampsched-live-cli
    install -D -m 755 "$built/$target/$profile/ampsched-live" "$work/programs/$architecture/ampsched-live"
    static "$target"
    install -m 755 "$built/$target/$profile/ampsched-live-scx" "$work/programs/$architecture/"

    wheel=$(basename "$work/$architecture"/*.whl)
    python -m wheel unpack --dest "$work/$architecture" "$work/$architecture/$wheel" >/dev/null
    folder=$(find "$work/$architecture" -mindepth 1 -maxdepth 1 -type d)
    mkdir -p "$folder/$(basename "$folder").data/scripts" "$out"
    cp "$work/programs/$architecture"/* "$folder/$(basename "$folder").data/scripts/"
    add_license "$folder"
    rm -f "$out"/ampsched-*"_$architecture.whl"
    python -m wheel pack --dest-dir "$out" "$folder" >/dev/null
    check "$out/$wheel" "$tag"
    echo "$out/$wheel"
done
