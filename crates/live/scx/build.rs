//! Compiles the interpreter in `bpf/`: always for this computer, which the tests use, and with the feature `bpf` for
//! the kernel.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    cc::Build::new()
        .file("bpf/native.c")
        .file("bpf/native_host.c")
        .std("gnu11")
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("ampsched_interpreter");
    if env::var_os("CARGO_FEATURE_BPF").is_some() {
        for name in ["kernel_queues", "replay", "scheduler", "verify"] {
            compile_for_kernel(name);
        }
    }
}

/// The compiler for BPF: `$BPF_CLANG`, else `clang-19`, the oldest that knows arenas, else `clang`.
fn clang() -> String {
    println!("cargo::rerun-if-env-changed=BPF_CLANG");
    if let Ok(given) = env::var("BPF_CLANG") {
        return given;
    }
    let known = ["clang-19", "clang"];
    let works = |name: &&&str| Command::new(name).arg("--version").output().is_ok();
    known.iter().find(works).unwrap_or(&"clang-19").to_string()
}

fn compile_for_kernel(name: &str) {
    let clang = clang();
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    // libbpf-sys says where its headers are.
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys sets DEP_BPF_INCLUDE");
    let status = Command::new(&clang)
        .args([
            "--target=bpf",
            "-mcpu=v3",
            "-O2",
            "-g",
            "-std=gnu11",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .args(["-Wno-unused-parameter", "-isystem", &headers, "-c"])
        .arg(format!("bpf/{name}.bpf.c"))
        .arg("-o")
        .arg(out.join(format!("{name}.bpf.o")))
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} cannot compile bpf/{name}.bpf.c: {status}"),
        Err(error) => panic!(
            "{clang}: {error}; BPF programs need clang 19 or newer (Debian: apt install clang-19, or set BPF_CLANG)"
        ),
    }
}
