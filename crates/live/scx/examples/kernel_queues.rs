//! Puts the other design that was measured into the kernel, its own dispatch queues (`bpf/kernel_queues.bpf.c`), until
//! it is killed. For its speed only: `make -C lab truth-cores` has it as one of its schedulers.

#![allow(unsafe_code)] // It takes a signal back.

use libbpf_rs::{MapCore as _, ObjectBuilder};

/// The programs, aligned as libbpf reads them.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);
static PROGRAMS: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/kernel_queues.bpf.o")));

fn main() {
    // A shell that starts it in the background has it ignore this, by which it is told to end.
    // SAFETY: no handler of this program's is replaced.
    unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
    let mut open = ObjectBuilder::default().open_memory(&PROGRAMS.0).expect("an object of BPF");
    let cpus = std::thread::available_parallelism().expect("the kernel says it").get() as u32;
    for mut map in open.maps_mut() {
        if map.name().to_string_lossy().ends_with("rodata.count") {
            let value = map.initial_value_mut().expect("it is constant");
            value.copy_from_slice(&cpus.to_ne_bytes());
        }
    }
    let mut object = open.load().expect("the kernel takes the programs");
    let mut maps = object.maps_mut();
    let mut ops = maps.find(|map| map.name() == "queues_ops").expect("it is in the object");
    let _link = ops.attach_struct_ops().expect("sched_ext");
    loop {
        std::thread::park();
    }
}
