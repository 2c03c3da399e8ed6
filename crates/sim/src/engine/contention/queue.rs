//! How long lines wait for a memory, or the way to it, that others use, too.

use ampsched_model::LINE_BYTES;

/// What a running thread asks of a memory, per instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Demand {
    /// Time without waiting for others.
    pub ns: f64,
    /// By how much longer it takes for each ns that a line waits: less than `lines` if lines are under way together, or
    /// are foreseen.
    pub per_wait: f64,
    /// Lines that it moves.
    pub lines: f64,
}

/// A memory, or the way to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Time for which a line keeps all of it busy: that of a line by bandwidth.
    pub line_ns: f64,
    /// Time that serving a line takes on its channel.
    pub service_ns: f64,
}

impl Path {
    /// That of some channels that carry a number of MB/s together.
    pub fn new(mb_s: f64, channels: u32) -> Self {
        let line_ns = LINE_BYTES * 1000.0 / mb_s;
        Self { line_ns, service_ns: line_ns * f64::from(channels) }
    }

    /// How long lines wait at a utilisation.
    fn wait_ns(self, used: f64) -> f64 {
        self.service_ns * used / (2.0 * (1.0 - used))
    }
}

/// Steps of the search at most.
const STEPS_MAX: u32 = 24;
/// Utilisation is exact to this: speeds are then, too.
const EXACT: f64 = 1e-4;

/// How long each line waits; `used` is what the utilisation may be near, and is then.
///
/// The waiting time of M/D/1, `S u / (2 (1 - u))` with the service time S and the utilisation u (Pollaczek and
/// Khinchine; Kleinrock, Queueing Systems 1, 1975, section 5.6), for the traffic that is left when everybody waits so
/// long. Each channel is such a queue, for addresses choose the channel, not its load. There is one solution, for
/// traffic falls with waiting, and below a utilisation of 1: throughput saturates.
pub(super) fn wait_ns(path: Path, demands: &[Demand], used: &mut f64) -> f64 {
    let mut low = 0.0;
    let (mut high, _) = offered(path, demands, 0.0);
    if high <= EXACT {
        return 0.0;
    }
    high = high.min(1.0);
    let mut guess = if *used > 0.0 && *used < high { *used } else { high * (1.0 - high / 4.0) };
    let mut wait = 0.0;
    for _ in 0..STEPS_MAX {
        let idle = 1.0 - guess;
        wait = path.wait_ns(guess);
        let (there, per_wait) = offered(path, demands, wait);
        let excess = there - guess;
        *used = guess;
        if excess.abs() <= EXACT {
            break;
        }
        let end = if excess > 0.0 { &mut low } else { &mut high };
        *end = guess;
        // Newton's step, or the middle if that leads out of what is left.
        let slope = per_wait * path.service_ns / (2.0 * idle * idle) - 1.0;
        let next = guess - excess / slope;
        guess = if next > low && next < high { next } else { (low + high) / 2.0 };
    }
    wait
}

/// The utilisation if lines wait so long, and by how much it changes with that.
#[inline]
fn offered(path: Path, demands: &[Demand], wait: f64) -> (f64, f64) {
    let (mut used, mut slope) = (0.0, 0.0);
    for demand in demands {
        let speed = 1.0 / (demand.ns + demand.per_wait * wait);
        let traffic = demand.lines * speed;
        used += traffic;
        slope -= traffic * demand.per_wait * speed;
    }
    (used * path.line_ns, slope * path.line_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of 2 ns per instruction, one line per 4 instructions, all of whose waiting counts.
    const STREAM: Demand = Demand { ns: 2.0, per_wait: 0.25, lines: 0.25 };

    /// One channel that serves a line in that time.
    fn path(line_ns: f64) -> Path {
        Path { line_ns, service_ns: line_ns }
    }

    #[test]
    fn channels_are_queues_of_their_own() {
        // Half of the lines on each, which serves them half as fast: as busy, and twice the wait.
        let (one, two) = (Path::new(16_000.0, 1), Path::new(16_000.0, 2));
        assert_eq!(
            (one.line_ns, one.service_ns, two.line_ns, two.service_ns),
            (4.0, 4.0, 4.0, 8.0)
        );
        assert_eq!(two.wait_ns(0.75), 12.0);
        // 4 / (8 + w) = u, w = 4u / (1 - u): 4 (1 - u) = 8u (1 - u) + 4u², so u² - 3u + 1 = 0.
        let used = (3.0 - 5.0_f64.sqrt()) / 2.0;
        let found = wait_ns(two, &[STREAM], &mut 0.0);
        assert!((found - 4.0 * used / (1.0 - used)).abs() < 4e-3);
    }

    #[test]
    fn nobody_waits_for_nothing() {
        assert_eq!(wait_ns(path(8.0), &[], &mut 0.0), 0.0);
        assert_eq!(wait_ns(path(8.0), &[Demand { lines: 0.0, ..STREAM }], &mut 0.5), 0.0);
    }

    #[test]
    fn waiting_is_that_of_the_traffic_left() {
        // One line per 8 ns without waiting; served in 4 ns. At utilisation u: 4 / (8 + w) = u, w = 2u / (1 - u):
        // 4 (1 - u) = 8u (1 - u) + 2u², so 6u² - 12u + 4 = 0, u = 1 - sqrt(1/3).
        let used = 1.0 - (1.0_f64 / 3.0).sqrt();
        let expected = 2.0 * used / (1.0 - used);
        for mut near in [0.0, 0.1, used, 0.9999, 1.0] {
            assert!((wait_ns(path(4.0), &[STREAM], &mut near) - expected).abs() < 2e-3);
        }
        let (there, _) = offered(path(4.0), &[STREAM], expected);
        assert!((there - used).abs() < 1e-9);
    }

    #[test]
    fn throughput_saturates() {
        for threads in 1..=64 {
            let demands = vec![STREAM; threads];
            let wait = wait_ns(path(4.0), &demands, &mut 0.0);
            let (used, _) = offered(path(4.0), &demands, wait);
            assert!(used < 1.0, "{threads}: {used}");
            assert!(threads < 32 || used > 0.98, "{threads}: {used}");
        }
    }

    #[test]
    fn more_traffic_waits_longer() {
        let mut before = 0.0;
        for tenth in 1..=40 {
            let lines = 0.025 * f64::from(tenth);
            let wait = wait_ns(path(4.0), &[Demand { lines, ..STREAM }, STREAM], &mut 0.0);
            assert!(wait > before);
            before = wait;
        }
    }
}
