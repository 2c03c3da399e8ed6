//! A profile and two cores with round numbers.

#![allow(dead_code)] // each test file takes what it needs

use ampsched_model::{CoreParams, Pipeline, Profile};

/// A profile with some of everything.
pub fn profile() -> Profile {
    Profile {
        name: "test".into(),
        source: "unit test".into(),
        uops_per_instruction: 1.1,
        cpi_core_big: 0.5,
        cpi_core_little: 1.2,
        load: 0.25,
        store: 0.1,
        branch: 0.15,
        fp_simd: 0.2,
        fp_single: 0.05,
        fp_double: 0.1,
        fp_div: 0.001,
        int_mul_div: 0.01,
        branch_mpki: 5.0,
        l1i_mpki: 1.0,
        l1d_mpki: 12.0,
        l1d_write_mpki: 2.0,
        l2_512k_mpki: 5.0,
        l2_512k_write_mpki: 1.0,
        l2_2m_mpki: 2.0,
        l2_2m_write_mpki: 0.5,
        prefetchable: 0.3,
        ilp_40: 6.0,
        ilp_128: 10.0,
        load_use_1: 0.5,
        load_use_3: 0.8,
        measured_ratio: None,
        cycles_factor: None,
        working_set_kib: None,
    }
}

/// The out-of-order core that the walks assumed.
pub fn big() -> CoreParams {
    CoreParams {
        pipeline: Pipeline::OutOfOrder,
        width: 3.0,
        window: 128.0,
        mispredict_cycles: 15.0,
        load_cycles: 4.0,
        fp_single_cycles: 0.5,
        fp_double_cycles: 0.5,
        fp_single_latency_cycles: 5.0,
        fp_double_latency_cycles: 5.0,
        simd_cycles: 0.5,
        simd_latency_cycles: 3.0,
        l1i_kib: 32.0,
        l1d_kib: 32.0,
        l2_kib: 2048.0,
        l2_cycles: 20.0,
        memory_ns: 100.0,
        mlp_max: 6.0,
        prefetch_share: 0.8,
        cycles_factor: 1.0,
    }
}

/// The in-order core that the walks assumed.
pub fn little() -> CoreParams {
    CoreParams {
        pipeline: Pipeline::InOrder,
        width: 2.0,
        window: 1.0,
        mispredict_cycles: 8.0,
        load_cycles: 3.0,
        fp_single_cycles: 1.0,
        fp_double_cycles: 1.0,
        fp_single_latency_cycles: 4.0,
        fp_double_latency_cycles: 4.0,
        simd_cycles: 0.5,
        simd_latency_cycles: 3.0,
        l2_kib: 512.0,
        l2_cycles: 15.0,
        mlp_max: 4.0,
        ..big()
    }
}
