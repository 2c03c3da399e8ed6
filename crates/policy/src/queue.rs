//! A run queue: storage only; what comes first is decided by [`crate::Sched`].

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, VecDeque, binary_heap, btree_map, vec_deque};
use std::slice;

use ampsched_model::{Ns, ThreadId};

use crate::weight::WEIGHT_ONE;
use crate::{Order, SPEED_ONE};

/// A waiting thread. Ordered by (key, serial): the serial numbers entries in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub key: u64,
    pub serial: u64,
    pub thread: ThreadId,
}

impl Entry {
    /// Both as one number: a comparison needs no branch then.
    #[inline]
    fn rank(&self) -> u128 {
        u128::from(self.key) << u64::BITS | u128::from(self.serial)
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Clone, Debug)]
enum Store {
    /// Served in order of arrival.
    Fifo(VecDeque<Entry>),
    /// Served by least key, which does not change while waiting.
    Heap(BinaryHeap<Reverse<Entry>>),
    /// Served by something that changes while waiting, so it is searched.
    Bag(Vec<Entry>),
    /// Entered and left in any order, as the scheduler says.
    Watched(Box<Watched>),
}

/// The entries of a queue that anybody may leave any time, at a cost that hardly grows with their number.
#[derive(Clone, Debug)]
struct Watched {
    /// Whether entries are in order of arrival, else of keys.
    is_fifo: bool,
    /// In order.
    entries: BTreeMap<(u64, u64), Entry>,
    /// Where each thread's entry is.
    places: BTreeMap<ThreadId, (u64, u64)>,
}

impl Watched {
    fn push(&mut self, entry: Entry) {
        let place = (if self.is_fifo { 0 } else { entry.key }, entry.serial);
        self.entries.insert(place, entry);
        self.places.insert(entry.thread, place);
    }

    fn remove(&mut self, thread: ThreadId) {
        let place = self.places.remove(&thread).expect("the thread is in the queue");
        self.entries.remove(&place);
    }

    fn first(&self) -> Option<&Entry> {
        self.entries.first_key_value().map(|(_, entry)| entry)
    }
}

