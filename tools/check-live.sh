#!/bin/sh
# Says in one line what is missing for building policies for a kernel and trying them in an exact virtual machine.
set -u

stop() {
    echo "ampsched: $1" >&2
    exit 1
}

sh "$(dirname "$0")/check-bpf.sh" || exit 1
[ "$(uname -m)" = x86_64 ] || stop "QEMU is fetched for x86-64 computers, this one is $(uname -m)"
for tool in apt-get dpkg; do
    command -v $tool >/dev/null 2>&1 || stop "QEMU and kernels come from Debian's archive, for which $tool is needed"
done
