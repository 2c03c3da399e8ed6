//! Parses the steps of a body.

use super::amount::AmountExpr;
use super::ast::{
    Class, DeclKind, GroupIndex, ObjectDecl, ObjectIndex, RegionDecl, Repeat, Step, StepKind,
    WorkUnit,
};
use super::sched::{CLASS_KEYS, ClassExpr, path};
use crate::expr::Expr;
use crate::limits::BODIES_DEPTH_MAX;
use crate::reader::{Node, Spot, Table, quoted};
use crate::{InputError, SPINNABLE, Schedule, TimerMode};

/// Microseconds per second: works of task graphs are in seconds.
const US_PER_S: f64 = 1e6;

/// Keys that say what a step does, with the other keys of such a step.
const VERBS: [(&str, &[&str]); 34] = [
    ("compute", &["profile"]),
    ("run_us", &["profile"]),
    ("occupy_us", &["profile"]),
    ("lock", &[]),
    ("unlock", &[]),
    ("wait", &["mutex"]),
    ("signal", &[]),
    ("broadcast", &[]),
    ("sync", &["mutex"]),
    ("barrier", &[]),
    ("sem_wait", &[]),
    ("sem_post", &[]),
    ("push", &[]),
    ("each", &["body"]),
    ("close", &[]),
    ("dynamic", &["body"]),
    ("tasks", &["profile"]),
    ("create", &["profile"]),
    ("loop", &["body"]),
    ("fork", &["times"]),
    ("join", &[]),
    ("sleep_us", &[]),
    ("timer_us", &["timer", "mode"]),
    ("io_us", &["device"]),
    ("yield", &[]),
    ("suspend", &[]),
    ("resume", &[]),
    ("set_cores", &[]),
    ("set_nice", &[]),
    ("set_class", &CLASS_KEYS),
    ("set_slice_us", &[]),
    ("set_uclamp_min", &[]),
    ("set_uclamp_max", &[]),
    ("set_group", &[]),
];

/// What names in a body can refer to.
pub(crate) struct Names<'a> {
    pub params: Vec<&'a str>,
    pub objects: &'a [ObjectDecl],
    pub groups: Vec<&'a str>,
}

