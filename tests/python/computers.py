"""Files of computers as Linux shows them, by hand from public facts about them; no computer's files were copied."""

from collections.abc import Iterable, Mapping
from pathlib import Path

CPU = "sys/devices/system/cpu"
Files = dict[str, str]


def write(root: Path, files: Mapping[str, str]) -> Path:
    """Writes the files below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


def collected(files: Mapping[str, str]) -> str:
    """What the collecting script prints of them."""
    return "ampsched computer 1\n" + "".join(f"==> /{name} <==\n{text}\n\n" for name, text in files.items())


def _clock(cpus: Iterable[int], policy: int, khz: list[int], *, listed: bool) -> Files:
    own = list(cpus)
    files = {
        f"{CPU}/cpufreq/policy{policy}/affected_cpus": " ".join(map(str, own)),
        f"{CPU}/cpufreq/policy{policy}/cpuinfo_min_freq": str(min(khz)),
        f"{CPU}/cpufreq/policy{policy}/cpuinfo_max_freq": str(max(khz)),
    }
    if listed:
        files[f"{CPU}/cpufreq/policy{policy}/scaling_available_frequencies"] = " ".join(map(str, khz))
    for cpu in own:
        files |= {name.replace(f"cpufreq/policy{policy}", f"cpu{cpu}/cpufreq"): text for name, text in files.items()
                  if "/policy" in name}  # fmt: skip
    return files


def _cache(cpu: int, index: int, level: int, kind: str, size: str, shared: str) -> Files:
    folder = f"{CPU}/cpu{cpu}/cache/index{index}"
    return {
        f"{folder}/level": str(level),
        f"{folder}/type": kind,
        f"{folder}/size": size,
        f"{folder}/shared_cpu_list": shared,
    }


def phone() -> Files:
    """Snapdragon 845: four Kryo 385 Silver, four Gold; mainline's frequencies (some of them) and coefficients."""
    files = {f"{CPU}/online": "0-7", f"{CPU}/cpu0/cpufreq/cpuinfo_transition_latency": "0"}
    silver, gold = [300000, 1056000, 1766400], [825600, 1996800, 2803200]
    files |= _clock(range(4), 0, silver, listed=True) | _clock(range(4, 8), 4, gold, listed=True)
    for cpu in range(8):
        files |= {
            f"{CPU}/cpu{cpu}/cpu_capacity": "385" if cpu < 4 else "1024",
            f"{CPU}/cpu{cpu}/regs/identification/midr_el1": "0x00000000517f803c"
            if cpu < 4
            else "0x00000000516f802d",
            f"{CPU}/cpu{cpu}/topology/core_cpus_list": str(cpu),
        }
        files |= _cache(cpu, 2, 2, "Unified", "128K" if cpu < 4 else "256K", str(cpu))
        files |= _cache(cpu, 3, 3, "Unified", "2048K", "0-7")
    for first, mw in ((0, (20, 60, 154)), (4, (160, 560, 1508))):
        folder = f"sys/kernel/debug/energy_model/cpu{first}"
        files |= {f"{folder}/cpus": f"{first}-{first + 3}", f"{folder}/flags": "0x1"}
        for khz, power in zip(gold if first else silver, mw, strict=True):
            files |= {f"{folder}/ps:{khz}/frequency": str(khz), f"{folder}/ps:{khz}/power": str(power * 1000)}
    files["sys/class/thermal/thermal_zone0/type"] = "cpu0-thermal"
    files["sys/class/thermal/thermal_zone0/trip_point_0_temp"] = "90000"
    files["sys/class/thermal/thermal_zone0/trip_point_0_type"] = "passive"
    return files


def _intel(p: int, e: int, low: int, mhz: tuple[int, int, int], model: int, base_mhz: int) -> Files:
    """P-cores with two threads (one of them clocked 200 MHz higher), E-cores in fours, and low-power E-cores."""
    threads, total = 2 * p, 2 * p + e + low
    files = {
        f"{CPU}/online": f"0-{total - 1}",
        "proc/cpuinfo": f"processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: {model}\n\n",
        "proc/sys/kernel/sched_itmt_enabled": "1",
        "sys/bus/event_source/devices/cpu_core/type": "4",
        "sys/bus/event_source/devices/cpu_core/cpus": f"0-{threads - 1}",
        "sys/bus/event_source/devices/cpu_atom/type": "10",
        "sys/bus/event_source/devices/cpu_atom/cpus": f"{threads}-{total - 1}",
        "sys/class/powercap/intel-rapl:0/name": "package-0",
        "sys/class/powercap/intel-rapl:0/constraint_0_name": "long_term",
        "sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw": "28000000",
        "sys/class/powercap/intel-rapl:0/constraint_0_time_window_us": "27983872",
    }
    for cpu in range(total):
        core = cpu // 2 * 2
        siblings = f"{core}-{core + 1}" if cpu < threads else str(cpu)
        four = (cpu - threads) // 4 * 4 + threads
        is_low = cpu >= threads + e
        l2 = siblings if cpu < threads else f"{threads + e}-{total - 1}" if is_low else f"{four}-{four + 3}"
        top = mhz[0] if cpu < threads else mhz[2 if is_low else 1]
        files |= _clock([cpu], cpu, [400_000, 1000 * (top + 200 * (cpu in (0, 1)))], listed=False)
        files |= {f"{CPU}/cpu{cpu}/topology/core_cpus_list": siblings}
        files |= {f"{CPU}/cpu{cpu}/cpufreq/base_frequency": str(1000 * base_mhz)} if cpu < threads else {}
        files |= _cache(cpu, 2, 2, "Unified", "1280K" if cpu < threads else "2048K", l2)
        if not is_low:
            files |= _cache(cpu, 3, 3, "Unified", "18432K", f"0-{threads + e - 1}")
    return files


def laptop() -> Files:
    """Core i7-1360P: 4 P-cores with 8 threads, 8 E-cores."""
    return _intel(4, 8, 0, (4800, 3700, 0), 0xBA, 2200)


def meteor_lake() -> Files:
    """Core Ultra 7 155H: 6 P-cores with 12 threads, 8 E-cores, 2 low-power E-cores without an L3."""
    return _intel(6, 8, 2, (4600, 3800, 2500), 0xAA, 1400)
