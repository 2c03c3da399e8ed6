# guest.sh LOADER LIVE STORM SEED ROUNDS MS PAUSE_S GONE OPTION... -- POLICY: runs in the virtual machine. POLICY is
# loaded into the kernel by LOADER with these options and has ROUNDS storms of MS; after each comes a pause. GONE times
# a CPU goes and comes back during two further storms, under the same scheduler.
#
# What happens is written line by line: `release NAME`, `loaded S`, `round N CODE STATE JSON`, `threads SEEN OVER
# MISSING` of the session's status beside those of the kernel, `cpu N 0|1 S`, `said ...`, `code N`, `after STATE`,
# `log ...` (of the kernel, since the boot's end), `ended S`. S is the time since power-on.
loader=$1 live=$2 storm=$3 seed=$4 rounds=$5 ms=$6 pause_s=$7 gone=$8
shift 8
options=
while [ "$1" != -- ]; do
    options="$options $1"
    shift
done
shift
scx=/sys/kernel/sched_ext
FREED=30 # s
PASSING=3 # threads of a status that may be gone when it is read: those of the program that asks
THIN=120 # times as long as others are thin storms
LOADED=1800 # looks of 0.1 s; the verifier follows a policy's programs for a minute on a slow core

uptime() {
    read -r up _ </proc/uptime
    echo "$1 $up"
}
is_loaded() {
    read -r state <$scx/state
    [ "$state" = enabled ]
}
await_loaded() {
    for _ in $(seq $LOADED); do
        is_loaded && return
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
# The kernel frees threads that have ended when it finds time, up to ten seconds later; until then they are known.
count_threads() {
    for _ in $(seq $FREED); do
        sleep 1
        threads_there >/run/there
        "$live" status --json | sed -n 's/^ *"tid": \([0-9]*\),*$/\1/p' >/run/seen
        over=0 missing=0
        while read -r tid; do [ -e /proc/"$tid" ] || over=$((over + 1)); done </run/seen
        while read -r tid; do grep -qx "$tid" /run/seen || missing=$((missing + 1)); done </run/there
        [ $over -gt $PASSING ] || break
    done
    echo "threads $(wc -l </run/seen) $over $missing"
}
end_round() { # ROUND CODE: what its storm has written is in files of the round's name
    sed "s/^/wrong /" /run/wrong-"$1"
    read -r state <$scx/state
    echo "round $1 $2 $state $(cat /run/result-"$1")"
}
begin_round() { # ROUND MS [thin]
    exec "$storm" "$seed" "$@" >/run/result-"$1" 2>/run/wrong-"$1"
}
# A CPU goes away or comes back, in two storms: a short one, and a thin one that goes on for long. The kernel keeps the
# scheduler meanwhile.
change_cpu() { # CPU 0|1 ROUND
    read -r loads <$scx/enable_seq
    begin_round $(($3 + 1)) $((ms * THIN)) thin &
    thin=$!
    begin_round "$3" "$ms" &
    thick=$!
    sleep 0.1
    echo "$2" >/sys/devices/system/cpu/cpu"$1"/online
    wait $thick
    thick=$?
    wait $thin
    end_round $(($3 + 1)) $?
    end_round "$3" $thick
    read -r now <$scx/enable_seq
    [ "$now" = "$loads" ] || echo "wrong the scheduler was loaded anew when CPU $1 went or came back"
    uptime "cpu $1 $2"
}

"$storm" park 20 &
echo "release $(uname -r)"
dmesg -c >/dev/null
"$loader" run --policy="$1" $options --everything >/run/said 2>&1 &
session=$!
await_loaded
uptime loaded
times=0 extra=$((rounds + 1))
for round in $(seq "$rounds"); do
    begin_round "$round" "$ms" &
    wait $!
    end_round "$round" $?
    sleep "$pause_s"
    [ $((round * (gone + 1) / (rounds + 1))) -gt $times ] || continue
    times=$((times + 1)) cpu=$((1 + (seed + round) % ($(nproc) - 1)))
    change_cpu $cpu 0 $extra
    change_cpu $cpu 1 $((extra + 2))
    extra=$((extra + 4))
done
count_threads
kill -TERM $session
wait $session
code=$?
sed "s/^/said /" /run/said
echo "code $code"
echo "after $(cat $scx/state)"
dmesg | sed "s/^/log /"
uptime ended
