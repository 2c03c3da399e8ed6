//! Clocks of clusters, by the limits of cpufreq (Documentation/admin-guide/pm/cpufreq.rst): with the least and
//! the greatest frequency alike, every governor has that one.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ampsched_computer::{Domain, Root};
use ampsched_model::ClusterId;
use serde::{Deserialize, Serialize};

use crate::{Journal, Session};

/// A limit of a clock that is about to be touched for the first time, as a journal has it: never a path, and nothing
/// but a number that is to be written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockTouch {
    /// Number of the policy of cpufreq.
    pub policy: u32,
    /// Which of its limits.
    pub limit: Limit,
    /// What it was.
    pub khz: u64,
}

/// A limit of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The least frequency.
    Least,
    /// The greatest frequency.
    Greatest,
}

impl Limit {
    /// Its file below a policy's folder.
    fn file(self) -> &'static str {
        match self {
            Self::Least => "scaling_min_freq",
            Self::Greatest => "scaling_max_freq",
        }
    }
}

impl ClockTouch {
    /// The file that is touched.
    pub fn file(&self, root: &Root) -> PathBuf {
        cpufreq_folder(root, self.policy).join(self.limit.file())
    }

    /// Writes what it was.
    ///
    /// # Errors
    ///
    /// The file is not there, or cannot be written.
    pub fn put_back(&self, root: &Root) -> io::Result<()> {
        write(&self.file(root), &self.khz.to_string())
    }
}

fn cpufreq_folder(root: &Root, policy: u32) -> PathBuf {
    root.path(format!("/sys/devices/system/cpu/cpufreq/policy{policy}"))
}

/// Writes a control file, which must be there.
fn write(file: &Path, text: &str) -> io::Result<()> {
    File::options().write(true).truncate(true).open(file)?.write_all(text.as_bytes())
}

/// Sets clocks.
#[derive(Debug)]
pub struct Clocks {
    root: Root,
    /// Limits that are in the journal.
    touched: BTreeSet<PathBuf>,
}

impl Clocks {
    /// None touched yet.
    pub fn new(root: Root) -> Self {
        Self { root, touched: BTreeSet::new() }
    }

    /// Carries out what a policy wants of a cluster's clock, and tells its mirror; returns the frequency in MHz if it
    /// has been set. Without the user's leave nothing happens; what fails is noted.
    pub fn set_cluster<T: Serialize + From<ClockTouch>>(
        &mut self,
        session: &mut Session,
        cluster: ClusterId,
        mhz: u32,
        journal: &mut Journal<T>,
    ) -> Option<u32> {
        if !session.settings.allow_dvfs {
            return None;
        }
        let set = self.set(session.cores.domain(cluster), mhz, journal);
        let mhz = set.unwrap_or_else(|error| {
            session.note("clocks", &error);
            None
        })?;
        session.driver.set_frequency(cluster, mhz);
        Some(mhz)
    }

    /// The same for a limit.
    pub fn limit_cluster<T: Serialize + From<ClockTouch>>(
        &mut self,
        session: &mut Session,
        cluster: ClusterId,
        mhz: u32,
        journal: &mut Journal<T>,
    ) {
        if !session.settings.allow_dvfs {
            return;
        }
        if let Err(error) = self.limit(session.cores.domain(cluster), mhz, journal) {
            session.note("limits of clocks", &error);
        }
    }

    /// Sets a domain to the lowest of its frequencies that is at least as fast as asked for, or to its highest;
    /// returns it in MHz, or none if the domain has no clock that can be set.
    fn set<T: Serialize + From<ClockTouch>>(
        &mut self,
        domain: &Domain,
        mhz: u32,
        journal: &mut Journal<T>,
    ) -> io::Result<Option<u32>> {
        let reached = domain.freqs_mhz.iter().find(|&&own| own >= mhz).or(domain.freqs_mhz.last());
        let Some(&mhz) = reached.filter(|_| !domain.cpufreq.is_empty()) else { return Ok(None) };
        for policy in &domain.cpufreq {
            self.set_policy(policy, mhz, journal)?;
        }
        Ok(Some(mhz))
    }

