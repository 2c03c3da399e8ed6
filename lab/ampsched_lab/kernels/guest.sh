# guest.sh LOAD LOADER OPTION... -- POLICY... -- PEER...: runs in the virtual machine. Each policy is loaded into the
# kernel by LOADER with these options, then each other scheduler, and LOAD is run under it. What happens is written line
# by line: `policy NAME`, `said ...`, `code NUMBER`, `after STATE`, `log ...` (of the kernel, since the policy's line).
# Before, if there is a program DOCTOR: `doctor ...`, what it says of this kernel.
load=$1 loader=$2
shift 2
options=
while [ "$1" != -- ]; do
    options="$options $1"
    shift
done
shift

begin() {
    echo "policy $1"
    dmesg -c >/dev/null
    echo "begin" >/dev/kmsg
}
end() {
    sed "s/^/said /" /run/said
    echo "code $1"
    echo "after $(cat /sys/kernel/sched_ext/state)"
    dmesg | sed "s/^/log /"
}
# The verifier follows scx_lavd for 15 s.
wait_for() {
    i=0
    while [ "$(cat /sys/kernel/sched_ext/state)" != "$1" ] && [ $i -lt 1200 ] && kill -0 $2 2>/dev/null; do
        sleep 0.05
        i=$((i + 1))
    done
}

mask() {
    printf %x $(($1))
}

# Loading is timed on a big core; then everybody may go everywhere.
big=${options#*--big=}
big=$(mask "1 << ${big%%[, ]*}")
all=$(mask "(1 << $(nproc)) - 1")
cat >/run/command <<END
taskset -p $all \$PPID >/dev/null
exec taskset $all sh $load
END

uname -r
if [ -n "$DOCTOR" ]; then
    # It needs no ratio.
    "$DOCTOR" doctor --json ${options% --ratio=*} | sed "s/^/doctor /"
fi
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    begin "$1"
    taskset $big $loader run --policy="$1" $options --everything --run-dir=/run/ampsched -- sh /run/command \
        >/run/said 2>&1
    end $?
    shift
done
shift
for peer in "$@"; do
    begin "${peer##*/}"
    : >/run/said
    taskset $big "$peer" >>/run/said 2>&1 &
    wait_for enabled $!
    taskset -p $all $! >/dev/null
    sh "$load" >>/run/said 2>&1
    kill -INT $! 2>/dev/null
    wait $!
    end $?
done
