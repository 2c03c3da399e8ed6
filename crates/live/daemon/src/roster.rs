//! The threads that are scheduled: who they are, what they were before, what they have done since the last look.

use std::collections::{BTreeMap, BTreeSet};

use ampsched_computer::{CoreMap, Proc, ThreadKey, ThreadStat, format_cpus, unless_gone};
use ampsched_live_driver::Observation;
use ampsched_model::{AppId, Ns, ThreadId};
use ampsched_policy::RunState;

use crate::system::cpus_of;

/// A thread that is scheduled.
#[derive(Clone, Debug)]
pub struct Member {
    /// Which.
    pub key: ThreadKey,
    /// Its process's number.
    pub pid: i32,
    /// Its process, as which it is held back where threads cannot be.
    pub process: ThreadKey,
    /// Its number for the policy.
    pub thread: ThreadId,
    /// Its application: its process group.
    pub app: AppId,
    /// That process group.
    pub group: i32,
    /// Whether it was in another group at the look before.
    pub is_regrouped: bool,
    /// Its name.
    pub name: String,
    /// Name of its program.
    pub program: String,
    /// What it was before it was touched.
    pub before: Before,
    /// CPUs that it was given, if it was.
    pub given_cpus: Option<BTreeSet<usize>>,
    /// Nice value that it was given, if it was.
    pub given_nice: Option<i32>,
    /// The CPU on which it runs, waits or last ran.
    pub cpu: usize,
    /// Its state as one letter.
    pub state: char,
    /// How long others have waited for it since it was found.
    pub blame_ns: Ns,
    run_ns: Ns,
    wait_ns: Ns,
    /// Waiting that has been reported before the kernel counted it.
    waited_ahead_ns: Ns,
}

/// CPUs and nice value that the user, or the program itself, has chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Before {
    /// CPUs.
    pub cpus: BTreeSet<usize>,
    /// Nice value.
    pub nice: i32,
}

/// What was given to threads of a process, which new threads and processes inherit.
#[derive(Clone, Debug)]
struct Given {
    process: ThreadKey,
    before: Before,
    cpus: BTreeSet<String>,
    nice: BTreeSet<i32>,
}

/// All threads that are scheduled.
#[derive(Debug, Default)]
pub struct Roster {
    members: BTreeMap<ThreadKey, Member>,
    by_thread: BTreeMap<ThreadId, ThreadKey>,
    processes: BTreeMap<i32, Given>,
}

