//! Devices that serve several requests at once, and requests that take time beside their service.

mod common;

use common::{Host, ns};
use proptest::prelude::*;

/// So many threads ask a device for so many services of 1 ms each, one after the other.
fn askers(device: &str, threads: u64, requests: u64) -> String {
    format!(
        "devices.d = {{ {device} }}\n[[threads]]\nname = 'asker'\ncount = {threads}\n\
         body = [{{ loop = {requests}, body = [{{ io_us = 1000, device = 'd' }}] }}]\n"
    )
}

fn took_ns(device: &str, threads: u64, requests: u64) -> u64 {
    Host::symmetric(2).run(&askers(device, threads, requests), "cfs").makespan_ns
}

#[test]
fn a_device_serves_as_many_requests_at_once_as_it_is_deep() {
    assert_eq!(took_ns("", 4, 1), ns(4.0));
    assert_eq!(took_ns("depth = 1, latency_us = 0", 4, 1), ns(4.0));
    assert_eq!(took_ns("depth = 2", 4, 1), ns(2.0));
    assert_eq!(took_ns("depth = 3", 4, 1), ns(2.0));
    assert_eq!(took_ns("depth = 1024", 4, 1), ns(1.0));
}

#[test]
fn latency_is_added_to_each_request_and_does_not_occupy_the_device() {
    // Four services end at 1, 2, 3 and 4 ms, and the last one hears of it 10 ms later.
    assert_eq!(took_ns("latency_us = 10000", 4, 1), ns(14.0));
    // One thread: service and latency in turn.
    assert_eq!(took_ns("latency_us = 500", 1, 10), ns(15.0));
    // Ten threads keep the device busy: only the last request's latency shows.
    assert_eq!(took_ns("latency_us = 500", 10, 10), ns(100.5));
}

#[test]
fn requests_of_a_program_that_is_stopped_are_forgotten() {
    let text = format!("duration_ms = 3.2\n{}", askers("depth = 2, latency_us = 700", 5, 100));
    let outcome = Host::symmetric(2).with_repetitions(3).run(&text, "cfs");
    assert_eq!(outcome.makespan_ns, ns(9.6));
}

proptest! {
    /// A closed queueing network without variance: throughput is bounded by the device and by the round trip.
    #[test]
    fn throughput_is_what_queueing_theory_says(
        depth in 1u64..9, latency_us in 0u64..9000, threads in 1u64..25
    ) {
        let requests = 200;
        let device = format!("depth = {depth}, latency_us = {latency_us}");
        let took_us = took_ns(&device, threads, requests) as f64 / 1e3;
        let (all, service_us) = ((threads * requests) as f64, 1000.0);
        let by_device_us = all / depth as f64 * service_us;
        let by_trips_us = requests as f64 * (service_us + latency_us as f64);
        let bound_us = by_device_us.max(by_trips_us);
        // Without variance requests stay in the rounds in which they began, of which the last may not be full.
        let by_rounds_us = (requests * threads.div_ceil(depth)) as f64 * service_us;
        let most_us = by_rounds_us.max(by_trips_us);
        // Filling and draining take a round trip each at most.
        let slack_us = 2.0 * (service_us * threads as f64 + latency_us as f64);
        prop_assert!(took_us >= bound_us - 1.0, "{took_us} {bound_us}");
        prop_assert!(took_us <= most_us + slack_us, "{took_us} {most_us}");
    }
}
