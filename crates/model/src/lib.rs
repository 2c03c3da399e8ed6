//! What is scheduled and on what: machines, core types, programs, workloads.
//!
//! Architecture invariant: this crate knows no clock, no operating system, no policy and no Python.
//! It turns files into validated values, and answers pure questions about them (how fast does this
//! profile run on that core type?). Everything else builds on it.

mod amount;
mod attrs;
mod budget;
mod catalog;
mod clock_bounds;
mod core_model;
mod energy_model;
mod error;
mod expr;
mod histogram;
mod ids;
mod kernel_view;
pub mod limits;
mod machine;
mod machine_part;
mod noise;
mod power;
mod profile;
mod program;
mod program_end;
mod program_flaw;
mod random;
mod reader;
mod recorded_cores;
mod rtapp;
mod schedule;
mod sensor;
mod sharing;
mod thermal;
mod toml_clocks;
mod toml_core_type;
mod toml_machine;
mod toml_power;
mod toml_profile;
mod toml_program;
mod toml_sharing;
mod toml_thermal;
mod toml_workload;
mod workload;

pub use amount::{Amount, Dist};
pub use attrs::{
    CLAMP_MAX, DL_PERIOD_NS_MAX, DL_PERIOD_NS_MIN, DL_RUNTIME_NS_MIN, GROUPS_MAX, SHARES_DEFAULT,
    SLICE_NS_MAX, SLICE_NS_MIN, SchedAttrs, SchedClass, TaskGroup, clamp_slice, path_flaw,
};
pub use budget::{Budget, memory_for};
pub use catalog::{Catalog, FileKind, MadeProgram};
pub use clock_bounds::{ClockBounds, HeldClock};
pub use core_model::{
    CoreParams, CounterRates, CpiStack, KindCycles, LINE_BYTES, MemoryDemand, MissCycles, Pipeline,
    Refill, StallCounters, counters, cpi_stack, cycles_per_instruction, kind_cycles,
    machine_speed_ips, machine_stall_counters, memory_demand, miss_cycles, refill, speed_ips,
    stall_counters,
};
pub use energy_model::energy_models;
pub use error::{InputError, suggest};
pub use histogram::{Distribution, Histogram};
pub use ids::{
    AppId, ClassId, ClusterId, CodePtr, CoreId, CoreSet, MAX_CLASSES, Ns, ObjectId, ProfileId,
    ThreadId, name_cores,
};
pub use kernel_view::{KernelView, LastLevelCache, Sees};
pub use machine::{Cluster, Costs, Machine, Opp, class_name};
pub use noise::{Noise, NoiseKind, NoiseSource, parse_noise};
pub use power::{
    ActivityLaw, BoardPower, ClusterPower, CoreState, EnergyPoint, IdleState, Leakage, PowerLimit,
    PowerPoint, Remaining,
};
pub use profile::{Profile, ProfileLibrary};
pub use program::{
    Calibration, Object, ObjectKind, Op, Program, Region, SPIN_US_MAX, SPINNABLE, ThreadSpec,
    TimerMode,
};
pub use random::Draw;
pub use recorded_cores::{Placed, RecordedCores};
pub use rtapp::{RtApp, import_rtapp, import_rtapp_with, run_loop};
pub use schedule::Schedule;
pub use sensor::Sensor;
pub use sharing::{Memory, Sharing};
pub use thermal::{
    Cooling, HeatSource, Thermal, ThermalLink, ThermalNetwork, ThermalNode, ThermalSensor,
    Throttle, Trip,
};
pub use toml_core_type::{CoreType, parse_core_type};
pub use toml_machine::{MachineTemplate, parse_machine};
pub use toml_profile::parse_profiles;
pub use toml_program::{ProgramTemplate, parse_program};
pub use toml_workload::{WorkloadFile, WorkloadTemplate, parse_workloads};
pub use workload::{App, Workload};
