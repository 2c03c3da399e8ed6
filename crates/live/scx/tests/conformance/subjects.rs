//! Machines and rules that are compared.

use ampsched_model::{ClassId, CoreId, Draw};
use ampsched_policy::{ClusterInfo, Rules, Source, Topology, Wire};

fn topology(clusters: &[(u8, usize)]) -> Topology {
    let mut next = 0;
    let clusters = clusters.iter().map(|&(class, count)| {
        let cores = (next..next + count).map(CoreId::from).collect();
        next += count;
        ClusterInfo {
            class: ClassId(class),
            cores,
            freqs_mhz: vec![1000],
            design: None,
            energy_model: Vec::new(),
        }
    });
    Topology::from_clusters(clusters.collect())
}

/// Big first and little first, one kind, three kinds, several clusters of a kind, one core.
pub fn topologies() -> Vec<Topology> {
    let all: [&[(u8, usize)]; 7] = [
        &[(1, 2), (0, 2)],
        &[(0, 3), (1, 1)],
        &[(0, 4)],
        &[(0, 2), (1, 2), (2, 1)],
        &[(0, 2), (0, 2), (1, 4)],
        &[(0, 1)],
        &[(1, 4), (0, 6)],
    ];
    all.map(topology).to_vec()
}

/// Rules drawn from all words that a kernel executes.
pub fn random_rules(draw: &mut Draw) -> Rules {
    Rules::draw_fields(&mut Source::random(&mut |limit| draw.bits() % limit))
}
