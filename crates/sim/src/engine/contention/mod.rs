//! How threads on different cores slow each other down: bandwidth of memory, a shared L2, siblings of a core (SMT).
//!
//! Speeds are a function of who runs what on which core, and at which frequency. They are looked at before time goes
//! on, so of all that happens at a moment only the end counts: if another behaviour runs on a core, or none, speeds are
//! computed anew, and whoever's changes noticeably is accounted up to now and goes on at the new one.
//!
//! * Siblings: each has a stated part of its speed while the other is busy, too.
//! * L2: threads share it by their footprints in a common window of time (`share.rs`); with less of it they miss more.
//! * Memory, and the ports of clusters to it: lines wait for each other as in M/D/1 (`queue.rs`), and the parts of
//!   speed that are due to waiting for memory grow with that.

mod queue;
mod share;

use ampsched_model::{ClusterId, CoreId, Machine};

use self::queue::{Demand, Path, wait_ns};
use self::share::{Place, Row, Window};
use super::Engine;
use super::speeds::{Rate, Speeds};
use crate::SimError;

/// The profile of a core on which nothing runs.
const NOTHING: u32 = u32::MAX;
/// That of a core whose frequency has changed, until it is looked at, even if nothing runs there by then.
const FORGOTTEN: u32 = u32::MAX - 1;
/// A thread whose speed changes by less goes on as it does.
const NOTICED: f64 = 0.005;
/// How often memory and ports, which depend on each other, are looked at in turn.
const ROUNDS: usize = 3;

/// A core.
#[derive(Clone, Debug)]
struct Seat {
    /// What runs there, as far as speeds are concerned; `NOTHING` if nothing does, or that is not known.
    profile: u32,
    /// Which row says what that does here.
    row: usize,
    cluster: ClusterId,
    group: usize,
    /// The other thread of the core, and the speed of each while both are busy.
    sibling: Option<(usize, f64)>,
    /// How fast what runs there has been told to go.
    rate: Rate,
    is_stale: bool,
}

/// Cores around one L2 and one port.
#[derive(Clone, Debug)]
struct Group {
    first: usize,
    end: usize,
    shares_l2: bool,
    /// The window of the L2.
    window: Window,
    port: Option<Path>,
    /// How long lines wait for the port, and for which part of the time it is busy.
    wait_ns: f64,
    used: f64,
    is_stale: bool,
}

/// Who runs what where, and what follows for speeds.
pub(super) struct Contention {
    /// Those of a group follow each other.
    seats: Vec<Seat>,
    /// Which seat is that of each core.
    places: Vec<usize>,
    groups: Vec<Group>,
    memory: Option<Path>,
    /// How long lines wait for the memory, and for which part of the time it is busy.
    wait_ns: f64,
    used: f64,
    has_ports: bool,
    /// Cores where something may have changed.
    stale: Vec<CoreId>,
    /// What runs on each core asks of the memory; no lines if nothing runs.
    demands: Vec<Demand>,
    /// Those that count for a queue; kept for its memory.
    queue: Vec<Demand>,
    /// Of each profile (rows) at each operating point of each cluster; none: not computed yet.
    rows: Vec<Option<Row>>,
    /// First column of each cluster, and the number of columns.
    columns: Vec<usize>,
}

/// How fast a profile goes on a core that is about to run it, as far as is known: if another profile ran there, alone,
/// until time goes on.
#[inline]
pub(super) fn rate_on(
    contention: &mut Option<Box<Contention>>,
    speeds: &Speeds,
    core: CoreId,
    cluster: ClusterId,
    profile: u32,
) -> Rate {
    match contention {
        None => speeds.rate(profile, cluster),
        Some(contention) => contention.rate_on(speeds, core, cluster, profile),
    }
}

impl Contention {
    /// Nothing runs. None if nobody slows anybody down.
    pub fn new(machine: &Machine) -> Option<Box<Self>> {
        if !machine.has_contention() {
            return None;
        }
        let (mut seats, mut groups, mut columns) = (Vec::new(), Vec::new(), vec![0]);
        let mut places = vec![0; machine.cores()];
        for (number, cluster) in machine.clusters.iter().enumerate() {
            let (sharing, cores) = (&cluster.sharing, cluster.cores.len());
            let size = if sharing.cores == 0 { cores } else { sharing.cores };
            for within in 0..cores {
                let place = seats.len();
                places[cluster.cores[within].index()] = place;
                if within % size == 0 {
                    groups.push(Group {
                        first: place,
                        end: place + size.min(cores - within),
                        shares_l2: sharing.l2,
                        window: Window::default(),
                        port: sharing.port_mb_s.map(|mb_s| Path::new(mb_s, 1)),
                        wait_ns: 0.0,
                        used: 0.0,
                        is_stale: false,
                    });
                }
                let sibling = cluster.sibling(within).map(|other| place - within + other);
                seats.push(Seat {
                    profile: NOTHING,
                    row: 0,
                    cluster: number.into(),
                    group: groups.len() - 1,
                    sibling: sibling.zip(sharing.smt_speed),
                    rate: Rate::default(),
                    is_stale: false,
                });
            }
            columns.push(columns[number] + cluster.opps.len());
        }
        Some(Box::new(Self {
            stale: Vec::with_capacity(seats.len()),
            demands: vec![Demand::default(); seats.len()],
            queue: Vec::with_capacity(seats.len()),
            has_ports: groups.iter().any(|group| group.port.is_some()),
            memory: machine.memory.map(|it| Path::new(it.mb_s, it.channels)),
            wait_ns: 0.0,
            used: 0.0,
            rows: Vec::new(),
            seats,
            places,
            groups,
            columns,
        }))
    }

