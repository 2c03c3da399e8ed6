//! A folder in which nobody but its owner can write, by descriptor.
//!
//! A user who could write a session's journal could have threads touched in that session's name. So a folder is opened
//! once, as no link, and looked at: its owner and who else can write there. Files are opened below its descriptor, as
//! no links either, and looked at in the same way.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ampsched_model::InputError;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, open, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

/// Permissions of everybody but the owner to write.
const OTHERS_WRITE: u32 = 0o022;

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    fd: OwnedFd,
}

/// Whose folder is good enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// One's own: files there are believed.
    Own,
    /// Root's, too: files there are only shown.
    OwnOrRoot,
}

impl Folder {
    /// Opens a folder; none if there is none.
    ///
    /// # Errors
    ///
    /// It is a link or no folder, belongs to another user, or others can write there.
    pub fn open(path: &Path, owner: Owner) -> Result<Option<Self>, InputError> {
        // Without a slash or a dot at the end, behind which a link would be followed.
        let path: PathBuf = path.components().collect();
        let path = if path.as_os_str().is_empty() { PathBuf::from(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match open(&path, flags, Mode::empty()) {
            Ok(fd) => fd,
            // A single failure does not say so: what is not seen is not put back.
            Err(Errno::NOENT) if is_nothing(&path) => return Ok(None),
            // Linux says of a link that is to be a folder that it is none.
            Err(Errno::NOTDIR | Errno::LOOP) if path.is_symlink() => {
                return Err(wrong(&path, "it is a link", "give the folder itself with --run-dir"));
            }
            Err(error) => return Err(denied(&path, &error.into())),
        };
        let stat = fstat(&fd).map_err(|error| denied(&path, &error.into()))?;
        if let Err(error) = check(&stat, owner) {
            let hint = match error.hint {
                Some(hint) => hint.replace("FILE", &path.display().to_string()),
                None => "give a folder of your own with --run-dir".to_owned(),
            };
            return Err(wrong(&path, &format!("the folder {}", error.what), &hint));
        }
        Ok(Some(Self { path, fd }))
    }

    /// Opens one's own folder, or makes it for nobody else.
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open), or it cannot be made.
    pub fn make(path: &Path) -> Result<Self, InputError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        // A link to nowhere is in the way, too.
        match (Self::open(path, Owner::Own)?, made) {
            (Some(folder), _) => Ok(folder),
            (None, Err(error)) => Err(denied(path, &error)),
            (None, Ok(())) => Err(denied(path, &Errno::NOENT.into())),
        }
    }

    /// Where it is, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names in it, sorted.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a file to read it.
    ///
    /// # Errors
    ///
    /// There is none, it is a link or no regular file, or another user owns it or can write it.
    pub fn read(&self, name: &str, owner: Owner) -> io::Result<File> {
        self.open_file(name, OFlags::RDONLY, owner)
    }

    /// Opens a file of one's own to write it, and makes it if there is none; it is not emptied.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn write(&self, name: &str) -> io::Result<File> {
        self.open_file(name, OFlags::RDWR | OFlags::CREATE, Owner::Own)
    }

    /// Makes a file that is not there yet, which others may read if `is_public`.
    pub fn create(&self, name: &str, is_public: bool) -> io::Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if is_public { 0o644 } else { 0o600 };
        Ok(openat(&self.fd, name, flags, Mode::from_raw_mode(mode))?.into())
    }

    /// Removes a file.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Gives a file another name, in the place of what has that name.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat(&self.fd, from, &self.fd, to)?)
    }

    /// An error of the system about it.
    pub fn wrong(&self, error: &io::Error) -> InputError {
        denied(&self.path, error)
    }

    /// Whether there may be something of that name, if only a link.
    fn has(&self, name: &str) -> bool {
        !matches!(statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW), Err(Errno::NOENT))
    }

    fn open_file(&self, name: &str, flags: OFlags, owner: Owner) -> io::Result<File> {
        // A pipe in its place must not make anybody wait.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::from_raw_mode(0o600));
        let fd = fd.map_err(|error| match error {
            Errno::LOOP => io::Error::other("it is a link"),
            Errno::ISDIR => io::Error::other("it is no regular file"),
            // A single failure does not say that it is gone: what is not seen is not put back.
            Errno::NOENT if self.has(name) => io::Error::other("it is there, but is not found"),
            error => error.into(),
        })?;
        let stat = fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is no regular file"));
        }
        check(&stat, owner).map_err(|error| io::Error::other(format!("it {}", error.what)))?;
        Ok(fd.into())
    }
}

