"""Policies in kernels of arm64, which know frequencies and power: clocks that they set, energy by which they place.

Needs the program that loads policies there: ``make test-live-arm64`` builds it.
"""

from pathlib import Path

import pytest

from ampsched import Catalog
from ampsched.vm import exact
from ampsched.vm.exact.policy import core_options

MACHINE = "hikey960:little=2:big=2"
"""Two Cortex-A53 (CPUs 0 and 1) and two Cortex-A73 (2 and 3), five frequencies each, with known powers."""
RANGES = {"policy0": (533_000, 1_844_000), "policy2": (903_000, 2_362_000)}
KERNEL = "6.18"
LIMIT_S = 3000

# Limits and frequency of both clocks, behind a word; whoever needs it reads it from its file.
LOOK = """
cat >/run/look <<'END'
look() {
    for clock in policy0 policy2; do
        folder=/sys/devices/system/cpu/cpufreq/$clock
        read -r least <$folder/scaling_min_freq
        read -r most <$folder/scaling_max_freq
        read -r now <$folder/scaling_cur_freq
        echo "$1 $clock $least $most $now"
    done
}
END
. /run/look
"""


def run(cwd: Path, script: str, policy: str) -> list[str]:
    """The lines that a shell script prints in a guest, in which ``$SESSION`` begins a session."""
    guest = exact.Exact(
        Catalog.shipped().machine(MACHINE), kernel=KERNEL, architecture="aarch64", governor="schedutil"
    )
    program = exact.loader("aarch64")
    session = [str(program), "run", f"--policy={policy}", "--everything", "--run-dir=/run/ampsched"]
    words = " ".join([*session, *core_options(guest)])
    work = exact.Work(["sh", "-uc", LOOK + script], files=[program], variables={"SESSION": words}, cwd=cwd)
    done = exact.run(guest, work, limit_s=LIMIT_S)
    print(done.output, done.report)
    assert done.code == 0, (done.output, done.console[-3000:])
    return done.output.splitlines()


def looks(lines: list[str], word: str) -> list[tuple[str, int, int, int]]:
    """Clock, least, most and present kHz of each look behind a word."""
    found = [line.split()[1:] for line in lines if line.startswith(f"{word} policy")]
    return [(clock, int(least), int(most), int(now)) for clock, least, most, now in found]


def limits(lines: list[str], word: str) -> dict[str, tuple[int, int]]:
    """The limits of each clock in the last look behind a word."""
    return {clock: (least, most) for clock, least, most, _ in looks(lines, word)}


# A loop beside somebody who looks every 20 ms.
CLOCKS = """
cat >/run/load <<'END'
. /run/look
i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done &
sleep 0.2
for i in 1 2 3 4 5 6 7 8; do sleep 0.02; look during; done
wait
END
look before
$SESSION --allow-dvfs -- sh /run/load 2>&1
echo code $?
sleep 0.05
look after
"""


@pytest.mark.parametrize("policy", ["utilisation-aware", "iks"])
def test_clocks_are_set_and_put_back(policy: str, tmp_path: Path) -> None:
    lines = run(tmp_path, CLOCKS, policy)
    assert "code 0" in lines
    assert limits(lines, "before") == RANGES
    assert limits(lines, "after") == RANGES
    seen = looks(lines, "during")
    assert len(seen) == 16
    assert any((least, most) != RANGES[clock] for clock, least, most, _ in seen), "it sets some"
    # A thread runs all the time, whose ticks ask for what has been set; a cluster on which nobody runs waits.
    followed = [least <= now <= most for _, least, most, now in seen]
    pairs = list(zip(followed[::2], followed[1::2], strict=True))
    assert sum(one or other for one, other in pairs) >= len(pairs) - 1, (
        "what was just changed may take a tick"
    )


# Hardly anybody computes, so the fast clock gets to its lowest frequency; the guardian ends that.
KILLED = """
is_lowest() { [ "$(cat /sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq)" = 903000 ]; }
look before
$SESSION --allow-dvfs -- sleep 60 2>&1 &
session=$!
i=0; while [ $i -lt 200 ] && ! is_lowest; do sleep 0.05; i=$((i+1)); done
sleep 0.05
look during
kill -9 $session
i=0; while [ $i -lt 40 ] && is_lowest; do sleep 0.05; i=$((i+1)); done
sleep 0.05
look after
state() { cat /sys/kernel/sched_ext/state; }
i=0; while [ $i -lt 100 ] && [ "$(state)" != disabled ]; do sleep 0.05; i=$((i+1)); done
cat /sys/kernel/sched_ext/state
"""


def test_clocks_of_a_killed_session_are_put_back(tmp_path: Path) -> None:
    lines = run(tmp_path, KILLED, "utilisation-aware")
    assert limits(lines, "before") == RANGES
    least_khz, _ = RANGES["policy2"]
    assert limits(lines, "during")["policy2"] == (least_khz, least_khz)
    assert limits(lines, "after") == RANGES
    assert lines[-1] == "disabled"


# A thread that computes for a moment every 10 ms. At first it may use big cores only, then all. Which CPU it is on
# after each rest (field 39, proc_pid_stat(5)) is written down. No other program runs meanwhile.
SMALL = """
mkfifo /run/never
cat >/run/small <<'END'
exec 9<>/run/never
rounds() {
    round=0
    while [ $round -lt $1 ]; do
        i=0; while [ $i -lt 20 ]; do i=$((i+1)); done
        read -t 0.01 -r nothing <&9
        read -r line </proc/$$/stat
        echo "$2 $line" >>/run/rounds
        round=$((round+1))
    done
}
taskset -p c $$
rounds 20 bound
taskset -p f $$
rounds 50 free
END
$SESSION -- sh /run/small 2>&1
echo code $?
cat /run/rounds
"""


def cpus(lines: list[str], word: str) -> list[int]:
    """On which CPU the thread was after each rest."""
    return [int(line.rpartition(")")[2].split()[36]) for line in lines if line.startswith(f"{word} ")]


def test_energy_is_known_and_a_small_thread_goes_to_a_little_core(tmp_path: Path) -> None:
    lines = run(tmp_path, SMALL, "eas")
    assert "code 0" in lines
    assert not any("energy model" in line for line in lines)
    assert set(cpus(lines, "bound")) <= {2, 3}
    # Its first rest began on a big core.
    free = cpus(lines, "free")
    assert len(free) == 50
    assert set(free[2:]) <= {0, 1}


def test_without_energy_it_is_cfs_and_the_thread_stays(tmp_path: Path) -> None:
    lines = run(tmp_path, "umount /sys/kernel/debug\n" + SMALL, "eas")
    assert "code 0" in lines
    why = "the machine has no energy model (no power is known of its clusters): it schedules as cfs does"
    assert any(why in line for line in lines)
    assert set(cpus(lines, "bound")) <= {2, 3}
    assert set(cpus(lines, "free")) <= {2, 3}
