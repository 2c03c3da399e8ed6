//! Programs that restrict their threads to cores, and open them again.

mod common;

use ampsched_model::CoreId;
use ampsched_policy::REGISTRY;
use common::{Host, ns};

/// 0.5 ms on core 0 alone (of a machine at 2 GHz), then 50 ms wherever it may be.
const OPENS: &str = "[[threads]]\nname='t'\nbody=[{set_cores=[0]},{compute=1e6,profile='unit'},\
    {set_cores=[0,1]},{compute=1e8,profile='unit'}]";

/// The first core is little, the second one big.
fn little_first(ratio: f64) -> Host {
    let mut host = Host::unequal(1, 1, ratio);
    host.machine.clusters.reverse();
    for (number, cluster) in host.machine.clusters.iter_mut().enumerate() {
        cluster.cores = vec![CoreId::from(number)];
    }
    host
}

#[test]
fn h03_a_thread_that_opens_itself_is_taken_by_an_idle_big_core() {
    for policy in ["colab", "gts", "amps"] {
        let outcome = little_first(3.0).run(OPENS, policy);
        // 1.5 ms on the little core, then 50 ms on the big one, perhaps after a while on the little one, where
        // it all takes 151.5 ms.
        let latest = ns(75.0);
        assert!(outcome.makespan_ns < latest, "{policy}: {} ns", outcome.makespan_ns);
    }
}

#[test]
fn h03_no_policy_leaves_a_core_idle_that_its_rules_give_a_thread() {
    for info in REGISTRY {
        let host = little_first(3.0);
        let outcome = host.try_run(OPENS, info.name);
        assert!(outcome.is_ok(), "{}: {}", info.name, outcome.unwrap_err());
    }
}
