"""``python -m ampsched`` is the same as ``ampsched``."""

from ampsched.cli import main

if __name__ == "__main__":
    main()
