//! What rt-app files become, and the message that each malformed one must give, word for word.
//!
//! Files in `rtapp/good.cases` become the listed programs; those in `rtapp/bad.cases` give the message.
//! With `BLESS=1` in the environment the expectations are written instead of compared; read the
//! difference before committing.

mod cases;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use ampsched_model::{
    CoreSet, Op, Profile, Program, SchedAttrs, ThreadSpec, import_rtapp, import_rtapp_with,
    parse_core_type, speed_ips,
};

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rtapp").join(name)
}

/// The input of a well-formed case.
fn input(name: &str) -> String {
    let cases = cases::read(&file("good.cases"));
    cases.into_iter().find(|case| case.name == name).expect(name).input
}

fn cores(set: &CoreSet) -> String {
    match set.len() {
        4096 => "all".to_owned(),
        _ => format!("{:?}", set.iter().map(|core| core.0).collect::<Vec<_>>()),
    }
}

/// An operation in one line; amounts are constant, so their mean says everything.
fn shown(op: &Op) -> String {
    let text = match op {
        Op::SetAffinity(set) => format!("SetAffinity({})", cores(set)),
        _ => format!("{op:?}"),
    };
    let text = text.replace("Amount { mean: ", "").replace(", dist: Constant }", "");
    let text = ["ObjectId", "ProfileId", "CodePtr"]
        .iter()
        .fold(text, |text, id| text.replace(&format!("{id}("), "#("));
    text.replace("1.8446744073709552e19", "for ever")
}

fn thread(spec: &ThreadSpec) -> String {
    let affinity = spec.affinity.as_ref().map_or("all".to_owned(), cores);
    let attrs = match spec.attrs {
        attrs if attrs == SchedAttrs::default() => String::new(),
        attrs => format!(", {attrs:?}"),
    };
    format!(
        "thread {:?}: {} from operation {}, nice {}, cores {affinity}, start {} ns{attrs}",
        spec.name, spec.count, spec.entry.0, spec.nice, spec.start_ns
    )
}

fn listing(program: &Program, notes: &[String]) -> String {
    let mut text = String::new();
    writeln!(text, "{:?}: {}", program.name, program.description).unwrap();
    writeln!(text, "duration {:?} ns", program.duration_ns).unwrap();
    for (index, profile) in program.profiles.iter().enumerate() {
        writeln!(text, "profile {index}: {}", profile.name).unwrap();
    }
    for (index, object) in program.objects.iter().enumerate() {
        writeln!(text, "object {index}: {:?} {:?}", object.name, object.kind).unwrap();
    }
    for (index, group) in program.groups.iter().enumerate() {
        writeln!(text, "group {index}: {}", group.path).unwrap();
    }
    for spec in &program.threads {
        writeln!(text, "{}", thread(spec)).unwrap();
    }
    for (index, op) in program.code.iter().enumerate() {
        writeln!(text, "{index:4} {}", shown(op)).unwrap();
    }
    for note in notes {
        writeln!(text, "note: {note}").unwrap();
    }
    text
}

#[test]
fn files_become_the_listed_programs() {
    let path = file("good.cases");
    cases::check(&path, |case| {
        let import =
            import_rtapp(&case.name, &case.input).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(import.program.flaw(), None, "{}", case.name);
        listing(&import.program, &import.notes)
    });
    assert!(cases::read(&path).len() >= 14);
}

#[test]
fn malformed_files_give_the_expected_message() {
    let path = file("bad.cases");
    cases::check(&path, |case| {
        let message = import_rtapp(&case.name, &case.input).expect_err(&case.name).to_string();
        assert!(!message.contains('\n'), "{message}");
        format!("{message}\n")
    });
    assert!(cases::read(&path).len() >= 90);
}

/// Instructions per ns of a profile on a core type that is shipped.
fn speed(profile: &Profile, core_type: &str, mhz: f64) -> f64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../python/ampsched/data/core_types")
        .join(format!("{core_type}.toml"));
    let core_type = parse_core_type(core_type, &read(&path)).unwrap();
    speed_ips(profile, &core_type.params, mhz) / 1e9
}

#[test]
fn run_loop_is_as_fast_as_on_a_juno_board() {
    let import = import_rtapp("f.json", "{ \"tasks\" : { \"t\" : { \"run\" : 1 } } }").unwrap();
    let [profile] = import.program.profiles.as_slice() else { panic!("one profile") };
    // rt-app's calibration there, in ns per loop of 191 instructions.
    for (core_type, mhz, expected_ns) in
        [("cortex-a57", 1100.0, 138.0), ("cortex-a53", 850.0, 356.5)]
    {
        let ns = 191.0 / speed(profile, core_type, mhz);
        assert!(
            (ns / expected_ns - 1.0).abs() < 0.02,
            "{core_type}: {ns} ns, {expected_ns} measured"
        );
    }
}

#[test]
fn memory_is_written_slower_the_less_caches_help() {
    let import = import_rtapp("memory_and_io.json", &input("memory_and_io.json"));
    let profiles = import.unwrap().program.profiles;
    for (core_type, mhz) in [("cortex-a57", 2000.0), ("cortex-a53", 1200.0)] {
        // 16 bytes an instruction.
        let rates: Vec<f64> =
            profiles[1..].iter().map(|profile| 16.0 * speed(profile, core_type, mhz)).collect();
        assert!(
            rates.is_sorted_by(|faster, slower| faster >= slower),
            "{core_type}: {rates:?} GB/s"
        );
        let (fastest, slowest) = (rates[0], rates[rates.len() - 1]);
        assert!(
            fastest < 40.0 && slowest > 0.5 && slowest < fastest / 2.0,
            "{core_type}: {rates:?} GB/s"
        );
    }
}

#[test]
fn run_behaves_like_the_profile_that_the_caller_gives() {
    let profile = Profile { name: "mine".to_owned(), ..Profile::default() };
    let text =
        "{ \"tasks\" : { \"t\" : { \"loop\" : 1, \"mem\" : 8, \"run\" : 1, \"runtime\" : 1 } } }";
    let program = import_rtapp_with("f.json", text, profile).unwrap().program;
    let names: Vec<&str> = program.profiles.iter().map(|profile| profile.name.as_str()).collect();
    assert_eq!(names, ["mine", "rt-app.mem.l1"]);
    let used: Vec<usize> = program
        .code
        .iter()
        .filter_map(|op| match op {
            Op::Compute { profile, .. } | Op::Run { profile, .. } | Op::Occupy { profile, .. } => {
                Some(profile.index())
            }
            _ => None,
        })
        .collect();
    assert_eq!(used, [1, 0, 0]);
}
