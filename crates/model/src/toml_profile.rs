//! Profile files, and profiles that a program defines for itself.

use crate::expr::{Expr, Scope};
use crate::reader::{Document, Node, Spot, Table, quoted};
use crate::{InputError, Profile, ProfileLibrary};

/// Keys of a full profile.
const KEYS: [&str; 27] = [
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
    let per_1000 = |key| table.number(key, 0.0..=1000.0);
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
    /// The numbers of another profile, but a known ratio of speeds, which may depend on parameters.
    Like { name: String, like: String, like_spot: Spot, ratio: Expr },
}

impl OwnProfile {
    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            OwnProfile::Full(profile) => &profile.name,
            OwnProfile::Like { name, .. } => name,
        }
    }

    /// The profile. What it is like is a full profile of the same program or one of the library.
    pub fn resolve(
        &self,
        own: &[OwnProfile],
        library: &ProfileLibrary,
        params: &[(String, f64)],
    ) -> Result<Profile, InputError> {
        let (name, like, like_spot, ratio) = match self {
            OwnProfile::Full(profile) => return Ok(profile.clone()),
            OwnProfile::Like { name, like, like_spot, ratio } => (name, like, like_spot, ratio),
        };
        let own_full = own.iter().find_map(|other| match other {
            OwnProfile::Full(profile) if profile.name == *like => Some(profile),
            _ => None,
        });
        let base = own_full.or_else(|| library.find(like)).ok_or_else(|| {
            like_spot.unknown(
                "profile",
                like,
                library.profiles.iter().map(|profile| profile.name.as_str()),
            )
        })?;
        let ratio = ratio_within(ratio, params)?;
        let source = format!("like {}, with a stated speed ratio of {ratio}", quoted(like));
        Ok(Profile { name: name.clone(), source, measured_ratio: Some(ratio), ..base.clone() })
    }
}

fn ratio_within(ratio: &Expr, params: &[(String, f64)]) -> Result<f64, InputError> {
    ratio.within(Scope { params, instance: None }, *RATIO.start(), *RATIO.end())
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
    let table = node.table(&["like", "ratio"])?;
    let like = table.require("like")?;
    let ratio = Expr::of(&table.require("ratio")?)?;
    ratio.check_names(params, false)?;
    if ratio.is_number() {
        ratio_within(&ratio, &[])?;
    }
    Ok(OwnProfile::Like {
        name: name.to_owned(),
        like: like.name()?.to_owned(),
        like_spot: like.spot.clone(),
        ratio,
    })
}
