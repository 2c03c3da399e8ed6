//! European call options by the formula of Black and Scholes (1973): one plain parallel loop.

mod common;

use std::process::ExitCode;

use ampsched_model::Draw;

/// An option on a share that pays no dividend.
struct Stake {
    price: f64,
    strike: f64,
    rate: f64,
    volatility: f64,
    years: f64,
}

/// The standard normal distribution (Abramowitz and Stegun, 26.2.17: error below 7.5e-8).
fn normal_cdf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let polynomial = t
        * (0.319_381_530
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    let tail = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial;
    if x < 0.0 { tail } else { 1.0 - tail }
}

fn call(stake: &Stake) -> f64 {
    let Stake { price, strike, rate, volatility, years } = *stake;
    let spread = volatility * years.sqrt();
    let d1 = ((price / strike).ln() + (rate + volatility * volatility / 2.0) * years) / spread;
    price * normal_cdf(d1) - strike * (-rate * years).exp() * normal_cdf(d1 - spread)
}

fn main() -> ExitCode {
    common::main("black_scholes", 4_000_000, |example| {
        // Hull, Options, Futures and Other Derivatives: 42, strike 40, 10 %, 20 %, half a year: 4.76.
        let hull = Stake { price: 42.0, strike: 40.0, rate: 0.1, volatility: 0.2, years: 0.5 };
        assert!((call(&hull) - 4.76).abs() < 0.005);
        let mut random = Draw::new(1);
        let mut between = |low: f64, high: f64| low + (high - low) * random.uniform();
        let stakes: Vec<Stake> = (0..example.size)
            .map(|_| Stake {
                price: between(10.0, 100.0),
                strike: between(10.0, 100.0),
                rate: between(0.0, 0.1),
                volatility: between(0.1, 0.6),
                years: between(0.1, 2.0),
            })
            .collect();
        let (expected, prices) = example.compare(
            || stakes.iter().map(call).collect::<Vec<f64>>(),
            |runtime| {
                let mut prices = vec![0.0; stakes.len()];
                runtime.for_each_mut(&mut prices, |first, part| {
                    for (price, stake) in part.iter_mut().zip(&stakes[first..]) {
                        *price = call(stake);
                    }
                });
                Ok(prices)
            },
        )?;
        assert!(prices == expected, "the same prices");
        println!("mean price {:.4}", prices.iter().sum::<f64>() / prices.len() as f64);
        Ok(())
    })
}
