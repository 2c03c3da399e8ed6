//! Barriers of which only waits and what ended them are known: the last thread to come wakes the others, and in each
//! round it may be another one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::acts::{Act, Acts};
use super::node::Sym;
use super::objects::{Objects, What};
use crate::Recording;

/// Least rounds.
const ROUNDS_MIN: usize = 4;
/// Least share of the others that are woken, on average: who has not blocked yet need not be.
const WOKEN_SHARE_MIN: f64 = 0.7;
/// Most work between two wake-ups of one round, in ns.
const BETWEEN_NS_MAX: u64 = 50_000;

/// A thread ends the wait of another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub waker: u32,
    /// The event of the waker.
    pub at: u32,
    pub waiter: u32,
    /// The event of the waiter.
    pub event: u32,
    /// When the wait began.
    pub from_ns: u64,
}

/// Wake-ups by one thread, one right behind the other.
struct Round {
    at_ns: u64,
    edges: Vec<Edge>,
}

impl Round {
    fn threads(&self) -> impl Iterator<Item = u32> + '_ {
        let waker = self.edges.first().map(|edge| edge.waker);
        waker.into_iter().chain(self.edges.iter().map(|edge| edge.waiter))
    }
}

/// Makes barriers of what looks like them, and returns the other edges.
pub(super) fn recognise(
    recording: &Recording,
    edges: Vec<Edge>,
    acts: &mut Acts,
    objects: &mut Objects,
) -> Vec<Edge> {
    let mut by_team: BTreeMap<u32, Vec<Round>> = BTreeMap::new();
    let rounds = rounds(recording, edges);
    let teams = teams(&rounds);
    let mut rest = Vec::new();
    for round in rounds {
        let mut found: BTreeSet<Option<&u32>> =
            round.threads().map(|thread| teams.get(&thread)).collect();
        match (found.pop_first().flatten(), found.is_empty()) {
            (Some(team), true) => by_team.entry(*team).or_default().push(round),
            _ => rest.extend(round.edges),
        }
    }
    for (team, rounds) in by_team {
        let members: Vec<u32> =
            teams.iter().filter(|(_, of)| **of == team).map(|(thread, _)| *thread).collect();
        match is_barrier(recording, &members, &rounds) {
            true => place(recording, &members, &rounds, acts, objects),
            false => rest.extend(rounds.into_iter().flat_map(|round| round.edges)),
        }
    }
    rest
}

/// Cuts the wake-ups of each thread into rounds; all rounds by time.
fn rounds(recording: &Recording, mut edges: Vec<Edge>) -> Vec<Round> {
    edges.sort_by_key(|edge| (edge.waker, edge.at, edge.waiter));
    let mut found: Vec<Round> = Vec::new();
    for edge in edges {
        let events = &recording.threads[edge.waker as usize].events;
        let goes_on = |round: &&mut Round| {
            let last = round.edges[round.edges.len() - 1];
            let between = events.get(last.at as usize + 1..=edge.at as usize).unwrap_or_default();
            last.waker == edge.waker
                && round.edges.iter().all(|one| one.waiter != edge.waiter)
                && between.iter().map(|event| event.work_ns).fold(0, u64::saturating_add)
                    <= BETWEEN_NS_MAX
        };
        match found.last_mut().filter(goes_on) {
            Some(round) => round.edges.push(edge),
            None => {
                let at_ns = events[edge.at as usize].at_ns;
                found.push(Round { at_ns, edges: vec![edge] });
            }
        }
    }
    found.sort_by_key(|round| (round.at_ns, round.edges[0].waker));
    found
}

/// Threads that rounds with several woken ones connect; each team by its first thread.
fn teams(rounds: &[Round]) -> BTreeMap<u32, u32> {
    let mut teams: BTreeMap<u32, u32> = BTreeMap::new();
    for round in rounds.iter().filter(|round| round.edges.len() > 1) {
        let least = round.threads().map(|one| *teams.get(&one).unwrap_or(&one)).min().unwrap_or(0);
        let old: BTreeSet<u32> =
            round.threads().filter_map(|thread| teams.get(&thread).copied()).collect();
        teams.values_mut().filter(|team| old.contains(team)).for_each(|team| *team = least);
        round.threads().for_each(|thread| {
            teams.insert(thread, least);
        });
    }
    teams
}

fn is_barrier(recording: &Recording, members: &[u32], rounds: &[Round]) -> bool {
    let wakers: BTreeSet<u32> = rounds.iter().map(|round| round.edges[0].waker).collect();
    let woken: usize = rounds.iter().map(|round| round.edges.len()).sum();
    let most = rounds.len() * (members.len() - 1);
    let are_all_there = |at_ns: u64| {
        members.iter().all(|thread| {
            let events = &recording.threads[*thread as usize].events;
            let first_ns = events.first().map_or(u64::MAX, |event| event.at_ns);
            first_ns <= at_ns && events.last().is_some_and(|event| event.at_ns >= at_ns)
        })
    };
    // Nobody waits from one round to the one after the next.
    let is_apart = |pair: &[Round]| pair[1].edges.iter().all(|edge| edge.from_ns >= pair[0].at_ns);
    members.len() > 2
        && rounds.len() >= ROUNDS_MIN
        && wakers.len() > 1
        && woken as f64 >= WOKEN_SHARE_MIN * most as f64
        && rounds.windows(2).all(is_apart)
        && rounds.iter().all(|round| are_all_there(round.at_ns))
}

fn place(
    recording: &Recording,
    members: &[u32],
    rounds: &[Round],
    acts: &mut Acts,
    objects: &mut Objects,
) {
    let was = format!("wake-ups, {} rounds of {} threads", rounds.len(), members.len());
    let barrier = Sym::Barrier(objects.add(What::Barrier, was));
    for round in rounds {
        let events: HashMap<u32, u32> =
            round.edges.iter().map(|edge| (edge.waiter, edge.event)).collect();
        let waker = round.edges[0];
        for thread in members {
            let own = events.get(thread).copied();
            let own = own.or_else(|| (*thread == waker.waker).then_some(waker.at));
            match own {
                Some(event) => match &mut acts.acts[*thread as usize][event as usize] {
                    act @ Act::None => *act = Act::Sym(barrier),
                    _ => acts.before(*thread, event, barrier),
                },
                None => {
                    let events = &recording.threads[*thread as usize].events;
                    let next = events.partition_point(|event| event.at_ns < round.at_ns);
                    acts.before(*thread, next.min(events.len() - 1) as u32, barrier);
                }
            }
        }
    }
}
