//! Whether a program does what was recorded, thread by thread. What does not stays as it was.

use std::collections::HashSet;

use super::report::{Group, Part, Report};

/// Greatest error of the work of a thread, and of the whole, as a share of what was recorded.
pub const WORK_ERROR_MAX: f64 = 0.1;
/// Smaller differences are none, in ns.
pub const SMALL_NS: f64 = 10_000.0;
/// Most threads that a note names.
const NAMED_MAX: usize = 8;

/// Threads of which less is said than was recognised.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// These are alone and do what they did: they take no items that others might take.
    pub literal: HashSet<u32>,
    /// What each of these does is told by itself.
    pub curved: HashSet<u32>,
}

impl Kept {
    /// Keeps what that program gets wrong, and notes why; tells whether there was something.
    ///
    /// # Errors
    /// It is wrong although nothing more can be kept, and why.
    pub fn add(&mut self, report: &Report, notes: &mut Vec<String>) -> Result<bool, String> {
        let worst = |group: &Group| {
            let wrong = group.parts.iter().filter(|part| part.is_off()).cloned();
            wrong.max_by(|one, two| one.error().total_cmp(&two.error()))
        };
        let all: Vec<(&Group, Part)> =
            report.groups.iter().filter_map(|group| Some((group, worst(group)?))).collect();
        // What one takes too much others miss: the worst may be the only one that is wrong.
        let takers =
            all.iter().filter(|(group, _)| group.takes_items).map(|(_, part)| part.error());
        let most = takers.fold(0.0, f64::max);
        let is_wrong = !all.is_empty();
        for (group, part) in all {
            if group.takes_items && part.error() < most {
                continue;
            }
            if group.parts.len() > 1 && self.keep_curved(group) {
                continue;
            }
            let why = sentence(group, &part);
            if group.is_literal {
                return Err(why);
            }
            self.literal.extend(&group.members);
            notes.push(format!("{why}: it stays literal."));
        }
        let (recorded_ns, lifted_ns) = (report.recorded_ns, report.lifted_ns);
        let whole = Part { threads: Vec::new(), recorded_ns, lifted_ns };
        match whole.is_off() && !is_wrong {
            true => Err(format!("all threads {}", numbers(&whole))),
            false => Ok(is_wrong),
        }
    }

    /// Tells what each thread of a group does by itself; false if that is done already.
    fn keep_curved(&mut self, group: &Group) -> bool {
        let is_new = |thread: &u32| !self.curved.contains(thread);
        let is_curved = group.members.iter().any(is_new);
        self.curved.extend(&group.members);
        is_curved
    }
}

impl Part {
    /// Whether the work differs by too much.
    pub fn is_off(&self) -> bool {
        let error_ns = (self.lifted_ns - self.recorded_ns).abs();
        error_ns > SMALL_NS.max(WORK_ERROR_MAX * self.recorded_ns)
    }

    /// The difference as a share of what was recorded.
    fn error(&self) -> f64 {
        (self.lifted_ns - self.recorded_ns).abs() / self.recorded_ns.max(1.0)
    }
}

fn sentence(group: &Group, part: &Part) -> String {
    let named: Vec<String> = part.threads.iter().take(NAMED_MAX).map(u32::to_string).collect();
    let more = match part.threads.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let word = if part.threads.len() == 1 { "thread" } else { "threads" };
    format!("{} ({word} {}{more}) {}", group.name, named.join(", "), numbers(part))
}

fn numbers(part: &Part) -> String {
    let ms = |ns: f64| format!("{:.4} ms", ns / 1e6);
    let error = match part.recorded_ns > 0.0 {
        true => format!(" ({:+.0} %)", 100.0 * (part.lifted_ns / part.recorded_ns - 1.0)),
        false => String::new(),
    };
    format!("would do {} instead of {}{error}", ms(part.lifted_ns), ms(part.recorded_ns))
}
