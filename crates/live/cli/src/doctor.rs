//! `ampsched-live doctor`.

use std::process::ExitCode;

use ampsched_live_host::{Backend, Capabilities, CoreMap, Demand, Root, demands};
use ampsched_model::{ClassId, InputError};
use ampsched_policy::{REGISTRY, build_policy};
use serde_json::{Value, json};

use crate::args::DoctorArgs;
use crate::status::table;

/// Prints what this computer can do and which policies it can run.
pub fn doctor(args: &DoctorArgs) -> Result<ExitCode, InputError> {
    let root = Root::default();
    let capabilities = Capabilities::detect(&root);
    let found = args.cores.detect(&root);
    let rows = capabilities.rows();
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
    if args.json {
        let classes = found.as_ref().map_or_else(|_| Vec::new(), |(map, _)| classes(map));
        let policies: serde_json::Map<String, Value> = verdicts
            .into_iter()
            .map(|verdict| (verdict.policy.to_owned(), verdict.to_json()))
            .collect();
        let value = json!({
            "capabilities": capabilities,
            "cores": cores,
            "classes": classes,
            "evidence": evidence,
            "policies": policies,
        });
        println!("{}", serde_json::to_string_pretty(&value).expect("plain data"));
        return Ok(ExitCode::SUCCESS);
    }
    for (name, value) in rows.iter().map(|(name, value)| (*name, value.as_str())) {
        println!("{name:<14} {value}");
    }
    println!("{:<14} {cores} ({evidence})", "cores");
    let lines = verdicts.iter().map(Verdict::cells).collect();
    print!("{}", table(&["policy", "kernel", "daemon", "what the daemon lacks"], lines));
    Ok(ExitCode::SUCCESS)
}

/// The classes of cores, the fastest first.
fn classes(map: &CoreMap) -> Vec<Value> {
    let class = |class: ClassId| {
        let cpus: Vec<usize> = map.cpus_of_class(class).into_iter().collect();
        json!({ "name": map.class_name(class), "cpus": cpus })
    };
    (0..map.class_count()).rev().map(ClassId::from).map(class).collect()
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
        let lacks = |backend| demands(backend, policy.as_ref(), topology, capabilities, dvfs);
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
