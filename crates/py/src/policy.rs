//! Policies written in Python.
//!
//! The fast plane is that of a shipped policy, its base, with single rules replaced; the slow plane and
//! single decisions are methods of the Python object. An exception stops nothing at once: from then on
//! the rules alone decide, the simulation is interrupted, and the exception is raised instead of a result.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ampsched_model::{CoreId, Ns, ThreadId};
use ampsched_policy::{
    Event as PolicyEvent, Events, Hooks, LoadTracking, Needs, Pick as PolicyPick,
    Plan as PolicyPlan, Policy, Rules, Topology as PolicyTopology, View as PolicyView,
    build_policy,
};
use ampsched_sim::Interrupt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::rules::Overrides;
use crate::run::{Job, Purpose, run_one};
use crate::view::{CURRENT, Event, Pick, Plan, Topology, View};

/// Shortest slice that a Python policy may give; 0 would stop time.
const SLICE_NS_MIN: Ns = 1_000;

/// What a Python policy needs, as `ampsched.Policy` computes it from the methods that it overrides.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct PyNeeds {
    epoch_ns: Option<Ns>,
    load_tracking: Option<String>,
    lifecycle: bool,
    blocking: bool,
    dispatch: bool,
    place: bool,
    pick: bool,
    slice: bool,
    preempts: bool,
    work_conserving: bool,
}

impl From<PyNeeds> for Needs {
    fn from(needs: PyNeeds) -> Self {
        let PyNeeds { lifecycle, blocking, dispatch, place, pick, slice, preempts, .. } = needs;
        Self {
            speedup: true,
            holds: true,
            instructions: true,
            frequencies: true,
            blame: true,
            load_tracking: needs.load_tracking.map(|how| match how.as_str() {
                "by_work" => LoadTracking::ByWork,
                _ => LoadTracking::ByTime,
            }),
            epoch_ns: needs.epoch_ns,
            events: Events { lifecycle, blocking, dispatch },
            hooks: Hooks { place, pick, slice, preempts, fair: false },
            work_conserving: needs.work_conserving,
            ..Self::default()
        }
    }
}

/// The first exception of a simulation: of the policy's methods or a signal's handler.
type Failure = Arc<Mutex<Option<PyErr>>>;

fn lock(failure: &Failure) -> MutexGuard<'_, Option<PyErr>> {
    failure.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a simulation that has failed. The policy runs on the thread that was called, so signals are looked for there.
fn interrupt_on(failure: &Failure) -> Interrupt {
    let failure = Arc::clone(failure);
    Interrupt::new(move || {
        let mut failure = lock(&failure);
        if failure.is_none() {
            *failure = Python::attach(|py| py.check_signals()).err();
        }
        failure.is_some()
    })
}

struct PyPolicy {
    object: Py<PyAny>,
    view: Py<View>,
    base: Box<dyn Policy>,
    overrides: Overrides,
    needs: Needs,
    failure: Failure,
}

impl PyPolicy {
    /// Calls a method with the view set; `None` if it, or an earlier call, has failed.
    fn call<T>(
        &self,
        view: &PolicyView,
        run: impl FnOnce(Python<'_>, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let mut failure = lock(&self.failure);
        if failure.is_some() {
            return None;
        }
        match Python::attach(|py| CURRENT.set(*view, || run(py, self.object.bind(py)))) {
            Ok(value) => Some(value),
            Err(error) => {
                *failure = Some(error);
                None
            }
        }
    }

    /// Calls a method that writes a plan.
    fn call_with_plan(
        &self,
        view: &PolicyView,
        plan: &mut PolicyPlan,
        run: impl FnOnce(&Bound<'_, PyAny>, &Bound<'_, Plan>) -> PyResult<()>,
    ) {
        let core_count = view.topology().core_count();
        let changes = self.call(view, |py, object| {
            let python_plan = Bound::new(py, Plan { inner: std::mem::take(plan), core_count })?;
            run(object, &python_plan)?;
            Ok(std::mem::take(&mut python_plan.borrow_mut().inner))
        });
        *plan = changes.unwrap_or_default();
    }
}

/// The return value of a method, or an error that names the method.
fn returned<'py, T>(method: &str, wanted: &str, value: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    value.extract().map_err(|_| {
        let got =
            value.repr().map_or_else(|_| "something else".to_owned(), |repr| repr.to_string());
        PyTypeError::new_err(format!("{method} must return {wanted}, not {got}"))
    })
}

impl Policy for PyPolicy {
    fn needs(&self) -> Needs {
        self.needs
    }

    fn rules(&self, topology: &PolicyTopology) -> Rules {
        self.overrides.apply(self.base.rules(topology))
    }

