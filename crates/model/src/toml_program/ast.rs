//! A program file as it was written: names resolved to positions, expressions still open.

use std::sync::Arc;

use super::amount::AmountExpr;
use super::sched::{Attrs, ClassExpr};
use crate::expr::Expr;
use crate::reader::Spot;
use crate::{Schedule, TimerMode};

/// A parameter and its default.
#[derive(Clone, Debug)]
pub(crate) struct Param {
    pub name: String,
    pub default: f64,
}

/// A declared object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectDecl {
    pub name: String,
    pub spot: Spot,
    pub kind: DeclKind,
    /// CPU time in us for which waiting threads spin before they block.
    pub spin_us: Option<Expr>,
}

/// What a declared object is.
#[derive(Clone, Debug)]
pub(crate) enum DeclKind {
    Mutex { count: Expr },
    Condition,
    Barrier { parties: Option<Expr> },
    Semaphore { initial: Expr },
    Queue { capacity: Expr, producers: Option<Expr> },
    Pool { total: Expr, chunk: Expr, participants: Option<Expr>, schedule: Schedule },
    Device { depth: Expr, latency_us: Expr },
    Timer { shared: bool },
    Region(Box<RegionDecl>),
}

/// A declared parallel region.
#[derive(Clone, Debug)]
pub(crate) struct RegionDecl {
    pub graph: String,
    pub graph_spot: Spot,
    /// The text of the file, if the graph is one and has been read.
    pub text: Option<Arc<str>>,
    pub policy: String,
    pub workers: Option<Expr>,
    pub work_us: Expr,
    pub grab_us: Expr,
    pub create_us: Expr,
    pub window: Option<Expr>,
}

impl RegionDecl {
    /// The path of the graph's file, relative to the folder of the file it stands in; none if it is a task program.
    pub fn path(&self) -> Option<String> {
        let head = self.graph.split(':').next().unwrap_or_default();
        head.contains(['/', '\\', '.']).then(|| self.graph_spot.beside(&self.graph))
    }
}

/// A kind of object, as a key for its name space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Mutex,
    Condition,
    Barrier,
    Semaphore,
    Queue,
    Pool,
    Device,
    Timer,
    Region,
}

impl Class {
    /// All kinds with the table that declares them.
    pub const SECTIONS: [(Class, &'static str); 9] = [
        (Class::Mutex, "mutexes"),
        (Class::Condition, "conditions"),
        (Class::Barrier, "barriers"),
        (Class::Semaphore, "semaphores"),
        (Class::Queue, "queues"),
        (Class::Pool, "pools"),
        (Class::Device, "devices"),
        (Class::Timer, "timers"),
        (Class::Region, "regions"),
    ];

    /// The word for messages.
    pub fn word(self) -> &'static str {
        match self {
            Class::Mutex => "mutex",
            Class::Condition => "condition",
            Class::Barrier => "barrier",
            Class::Semaphore => "semaphore",
            Class::Queue => "queue",
            Class::Pool => "pool",
            Class::Device => "device",
            Class::Timer => "timer",
            Class::Region => "region",
        }
    }

    /// The table that declares this kind.
    pub fn section(self) -> &'static str {
        Self::SECTIONS.iter().find(|(class, _)| *class == self).map_or("", |(_, section)| section)
    }
}

impl DeclKind {
    /// The kind.
    pub fn class(&self) -> Class {
        match self {
            DeclKind::Mutex { .. } => Class::Mutex,
            DeclKind::Condition => Class::Condition,
            DeclKind::Barrier { .. } => Class::Barrier,
            DeclKind::Semaphore { .. } => Class::Semaphore,
            DeclKind::Queue { .. } => Class::Queue,
            DeclKind::Pool { .. } => Class::Pool,
            DeclKind::Device { .. } => Class::Device,
            DeclKind::Timer { .. } => Class::Timer,
            DeclKind::Region(_) => Class::Region,
        }
    }
}

/// Position of an object in [`super::ProgramTemplate`]'s list.
pub(crate) type ObjectIndex = usize;
/// Position of a thread group in [`super::ProgramTemplate`]'s list.
pub(crate) type GroupIndex = usize;

/// A group of equal threads.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub name: String,
    pub spot: Spot,
    pub count: Expr,
    pub nice: Expr,
    pub cores: Option<Vec<Expr>>,
    pub start_us: Expr,
    pub attrs: Attrs,
    /// Whether it ends with the other threads.
    pub is_daemon: bool,
    pub body: Vec<Step>,
}

