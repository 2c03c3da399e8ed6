//! Makes equal cores unequal: each worker's thread gets a share of CPU time, as cgroups enforce it.
//!
//! Programs for unequal cores can so be run on computers that have none. What a share does to speed is for
//! [`Runtime::measure_speeds`] to tell: the quota is charged in slices, and other programs take time, too.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use ampsched_computer::{CgroupVersion, Delegation, Root};

use crate::{Error, Runtime};

/// Shortest quota that the kernel accepts (Linux, `kernel/sched/core.c`, `min_cfs_quota_period`).
const QUOTA_MIN: Duration = Duration::from_millis(1);
/// Longest period that the kernel accepts (the same, `max_cfs_quota_period`).
const PERIOD_MAX: Duration = Duration::from_secs(1);
/// Greatest weights (Linux: `MAX_SHARES`, `CGROUP_WEIGHT_MAX`): the quota shall decide, not what else runs on the core.
const SHARES_MAX: &str = "262144";
const WEIGHT_MAX: &str = "10000";
const HINT: &str =
    "run as root, or in a delegated cgroup: systemd-run --user --scope -p Delegate=yes COMMAND";

/// The file that lists the threads of a cgroup: in version 2, one of a threaded group.
fn threads_file(version: CgroupVersion) -> &'static str {
    match version {
        CgroupVersion::V1 => "tasks",
        CgroupVersion::V2 => "cgroup.threads",
    }
}

/// CPU quotas, one per worker; dropping them removes them.
#[derive(Debug)]
pub struct Quotas {
    version: CgroupVersion,
    parent: PathBuf,
    groups: Vec<PathBuf>,
}

impl Quotas {
    /// Creates a cgroup for each share of a core's time (above 0, at most 1), to be used up anew in each period.
    ///
    /// The shorter the period the smoother; but the least quota is 1 ms, so the period must be at least 1 ms / the
    /// least share.
    ///
    /// Errors: a share or period out of range; no CPU controller; cgroups that this process may not change.
    pub fn new(shares: &[f64], period: Duration) -> Result<Self, Error> {
        let own = own_cgroup(&Root::default())?;
        Self::create(own.version, own.folder.to_path_buf(), shares, period)
    }

    fn create(
        version: CgroupVersion,
        parent: PathBuf,
        shares: &[f64],
        period: Duration,
    ) -> Result<Self, Error> {
        let quotas: Result<Vec<Duration>, Error> =
            shares.iter().map(|&share| quota(share, period)).collect();
        // Dropping `made` on an error removes the groups that were made.
        let mut made = Self { version, parent, groups: Vec::new() };
        for (worker, quota) in quotas?.into_iter().enumerate() {
            made.add(worker, quota, period)?;
        }
        Ok(made)
    }

    fn add(&mut self, worker: usize, quota: Duration, period: Duration) -> Result<(), Error> {
        let group = self.parent.join(name_of(worker));
        let (quota_us, period_us) = (quota.as_micros(), period.as_micros());
        make(&group)?;
        self.groups.push(group.clone());
        match self.version {
            CgroupVersion::V1 => {
                write(&group.join("cpu.shares"), SHARES_MAX)?;
                write(&group.join("cpu.cfs_period_us"), &period_us.to_string())?;
                write(&group.join("cpu.cfs_quota_us"), &quota_us.to_string())
            }
            CgroupVersion::V2 => {
                write(&group.join("cgroup.type"), "threaded")?;
                self.enable_controller()?;
                write(&group.join("cpu.weight"), WEIGHT_MAX)?;
                write(&group.join("cpu.max"), &format!("{quota_us} {period_us}"))
            }
        }
    }

    /// Hands the CPU controller down to the groups (v2). A group with processes, as ours is, may do that only if it
    /// is the root or has threaded groups, so the first one must be there.
    fn enable_controller(&self) -> Result<(), Error> {
        let file = self.parent.join("cgroup.subtree_control");
        let has_cpu = read(&file).unwrap_or_default().split_whitespace().any(|name| name == "cpu");
        if has_cpu { Ok(()) } else { write(&file, "+cpu") }
    }

    /// Puts each worker of a runtime under its quota: the first worker under the first one, and so on.
    ///
    /// Errors: another number of workers; cgroups that this process may not change.
    pub fn apply(&self, runtime: &Runtime) -> Result<(), Error> {
        let ids = runtime.thread_ids();
        if ids.len() != self.groups.len() {
            let text = format!("{} quotas for {} workers", self.groups.len(), ids.len());
            return Err(Error::system("CPU quotas", io::Error::other(text), ""));
        }
        for (file, id) in self.thread_files().iter().zip(ids) {
            write(file, &id.to_string())?;
        }
        Ok(())
    }

    /// The files that put a thread under each of the quotas if its identifier is written into them: for threads of
    /// other programs (v2: only for threads of this process).
    pub fn thread_files(&self) -> Vec<PathBuf> {
        self.groups.iter().map(|group| group.join(threads_file(self.version))).collect()
    }
}

