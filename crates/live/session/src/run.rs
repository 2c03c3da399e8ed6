//! Running a session from its start to its end.

use std::process::{Child, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use ampsched_computer::Proc;
use ampsched_model::{InputError, Ns};

use crate::claims::Claims;
use crate::guardian::Guardian;
use crate::own::cpu_time;
use crate::record::Record;
use crate::service::Service;
use crate::signals::Signals;
use crate::{Backend, Held, PutBack, Session, Settings, Setup, command, restore, summary, tell};

/// Exit code when a back end has ended by itself and cannot go on.
const ENDED_BY_ITSELF: u8 = 3;

/// Runs a policy until its command ends, or it is stopped, or nobody is left; then everything is put back. Returns the
/// command's exit code, or 3 if the back end has ended by itself, or 4 if something could not be put back, or 128 and
/// the number of the signal that has ended it.
///
/// # Errors
///
/// The settings ask for what is not there, another session runs, or the policy asks for what it may not ask for; the
/// command goes on without it then, and is waited for.
pub fn run<B: Backend>(setup: Setup) -> Result<ExitCode, InputError> {
    B::check(&setup)?;
    let mut signals = Signals::new()?;
    let mut record = Record::open(&setup.settings.record, B::PROGRAM, &setup.cores)?;
    restore::remains::<B>(&record.folder().left()?);
    let is_quiet = setup.settings.record.quiet;
    if !is_quiet {
        setup.announce(B::PROGRAM);
    }
    let identity = setup.identity.clone();
    let mut session = Session::new(setup)?;
    let place = record.folder().journal(B::PROGRAM, session.own.key);
    let claims = Claims::join(session.own.key, &place.path())?;
    let left = session.claim(claims)?;
    restore::remains_elsewhere::<B>(&left, &mut session);
    let (held, journal) = place.create()?;
    let guardian = session.share_claims();
    let guardian = match guardian.and_then(|claims| Guardian::start(&place.path(), claims)) {
        Ok(guardian) => guardian,
        Err(error) => {
            undo::<B>(&held);
            return Err(failed("guardian", &error));
        }
    };
    session.exempt(guardian.pid());
    let mut backend = match B::start(&mut session, journal) {
        Ok(backend) => backend,
        Err(error) => {
            undo::<B>(&held);
            guardian.dismiss();
            return Err(error);
        }
    };
    if !is_quiet {
        session.tell_what_it_knows(&backend);
    }
    // If the session has been asked to end by now, nothing begins.
    let words = match signals.asked() {
        Some(_) => &[],
        None => session.settings.scope.command.as_slice(),
    };
    let child = match command::start(words, identity.as_ref(), session.driver.needs(), &backend) {
        Ok(child) => child,
        Err(error) => {
            backend.finish(&mut session);
            undo::<B>(&held);
            guardian.dismiss();
            return Err(error);
        }
    };
    command::prefer_own();
    let service = Service::from_environment();
    service.begun();
    session.own.begins(&Proc::default());
    let mut supervision = Supervision { child, guardian, service, started: Instant::now() };
    let ended = supervision.until_it_ends(&mut session, &mut backend, &mut record, &mut signals);
    if let Err(error) = &ended {
        tell(B::PROGRAM, format_args!("{error}; the policy is ended"));
    }
    let Supervision { child, guardian, service, .. } = supervision;
    service.ends();
    let put_back = || restore::put_back::<B>(&held);
    let summary = summary::Summary::finish(backend, &mut session, put_back);
    // It could do no more than has just been done.
    guardian.dismiss();
    record.close()?;
    let is_put_back = summary.restored.failures.is_empty();
    let code = match ended {
        Ok(Ended::ByItself) => {
            summary.tell_failures::<B>();
            Ok(ExitCode::from(ENDED_BY_ITSELF))
        }
        Ok(Ended::Stopped(status)) => {
            summary.conclude::<B>(&session.settings.record)?;
            command::wait_for(B::PROGRAM, child, status, &mut signals)
        }
        Err(error) => {
            summary.conclude::<B>(&session.settings.record)?;
            // The command goes on without the policy, and its end is waited for.
            command::wait_for(B::PROGRAM, child, None, &mut signals)?;
            Err(error)
        }
    };
    if is_put_back { code } else { code.map(|_| restore::not_put_back()) }
}

/// Puts back what a session has touched that could not begin.
fn undo<B: Backend>(held: &Held) {
    let PutBack { failures, .. } = restore::put_back::<B>(held);
    for failure in failures {
        tell(B::PROGRAM, format_args!("not put back: {failure}"));
    }
}

/// Leaves out of a long journal what has ended; otherwise that would fill the disk within days.
///
/// Errors: it has been removed. Only this session can still put back what it names, and it had better do that now.
fn compact_journal<B: Backend>(session: &mut Session, backend: &mut B) -> Result<(), InputError> {
    let Some(journal) = backend.journal() else { return Ok(()) };
    if journal.is_gone() {
        let path = journal.path().display().to_string();
        return Err(InputError::new(path, "", "somebody has removed the session's journal"));
    }
    let shortened = if journal.is_long() { journal.shorten(B::outstanding) } else { Ok(()) };
    if let Err(error) = shortened {
        session.note("shortening the journal", &error);
    }
    Ok(())
}

/// Why the loop is over.
enum Ended {
    /// The back end cannot go on.
    ByItself,
    /// The command has ended, with a status; or the session was asked to stop, or no process is left, without.
    Stopped(Option<ExitStatus>),
}

/// What runs beside a session.
struct Supervision {
    child: Option<Child>,
    guardian: Guardian,
    service: Service,
    started: Instant,
}

impl Supervision {
    fn until_it_ends<B: Backend>(
        &mut self,
        session: &mut Session,
        backend: &mut B,
        record: &mut Record,
        signals: &mut Signals,
    ) -> Result<Ended, InputError> {
        while signals.asked().is_none() {
            let begun = cpu_time();
            self.renew_guardian::<B>(session);
            let now_ns = self.now_ns();
            let decisions = session.step(backend, now_ns)?;
            if record.step(session, backend, &decisions, now_ns) {
                let child = self.child.as_ref().map(|child| child.id() as i32);
                let own: Vec<i32> = child.into_iter().chain([self.guardian.pid()]).collect();
                command::reap_orphans(&Proc::default(), &own);
                compact_journal(session, backend)?;
            }
            if let Some(end) = backend.end() {
                tell(B::PROGRAM, end.why);
                if !end.can_restart {
                    return Ok(Ended::ByItself);
                }
                backend.restart(session)?;
            }
            self.service.is_alive();
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
        match self.guardian.renew(&Proc::default()) {
            Ok(true) => session.exempt(self.guardian.pid()),
            Ok(false) => {}
            Err(error) => tell(B::PROGRAM, format_args!("no guardian: {error}")),
        }
    }

    fn child_ended(&mut self) -> Result<Option<ExitStatus>, InputError> {
        self.child.as_mut().map_or(Ok(None), command::status_of)
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
