"""Prints what a package needs to run, and what optional groups add: `requirements.py [--of lab] test lint`.

`requirements.py all` adds all groups.
"""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

arguments = sys.argv[1:]
folder = arguments[1] if arguments[:1] == ["--of"] else "."
project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
groups = project.get("optional-dependencies", {})
names = groups if arguments == ["all"] else [name for name in arguments if name not in ("--of", folder)]
needed = [*project["dependencies"], *(each for name in names for each in groups[name])]
print(*(each for each in needed if each != "ampsched"), sep="\n")