/// Whether there is nothing of that name, not even a link.
fn is_nothing(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Why a folder or a file is not believed.
struct Distrust {
    what: String,
    hint: Option<&'static str>,
}

fn check(stat: &Stat, owner: Owner) -> Result<(), Distrust> {
    let own = rustix::process::geteuid().as_raw();
    if stat.st_uid != own && !(owner == Owner::OwnOrRoot && stat.st_uid == 0) {
        return Err(Distrust { what: format!("belongs to user {}", stat.st_uid), hint: None });
    }
    if stat.st_mode & OTHERS_WRITE != 0 {
        let what = "is one that others can write".to_owned();
        return Err(Distrust {
            what,
            hint: Some("chmod go-w FILE, or give another with --run-dir"),
        });
    }
    Ok(())
}

fn wrong(path: &Path, what: &str, hint: &str) -> InputError {
    InputError::new(path.display().to_string(), "", what).with_hint(hint)
}

fn denied(path: &Path, error: &io::Error) -> InputError {
    wrong(path, &error.to_string(), "give a folder that you may write with --run-dir")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn h02_only_a_folder_of_one_s_own_is_believed() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("own");
        assert!(Folder::open(&path, Owner::Own).unwrap().is_none());
        Folder::make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        for mode in [0o720, 0o702, 0o1777] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = Folder::open(&path, Owner::OwnOrRoot).unwrap_err().to_string();
            assert!(error.contains("others can write (chmod go-w /"), "{error}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let folder = Folder::open(&path, Owner::Own).unwrap().unwrap();
        let link = above.path().join("link");
        symlink(&path, &link).unwrap();
        for link in [link.clone(), link.join("."), link.join("")] {
            let error = Folder::make(&link).unwrap_err().to_string();
            assert!(error.contains("it is a link"), "{error}");
        }
        fs::write(path.join("file"), "").unwrap();
        let error = Folder::open(&path.join("file"), Owner::Own).unwrap_err().to_string();
        assert!(error.contains("Not a directory"), "{error}");
        assert_eq!(folder.names().unwrap(), ["file"]);
    }

    #[test]
    fn h02_only_files_of_one_s_own_are_believed() {
        let above = tempfile::tempdir().unwrap();
        let folder = Folder::make(above.path()).unwrap();
        fs::write(above.path().join("file"), "text").unwrap();
        symlink("file", above.path().join("link")).unwrap();
        fs::create_dir(above.path().join("folder")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            above.path().join("pipe"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        fs::write(above.path().join("open"), "").unwrap();
        fs::set_permissions(above.path().join("open"), fs::Permissions::from_mode(0o666)).unwrap();
        let why = |name: &str| match folder.read(name, Owner::Own) {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(why("file"), "fine");
        assert_eq!(why("link"), "it is a link");
        assert_eq!(why("folder"), "it is no regular file");
        assert_eq!(why("pipe"), "it is no regular file");
        assert_eq!(why("open"), "it is one that others can write");
        assert_eq!(folder.write("link").unwrap_err().to_string(), "it is a link");
        let there = folder.create("link", true).unwrap_err();
        assert_eq!(there.kind(), io::ErrorKind::AlreadyExists);
    }
}
