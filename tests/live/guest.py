"""Runs inside the virtual machine: policies in the kernel under load, faults, placement. Prints one JSON object.

Arguments: the program that loads policies, and what to do: ``policies SECONDS NAME...``, ``placement SECONDS NAME...``,
``bursts SECONDS NAME...``, ``cores SECONDS NAME...``, ``faults NAME...`` or ``futexes``.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

STATE = Path("/sys/kernel/sched_ext/state")
TRACING = Path("/sys/kernel/tracing")
CORES = ["--big", "0-1", "--little", "2-3", "--ratio", "2.5"]
LOADS = os.environ.get("LOADS", "loads")  # loads.c
# Real programs, each of which says by its exit code whether what it has made is right.
DATA, TEXT, SOURCE = "/run/data", "/run/text", "/run/source.c"
SOURCE_TEXT = """
#include <stdio.h>
int main(void) {
    unsigned sum = 0;
    for (unsigned i = 0; i < 1000000; i++) sum += i ^ sum << 3;
    printf("%u\\n", sum);
    return 0;
}
"""
PROGRAMS = {
    "xz": f"xz -1 -T2 <{DATA} | xz -d | cmp - {DATA}",
    "gzip": f"gzip -9 <{DATA} | gzip -d | cmp - {DATA}",
    "sort": f"sort --parallel=2 {TEXT} | sort --check",
    "gcc": f"gcc -O2 -pipe -o /run/program {SOURCE} && /run/program",
    "python": f"{sys.executable} -c 'import hashlib; from concurrent.futures import ThreadPoolExecutor as Pool; "
    f'data = open("{DATA}", "rb").read(); digests = Pool(4).map(lambda _: hashlib.sha256(data).digest(), range(16)); '
    "assert len(set(digests)) == 1'",
}
HOG = "while :; do :; done"
LOAD_S = 30.0  # of the guest, whose slowest core may be the one on which the verifier follows the program
END_S = 15.0


def state() -> str:
    return STATE.read_text().strip()


def kernel_log() -> list[str]:
    return subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout.splitlines()


def complaints(since: int) -> list[str]:
    """What the kernel has complained about since some line of its log."""
    bad = re.compile(r"WARNING|BUG|Oops|stall|lockup|hung|runnable task|Call Trace|error", re.IGNORECASE)
    # Seen rarely, cause not found: docs/explanation/live.md, Limits.
    known = "NOHZ tick-stop error: local softirq work is pending"
    return [line for line in kernel_log()[since:] if bad.search(line) and known not in line]


def wait_for(wanted: str, limit_s: float) -> float:
    """Waits for a state of the kernel; returns how long it took, or -1."""
    begin = time.monotonic()
    while time.monotonic() < begin + limit_s:
        if state() == wanted:
            return time.monotonic() - begin
        time.sleep(0.05)
    return -1.0


def in_the_end() -> str:
    """The kernel's state, which has some time to become ``disabled``."""
    wait_for("disabled", END_S)
    return state()


@contextmanager
def policy(program, name, *arguments):
    """A policy in the kernel; its process is told to stop at the end."""
    command = [program, "run", "--policy", name, *CORES, *arguments]
    loader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        loader.loaded_s = wait_for("enabled", LOAD_S)
        yield loader
    finally:
        loader.send_signal(signal.SIGCONT)
        loader.terminate()
        loader.said = loader.communicate(timeout=END_S)[0]


def load(name: str, seconds: float) -> int:
    """The exit code of a load of ``loads.c``."""
    return subprocess.run([LOADS, name, f"{seconds:g}"], timeout=20 * seconds + 60, check=False).returncode


def background_load(seconds: float) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([LOADS, "stress", f"{seconds:g}"])


def write_inputs():
    """What the real programs read."""
    Path(DATA).write_bytes(Path(LOADS).read_bytes()[:400_000])
    Path(TEXT).write_text("".join(f"{number * 7919 % 20011}\n" for number in range(20011)))
    Path(SOURCE).write_text(SOURCE_TEXT)


def real_programs(seconds):
    """All programs at once, each again and again until the time is over; how often each ran, and its exit codes."""

    def again_and_again(command):
        end, codes = time.monotonic() + seconds, []
        while not codes or time.monotonic() < end:
            words = ["bash", "-o", "pipefail", "-c", command]
            codes.append(
                subprocess.run(words, stdout=subprocess.DEVNULL, timeout=120, check=False).returncode
            )
        return {"runs": len(codes), "codes": sorted(set(codes))}

    write_inputs()
    with ThreadPoolExecutor(len(PROGRAMS)) as pool:
        return dict(zip(PROGRAMS, pool.map(again_and_again, PROGRAMS.values()), strict=True))


def under_load(program, name, seconds):
    """Stress, messages, a storm of processes and real programs, each for a quarter of the time."""
    since, part_s = len(kernel_log()), seconds / 4
    codes, during = [], []
    with policy(program, name, "--everything") as loader:
        # Under EEVDF somebody may wait for most of a second at first.
        for name_of_load, load_s in (("stress", max(part_s, 1.0)), ("messaging", part_s), ("storm", part_s)):
            codes.append(load(name_of_load, load_s))
            during.append(state())
        programs = real_programs(part_s)
        during.append(state())
    return {
        "load_s": loader.loaded_s,
        "codes": codes,
        "programs": programs,
        "during": during,
        "after": in_the_end(),
        "complaints": complaints(since),
        "said": loader.said,
    }


