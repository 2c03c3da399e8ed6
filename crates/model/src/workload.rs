//! A workload: applications that run together.

use std::sync::Arc;

use crate::{Calibration, Cluster, CoreId, CoreSet, Machine, Ns, Op, Program};

/// One application of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct App {
    /// Name, unique in the workload.
    pub name: String,
    /// What it runs.
    pub program: Arc<Program>,
    /// Delay of its start.
    pub start_ns: Ns,
    /// Added to the nice value of each of its threads.
    pub nice: i8,
}

/// Applications that run together.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Name.
    pub name: String,
    /// One line for listings.
    pub description: String,
    /// The applications.
    pub apps: Vec<App>,
}

impl Workload {
    /// Threads that start with the applications.
    pub fn initial_threads(&self) -> u32 {
        self.apps.iter().map(|app| app.program.initial_threads()).sum()
    }

    /// The workload that consists of one of the applications alone, started at once.
    pub fn alone(&self, index: usize) -> Workload {
        let app = App { start_ns: 0, ..self.apps[index].clone() };
        Workload {
            name: app.name.clone(),
            description: app.program.description.clone(),
            apps: vec![app],
        }
    }

    /// The same applications, each started so many ns later.
    #[must_use]
    pub fn starting_later(&self, by_ns: &[Ns]) -> Workload {
        let later = |(app, ns): (&App, &Ns)| App {
            start_ns: app.start_ns.saturating_add(*ns),
            ..app.clone()
        };
        Workload { apps: self.apps.iter().zip(by_ns).map(later).collect(), ..self.clone() }
    }

    /// The same applications with as many times as much work, see [`Program::with_work`]; `factors` has one for each.
    #[must_use]
    pub fn with_work(&self, factors: &[f64]) -> Workload {
        self.with_programs(|number, program| program.with_work(factors[number]))
    }

    /// The same applications with threads that spin before they block, see [`Program::spinning`].
    #[must_use]
    pub fn spinning(&self, kinds: &[(&str, Ns)]) -> Workload {
        self.with_programs(|_, program| program.spinning(kinds))
    }

    /// The same applications with other stated ratios of speeds, see [`Program::with_net_ratios`].
    #[must_use]
    pub fn with_net_ratios(&self, factor: f64) -> Workload {
        self.with_programs(|_, program| program.with_net_ratios(factor))
    }

    /// The same applications, all of whose threads may use no other cores of a machine than these, as under `taskset`:
    /// a thread that may use none of them by itself may use all of them.
    #[must_use]
    pub fn on_cores(&self, machine: &Machine, cores: &CoreSet) -> Workload {
        // Sets that are those of a computer that recorded become the machine's first.
        self.placed_on(machine).workload.with_programs(|_, program| {
            let mut program = program.clone();
            for thread in &mut program.threads {
                let both =
                    |own: &CoreSet| own.iter().filter(|core| cores.contains(*core)).collect();
                let own: CoreSet = thread.affinity.as_ref().map_or_else(|| cores.clone(), both);
                thread.affinity = Some(if own.is_empty() { cores.clone() } else { own });
            }
            program
        })
    }

    /// The same applications under another task policy, see [`Program::with_task_policy`].
    #[must_use]
    pub fn with_task_policy(&self, policy: &str) -> Workload {
        self.with_programs(|_, program| program.with_task_policy(policy))
    }

    /// The same applications with another program instead of each, which is made of its number and its own.
    fn with_programs(&self, other: impl Fn(usize, &Program) -> Program) -> Workload {
        let apps = self.apps.iter().enumerate().map(|(number, app)| App {
            program: Arc::new(other(number, &app.program)),
            ..app.clone()
        });
        Workload { apps: apps.collect(), ..self.clone() }
    }

    /// The same applications, each stopped at a time if it has not ended by then, as by a duration of its program.
    #[must_use]
    pub fn stopped_at(&self, at_ns: Ns) -> Workload {
        self.with_programs(|app, program| {
            let left_ns = at_ns.saturating_sub(self.apps[app].start_ns);
            let duration_ns =
                program.duration_ns.map_or(left_ns, |stated_ns| stated_ns.min(left_ns));
            Program { duration_ns: Some(duration_ns), ..program.clone() }
        })
    }

    /// The same applications in another order: `order` names each of them once, by its number.
    ///
    /// The order decides who is placed first.
    pub fn reordered(&self, order: &[usize]) -> Workload {
        let apps = order.iter().map(|&index| self.apps[index].clone()).collect();
        Workload { apps, ..self.clone() }
    }

    /// Whether a program says by number which cores of a machine it may use, or what its work is calibrated with.
    pub fn names_cores(&self) -> bool {
        self.apps.iter().filter(|app| app.program.recorded_cores.is_none()).any(|app| {
            let calibrated = matches!(app.program.calibration, Calibration::Core(_));
            calibrated || core_sets(&app.program).next().is_some()
        })
    }

