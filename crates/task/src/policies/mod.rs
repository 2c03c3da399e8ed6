//! One file per policy; each states its registry row.

pub mod cats;
pub mod cats_cost;
pub mod cpop;
pub mod dls;
pub mod fifo;
pub mod hed;
pub mod heft;
pub mod ldcp;
pub mod lmt;
pub mod loop_dynamic;
pub mod loop_static;
pub mod peft;
pub mod replay;
pub mod static_threads;
mod support;
pub mod work_stealing;
