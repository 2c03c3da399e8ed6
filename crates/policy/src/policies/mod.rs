//! One file per policy and one row here.

mod support;
/// What `ampsched new policy` begins with; compiled and tested like any other.
#[cfg(test)]
#[path = "../../templates/policy.rs"]
pub(crate) mod template;
#[cfg(test)]
mod tests;

use crate::PolicyInfo;

crate::registry! {
    /// All policies, in alphabetical order of their names (that of `pinned` is "static").
    pub static REGISTRY: PolicyInfo = [
        a_dwrr,
        abreast,
        acfs,
        amps,
        bias,
        camp,
        cfs,
        cluster_switching,
        colab,
        colab_collaboration_only,
        dtpm,
        eas,
        eevdf,
        equal_progress,
        gts,
        guaranteed_fairness,
        hfee + AS_PUBLISHED,
        hpm,
        hsp,
        iks,
        linux,
        max_fair,
        max_perf,
        min_fair,
        min_fair_hfee,
        pie,
        prop_sp,
        rr,
        rr_amp,
        similarity,
        smart_balance,
        pinned,
        uniformity,
        utilisation_aware,
        wash,
        wash_orig,
    ]
}
