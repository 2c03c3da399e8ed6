//! Trees of files that look like those of machines.

use std::fs;

use ampsched_computer::Root;
use tempfile::TempDir;

const CPU: &str = "sys/devices/system/cpu";

/// A folder that stands for `/`.
pub struct Tree {
    folder: TempDir,
}

impl Tree {
    /// With some CPUs online, such as `0-3`.
    pub fn new(online: &str) -> Self {
        Self { folder: TempDir::new().unwrap() }.file(&format!("{CPU}/online"), online)
    }

    pub fn file(self, name: &str, text: &str) -> Self {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    /// A file of each CPU from 0 on.
    pub fn per_cpu<T: ToString>(self, file: &str, values: &[T]) -> Self {
        let cpus = values.iter().enumerate();
        cpus.fold(self, |tree, (cpu, value)| {
            tree.file(&format!("{CPU}/cpu{cpu}/{file}"), &value.to_string())
        })
    }

    pub fn pmu(self, name: &str, kind: u32, cpus: &str) -> Self {
        let folder = format!("sys/bus/event_source/devices/{name}");
        self.file(&format!("{folder}/type"), &kind.to_string())
            .file(&format!("{folder}/cpus"), cpus)
    }

    /// A clock, by its first CPU.
    pub fn cpufreq(self, policy: usize, cpus: &str, khz: &str) -> Self {
        let folder = format!("{CPU}/cpufreq/policy{policy}");
        self.file(&format!("{folder}/affected_cpus"), cpus)
            .file(&format!("{folder}/scaling_available_frequencies"), khz)
    }

    pub fn root(&self) -> Root {
        Root::new(self.folder.path())
    }
}
