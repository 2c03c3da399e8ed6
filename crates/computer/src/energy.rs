//! Power of cores as the kernel believes it: its energy model, by which its own energy-aware scheduling decides
//! (Documentation/power/energy-model.rst, kernel/power/energy_model.c). It is shown below debugfs.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;

use ampsched_model::{ClassId, InputError};
use serde::Serialize;

use crate::{CoreMap, Domain, Mounts, Root, format_cpus, parse_cpus};

/// Flags of a model (include/linux/energy_model.h).
const MICROWATTS: u64 = 1;
const SKIPS_INEFFICIENT: u64 = 1 << 1;
const ARTIFICIAL: u64 = 1 << 2;
/// No core of Linux's has more (`EM_MAX_POWER`).
const UW_MAX: u64 = 64_000_000;

/// The highest frequency that can be stated, as in machine files.
const MHZ_MAX: u32 = 10_000;
/// What errors name where the user states power.
pub(crate) const STATED: &str = "--power";

/// Where debugfs usually is.
const DEBUGFS: &str = "/sys/kernel/debug";
const NO_MODEL: &str = "the kernel has no energy model of its CPUs";

/// Power of a busy core at a frequency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PowerPoint {
    /// Frequency in MHz.
    pub mhz: u32,
    /// Power in mW, above 0.
    pub power_mw: f64,
}

/// What the kernel says of CPUs that share a clock.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    cpus: BTreeSet<usize>,
    /// Ascending.
    points: Vec<PowerPoint>,
}

/// The kernel's energy model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnergyModels {
    models: Vec<Model>,
    /// Why nothing is known, or not of all, each in a sentence.
    pub reasons: Vec<String>,
}

impl EnergyModels {
    /// What can be read of it. What cannot be understood is left out, with a reason.
    pub fn read(root: &Root) -> Self {
        let because = |reason: String| Self { models: Vec::new(), reasons: vec![reason] };
        let mounts = Mounts::read(root).unwrap_or_default();
        // A saved tree need not say what was mounted.
        let usual = root.has(format!("{DEBUGFS}/energy_model")).then(|| DEBUGFS.to_owned());
        let debugfs = mounts.point("debugfs").map(ToString::to_string);
        let Some(debugfs) = debugfs.or(usual) else {
            return because(
                "the kernel's energy model is not to be seen: `mount -t debugfs debugfs /sys/kernel/debug` as root"
                    .to_owned(),
            );
        };
        let folder = format!("{debugfs}/energy_model");
        match fs::read_dir(root.path(&folder)) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return because(format!("{folder} may not be read by this user: run as root"));
            }
            Err(_) => return because(NO_MODEL.to_owned()),
        }
        let mut found = Self::default();
        // A folder per device; those that are no CPUs have none.
        for name in root.names(&folder) {
            let folder = format!("{folder}/{name}");
            match model(root, &folder) {
                Ok(Some(model)) => found.models.push(model),
                Ok(None) => {}
                Err(why) => found.reasons.push(why.to_string()),
            }
        }
        if found == Self::default() {
            found.reasons.push(NO_MODEL.to_owned());
        }
        found
    }

    /// What the user states of CPUs that share a clock: texts such as `0-3=600:38,1200:120`, in MHz and mW.
    ///
    /// # Errors
    ///
    /// A text of another form, values out of range or not ascending, a CPU that is named twice.
    pub fn stated(texts: &[String]) -> Result<Self, InputError> {
        let mut models: Vec<Model> = Vec::new();
        for text in texts {
            let (cpus, points) = text.split_once('=').ok_or_else(|| not_understood(text))?;
            let cpus = parse_cpus(STATED, "", cpus)?;
            if let Some(cpu) = cpus.iter().find(|cpu| models.iter().any(|of| of.cpus.contains(cpu)))
            {
                return Err(InputError::new(STATED, "", format!("CPU {cpu} has a power already")));
            }
            if cpus.is_empty() {
                return Err(not_understood(text));
            }
            let points = points.split(',').map(point).collect::<Option<Vec<PowerPoint>>>();
            let is_usable =
                |points: &Vec<PowerPoint>| points.is_sorted_by(|one, next| one.mhz < next.mhz);
            let points = points.filter(is_usable).ok_or_else(|| not_understood(text))?;
            models.push(Model { cpus, points });
        }
        Ok(Self { models, reasons: Vec::new() })
    }

    /// The CPUs of which it says something.
    pub(crate) fn cpus(&self) -> BTreeSet<usize> {
        self.models.iter().flat_map(|model| model.cpus.iter().copied()).collect()
    }

    /// Power of the first of some CPUs at its frequencies, ascending; none if it is not known of all of them.
    pub(crate) fn points(&self, cpus: &[usize]) -> Vec<PowerPoint> {
        let of_cpu = |cpu: &usize| self.models.iter().find(|model| model.cpus.contains(cpu));
        let all: Option<Vec<&Model>> = cpus.iter().map(of_cpu).collect();
        all.and_then(|all| Some(all.first()?.points.clone())).unwrap_or_default()
    }

    /// A line per cluster whose power is known, with who says so.
    pub fn describe(cores: &CoreMap, by: &str) -> Vec<String> {
        let line = |cluster: &Domain| {
            let (least, most) = (cluster.power.first()?, cluster.power.last()?);
            let class = cores.class_name(ClassId(cluster.class));
            let cpus = format_cpus(cluster.cpus.iter().copied());
            Some(format!(
                "{class} {cpus}: a busy core {} mW at {} MHz to {} mW at {} MHz ({by})",
                least.power_mw, least.mhz, most.power_mw, most.mhz
            ))
        };
        cores.domains().iter().filter_map(line).collect()
    }
}

