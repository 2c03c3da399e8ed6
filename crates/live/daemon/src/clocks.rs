//! Clocks of clusters, by the limits of cpufreq (Documentation/admin-guide/pm/cpufreq.rst): with the least and
//! the greatest frequency alike, every governor has that one.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use ampsched_computer::{Domain, Root};
use ampsched_live_session::Journal;

use crate::system;
use crate::touch::{Limit, Touch, cpufreq_folder};

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

    /// Sets a domain to the lowest of its frequencies that is at least as fast as asked for, or to its highest;
    /// returns it in MHz, or none if the domain has no clock that can be set.
    pub fn set(
        &mut self,
        domain: &Domain,
        mhz: u32,
        journal: &mut Journal<Touch>,
    ) -> io::Result<Option<u32>> {
        let reached = domain.freqs_mhz.iter().find(|&&own| own >= mhz).or(domain.freqs_mhz.last());
        let Some(&mhz) = reached.filter(|_| !domain.cpufreq.is_empty()) else { return Ok(None) };
        for policy in &domain.cpufreq {
            self.set_policy(policy, mhz, journal)?;
        }
        Ok(Some(mhz))
    }

    /// Limits a domain to its highest frequency of at most so many MHz, or to its lowest; `u32::MAX` lifts the limit.
    pub fn limit(
        &mut self,
        domain: &Domain,
        mhz: u32,
        journal: &mut Journal<Touch>,
    ) -> io::Result<()> {
        let allowed = domain.freqs_mhz.iter().rev().find(|&&own| own <= mhz);
        let Some(&mhz) = allowed.or(domain.freqs_mhz.first()) else { return Ok(()) };
        for policy in &domain.cpufreq {
            let [_, greatest] = self.limits(policy, journal)?;
            system::write(&greatest, &khz(mhz).to_string())?;
        }
        Ok(())
    }

    fn set_policy(
        &mut self,
        policy: &str,
        mhz: u32,
        journal: &mut Journal<Touch>,
    ) -> io::Result<()> {
        let [least, greatest] = self.limits(policy, journal)?;
        let now: u64 = fs::read_to_string(&greatest)?.trim().parse().unwrap_or(0);
        let order = if khz(mhz) > now { [&greatest, &least] } else { [&least, &greatest] };
        for file in order {
            system::write(file, &khz(mhz).to_string())?;
        }
        Ok(())
    }

    /// The files of a policy's least and greatest frequency, which are in the journal then.
    fn limits(&mut self, policy: &str, journal: &mut Journal<Touch>) -> io::Result<[PathBuf; 2]> {
        let number = policy.strip_prefix("policy").and_then(|number| number.parse().ok());
        let policy = number.ok_or_else(|| io::Error::other(format!("{policy} has no number")))?;
        let folder = self.root.path(&cpufreq_folder(policy));
        // The greatest is put back first, so that the limits never cross.
        let limits = [Limit::Least, Limit::Greatest];
        for limit in limits {
            let file = folder.join(limit.file());
            if !self.touched.contains(&file) {
                let khz = fs::read_to_string(&file)?.trim().parse().map_err(io::Error::other)?;
                journal.write(&Touch::Clock { policy, limit, khz })?;
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
    use ampsched_live_session::JournalFile;

    use super::*;
    use crate::restore;

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
        };
        let place = JournalFile::at(&folder.path().join("journal")).unwrap().unwrap();
        let (held, mut journal) = place.create().unwrap();
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
        let touches = held.read().unwrap().entries;
        assert_eq!(touches.len(), 2, "only what was there first is remembered");
        let restored = restore(&touches, &root);
        assert_eq!((restored.clocks, restored.failures.len()), (2, 0));
        assert_eq!(
            (read("scaling_min_freq").as_str(), read("scaling_max_freq").as_str()),
            ("200000", "2000000")
        );
        let without = Domain { cpufreq: Vec::new(), ..domain };
        assert_eq!(clocks.set(&without, 500, &mut journal).unwrap(), None);
    }
}
