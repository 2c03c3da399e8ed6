//! The interpreter in C, compiled for this computer: what the tests compare with the one in Rust.
#![allow(unsafe_code)] // It is C.

use std::ptr::NonNull;

use crate::layout::{Call, Operation, Sched, Set, Thread};
use crate::table::{self, Changes, Cores};

unsafe extern "C" {
    fn ampsched_operate(state: *mut Sched, operations: *mut Operation, count: u64);
    static ampsched_layout: [u64; LAYOUT];
}

/// Number of sizes and offsets that are compared.
pub const LAYOUT: usize = 23;

/// Sizes and offsets as the C compiler sees them, in the order of `bpf/native.c`.
pub fn layout() -> [u64; LAYOUT] {
    // SAFETY: a constant array of that length in native.c.
    unsafe { ampsched_layout }
}

/// A scheduler's state in memory of this process.
pub struct Native {
    // Words, so that it is aligned.
    memory: Vec<u64>,
    changes: Changes,
}

impl Native {
    /// An empty system with room for threads.
    pub fn new(state: &Sched) -> Self {
        let mut memory = vec![0_u64; table::bytes(state.threads_max).div_ceil(8)];
        // SAFETY: the memory is large enough and aligned to 8 bytes, as `Sched` is.
        unsafe { memory.as_mut_ptr().cast::<Sched>().copy_from_nonoverlapping(state, 1) };
        Self { memory, changes: Changes::default() }
    }

    /// Carries out operations, which then hold their answers.
    pub fn operate(&mut self, operations: &mut [Operation]) {
        // SAFETY: the state was initialised in `new`, with room for `threads_max` threads behind it, and
        // the interpreter gives out no thread beyond them.
        unsafe {
            ampsched_operate(
                self.memory.as_mut_ptr().cast(),
                operations.as_mut_ptr(),
                operations.len() as u64,
            );
        }
    }

    /// The state but for threads.
    pub fn state(&self) -> &Sched {
        // SAFETY: initialised in `new`.
        unsafe { &*self.memory.as_ptr().cast() }
    }

    /// The state but for threads, to be changed.
    pub fn state_mut(&mut self) -> &mut Sched {
        // SAFETY: as in `state`.
        unsafe { &mut *self.memory.as_mut_ptr().cast() }
    }

    /// A thread's state.
    pub fn thread(&self, index: u32) -> &Thread {
        let place = self.place_of(index);
        // SAFETY: within the memory, and zeroed in `new` or written by the interpreter; every pattern of bits is a
        // `Thread`.
        unsafe { &*self.memory.as_ptr().byte_add(place).cast() }
    }

    /// A thread's state, to be changed.
    pub fn thread_mut(&mut self, index: u32) -> &mut Thread {
        let place = self.place_of(index);
        // SAFETY: as in `thread`.
        unsafe { &mut *self.memory.as_mut_ptr().byte_add(place).cast() }
    }

    /// The threads that have changed ([`Changes::read`]).
    pub fn read_changed(&mut self, changed: &mut Vec<(u32, Thread)>) {
        let table = NonNull::from(&mut self.memory[0]).cast();
        // SAFETY: as long as a table and initialised in `new`, and nobody else uses it.
        unsafe { self.changes.read(table, changed) };
    }

    /// What cores and queues do.
    pub fn read_cores(&mut self, cores: &mut Cores) {
        let table = NonNull::from(&mut self.memory[0]).cast();
        // SAFETY: as in `read_changed`.
        unsafe { cores.read(table) };
    }

    /// Where a thread's state is in the memory, in bytes.
    fn place_of(&self, index: u32) -> usize {
        assert!(index < self.state().threads_max, "thread {index} exists");
        size_of::<Sched>() + index as usize * size_of::<Thread>()
    }
}

unsafe extern "C" {
    fn ampsched_host_doing(what: *const std::ffi::c_char);
}

/// Says what the calling thread does, which is told if the C code reads memory that there is not: the process ends by
/// that, before a test could say what it did.
pub fn doing(what: &str) {
    let what = std::ffi::CString::new(format!("\nIn the C code: {what}\n")).unwrap_or_default();
    // SAFETY: a string with an end, which is copied.
    unsafe { ampsched_host_doing(what.as_ptr()) };
}

/// Who calls, as [`Native::call_of`] gives it out; of no use to another [`Native`], or after its end.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Caller(#[allow(dead_code)] *mut Call); // Read by C only.

/// Functions of `bpf/calls.h` and what it includes, which say what they do, and how `bpf/native_host.c` names them.
macro_rules! host {
    ($($name:ident = $symbol:ident($($given:ident: $kind:ty),*) $(-> $answer:ty)?;)*) => {
        unsafe extern "C" {
            $(fn $symbol(state: *mut Sched, $($given: $kind),*) $(-> $answer)?;)*
        }

        /// What the scheduler in the kernel does when it is called. Threads and cores must exist.
        #[allow(missing_docs)] // Their headers say what each does.
        impl Native {
            $(pub fn $name(&mut self, $($given: $kind),*) $(-> $answer)? {
                // SAFETY: the state was initialised in `new`, and the interpreter gives out no thread beyond its room.
                unsafe { $symbol(self.memory.as_mut_ptr().cast(), $($given),*) }
            })*
        }
    };
}

host! {
    call_of = ampsched_host_call_of(core: u32, now_ns: u64) -> Caller;
    collect_kicks = ampsched_host_collect_kicks(call: Caller);
    hand_over = ampsched_host_hand_over(call: Caller, thread: u32) -> u32;
    wake_up = ampsched_host_wake_up(call: Caller, thread: u32, waker: u32) -> u32;
    note_arrival = ampsched_host_note_arrival(thread: u32, core: u32, now_ns: u64) -> bool;
    has_no_work = ampsched_host_has_no_work(core: u32) -> bool;
    note_running = ampsched_host_note_running(call: Caller, thread: u32, core: u32);
    continue_exiting = ampsched_host_continue_exiting(call: Caller, thread: u32, core: u32);
    pick_next = ampsched_host_pick_next(call: Caller, core: u32, prev: u32) -> u32;
    abort_start = ampsched_host_abort_start(call: Caller, core: u32, thread: u32);
    tick_ends_turn = ampsched_host_tick_ends_turn(thread: u32, now_ns: u64) -> bool;
    charge_off_cpu = ampsched_host_charge_off_cpu(thread: u32, now_ns: u64);
    run_periodic = ampsched_host_run_periodic(call: Caller, balances: bool);
    dequeue_thread = ampsched_host_dequeue_thread(call: Caller, thread: u32, state: u32);
    suspend = ampsched_host_suspend(call: Caller, thread: u32);
    change_plan = ampsched_host_change_plan(call: Caller, operation: &mut Operation);
    restrict_to = ampsched_host_restrict_to(call: Caller, thread: u32, cores: &Set);
    change_weight = ampsched_host_change_weight(thread: u32, weight: u32);
    init_thread = ampsched_host_init_thread(weight: u32, cores: &Set) -> u32;
    change_core = ampsched_host_change_core(core: u32, online: bool);
    pick_for = ampsched_host_pick_for(call: Caller, core: u32) -> u32;
    follow_cores = ampsched_host_follow_cores(call: Caller, thread: u32);
    exit_thread = ampsched_host_exit_thread(call: Caller, thread: u32);
}
