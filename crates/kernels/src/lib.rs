//! Small programs that load one part of a core each: what a real machine is calibrated with.
//!
//! A kernel does the same work per round wherever it runs. Who calls it pins the thread and reads clocks
//! and counters; this crate only computes.

mod arithmetic;
mod memory;

use memory::{Chase, Stream};

/// A kernel and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    /// Name.
    pub name: &'static str,
    /// What a round does.
    pub help: &'static str,
}

/// All kernels.
pub static KERNELS: &[KernelInfo] = &[
    KernelInfo {
        name: "integer",
        help: "additions, shifts and exclusive ors in four independent chains",
    },
    KernelInfo {
        name: "integer-chain",
        help: "multiplications, each of which waits for the one before",
    },
    KernelInfo {
        name: "float",
        help: "double-precision multiplications and additions in eight independent chains",
    },
    KernelInfo {
        name: "float-chain",
        help: "double-precision multiplications and additions in one chain",
    },
    KernelInfo { name: "divide", help: "double-precision divisions in one chain" },
    KernelInfo { name: "branches", help: "branches on random bits" },
    KernelInfo {
        name: "simd",
        help: "single-precision arithmetic over arrays of 8 KiB, which compilers vectorise",
    },
    KernelInfo { name: "chase-16k", help: "loads that each need the one before, in 16 KiB: L1" },
    KernelInfo { name: "chase-256k", help: "the same in 256 KiB: L2" },
    KernelInfo { name: "chase-4m", help: "the same in 4 MiB: a last-level cache or memory" },
    KernelInfo { name: "chase-64m", help: "the same in 64 MiB: memory" },
    KernelInfo { name: "stream", help: "sums over 64 MiB, line after line" },
];

/// A kernel, ready to run.
pub struct Kernel {
    work: Work,
}

enum Work {
    Function(fn(u64) -> u64),
    Branches(Vec<u8>),
    Simd(Box<arithmetic::Lanes>),
    Chase(Chase),
    Stream(Stream),
}

impl Kernel {
    /// The kernel of that name, with its memory filled; `None` if there is none.
    pub fn new(name: &str) -> Option<Self> {
        let work = match name {
            "integer" => Work::Function(arithmetic::integer),
            "integer-chain" => Work::Function(arithmetic::integer_chain),
            "float" => Work::Function(arithmetic::float),
            "float-chain" => Work::Function(arithmetic::float_chain),
            "divide" => Work::Function(arithmetic::divide),
            "branches" => Work::Branches(memory::random_bytes(1 << 14)),
            "simd" => Work::Simd(Box::default()),
            "chase-16k" => Work::Chase(Chase::new(16 << 10)),
            "chase-256k" => Work::Chase(Chase::new(256 << 10)),
            "chase-4m" => Work::Chase(Chase::new(4 << 20)),
            "chase-64m" => Work::Chase(Chase::new(64 << 20)),
            "stream" => Work::Stream(Stream::new(64 << 20)),
            _ => return None,
        };
        Some(Self { work })
    }

    /// Does a number of rounds; the result is a check sum, so that nothing can be left out.
    pub fn run(&mut self, rounds: u64) -> u64 {
        match &mut self.work {
            Work::Function(function) => function(rounds),
            Work::Branches(bytes) => arithmetic::branches(bytes, rounds),
            Work::Simd(lanes) => lanes.run(rounds),
            Work::Chase(chase) => chase.run(rounds),
            Work::Stream(stream) => stream.run(rounds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_runs_and_does_the_same_each_time() {
        for info in KERNELS {
            let sums: Vec<u64> =
                (0..2).map(|_| Kernel::new(info.name).expect(info.name).run(1000)).collect();
            assert_eq!(sums[0], sums[1], "{}", info.name);
            assert_ne!(sums[0], Kernel::new(info.name).unwrap().run(1001), "{}", info.name);
        }
        assert!(Kernel::new("nothing").is_none());
    }
}
