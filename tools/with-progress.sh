#!/bin/sh
# with-progress.sh TEXT COMMAND ...: runs a command and says every few seconds how long it has been running and what it
# printed last. What it printed is shown in full if it fails.
set -u
text=$1
shift
log=$(mktemp)
start=$(date +%s)

heartbeat() {
    # shellcheck disable=SC2217 # It keeps no pipe open.
    while sleep 4 </dev/null >/dev/null 2>&1; do
        last=$(tail -n 1 "$log" | cut -c 1-60 | sed 's/^ *//')
        echo "$text: $(($(date +%s) - start)) s${last:+, $last}"
    done
}

echo "$text ..."
heartbeat &
beat=$!
# The command runs in the foreground, so that Ctrl-C reaches it.
trap 'kill "$beat" 2>/dev/null; rm -f "$log"' EXIT
"$@" >"$log" 2>&1
code=$?
if [ "$code" -ne 0 ]; then
    cat "$log" >&2
    echo "$text: failed after $(($(date +%s) - start)) s" >&2
else
    echo "$text: done in $(($(date +%s) - start)) s"
fi
exit "$code"
