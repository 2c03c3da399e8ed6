//! The fair classes of Linux 3.16 and 4.14 on small machines.

mod common;

use common::{Host, ns};

const OLD: [&str; 2] = ["linux:kernel=3.16", "linux:kernel=4.14"];

/// What each of three hogs gets of two cores within 20 s, 1 is an equal share, and how often it changes cores.
fn three_hogs(policy: &str, hz: u32) -> Vec<(f64, u64)> {
    let text = "[[threads]]\nname='hog'\ncount=3\nbody=[{run_us=60e6,profile='unit'}]";
    let mut host = Host::symmetric(2);
    host.options.until_ns = Some(ns(20_000.0));
    let outcome = host.run(text, &format!("{policy}:hz={hz}"));
    let share = |run_ns: u64| run_ns as f64 / 20e9 * 1.5;
    outcome.threads.iter().map(|thread| (share(thread.big_ns()), thread.migrations)).collect()
}

#[test]
fn three_hogs_on_two_cores_rotate() {
    for policy in OLD {
        for (share, migrations) in three_hogs(policy, 1000) {
            assert!((share - 1.0).abs() < 0.03, "{policy}: {share:.3}");
            assert!(migrations > 40, "{policy}: {migrations}");
        }
    }
}

#[test]
fn the_thread_that_came_last_is_looked_at_first() {
    for policy in OLD {
        // With few ticks, turns and searches keep step: when a core searches, always the same thread waits.
        let hogs = three_hogs(policy, 250);
        assert_eq!([hogs[0].1, hogs[1].1], [0, 0], "{policy}: {hogs:?}");
        assert!(hogs[2].1 > 100, "{policy}: {hogs:?}");
        assert!(hogs.iter().all(|(share, _)| (share - 1.0).abs() < 0.3), "{policy}: {hogs:?}");
    }
}

#[test]
fn hogs_spread_over_the_cores() {
    for policy in OLD {
        for cores in [1, 2, 4, 8] {
            let text = format!(
                "[[threads]]\nname='hog'\ncount={cores}\nbody=[{{run_us=300e3,profile='unit'}}]"
            );
            let outcome = Host::symmetric(cores).run(&text, policy);
            assert_eq!(outcome.makespan_ns, ns(300.0), "{policy}, {cores} cores");
        }
    }
}

#[test]
fn a_core_that_falls_idle_takes_a_waiting_thread() {
    // Six threads of 100 ms on four cores: 150 ms if no core is idle while a thread waits.
    let text = "[[threads]]\nname='hog'\ncount=6\nbody=[{run_us=100e3,profile='unit'}]";
    for policy in OLD {
        let outcome = Host::symmetric(4).run(text, policy);
        assert!(outcome.makespan_ns < ns(160.0), "{policy}: {}", outcome.makespan_ns);
    }
}
