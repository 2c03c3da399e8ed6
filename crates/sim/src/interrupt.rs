//! Ending a simulation from outside before it is over.

use std::fmt;
use std::sync::Arc;

/// Somebody who may want simulations to end early, and is asked now and then: before each, and then every
/// [`Interrupt::EVENTS`] events. A simulation that is ended so fails with [`crate::SimError::Interrupted`].
///
/// The question should be a cheap one, such as a look at a flag that somebody else sets. The default never wants it.
#[derive(Clone, Default)]
pub struct Interrupt(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Interrupt {
    /// Events of a simulation between two questions: some tens of microseconds.
    pub const EVENTS: u32 = 1024;

    /// One that wants it when `is_wanted` says so.
    pub fn new(is_wanted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_wanted)))
    }

    /// Whether simulations are to end now.
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|is_wanted| is_wanted())
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Interrupt(somebody)" } else { "Interrupt(nobody)" })
    }
}

/// Who may end a simulation is no part of what is simulated.
impl PartialEq for Interrupt {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}
