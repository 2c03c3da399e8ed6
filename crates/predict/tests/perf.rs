//! Every form of `perf stat`'s output.

use ampsched_predict::{Reading, parse_perf};

fn rows<'a>(text: &'a str) -> Vec<Reading<'a>> {
    parse_perf("perf.csv", text).unwrap()
}

fn values(text: &str) -> Vec<(String, Option<f64>)> {
    rows(text).iter().map(|row| (row.counter.to_string(), row.value)).collect()
}

#[test]
fn plain_csv() {
    let text = "# started on Sat Nov 21 20:00:00 2026\n\n\
        1002.51,msec,task-clock:u,1002510000,100.00,0.998,CPUs utilized\n\
        3000000000,,cycles:u,1002510000,100.00,2.993,GHz\n\
        4500000000,,instructions:u,1002510000,100.00,1.50,insn per cycle\n\
        ,,,,,0.25,stalled cycles per insn\n\
        <not supported>,,L1-icache-load-misses:u,0,100.00,,\n";
    let expected = [
        ("task_clock_ns".to_owned(), Some(1_002_510_000.0)),
        ("cycles".to_owned(), Some(3e9)),
        ("instructions".to_owned(), Some(4.5e9)),
        ("l1i_misses".to_owned(), None),
    ];
    assert_eq!(values(text), expected);
    assert_eq!(rows(text)[0].unit, "ns");
}

#[test]
fn intervals_are_windows() {
    let text = "     0.100100000,1000,,cycles,100000000,100.00,,\n     0.100100000,900,,instructions,100000000,50.00,0.9,insn per cycle\n     0.200300000,2000,,cycles,100000000,100.00,,\n";
    let rows = rows(text);
    let found: Vec<_> = rows.iter().map(|row| (row.window, row.end_s, row.running_share)).collect();
    assert_eq!(found, [(0, Some(0.1001), 1.0), (0, Some(0.1001), 0.5), (1, Some(0.2003), 1.0)]);
    assert!((rows[2].duration_s.unwrap() - 0.1002).abs() < 1e-12);
}

#[test]
fn per_thread_per_core_and_per_cpu() {
    let text = "mcf-4711,1000,,cycles,5,100.00,,\n";
    assert_eq!((rows(text)[0].thread.as_ref(), rows(text)[0].core.as_ref()), ("mcf-4711", ""));
    for (text, core) in [
        ("CPU3,1000,,cycles,5,100.00,,\n", "CPU3"),
        ("S0-D0-C2,2,1000,,cycles,5,100.00,,\n", "S0-D0-C2"),
        ("1.000,S0-D0-C2,2,1000,,cycles,5,100.00,,\n", "S0-D0-C2"),
    ] {
        let row = &rows(text)[0];
        assert_eq!(
            (row.core.as_ref(), row.value, row.thread.as_ref()),
            (core, Some(1000.0), ""),
            "{text}"
        );
    }
}

#[test]
fn hybrid_processors_name_the_pmu() {
    let text = "1000,,cpu_core/cycles/,5,30.00,,\n2000,,cpu_atom/cycles/,5,70.00,,\n7,,cpu_core/event=0x3c,umask=0x0/,5,30.00,,\n";
    let rows = rows(text);
    let found: Vec<_> =
        rows.iter().map(|row| (row.core_type.as_ref(), row.counter.as_ref())).collect();
    let raw = "cpu_core/event=0x3c,umask=0x0/";
    assert_eq!(found, [("cpu_core", "cycles"), ("cpu_atom", "cycles"), ("cpu_core", raw)]);
    assert_eq!((rows[1].running_share, rows[2].unit.as_ref()), (0.7, "count"));
}

#[test]
fn other_separators() {
    for separator in [";", "\t", "|"] {
        let text = "1.5,CPU0,1000,,cycles,5,100.00,,".replace(',', separator);
        let row = &rows(&text)[0];
        assert_eq!((row.end_s, row.core.as_ref(), row.value), (Some(1.5), "CPU0", Some(1000.0)));
    }
}

#[test]
fn json_lines() {
    let text = concat!(
        r#"{"interval" : 1.5, "cpu" : "3", "counter-value" : "1000.000000", "unit" : "", "event" : "cpu_atom/cycles/", "event-runtime" : 99, "pcnt-running" : 60.00, "metric-value" : "0.9", "metric-unit" : "GHz"}"#,
        "\n",
        r#"{"interval" : 1.5, "thread" : "mcf-12", "counter-value" : "<not counted>", "unit" : "", "event" : "branch-misses", "event-runtime" : 0, "pcnt-running" : 0.00}"#,
        "\n",
        r#"{"interval" : 1.5, "metric-value" : "0.100000", "metric-unit" : "of all branches"}"#,
        "\n"
    );
    let rows = rows(text);
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].core.as_ref(), rows[0].core_type.as_ref()), ("3", "cpu_atom"));
    assert_eq!((rows[0].value, rows[0].running_share), (Some(1000.0), 0.6));
    assert_eq!((rows[1].thread.as_ref(), rows[1].value), ("mcf-12", None));
    assert_eq!(rows[1].counter, "branch_mispredicts");
}

