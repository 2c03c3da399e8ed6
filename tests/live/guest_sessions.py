"""Runs inside the virtual machine: sessions as users have them, by the program ``ampsched-live``.

Prints one JSON object.

Arguments: the program that loads policies, and names of scenes.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from guest import CORES, LOAD_S, STATE, TRACING, complaints, in_the_end, kernel_log, wait_for

LOADER = sys.argv[1]
LIVE = str(Path(LOADER).with_name("ampsched-live"))
WAIT_S = 60.0  # unloading takes long where instructions are translated
BURSTS_S = 4
SCHED_EXT = 7  # include/uapi/linux/sched.h
HOG = "while :; do :; done"
CGROUPS = Path("/sys/fs/cgroup")
# Three threads besides the first; a line starts a child.
THREADS = """
import subprocess, sys, threading
def count():
    while True: sum(range(10000))
for _ in range(3): threading.Thread(target=count, daemon=True).start()
for line in sys.stdin: subprocess.Popen(["sh", "-c", "while :; do :; done"], stdin=subprocess.DEVNULL)
"""
# 4 x 2,500 processes that end at once; prints how many ended well.
STORM = """
import os
def storm():
    well = 0
    for _ in range(2500):
        child = os.fork()
        if child == 0: os._exit(0)
        well += os.waitpid(child, 0)[1] == 0
    return well
pipes = []
for _ in range(4):
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, b"%d " % storm()); os._exit(0)
    os.close(writer); pipes.append(reader)
