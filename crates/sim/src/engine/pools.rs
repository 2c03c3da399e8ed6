//! Pools: loops whose iterations are handed out while they run, by a loop schedule.

use std::collections::VecDeque;

use ampsched_model::{ClassId, Ns, Schedule, ThreadId};

/// Who takes iterations, and where and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taker {
    pub thread: ThreadId,
    /// The kind of core that it is on.
    pub class: ClassId,
    pub now_ns: Ns,
}

/// A pool that can be used again and again; a thread may be ahead of others by some uses.
#[derive(Debug)]
pub(super) struct Pool {
    rule: Rule,
    /// Number of the oldest use in `uses`.
    first_use: u32,
    uses: VecDeque<Use>,
}

/// What is the same in all uses.
#[derive(Clone, Copy, Debug)]
struct Rule {
    total: u64,
    chunk: u64,
    participants: u32,
    schedule: Schedule,
}

/// A use of a pool in progress: one execution of a loop.
#[derive(Debug, Default)]
struct Use {
    /// Next iteration.
    next: u64,
    /// Threads that have seen the end.
    ended: u32,
    /// Those that have taken something, where the schedule asks for that.
    members: Vec<Member>,
    /// How many of them have done their first chunk.
    sampled: u32,
}

/// What a thread has taken of a loop.
#[derive(Debug)]
struct Member {
    thread: ThreadId,
    /// The kind of core that it was on when it had done its first chunk.
    class: ClassId,
    since_ns: Ns,
    /// How long its first chunk took, when that is known.
    sample_ns: Option<Ns>,
    taken: u64,
    has_share: bool,
}

impl Pool {
    /// One that nobody has used.
    pub fn new(total: u64, chunk: u64, participants: u32, schedule: Schedule) -> Self {
        let rule = Rule { total, chunk, participants, schedule };
        Self { rule, first_use: 0, uses: VecDeque::new() }
    }

    /// The next iterations of a use, or none: then the thread has seen the end of this use.
    pub fn take(&mut self, use_number: u32, taker: Taker) -> Option<(u64, u64)> {
        let offset = (use_number - self.first_use) as usize;
        while self.uses.len() <= offset {
            self.uses.push_back(Use::default());
        }
        let rule = self.rule;
        let current = &mut self.uses[offset];
        let count = current.count(rule, taker).min(rule.total - current.next);
        if count > 0 {
            let start = current.next;
            current.next += count;
            return Some((start, current.next));
        }
        current.ended += 1;
        while self.uses.front().is_some_and(|oldest| oldest.ended >= rule.participants) {
            self.uses.pop_front();
            self.first_use += 1;
        }
        None
    }
}

impl Use {
    /// How many iterations a thread gets, if there are so many.
    fn count(&mut self, rule: Rule, taker: Taker) -> u64 {
        match rule.schedule {
            Schedule::Dynamic => rule.chunk,
            Schedule::Guided => {
                let equal = (rule.total - self.next).div_ceil(u64::from(rule.participants.max(1)));
                equal.max(rule.chunk)
            }
            Schedule::Static => self.block(rule, taker),
            Schedule::AidStatic | Schedule::AidHybrid => self.asymmetric(rule, taker),
        }
    }

    /// The place of a thread among those that have taken something, and whether it is new there.
    fn member(&mut self, taker: Taker) -> (usize, bool) {
        let known = self.members.iter().position(|member| member.thread == taker.thread);
        let place = known.unwrap_or_else(|| {
            let Taker { thread, class, now_ns } = taker;
            let (sample_ns, taken, has_share) = (None, 0, false);
            let since_ns = now_ns;
            self.members.push(Member { thread, class, since_ns, sample_ns, taken, has_share });
            self.members.len() - 1
        });
        (place, known.is_none())
    }

    /// A thread's only block.
    fn block(&mut self, rule: Rule, taker: Taker) -> u64 {
        let (place, is_new) = self.member(taker);
        let participants = u64::from(rule.participants.max(1));
        if !is_new {
            return 0;
        }
        rule.total / participants + u64::from((place as u64) < rule.total % participants)
    }

    /// A chunk while speeds are sampled, then a share in proportion to them, then chunks.
    fn asymmetric(&mut self, rule: Rule, taker: Taker) -> u64 {
        let (place, is_new) = self.member(taker);
        let member = &mut self.members[place];
        if !is_new && member.sample_ns.is_none() {
            member.sample_ns = Some(taker.now_ns - member.since_ns);
            member.class = taker.class;
            self.sampled += 1;
        }
        let is_known = self.sampled >= rule.participants;
        if !is_known || self.members[place].has_share {
            let count = rule.chunk.min(rule.total - self.next);
            self.members[place].taken += count;
            return count;
        }
        let part = rule.schedule.asymmetric_part().unwrap_or(0.0) * rule.total as f64;
        let share = (part * self.speed_share(place)).round() as u64;
        let member = &mut self.members[place];
        member.has_share = true;
        // Who has waited long for others' samples may have had more than that already.
        share.saturating_sub(member.taken).max(rule.chunk)
    }