def shares_of_big(seconds, threads):
    """Share of its run time that each thread had on CPUs 0 and 1, from sched_switch."""
    (TRACING / "buffer_size_kb").write_text("8192")
    (TRACING / "trace").write_text("")
    (TRACING / "events/sched/sched_switch/enable").write_text("1")
    time.sleep(seconds)
    (TRACING / "events/sched/sched_switch/enable").write_text("0")
    line = re.compile(r"\[(\d+)\].*? ([\d.]+): sched_switch: .*prev_pid=(\d+) .*next_pid=(\d+) ")
    on, run_s = {}, defaultdict(lambda: [0.0, 0.0])
    for text in (TRACING / "trace").read_text().splitlines():
        found = line.search(text)
        if not found:
            continue
        cpu, at, before, after = int(found[1]), float(found[2]), int(found[3]), int(found[4])
        if cpu in on and on[cpu][0] == before:
            run_s[before][cpu < 2] += at - on[cpu][1]
        on[cpu] = (after, at)
    now = max((at for _, at in on.values()), default=0.0)
    for cpu, (thread, at) in on.items():
        run_s[thread][cpu < 2] += now - at
    return {name: run_s[thread][1] / max(sum(run_s[thread]), 1e-9) for name, thread in threads.items()}


BURSTS = f"exec -a $0 {LOADS} bursts 1000"


def placement(program, name, seconds, what=HOG):
    """Two threads that gain much and two that gain little, on two big and two little cores.

    They begin when the policy knows them, in an order in which the kernel alone puts those that gain on little cores.
    """
    facts = Path("/run/facts.toml")
    facts.write_text("[programs.gains]\nspeedup = 3.0\n[programs.stays]\nspeedup = 1.1\n")
    words = "exec -a {name} bash -c 'read begin; {what}' {name}"
    with policy(program, name, "--everything", "--facts", str(facts)) as loader:
        hogs = {
            f"{kind}{i}": subprocess.Popen(
                ["bash", "-c", words.format(name=kind, what=what)], stdin=subprocess.PIPE, process_group=0
            )
            for kind in ("gains", "stays")
            for i in range(2)
        }
        time.sleep(2)
        for process in hogs.values():
            process.stdin.write(b"\n")
            process.stdin.close()
        time.sleep(0.3)
        shares = shares_of_big(seconds, {name: process.pid for name, process in hogs.items()})
        for process in hogs.values():
            process.kill()
            process.wait()
    return {"load_s": loader.loaded_s, "shares_of_big": shares, "said": loader.said}


def bursts(program, name, seconds):
    """The same with threads that rest now and then."""
    return placement(program, name, seconds, BURSTS)


def killed_loader(program):
    with policy(program, "colab", "--everything") as loader:
        stress = background_load(1)
        time.sleep(0.3)
        loader.kill()
        gone_s = wait_for("disabled", END_S)
    return {"gone_s": gone_s, "code": stress.wait(60)}


def hanging_epoch(program):
    with policy(program, "hsp", "--everything") as loader:
        stress = background_load(1)
        time.sleep(0.3)
        loader.send_signal(signal.SIGSTOP)
        gone_s = wait_for("disabled", END_S)
    return {"gone_s": gone_s, "code": stress.wait(60), "said": loader.said}


CYCLES = 100
ONLINE = Path("/sys/devices/system/cpu/cpu3/online")
ENABLED = Path("/sys/kernel/sched_ext/enable_seq")  # how many schedulers there have been


def lost_core(program, name, seconds):
    """A CPU goes away and comes back, again and again, under load: threads go on, by the same scheduler."""
    since = len(kernel_log())
    with policy(program, name, "--everything") as loader:
        before = ENABLED.read_text()
        stress = background_load(seconds)
        pinned = subprocess.Popen(["taskset", "-c", "3", "sh", "-c", HOG])
        cycles = 0
        while stress.poll() is None or cycles < CYCLES:
            ONLINE.write_text(str(cycles % 2))
            cycles += 1
        ONLINE.write_text("1")
        code = stress.wait(90)
        pinned.kill()
        pinned.wait()
        # Nobody has to be told: an idle core that is back takes what waits.
        hogs = [subprocess.Popen(["sh", "-c", HOG]) for _ in range(4)]
        time.sleep(0.5)
        ran = [cpu_ticks(hog) for hog in hogs]
        for hog in hogs:
            hog.kill()
            hog.wait()
        during, is_same = state(), before == ENABLED.read_text()
    return {
        "cycles": cycles,
        "code": code,
        "ran": ran,
        "during": during,
        "is_same": is_same,
        "after": in_the_end(),
        "complaints": complaints(since),
        "said": loader.said,
    }


