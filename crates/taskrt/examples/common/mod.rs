//! What the examples share: options, errors, and the comparison with one thread.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use ampsched_taskrt::{Config, Cores, Error, Runtime};

/// Whatever may go wrong.
pub type Failed = Box<dyn std::error::Error>;

/// A runtime with the options of the command line.
pub struct Example {
    /// The runtime.
    pub runtime: Runtime,
    /// How much to compute.
    pub size: usize,
    record: Option<PathBuf>,
}

impl Example {
    fn parse(default_size: usize) -> Result<Self, Failed> {
        let (mut size, mut cores, mut policy, mut record) = (default_size, None, None, None);
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{name} lacks a value"))?;
            match name.as_str() {
                "--size" => {
                    let number = value.parse().ok().filter(|&size| size > 0);
                    size = number
                        .ok_or_else(|| format!("--size {value:?} is not a number above 0"))?;
                }
                "--cores" => cores = Some(Cores::parse(&value)?),
                "--policy" => policy = Some(value),
                "--record" => record = Some(PathBuf::from(value)),
                _ => {
                    let usage =
                        "--size N, --cores big=0-3;little=4-7, --policy NAME, --record FILE.csv";
                    return Err(format!("unknown option {name} (options: {usage})").into());
                }
            }
        }
        let mut config = Config::new(cores.map_or_else(Cores::detect, Ok)?);
        config.policy = policy.unwrap_or(config.policy);
        config.record = record.is_some();
        Ok(Self { runtime: Runtime::new(&config)?, size, record })
    }

    /// Times the sequential and the parallel way to a result.
    #[allow(dead_code)] // Each example compiles this file; not all compare in this way.
    pub fn compare<T>(
        &self,
        one: impl FnOnce() -> T,
        all: impl FnOnce(&Runtime) -> Result<T, Error>,
    ) -> Result<(T, T), Failed> {
        let start = Instant::now();
        let expected = one();
        let one_s = start.elapsed().as_secs_f64();
        let start = Instant::now();
        let result = all(&self.runtime)?;
        let all_s = start.elapsed().as_secs_f64();
        let workers = self.runtime.workers().len();
        println!(
            "one thread {one_s:.3} s, {workers} workers {all_s:.3} s: {:.2} times as fast",
            one_s / all_s
        );
        Ok((expected, result))
    }

    fn write_recording(&self) -> Result<(), Failed> {
        let Some(file) = &self.record else { return Ok(()) };
        if let Some(recording) = self.runtime.take_recording()? {
            std::fs::write(file, recording.write())?;
            println!("recording written to {}", file.display());
        }
        Ok(())
    }
}

/// Runs an example; what goes wrong is one line, and exit code 2.
pub fn main(
    name: &str,
    size: usize,
    body: impl FnOnce(&Example) -> Result<(), Failed>,
) -> ExitCode {
    let done = Example::parse(size).and_then(|example| {
        body(&example)?;
        example.write_recording()
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::from(2)
        }
    }
}
