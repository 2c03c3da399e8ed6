use super::plant::Forecast;

/// T' = A T + B P with A = 0.9994, B = 0.875 K/W (HFEE's script), for a power in mW.
fn one_step(celsius: f64, power_mw: f64) -> Forecast {
    Forecast { free_c: vec![0.9994 * celsius], rise_k: vec![0.875e-3 * power_mw], power_mw }
}

/// Computed from the formula: (69 - 0.9994 T) / 0.875.
#[test]
fn budgets_are_those_of_the_formula() {
    for (celsius, budget_mw) in [(60.0, 10_326.86), (68.0, 1_189.49), (69.1, -66.90)] {
        let forecast = one_step(celsius, 2_000.0);
        assert!((forecast.budget_mw(69.0) - budget_mw).abs() < 0.01, "{celsius} {forecast:?}");
        assert_eq!(forecast.is_safe(69.0), budget_mw > 2_000.0);
    }
}

#[test]
fn the_node_with_the_least_room_sets_the_budget() {
    let forecast =
        Forecast { free_c: vec![40.0, 60.0, 50.0], rise_k: vec![5.0, 6.0, 0.0], power_mw: 3_000.0 };
    // 29 K at 5 K per 3 W; 9 K at 6 K per 3 W.
    assert_eq!(forecast.budget_mw(69.0), 4_500.0);
    assert!(!forecast.is_safe(65.0) && forecast.is_safe(66.0));
}

#[test]
fn no_power_heats_nothing_but_what_is_hot_stays_hot() {
    let forecast = |free_c| Forecast { free_c: vec![free_c], rise_k: vec![0.0], power_mw: 0.0 };
    assert!(forecast(68.0).is_safe(69.0) && !forecast(70.0).is_safe(69.0));
}
