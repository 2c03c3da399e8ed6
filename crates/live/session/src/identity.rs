//! Who a command runs as.

use std::ffi::CString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use ampsched_model::InputError;
use nix::unistd::{User, getgrouplist};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{
    clear_ambient_capability_set, set_no_new_privs, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid,
};

use crate::ScopeSettings;

/// The user who has called sudo.
const CALLER: &str = "SUDO_UID";

/// The user as whom a command runs, if that is another one than the session's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Name and number.
    pub words: String,
    name: String,
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    home: PathBuf,
    shell: PathBuf,
}

impl Identity {
    /// Who is meant by the settings: `--user`, else under sudo the user who has called it. None: the session's user.
    ///
    /// # Errors
    ///
    /// There is no such user, or this process cannot become that one.
    pub fn of(settings: &ScopeSettings) -> Result<Option<Self>, InputError> {
        if settings.command.is_empty() {
            return Ok(None);
        }
        let own = geteuid();
        let by_sudo = || std::env::var(CALLER).ok().filter(|_| own.is_root());
        let found = match (&settings.user, by_sudo()) {
            (Some(user), _) => find("--user", user)?,
            (None, Some(caller)) => find(CALLER, &caller)?,
            (None, None) => return Ok(None),
        };
        if found.uid.as_raw() == own.as_raw() {
            return Ok(None);
        }
        if !own.is_root() {
            let message = format!("only root can run a command as {}", found.name);
            return Err(InputError::new("--user", "", message)
                .with_hint("with sudo the command runs as whoever has called it"));
        }
        Self::new(found).map(Some)
    }

    fn new(user: User) -> Result<Self, InputError> {
        let wrong = |error: &dyn std::error::Error| {
            InputError::new("--user", &user.name, format!("its groups: {error}"))
        };
        let name = CString::new(user.name.clone()).map_err(|error| wrong(&error))?;
        let groups = getgrouplist(&name, user.gid).map_err(|error| wrong(&error))?;
        Ok(Self {
            words: format!("{} ({})", user.name, user.uid),
            uid: Uid::from_raw(user.uid.as_raw()),
            gid: Gid::from_raw(user.gid.as_raw()),
            groups: groups.into_iter().map(|group| Gid::from_raw(group.as_raw())).collect(),
            name: user.name,
            home: user.dir,
            shell: user.shell,
        })
    }

    /// Lets a command run as this user, with the groups and the variables that `sudo -u` would give it, and without a
    /// way to more: neither set-user-ID programs nor capabilities.
    #[allow(unsafe_code)] // Between fork and exec.
    pub fn give(&self, command: &mut Command) {
        for name in ["USER", "LOGNAME"] {
            command.env(name, &self.name);
        }
        command.env("HOME", &self.home).env("SHELL", &self.shell);
        let (uid, gid, groups) = (self.uid, self.gid, self.groups.clone());
        let become_user = move || {
            set_thread_groups(&groups)?;
            set_thread_res_gid(gid, gid, gid)?;
            set_thread_res_uid(uid, uid, uid)?;
            Ok(set_no_new_privs(true)?)
        };
        // SAFETY: system calls only, which allocate nothing.
        unsafe { command.pre_exec(become_user) };
    }
}

/// Lets a command have no capability that was given to the session beside those of its user.
#[allow(unsafe_code)] // Between fork and exec.
pub fn keep_capabilities_from(command: &mut Command) {
    // SAFETY: a single system call.
    unsafe { command.pre_exec(|| Ok(clear_ambient_capability_set()?)) };
}

/// A user by name or number.
fn find(source: &str, user: &str) -> Result<User, InputError> {
    let wrong = |message: String| {
        InputError::new(source, user, message).with_hint("--user root keeps the rights of root")
    };
    let by_name = User::from_name(user).map_err(|error| wrong(error.to_string()))?;
    let found = match (by_name, user.parse()) {
        (None, Ok(number)) => User::from_uid(nix::unistd::Uid::from_raw(number))
            .map_err(|error| wrong(error.to_string()))?,
        (by_name, _) => by_name,
    };
    found.ok_or_else(|| wrong("there is no such user".to_owned()))
}
