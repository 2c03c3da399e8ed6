//! What the model is compared with, and the shipped files that it is compared by.

use std::path::{Path, PathBuf};

use ampsched_model::{Catalog, CoreParams, FileKind, Pipeline, Profile};

/// A published ratio of speeds.
pub struct Ratio {
    /// Program of the publication.
    pub program: String,
    /// Speed on the big core divided by that on the little one.
    pub ratio: f64,
}

/// Measured speeds of a cluster at a frequency, relative to one reference for both clusters.
pub struct Speeds {
    /// `big` or `little`.
    pub cluster: String,
    /// Frequency in MHz.
    pub mhz: f64,
    /// Speed by workload, in the order of `Published::workloads`.
    pub speeds: Vec<f64>,
}

/// The published figures and the shipped catalogue.
pub struct Published {
    /// Machines, core types and profiles as shipped.
    pub catalog: Catalog,
    /// Chronaki et al. 2018, Table 1.
    pub chronaki: Vec<Ratio>,
    /// Big core, little core, and speed per clock on Dhrystone.
    pub dhrystone: Vec<(String, String, f64)>,
    /// gem5's Exynos 5 models.
    pub gem5: Vec<Ratio>,
    /// Workloads of the Exynos 5422 measurements.
    pub workloads: Vec<String>,
    /// Exynos 5422 measurements.
    pub exynos: Vec<Speeds>,
    /// Cycles per instruction measured on the profiling computer, by program.
    pub native: Vec<(String, f64)>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is not a number"))
}

impl Published {
    /// Reads everything from the repository.
    pub fn read() -> Published {
        let (workloads, exynos) = exynos(&read("lab/calibration/published/exynos5422_speed.csv"));
        Published {
            catalog: catalog(),
            chronaki: ratios(&read("lab/calibration/published/chronaki_table1.csv")),
            dhrystone: dhrystone(&read("lab/calibration/published/dhrystone.csv")),
            gem5: ratios(&read("lab/calibration/published/gem5_ex5.csv")),
            workloads,
            exynos,
            native: native(&read("lab/calibration/profiles/profiles.csv")),
        }
    }

    /// A shipped profile, if there is one of that name.
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.catalog.profiles().find(name)
    }

    /// A shipped core type.
    pub fn core(&self, name: &str) -> CoreParams {
        self.catalog.core_type(name).unwrap_or_else(|error| panic!("{error}")).params
    }

    /// Measured speed of a workload.
    pub fn exynos_speed(&self, cluster: &str, mhz: f64, workload: &str) -> f64 {
        let column = self.workloads.iter().position(|name| name == workload).expect("a workload");
        let row = self.exynos.iter().find(|row| row.cluster == cluster && row.mhz == mhz);
        row.expect("a measured frequency").speeds[column]
    }
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    for (kind, folder) in [(FileKind::CoreType, "core_types"), (FileKind::Profile, "profiles")] {
        let folder = root().join("python/ampsched/data").join(folder);
        let entries = std::fs::read_dir(&folder).expect("the shipped data");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        for path in paths {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).expect("a readable file");
            let added = catalog.add(kind, &name, &path.display().to_string(), &text);
            added.unwrap_or_else(|error| panic!("{error}"));
        }
    }
    catalog
}

fn ratios(text: &str) -> Vec<Ratio> {
    let rows = text.lines().skip(1).map(|line| line.split_once(',').expect("two columns"));
    rows.map(|(program, ratio)| Ratio { program: program.into(), ratio: number(ratio) }).collect()
}

fn dhrystone(text: &str) -> Vec<(String, String, f64)> {
    let rows = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    rows.map(|cells| (cells[0].into(), cells[1].into(), number(cells[2]))).collect()
}

fn exynos(text: &str) -> (Vec<String>, Vec<Speeds>) {
    let mut lines = text.lines();
    let header = lines.next().expect("a header");
    let rows = lines.map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let speeds = cells[2..].iter().map(|cell| number(cell)).collect();
        Speeds { cluster: cells[0].into(), mhz: number(cells[1]), speeds }
    });
    (header.split(',').skip(2).map(str::to_owned).collect(), rows.collect())
}

/// The profiling computer's cycles per instruction: the last column but one, where it was measured.
fn native(text: &str) -> Vec<(String, f64)> {
    let cells = |line: &str| {
        let program = line.split(',').next().expect("a program").to_owned();
        (program, line.rsplit(',').nth(1).expect("an estimate").to_owned())
    };
    assert_eq!(cells(text.lines().next().expect("a header")).1, "native_x86_ipc_est");
    let rows = text.lines().skip(1).map(cells).filter(|(_, ipc)| !ipc.is_empty());
    rows.map(|(program, ipc)| (profile_name(&program).to_owned(), 1.0 / number(&ipc))).collect()
}

/// The profile that a program of the measurements became.
fn profile_name(program: &str) -> &str {
    match program {
        "water_nsq" => "water_nsquared",
        "water_sp" => "water_spatial",
        other => other,
    }
}

/// The profiling computer: AMD Zen 4, 32 MiB of L3 behind its L2, at 3.67 GHz.
///
/// AMD's Zen 4 Software Optimization Guide (57647) and Chips and Cheese (2022). Memory latency is
/// that of the L3, which holds most of what misses the L2; the rest is one of the errors.
pub const ZEN4: CoreParams = CoreParams {
    pipeline: Pipeline::OutOfOrder,
    width: 6.0,
    window: 320.0,
    mispredict_cycles: 13.0,
    load_cycles: 4.0,
    fp_single_cycles: 0.25,
    fp_double_cycles: 0.25,
    fp_single_latency_cycles: 3.0,
    fp_double_latency_cycles: 3.0,
    simd_cycles: 0.5,
    simd_latency_cycles: 3.0,
    l1i_kib: 32.0,
    l1d_kib: 32.0,
    l2_kib: 1024.0,
    l2_cycles: 14.0,
    memory_ns: 14.0,
    mlp_max: 24.0,
    prefetch_share: 0.9,
    cycles_factor: 1.0,
};
/// Its frequency in MHz.
pub const ZEN4_MHZ: f64 = 3670.0;
