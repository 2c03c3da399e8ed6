//! What was measured of programs beforehand, from a file.

use std::collections::BTreeMap;

use ampsched_computer::path_page::TELL_PATHS;
use ampsched_model::{InputError, Ns};
use ampsched_policy::{Factor, FactorKind, Factors, Needs};
use serde::Deserialize;

/// What was measured of one program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramFacts {
    /// Speed on a core of the fastest class / on one of the slowest.
    pub speedup: Option<f64>,
    /// Instructions per s alone on a core of the fastest class at its highest frequency.
    pub alone_ips: Option<f64>,
    /// (Instructions per joule on the fastest class) / (the same on the slowest).
    pub energy_ratio: Option<f64>,
    /// Seconds for which all its threads together run, alone on cores of the fastest class.
    pub work_s: Option<f64>,
}

/// Facts of programs by the name of their command.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// By name, such as `ffmpeg`.
    #[serde(default)]
    pub programs: BTreeMap<String, ProgramFacts>,
}

impl Facts {
    /// Reads TOML: a table `[programs.NAME]` each. Errors: syntax, unknown keys, values not above 0.
    pub fn parse(file: &str, text: &str) -> Result<Self, InputError> {
        let facts: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            InputError { line, ..InputError::new(file, "", error.message()) }
        })?;
        for (name, program) in &facts.programs {
            for (key, value) in program.named() {
                if let Some(value) = value.filter(|value| !(value.is_finite() && *value > 0.0)) {
                    let key = format!("programs.{name}.{key}");
                    return Err(InputError::new(file, key, format!("{value} is not above 0")));
                }
            }
        }
        Ok(facts)
    }

    /// The factors of a program's threads: what the file says, else the ratio of the classes' speeds, which is
    /// the same for all.
    pub fn factors(&self, program: &str, speed_ratio: Option<f64>, now_ns: Ns) -> Factors {
        let known = self.programs.get(program).copied().unwrap_or_default();
        let factor = |value: Option<f64>, kind| {
            value.map_or(Factor::default(), |value| Factor { value, kind, at_ns: now_ns })
        };
        Factors {
            speedup: factor(known.speedup.or(speed_ratio), FactorKind::Predicted),
            offline_speedup: factor(known.speedup, FactorKind::Measured),
            alone_ips: factor(known.alone_ips, FactorKind::Measured),
            energy_ratio: factor(known.energy_ratio, FactorKind::Measured),
            work_ns: factor(known.work_s.map(|s| s * 1e9), FactorKind::Measured),
            ..Factors::default()
        }
    }
}

impl Facts {
    /// What a policy reads of threads and is not known here, or is known only of some, each in a sentence.
    pub fn missing(&self, needs: &Needs, speed_ratio: Option<f64>) -> Vec<String> {
        let known_of_some = |name: &str| {
            let knows = |program: &ProgramFacts| {
                program.named().iter().any(|(key, value)| *key == name && value.is_some())
            };
            self.programs.values().any(knows)
        };
        let mut missing = Vec::new();
        let mut say = |asked: bool, text: String| missing.extend(asked.then_some(text));
        let others = match known_of_some("speedup") {
            true => "speed-ups of programs that the facts do not name",
            false => "speed-ups",
        };
        say(
            needs.speedup,
            match speed_ratio {
                Some(ratio) => format!(
                    "{others} are not measured: all such threads count as gaining {ratio:.2}, the ratio of the classes' speeds"
                ),
                None => format!(
                    "{others} are missing: such threads count as gaining nothing (give --facts or --ratio)"
                ),
            },
        );
        let offline = needs.alone && !(known_of_some("alone_ips") && known_of_some("energy_ratio"));
        say(
            offline,
            "speeds alone and energy ratios are missing: programs count as equal (give --facts)"
                .to_owned(),
        );
        say(
            needs.work && !known_of_some("work_s"),
            "lengths of programs are missing: each counts by what it has done (give --facts)"
                .to_owned(),
        );
        say(
            needs.paths,
            format!(
                "paths of tasks are told only by programs on ampsched's task runtime with {TELL_PATHS}=1: threads of \
                 others count alike"
            ),
        );
        say(needs.blame, "blame is missing: no thread counts as waited for (it needs tracefs, mounted and writable)".to_owned());
        say(
            needs.instructions,
            "retired instructions are not counted: no thread counts as having got on".to_owned(),
        );
        say(needs.power, "power of threads is missing".to_owned());
        say(needs.stalls, "stall counters are missing".to_owned());
        missing
    }
}

impl ProgramFacts {
    fn named(&self) -> [(&'static str, Option<f64>); 4] {
        [
            ("speedup", self.speedup),
            ("alone_ips", self.alone_ips),
            ("energy_ratio", self.energy_ratio),
            ("work_s", self.work_s),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_make_factors() {
        let facts =
            Facts::parse("f", "[programs.mcf]\nspeedup = 2.1\nenergy_ratio = 1.8\nwork_s = 0.5\n")
                .unwrap();
        let factors = facts.factors("mcf", Some(1.5), 7);
        assert_eq!(factors.speedup.value, 2.1);
        assert_eq!(factors.offline_speedup.kind, FactorKind::Measured);
        assert_eq!((factors.energy_ratio.value, factors.energy_ratio.at_ns), (1.8, 7));
        assert_eq!(factors.work_ns.value, 5e8);
        assert_eq!(factors.alone_ips.kind, FactorKind::Missing);
        assert_eq!(facts.factors("other", Some(1.5), 7).speedup.value, 1.5);
        assert_eq!(facts.factors("other", None, 7).speedup.kind, FactorKind::Missing);
    }

    #[test]
    fn what_is_missing_is_said() {
        let facts = Facts::parse("f", "[programs.mcf]\nspeedup = 2.1\n").unwrap();
        let needs = Needs { speedup: true, blame: true, ..Needs::default() };
        let missing = facts.missing(&needs, None);
        assert!(
            missing[0].starts_with("speed-ups of programs that the facts do not name are missing")
        );
        assert!(missing[1].starts_with("blame is missing"));
        let missing = Facts::default().missing(&needs, Some(2.5));
        assert!(missing[0].contains("gaining 2.50"), "{missing:?}");
        assert_eq!(facts.missing(&Needs::default(), None), Vec::<String>::new());
        let missing = facts.missing(&Needs { work: true, ..Needs::default() }, None);
        assert!(missing[0].starts_with("lengths of programs are missing"), "{missing:?}");
        let missing = facts.missing(&Needs { paths: true, ..Needs::default() }, None);
        assert!(
            missing[0].contains("with AMPSCHED_TELL_PATHS=1: threads of others"),
            "{missing:?}"
        );
    }

    #[test]
    fn errors_name_line_key_and_value() {
        let error = Facts::parse("f.toml", "[programs.mcf]\nspedup = 2.1\n").unwrap_err();
        assert!(error.to_string().starts_with("f.toml:2: unknown field `spedup`"), "{error}");
        let error = Facts::parse("f.toml", "[programs.mcf]\nalone_ips = -1\n").unwrap_err();
        assert_eq!(error.to_string(), "f.toml: programs.mcf.alone_ips: -1 is not above 0");
    }
}
