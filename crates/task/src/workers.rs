//! Workers: the threads that execute tasks, one per core, in classes of equal speed.

use ampsched_model::limits::{self, WORKER_CLASSES_MAX};
use ampsched_model::{ClassId, InputError, suggest};

/// Most workers: as many as a machine has cores.
pub const WORKERS_MAX: usize = limits::CORES_MAX as usize;
/// Speed limits: beyond them times leave the range of [`crate::AMOUNT_MAX`].
const SPEED_MIN: f64 = 1e-6;
const SPEED_MAX: f64 = 1e12;

/// A worker, numbered through all classes in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u16);

impl WorkerId {
    /// The identifier as an index into a table.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl From<usize> for WorkerId {
    #[inline]
    fn from(index: usize) -> Self {
        debug_assert!(index < WORKERS_MAX);
        Self(index as u16)
    }
}

/// Workers of equal speed.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerClass {
    /// Name: `big`, `little`, or the speed.
    pub name: String,
    /// Work per second.
    pub speed: f64,
    /// Number of workers.
    pub count: usize,
    /// Seconds that taking a task from a queue shared with other workers costs.
    pub grab_s: f64,
}

/// All workers. Classes are numbered as they are listed, here not by speed: a graph that states its own
/// costs need not have a slowest class.
#[derive(Clone, Debug, PartialEq)]
pub struct Workers {
    classes: Vec<WorkerClass>,
    class_of: Vec<ClassId>,
    fastest: f64,
}

impl Workers {
    /// Workers of some classes. Errors: none at all, too many, a speed or a time out of range.
    pub fn new(classes: Vec<WorkerClass>) -> Result<Self, InputError> {
        let count: usize = classes.iter().map(|class| class.count).sum();
        let error = |message: String| Err(InputError::new("workers", "", message));
        if count == 0 || count > WORKERS_MAX || classes.len() > WORKER_CLASSES_MAX {
            return error(format!(
                "{count} workers in {} classes; 1 to {WORKERS_MAX} in at most {WORKER_CLASSES_MAX} are allowed",
                classes.len()
            ));
        }
        for class in &classes {
            if !(SPEED_MIN..=SPEED_MAX).contains(&class.speed) {
                let limits = format!("{SPEED_MIN:e} to {SPEED_MAX:e} is allowed");
                return error(format!("speed {} is out of range, {limits}", class.speed));
            }
            if !(0.0..=1.0).contains(&class.grab_s) {
                return error(format!("{} s per grab is not within 0 to 1 s", class.grab_s));
            }
        }
        Ok(Self::packed(classes))
    }

    fn packed(classes: Vec<WorkerClass>) -> Self {
        let class_of = classes
            .iter()
            .enumerate()
            .flat_map(|(number, class)| std::iter::repeat_n(ClassId::from(number), class.count))
            .collect();
        let fastest = classes.iter().map(|class| class.speed).fold(0.0, f64::max);
        Self { classes, class_of, fastest }
    }

    /// Reads `4x10,4x4`: four workers of speed 10, then four of speed 4. Instead of a speed, `little` stands
    /// for 1 and `big` for `ratio`, the program's measured speed of a big core over that of a little one.
    ///
    /// Errors: another form, `big` without a ratio, or as [`Workers::new`].
    pub fn parse(text: &str, ratio: Option<f64>) -> Result<Self, InputError> {
        let classes: Result<Vec<_>, _> =
            text.split(',').map(|part| parse_class(text, part.trim(), ratio)).collect();
        Self::new(classes?)
    }

    /// The same workers with the seconds per grab of each class. Errors: another number of classes.
    pub fn with_grab_s(mut self, grab_s: &[f64]) -> Result<Self, InputError> {
        if grab_s.len() != self.classes.len() {
            let message =
                format!("{} times per grab for {} classes", grab_s.len(), self.classes.len());
            return Err(InputError::new("workers", "", message));
        }
        for (class, &grab_s) in self.classes.iter_mut().zip(grab_s) {
            class.grab_s = grab_s;
        }
        Self::new(self.classes)
    }

