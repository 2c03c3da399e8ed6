rm -rf built
mkdir built
ninja -j3 -f rules.ninja >/dev/null
