//! What every program says for `--version`, behind its name: the version and how it was built.

/// How it was built: the commit if the build was told one (`AMPSCHED_COMMIT`), cargo's profile, the target, as in
/// `35a49286c1d2, release, x86_64-unknown-linux-gnu`.
pub const BUILD: &str = env!("AMPSCHED_BUILD");

/// The version and, in parentheses, the build.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("AMPSCHED_BUILD"), ")");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_begins_with_the_number_and_names_the_target() {
        assert!(VERSION.starts_with(concat!(env!("CARGO_PKG_VERSION"), " (")));
        assert!(BUILD.contains(std::env::consts::ARCH), "{BUILD}");
        assert!(VERSION.ends_with(&format!("({BUILD})")));
    }
}