/// One step of a body.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub spot: Spot,
    pub kind: StepKind,
}

/// In which unit work is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkUnit {
    /// `compute`: instructions.
    Instructions,
    /// `run_us`: microseconds on the fastest core.
    ReferenceTime,
    /// `occupy_us`: microseconds of CPU time.
    CpuTime,
}

/// How often a loop repeats.
#[derive(Clone, Debug)]
pub(crate) enum Repeat {
    Times(AmountExpr),
    Forever,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum StepKind {
    Work { unit: WorkUnit, amount: AmountExpr, profile: String, profile_spot: Spot },
    Lock(ObjectIndex),
    Unlock(ObjectIndex),
    Wait { condition: ObjectIndex, mutex: ObjectIndex },
    Signal(ObjectIndex),
    Broadcast(ObjectIndex),
    Sync { condition: ObjectIndex, mutex: ObjectIndex },
    Barrier(ObjectIndex),
    SemWait(ObjectIndex),
    SemPost(ObjectIndex),
    Push(ObjectIndex),
    Close(ObjectIndex),
    Each { queue: ObjectIndex, body: Vec<Step> },
    Dynamic { pool: ObjectIndex, body: Vec<Step> },
    Tasks { region: ObjectIndex, profile: String, profile_spot: Spot },
    Create { region: ObjectIndex, profile: String, profile_spot: Spot },
    Loop { repeat: Repeat, body: Vec<Step> },
    Fork { group: GroupIndex, times: Expr },
    Join,
    Sleep(AmountExpr),
    Timer { timer: ObjectIndex, period_us: Expr, mode: TimerMode },
    Io { device: ObjectIndex, amount: AmountExpr },
    Yield,
    Suspend,
    Resume(GroupIndex),
    SetCores(Vec<Expr>),
    SetNice(Expr),
    SetClass(ClassExpr),
    SetSlice(Expr),
    SetUclamp { is_min: bool, value: Expr },
    SetGroup(String),
}

impl Step {
    /// The nested body, if the step has one.
    pub fn body(&self) -> &[Step] {
        match &self.kind {
            StepKind::Each { body, .. }
            | StepKind::Dynamic { body, .. }
            | StepKind::Loop { body, .. } => body,
            _ => &[],
        }
    }

    /// Expressions of the step itself, not of its nested body.
    pub fn expressions(&self) -> Vec<&Expr> {
        match &self.kind {
            StepKind::Work { amount, .. }
            | StepKind::Sleep(amount)
            | StepKind::Io { amount, .. } => amount.expressions(),
            StepKind::Loop { repeat: Repeat::Times(amount), .. } => amount.expressions(),
            StepKind::Fork { times: expr, .. }
            | StepKind::Timer { period_us: expr, .. }
            | StepKind::SetSlice(expr)
            | StepKind::SetUclamp { value: expr, .. }
            | StepKind::SetNice(expr) => {
                vec![expr]
            }
            StepKind::SetCores(cores) => cores.iter().collect(),
            StepKind::SetClass(class) => class.expressions().collect(),
            _ => Vec::new(),
        }
    }
}

/// Calls `visit` for every step of a body, outer steps before the steps inside them.
pub(crate) fn for_each_step<'a>(body: &'a [Step], visit: &mut impl FnMut(&'a Step)) {
    for step in body {
        visit(step);
        for_each_step(step.body(), visit);
    }
}

impl Group {
    /// Whether instances differ: some expression says `index`.
    pub fn is_indexed(&self) -> bool {
        let mut indexed = self.nice.mentions("index") || self.start_us.mentions("index");
        indexed |= self.attrs.expressions().any(|expr| expr.mentions("index"));
        indexed |= self.cores.iter().flatten().any(|core| core.mentions("index"));
        for_each_step(&self.body, &mut |step| {
            indexed |= step.expressions().iter().any(|expr| expr.mentions("index"))
        });
        indexed
    }

    /// Whether some step of the body, however deep, satisfies the predicate.
    pub fn has_step(&self, predicate: impl Fn(&StepKind) -> bool) -> bool {
        let mut found = false;
        for_each_step(&self.body, &mut |step| found |= predicate(&step.kind));
        found
    }
}
