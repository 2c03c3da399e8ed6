//! Power and temperature: RAPL (Documentation/power/powercap), hwmon (Documentation/hwmon/sysfs-interface), thermal
//! zones.
//!
//! A sensor of a whole package says nothing of one of its clusters: only what names a cluster is told as its own.

use std::collections::BTreeMap;

use ampsched_computer::{CoreMap, Root};
use ampsched_model::{ClassId, ClusterId, InputError, Ns};
use ampsched_policy::{Factor, FactorKind};
use serde::{Deserialize, Serialize};

const POWERCAP: &str = "/sys/class/powercap";
const HWMON: &str = "/sys/class/hwmon";
const THERMAL: &str = "/sys/class/thermal";

/// How often sensors are read (ours): RAPL is updated every ms, those of boards every 100 ms or so.
const PERIOD_NS: Ns = 50_000_000;

/// What the number in a sensor's file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    /// Energy in uJ, which begins anew after so much, if that is known.
    Energy { max_uj: Option<u64> },
    /// Power in uW.
    Power,
    /// Temperature in thousandths of a degree Celsius.
    Temperature,
}

/// What a sensor covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covers {
    /// The cores of a cluster, and no others.
    Cluster(ClusterId),
    /// Something else, or more than a cluster, as its label says.
    Other,
}

/// A sensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sensor {
    /// What it is called, such as `package-0`.
    pub label: String,
    /// Its file, as an absolute name.
    pub file: String,
    /// What it covers.
    pub covers: Covers,
    shows: Shows,
}

/// The sensors that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SensorSurvey {
    /// Those that can be read.
    pub sensors: Vec<Sensor>,
    /// Why others cannot, each in a sentence.
    pub reasons: Vec<String>,
}

impl SensorSurvey {
    /// Looks for sensors and tries to read each. Errors: a file holds something else than a number.
    pub fn make(root: &Root, cores: &CoreMap) -> Result<Self, InputError> {
        let mut survey = Self::default();
        let mut forbidden = Vec::new();
        let clusters = ClusterNames::new(cores);
        for sensor in candidates(root)? {
            // Files of hwmon may also be there and refuse to be read.
            match std::fs::read_to_string(root.path(&sensor.file)) {
                Ok(_) => {
                    root.number(&sensor.file).or_else(|error| match sensor.shows {
                        // Below zero it may be.
                        Shows::Temperature => Ok(None),
                        _ => Err(error),
                    })?;
                    survey.sensors.push(Sensor { covers: clusters.of(&sensor.label), ..sensor });
                }
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    forbidden.push(sensor.file);
                }
                Err(_) => {}
            }
        }
        if !forbidden.is_empty() {
            let files = forbidden.join(" ");
            survey.reasons.push(format!(
                "sensors may not be read by this user: `chmod a+r {files}` as root, or run as root"
            ));
        }
        Ok(survey)
    }

    /// Whether some cluster has a power sensor of its own.
    pub fn has_power_of_clusters(&self) -> bool {
        let own = |sensor: &Sensor| sensor.covers != Covers::Other && sensor.shows_power();
        self.sensors.iter().any(own)
    }

    /// A line per sensor: what it shows, and of what.
    pub fn describe(&self, cores: &CoreMap) -> Vec<String> {
        let line = |sensor: &Sensor| {
            let of = match sensor.covers {
                Covers::Cluster(cluster) => {
                    let class = ClassId(cores.domain(cluster).class);
                    format!("the {} cores", cores.class_name(class))
                }
                Covers::Other => "no single cluster: told as a sum".to_owned(),
            };
            let what = match sensor.shows {
                Shows::Energy { .. } => "energy",
                Shows::Power => "power",
                Shows::Temperature => "temperature",
            };
            format!("{what} of {} ({of}), {}", sensor.label, sensor.file)
        };
        self.sensors.iter().filter(|sensor| sensor.is_of_use()).map(line).collect()
    }
}

