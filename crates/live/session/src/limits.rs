//! Limits of this process (getrlimit(2)) that would end it before it could say why.

use std::fs;
use std::sync::Arc;

use ampsched_model::InputError;
use signal_hook::consts::SIGXFSZ;

/// Smallest stack with which programs that run policies begin, in bytes: three times what they were seen to need.
const STACK_MIN: u64 = 256 * 1024;

/// What such a program does first. From then on a file that becomes too long is an error like that of a full disk, not
/// the end; what the program executes knows nothing of it.
///
/// # Errors
///
/// The stack is too small: nothing has been done, and nothing may be.
pub fn check() -> Result<(), InputError> {
    let limits = fs::read("/proc/self/limits").unwrap_or_default();
    check_stack(&String::from_utf8_lossy(&limits))?;
    let registered = signal_hook::flag::register(SIGXFSZ, Arc::default());
    registered.map(drop).map_err(|error| InputError::new("signals", "", error.to_string()))
}

fn check_stack(limits: &str) -> Result<(), InputError> {
    let row = limits.lines().find_map(|line| line.strip_prefix("Max stack size"));
    let soft = row.and_then(|row| row.split_whitespace().next()?.parse::<u64>().ok());
    match soft.filter(|&bytes| bytes < STACK_MIN) {
        None => Ok(()),
        Some(bytes) => {
            let message = format!("a stack of {} KiB is too small", bytes / 1024);
            let hint = format!("it takes {} KiB: ulimit -s {}", STACK_MIN / 1024, 8192);
            Err(InputError::new("stack", "", message).with_hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h34_only_a_stack_that_is_known_to_be_too_small_is_refused() {
        let said = |limits: &str| check_stack(limits).map_err(|error| error.to_string());
        let row = |soft: &str| {
            format!("Limit Soft Hard Units\nMax stack size   {soft}  unlimited  bytes\n")
        };
        for fine in ["262144", "8388608", "unlimited", ""] {
            assert_eq!(said(&row(fine)), Ok(()), "{fine}");
        }
        assert_eq!(said(""), Ok(()), "it cannot be read");
        let small = said(&row("262143")).unwrap_err();
        assert_eq!(
            small,
            "stack: a stack of 255 KiB is too small (it takes 256 KiB: ulimit -s 8192)"
        );
    }
}
