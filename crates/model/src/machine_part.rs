//! A part of a machine: some cores switched off, clocks capped or bounded.

use crate::{ClassId, Cluster, InputError, Machine, Opp, suggest};

/// What is left of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Share {
    cluster: String,
    /// None: all of them.
    cores: Option<usize>,
    clock: Clock,
}

/// What is left of a cluster's clock, in MHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    All,
    /// Operating points above are gone.
    Cap(u32),
    /// It is kept within bounds.
    Bounds(Option<u32>, Option<u32>),
}

impl Share {
    /// Reads `big=2`, `big=2@1600`, `big=2@600-1600`, `big@600-`.
    fn parse(text: &str) -> Option<Self> {
        let (what, clock) = match text.split_once('@') {
            Some((what, clock)) => (what, Clock::parse(clock)?),
            None => (text, Clock::All),
        };
        let (cluster, cores) = match what.split_once('=') {
            Some((cluster, cores)) => (cluster, Some(cores.parse().ok()?)),
            None => (what, None),
        };
        let says_something = cores.is_some() || clock != Clock::All;
        (says_something && !cluster.is_empty()).then(|| Self {
            cluster: cluster.to_owned(),
            cores,
            clock,
        })
    }
}

impl Clock {
    /// Reads what stands behind `@`.
    fn parse(text: &str) -> Option<Self> {
        let Some((min, max)) = text.split_once('-') else {
            return text.parse().ok().map(Self::Cap);
        };
        let bound = |text: &str| match text {
            "" => Some(None),
            mhz => mhz.parse().ok().map(Some),
        };
        Some(Self::Bounds(bound(min)?, bound(max)?))
    }
}

impl Machine {
    /// The machine with only some of its cores on, and with capped or bounded clocks: `big=2@1600` leaves two cores of
    /// cluster `big`, and of its operating points those up to 1600 MHz. Clusters that are not named stay whole; one of
    /// which nothing is left is off and draws no power. Stated ratios of speeds refer to the clusters' highest
    /// frequencies that are left, and to the fastest cluster even if it is off.
    ///
    /// `big=2@600-1600`, `big@600-`, `big@-1600` and `big@-` bound the clock as Linux does for who writes
    /// `scaling_min_freq` and `scaling_max_freq`: ratios of speeds and capacities stay those at the highest frequency
    /// that the cluster has.
    ///
    /// # Errors
    /// A share of another form, a cluster that does not exist or is named twice, more cores than it has, a cap below
    /// or above its operating points, bounds with none between them, or no core at all.
    pub fn part(&self, shares: &[&str]) -> Result<Machine, InputError> {
        let mut machine = self.clone();
        machine.name = format!("{}:{}", self.name, shares.join(":"));
        let error =
            |message: String| InputError::new(format!("machine {}", machine.name), "", message);
        let mut named: Vec<String> = Vec::new();
        for text in shares {
            let share = Share::parse(text).ok_or_else(|| {
                error(format!(
                    "{text:?} is not of the form CLUSTER=CORES, CLUSTER=CORES@MHZ or CLUSTER=CORES@MIN-MAX"
                ))
            })?;
            let names = self.clusters.iter().map(|cluster| cluster.name.as_str());
            let Some(place) = names.clone().position(|name| name == share.cluster) else {
                let hint = suggest(&share.cluster, names);
                return Err(
                    error(format!("there is no cluster {:?}", share.cluster)).with_hint(hint)
                );
            };
            if named.contains(&share.cluster) {
                return Err(error(format!("cluster {} is named twice", share.cluster)));
            }
            machine.clusters[place].shrink(&share).map_err(error)?;
            named.push(share.cluster);
        }
        let fastest = machine.fastest().clone();
        machine.clusters.retain(|cluster| !cluster.cores.is_empty());
        if machine.clusters.is_empty() {
            return Err(error("no core is left".to_owned()));
        }
        let top = machine.top();
        if top.class != fastest.class || fastest.by_speed(top).is_lt() {
            machine.reference = Some(fastest);
        }
        machine.close_classes();
        machine.close_numbers();
        Ok(machine)
    }

