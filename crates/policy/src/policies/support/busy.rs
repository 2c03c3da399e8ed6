//! How busy cores were from look to look.

use ampsched_model::Ns;

use crate::View;

/// Busy time of cores in windows that follow each other.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    seen_ns: Ns,
    busy_ns: Vec<Ns>,
}

impl Busy {
    /// The share of time in which each core was busy since the last look, 0 to 1; ends the window.
    pub fn look(&mut self, view: &View) -> Vec<f64> {
        let now_ns = view.now_ns();
        let elapsed_ns = now_ns - std::mem::replace(&mut self.seen_ns, now_ns);
        self.busy_ns.resize(view.topology().core_count(), 0);
        let cores = view.topology().cores().zip(&mut self.busy_ns);
        let share = |(core, before_ns): (_, &mut Ns)| {
            let busy_ns = view.busy_ns(core);
            let worked_ns = busy_ns - std::mem::replace(before_ns, busy_ns);
            worked_ns as f64 / elapsed_ns.max(1) as f64
        };
        cores.map(share).collect()
    }
}
