#!/bin/sh
# Checks on an empty Debian 13 that its own Rust, which is the oldest that Cargo.toml allows, compiles everything.
# Needs root that may mount, and debootstrap. Nothing is linked, no test runs.
set -eu
cd "$(dirname "$0")/.."
oldest=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
exec python3 tools/check_fresh.py --suites trixie --packages 'clang libelf-dev zlib1g-dev pkg-config' \
    "cargo --version | grep -F 'cargo $oldest.'" \
    'cargo check --workspace --all-targets --locked --quiet' \
    'cargo check -p ampsched-scx --features bpf --all-targets --locked --quiet'
