//! Streams of random numbers: which numbers belong to what. They depend on names and numbers only, so whoever looks at
//! a program draws what its execution draws.

use ampsched_model::Draw;

/// An application's stream: the seed and its name, not its place in the mix: alone or together, it does the same work.
pub(crate) fn of_app(seed: u64, name: &str) -> Draw {
    name.bytes().fold(Draw::new(seed), |draw, byte| draw.child(byte.into()))
}

/// The stream of an instance of a thread specification.
#[inline]
pub(crate) fn of_thread(app: &Draw, spec: u32, instance: u32) -> Draw {
    app.child(u64::MAX - u64::from(spec)).child(instance.into())
}

/// The stream of an item of a queue, by the number of the queue in its program and by the item's own.
#[inline]
pub(crate) fn of_item(app: &Draw, queue: u32, item: u64) -> Draw {
    app.child(queue.into()).child(item)
}

/// The stream of an iteration of a use of a pool.
#[inline]
pub(crate) fn of_iteration(app: &Draw, pool: u32, use_number: u32, iteration: u64) -> Draw {
    of_item(app, pool, use_number.into()).child(iteration)
}
