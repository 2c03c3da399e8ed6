use super::*;

const EXECUTABLE: u64 = 4;
/// Class and mode of BPF's atomic instructions, and the bits that say so (Linux, `include/uapi/linux/bpf.h`).
const ATOMIC: (u8, u8) = (0xc3, 0xe7);
/// What such an instruction does.
const COMPARE_AND_SWAP: u64 = 0xf1;
const EXCHANGE: u64 = 0xe1;
const ADD: u64 = 0x00;
const FETCH_AND_ADD: u64 = 0x01;
/// The compiler's way to add 0.
const FETCH_AND_OR: u64 = 0x41;

fn number<const BYTES: usize>(file: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes[..BYTES].copy_from_slice(&file[at..at + BYTES]);
    u64::from_le_bytes(bytes)
}

/// The first byte and the number of each instruction of an object file, 64 bits, little-endian (elf(5)).
fn instructions(file: &[u8]) -> Vec<(u8, u64)> {
    let (sections, size, count) =
        (number::<8>(file, 40), number::<2>(file, 58), number::<2>(file, 60));
    let headers = (0..count).map(|index| (sections + index * size) as usize);
    let executable = headers.filter(|&at| number::<8>(file, at + 8) & EXECUTABLE != 0);
    executable
        .flat_map(|at| {
            let (begin, bytes) = (number::<8>(file, at + 24), number::<8>(file, at + 32));
            file[begin as usize..(begin + bytes) as usize]
                .chunks(8)
                .map(|code| (code[0], number::<4>(code, 4)))
        })
        .collect()
}

/// In an arena Linux refuses them on such cores.
#[test]
fn programs_have_no_other_atomics_than_of_locks_and_counts() {
    for programs in [&SCHEDULER.0, &REPLAY.0, &VERIFY.0] {
        let codes = instructions(programs);
        assert!(codes.len() > 1000, "{} instructions", codes.len());
        let atomic = codes.iter().filter(|(code, _)| code & ATOMIC.1 == ATOMIC.0);
        let (locks, others): (Vec<_>, Vec<_>) =
            atomic.partition(|(_, does)| *does == COMPARE_AND_SWAP);
        assert_eq!(locks.len(), 1);
        let known = [EXCHANGE, ADD, FETCH_AND_ADD, FETCH_AND_OR];
        assert!(!others.is_empty());
        assert!(others.iter().all(|(_, does)| known.contains(does)), "{others:?}");
    }
}