fn not_understood(text: &str) -> InputError {
    let most = UW_MAX / 1000;
    let message = format!(
        "\"{text}\" is not CPUS=MHZ:MW,... with ascending frequencies up to {MHZ_MAX} MHz and powers above 0, up to {most} mW"
    );
    InputError::new(STATED, "", message).with_hint("such as 0-3=600:38,1200:120")
}

/// A frequency in MHz and a power in mW such as `600:38.5`; none if it cannot be.
fn point(text: &str) -> Option<PowerPoint> {
    let (mhz, power_mw) = text.split_once(':')?;
    let point = PowerPoint { mhz: mhz.parse().ok()?, power_mw: power_mw.parse().ok()? };
    let is_possible = point.power_mw > 0.0 && point.power_mw <= UW_MAX as f64 / 1e3;
    ((1..=MHZ_MAX).contains(&point.mhz) && is_possible).then_some(point)
}

/// A device's model; none if it is no CPU. Errors: its files cannot be understood, or tell no power.
fn model(root: &Root, folder: &str) -> Result<Option<Model>, InputError> {
    let Some(cpus) = root.cpus(&format!("{folder}/cpus"))? else { return Ok(None) };
    let wrong =
        |file: &str, why: &str| InputError::new(root.name(&format!("{folder}/{file}")), "", why);
    let flags = root.text_if_there(&format!("{folder}/flags"))?;
    let flags = flags.and_then(|text| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok());
    let flags = flags.ok_or_else(|| wrong("flags", "it does not say in which unit power is"))?;
    if flags & MICROWATTS == 0 || flags & ARTIFICIAL != 0 {
        return Err(wrong("flags", "the kernel's energy model has costs, but no power in watts"));
    }
    let mut points = Vec::new();
    for name in root.names(folder).iter().filter(|name| name.starts_with("ps:")) {
        let value = |file: &str| {
            let file = format!("{name}/{file}");
            let value = root.number(&format!("{folder}/{file}"))?;
            value.ok_or_else(|| wrong(&file, "there is no such file"))
        };
        let (khz, power_uw) = (value("frequency")?, value("power")?);
        if flags & SKIPS_INEFFICIENT != 0 && value("inefficient")? != 0 {
            continue;
        }
        let mhz = u32::try_from(khz / 1000).ok().filter(|&mhz| mhz > 0);
        let (Some(mhz), 1..=UW_MAX) = (mhz, power_uw) else {
            let why = format!("{power_uw} uW at {khz} kHz cannot be");
            return Err(wrong(name, &why));
        };
        points.push(PowerPoint { mhz, power_mw: power_uw as f64 / 1e3 });
    }
    points.sort_by_key(|point| point.mhz);
    let is_known = !points.is_empty() && points.is_sorted_by(|one, next| one.mhz < next.mhz);
    let known = is_known.then_some(Some(Model { cpus, points }));
    known.ok_or_else(|| wrong("points", "there are none, or two of one frequency"))
}
