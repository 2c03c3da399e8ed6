//! Random mixes of all classes, beside noise and under every policy: the engine's own checks hold after every event,
//! all work is done, and the same run has the same result.

mod common;

use std::fmt::Write;
use std::sync::Arc;

use ampsched_model::{Draw, parse_noise};
use ampsched_policy::REGISTRY;
use ampsched_sim::{GovernorSpec, Outcome};
use common::Host;

const NOISE: &str = "[[sources]]\nname='timer'\nkind='interrupt'\npause_us=[100,900]\nduration_us=[1,20]\n\
     [[sources]]\nname='kworker'\nkind='thread'\npause_us=[300,4000]\nduration_us=[3,900]";

/// Steps that end in so many instructions, whatever happens.
fn body(random: &mut Draw, is_deadline: bool) -> String {
    let mut pick = |most: u64| random.bits() % most;
    let mut steps = Vec::new();
    for _ in 0..1 + pick(5) {
        steps.push(format!("{{compute={}, profile='unit'}}", 1000 + pick(8_000_000)));
        let us = 1 + pick(4000);
        steps.push(match pick(9) {
            0 => format!("{{sleep_us={us}}}"),
            1 => "{yield=true}".to_owned(),
            2 => format!("{{lock='m'}}, {{compute={}, profile='unit'}}, {{unlock='m'}}", us * 900),
            3 => format!("{{set_class='fifo', priority={}}}", 1 + us % 99),
            4 => format!("{{set_class='rr', priority={}}}", 1 + us % 4),
            5 => "{set_class='fair'}".to_owned(),
            6 => format!("{{set_class='deadline', runtime_us={}, period_us={}}}", 20 + us / 40, us + 400),
            7 if !is_deadline => format!("{{set_class='idle'}}, {{set_cores=[{}]}}, {{set_class='batch'}}, {{set_cores=[0,1,2,3]}}", us % 4),
            _ => format!("{{set_nice={}}}", us % 20),
        });
    }
    steps.join(", ")
}

fn program(random: &mut Draw) -> String {
    let mut text = String::from("[mutexes.m]\n");
    for number in 0..3 + random.bits() % 5 {
        let (kind, us) = (random.bits() % 6, 500 + random.bits() % 9000);
        let class = match kind {
            0 => format!(
                "class='deadline'\nruntime_us={}\ndeadline_us={}\nperiod_us={us}",
                25 + us / 30,
                us / 2
            ),
            1 => format!("class='fifo'\npriority={}", 1 + us % 99),
            2 => format!("class='rr'\npriority={}\ncores=[{},3]", 1 + us % 5, us % 3),
            3 => "class='batch'".to_owned(),
            _ => String::new(),
        };
        let body = if kind == 2 {
            format!("{{compute={}, profile='unit'}}", us * 500)
        } else {
            body(random, kind == 0)
        };
        writeln!(
            text,
            "[[threads]]\nname='t{number}'\n{class}\nstart_us={}\nbody=[{body}]",
            us * 3 % 7000
        )
        .unwrap();
    }
    text
}

fn host(number: u64) -> Host {
    let mut host = Host::unequal(2, 2, 2.0);
    if number % 3 == 0 {
        host.options.noise = Some(Arc::new(parse_noise("n.toml", NOISE).unwrap()));
    }
    if number % 4 == 1 {
        host.machine.costs.wakeup_latency_ns = 3000;
        host.machine.costs.context_switch_ns = 2000;
        host.machine.costs.migrate_cross_cluster_ns = 20_000;
        host.machine.costs.wake_ns = 500;
    }
    if number % 5 == 2 {
        let opp = host.machine.clusters[0].opps[0];
        host.machine.clusters[0].opps.insert(0, ampsched_model::Opp { mhz: 700, ..opp });
        host.options.governors =
            vec![GovernorSpec { cluster: None, name: "schedutil".to_owned(), params: Vec::new() }];
    }
    host
}

fn total(outcome: &Outcome) -> u64 {
    outcome.threads.iter().map(|thread| thread.instructions).sum()
}

#[test]
fn all_classes_get_along_under_every_policy() {
    for number in 0..40 {
        let text = program(&mut Draw::new(number));
        let mut works = Vec::new();
        for (index, info) in REGISTRY.iter().enumerate() {
            // Each program under a third of the policies.
            if (index as u64 + number) % 3 != 0 {
                continue;
            }
            let run = || {
                host(number).try_run(&text, info.name).unwrap_or_else(|error| {
                    panic!("{number}, {}: {error}\n{text}", info.name);
                })
            };
            let outcome = run();
            works.push(total(&outcome));
            if index % 9 == 0 {
                assert_eq!(run(), outcome, "{number}, {}", info.name);
            }
        }
        assert!(works.windows(2).all(|two| two[0] == two[1]), "{number}: {works:?}\n{text}");
    }
}
