//! What held for most of a thread's CPU time, of something that may change.

/// Values that a thread had, one after another, and its CPU time under each.
#[derive(Clone, Debug)]
pub struct Mostly<T> {
    /// The value now, and the thread's CPU time when it came, in ns.
    now: Option<(T, u64)>,
    /// CPU time before the first one, in ns.
    before_ns: u64,
    /// Values before it, each once, and CPU time under each.
    others: Vec<(T, u64)>,
}

impl<T> Default for Mostly<T> {
    fn default() -> Self {
        Self { now: None, before_ns: 0, others: Vec::new() }
    }
}

impl<T: Copy + PartialEq> Mostly<T> {
    /// It is that from now on; the thread has had so much CPU time so far.
    pub fn set(&mut self, value: T, cpu_ns: u64) {
        if self.now.is_some_and(|(now, _)| now == value) {
            return;
        }
        match self.now.replace((value, cpu_ns)) {
            None => self.before_ns = cpu_ns,
            Some((before, since_ns)) => {
                let ns = cpu_ns.saturating_sub(since_ns);
                match self.others.iter_mut().find(|(other, _)| *other == before) {
                    Some((_, sum)) => *sum = sum.saturating_add(ns),
                    None => self.others.push((before, ns)),
                }
            }
        }
    }

    /// The value of most of the CPU time, which was so much in all, and whether there were others. What was before the
    /// first value that was told is counted as that (`is_since_begin`), or else as a value of its own: none.
    pub fn main(&self, cpu_ns: u64, is_since_begin: bool) -> (Option<T>, bool) {
        let Some((now, since_ns)) = self.now else { return (None, false) };
        let mut sums: Vec<(Option<T>, u64)> = vec![(None, 0)];
        let last = (now, cpu_ns.saturating_sub(since_ns));
        for (value, ns) in self.others.iter().copied().chain([last]) {
            match sums.iter_mut().find(|(known, _)| *known == Some(value)) {
                Some((_, sum)) => *sum = sum.saturating_add(ns),
                None => sums.push((Some(value), ns)),
            }
        }
        sums[usize::from(is_since_begin)].1 += self.before_ns;
        // Of equal ones the latest: a thread that has not run is what it was made last.
        let main = sums.iter().max_by_key(|(_, ns)| *ns).and_then(|(value, _)| *value);
        (main, sums.iter().filter(|(_, ns)| *ns > 0).count() > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_held_longest_counts() {
        let mut found = Mostly::default();
        assert_eq!(found.main(5, true), (None, false));
        found.set('a', 2);
        assert_eq!(found.main(3, true), (Some('a'), false));
        assert_eq!(found.main(3, false), (None, true), "most of it was before");
        found.set('b', 4);
        found.set('a', 9);
        assert_eq!(found.main(10, false), (Some('b'), true));
        assert_eq!(found.main(13, false), (Some('a'), true), "both times together");
        assert_eq!(found.main(13, true), (Some('a'), true));
    }

    #[test]
    fn without_cpu_time_the_last_one_counts() {
        let mut found = Mostly::default();
        found.set(1, 0);
        found.set(2, 0);
        assert_eq!(found.main(0, true), (Some(2), false));
        assert_eq!(found.main(0, false), (Some(2), false));
    }
}
