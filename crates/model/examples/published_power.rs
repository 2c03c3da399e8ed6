//! Predicts the measured power of the Exynos 5422 with the shipped machine and prints both as CSV.
//!
//! ```console
//! cargo run -p ampsched-model --example published_power > .build/power.csv
//! ```
//!
//! Nothing measured enters the predictions of power but what a workload does per cycle; temperatures are those
//! of the thermal network in its steady state. `lab/calibration/power/report_power.py` makes tables and plots of it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use ampsched_model::{Catalog, Cluster, ClusterId, CoreState, FileKind, Machine, ThermalNetwork};

/// Workloads of which a profile comes near: zlib's deflate at level 6, and SHA-1 with a hash table.
const STAND_INS: [(&str, &str); 4] = [
    ("gzip-1", "dedup.compress"),
    ("gzip-5", "dedup.compress"),
    ("gzip-9", "dedup.compress"),
    ("hash", "dedup.deduplicate"),
];
/// Frequency at which the workloads' counters were read, on the big cluster.
const COUNTED_MHZ: f64 = 2000.0;
/// Rounds in which power and temperature settle; each shrinks what is left at least by half.
const ROUNDS: usize = 60;

fn main() {
    print!("{}", predictions());
}

/// All measurements and predictions.
fn predictions() -> String {
    let board = Board::read();
    let mut text = String::from(
        "measurement,cluster,mhz,workload,busy_cores,measured_mw,predicted_mw,hottest_c\n",
    );
    for row in table("exynos5422_power.csv") {
        if !row["volt_measured"].is_empty() {
            board.one_core(&row, &mut text);
        }
    }
    for row in table("exynos5422_temperatures.csv") {
        if row["busy_cores"] == "4" {
            board.four_cores(&row, &mut text);
        }
    }
    text
}

/// A row of a table by column.
type Row = BTreeMap<String, String>;

/// The machine and what was measured of the workloads.
struct Board {
    catalog: Catalog,
    machine: Machine,
    network: ThermalNetwork,
    /// Instructions per cycle and L2 accesses per instruction.
    counts: BTreeMap<String, (f64, f64)>,
    /// Speed relative to the big cluster at 2000 MHz, by cluster, MHz and workload.
    speeds: BTreeMap<(String, String, String), f64>,
    /// Idle power in mW, by cluster and MHz.
    idle_mw: BTreeMap<(String, String), f64>,
}

impl Board {
    fn read() -> Board {
        let catalog = catalog();
        let machine = catalog.machine("exynos5422").expect("the shipped machine");
        let thermal = catalog.thermal("exynos5422").expect("the shipped machine");
        let network = ThermalNetwork::new(thermal.expect("its heat"), &machine).expect("a network");
        let counts = table("exynos5422_counters.csv").into_iter().map(|row| {
            let counts = number(&row, "instructions_per_cycle");
            (row["workload"].clone(), (counts, number(&row, "l2_accesses_per_instruction")))
        });
        let power = table("exynos5422_power.csv");
        let speeds = power.iter().map(|row| {
            let key = (row["cluster"].clone(), row["mhz"].clone(), row["workload"].clone());
            (key, number(row, "relative_speed"))
        });
        let idle = power.iter().filter(|row| row["workload"] == "idle");
        let idle_mw = idle.map(|row| {
            ((row["cluster"].clone(), row["mhz"].clone()), 1000.0 * number(row, "watt"))
        });
        Board {
            counts: counts.collect(),
            speeds: speeds.collect(),
            idle_mw: idle_mw.collect(),
            catalog,
            machine,
            network,
        }
    }

    /// A column of the measurements: the cluster idle, or one of its cores busy.
    fn one_core(&self, row: &Row, text: &mut String) {
        let (cluster, mhz, workload) = (&row["cluster"], &row["mhz"], &row["workload"]);
        let idle_mw = self.idle_mw[&(cluster.clone(), mhz.clone())];
        let case = Case { cluster, mhz, workload, busy: 0, measured_mw: idle_mw };
        if workload == "idle" {
            return self.write("idle", &case, 0.0, text);
        }
        // The source states what the busy core adds.
        let measured_mw = idle_mw + 1000.0 * number(row, "watt");
        let case = Case { busy: 1, measured_mw, ..case };
        self.write("busy", &case, self.counted_activity(&case), text);
        if let Some((_, profile)) = STAND_INS.iter().find(|(name, _)| name == workload) {
            self.write("profile", &case, self.profile_activity(&case, profile), text);
        }
    }

    fn four_cores(&self, row: &Row, text: &mut String) {
        let (cluster, mhz, workload) = (&row["busy_cluster"], &row["mhz"], &row["workload"]);
        let measured_mw = 1000.0 * number(row, &format!("{cluster}_w"));
        let case = Case { cluster, mhz, workload, busy: 4, measured_mw };
        self.write("four", &case, self.counted_activity(&case), text);
    }

    /// Activity by the counters; counts per instruction stay, counts per cycle follow the speed.
    fn counted_activity(&self, case: &Case<'_>) -> f64 {
        let core = self.cluster(case.cluster);
        let (ipc, l2) = self.counts[case.workload];
        let key = (case.cluster.to_owned(), case.mhz.to_owned(), case.workload.to_owned());
        let ipc = ipc * self.speeds[&key] * COUNTED_MHZ / case.mhz_number();
        core.power.activity.at(ipc / core.params.width, ipc * l2, &core.params)
    }