    /// The same workers with other speeds, one per class.
    pub(crate) fn with_speeds(mut self, speeds: &[f64]) -> Self {
        for (class, &speed) in self.classes.iter_mut().zip(speeds) {
            class.speed = speed;
        }
        Self::packed(self.classes)
    }

    /// Number of workers.
    #[inline]
    pub fn len(&self) -> usize {
        self.class_of.len()
    }

    /// Never: there is at least one worker.
    pub fn is_empty(&self) -> bool {
        self.class_of.is_empty()
    }

    /// All workers.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = WorkerId> + ExactSizeIterator + use<> {
        (0..self.len()).map(WorkerId::from)
    }

    /// All classes.
    pub fn classes(&self) -> &[WorkerClass] {
        &self.classes
    }

    /// Class of a worker.
    #[inline]
    pub fn class_of(&self, worker: WorkerId) -> ClassId {
        self.class_of[worker.index()]
    }

    /// Whether a worker is of the fastest speed.
    #[inline]
    pub fn is_big(&self, worker: WorkerId) -> bool {
        self.classes[self.class_of(worker).index()].speed == self.fastest
    }

    /// A class of the fastest speed.
    pub fn fastest_class(&self) -> ClassId {
        let found = self.classes.iter().position(|class| class.speed == self.fastest);
        ClassId::from(found.expect("the fastest speed is that of a class"))
    }

    /// Speeds of all workers added.
    pub fn total_speed(&self) -> f64 {
        self.classes.iter().map(|class| class.speed * class.count as f64).sum()
    }
}

fn parse_class(text: &str, part: &str, ratio: Option<f64>) -> Result<WorkerClass, InputError> {
    let error = |message: String| InputError::new(format!("workers {text:?}"), "", message);
    let hint = "write COUNTxSPEED, as in 4x10,4x4 or 4xbig,4xlittle";
    let form = || error(format!("{part:?} is not of the form COUNTxSPEED")).with_hint(hint);
    let (count, speed) = part.split_once('x').ok_or_else(form)?;
    let count: usize = count.trim().parse().map_err(|_| form())?;
    let word = speed.trim();
    let speed = match word {
        "little" => 1.0,
        "big" => ratio.ok_or_else(|| {
            error("\"big\" needs the ratio of big to little".to_owned())
                .with_hint("the graph states none; give one, or a speed as a number")
        })?,
        _ => word.parse().map_err(|_| {
            let hint = suggest(word, ["big", "little"]);
            error(format!("{word:?} is not a speed")).with_hint(hint)
        })?,
    };
    Ok(WorkerClass { name: word.to_owned(), speed, count, grab_s: 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        Workers::parse(text, None).expect_err("an error").to_string()
    }

    #[test]
    fn classes_are_read_in_order() {
        let workers = Workers::parse("2xbig, 1xlittle", Some(2.5)).unwrap();
        assert_eq!(workers.len(), 3);
        assert_eq!(workers.classes()[0].speed, 2.5);
        assert_eq!(workers.class_of(WorkerId(2)), ClassId(1));
        assert!(workers.is_big(WorkerId(1)) && !workers.is_big(WorkerId(2)));
        assert_eq!(workers.total_speed(), 6.0);
        let little_first = Workers::parse("4x4,4x10", None).unwrap();
        assert_eq!(little_first.fastest_class(), ClassId(1));
    }

    #[test]
    fn errors_name_the_part_and_the_form() {
        assert_eq!(
            error_of("4x10,four"),
            "workers \"4x10,four\": \"four\" is not of the form COUNTxSPEED (write COUNTxSPEED, as in 4x10,4x4 or 4xbig,4xlittle)"
        );
        assert_eq!(
            error_of("4xbigg"),
            "workers \"4xbigg\": \"bigg\" is not a speed (did you mean \"big\"?)"
        );
        assert!(error_of("4xbig").contains("needs the ratio"));
        assert!(error_of("0x1").contains("0 workers in 1 classes; 1 to 4096"));
        assert!(error_of("5000x1").contains("5000 workers"));
        assert!(error_of("1x0").contains("speed 0 is out of range, 1e-6 to 1e12 is allowed"));
        assert!(error_of("1xnan").contains("speed NaN is out of range"));
    }
}