    /// The workload for a machine whose cores are numbered in another order: the numbers that programs name become
    /// those of the same cores on `to`, which has the clusters of `from`. Numbers that the machine does not have stay
    /// as they are. A core that work is calibrated with becomes its kind of core, so that there is as much work on
    /// machines that are made of this one.
    #[must_use]
    pub fn renumbered(&self, from: &Machine, to: &Machine) -> Workload {
        if !self.names_cores() {
            return self.clone();
        }
        let number_on_to = |core: CoreId| {
            let of_cluster = |cluster: &&Cluster| cluster.cores.contains(&core);
            let named = from.clusters.iter().find(of_cluster);
            let same = named.and_then(|cluster| {
                let place = cluster.cores.iter().position(|other| *other == core)?;
                let same = to.clusters.iter().find(|other| other.name == cluster.name)?;
                same.cores.get(place).copied()
            });
            same.unwrap_or(core)
        };
        let renumber = |cores: &CoreSet| cores.iter().map(number_on_to).collect::<CoreSet>();
        self.with_programs(|_, program| {
            let mut program = program.clone();
            if program.recorded_cores.is_some() {
                return program; // its numbers are no machine's
            }
            if let Calibration::Core(core) = program.calibration {
                if core.index() < from.cores() {
                    let kind = from.calibrated(&program.calibration).clone();
                    program.calibration = Calibration::Kind(Box::new(kind));
                }
            }
            for cores in program.threads.iter_mut().filter_map(|thread| thread.affinity.as_mut()) {
                *cores = renumber(cores);
            }
            for op in &mut program.code {
                if let Op::SetAffinity(cores) = op {
                    *cores = renumber(cores);
                }
            }
            program
        })
    }
}

/// The sets of cores that a program names.
fn core_sets(program: &Program) -> impl Iterator<Item = &CoreSet> {
    let stated = program.threads.iter().filter_map(|thread| thread.affinity.as_ref());
    let changed = program.code.iter().filter_map(|op| match op {
        Op::SetAffinity(cores) => Some(cores),
        _ => None,
    });
    stated.chain(changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ProfileLibrary, parse_core_type, parse_machine, parse_program};

    fn machine() -> Machine {
        let core_type = parse_core_type(
            "c.toml",
            "pipeline = \"in-order\"\nwidth = 2\nwindow = 1\nmispredict_cycles = 9\nload_cycles = 3\nfp_single_cycles = 1\nfp_double_cycles = 1\n\
             fp_single_latency_cycles = 4\nfp_double_latency_cycles = 4\n\
             l1i_kib = 32\nl1d_kib = 32\nl2_kib = 512\nl2_cycles = 15\nmemory_ns = 110\nmlp_max = 4\nprefetch_share = 0.6\n",
        );
        let cluster = |name: &str, cores: u32, class: u32| {
            format!(
                "[[clusters]]\nname = \"{name}\"\ncore_type = \"c\"\ncores = {cores}\nclass = {class}\n\
                 opps = [{{ mhz = 1000, volt = 1.0 }}]\n"
            )
        };
        let costs = "[costs]\ncontext_switch_ns = 1\nmigrate_same_cluster_ns = 1\nmigrate_cross_cluster_ns = 1\n\
                     wakeup_latency_ns = 1\n";
        let text = cluster("big", 1, 1) + &cluster("little", 2, 0) + costs;
        parse_machine("m.toml", &text)
            .unwrap()
            .instantiate(|_, _| core_type.clone().map(|found| found.params))
            .unwrap()
    }

    fn workload(body: &str, cores: &str) -> Workload {
        let text = format!("[[threads]]\nname = \"t\"\n{cores}\nbody = [{body}]\n");
        let program = parse_program("p.toml", &text)
            .unwrap()
            .instantiate(&[], &ProfileLibrary::default())
            .unwrap();
        let app = App { name: "a".to_owned(), program: Arc::new(program), start_ns: 7, nice: 0 };
        Workload { name: "w".to_owned(), description: String::new(), apps: vec![app] }
    }

    #[test]
    fn m12_named_cores_stay_the_same_cores_in_another_order() {
        let (stated, workload) = (machine(), workload("{ set_cores = [2, 9] }", "cores = [0]"));
        let named = |workload: &Workload| -> Vec<Vec<usize>> {
            core_sets(&workload.apps[0].program)
                .map(|cores| cores.iter().map(CoreId::index).collect())
                .collect()
        };
        // Stated: core 0 is big, 1 and 2 are little.
        let big_first = workload.renumbered(&stated, &stated.ordered(true));
        assert_eq!(named(&big_first), [vec![0], vec![2, 9]]);
        let little_first = workload.renumbered(&stated, &stated.ordered(false));
        assert_eq!(named(&little_first), [vec![2], vec![1, 9]]);
        assert!(workload.names_cores());
        assert!(!super::tests::workload("", "").names_cores());
    }

    #[test]
    fn an_application_alone_starts_at_once() {
        let alone = workload("", "").alone(0);
        assert_eq!(
            (alone.name.as_str(), alone.apps[0].start_ns, alone.initial_threads()),
            ("a", 0, 1)
        );
    }

    #[test]
    fn machines_can_be_ordered_by_speed_or_made_all_big() {
        let machine = machine();
        let names = |machine: &Machine| -> Vec<(String, usize)> {
            let clusters = machine.clusters.iter();
            clusters.map(|cluster| (cluster.name.clone(), cluster.cores[0].index())).collect()
        };
        let expected =
            |rows: [(&str, usize); 2]| rows.map(|(name, core)| (name.to_owned(), core)).to_vec();
        assert_eq!(names(&machine.ordered(true)), expected([("big", 0), ("little", 1)]));
        assert_eq!(names(&machine.ordered(false)), expected([("little", 0), ("big", 2)]));
        assert_eq!(machine.ordered(false).cluster_of(CoreId(1)).index(), 0);
        let big = machine.all_big();
        assert_eq!((big.cores(), big.clusters.len(), big.clusters[0].class.0), (3, 1, 0));
        assert_eq!(big.reference, None);
        let little = machine.only_little();
        assert_eq!(names(&little), [("little".to_owned(), 0)]);
        assert_eq!((little.cores(), little.clusters[0].class.0), (2, 0));
        assert_eq!(little.fastest().name, "big");
        assert_eq!((machine.only_big().cores(), machine.only_big().reference), (1, None));
    }
}
