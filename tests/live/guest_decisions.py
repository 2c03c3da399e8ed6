"""Runs inside the virtual machine: policies in the kernel, which write down what they decide, under a mix of load.

Arguments: the program that loads policies, seconds, and names of policies. Leaves NAME.decisions where it runs, and
prints one JSON object.
"""

import json
import os
import subprocess
import sys
import time

from guest import HOG, LOADS, complaints, in_the_end, kernel_log, policy


def mix(seconds):
    """Messages between processes, two that come and go, hogs whose cores and weights change; the messages' exit
    code."""
    hogs = [subprocess.Popen(["sh", "-c", HOG]) for _ in range(5)]
    messages = subprocess.Popen([LOADS, "messaging", f"{seconds:g}"])
    end, changes = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for i, hog in enumerate(hogs):
            allowed = {(changes + i) % 4} if changes % 3 else {0, 1, 2, 3}
            os.sched_setaffinity(hog.pid, allowed)
            os.setpriority(os.PRIO_PROCESS, hog.pid, (changes + i) % 20)
            changes += 1
        subprocess.run(["true"], check=True)
        time.sleep(0.005)
    for hog in hogs:
        hog.kill()
        hog.wait()
    return messages.wait(60)


def decisions(program, name, seconds):
    since = len(kernel_log())
    with policy(program, name, "--everything", "--decisions", f"{name}.decisions") as loader:
        code = mix(seconds)
    return {
        "code": code,
        "after": in_the_end(),
        "complaints": complaints(since),
        "said": loader.said,
    }


def main():
    program, seconds, *names = sys.argv[1:]
    found = {name: decisions(program, name, float(seconds)) for name in names}
    print("RESULT " + json.dumps(found))


if __name__ == "__main__":
    main()
