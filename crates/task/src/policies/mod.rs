//! One file per task policy and one row here.

pub mod replay;
mod support;

use crate::TaskPolicyInfo;

ampsched_policy::registry! {
    /// All task policies, in alphabetical order.
    pub static REGISTRY: TaskPolicyInfo = [
        cats,
        cats_cost,
        cpop,
        dls,
        fifo,
        hed,
        heft,
        ldcp,
        lmt,
        loop_dynamic,
        loop_static,
        peft,
        static_threads,
        work_stealing,
    ]
}
