"""The command line: ``ampsched``."""

from ampsched.cli.app import main

__all__ = ["main"]
