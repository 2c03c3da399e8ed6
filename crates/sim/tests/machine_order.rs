//! The order in which a machine lists its clusters decides how cores are numbered, and nothing else.

mod common;

use std::collections::BTreeMap;

use ampsched_model::{ClassId, Cluster, CoreId, Machine};
use ampsched_policy::REGISTRY as POLICIES;
use ampsched_sim::offline_facts;
use common::{Host, ns, shipped_catalog, workload};

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

/// 34.11: `juno` was numbered unlike the board, so threads that were bound to its CPU 0 ran on a big core.
#[test]
fn h34_11_cores_have_the_numbers_of_the_board() {
    let machine = shipped_catalog().machine("juno").unwrap();
    let name = |core: usize| &machine.clusters[machine.cluster_of(core.into()).index()].name;
    let names: Vec<&String> = (0..6).map(name).collect();
    assert_eq!(names, ["little", "big", "big", "little", "little", "little"]);
    let part = machine.part(&["big=1", "little=2"]).unwrap();
    let [big, little] = &part.clusters[..] else { panic!("two clusters") };
    assert_eq!(
        (&big.cores[..], &little.cores[..]),
        (&[CoreId(1)][..], &[CoreId(0), CoreId(2)][..])
    );
}

/// Six threads, of which each is bound to a core of its own, take as long however cores are numbered, and all policies
/// keep their books.
#[test]
fn h34_11_numbers_of_cores_do_not_matter() {
    for info in POLICIES {
        let took = |numbers: [usize; 6]| {
            let mut host = host(ORDERS[0]);
            for (place, number) in numbers.into_iter().enumerate() {
                host.machine.clusters[place / 2].cores[place % 2] = CoreId::from(number);
            }
            // Both cores of a cluster are threads of one: who slows whom down follows the numbers, too.
            for cluster in &mut host.machine.clusters {
                cluster.sharing.smt_speed = Some(0.6);
            }
            let bound = |(place, number): (usize, usize)| {
                let ms = 5 + place;
                format!(
                    "[[threads]]\nname='t{place}'\ncores=[{number}]\n\
                     body=[{{loop=3,body=[{{run_us={ms}e3,profile='unit'}},{{sleep_us=1500}}]}}]\n"
                )
            };
            let bound: String = numbers.into_iter().enumerate().map(bound).collect();
            let free = "[[threads]]\nname='t'\ncount=9\nbody=[{loop=5,body=[{run_us=4e3,profile='unit'},{sleep_us=700}]}]";
            let free = host.run(free, info.name);
            assert_eq!(
                free.threads.iter().map(|thread| thread.instructions).sum::<u64>(),
                9 * 5 * 8_000_000
            );
            let outcome = host.run(&bound, info.name);
            let end = |thread: &ampsched_sim::ThreadOutcome| (thread.name.clone(), thread.end_ns);
            outcome.threads.iter().map(end).collect::<Vec<_>>()
        };
        let in_order = took([0, 1, 2, 3, 4, 5]);
        for numbers in [[5, 4, 3, 2, 1, 0], [1, 2, 0, 4, 3, 5], [4, 0, 5, 2, 1, 3]] {
            assert_eq!(took(numbers), in_order, "{}, {numbers:?}", info.name);
        }
    }
}
