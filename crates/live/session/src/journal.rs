//! What a session has touched, and what it was before: a record of each entry, written before the touch.
//!
//! A record is a line: the CRC-32 of its text as eight hexadecimal digits, a space, the text, which is JSON. The first
//! says where the session runs ([`Place`]); the others are entries of the back end. Space is reserved ahead, so that a
//! disk that becomes full stops nothing at once, and a record is written as a whole or not at all: what names an entry
//! that could not be written is not touched.
//!
//! A journal that has become long is exchanged for one without what has ended meanwhile: that is written beside it as a
//! whole, and takes its name in one step, so that a reader finds the one or the other.
//!
//! The file is not synchronised with a disk: it has to survive the process, not the computer, which forgets all
//! that is touched here when it starts anew.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::marker::PhantomData;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ampsched_model::InputError;
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::folder::{Folder, Owner};
use crate::place::{Place, Relation};

/// Space that is reserved at a time, in bytes (ours): some 400 entries.
const RESERVE: u64 = 64 * 1024;
/// How long others may take that put back what a journal names (ours; they need milliseconds).
const OTHERS_TAKE: Duration = Duration::from_secs(10);
/// How the name of a journal begins that has lost entries, when all others have been put back.
const DAMAGED: &str = "damaged-";
/// How the name of a journal begins that is about to take the place of a longer one.
const SHORTER: &str = "shorter-";
/// A journal is long when it exceeds twice what was outstanding last by this many bytes (ours): some 100 entries.
const GROWTH_MIN: u64 = 16 * 1024;

/// Where a journal is.
#[derive(Clone, Debug)]
pub struct JournalFile {
    folder: Arc<Folder>,
    name: String,
}

/// A journal that nobody else reads or removes meanwhile.
#[derive(Debug)]
pub struct Held {
    place: JournalFile,
    /// The session that writes it exchanges it for a shorter one now and then.
    file: RefCell<File>,
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal<T> {
    held: Rc<Held>,
    /// Where the next record begins.
    end: u64,
    /// Up to where space is reserved.
    reserved: u64,
    /// What mattered of it last, in bytes.
    mattered: u64,
    entries: PhantomData<fn(&T)>,
}

/// What a journal says.
#[derive(Debug, PartialEq, Eq)]
pub struct Contents<T> {
    /// Every intact entry, in the order in which they were written.
    pub entries: Vec<T>,
    /// Whether they are of here: numbers of threads mean others elsewhere, and after another start of the computer.
    pub relation: Relation,
    /// The length of an unfinished record at the end, in bytes. What it names has not been touched.
    pub unfinished: usize,
    /// What is lost, and why.
    pub lost: Vec<String>,
}

impl JournalFile {
    /// A journal of that name.
    pub(crate) fn new(folder: Arc<Folder>, name: String) -> Self {
        Self { folder, name }
    }

    /// A journal by its path; none if there is no such folder.
    ///
    /// # Errors
    ///
    /// Another user can write in its folder.
    pub fn at(path: &Path) -> Result<Option<Self>, InputError> {
        let (Some(above), Some(name)) =
            (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            return Err(InputError::new(path.display().to_string(), "", "it is no journal"));
        };
        let folder = Folder::open(above, Owner::Own)?;
        Ok(folder.map(|folder| Self::new(Arc::new(folder), name.to_owned())))
    }

    /// Where it is, for messages and other processes.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Starts an empty journal.
    ///
    /// # Errors
    ///
    /// It exists already, or cannot be written.
    pub fn create<T: Serialize>(&self) -> Result<(Rc<Held>, Journal<T>), InputError> {
        let begun = self.begin(&[]).map_err(|error| self.wrong(&error))?;
        Ok((Rc::clone(&begun.held), begun))
    }

