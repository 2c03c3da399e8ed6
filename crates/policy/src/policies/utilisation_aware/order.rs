//! The threads in the order of what they use, kept from look to look.

use ampsched_model::ThreadId;

use crate::View;
use crate::policies::support::window::PerThread;

/// A thread, what it uses and the cores that its program lets it use, in one word: who uses most comes first, of equal
/// ones the lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry(u64);

impl Entry {
    fn of(view: &View, thread: ThreadId) -> Self {
        let unused = UTIL_MAX - view.util(thread).min(UTIL_MAX);
        let cores = view.plan(thread).user_affinity;
        Self(u64::from(unused) << 48 | u64::from(thread.0) << 16 | u64::from(cores.0))
    }

    fn util(self) -> u32 {
        UTIL_MAX - (self.0 >> 48) as u32
    }

    /// Which thread.
    pub fn thread(self) -> ThreadId {
        ThreadId((self.0 >> 16) as u32)
    }

    /// Whether both use the same and may use the same cores.
    fn is_like(self, other: Self) -> bool {
        const BUT_THREAD: u64 = 0xffff_0000_0000_ffff;
        (self.0 ^ other.0) & BUT_THREAD == 0
    }
}

/// More than any thread uses, and it fits.
const UTIL_MAX: u32 = u16::MAX as u32;

/// The live threads in that order.
#[derive(Clone, Debug, Default)]
pub struct Order {
    entries: Vec<Entry>,
    /// Where a thread is in the order.
    known: PerThread<Option<Entry>>,
    /// Those that have done nothing, but whose utilisation may change still; none: they have not been looked for.
    fading: Option<Vec<ThreadId>>,
    /// Room for the next order.
    next: Vec<Entry>,
}

impl Order {
    /// Brings all up to date: reads those that have not slept, and those that slept but used something lately.
    pub fn update(&mut self, view: &View) {
        let recent = view.recent();
        if recent.len() == view.live_count() {
            self.fading = None;
            self.entries.clear();
            self.entries.extend(recent.iter().map(|&thread| Entry::of(view, thread)));
            self.entries.sort_unstable();
            return;
        }
        let Some(mut again) = self.fading.take() else {
            return self.read_all(view);
        };
        again.extend_from_slice(&recent);
        again.sort_unstable();
        again.dedup();
        again.retain(|&thread| view.state(thread).is_live());
        self.read(view, &again);
        if self.entries.len() > view.live_count() {
            self.entries.retain(|entry| view.state(entry.thread()).is_live());
        }
    }

    fn read_all(&mut self, view: &View) {
        self.entries.clear();
        self.known = PerThread::default();
        let all: Vec<ThreadId> = view.threads().collect();
        self.read(view, &all);
    }

    /// Reads what some threads use, in ascending order, and puts them where they belong.
    fn read(&mut self, view: &View, threads: &[ThreadId]) {
        let (mut leave, mut come, mut fading) = (Vec::new(), Vec::new(), Vec::new());
        for &thread in threads {
            if !view.is_util_at_rest(thread) {
                fading.push(thread);
            }
            let entry = Entry::of(view, thread);
            let before = self.known.slot(thread).replace(entry);
            if before != Some(entry) {
                leave.extend(before);
                come.push(entry);
            }
        }
        self.fading = Some(fading);
        leave.sort_unstable();
        come.sort_unstable();
        self.exchange(&leave, &come);
    }

    /// Takes some entries out and puts others in, both in ascending order.
    fn exchange(&mut self, leave: &[Entry], come: &[Entry]) {
        let (mut rest, mut leave) = (&self.entries[..], leave.iter().peekable());
        let mut come = come.iter().peekable();
        self.next.clear();
        loop {
            let edge = match (leave.peek(), come.peek()) {
                (Some(one), Some(other)) => **one.min(other),
                (Some(edge), None) | (None, Some(edge)) => **edge,
                (None, None) => break,
            };
            let (before, after) = rest.split_at(rest.partition_point(|&entry| entry < edge));
            self.next.extend_from_slice(before);
            rest = after;
            if leave.next_if_eq(&&edge).is_some() {
                rest = &rest[1..];
            }
            self.next.extend(come.next_if_eq(&&edge));
        }
        self.next.extend_from_slice(rest);
        std::mem::swap(&mut self.entries, &mut self.next);
    }

    /// The threads in order, those together that use the same and may use the same cores, with what each uses.
    pub fn runs(&self) -> impl Iterator<Item = (u32, &[Entry])> {
        let alike = |one: &Entry, other: &Entry| one.is_like(*other);
        self.entries.chunk_by(alike).map(|alike| (alike[0].util(), alike))
    }
}
