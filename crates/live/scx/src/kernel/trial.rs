//! Parts of the scheduler as programs of their own, for tests: they need no sched_ext.
#![allow(unsafe_code)] // Memory is shared with the kernel.

use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};

use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};

use super::{REPLAY, Shared, VERIFY, open, set_rules};
use crate::ScxError;
use crate::layout::{Operation, Sched, Thread};

/// `struct arguments` in `bpf/verify.bpf.c`.
const ARGUMENTS_BYTES: usize = 24;

/// The interpreter as a BPF program without a scheduler around it, for tests.
pub struct Replay(Shared);

impl Replay {
    /// Loads it with an empty system, for its rules. One process can have one at a time.
    ///
    /// # Errors
    ///
    /// The kernel has no BPF arenas (Linux 6.9), or this process may not load programs.
    pub fn load(initial: &Sched) -> Result<Self, ScxError> {
        let mut open = open(&REPLAY.0)?;
        set_rules(&mut open, initial);
        Ok(Self(Shared::load(open, initial)?))
    }

    /// Carries out operations, which then hold their answers.
    ///
    /// # Errors
    ///
    /// The kernel does not run the program.
    pub fn operate(&mut self, operations: &mut [Operation]) -> Result<(), ScxError> {
        self.0.run("replay", operations)
    }
}

/// Has the kernel verify what the scheduler does with its threads by the rules of an empty system. That takes no
/// sched_ext, and nothing runs. Returns how many instructions the verifier has looked at, by program.
///
/// # Errors
///
/// The verifier refuses a program, the kernel has no BPF arenas (Linux 6.9), or this process may not load programs.
pub fn verify(initial: &Sched) -> Result<Vec<(String, u32)>, ScxError> {
    let mut open = open(&VERIFY.0)?;
    set_rules(&mut open, initial);
    let shared = Shared::load(open, initial)?;
    let ids: Vec<u32> = shared.object.progs().filter_map(|program| id(&program)).collect();
    let all = libbpf_rs::query::ProgInfoIter::default();
    let own = all.filter(|info| ids.contains(&info.id));
    Ok(own.map(|info| (info.name.to_string_lossy().into_owned(), info.verified_insns)).collect())
}

/// A loaded program's number.
fn id(program: &libbpf_rs::Program) -> Option<u32> {
    let mut info = libbpf_rs::libbpf_sys::bpf_prog_info::default();
    let mut size = size_of_val(&info) as u32;
    let file = program.as_fd().as_raw_fd();
    // SAFETY: the kernel writes as much as there is room for.
    let failed = unsafe {
        libbpf_rs::libbpf_sys::bpf_prog_get_info_by_fd(file, &raw mut info, &raw mut size)
    };
    (failed == 0).then_some(info.id)
}

/// The programs that `verify` has looked at, of which one is run: that which makes room.
pub struct Room(Shared);

impl Room {
    /// Loads them with an empty system, in which there is memory for its `slots`. One process can have one at a time.
    ///
    /// # Errors
    ///
    /// The kernel has no BPF arenas (Linux 6.9), or this process may not load programs.
    pub fn load(initial: &Sched) -> Result<Self, ScxError> {
        let mut open = open(&VERIFY.0)?;
        set_rules(&mut open, initial);
        Ok(Self(Shared::load(open, initial)?))
    }

    /// Has more threads allowed than the memory was laid out for.
    pub fn allow(&mut self, threads_max: u32) {
        // SAFETY: written by nobody else, and read whole.
        unsafe { (&raw mut (*self.0.state.as_ptr()).threads_max).write_volatile(threads_max) }
    }

    /// A number of tasks come from each of some threads at the same time. Returns whether there is room for all.
    pub fn make(&self, threads: u32, each: u32) -> bool {
        let program = self.0.object.progs().find(|program| program.name() == "init_task");
        let file = program.expect("it is in the object").as_fd().as_raw_fd();
        std::thread::scope(|scope| {
            let come = || (0..each).all(|_| run(file));
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(come)).collect();
            // All of them, whatever the first ones say.
            let there: Vec<bool> =
                threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            there.iter().all(|&is_there| is_there)
        })
    }

    /// For how many threads there is room.
    pub fn slots(&self) -> u32 {
        // SAFETY: mapped as long as this is there.
        unsafe { (&raw const (*self.0.state.as_ptr()).slots).read_volatile() }
    }

    /// How often a slot was given away; there must be one.
    pub fn generation(&self, slot: u32) -> u32 {
        assert!(slot < self.slots(), "slot {slot} has memory");
        // SAFETY: as above, and threads lie behind the state.
        unsafe {
            let threads: *const Thread = self.0.state.as_ptr().add(1).cast();
            (&raw const (*threads.add(slot as usize)).generation).read_volatile()
        }
    }
}

/// Runs a program that needs no arguments. Returns whether it says yes.
fn run(program: RawFd) -> bool {
    let mut arguments = [0_u8; ARGUMENTS_BYTES];
    let mut options = bpf_test_run_opts {
        sz: size_of::<bpf_test_run_opts>() as u64,
        ctx_in: arguments.as_mut_ptr().cast(),
        ctx_size_in: arguments.len() as u32,
        ..Default::default()
    };
    // SAFETY: the program reads as many bytes as there are.
    let failed = unsafe { bpf_prog_test_run_opts(program, &raw mut options) };
    assert_eq!(failed, 0, "the program runs");
    options.retval == 1
}