    /// Makes and locks a journal with some entries, or leaves none.
    fn begin<T: Serialize>(&self, entries: &[T]) -> io::Result<Journal<T>> {
        let file = self.folder.create(&self.name, false)?;
        let begun = Journal::begin(Held { place: self.clone(), file: file.into() }, entries);
        if begun.is_err() {
            let _ = self.folder.remove(&self.name);
        }
        begun
    }

    /// The one that is about to take its place.
    fn shorter(&self) -> Self {
        Self::new(Arc::clone(&self.folder), format!("{SHORTER}{}", self.name))
    }

    /// What it names so far, whoever has it: whoever only looks, and does not remove it, is in nobody's way.
    ///
    /// # Errors
    ///
    /// It is not one's own file, or is gone.
    pub fn entries<T: DeserializeOwned>(&self) -> Result<Vec<T>, InputError> {
        let file = self.folder.read(&self.name, Owner::Own).map_err(|error| self.wrong(&error))?;
        Ok(Held { place: self.clone(), file: file.into() }.read()?.entries)
    }

    /// Takes a journal for oneself as soon as nobody else has it; none if it is gone.
    ///
    /// # Errors
    ///
    /// It is another user's file, or another process keeps it.
    pub fn hold(&self) -> Result<Option<Held>, InputError> {
        let started = Instant::now();
        loop {
            let file = match self.folder.read(&self.name, Owner::Own) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(self.wrong(&error)),
            };
            // One at a time: a guardian, the next session and the user may all want to.
            while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                if started.elapsed() > OTHERS_TAKE {
                    return Err(self.wrong(&io::Error::other("another process keeps it")));
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            // Otherwise it has been removed meanwhile, or another one has taken its place.
            if file.metadata().map_err(|error| self.wrong(&error))?.nlink() > 0 {
                return Ok(Some(Held { place: self.clone(), file: file.into() }));
            }
        }
    }

    fn wrong(&self, error: &io::Error) -> InputError {
        InputError::new(self.path().display().to_string(), "", error.to_string())
    }
}

impl<T: Serialize> Journal<T> {
    /// Locks a new file and writes its heading and some entries.
    fn begin(held: Held, entries: &[T]) -> io::Result<Self> {
        flock(&*held.file.borrow(), FlockOperation::NonBlockingLockExclusive)?;
        let mut journal =
            Self { held: Rc::new(held), end: 0, reserved: 0, mattered: 0, entries: PhantomData };
        journal.append(&record(&Place::here()?)?)?;
        for entry in entries {
            journal.write(entry)?;
        }
        journal.mattered = journal.end;
        Ok(journal)
    }

    /// Writes an entry. Only afterwards may be touched what it names.
    ///
    /// # Errors
    ///
    /// It cannot be written; then nothing of it is in the file, and the journal can be written again.
    pub fn write(&mut self, entry: &T) -> io::Result<()> {
        self.append(&record(entry)?)
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let file = self.held.file.borrow();
        let end = self.end + line.len() as u64;
        if end > self.reserved {
            let length = line.len() as u64 + RESERVE;
            // Without, the write says itself whether there is space.
            let reserved = fallocate(&*file, FallocateFlags::KEEP_SIZE, self.end, length);
            self.reserved = if reserved.is_ok() { self.end + length } else { self.end };
        }
        if let Err(error) = file.write_all_at(line, self.end) {
            // The next record begins where this one would have begun, whether or not its beginning can be cut off.
            let _ = file.set_len(self.end);
            self.reserved = self.end;
            return Err(error);
        }
        self.end = end;
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.held.place.path()
    }

    /// Whether it has been removed, so that no other process could put back any more what it names.
    pub fn is_gone(&self) -> bool {
        self.held.file.borrow().metadata().is_ok_and(|found| found.nlink() == 0)
    }

    /// Whether most of it may be about what has ended: so it costs little to shorten it, however often that is done.
    pub fn is_long(&self) -> bool {
        self.end > 2 * self.mattered + GROWTH_MIN
    }

