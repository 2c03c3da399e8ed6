//! Where numbers of processes and names of cgroups mean what a session meant by them: at one start of the computer, and
//! within namespaces (namespaces(7)), as containers have their own.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ampsched_computer::{Root, boot_id};
use serde::{Deserialize, Serialize};

/// Where a session runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// What tells this start of the computer from others; none in a journal of an earlier version that was not told.
    boot: Option<String>,
    /// None if `/proc` does not say, or is that of another one.
    #[serde(default)]
    pid_namespace: Option<PathBuf>,
    #[serde(default)]
    cgroup_namespace: Option<PathBuf>,
}

/// What a place is for whoever is at another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The same.
    Here,
    /// The computer was started anew since, so that nothing is left of what was there.
    Past,
    /// Another one, or that cannot be told; what is there is not seen from here. In words.
    Elsewhere(String),
}

impl Place {
    /// Where this process runs.
    ///
    /// # Errors
    ///
    /// The kernel does not say which start of the computer this is: what a session then wrote down could be put back
    /// nowhere.
    pub fn here() -> io::Result<Self> {
        Self::seen_in(Path::new("/proc"), std::process::id())
    }

    fn seen_in(proc: &Path, own: u32) -> io::Result<Self> {
        let link = |name: &str| fs::read_link(proc.join(name)).ok();
        let is_own = link("self").is_some_and(|to| to == Path::new(&own.to_string()));
        Ok(Self {
            boot: Some(boot_id(&Root::default())?),
            pid_namespace: link("self/ns/pid").filter(|_| is_own),
            cgroup_namespace: link("self/ns/cgroup"),
        })
    }

    /// What it is for whoever is here.
    pub fn from(&self, here: &Self) -> Relation {
        let elsewhere = |what: &str| {
            let words = format!("it is of another {what}, or /proc is; restore it there");
            Relation::Elsewhere(words)
        };
        match (&self.boot, &here.boot) {
            (Some(then), Some(now)) if then != now => return Relation::Past,
            (then, now) if then != now => return elsewhere("start of the computer"),
            _ => {}
        }
        // One of an earlier version does not say.
        let is_other =
            |then: &Option<PathBuf>, now: &Option<PathBuf>| then.is_some() && then != now;
        if is_other(&self.pid_namespace, &here.pid_namespace) {
            return elsewhere("PID namespace (container)");
        }
        if is_other(&self.cgroup_namespace, &here.cgroup_namespace) {
            return elsewhere("cgroup namespace (container)");
        }
        Relation::Here
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(boot: &str, pid: &str, cgroup: &str) -> Place {
        let known = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Place {
            boot: known(boot),
            pid_namespace: known(pid).map(PathBuf::from),
            cgroup_namespace: known(cgroup).map(PathBuf::from),
        }
    }

    #[test]
    fn h34_01_only_another_start_of_the_computer_is_past() {
        let then = place("a", "p", "c");
        let relation = |boot: &str, pid: &str, cgroup: &str| then.from(&place(boot, pid, cgroup));
        assert_eq!(relation("a", "p", "c"), Relation::Here);
        assert_eq!(relation("b", "p", "c"), Relation::Past);
        // What is not known is no other start.
        for here in
            [("", "p", "c"), ("a", "q", "c"), ("a", "", "c"), ("a", "p", "d"), ("a", "p", "")]
        {
            let relation = relation(here.0, here.1, here.2);
            assert!(matches!(relation, Relation::Elsewhere(_)), "{here:?}: {relation:?}");
        }
        assert_eq!(place("a", "", "").from(&then), Relation::Here, "of an earlier version");
        assert!(matches!(place("", "p", "c").from(&then), Relation::Elsewhere(_)));
    }

    #[test]
    fn h34_01_a_proc_of_other_processes_is_not_ours() {
        let own = std::process::id();
        let seen = Place::here().unwrap();
        assert!(seen.pid_namespace.is_some());
        assert_eq!(seen.from(&seen), Relation::Here);
        for (proc, own) in [("/nonexistent", own), ("/proc", own + 1)] {
            let here = Place::seen_in(Path::new(proc), own).unwrap();
            assert_eq!(here.pid_namespace, None);
            assert!(matches!(seen.from(&here), Relation::Elsewhere(_)));
        }
    }
}