print(sum(int(os.read(reader, 64)) for reader in pipes))
"""


# Says whose it is, its class (proc_pid_stat(5)) and what it may gain; then it waits for its end.
WHO = """
read -r line < /proc/$$/stat
set -- ${line##*) }
echo it is $(id -u), class ${39}
grep -E 'NoNewPrivs|CapEff' /proc/$$/status
exec sleep 600
"""


def live(*arguments):
    """``ampsched-live`` with arguments: exit code, output, errors."""
    done = subprocess.run([LIVE, *arguments], capture_output=True, text=True, timeout=60, check=False)
    return [done.returncode, done.stdout, done.stderr]


def status():
    code, output, _ = live("status", "--json")
    return json.loads(output) if code == 0 else None


def until(holds, limit_s=WAIT_S):
    """Waits for something that must come; returns the last value."""
    end = time.monotonic() + limit_s
    while not (value := holds()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


@contextmanager
def session(*arguments, backend="scx"):
    """A running session of ``ampsched-live``; stopped at the end if it has not been."""
    command = [LIVE, "run", *CORES, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        process.loaded_s = wait_for("enabled", LOAD_S) if backend == "scx" else 0
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        # Twice: the command is not waited for.
        time.sleep(1)
        if process.poll() is None:
            process.terminate()
        process.said = process.communicate(timeout=WAIT_S)[0]


@contextmanager
def hogs(count, *command):
    """Processes that never end, each in a group of its own."""
    words = command or ("sh", "-c", HOG)
    all_of_them = [subprocess.Popen(words, process_group=0) for _ in range(count)]
    try:
        yield [process.pid for process in all_of_them]
    finally:
        for process in all_of_them:
            process.kill()
            process.wait()


def text_of(file):
    """What a file of /proc says; nothing if its process has just ended."""
    try:
        return Path(file).read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def threads_of(pid):
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except (FileNotFoundError, ProcessLookupError):
        return []


def children_of(pid):
    lists = (text_of(f"/proc/{pid}/task/{tid}/children") for tid in threads_of(pid))
    return [int(child) for text in lists for child in text.split()]


def classes(pid):
    """The scheduling classes of a process's threads, each once."""
    return sorted({os.sched_getscheduler(tid) for tid in threads_of(pid)})


def touches_of(pid, tid):
    """What is not as usual about a thread."""
    state = Path(f"/proc/{pid}/task/{tid}/stat").read_text().rpartition(")")[2].split()[0]
    signs = {
        "pinned": os.sched_getaffinity(tid) != {0, 1, 2, 3},
        "in SCHED_EXT": os.sched_getscheduler(tid) == SCHED_EXT,
        "stopped": state == "T",
        "preferred": os.getpriority(os.PRIO_PROCESS, tid) < 0,
    }
    return [f"thread {tid} is {sign}" for sign, holds in signs.items() if holds]


def touched():
    """Threads that are pinned, in the extensible class, stopped or preferred, and cgroups frozen or throttled."""
    found = []
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes():
                found += [sign for tid in threads_of(pid) for sign in touches_of(pid, tid)]
        except (FileNotFoundError, ProcessLookupError):
            continue
    for name, usual in (("cgroup.freeze", "0"), ("cpu.max", "max 100000")):
        texts = {file: file.read_text().strip() for file in CGROUPS.rglob(name)}
        found += [f"{file} is {text}" for file, text in texts.items() if text != usual]
    return found


def touched_in_the_end():
    """The same when whoever puts back has had time to."""
    until(lambda: not touched())
    return touched()


def told():
    """A command under COLAB, as the program chooses: what status, a second session, stop, trace and result say."""
    trace, result = Path("/run/out.pftrace"), Path("/run/result.json")
    three = f"sh -c '{HOG}' & sh -c '{HOG}' & sh -c '{HOG}'"
    files = [f"--trace={trace}", f"--result={result}"]
    with session("--policy=colab", *files, "--", "sh", "-c", three) as process:
        seen = until(lambda: (now := status()) and len(now["threads"]) >= 4 and now["epochs"] > 50 and now)
        table = live("status")[1]
        second = live("run", "--policy=hsp", *CORES, "--", "true")
        direct = subprocess.run(
            [LOADER, "run", "--policy=hsp", *CORES, "--everything"],
            capture_output=True,
            text=True,
            check=False,
        )
        pids = [thread["pid"] for thread in seen["threads"]] if seen else []
        during = sorted({os.sched_getscheduler(pid) for pid in pids})
        stopped = live("stop")
        at_end = STATE.read_text().strip()
        after = sorted({os.sched_getscheduler(pid) for pid in pids})
        nobody = live("status")
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        code = process.wait(WAIT_S)
    data = trace.read_bytes()
    texts = ("Cores of this computer", "swapper", "sh", "speeds")
    return {
        "loaded_s": process.loaded_s,
        "said": process.said,
        "status": seen,
        "table": table,
        "second": second,
        "direct": [direct.returncode, direct.stderr],
        "classes": [during, after],
        "stopped": stopped,
        "at_end": at_end,
        "nobody": nobody,
        "code": code,
        "trace": {text: data.count(text.encode()) for text in texts},
        "result": json.loads(result.read_text()),
    }


def wakeups(pids):
    """Times in us from sched_waking to sched_switch of some threads, as the kernel's trace has them."""
    event = re.compile(r"([\d.]+): sched_(waking|switch): (?:.*next_)?(?:.* )?pid=(\d+) ")
    woken, times_us = {}, []
    for text in (TRACING / "trace").read_text().splitlines():
        if not (found := event.search(text)) or (pid := int(found[3])) not in pids:
            continue
        if found[2] == "waking":
            woken[pid] = float(found[1])
        elif pid in woken:
            times_us.append(1e6 * (float(found[1]) - woken.pop(pid)))
    return times_us


def latency():
    """Programs that compute and rest, in turns: what the session has measured, and what the kernel's trace says."""
    events = [TRACING / f"events/sched/sched_{name}/enable" for name in ("waking", "switch")]
    result = Path("/run/latency.json")
    (TRACING / "buffer_size_kb").write_text("16384")
    bursts = " ".join(f"{os.environ['LOADS']} bursts {BURSTS_S} &" for _ in range(8))
    with session("--policy=eevdf", f"--result={result}", "--", "sh", "-c", f"{bursts} wait") as process:
        for event in events:
            event.write_text("1")
        process.wait(WAIT_S)
        for event in events:
            event.write_text("0")
    told = json.loads(result.read_text())["latency"]
    tids = {thread["tid"] for thread in told["threads"] if thread["program"] == "loads"}
    [loads] = [row["latency"] for row in told["programs"] if row["program"] == "loads"]
    return {
        "loads": loads,
        "all": told["all"],
        "lost": told["lost"],
        "traced_us": wakeups(tids),
        "said": process.said,
    }


def command():
    """What a user types, without a word about back ends."""
    words = [LIVE, "run", "--policy=colab", *CORES]
    script = f"cat {STATE}; exit 7"
    done = subprocess.run([*words, "--", "sh", "-c", script], capture_output=True, text=True, check=False)
    return {"code": done.returncode, "output": done.stdout, "errors": done.stderr}


def processes():
    """``--pid``: a process with threads and a child, one SCHED_BATCH, one real-time; others are left alone."""
    program = subprocess.Popen([sys.executable, "-c", THREADS], stdin=subprocess.PIPE, process_group=0)
    with (
        hogs(1, "sleep", "600") as [other],
        hogs(1, "chrt", "-b", "0", "sh", "-c", HOG) as [batch],
        hogs(1, "chrt", "-f", "1", "sleep", "600") as [real],
    ):
        until(lambda: len(threads_of(program.pid)) == 4 and classes(real) == [os.SCHED_FIFO])
        pids = [f"--pid={pid}" for pid in (program.pid, batch, real)]
        with session("--policy=hsp", *pids) as process:
            until(lambda: classes(program.pid) == [SCHED_EXT] and classes(batch) == [SCHED_EXT])
            program.stdin.write(b"\n")
            program.stdin.flush()
            [child] = until(lambda: children_of(program.pid)) or [0]
            seen = until(lambda: (now := status()) and len(now["threads"]) >= 6 and now)
            members = {"program": program.pid, "child": child, "other": other, "batch": batch, "real": real}
            during = {name: classes(pid) for name, pid in members.items()}
            stopped = live("stop")
        after = {name: classes(pid) for name, pid in members.items()}
        program.kill()
        program.wait()
        os.kill(child, signal.SIGKILL)
    return {
        "during": during,
        "after": after,
        "threads": sorted({thread["pid"] == other for thread in seen["threads"]}) if seen else None,
        "stopped": stopped,
        "said": process.said,
    }


def cgroup():
    """``--cgroup``: who is in it or comes later, and nobody else, not even the session if it is there itself."""
    folder = CGROUPS / "chosen"
    (folder / "below").mkdir(parents=True)
    with hogs(3) as [inside, below, later], hogs(1, "sleep", "600") as [other]:
        (folder / "cgroup.procs").write_text(str(inside))
        (folder / "below/cgroup.procs").write_text(str(below))
        with session("--policy=colab", f"--cgroup={folder}") as process:
            (folder / "cgroup.procs").write_text(str(process.pid))
            (folder / "cgroup.procs").write_text(str(later))
            until(lambda: all(classes(pid) == [SCHED_EXT] for pid in (inside, below, later)))
            members = {
                "inside": inside,
                "below": below,
                "later": later,
                "other": other,
                "session": process.pid,
            }
            during = {name: classes(pid) for name, pid in members.items()}
            stopped = live("stop")
        after = {name: classes(pid) for name, pid in members.items() if name != "session"}
    return {"during": during, "after": after, "stopped": stopped, "said": process.said}


def guardian_of(pid):
    """The guardian among the children of a session."""
    commands = {child: text_of(f"/proc/{child}/cmdline").split("\0") for child in children_of(pid)}
    return next((child for child, words in commands.items() if words[1:2] == ["guardian"]), None)


def killed():
    """SIGKILL of the session in the kernel, of its guardian, of both: whose class it was is put back."""
    found = {}
    with hogs(3) as pids:
        chosen = [f"--pid={pid}" for pid in pids]

        def all_are(wanted):
            return all(classes(pid) == [wanted] for pid in pids)

        with session("--policy=hsp", "--quiet", *chosen) as process:
            until(lambda: all_are(SCHED_EXT))
            guardian = guardian_of(process.pid)
            os.kill(guardian, signal.SIGKILL)
            another = until(lambda: guardian_of(process.pid) not in (None, guardian))
            found["replaced"] = bool(another)
            process.kill()
            found["session"] = bool(until(lambda: all_are(os.SCHED_OTHER)))
        found["state"] = in_the_end()
        with session("--policy=hsp", "--quiet", *chosen) as process:
            until(lambda: all_are(SCHED_EXT))
            process.send_signal(signal.SIGSTOP)
            os.kill(guardian_of(process.pid), signal.SIGKILL)
            process.kill()
            process.wait(WAIT_S)
            found["state_both"] = in_the_end()
            found["left"] = all_are(SCHED_EXT)
            found["restore"] = subprocess.run(
                [LIVE, "restore"], capture_output=True, text=True, check=False
            ).stderr
            found["both"] = all_are(os.SCHED_OTHER)
    return found


def user():
    """A command of another user in the kernel's class, and what its session tells a service manager."""
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind("/run/notify")
    manager.settimeout(WAIT_S)
    os.environ |= {"NOTIFY_SOCKET": "/run/notify", "WATCHDOG_USEC": "2000000"}
    try:
        words = ["--policy=hsp", "--user=nobody", "--", "sh", "-c", WHO]
        with session(*words) as process:
            told = [manager.recv(64).decode() for _ in range(3)]
            process.terminate()
            while told[-1] != "STOPPING=1" and len(told) < 100:
                told.append(manager.recv(64).decode())
            code = process.wait(WAIT_S)
    finally:
        for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC"):
            del os.environ[name]
    return {"told": [told[0], *sorted({*told[1:-1]}), told[-1]], "code": code, "said": process.said}


def stopped():
    """A session in the kernel that is stopped: its guardian puts classes back, and it ends when it goes on."""
    with hogs(3) as pids:

        def all_are(wanted):
            return all(classes(pid) == [wanted] for pid in pids)

        with session("--policy=hsp", "--quiet", *(f"--pid={pid}" for pid in pids)) as process:
            taken = until(lambda: all_are(SCHED_EXT))
            process.send_signal(signal.SIGSTOP)
            back = until(lambda: all_are(os.SCHED_OTHER))
            process.send_signal(signal.SIGCONT)
            code = process.wait(WAIT_S)
        return {"taken": bool(taken), "back": bool(back), "code": code, "left": all_are(os.SCHED_OTHER)}


def storm():
    """10,000 short processes under COLAB."""
    with session("--policy=colab", "--", sys.executable, "-c", STORM) as process:
        code = process.wait(240)
    return {"loaded_s": process.loaded_s, "code": code, "said": process.said}


def executed():
    """A program that executes another: what is known of it is that of the other from then on."""
    facts = Path("/run/facts.toml")
    facts.write_text("[programs.gains]\nspeedup = 3.0\n[programs.bash]\nspeedup = 1.1\n")
    script = f"read line </run/fifo; exec -a gains bash -c '{HOG}'"
    os.mkfifo("/run/fifo")

    def known():
        now = status()
        return [[row["program"], row["speedup"], row["tid"]] for row in now["threads"]] if now else []

    with session("--policy=hsp", f"--facts={facts}", "--", "bash", "-c", script) as process:
        before = until(lambda: (rows := known()) and rows[0][0] == "bash" and rows)
        Path("/run/fifo").write_text("\n")
        after = until(lambda: (rows := known()) and rows[0][0] == "gains" and rows)
        os.kill(after[0][2] if after else process.pid, signal.SIGKILL)
        code = process.wait(WAIT_S)
    return {"before": before, "after": after, "code": code, "said": process.said}


def daemon():
    """SIGKILL of the daemon, of its guardian, of both, while it holds programs back by the cgroup of version 2."""
    found = {}
    with hogs(5) as pids:
        chosen = [f"--pid={pid}" for pid in pids]
        arguments = [
            "--backend=daemon",
            "--policy=hfee",
            "--degrade",
            "--quiet",
            "--param=epoch_ms=100",
            *chosen,
        ]

        def held():
            return [file for file in CGROUPS.rglob("cgroup.freeze") if file.read_text().strip() == "1"]

        def holds():
            return until(held) and guardian_of(process.pid)

        with session(*arguments, backend="daemon") as process:
            guardian = holds()
            found["held"] = bool(guardian)
            os.kill(guardian, signal.SIGKILL)
            found["replaced"] = bool(until(lambda: guardian_of(process.pid) not in (None, guardian)))
            holds()
            process.kill()
            found["after_session"] = touched_in_the_end()
        with session(*arguments, backend="daemon") as process:
            guardian = holds()
            process.send_signal(signal.SIGSTOP)
            os.kill(guardian, signal.SIGKILL)
            process.kill()
            process.wait(WAIT_S)
            found["left"] = bool(touched())
            found["restore"] = live("restore")[0]
            found["after_both"] = touched_in_the_end()
    return found


SCENES = {
    "told": told,
    "latency": latency,
    "command": command,
    "processes": processes,
    "cgroup": cgroup,
    "killed": killed,
    "user": user,
    "stopped": stopped,
    "storm": storm,
    "executed": executed,
    "daemon": daemon,
}


def main():
    found = {}
    for name in sys.argv[2:] or SCENES:
        since = len(kernel_log())
        found[name] = SCENES[name]()
        found[name] |= {"state": in_the_end(), "touched": touched(), "complaints": complaints(since)}
        print(name, found[name], file=sys.stderr, flush=True)
    print("RESULT " + json.dumps(found))


main()
