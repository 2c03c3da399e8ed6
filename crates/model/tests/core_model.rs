//! Limits and directions of the core model.

use ampsched_model::{
    CoreParams, Pipeline, Profile, counters, cpi_stack, cycles_per_instruction, kind_cycles,
    miss_cycles, speed_ips, stall_counters,
};

#[path = "core_model/cases.rs"]
mod cases;

use cases::{big, little, profile};

/// A profile that misses nothing and predicts every branch.
fn quiet() -> Profile {
    Profile {
        branch_mpki: 0.0,
        l1i_mpki: 0.0,
        l1d_mpki: 0.0,
        l1d_write_mpki: 0.0,
        l2_512k_mpki: 0.0,
        l2_512k_write_mpki: 0.0,
        l2_2m_mpki: 0.0,
        l2_2m_write_mpki: 0.0,
        ..profile()
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn stated_cycles_slow_every_core_alike_at_every_frequency() {
    let slower = Profile { cycles_factor: Some(2.5), ..profile() };
    for core in [big(), little()] {
        for mhz in [200.0, 2000.0] {
            let (stack, own) = (cpi_stack(&slower, &core, mhz), cpi_stack(&profile(), &core, mhz));
            assert!(close(stack.total(), 2.5 * own.total()));
            assert!(close(stack.memory, 2.5 * own.memory));
        }
    }
}

#[test]
fn a_relative_speed_holds_for_every_part_at_every_frequency() {
    for core in [big(), little()] {
        let faster = CoreParams { cycles_factor: 1.0 / 1.6, ..core };
        for mhz in [200.0, 2000.0] {
            for each in [profile(), quiet()] {
                let [one, other] = [core, faster].map(|core| speed_ips(&each, &core, mhz));
                assert!(close(other, 1.6 * one));
            }
            let [one, other] = [core, faster].map(|core| counters(&profile(), &core, mhz));
            assert!(close(other.ipc, 1.6 * one.ipc));
            assert!(close(other.stall_memory_share, one.stall_memory_share));
            let [one, other] = [core, faster].map(|core| miss_cycles(&profile(), &core, mhz));
            assert!(close(
                one.l2 + one.memory + one.line,
                1.6 * (other.l2 + other.memory + other.line)
            ));
        }
        let [one, other] = [core, faster].map(|core| kind_cycles(&profile(), &core));
        assert!(close(one.integer, 1.6 * other.integer) && close(one.simd, 1.6 * other.simd));
    }
}

#[test]
fn without_misses_only_the_core_part_remains() {
    for core in [big(), little()] {
        let stack = cpi_stack(&quiet(), &core, 2000.0);
        assert_eq!(stack.total(), stack.core);
        let slow = cycles_per_instruction(&quiet(), &core, 200.0);
        assert_eq!(stack.total(), slow, "cycles without misses do not depend on the frequency");
    }
}

#[test]
fn the_reference_core_gets_the_cycles_of_the_walk() {
    // 3-wide, window of 128, loads 4 and floating point 5 cycles on two units.
    assert!(close(cpi_stack(&quiet(), &big(), 1000.0).core, quiet().cpi_core_big));
}

#[test]
fn a_compiler_hides_the_measured_share_of_stalls_in_order() {
    let core = CoreParams { fp_single_cycles: 0.5, fp_double_cycles: 0.5, ..little() };
    let (slots, walk) = (quiet().uops_per_instruction / 2.0, quiet().cpi_core_little);
    let expected = slots + (walk - slots) * (1.0 - 91.0 / 161.0);
    assert!(close(cpi_stack(&quiet(), &core, 1000.0).core, expected));
}

#[test]
fn no_more_stalls_are_hidden_than_there_is_work() {
    let chain = Profile { cpi_core_little: 4.0, ..quiet() };
    let slots = chain.uops_per_instruction / 2.0;
    let core = CoreParams { fp_single_cycles: 0.5, fp_double_cycles: 0.5, ..little() };
    // Half a cycle of work hides half a cycle of 3.5 stalled ones, not 57 %.
    assert!(close(cpi_stack(&chain, &core, 1000.0).core, 4.0 - slots));
}

#[test]
fn parts_add_up_by_hand() {
    // 512 KiB L2: 10 load misses of the L1, 4 of the L2, 1 store miss; little core, 100 ns at 1 GHz.
    let plain = Profile { prefetchable: 0.0, l1i_mpki: 2.0, branch_mpki: 5.0, ..profile() };
    let core = CoreParams { prefetch_share: 0.0, memory_ns: 100.0, ..little() };
    let stack = cpi_stack(&plain, &core, 1000.0);
    assert!(close(stack.branch, 0.005 * 8.0));
    assert!(close(stack.fetch, 0.002 * 15.0));
    // Readers within three instructions (80 %) see the L2's latency.
    assert!(close(stack.l2, 0.010 * 15.0 * 0.8));
    // 1.2 misses overlap, and 5 lines through 4 outstanding misses take longer than that does not.
    assert!(close(stack.memory, (0.004_f64 * 100.0 / 1.2).max(0.005 * 100.0 / 4.0)));
}

#[test]
fn out_of_order_misses_overlap_as_far_as_window_and_data_flow_allow() {
    let plain = Profile { prefetchable: 0.0, ..profile() };
    let core = CoreParams { l2_kib: 512.0, ..big() };
    let stack = cpi_stack(&plain, &core, 1000.0);
    // 1 + 128 operations x 4 misses per 1,000, of which 9 in 10 are independent at an ILP of 10.
    let overlap = 1.0 + 128.0 * 0.004 * 0.9;
    assert!(close(stack.memory, 0.004 * 100.0 / overlap));
    // The window outlasts the L2; one in 10 of its cycles lengthens the data flow.
    assert!(close(stack.l2, 0.010 * 20.0 * 0.1));
    let narrow = CoreParams { mlp_max: 1.2, ..core };
    assert!(close(cpi_stack(&plain, &narrow, 1000.0).memory, 0.005 * 100.0 / 1.2));
}

#[test]
fn the_l2_is_interpolated_in_the_logarithm_of_its_size() {
    let plain = Profile { prefetchable: 0.0, ..profile() };
    let mpki = |kib| counters(&plain, &CoreParams { l2_kib: kib, ..big() }, 1000.0).l2_mpki;
    assert!(close(mpki(512.0), 5.0));
    assert!(close(mpki(1024.0), 3.5));
    assert!(close(mpki(2048.0), 2.0));
    // Beyond: a power law, at most the square-root rule, and never more than the L1 misses.
    assert!(close(mpki(8192.0), 2.0 * 0.5));
    assert!(mpki(128.0) > 5.0 && mpki(128.0) <= 2.0 * 5.0);
    assert!(close(mpki(16.0), 10.0 + 1.0 + 2.0), "{}", mpki(16.0));
}

#[test]
fn speed_saturates_at_the_memory() {
    for core in [big(), little()] {
        let stack = cpi_stack(&profile(), &core, 1e9);
        let bound = 1e9 * 1e6 / stack.memory;
        assert!((speed_ips(&profile(), &core, 1e9) / bound - 1.0).abs() < 1e-3);
        assert!(speed_ips(&profile(), &core, 2e9) / bound < 1.001, "twice the clock helps nothing");
    }
}

#[test]
fn without_misses_speed_is_proportional_to_the_frequency() {
    let (slow, fast) = (speed_ips(&quiet(), &big(), 500.0), speed_ips(&quiet(), &big(), 2000.0));
    assert!(close(fast, 4.0 * slow));
}

#[test]
fn slow_double_precision_units_show() {
    let numeric = Profile { fp_double: 0.3, ..quiet() };
    let slow = CoreParams { fp_double_cycles: 2.0, fp_double_latency_cycles: 11.0, ..big() };
    let (fast, slow) = (cpi_stack(&numeric, &big(), 1000.0), cpi_stack(&numeric, &slow, 1000.0));
    assert!(slow.core > 1.3 * fast.core, "{} {}", slow.core, fast.core);
    let integer = Profile { fp_single: 0.0, fp_double: 0.0, ..quiet() };
    let other = CoreParams { fp_double_cycles: 2.0, fp_double_latency_cycles: 11.0, ..big() };
    assert_eq!(cpi_stack(&integer, &big(), 1.0), cpi_stack(&integer, &other, 1.0));
}

#[test]
fn counters_agree_with_the_stack() {
    for (core, pipeline) in [(big(), Pipeline::OutOfOrder), (little(), Pipeline::InOrder)] {
        assert_eq!(core.pipeline, pipeline);
        let (stack, rates) =
            (cpi_stack(&profile(), &core, 1500.0), counters(&profile(), &core, 1500.0));
        assert!(close(rates.ipc, 1.0 / stack.total()));
        assert!(close(rates.stall_memory_share, stack.memory / stack.total()));
        let stalls = rates.stall_branch_share
            + rates.stall_fetch_share
            + rates.stall_l2_share
            + rates.stall_memory_share;
        assert!(close(1.0 - stalls, stack.core / stack.total()));
        assert!(close(rates.l2_access_pki, rates.l1i_mpki + rates.l1d_mpki));
        assert!(close(rates.load_pki, 250.0) && close(rates.branch_pki, 150.0));
    }
}

#[test]
fn stalls_agree_with_the_stack_and_the_counters() {
    for core in [big(), little()] {
        let at = |mhz| stall_counters(&profile(), &core, mhz);
        let (stack, stalls) = (cpi_stack(&profile(), &core, 1500.0), at(1500.0));
        assert!(close(stalls.cpi(), stack.total()) && close(stalls.cpi_memory, stack.memory));
        assert!(close(stalls.memory_share(), stack.memory / stack.total()));
        // Waiting is as long as the latencies of the misses that are not outstanding together.
        let latency_cycles = core.memory_ns * 1.5;
        assert!(close(stalls.cpi_memory, stalls.llc_mpi * latency_cycles / stalls.mlp));
        let expected = [0.5, 0.15, 0.15];
        assert!(stalls.dependence.iter().zip(expected).all(|(&ours, x)| close(ours, x)));
        assert!(close(at(3000.0).cpi_memory, 2.0 * stalls.cpi_memory));
    }
    // 0.00114 demand misses per instruction in a window of 128, nine of ten independent.
    let mlp = stall_counters(&profile(), &big(), 1500.0).mlp;
    assert!((mlp - 1.1313).abs() < 1e-4, "{mlp}");
}

#[test]
fn prefetched_misses_are_not_counted() {
    let core = CoreParams { prefetch_share: 1.0, ..big() };
    let streaming = Profile { prefetchable: 1.0, ..profile() };
    let rates = counters(&streaming, &core, 1000.0);
    assert!(close(rates.l2_mpki, 0.5), "only stores are left: {}", rates.l2_mpki);
    // But their lines still have to come.
    assert!(rates.stall_memory_share > 0.0);
}
