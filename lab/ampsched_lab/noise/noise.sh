#!/bin/sh
# Records what a system does beside programs, for noise.py beside it: interrupts, deferred work, and who runs on which
# core.
# As root, on a computer or in a virtual machine (busybox has what it needs):
#
#     sh lab/ampsched_lab/noise/noise.sh FILE COMMAND [ARGUMENT...]
#
# FILE becomes the text of Linux's function tracer while COMMAND runs, such as `sleep 60` for an idle system. An
# instance of the tracer of its own is used and removed afterwards; other tracing goes on. AMPSCHED_TRACE_KIB is the
# memory per core in KiB (16384): what does not fit overwrites the oldest events.
set -eu
[ $# -ge 2 ] || { echo "usage: noise.sh FILE COMMAND [ARGUMENT...]" >&2; exit 2; }
file=$1
shift
tracing=/sys/kernel/tracing
[ -e $tracing/trace ] || mount -t tracefs tracefs $tracing
own=$tracing/instances/ampsched-noise
mkdir $own
end() {
    echo 0 >$own/tracing_on
    rmdir $own
}
trap end EXIT
echo 0 >$own/tracing_on
echo "${AMPSCHED_TRACE_KIB:-16384}" >$own/buffer_size_kb
echo mono >$own/trace_clock
for event in sched/sched_switch sched/sched_waking sched/sched_migrate_task irq/irq_handler_entry irq/irq_handler_exit \
    irq/softirq_entry irq/softirq_exit timer/hrtimer_expire_entry ipi/ipi_entry ipi/ipi_exit; do
    [ ! -e $own/events/$event ] || echo 1 >$own/events/$event/enable
done
# Interrupts that are none of a device: x86 has a pair of events for each, beside those of setting them up.
for event in $own/events/irq_vectors/*_entry $own/events/irq_vectors/*_exit; do
    [ ! -e $event ] || echo 1 >$event/enable
done
echo 1 >$own/tracing_on
code=0
"$@" || code=$?
echo 0 >$own/tracing_on
{
    echo "# uname: $(uname -srm)"
    echo "# command: $*"
    # Kernel threads are those that thread 2 has started.
    echo "# kernel threads: 2 $(cat /proc/2/task/2/children)"
    cat $own/trace
} >"$file"
exit $code