impl Drop for Quotas {
    fn drop(&mut self) {
        let back = self.parent.join(threads_file(self.version));
        for group in &self.groups {
            let threads = fs::read_to_string(group.join(threads_file(self.version)));
            for thread in threads.unwrap_or_default().lines() {
                // A thread that has ended meanwhile is gone from its group, too.
                let _ = fs::write(&back, thread);
            }
            // Nothing can be done about a group that stays; its name tells where it came from.
            let _ = fs::remove_dir(group);
        }
    }
}

fn name_of(worker: usize) -> String {
    format!("ampsched-{}-{worker}", process::id())
}

/// CPU time per period.
fn quota(share: f64, period: Duration) -> Result<Duration, Error> {
    let error = |text: String| Err(Error::system("CPU quota", io::Error::other(text), ""));
    if !(share > 0.0 && share <= 1.0) {
        return error(format!("share {share} is not above 0 and at most 1"));
    }
    let quota = period.mul_f64(share);
    if quota < QUOTA_MIN || period > PERIOD_MAX {
        return error(format!(
            "{share} of {period:?} is {quota:?}; at least {QUOTA_MIN:?} of at most {PERIOD_MAX:?} is possible"
        ));
    }
    Ok(quota)
}

/// This process's cgroup of the CPU controller.
fn own_cgroup(root: &Root) -> Result<Delegation, Error> {
    Delegation::of_controller(root, "cpu").ok_or_else(|| {
        let text = io::Error::new(
            io::ErrorKind::NotFound,
            "no cgroup hierarchy with a CPU controller is mounted",
        );
        Error::system("CPU quotas", text, "mount -t cgroup2 none /sys/fs/cgroup")
    })
}

fn make(group: &Path) -> Result<(), Error> {
    match fs::create_dir(group) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::system(format!("creating {}", group.display()), error, HINT))
        }
        _ => Ok(()),
    }
}

fn read(file: &Path) -> Result<String, Error> {
    fs::read_to_string(file)
        .map_err(|error| Error::system(format!("reading {}", file.display()), error, HINT))
}

fn write(file: &Path, text: &str) -> Result<(), Error> {
    fs::write(file, text).map_err(|error| {
        Error::system(format!("writing {text:?} into {}", file.display()), error, HINT)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_controller_it_is_said_what_to_mount() {
        let error = own_cgroup(&Root::new("/nonexistent")).unwrap_err().to_string();
        assert_eq!(
            error,
            "CPU quotas: no cgroup hierarchy with a CPU controller is mounted (mount -t cgroup2 none /sys/fs/cgroup)"
        );
    }

    #[test]
    fn v1_groups_get_period_and_quota() {
        let root = tempfile::tempdir().unwrap();
        let period = Duration::from_millis(10);
        let quotas =
            Quotas::create(CgroupVersion::V1, root.path().into(), &[0.5, 0.2], period).unwrap();
        let files = quotas.thread_files();
        assert!(files[1].ends_with(format!("ampsched-{}-1/tasks", process::id())));
        let get = |name: &str| fs::read_to_string(files[1].with_file_name(name)).unwrap();
        assert_eq!(
            (get("cpu.cfs_period_us"), get("cpu.cfs_quota_us")),
            ("10000".into(), "2000".into())
        );
    }

    #[test]
    fn v2_groups_are_threaded_and_the_controller_is_enabled() {
        let root = tempfile::tempdir().unwrap();
        let period = Duration::from_millis(20);
        let quotas =
            Quotas::create(CgroupVersion::V2, root.path().into(), &[0.25], period).unwrap();
        let file = &quotas.thread_files()[0];
        let get = |name: &str| fs::read_to_string(file.with_file_name(name)).unwrap();
        assert_eq!((get("cgroup.type"), get("cpu.max")), ("threaded".into(), "5000 20000".into()));
        assert_eq!(fs::read_to_string(root.path().join("cgroup.subtree_control")).unwrap(), "+cpu");
    }

    #[test]
    fn errors_name_the_file_and_what_to_do() {
        let period = Duration::from_millis(2);
        let error_of = |share: f64| {
            let made = Quotas::create(CgroupVersion::V1, "/nowhere".into(), &[share], period);
            made.unwrap_err().to_string()
        };
        assert_eq!(error_of(0.0), "CPU quota: share 0 is not above 0 and at most 1");
        assert_eq!(error_of(f64::NAN), "CPU quota: share NaN is not above 0 and at most 1");
        assert_eq!(
            error_of(0.25),
            "CPU quota: 0.25 of 2ms is 500µs; at least 1ms of at most 1s is possible"
        );
        let text = error_of(1.0);
        assert!(
            text.starts_with(&format!(
                "creating /nowhere/ampsched-{}-0: No such file",
                process::id()
            )),
            "{text}"
        );
        assert!(text.ends_with("(run as root, or in a delegated cgroup: systemd-run --user --scope -p Delegate=yes COMMAND)"));
    }
}