/// The entries of a queue, in no particular order (in order of arrival for FIFO queues).
pub(crate) enum Entries<'a> {
    Fifo(vec_deque::Iter<'a, Entry>),
    Heap(binary_heap::Iter<'a, Reverse<Entry>>),
    Bag(slice::Iter<'a, Entry>),
    Watched(btree_map::Values<'a, (u64, u64), Entry>),
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a Entry;

    #[inline]
    fn next(&mut self) -> Option<&'a Entry> {
        match self {
            Self::Fifo(entries) => entries.next(),
            Self::Heap(entries) => entries.next().map(|Reverse(entry)| entry),
            Self::Bag(entries) => entries.next(),
            Self::Watched(entries) => entries.next(),
        }
    }
}

/// Where virtual time begins that is a queue's own: far enough from 0 that a thread can be placed behind the others.
const VIRTUAL_START: Ns = 1 << 40;

/// A run queue with the sums that slices, placement and fairness need.
#[derive(Clone, Debug)]
pub(crate) struct RunQueue {
    store: Store,
    /// Number of its waiting threads.
    len: usize,
    /// Sum of the weights of its waiting and running threads.
    pub load: u64,
    /// Threads that run on its cores.
    pub running: u32,
    /// Of its cores those that something above the policy has: threads of other classes, or the system.
    pub occupied: u32,
    /// Cores that it serves.
    pub cores: u32,
    /// Sum of their ratings.
    pub capacity: u32,
    /// Least virtual run time; never goes back.
    pub min_vruntime: Ns,
    /// Least key in the queue, `u64::MAX` if it is empty (not kept for FIFO queues).
    least: u64,
    /// Sum of weight x virtual run time of its waiting and running threads (EEVDF only).
    pub weighted_vruntime: i128,
    /// When, in the count of what is queued, a rotation of imbalances last brought a thread.
    pub rotated: u64,
    /// The thread that the last rotation of imbalances brought.
    pub newcomer: Option<ThreadId>,
}

impl RunQueue {
    /// An empty queue of a host that decides itself who leaves it.
    pub fn new(order: Order) -> Self {
        let store = match order {
            Order::Fifo => Store::Fifo(VecDeque::new()),
            Order::Vruntime | Order::Rounds { .. } => Store::Heap(BinaryHeap::new()),
            Order::Deadline | Order::HighestRank { .. } => Store::Bag(Vec::new()),
        };
        Self::with(store, order)
    }

    /// An empty queue of a host that watches another scheduler.
    pub fn watched(order: Order) -> Self {
        let (entries, places) = (BTreeMap::new(), BTreeMap::new());
        let is_fifo = order == Order::Fifo;
        Self::with(Store::Watched(Box::new(Watched { is_fifo, entries, places })), order)
    }

    fn with(store: Store, order: Order) -> Self {
        Self {
            store,
            len: 0,
            load: 0,
            running: 0,
            occupied: 0,
            cores: 0,
            capacity: 0,
            min_vruntime: if let Order::Rounds { .. } = order { 0 } else { VIRTUAL_START },
            least: u64::MAX,
            weighted_vruntime: 0,
            rotated: 0,
            newcomer: None,
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a thread can be taken from it: the only thread of a core that is about to run it stays,
    /// as in Linux, which moves nothing if `nr_running` is at most 1. A kernel thread counts there, too.
    #[inline]
    pub fn can_spare(&self) -> bool {
        self.len() + usize::from(self.running > 0 || self.occupied > 0) > 1
    }

    #[inline]
    pub fn push(&mut self, entry: Entry) {
        self.least = self.least.min(entry.key);
        self.len += 1;
        match &mut self.store {
            Store::Fifo(queue) => queue.push_back(entry),
            Store::Heap(heap) => heap.push(Reverse(entry)),
            Store::Bag(bag) => bag.push(entry),
            Store::Watched(watched) => watched.push(entry),
        }
    }

    /// The entry that is first by arrival or key; of a bag any.
    #[inline]
    pub fn first(&self) -> Option<&Entry> {
        match &self.store {
            Store::Fifo(queue) => queue.front(),
            Store::Heap(heap) => heap.peek().map(|Reverse(entry)| entry),
            Store::Bag(bag) => bag.first(),
            Store::Watched(watched) => watched.first(),
        }
    }

    /// The least key in a heap or bag.
    #[inline]
    pub fn least(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.least)
    }

    /// The entry that would be first with another one; none if that is not asked of such a queue.
    #[inline]
    pub fn first_with(&self, entry: &Entry) -> Option<Entry> {
        match &self.store {
            Store::Fifo(queue) => Some(*queue.front().unwrap_or(entry)),
            Store::Heap(heap) => {
                Some(heap.peek().map_or(*entry, |Reverse(first)| *first.min(entry)))
            }
            Store::Bag(_) | Store::Watched(_) => None,
        }
    }

    /// Puts an entry in and takes out the one that is first then, which is `first_with` it.
    #[inline]
    pub fn exchange(&mut self, entry: Entry) {
        match &mut self.store {
            Store::Fifo(queue) => {
                queue.push_back(entry);
                queue.pop_front();
            }
            Store::Heap(heap) => {
                if heap.peek().is_none_or(|Reverse(first)| entry < *first) {
                    return;
                }
                // The heap is put in order when the guard goes.
                if let Some(mut first) = heap.peek_mut() {
                    *first = Reverse(entry);
                }
                self.least = heap.peek().map_or(u64::MAX, |Reverse(first)| first.key);
            }
            Store::Bag(_) | Store::Watched(_) => unreachable!("nobody asks for its first entry"),
        }
    }

    /// Puts an entry in and takes out another thread's.
    #[inline]
    pub fn replace(&mut self, entry: Entry, by: ThreadId) {
        match &mut self.store {
            Store::Fifo(queue) if queue.front().is_some_and(|entry| entry.thread == by) => {
                queue.pop_front();
                queue.push_back(entry);
            }
            _ => {
                self.push(entry);
                self.remove(by);
            }
        }
    }

    /// Removes a thread, which must be in the queue; cheap for the first one of a FIFO or heap, and if it is watched.
    #[inline]
    pub fn remove(&mut self, thread: ThreadId) {
        self.len -= 1;
        match &mut self.store {
            Store::Fifo(queue) => {
                let found = queue.iter().position(|entry| entry.thread == thread);
                queue.remove(found.expect("the thread is in the queue"));
            }
            Store::Heap(heap) => {
                if heap.peek().is_some_and(|Reverse(entry)| entry.thread == thread) {
                    heap.pop();
                } else {
                    heap.retain(|Reverse(entry)| entry.thread != thread);
                }
                self.least = heap.peek().map_or(u64::MAX, |Reverse(entry)| entry.key);
            }
            Store::Bag(bag) => {
                let found = bag.iter().position(|entry| entry.thread == thread);
                let removed = bag.swap_remove(found.expect("the thread is in the queue"));
                if removed.key == self.least {
                    self.least = bag.iter().map(|entry| entry.key).min().unwrap_or(u64::MAX);
                }
            }
            Store::Watched(watched) => {
                watched.remove(thread);
                self.least = watched.first().map_or(u64::MAX, |entry| entry.key);
            }
        }
    }

    /// All entries.
    #[inline]
    pub fn iter(&self) -> Entries<'_> {
        match &self.store {
            Store::Fifo(queue) => Entries::Fifo(queue.iter()),
            Store::Heap(heap) => Entries::Heap(heap.iter()),
            Store::Bag(bag) => Entries::Bag(bag.iter()),
            Store::Watched(watched) => Entries::Watched(watched.entries.values()),
        }
    }

    /// Sum of the weights per core that it serves, whatever the rating.
    #[inline]
    pub fn load_per_core(&self) -> u64 {
        if self.cores == 1 { self.load } else { self.load / u64::from(self.cores.max(1)) }
    }

    /// Sum of the weights per rated core that it serves.
    #[inline]
    pub fn scaled_load(&self) -> u64 {
        self.scaled(self.load_seen())
    }

    /// The same if it had one thread more.
    pub fn scaled_load_with(&self, weight: u32) -> u64 {
        self.scaled(self.load_seen() + u64::from(weight))
    }

    /// Its weight; an occupied core counts as if one thread of nice 0 more were there.
    #[inline]
    fn load_seen(&self) -> u64 {
        self.load + u64::from(self.occupied) * WEIGHT_ONE
    }

    #[inline]
    fn scaled(&self, load: u64) -> u64 {
        // Most queues serve one core of rating 1, and a division costs more than all the rest.
        if self.capacity == u32::from(SPEED_ONE) {
            load
        } else {
            load * u64::from(SPEED_ONE) / u64::from(self.capacity.max(1))
        }
    }

    /// Weighted mean virtual run time of its threads (EEVDF's V); where it stood last if it has none.
    pub fn mean_vruntime(&self) -> i128 {
        if self.load == 0 {
            self.min_vruntime.into()
        } else {
            self.weighted_vruntime.div_euclid(self.load.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use ampsched_model::Draw;

    use super::*;

    #[test]
    fn a_watched_queue_has_the_same_first_and_least_entry() {
        for (order, seed) in [Order::Fifo, Order::Vruntime].into_iter().zip(1..) {
            let (mut own, mut watched) = (RunQueue::new(order), RunQueue::watched(order));
            let (mut draw, mut waiting) = (Draw::new(seed), Vec::new());
            for serial in 0..2_000 {
                if draw.bits() % 2 == 0 || waiting.is_empty() {
                    let thread = ThreadId(serial);
                    let entry = Entry { key: draw.bits() % 50, serial: serial.into(), thread };
                    own.push(entry);
                    watched.push(entry);
                    waiting.push(thread);
                } else {
                    let index = draw.bits() as usize % waiting.len();
                    let thread = waiting.swap_remove(index);
                    own.remove(thread);
                    watched.remove(thread);
                }
                assert_eq!((own.len(), own.first()), (watched.len(), watched.first()));
                if order != Order::Fifo {
                    assert_eq!(own.least(), watched.least());
                }
            }
            let sorted = |queue: &RunQueue| {
                let mut all: Vec<Entry> = queue.iter().copied().collect();
                all.sort();
                all
            };
            assert_eq!(sorted(&own), sorted(&watched));
        }
    }
}
