//! Running a session from its start to its end.

use std::process::{Child, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use ampsched_computer::Proc;
use ampsched_model::{InputError, Ns};

use crate::guardian::Guardian;
use crate::own::cpu_time;
use crate::record::Record;
use crate::signals::Signals;
use crate::{Backend, Session, Settings, Setup, command, restore, summary};

/// Exit code when a back end has ended by itself and cannot go on.
const ENDED_BY_ITSELF: u8 = 3;

/// Runs a policy until its command ends, or it is stopped, or nobody is left; then everything is put back. Returns the
/// command's exit code, or 3 if the back end has ended by itself.
///
/// # Errors
///
/// The settings ask for what is not there, another session runs, or the policy asks for what it may not ask for; the
/// command goes on without it then, and is waited for.
pub fn run<B: Backend>(setup: Setup) -> Result<ExitCode, InputError> {
    B::check(&setup)?;
    let mut signals = Signals::new()?;
    let mut record = Record::open(&setup.settings.record, B::PROGRAM, &setup.cores)?;
    restore::remains::<B>(record.folder());
    let is_quiet = setup.settings.record.quiet;
    if !is_quiet {
        setup.announce(B::PROGRAM);
    }
    let journal = record.folder().journal(B::PROGRAM);
    let mut session = Session::new(setup)?;
    let guardian = Guardian::start(&journal).map_err(|error| failed("guardian", &error))?;
    session.exempt(guardian.pid());
    let mut backend = match B::start(&mut session, &journal) {
        Ok(backend) => backend,
        Err(error) => {
            guardian.dismiss();
            return Err(error);
        }
    };
    if !is_quiet {
        session.tell_what_it_knows(&backend);
    }
    let child = match command::start(&session.settings.scope.command, &backend) {
        Ok(child) => child,
        Err(error) => {
            backend.finish(&mut session)?;
            guardian.dismiss();
            return Err(error);
        }
    };
    command::prefer_own();
    let mut around = Around { child, guardian, started: Instant::now() };
    let ended = around.until_it_ends(&mut session, &mut backend, &mut record, &mut signals);
    if let Err(error) = &ended {
        eprintln!("{}: {error}; the policy is ended and everything put back", B::PROGRAM);
    }
    let Around { child, guardian, .. } = around;
    let summary = summary::Summary::finish(backend, &mut session);
    guardian.dismiss();
    record.close()?;
    let summary = summary?;
    let (status, refused) = match ended {
        Ok(Ended::ByItself) => return Ok(ExitCode::from(ENDED_BY_ITSELF)),
        Ok(Ended::Stopped(status)) => (status, Ok(())),
        Err(error) => (None, Err(error)),
    };
    summary.conclude::<B>(&session.settings.record)?;
    // A command may go on without the policy, and its end is waited for.
    let code = command::wait_for(child, status, &mut signals)?;
    refused.map(|()| code)
}

/// Why the loop is over.
enum Ended {
    /// The back end cannot go on.
    ByItself,
    /// The command has ended, with a status; or somebody has asked to stop, or nobody is left, without.
    Stopped(Option<ExitStatus>),
}

/// What there is around a session.
struct Around {
    child: Option<Child>,
    guardian: Guardian,
    started: Instant,
}

impl Around {
    fn until_it_ends<B: Backend>(
        &mut self,
        session: &mut Session,
        backend: &mut B,
        record: &mut Record,
        signals: &mut Signals,
    ) -> Result<Ended, InputError> {
        while signals.stops() == 0 {
            let begun = cpu_time();
            self.renew_guardian::<B>(session);
            let now_ns = self.now_ns();
            let decisions = session.step(backend, now_ns)?;
            if record.step(session, backend, &decisions, now_ns) {
                let child = self.child.as_ref().map(|child| child.id() as i32);
                let own: Vec<i32> = child.into_iter().chain([self.guardian.pid()]).collect();
                command::bury_orphans(&Proc::default(), &own);
            }
            if let Some(end) = backend.end() {
                eprintln!("{}: {}", B::PROGRAM, end.why);
                if !end.can_restart {
                    return Ok(Ended::ByItself);
                }
                session.begin_anew()?;
                record.begin_anew(now_ns);
                backend.restart(session)?;
            }
            let status = self.child_ended()?;
            if status.is_some() || self.nobody_is_left(&session.settings, backend) {
                return Ok(Ended::Stopped(status));
            }
            let worked = cpu_time().saturating_sub(begun);
            signals.sleep(self.until_next_step(
                backend.period_ns(session),
                B::CPU_SHARE_MAX,
                worked,
            ));
        }
        Ok(Ended::Stopped(None))
    }

    fn now_ns(&self) -> Ns {
        self.started.elapsed().as_nanos() as Ns
    }

    fn renew_guardian<B: Backend>(&mut self, session: &mut Session) {
        match self.guardian.renew() {
            Ok(true) => session.exempt(self.guardian.pid()),
            Ok(false) => {}
            Err(error) => eprintln!("{}: no guardian: {error}", B::PROGRAM),
        }
    }

    fn child_ended(&mut self) -> Result<Option<ExitStatus>, InputError> {
        let Some(child) = &mut self.child else { return Ok(None) };
        child.try_wait().map_err(|error| failed("command", &error))
    }

    /// A cgroup may be empty now and not later.
    fn nobody_is_left(&self, settings: &Settings, backend: &impl Backend) -> bool {
        self.child.is_none() && settings.scope.cgroup.is_none() && !backend.has_threads()
    }

    /// How long to sleep after a step that took so much CPU time.
    fn until_next_step(&self, period_ns: Ns, share_max: f64, worked: Duration) -> Duration {
        let next = Duration::from_nanos(period_ns - self.now_ns() % period_ns);
        next.max(worked.mul_f64(1.0 / share_max - 1.0))
    }
}

/// An error of the system in something that a session needs.
pub(crate) fn failed(what: &str, error: &dyn std::error::Error) -> InputError {
    InputError::new(what, "", error.to_string())
}
