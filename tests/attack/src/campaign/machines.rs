//! Random machines, as the text of their files.

use std::fmt::Write;

use super::mechanisms;
use crate::dice::Dice;

/// Shipped kinds of core that machines here are made of: of a little class, and of those above.
const CORE_TYPES: [(&str, &str); 4] = [
    ("cortex-a7", "cortex-a15"),
    ("cortex-a53", "cortex-a57"),
    ("cortex-a55", "cortex-a76"),
    ("gracemont", "golden-cove"),
];
/// Highest frequency of each class in MHz, and capacity there: a class above is always faster.
const TOPS: [(u64, u64); 4] = [(700, 200), (1300, 400), (2000, 700), (3400, 1024)];

/// What a machine's file says.
#[derive(Clone, Debug)]
pub struct MachineText {
    /// The file.
    pub text: String,
    /// Number of cores.
    pub cores: usize,
    /// Whether power is known of all clusters.
    pub power: bool,
    /// Clusters with several frequencies.
    pub clocks: Vec<String>,
}

/// How power is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    Unknown,
    Law,
    Table,
}

/// What is drawn of a cluster before it is written down.
#[derive(Clone, Debug)]
struct ClusterPlan {
    name: String,
    class: usize,
    core_type: &'static str,
    cores: u64,
    opps: u64,
    l2_kib: Option<u64>,
}

/// A machine of one to five clusters in random order.
pub fn machine(dice: &mut Dice) -> MachineText {
    let power = *dice.of(&[Power::Unknown, Power::Law, Power::Law, Power::Table]);
    let heats = power != Power::Unknown && dice.once_in(3);
    let mut plans = plans(dice);
    let cores = plans.iter().map(|plan| plan.cores as usize).sum();
    let several = plans.iter().filter(|plan| plan.opps > 1);
    let clocks = several.map(|plan| plan.name.clone()).collect();
    // Machines number their cores from fast to slow, from slow to fast, or in no order.
    for place in (1..plans.len()).rev() {
        let other = dice.index(place + 1);
        plans.swap(place, other);
    }
    let mut text: String = plans.iter().map(|plan| cluster(dice, plan, power)).collect();
    text += &costs(dice);
    if heats {
        text += &thermal(dice, &plans);
    }
    if dice.once_in(2) {
        text += &kernel(dice);
    }
    let text = mechanisms::of_machine(text, power != Power::Unknown);
    MachineText { text, cores, power: power != Power::Unknown, clocks }
}

fn plans(dice: &mut Dice) -> Vec<ClusterPlan> {
    let classes = *dice.of(&[1, 2, 2, 2, 2, 3, 4]);
    let (little, big) = *dice.of(&CORE_TYPES);
    let both = dice.once_in(2);
    let mut plans: Vec<ClusterPlan> = (0..classes)
        .map(|class| ClusterPlan {
            name: format!("c{class}"),
            class,
            core_type: if both && class == 0 { little } else { big },
            cores: dice.whole(1..=4),
            opps: if dice.once_in(3) { 1 } else { dice.whole(2..=6) },
            l2_kib: dice.once_in(4).then(|| 512 << class),
        })
        .collect();
    if dice.once_in(5) {
        // Two clusters of one class are equally fast.
        let twin = dice.of::<ClusterPlan>(&plans).clone();
        plans.push(ClusterPlan { name: "twin".into(), cores: dice.whole(1..=3), ..twin });
    }
    plans
}

fn cluster(dice: &mut Dice, plan: &ClusterPlan, power: Power) -> String {
    let ClusterPlan { name, class, core_type, cores, opps, .. } = plan;
    let (top_mhz, capacity) = TOPS[*class];
    let each = |row: &mut dyn FnMut(u64) -> String| {
        (1..=*opps).map(row).collect::<Vec<String>>().join(", ")
    };
    let points = each(&mut |step| {
        format!("{{ mhz = {}, volt = {} }}", top_mhz * step / opps, 0.8 + 0.06 * step as f64)
    });
    let mut text = format!(
        "[[clusters]]\nname = \"{name}\"\ncore_type = \"{core_type}\"\ncores = {cores}\nclass = {class}\nopps = [{points}]\n"
    );
    if let Some(l2_kib) = plan.l2_kib {
        let _ = writeln!(text, "l2_kib = {l2_kib}");
    }
    if power == Power::Unknown {
        return text;
    }
    if dice.once_in(2) {
        let (period_ms, noise_mw) = (dice.scale(0.5, 50.0), dice.whole(0..=20));
        let delay_ms = dice.of(&[0.0, 0.3, 4.0]);
        let _ = writeln!(
            text,
            "power_sensor = {{ resolution_mw = 1, noise_mw = {noise_mw}, period_ms = {period_ms:.3}, delay_ms = {delay_ms} }}"
        );
    }
    if dice.once_in(2) {
        text += &idle_states(dice);
    }
    if power == Power::Law {
        return text + &power_of(dice);
    }
    let (core_mw, cluster_mw) = (dice.scale(10.0, 3000.0), dice.scale(1.0, 500.0));
    let rows = each(&mut |step| {
        let share = step as f64 / *opps as f64;
        format!(
            "{{ mhz = {}, capacity = {:.1}, power_mw = {:.2}, cluster_mw = {:.2} }}",
            top_mhz * step / opps,
            capacity as f64 * share,
            core_mw * share * share,
            cluster_mw * share
        )
    });
    let _ = writeln!(text, "energy_model = [{rows}]");
    text
}

