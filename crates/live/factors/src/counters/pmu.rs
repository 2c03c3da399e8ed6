//! How each PMU of this computer's cores counts what (Documentation/ABI/testing/sysfs-bus-event_source-devices-*).

use ampsched_computer::{CorePmu, Root};
use ampsched_model::InputError;
use ampsched_predict::counter_of_event;

/// How a PMU is told to count something (`type`, `config`, `config1` and `config2` of `perf_event_attr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Encoding {
    /// What it counts, as the vocabulary of `ampsched-predict` names it.
    pub counter: &'static str,
    /// Number of the kind of event, or of the PMU.
    pub kind: u32,
    /// The event, in the words of the kernel's interface.
    pub config: [u64; 3],
}

/// A PMU of cores and what it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// The PMU.
    pub core: CorePmu,
    /// What its folder says that it counts.
    pub events: Vec<Encoding>,
}

/// Generic kinds of events (include/uapi/linux/perf_event.h).
const TYPE_HARDWARE: u32 = 0;
const TYPE_CACHE: u32 = 3;
const READ_MISS: u64 = 1 << 16;
/// Where the number of the PMU stands in a generic event (PERF_PMU_TYPE_SHIFT).
const PMU_SHIFT: u32 = 32;

/// Events that the kernel translates for whatever PMU there is: counter, kind, number. The same ones as
/// `ampsched calibrate` uses, so that its models find what they were trained on.
const GENERIC: [(&str, u32, u64); 11] = [
    ("cycles", TYPE_HARDWARE, 0),
    ("instructions", TYPE_HARDWARE, 1),
    ("llc_accesses", TYPE_HARDWARE, 2),
    ("llc_misses", TYPE_HARDWARE, 3),
    ("branches", TYPE_HARDWARE, 4),
    ("branch_mispredicts", TYPE_HARDWARE, 5),
    ("stall_fetch_cycles", TYPE_HARDWARE, 7),
    ("stall_backend_cycles", TYPE_HARDWARE, 8),
    ("l1d_read_misses", TYPE_CACHE, READ_MISS),
    ("l1i_misses", TYPE_CACHE, 1 | READ_MISS),
    ("dtlb_misses", TYPE_CACHE, 3 | READ_MISS),
];

impl Pmu {
    /// The PMUs of cores, in the order of their names. Errors: a file of theirs cannot be understood.
    pub fn find(root: &Root) -> Result<Vec<Self>, InputError> {
        let with_events = |core: CorePmu| {
            let events = events(root, &core.folder(), core.kind)?;
            Ok(Self { core, events })
        };
        CorePmu::find(root)?.into_iter().map(with_events).collect()
    }

    /// How it is told to count something: as its folder says, else by the kernel's generic event, which
    /// names the PMU where there may be several. None if there is neither.
    pub fn encoding(&self, counter: &str) -> Option<Encoding> {
        let own = self.events.iter().find(|event| event.counter == counter);
        let generic = || {
            let &(counter, kind, number) = GENERIC.iter().find(|(name, ..)| *name == counter)?;
            let pmu = self.core.cpus.as_ref().map_or(0, |_| u64::from(self.core.kind) << PMU_SHIFT);
            Some(Encoding { counter, kind, config: [number | pmu, 0, 0] })
        };
        own.copied().or_else(generic)
    }
}

/// The events of a PMU that have a counter in the vocabulary, the first of several for one.
fn events(root: &Root, folder: &str, kind: u32) -> Result<Vec<Encoding>, InputError> {
    let mut found: Vec<Encoding> = Vec::new();
    for name in root.names(&format!("{folder}/events")) {
        // Loads and stores that Intel samples (PEBS) are not all that there are.
        if name.starts_with("mem-") || name.contains('.') {
            continue;
        }
        let Some(counter) = counter_of_event(&name) else { continue };
        if found.iter().any(|known| known.counter == counter) {
            continue;
        }
        let file = format!("{folder}/events/{name}");
        let Some(text) = root.text_if_there(&file)? else { continue };
        let config = encode(root, folder, &file, &text)?;
        found.push(Encoding { counter, kind, config });
    }
    Ok(found)
}

