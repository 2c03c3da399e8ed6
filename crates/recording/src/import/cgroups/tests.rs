use super::*;

fn read(text: &str) -> Cgroups {
    Cgroups::parse("c.txt", text).unwrap()
}

fn error(text: &str) -> String {
    Cgroups::parse("c.txt", text).err().map(|error| error.to_string()).unwrap_or_default()
}

/// The group of a thread in the hierarchy that is mounted there.
fn place(found: &Cgroups, root: &str, tid: u32, process: u32) -> Option<Place> {
    let hierarchy = found.roots.iter().position(|known| known == root)?;
    found.place_of(hierarchy, tid, process)
}

#[test]
fn android_mounts_each_controller_by_itself() {
    let found = read(include_str!("../../../tests/samples/cgroups.side"));
    let place = |root, tid, process| place(&found, root, tid, process);
    let background = place("/dev/cpuset", 201, 200).unwrap();
    assert_eq!(found.cpus(background), Some(vec![0, 1, 2, 3]));
    assert_eq!(place("/dev/cpuset", 299, 200), Some(background), "as its process");
    assert_eq!(place("/dev/cpuset", 299, 299), None);
    let sharing = |tid| found.sharing(place("/dev/cpuctl", tid, 0).unwrap());
    let [(path, stated)] = sharing(200)[..] else { panic!() };
    assert_eq!((path, stated.shares, stated.uclamp_max), ("/background", Some(52), Some(512)));
    assert_eq!(sharing(100)[0].1.uclamp_min, Some(128), "12.50 %");
    assert_eq!(sharing(300), [], "the root");
    let top = place("/dev/stune", 100, 0).unwrap();
    assert_eq!(found.boost(top), Some(10));
    let unheard: Vec<&str> = found.unheard(top).into_iter().collect();
    assert_eq!(unheard, ["schedtune.prefer_idle"]);
    let own = found.own(101).unwrap();
    assert_eq!((own.cpus.clone(), own.policy), (Some(vec![4, 5, 6, 7]), Some(Policy::Rr)));
    assert_eq!((own.uclamp_min, own.uclamp_max), (Some(100), None));
    let root = |number| found.hierarchy(number).map(|hierarchy| found.roots[hierarchy].as_str());
    assert_eq!([3, 4, 0].map(root), [Some("/dev/cpuset"), Some("/dev/cpuctl"), None]);
    assert_eq!(found.losses(), Vec::<String>::new());
}

#[test]
fn version_2_has_one_hierarchy_in_which_controllers_are_on_up_to_some_depth() {
    let found = read(
        "/sys/fs/cgroup/cgroup.controllers:cpuset cpu memory\n\
         /sys/fs/cgroup/cpuset.cpus.effective:0-7\n\
         /sys/fs/cgroup/user.slice/cpu.weight:50\n\
         /sys/fs/cgroup/user.slice/cpuset.cpus:0-5\n\
         /sys/fs/cgroup/user.slice/cpu.max:max 100000\n\
         /sys/fs/cgroup/user.slice/app@1.service/cpu.max:50000 100000\n\
         /sys/fs/cgroup/user.slice/app@1.service/deep/cpuset.cpus:4-7\n\
         /sys/fs/cgroup/user.slice/app@1.service/deep/cgroup.threads:11\n\
         /sys/fs/cgroup/user.slice/app@1.service/cgroup.procs:10\n",
    );
    let (deep, app) = (found.place_of(0, 11, 10).unwrap(), found.place_of(0, 12, 10).unwrap());
    assert_eq!(found.cpus(deep), Some(vec![4, 5]), "within those above");
    assert_eq!(found.cpus(app), Some((0..6).collect()));
    let [(path, stated)] = found.sharing(deep)[..] else { panic!() };
    assert_eq!((path, stated.shares), ("/user.slice", Some(512)));
    assert_eq!(found.unheard(deep).into_iter().collect::<Vec<_>>(), ["a limit of CPU time"]);
    assert_eq!(found.hierarchy(7), None, "nobody has told numbers");
}

#[test]
fn systemd_mounts_version_1_below_one_directory() {
    let found = read(
        "/sys/fs/cgroup/cpu,cpuacct/a/cpu.shares:2048\n/sys/fs/cgroup/cpu,cpuacct/a/tasks:7\n\
         /sys/fs/cgroup/cpuset/b/cpuset.cpus:1\n/sys/fs/cgroup/cpuset/b/tasks:7\n\
         /proc/cgroups:cpu\t2\t5\t1\n/proc/cgroups:cpuset\t9\t5\t1\n",
    );
    let place = |number| found.place_of(found.hierarchy(number).unwrap(), 7, 7).unwrap();
    assert_eq!(found.sharing(place(2))[0].1.shares, Some(2048));
    assert_eq!(found.cpus(place(9)), Some(vec![1]));
}

