//! The order in which a machine lists its clusters decides how cores are numbered, and nothing else.

mod common;

use std::collections::BTreeMap;

use ampsched_model::{ClassId, Cluster, CoreId, Machine};
use ampsched_sim::offline_facts;
use common::{Host, ns, workload};

/// Two cores at 2000 and two at 1600 MHz of one class, two at 1000 MHz of a lower one, listed in an order.
fn host(order: [usize; 3]) -> Host {
    let mut host = Host::unequal(2, 2, 2.0);
    let kinds = [("fast", 1, 2000), ("slower", 1, 1600), ("little", 0, 1000)];
    let cluster = |(place, kind): (usize, usize)| {
        let (name, class, mhz) = kinds[kind];
        let mut cluster: Cluster = host.machine.clusters[0].clone();
        (cluster.name, cluster.class) = (name.to_owned(), ClassId(class));
        cluster.opps[0].mhz = mhz;
        cluster.cores = (2 * place..2 * place + 2).map(CoreId::from).collect();
        cluster
    };
    let clusters = order.into_iter().enumerate().map(cluster).collect();
    host.machine.clusters = clusters;
    host
}

const ORDERS: [[usize; 3]; 4] = [[0, 1, 2], [1, 0, 2], [2, 0, 1], [2, 1, 0]];

#[test]
fn m11_the_order_of_clusters_does_not_change_the_work() {
    let text = "[profiles.mine]\nlike='unit'\nratio=3\n[[threads]]\nname='hog'\nbody=[{run_us=10e3,profile='mine'}]";
    for order in ORDERS {
        let host = host(order);
        let outcome = host.run(text, "static");
        // 10 ms at 2000 MHz, one instruction per cycle.
        assert_eq!(outcome.threads[0].instructions, 20_000_000, "{order:?}");
        let facts = offline_facts(&host.machine, &workload(&[text]), &host.options).unwrap();
        assert!((facts[0].speedup - 3.0).abs() < 1e-6, "{order:?}: {facts:?}");
    }
}

#[test]
fn m11_the_order_of_clusters_does_not_change_how_long_it_takes() {
    let text = |core: usize| {
        format!("[[threads]]\nname='hog'\ncores=[{core}]\nbody=[{{run_us=10e3,profile='unit'}}]")
    };
    for order in ORDERS {
        let host = host(order);
        let took: BTreeMap<&str, u64> = host
            .machine
            .clusters
            .iter()
            .map(|cluster| {
                let outcome = host.run(&text(cluster.cores[0].index()), "cfs");
                (cluster.name.as_str(), outcome.makespan_ns)
            })
            .collect();
        let expected = [("fast", ns(10.0)), ("slower", ns(12.5)), ("little", ns(20.0))];
        assert_eq!(took, BTreeMap::from(expected), "{order:?}");
    }
}

#[test]
fn m11_machines_made_of_it_are_the_same_in_every_order() {
    let kinds = |machine: &Machine| {
        let name = |cluster: &Cluster| (cluster.max_mhz(), cluster.cores.len());
        let mut all: Vec<(u32, usize)> = machine.clusters.iter().map(name).collect();
        all.sort_unstable();
        (all, machine.fastest().max_mhz())
    };
    for order in ORDERS {
        let machine = host(order).machine;
        assert_eq!(kinds(&machine.all_big()), (vec![(2000, 6)], 2000));
        assert_eq!(kinds(&machine.all_little()), (vec![(1000, 6)], 2000));
        assert_eq!(kinds(&machine.only_big()), (vec![(1600, 2), (2000, 2)], 2000));
        // The fastest kind is off, though others of its class are left.
        let part = machine.part(&["fast=0"]).unwrap();
        assert_eq!(kinds(&part), (vec![(1000, 2), (1600, 2)], 2000));
        let capped = machine.part(&["slower=0"]).unwrap();
        assert_eq!(kinds(&capped), (vec![(1000, 2), (2000, 2)], 2000));
    }
}
