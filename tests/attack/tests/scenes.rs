//! Scenes leave nothing out that machines, programs and settings can say. What is new there does not compile here until
//! it is named, and fails until it is drawn.

use std::collections::BTreeSet;

use ampsched_attack::campaign::Scene;
use ampsched_attack::shipped::Shipped;
use ampsched_model::{Dist, FileKind, HeatSource, ObjectKind, Op, SchedClass, TimerMode};
use ampsched_policy::{GOVERNORS, REGISTRY};
use ampsched_sim::FactorSource;

/// Declares the kinds of an enumeration, all of them, and how to tell them apart.
macro_rules! kinds {
    ($module:ident: $Type:ty { $($Kind:ident)+ }) => {
        mod $module {
            use super::*;

            pub const ALL: &[&str] = &[$(stringify!($Kind)),+];

            pub fn of(it: &$Type) -> &'static str {
                use $Type as Type;
                match it {
                    $(Type::$Kind { .. } => stringify!($Kind)),+
                }
            }
        }
    };
}

kinds!(op: Op {
    Compute Run Occupy Lock Unlock LockOneOf UnlockOneOf Wait Signal Broadcast SignalAndWait Barrier SemWait SemPost
    Push Pop ItemEnd Close Take Tasks Create Loop LoopEnd Fork Join Sleep TimerWait Io Yield Suspend Resume SetAffinity
    SetNice SetClass SetSlice SetUclamp SetGroup Exit SleepUntil Period
});
kinds!(class: SchedClass { Fair Batch Idle Fifo RoundRobin Deadline });
kinds!(object: ObjectKind { Mutex Condition Barrier Semaphore Queue Pool Device Timer Region });
kinds!(dist: Dist { Constant Uniform Normal LogNormal Exponential Quantiles });
kinds!(factors: FactorSource { Oracle Noisy Sampled Predicted Constant Missing });
kinds!(heat: HeatSource { Nothing Cores Cluster });
kinds!(mode: TimerMode { Relative Absolute });

/// Enough that a kind is missing only if it is hardly ever drawn.
const SCENES: u64 = 600;

/// What scenes have drawn.
#[derive(Default)]
struct Seen(BTreeSet<String>);

impl Seen {
    fn note(&mut self, kind: &str) {
        if !self.0.contains(kind) {
            self.0.insert(kind.to_owned());
        }
    }

    fn note_if(&mut self, holds: bool, kind: &str) {
        if holds {
            self.note(kind);
        }
    }

    fn assert_all<'a>(&self, what: &str, all: impl IntoIterator<Item = &'a str>) {
        let missing: Vec<&str> = all.into_iter().filter(|kind| !self.0.contains(*kind)).collect();
        assert!(missing.is_empty(), "{what}: {missing:?} are never drawn in {SCENES} scenes");
    }
}

fn scenes() -> Vec<Scene> {
    let shipped = Shipped::read(&[FileKind::CoreType, FileKind::Profile]).unwrap();
    (0..SCENES).map(|number| Scene::new(5, number, &shipped).unwrap()).collect()
}

