//! What settings come to on this computer.

use std::path::Path;

use ampsched_computer::{Capabilities, CoreMap, Evidence, Root};
use ampsched_live_driver::{Demand, Dilation, Facts};
use ampsched_live_factors::Instruments;
use ampsched_model::InputError;
use ampsched_model::limits::DESCRIPTION_BYTES_MAX;

use crate::policy_text::{self, Named};
use crate::{Identity, Scope, Settings, instruments, tell, whole_file};

/// What a session is made of. Making one reads, and touches nothing.
pub struct Setup {
    /// What is wanted.
    pub settings: Settings,
    /// The policy.
    pub policy: Named,
    /// The machine.
    pub cores: CoreMap,
    /// How it is known which cores are fast.
    pub evidence: Evidence,
    /// What the kernel offers, and what can be counted.
    pub capabilities: Capabilities,
    /// Counters of threads.
    pub instruments: Instruments,
    /// What was measured of programs beforehand.
    pub facts: Facts,
    /// How much slower than real time the policy's time passes.
    pub dilation: Dilation,
    /// Which threads are scheduled; none: all that run here.
    pub scope: Option<Scope>,
    /// As whom the command runs; none: as the session does.
    pub identity: Option<Identity>,
    /// What the policy asks for and does not get by the chosen means.
    pub lacks: Vec<Demand>,
}

impl Setup {
    /// What settings come to here.
    ///
    /// # Errors
    ///
    /// A setting is wrong: the message names it.
    pub fn new(settings: Settings) -> Result<Self, InputError> {
        let root = Root::default();
        let policy = policy_text::build(&settings.policy, &settings.param)?;
        let (cores, evidence) = settings.cores.detect(&root)?;
        let mut capabilities = Capabilities::detect(&root);
        let (needs, model) = (policy.policy.needs(), settings.model.as_deref());
        let instruments = instruments::start(&root, &cores, &needs, model)?;
        capabilities.counts_instructions = instruments.counts_instructions();
        capabilities.counts_stalls = instruments.tells_stalls();
        let dilation = Dilation::new(settings.dilation)?;
        let facts = read_facts(settings.facts.as_deref())?;
        let scope = Scope::of(&settings.scope, &root)?;
        let identity = Identity::of(&settings.scope)?;
        let lacks = Vec::new();
        Ok(Self {
            settings,
            policy,
            cores,
            evidence,
            capabilities,
            instruments,
            facts,
            dilation,
            scope,
            identity,
            lacks,
        })
    }

    /// Says for people what is about to run, on what, and what it does not get.
    pub fn announce(&self, program: &str) {
        let (policy, cores) = (&self.policy.text, self.cores.describe());
        tell(program, format_args!("{policy} on {cores} ({})", self.evidence));
        if self.cores.class_count() == 1 {
            tell(
                program,
                "all cores count as alike, so most policies have nothing to decide: state classes by --big and \
                 --little",
            );
        }
        for demand in &self.lacks {
            let how = if demand.is_essential { "DEGRADED" } else { "note" };
            tell(program, format_args!("{how}: it {}; here: {}", demand.what, demand.instead));
        }
        if let Some(identity) = &self.identity {
            let words = &identity.words;
            tell(program, format_args!("the command runs as {words}; --user root keeps root"));
        }
    }
}

fn read_facts(file: Option<&Path>) -> Result<Facts, InputError> {
    let Some(file) = file else { return Ok(Facts::default()) };
    let name = file.display().to_string();
    let text = whole_file::read(file, DESCRIPTION_BYTES_MAX)?;
    Facts::parse(&name, &text)
}
