//! How long lines wait for a memory, or the way to it, that others use, too.

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

/// Steps of the search at most.
const STEPS_MAX: u32 = 24;
/// Utilisation is exact to this: speeds are then, too.
const EXACT: f64 = 1e-4;

/// How long each line waits if serving one takes a given time; `used` is what the utilisation may be near, and is then.
///
/// The waiting time of M/D/1, `S u / (2 (1 - u))` with the service time S and the utilisation u (Pollaczek and
/// Khinchine; Kleinrock, Queueing Systems 1, 1975, section 5.6), for the traffic that is left when everybody waits so
/// long. There is one solution, for traffic falls with waiting, and below a utilisation of 1: throughput saturates.
pub(super) fn wait_ns(service_ns: f64, demands: &[Demand], used: &mut f64) -> f64 {
    let mut low = 0.0;
    let (mut high, _) = offered(service_ns, demands, 0.0);
    if high <= EXACT {
        return 0.0;
    }
    high = high.min(1.0);
    let mut guess = if *used > 0.0 && *used < high { *used } else { high * (1.0 - high / 4.0) };
    let mut wait = 0.0;
    for _ in 0..STEPS_MAX {
        let idle = 1.0 - guess;
        wait = service_ns * guess / (2.0 * idle);
        let (there, per_wait) = offered(service_ns, demands, wait);
        let excess = there - guess;
        *used = guess;
        if excess.abs() <= EXACT {
            break;
        }
        let end = if excess > 0.0 { &mut low } else { &mut high };
        *end = guess;
        // Newton's step, or the middle if that leads out of what is left.
        let slope = per_wait * service_ns / (2.0 * idle * idle) - 1.0;
        let next = guess - excess / slope;
        guess = if next > low && next < high { next } else { (low + high) / 2.0 };
    }
    wait
}

/// The utilisation if lines wait so long, and by how much it changes with that.
#[inline]
fn offered(service_ns: f64, demands: &[Demand], wait: f64) -> (f64, f64) {
    let (mut used, mut slope) = (0.0, 0.0);
    for demand in demands {
        let speed = 1.0 / (demand.ns + demand.per_wait * wait);
        let traffic = demand.lines * speed;
        used += traffic;
        slope -= traffic * demand.per_wait * speed;
    }
    (used * service_ns, slope * service_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread of 2 ns per instruction, one line per 4 instructions, all of whose waiting counts.
    const STREAM: Demand = Demand { ns: 2.0, per_wait: 0.25, lines: 0.25 };

    #[test]
    fn nobody_waits_for_nothing() {
        assert_eq!(wait_ns(8.0, &[], &mut 0.0), 0.0);
        assert_eq!(wait_ns(8.0, &[Demand { lines: 0.0, ..STREAM }], &mut 0.5), 0.0);
    }

    #[test]
    fn waiting_is_that_of_the_traffic_left() {
        // One line per 8 ns without waiting; served in 4 ns. At utilisation u: 4 / (8 + w) = u, w = 2u / (1 - u):
        // 4 (1 - u) = 8u (1 - u) + 2u², so 6u² - 12u + 4 = 0, u = 1 - sqrt(1/3).
        let used = 1.0 - (1.0_f64 / 3.0).sqrt();
        let expected = 2.0 * used / (1.0 - used);
        for mut near in [0.0, 0.1, used, 0.9999, 1.0] {
            assert!((wait_ns(4.0, &[STREAM], &mut near) - expected).abs() < 2e-3);
        }
        let (there, _) = offered(4.0, &[STREAM], expected);
        assert!((there - used).abs() < 1e-9);
    }

    #[test]
    fn throughput_saturates() {
        for threads in 1..=64 {
            let demands = vec![STREAM; threads];
            let wait = wait_ns(4.0, &demands, &mut 0.0);
            let (used, _) = offered(4.0, &demands, wait);
            assert!(used < 1.0, "{threads}: {used}");
            assert!(threads < 32 || used > 0.98, "{threads}: {used}");
        }
    }

    #[test]
    fn more_traffic_waits_longer() {
        let mut before = 0.0;
        for tenth in 1..=40 {
            let lines = 0.025 * f64::from(tenth);
            let wait = wait_ns(4.0, &[Demand { lines, ..STREAM }, STREAM], &mut 0.0);
            assert!(wait > before);
            before = wait;
        }
    }
}
