//! What a program is expected to do, told by its code: the check of the text against the recording.

use std::collections::BTreeMap;

use ampsched_model::{
    Amount, Dist, InputError, ObjectKind, Op, Profile, ProfileLibrary, Program, parse_program,
};

/// Most passes until the numbers of items along chains of queues are known.
const PASSES_MAX: usize = 32;

/// Work by group of threads, in ns: of all its threads, or of each `index` if that tells them apart.
pub(super) type Works = BTreeMap<String, Vec<f64>>;

/// Expected work of each group of threads.
///
/// # Errors
/// The text cannot be parsed, or makes no program.
pub(super) fn works(toml: &str, like: &str) -> Result<Works, InputError> {
    let profile = Profile {
        name: like.to_owned(),
        uops_per_instruction: 1.0,
        cpi_core_big: 1.0,
        cpi_core_little: 1.0,
        ..Profile::default()
    };
    let library = ProfileLibrary { profiles: vec![profile] };
    let program = parse_program("lifted.toml", toml)?.instantiate(&[], &library)?;
    Ok(Count::new(&program).run())
}

/// Expected numbers of executions.
struct Count<'a> {
    program: &'a Program,
    /// Items that are put into each object, by the pass before.
    pushed: Vec<f64>,
    /// Threads that take from each object, by the pass before.
    takers: Vec<f64>,
    /// Instances of each thread, by the pass before.
    instances: Vec<f64>,
}

/// What a pass counts.
struct Pass {
    pushed: Vec<f64>,
    takers: Vec<f64>,
    forked: Vec<f64>,
    works: Works,
}

impl<'a> Count<'a> {
    fn new(program: &'a Program) -> Self {
        let objects = program.objects.len();
        let instances = program.threads.iter().map(|thread| f64::from(thread.count)).collect();
        Self { program, pushed: vec![0.0; objects], takers: vec![1.0; objects], instances }
    }

    fn run(mut self) -> Works {
        for _ in 0..PASSES_MAX {
            let pass = self.pass();
            let initial = self.program.threads.iter().map(|thread| f64::from(thread.count));
            let instances: Vec<f64> =
                initial.zip(&pass.forked).map(|(count, forked)| count + forked).collect();
            let is_stable = instances == self.instances
                && pass.pushed == self.pushed
                && pass.takers == self.takers;
            if is_stable {
                return pass.works;
            }
            self.instances = instances;
            self.pushed = pass.pushed;
            self.takers = pass.takers;
        }
        self.pass().works
    }

    fn pass(&self) -> Pass {
        let objects = self.program.objects.len();
        let mut pass = Pass {
            pushed: vec![0.0; objects],
            takers: vec![0.0; objects],
            forked: vec![0.0; self.program.threads.len()],
            works: Works::new(),
        };
        for (number, thread) in self.program.threads.iter().enumerate() {
            let name = thread.name.split('.').next().unwrap_or_default().to_owned();
            let work = self.thread(thread.entry.index(), self.instances[number], &mut pass);
            pass.works.entry(name).or_default().push(work);
        }
        pass
    }

    /// Work of a thread in ns, from its entry on.
    fn thread(&self, entry: usize, instances: f64, pass: &mut Pass) -> f64 {
        let mut outer = Vec::new();
        let mut times = instances;
        let mut work = 0.0;
        for op in &self.program.code[entry..] {
            match op {
                Op::Run { reference_ns, .. } => work += times * reference_ns.mean,
                Op::Loop { count, .. } => {
                    outer.push(times);
                    times *= rounds(count);
                }
                Op::Pop { queue, .. } => {
                    outer.push(times);
                    pass.takers[queue.index()] += times;
                    times *= self.share(queue.index(), self.pushed[queue.index()]);
                }
                Op::Take { pool, .. } => {
                    outer.push(times);
                    let (total, participants) = match self.program.objects[pool.index()].kind {
                        ObjectKind::Pool { total, participants, .. } => (total, participants),
                        _ => (0, 1),
                    };
                    times *= total as f64 / f64::from(participants.max(1));
                }
                Op::LoopEnd { .. } | Op::ItemEnd { .. } => times = outer.pop().unwrap_or(times),
                Op::Push(queue) => pass.pushed[queue.index()] += times,
                Op::Fork { thread } => pass.forked[*thread as usize] += times,
                Op::Exit => break,
                _ => {}
            }
        }
        work
    }

    fn share(&self, object: usize, items: f64) -> f64 {
        if self.takers[object] > 0.0 { items / self.takers[object] } else { 0.0 }
    }
}

/// Expected rounds of a loop: its amount is rounded.
fn rounds(count: &Amount) -> f64 {
    match count.dist {
        // Daemon threads do for ever what they did once.
        _ if count.always() == Some(u64::MAX) => 1.0,
        // Values below 1/2 are no round.
        Dist::Uniform { low, high } if low < 0.5 && high <= 1.5 && high > 0.5 => {
            (high - 0.5) / (high - low)
        }
        _ => count.mean,
    }
}
