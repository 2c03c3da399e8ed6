//! Sessions as groups (autogroup), as desktops have them.

mod common;

use common::{Host, ns};

fn hogs(count: u32, keys: &str) -> String {
    format!("[[threads]]\nname='hog'\ncount={count}\n{keys}\nbody=[{{run_us=60e6,profile='unit'}}]")
}

/// What the last program gets of all cores within 20 s.
fn share_of_last(cores: usize, programs: &[&str], policy: &str) -> f64 {
    let mut host = Host::symmetric(cores);
    host.options.until_ns = Some(ns(20_000.0));
    let outcome = host.run_mix(programs, policy);
    let last = programs.len() - 1;
    let own = outcome.threads.iter().filter(|thread| usize::from(thread.app) == last);
    own.map(|thread| thread.big_ns()).sum::<u64>() as f64 / (20e9 * cores as f64)
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() < 0.02, "{what}: {found:.3} instead of {expected:.3}");
}

#[test]
fn programs_share_a_core_by_session_not_by_thread() {
    for kernel in ["3.16", "4.14", "6.1", "6.6", "6.18", "7.3"] {
        for (autogroup, share) in [(0, 0.25), (1, 0.5)] {
            let policy = format!("linux:kernel={kernel}:autogroup={autogroup}");
            let found = share_of_last(1, &[&hogs(3, ""), &hogs(1, "")], &policy);
            assert_near(found, share, &policy);
        }
    }
}

#[test]
fn a_nice_value_counts_within_its_session_only() {
    // autogroup.c: the session's own nice value, 0, is what counts against others.
    let found = share_of_last(1, &[&hogs(1, ""), &hogs(1, "nice=10")], "linux:autogroup=1");
    assert_near(found, 0.5, "nice 10");
}

#[test]
fn a_stated_group_is_no_session() {
    // `autogroup_task_group`: only tasks of the root group are in one. Half of all shares are the stated group's.
    let stated = "[groups.'/g']\nshares=2048\n".to_owned() + &hogs(1, "group='/g'");
    let found = share_of_last(1, &[&hogs(3, ""), &stated], "linux:autogroup=1");
    assert_near(found, 2.0 / 3.0, "2048 shares");
}

#[test]
fn sessions_share_several_cores() {
    for kernel in ["6.18", "7.3"] {
        let policy = format!("linux:kernel={kernel}:autogroup=1");
        let found = share_of_last(2, &[&hogs(6, ""), &hogs(2, "")], &policy);
        assert_near(found, 0.5, &policy);
    }
}
