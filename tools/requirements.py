"""Prints what the package needs to run, and what optional groups add: `requirements.py test lint`."""

import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
groups = [project["optional-dependencies"][name] for name in sys.argv[1:]]
print(*project["dependencies"], *(each for group in groups for each in group), sep="\n")
