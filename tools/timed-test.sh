#!/bin/sh
# Runs a program for cargo; of a program of tests a test that takes longer than the cap fails (see `make rust-test`).
# libtest can do so, but calls that unstable yet; hence RUSTC_BOOTSTRAP, which no test hands on to a compiler.
set -u
program=$1
case $program in
*/deps/*)
    limit_ms=$((${TEST_CAP_S:-20} * 1000))
    export RUST_TEST_TIME_UNIT="$limit_ms,$limit_ms" RUST_TEST_TIME_INTEGRATION="$limit_ms,$limit_ms"
    RUSTC_BOOTSTRAP=1 exec "$@" -Z unstable-options --ensure-time
    ;;
*) exec "$@" ;;
esac
