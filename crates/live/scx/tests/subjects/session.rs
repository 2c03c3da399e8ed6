//! A session of the kernel back end on cores that are made up, with the kernel's table in this process.

use ampsched_computer::{CoreMap, Domain};
use ampsched_live_session::{
    CoreSettings, Means, RecordSettings, ScopeSettings, Session, Settings, Setup,
};
use ampsched_model::{InputError, Ns};
use ampsched_policy::{Needs, PELT_UNIT_NS};
use ampsched_scx::layout::{Op, Operation, Thread};
use ampsched_scx::native::Native;
use ampsched_scx::table::Cores;
use ampsched_scx::{KernelPlane, ScxError, lower};

/// Most threads at a time.
const THREADS_MAX: u32 = 10_000;

/// Cores of which the first half is fast.
pub fn cores(count: usize) -> CoreMap {
    let domain = |class: u8, first: usize| Domain {
        class,
        cpus: (first..first + count / 2).collect(),
        freqs_mhz: vec![1000],
        cpufreq: Vec::new(),
        relative_speed: None,
        power: Vec::new(),
    };
    CoreMap::new(vec![domain(1, 0), domain(0, count / 2)])
}

/// A session of a policy there, for everything.
pub fn session(policy: &str, cores: CoreMap) -> Session {
    let settings = Settings {
        policy: policy.to_owned(),
        param: Vec::new(),
        cores: CoreSettings::default(),
        backend: Means::Scx,
        degrade: true,
        allow_dvfs: false,
        facts: None,
        model: None,
        dilation: 1.0,
        scope: ScopeSettings { everything: true, ..ScopeSettings::default() },
        record: RecordSettings::default(),
    };
    let mut setup = Setup::new(settings).expect("settings for this computer");
    setup.cores = cores;
    Session::new(setup).expect("a session")
}

/// The kernel's interpreter and its table, and whoever lets something happen there.
pub struct Table<T> {
    pub native: Native,
    pub now_ns: Ns,
    /// What the last decisions were.
    pub applied: Vec<Operation>,
    pub host: T,
}

impl<T> Table<T> {
    /// Something happens, now.
    pub fn operate(&mut self, kind: Op, thread: u32, core: u32, a: u64) {
        let (now_ns, kind) = (self.now_ns, kind as u32);
        let mut operation = Operation { now_ns, a, kind, thread, core, ..Operation::default() };
        self.native.operate(std::slice::from_mut(&mut operation));
    }
}

impl<T: Default> KernelPlane for Table<T> {
    fn load(session: &Session) -> Result<Self, InputError> {
        let (rules, topology) = (session.driver.rules(), session.cores.topology());
        let lowered = lower::rules(&session.name, &Needs::default(), &rules, topology);
        let lowered = lowered.map_err(|why| InputError::new("policy", "", why.to_string()))?;
        let mut initial = lower::state(lowered, &rules, topology, THREADS_MAX);
        if let Some(how) = session.driver.needs().load_tracking {
            lower::track_load(&mut initial, how, topology, PELT_UNIT_NS);
        }
        let native = Native::new(&initial);
        Ok(Self { native, now_ns: 0, applied: Vec::new(), host: T::default() })
    }

    fn read_changed(&mut self, changed: &mut Vec<(u32, Thread)>) {
        self.native.read_changed(changed);
    }

    fn read_cores(&mut self, cores: &mut Cores) {
        self.native.read_cores(cores);
    }

    fn clock_ns(&self) -> Ns {
        self.now_ns
    }

    fn apply(&mut self, operations: &mut [Operation]) -> Result<(), ScxError> {
        self.native.operate(operations);
        self.applied.clear();
        self.applied.extend_from_slice(operations);
        Ok(())
    }
}
