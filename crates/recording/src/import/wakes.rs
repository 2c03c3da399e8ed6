//! Who woke whom.

use std::collections::BTreeMap;

use crate::{Kind, Recording, Wake};

/// How often a thread has ended blocks of another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeUps {
    /// The thread that woke.
    pub waker: u32,
    /// The thread that was blocked.
    pub woken: u32,
    /// How often.
    pub count: u64,
    /// How long it was blocked, in ns.
    pub wait_ns: u64,
}

/// Pairs of threads by how long one was blocked until the other woke it, longest first.
pub fn wake_ups(recording: &Recording) -> Vec<WakeUps> {
    let mut pairs: BTreeMap<(u32, u32), WakeUps> = BTreeMap::new();
    for (woken, thread) in (0..).zip(&recording.threads) {
        for event in &thread.events {
            let waker = match (event.kind, Wake::from_aux(event.aux)) {
                (Kind::Block, Wake::Thread(waker)) => waker,
                (Kind::Join, _) => event.object,
                _ => continue,
            };
            let pair = pairs.entry((waker, woken)).or_insert(WakeUps {
                waker,
                woken,
                ..WakeUps::default()
            });
            pair.count += 1;
            pair.wait_ns = pair.wait_ns.saturating_add(event.wait_ns);
        }
    }
    let mut found: Vec<WakeUps> = pairs.into_values().collect();
    found.sort_by_key(|pair| (std::cmp::Reverse(pair.wait_ns), pair.waker, pair.woken));
    found
}
