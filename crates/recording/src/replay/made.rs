//! A recording as a program of a catalogue.

use std::sync::{Arc, OnceLock};

use ampsched_model::{InputError, MadeProgram, ProfileLibrary, Program};

use super::{Options, replay};
use crate::Recording;

/// Of the shipped profiles the one whose speed-up is nearest to the median of all, on 2B2S, exynos5422, pixel and
/// hybrid-8P16E: what a program is taken for of which nothing is known but its times.
pub const TYPICAL_PROFILE: &str = "ferret";

/// Parameters: how many times as fast the code is on the fastest kind of core as on the slowest (0: as the profile is);
/// the speed of the machine's fastest core by that of the recording computer's; 1 to balance what threads do together.
const PARAMS: [(&str, f64); 3] = [("speedup", 0.0), ("speed", 1.0), ("balanced", 0.0)];
const SPEEDUP_MAX: f64 = 50.0;
const SPEED_MAX: f64 = 1000.0;

/// A recording that is replayed when somebody asks for its program.
#[derive(Debug)]
pub struct Replayed {
    file: String,
    recording: Arc<Recording>,
    description: String,
    like: String,
    /// Found when somebody asks.
    notes: OnceLock<Vec<String>>,
}

impl Replayed {
    /// The recording of a file, whose code behaves like a profile.
    pub fn new(file: &str, recording: Arc<Recording>, like: &str) -> Self {
        let description = format!("replay of a recording: {}", recording.info.command.join(" "));
        let (file, like) = (file.to_owned(), like.to_owned());
        Self { file, recording, description, like, notes: OnceLock::new() }
    }
}

impl MadeProgram for Replayed {
    fn description(&self) -> &str {
        &self.description
    }

    fn params(&self) -> &[(&'static str, f64)] {
        &PARAMS
    }

    fn make(
        &self,
        params: &[(String, f64)],
        profiles: &ProfileLibrary,
    ) -> Result<Program, InputError> {
        let value = |place: usize| {
            let (name, default) = PARAMS[place];
            params
                .iter()
                .rev()
                .find(|(param, _)| param == name)
                .map_or(default, |(_, value)| *value)
        };
        let error = |key: &str, message: String| InputError::new(&self.file, key, message);
        let (speedup, speed, balanced) = (value(0), value(1), value(2));
        if speedup != 0.0 && !(1.0..=SPEEDUP_MAX).contains(&speedup) {
            let message = format!("{speedup} is not within 1 to {SPEEDUP_MAX}");
            return Err(error("speedup", message).with_hint("0: as the profile says"));
        }
        if !(speed > 0.0 && speed <= SPEED_MAX) {
            return Err(error("speed", format!("{speed} is not above 0 and at most {SPEED_MAX}")));
        }
        if balanced != 0.0 && balanced != 1.0 {
            return Err(error("balanced", format!("{balanced} is neither 0 nor 1")));
        }
        let found = profiles.find(&self.like);
        let mut profile =
            found.ok_or_else(|| error("", format!("unknown profile \"{}\"", self.like)))?.clone();
        if speedup > 0.0 {
            profile.measured_ratio = Some(speedup);
        }
        let options = Options { profile, speed, is_balanced: balanced == 1.0 };
        Ok(replay(&self.recording, &options).program)
    }

    fn notes(&self) -> &[String] {
        self.notes.get_or_init(|| replay(&self.recording, &Options::default()).notes)
    }
}
