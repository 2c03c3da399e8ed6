# guest.sh LOADER LIVE STORM SEED ROUNDS MS PAUSE_S OPTION... -- POLICY...: runs in the virtual machine. Each policy is
# loaded into the kernel by LOADER with these options and has ROUNDS storms of MS; after each comes a pause. In the
# middle CPUs go and come back while a thin storm goes on, which ends the scheduler; LOADER loads it anew.
#
# What happens is written line by line: `policy NAME`, `loaded S`, `round N CODE STATE JSON`, `threads SEEN GONE MISSING`
# of the session's status beside those of the kernel, `cpu N 0|1 S`, `said ...`, `code N`, `after STATE`, `log ...` (of
# the kernel, since the policy's line), `ended S`. S is the time since power-on.
loader=$1 live=$2 storm=$3 seed=$4 rounds=$5 ms=$6 pause_s=$7
shift 7
options=
while [ "$1" != -- ]; do
    options="$options $1"
    shift
done
shift
scx=/sys/kernel/sched_ext
LOADED=1800 # looks of 0.1 s; the verifier follows a policy's programs for a minute on a slow core

uptime() {
    read -r up _ </proc/uptime
    echo "$1 $up"
}
is_loaded() {
    read -r state <$scx/state
    [ "$state" = enabled ]
}
await_loaded() { # as often as $1 since power-on
    for _ in $(seq $LOADED); do
        read -r loads <$scx/enable_seq
        [ "$loads" -ge "$1" ] && is_loaded && return
        kill -0 $session 2>/dev/null || return
        sleep 0.1
    done
}
# Numbers of all threads that have a program, without the session's own.
threads_there() {
    for folder in /proc/[0-9]*; do
        [ "${folder#/proc/}" = "$session" ] && continue
        text=
        read -r text <"$folder/cmdline"
        [ -n "$text" ] || continue
        for thread in "$folder"/task/*; do echo "${thread##*/}"; done
    done 2>/dev/null
}
count_threads() {
    sleep 1 # some epochs of any policy
    threads_there >/run/there
    "$live" status --json | sed -n 's/^ *"tid": \([0-9]*\),*$/\1/p' >/run/seen
    gone=0 missing=0
    while read -r tid; do [ -e /proc/"$tid" ] || gone=$((gone + 1)); done </run/seen
    while read -r tid; do grep -qx "$tid" /run/seen || missing=$((missing + 1)); done </run/there
    echo "threads $(wc -l </run/seen) $gone $missing"
}
storm() { # ROUND [thin]
    result=$("$storm" "$seed" "$1" "$ms" $2 2>/run/wrong)
    code=$?
    sed "s/^/wrong /" /run/wrong
    read -r state <$scx/state
    echo "round $1 $code $state $result"
}
# A CPU goes away or comes back: the scheduler ends, and is loaded anew.
change_cpu() { # CPU 0|1 ROUND
    read -r loads <$scx/enable_seq
    "$storm" "$seed" "$3" "$ms" thin >/run/thin 2>/run/wrong &
    thin=$!
    sleep 0.05
    echo "$2" >/sys/devices/system/cpu/cpu"$1"/online
    await_loaded $((loads + 1))
    wait $thin
    code=$?
    sed "s/^/wrong /" /run/wrong
    read -r state <$scx/state
    echo "round $3 $code $state $(cat /run/thin)"
    uptime "cpu $1 $2"
}
under() {
    echo "policy $1"
    dmesg -c >/dev/null
    read -r loads <$scx/enable_seq
    "$loader" run --policy="$1" $options --everything >/run/said 2>&1 &
    session=$!
    await_loaded $((loads + 1))
    uptime loaded
    round=1
    while [ $round -le "$rounds" ]; do
        storm $round
        sleep "$pause_s"
        if [ $round = $(((rounds + 1) / 2)) ]; then
            cpu=$((1 + (seed + round) % ($(nproc) - 1)))
            change_cpu $cpu 0 $((rounds + 1))
            change_cpu $cpu 1 $((rounds + 2))
        fi
        round=$((round + 1))
    done
    count_threads
    echo "events $(tr '\n' ' ' <$scx/root/events)"
    kill -TERM $session
    wait $session
    code=$?
    sed "s/^/said /" /run/said
    echo "code $code"
    echo "after $(cat $scx/state)"
    dmesg | sed "s/^/log /"
    uptime ended
}

"$storm" park 20 &
echo "release $(uname -r)"
for policy in "$@"; do under "$policy"; done
