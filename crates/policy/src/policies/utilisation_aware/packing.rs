//! How threads are reckoned to cores.

use ampsched_model::{ClusterId, CoreId};

use crate::Topology;

/// Which thread is reckoned to which cluster, and how full cores are then.
pub struct Packing<'a> {
    topology: &'a Topology,
    target: f64,
    /// Utilisation reckoned to each core.
    used: Vec<u32>,
}

impl<'a> Packing<'a> {
    /// Nothing is reckoned yet; so much of each core's capacity may be used.
    pub fn new(topology: &'a Topology, target: f64) -> Self {
        Self { topology, target, used: vec![0; topology.core_count()] }
    }

    /// What a core may still take: its capacity's share, less what it has.
    fn room(&self, core: CoreId) -> f64 {
        let capacity = f64::from(self.topology.core(core).capacity);
        self.target * capacity - f64::from(self.used[core.index()])
    }

    /// Reckons a thread to a core.
    fn add(&mut self, util: u32, allows: impl Fn(CoreId) -> bool) -> ClusterId {
        let class = |core: CoreId| self.topology.core(core).class;
        let cores = || self.topology.cores().filter(|&core| allows(core));
        let fitting = cores().filter(|&core| self.room(core) >= f64::from(util));
        let slowest = fitting.map(class).min().or(cores().map(class).max());
        let of_class = cores().filter(|&core| Some(class(core)) == slowest);
        // Of equal ones the first: `max_by` takes the last.
        let by_room =
            |a: &CoreId, b: &CoreId| self.room(*a).total_cmp(&self.room(*b)).then(b.cmp(a));
        let core = of_class.max_by(by_room).expect("an affinity set is never empty");
        self.used[core.index()] += util;
        self.topology.core(core).cluster
    }

    /// Reckons so many threads alike to cores, one after another. Tells how many go to which cluster, in turn.
    pub fn add_run(
        &mut self,
        util: u32,
        count: usize,
        allows: impl Fn(CoreId) -> bool,
        mut tell: impl FnMut(usize, ClusterId),
    ) {
        let mut left = count;
        while left > 0 {
            let filled = self.fill(util, left, &allows);
            let (placed, cluster) = match filled {
                Some(filled) => filled,
                // Who uses nothing takes no room from the next.
                None => (if util == 0 { left } else { 1 }, self.add(util, &allows)),
            };
            tell(placed, cluster);
            left -= placed;
        }
    }

    /// Reckons most of so many threads alike to the cores that are theirs as long as there is room on one of those: as
    /// [`Packing::add`] does one by one, each to the core that has the most room. Returns how many, and where they go;
    /// none if they are few, or go to several clusters.
    fn fill(
        &mut self,
        util: u32,
        count: usize,
        allows: impl Fn(CoreId) -> bool,
    ) -> Option<(usize, ClusterId)> {
        let few = 4 * self.topology.core_count();
        if util == 0 || count <= few {
            return None;
        }
        let topology = self.topology;
        let class = |core: CoreId| topology.core(core).class;
        let cores = || topology.cores().filter(|&core| allows(core));
        let fitting = cores().filter(|&core| self.room(core) >= f64::from(util)).map(class).min();
        let there = fitting.or(cores().map(class).max())?;
        let there: Vec<CoreId> = cores().filter(|&core| class(core) == there).collect();
        let cluster = topology.core(there[0]).cluster;
        if there.iter().any(|&core| topology.core(core).cluster != cluster) {
            return None;
        }
        let room_for = |&core: &CoreId| self.first_below(core, util, f64::from(util), false);
        let room = fitting.map_or(count, |_| there.iter().map(room_for).sum());
        let count = count.min(room);
        if count <= few {
            return None;
        }
        // A core with more room than this comes before all others. Half a step and more are left to rounding.
        let level = self.level(&there, util, count) + 1.5 * f64::from(util);
        let parts: Vec<usize> =
            there.iter().map(|&core| self.first_below(core, util, level, true)).collect();
        let filled = parts.iter().sum();
        if filled == 0 || filled > count {
            return None;
        }
        for (core, part) in there.into_iter().zip(parts) {
            self.used[core.index()] += part as u32 * util;
        }
        Some((filled, cluster))
    }

    /// How many threads alike a core takes until its room is below a level, or, with `or_at`, no more than that.
    fn first_below(&self, core: CoreId, util: u32, level: f64, or_at: bool) -> usize {
        let capacity = f64::from(self.topology.core(core).capacity);
        let used = u64::from(self.used[core.index()]);
        let takes = |number: u64| {
            let room = self.target * capacity - (used + number * u64::from(util)) as f64;
            room > level || (!or_at && room == level)
        };
        let mut number = ((self.room(core) - level) / f64::from(util)).max(0.0) as u64;
        while number > 0 && !takes(number - 1) {
            number -= 1;
        }
        while takes(number) {
            number += 1;
        }
        number as usize
    }

