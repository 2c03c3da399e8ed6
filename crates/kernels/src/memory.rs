//! Kernels that wait for caches and memory.

/// A cache line of most processors.
const LINE_BYTES: usize = 64;

/// A SplitMix64 stream (Steele, Lea and Flood, OOPSLA 2014) with a fixed seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Random bytes, the same each time.
pub fn random_bytes(count: usize) -> Vec<u8> {
    let mut random = Random(1);
    (0..count).map(|_| random.next() as u8).collect()
}

/// One index per line, in an order that no prefetcher foresees.
pub struct Chase {
    lines: Vec<[u32; LINE_BYTES / 4]>,
}

impl Chase {
    pub fn new(bytes: usize) -> Self {
        let count = bytes / LINE_BYTES;
        let mut order: Vec<u32> = (0..count as u32).collect();
        let mut random = Random(2);
        // Sattolo's algorithm: a single cycle through all lines.
        for last in (1..count).rev() {
            order.swap(last, (random.next() % last as u64) as usize);
        }
        let mut lines = vec![[0u32; LINE_BYTES / 4]; count];
        for (line, next) in lines.iter_mut().zip(order) {
            line[0] = next;
        }
        Self { lines }
    }

    /// A round is one load.
    pub fn run(&mut self, rounds: u64) -> u64 {
        let mut at = 0;
        for _ in 0..rounds {
            at = self.lines[at][0] as usize;
        }
        ((at as u64) << 32) ^ rounds
    }
}

/// An array that is read from one end to the other.
pub struct Stream {
    words: Vec<u64>,
    at: usize,
}

impl Stream {
    pub fn new(bytes: usize) -> Self {
        Self { words: (0..bytes as u64 / 8).collect(), at: 0 }
    }

    /// A round reads a line.
    pub fn run(&mut self, rounds: u64) -> u64 {
        const WORDS: usize = LINE_BYTES / 8;
        let mut sum = 0u64;
        for _ in 0..rounds {
            for word in &self.words[self.at..self.at + WORDS] {
                sum = sum.wrapping_add(*word);
            }
            self.at = (self.at + WORDS) % self.words.len();
        }
        sum.wrapping_add(rounds)
    }
}
