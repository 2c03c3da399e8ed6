#!/bin/sh
# Says in one line what is missing or too old for building ampsched. Arguments: the Python to use.
set -u
python=${1:-python3}

stop() {
    echo "ampsched: $1" >&2
    exit 1
}

# True if version $1 is at least $2 (major.minor).
at_least() {
    [ "${1%%.*}" -gt "${2%%.*}" ] || {
        minor=${1#*.}
        [ "${1%%.*}" -eq "${2%%.*}" ] && [ "${minor%%.*}" -ge "${2#*.}" ]
    }
}

command -v "$python" >/dev/null 2>&1 ||
    stop "$python is missing; Python 3.11 or newer is needed (Debian: apt install python3 python3-venv)"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
at_least "$version" 3.11 ||
    stop "$python is Python $version; 3.11 or newer is needed (choose one with: make PYTHON=python3.11 ...)"
"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
    stop "$python has no venv module (Debian: apt install python3-venv)"

command -v cc >/dev/null 2>&1 ||
    stop "no C compiler; Rust needs one for linking (Debian: apt install gcc libc6-dev)"

command -v cargo >/dev/null 2>&1 && command -v rustc >/dev/null 2>&1 ||
    stop "cargo or rustc is missing; Rust 1.85 or newer is needed (https://rustup.rs)"
version=$(rustc --version | cut -d ' ' -f 2)
[ -n "$version" ] || stop "rustc --version does not work; Rust 1.85 or newer is needed (https://rustup.rs). \
Where rustup cannot fetch the version of rust-toolchain.toml, another one serves, too: make RUSTUP_TOOLCHAIN=stable ..."
at_least "$version" 1.85 ||
    stop "rustc is $version; 1.85 or newer is needed (rustup update stable; Debian 12's own is too old)"
