//! COLAB without slices scaled by speed-up: what the collaboration of allocator and selector is worth.

use super::cfs;
use super::colab::{self, Colab};
use crate::{ParamInfo, PolicyInfo};

/// The registry's row.
pub static INFO: PolicyInfo = PolicyInfo {
    name: "colab-collaboration-only",
    summary: "COLAB's allocator and selector, with time and slices as in CFS",
    source: "a variant named in the evaluation draft of COLAB (CGO 2020); its definition is ours",
    documentation: "\
**Purpose.** An ablation of `colab`: how much comes from allocator and selector working together, without the third part, equal \
progress.

**When to use.** To measure what COLAB's equal progress adds. It needs speed-ups and blame, as `colab` does. Not for \
work: there is `colab`.

**Algorithm.** Labels, allocation, selection and stealing are those of `colab`. Run time is charged as time on every core, slices \
are not divided by speed-up, and wake-up preemption compares plain virtual run time.

**Constants.** Those of `colab`. The draft names the variant and prints two results, but does not define it; this is our reading.

**Example.** Two equal threads of speed-up 3 on one big core of a 2-core machine run 6 ms each in turn; under `colab` 2 ms.

**Limits.** Those of `colab`; besides, a thread on a big core gets the same time, hence s times the work, of one on a little core.",
    params: PARAMS,
    build: |params| Box::new(Colab::collaboration_only(params)),
};

/// COLAB's parameters but for those that say how time is scaled or Algorithm 1 read.
const PARAMS: &[ParamInfo] = &[
    colab::LITTLE_STEAL,
    colab::BALANCE,
    colab::LITTLE_STEAL_IDLE,
    colab::HIGH_SIGMA,
    colab::LOW_SIGMA,
    colab::MIN_CV,
    colab::TERCILES,
    colab::HYSTERESIS,
    colab::DECAY,
    colab::RAW,
    colab::MIN_GAIN,
    colab::MIN_RESIDENT,
    colab::FAIR_WINDOW,
    colab::EPOCH,
    cfs::LATENCY,
    cfs::MIN_GRANULARITY,
    cfs::WAKEUP_GRANULARITY,
];