#[test]
fn low_scenes_draw_everything_that_programs_can_do() {
    let (mut ops, mut objects, mut dists) = (Seen::default(), Seen::default(), Seen::default());
    let mut others = Seen::default();
    for scene in &scenes() {
        for app in &scene.workload().apps {
            let program = &app.program;
            others.note_if(app.start_ns > 0, "late application");
            others.note_if(app.nice != 0, "nice application");
            others.note_if(program.duration_ns.is_some(), "duration");
            others.note_if(program.energy_ratio.is_some(), "energy ratio");
            for thread in &program.threads {
                others.note_if(thread.nice != 0, "nice thread");
                others.note_if(thread.affinity.is_some(), "bound thread");
                others.note_if(thread.start_ns > 0, "late thread");
                others.note(class::of(&thread.attrs.class));
            }
            for object in &program.objects {
                objects.note(object::of(&object.kind));
                if let ObjectKind::Region(region) = &object.kind {
                    let policy = region.policy.split(':').next().unwrap();
                    others.note(policy);
                    others.note_if(region.is_lazy, "lazy region");
                }
            }
            for code in &program.code {
                ops.note(op::of(code));
                match code {
                    Op::Compute { instructions: amount, .. }
                    | Op::Run { reference_ns: amount, .. }
                    | Op::Sleep(amount)
                    | Op::Loop { count: amount, .. } => dists.note(dist::of(&amount.dist)),
                    Op::TimerWait { mode, .. } => others.note(mode::of(mode)),
                    _ => {}
                }
            }
        }
    }
    ops.assert_all("steps", op::ALL.iter().copied());
    objects.assert_all("objects", object::ALL.iter().copied());
    dists.assert_all("distributions", dist::ALL.iter().copied());
    others.assert_all("task policies", ampsched_task::REGISTRY.iter().map(|info| info.name));
    others.assert_all("classes", class::ALL.iter().copied());
    others.assert_all("timers", mode::ALL.iter().copied());
    let properties = [
        "late application",
        "nice application",
        "duration",
        "energy ratio",
        "nice thread",
        "bound thread",
        "late thread",
        "lazy region",
    ];
    others.assert_all("properties", properties);
}

#[test]
fn low_scenes_draw_every_policy_governor_machine_and_setting() {
    let (mut policies, mut sources, mut heats) =
        (Seen::default(), Seen::default(), Seen::default());
    let (mut governors, mut others) = (Seen::default(), Seen::default());
    for scene in &scenes() {
        let (machine, options) = (scene.machine(), scene.options());
        scene.policies().for_each(|name| policies.note(name));
        sources.note(factors::of(&options.factors));
        options.governors.iter().for_each(|spec| governors.note(&spec.name));
        others.note_if(options.governors.len() > 1, "several governors");
        others.note_if(options.until_ns.is_some(), "stopped");
        others.note_if(options.repetitions.is_some(), "repetitions");
        others.note_if(options.energy, "energy");
        others.note_if(options.overhead != Default::default(), "overhead");
        others.note(&format!("{} clusters", machine.clusters.len()));
        for cluster in &machine.clusters {
            let twins = machine.clusters.iter().filter(|other| other.class == cluster.class);
            others.note_if(twins.count() > 1, "two clusters of a class");
            others.note_if(cluster.opps.len() > 1, "several frequencies");
            others.note_if(cluster.core_type != machine.clusters[0].core_type, "kinds of cores");
            others.note_if(!cluster.power.energy_model.is_empty(), "energy model");
            others.note_if(!cluster.power.is_known(), "unknown power");
            others.note_if(cluster.power.core_leakage.kelvin > 0.0, "leakage");
            others.note_if(cluster.power.idle_states.len() > 1, "idle states");
            others.note_if(cluster.power.sensor.is_some(), "power sensor");
        }
        if let Some(thermal) = &machine.thermal {
            thermal.nodes.iter().for_each(|node| heats.note(heat::of(&node.heat)));
            others.note_if(!thermal.trips.is_empty(), "throttling");
        }
    }
    policies.assert_all("policies", REGISTRY.iter().map(|info| info.name));
    governors.assert_all("governors", GOVERNORS.iter().map(|info| info.name));
    sources.assert_all("factors", factors::ALL.iter().copied());
    heats.assert_all("heat", heat::ALL.iter().copied());
    let properties = [
        "several governors",
        "stopped",
        "repetitions",
        "energy",
        "overhead",
        "1 clusters",
        "2 clusters",
        "3 clusters",
        "4 clusters",
        "5 clusters",
        "two clusters of a class",
        "several frequencies",
        "kinds of cores",
        "energy model",
        "unknown power",
        "leakage",
        "idle states",
        "power sensor",
        "throttling",
    ];
    others.assert_all("properties", properties);
}
