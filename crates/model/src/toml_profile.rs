//! Profile files, and profiles that a program defines for itself.

use crate::expr::{Expr, Scope};
use crate::reader::{Document, Node, Spot, Table, quoted};
use crate::{InputError, Profile, ProfileLibrary};

/// Keys of a full profile.
const KEYS: [&str; 29] = [
    "description",
    "source",
    "uops_per_instruction",
    "cpi_core_big",
    "cpi_core_little",
    "load",
    "store",
    "branch",
    "fp_simd",
    "fp_single",
    "fp_double",
    "fp_div",
    "int_mul_div",
    "branch_mpki",
    "l1i_mpki",
    "l1d_mpki",
    "l1d_write_mpki",
    "l2_512k_mpki",
    "l2_512k_write_mpki",
    "l2_2m_mpki",
    "l2_2m_write_mpki",
    "prefetchable",
    "ilp_40",
    "ilp_128",
    "load_use_1",
    "load_use_3",
    "measured_ratio",
    "cycles_factor",
    "working_set_kib",
];
/// Pairs of which the first cannot be more than the second: stores are part of all misses, and a
/// larger cache or a shorter distance cannot count more.
const ORDERED: [(&str, &str); 5] = [
    ("l1d_write_mpki", "l1d_mpki"),
    ("l2_512k_write_mpki", "l2_512k_mpki"),
    ("l2_2m_write_mpki", "l2_2m_mpki"),
    ("l2_2m_mpki", "l2_512k_mpki"),
    ("load_use_1", "load_use_3"),
];
/// Smallest and largest ratio of speeds that may be stated.
const RATIO: std::ops::RangeInclusive<f64> = 0.05..=50.0;
/// How many times the cycles of the core model a profile may take.
const CYCLES: std::ops::RangeInclusive<f64> = 0.01..=1000.0;
/// Smallest and largest working set in KiB: a line, 1 TB.
const WORKING_SET_KIB: std::ops::RangeInclusive<f64> = 0.0625..=1e9;
/// How many times the misses of another profile may be.
const MISSES: std::ops::RangeInclusive<f64> = 0.0..=1000.0;
/// Most events per 1,000 instructions.
const PER_1000_MAX: f64 = 1000.0;

/// Parses a profile file: tables `[profiles.NAME]`.
///
/// # Errors
/// Invalid TOML, an unknown or missing key, a value of the wrong kind or out of its range.
pub fn parse_profiles(file: &str, text: &str) -> Result<ProfileLibrary, InputError> {
    let document = Document::parse(file, text)?;
    let root = document.root(&["description", "profiles"])?;
    let nodes = root.require("profiles")?.any_table()?.members();
    let profiles =
        nodes.iter().map(|(name, node)| profile(name, node)).collect::<Result<_, _>>()?;
    Ok(ProfileLibrary { profiles })
}

fn profile(name: &str, node: &Node<'_>) -> Result<Profile, InputError> {
    let table = node.table(&KEYS)?;
    let share = |key| table.number(key, 0.0..=1.0);
    let per_1000 = |key| table.number(key, 0.0..=PER_1000_MAX);
    let profile = Profile {
        name: name.to_owned(),
        source: table.text_or("source", "")?,
        uops_per_instruction: table.number("uops_per_instruction", 0.1..=100.0)?,
        cpi_core_big: table.number("cpi_core_big", 0.05..=100.0)?,
        cpi_core_little: table.number("cpi_core_little", 0.05..=100.0)?,
        load: share("load")?,
        store: share("store")?,
        branch: share("branch")?,
        fp_simd: share("fp_simd")?,
        fp_single: share("fp_single")?,
        fp_double: share("fp_double")?,
        fp_div: share("fp_div")?,
        int_mul_div: share("int_mul_div")?,
        branch_mpki: per_1000("branch_mpki")?,
        l1i_mpki: per_1000("l1i_mpki")?,
        l1d_mpki: per_1000("l1d_mpki")?,
        l1d_write_mpki: per_1000("l1d_write_mpki")?,
        l2_512k_mpki: per_1000("l2_512k_mpki")?,
        l2_512k_write_mpki: per_1000("l2_512k_write_mpki")?,
        l2_2m_mpki: per_1000("l2_2m_mpki")?,
        l2_2m_write_mpki: per_1000("l2_2m_write_mpki")?,
        prefetchable: share("prefetchable")?,
        ilp_40: table.number("ilp_40", 0.1..=1000.0)?,
        ilp_128: table.number("ilp_128", 0.1..=1000.0)?,
        load_use_1: share("load_use_1")?,
        load_use_3: share("load_use_3")?,
        measured_ratio: table.get("measured_ratio").map(|node| node.number(RATIO)).transpose()?,
        cycles_factor: table.get("cycles_factor").map(|node| node.number(CYCLES)).transpose()?,
        working_set_kib: table
            .get("working_set_kib")
            .map(|node| node.number(WORKING_SET_KIB))
            .transpose()?,
    };
    check_order(&table)?;
    Ok(profile)
}

fn check_order(table: &Table<'_>) -> Result<(), InputError> {
    for (smaller, larger) in ORDERED {
        let (small, large) = (table.require(smaller)?, table.require(larger)?);
        let (small_value, large_value) = (small.any_number()?, large.any_number()?);
        if small_value > large_value {
            return Err(small
                .spot
                .error(format!("{small_value} is more than {} {large_value}", quoted(larger))));
        }
    }
    Ok(())
}