    /// Leaves out what does not matter any more; `outstanding` says what does.
    ///
    /// # Errors
    ///
    /// The shorter one cannot be written, or entries of this one are lost; it stays as it is until it is long again.
    pub fn shorten(&mut self, outstanding: impl FnOnce(Vec<T>) -> Vec<T>) -> io::Result<()>
    where
        T: DeserializeOwned,
    {
        self.mattered = self.end;
        let contents = self.held.read::<T>().map_err(io::Error::other)?;
        if let Some(lost) = contents.lost.first() {
            return Err(io::Error::other(lost.clone()));
        }
        let place = &self.held.place;
        let (folder, shorter) = (&place.folder, place.shorter());
        let _ = folder.remove(&shorter.name);
        let written = shorter.begin(&outstanding(contents.entries))?;
        if let Err(error) = folder.rename(&shorter.name, &place.name) {
            let _ = folder.remove(&shorter.name);
            return Err(error);
        }
        self.held.file.swap(&written.held.file);
        (self.end, self.reserved) = (written.end, written.reserved);
        self.mattered = written.mattered;
        Ok(())
    }
}

impl Held {
    /// Where it is.
    pub fn place(&self) -> &JournalFile {
        &self.place
    }

    /// Reads it.
    ///
    /// # Errors
    ///
    /// The system does not let it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<Contents<T>, InputError> {
        let mut bytes = Vec::new();
        let mut file = &*self.file.borrow();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
        let here = read.and_then(|_| Place::here()).map_err(|error| self.place.wrong(&error))?;
        Ok(contents(&bytes, &here))
    }

    /// Removes it, if nobody else has: all that it names has been put back.
    pub fn remove(&self) -> io::Result<()> {
        self.remove_shorter();
        match self.place.folder.remove(&self.place.name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Removes the entry that a killed writer did not finish; all that it says is here, too.
    fn remove_shorter(&self) {
        let _ = self.place.folder.remove(&self.place.shorter().name);
    }

    /// Keeps it out of the way of later sessions: nothing more can be put back from it. Returns its new path.
    pub fn set_aside(&self) -> io::Result<PathBuf> {
        self.remove_shorter();
        let name = format!("{DAMAGED}{}", self.place.name);
        self.place.folder.rename(&self.place.name, &name)?;
        Ok(self.place.folder.path().join(name))
    }
}

/// A record of an entry.
fn record(entry: &impl Serialize) -> io::Result<Vec<u8>> {
    let text = serde_json::to_string(entry)?;
    Ok(format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes())).into_bytes())
}

/// The text of a record without its end of line; none if it is damaged.
fn text_of(line: &[u8]) -> Option<&[u8]> {
    let (checksum, text) = line.split_at_checked(9)?;
    let checksum = std::str::from_utf8(checksum).ok()?.strip_suffix(' ')?;
    (u32::from_str_radix(checksum, 16).ok()? == crc32fast::hash(text)).then_some(text)
}

/// What the bytes of a journal say to whoever is here.
fn contents<T: DeserializeOwned>(bytes: &[u8], here: &Place) -> Contents<T> {
    let finished = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let mut contents = Contents {
        entries: Vec::new(),
        relation: Relation::Here,
        unfinished: bytes.len() - finished,
        lost: Vec::new(),
    };
    let lines = bytes[..finished].split_inclusive(|&byte| byte == b'\n');
    for (number, line) in lines.enumerate() {
        let read = match text_of(&line[..line.len() - 1]) {
            None => Err("damaged".to_owned()),
            Some(text) if number == 0 => serde_json::from_slice(text)
                .map(|place: Place| contents.relation = place.from(here))
                .map_err(|error| format!("of another version: {error}")),
            Some(text) => serde_json::from_slice(text)
                .map(|entry| contents.entries.push(entry))
                .map_err(|error| format!("of another version: {error}")),
        };
        if let Err(why) = read {
            contents.lost.push(format!("record {} is {why}", number + 1));
        }
    }
    contents
}

#[cfg(test)]
mod tests;
