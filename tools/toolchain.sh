#!/bin/sh
# Says which toolchain rustup has to use, if not the pinned one: the default one if that is the same version under
# another name, so that nothing has to be downloaded. Says nothing if there is no rustup, or if the choice is made
# already.
set -u
cd "$(dirname "$0")/.." || exit 1
command -v rustup >/dev/null 2>&1 || exit 0
pin=$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)
rustup toolchain list 2>/dev/null | grep -q "^$pin-" && exit 0
default=$(rustup default 2>/dev/null | cut -d ' ' -f 1)
version=$(RUSTUP_TOOLCHAIN=$default rustc --version 2>/dev/null | cut -d ' ' -f 2)
[ "$version" = "$pin" ] && echo "$default"
exit 0