    /// See the function [`rate_on`]. Cold, as mostly nothing is shared.
    #[cold]
    fn rate_on(&mut self, speeds: &Speeds, core: CoreId, cluster: ClusterId, profile: u32) -> Rate {
        self.note(core);
        let seat = &self.seats[self.places[core.index()]];
        if seat.profile == profile { seat.rate } else { speeds.rate(profile, cluster) }
    }

    /// Something may have changed on a core.
    #[cold]
    fn note(&mut self, core: CoreId) {
        let seat = &mut self.seats[self.places[core.index()]];
        if !seat.is_stale {
            seat.is_stale = true;
            self.stale.push(core);
        }
    }

    /// Which row says what a profile does on a cluster now.
    fn row_at(&self, speeds: &Speeds, profile: u32, cluster: ClusterId) -> usize {
        let width = self.columns[self.columns.len() - 1];
        profile as usize * width + self.columns[cluster.index()] + speeds.opp(cluster)
    }

    /// Sees to it that it is known what a profile does on a cluster at its operating point. Returns the row.
    fn learn(
        &mut self,
        machine: &Machine,
        speeds: &Speeds,
        profile: u32,
        cluster: ClusterId,
    ) -> usize {
        let index = self.row_at(speeds, profile, cluster);
        if self.rows.len() <= index {
            self.rows.resize_with(index + 1, || None);
        }
        if self.rows[index].is_none() {
            self.rows[index] = Some(new_row(machine, speeds, profile, cluster));
        }
        index
    }

    /// The row of what runs on a core; none if nothing runs.
    #[inline]
    fn row(&self, place: usize) -> Option<&Row> {
        let seat = &self.seats[place];
        if seat.profile == NOTHING { None } else { self.rows[seat.row].as_ref() }
    }

    /// Another profile runs on a core now, or nothing. Returns whether that is so.
    fn seat(&mut self, machine: &Machine, speeds: &Speeds, core: CoreId, profile: u32) -> bool {
        let place = self.places[core.index()];
        let seat = &mut self.seats[place];
        seat.is_stale = false;
        if seat.profile == profile {
            return false;
        }
        seat.profile = profile;
        let (group, cluster) = (seat.group, seat.cluster);
        seat.rate = Rate::default(); // whatever it is told then is news
        self.groups[group].is_stale = true;
        if profile != NOTHING {
            self.seats[place].row = self.learn(machine, speeds, profile, cluster);
        }
        true
    }

    /// What the threads of a group ask of the memory, when they share the L2 and siblings their core.
    fn share(&mut self, group: usize) {
        let Group { first, end, shares_l2, window, .. } = self.groups[group];
        let busy = (first..end).filter_map(|place| self.row(place));
        let is_shared = shares_l2 && busy.clone().nth(1).is_some();
        let window = if is_shared { Window::filling(busy, window) } else { window };
        self.groups[group].window = window;
        for place in first..end {
            let Some(row) = self.row(place) else {
                self.demands[place] = Demand::default();
                continue;
            };
            let mut demand = if is_shared { window.demand(row) } else { row.whole };
            if let Some((sibling, speed)) = self.seats[place].sibling {
                if self.seats[sibling].profile != NOTHING {
                    demand.ns /= speed;
                    demand.per_wait /= speed;
                }
            }
            self.demands[place] = demand;
        }
    }

    /// How long lines wait for the memory and for ports.
    fn wait(&mut self) {
        let rounds = if self.has_ports && self.memory.is_some() { ROUNDS } else { 1 };
        for group in &mut self.groups {
            group.wait_ns = 0.0;
        }
        for _ in 0..rounds {
            if let Some(memory) = self.memory {
                self.queue.clear();
                for group in &self.groups {
                    let demands = &self.demands[group.first..group.end];
                    self.queue.extend(waiting(demands, group.wait_ns));
                }
                self.wait_ns = wait_ns(memory, &self.queue, &mut self.used);
            }
            for group in &mut self.groups {
                let Some(port) = group.port else { continue };
                self.queue.clear();
                self.queue.extend(waiting(&self.demands[group.first..group.end], self.wait_ns));
                group.wait_ns = wait_ns(port, &self.queue, &mut group.used);
            }
        }
    }

