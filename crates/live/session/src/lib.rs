//! What every session that runs a policy on this computer is, whatever its means.
//!
//! [`Settings`] say what is wanted, [`Setup`] what that comes to on this computer, and [`run`] runs it until its
//! command ends or it is stopped: look, decide, carry out, record. How threads are looked at and decisions are carried
//! out is a [`Backend`]'s business, and so is what it touches of the system; that it is put back in the end, by the
//! session, by its guardian or by a later one, is the business of this crate.

#[cfg(feature = "clap")]
pub mod arguments;
mod backend;
mod claims;
mod clocks;
mod command;
mod folder;
mod guardian;
mod identity;
mod instruments;
mod journal;
mod limits;
mod live_trace;
mod now;
mod observed;
mod own;
mod paths;
mod place;
mod policy_text;
mod record;
mod restore;
mod run;
mod run_dir;
mod scope;
mod service;
mod session;
mod settings;
mod setup;
mod signals;
mod status;
mod stopped;
mod summary;
mod tell;
mod whole_file;

pub use backend::{Backend, End, Outcome, PutBack};
pub use claims::Registration;
pub use clocks::{ClockTouch, Clocks, Limit};
pub use guardian::keep_watch;
pub use identity::Identity;
pub use instruments::read_sensors;
pub use journal::{Contents, Held, Journal, JournalFile};
pub use limits::check as check_limits;
pub use observed::{Account, Observed, Scheduled};
pub use place::{Place, Relation};
pub use policy_text::{Named, build as build_policy};
pub use restore::{put_back, restore};
pub use run::run;
pub use run_dir::{Lock, RunDir};
pub use scope::Scope;
pub use session::Session;
pub use settings::{CoreSettings, FolderSettings, Means, RecordSettings, ScopeSettings, Settings};
pub use setup::Setup;
pub use signals::END_POLICY;
pub use status::{CoreStatus, Status, ThreadStatus};
pub use summary::Summary;
pub use tell::{print, tell};