impl Names<'_> {
    /// Parses the steps of a thread's body.
    pub fn body(&self, node: &Node<'_>) -> Result<Vec<Step>, InputError> {
        self.steps(node, 0)
    }

    /// Parses a list of cores, each a number or an expression.
    pub fn cores(&self, node: &Node<'_>) -> Result<Vec<Expr>, InputError> {
        let cores =
            node.list()?.iter().map(|core| self.expr(core)).collect::<Result<Vec<_>, _>>()?;
        if cores.is_empty() {
            Err(node.spot.error("no core, at least 1 is needed"))
        } else {
            Ok(cores)
        }
    }

    /// Parses an expression of a thread and checks its names.
    pub fn expr(&self, node: &Node<'_>) -> Result<Expr, InputError> {
        let expr = Expr::of(node)?;
        expr.check_names(&self.params, true)?;
        Ok(expr)
    }

    fn amount(&self, node: &Node<'_>) -> Result<AmountExpr, InputError> {
        let amount = AmountExpr::of(node)?;
        amount.expressions().iter().try_for_each(|expr| expr.check_names(&self.params, true))?;
        Ok(amount)
    }

    fn steps(&self, node: &Node<'_>, depth: usize) -> Result<Vec<Step>, InputError> {
        node.list()?.iter().map(|step| self.step(step, depth)).collect()
    }

    fn step(&self, node: &Node<'_>, depth: usize) -> Result<Step, InputError> {
        let (verb, others) = verb(node)?;
        let mut known = vec![verb];
        known.extend(others);
        let table = node.table(&known)?;
        let kind = self.kind(verb, &table.require(verb)?, &table, depth)?;
        Ok(Step { spot: node.spot.clone(), kind })
    }

    fn kind(
        &self,
        verb: &str,
        value: &Node<'_>,
        table: &Table<'_>,
        depth: usize,
    ) -> Result<StepKind, InputError> {
        let object = |class| self.object(class, value);
        Ok(match verb {
            "compute" => self.work(WorkUnit::Instructions, value, table)?,
            "run_us" => self.work(WorkUnit::ReferenceTime, value, table)?,
            "occupy_us" => self.work(WorkUnit::CpuTime, value, table)?,
            "lock" => StepKind::Lock(object(Class::Mutex)?),
            "unlock" => StepKind::Unlock(object(Class::Mutex)?),
            "wait" => StepKind::Wait {
                condition: object(Class::Condition)?,
                mutex: self.member(Class::Mutex, table)?,
            },
            "signal" => StepKind::Signal(object(Class::Condition)?),
            "broadcast" => StepKind::Broadcast(object(Class::Condition)?),
            "sync" => StepKind::Sync {
                condition: object(Class::Condition)?,
                mutex: self.member(Class::Mutex, table)?,
            },
            "barrier" => StepKind::Barrier(object(Class::Barrier)?),
            "sem_wait" => StepKind::SemWait(object(Class::Semaphore)?),
            "sem_post" => StepKind::SemPost(object(Class::Semaphore)?),
            "push" => StepKind::Push(object(Class::Queue)?),
            "close" => StepKind::Close(object(Class::Queue)?),
            "each" => {
                StepKind::Each { queue: object(Class::Queue)?, body: self.nested(table, depth)? }
            }
            "dynamic" => {
                StepKind::Dynamic { pool: object(Class::Pool)?, body: self.nested(table, depth)? }
            }
            "tasks" => {
                let (region, (profile, profile_spot)) = (object(Class::Region)?, profile(table)?);
                StepKind::Tasks { region, profile, profile_spot }
            }
            "create" => {
                let (region, (profile, profile_spot)) = (object(Class::Region)?, profile(table)?);
                StepKind::Create { region, profile, profile_spot }
            }
            "loop" => {
                StepKind::Loop { repeat: self.repeat(value)?, body: self.nested(table, depth)? }
            }
            "fork" => {
                StepKind::Fork { group: self.group(value)?, times: self.times(value, table)? }
            }
            "sleep_us" => StepKind::Sleep(self.amount(value)?),
            "timer_us" => self.timer(value, table)?,
            "io_us" => StepKind::Io {
                device: self.member(Class::Device, table)?,
                amount: self.amount(value)?,
            },
            "resume" => StepKind::Resume(self.group(value)?),
            "set_cores" => StepKind::SetCores(self.cores(value)?),
            "set_nice" => StepKind::SetNice(self.expr(value)?),
            "set_class" => StepKind::SetClass(ClassExpr::of(value, table, self)?),
            "set_slice_us" => StepKind::SetSlice(self.expr(value)?),
            "set_uclamp_min" => StepKind::SetUclamp { is_min: true, value: self.expr(value)? },
            "set_uclamp_max" => StepKind::SetUclamp { is_min: false, value: self.expr(value)? },
            "set_group" => StepKind::SetGroup(path(value)?.to_owned()),
            flag => self.flag(flag, value)?,
        })
    }

    /// Steps without an operand: `{ join = true }`.
    fn flag(&self, verb: &str, value: &Node<'_>) -> Result<StepKind, InputError> {
        if !value.boolean()? {
            return Err(value
                .spot
                .error("false has no meaning, only true")
                .with_hint("leave the step out"));
        }
        Ok(match verb {
            "join" => StepKind::Join,
            "yield" => StepKind::Yield,
            _ => StepKind::Suspend,
        })
    }

    fn work(
        &self,
        unit: WorkUnit,
        value: &Node<'_>,
        table: &Table<'_>,
    ) -> Result<StepKind, InputError> {
        let (profile, profile_spot) = profile(table)?;
        Ok(StepKind::Work { unit, amount: self.amount(value)?, profile, profile_spot })
    }

    fn repeat(&self, value: &Node<'_>) -> Result<Repeat, InputError> {
        if value.is_text() && value.text()? == "forever" {
            return Ok(Repeat::Forever);
        }
        self.amount(value).map(Repeat::Times)
    }

    fn times(&self, value: &Node<'_>, table: &Table<'_>) -> Result<Expr, InputError> {
        let once = Expr::number(1.0, value.spot.clone());
        table.get("times").map_or(Ok(once), |node| self.expr(&node))
    }

    fn timer(&self, value: &Node<'_>, table: &Table<'_>) -> Result<StepKind, InputError> {
        let mode = match table
            .get("mode")
            .map(|node| node.word("mode", &["relative", "absolute"]))
            .transpose()?
        {
            Some("absolute") => TimerMode::Absolute,
            _ => TimerMode::Relative,
        };
        Ok(StepKind::Timer {
            timer: self.member(Class::Timer, table)?,
            period_us: self.expr(value)?,
            mode,
        })
    }

    fn nested(&self, table: &Table<'_>, depth: usize) -> Result<Vec<Step>, InputError> {
        let body = table.require("body")?;
        if depth >= BODIES_DEPTH_MAX {
            return Err(body.spot.error(format!("nested deeper than {BODIES_DEPTH_MAX} bodies")));
        }
        self.steps(&body, depth + 1)
    }

    /// The object that another key of the step names: `mutex = "m"`.
    fn member(&self, class: Class, table: &Table<'_>) -> Result<ObjectIndex, InputError> {
        self.object(class, &table.require(class.word())?)
    }

    fn object(&self, class: Class, node: &Node<'_>) -> Result<ObjectIndex, InputError> {
        let name = node.name()?;
        let same_name = |object: &ObjectDecl| object.name == name;
        let found = self
            .objects
            .iter()
            .position(|object| same_name(object) && object.kind.class() == class);
        found.ok_or_else(|| self.unknown_object(class, name, node))
    }

    fn unknown_object(&self, class: Class, name: &str, node: &Node<'_>) -> InputError {
        if let Some(other) = self.objects.iter().find(|object| object.name == name) {
            let message = format!(
                "{} is a {}, not a {}",
                quoted(name),
                other.kind.class().word(),
                class.word()
            );
            return node.spot.error(message);
        }
        let known: Vec<&str> = self
            .objects
            .iter()
            .filter(|object| object.kind.class() == class)
            .map(|object| object.name.as_str())
            .collect();
        let error = node.spot.unknown(class.word(), name, known.iter().copied());
        if known.is_empty() {
            error.with_hint(format!("declare it: [{}.{name}]", class.section()))
        } else {
            error
        }
    }

    fn group(&self, node: &Node<'_>) -> Result<GroupIndex, InputError> {
        let name = node.name()?;
        let found = self.groups.iter().position(|group| *group == name);
        found.ok_or_else(|| node.spot.unknown("thread", name, self.groups.iter().copied()))
    }
}