def unknown_core(program):
    """A CPU comes online that is in no class."""
    ONLINE.write_text("0")
    cores = ["--big", "0-1", "--little", "2", "--ratio", "2.5"]
    command = [program, "run", "--policy", "cfs", *cores, "--everything"]
    loader = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    loaded_s = wait_for("enabled", LOAD_S)
    ONLINE.write_text("1")
    said = loader.communicate(timeout=END_S)[0]
    return {"loaded_s": loaded_s, "code": loader.returncode, "said": said}


def cpu_ticks(process):
    """How many ticks of 10 ms a process has run (proc_pid_stat(5))."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def killed_while_queued(program):
    with policy(program, "cfs", "--everything"):
        for _ in range(3):
            hogs = [subprocess.Popen(["sh", "-c", HOG]) for _ in range(16)]
            time.sleep(0.5)
            for hog in hogs:
                hog.kill()
            for hog in hogs:
                hog.wait()
        during = state()
    return {"during": during}


def changed_affinities(program):
    with policy(program, "hsp", "--everything"):
        hogs = [subprocess.Popen(["sh", "-c", HOG]) for _ in range(8)]
        end, changes = time.monotonic() + 1.5, 0
        while time.monotonic() < end:
            for i, hog in enumerate(hogs):
                os.sched_setaffinity(hog.pid, {(changes + i) % 4} if changes % 3 else {0, 1, 2, 3})
                changes += 1
            time.sleep(0.01)
        during = state()
        for hog in hogs:
            hog.kill()
            hog.wait()
    return {"during": during, "changes": changes}


EXECUTES = """
import os, threading
command = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; exit 7"
threading.Thread(target=os.execv, args=("/bin/sh", ["sh", "-c", command])).start()
"""


def executing_thread(program):
    """A thread that is not its process's first one executes a program, and takes the first one's number over."""
    with policy(program, "cfs", "--everything"):
        hogs = [subprocess.Popen(["sh", "-c", HOG]) for _ in range(8)]
        codes = [
            subprocess.run([sys.executable, "-c", EXECUTES], check=False, timeout=60).returncode
            for _ in range(3)
        ]
        during = state()
        for hog in hogs:
            hog.kill()
            hog.wait()
    return {"during": during, "codes": codes}


CROWD = 20_000


def arena_kib(loader):
    """Address space of the scheduler's memory, and what of it has pages of the loader, in KiB (proc_pid_smaps(5))."""
    found = re.search(r"^100000000000-.*?^Size: +(\d+) kB.*?^Rss: +(\d+) kB", *smaps(loader))
    return [int(found[1]), int(found[2])]


def smaps(loader):
    return Path(f"/proc/{loader.pid}/smaps").read_text(), re.MULTILINE | re.DOTALL


def crowd(program):
    """More threads than anybody has foreseen come, sleep, are there when a policy is loaded, go on and end."""
    for limit in ("pid_max", "threads-max"):
        Path(f"/proc/sys/kernel/{limit}").write_text("32000")
    with policy(program, "cfs", "--everything") as loader:
        before = arena_kib(loader)
        load = subprocess.Popen([LOADS, "crowd", str(CROWD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        said = load.stdout.readline().decode()
        during = [state()]
    wait_for("disabled", END_S)
    with policy(program, "hsp", "--everything") as another:
        time.sleep(2)
        during.append(state())
        load.stdin.close()
        code = load.wait(120)
        during.append(state())
    return {
        "arena_kib": before,
        "crowd": said,
        "loaded_s": [loader.loaded_s, another.loaded_s],
        "during": during,
        "code": code,
        "said": loader.said + another.said,
    }


def futexes(program):
    """Whom the kernel back end blames for waits at futexes, and how long they were (``examples/futex_waits.rs``)."""
    since = len(kernel_log())
    waits = Path(program).parent / "examples/futex_waits"
    done = subprocess.run([waits], capture_output=True, text=True, timeout=LOAD_S, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    found = json.loads(lines[-1].removeprefix("RESULT ")) if lines else {}
    return {**found, "code": done.returncode, "said": done.stderr, "complaints": complaints(since)}


FAULTS = {
    "killed-loader": killed_loader,
    "hanging-epoch": hanging_epoch,
    "unknown-core": unknown_core,
    "killed-while-queued": killed_while_queued,
    "changed-affinities": changed_affinities,
    "executing-thread": executing_thread,
    "crowd": crowd,
}


def faults(program, names):
    found = {}
    for name in names or FAULTS:
        fault = FAULTS[name]
        since = len(kernel_log())
        found[name] = fault(program)
        found[name]["after"] = in_the_end()
        found[name]["complaints"] = complaints(since)
        print(name, found[name], file=sys.stderr, flush=True)
    return found


def main():
    program, what, *rest = sys.argv[1:]
    if what == "faults":
        result = faults(program, rest)
    elif what == "futexes":
        result = futexes(program)
    else:
        seconds = float(rest[0])
        scenes = {"policies": under_load, "placement": placement, "bursts": bursts, "cores": lost_core}
        one = scenes[what]
        result = {name: one(program, name, seconds) for name in rest[1:]}
    print("RESULT " + json.dumps(result))


if __name__ == "__main__":
    main()
