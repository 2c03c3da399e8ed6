#!/bin/sh
# A Slurm of this computer alone, in a folder: slurm.sh start FOLDER, slurm.sh stop FOLDER (root).
# Installs Debian's packages if they are missing. Everything it starts listens on the loopback only.
set -eu
[ "$(id -u)" = 0 ] || { echo "slurm.sh: needs root" >&2; exit 2; }
folder=$(realpath -m "$2")

stop() {
    for name in slurmd slurmctld munged; do
        if [ -s "$folder/$name.pid" ]; then
            kill "$(cat "$folder/$name.pid")" 2>/dev/null || true
        fi
    done
}

start() {
    command -v slurmctld slurmd munged sbatch >/dev/null ||
        apt-get install --yes --quiet --no-install-recommends slurmctld slurmd slurm-client munge >&2
    mkdir -p "$folder/state" "$folder/spool"
    chown munge "$folder/state" && mkdir -p "$folder/munge" && chown munge "$folder/munge"
    head -c 128 /dev/urandom >"$folder/munge/key"
    chown munge "$folder/munge/key" && chmod 400 "$folder/munge/key" && chmod 700 "$folder/munge"
    chown root "$folder/state"
    memory_mib=$(awk '/MemTotal/ { print int($2 / 1024) }' /proc/meminfo)
    cat >"$folder/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$(hostname -s)(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=$folder/munged.socket
CryptoType=crypto/munge
SlurmUser=root
SlurmctldPort=26817
SlurmdPort=26818
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$(hostname -s) NodeAddr=127.0.0.1 CPUs=2 RealMemory=$memory_mib State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
END
    chmod 755 "$folder"
    setpriv --reuid munge --regid munge --clear-groups munged --force --num-threads 2 \
        --key-file "$folder/munge/key" --socket "$folder/munge/socket" --pid-file "$folder/munge/pid" \
        --log-file "$folder/munge/log" --seed-file "$folder/munge/seed"
    ln -sf munge/socket "$folder/munged.socket" && ln -sf munge/pid "$folder/munged.pid"
    SLURM_CONF="$folder/slurm.conf"
    export SLURM_CONF
    slurmctld
    slurmd
    for _ in $(seq 100); do
        if sinfo --noheader --format %T 2>/dev/null | grep -q idle; then
            return
        fi
        sleep 0.2
    done
    tail -n 5 "$folder"/*.log >&2
    stop
    echo "slurm.sh: Slurm does not come up" >&2
    exit 1
}

case "$1" in
start) start ;;
stop) stop ;;
*) echo "usage: slurm.sh start|stop FOLDER" >&2 && exit 2 ;;
esac