impl Roster {
    /// The members in ascending order of their numbers.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.members.values()
    }

    /// Whether a thread is one of them.
    pub fn has(&self, key: ThreadKey) -> bool {
        self.members.contains_key(&key)
    }

    /// The member with that number for the policy, if it has not ended.
    pub fn member(&self, thread: ThreadId) -> Option<&Member> {
        self.members.get(self.by_thread.get(&thread)?)
    }

    /// The same, to be changed.
    pub fn member_mut(&mut self, thread: ThreadId) -> Option<&mut Member> {
        self.members.get_mut(self.by_thread.get(&thread)?)
    }

    /// What a thread that has just been found was before it was touched: what it has now, unless it has
    /// inherited that from a thread that was given it.
    pub fn before(
        &self,
        stat: &ThreadStat,
        process: ThreadKey,
        proc: &Proc,
    ) -> std::io::Result<Before> {
        let now = Before { cpus: cpus_of(stat.key.tid)?, nice: stat.nice };
        let given = match (self.given_to(process), self.processes.get(&stat.parent)) {
            (None, Some(given)) => {
                let parent = unless_gone(proc.process(stat.parent))?;
                parent.is_some_and(|parent| parent.key == given.process).then_some(given)
            }
            (own, _) => own,
        };
        let Some(given) = given else { return Ok(now) };
        let cpus_inherited = given.cpus.contains(&format_cpus(now.cpus.iter().copied()));
        Ok(Before {
            cpus: if cpus_inherited { given.before.cpus.clone() } else { now.cpus },
            nice: if given.nice.contains(&now.nice) { given.before.nice } else { now.nice },
        })
    }

    /// What a process was given, and no earlier one with its number.
    fn given_to(&self, process: ThreadKey) -> Option<&Given> {
        self.processes.get(&process.tid).filter(|given| given.process == process)
    }

    /// Takes a thread in, with its number for the policy and its application.
    pub fn join(
        &mut self,
        stat: &ThreadStat,
        process: ThreadKey,
        (thread, app): (ThreadId, AppId),
        before: Before,
        proc: &Proc,
    ) {
        let (run_ns, wait_ns) = times(proc, stat);
        if self.given_to(process).is_none() {
            let (cpus, nice) = (BTreeSet::new(), BTreeSet::new());
            let before = before.clone();
            self.processes.insert(stat.pid, Given { process, before, cpus, nice });
        }
        self.by_thread.insert(thread, stat.key);
        self.members.insert(
            stat.key,
            Member {
                key: stat.key,
                pid: stat.pid,
                process,
                thread,
                app,
                group: stat.group,
                is_regrouped: false,
                name: stat.name.clone(),
                program: program_name(proc, stat),
                before,
                given_cpus: None,
                given_nice: None,
                cpu: stat.cpu,
                state: stat.state,
                blame_ns: 0,
                run_ns,
                wait_ns,
                waited_ahead_ns: 0,
            },
        );
    }

    /// Lets a thread go that has ended.
    pub fn leave(&mut self, key: ThreadKey) {
        let Some(member) = self.members.remove(&key) else { return };
        self.by_thread.remove(&member.thread);
        if !self.members.values().any(|other| other.pid == member.pid) {
            self.processes.remove(&member.pid);
        }
    }

    /// Whether threads of a process have been given a set of CPUs before.
    pub fn has_given_cpus(&self, pid: i32, cpus: &str) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.cpus.contains(cpus))
    }

    /// Remembers that threads of a process get a set of CPUs.
    pub fn gives_cpus(&mut self, pid: i32, cpus: &str) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.cpus.insert(cpus.to_owned());
        }
    }

    /// Whether threads of a process have been given a nice value before.
    pub fn has_given_nice(&self, pid: i32, nice: i32) -> bool {
        self.processes.get(&pid).is_some_and(|process| process.nice.contains(&nice))
    }

    /// Remembers that threads of a process get a nice value.
    pub fn gives_nice(&mut self, pid: i32, nice: i32) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.nice.insert(nice);
        }
    }

    /// Charges members for the time that others have waited for them, by their thread numbers.
    pub fn blame(&mut self, blame_ns: &BTreeMap<i32, Ns>, observations: &mut [Observation]) {
        for seen in observations {
            let Some(member) = self.member_mut(seen.thread) else { continue };
            seen.blame_ns = blame_ns.get(&member.key.tid).copied().unwrap_or(0);
            member.blame_ns += seen.blame_ns;
        }
    }

    /// Looks at all members: what each has done in the last `elapsed_ns`; `is_held` says whom we hold back.
    /// Those that have ended are among them and still members. Those that cannot be looked at now are not, and an error
    /// says why.
    pub fn look(
        &mut self,
        proc: &Proc,
        cores: &CoreMap,
        elapsed_ns: Ns,
        is_held: impl Fn(&Member) -> bool,
    ) -> (Vec<Observation>, Option<std::io::Error>) {
        let (mut seen, mut unseen) = (Vec::new(), None);
        for member in self.members.values_mut() {
            match unless_gone(proc.stat(member.pid, member.key.tid)) {
                Ok(stat) => {
                    let stat = stat.filter(|stat| stat.key == member.key && !stat.is_dead());
                    let held = is_held(member);
                    seen.push(member.sight(stat.as_ref(), proc, cores, elapsed_ns, held));
                }
                Err(error) => unseen = Some(error),
            }
        }
        (seen, unseen)
    }
}

impl Member {
    fn sight(
        &mut self,
        stat: Option<&ThreadStat>,
        proc: &Proc,
        cores: &CoreMap,
        elapsed_ns: Ns,
        held: bool,
    ) -> Observation {
        let (mut ran_ns, mut waited_ns) = (0, 0);
        let was_runnable = self.state == 'R';
        if let Some(stat) = stat {
            (self.cpu, self.state) = (stat.cpu, stat.state);
            self.is_regrouped = self.group != stat.group;
            self.group = stat.group;
            if self.name != stat.name {
                // It runs another program now, or has given itself a name.
                self.name = stat.name.clone();
                self.program = program_name(proc, stat);
            }
            let (run_ns, wait_ns) = times(proc, stat);
            ran_ns = run_ns.saturating_sub(self.run_ns).min(elapsed_ns);
            let counted_ns = wait_ns.saturating_sub(self.wait_ns);
            (self.run_ns, self.wait_ns) = (run_ns, wait_ns);
            let can_wait_ns = elapsed_ns - ran_ns;
            waited_ns = self.waited(counted_ns, was_runnable, held, can_wait_ns);
        }
        Observation {
            thread: self.thread,
            state: match (stat, self.state) {
                (None, _) => RunState::Exited,
                (Some(_), _) if held => RunState::Held,
                (Some(_), 'R') => RunState::Ready,
                (Some(_), _) => RunState::Blocked,
            },
            // A CPU outside of the machine is one that the thread is about to leave.
            core: cores.core(self.cpu).unwrap_or_default(),
            ran_ns,
            waited_ns,
            instructions: 0,
            blame_ns: 0,
        }
    }

