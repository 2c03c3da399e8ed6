//! Class, slice, clamps and group of threads: keys of a thread, steps that change them, and the table of groups.

use super::code::{Generator, NS_PER_US, TIME_US_MAX};
use super::steps::Names;
use crate::attrs::{GROUPS_MAX, path_flaw};
use crate::expr::Expr;
use crate::reader::{Node, Spot, Table, quoted};
use crate::{CLAMP_MAX, InputError, Ns, SchedAttrs, SchedClass, TaskGroup, clamp_slice};

/// Names of classes.
const CLASSES: [&str; 6] = ["fair", "batch", "idle", "fifo", "rr", "deadline"];
/// Keys that say more about a class.
pub(crate) const CLASS_KEYS: [&str; 4] = ["priority", "runtime_us", "deadline_us", "period_us"];
/// Most of `cpu.weight` and `cpu.shares` (kernel/sched/sched.h, 6.12: `CGROUP_WEIGHT_MAX`, `MAX_SHARES`).
const WEIGHT_MAX: i64 = 10_000;
const SHARES: std::ops::RangeInclusive<i64> = 2..=262_144;

/// A class whose numbers are still expressions.
#[derive(Clone, Debug)]
pub(crate) struct ClassExpr {
    spot: Spot,
    name: &'static str,
    /// `priority`, or runtime, deadline and period.
    numbers: Vec<Expr>,
}

/// What a thread states beside nice value and cores.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attrs {
    class: Option<ClassExpr>,
    slice_us: Option<Expr>,
    uclamp_min: Option<Expr>,
    uclamp_max: Option<Expr>,
    group: Option<String>,
}

impl ClassExpr {
    /// The class that a value names; the numbers stand beside it.
    pub fn of(node: &Node<'_>, table: &Table<'_>, names: &Names<'_>) -> Result<Self, InputError> {
        let name = node.word("class", &CLASSES)?;
        let needs: &[&str] = match name {
            "fifo" | "rr" => &["priority"],
            "deadline" => &["runtime_us", "deadline_us", "period_us"],
            _ => &[],
        };
        refuse_others(table, Some(name), needs)?;
        let mut numbers = Vec::new();
        for key in needs {
            // Not stated, the deadline is the end of the period.
            let or = if *key == "deadline_us" { "period_us" } else { key };
            let value = table.get(key).map_or_else(|| table.require(or), Ok)?;
            numbers.push(names.expr(&value)?);
        }
        Ok(Self { spot: node.spot.clone(), name, numbers })
    }

    /// Its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.numbers.iter()
    }
}

/// An error if a key stands there that says more about another class.
fn refuse_others(table: &Table<'_>, class: Option<&str>, own: &[&str]) -> Result<(), InputError> {
    let Some(key) = CLASS_KEYS.iter().find(|key| table.has(key) && !own.contains(key)) else {
        return Ok(());
    };
    let of = if *key == "priority" { "fifo and rr" } else { "deadline" };
    let of = match class {
        Some(class) => format!("class {} has no such key, only {of}", quoted(class)),
        None => format!("says more about class {of}, but no class is stated"),
    };
    Err(table.require(key)?.spot.error(of))
}

impl Attrs {
    /// Keys of a thread that this reads.
    pub const KEYS: [&str; 9] = [
        "class",
        "priority",
        "runtime_us",
        "deadline_us",
        "period_us",
        "slice_us",
        "uclamp_min",
        "uclamp_max",
        "group",
    ];

    /// Reads the keys of a thread; `group` is the program's.
    pub fn of(
        table: &Table<'_>,
        names: &Names<'_>,
        group: Option<&str>,
    ) -> Result<Self, InputError> {
        let class = match table.get("class") {
            Some(node) => Some(ClassExpr::of(&node, table, names)?),
            None => refuse_others(table, None, &[]).map(|()| None)?,
        };
        let expr = |key| table.get(key).map(|node| names.expr(&node)).transpose();
        Ok(Self {
            class,
            slice_us: expr("slice_us")?,
            uclamp_min: expr("uclamp_min")?,
            uclamp_max: expr("uclamp_max")?,
            group: match table.get("group") {
                Some(node) => Some(path(&node)?.to_owned()),
                None => group.map(str::to_owned),
            },
        })
    }

    /// Its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        let numbers = self.class.iter().flat_map(ClassExpr::expressions);
        numbers.chain(&self.slice_us).chain(&self.uclamp_min).chain(&self.uclamp_max)
    }
}

/// A group's path.
pub(crate) fn path<'a>(node: &Node<'a>) -> Result<&'a str, InputError> {
    let path = node.name()?;
    match path_flaw(path) {
        None => Ok(path),
        Some(flaw) => Err(node
            .spot
            .error(format!("{}: {flaw}", quoted(path)))
            .with_hint("such as \"/tg1/tg11\"")),
    }
}