    /// A thread's speed by that of all threads: each kind of core is as fast as its samples on average.
    fn speed_share(&self, place: usize) -> f64 {
        let speed = |class: ClassId| {
            let of_class = self.members.iter().filter(|member| member.class == class);
            let (count, ns) = of_class.fold((0.0, 0.0), |(count, ns), member| {
                (count + 1.0, ns + member.sample_ns.unwrap_or(0) as f64)
            });
            count / f64::max(ns, 1.0)
        };
        let all: f64 = self.members.iter().map(|member| speed(member.class)).sum();
        speed(self.members[place].class) / all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(total: u64, participants: u32, schedule: Schedule) -> Pool {
        Pool::new(total, 1, participants, schedule)
    }

    fn taker(thread: u32, now_ns: Ns) -> Taker {
        // Thread 0 is on the fast kind of core, all others on the slow one.
        let class = ClassId::from(usize::from(thread == 0));
        Taker { thread: ThreadId(thread), class, now_ns }
    }

    /// Lets threads of these ns per iteration take in the order in which they are free: how many each gets, when each
    /// ends, and how often something was taken.
    fn run(pool: &mut Pool, per_iteration_ns: &[Ns]) -> (Vec<u64>, Ns, usize) {
        let mut free_ns: Vec<Option<Ns>> = vec![Some(0); per_iteration_ns.len()];
        let (mut counts, mut end_ns, mut takes) = (vec![0; free_ns.len()], 0, 0);
        let first = |free_ns: &[Option<Ns>]| {
            let free = free_ns.iter().enumerate();
            free.filter_map(|(place, at_ns)| at_ns.map(|at_ns| (at_ns, place))).min()
        };
        while let Some((now_ns, place)) = first(&free_ns) {
            end_ns = now_ns;
            free_ns[place] = pool.take(0, taker(place as u32, now_ns)).map(|(start, end)| {
                counts[place] += end - start;
                takes += 1;
                now_ns + (end - start) * per_iteration_ns[place]
            });
        }
        (counts, end_ns, takes)
    }

    #[test]
    fn static_blocks_are_equal_whatever_the_cores() {
        let found = run(&mut pool(10, 4, Schedule::Static), &[1, 4, 4, 4]);
        assert_eq!(found, (vec![3, 3, 2, 2], 12, 4));
    }

    #[test]
    fn guided_parts_shrink() {
        let mut guided = Pool::new(100, 5, 2, Schedule::Guided);
        let parts: Vec<u64> = std::iter::from_fn(|| guided.take(0, taker(0, 0)))
            .map(|(start, end)| end - start)
            .collect();
        assert_eq!(parts, [50, 25, 13, 6, 5, 1]);
    }

    #[test]
    fn aid_gives_shares_by_speed_that_end_together() {
        // A core three times as fast beside three: 120 / (3 + 3) = 20 for each slow one, of which one was a sample.
        let found = run(&mut pool(120, 4, Schedule::AidStatic), &[1, 3, 3, 3]);
        assert_eq!(found.0, [60, 20, 20, 20]);
        assert_eq!(found.1, 60);
        // Four samples; chunks until all were known: three of the fast thread, one of two slow ones; four shares.
        assert_eq!(found.2, 4 + 5 + 4);
    }

    #[test]
    fn of_a_hybrid_schedule_a_fifth_is_handed_out_in_chunks() {
        let (counts, end_ns, takes) = run(&mut pool(120, 4, Schedule::AidHybrid), &[1, 3, 3, 3]);
        assert_eq!((counts, end_ns), (vec![60, 20, 20, 20], 60));
        assert_eq!(takes, 13 + 24);
    }

    #[test]
    fn what_a_wrong_sample_has_promised_is_still_all_done() {
        // The clock stands still: no sample tells anything.
        for schedule in Schedule::ALL {
            let (counts, ..) = run(&mut pool(97, 3, schedule), &[0, 0, 0]);
            assert_eq!(counts.iter().sum::<u64>(), 97, "{schedule:?}");
        }
    }

    #[test]
    fn a_use_begins_anew_when_all_have_seen_the_end() {
        for schedule in Schedule::ALL {
            let mut twice = pool(40, 2, schedule);
            let both: Vec<u64> = (0..2)
                .map(|number| {
                    let mut sum = 0;
                    for thread in 0..2 {
                        while let Some((start, end)) = twice.take(number, taker(thread, 0)) {
                            sum += end - start;
                        }
                    }
                    sum
                })
                .collect();
            assert_eq!(both, [40, 40], "{schedule:?}");
            assert_eq!((twice.first_use, twice.uses.len()), (2, 0));
        }
    }
}
