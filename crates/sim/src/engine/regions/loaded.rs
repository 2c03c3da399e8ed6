//! A region with everything looked up: its graph, its policy, and the workers that the policy believes in.

use ampsched_model::{InputError, Region};
use ampsched_policy::Params;
use ampsched_task::{
    Build, Format, Graph, Problem, ReadOptions, Replay, TaskPolicy, WorkerClass, Workers,
    build_task_policy, find_task_policy, parse_spec, read, task_program, upward_s,
};

use crate::SimError;

/// A region with its graph and its policy looked up.
pub(in crate::engine) struct Loaded {
    pub region: Region,
    pub graph: Graph,
    /// Of each task the work of the longest chain that begins with it.
    pub paths: Vec<f64>,
    build: Build,
    params: Params,
}

impl Loaded {
    /// Looks up graph and policy. Errors: one of them does not exist or cannot be used in a region.
    pub fn new(region: &Region) -> Result<Self, SimError> {
        let wrong = |what: String| SimError::Region { place: region.place.clone(), what };
        let input = |error: InputError| wrong(error.to_string());
        let spec = |text| parse_spec(text).map_err(wrong);
        let graph = match &region.text {
            Some(text) => Format::of(&region.graph)
                .and_then(|format| read(format, &region.graph, text, &ReadOptions::default()))
                .map_err(input)?,
            None => {
                let (name, params) = spec(&region.graph)?;
                task_program(name, &params).map_err(|error| wrong(error.to_string()))?
            }
        };
        let (name, params) = spec(&region.policy)?;
        let (build, params) =
            build_task_policy(name, &params).map_err(|error| wrong(error.to_string()))?;
        let is_lazy = find_task_policy(name).is_ok_and(|info| info.lazy);
        let refused = [
            (
                graph.has_communication(),
                "the graph's data takes time between workers, which only `ampsched tasks` models",
            ),
            (
                graph.cost_columns() > 0,
                "the graph states costs for classes of workers; here costs follow from the speeds of cores",
            ),
            (
                region.is_lazy && !is_lazy,
                "its policy needs all tasks beforehand, but a thread creates them one by one",
            ),
        ];
        match refused.into_iter().find(|(is_so, _)| *is_so) {
            Some((_, what)) => Err(wrong(what.to_owned())),
            None => {
                let paths = upward_s(&graph, false, |task| graph.work(task));
                Ok(Self { region: region.clone(), graph, paths, build, params })
            }
        }
    }

    /// The policy, and the workers that it believes in: one on each core in the order of the cores, then again from
    /// the first core on. `speeds` are those of the clusters, in work per second, `cores` their sizes.
    pub fn policy(
        &self,
        speeds: &[f64],
        cores: &[usize],
    ) -> Result<Box<dyn TaskPolicy>, InputError> {
        let counts = layout(self.region.workers as usize, cores);
        let class = |(cluster, count): (usize, usize)| WorkerClass {
            name: cluster.to_string(),
            speed: speeds[cluster],
            count,
            grab_s: 0.0,
        };
        let workers = Workers::new(counts.into_iter().enumerate().map(class).collect())?;
        Ok(match self.build {
            Build::OnLine(build) => build(&self.params, &workers),
            Build::OffLine(schedule) => {
                let problem = Problem::new(&self.graph, workers)?;
                let schedule = schedule(&self.params, &problem);
                Box::new(Replay::new(&schedule, problem.workers().len()))
            }
        })
    }
}

/// The graph of a region.
///
/// Errors: those of [`Loaded::new`].
pub(crate) fn region_graph(region: &Region) -> Result<Graph, SimError> {
    Loaded::new(region).map(|loaded| loaded.graph)
}

/// How many of so many workers each cluster has if they sit on the cores in turn.
pub(super) fn layout(workers: usize, cores: &[usize]) -> Vec<usize> {
    let all: usize = cores.iter().sum();
    let (rounds, rest) = (workers / all, workers % all);
    let mut before = 0;
    cores
        .iter()
        .map(|&cores| {
            let more = rest.saturating_sub(before).min(cores);
            before += cores;
            rounds * cores + more
        })
        .collect()
}
