//! `ampsched-live doctor`.

use std::process::ExitCode;

use ampsched_computer::{Capabilities, EnergyModels, Root};
use ampsched_live_driver::{Backend, Choices, Demand, demands};
use ampsched_live_factors::{Perf, SensorSurvey, Survey, WANTED};
use ampsched_live_session::arguments::classes;
use ampsched_live_session::print;
use ampsched_model::InputError;
use ampsched_policy::{Needs, REGISTRY, build_policy};
use serde_json::{Value, json};

use crate::args::DoctorArgs;
use crate::kernel_program;
use crate::status::table;

/// Prints what this computer can do and which policies it can run.
pub fn doctor(args: &DoctorArgs) -> Result<ExitCode, InputError> {
    let root = Root::default();
    let mut capabilities = Capabilities::detect(&root);
    let found = args.cores.detect(&root);
    let (counters, sensors) = match &found {
        Ok((map, _)) => {
            (Survey::make(&root, map, &WANTED, &mut Perf)?, SensorSurvey::make(&root, map)?)
        }
        Err(_) => Default::default(),
    };
    capabilities.counts_instructions = counters.counts("instructions");
    capabilities.counts_stalls = counters.counts_stalls();
    let (cores, evidence) = match &found {
        Ok((map, evidence)) => (map.describe(), evidence.to_string()),
        Err(error) => ("not known".to_owned(), error.to_string()),
    };
    let verdicts: Vec<Verdict> = match &found {
        Ok((map, _)) => {
            let judge = |name| Verdict::of(name, map.topology(), &capabilities, args.allow_dvfs);
            REGISTRY.iter().map(|info| judge(info.name)).collect()
        }
        Err(_) => Vec::new(),
    };
    let sensor_lines = found.as_ref().map_or_else(|_| Vec::new(), |(map, _)| sensors.describe(map));
    let (energy, power_lines) = match &found {
        Ok((map, _)) if args.cores.power.is_empty() => {
            (EnergyModels::read(&root), EnergyModels::describe(map, "the kernel's energy model"))
        }
        Ok((map, _)) => (EnergyModels::default(), EnergyModels::describe(map, "stated by hand")),
        Err(_) => Default::default(),
    };
    let kernel_program = kernel_program::find();
    if args.json {
        let classes = found.as_ref().map_or_else(|_| Vec::new(), |(map, _)| classes(map));
        let policies: serde_json::Map<String, Value> = verdicts
            .into_iter()
            .map(|verdict| (verdict.policy.to_owned(), verdict.to_json()))
            .collect();
        let value = json!({
            "capabilities": capabilities,
            "kernel_program": kernel_program.ok(),
            "counters": { "counted": counters.describe(), "reasons": counters.reasons },
            "sensors": { "found": sensor_lines, "reasons": sensors.reasons },
            "power": { "known": power_lines, "reasons": energy.reasons },
            "cores": cores,
            "classes": classes,
            "evidence": evidence,
            "policies": policies,
        });
        print(&(serde_json::to_string_pretty(&value).expect("plain data") + "\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (name, value) in capabilities.rows() {
        text += &row(name, &value);
    }
    let program = kernel_program.map_or_else(|missing| missing, |path| path.display().to_string());
    text += &row("kernel program", &program);
    text += &block("rights", &capabilities.rights_in_words(), &[]);
    text += &block("counters", &counters.describe(), &counters.reasons);
    text += &block("sensors", &sensor_lines, &sensors.reasons);
    text += &block("power", &power_lines, &energy.reasons);
    text += &row("cores", &format!("{cores} ({evidence})"));
    let lines = verdicts.iter().map(Verdict::cells).collect();
    text += &table(&["policy", "kernel", "daemon", "what the daemon lacks"], lines);
    let reads = |is_read: fn(&Needs) -> bool| names(|name| is_read(&needs_of(name)));
    text.push('\n');
    text += &readers(
        "read retired instructions",
        capabilities.counts_instructions,
        &reads(|needs| needs.instructions),
    );
    text +=
        &readers("read stalls for data", capabilities.counts_stalls, &reads(|needs| needs.stalls));
    text += &readers("read powers of single threads", false, &reads(|needs| needs.power));
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A line with a head.
fn row(head: &str, value: &str) -> String {
    format!("{head:<14} {value}\n")
}

/// The lines of a head, of which only the first shows it.
fn block(head: &str, lines: &[String], reasons: &[String]) -> String {
    let none = ["none".to_owned()];
    let lines = if lines.is_empty() && reasons.is_empty() { &none[..] } else { lines };
    let heads = std::iter::once(head).chain(std::iter::repeat(""));
    heads.zip(lines.iter().chain(reasons)).map(|(head, line)| row(head, line)).collect()
}

/// Which policies read something, and whether they get it.
fn readers(what: &str, is_there: bool, names: &[&str]) -> String {
    let here = if is_there { "which are counted" } else { "which nothing shows here" };
    format!("{what}, {here}: {}\n", names.join(", "))
}

fn needs_of(name: &str) -> Needs {
    build_policy(name, &[]).expect("defaults are valid").needs()
}

fn names(is_meant: impl Fn(&str) -> bool) -> Vec<&'static str> {
    REGISTRY.iter().map(|info| info.name).filter(|name| is_meant(name)).collect()
}

/// What a policy lacks by each means.
struct Verdict {
    policy: &'static str,
    scx: Vec<Demand>,
    daemon: Vec<Demand>,
}

impl Verdict {
    fn of(
        name: &'static str,
        topology: &ampsched_policy::Topology,
        capabilities: &Capabilities,
        dvfs: bool,
    ) -> Self {
        let policy = build_policy(name, &[]).expect("defaults are valid");
        let choices = Choices { dvfs, ..Choices::default() };
        let lacks = |backend| demands(backend, policy.as_ref(), topology, capabilities, choices);
        Self { policy: name, scx: lacks(Backend::Scx), daemon: lacks(Backend::Daemon) }
    }

    fn cells(&self) -> Vec<String> {
        let word = |lacks: &[Demand]| match lacks.iter().any(|demand| demand.is_essential) {
            true => "no".to_owned(),
            false => "yes".to_owned(),
        };
        let essential = self.daemon.iter().filter(|demand| demand.is_essential);
        let what: Vec<&str> = essential.map(|demand| demand.what.as_str()).collect();
        vec![self.policy.to_owned(), word(&self.scx), word(&self.daemon), what.join("; ")]
    }

    fn to_json(&self) -> Value {
        json!({ "scx": self.scx, "daemon": self.daemon })
    }
}
