//! Loop schedules: how many iterations of a pool who takes some gets at once.

/// A loop schedule. The first three are OpenMP's (5.2, section 11.5.3), as libgomp has them; the others are those of
/// asymmetric iteration distribution, AID (Saez, Castro, Prieto-Matias, ICPP 2020, arXiv 2402.07664).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Schedule {
    /// Every participant one block, all equally long; the first to come get the longer ones if they cannot be.
    Static,
    /// Always a chunk.
    #[default]
    Dynamic,
    /// An equal part of what is left, at least a chunk.
    Guided,
    /// First everyone a chunk, of which the time is taken, and chunks until all have done that; then each one block, so
    /// that all of its iterations are in proportion to the speed of its kind of core. Of what rounding leaves, chunks.
    AidStatic,
    /// The same for four fifths of all iterations; the rest in chunks.
    AidHybrid,
}

impl Schedule {
    /// All of them, OpenMP's first.
    pub const ALL: [Self; 5] =
        [Self::Static, Self::Dynamic, Self::Guided, Self::AidStatic, Self::AidHybrid];

    /// The word for it in files and messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Dynamic => "dynamic",
            Self::Guided => "guided",
            Self::AidStatic => "aid-static",
            Self::AidHybrid => "aid-hybrid",
        }
    }

    /// The schedule of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|schedule| schedule.word() == word)
    }

    /// The part of all iterations that asymmetric shares divide; none if it has no such shares. The four fifths are
    /// ours: the paper leaves that number to the user.
    pub fn asymmetric_part(self) -> Option<f64> {
        match self {
            Self::AidStatic => Some(1.0),
            Self::AidHybrid => Some(0.8),
            Self::Static | Self::Dynamic | Self::Guided => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ObjectKind, ProfileLibrary, parse_program};

    /// The schedule of a pool that is declared with these keys, or what is wrong with them.
    fn declared(keys: &str) -> Result<Schedule, String> {
        let text = format!(
            "[pools.p]\ntotal = 9\n{keys}\n[[threads]]\nname = \"t\"\nbody = [{{ dynamic = \"p\", body = [] }}]\n"
        );
        let program = parse_program("p.toml", &text)
            .and_then(|program| program.instantiate(&[], &ProfileLibrary::default()))
            .map_err(|error| error.to_string())?;
        let ObjectKind::Pool { schedule, .. } = program.objects[0].kind else { panic!("a pool") };
        Ok(schedule)
    }

    #[test]
    fn pools_state_their_schedule_by_its_word() {
        assert_eq!(declared(""), Ok(Schedule::Dynamic));
        for schedule in Schedule::ALL {
            assert_eq!(declared(&format!("schedule = \"{}\"", schedule.word())), Ok(schedule));
        }
    }

    #[test]
    fn what_is_no_schedule_and_chunks_of_a_static_one_are_refused() {
        let error = declared("schedule = \"guidde\"").unwrap_err();
        assert!(error.contains("guidde") && error.contains("guided"), "{error}");
        let error = declared("chunk = 2\nschedule = \"static\"").unwrap_err();
        assert!(
            error.contains("p.toml:3: pools.p.chunk: a static schedule has no chunks"),
            "{error}"
        );
        assert_eq!(declared("chunk = 2\nschedule = \"aid-static\""), Ok(Schedule::AidStatic));
    }
}
