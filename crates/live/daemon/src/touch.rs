//! What the daemon touches, and what it was before.
//!
//! A journal is read by root. So a touch names only what a session can touch: a thread, a cgroup within its
//! hierarchy, a number of a clock, never a path, and never what is to be written there but as a number.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use ampsched_computer::{CgroupVersion, ThreadKey, below, parse_cpus};
use ampsched_live_session::ClockTouch;
use serde::{Deserialize, Serialize};

/// How the names of cgroups and of instances of tracing begin that are a session's own; its process number follows.
const HELD: &str = "ampsched-held-";
const TRACING: &str = "ampsched-";

/// Something that is about to be touched for the first time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Touch {
    /// A thread's CPUs and nice value.
    Thread {
        /// Its process.
        process: ThreadKey,
        /// Which.
        thread: ThreadKey,
        /// The CPUs that it could use.
        cpus: Cpus,
        /// Its nice value.
        nice: i32,
    },
    /// A set of CPUs that threads of a process get; new threads inherit it.
    GivenCpus {
        /// The process.
        process: ThreadKey,
        /// The CPUs.
        cpus: Cpus,
    },
    /// A nice value that threads of a process get; new threads inherit it.
    GivenNice {
        /// The process.
        process: ThreadKey,
        /// The nice value.
        nice: i32,
    },
    /// A cgroup that is made to freeze threads.
    Cgroup {
        /// Of which interface.
        version: CgroupVersion,
        /// Which.
        group: OwnGroup,
        /// The hierarchy in which it is made, if it is known: in a container others may be at the same place.
        #[serde(default)]
        hierarchy: Option<Hierarchy>,
    },
    /// A thread (version 1) or process (version 2) that goes to the frozen cgroup.
    Moved {
        /// Of which interface.
        version: CgroupVersion,
        /// Which.
        thread: ThreadKey,
        /// The cgroup in which it was.
        from: Group,
    },
    /// A process that is stopped by SIGSTOP.
    Stopped {
        /// Which.
        process: ThreadKey,
    },
    /// An instance of tracing that is made.
    Tracing {
        /// Which.
        instance: Instance,
    },
    /// A limit of a clock.
    Clock(ClockTouch),
}

impl Touch {
    /// The thread that it concerns, or the first one of the process; none if it concerns no single one.
    pub fn thread(&self) -> Option<ThreadKey> {
        match *self {
            Self::Thread { thread, .. } | Self::Moved { thread, .. } => Some(thread),
            Self::GivenCpus { process, .. } | Self::GivenNice { process, .. } => Some(process),
            Self::Stopped { process } => Some(process),
            Self::Cgroup { .. } | Self::Tracing { .. } | Self::Clock(_) => None,
        }
    }
}

impl From<ClockTouch> for Touch {
    fn from(touch: ClockTouch) -> Self {
        Self::Clock(touch)
    }
}

/// A list of at least one CPU, such as `0-3,8`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cpus(String);

impl Cpus {
    /// The list as text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The CPUs.
    pub fn set(&self) -> BTreeSet<usize> {
        parse_cpus("", "", &self.0).expect("it has been read before")
    }
}

impl TryFrom<String> for Cpus {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match parse_cpus("journal", "cpus", &text) {
            Ok(cpus) if cpus.is_empty() => Err("a list of no CPU".to_owned()),
            Ok(_) => Ok(Self(text)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl From<Cpus> for String {
    fn from(cpus: Cpus) -> Self {
        cpus.0
    }
}

/// What tells a hierarchy of cgroups, or a part of one that is mounted, from others: the file of its uppermost folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hierarchy {
    device: u64,
    inode: u64,
}

impl Hierarchy {
    /// What is mounted there. Errors: it cannot be looked at.
    pub fn at(mount: &Path) -> io::Result<Self> {
        let found = fs::metadata(mount)?;
        Ok(Self { device: found.dev(), inode: found.ino() })
    }
}

/// A cgroup by its path within its hierarchy, such as `/user.slice`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Name", into = "Name")]
pub struct Group(PathBuf);

/// A path as a journal has it: a text if it can be one, else bytes.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

impl Group {
    /// The cgroup of a folder of a hierarchy that is mounted there; none if it is not of that hierarchy.
    pub fn of_folder(mount: &Path, folder: &Path) -> Option<Self> {
        Self::try_from(Path::new("/").join(folder.strip_prefix(mount).ok()?)).ok()
    }

    /// Its path within the hierarchy, as `/proc/PID/cgroup` has it.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Its folder if the hierarchy is mounted there.
    pub fn folder(&self, mount: &Path) -> PathBuf {
        below(mount, &self.0)
    }
}

impl TryFrom<PathBuf> for Group {
    type Error = String;

    fn try_from(path: PathBuf) -> Result<Self, String> {
        let mut parts = path.components();
        let begins = parts.next() == Some(Component::RootDir);
        match begins && parts.all(|part| matches!(part, Component::Normal(_))) {
            true => Ok(Self(path)),
            false => Err(format!("\"{}\" is no path of a cgroup", path.display())),
        }
    }
}

impl TryFrom<Name> for Group {
    type Error = String;