impl Sensor {
    fn shows_power(&self) -> bool {
        self.shows != Shows::Temperature
    }

    /// Temperatures of something else tell nobody anything here.
    fn is_of_use(&self) -> bool {
        self.shows_power() || self.covers != Covers::Other
    }
}

/// Sensors; what they cover is not known yet.
fn candidates(root: &Root) -> Result<Vec<Sensor>, InputError> {
    let mut found = Vec::new();
    let mut add = |label: String, file: String, shows: Shows| {
        found.push(Sensor { label, file, covers: Covers::Other, shows });
    };
    // The same counters seen through another bus (intel-rapl-mmio) would count twice.
    for zone in root.names(POWERCAP).into_iter().filter(|zone| zone.starts_with("intel-rapl:")) {
        let folder = format!("{POWERCAP}/{zone}");
        let file = format!("{folder}/energy_uj");
        if !root.has(&file) {
            continue;
        }
        let max_uj = root.number(&format!("{folder}/max_energy_range_uj"))?;
        let label = root.text(&format!("{folder}/name")).unwrap_or(zone);
        add(label, file, Shows::Energy { max_uj });
    }
    for device in root.names(HWMON) {
        let folder = format!("{HWMON}/{device}");
        let name = root.text(&format!("{folder}/name")).unwrap_or(device);
        for file in root.names(&folder) {
            let Some((channel, "input")) = file.rsplit_once('_') else { continue };
            let shows = match channel.trim_end_matches(|c: char| c.is_ascii_digit()) {
                "power" => Shows::Power,
                "energy" => Shows::Energy { max_uj: None },
                "temp" => Shows::Temperature,
                _ => continue,
            };
            let label = root.text(&format!("{folder}/{channel}_label"));
            let label = label.unwrap_or_else(|| format!("{name} {channel}"));
            add(label, format!("{folder}/{file}"), shows);
        }
    }
    for zone in root.names(THERMAL).into_iter().filter(|zone| zone.starts_with("thermal_zone")) {
        let folder = format!("{THERMAL}/{zone}");
        let label = root.text(&format!("{folder}/type")).unwrap_or(zone);
        add(label, format!("{folder}/temp"), Shows::Temperature);
    }
    Ok(found)
}

/// By which words a sensor's label names a cluster.
struct ClusterNames {
    clusters: Vec<(ClusterId, Vec<String>)>,
}

impl ClusterNames {
    /// Clusters that are all of their class: `big` and `little` mean nothing else then. The board of the Exynos 5422
    /// calls its clusters `arm` and `kfc`; Juno's sensors have `big` and `little`, or the names of the cores.
    fn new(cores: &CoreMap) -> Self {
        let count = cores.class_count();
        let domains = cores.domains();
        let alone = |class: u8| domains.iter().filter(|domain| domain.class == class).count() == 1;
        let named =
            domains.iter().enumerate().filter(|(_, domain)| alone(domain.class) && count > 1);
        let clusters = named.map(|(index, domain)| {
            let class = ClassId(domain.class);
            let mut words = vec![cores.class_name(class)];
            match usize::from(domain.class) {
                0 => words.push("kfc".to_owned()),
                class if class + 1 == count => words.push("arm".to_owned()),
                _ => {}
            }
            (ClusterId::from(index), words)
        });
        Self { clusters: clusters.collect() }
    }

    fn of(&self, label: &str) -> Covers {
        let label = label.to_ascii_lowercase();
        let words: Vec<&str> = label.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        let is_meant =
            |names: &Vec<String>| names.iter().any(|name| words.contains(&name.as_str()));
        let mut meant = self.clusters.iter().filter(|(_, names)| is_meant(names));
        match (meant.next(), meant.next()) {
            (Some((cluster, _)), None) => Covers::Cluster(*cluster),
            _ => Covers::Other,
        }
    }
}

