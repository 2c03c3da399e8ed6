//! The tables.

use std::fmt::Write;

use ampsched_model::{CoreParams, Profile, cpi_stack, cycles_per_instruction, speed_ips};

use crate::data::{Published, ZEN4, ZEN4_MHZ};
use crate::statistics::{geometric_mean, mean, median, rank_correlation};

const BEGIN: &str = "<!-- tables: begin -->\n";
const END: &str = "<!-- tables: end -->\n";
/// The error that the model aims at.
const AIM: f64 = 0.15;
/// The programs of the COLAB experiments, and the two single-threaded ones of its LaTeX draft.
const COLAB: [&str; 17] = [
    "radix",
    "blackscholes",
    "bodytrack",
    "dedup",
    "ferret",
    "fft",
    "fluidanimate",
    "fmm",
    "freqmine",
    "lu_cb",
    "lu_ncb",
    "ocean_cp",
    "swaptions",
    "water_nsquared",
    "water_spatial",
    "mcf",
    "bzip2",
];

/// Columns of the page's prose.
const WIDTH: usize = 120;

/// All tables.
pub fn markdown(published: &Published) -> String {
    let sections = [chronaki, exynos, frequencies, dhrystone, gem5, native, colab, guesses]
        .map(|table| table(published))
        .join("\n");
    sections.lines().map(wrapped).collect()
}

