#!/bin/sh
# Runs a program for cargo and adds the CPU time that a program of tests takes to $TEST_TIMES (see `make rust-test`).
# One that hangs is ended after 15 minutes; libtest has named the test by then.
timeout --foreground --kill-after=10 900 "$@"
code=$?
[ $code != 124 ] || echo "$1 was ended after 15 minutes" >&2
case $1 in
*/deps/*)
    # In a pipe it would be of another shell.
    times >"$TEST_TIMES.$$"
    awk -v program="${1##*/}" 'NR == 2 {
        for (at = 1; at <= 2; at++) { split($at, part, "[ms]"); cpu_s += 60 * part[1] + part[2] }
        sub(/-[0-9a-f]+$/, "", program)
        printf "%6.1f s of CPU time  %s\n", cpu_s, program
    }' "$TEST_TIMES.$$" >>"$TEST_TIMES"
    rm -f "$TEST_TIMES.$$"
    ;;
esac
exit $code