/// What a step does, and the other keys that it may have.
fn verb(node: &Node<'_>) -> Result<(&'static str, &'static [&'static str]), InputError> {
    let table = node.any_table()?;
    let found: Vec<_> = VERBS.iter().filter(|(verb, _)| table.has(verb)).collect();
    match found[..] {
        [(verb, others)] => Ok((verb, others)),
        [] => Err(unknown_step(&table)),
        _ => {
            let verbs: Vec<_> = found.iter().map(|(verb, _)| *verb).collect();
            Err(node
                .spot
                .error(format!("does {} in one step", verbs.join(" and ")))
                .with_hint("write one step for each"))
        }
    }
}

fn unknown_step(table: &Table<'_>) -> InputError {
    match table.members().first() {
        Some((key, _)) => table.spot.unknown("step", key, VERBS.iter().map(|(verb, _)| *verb)),
        None => table.spot.error("is an empty step"),
    }
}

/// The name of the step's profile, and where it stands.
fn profile(table: &Table<'_>) -> Result<(String, Spot), InputError> {
    let profile = table.require("profile")?;
    Ok((profile.name()?.to_owned(), profile.spot))
}

impl ObjectDecl {
    /// Parses the declaration of an object.
    pub fn of(
        class: Class,
        name: &str,
        node: &Node<'_>,
        params: &[&str],
    ) -> Result<ObjectDecl, InputError> {
        let may_spin = SPINNABLE.contains(&class.word());
        let keys = [DeclKind::keys(class), if may_spin { &["spin_us"] } else { &[] }].concat();
        let table = node.table(&keys)?;
        let spin_us = table.get("spin_us").map(|node| checked(&node, params)).transpose()?;
        let kind = DeclKind::of(class, node, &table, params)?;
        Ok(ObjectDecl { name: name.to_owned(), spot: node.spot.clone(), kind, spin_us })
    }
}

