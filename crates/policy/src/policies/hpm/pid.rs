//! A PID controller whose output is kept within limits.

/// What a controller multiplies errors with.
#[derive(Clone, Copy, Debug)]
pub struct Gains {
    /// Of the error.
    pub p: f64,
    /// Of its integral, in 1/s.
    pub i_per_s: f64,
    /// Of its derivative, in s.
    pub d_s: f64,
}

/// A controller in the form that adds to its output, so that limits do not wind it up:
/// u += Kp (e - e1) + Ki e dt + Kd (e - 2 e1 + e2) / dt.
#[derive(Clone, Copy, Debug)]
pub struct Pid {
    gains: Gains,
    /// Least and greatest output.
    limits: (f64, f64),
    output: f64,
    /// The last error and the one before; none before there was one.
    errors: Option<(f64, f64)>,
}

impl Pid {
    /// A controller that has had no error yet.
    pub fn new(gains: Gains, limits: (f64, f64), output: f64) -> Self {
        Self { gains, limits, output, errors: None }
    }

    /// Its output.
    pub fn output(&self) -> f64 {
        self.output
    }

    /// The output after a time in s at the end of which the error is this; before the first one it is taken
    /// to have been the same.
    pub fn step(&mut self, error: f64, time_s: f64) -> f64 {
        let (last, before) = self.errors.unwrap_or((error, error));
        let Gains { p, i_per_s, d_s } = self.gains;
        let change = p * (error - last)
            + i_per_s * error * time_s
            + d_s * (error - 2.0 * last + before) / time_s;
        self.errors = Some((error, last));
        self.output = (self.output + change).clamp(self.limits.0, self.limits.1);
        self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_those_of_the_formula() {
        let gains = Gains { p: 0.5, i_per_s: 2.0, d_s: 0.01 };
        let mut pid = Pid::new(gains, (-10.0, 10.0), 1.0);
        // 2 x 0.4 x 0.1; then 0.5 x -0.2 + 2 x 0.2 x 0.1 + 0.01 x -0.2 / 0.1;
        // then 0.5 x -0.2 + 0 + 0.01 x 0 / 0.1.
        let outputs = [0.4, 0.2, 0.0].map(|error| pid.step(error, 0.1));
        for (output, expected) in outputs.into_iter().zip([1.08, 1.0, 0.9]) {
            assert!((output - expected).abs() < 1e-12, "{outputs:?}");
        }
    }

    #[test]
    fn limits_do_not_wind_up() {
        let gains = Gains { p: 0.0, i_per_s: 1.0, d_s: 0.0 };
        let mut pid = Pid::new(gains, (0.0, 1.0), 0.5);
        for _ in 0..100 {
            pid.step(1.0, 1.0);
        }
        assert_eq!(pid.output(), 1.0);
        assert_eq!(pid.step(-0.25, 1.0), 0.75, "it returns at once");
        assert_eq!(pid.step(-5.0, 1.0), 0.0);
    }
}
