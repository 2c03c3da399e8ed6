//! Leakage by voltage and temperature.

/// 0 degrees Celsius in kelvin.
const ZERO_CELSIUS_K: f64 = 273.15;

/// Leakage power of a block: `P = P0 V/V0 e^(a (V - V0)) (T/T0)^2 e^(b (1/T0 - 1/T))`, T in kelvin.
///
/// Sub-threshold current grows with T^2 e^(-b/T) (Bhat, Singla, Unver and Ogras, IEEE TVLSI 26, 2018,
/// for the Exynos 5422) and, by drain-induced barrier lowering, exponentially with the voltage (Liao,
/// He and Lepak, IEEE TCAD 24, 2005).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leakage {
    /// Power P0 in mW at the reference voltage and temperature.
    pub reference_mw: f64,
    /// Reference voltage V0 in V.
    pub reference_volt: f64,
    /// Reference temperature T0 in degrees Celsius.
    pub reference_c: f64,
    /// Growth of the current with the voltage, a, in 1/V.
    pub per_volt: f64,
    /// Growth of the current with the temperature, b, in K; 0 if it is not known.
    pub kelvin: f64,
}

impl Default for Leakage {
    /// No leakage.
    fn default() -> Self {
        Self {
            reference_mw: 0.0,
            reference_volt: 1.0,
            reference_c: 25.0,
            per_volt: 0.0,
            kelvin: 0.0,
        }
    }
}

impl Leakage {
    /// Power in mW at a voltage in V and a temperature in degrees Celsius above absolute zero.
    #[inline]
    pub fn power_mw(&self, volt: f64, celsius: f64) -> f64 {
        self.power_at_reference_mw(volt) * self.temperature_factor(celsius)
    }

    /// Power in mW at a voltage in V and the reference temperature.
    pub fn power_at_reference_mw(&self, volt: f64) -> f64 {
        if self.reference_mw == 0.0 {
            return 0.0;
        }
        self.reference_mw * self.voltage_factor(volt)
    }

    /// Power at a voltage relative to that at the reference voltage.
    pub fn voltage_factor(&self, volt: f64) -> f64 {
        let excess = volt - self.reference_volt;
        volt / self.reference_volt * (self.per_volt * excess).exp()
    }

    /// Power at a temperature relative to that at the reference temperature; 1 at any temperature if
    /// the growth is not known (`kelvin` is 0).
    pub fn temperature_factor(&self, celsius: f64) -> f64 {
        if self.kelvin == 0.0 {
            return 1.0;
        }
        let (t, t0) = (celsius + ZERO_CELSIUS_K, self.reference_c + ZERO_CELSIUS_K);
        (t / t0).powi(2) * (self.kelvin * (1.0 / t0 - 1.0 / t)).exp()
    }
}