    fn epoch(&mut self, view: &PolicyView, plan: &mut PolicyPlan) {
        self.call_with_plan(view, plan, |object, plan| {
            object.call_method1("epoch", (&self.view, plan)).map(drop)
        });
    }

    fn on_event(&mut self, view: &PolicyView, event: PolicyEvent, plan: &mut PolicyPlan) {
        self.view.get().tell(event_thread(event));
        self.call_with_plan(view, plan, |object, plan| {
            object.call_method1("on_event", (&self.view, Event::from(event), plan)).map(drop)
        });
    }

    fn place(&mut self, view: &PolicyView, thread: ThreadId) -> CoreId {
        self.view.get().tell(thread);
        let core = self.call(view, |_, object| {
            let core: u16 = returned(
                "place",
                "a core",
                &object.call_method1("place", (&self.view, thread.0))?,
            )?;
            Ok(CoreId(core))
        });
        core.unwrap_or_else(|| view.by_rules_place(thread))
    }

    fn pick(&mut self, view: &PolicyView, core: CoreId) -> PolicyPick {
        let pick = self.call(view, |_, object| {
            let value = object.call_method1("pick", (&self.view, core.0))?;
            let pick = value
                .cast::<Pick>()
                .map_err(|_| PyTypeError::new_err("pick must return a Pick"))?;
            Ok(pick.get().inner)
        });
        pick.unwrap_or_else(|| view.by_rules_pick(core))
    }

    fn slice(&mut self, view: &PolicyView, thread: ThreadId, core: CoreId) -> Ns {
        let slice_ns = self.call(view, |_, object| {
            let value = object.call_method1("slice_ns", (&self.view, thread.0, core.0))?;
            let slice_ns: Ns = returned("slice_ns", "a whole number of ns", &value)?;
            if slice_ns < SLICE_NS_MIN {
                let text =
                    format!("slice_ns must return at least {SLICE_NS_MIN} ns, not {slice_ns}");
                return Err(PyValueError::new_err(text));
            }
            Ok(slice_ns)
        });
        slice_ns.unwrap_or_else(|| view.by_rules_slice(thread, core))
    }

    fn preempts(
        &mut self,
        view: &PolicyView,
        woken: ThreadId,
        running: ThreadId,
        core: CoreId,
    ) -> bool {
        let preempts = self.call(view, |_, object| {
            let value =
                object.call_method1("preempts", (&self.view, woken.0, running.0, core.0))?;
            returned("preempts", "True or False", &value)
        });
        preempts.unwrap_or_else(|| view.by_rules_preempts(woken, running, core))
    }
}

fn event_thread(event: PolicyEvent) -> ThreadId {
    use PolicyEvent as E;
    match event {
        E::Added(thread) | E::Woken(thread, _) | E::Blocked(thread) => thread,
        E::Started(thread, _) | E::Stopped(thread, _) | E::Exited(thread) => thread,
    }
}

/// Runs one job under a policy object; the job's policy is its label.
///
/// `base` and `base_params` name the shipped policy whose rules it uses, `rules` replaces single ones,
/// `needs` says which methods are to be called.
#[pyfunction]
#[pyo3(signature = (job, policy, base, base_params, rules, needs, purpose=None))]
#[allow(clippy::too_many_arguments)] // one call, from ampsched.Policy
pub fn simulate_python(
    py: Python<'_>,
    job: &Job,
    policy: Bound<'_, PyAny>,
    base: &str,
    base_params: Vec<(String, f64)>,
    rules: &Bound<'_, PyDict>,
    needs: &Bound<'_, PyDict>,
    purpose: Option<Purpose>,
) -> PyResult<String> {
    let failure = Failure::default();
    let base = build_policy(base, &base_params).map_err(|error| error::policy(&error))?;
    let topology = PolicyTopology::new(&job.inner.machine);
    let topology = Bound::new(py, Topology { inner: topology })?;
    policy.setattr("topology", &topology)?;
    policy.call_method1("start", (topology,))?;
    let needs = Needs::from(needs.extract::<PyNeeds>()?);
    // The base's rules may read loads.
    let load_tracking = base.needs().load_tracking.or(needs.load_tracking);
    let wrapped = PyPolicy {
        object: policy.unbind(),
        view: Py::new(py, View::default())?,
        base,
        overrides: Overrides::from_python(rules)?,
        needs: Needs { load_tracking, ..needs },
        failure: failure.clone(),
    };
    let interrupt = interrupt_on(&failure);
    let result = run_one(job.inner.clone(), Box::new(wrapped), purpose, interrupt);
    let failed = lock(&failure).take();
    match failed {
        Some(error) => Err(error),
        None => result,
    }
}
