//! Synchronisation objects of a lifted program.

use std::collections::HashMap;

/// What an object is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    /// Of so many recorded mutexes, one of which is locked.
    Mutex {
        members: u32,
    },
    Barrier,
    /// `fan`: a post is one for each of so many waiters.
    Semaphore {
        initial: u32,
        fan: u32,
    },
    /// A semaphore for what is in flight: it begins with so much for each thread that is more than there were.
    Room {
        members: u32,
        each: u32,
    },
    Queue {
        capacity: u32,
    },
    Pool {
        total: f64,
    },
    Device,
}

/// An object, and what it was in the recording.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object {
    pub what: What,
    /// What was recognised, in words.
    pub was: String,
    /// Whether it repeats the recording literally.
    pub is_literal: bool,
}

/// All objects of the program; most are found by what they were.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub list: Vec<Object>,
    /// Semaphores of pairs: (who posts, who waits).
    pairs: HashMap<(u32, u32), u32>,
    /// How many jobs each thread of a crew did.
    pub jobs: Vec<usize>,
    /// What was changed or left out, a sentence each.
    pub notes: Vec<String>,
}

impl Objects {
    /// Adds an object and returns its number.
    pub fn add(&mut self, what: What, was: impl Into<String>) -> u32 {
        self.list.push(Object { what, was: was.into(), is_literal: false });
        self.list.len() as u32 - 1
    }

    /// The semaphore by which one thread wakes another.
    pub fn pair(&mut self, waker: u32, waiter: u32) -> u32 {
        if let Some(found) = self.pairs.get(&(waker, waiter)) {
            return *found;
        }
        let was = format!("waits of thread {waiter} that thread {waker} ended");
        let number = self.add(What::Semaphore { initial: 0, fan: 1 }, was);
        self.list[number as usize].is_literal = true;
        self.pairs.insert((waker, waiter), number);
        number
    }

    /// Posts for one executed post.
    pub fn fan(&self, object: u32) -> u32 {
        match self.list[object as usize].what {
            What::Semaphore { fan, .. } => fan,
            _ => 1,
        }
    }

    /// Adds a sentence to the report, once.
    pub fn note(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }
}