/// Energy of what a sensor covers, since the session's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// What the sensor is called.
    pub of: String,
    /// Energy in J.
    pub energy_j: f64,
    /// Mean power in W.
    pub power_w: f64,
}

impl Energy {
    /// What a sensor has shown, in a line.
    pub fn in_words(&self) -> String {
        let Self { of, energy_j, power_w } = self;
        format!(
            "{of}: {energy_j:.1} J, {power_w:.2} W on average (of the whole computer, not of this session alone)"
        )
    }
}

/// A sensor that is read again and again.
#[derive(Clone, Debug)]
struct Meter {
    sensor: Sensor,
    /// Energy counter at the last reading, in uJ.
    before_uj: Option<u64>,
    energy_uj: f64,
    power_uw: Option<f64>,
    temperature_c: Option<f64>,
}

/// Sensors during a session.
#[derive(Clone, Debug)]
pub struct Sensors {
    root: Root,
    meters: Vec<Meter>,
    read_ns: Option<Ns>,
    began_ns: Ns,
}

impl Sensors {
    /// Nothing is read yet.
    pub fn new(root: Root, survey: &SensorSurvey) -> Self {
        let meter = |sensor: &Sensor| Meter {
            sensor: sensor.clone(),
            before_uj: None,
            energy_uj: 0.0,
            power_uw: None,
            temperature_c: None,
        };
        let meters = survey.sensors.iter().filter(|sensor| sensor.is_of_use()).map(meter).collect();
        Self { root, meters, read_ns: None, began_ns: 0 }
    }

    /// Reads all sensors if it is time; returns whether it was.
    pub fn read(&mut self, now_ns: Ns) -> bool {
        if self.read_ns.is_some_and(|at_ns| now_ns < at_ns + PERIOD_NS) {
            return false;
        }
        let elapsed_ns = self.read_ns.map_or(0, |at_ns| now_ns - at_ns);
        if self.read_ns.replace(now_ns).is_none() {
            self.began_ns = now_ns;
        }
        for meter in &mut self.meters {
            meter.read(&self.root, elapsed_ns);
        }
        true
    }

    /// Power of clusters that have sensors of their own, in mW.
    pub fn power_mw(&self) -> BTreeMap<ClusterId, Factor> {
        // Power and energy of the same cluster are often two files of one sensor.
        self.of_clusters(|meter| meter.power_uw.map(|uw| uw / 1e3), |first, _| first)
    }

    /// The hottest sensor of each cluster that has one, in degrees Celsius.
    pub fn temperature_c(&self) -> BTreeMap<ClusterId, Factor> {
        self.of_clusters(|meter| meter.temperature_c, f64::max)
    }

    fn of_clusters(
        &self,
        value: impl Fn(&Meter) -> Option<f64>,
        both: impl Fn(f64, f64) -> f64,
    ) -> BTreeMap<ClusterId, Factor> {
        let mut found = BTreeMap::new();
        for meter in &self.meters {
            let Covers::Cluster(cluster) = meter.sensor.covers else { continue };
            let Some(value) = value(meter) else { continue };
            found.entry(cluster).and_modify(|known| *known = both(*known, value)).or_insert(value);
        }
        let at_ns = self.read_ns.unwrap_or(0);
        let factor = |value| Factor { value, kind: FactorKind::Measured, at_ns };
        found.into_iter().map(|(cluster, value)| (cluster, factor(value))).collect()
    }

    /// Energy of the session, by sensor. Sensors overlap (a package contains its cores): there is no sum.
    pub fn energy(&self) -> Vec<Energy> {
        let elapsed_s = self.read_ns.unwrap_or(0).saturating_sub(self.began_ns) as f64 / 1e9;
        let of_power = self.meters.iter().filter(|meter| meter.sensor.shows_power());
        let energy = |meter: &Meter| {
            let energy_j = meter.energy_uj / 1e6;
            let power_w = if elapsed_s > 0.0 { energy_j / elapsed_s } else { 0.0 };
            Energy { of: meter.sensor.label.clone(), energy_j, power_w }
        };
        of_power.map(energy).collect()
    }
}

