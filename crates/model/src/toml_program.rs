//! The program language: parses a program file and turns it into a [`Program`].
//!
//! A file is parsed once into a [`ProgramTemplate`]; parameters are filled in afterwards, as often as
//! needed. What does not depend on parameters (keys, names, locks, unreachable steps) is checked when
//! the file is parsed; numbers and what follows from them are checked with the parameters.

mod amount;
mod ast;
mod code;
mod counts;
mod flow;
mod sched;
mod steps;
mod usage;

use std::collections::BTreeSet;
use std::sync::Arc;

use ast::{Class, DeclKind, Group, ObjectDecl, Param};
use code::Generator;
use sched::Attrs;
use steps::Names;
use usage::Usage;

pub(crate) use code::NS_PER_US;

use crate::expr::{AMOUNT_MAX, Expr, is_param_name};
use crate::reader::{Document, Node, Spot, Table, plain, quoted, stem};
use crate::toml_profile::{OwnProfile, own_profiles};
use crate::{Calibration, InputError, Ns, Profile, ProfileLibrary, Program, TaskGroup};

/// Keys of a program file.
const KEYS: [&str; 19] = [
    "name",
    "description",
    "source",
    "duration_ms",
    "energy_ratio",
    "params",
    "profiles",
    "group",
    "groups",
    "threads",
    "mutexes",
    "conditions",
    "barriers",
    "semaphores",
    "queues",
    "pools",
    "devices",
    "timers",
    "regions",
];
/// Longest duration, 10^9 s.
const DURATION_MS_MAX: f64 = 1e12;
/// Smallest and largest ratio of energy efficiency that may be stated.
const ENERGY_RATIO: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

/// A parsed program file whose parameters are still open.
#[derive(Clone, Debug)]
pub struct ProgramTemplate {
    spot: Spot,
    name: String,
    description: String,
    source: String,
    duration_ns: Option<Ns>,
    energy_ratio: Option<f64>,
    params: Vec<Param>,
    profiles: Vec<OwnProfile>,
    objects: Vec<ObjectDecl>,
    groups: Vec<Group>,
    task_groups: Vec<TaskGroup>,
}

/// Parses a program file.
///
/// # Errors
/// Invalid TOML, unknown keys and names, values of the wrong kind, mutexes that are unlocked without
/// being locked or stay locked, steps that are never reached, threads that fork themselves.
pub fn parse_program(file: &str, text: &str) -> Result<ProgramTemplate, InputError> {
    let document = Document::parse(file, text)?;
    let root = document.root(&KEYS)?;
    let params = params(&root)?;
    let objects = objects(&root, &params)?;
    let groups = groups(&root, &params, &objects)?;
    let task_groups = sched::groups(&root)?;
    flow::check(&objects, &groups)?;
    let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
    let profiles = own_profiles(&root, &names)?;
    Ok(ProgramTemplate {
        spot: root.spot.clone(),
        name: root.text_or("name", stem(file))?,
        description: root.text_or("description", "")?,
        source: root.text_or("source", "")?,
        duration_ns: root.get("duration_ms").map(|node| duration_ns(&node)).transpose()?,
        energy_ratio: root.get("energy_ratio").map(|node| node.number(ENERGY_RATIO)).transpose()?,
        params,
        profiles,
        objects,
        groups,
        task_groups,
    })
}

impl ProgramTemplate {
    /// The program's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// One line for listings.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Where the numbers come from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Parameters and their defaults, in file order.
    pub fn params(&self) -> Vec<(&str, f64)> {
        self.params.iter().map(|param| (param.name.as_str(), param.default)).collect()
    }

    /// Paths of the task graphs that its regions name and nobody has read yet.
    pub fn missing_graphs(&self) -> impl Iterator<Item = String> + '_ {
        self.objects.iter().filter_map(|object| match &object.kind {
            DeclKind::Region(region) if region.text.is_none() => region.path(),
            _ => None,
        })
    }

    /// Hands over the text of a task graph's file.
    pub fn add_graph(&mut self, path: &str, text: &Arc<str>) {
        for object in &mut self.objects {
            if let DeclKind::Region(region) = &mut object.kind {
                if region.path().as_deref() == Some(path) {
                    region.text = Some(text.clone());
                }
            }
        }
    }

    /// The program with parameters set; those not named keep their defaults.
    ///
    /// # Errors
    /// Unknown parameters or profiles, numbers out of range, and programs that cannot work: no thread
    /// at the start, a barrier that can never be met, waiting for what no thread does.
    pub fn instantiate(
        &self,
        params: &[(String, f64)],
        profiles: &ProfileLibrary,
    ) -> Result<Program, InputError> {
        let values = self.values(params)?;
        self.program(&values, profiles).map_err(|error| with_params(error, params))
    }

    fn values(&self, overrides: &[(String, f64)]) -> Result<Vec<(String, f64)>, InputError> {
        for (name, value) in overrides {
            if !self.params.iter().any(|param| param.name == *name) {
                return Err(self.spot.unknown(
                    "parameter",
                    name,
                    self.params.iter().map(|param| param.name.as_str()),
                ));
            }
            if !(-AMOUNT_MAX..=AMOUNT_MAX).contains(value) {
                let message =
                    format!("parameter {} is {value}, -1e18 to 1e18 is allowed", quoted(name));
                return Err(self.spot.error(message));
            }
        }
        let value = |param: &Param| {
            overrides
                .iter()
                .rev()
                .find(|(name, _)| *name == param.name)
                .map_or(param.default, |(_, value)| *value)
        };
        Ok(self.params.iter().map(|param| (param.name.clone(), value(param))).collect())
    }

    fn program(
        &self,
        params: &[(String, f64)],
        profiles: &ProfileLibrary,
    ) -> Result<Program, InputError> {
        let counts = counts::count(&self.groups, params)?;
        if counts.iter().all(|count| count.initial == 0) {
            return Err(self.spot.error("no thread starts with the program, at least 1 is needed"));
        }
        let mut groups = self.groups.iter().zip(&counts);
        if groups.all(|(group, count)| count.initial == 0 || group.is_daemon) {
            let error = self.spot.error("only daemon threads start with the program");
            return Err(error.with_hint("at least 1 other is needed: they end with the others"));
        }
        let objects =
            Usage { params, objects: &self.objects, groups: &self.groups, counts: &counts }
                .objects()?;
        let find_profile =
            |name: &str, spot: &Spot| self.find_profile(name, spot, profiles, params);
        let mut generator =
            Generator::new(params, &self.groups, &counts, &objects.placed, &find_profile);
        generator.task_groups.clone_from(&self.task_groups);
        generator.run()?;
        let program = Program {
            name: self.name.clone(),
            description: self.description.clone(),
            profiles: generator.profiles,
            objects: objects.table,
            threads: generator.threads,
            groups: generator.task_groups,
            code: generator.code,
            duration_ns: self.duration_ns,
            energy_ratio: self.energy_ratio,
            calibration: Calibration::default(),
            held_clocks: Vec::new(),
            recorded_cores: None,
        };
        debug_assert_eq!(program.flaw(), None);
        Ok(program)
    }

    fn find_profile(
        &self,
        name: &str,
        spot: &Spot,
        library: &ProfileLibrary,
        params: &[(String, f64)],
    ) -> Result<Profile, InputError> {
        match self.profiles.iter().find(|own| own.name() == name) {
            Some(own) => own.resolve(&self.profiles, library, params),
            None => library.find(name).cloned().ok_or_else(|| {
                let known = self
                    .profiles
                    .iter()
                    .map(OwnProfile::name)
                    .chain(library.profiles.iter().map(|profile| profile.name.as_str()));
                spot.unknown("profile", name, known)
            }),
        }
    }
}

