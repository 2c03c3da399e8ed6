"""Follows docs/howto/policy-in-rust.md in a copy of the checkout: `make check-howto`.

Every command and every edit of the page is executed as it stands there. What the author did by hand must be one new
file and one row; what is generated is counted apart. Commands that need a virtual machine run where there is one.
"""

import fnmatch
import os
import subprocess
import sys
import time
import tomllib

import pages
from checkout import ROOT, Copy, copy

PAGE = ROOT / "docs/howto/policy-in-rust.md"
REGISTRY = "crates/policy/src/policies/mod.rs"
FILES = "crates/policy/src/policies/*.rs"


class HowtoError(Exception):
    """The page does not work; the message says where."""


def apply(checkout: Copy, block: pages.Block) -> None:
    """Makes the edit that a block of type `diff` shows: its text must be in the file exactly once."""
    file = checkout.folder / block.title
    lines = block.body.splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if line[:1] in "- ")
    new = "".join(f"{line[1:]}\n" for line in lines if line[:1] in "+ ")
    text = file.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise HowtoError(f"{block.title} has {text.count(old)} times what the page changes:\n{old}")
    file.write_text(text.replace(old, new), encoding="utf-8")


def follow(checkout: Copy, vm_missing: str) -> None:
    """Executes the page from top to bottom.

    Args:
        checkout: Where.
        vm_missing: Why there is no virtual machine; empty if there is one.
    """
    environment = {**checkout.environment(), **pages.terminal()}
    done = 0
    for block in pages.blocks(PAGE.read_text(encoding="utf-8")):
        if block.kind == "diff":
            apply(checkout, block)
        elif block.title in (pages.IN_A_CHECKOUT, pages.IN_A_VM):
            for command in pages.parse_console(block.body):
                if block.title == pages.IN_A_VM and vm_missing:
                    print(f"SKIPPED: {command.line}: {vm_missing}")
                    continue
                start_s = time.monotonic()
                pages.run(command, checkout.folder, environment)
                print(f"{time.monotonic() - start_s:6.1f} s  {command.line}", flush=True)
                done += 1
    if done < 8:
        raise HowtoError(f"only {done} commands were found on {PAGE.name}")


def count(checkout: Copy) -> None:
    """Counts what has changed since the copy was made."""
    generated = tomllib.loads((ROOT / "tools/generated.toml").read_text(encoding="utf-8"))["generated"]
    patterns = [pattern for row in generated for pattern in row["files"]]
    changed = {line[3:]: line[:2] for line in checkout.git("status", "--porcelain", "-uall").splitlines()}
    written = {file for file in changed if any(fnmatch.fnmatch(file, pattern) for pattern in patterns)}
    by_hand = {file: how for file, how in changed.items() if file not in written}
    new = [file for file, how in by_hand.items() if how == "??" and fnmatch.fnmatch(file, FILES)]
    row = checkout.git("diff", "--numstat", "--", REGISTRY).split()
    if len(new) != 1 or by_hand != {new[0]: "??", REGISTRY: " M"} or row[:2] != ["1", "0"]:
        raise HowtoError(f"not one new file and one row, but: {by_hand}, rows added and removed: {row[:2]}")
    print(f"by hand: {new[0]} (new), {REGISTRY} (one row)")
    print(f"generated: {', '.join(sorted(written))}")
    style = subprocess.run(
        ["rustfmt", "--check", new[0]], cwd=checkout.folder, env=checkout.environment(), check=False
    )
    if style.returncode != 0:
        raise HowtoError(f"{new[0]} is not formatted as rustfmt does")


def main() -> int:
    """Follows the page and counts."""
    missing = subprocess.run(
        ["sh", "tools/check-live.sh"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    start_s = time.monotonic()
    os.umask(0o022)
    try:
        checkout = copy("howto")
        follow(checkout, missing.stderr.strip() if missing.returncode else "")
        count(checkout)
    except (HowtoError, AssertionError) as error:
        print(f"error: {PAGE.relative_to(ROOT)}: {error}", file=sys.stderr)
        return 1
    print(f"the page works; {time.monotonic() - start_s:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