    /// How fast what runs on a core goes on, if that differs noticeably from how it has gone.
    #[inline]
    fn news(&mut self, core: CoreId) -> Option<Rate> {
        let place = self.places[core.index()];
        let seat = &mut self.seats[place];
        if seat.profile == NOTHING {
            return None;
        }
        let demand = &self.demands[place];
        let wait = self.wait_ns + self.groups[seat.group].wait_ns;
        let (ns, before_ns) = (demand.ns + demand.per_wait * wait, seat.rate.ns_per_instruction);
        if (ns - before_ns).abs() <= NOTICED * before_ns {
            return None;
        }
        seat.rate = Rate::new(1.0 / ns);
        Some(seat.rate)
    }
}

/// Demands that count for a queue, of threads that wait that long for others beside it.
fn waiting(demands: &[Demand], other_ns: f64) -> impl Iterator<Item = Demand> {
    let asking = demands.iter().filter(|demand| demand.lines > 0.0);
    asking.map(move |demand| Demand { ns: demand.ns + demand.per_wait * other_ns, ..*demand })
}

#[cold]
fn new_row(machine: &Machine, speeds: &Speeds, profile: u32, cluster: ClusterId) -> Row {
    let at = &machine.clusters[cluster.index()];
    let Some(known) = speeds.profile(profile) else { return Row::idle() };
    let place = Place {
        profile: known,
        core: &at.params,
        mhz: at.opps[speeds.opp(cluster)].mhz.into(),
        alone: speeds.rate(profile, cluster),
    };
    Row::new(place, at.sharing.l2)
}

impl Engine<'_> {
    /// Something may have changed on a core.
    #[inline]
    pub(super) fn note_change_on(&mut self, core: CoreId) {
        if let Some(contention) = self.contention.as_deref_mut() {
            contention.note(core);
        }
    }

    /// A cluster has changed its frequency.
    pub(super) fn forget_speeds(&mut self, cluster: ClusterId) {
        let Some(contention) = self.contention.as_deref_mut() else { return };
        for &core in &self.setup.machine.clusters[cluster.index()].cores {
            let place = contention.places[core.index()];
            if contention.seats[place].profile != NOTHING {
                contention.seats[place].profile = FORGOTTEN;
                contention.note(core);
            }
        }
    }

    /// Before time goes on: brings speeds up to date. Returns whether anything may have changed.
    #[inline]
    pub(super) fn settle_contention(&mut self) -> bool {
        let is_stale = self.contention.as_deref().is_some_and(|it| !it.stale.is_empty());
        if is_stale {
            self.renew_speeds();
        }
        is_stale
    }

    #[cold]
    fn renew_speeds(&mut self) {
        let Some(mut contention) = self.contention.take() else { return };
        let mut is_news = false;
        while let Some(core) = contention.stale.pop() {
            let profile = self.profile_on(core);
            is_news |= contention.seat(&self.setup.machine, &self.speeds, core, profile);
        }
        if is_news {
            for group in 0..contention.groups.len() {
                if std::mem::take(&mut contention.groups[group].is_stale) {
                    contention.share(group);
                }
            }
            contention.wait();
            for core in self.cores.ids() {
                if let Some(rate) = contention.news(core) {
                    self.go_on_at(core, rate);
                }
            }
        }
        self.contention = Some(contention);
    }

    /// What runs on a core.
    fn profile_on(&self, core: CoreId) -> u32 {
        self.sched.current(core).map_or(NOTHING, |thread| self.threads[thread].profile)
    }

    /// What runs on a core goes on at another speed.
    fn go_on_at(&mut self, core: CoreId, rate: Rate) {
        let Some(thread) = self.sched.current(core) else { return };
        self.account(core);
        self.cores[core].set_work(&self.threads[thread], rate);
        self.arm(core);
    }

    /// It is known what runs where, and no memory carries more than it can.
    pub(super) fn check_contention(&self) -> Result<(), SimError> {
        let Some(contention) = self.contention.as_deref() else { return Ok(()) };
        for core in self.cores.ids() {
            let seat = &contention.seats[contention.places[core.index()]];
            if seat.profile != self.profile_on(core) {
                return Err(self.broken(format!("core {} has an old speed", core.0)));
            }
        }
        let traffic = |places: std::ops::Range<usize>| {
            let seats = contention.seats[places.clone()].iter().zip(&contention.demands[places]);
            seats.map(|(seat, it)| it.lines * seat.rate.instructions_per_ns).sum::<f64>()
        };
        let is_too_much = |path: Option<Path>, places| {
            path.is_some_and(|it| it.line_ns * traffic(places) > 1.0 + 2.0 * NOTICED)
        };
        let ports = &contention.groups;
        if is_too_much(contention.memory, 0..contention.seats.len())
            || ports.iter().any(|port| is_too_much(port.port, port.first..port.end))
        {
            return Err(self.broken("more traffic than the memory carries".to_owned()));
        }
        Ok(())
    }
}
