//! Data that tasks read and write.

use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, RwLock, TryLockError};

use crate::shared::current_task;

/// Data that several tasks use, at different times because of the dependences that they state.
///
/// Dependences make access exclusive, so nobody ever waits for a datum. If a task reaches one that another
/// task is using, a dependence is missing, and it panics with a message that names the task.
///
/// ```
/// use ampsched_taskrt::Datum;
/// let datum = Datum::new(1);
/// *datum.write() += 1;
/// assert_eq!(*datum.read(), 2);
/// assert_eq!(datum.into_inner(), 2);
/// ```
#[derive(Debug, Default)]
pub struct Datum<T>(RwLock<T>);

impl<T> Datum<T> {
    /// A datum.
    pub fn new(value: T) -> Self {
        Self(RwLock::new(value))
    }

    /// The value, to be read. Panics if a task is writing it.
    pub fn read(&self) -> impl Deref<Target = T> + use<'_, T> {
        match self.0.try_read() {
            Ok(guard) => guard,
            // The panic that poisoned it goes on in the caller of the runtime.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => missing("reads", "reads"),
        }
    }

    /// The value, to be written. Panics if a task is reading or writing it.
    pub fn write(&self) -> impl DerefMut<Target = T> + use<'_, T> {
        match self.0.try_write() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => missing("writes", "writes"),
        }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

fn missing(does: &str, state: &str) -> ! {
    let who = current_task()
        .map_or("code outside of tasks".to_owned(), |task| format!("task {}", task.0));
    panic!(
        "{who} {does} a datum that another task is using: a dependence is missing (state it with `{state}`)"
    )
}
