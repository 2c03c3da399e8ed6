//! Stations in a row with room for so many items between two of them: blocking after service (Perros, *Queueing
//! Networks with Blocking*). Station k begins item j when the item is there and it has got rid of item j - 1; it gets
//! rid of an item when there is room behind it, that is, when the next station has begun the item that is the room's
//! size before. Who has had to wait is late by the time that an idle core takes to wake up.

use super::setup::{Cluster, Setup, compute, costs, machine, thread};
use super::{Case, TIE, Verdict, any_policy};

/// What a pipeline is made of, in ns.
#[derive(Clone, Debug)]
struct Line {
    /// How long the first station takes for each item.
    first: Vec<u64>,
    /// How long each further station takes for any item.
    others: Vec<u64>,
    /// Room before each further station.
    rooms: Vec<usize>,
    wakeup: u64,
}

/// When each station gets rid of its last item; none if it depends on who comes first of two who come at once.
fn departures(line: &Line) -> Option<Vec<u64>> {
    let (items, stations) = (line.first.len(), line.others.len() + 1);
    let mut begins = vec![vec![0; items]; stations];
    let mut gone = vec![vec![0_u64; items]; stations];
    // After a wait for something that happens at `event`; who comes at that very moment may or may not have to wait.
    let after = |ready: u64, event: u64| match event.cmp(&ready) {
        _ if line.wakeup == 0 => Some(ready.max(event)),
        std::cmp::Ordering::Less => Some(ready),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(event + line.wakeup),
    };
    for item in 0..items {
        for station in 0..stations {
            let free = if item == 0 { line.wakeup } else { gone[station][item - 1] };
            let takes = match station {
                0 => line.first[item],
                _ => line.others[station - 1],
            };
            begins[station][item] = match station {
                0 => free,
                _ => after(free, gone[station - 1][item])?,
            };
            let done = begins[station][item] + takes;
            let before = line.rooms.get(station).and_then(|&room| item.checked_sub(room));
            gone[station][item] = match before {
                Some(before) => after(done, begins[station + 1][before])?,
                None => done,
            };
        }
    }
    gone.iter().map(|times| times.last().copied()).collect()
}

/// Each station has a core of its own, faster or slower.
pub fn run(case: &mut Case) -> Verdict {
    let dice = &mut case.dice;
    let mut line = loop {
        let items = dice.whole(1..=12);
        let stations = dice.whole(1..=4);
        let longest = dice.whole(1..=2_000_000);
        let line = Line {
            first: (0..items).map(|_| 4 * dice.whole(1..=longest)).collect(),
            others: (0..stations).map(|_| 4 * dice.whole(1..=longest)).collect(),
            rooms: (0..stations).map(|_| dice.whole(1..=4) as usize).collect(),
            wakeup: dice.whole(0..=1) * dice.whole(1..=9999),
        };
        if departures(&line).is_some() {
            break line;
        }
    };
    let mhz: Vec<u64> = (0..=line.rooms.len()).map(|_| *dice.of(&[500, 1000, 2000])).collect();
    let policy = any_policy(dice, line.wakeup);
    let mut program: String = (line.rooms.iter().enumerate())
        .map(|(number, room)| format!("[queues.q{number}]\ncapacity = {room}\n"))
        .collect();
    for (station, mhz) in mhz.iter().enumerate() {
        let mut body: Vec<String> = Vec::new();
        let push = format!("{{ push = \"q{station}\" }}");
        let close = format!("{{ close = \"q{station}\" }}");
        match station.checked_sub(1) {
            None => {
                for takes in &line.first {
                    body.extend([compute(takes * mhz / 1000), push.clone()]);
                }
                body.push(close);
            }
            Some(before) => {
                let mut work = vec![compute(line.others[before] * mhz / 1000)];
                if station < line.rooms.len() {
                    work.push(push);
                }
                body.push(format!("{{ each = \"q{before}\", body = [{}] }}", work.join(", ")));
                if station < line.rooms.len() {
                    body.push(close);
                }
            }
        }
        program += &thread(&format!("s{station}"), &format!("cores = [{station}]"), &body);
    }
    let clusters: Vec<Cluster> = mhz.iter().map(|&mhz| Cluster::new(1, mhz)).collect();
    let machine = machine(&clusters, &costs(&[("wakeup_latency_ns", line.wakeup)]));
    let outcome = case.simulate(&Setup::new(machine, program, policy))?;
    line.first[0] = case.bend("first work", line.first[0], 4);
    line.others[0] = case.bend("other work", line.others[0], 4);
    line.rooms[0] = case.bend("room", line.rooms[0] as u64, 1) as usize;
    line.wakeup = case.bend("wake-up", line.wakeup, 1);
    let expected = departures(&line).ok_or(TIE)?;
    case.each_thread("end", &outcome, |thread| thread.end_ns, &expected)
}
