//! The clock of the big cluster: five states, up and down by steps.

/// From when on a frequency counts as high.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum High {
    /// From the threshold on (the paper's text).
    AtThreshold,
    /// As in the authors' scripts: above the threshold if uniformity is reached, from 100 MHz below it on if
    /// it is not ("at least 10 % below" on their scale).
    AsPublished,
}

/// States of the clock by (uniformity, frequency).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// 1: both low. Raise.
    BothLow,
    /// 2: uniformity reached, frequency low, reached from below. Raise.
    FromBelow,
    /// 3: uniformity missed, frequency high. Lower.
    Unfair,
    /// 4: both high. Lower.
    BothHigh,
    /// 5: uniformity reached, frequency low, reached from above. Hold.
    Target,
}

/// The state machine of HFEE's Figure 4, completed from its text.
#[derive(Clone, Debug)]
pub struct Ladder {
    uniformity_min: f64,
    threshold_mhz: u32,
    step_mhz: u32,
    high: High,
    state: State,
}

impl Ladder {
    /// In state 1.
    pub fn new(uniformity_min: f64, threshold_mhz: u32, step_mhz: u32, high: High) -> Self {
        Self { uniformity_min, threshold_mhz, step_mhz, high, state: State::BothLow }
    }

    /// Back to state 1.
    pub fn restart(&mut self) {
        self.state = State::BothLow;
    }

    /// The state after the last step.
    #[cfg(test)]
    pub fn state(&self) -> State {
        self.state
    }

    /// Observes a uniformity at a frequency and returns the frequency to go to.
    pub fn step(&mut self, uniformity: f64, mhz: u32) -> u32 {
        let fair = uniformity >= self.uniformity_min;
        self.state = match (fair, self.is_high(mhz, fair)) {
            (false, false) => State::BothLow,
            (false, true) => State::Unfair,
            (true, true) => State::BothHigh,
            (true, false) => match self.state {
                State::BothLow | State::FromBelow => State::FromBelow,
                State::Unfair | State::BothHigh | State::Target => State::Target,
            },
        };
        match self.state {
            State::BothLow | State::FromBelow => mhz + self.step_mhz,
            State::Unfair | State::BothHigh => mhz.saturating_sub(self.step_mhz),
            State::Target => mhz,
        }
    }

    fn is_high(&self, mhz: u32, fair: bool) -> bool {
        match (self.high, fair) {
            (High::AtThreshold, _) => mhz >= self.threshold_mhz,
            (High::AsPublished, true) => mhz > self.threshold_mhz,
            (High::AsPublished, false) => mhz + 100 >= self.threshold_mhz,
        }
    }
}
