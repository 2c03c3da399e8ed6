//! Creating tasks with dependences.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use ampsched_task::TaskId;

use crate::dispatcher::Serial;
use crate::erase;
use crate::graph_job::NewTask;
use crate::shared::Shared;

/// Who used some data last.
#[derive(Default)]
struct Users {
    writer: Option<TaskId>,
    /// Those that have read since.
    readers: Vec<TaskId>,
}

/// Where tasks are created; see [`crate::Runtime::scope`].
///
/// It may be shared with tasks, which can create further tasks in it.
pub struct Scope<'scope, 'env: 'scope> {
    shared: Arc<Shared>,
    serial: Serial,
    /// By address.
    users: Mutex<HashMap<usize, Users>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

impl<'scope, 'env> Scope<'scope, 'env> {
    pub(crate) fn new(shared: Arc<Shared>, serial: Serial) -> Self {
        let users = Mutex::default();
        Self { shared, serial, users, scope: PhantomData, env: PhantomData }
    }

    /// A new task of a kind, such as `"gemm"`: what tasks of the same kind took tells what this one may cost.
    pub fn task<'a>(&'scope self, kind: &'a str) -> TaskBuilder<'scope, 'env, 'a> {
        TaskBuilder {
            scope: self,
            kind,
            name: None,
            cost_s: None,
            reads: Vec::new(),
            writes: Vec::new(),
            after: Vec::new(),
        }
    }

    /// Starts no more tasks of this scope; those that run go on. Running it then ends with [`crate::Error::Cancelled`].
    pub fn cancel(&self) {
        self.shared.change(|dispatcher, to_wake| {
            dispatcher.graph(self.serial).cancel();
            dispatcher.tell_waiter(self.serial, to_wake);
        });
    }

    /// Whether no more tasks are started, because of [`Scope::cancel`] or a panic. Long tasks may look and give up.
    pub fn is_cancelled(&self) -> bool {
        self.shared.lock().graph(self.serial).is_stopped()
    }
}

/// A task in the making; [`TaskBuilder::run`] creates it.
#[must_use = "a task is created by `run`"]
pub struct TaskBuilder<'scope, 'env: 'scope, 'a> {
    scope: &'scope Scope<'scope, 'env>,
    kind: &'a str,
    name: Option<Box<str>>,
    cost_s: Option<f64>,
    reads: Vec<usize>,
    writes: Vec<usize>,
    after: Vec<TaskId>,
}

impl<'scope> TaskBuilder<'scope, '_, '_> {
    /// The task reads this data (`in`): it waits for the last task before it that writes it. What counts is the
    /// address.
    pub fn reads<T: ?Sized>(self, data: &T) -> Self {
        self.reads_at(address(data))
    }

    /// The task writes this data, and may read it (`out`, `inout`): it waits for all tasks before it that read or write
    /// it.
    pub fn writes<T: ?Sized>(self, data: &T) -> Self {
        self.writes_at(address(data))
    }

    pub(crate) fn reads_at(mut self, address: usize) -> Self {
        self.reads.push(address);
        self
    }

    pub(crate) fn writes_at(mut self, address: usize) -> Self {
        self.writes.push(address);
        self
    }

    /// The task waits for another one of the same scope.
    ///
    /// Panics if the scope has no such task yet.
    pub fn after(mut self, task: TaskId) -> Self {
        self.after.push(task);
        self
    }

    /// How long the task takes at speed 1, in seconds, for policies that go by costs. Otherwise earlier tasks of the
    /// kind tell.
    ///
    /// Panics if it is negative or not a number.
    pub fn cost_s(mut self, cost_s: f64) -> Self {
        assert!(
            cost_s >= 0.0 && cost_s.is_finite(),
            "cost {cost_s} s of a {:?} task is not a time",
            self.kind
        );
        self.cost_s = Some(cost_s);
        self
    }

    /// Name in recordings.
    pub fn name(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Creates the task. It starts as soon as all tasks that it waits for have ended and the policy gives it to a
    /// worker, on that worker's thread. If it panics, no more tasks of the scope are started, and the panic goes on in
    /// the caller of the scope.
    pub fn run(self, body: impl FnOnce() + Send + 'scope) -> TaskId {
        // SAFETY: the scope waits until every body has been executed or dropped, and `'scope` outlives it.
        #[allow(unsafe_code)]
        let body = unsafe { erase::once(Box::new(body)) };
        let Scope { shared, serial, users, .. } = self.scope;
        // Held until the task is on the dispatcher: tasks get their numbers in the order in which they use data.
        let mut users = users.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = self.after;
        before.extend(writers(&users, &self.reads));
        before.extend(self.writes.iter().flat_map(|data| all_users(&users, *data)));
        before.sort_unstable();
        before.dedup();
        let (task, stopped) = shared.change(|dispatcher, _| {
            let costs_s = self.cost_s.map(|cost_s| {
                dispatcher.workers.classes().iter().map(|class| cost_s / class.speed).collect()
            });
            let tasks = dispatcher.graph(*serial).len();
            if let Some(unknown) = before.last().filter(|last| last.index() >= tasks) {
                let (kind, unknown) = (self.kind, unknown.0);
                panic!("a {kind:?} task waits for task {unknown}, but its scope has {tasks} tasks so far");
            }
            let kind = dispatcher.rates.of_kind(self.kind);
            dispatcher.add_task(
                *serial,
                NewTask { kind, name: self.name, costs_s, before, body: Some(body) },
            )
        });
        for data in self.reads {
            users.entry(data).or_default().readers.push(task);
        }
        for data in self.writes {
            users.insert(data, Users { writer: Some(task), readers: Vec::new() });
        }
        drop(users);
        drop(stopped);
        task
    }
}

fn address<T: ?Sized>(data: &T) -> usize {
    ptr::from_ref(data).cast::<()>() as usize
}

/// The last writers of some data.
fn writers(users: &HashMap<usize, Users>, data: &[usize]) -> impl Iterator<Item = TaskId> {
    data.iter().filter_map(|data| users.get(data)?.writer)
}

/// Those that must have ended before some data may be written; who has read it waits for its writer already.
fn all_users(users: &HashMap<usize, Users>, data: usize) -> Vec<TaskId> {
    match users.get(&data) {
        Some(Users { writer, readers }) if readers.is_empty() => writer.iter().copied().collect(),
        Some(Users { readers, .. }) => readers.clone(),
        None => Vec::new(),
    }
}