/// Puts the terms of an event, such as `event=0x3c,umask=0x1,inv`, where the PMU's formats say.
fn encode(root: &Root, folder: &str, file: &str, text: &str) -> Result<[u64; 3], InputError> {
    let wrong = |message: String| InputError::new(root.name(file), "", message);
    let mut config = [0; 3];
    for term in text.split(',') {
        let (name, value) = term.trim().split_once('=').unwrap_or((term.trim(), "1"));
        let value = number(value).ok_or_else(|| wrong(format!("\"{term}\" is not a number")))?;
        if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            return Err(wrong(format!("\"{name}\" is not a name")));
        }
        let bits = Bits::of(root, folder, name)?;
        let bits = bits.ok_or_else(|| wrong(format!("the PMU has no format \"{name}\"")))?;
        bits.put(&mut config, value).ok_or_else(|| {
            wrong(format!("{value:#x} is too big for \"{name}\" ({} bits)", bits.width()))
        })?;
    }
    Ok(config)
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Where a term's bits go.
struct Bits {
    /// Which of the three words.
    word: usize,
    /// First and last bit of each part, the low ones first.
    ranges: Vec<(u32, u32)>,
}

impl Bits {
    /// By the file of the format, such as `config:0-7,32-35`; a term may also be a whole word. None if there is no such
    /// format.
    fn of(root: &Root, folder: &str, name: &str) -> Result<Option<Self>, InputError> {
        if let Some(word) = word(name) {
            return Ok(Some(Self { word, ranges: vec![(0, 63)] }));
        }
        let file = format!("{folder}/format/{name}");
        let Some(text) = root.text_if_there(&file)? else { return Ok(None) };
        let wrong = || {
            let message = format!("\"{text}\" is not a format such as config:0-7");
            InputError::new(root.name(&file), "", message)
        };
        Self::parse(&text).ok_or_else(wrong).map(Some)
    }

    fn parse(text: &str) -> Option<Self> {
        let (name, ranges) = text.split_once(':')?;
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last && last < 64).then_some((first, last))
        };
        Some(Self {
            word: word(name)?,
            ranges: ranges.split(',').map(range).collect::<Option<_>>()?,
        })
    }

    fn width(&self) -> u32 {
        self.ranges.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Puts a value there; none if it does not fit.
    fn put(&self, config: &mut [u64; 3], mut value: u64) -> Option<()> {
        for &(first, last) in &self.ranges {
            let width = last - first + 1;
            let mask = u64::MAX >> (64 - width);
            config[self.word] |= (value & mask) << first;
            value = value.checked_shr(width).unwrap_or(0);
        }
        (value == 0).then_some(())
    }
}