    fn profile_activity(&self, case: &Case<'_>, profile: &str) -> f64 {
        let core = self.cluster(case.cluster);
        let profile = self.catalog.profiles().find(profile).expect("a shipped profile");
        core.power.activity.of(profile, &core.params, case.mhz_number())
    }

    fn cluster(&self, name: &str) -> &Cluster {
        let found = self.machine.clusters.iter().find(|cluster| cluster.name == name);
        found.expect("a cluster")
    }

    /// Writes a case and what is predicted if each busy core has that activity.
    fn write(&self, measurement: &str, case: &Case<'_>, activity: f64, text: &mut String) {
        let Case { cluster, mhz, workload, busy, measured_mw } = case;
        let (predicted_mw, hottest_c) = self.settled(case, activity);
        writeln!(
            text,
            "{measurement},{cluster},{mhz},{workload},{busy},{measured_mw:.1},{predicted_mw:.1},{hottest_c:.1}"
        )
        .expect("writing to a string");
    }

    /// Power of the cluster and its hottest core's temperature, in the steady state of both.
    fn settled(&self, case: &Case<'_>, activity: f64) -> (f64, f64) {
        let mut temperatures_c = self.network.cold_c();
        let mut power_mw = 0.0;
        for _ in 0..ROUNDS {
            let mut heat_mw = vec![0.0; temperatures_c.len()];
            for index in 0..self.machine.clusters.len() {
                let cluster_mw = self.heat(index, case, activity, &temperatures_c, &mut heat_mw);
                if self.machine.clusters[index].name == case.cluster {
                    power_mw = cluster_mw;
                }
            }
            temperatures_c = self.network.steady_c(&heat_mw);
        }
        (power_mw, temperatures_c.iter().fold(f64::MIN, |a, b| a.max(*b)))
    }

    /// Adds a cluster's power to its nodes and returns it; a cluster that the case is not about idles at
    /// its lowest frequency.
    fn heat(
        &self,
        index: usize,
        case: &Case<'_>,
        activity: f64,
        temperatures_c: &[f64],
        heat_mw: &mut [f64],
    ) -> f64 {
        let cluster = &self.machine.clusters[index];
        let own = cluster.name == case.cluster;
        let (opp, busy) = if own { (case.opp(cluster), case.busy) } else { (0, 0) };
        let node = self.network.uncore_node(ClusterId::from(index));
        let idle = if busy > 0 { None } else { Some(0) };
        let mut sum_mw = cluster.power.uncore_power_mw(opp, idle, temperatures_c[node]);
        heat_mw[node] += sum_mw;
        for (position, core) in cluster.cores.iter().enumerate() {
            let running = position < busy;
            let state = if running { CoreState::Running { activity } } else { CoreState::Idle(0) };
            let node = self.network.core_node(*core);
            let core_mw = cluster.power.core_power_mw(opp, state, temperatures_c[node]);
            heat_mw[node] += core_mw;
            sum_mw += core_mw;
        }
        sum_mw
    }
}

/// A measurement.
struct Case<'a> {
    cluster: &'a str,
    mhz: &'a str,
    workload: &'a str,
    /// Cores that run the workload.
    busy: usize,
    /// Power of the cluster.
    measured_mw: f64,
}

impl Case<'_> {
    fn mhz_number(&self) -> f64 {
        self.mhz.parse().expect("a frequency")
    }

    fn opp(&self, cluster: &Cluster) -> usize {
        let mhz = self.mhz_number();
        let found = cluster.opps.iter().position(|opp| f64::from(opp.mhz) == mhz);
        found.expect("an operating point")
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn catalog() -> Catalog {
    let data = root().join("python/ampsched/data");
    let files = [
        (FileKind::CoreType, "core_types", "cortex-a7"),
        (FileKind::CoreType, "core_types", "cortex-a15"),
        (FileKind::Machine, "machines", "exynos5422"),
        (FileKind::Profile, "profiles", "stages"),
    ];
    let mut catalog = Catalog::new();
    for (kind, folder, name) in files {
        let path = data.join(folder).join(format!("{name}.toml"));
        let added = catalog.add(kind, name, &path.display().to_string(), &read(&path));
        added.unwrap_or_else(|error| panic!("{error}"));
    }
    catalog
}

fn table(name: &str) -> Vec<Row> {
    let text = read(&root().join("lab/calibration/published").join(name));
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    lines.map(|cells| header.iter().cloned().zip(cells).collect()).collect()
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{:?} is not a number", row[column]))
}

#[test]
fn the_committed_predictions_are_those_of_the_code() {
    let committed = read(&root().join("lab/calibration/power/predicted.csv"));
    let changed = predictions()
        .lines()
        .zip(committed.lines())
        .find(|(now, then)| now != then)
        .map(|(now, then)| format!("{now} instead of {then}"));
    assert_eq!(changed, None, "make -C lab calibrate");
    assert_eq!(predictions().lines().count(), committed.lines().count());
}