/// A profile that a program defines for itself.
#[derive(Clone, Debug)]
pub(crate) enum OwnProfile {
    /// All of its numbers.
    Full(Profile),
    /// The numbers of another profile with some changes.
    Like(Like),
}

/// A profile that is like another one, but for what is known to differ; may depend on parameters.
#[derive(Clone, Debug)]
pub(crate) struct Like {
    name: String,
    like: String,
    like_spot: Spot,
    /// The ratio of speeds.
    ratio: Option<Expr>,
    /// Misses of the L1 data cache and the L2, as a multiple of the other's.
    misses: Option<Expr>,
    /// Cycles on every core, as a multiple of the other's.
    cycles: Option<Expr>,
    /// The working set.
    working_set_kib: Option<Expr>,
}

impl OwnProfile {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            OwnProfile::Full(profile) => &profile.name,
            OwnProfile::Like(like) => &like.name,
        }
    }

    /// The profile. What it is like is a full profile of the same program or one of the library.
    pub fn resolve(
        &self,
        own: &[OwnProfile],
        library: &ProfileLibrary,
        params: &[(String, f64)],
    ) -> Result<Profile, InputError> {
        let like = match self {
            OwnProfile::Full(profile) => return Ok(profile.clone()),
            OwnProfile::Like(like) => like,
        };
        let own_full = own.iter().find_map(|other| match other {
            OwnProfile::Full(profile) if profile.name == like.like => Some(profile),
            _ => None,
        });
        let base = own_full.or_else(|| library.find(&like.like)).ok_or_else(|| {
            like.like_spot.unknown(
                "profile",
                &like.like,
                library.profiles.iter().map(|profile| profile.name.as_str()),
            )
        })?;
        like.changed(base, params)
    }
}

impl Like {
    /// The other profile with the changes.
    fn changed(&self, base: &Profile, params: &[(String, f64)]) -> Result<Profile, InputError> {
        let mut profile = Profile { name: self.name.clone(), ..base.clone() };
        profile.source = format!("like {}", quoted(&self.like));
        if let Some(misses) = &self.misses {
            let factor = value_within(misses, params, &MISSES)?;
            let most = base.l1d_mpki.max(base.l2_512k_mpki);
            if factor * most > PER_1000_MAX {
                let message =
                    format!("{factor} times {most} misses per 1,000 instructions is above 1,000");
                return Err(misses.spot.error(message));
            }
            multiply_misses(&mut profile, factor);
            profile.source += &format!(", with {factor} times its misses");
        }
        if let Some(cycles) = &self.cycles {
            let factor = value_within(cycles, params, &CYCLES)?;
            profile.cycles_factor = Some(factor * base.cycles_factor.unwrap_or(1.0));
            profile.source += &format!(", with {factor} times its cycles");
        }
        if let Some(kib) = &self.working_set_kib {
            let kib = value_within(kib, params, &WORKING_SET_KIB)?;
            profile.working_set_kib = Some(kib);
            profile.source += &format!(", with a working set of {kib} KiB");
        }
        if let Some(ratio) = &self.ratio {
            let ratio = value_within(ratio, params, &RATIO)?;
            profile.measured_ratio = Some(ratio);
            profile.source += &format!(", with a stated speed ratio of {ratio}");
        }
        Ok(profile)
    }
}

fn multiply_misses(profile: &mut Profile, factor: f64) {
    for rate in [
        &mut profile.l1d_mpki,
        &mut profile.l1d_write_mpki,
        &mut profile.l2_512k_mpki,
        &mut profile.l2_512k_write_mpki,
        &mut profile.l2_2m_mpki,
        &mut profile.l2_2m_write_mpki,
    ] {
        *rate *= factor;
    }
}

fn value_within(
    expr: &Expr,
    params: &[(String, f64)],
    range: &std::ops::RangeInclusive<f64>,
) -> Result<f64, InputError> {
    expr.within(Scope { params, instance: None }, *range.start(), *range.end())
}

/// The `[profiles.NAME]` tables of a program file with these parameters.
pub(crate) fn own_profiles(
    root: &Table<'_>,
    params: &[&str],
) -> Result<Vec<OwnProfile>, InputError> {
    root.named("profiles")?.iter().map(|(name, node)| own_profile(name, node, params)).collect()
}

fn own_profile(name: &str, node: &Node<'_>, params: &[&str]) -> Result<OwnProfile, InputError> {
    if !node.any_table()?.has("like") {
        return profile(name, node).map(OwnProfile::Full);
    }
    let table = node.table(&["like", "ratio", "misses", "cycles", "working_set_kib"])?;
    let like = table.require("like")?;
    let change = |key, range| {
        let Some(node) = table.get(key) else { return Ok(None) };
        let expr = Expr::of(&node)?;
        expr.check_names(params, false)?;
        if expr.is_number() {
            value_within(&expr, &[], range)?;
        }
        Ok(Some(expr))
    };
    let (ratio, misses) = (change("ratio", &RATIO)?, change("misses", &MISSES)?);
    let cycles = change("cycles", &CYCLES)?;
    let working_set_kib = change("working_set_kib", &WORKING_SET_KIB)?;
    if [&ratio, &misses, &cycles, &working_set_kib].iter().all(|change| change.is_none()) {
        let keys = "\"ratio\", \"misses\", \"cycles\" or \"working_set_kib\"";
        return Err(table.spot.error(format!("key {keys} is missing")));
    }
    let (name, like_name) = (name.to_owned(), like.name()?.to_owned());
    Ok(OwnProfile::Like(Like {
        name,
        like: like_name,
        like_spot: like.spot,
        ratio,
        misses,
        cycles,
        working_set_kib,
    }))
}