/// A line of Markdown with a line feed; a paragraph as several lines, a row of a table as it is.
fn wrapped(line: &str) -> String {
    let mut lines = vec![String::new()];
    let words = if line.starts_with('|') { vec![line] } else { line.split(' ').collect() };
    for word in words {
        let last = lines.last_mut().expect("there is one from the beginning");
        if last.is_empty() {
            last.push_str(word);
        } else if last.chars().count() + 1 + word.chars().count() <= WIDTH {
            last.extend([" ", word]);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

/// A text with the tables between its two marks.
pub fn replace(text: &str, tables: &str) -> Result<String, String> {
    let (before, rest) = text.split_once(BEGIN).ok_or(format!("no line {BEGIN:?}"))?;
    let (_, after) = rest.split_once(END).ok_or(format!("no line {END:?} after {BEGIN:?}"))?;
    Ok(format!("{before}{BEGIN}\n{tables}\n{END}{after}"))
}

/// Pairs of a published and a predicted value.
#[derive(Default)]
struct Pairs {
    published: Vec<f64>,
    predicted: Vec<f64>,
}

impl Pairs {
    fn push(&mut self, published: f64, predicted: f64) {
        self.published.push(published);
        self.predicted.push(predicted);
    }

    fn errors(&self) -> Vec<f64> {
        let pairs = self.published.iter().zip(&self.predicted);
        pairs.map(|(published, predicted)| (predicted / published - 1.0).abs()).collect()
    }

    fn mean_error(&self) -> f64 {
        mean(&self.errors())
    }

    fn summary(&self) -> String {
        let errors = self.errors();
        let bias: Vec<f64> =
            self.predicted.iter().zip(&self.published).map(|(a, b)| a / b).collect();
        format!(
            "Mean error {}, median {}, {} of {} within {}; geometric mean of predicted / published {:.2}; \
             rank correlation {:.2}.\n",
            percent(mean(&errors)),
            percent(median(&errors)),
            errors.iter().filter(|error| **error <= AIM).count(),
            errors.len(),
            percent(AIM),
            geometric_mean(&bias),
            rank_correlation(&self.published, &self.predicted)
        )
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Relative error with its sign.
fn error(predicted: f64, published: f64) -> String {
    format!("{:+.0} %", 100.0 * (predicted / published - 1.0))
}

fn ratio(profile: &Profile, big: (&CoreParams, f64), little: (&CoreParams, f64)) -> f64 {
    speed_ips(profile, big.0, big.1) / speed_ips(profile, little.0, little.1)
}

/// The profile as if no L2 in question held its working set: the 512 KiB miss rates at any size.
fn beyond_l2(profile: &Profile) -> Profile {
    Profile {
        l2_2m_mpki: profile.l2_512k_mpki,
        l2_2m_write_mpki: profile.l2_512k_write_mpki,
        ..profile.clone()
    }
}

/// Predictions for the programs of Chronaki's table, with profiles changed by `change`.
fn chronaki_pairs(published: &Published, change: impl Fn(&Profile) -> Profile) -> Pairs {
    let (big, little) = (published.core("cortex-a15"), published.core("cortex-a7"));
    let mut pairs = Pairs::default();
    for row in &published.chronaki {
        if let Some(profile) = published.profile(&row.program) {
            let profile = change(profile);
            pairs.push(row.ratio, ratio(&profile, (&big, 1600.0), (&little, 800.0)));
        }
    }
    pairs
}

fn chronaki(published: &Published) -> String {
    let as_is = chronaki_pairs(published, Profile::clone);
    let beyond = chronaki_pairs(published, beyond_l2);
    let mut text = String::from(
        "### PARSEC on the Exynos 5422: Cortex-A15 at 1.6 GHz / Cortex-A7 at 800 MHz\n\n\
         Published: Chronaki et al. 2018, Table 1. The last two columns predict with the miss rates of a 512 KiB L2 on \
         both cores, as if the native input fitted neither L2; the profiles were measured with smaller inputs.\n\n\
         | program | published | predicted | error | input beyond both L2 | error |\n|---|---:|---:|---:|---:|---:|\n",
    );
    let mut index = 0;
    for row in &published.chronaki {
        let (program, ratio) = (&row.program, row.ratio);
        if published.profile(program).is_none() {
            writeln!(text, "| {program} | {ratio:.2} | no profile | | | |").unwrap();
            continue;
        }
        let (here, there) = (as_is.predicted[index], beyond.predicted[index]);
        let (here_error, there_error) = (error(here, ratio), error(there, ratio));
        writeln!(
            text,
            "| {program} | {ratio:.2} | {here:.2} | {here_error} | {there:.2} | {there_error} |"
        )
        .unwrap();
        index += 1;
    }
    write!(text, "\n{}\nInput beyond both L2: {}", as_is.summary(), beyond.summary()).unwrap();
    text
}

/// Workloads of the Exynos measurements and the profile that comes nearest.
const STAND_INS: [(&str, Option<&str>); 6] = [
    ("gzip-1", Some("dedup.compress")),
    ("gzip-5", Some("dedup.compress")),
    ("gzip-9", Some("dedup.compress")),
    ("hash", Some("dedup.deduplicate")),
    ("encrypt", None),
    ("decrypt", None),
];

fn exynos(published: &Published) -> String {
    let (big, little) = (published.core("cortex-a15"), published.core("cortex-a7"));
    let mut text = String::from(
        "### Small workloads on the Exynos 5422\n\n\
         Published: PARTSim, measured on an Odroid XU3. dedup.compress is zlib's deflate at level 6 on other data, \
         dedup.deduplicate is SHA-1 with some hash-table work; neither is the same program.\n\n\
         | workload | profile | MHz big / little | published | predicted | error |\n|---|---|---|---:|---:|---:|\n",
    );
    let mut pairs = Pairs::default();
    for (workload, profile) in STAND_INS {
        for (big_mhz, little_mhz) in [(1600.0, 800.0), (1400.0, 1400.0), (2000.0, 1400.0)] {
            let speed = |cluster, mhz| published.exynos_speed(cluster, mhz, workload);
            let measured = speed("big", big_mhz) / speed("little", little_mhz);
            write!(text, "| {workload} | {} | ", profile.unwrap_or("none")).unwrap();
            write!(text, "{big_mhz} / {little_mhz} | {measured:.2} | ").unwrap();
            if let Some(name) = profile {
                let profile = published.profile(name).expect("a shipped profile");
                let predicted = ratio(profile, (&big, big_mhz), (&little, little_mhz));
                pairs.push(measured, predicted);
                writeln!(text, "{predicted:.2} | {} |", error(predicted, measured)).unwrap();
            } else {
                text.push_str("| |\n");
            }
        }
    }
    write!(text, "\n{}", pairs.summary()).unwrap();
    text
}

fn frequencies(published: &Published) -> String {
    let profile = published.profile("dedup.compress").expect("a shipped profile");
    let mut text = String::from(
        "### Speed by frequency\n\n\
         gzip-5 on the Exynos 5422 (PARTSim) and dedup.compress, each relative to its own speed at the cluster's \
         highest frequency in the table.\n\n\
         | cluster | MHz | measured | predicted | error |\n|---|---:|---:|---:|---:|\n",
    );
    let mut pairs = Pairs::default();
    for (cluster, core, top) in [("big", "cortex-a15", 2000.0), ("little", "cortex-a7", 1400.0)] {
        let core = published.core(core);
        for row in published.exynos.iter().filter(|row| row.cluster == cluster && row.mhz < top) {
            let speed = |mhz| published.exynos_speed(cluster, mhz, "gzip-5");
            let measured = speed(row.mhz) / speed(top);
            let predicted = speed_ips(profile, &core, row.mhz) / speed_ips(profile, &core, top);
            pairs.push(measured, predicted);
            let (mhz, error) = (row.mhz, error(predicted, measured));
            writeln!(text, "| {cluster} | {mhz} | {measured:.3} | {predicted:.3} | {error} |")
                .unwrap();
        }
    }
    writeln!(text, "\nMean error {:.1} %.", 100.0 * pairs.mean_error()).unwrap();
    text
}

/// Below this share of floating-point and SIMD operations a program counts as integer code.
const INTEGER_SHARE: f64 = 0.05;

fn dhrystone(published: &Published) -> String {
    let mut text = String::from(
        "### Core part alone: speed per clock without misses\n\n\
         Linux states capacities per clock from Dhrystone, which fits any cache and predicts well. Predicted: the ratio of core parts over \
         the integer programs (less than 5 % floating-point and SIMD operations).\n\n\
         | cores | Dhrystone | predicted: geometric mean | error | lowest | highest |\n|---|---:|---:|---:|---|---|\n",
    );
    for (big_name, little_name, published_ratio) in &published.dhrystone {
        let (big, little) = (published.core(big_name), published.core(little_name));
        let profiles = &published.catalog.profiles().profiles;
        // Stages would count dedup and ferret twice.
        let integer = profiles
            .iter()
            .filter(|profile| profile.fp_simd < INTEGER_SHARE && !profile.name.contains('.'));
        let core = |profile: &Profile, core| cpi_stack(profile, core, 1000.0).core;
        let mut ratios: Vec<(f64, &str)> = integer
            .map(|profile| (core(profile, &little) / core(profile, &big), profile.name.as_str()))
            .collect();
        ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mean = geometric_mean(&ratios.iter().map(|(ratio, _)| *ratio).collect::<Vec<_>>());
        let error = error(mean, *published_ratio);
        let (lowest, highest) = (ratios[0], ratios[ratios.len() - 1]);
        let (low, high) = (
            format!("{:.2} ({})", lowest.0, lowest.1),
            format!("{:.2} ({})", highest.0, highest.1),
        );
        let cores = format!("{big_name} / {little_name}");
        writeln!(text, "| {cores} | {published_ratio:.2} | {mean:.2} | {error} | {low} | {high} |")
            .unwrap();
    }
    text
}

fn gem5(published: &Published) -> String {
    let shrink = |core: CoreParams| CoreParams { l2_kib: 1024.0, ..core };
    let (big, little) = (shrink(published.core("cortex-a15")), shrink(published.core("cortex-a7")));
    let mut text = String::from(
        "### gem5's Exynos 5 models at equal clocks\n\n\
         `ex5_big` / `ex5_LITTLE`, both at 1.6 GHz with 1 MiB of L2; first 100 million instructions of the SPEC CPU2006 \
         programs, while the profiles are whole runs of a descendant (libquantum) and a stand-in (mcf).\n\n\
         | program | simulated | predicted | error |\n|---|---:|---:|---:|\n",
    );
    for row in &published.gem5 {
        let profile = published.profile(&row.program).expect("a shipped profile");
        let predicted = ratio(profile, (&big, 1600.0), (&little, 1600.0));
        let (program, simulated, error) = (&row.program, row.ratio, error(predicted, row.ratio));
        writeln!(text, "| {program} | {simulated:.2} | {predicted:.2} | {error} |").unwrap();
    }
    text
}

fn native(published: &Published) -> String {
    let mut pairs = Pairs::default();
    for (program, cpi) in &published.native {
        let profile = published.profile(program).expect("a shipped profile");
        pairs.push(*cpi, cycles_per_instruction(profile, &ZEN4, ZEN4_MHZ));
    }
    let factors: Vec<f64> =
        pairs.predicted.iter().zip(&pairs.published).map(|(a, b)| a / b).collect();
    let mut order: Vec<usize> = (0..factors.len()).collect();
    order.sort_by(|a, b| factors[*a].total_cmp(&factors[*b]));
    let name = |index: &usize| {
        let (program, factor) = (&published.native[*index].0, factors[*index]);
        format!("{program} {factor:.2}")
    };
    let list = |indices: &[usize]| indices.iter().map(name).collect::<Vec<_>>().join(", ");
    format!(
        "### Native runs on the profiling computer (Zen 4)\n\n\
         Cycles per instruction of {} programs, measured natively and predicted from their profiles: the out-of-order \
         variant alone, on the very binaries that were profiled.\n\n{}\nPredicted / measured is lowest for {}, highest \
         for {}.\n",
        factors.len(),
        pairs.summary(),
        list(&order[..4]),
        list(&order[order.len() - 4..])
    )
}

fn colab(published: &Published) -> String {
    let (big, little) = (published.core("cortex-a57"), published.core("cortex-a53"));
    let mut text = String::from(
        "### What the COLAB machines get: Cortex-A57 at 2.0 GHz / Cortex-A53 at 1.2 GHz\n\n\
         Predictions; nothing is published to compare them with. Cycles per instruction and the parts of them.\n\n\
         | program | ratio | A57: CPI | core | branch | fetch | L2 | memory | A53: CPI | core | branch | fetch | L2 | memory |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for program in COLAB {
        let profile = published.profile(program).expect("a shipped profile");
        let speedup = ratio(profile, (&big, 2000.0), (&little, 1200.0));
        write!(text, "| {program} | {speedup:.2} |").unwrap();
        for (core, mhz) in [(&big, 2000.0), (&little, 1200.0)] {
            let stack = cpi_stack(profile, core, mhz);
            let parts = [stack.core, stack.branch, stack.fetch, stack.l2, stack.memory];
            write!(text, " {:.2} |", stack.total()).unwrap();
            parts.iter().for_each(|part| write!(text, " {part:.2} |").unwrap());
        }
        text.push('\n');
    }
    text
}

/// How much hangs on the one property that was not measured.
fn guesses(published: &Published) -> String {
    let mut text = String::from(
        "### What the unmeasured property is worth\n\n\
         Errors against Chronaki's table if the reach of a stride prefetcher were another one.\n\n\
         | prefetchable | mean error | median error |\n|---|---:|---:|\n",
    );
    let with = |prefetchable: f64| {
        chronaki_pairs(published, |profile| Profile { prefetchable, ..profile.clone() })
    };
    let rows = [
        ("as classified", chronaki_pairs(published, Profile::clone)),
        ("nothing", with(0.0)),
        ("half of all misses", with(0.5)),
        ("all misses", with(1.0)),
    ];
    for (name, pairs) in rows {
        let (mean, median) = (percent(pairs.mean_error()), percent(median(&pairs.errors())));
        writeln!(text, "| {name} | {mean} | {median} |").unwrap();
    }
    text
}
