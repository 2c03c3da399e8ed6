//! Programs as task graphs: the nine PARSEC programs of Chronaki et al., JPDC 2018, Table 1. One file per program.
//!
//! A graph follows the program's structure: frames, stages, blocks. With `barriers` = 0 blocks wait only for the
//! data they read, as in the task-based version (PARSECSs); with `barriers` = 1 every stage ends with a barrier, as in
//! the pthreads version. Static threading, loops and tasks are policies on the same graph.

mod support;

use ampsched_policy::{Owner, ParamInfo, Params, PolicyError, unknown};

use crate::Graph;
use support::{TooLarge, Woven};

/// A program whose task graph can be generated.
pub struct TaskProgramInfo {
    /// Name, as on the command line.
    pub name: &'static str,
    /// One line: what it does.
    pub summary: &'static str,
    /// Structure, granularity, what is published and what is assumed (Markdown).
    pub documentation: &'static str,
    /// Speed of a big core over that of a little one (Chronaki et al., JPDC 2018, Table 1).
    pub ratio: f64,
    /// Parameters.
    pub params: &'static [ParamInfo],
    /// Generates the graph.
    pub(crate) build: fn(&Params) -> Woven<Graph>,
}

/// The switch that most programs have.
const BARRIERS: ParamInfo =
    ParamInfo::flag("barriers", false, "a barrier after every stage, as in the pthreads version");

ampsched_policy::registry! {
    /// All programs, in alphabetical order.
    pub static PROGRAMS: TaskProgramInfo = [
        blackscholes,
        bodytrack,
        canneal,
        dedup,
        facesim,
        ferret,
        fluidanimate,
        streamcluster,
        swaptions,
    ]
}

/// Generates the task graph of a program; parameters that are not named keep their defaults.
///
/// Errors: no such program or parameter, a value out of limits, or values that ask for more tasks or links than a graph
/// may have.
pub fn task_program(name: &str, params: &[(String, f64)]) -> Result<Graph, PolicyError> {
    const KIND: &str = "task program";
    let found = PROGRAMS.iter().find(|info| info.name == name);
    let known = || PROGRAMS.iter().map(|info| info.name);
    let info = found.ok_or_else(|| unknown(KIND, name, known()))?;
    let owner = Owner { kind: KIND, name: info.name, params: info.params };
    (info.build)(&owner.values(params)?).map_err(|TooLarge { what, limit }| PolicyError::TooMuch {
        kind: KIND,
        owner: name.to_owned(),
        what,
        limit,
    })
}

/// A whole number among the parameters.
fn whole(params: &Params, name: &str) -> usize {
    params.number(name).round() as usize
}
