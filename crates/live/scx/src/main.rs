fn main() {
    use ampsched_model::{ClassId, CoreId};
    use ampsched_policy::{ClusterInfo, Topology, build_policy};
    use ampsched_scx::kernel::*;
    use ampsched_scx::lower;
    let args: Vec<String> = std::env::args().collect();
    let name = &args[1];
    let seconds: u64 = args[2].parse().unwrap();
    let cluster = |class: u8, cores: std::ops::Range<usize>| ClusterInfo { class: ClassId(class), cores: cores.map(CoreId::from).collect(), freqs_mhz: vec![], design: None, energy_model: vec![] };
    let topology = Topology::from_clusters(vec![cluster(1, 0..2), cluster(0, 2..4)]);
    let policy = build_policy(name, &[]).unwrap();
    let rules = policy.rules(&topology);
    let lowered = match lower::rules(name, &policy.needs(), &rules, &topology) { Ok(l) => l, Err(e) => { eprintln!("error: {e}"); std::process::exit(2) } };
    let state = lower::state(lowered, rules.queues, &topology, 8192);
    let t = std::time::Instant::now();
    let mut kernel = match Kernel::load(state, &Options { scope: Scope::All, cpus: vec![0, 1, 2, 3], timeout_ms: 10_000, epoch_limit_ns: 3_000_000_000 }) { Ok(k) => k, Err(e) => { eprintln!("error: {e}"); std::process::exit(2) } };
    println!("loaded {name} in {:?}: {:?}", t.elapsed(), kernel_state());
    let mut child = (args.len() > 3).then(|| std::process::Command::new(&args[3]).args(&args[4..]).spawn().unwrap());
    let start = std::time::Instant::now();
    while start.elapsed().as_secs() < seconds {
        std::thread::sleep(std::time::Duration::from_millis(10));
        kernel.sign_of_life();
        if let Some(exit) = kernel.exit() { println!("exit {exit:?}"); std::process::exit(1) }
        if let Some(c) = &mut child { if c.try_wait().unwrap().is_some() { break; } }
    }
    let s = kernel.state();
    println!("threads {} waiting {} idle {} serial {}", s.thread_count, s.waiting, s.idle_cores, s.serial);
    for c in 0..4 { println!("core {c} busy {} ms", s.cores[c].busy_ns / 1000000); }
    drop(kernel);
    println!("after: {:?}", kernel_state());
}