impl Meter {
    /// A file that cannot be read just now, or holds no number, leaves what was known unknown.
    fn read(&mut self, root: &Root, elapsed_ns: Ns) {
        let text = root.text(&self.sensor.file);
        let number = |text: &String| text.parse::<i64>().ok();
        match self.sensor.shows {
            Shows::Temperature => {
                self.temperature_c = text.as_ref().and_then(number).map(|milli| milli as f64 / 1e3);
            }
            Shows::Power => {
                self.power_uw = text.as_ref().and_then(number).map(|uw| uw as f64);
                self.energy_uj += self.power_uw.unwrap_or(0.0) * elapsed_ns as f64 / 1e9;
            }
            Shows::Energy { max_uj } => {
                let now_uj: Option<u64> = text.and_then(|text| text.parse().ok());
                let spent_uj = match (self.before_uj, now_uj) {
                    (Some(before), Some(now)) if now >= before => Some(now - before),
                    // It has begun anew.
                    (Some(before), Some(now)) => max_uj.map(|max| max.saturating_sub(before) + now),
                    _ => None,
                };
                self.before_uj = now_uj.or(self.before_uj);
                self.energy_uj += spent_uj.unwrap_or(0) as f64;
                let per_s = |uj: u64| uj as f64 * 1e9 / elapsed_ns as f64;
                self.power_uw = spent_uj.filter(|_| elapsed_ns > 0).map(per_s);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ampsched_computer::{ByHand, detect_cores};
    use tempfile::TempDir;

    use super::*;

    struct Computer {
        folder: TempDir,
        root: Root,
        cores: CoreMap,
    }

    impl Computer {
        /// Two slow CPUs and two fast ones.
        fn with(files: &[(&str, &str)]) -> Self {
            let folder = TempDir::new().unwrap();
            let root = Root::new(folder.path());
            let place = |name: &str| folder.path().join(name);
            fs::create_dir_all(place("sys/devices/system/cpu")).unwrap();
            fs::write(place("sys/devices/system/cpu/online"), "0-3").unwrap();
            let classes = vec!["0-1".to_owned(), "2-3".to_owned()];
            let cores = detect_cores(&root, &ByHand { classes, ratios: Vec::new() }).unwrap().0;
            let computer = Self { folder, root, cores };
            files.iter().for_each(|(name, text)| computer.write(name, text));
            computer
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.folder.path().join("sys/class").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn survey(&self) -> SensorSurvey {
            SensorSurvey::make(&self.root, &self.cores).unwrap()
        }
    }

    const RAPL: [(&str, &str); 5] = [
        ("powercap/intel-rapl:0/name", "package-0\n"),
        ("powercap/intel-rapl:0/energy_uj", "900\n"),
        ("powercap/intel-rapl:0/max_energy_range_uj", "1000\n"),
        ("powercap/intel-rapl/enabled", "1\n"),
        ("powercap/intel-rapl-mmio:0/energy_uj", "5\n"),
    ];

    #[test]
    fn a_package_is_told_as_a_sum_and_its_counter_begins_anew() {
        let computer = Computer::with(&RAPL);
        let survey = computer.survey();
        assert!(!survey.has_power_of_clusters());
        assert_eq!(
            survey.describe(&computer.cores),
            [
                "energy of package-0 (no single cluster: told as a sum), /sys/class/powercap/intel-rapl:0/energy_uj"
            ]
        );
        let mut sensors = Sensors::new(computer.root.clone(), &survey);
        assert!(sensors.read(1_000_000_000));
        computer.write("powercap/intel-rapl:0/energy_uj", "950");
        assert!(!sensors.read(1_000_000_001), "too early");
        assert!(sensors.read(2_000_000_000));
        computer.write("powercap/intel-rapl:0/energy_uj", "30");
        assert!(sensors.read(3_000_000_000));
        let [energy] = &sensors.energy()[..] else { panic!() };
        assert_eq!(energy.of, "package-0");
        // 50, then 50 to the end and 30 more, in 2 s.
        assert!((energy.energy_j - 130e-6).abs() < 1e-12 && (energy.power_w - 65e-6).abs() < 1e-12);
        assert_eq!(sensors.power_mw().len(), 0, "nobody knows what the clusters draw");
    }

    #[test]
    fn a_board_measures_its_clusters() {
        let computer = Computer::with(&[
            ("hwmon/hwmon0/name", "ina231"),
            ("hwmon/hwmon0/power1_input", "2500000"),
            ("hwmon/hwmon0/power1_label", "sensor_arm"),
            ("hwmon/hwmon1/energy1_input", "7000000"),
            ("hwmon/hwmon1/energy1_label", "LITTLE energy"),
            ("hwmon/hwmon2/name", "gpu"),
            ("hwmon/hwmon2/power1_input", "1000000"),
            ("thermal/thermal_zone0/type", "big-thermal"),
            ("thermal/thermal_zone0/temp", "61000"),
            ("thermal/thermal_zone1/type", "big1-thermal"),
            ("thermal/thermal_zone1/temp", "99000"),
            ("thermal/thermal_zone2/type", "little"),
            ("thermal/thermal_zone2/temp", "-5000"),
        ]);
        let survey = computer.survey();
        assert!(survey.has_power_of_clusters());
        let mut sensors = Sensors::new(computer.root.clone(), &survey);
        sensors.read(0);
        computer.write("hwmon/hwmon1/energy1_input", "7300000");
        sensors.read(500_000_000);
        let power: Vec<_> =
            sensors.power_mw().into_iter().map(|(id, factor)| (id.index(), factor)).collect();
        let measured = |value| Factor { value, kind: FactorKind::Measured, at_ns: 500_000_000 };
        // The slow cluster has the first CPUs.
        assert_eq!(power, [(0, measured(600.0)), (1, measured(2500.0))]);
        let hot: Vec<_> =
            sensors.temperature_c().into_iter().map(|(id, factor)| (id.index(), factor)).collect();
        assert_eq!(hot, [(0, measured(-5.0)), (1, measured(61.0))]);
        let energy = sensors.energy();
        let of: Vec<&str> = energy.iter().map(|energy| energy.of.as_str()).collect();
        assert_eq!(of, ["sensor_arm", "LITTLE energy", "gpu power1"]);
        assert!((energy[0].energy_j - 1.25).abs() < 1e-9);
        // A counter that begins anew nobody knows where tells nothing of that time.
        computer.write("hwmon/hwmon1/energy1_input", "100");
        sensors.read(1_000_000_000);
        assert_eq!(sensors.power_mw().into_keys().map(|id| id.index()).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn garbage_is_named_and_what_comes_later_is_not_believed() {
        let computer = Computer::with(&[("powercap/intel-rapl:0/energy_uj", "much")]);
        let error = SensorSurvey::make(&computer.root, &computer.cores).unwrap_err().to_string();
        assert!(
            error.contains("intel-rapl:0/energy_uj: \"much\" is not a whole number"),
            "{error}"
        );
        let computer = Computer::with(&RAPL);
        let mut sensors = Sensors::new(computer.root.clone(), &computer.survey());
        sensors.read(0);
        computer.write("powercap/intel-rapl:0/energy_uj", "\u{1F600}");
        sensors.read(1_000_000_000);
        assert_eq!(sensors.energy()[0].energy_j, 0.0);
    }

    #[test]
    fn a_computer_without_sensors() {
        let computer = Computer::with(&[]);
        assert_eq!(computer.survey(), SensorSurvey::default());
    }
}