/// The groups that a program states.
pub(crate) fn groups(root: &Table<'_>) -> Result<Vec<TaskGroup>, InputError> {
    let mut groups = Vec::new();
    for (name, node) in root.named("groups")? {
        if let Some(flaw) = path_flaw(name) {
            return Err(node.spot.error(format!("{}: {flaw}", quoted(name))));
        }
        let table = node.table(&["weight", "shares", "uclamp_min", "uclamp_max"])?;
        let clamp = |key| {
            let value = table.get(key).map(|node| node.whole(0..=CLAMP_MAX.into())).transpose();
            value.map(|value| value.map(|value| value as u16))
        };
        let weight = table.get("weight").map(|node| node.whole(1..=WEIGHT_MAX)).transpose()?;
        let shares = table.get("shares").map(|node| node.whole(SHARES)).transpose()?;
        if weight.is_some() && shares.is_some() {
            let error = table.require("shares")?.spot.error("weight says the same");
            return Err(error.with_hint("state one: weight 100 is 1024 shares"));
        }
        let of_weight = weight.map(|weight| TaskGroup::shares_of_weight(weight as u32));
        groups.push(TaskGroup {
            path: name.to_owned(),
            shares: of_weight.or(shares.map(|shares| shares as u32)),
            uclamp_min: clamp("uclamp_min")?,
            uclamp_max: clamp("uclamp_max")?,
        });
    }
    Ok(groups)
}

impl Generator<'_> {
    /// What a thread states, in numbers.
    pub fn attrs(&mut self, attrs: &Attrs, spot: &Spot) -> Result<SchedAttrs, InputError> {
        let class = attrs.class.as_ref().map(|class| self.class(class)).transpose()?;
        let clamp = |generator: &Self, expr: &Option<Expr>| {
            expr.as_ref().map(|expr| generator.clamp(expr)).transpose()
        };
        let (min, max) = (clamp(self, &attrs.uclamp_min)?, clamp(self, &attrs.uclamp_max)?);
        if let (Some(min), Some(max)) = (min, max) {
            if min > max {
                let message = format!("uclamp_min {min} is above uclamp_max {max}");
                return Err(spot.error(message));
            }
        }
        Ok(SchedAttrs {
            class: class.unwrap_or_default(),
            slice_ns: attrs.slice_us.as_ref().map_or(Ok(0), |expr| self.slice_ns(expr))?,
            uclamp_min: min,
            uclamp_max: max,
            group: match &attrs.group {
                Some(path) => self.group(path, spot)?,
                None => None,
            },
        })
    }

    /// A class in numbers.
    pub fn class(&self, class: &ClassExpr) -> Result<SchedClass, InputError> {
        let priority = || Ok(class.numbers[0].whole(self.scope(), 1, 99)? as u8);
        let us = |index: usize| -> Result<Ns, InputError> {
            let us = class.numbers[index].within(self.scope(), 0.0, TIME_US_MAX)?;
            Ok((us * NS_PER_US).round() as Ns)
        };
        let found = match class.name {
            "batch" => SchedClass::Batch,
            "idle" => SchedClass::Idle,
            "fifo" => SchedClass::Fifo { priority: priority()? },
            "rr" => SchedClass::RoundRobin { priority: priority()? },
            "deadline" => {
                SchedClass::Deadline { runtime_ns: us(0)?, deadline_ns: us(1)?, period_ns: us(2)? }
            }
            _ => SchedClass::Fair,
        };
        match found.flaw() {
            None => Ok(found),
            Some(flaw) => Err(class.spot.error(flaw)),
        }
    }

    /// A slice as Linux takes it.
    pub fn slice_ns(&self, expr: &Expr) -> Result<Ns, InputError> {
        let us = expr.within(self.scope(), 0.0, TIME_US_MAX)?;
        Ok(clamp_slice((us * NS_PER_US).round() as Ns))
    }

    /// A utilisation clamp.
    pub fn clamp(&self, expr: &Expr) -> Result<u16, InputError> {
        Ok(expr.whole(self.scope(), 0, CLAMP_MAX.into())? as u16)
    }

    /// The number of a group, which exists as soon as a thread names it; none for the root group.
    pub fn group(&mut self, path: &str, spot: &Spot) -> Result<Option<u16>, InputError> {
        if path == "/" {
            return Ok(None);
        }
        if let Some(found) = self.task_groups.iter().position(|group| group.path == path) {
            return Ok(Some(found as u16));
        }
        if self.task_groups.len() >= GROUPS_MAX {
            return Err(spot.error(format!("more than {GROUPS_MAX} groups in one program")));
        }
        self.task_groups.push(TaskGroup::new(path));
        Ok(Some((self.task_groups.len() - 1) as u16))
    }
}
