//! Which cores there are, and which of them are alike: read from the system, or given by hand.

use std::collections::BTreeMap;
use std::path::Path;

use ampsched_model::InputError;
use ampsched_task::{WorkerClass, Workers};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::Error;

/// Where Linux describes devices.
const DEVICES: &str = "/sys/devices";
/// PMU types that stand for kinds of cores (Linux, `arch/x86/events/intel/core.c`: hybrid PMUs), the fastest first.
const HYBRID_PMUS: [&str; 3] = ["cpu_core", "cpu_atom", "cpu_lowpower"];
/// Largest number of a CPU that can be named; that of the system calls.
const CPU_MAX: usize = CpuSet::MAX_CPU - 1;

/// Cores that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreClass {
    /// Name, such as `big`.
    pub name: String,
    /// Speed relative to other classes: what is supposed until it has been measured.
    pub speed: f64,
    /// Numbers of the CPUs, in ascending order.
    pub cpus: Vec<usize>,
}

/// The cores that workers are pinned to, one worker per core.
#[derive(Clone, Debug, PartialEq)]
pub struct Cores {
    classes: Vec<CoreClass>,
}

impl Cores {
    /// The cores that this thread may use, by class: those of equal `cpu_capacity`, or else of one hybrid PMU type, the
    /// fastest first. Without either, all cores are one class.
    ///
    /// A capacity is also the class's supposed speed. Hybrid PMUs say nothing about speed: classes get speed 1 until
    /// [`crate::Runtime::measure_speeds`] or the first loops have measured it.
    ///
    /// Errors: the system does not say which CPUs the thread may use.
    pub fn detect() -> Result<Self, Error> {
        let set = sched_getaffinity(None)
            .map_err(|error| Error::system("CPUs of this thread", error, ""))?;
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect();
        Ok(Self::detect_in(Path::new(DEVICES), &allowed))
    }

    fn detect_in(devices: &Path, allowed: &[usize]) -> Self {
        let classes =
            by_capacity(devices, allowed).or_else(|| by_pmu(devices, allowed)).unwrap_or_else(
                || vec![CoreClass { name: "core".into(), speed: 1.0, cpus: allowed.to_vec() }],
            );
        Self { classes }
    }

    /// Reads `big:2.5=0-3;little=4-7`: a name, if wanted its speed (1 otherwise), and CPUs.
    ///
    /// Errors: another form, a speed that is not above 0, a CPU that is listed twice.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let classes: Result<Vec<_>, _> = text.split(';').map(|part| class(text, part)).collect();
        let classes = classes?;
        let mut seen = BTreeMap::new();
        for class in &classes {
            for &cpu in &class.cpus {
                if seen.insert(cpu, ()).is_some() {
                    return Err(error(text, format!("CPU {cpu} is listed twice")).into());
                }
            }
        }
        Ok(Self { classes })
    }

    /// All classes, in the order of their workers.
    pub fn classes(&self) -> &[CoreClass] {
        &self.classes
    }

    /// CPU of each worker: those of the first class, then those of the second, ...
    pub fn cpus(&self) -> impl Iterator<Item = usize> + '_ {
        self.classes.iter().flat_map(|class| class.cpus.iter().copied())
    }

    /// The workers, one per core.
    ///
    /// Errors: none at all, too many, or a speed out of range.
    pub fn workers(&self) -> Result<Workers, Error> {
        let class_of = |class: &CoreClass| WorkerClass {
            name: class.name.clone(),
            speed: class.speed,
            count: class.cpus.len(),
            grab_s: 0.0,
        };
        Ok(Workers::new(self.classes.iter().map(class_of).collect())?)
    }
}

/// Classes by `cpu_capacity`; `None` if a CPU does not state it or all state the same.
fn by_capacity(devices: &Path, allowed: &[usize]) -> Option<Vec<CoreClass>> {
    let mut cpus_of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &cpu in allowed {
        let file = devices.join(format!("system/cpu/cpu{cpu}/cpu_capacity"));
        let capacity = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
        cpus_of.entry(capacity).or_default().push(cpu);
    }
    if cpus_of.len() < 2 || cpus_of.contains_key(&0) {
        return None;
    }
    let count = cpus_of.len();
    let named = |(place, (capacity, cpus)): (usize, (u32, Vec<usize>))| CoreClass {
        name: capacity_name(place, count),
        speed: f64::from(capacity),
        cpus,
    };
    Some(cpus_of.into_iter().rev().enumerate().map(named).collect())
}

/// `big` and `little`, with `mid1`, `mid2`, ... between them.
fn capacity_name(place: usize, count: usize) -> String {
    match place {
        0 => "big".into(),
        _ if place + 1 == count => "little".into(),
        _ => format!("mid{place}"),
    }
}

/// Classes by hybrid PMU type; `None` if there are not two, or a CPU belongs to none.
fn by_pmu(devices: &Path, allowed: &[usize]) -> Option<Vec<CoreClass>> {
    let mut classes = Vec::new();
    for pmu in HYBRID_PMUS {
        let Ok(text) = std::fs::read_to_string(devices.join(pmu).join("cpus")) else { continue };
        let mut cpus = cpu_list(text.trim())?;
        cpus.retain(|cpu| allowed.contains(cpu));
        if !cpus.is_empty() {
            let name = pmu.trim_start_matches("cpu_").to_owned();
            classes.push(CoreClass { name, speed: 1.0, cpus });
        }
    }
    let listed: usize = classes.iter().map(|class| class.cpus.len()).sum();
    (classes.len() >= 2 && listed == allowed.len()).then_some(classes)
}