fn power_of(dice: &mut Dice) -> String {
    let mut text = format!(
        "[clusters.power]\ndynamic_uw_per_mhz_v2 = {:.2}\nuncore_dynamic_uw_per_mhz_v2 = {:.2}\n",
        dice.scale(10.0, 1000.0),
        dice.scale(1.0, 300.0)
    );
    if dice.once_in(2) {
        let _ = writeln!(
            text,
            "static_mw = {:.3}\nuncore_static_mw = {:.3}\nstatic_at_volt = 1\nstatic_at_c = 25\nstatic_per_volt = {:.2}\nstatic_kelvin = {}",
            dice.scale(0.1, 50.0),
            dice.scale(0.1, 20.0),
            dice.between(0.0, 5.0),
            if dice.once_in(2) { 0 } else { 2500 }
        );
    }
    if dice.once_in(2) {
        let (stalled, l2) = (dice.between(0.0, 1.0), dice.between(0.0, 1.0));
        let _ = writeln!(text, "activity = {{ stalled = {stalled:.2}, l2 = {l2:.2} }}");
    }
    text
}

fn idle_states(dice: &mut Dice) -> String {
    let stay_us = dice.scale(10.0, 5000.0);
    format!(
        "idle_states = [{{ name = \"wfi\", core_mw = 2, core_share = 0.9, uncore_share = 1 }}, \
         {{ name = \"off\", core_share = 0.1, uncore_share = 0.2, entry_us = 5, exit_us = 20, \
         min_residency_us = {stay_us:.1} }}]\n"
    )
}

fn costs(dice: &mut Dice) -> String {
    let mut cost = |most_ns: u64| if dice.once_in(4) { 0 } else { dice.whole(1..=most_ns) };
    format!(
        "[costs]\ncontext_switch_ns = {}\nmigrate_same_cluster_ns = {}\nmigrate_cross_cluster_ns = {}\n\
         wakeup_latency_ns = {}\nfrequency_switch_ns = {}\n",
        cost(5_000),
        cost(20_000),
        cost(50_000),
        cost(5_000),
        cost(1_000_000)
    )
}

/// What a kernel knows of the machine.
fn kernel(dice: &mut Dice) -> String {
    let sees = *dice.of(&["nothing", "capacities", "priorities"]);
    let cache = *dice.of(&["machine", "cluster"]);
    format!("[kernel]\nsees = \"{sees}\"\nlast_level_cache = \"{cache}\"\n")
}

/// Each cluster's uncore and cores have a node, or one together; all of them lead to the case.
fn thermal(dice: &mut Dice, plans: &[ClusterPlan]) -> String {
    let (mut nodes, mut links) = (Vec::new(), Vec::new());
    let link = |from: &str, to: &str, k_per_w: f64| {
        format!("{{ from = \"{from}\", to = \"{to}\", k_per_w = {k_per_w:.2} }}")
    };
    for ClusterPlan { name, .. } in plans {
        let j_per_k = dice.scale(0.001, 0.1);
        nodes.push(format!(
            "{{ name = \"n-{name}\", cluster = \"{name}\", j_per_k = {j_per_k:.4} }}"
        ));
        links.push(link(&format!("n-{name}"), "case", dice.scale(1.0, 10.0)));
        if dice.once_in(3) {
            nodes.push(format!(
                "{{ name = \"k-{name}\", cores = \"{name}\", j_per_k = {j_per_k:.4} }}"
            ));
            links.push(link(&format!("k-{name}"), &format!("n-{name}"), dice.scale(1.0, 5.0)));
        }
    }
    let background_mw = *dice.of(&[0, 0, 300]);
    nodes.push(format!(
        "{{ name = \"case\", j_per_k = {:.3}, background_mw = {background_mw} }}",
        dice.scale(0.01, 1.0)
    ));
    links.push(link("case", "ambient", dice.scale(0.5, 5.0)));
    let mut text = format!(
        "[thermal]\nambient_c = 25\nperiod_ms = {}\nnodes = [{}]\nlinks = [{}]\n",
        dice.of(&[1, 5, 10]),
        nodes.join(", "),
        links.join(", ")
    );
    if dice.once_in(2) {
        let cooling: Vec<String> =
            plans.iter().map(|plan| format!("{} = [0, {}]", plan.name, plan.opps - 1)).collect();
        let _ = writeln!(
            text,
            "sensors = [{{ name = \"s\", node = \"n-c0\", resolution_c = 1, period_ms = 2 }}]\nthrottle_period_ms = 4\n\
             trips = [{{ celsius = {:.1}, hysteresis_c = 0.5, cooling = {{ {} }} }}]",
            dice.between(25.0, 40.0),
            cooling[..=dice.index(cooling.len())].join(", ")
        );
    }
    text
}
