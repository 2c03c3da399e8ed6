//! What sessions in tests have in common.

use ampsched_live_session::{CoreSettings, Means, RecordSettings, ScopeSettings, Settings};

/// A session of a command under a policy, on this computer's cores and with nothing else asked for.
pub fn settings(policy: &str, command: Vec<String>, record: RecordSettings) -> Settings {
    Settings {
        policy: policy.to_owned(),
        param: Vec::new(),
        cores: CoreSettings::default(),
        backend: Means::Auto,
        degrade: false,
        allow_dvfs: false,
        facts: None,
        model: None,
        dilation: 1.0,
        scope: ScopeSettings { command, ..ScopeSettings::default() },
        record,
    }
}
