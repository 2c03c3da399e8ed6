//! Which cores there are, and which of them are alike: found by the system's evidence, or given by hand.

use std::collections::BTreeSet;

use ampsched_computer::{CpuClass, CpuClasses, Root, online_cpus, parse_cpus_once};
use ampsched_model::InputError;
use ampsched_task::{WorkerClass, Workers};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::Error;

/// Largest number of a CPU that a thread can be pinned to; that of the system calls.
const CPU_MAX: usize = CpuSet::MAX_CPU - 1;
/// How cores are given by hand.
const FORM: &str = "write NAME=CPUS or NAME:SPEED=CPUS, as in big:2.5=0-3;little=4-7";

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
    /// The cores that this thread may use, by class, the fastest first: as the crate `ampsched-computer` finds the
    /// computer's classes, by `cpu_capacity`, by the PMUs of hybrid processors or by the highest frequencies.
    ///
    /// Capacities and frequencies are also the classes' supposed speeds, relative to the computer's fastest class.
    /// PMUs say nothing about speed: classes get speed 1 until [`crate::Runtime::measure_speeds`] or the first loops
    /// have measured it.
    ///
    /// Errors: the system does not say which CPUs the thread may use, or its evidence on them contradicts itself.
    pub fn detect() -> Result<Self, Error> {
        let set = sched_getaffinity(None)
            .map_err(|error| Error::system("CPUs of this thread", error, ""))?;
        let allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect();
        Ok(Self::detect_in(&Root::default(), &allowed)?)
    }

    fn detect_in(root: &Root, allowed: &BTreeSet<usize>) -> Result<Self, InputError> {
        // What a thread may use is online, also where a container shows another list, or none.
        let online = online_cpus(root).unwrap_or_default();
        let found = CpuClasses::find(root, &online.union(allowed).copied().collect());
        let found =
            found.map_err(|error| error.with_hint(format!("state them by hand: {FORM}")))?;
        let own = found.among(allowed);
        Ok(Self { classes: own.classes().iter().rev().map(CoreClass::found).collect() })
    }

    /// Reads `big:2.5=0-3;little=4-7`: a name, if wanted its speed (1 otherwise), and CPUs.
    ///
    /// Errors: another form, a speed that is not above 0, a CPU that is listed twice.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let classes: Result<Vec<_>, _> = text.split(';').map(|part| class(text, part)).collect();
        let classes = classes?;
        let mut seen = BTreeSet::new();
        for class in &classes {
            for &cpu in &class.cpus {
                if !seen.insert(cpu) {
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

impl CoreClass {
    fn found(class: &CpuClass) -> Self {
        Self {
            name: class.name.clone(),
            speed: class.relative_speed.unwrap_or(1.0),
            cpus: class.cpus.iter().copied().collect(),
        }
    }
}

fn class(text: &str, part: &str) -> Result<CoreClass, InputError> {
    let form = || {
        let message = format!("{:?} is not a class of cores", part.trim());
        error(text, message).with_hint(FORM)
    };
    let (head, list) = part.split_once('=').ok_or_else(form)?;
    let (name, speed) = match head.split_once(':') {
        Some((name, speed)) => (name.trim(), speed.trim().parse().map_err(|_| form())?),
        None => (head.trim(), 1.0),
    };
    if name.is_empty() {
        return Err(form());
    }
    if !(speed > 0.0 && f64::is_finite(speed)) {
        return Err(error(text, format!("speed {speed} of {name:?} is not above 0")));
    }
    let cpus = parse_cpus_once(&source(text), name, list)?;
    match cpus.last() {
        None => Err(error(text, format!("{name:?} has no CPU")).with_hint(FORM)),
        Some(&last) if last > CPU_MAX => {
            let message = format!("no thread can be pinned to CPU {last}, at most to {CPU_MAX}");
            Err(error(text, message))
        }
        Some(_) => Ok(CoreClass { name: name.to_owned(), speed, cpus: cpus.into_iter().collect() }),
    }
}

fn source(text: &str) -> String {
    format!("cores {text:?}")
}

fn error(text: &str, message: String) -> InputError {
    InputError::new(source(text), "", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A directory that looks like `/`, with CPUs 0 to 7 online.
    fn system(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        for &(path, text) in [("sys/devices/system/cpu/online", "0-7")].iter().chain(files) {
            let file = folder.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let root = Root::new(folder.path());
        (folder, root)
    }

    fn three_clusters() -> (tempfile::TempDir, Root) {
        let values = ["446", "446", "446", "446", "871", "871", "1024", "1024"];
        let name = |cpu: usize| format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity");
        let names: Vec<String> = (0..8).map(name).collect();
        let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(values).collect();
        system(&files)
    }

    fn summary(cores: &Cores) -> Vec<(&str, f64, &[usize])> {
        cores.classes().iter().map(|c| (c.name.as_str(), c.speed, c.cpus.as_slice())).collect()
    }

    fn detected(root: &Root, allowed: &[usize]) -> Cores {
        Cores::detect_in(root, &allowed.iter().copied().collect()).unwrap()
    }

    #[test]
    fn the_fastest_class_comes_first() {
        let (_folder, root) = three_clusters();
        let cores = detected(&root, &[0, 1, 2, 3, 4, 5, 6, 7]);
        let expected = [
            ("big", 1.0, &[6, 7][..]),
            ("middle", 871.0 / 1024.0, &[4, 5]),
            ("little", 446.0 / 1024.0, &[0, 1, 2, 3]),
        ];
        assert_eq!(summary(&cores), expected);
    }

    #[test]
    fn what_the_thread_may_use_keeps_its_class() {
        let (_folder, root) = three_clusters();
        let little = 446.0 / 1024.0;
        assert_eq!(summary(&detected(&root, &[0, 1])), [("little", little, &[0, 1][..])]);
        let cores = detected(&root, &[1, 7]);
        assert_eq!(summary(&cores), [("big", 1.0, &[7][..]), ("little", little, &[1])]);
    }

    #[test]
    fn pmus_say_nothing_of_speeds() {
        let (_folder, root) = system(&[
            ("sys/bus/event_source/devices/cpu_core/type", "4"),
            ("sys/bus/event_source/devices/cpu_core/cpus", "0-3"),
            ("sys/bus/event_source/devices/cpu_atom/type", "10"),
            ("sys/bus/event_source/devices/cpu_atom/cpus", "4-7"),
        ]);
        let cores = detected(&root, &[0, 1, 6, 7]);
        assert_eq!(summary(&cores), [("big", 1.0, &[0, 1][..]), ("little", 1.0, &[6, 7])]);
    }

    #[test]
    fn what_a_container_shows_of_cpus_does_not_matter() {
        let (_folder, root) = system(&[("sys/devices/system/cpu/online", "0-1")]);
        assert_eq!(summary(&detected(&root, &[4, 5])), [("all", 1.0, &[4, 5][..])]);
        let nothing = Root::new("/nonexistent");
        assert_eq!(summary(&detected(&nothing, &[0, 1])), [("all", 1.0, &[0, 1][..])]);
    }

    #[test]
    fn evidence_that_cannot_be_used_is_said() {
        let (_folder, root) = system(&[("sys/devices/system/cpu/cpu0/cpu_capacity", "fast")]);
        let error = Cores::detect_in(&root, &[0].into()).unwrap_err().to_string();
        let expected = "cpu0/cpu_capacity: \"fast\" is not a whole number (state them by hand: write NAME=CPUS or \
                        NAME:SPEED=CPUS, as in big:2.5=0-3;little=4-7)";
        assert!(error.ends_with(expected), "{error}");
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
            "cores \"big\": \"big\" is not a class of cores (write NAME=CPUS or NAME:SPEED=CPUS, as in \
             big:2.5=0-3;little=4-7)"
        );
        assert_eq!(
            error_of("big=3-1"),
            "cores \"big=3-1\": big: \"3-1\" of \"3-1\" is not a CPU or a range of CPUs (such as 0-3,8; CPUs are \
             below 8192)"
        );
        assert!(
            error_of("big=1024").contains("no thread can be pinned to CPU 1024, at most to 1023")
        );
        assert!(error_of("big=0;little= ").contains("\"little\" has no CPU"));
        assert!(error_of("big:0=0").contains("speed 0 of \"big\" is not above 0"));
        assert!(error_of("big:nan=0").contains("speed NaN of \"big\" is not above 0"));
        assert!(error_of("=0").contains("is not a class of cores"));
        assert_eq!(error_of("a=0-2;b=2"), "cores \"a=0-2;b=2\": CPU 2 is listed twice");
    }

    #[test]
    fn h34_a_cpu_counts_once_within_a_list_too() {
        for list in ["0,0,0", "0-2,1", "1,0-2", "0-1 1", "3,2-3"] {
            let error = Cores::parse(&format!("big={list}")).unwrap_err().to_string();
            assert!(error.contains("big: CPU ") && error.ends_with(" is listed twice"), "{error}");
        }
        assert_eq!(Cores::parse("big=2,0-1").unwrap().cpus().collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn this_computer_has_cores() {
        assert!(!Cores::detect().unwrap().workers().unwrap().is_empty());
    }
}
