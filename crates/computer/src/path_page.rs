//! The page by which a task runtime tells who executes the longest chain of tasks: memory in a memfd, which whoever
//! watches the process finds among its open files.
//!
//! It consists of 64-bit words in the machine's byte order: [`MAGIC`]; the version (lower half) and the number of slots
//! (upper half); then for each worker a slot of two words, its thread's identifier (lower half, the rest is unused) and
//! the time of its path in ns, 0 for none.

use ampsched_model::Ns;
use ampsched_model::limits::CORES_MAX;

/// The environment variable that asks a task runtime for such a page, if it is `1` when the runtime starts.
pub const TELL_PATHS: &str = "AMPSCHED_TELL_PATHS";
/// Name of the memfd.
pub const NAME: &str = "ampsched-paths";
/// What its link among a process's open files says.
pub const LINK: &str = "/memfd:ampsched-paths (deleted)";
/// The first word.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"amp-path");
/// Version of the layout.
const VERSION: u32 = 1;
/// Greatest number of slots.
pub const SLOTS_MAX: usize = CORES_MAX as usize;
/// Words before the slots.
pub const HEADER_WORDS: usize = 2;
/// Words of a slot.
pub const SLOT_WORDS: usize = 2;
const WORD_BYTES: usize = size_of::<u64>();
/// Bytes before the slots.
pub const HEADER_BYTES: usize = HEADER_WORDS * WORD_BYTES;

/// The words before `slots` slots.
pub fn header(slots: usize) -> [u64; HEADER_WORDS] {
    [MAGIC, u64::from(VERSION) | (slots as u64) << u32::BITS]
}

/// Size of a page in bytes for a given number of slots.
pub fn bytes(slots: usize) -> usize {
    HEADER_BYTES + slots * SLOT_WORDS * WORD_BYTES
}

/// How many slots a page has by its first [`HEADER_BYTES`] bytes; none if these are not of such a page, or of one with
/// more slots than there can be cores.
pub fn slots(page: &[u8]) -> Option<usize> {
    let mut words = words(page);
    let header = [words.next()?, words.next()?];
    let slots = usize::try_from(header[1] >> u32::BITS).ok()?;
    (slots <= SLOTS_MAX && header == self::header(slots)).then_some(slots)
}

/// Threads and their paths, as far as a page tells any; nothing if it is none, or shorter than it says.
pub fn stated_paths(page: &[u8]) -> impl Iterator<Item = (i32, Ns)> {
    let page = slots(page).and_then(|slots| page.get(HEADER_BYTES..bytes(slots)));
    let slots = page.unwrap_or_default().chunks_exact(SLOT_WORDS * WORD_BYTES);
    let told = |slot| {
        let mut words = words(slot);
        Some((words.next()? as u32 as i32, words.next().filter(|&path_ns| path_ns > 0)?))
    };
    slots.filter_map(told)
}

fn words(page: &[u8]) -> impl Iterator<Item = u64> {
    let words = page.chunks_exact(WORD_BYTES);
    words.filter_map(|word| word.try_into().ok().map(u64::from_ne_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(slots: usize, words: &[u64]) -> Vec<u8> {
        header(slots).iter().chain(words).flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn who_executes_something_is_told() {
        let page = page(3, &[7, 1_000, 8, 0, 9 | 1 << 40, u64::MAX]);
        assert_eq!(page.len(), bytes(3));
        assert_eq!(stated_paths(&page).collect::<Vec<_>>(), [(7, 1_000), (9, u64::MAX)]);
        assert_eq!(&page[..8], b"amp-path");
        let little_endian = [1, 0, 0, 0, 3, 0, 0, 0];
        assert!(cfg!(target_endian = "big") || page[8..16] == little_endian);
    }

    #[test]
    fn nonsense_tells_nothing() {
        let good = page(2, &[7, 1_000, 8, 2_000]);
        for length in 0..good.len() {
            assert_eq!(stated_paths(&good[..length]).count(), 0, "{length} bytes");
        }
        for byte in 0..HEADER_BYTES {
            let mut bad = good.clone();
            bad[byte] ^= 0x80;
            assert_eq!(stated_paths(&bad).count(), 0, "byte {byte} of the header");
        }
        assert_eq!(slots(&page(SLOTS_MAX, &[])), Some(SLOTS_MAX));
        assert_eq!(slots(&page(SLOTS_MAX + 1, &[])), None);
        assert_eq!(slots(&page(u32::MAX as usize, &[])), None);
    }
}
