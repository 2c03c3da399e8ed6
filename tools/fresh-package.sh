#!/bin/sh
# fresh-package.sh FOLDER CORE: makes FOLDER/ampsched the package of this checkout with that compiled part, and
# FOLDER/bin/ampsched its command.
# Nothing is copied: an edit of a Python file counts at once.
set -eu
folder=$1
core=$(realpath "$2")
rm -rf "$folder/ampsched"
mkdir -p "$folder/ampsched"
ln -s "$PWD"/python/ampsched/* "$folder/ampsched"
rm -f "$folder"/ampsched/_core*.so
ln -s "$core" "$folder/ampsched/_core.abi3.so"
# The laboratory, which `ampsched reproduce` runs.
ln -sfn "$PWD/lab/ampsched_lab" "$folder/ampsched_lab"
# The command, for whoever has FOLDER in PYTHONPATH.
mkdir -p "$folder/bin"
printf '#!%s\nfrom ampsched.cli import main\n\nmain()\n' "$PWD/.venv/bin/python" >"$folder/bin/ampsched"
chmod +x "$folder/bin/ampsched"
