"""fetch_packages.py NAME...: fetches what the table of packages names so, if need be, and prints its folder."""

import sys

from ampsched.vm import VmError
from ampsched.vm.archive import Archive


def main(names: list[str]) -> int:
    """Prints one folder a line."""
    try:
        for name in names:
            print(Archive().folder(name))
    except VmError as error:
        print(f"ampsched: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
