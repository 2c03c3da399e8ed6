//! The interface for C: `include/ampsched_taskrt.h`.
//!
//! A panic cannot pass through C, so what would panic in Rust is refused before. All functions trust the pointers that
//! they get, as C functions do.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::{Config, Cores, Error, Runtime, Scope};

const OK: c_int = 0;
const CANCELLED: c_int = 1;
const ERROR: c_int = -1;

/// A loop's body.
type LoopFunction = unsafe extern "C" fn(usize, usize, *mut c_void) -> c_int;
/// A task's body.
type TaskFunction = unsafe extern "C" fn(*mut c_void);
/// What creates tasks.
type CreateFunction = unsafe extern "C" fn(*const Scope<'static, 'static>, *mut c_void);

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// A caller's pointer, which its functions may use from any worker.
#[derive(Clone, Copy)]
struct Context(*mut c_void);

// SAFETY: the header says that bodies run on worker threads; what they do with their context is up to them.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    fn pointer(self) -> *mut c_void {
        self.0
    }
}

/// How a task uses some data.
#[repr(C)]
pub struct Access {
    data: *const c_void,
    writes: c_int,
}

fn fail(text: String) -> c_int {
    // A NUL cannot come from our messages but from a name within one.
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    LAST_ERROR.with_borrow_mut(|last| *last = text);
    ERROR
}

/// Result of a call; a panic (of which none is known) becomes an error.
fn outcome(call: impl FnOnce() -> Result<(), Error>) -> c_int {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => OK,
        Ok(Err(error @ Error::Cancelled { .. })) => {
            fail(error.to_string());
            CANCELLED
        }
        Ok(Err(error)) => fail(error.to_string()),
        Err(_) => fail("a panic within the runtime; this is a bug".to_owned()),
    }
}

/// A text, or `default` for NULL. Errors: not UTF-8.
///
/// # Safety
/// The pointer is NULL or a C string.
unsafe fn text(pointer: *const c_char, default: &str) -> Result<&str, String> {
    if pointer.is_null() {
        return Ok(default);
    }
    // SAFETY: a C string, as the caller promises.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| format!("{text:?} is not UTF-8"))
}

fn start(cores: &str, policy: &str) -> Result<Runtime, Error> {
    let cores = if cores.is_empty() { Cores::detect()? } else { Cores::parse(cores)? };
    Runtime::new(&Config { policy: policy.to_owned(), ..Config::new(cores) })
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn ampsched_last_error() -> *const c_char {
    LAST_ERROR.with_borrow(|last| last.as_ptr())
}

/// See the header.
///
/// # Safety
/// Both are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampsched_runtime_new(
    cores: *const c_char,
    policy: *const c_char,
) -> *mut Runtime {
    // SAFETY: C strings or NULL, as the caller promises.
    let texts = unsafe { (text(cores, ""), text(policy, "fifo")) };
    let started = match texts {
        (Ok(cores), Ok(policy)) => start(cores, policy).map_err(|error| error.to_string()),
        (Err(error), _) | (_, Err(error)) => Err(error),
    };
    match started {
        Ok(runtime) => Box::into_raw(Box::new(runtime)),
        Err(error) => {
            fail(error);
            std::ptr::null_mut()
        }
    }
}

/// See the header.
///
/// # Safety
/// From `ampsched_runtime_new`, and not freed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampsched_runtime_free(runtime: *mut Runtime) {
    if !runtime.is_null() {
        // SAFETY: it was made by `Box::into_raw`, as the caller promises.
        drop(unsafe { Box::from_raw(runtime) });
    }
}

/// See the header.
///
/// # Safety
/// A runtime.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampsched_workers(runtime: *const Runtime) -> usize {
    // SAFETY: a runtime, as the caller promises.
    unsafe { &*runtime }.thread_ids().len()
}

/// See the header.
///
/// # Safety
/// A runtime, and space for as many numbers as it has workers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampsched_measure_speeds(
    runtime: *const Runtime,
    seconds: f64,
    speeds: *mut f64,
) -> c_int {
    // SAFETY: a runtime, as the caller promises.
    let runtime = unsafe { &*runtime };
    let Ok(duration) = Duration::try_from_secs_f64(seconds) else {
        return fail(format!("{seconds} s is not a duration"));
    };
    outcome(|| {
        let measured = runtime.measure_speeds(duration)?;
        for (place, speed) in measured.into_iter().enumerate() {
            // SAFETY: there is space for one number per worker, as the caller promises.
            unsafe { speeds.add(place).write(speed) };
        }
        Ok(())
    })
}

/// See the header.
///
/// # Safety
/// A runtime, and a body that may be called on any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampsched_for_each(
    runtime: *const Runtime,
    first: usize,
    end: usize,
    body: LoopFunction,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a runtime, as the caller promises.
    let (runtime, context) = (unsafe { &*runtime }, Context(context));
    // C has no places of calls; loops with the same body are measured together.
    let site = body as usize;
    outcome(|| {
        runtime.loop_at(first..end, site, || format!("loop {site:#x}"), &|part| {
            // SAFETY: the caller's function with the caller's context.
            match unsafe { body(part.start, part.end, context.pointer()) } {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        })
    })
}

/// See the header.
///
/// # Safety
/// A runtime, and a function that creates tasks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampsched_scope_run(
    runtime: *const Runtime,
    whole_graph: c_int,
    create: CreateFunction,
    context: *mut c_void,
) -> c_int {
    // SAFETY: a runtime, as the caller promises.
    let runtime = unsafe { &*runtime };
    fn body(scope: &Scope<'_, '_>, create: CreateFunction, context: *mut c_void) {
        let scope = std::ptr::from_ref(scope).cast::<Scope<'static, 'static>>();
        // SAFETY: the caller's function with the caller's context; the scope is valid as long as the header says.
        unsafe { create(scope, context) }
    }
    outcome(|| {
        if whole_graph == 0 {
            runtime.scope(|scope| body(scope, create, context))
        } else {
            runtime.graph(|scope| body(scope, create, context))
        }
    })
}

/// See the header.
///
/// # Safety
/// A scope that is valid, a C string, `access_count` accesses, and a body that may be called on any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampsched_task(
    scope: *const Scope<'static, 'static>,
    kind: *const c_char,
    cost_s: f64,
    accesses: *const Access,
    access_count: usize,
    body: TaskFunction,
    context: *mut c_void,
) -> c_int {
    // SAFETY: valid, as the caller promises.
    let (scope, kind) = unsafe { (&*scope, text(kind, "")) };
    let kind = match kind {
        Ok(kind) => kind,
        Err(error) => return fail(error),
    };
    if !cost_s.is_finite() {
        return fail(format!("cost {cost_s} s of a {kind:?} task is not a time"));
    }
    let accesses = if access_count == 0 {
        &[]
    } else {
        // SAFETY: so many accesses, as the caller promises.
        unsafe { std::slice::from_raw_parts(accesses, access_count) }
    };
    let mut task = scope.task(kind);
    if cost_s >= 0.0 {
        task = task.cost_s(cost_s);
    }
    for access in accesses {
        let address = access.data as usize;
        task = if access.writes == 0 { task.reads_at(address) } else { task.writes_at(address) };
    }
    let context = Context(context);
    // SAFETY: the caller's function with the caller's context.
    task.run(move || unsafe { body(context.pointer()) });
    OK
}

/// See the header.
///
/// # Safety
/// A scope that is valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampsched_cancel(scope: *const Scope<'static, 'static>) {
    // SAFETY: valid, as the caller promises.
    unsafe { &*scope }.cancel();
}
