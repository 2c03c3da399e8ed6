//! Control groups: where they are mounted and in which of them this process is (cgroups(7)).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

/// A cgroup of this process; a process that may write there can make others below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Delegation {
    /// Of which interface.
    pub version: CgroupVersion,
    /// Its folder, as an absolute name.
    pub folder: String,
}

impl Delegation {
    /// This process's cgroup that has a controller, such as `cpu`: in a hierarchy of version 1 if there is one of it,
    /// else in that of version 2, whether or not it hands the controller down. None if neither is mounted.
    pub fn of_controller(root: &Root, controller: &str) -> Option<Self> {
        own_cgroups(root, &mounts(root), controller).into_iter().next()
    }
}

/// A mounted file system.
pub(crate) struct Mount {
    /// Where.
    pub point: String,
    /// Its type, such as `cgroup2`.
    pub kind: String,
    options: Vec<String>,
}

/// What is mounted, as this process sees it.
pub(crate) fn mounts(root: &Root) -> Vec<Mount> {
    let text = root.text("/proc/self/mounts").unwrap_or_default();
    let row = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        Some(Mount {
            point: fields.next()?.to_owned(),
            kind: fields.next()?.to_owned(),
            options: fields.next()?.split(',').map(str::to_owned).collect(),
        })
    };
    text.lines().filter_map(row).collect()
}

/// Controllers of version 1 that are asked for.
const CONTROLLERS: [&str; 4] = ["freezer", "cpuset", "cpu", "cpuacct"];

/// Where each controller of version 1 is mounted.
pub(crate) fn cgroup_v1(mounts: &[Mount]) -> BTreeMap<String, String> {
    let v1 = mounts.iter().filter(|mount| mount.kind == "cgroup");
    let named = v1
        .flat_map(|mount| mount.options.iter().map(|option| (option.clone(), mount.point.clone())));
    named.filter(|(name, _)| CONTROLLERS.contains(&name.as_str())).collect()
}

/// The cgroups of this process in the hierarchies that may have a controller, version 1 first.
pub(crate) fn own_cgroups(root: &Root, mounts: &[Mount], controller: &str) -> Vec<Delegation> {
    let own = Proc::new(root.clone()).own_cgroups();
    let v1 = cgroup_v1(mounts).remove(controller);
    let v2 = mounts.iter().find(|mount| mount.kind == "cgroup2").map(|mount| mount.point.clone());
    let delegation = |version, point: Option<String>, controller: &str| {
        let has_it = |names: &str| names.split(',').any(|name| name == controller);
        let path = own.iter().find(|(names, _)| has_it(names))?.1;
        Some(Delegation { version, folder: format!("{}{}", point?, path.trim_end_matches('/')) })
    };
    let v1 = delegation(CgroupVersion::V1, v1, controller);
    // The hierarchy of version 2 is listed without controllers.
    let v2 = delegation(CgroupVersion::V2, v2, "");
    v1.into_iter().chain(v2).collect()
}