fn word(name: &str) -> Option<usize> {
    ["config", "config1", "config2"].iter().position(|word| *word == name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    const DEVICES: &str = "/sys/bus/event_source/devices";

    fn tree(files: &[(&str, &str)]) -> (TempDir, Root) {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            let path = folder.path().join(DEVICES.trim_start_matches('/')).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = Root::new(folder.path());
        (folder, root)
    }

    const X86_FORMAT: [(&str, &str); 3] = [
        ("cpu/format/event", "config:0-7\n"),
        ("cpu/format/umask", "config:8-15\n"),
        ("cpu/format/inv", "config:23\n"),
    ];

    #[test]
    fn a_plain_processor_has_one_pmu_for_all_cpus() {
        let mut files = X86_FORMAT.to_vec();
        files.extend([
            ("cpu/type", "4\n"),
            ("cpu/events/instructions", "event=0xc0\n"),
            ("cpu/events/cache-misses", "event=0x2e,umask=0x41,inv\n"),
            ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"),
            ("cpu/events/topdown-retiring", "event=0x00,umask=0x80\n"),
            ("uncore_imc_0/type", "20\n"),
            ("software/type", "1\n"),
        ]);
        let (_folder, root) = tree(&files);
        let pmus = Pmu::find(&root).unwrap();
        assert_eq!(pmus.iter().map(|pmu| pmu.core.name.as_str()).collect::<Vec<_>>(), ["cpu"]);
        let pmu = &pmus[0];
        assert!(pmu.core.covers(0) && pmu.core.covers(99));
        let encoding = |kind, config| Some((kind, [config, 0, 0]));
        let of = |counter| pmu.encoding(counter).map(|event| (event.kind, event.config));
        assert_eq!(of("instructions"), encoding(4, 0xc0));
        assert_eq!(of("llc_misses"), encoding(4, 0x2e | 0x41 << 8 | 1 << 23));
        // Not in its folder: the generic event, without a number of the only PMU.
        assert_eq!(of("cycles"), encoding(TYPE_HARDWARE, 0));
        assert_eq!(of("l1i_misses"), encoding(TYPE_CACHE, 1 | 1 << 16));
        // Sampled loads are not all loads, and nothing generic counts them.
        assert_eq!(of("loads"), None);
    }

    #[test]
    fn the_pmus_of_a_hybrid_processor_are_told_apart() {
        let (_folder, root) = tree(&[
            ("cpu_core/type", "4"),
            ("cpu_core/cpus", "0-3"),
            ("cpu_core/format/event", "config:0-7"),
            ("cpu_core/events/instructions", "event=0xc0"),
            ("cpu_atom/type", "10"),
            ("cpu_atom/cpus", "4-7"),
        ]);
        let pmus = Pmu::find(&root).unwrap();
        let [atom, core] = &pmus[..] else { panic!("{pmus:?}") };
        assert!(atom.core.covers(4) && !atom.core.covers(3) && core.core.covers(3));
        let event = atom.encoding("branch_mispredicts").unwrap();
        assert_eq!((event.kind, event.config[0]), (TYPE_HARDWARE, 10 << 32 | 5));
        assert_eq!(core.encoding("instructions").unwrap().kind, 4);
    }

    #[test]
    fn a_board_with_two_kinds_of_cores() {
        let event = "config:0-15";
        let (_folder, root) = tree(&[
            ("armv8_cortex_a53/type", "7"),
            ("armv8_cortex_a53/cpus", "0-3"),
            ("armv8_cortex_a53/format/event", event),
            ("armv8_cortex_a53/events/inst_retired", "event=0x0008"),
            ("armv8_cortex_a53/events/l1d_cache_refill", "event=0x0003"),
            ("armv8_cortex_a72/type", "8"),
            ("armv8_cortex_a72/cpus", "4-5"),
            ("armv8_cortex_a72/format/event", event),
            ("armv8_cortex_a72/events/stall_backend_mem", "event=0x4005"),
        ]);
        let pmus = Pmu::find(&root).unwrap();
        assert_eq!(pmus[0].encoding("instructions").unwrap().config, [8, 0, 0]);
        assert_eq!(pmus[0].encoding("l1d_misses").unwrap().kind, 7);
        assert_eq!(pmus[1].encoding("stall_memory_cycles").unwrap().config, [0x4005, 0, 0]);
        assert_eq!(pmus[0].encoding("stall_memory_cycles"), None);
    }

    #[test]
    fn a_virtual_machine_has_none() {
        let (_folder, root) = tree(&[("software/type", "1"), ("msr/type", "9")]);
        assert_eq!(Pmu::find(&root).unwrap(), []);
    }

    #[test]
    fn bits_may_be_in_two_places() {
        let bits = Bits::parse("config1:0-7,32-35").unwrap();
        let mut config = [0; 3];
        assert_eq!((bits.put(&mut config, 0xabc), config), (Some(()), [0, 0xa << 32 | 0xbc, 0]));
        assert_eq!(bits.put(&mut config, 0x1000), None);
    }

    #[test]
    fn errors_name_the_file() {
        let good = [("cpu/type", "4"), ("cpu/format/event", "config:0-7")];
        for (file, text, message) in [
            ("cpu/type", "four", "\"four\" is not a whole number"),
            ("cpu/type", "99999999999", "99999999999 is too big"),
            ("cpu/cpus", "0-x", "\"0-x\" of \"0-x\" is not a CPU or a range of CPUs"),
            ("cpu/events/instructions", "event=0xzz", "\"event=0xzz\" is not a number"),
            ("cpu/events/instructions", "event=0x1c0", "0x1c0 is too big for \"event\" (8 bits)"),
            ("cpu/events/instructions", "evnt=1", "the PMU has no format \"evnt\""),
            ("cpu/events/instructions", "../type=1", "\"../type\" is not a name"),
        ] {
            let mut files = good.to_vec();
            files.push((file, text));
            let (folder, root) = tree(&files);
            let error = Pmu::find(&root).unwrap_err().to_string();
            let path = folder.path().join(DEVICES.trim_start_matches('/')).join(file);
            assert!(error.starts_with(&format!("{}: {message}", path.display())), "{error}");
        }
        let (_folder, root) = tree(&[
            ("cpu/type", "4"),
            ("cpu/events/instructions", "event=1"),
            ("cpu/format/event", "config:64"),
        ]);
        let error = Pmu::find(&root).unwrap_err().to_string();
        assert!(error.contains("cpu/format/event: \"config:64\" is not a format"), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn no_file_is_too_strange(event in "\\PC{0,30}", format in "\\PC{0,30}", list in "\\PC{0,20}") {
            let (_folder, root) = tree(&[
                ("cpu/type", "4"),
                ("cpu/cpus", &list),
                ("cpu/format/event", &format),
                ("cpu/events/cpu-cycles", &event),
                ("cpu/events/instructions", "event=1"),
            ]);
            if let Err(error) = Pmu::find(&root) {
                prop_assert!(error.to_string().contains("/cpu/"), "{error}");
            }
        }
    }
}
