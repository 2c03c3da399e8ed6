//! What the interpreter in C has written down of what happened and what it decided: `bpf/record.h` in Rust.

/// A record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its number and 1.
    pub number: u64,
    /// How many numbers had been given out when its lock was taken, or its look began.
    pub begun: u64,
    /// When, 0 if that does not matter.
    pub now_ns: u64,
    /// What else there is to say.
    pub value: u64,
    /// Kind, flag, core and thread.
    pub what: u64,
}

/// What a record is of; `bpf/record.h` says what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Cores,
    Add,
    Enqueue,
    Start,
    Charge,
    Stop,
    Dequeue,
    Leave,
    Out,
    UserAffinity,
    Change,
    Pace,
    Bind,
    PullTo,
    First,
    Preempts,
    Expiry,
    Take,
    Pull,
    Move,
    Place,
    Elsewhere,
    Others,
}

const KINDS: [Kind; 23] = [
    Kind::Cores,
    Kind::Add,
    Kind::Enqueue,
    Kind::Start,
    Kind::Charge,
    Kind::Stop,
    Kind::Dequeue,
    Kind::Leave,
    Kind::Out,
    Kind::UserAffinity,
    Kind::Change,
    Kind::Pace,
    Kind::Bind,
    Kind::PullTo,
    Kind::First,
    Kind::Preempts,
    Kind::Expiry,
    Kind::Take,
    Kind::Pull,
    Kind::Move,
    Kind::Place,
    Kind::Elsewhere,
    Kind::Others,
];

/// 16 bits of `NONE`.
pub const NO_CORE: u16 = 0xffff;

impl Record {
    /// What it is of; none of a record that is not in `bpf/record.h`.
    pub fn kind(&self) -> Option<Kind> {
        KINDS.get((self.what >> 56) as usize).copied()
    }

    /// A small number, or whether something is so.
    pub fn flag(&self) -> u8 {
        (self.what >> 48) as u8
    }

    /// A core.
    pub fn core(&self) -> u16 {
        (self.what >> 32) as u16
    }

    /// The slot of a thread.
    pub fn thread(&self) -> u32 {
        self.what as u32
    }

    /// Whether it is of a core that looked elsewhere, and passed over a queue because that was locked.
    pub fn passed_over(self) -> bool {
        self.kind() == Some(Kind::Elsewhere) && self.flag() & 0x80 != 0
    }

    /// The same with another flag, thread or value: for tests.
    pub fn with(self, flag: u8, thread: u32, value: u64) -> Self {
        let what = self.what & !(0xff << 48 | 0xffff_ffff);
        Self { what: what | u64::from(flag) << 48 | u64::from(thread), value, ..self }
    }
}

impl Kind {
    /// Whether it says that something has changed.
    pub fn changes(self) -> bool {
        self < Self::First && self != Self::Cores
    }

    /// Whether it says what a CPU has found that held no lock.
    pub fn looks(self) -> bool {
        matches!(self, Self::Place | Self::Elsewhere)
    }
}
