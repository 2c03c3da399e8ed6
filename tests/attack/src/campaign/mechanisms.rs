//! What machines and programs may state beside the rest: spinning, windows, devices in detail, contention, costs of
//! single lines; and steps that only replays of recordings have.

use std::fmt::Write;

use ampsched_model::{Op, Program};

use super::programs::ProgramText;
use crate::dice::Dice;

/// Objects at which threads may spin, as they are declared.
const SPINNABLE: [&str; 7] = [
    "[mutexes.m]\n",
    "[mutexes.a]\n",
    "[mutexes.cm]\n",
    "[conditions.c]\n",
    "[barriers.b]\n",
    "[queues.q]\n",
    "[semaphores.s]\n",
];

/// A program whose objects state more, in one case of three.
pub fn of_program(mut program: ProgramText) -> ProgramText {
    let dice = &mut Dice::of_text(&program.text);
    if !dice.once_in(3) {
        return program;
    }
    for declared in SPINNABLE {
        if program.text.contains(declared) && dice.once_in(2) {
            let spin_us = dice.scale(0.5, 5_000.0);
            state(&mut program.text, declared, &format!("spin_us = {spin_us:.2}\n"));
            // How long somebody spins depends on everything.
            program.fixed_work = false;
        }
    }
    if dice.once_in(2) {
        let (depth, latency_us) = (dice.whole(1..=4), dice.scale(1.0, 500.0));
        let more = format!("depth = {depth}\nlatency_us = {latency_us:.1}\n");
        state(&mut program.text, "[devices.d]\n", &more);
    }
    if program.text.contains("create = \"r\"") && dice.once_in(2) {
        let window = dice.whole(1..=6);
        state(&mut program.text, "[regions.r]\n", &format!("window = {window}\n"));
        // Who executes a task as its creator takes it from nobody.
        program.fixed_work = false;
    }
    if program.text.contains("[regions.r]") && dice.once_in(2) {
        let spin_us = dice.scale(0.5, 500.0);
        state(&mut program.text, "[regions.r]\n", &format!("spin_us = {spin_us:.2}\n"));
        program.fixed_work = false;
    }
    program
}

/// A program with steps of replays instead of some sleeps and yields, in one case of three: no language says them.
pub fn of_replay(mut program: Program, text: &str) -> Program {
    let dice = &mut Dice::of_text(&format!("replay {text}"));
    if !dice.once_in(3) {
        return program;
    }
    for op in &mut program.code {
        match op {
            Op::Sleep(_) if dice.once_in(2) => {
                *op = Op::SleepUntil { at_ns: dice.scale(1e3, 3e7) as u64 };
            }
            // A yield counts for nothing in the work that is done, nor does a period; some have no length.
            Op::Yield if dice.once_in(2) => {
                let length_ns = if dice.once_in(4) { 0 } else { dice.scale(1e3, 2e7) as u64 };
                *op = Op::Period { begun_ns: dice.scale(1.0, 3e7) as u64, length_ns };
            }
            _ => {}
        }
    }
    program
}

fn state(text: &mut String, declared: &str, more: &str) {
    *text = text.replacen(declared, &format!("{declared}{more}"), 1);
}

/// A machine's file with more in it, in one case of three.
pub fn of_machine(mut text: String, knows_power: bool) -> String {
    let dice = &mut Dice::of_text(&text);
    if !dice.once_in(3) {
        return text;
    }
    if dice.once_in(2) {
        let (same, cross) = (dice.whole(0..=200), dice.whole(0..=400));
        let costs = format!(
            "[costs]\nmigrate_refill = {}\nhandover_same_cluster_ns = {same}\nhandover_cross_cluster_ns = {cross}\n",
            dice.once_in(2)
        );
        text = text.replacen("[costs]\n", &costs, 1);
        if text.contains("exit_us") && dice.once_in(2) {
            text = text.replacen("[costs]\n", "[costs]\nidle_exit = true\n", 1);
        }
    }
    let mut parts = text.split("[[clusters]]\n");
    let mut shared = parts.next().unwrap_or_default().to_owned();
    // Of all clusters alike: classes stay in the order of speeds.
    let relative = dice.once_in(4).then(|| dice.scale(0.3, 3.0));
    for cluster in parts {
        shared += "[[clusters]]\n";
        if let Some(speed) = relative {
            let _ = writeln!(shared, "relative_speed = {speed:.2}");
        }
        if dice.once_in(2) {
            shared += "l2_contention = true\n";
        }
        if dice.once_in(3) {
            let _ = writeln!(shared, "bandwidth_mb_s = {:.0}", dice.scale(200.0, 20_000.0));
        }
        let in_pairs = cluster.contains("\ncores = 2\n") || cluster.contains("\ncores = 4\n");
        if in_pairs && dice.once_in(2) {
            let speed = dice.between(0.5, 1.0);
            let _ = writeln!(shared, "threads_per_core = 2\nsmt_speed = {speed:.2}");
        }
        if dice.once_in(4) {
            let _ = writeln!(shared, "memory_extra_ns = 3");
        }
        if dice.once_in(2) {
            let _ = writeln!(shared, "turbo_mhz = {}", ladder(dice, cluster));
        }
        shared += cluster;
    }
    text = shared;
    if dice.once_in(2) {
        let (mb_s, channels) = (dice.scale(500.0, 40_000.0), dice.whole(1..=4));
        let _ = writeln!(text, "[memory]\nbandwidth_mb_s = {mb_s:.0}\nchannels = {channels}");
    }
    if knows_power && dice.once_in(2) {
        let _ = writeln!(text, "[power]\nboard_mw = {}", dice.whole(0..=3000));
        if dice.once_in(2) {
            let (pl1, tau_ms) = (dice.scale(50.0, 20_000.0), dice.scale(1.0, 1000.0));
            let pl2 = pl1 * dice.between(1.0, 4.0);
            let _ = writeln!(text, "pl1_mw = {pl1:.1}\npl2_mw = {pl2:.2}\ntau_ms = {tau_ms:.1}");
        }
    }
    text
}

/// The highest clocks of a cluster's text with 1, 2, ... active cores.
fn ladder(dice: &mut Dice, cluster: &str) -> String {
    let opps = cluster.lines().find(|line| line.starts_with("opps = ")).unwrap_or_default();
    let mhz = |part: &str| part.split(',').next().unwrap_or_default().trim().to_owned();
    let mut points: Vec<String> = opps.split("mhz = ").skip(1).map(mhz).collect();
    let mut ladder = Vec::new();
    for _ in 0..dice.whole(1..=4) {
        ladder.extend(points.last().cloned());
        let left = points.len() - dice.index(points.len());
        points.truncate(left);
    }
    format!("[{}]", ladder.join(", "))
}
