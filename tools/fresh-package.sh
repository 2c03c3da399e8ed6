#!/bin/sh
# fresh-package.sh FOLDER CORE: makes FOLDER/ampsched the package of this checkout with that compiled part.
# Nothing is copied: an edit of a Python file counts at once.
set -eu
folder=$1
core=$(realpath "$2")
rm -rf "$folder/ampsched"
mkdir -p "$folder/ampsched"
ln -s "$PWD"/python/ampsched/* "$folder/ampsched"
rm -f "$folder"/ampsched/_core*.so
ln -s "$core" "$folder/ampsched/_core.abi3.so"