    /// Numbers classes without a gap; stated ratios are those to the reference, whose class stays above.
    fn close_classes(&mut self) {
        let mut classes: Vec<ClassId> = self.clusters.iter().map(|cluster| cluster.class).collect();
        classes.sort_unstable();
        classes.dedup();
        for cluster in &mut self.clusters {
            let place = classes.iter().position(|class| *class == cluster.class);
            cluster.class = ClassId::from(place.expect("its class is among them"));
        }
    }
}

impl Cluster {
    /// Takes cores and operating points away.
    fn shrink(&mut self, share: &Share) -> Result<(), String> {
        let (name, whole) = (&self.name, self.cores.len());
        let cores = share.cores.unwrap_or(whole);
        if cores > whole {
            return Err(format!("{cores} cores of cluster {name}, which has {whole}"));
        }
        self.cores.truncate(cores);
        match share.clock {
            Clock::All => Ok(()),
            Clock::Cap(max_mhz) => self.cap(max_mhz),
            Clock::Bounds(min_mhz, max_mhz) => self.bound(min_mhz, max_mhz),
        }
    }

    /// Takes operating points away that are above.
    fn cap(&mut self, max_mhz: u32) -> Result<(), String> {
        let mhz = |opp: Option<&Opp>| opp.map_or(0, |opp| opp.mhz);
        let (lowest, highest) = (mhz(self.opps.first()), mhz(self.opps.last()));
        if !(lowest..=highest).contains(&max_mhz) {
            let name = &self.name;
            return Err(format!(
                "cluster {name} at most at {max_mhz} MHz, but its frequencies are {lowest} to {highest} MHz"
            ));
        }
        self.opps.retain(|opp| opp.mhz <= max_mhz);
        self.power.energy_model.truncate(self.opps.len());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CoreId, parse_core_type, parse_machine};

    fn machine() -> Machine {
        let core_type = "pipeline = \"in-order\"\nwidth = 2\nwindow = 1\nmispredict_cycles = 9\nload_cycles = 3\nfp_single_cycles = 1\nfp_double_cycles = 1\n\
             fp_single_latency_cycles = 4\nfp_double_latency_cycles = 4\n\
             l1i_kib = 32\nl1d_kib = 32\nl2_kib = 512\nl2_cycles = 15\nmemory_ns = 110\nmlp_max = 4\nprefetch_share = 0.6\n";
        let core_type = parse_core_type("c.toml", core_type).unwrap();
        let cluster = |name: &str, class: u32| {
            format!(
                "[[clusters]]\nname = \"{name}\"\ncore_type = \"c\"\ncores = 4\nclass = {class}\n\
                 opps = [{{ mhz = 800, volt = 1.0 }}, {{ mhz = 1600, volt = 1.1 }}, {{ mhz = 2000, volt = 1.2 }}]\n"
            )
        };
        let costs = "[costs]\ncontext_switch_ns = 1\nmigrate_same_cluster_ns = 1\nmigrate_cross_cluster_ns = 1\nwakeup_latency_ns = 1\n";
        let text = cluster("little", 0) + &cluster("big", 1) + costs;
        let template = parse_machine("m.toml", &text).unwrap();
        template.instantiate(|_, _| Ok(core_type.params)).unwrap()
    }

    #[test]
    fn cores_and_clocks_are_left_out() {
        let part = machine().part(&["big=2@1700", "little=1@800"]).unwrap();
        assert_eq!(part.name, "m:big=2@1700:little=1@800");
        assert_eq!(part.cores(), 3);
        let [little, big] = part.clusters.as_slice() else { panic!("two clusters") };
        assert_eq!((little.max_mhz(), big.max_mhz()), (800, 1600));
        assert_eq!(big.cores, [CoreId(1), CoreId(2)]);
        assert_eq!(part.reference, None);
        let whole = machine().part(&["big=3"]).unwrap();
        assert_eq!((whole.cores(), whole.clusters[0].max_mhz()), (7, 2000));
    }

