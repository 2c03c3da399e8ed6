//! Journals that are cut, damaged, exchanged.

use std::fs;

use super::*;

fn place(folder: &tempfile::TempDir) -> JournalFile {
    JournalFile::at(&folder.path().join("journal")).unwrap().unwrap()
}

fn read_all(place: &JournalFile) -> Contents<String> {
    place.hold().unwrap().unwrap().read().unwrap()
}

fn written(entries: &[&str]) -> (tempfile::TempDir, JournalFile) {
    let folder = tempfile::tempdir().unwrap();
    let place = place(&folder);
    let (_held, mut journal) = place.create::<String>().unwrap();
    for &entry in entries {
        journal.write(&entry.to_owned()).unwrap();
    }
    (folder, place)
}

#[test]
fn h01_what_is_written_is_read() {
    let (folder, place) = written(&["first", "second\nline"]);
    let contents = read_all(&place);
    assert_eq!(contents.entries, ["first", "second\nline"]);
    assert!(
        contents.relation == Relation::Here && contents.unfinished == 0 && contents.lost.is_empty()
    );
    let error = place.create::<String>().unwrap_err().to_string();
    assert!(error.contains("journal: File exists"), "{error}");
    place.hold().unwrap().unwrap().remove().unwrap();
    assert!(place.hold().unwrap().is_none());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn h01_wherever_a_journal_is_cut_what_is_whole_before_is_read() {
    let entries = ["a", "bb", "ccc"];
    let (_folder, place) = written(&entries);
    let bytes = fs::read(place.path()).unwrap();
    let ends: Vec<usize> = (1..=bytes.len()).filter(|&at| bytes[at - 1] == b'\n').collect();
    for cut in 0..=bytes.len() {
        fs::write(place.path(), &bytes[..cut]).unwrap();
        let contents = read_all(&place);
        let whole = ends.iter().filter(|&&end| end <= cut).count();
        assert_eq!(contents.entries, entries[..whole.saturating_sub(1)], "{cut}");
        assert_eq!(contents.unfinished, cut - ends[..whole].last().copied().unwrap_or(0));
        assert!(contents.lost.is_empty());
    }
}

#[test]
fn h01_whichever_byte_is_changed_all_other_records_are_read() {
    let entries = ["a", "bb", "ccc"];
    let (_folder, place) = written(&entries);
    let bytes = fs::read(place.path()).unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x01;
        fs::write(place.path(), &changed).unwrap();
        let contents = read_all(&place);
        let touched = bytes[..at].iter().filter(|&&byte| byte == b'\n').count();
        // A changed end of line joins two records, or leaves the last unfinished.
        let joined = bytes[at] == b'\n';
        let is_lost = |record: usize| record == touched || joined && record == touched + 1;
        let left = (1..=3).filter(|&record| !is_lost(record)).map(|record| entries[record - 1]);
        assert_eq!(contents.entries, left.collect::<Vec<_>>(), "{at}");
        assert!(!contents.lost.is_empty() || contents.unfinished > 0, "{at}");
    }
}

#[test]
fn m07_a_journal_of_another_start_of_the_computer_is_past() {
    let (_folder, place) = written(&["a"]);
    let bytes = fs::read(place.path()).unwrap();
    assert_eq!(contents::<String>(&bytes, &Place::here().unwrap()).relation, Relation::Here);
    let other = serde_json::from_str(r#"{"boot":"another"}"#).unwrap();
    let other = contents::<String>(&bytes, &other);
    assert_eq!((other.relation, other.entries.len()), (Relation::Past, 1));
}

#[test]
fn h34_01_a_journal_of_another_namespace_is_not_past() {
    let (_folder, place) = written(&["a"]);
    let bytes = fs::read(place.path()).unwrap();
    let here = serde_json::to_value(Place::here().unwrap()).unwrap();
    for field in ["boot", "pid_namespace", "cgroup_namespace"] {
        let mut other = here.clone();
        other[field] = serde_json::Value::Null;
        let other = contents::<String>(&bytes, &serde_json::from_value(other).unwrap());
        assert!(matches!(other.relation, Relation::Elsewhere(_)), "{field}");
    }
}

#[test]
fn h01_a_write_that_failed_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(&folder);
    let (held, mut journal) = place.create::<String>().unwrap();
    journal.write(&"first".to_owned()).unwrap();
    // A file that is open for reading only refuses like a full disk.
    let file = held.file.replace(File::open(place.path()).unwrap());
    let before = fs::read(place.path()).unwrap();
    assert!(journal.write(&"second".to_owned()).is_err());
    assert_eq!(fs::read(place.path()).unwrap(), before);
    // The beginning of a record that a full disk has let through, and could not be cut off.
    file.write_all_at(b"0badc0de \"sec", journal.end).unwrap();
    held.file.replace(file);
    journal.write(&"third, longer than that".to_owned()).unwrap();
    drop((held, journal));
    assert_eq!(read_all(&place).entries, ["first", "third, longer than that"]);
}