#[test]
fn every_error_names_the_place() {
    for (text, expected) in [
        (
            "# nothing\n",
            "f: has no events (write it with: perf stat -x, -o FILE or perf stat -j -o FILE)",
        ),
        (
            "1000,,cycles,5,100.00,,\n2000,,inst",
            "f:2: \"2000,,inst\" is not a line of perf stat -x (the file may be truncated)",
        ),
        ("1000,,cycles,5,300.00,,\n", "f:1: 300 % of the time counted is not within 0 to 100"),
        ("-5,,cycles,5,100.00,,\n", "f:1: the count -5 is below 0 or not finite"),
        ("nan,,cycles,5,100.00,,\n", "f:1: the count NaN is below 0 or not finite"),
        ("-1,5,,cycles,5,100.00,,\n", "f:1: the time is not within 0 to 1e12 s"),
        (
            "{\"event\" : \"cyc",
            "f:1: is not a JSON object of perf stat -j: EOF while parsing a string at line 1 column 15 (the file may be truncated)",
        ),
        (
            "{\"event\" : \"cycles\", \"counter-value\" : \"12x\"}",
            "f:1: counter-value: \"12x\" is not a number",
        ),
        (",,,,,0.25,insn per cycle", "f: has metrics only, no events"),
    ] {
        assert_eq!(parse_perf("f", text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn h34_12_groups_of_metrics_are_left_out() {
    let text = "225,,context-switches,123456789,100.00,7.001,/sec\n\
        9,,cpu_atom/cycles/,123456789,54.00,0.008,GHz\n\
        ,123456789,100.00,,,,TopdownL1 (cpu_core)\n\
        ,,,,,,,15.6,%  tma_backend_bound\n";
    for prefix in ["", "1.5,", "S0,4,", "1.5,S0-D0-C2,2,"] {
        let text: String = text.lines().map(|line| format!("{prefix}{line}\n")).collect();
        let expected =
            [("context_switches".to_owned(), Some(225.0)), ("cycles".to_owned(), Some(9.0))];
        assert_eq!(values(&text), expected, "{prefix:?}");
    }
}

#[test]
fn h34_12_repetitions_have_a_variance() {
    let text = "4567890,,cycles,0.35%,1234000000,100.00,3.700,GHz\n<not counted>,,instructions,0.00%,0,0.00,,\n";
    assert_eq!(
        values(text),
        [("cycles".to_owned(), Some(4_567_890.0)), ("instructions".to_owned(), None)]
    );
    assert_eq!(rows(text)[0].running_share, 1.0);
}

#[test]
fn h34_12_decimal_commas_are_read_or_named() {
    let text = "0,5;1234,56;msec;task-clock;1234560000;100,00;0,998;CPUs utilized\n\
        0,5;4567890123;;cycles;1234000000;99,50;3,700;GHz\n";
    let expected = [
        ("task_clock_ns".to_owned(), Some(1_234_560_000.0)),
        ("cycles".to_owned(), Some(4_567_890_123.0)),
    ];
    assert_eq!(values(text), expected);
    assert_eq!((rows(text)[1].end_s, rows(text)[1].running_share), (Some(0.5), 0.995));
    for line in text.lines().map(|line| line.trim_start_matches("0,5;").replace(';', ",")) {
        assert_eq!(
            parse_perf("perf.csv", &line).unwrap_err().to_string(),
            "perf.csv:1: has decimal commas between commas (run perf with LC_ALL=C)"
        );
    }
    let json = r#"{"counter-value" : "12,500000", "unit" : "msec", "event" : "task-clock", "pcnt-running" : 100.00}"#;
    assert_eq!(values(json), [("task_clock_ns".to_owned(), Some(12.5e6))]);
}

#[test]
fn h34_12_a_comma_before_the_brace_is_no_harm() {
    let text = r#"{"counter-value" : "93112.000000", "unit" : "", "event" : "armv8_pmuv3_1/cycles/", "event-runtime" : 20699340, "pcnt-running" : 100.00, }"#;
    assert_eq!(values(text), [("cycles".to_owned(), Some(93112.0))]);
}

#[test]
fn h34_12_lines_that_were_cut_off_are_still_refused() {
    for line in
        ["4567890,,cycles,0.35%,1234000000", "12345,,cycles,12345", "1.5,CPU0,12345,,cyc", "12345"]
    {
        let error = parse_perf("perf.csv", line).unwrap_err().to_string();
        assert!(error.contains("may be truncated"), "{error}");
    }
}
