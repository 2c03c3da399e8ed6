#!/bin/sh
# The style of all C, and clang-tidy over what runs in user space. `tools/check-c.sh format` formats instead.
set -eu
for tool in clang-format-19 clang-tidy-19; do
    command -v "$tool" >/dev/null || { echo "$tool is missing (Debian: apt install $tool)" >&2; exit 1; }
done
sources=$(git ls-files '*.c' '*.h' '*.cpp' ':!tests/python/data' ':!crates/recording/tests/samples')
if [ "${1-}" = format ]; then
    # shellcheck disable=SC2086 # Names without spaces.
    exec clang-format-19 -i $sources
fi
# shellcheck disable=SC2086
clang-format-19 --dry-run --Werror $sources
clang-tidy-19 --quiet --warnings-as-errors='*' \
    crates/preload/c/*.c crates/live/exact/*.c crates/live/scx/bpf/native*.c -- \
    -std=gnu11 -D_GNU_SOURCE -Wall -Wextra 2>/dev/null
