//! What a thread did stays its own: it takes no items that others may take as well.

use std::collections::{HashMap, HashSet};

use super::items::{Code, remove};
use super::node::Sym;
use super::objects::{Objects, What};

/// Makes what these threads took out of pools their own work; the others share the rest.
pub(super) fn leave_pools(codes: &mut [Code], objects: &mut Objects, literal: &HashSet<u32>) {
    let mut pieces: HashMap<u32, (f64, f64)> = HashMap::new();
    for code in codes {
        let is_literal = literal.contains(&code.thread);
        for step in &code.steps {
            if let Sym::Take(pool) = step.sym {
                let (all, own) = pieces.entry(pool).or_default();
                *all += 1.0;
                *own += f64::from(u8::from(is_literal));
            }
        }
        let is_out = |place: &usize| {
            is_literal && matches!(code.steps[*place].sym, Sym::Take(_) | Sym::TakeEnd(_))
        };
        let out: HashSet<usize> = (0..code.steps.len()).filter(is_out).collect();
        remove(&mut code.steps, &out);
    }
    for (pool, (all, own)) in pieces {
        if let What::Pool { total } = &mut objects.list[pool as usize].what {
            *total = (*total * (1.0 - own / all)).round().max(1.0);
        }
    }
}

/// Makes queues out of which these threads took semaphores, and returns them: whoever takes, how much is fixed.
pub(super) fn leave_queues(
    codes: &[Code],
    objects: &mut Objects,
    literal: &HashSet<u32>,
) -> HashSet<u32> {
    let mut found = HashSet::new();
    let mut excess: HashMap<u32, i64> = HashMap::new();
    for code in codes {
        for step in &code.steps {
            match step.sym {
                Sym::Pop(queue) => *excess.entry(queue).or_default() += 1,
                Sym::Push(queue) => *excess.entry(queue).or_default() -= 1,
                _ => {}
            }
            if let Sym::Pop(queue) | Sym::PopEnd(queue) = step.sym {
                if literal.contains(&code.thread) {
                    found.insert(queue);
                }
            }
        }
    }
    for queue in &found {
        // A push may have stood for several items.
        let initial = excess.get(queue).map_or(0, |excess| u32::try_from(*excess).unwrap_or(0));
        let object = &mut objects.list[*queue as usize];
        object.what = What::Semaphore { initial, fan: 1 };
        object.is_literal = true;
    }
    found
}
