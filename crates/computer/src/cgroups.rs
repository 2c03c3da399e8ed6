//! Control groups: where they are mounted and in which of them this process is (cgroups(7)).
//!
//! Names of folders are bytes: whoever mounts something, or makes a cgroup, chooses them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

use crate::{Proc, Root};

/// Version of the cgroup interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupVersion {
    /// A hierarchy per controller; the freezer stops single threads.
    V1,
    /// One hierarchy; the freezer stops whole processes.
    V2,
}

/// A folder that the system names, whose name may be any bytes; results show what is no UTF-8 as U+FFFD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(PathBuf);

impl Deref for Place {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Place {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl<P: Into<PathBuf>> From<P> for Place {
    fn from(path: P) -> Self {
        Self(path.into())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(formatter)
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A cgroup of this process; a process that may write there can make others below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Delegation {
    /// Of which interface.
    pub version: CgroupVersion,
    /// Its folder, as an absolute name.
    pub folder: Place,
}

impl Delegation {
    /// This process's cgroup that has a controller, such as `cpu`: in a hierarchy of version 1 if there is one of it,
    /// else in that of version 2, whether or not it hands the controller down. None if neither is mounted.
    pub fn of_controller(root: &Root, controller: &str) -> Option<Self> {
        own_cgroups(root, &Mounts::read(root).ok()?, controller).into_iter().next()
    }
}

/// What is mounted, as this process sees it.
#[derive(Clone, Debug, Default)]
pub struct Mounts {
    all: Vec<Mount>,
}

/// A mounted file system.
#[derive(Clone, Debug)]
struct Mount {
    point: Place,
    kind: Vec<u8>,
    options: Vec<u8>,
}

impl Mounts {
    /// What is mounted now.
    ///
    /// # Errors
    ///
    /// The table of mounts cannot be read.
    pub fn read(root: &Root) -> io::Result<Self> {
        let bytes = root.bytes("/proc/self/mounts")?;
        Ok(Self { all: bytes.split(|&byte| byte == b'\n').filter_map(Mount::parse).collect() })
    }

    /// Where the first file system of a type is mounted, such as `tracefs`; none if none is.
    pub fn point(&self, kind: &str) -> Option<&Place> {
        self.all.iter().find(|mount| mount.kind == kind.as_bytes()).map(|mount| &mount.point)
    }

    /// Where the hierarchy is mounted in which threads are frozen.
    pub fn freezer(&self, version: CgroupVersion) -> Option<&Place> {
        match version {
            CgroupVersion::V1 => self.controller("freezer"),
            CgroupVersion::V2 => self.point("cgroup2"),
        }
    }

    /// Where a controller of version 1 is mounted.
    fn controller(&self, name: &str) -> Option<&Place> {
        let has_it = |mount: &&Mount| {
            let mut options = mount.options.split(|&byte| byte == b',');
            mount.kind == b"cgroup" && options.any(|option| option == name.as_bytes())
        };
        // Of several the last one, which is on top if they are at the same place.
        self.all.iter().rev().find(has_it).map(|mount| &mount.point)
    }

    /// Where each controller of version 1 that sessions ask for is mounted.
    pub(crate) fn controllers(&self) -> BTreeMap<String, Place> {
        let found = |name: &str| Some((name.to_owned(), self.controller(name)?.clone()));
        CONTROLLERS.into_iter().filter_map(found).collect()
    }
}

impl Mount {
    /// Reads a line of `/proc/self/mounts`; none if it has another form.
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split(|&byte| byte == b' ').skip(1);
        Some(Self {
            point: PathBuf::from(OsString::from_vec(unescaped(fields.next()?))).into(),
            kind: fields.next()?.to_owned(),
            options: fields.next()?.to_owned(),
        })
    }
}

/// A name of the table of mounts, in which the kernel writes white space and backslashes as `\040` (fs/seq_file.c).
fn unescaped(name: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), name);
    while let [first, others @ ..] = rest {
        let escaped = match others {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if *first == b'\\' => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &others[3..] } else { others };
    }
    bytes
}

/// Controllers of version 1 that are asked for.
const CONTROLLERS: [&str; 4] = ["freezer", "cpuset", "cpu", "cpuacct"];

/// The cgroups of this process in the hierarchies that may have a controller, version 1 first.
pub(crate) fn own_cgroups(root: &Root, mounts: &Mounts, controller: &str) -> Vec<Delegation> {
    let own = Proc::new(root.clone()).own_cgroups().unwrap_or_default();
    let delegation = |version, point: Option<&Place>, controller: &str| {
        let has_it = |names: &str| names.split(',').any(|name| name == controller);
        let path = own.iter().find(|(names, _)| has_it(names))?.1;
        Some(Delegation { version, folder: below(point?, path).into() })
    };
    let v1 = delegation(CgroupVersion::V1, mounts.controller(controller), controller);
    // The hierarchy of version 2 is listed without controllers.
    let v2 = delegation(CgroupVersion::V2, mounts.point("cgroup2"), "");
    v1.into_iter().chain(v2).collect()
}

/// The folder of a cgroup whose path `/proc/PID/cgroup` shows, in a hierarchy that is mounted there.
pub fn below(mount: &Path, cgroup: &Path) -> PathBuf {
    let path = cgroup.strip_prefix("/").unwrap_or(cgroup);
    if path.as_os_str().is_empty() { mount.to_owned() } else { mount.join(path) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn h34_01_mount_points_may_be_any_bytes() {
        for name in [&b"/a\xff"[..], b"/\xd0", b"/a\\040b", b"/\\134040", b"/\\", b"/x\\04"] {
            let line =
                [b"fuse ", name, b" fuse.x rw 0 0\ncgroup2 /c\xff cgroup2 rw 0 0\n"].concat();
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(folder.path().join("proc/self")).unwrap();
            std::fs::write(folder.path().join("proc/self/mounts"), line).unwrap();
            let mounts = Mounts::read(&Root::new(folder.path())).unwrap();
            let expected = match name {
                b"/a\\040b" => &b"/a b"[..],
                b"/\\134040" => b"/\\040",
                other => other,
            };
            assert_eq!(mounts.point("fuse.x").unwrap().as_os_str().as_bytes(), expected);
            let hierarchy = mounts.freezer(CgroupVersion::V2).unwrap();
            assert_eq!(hierarchy.as_os_str().as_bytes(), b"/c\xff");
        }
        assert!(
            Mounts::read(&Root::new("/nonexistent")).is_err(),
            "it is not as if nothing were mounted"
        );
    }
}