    /// The room that about so many threads alike leave on cores, if each takes the one that has the most.
    fn level(&self, cores: &[CoreId], util: u32, count: usize) -> f64 {
        let mut rooms: Vec<f64> = cores.iter().map(|&core| self.room(core)).collect();
        rooms.sort_unstable_by(|a, b| b.total_cmp(a));
        let (mut sum, mut level) = (0.0, f64::NEG_INFINITY);
        for (number, &room) in rooms.iter().enumerate() {
            if level >= room {
                break;
            }
            sum += room;
            level = (sum - count as f64 * f64::from(util)) / (number + 1) as f64;
        }
        level
    }

    /// The lowest frequency of a cluster at which its fullest core is used to at most the target; none if its
    /// frequencies are not known.
    pub fn mhz(&self, cluster: ClusterId) -> Option<u32> {
        let cluster = &self.topology.clusters()[cluster.index()];
        let fullest = cluster.cores.iter().map(|core| self.used[core.index()]).max().unwrap_or(0);
        let max_mhz = cluster.max_mhz()?;
        let share = f64::from(fullest) / (self.target * f64::from(cluster.capacity()));
        let wanted = share * f64::from(max_mhz);
        let enough = cluster.freqs_mhz.iter().copied().find(|&mhz| f64::from(mhz) >= wanted);
        Some(enough.unwrap_or(max_mhz))
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::{ClassId, EnergyPoint};
    use proptest::prelude::*;

    use super::*;
    use crate::ClusterInfo;

    fn topology() -> Topology {
        let cluster = |class: u8, cores: [u16; 2], capacity| ClusterInfo {
            shares_l2: false,
            class: ClassId(class),
            cores: cores.map(CoreId).to_vec(),
            freqs_mhz: vec![250, 500, 750, 1000],
            design: None,
            energy_model: vec![EnergyPoint { mhz: 1000, capacity, power_mw: 0.0 }],
        };
        Topology::from_clusters(vec![cluster(0, [0, 1], 400.0), cluster(1, [2, 3], 1024.0)])
    }

    #[test]
    fn threads_are_packed_onto_the_slowest_cluster_with_room() {
        let topology = topology();
        let mut packing = Packing::new(&topology, 0.8);
        let places = [500, 200, 200, 200, 900].map(|util| packing.add(util, |_| true).0);
        // 320 fit on each slow core: one thread of 200; the fourth and the fifth go up.
        assert_eq!(places, [1, 0, 0, 1, 1]);
        assert_eq!(packing.used, [200, 200, 500, 1100]);
        // 200 / 320 of 1000 MHz is 625; more than full is the highest.
        assert_eq!([0, 1].map(|index| packing.mhz(ClusterId(index))), [Some(750), Some(1000)]);
        assert_eq!(Packing::new(&topology, 0.8).mhz(ClusterId(1)), Some(250));
    }

    #[test]
    fn the_programs_own_affinity_comes_first() {
        let topology = topology();
        let mut packing = Packing::new(&topology, 0.8);
        assert_eq!(packing.add(10, |core| core.0 == 3), ClusterId(1));
        assert_eq!(packing.used, [0, 0, 0, 10]);
    }

    /// Clusters of two cores, each with a class and a capacity.
    fn clusters() -> impl Strategy<Value = Topology> {
        prop::collection::vec((0..3u8, 100..1025u32), 1..4).prop_map(|mut clusters| {
            clusters.sort_unstable();
            let mut classes: Vec<u8> = clusters.iter().map(|cluster| cluster.0).collect();
            classes.dedup();
            let cluster = |(number, (class, capacity)): (usize, (u8, u32))| ClusterInfo {
                shares_l2: false,
                class: ClassId(classes.iter().position(|&known| known == class).unwrap() as u8),
                cores: [2 * number, 2 * number + 1].map(CoreId::from).to_vec(),
                freqs_mhz: vec![1000],
                design: None,
                energy_model: vec![EnergyPoint {
                    mhz: 1000,
                    capacity: f64::from(capacity),
                    power_mw: 0.0,
                }],
            };
            Topology::from_clusters(clusters.into_iter().enumerate().map(cluster).collect())
        })
    }

    proptest! {
        #[test]
        fn threads_alike_go_where_they_go_one_by_one(
            topology in clusters(),
            target in 0.1..1.0f64,
            runs in prop::collection::vec((0..40u32, 1..400usize, 0..9usize), 1..8),
        ) {
            let (mut many, mut single) =
                (Packing::new(&topology, target), Packing::new(&topology, target));
            for (util, count, except) in runs {
                let allows = |core: CoreId| core.index() != except || topology.core_count() == 1;
                let mut places = Vec::new();
                many.add_run(util, count, allows, |count, cluster| {
                    places.extend(std::iter::repeat_n(cluster, count));
                });
                let expected: Vec<ClusterId> =
                    (0..count).map(|_| single.add(util, allows)).collect();
                prop_assert_eq!(places, expected);
                prop_assert_eq!(&many.used, &single.used);
            }
        }
    }
}