#[test]
fn h01_one_at_a_time() {
    let (_folder, place) = written(&["a"]);
    let first = place.hold().unwrap().unwrap();
    let other = place.clone();
    let second = std::thread::spawn(move || other.hold().unwrap().is_none());
    std::thread::sleep(Duration::from_millis(50));
    first.remove().unwrap();
    drop(first);
    assert!(second.join().unwrap(), "whoever comes second finds nothing to do");
}

/// A journal of numbers; the odd ones matter.
fn odd(mut entries: Vec<String>) -> Vec<String> {
    entries.retain(|entry| entry.parse::<u32>().unwrap() % 2 == 1);
    entries
}

#[test]
fn low_a_long_journal_is_exchanged_for_what_matters() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(&folder);
    let (held, mut journal) = place.create::<String>().unwrap();
    let mut number = 0;
    while !journal.is_long() {
        journal.write(&format!("{number:070}")).unwrap();
        number += 1;
    }
    let before = fs::metadata(place.path()).unwrap().len();
    let waits = {
        let place = place.clone();
        std::thread::spawn(move || place.hold().unwrap().map(|held| held.read::<String>().unwrap()))
    };
    std::thread::sleep(Duration::from_millis(50));
    journal.shorten(odd).unwrap();
    journal.write(&"later".to_owned()).unwrap();
    assert!(!journal.is_long() && fs::metadata(place.path()).unwrap().len() < before * 6 / 10);
    let kept = |contents: Contents<String>| {
        assert!(
            contents.relation == Relation::Here
                && contents.unfinished == 0
                && contents.lost.is_empty()
        );
        let expected = (0..number).filter(|number| number % 2 == 1);
        let expected: Vec<_> = expected.map(|number| format!("{number:070}")).collect();
        assert_eq!(contents.entries.last().unwrap(), "later");
        assert_eq!(contents.entries[..contents.entries.len() - 1], expected);
    };
    kept(held.read().unwrap());
    // Whoever has waited for the longer one gets the shorter one, and not before its session has ended.
    assert!(!waits.is_finished());
    drop((held, journal));
    kept(waits.join().unwrap().unwrap());
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|name| name.unwrap()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn low_a_journal_that_cannot_be_shortened_stays_as_it_is() {
    let (folder, place) = written(&["1", "2"]);
    fs::remove_file(place.path()).unwrap();
    let (held, mut journal) = place.create::<String>().unwrap();
    for number in 0..4 {
        journal.write(&number.to_string()).unwrap();
    }
    // A folder is in the way, which nobody removes like a file.
    let shorter = folder.path().join("shorter-journal");
    fs::create_dir(&shorter).unwrap();
    assert!(journal.shorten(odd).is_err());
    journal.write(&"4".to_owned()).unwrap();
    assert_eq!(held.read::<String>().unwrap().entries, ["0", "1", "2", "3", "4"]);
    fs::remove_dir(&shorter).unwrap();
    // What somebody who was killed has left is in nobody's way.
    fs::write(&shorter, "half a rec").unwrap();
    journal.shorten(odd).unwrap();
    assert_eq!(held.read::<String>().unwrap().entries, ["1", "3"]);
    fs::write(&shorter, "half a rec").unwrap();
    held.remove().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn low_a_damaged_journal_is_not_shortened() {
    let (_folder, place) = written(&[]);
    fs::remove_file(place.path()).unwrap();
    let (held, mut journal) = place.create::<String>().unwrap();
    journal.write(&"1".to_owned()).unwrap();
    let at = journal.end - 3;
    held.file.borrow().write_all_at(b"7", at).unwrap();
    journal.write(&"3".to_owned()).unwrap();
    assert!(journal.shorten(odd).unwrap_err().to_string().contains("record 2 is damaged"));
    assert_eq!(held.read::<String>().unwrap().entries, ["3"]);
}