/// An expression in which only parameters have names.
fn checked(node: &Node<'_>, params: &[&str]) -> Result<Expr, InputError> {
    let expr = Expr::of(node)?;
    expr.check_names(params, false).map(|()| expr)
}

/// The schedule of a pool.
fn schedule(table: &Table<'_>) -> Result<Schedule, InputError> {
    let Some(node) = table.get("schedule") else { return Ok(Schedule::default()) };
    let word = node.word("schedule", &Schedule::ALL.map(Schedule::word))?;
    let schedule = Schedule::of_word(word).unwrap_or_default();
    match table.get("chunk") {
        Some(chunk) if schedule == Schedule::Static => {
            let message = "a static schedule has no chunks: each participant gets one block";
            Err(chunk.spot.error(message).with_hint("leave it out, or choose another schedule"))
        }
        _ => Ok(schedule),
    }
}

impl DeclKind {
    /// The keys of a kind of object.
    fn keys(class: Class) -> &'static [&'static str] {
        match class {
            Class::Mutex => &["count"],
            Class::Barrier => &["parties"],
            Class::Semaphore => &["initial"],
            Class::Queue => &["capacity", "producers"],
            Class::Pool => &["total", "chunk", "participants", "schedule"],
            Class::Timer => &["shared"],
            Class::Region => {
                &["graph", "policy", "workers", "work_us", "grab_us", "create_us", "window"]
            }
            Class::Device => &["depth", "latency_us"],
            Class::Condition => &[],
        }
    }

    /// Parses what is particular to a kind of object.
    fn of(
        class: Class,
        node: &Node<'_>,
        table: &Table<'_>,
        params: &[&str],
    ) -> Result<DeclKind, InputError> {
        let checked = |node: Node<'_>| checked(&node, params);
        let optional = |key| table.get(key).map(checked).transpose();
        let required = |key| table.require(key).and_then(checked);
        let or = |key, default| {
            Ok(optional(key)?.unwrap_or_else(|| Expr::number(default, node.spot.clone())))
        };
        Ok(match class {
            Class::Mutex => DeclKind::Mutex { count: or("count", 1.0)? },
            Class::Condition => DeclKind::Condition,
            Class::Barrier => DeclKind::Barrier { parties: optional("parties")? },
            Class::Semaphore => DeclKind::Semaphore { initial: or("initial", 0.0)? },
            Class::Queue => DeclKind::Queue {
                capacity: required("capacity")?,
                producers: optional("producers")?,
            },
            Class::Pool => DeclKind::Pool {
                total: required("total")?,
                chunk: or("chunk", 1.0)?,
                participants: optional("participants")?,
                schedule: schedule(table)?,
            },
            Class::Device => {
                DeclKind::Device { depth: or("depth", 1.0)?, latency_us: or("latency_us", 0.0)? }
            }
            Class::Region => {
                let graph = table.require("graph")?;
                DeclKind::Region(Box::new(RegionDecl {
                    graph: graph.name()?.to_owned(),
                    graph_spot: graph.spot,
                    text: None,
                    policy: table.text_or("policy", "fifo")?,
                    workers: optional("workers")?,
                    work_us: or("work_us", US_PER_S)?,
                    grab_us: or("grab_us", 0.0)?,
                    create_us: or("create_us", 0.0)?,
                    window: optional("window")?,
                }))
            }
            Class::Timer => DeclKind::Timer {
                shared: table.get("shared").map_or(Ok(false), |node| node.boolean())?,
            },
        })
    }
}