    /// How long it has waited. The kernel counts waiting when it ends; of a thread that was runnable at
    /// both ends of the interval all that it has not run counts as waiting at once, and is taken off later.
    fn waited(&mut self, counted_ns: Ns, was_runnable: bool, held: bool, limit_ns: Ns) -> Ns {
        let settled_ns = counted_ns.saturating_sub(self.waited_ahead_ns);
        self.waited_ahead_ns = self.waited_ahead_ns.saturating_sub(counted_ns);
        if was_runnable && self.state == 'R' && !held {
            self.waited_ahead_ns += limit_ns.saturating_sub(settled_ns);
            return limit_ns;
        }
        settled_ns.min(limit_ns)
    }
}

/// Time that a thread has run and waited for a CPU since its start.
fn times(proc: &Proc, stat: &ThreadStat) -> (Ns, Ns) {
    proc.run_and_wait_ns(stat.pid, stat.key.tid).unwrap_or((stat.cpu_ns(), 0))
}

/// The last part of the program's path, as the process was started; the process's name if it does not say.
fn program_name(proc: &Proc, stat: &ThreadStat) -> String {
    let command = proc.command(stat.pid);
    let first = command.first().map(|path| path.rsplit('/').next().unwrap_or(path).to_owned());
    first.filter(|name| !name.is_empty()).unwrap_or_else(|| stat.name.clone())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn m07_a_later_process_with_the_same_number_has_inherited_nothing() {
        let proc = Proc::default();
        let now = proc.process(std::process::id() as i32).unwrap();
        let (pid, later) = (now.pid, now.key);
        let first = ThreadKey { start_ticks: later.start_ticks - 1, ..later };
        let other = Before { cpus: BTreeSet::from([99]), nice: 7 };
        let seen = Before { cpus: cpus_of(pid).unwrap(), nice: now.nice };
        let listed = format_cpus(seen.cpus.iter().copied());
        let mut roster = Roster::default();
        let ended = ThreadStat { key: first, ..now.clone() };
        roster.join(&ended, first, (ThreadId(0), AppId(0)), other.clone(), &proc);
        roster.gives_cpus(pid, &listed);
        roster.gives_nice(pid, now.nice);
        assert_eq!(roster.before(&now, first, &proc).unwrap(), other);
        assert_eq!(roster.before(&now, later, &proc).unwrap(), seen);
        roster.join(&now, later, (ThreadId(1), AppId(0)), seen, &proc);
        assert!(!roster.has_given_cpus(pid, &listed) && !roster.has_given_nice(pid, now.nice));
    }

    /// A shell forks first; the child makes a group of its own when it may have been seen already.
    #[test]
    fn who_changes_its_process_group_is_noticed() {
        let proc = Proc::default();
        let mut child = Command::new("sh")
            .args(["-c", "read line; exec setsid sleep 60"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let stat = proc.process(pid).unwrap();
        let before = Before { cpus: cpus_of(pid).unwrap(), nice: stat.nice };
        let mut roster = Roster::default();
        roster.join(&stat, stat.key, (ThreadId(0), AppId(0)), before, &proc);
        let cores = CoreMap::new(Vec::new());
        let group = |roster: &mut Roster| {
            roster.look(&proc, &cores, 0, |_| false);
            let member = roster.member(ThreadId(0)).unwrap();
            (member.is_regrouped, member.group)
        };
        assert_eq!(group(&mut roster), (false, stat.group));
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let seen =
            std::iter::repeat_with(|| group(&mut roster)).take(10_000_000).find(|seen| seen.0);
        assert_eq!(seen, Some((true, pid)));
        assert_eq!(group(&mut roster), (false, pid));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