/// Reads a list of CPUs as Linux writes it: `0-3,8`.
fn cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last > CPU_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

fn class(text: &str, part: &str) -> Result<CoreClass, Error> {
    let hint = "write NAME=CPUS or NAME:SPEED=CPUS, as in big:2.5=0-3;little=4-7";
    let form = || {
        let message = format!("{:?} is not a class of cores", part.trim());
        error(text, message).with_hint(hint)
    };
    let (head, list) = part.split_once('=').ok_or_else(form)?;
    let (name, speed) = match head.split_once(':') {
        Some((name, speed)) => (name.trim(), speed.trim().parse().map_err(|_| form())?),
        None => (head.trim(), 1.0),
    };
    let mut cpus = cpu_list(list).ok_or_else(|| {
        let message = format!("{:?} is not a list of CPUs from 0 to {CPU_MAX}", list.trim());
        error(text, message).with_hint(hint)
    })?;
    if name.is_empty() {
        return Err(form().into());
    }
    cpus.sort_unstable();
    if !(speed > 0.0 && f64::is_finite(speed)) {
        return Err(error(text, format!("speed {speed} of {name:?} is not above 0")).into());
    }
    Ok(CoreClass { name: name.to_owned(), speed, cpus })
}

fn error(text: &str, message: String) -> InputError {
    InputError::new(format!("cores {text:?}"), "", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A directory that looks like `/sys/devices`.
    fn devices(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = root.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        root
    }

    fn summary(cores: &Cores) -> Vec<(&str, f64, &[usize])> {
        cores.classes().iter().map(|c| (c.name.as_str(), c.speed, c.cpus.as_slice())).collect()
    }

    fn capacities(values: &[u32]) -> tempfile::TempDir {
        let names: Vec<String> =
            (0..values.len()).map(|cpu| format!("system/cpu/cpu{cpu}/cpu_capacity")).collect();
        let texts: Vec<String> = values.iter().map(|value| format!("{value}\n")).collect();
        let files: Vec<(&str, &str)> =
            names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
        devices(&files)
    }

    #[test]
    fn capacities_make_classes_the_fastest_first() {
        let root = capacities(&[446, 446, 1024, 1024, 871]);
        let cores = Cores::detect_in(root.path(), &[0, 1, 2, 3, 4]);
        assert_eq!(
            summary(&cores),
            [
                ("big", 1024.0, &[2, 3][..]),
                ("mid1", 871.0, &[4][..]),
                ("little", 446.0, &[0, 1][..])
            ]
        );
        // Only what the thread may use counts.
        let cores = Cores::detect_in(root.path(), &[0, 1]);
        assert_eq!(summary(&cores), [("core", 1.0, &[0, 1][..])]);
    }

    #[test]
    fn hybrid_pmus_make_classes_if_capacities_do_not() {
        let root = devices(&[("cpu_core/cpus", "0-3\n"), ("cpu_atom/cpus", "4-5,8\n")]);
        let cores = Cores::detect_in(root.path(), &[0, 1, 2, 3, 4, 5, 8]);
        assert_eq!(
            summary(&cores),
            [("core", 1.0, &[0, 1, 2, 3][..]), ("atom", 1.0, &[4, 5, 8][..])]
        );
        let with_stranger = Cores::detect_in(root.path(), &[0, 4, 7]);
        assert_eq!(summary(&with_stranger), [("core", 1.0, &[0, 4, 7][..])]);
    }

    #[test]
    fn cores_can_be_given_by_hand() {
        let cores = Cores::parse("big:2.5=2-3; little=0,1").unwrap();
        assert_eq!(summary(&cores), [("big", 2.5, &[2, 3][..]), ("little", 1.0, &[0, 1][..])]);
        assert_eq!(cores.cpus().collect::<Vec<_>>(), [2, 3, 0, 1]);
        assert_eq!(cores.workers().unwrap().len(), 4);
    }

    #[test]
    fn errors_name_the_part_and_the_form() {
        let error_of = |text: &str| Cores::parse(text).unwrap_err().to_string();
        assert_eq!(
            error_of("big"),
            "cores \"big\": \"big\" is not a class of cores (write NAME=CPUS or NAME:SPEED=CPUS, as in big:2.5=0-3;little=4-7)"
        );
        assert!(error_of("big=3-1").contains("\"3-1\" is not a list of CPUs from 0 to 1023"));
        assert!(error_of("big=99999").contains("is not a list of CPUs"));
        assert!(error_of("big:0=0").contains("speed 0 of \"big\" is not above 0"));
        assert!(error_of("big:nan=0").contains("speed NaN of \"big\" is not above 0"));
        assert!(error_of("=0").contains("is not a class of cores"));
        assert_eq!(error_of("a=0-2;b=2"), "cores \"a=0-2;b=2\": CPU 2 is listed twice");
    }

    #[test]
    fn this_computer_has_cores() {
        assert!(!Cores::detect().unwrap().workers().unwrap().is_empty());
    }
}