    #[test]
    fn bounds_round_inwards_and_leave_capacities_alone() {
        let whole = machine();
        let part = whole.part(&["big=2@700-1999", "little@801-"]).unwrap();
        let [little, big] = part.clusters.as_slice() else { panic!("two clusters") };
        let bounds = |cluster: &Cluster| cluster.bounds.map(|it| (it.min_mhz, it.max_mhz));
        assert_eq!((bounds(big), big.max_mhz(), big.highest_opp()), (Some((800, 1600)), 2000, 1));
        assert_eq!((bounds(little), little.cores.len()), (Some((1600, 2000)), 4));
        let clocks = |cluster: &Cluster| cluster.opps.iter().map(|opp| opp.mhz).collect::<Vec<_>>();
        assert_eq!((clocks(little), clocks(big)), (vec![1600, 2000], vec![800, 1600, 2000]));
        assert_eq!((little.highest_opp(), part.reference.is_none()), (1, true));
        let highest = |machine: &Machine| {
            crate::energy_models(machine)
                .iter()
                .map(|points| points.last().copied())
                .collect::<Vec<_>>()
        };
        assert_eq!(highest(&part), highest(&whole));
        let all = whole.part(&["big@-"]).unwrap();
        assert_eq!(
            (bounds(&all.clusters[1]), clocks(&all.clusters[1]).len()),
            (Some((800, 2000)), 3)
        );
    }

    #[test]
    fn a_cluster_that_is_off_still_sets_the_ratio() {
        let little = machine().part(&["big=0@1600", "little=4@800"]).unwrap();
        assert_eq!((little.cores(), little.clusters.len()), (4, 1));
        assert_eq!((little.fastest().name.as_str(), little.fastest().max_mhz()), ("big", 1600));
        assert_eq!((little.clusters[0].class, little.fastest().class), (ClassId(0), ClassId(1)));
        let big = machine().part(&["little=0"]).unwrap();
        assert_eq!((big.cores(), big.clusters[0].class, big.reference), (4, ClassId(0), None));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let error = |shares: &[&str]| machine().part(shares).unwrap_err().to_string();
        assert_eq!(
            error(&["bigg=1"]),
            "machine m:bigg=1: there is no cluster \"bigg\" (did you mean \"big\"?)"
        );
        assert_eq!(error(&["big=5"]), "machine m:big=5: 5 cores of cluster big, which has 4");
        assert!(
            error(&["big"]).contains(
                "\"big\" is not of the form CLUSTER=CORES, CLUSTER=CORES@MHZ or CLUSTER="
            )
        );
        for form in ["big=1@x", "big@", "big=@600-", "@600-", "big@6-x", "big@6-7-8"] {
            assert!(error(&[form]).contains("is not of the form"), "{form}");
        }
        assert!(error(&["big=1", "big=2"]).contains("named twice"));
        for mhz in [700, 2001, 3000] {
            let error = error(&[&format!("big=1@{mhz}")]);
            assert!(error.contains("but its frequencies are 800 to 2000 MHz"), "h34_13: {error}");
        }
        assert!(error(&["big=0", "little=0"]).contains("no core is left"));
        assert_eq!(
            error(&["big@900-1500"]),
            "machine m:big@900-1500: cluster big has no frequency from 900 MHz on up to 1500 MHz: they are 800, 1600, 2000 MHz"
        );
        for form in ["big@2001-", "big@-799", "big@1600-800"] {
            assert!(error(&[form]).contains("they are 800, 1600, 2000 MHz"), "{form}");
        }
    }
}
