//! Workload files: named mixes of programs.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::limits::APPS_MAX;
use crate::reader::{Document, Node, Spot, quoted};
use crate::toml_program::NS_PER_US;
use crate::{App, InputError, Ns, Program, SPIN_US_MAX, SPINNABLE, Workload};

/// Latest start of an application, 10^6 s.
const START_MS_MAX: f64 = 1e9;

/// A parsed workload file; its programs are still names.
#[derive(Clone, Debug)]
pub struct WorkloadFile {
    /// The workloads, in file order.
    pub workloads: Vec<WorkloadTemplate>,
}

/// A workload whose programs are still names.
#[derive(Clone, Debug)]
pub struct WorkloadTemplate {
    name: String,
    description: String,
    apps: Vec<AppTemplate>,
}

/// An application whose program is still a name.
#[derive(Clone, Debug)]
pub(crate) struct AppTemplate {
    /// The program's name or path.
    pub program: String,
    /// Where it stands.
    pub spot: Spot,
    /// Parameters of the program.
    pub params: Vec<(String, f64)>,
    /// Where each parameter stands.
    pub param_spots: Vec<Spot>,
    name: Option<String>,
    start_ns: Ns,
    nice: i8,
    /// How long its threads spin before they block, at each kind of object.
    spin_ns: Vec<(&'static str, Ns)>,
}

/// Parses a workload file: tables `[workloads.NAME]`.
///
/// # Errors
/// Invalid TOML, an unknown or missing key, a value of the wrong kind or out of its range, two
/// applications of one name.
pub fn parse_workloads(file: &str, text: &str) -> Result<WorkloadFile, InputError> {
    let document = Document::parse(file, text)?;
    let root = document.root(&["description", "workloads"])?;
    let nodes = root.require("workloads")?.any_table()?.members();
    let workloads =
        nodes.iter().map(|(name, node)| workload(name, node)).collect::<Result<_, _>>()?;
    Ok(WorkloadFile { workloads })
}

impl WorkloadTemplate {
    /// The workload's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line for listings.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Its applications.
    pub(crate) fn apps(&self) -> &[AppTemplate] {
        &self.apps
    }

    /// Programs that the workload refers to, with the place of the reference.
    pub(crate) fn programs(&self) -> impl Iterator<Item = (&str, &Spot)> {
        self.apps.iter().map(|app| (app.program.as_str(), &app.spot))
    }

    /// The workload, with programs looked up by name and parameters.
    ///
    /// # Errors
    /// Whatever `find` says about a program.
    pub(crate) fn instantiate(
        &self,
        mut find: impl FnMut(&AppTemplate) -> Result<Arc<Program>, InputError>,
    ) -> Result<Workload, InputError> {
        let mut names: BTreeSet<String> =
            self.apps.iter().filter_map(|app| app.name.clone()).collect();
        let mut apps = Vec::with_capacity(self.apps.len());
        for template in &self.apps {
            let program = find(template)?;
            let name = template.name.clone().unwrap_or_else(|| unique(&program.name, &mut names));
            let program = match template.spin_ns.as_slice() {
                [] => program,
                kinds => Arc::new(program.spinning(kinds)),
            };
            apps.push(App { name, program, start_ns: template.start_ns, nice: template.nice });
        }
        Ok(Workload { name: self.name.clone(), description: self.description.clone(), apps })
    }
}

/// A name that is not taken: `dedup`, `dedup-2`, `dedup-3`, ...
fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}-{number}");
        number += 1;
    }
    candidate
}

fn workload(name: &str, node: &Node<'_>) -> Result<WorkloadTemplate, InputError> {
    let table = node.table(&["description", "apps"])?;
    let list = table.require("apps")?;
    let nodes = list.list()?;
    if nodes.is_empty() || nodes.len() > APPS_MAX {
        return Err(list
            .spot
            .error(format!("{} applications, 1 to {APPS_MAX} are allowed", nodes.len())));
    }
    let apps = nodes.iter().map(app).collect::<Result<Vec<_>, _>>()?;
    let mut names = BTreeSet::new();
    for (node, app) in nodes.iter().zip(&apps) {
        if let Some(name) = app.name.as_ref().filter(|name| !names.insert(name.as_str())) {
            let spot = node.any_table()?.require("name")?.spot;
            return Err(spot.error(format!("a second application {}", quoted(name))));
        }
    }
    Ok(WorkloadTemplate {
        name: name.to_owned(),
        description: table.text_or("description", "")?,
        apps,
    })
}

fn app(node: &Node<'_>) -> Result<AppTemplate, InputError> {
    let table = node.table(&["program", "params", "name", "start_ms", "nice", "spin_us"])?;
    let program = table.require("program")?;
    let params = table.named("params")?;
    let value = |(name, node): &(&str, Node<'_>)| Ok(((*name).to_owned(), node.any_number()?));
    Ok(AppTemplate {
        program: program.name()?.to_owned(),
        spot: program.spot.clone(),
        params: params.iter().map(value).collect::<Result<_, InputError>>()?,
        param_spots: params.into_iter().map(|(_, node)| node.spot).collect(),
        name: table.get("name").map(|node| node.name().map(str::to_owned)).transpose()?,
        start_ns: (table.number_or("start_ms", 0.0, 0.0..=START_MS_MAX)? * 1e6).round() as Ns,
        nice: table.get("nice").map_or(Ok(0), |node| node.whole(-20..=19))? as i8,
        spin_ns: table.get("spin_us").map_or(Ok(Vec::new()), |node| spin_ns(&node))?,
    })
}

/// How long threads spin before they block, at each kind of object that a table names.
fn spin_ns(node: &Node<'_>) -> Result<Vec<(&'static str, Ns)>, InputError> {
    let table = node.table(&SPINNABLE)?;
    let stated = SPINNABLE.iter().filter_map(|kind| Some((*kind, table.get(kind)?)));
    stated
        .map(|(kind, node)| Ok((kind, (node.number(0.0..=SPIN_US_MAX)? * NS_PER_US).round() as Ns)))
        .collect()
}
