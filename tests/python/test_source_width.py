"""Lines of sources that no formatter wraps."""

import subprocess

from conftest import ROOT

WIDTH_MAX = 120


def test_low_no_line_of_c_is_too_wide() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*.c", "*.h"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = listed.stdout.split()
    assert files
    wide = [
        f"{file}:{number}: {len(line)} columns"
        for file in files
        for number, line in enumerate((ROOT / file).read_text().splitlines(), 1)
        if len(line) > WIDTH_MAX
    ]
    assert wide == []
