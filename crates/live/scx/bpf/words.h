/* SPDX-License-Identifier: GPL-2.0-only */
/* The words of Rules and Plan, generated from crates/policy/src/words by `make bless`; do not edit. */
#ifndef AMPSCHED_WORDS_H
#define AMPSCHED_WORDS_H

#define CLASSES_MAX 4ull
#define STEPS_MAX 8ull
#define SPEED_ONE 1024ull

enum queues { QUEUES_PER_CORE, QUEUES_PER_CLUSTER, QUEUES_GLOBAL };
enum order { ORDER_FIFO, ORDER_VRUNTIME, ORDER_DEADLINE, ORDER_HIGHEST_RANK, ORDER_ROUNDS };
enum allocator {
    ALLOCATOR_WAKE_AFFINE,
    ALLOCATOR_ROUND_ROBIN_IN_CLASS,
    ALLOCATOR_LEAST_LOADED_IN_CLASS,
    ALLOCATOR_LEAST_LOADED_WITH,
    ALLOCATOR_BY_LOAD,
    ALLOCATOR_BY_ENERGY,
};
enum steal_from { STEAL_FROM_OWN_CLUSTER, STEAL_FROM_OTHER_CLUSTERS, STEAL_FROM_RUNNING_ON_SLOWER };
enum steal_load { STEAL_LOAD_ANY, STEAL_LOAD_HEAVY, STEAL_LOAD_STARVED, STEAL_LOAD_MISFIT };
enum slice { SLICE_FIXED, SLICE_LATENCY_SHARE, SLICE_REQUEST };
enum charge { CHARGE_TIME, CHARGE_PROGRESS, CHARGE_RATED };
enum preempt { PREEMPT_NEVER, PREEMPT_VRUNTIME_GAP, PREEMPT_SCALED_VRUNTIME_GAP, PREEMPT_EARLIER_DEADLINE };
enum balance_when { BALANCE_WHEN_ALWAYS, BALANCE_WHEN_OVER_UTILISED };
enum prefer { PREFER_ANY, PREFER_BIG, PREFER_LITTLE };
enum change {
    CHANGE_AFFINITY,
    CHANGE_PREFER,
    CHANGE_MOVE,
    CHANGE_RANK,
    CHANGE_WEIGHT,
    CHANGE_SPEED,
    CHANGE_SLICE,
    CHANGE_HOLD,
};
enum state { STATE_NEW, STATE_READY, STATE_RUNNING, STATE_BLOCKED, STATE_HELD, STATE_EXITED };
enum enqueue { ENQUEUE_FORK, ENQUEUE_WAKE, ENQUEUE_REQUEUE };

struct load_band {
    u64 up;
    u64 down;
    u64 min_resident_ns;
    u64 min_weight;
};

struct steal {
    u64 from;
    u64 who;
    u64 min_idle_ns;
    u64 except;
    u64 min_gain;
    u64 min_resident_ns;
    u64 load;
    struct load_band band;
    u64 max_served;
};

struct balance {
    u64 period_ns;
    u64 rotate_period_ns;
    u64 tolerance_percent;
    u64 within_kind;
    u64 min_resident_ns;
    u64 by_preference;
};

struct rules {
    u64 queues;
    u64 rating[4];
    u64 order;
    u64 fair_window_ns;
    u64 length_ns;
    u64 allocator;
    struct load_band band;
    u64 hysteresis;
    u64 steps;
    struct steal steal[8];
    u64 kick_idle;
    u64 slice;
    u64 slice_ns;
    u64 latency_ns;
    u64 min_granularity_ns;
    u64 base_ns;
    u64 slice_by_speed;
    u64 charge;
    u64 preempt;
    u64 granularity_ns;
    u64 scaled_granularity_ns;
    u64 run_to_parity;
    u64 sleeper_credit_ns;
    u64 fork_debit;
    u64 tick_ns;
    struct balance balance;
    u64 balance_when;
};

#endif