/// Says in the hint which parameters were set, as the file's defaults may be fine.
fn with_params(mut error: InputError, params: &[(String, f64)]) -> InputError {
    if params.is_empty() {
        return error;
    }
    let set: Vec<String> =
        params.iter().map(|(name, value)| format!("{name} = {}", plain(*value))).collect();
    let set = format!("with {}", set.join(", "));
    error.hint = Some(error.hint.map_or(set.clone(), |hint| format!("{hint}; {set}")));
    error
}

fn params(root: &Table<'_>) -> Result<Vec<Param>, InputError> {
    let mut params = Vec::new();
    for (name, node) in root.named("params")? {
        if !is_param_name(name) {
            let error = node.spot.error(format!("{} cannot be a parameter's name", quoted(name)));
            return Err(
                error.with_hint("letters, digits and _; not index, count, forever or a function")
            );
        }
        params
            .push(Param { name: name.to_owned(), default: node.number(-AMOUNT_MAX..=AMOUNT_MAX)? });
    }
    Ok(params)
}

fn objects(root: &Table<'_>, params: &[Param]) -> Result<Vec<ObjectDecl>, InputError> {
    let params: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
    let mut objects = Vec::new();
    for (class, section) in Class::SECTIONS {
        for (name, node) in root.named(section)? {
            objects.push(ObjectDecl::of(class, name, &node, &params)?);
        }
    }
    Ok(objects)
}

fn groups(
    root: &Table<'_>,
    params: &[Param],
    objects: &[ObjectDecl],
) -> Result<Vec<Group>, InputError> {
    let mut keys = vec!["name", "count", "nice", "cores", "start_us", "daemon", "body"];
    keys.extend(Attrs::KEYS);
    let list = root.require("threads")?;
    let nodes = list.list()?;
    if nodes.is_empty() {
        return Err(list.spot.error("no thread, at least 1 is needed"));
    }
    let tables = nodes.iter().map(|node| node.table(&keys)).collect::<Result<Vec<_>, _>>()?;
    let mut seen = BTreeSet::new();
    let mut names = Names {
        params: params.iter().map(|param| param.name.as_str()).collect(),
        objects,
        groups: Vec::with_capacity(tables.len()),
    };
    for table in &tables {
        let node = table.require("name")?;
        let name = node.name()?;
        if !seen.insert(name) {
            return Err(node.spot.error(format!("a second thread {}", quoted(name))));
        }
        names.groups.push(name);
    }
    let home = root.get("group");
    let home = home.as_ref().map(sched::path).transpose()?;
    tables.iter().map(|table| group(table, &names, home)).collect()
}

fn group(table: &Table<'_>, names: &Names<'_>, home: Option<&str>) -> Result<Group, InputError> {
    let spot = table.spot.clone();
    let or = |key, default| {
        table.get(key).map_or(Ok(Expr::number(default, spot.clone())), |node| names.expr(&node))
    };
    let count =
        table.get("count").map_or(Ok(Expr::number(1.0, spot.clone())), |node| Expr::of(&node))?;
    count.check_names(&names.params, false)?;
    Ok(Group {
        name: table.text("name")?.to_owned(),
        count,
        nice: or("nice", 0.0)?,
        cores: table.get("cores").map(|node| names.cores(&node)).transpose()?,
        start_us: or("start_us", 0.0)?,
        attrs: Attrs::of(table, names, home)?,
        is_daemon: table.get("daemon").map_or(Ok(false), |node| node.boolean())?,
        body: names.body(&table.require("body")?)?,
        spot,
    })
}

fn duration_ns(node: &Node<'_>) -> Result<Ns, InputError> {
    Ok((node.number(1e-6..=DURATION_MS_MAX)? * 1e6).round() as Ns)
}

#[cfg(test)]
mod tests;
