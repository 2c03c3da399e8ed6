#!/bin/sh
# Makes python/ampsched/report/vendor anew from npm's packages, in the versions and with the hashes that
# package-lock.json names. A newer ECharts: npm install --prefix tools/echarts echarts@VERSION, then this.
set -eu
cd "$(dirname "$0")"
vendor=../../python/ampsched/report/vendor
npm ci --silent --ignore-scripts
version=$(node -p 'require("echarts/package.json").version')
npx esbuild parts.js --bundle --minify --format=iife --global-name=echarts --legal-comments=none --charset=ascii \
    --log-level=warning --define:process.env.NODE_ENV='"production"' \
    --banner:js="/*! Apache ECharts $version with zrender and tslib: see LICENSE beside this file */" \
    --outfile="$vendor/echarts.min.js"
{
    echo "echarts.min.js consists of parts of Apache ECharts $version, and of zrender and tslib."
    for package in echarts zrender tslib; do
        printf '\n==== %s ====\n\n' "$package"
        cat "node_modules/$package/LICENSE"* "node_modules/$package/NOTICE" 2>/dev/null || true
    done
    printf '\n==== d3, in echarts ====\n\n'
    cat node_modules/echarts/licenses/LICENSE-d3
} >"$vendor/LICENSE"
rm -rf node_modules
