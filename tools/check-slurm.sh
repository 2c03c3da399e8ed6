#!/bin/sh
# Says in one line what is missing for a Slurm on this computer.
set -u

stop() {
    echo "ampsched: $1" >&2
    exit 1
}

[ "$(id -u)" -eq 0 ] || stop "a Slurm of this computer's own needs root"
command -v setpriv >/dev/null 2>&1 || stop "setpriv is missing (Debian: apt install util-linux)"
for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null 2>&1 && continue
    command -v apt-get >/dev/null 2>&1 || stop "$program is missing, and so is apt-get to install it"
done
