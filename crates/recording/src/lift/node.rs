//! The code of a lifted thread as a tree.

use super::segment::Segment;

/// A step that matters to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Sym {
    Barrier(u32),
    SemWait(u32),
    SemPost(u32),
    Push(u32),
    Pop(u32),
    PopEnd(u32),
    Close(u32),
    Take(u32),
    TakeEnd(u32),
    /// Takes items until the queue ends.
    Each(u32),
    /// Takes iterations until none is left.
    Dynamic(u32),
    /// Starts that thread, later that group.
    Fork(u32),
    /// Waits for the end of that thread.
    Join(u32),
    /// Waits for the end of all children.
    JoinAll,
    /// The amount is the time.
    Sleep,
    /// The amount is the time.
    Io(u32),
    End,
}

/// One execution of a step.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// Thread, by its number in the recording.
    pub thread: u32,
    /// The work before the step.
    pub segment: Segment,
    /// Time of a sleep in ns.
    pub time_ns: f64,
}

/// A step with all its executions: by round, and within a round by thread.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub sym: Sym,
    pub samples: Vec<Sample>,
    /// `Each`, `Dynamic`: the items, later folded.
    pub items: Vec<Vec<Step>>,
    pub body: Vec<Node>,
    /// `Each`, `Dynamic`: number of items.
    pub pieces: usize,
    /// If other groups have the same body: the items of all of them.
    pub common: Option<usize>,
    /// `Fork`: instances.
    pub times: u32,
    /// Mean work in ns of all threads that meet there in that round, if they belong to several groups.
    pub hint: Option<f64>,
    /// Work in ns that is a thread's share of what all threads of its kind do, and other work.
    pub kinds_ns: (f64, f64),
}

impl Step {
    pub fn new(sym: Sym, sample: Sample) -> Self {
        Self { samples: vec![sample], ..Self::bare(sym) }
    }

    /// A step without executions.
    pub fn bare(sym: Sym) -> Self {
        Self {
            sym,
            samples: Vec::new(),
            items: Vec::new(),
            body: Vec::new(),
            pieces: 0,
            common: None,
            times: 1,
            hint: None,
            kinds_ns: (0.0, 0.0),
        }
    }

    /// Whether most of the work is a thread's share of what all threads of its kind do.
    pub fn is_share(&self) -> bool {
        self.kinds_ns.0 > self.kinds_ns.1
    }

    /// Takes the executions of an equal step.
    pub fn merge(&mut self, other: Step) {
        self.samples.extend(other.samples);
        self.items.extend(other.items);
        self.pieces += other.pieces;
        self.kinds_ns.0 += other.kinds_ns.0;
        self.kinds_ns.1 += other.kinds_ns.1;
        self.times = self.times.max(other.times);
    }

    /// Work of all executions in ns, items included.
    pub fn work(&self) -> f64 {
        self.own_work() + self.items.iter().flatten().map(Step::work).sum::<f64>()
    }

    /// Work of all executions in ns, without items.
    pub fn own_work(&self) -> f64 {
        self.samples.iter().map(|sample| sample.segment.total()).sum()
    }
}

/// A step or a loop.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Step(Step),
    /// `counts`: rounds of each execution.
    Loop {
        counts: Vec<f64>,
        body: Vec<Node>,
    },
}

/// Whether some of these, however deep, is such a step.
pub(super) fn any(nodes: &[Node], sym: Sym) -> bool {
    nodes.iter().any(|node| match node {
        Node::Step(step) => step.sym == sym || any(&step.body, sym),
        Node::Loop { body, .. } => any(body, sym),
    })
}

impl Node {
    /// Whether both do the same, whatever their amounts.
    pub fn is_like(&self, other: &Node) -> bool {
        match (self, other) {
            (Node::Step(one), Node::Step(two)) => one.sym == two.sym && one.times == two.times,
            (Node::Loop { counts: some, body: one }, Node::Loop { counts: others, body: two }) => {
                are_like(one, two) && (have_same(some, others) || one.iter().all(Node::is_free))
            }
            _ => false,
        }
    }

    /// Whether nobody waits for this number of rounds exactly, as others may for what was pushed.
    pub fn is_free(&self) -> bool {
        match self {
            Node::Step(step) => {
                matches!(step.sym, Sym::Sleep | Sym::Io(_) | Sym::End)
            }
            Node::Loop { body, .. } => body.iter().all(Node::is_free),
        }
    }

    /// Takes the executions of a like one.
    pub fn merge(&mut self, other: Node) {
        match (self, other) {
            (Node::Step(one), Node::Step(two)) => one.merge(two),
            (Node::Loop { counts, body }, Node::Loop { counts: more_counts, body: more }) => {
                counts.extend(more_counts);
                merge_all(body, more);
            }
            _ => {}
        }
    }

    /// Work of all executions in ns, without items of `Each` and `Dynamic`.
    pub fn own_work(&self) -> f64 {
        match self {
            Node::Step(step) => step.own_work(),
            Node::Loop { body, .. } => body.iter().map(Node::own_work).sum(),
        }
    }

    /// Calls `visit` with each step, in order.
    pub fn each_step<'a>(&'a self, visit: &mut dyn FnMut(&'a Step)) {
        match self {
            Node::Step(step) => {
                visit(step);
                step.body.iter().for_each(|node| node.each_step(visit));
            }
            Node::Loop { body, .. } => body.iter().for_each(|node| node.each_step(visit)),
        }
    }
}

fn have_same(some: &[f64], others: &[f64]) -> bool {
    some.iter().chain(others).all(|count| Some(count) == some.first())
}

/// Whether two sequences do the same.
pub(super) fn are_like(one: &[Node], two: &[Node]) -> bool {
    one.len() == two.len() && one.iter().zip(two).all(|(one, two)| one.is_like(two))
}

/// Merges like sequences, node by node.
pub(super) fn merge_all(into: &mut [Node], other: Vec<Node>) {
    for (node, more) in into.iter_mut().zip(other) {
        node.merge(more);
    }
}
