//! A run queue: storage only; what comes first is decided by [`crate::Sched`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ampsched_model::{Ns, ThreadId};

use crate::Order;

/// A waiting thread. Ordered by (key, serial): the serial numbers entries in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub key: u64,
    pub serial: u64,
    pub thread: ThreadId,
}

#[derive(Clone, Debug)]
enum Store {
    /// Served in order of arrival.
    Fifo(VecDeque<Entry>),
    /// Served by least key, which does not change while waiting.
    Heap(BinaryHeap<Reverse<Entry>>),
    /// Served by something that changes while waiting, so it is searched.
    Bag(Vec<Entry>),
}

/// A run queue with the sums that slices, placement and fairness need.
#[derive(Clone, Debug)]
pub(crate) struct RunQueue {
    store: Store,
    /// Sum of the weights of its waiting and running threads.
    pub load: u64,
    /// Threads that run on its cores.
    pub running: u32,
    /// Cores that it serves.
    pub cores: u32,
    /// Least virtual run time; never goes back.
    pub min_vruntime: Ns,
    /// Sum of weight x virtual run time of its waiting and running threads (EEVDF only).
    pub weighted_vruntime: i128,
}

impl RunQueue {
    pub fn new(order: Order) -> Self {
        let store = match order {
            Order::Fifo => Store::Fifo(VecDeque::new()),
            Order::Vruntime => Store::Heap(BinaryHeap::new()),
            Order::Deadline | Order::HighestRank { .. } => Store::Bag(Vec::new()),
        };
        Self { store, load: 0, running: 0, cores: 0, min_vruntime: 0, weighted_vruntime: 0 }
    }

    #[inline]
    pub fn len(&self) -> usize {
        match &self.store {
            Store::Fifo(queue) => queue.len(),
            Store::Heap(heap) => heap.len(),
            Store::Bag(bag) => bag.len(),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn push(&mut self, entry: Entry) {
        match &mut self.store {
            Store::Fifo(queue) => queue.push_back(entry),
            Store::Heap(heap) => heap.push(Reverse(entry)),
            Store::Bag(bag) => bag.push(entry),
        }
    }

    /// The entry that is first by arrival or key; of a bag any.
    #[inline]
    pub fn first(&self) -> Option<&Entry> {
        match &self.store {
            Store::Fifo(queue) => queue.front(),
            Store::Heap(heap) => heap.peek().map(|Reverse(entry)| entry),
            Store::Bag(bag) => bag.first(),
        }
    }

    /// Removes a thread; cheap for the first one.
    #[inline]
    pub fn remove(&mut self, thread: ThreadId) {
        match &mut self.store {
            Store::Fifo(queue) if queue.front().is_some_and(|entry| entry.thread == thread) => {
                queue.pop_front();
            }
            Store::Heap(heap)
                if heap.peek().is_some_and(|Reverse(entry)| entry.thread == thread) =>
            {
                heap.pop();
            }
            Store::Fifo(queue) => queue.retain(|entry| entry.thread != thread),
            Store::Heap(heap) => heap.retain(|Reverse(entry)| entry.thread != thread),
            Store::Bag(bag) => bag.retain(|entry| entry.thread != thread),
        }
    }

    /// All entries, in no particular order (in order of arrival for FIFO queues).
    pub fn iter(&self) -> Box<dyn Iterator<Item = &Entry> + '_> {
        match &self.store {
            Store::Fifo(queue) => Box::new(queue.iter()),
            Store::Heap(heap) => Box::new(heap.iter().map(|Reverse(entry)| entry)),
            Store::Bag(bag) => Box::new(bag.iter()),
        }
    }

    /// Weighted mean virtual run time of its threads (EEVDF's V).
    pub fn mean_vruntime(&self) -> i128 {
        if self.load == 0 {
            self.min_vruntime.into()
        } else {
            self.weighted_vruntime.div_euclid(self.load.into())
        }
    }
}