    fn try_from(name: Name) -> Result<Self, String> {
        match name {
            Name::Text(text) => PathBuf::from(text),
            Name::Bytes(bytes) => OsString::from_vec(bytes).into(),
        }
        .try_into()
    }
}

impl From<Group> for Name {
    fn from(group: Group) -> Self {
        let text = group.0.into_os_string().into_string();
        text.map_or_else(|other| Self::Bytes(other.into_vec()), Self::Text)
    }
}

/// A cgroup that a session has made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Group", into = "Group")]
pub struct OwnGroup(Group);

impl OwnGroup {
    /// The name of this process's one.
    pub fn name() -> String {
        format!("{HELD}{}", std::process::id())
    }

    /// It, as any cgroup.
    pub fn group(&self) -> &Group {
        &self.0
    }
}

impl TryFrom<Group> for OwnGroup {
    type Error = String;

    fn try_from(group: Group) -> Result<Self, String> {
        let name = group.path().file_name().and_then(|name| name.to_str());
        match name.is_some_and(|name| is_own(name, HELD)) {
            true => Ok(Self(group)),
            false => Err(format!("\"{}\" is no cgroup of a session", group.path().display())),
        }
    }
}

impl From<OwnGroup> for Group {
    fn from(group: OwnGroup) -> Self {
        group.0
    }
}

/// An instance of tracing that a session has made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Instance(String);

impl Instance {
    /// This process's one.
    pub fn own() -> Self {
        Self(format!("{TRACING}{}", std::process::id()))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Instance {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        match is_own(&name, TRACING) {
            true => Ok(Self(name)),
            false => Err(format!("\"{name}\" is no instance of a session")),
        }
    }
}

impl From<Instance> for String {
    fn from(instance: Instance) -> Self {
        instance.0
    }
}

/// Whether a name is a prefix and a number.
fn is_own(name: &str, prefix: &str) -> bool {
    let number = name.strip_prefix(prefix);
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use ampsched_live_session::Limit;

    use super::*;

    #[test]
    fn h02_a_touch_names_nothing_but_what_a_session_can_touch() {
        let key = r#"{"tid":7,"start_ticks":9}"#;
        for (text, why) in [
            (r#"{"clock":{"file":"/etc/shadow","text":"x"}}"#, "unknown field `file`"),
            (r#"{"clock":{"policy":"0/../..","limit":"least","khz":1}}"#, "expected u32"),
            (r#"{"tracing":{"instance":"../../etc"}}"#, "no instance of a session"),
            (r#"{"tracing":{"instance":"ampsched-"}}"#, "no instance of a session"),
            (r#"{"cgroup":{"version":"v1","group":"/"}}"#, "no cgroup of a session"),
            (r#"{"cgroup":{"version":"v1","group":"/user.slice"}}"#, "no cgroup of a session"),
            (r#"{"cgroup":{"version":"v1","group":"/../ampsched-held-7"}}"#, "no path of a cgroup"),
            (r#"{"cgroup":{"version":"v1","group":"ampsched-held-7"}}"#, "no path of a cgroup"),
            (
                &format!(r#"{{"moved":{{"version":"v2","thread":{key},"from":"/../etc"}}}}"#),
                "no path of a cgroup",
            ),
            (
                &format!(r#"{{"moved":{{"version":"v2","thread":{key},"from":[47,46,46]}}}}"#),
                "no path of a cgroup",
            ),
            (
                &format!(r#"{{"given_cpus":{{"process":{key},"cpus":"zero"}}}}"#),
                "is not a CPU or a range",
            ),
            (&format!(r#"{{"given_cpus":{{"process":{key},"cpus":""}}}}"#), "a list of no CPU"),
        ] {
            let error = serde_json::from_str::<Touch>(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let key = ThreadKey { tid: 7, start_ticks: 9 };
        let group = Group::of_folder(Path::new("/sys/fs/cgroup"), Path::new("/sys/fs/cgroup/a/b"));
        let group = group.unwrap();
        assert_eq!(
            (group.path(), group.folder(Path::new("/m"))),
            (Path::new("/a/b"), PathBuf::from("/m/a/b"))
        );
        let own = Group::try_from(PathBuf::from(format!("/a/{}", OwnGroup::name()))).unwrap();
        let own = OwnGroup::try_from(own).unwrap();
        let version = CgroupVersion::V1;
        let hierarchy = Some(Hierarchy { device: 31, inode: 1 });
        let bytes = PathBuf::from(OsString::from_vec(b"/a\xff/b".to_vec()));
        for touch in [
            Touch::Moved { version, thread: key, from: group },
            Touch::Moved { version, thread: key, from: Group::try_from(bytes).unwrap() },
            Touch::Cgroup { version, group: own, hierarchy },
            Touch::Tracing { instance: Instance::own() },
            Touch::GivenCpus { process: key, cpus: Cpus::try_from("0-3".to_owned()).unwrap() },
            Touch::Clock(ClockTouch { policy: 4, limit: Limit::Greatest, khz: 2_000_000 }),
        ] {
            let text = serde_json::to_string(&touch).unwrap();
            assert_eq!(serde_json::from_str::<Touch>(&text).unwrap(), touch);
        }
        let old = r#"{"cgroup":{"version":"v1","group":"/ampsched-held-7"}}"#;
        assert!(serde_json::from_str::<Touch>(old).is_ok(), "of an earlier version");
    }
}
