//! A recording as a program of a catalogue.

use std::sync::{Arc, OnceLock};

use ampsched_model::{InputError, MadeProgram, Op, ProfileLibrary, Program, parse_program};

use super::{Options, SPREAD_MAX, Sharing, replay};
use crate::interactive::interactive;
use crate::lift::{self, Lifted};
use crate::{Kind, Recording, Thread};

/// Of the shipped profiles the one whose speed-up is nearest to the median of all, on 2B2S, exynos5422, pixel and
/// hybrid-8P16E: what a program is taken for of which nothing is known but its times.
pub const TYPICAL_PROFILE: &str = "ferret";

/// Parameters and their defaults, unless others are set: how many times as fast the code is on the fastest kind of core
/// as on the slowest (0: as the profile is); the speed of the machine's fastest core by that of the recording
/// computer's; the number of what threads share; by how much each piece of work varies.
const PARAMS: [(&str, f64); 4] =
    [("speedup", 0.0), ("speed", 1.0), ("sharing", 1.0), ("spread", 0.0)];
const SPEEDUP_MAX: f64 = 50.0;
const SPEED_MAX: f64 = 1000.0;

/// A recording that is replayed when somebody asks for its program.
#[derive(Debug)]
pub struct Replayed {
    file: String,
    recording: Arc<Recording>,
    description: String,
    like: String,
    params: [(&'static str, f64); 4],
    /// Found when somebody asks.
    notes: OnceLock<Vec<String>>,
    lifted: OnceLock<Option<Lifted>>,
}

impl Replayed {
    /// The recording of a file, whose code behaves like a profile.
    pub fn new(file: &str, recording: Arc<Recording>, like: &str) -> Self {
        let description = format!("replay of a recording: {}", recording.info.command.join(" "));
        let (file, like) = (file.to_owned(), like.to_owned());
        let (notes, lifted) = (OnceLock::new(), OnceLock::new());
        Self { file, recording, description, like, params: PARAMS, notes, lifted }
    }

    /// The same with other defaults of its speed-up and of how much pieces of work vary.
    #[must_use]
    pub fn with_defaults(mut self, speedup: f64, spread: f64) -> Self {
        (self.params[0].1, self.params[3].1) = (speedup, spread);
        self
    }

    /// The program in which threads take jobs anew, if that is asked for and they do. OpenMP's chunks are taken anew by
    /// a replay.
    fn shared(&self, sharing: Sharing) -> Option<&Lifted> {
        // Who is free takes jobs of threads that are alike, which those are not that ask for different things.
        let asks = |thread: &Thread| thread.prio.is_some() || !thread.asks.is_none();
        if sharing != Sharing::HandedOut || self.recording.threads.iter().any(asks) {
            return None;
        }
        let lifted = self.lifted.get_or_init(|| {
            let mut events = self.recording.threads.iter().flat_map(|thread| &thread.events);
            let options = lift::Options { like: self.like.clone(), ..lift::Options::default() };
            let has_chunks = events.any(|event| event.kind == Kind::OmpChunk);
            if has_chunks || interactive(&self.recording).is_some() {
                None
            } else {
                lift::lift_shared(&self.recording, &options)
            }
        });
        lifted.as_ref()
    }

    /// A lifted program's text as this recording's program.
    fn lifted(
        &self,
        toml: &str,
        options: &Options,
        profiles: &ProfileLibrary,
    ) -> Result<Program, InputError> {
        let mut program = parse_program(&self.file, toml)?.instantiate(&[], profiles)?;
        program.name.clone_from(&self.recording.info.name);
        program.description.clone_from(&self.description);
        for profile in &mut program.profiles {
            profile.measured_ratio = options.profile.measured_ratio;
        }
        for op in &mut program.code {
            if let Op::Run { reference_ns, .. } = op {
                *reference_ns = reference_ns.times(1.0 / options.speed);
            }
        }
        options.vary(&mut program.code);
        Ok(program)
    }
}

impl MadeProgram for Replayed {
    fn description(&self) -> &str {
        &self.description
    }

    fn params(&self) -> &[(&'static str, f64)] {
        &self.params
    }

    fn make(
        &self,
        params: &[(String, f64)],
        profiles: &ProfileLibrary,
    ) -> Result<Program, InputError> {
        let value = |place: usize| {
            let (name, default) = self.params[place];
            params
                .iter()
                .rev()
                .find(|(param, _)| param == name)
                .map_or(default, |(_, value)| *value)
        };
        let error = |key: &str, message: String| InputError::new(&self.file, key, message);
        let (speedup, speed, sharing, spread) = (value(0), value(1), value(2), value(3));
        if speedup != 0.0 && !(1.0..=SPEEDUP_MAX).contains(&speedup) {
            let message = format!("{speedup} is not within 1 to {SPEEDUP_MAX}");
            return Err(error("speedup", message).with_hint("0: as the profile says"));
        }
        if !(speed > 0.0 && speed <= SPEED_MAX) {
            return Err(error("speed", format!("{speed} is not above 0 and at most {SPEED_MAX}")));
        }
        let numbered = (0..).zip(Sharing::ALL).find(|(number, _)| f64::from(*number) == sharing);
        let Some((_, sharing)) = numbered else {
            return Err(error("sharing", format!("{sharing} is no whole number from 0 to 6")));
        };
        if !(0.0..=SPREAD_MAX).contains(&spread) {
            return Err(error("spread", format!("{spread} is not within 0 to {SPREAD_MAX}")));
        }
        let found = profiles.find(&self.like);
        let mut profile =
            found.ok_or_else(|| error("", format!("unknown profile \"{}\"", self.like)))?.clone();
        if speedup > 0.0 {
            profile.measured_ratio = Some(speedup);
        }
        let options = Options { profile, speed, sharing, spread };
        match self.shared(sharing) {
            Some(lifted) => self.lifted(&lifted.toml, &options, profiles),
            None => Ok(replay(&self.recording, &options).program),
        }
    }

    fn notes(&self) -> &[String] {
        self.notes.get_or_init(|| match self.shared(Sharing::HandedOut) {
            Some(lifted) => {
                let takers = lifted.report.takers().count();
                vec![format!("jobs of {takers} threads are taken by who is free")]
            }
            None => {
                let options = Options { sharing: Sharing::HandedOut, ..Options::default() };
                replay(&self.recording, &options).notes
            }
        })
    }
}
