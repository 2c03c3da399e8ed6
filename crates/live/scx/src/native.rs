//! The interpreter in C, compiled for this computer: what the tests compare with the one in Rust.
#![allow(unsafe_code)] // It is C.

use crate::layout::{Operation, Sched, Thread};

unsafe extern "C" {
    fn ampsched_operate(state: *mut Sched, operations: *mut Operation, count: u64);
    static ampsched_layout: [u64; LAYOUT];
}

/// Number of sizes and offsets that are compared.
pub const LAYOUT: usize = 16;

/// Sizes and offsets as the C compiler sees them, in the order of `bpf/native.c`.
pub fn layout() -> [u64; LAYOUT] {
    // SAFETY: a constant array of that length in native.c.
    unsafe { ampsched_layout }
}

/// A scheduler's state in memory of this process.
pub struct Native {
    // Words, so that it is aligned.
    memory: Vec<u64>,
}

impl Native {
    /// An empty system with room for threads.
    pub fn new(state: Sched) -> Self {
        let bytes = size_of::<Sched>() + state.threads_max as usize * size_of::<Thread>();
        let mut memory = vec![0_u64; bytes.div_ceil(8)];
        // SAFETY: the memory is large enough and aligned to 8 bytes, as `Sched` is.
        unsafe { memory.as_mut_ptr().cast::<Sched>().write(state) };
        Self { memory }
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

    /// A thread's state.
    pub fn thread(&self, index: u32) -> &Thread {
        assert!(index < self.state().threads_max, "thread {index} exists");
        // SAFETY: zeroed in `new` or written by the interpreter; every pattern of bits is a `Thread`.
        unsafe {
            &*self
                .memory
                .as_ptr()
                .cast::<u8>()
                .add(size_of::<Sched>())
                .cast::<Thread>()
                .add(index as usize)
        }
    }
}