/// Each line, and what is to be made of it, beside one that is good.
#[test]
fn what_cannot_be_read_is_named_with_its_line() {
    let huge = format!("/dev/cpuset/{}/cpus:0", "a/".repeat(40));
    let long = format!("/dev/cpuset/{}/cpus:0", "a".repeat(2000));
    for bad in [
        "/dev/cpuset/a/cpus:",
        "/dev/cpuset/a/cpus:x",
        "/dev/cpuset/a/cpus:3-1",
        "/dev/cpuset/a/cpus:0-4294967295",
        "/dev/cpuset/a/cpus:0-8192",
        "/dev/cpuset/a/cpus:-1",
        "/dev/cpuset/a/cpus:0,,1",
        "/dev/cpuset/a/cpus:ff",
        "/dev/cpuset/a/tasks:-5",
        "/dev/cpuset/a/tasks:4294967296",
        "/dev/cpuset/a/tasks:one",
        "/dev/cpuset/../a/tasks:1",
        "/dev/cpuset//a/tasks:1",
        "/dev/cpuctl/a/cpu.shares:0",
        "/dev/cpuctl/a/cpu.shares:262145",
        "/dev/cpuctl/a/cpu.uclamp.min:100.01",
        "/dev/cpuctl/a/cpu.uclamp.min:-1",
        "/dev/cpuctl/a/cpu.uclamp.max:nan",
        "/dev/cpuctl/a/cpu.uclamp.max:inf",
        "/dev/cpuctl/a/cpu.weight:0",
        "/dev/cpuctl/a/cpu.weight:10001",
        "/dev/stune/a/schedtune.boost:101",
        "/dev/stune/a/schedtune.boost:99999999999999999999",
        "/sys/fs/cgroup/tasks:1",
        "/proc/cgroups:cpu",
        "/proc/cgroups:cpu\tx",
        "/proc/1/task/x/status:Cpus_allowed_list:\t0",
        "/proc/1/task/1/status:Cpus_allowed_list:\t",
        "/proc/1/task/1/sched:uclamp.max : 1025",
        "/proc/1/task/1/sched:policy : -1",
        "/proc/1/task/1/status:\u{fffd}",
        huge.as_str(),
        long.as_str(),
    ] {
        let found = read(&format!("/dev/cpuset/good/cpus:0\n{bad}\n"));
        let losses = found.losses().join("\n");
        let named = "1 lines of control groups could not be read, the first: line 2: /";
        assert!(losses.starts_with(named), "{bad}: {losses}");
        assert!(losses.len() < 200, "{losses}");
    }
}

#[test]
fn other_lines_say_nothing() {
    let found = read(
        "grep: /dev/cpuset/cgroup.event_control: Permission denied\n\
         Binary file /dev/cpuset/x matches\n/dev/cpuset/a/mems:0\r\n\n:\n/dev/cpuset\n\
         /mnt/dev/cpuset/a/cpus:1\n/dev/cpusetx/a/cpus:1\n/proc/1/status:Cpus_allowed_list:\t1\n\
         /dev/cpuset/a:b/cpus:2\r\n",
    );
    assert_eq!(found.losses(), Vec::<String>::new());
    assert_eq!(found.places.len(), 1);
    assert_eq!(found.places[0].1, "/a:b");
    assert_eq!(found.cpus(0), Some(vec![2]));
}

#[test]
fn what_is_no_file_of_control_groups_is_an_error() {
    for text in ["", "hello", "\0\0\0", "/dev/cpuset/a/mems:0", "PATH:VALUE"] {
        let error = error(text);
        assert!(error.starts_with("c.txt: has no line of a control group or a thread"), "{error}");
        assert!(error.contains("grep -rHs . /dev/cpuset"), "{error}");
    }
    for text in
        ["/sys/fs/cgroup/x/../cpus:1", "/dev/cpuset/a/cpus:x", "/proc/1/task/1/sched:policy:x"]
    {
        let error = error(text);
        assert!(error.contains(&format!("no line can be read; line 1: {text}")), "{error}");
    }
}

#[test]
fn a_thread_in_two_groups_is_in_the_later() {
    let found = read("/dev/cpuset/a/tasks:7\n/dev/cpuset/a/tasks:7\n/dev/cpuset/b/tasks:7\n");
    assert_eq!(found.places[found.place_of(0, 7, 0).unwrap()].1, "/b");
    assert_eq!(found.losses(), ["1 threads stand in two control groups: the later counts"]);
}

#[test]
fn a_short_file_takes_no_more_memory_than_its_length_allows() {
    let line = |number: usize| format!("/dev/cpuset/g{number}/cpus:0-8191\n");
    let text: String = (0..30_000).map(line).collect();
    let error = error(&text);
    assert!(error.starts_with("c.txt: takes more than 256 MiB of memory, "), "{error}");
    let many: String = (0..100).map(|n| format!("/sys/fs/cgroup/h{n}/a/tasks:1\n")).collect();
    assert!(read(&many).losses()[0].starts_with("68 lines "), "more hierarchies than Linux has");
}
