//! Files in which the kernel says what this computer is and what runs on it.

use std::collections::BTreeSet;

use ampsched_computer::{
    ByHand, Capabilities, CoreMap, CpuClasses, Delegation, Domain, EnergyModels, Proc, boot_id,
    core_kinds, detect_cores, online_cpus,
};
use ampsched_live_factors::{Pmu, SensorSurvey, Sensors, WANTED};
use ampsched_live_session::Scope;

use super::folder::{with_files, write};
use super::{Format, one_line};

const MOST: usize = 1500;
/// Number of the process that the files of `/proc` are about: nobody has it.
const PID: i32 = i32::MAX;
/// Of so many CPUs each is looked at.
const CPUS_MAX: usize = 16;

pub static PROC: Format = Format {
    name: "proc",
    seeds: || {
        let stat = format!(
            "{PID} (a (b) c) S 1 {PID} 1 0 -1 4194304 90 0 0 0 7 3 0 0 20 0 1 0 4711 2 3 4 5 6 7 8 9 0 0 0 0 \
             0 0 0 17 3 0 0\n"
        );
        vec![format!(
            "== stat\n{stat}== task/stat\n{stat}== task/schedstat\n123456 7890 12\n== task/children\n{PID} 12\n\
             == task/status\nName:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7\n\
             == status\nName:\tx\nUid:\t1000\t1001\t1000\t1000\n\
             == cgroup\n0::/user.slice\n4:cpu,cpuacct:/a\n1:freezer:/\n== cmdline\nsh\0-c\0x\0\n\
             == boot_id\nf3c5a7e0-1b1c-4a6e-9d0a-000000000000\n"
        )]
    },
    read: |text| {
        let place = |name: &str| match name.strip_prefix("task/") {
            Some(name) => Some(format!("proc/{PID}/task/{PID}/{name}")),
            None if name == "boot_id" => Some("proc/sys/kernel/random/boot_id".to_owned()),
            None => Some(format!("proc/{PID}/{name}")),
        };
        with_files(text, place, |root| {
            let proc = Proc::new(root.clone());
            if let Ok(stat) = proc.process(PID) {
                let _ = (stat.is_dead(), stat.cpu_ns());
            }
            let _ = (
                proc.run_and_wait_ns(PID, PID),
                proc.cpus_allowed(PID, PID),
                proc.user(PID),
                proc.cgroups(PID),
                proc.command(PID),
                boot_id(root),
            );
            if let Ok(mut scope) = Scope::trees(&proc, &[PID]) {
                assert!(scope.find(root, &proc).iter().all(|stat| !stat.is_dead()));
            }
        });
    },
    most: MOST,
    share: 1,
};
pub static CGROUPS: Format = Format {
    name: "cgroups",
    seeds: || {
        vec![
            "== self/mounts\nnone / ext4 rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n\
             cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\ntracefs /trace tracefs rw 0 0\n\
             == self/cgroup\n4:cpu,cpuacct:/a\n1:freezer:/\n0::/u\n== self/status\nCapEff:\t000001ffffffffff\n\
             == cgroup/cpu/a/cgroup.procs\n7\n== self/schedstat\n1 2 3\n"
                .to_owned(),
            "== self/mounts\ncgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n== self/cgroup\n0::/user.slice\n\
             == cgroup/user.slice/cgroup.controllers\ncpu freezer\n== cgroup/user.slice/cgroup.procs\n7\n9\n\
             == cgroup/user.slice/a/cgroup.procs\n11\n== sys/kernel/osrelease\n6.12.0\n== self/status\nCapEff:\t0\n"
                .to_owned(),
        ]
    },
    read: |text| {
        let place = |name: &str| match name.strip_prefix("cgroup/") {
            Some(name) => Some(format!("sys/fs/cgroup/{name}")),
            None => Some(format!("proc/{name}")),
        };
        with_files(text, place, |root| {
            let found = Capabilities::detect(root);
            let _ = (found.rows(), found.holds("CAP_KILL"));
            let proc = Proc::new(root.clone());
            for controller in ["cpu", "freezer"] {
                let Some(own) = Delegation::of_controller(root, controller) else { continue };
                match Scope::cgroup(root, &own.folder) {
                    Ok(mut scope) => drop(scope.find(root, &proc)),
                    Err(error) => one_line(&error.to_string()),
                }
            }
        });
    },
    most: MOST,
    share: 1,
};
pub static SYSFS: Format = Format {
    name: "sysfs",
    seeds: || {
        vec![
            "== cpu/online\n0-3\n== cpu/cpu0/cpu_capacity\n160\n== cpu/cpu1/cpu_capacity\n1024\n\
             == cpu/cpu2/cpu_capacity\n160\n\
             == cpu/cpu3/cpu_capacity\n1024\n== cpu/cpufreq/policy0/affected_cpus\n0 2\n\
             == cpu/cpufreq/policy0/scaling_available_frequencies\n600000 1200000\n"
                .to_owned(),
            "== cpu/online\n0-1\n== cpu/cpu0/cpufreq/cpuinfo_max_freq\n2000000\n\
             == cpu/cpu1/cpufreq/cpuinfo_max_freq\n1200000\n\
             == cpu/cpu0/regs/identification/midr_el1\n0x00000000411fd070\n== pmu/cpu_core/cpus\n0\n\
             == pmu/cpu_core/type\n4\n\
             == pmu/cpu_atom/cpus\n1\n== pmu/cpu_atom/type\n10\n"
                .to_owned(),
            "== cpu/online\n0-1\n== cpu/cpufreq/policy0/affected_cpus\n0-1\n\
             == cpu/cpufreq/policy0/cpuinfo_min_freq\n400000\n\
             == cpu/cpufreq/policy0/cpuinfo_max_freq\n2000000\n== cpu/cpufreq/policy0/scaling_available_governors\n\
             userspace\n\
             == proc/cpuinfo\nprocessor\t: 0\ncpu MHz\t\t: 1999.9\n\nprocessor\t: 1\ncpu MHz\t\t: 1200\n"
                .to_owned(),
            "== cpu/online\n0-1\n== cpu/cpu0/cpu_capacity\n400\n== cpu/cpu1/cpu_capacity\n1024\n\
             == proc/self/mounts\ndebugfs /sys/kernel/debug debugfs rw 0 0\n\
             == energy/cpu0/cpus\n0\n== energy/cpu0/flags\n0x3\n== energy/cpu0/ps:400000/frequency\n400000\n\
             == energy/cpu0/ps:400000/power\n28700\n== energy/cpu0/ps:400000/inefficient\n0\n\
             == energy/cpu1/cpus\n1\n== energy/cpu1/flags\n0x1\n== energy/cpu1/ps:900000/frequency\n900000\n\
             == energy/cpu1/ps:900000/power\n243400\n"
                .to_owned(),
        ]
    },
    read: |text| {
        let place = |name: &str| match name.split_once('/')? {
            ("cpu", rest) => Some(format!("sys/devices/system/cpu/{rest}")),
            ("pmu", rest) => Some(format!("{PMUS}/{rest}")),
            ("proc", rest) => Some(format!("proc/{rest}")),
            ("energy", rest) => Some(format!("sys/kernel/debug/energy_model/{rest}")),
            _ => None,
        };
        with_files(text, place, |root| {
            let Ok(online) = online_cpus(root) else { return };
            let few: BTreeSet<usize> = online.into_iter().take(CPUS_MAX).collect();
            for error in [CpuClasses::find(root, &few).err(), core_kinds(root, &few).err()] {
                error.iter().for_each(|error| one_line(&error.to_string()));
            }
            let _ = Capabilities::detect(root).rows();
            match detect_cores(root, &ByHand::default()) {
                Ok((cores, _)) => {
                    assert!(!cores.describe().is_empty());
                    let _ = EnergyModels::describe(&cores, "stated by hand");
                    let powers = cores.domains().iter().flat_map(|domain| &domain.power);
                    powers.for_each(|point| {
                        assert!(point.power_mw.is_finite() && point.power_mw > 0.0);
                    });
                }
                Err(error) => one_line(&error.to_string()),
            }
        });
    },
    most: MOST,
    share: 1,
};
pub static PMU: Format = Format {
    name: "pmu",
    seeds: || {
        vec![
            "== cpu/type\n4\n== cpu/events/cpu-cycles\nevent=0x3c\n== cpu/events/instructions\n\
             event=0xc0,umask=1,inv\n\
             == cpu/format/event\nconfig:0-7,32-35\n== cpu/format/umask\nconfig:8-15\n== cpu/format/inv\nconfig:23\n"
                .to_owned(),
            "== cpu_core/type\n4\n== cpu_core/cpus\n0-3\n== cpu_core/events/cache-misses\nconfig=0x2e,config1=1\n\
             == cpu_atom/type\n10\n== cpu_atom/cpus\n4-7\n"
                .to_owned(),
            "== armv8_cortex_a53/type\n8\n== armv8_cortex_a53/cpus\n0-3\n== armv8_cortex_a53/events/inst_retired\n\
             event=0x08\n\
             == armv8_cortex_a53/format/event\nconfig:0-15\n"
                .to_owned(),
        ]
    },
    read: |text| {
        let place = |name: &str| Some(format!("{PMUS}/{name}"));
        with_files(text, place, |root| match Pmu::find(root) {
            Ok(pmus) => {
                for pmu in pmus {
                    let _ = WANTED.map(|counter| pmu.encoding(counter));
                }
            }
            Err(error) => one_line(&error.to_string()),
        });
    },
    most: MOST,
    share: 1,
};
pub static SENSORS: Format = Format {
    name: "sensors",
    seeds: || {
        vec![
            "== powercap/intel-rapl:0/name\npackage-0\n== powercap/intel-rapl:0/energy_uj\n12345\n\
             == powercap/intel-rapl:0/max_energy_range_uj\n262143328850\n\
             ++ later\n== powercap/intel-rapl:0/energy_uj\n345\n"
                .to_owned(),
            "== hwmon/hwmon0/name\nina231\n== hwmon/hwmon0/power1_input\n1500000\n== hwmon/hwmon0/power1_label\nA15\n\
             == hwmon/hwmon1/energy2_input\n99\n== hwmon/hwmon1/energy2_label\nbig\n++ later\n\
             == hwmon/hwmon1/energy2_input\n200\n"
                .to_owned(),
            "== thermal/thermal_zone0/type\nbig\n== thermal/thermal_zone0/temp\n-1500\n\
             == thermal/thermal_zone1/type\nlittle-thermal\n== thermal/thermal_zone1/temp\n45000\n"
                .to_owned(),
        ]
    },
    read: |text| {
        let place = |name: &str| {
            let (group, rest) = name.split_once('/')?;
            let is_known = matches!(group, "powercap" | "hwmon" | "thermal");
            is_known.then(|| format!("sys/class/{group}/{rest}"))
        };
        // What stands behind the mark is there when sensors are read again.
        let (before, later) = text.split_once("++ later\n").unwrap_or((text, ""));
        with_files(before, place, |root| {
            let cores = two_clusters();
            let survey = match SensorSurvey::make(root, &cores) {
                Ok(survey) => survey,
                Err(error) => return one_line(&error.to_string()),
            };
            let _ = (survey.describe(&cores), survey.has_power_of_clusters());
            let mut sensors = Sensors::new(root.clone(), &survey);
            sensors.read(0);
            write(&root.path("/"), later, place);
            sensors.read(100_000_000);
            let power_mw = sensors.power_mw().into_values();
            let mut told = power_mw.chain(sensors.temperature_c().into_values());
            assert!(told.all(|factor| factor.value.is_finite()));
            for energy in sensors.energy() {
                assert!(energy.energy_j.is_finite() && energy.power_w.is_finite(), "{energy:?}");
            }
        });
    },
    most: MOST,
    share: 1,
};

const PMUS: &str = "sys/bus/event_source/devices";

/// A big and a little cluster of two cores each.
fn two_clusters() -> CoreMap {
    let cluster = |class: u8| Domain {
        class,
        cpus: vec![2 * usize::from(class), 2 * usize::from(class) + 1],
        freqs_mhz: vec![1000],
        cpufreq: Vec::new(),
        relative_speed: None,
        power: Vec::new(),
    };
    CoreMap::new(vec![cluster(0), cluster(1)])
}
