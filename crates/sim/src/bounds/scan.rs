//! What the code of a program says without being executed: who may use which object.

use ampsched_model::{CodePtr, ObjectId, ObjectKind, Op, Program};

/// Who may use an object.
#[derive(Clone, Default)]
struct Users {
    /// Threads that start with the program and contain a step on it.
    threads: u32,
    /// Their specifications.
    specs: Vec<usize>,
    /// Whether forked threads do, too, or the step stands where it is not certain who executes it.
    others: bool,
    /// Whether daemon threads do, too: then work on it may be left undone.
    daemons: bool,
    /// Steps from which items are worked on.
    sites: Vec<CodePtr>,
}

/// The result.
pub(super) struct Scan {
    users: Vec<Users>,
    kinds: Vec<(usize, u32)>,
    pub forks: bool,
    /// By specification: whether a single thread forks all its instances, so that their numbers are certain.
    has_one_parent: Vec<bool>,
    pub changes_cores: bool,
}

impl Scan {
    /// Looks through a program.
    pub fn of(program: &Program) -> Self {
        let forked = |spec: usize| {
            let forks = |op: &Op| matches!(op, Op::Fork { thread } if *thread as usize == spec);
            program.code.iter().any(forks)
        };
        let mut users = vec![Users::default(); program.objects.len()];
        for (spec, thread) in program.threads.iter().enumerate() {
            let is_forked = forked(spec);
            let mut items = 0;
            for (place, op) in program.code.iter().enumerate().skip(thread.entry.index()) {
                let object = match op {
                    Op::Exit => break,
                    Op::ItemEnd { .. } => {
                        items -= 1;
                        continue;
                    }
                    Op::Tasks { region: object, .. } | Op::Create { region: object, .. } => {
                        users[object.index()].daemons |= thread.is_daemon;
                        continue;
                    }
                    Op::Barrier(object)
                    | Op::Pop { queue: object, .. }
                    | Op::Take { pool: object, .. } => object.index(),
                    _ => continue,
                };
                let of_object = &mut users[object];
                of_object.daemons |= thread.is_daemon;
                of_object.others |= is_forked || items > 0 || thread.is_daemon;
                if thread.count > 0 && !of_object.specs.contains(&spec) {
                    of_object.specs.push(spec);
                    of_object.threads += thread.count;
                }
                if !matches!(op, Op::Barrier(_)) {
                    items += 1;
                    of_object.sites.push(CodePtr(place as u32));
                }
            }
        }
        let kinds = program.objects.iter().map(|object| match object.kind {
            ObjectKind::Barrier { parties } => (parties as usize, 0),
            ObjectKind::Queue { producers, .. } => (0, producers),
            _ => (0, 0),
        });
        let is = |kind: fn(&Op) -> bool| program.code.iter().any(kind);
        Self {
            users,
            kinds: kinds.collect(),
            has_one_parent: (0..program.threads.len())
                .map(|spec| has_one_parent(program, spec, &forked))
                .collect(),
            forks: is(|op| matches!(op, Op::Fork { .. })),
            changes_cores: is(|op| matches!(op, Op::SetAffinity(_))),
        }
    }

    /// Whether a single thread forks all instances of a specification.
    pub fn has_one_parent(&self, spec: usize) -> bool {
        self.has_one_parent[spec]
    }

    /// Whether daemon threads work on an object, so that not all work there need be done.
    pub fn has_daemons(&self, object: usize) -> bool {
        self.users[object].daemons
    }

    /// Threads for which a barrier waits.
    pub fn parties(&self, barrier: usize) -> usize {
        self.kinds[barrier].0
    }

    /// `Close` operations that close a queue.
    pub fn producers(&self, queue: usize) -> u32 {
        self.kinds[queue].1
    }

    /// Whether so many threads use a barrier as it waits for: then the n-th arrivals of all belong together.
    pub fn is_exact(&self, barrier: usize) -> bool {
        let users = &self.users[barrier];
        !users.others && users.threads as usize == self.parties(barrier)
    }

    /// Threads that may work on a queue's items, if that is certain.
    pub fn crew(&self, object: usize) -> Option<u32> {
        let users = &self.users[object];
        (!users.others && users.threads > 0).then_some(users.threads)
    }

    /// The specification of the only thread that may work on an object's items.
    pub fn only_consumer(&self, object: usize) -> Option<usize> {
        let users = &self.users[object];
        (!users.others && users.threads == 1).then(|| users.specs[0])
    }

    /// The steps from which an object's items are worked on.
    pub fn sites(&self, object: usize) -> &[CodePtr] {
        &self.users[object].sites
    }

    /// Whether an object hands out items.
    pub fn has_items(&self, object: usize) -> bool {
        !self.users[object].sites.is_empty()
    }
}

/// Whether all instances of a specification that are forked are forked by one thread, outside of work on items.
fn has_one_parent(program: &Program, spec: usize, forked: &dyn Fn(usize) -> bool) -> bool {
    let mut parents = 0;
    for (number, thread) in program.threads.iter().enumerate() {
        let code = program.code[thread.entry.index()..].iter();
        let mut is_certain = true;
        let mut forks = false;
        for op in code.take_while(|op| !matches!(op, Op::Exit)) {
            is_certain &= !matches!(op, Op::Pop { .. } | Op::Take { .. });
            forks |= matches!(op, Op::Fork { thread } if *thread as usize == spec);
        }
        if forks {
            parents += if is_certain && !forked(number) { thread.count } else { 2 };
        }
    }
    parents == 1
}

/// The object of a step that adds to a queue.
pub(super) fn pushed_into(op: &Op) -> Option<ObjectId> {
    match op {
        Op::Push(queue) => Some(*queue),
        _ => None,
    }
}