    /// Limits a domain to its highest frequency of at most `mhz`, or to its lowest; `u32::MAX` lifts the limit.
    fn limit<T: Serialize + From<ClockTouch>>(
        &mut self,
        domain: &Domain,
        mhz: u32,
        journal: &mut Journal<T>,
    ) -> io::Result<()> {
        let allowed = domain.freqs_mhz.iter().rev().find(|&&own| own <= mhz);
        let Some(&mhz) = allowed.or(domain.freqs_mhz.first()) else { return Ok(()) };
        for policy in &domain.cpufreq {
            let [_, greatest] = self.limits(policy, journal)?;
            write(&greatest, &khz(mhz).to_string())?;
        }
        Ok(())
    }

    fn set_policy<T: Serialize + From<ClockTouch>>(
        &mut self,
        policy: &str,
        mhz: u32,
        journal: &mut Journal<T>,
    ) -> io::Result<()> {
        let [least, greatest] = self.limits(policy, journal)?;
        let now: u64 = fs::read_to_string(&greatest)?.trim().parse().unwrap_or(0);
        let order = if khz(mhz) > now { [&greatest, &least] } else { [&least, &greatest] };
        for file in order {
            write(file, &khz(mhz).to_string())?;
        }
        Ok(())
    }

    /// The files of a policy's least and greatest frequency, which are in the journal then.
    fn limits<T: Serialize + From<ClockTouch>>(
        &mut self,
        policy: &str,
        journal: &mut Journal<T>,
    ) -> io::Result<[PathBuf; 2]> {
        let number = policy.strip_prefix("policy").and_then(|number| number.parse().ok());
        let policy = number.ok_or_else(|| io::Error::other(format!("{policy} has no number")))?;
        let folder = cpufreq_folder(&self.root, policy);
        // The greatest is put back first, so that the limits never cross.
        let limits = [Limit::Least, Limit::Greatest];
        for limit in limits {
            let file = folder.join(limit.file());
            if !self.touched.contains(&file) {
                let khz = fs::read_to_string(&file)?.trim().parse().map_err(io::Error::other)?;
                journal.write(&ClockTouch { policy, limit, khz }.into())?;
                self.touched.insert(file);
            }
        }
        Ok(limits.map(|limit| folder.join(limit.file())))
    }
}

fn khz(mhz: u32) -> u64 {
    u64::from(mhz) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JournalFile;

    #[test]
    fn limits_are_written_rounded_up_and_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::new(folder.path());
        let clock = root.path("/sys/devices/system/cpu/cpufreq/policy2");
        fs::create_dir_all(&clock).unwrap();
        fs::write(clock.join("scaling_min_freq"), "200000\n").unwrap();
        fs::write(clock.join("scaling_max_freq"), "2000000\n").unwrap();
        let domain = Domain {
            class: 1,
            cpus: vec![2],
            freqs_mhz: vec![200, 1000, 2000],
            cpufreq: vec!["policy2".to_owned()],
            relative_speed: None,
            power: Vec::new(),
        };
        let place = JournalFile::at(&folder.path().join("journal")).unwrap().unwrap();
        let (held, mut journal) = place.create::<ClockTouch>().unwrap();
        let mut clocks = Clocks::new(root.clone());
        let read = |name: &str| fs::read_to_string(clock.join(name)).unwrap().trim().to_owned();
        for (asked, expected) in [(500, 1000), (1500, 2000), (9999, 2000), (0, 200)] {
            assert_eq!(clocks.set(&domain, asked, &mut journal).unwrap(), Some(expected));
            assert_eq!(read("scaling_min_freq"), format!("{expected}000"));
            assert_eq!(read("scaling_max_freq"), format!("{expected}000"));
        }
        for (limit, expected) in [(u32::MAX, 2000), (1999, 1000), (100, 200)] {
            clocks.limit(&domain, limit, &mut journal).unwrap();
            assert_eq!(read("scaling_max_freq"), format!("{expected}000"));
        }
        let touches: Vec<ClockTouch> = held.read().unwrap().entries;
        assert_eq!(touches.len(), 2, "only what was there first is remembered");
        touches.iter().rev().for_each(|touch| touch.put_back(&root).unwrap());
        assert_eq!(
            (read("scaling_min_freq").as_str(), read("scaling_max_freq").as_str()),
            ("200000", "2000000")
        );
        let without = Domain { cpufreq: Vec::new(), ..domain };
        assert_eq!(clocks.set(&without, 500, &mut journal).unwrap(), None);
    }
}
