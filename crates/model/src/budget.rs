//! How much memory reading one file may take.

use crate::InputError;
use crate::limits::{MEMORY_BYTES_MAX, MEMORY_BYTES_MIN, UNPACKED_MAX};

/// Most bytes that a file of so many may become in memory: small files may grow the most, and none above
/// [`MEMORY_BYTES_MAX`].
pub fn memory_for(file_bytes: usize) -> usize {
    file_bytes.saturating_mul(UNPACKED_MAX).clamp(MEMORY_BYTES_MIN, MEMORY_BYTES_MAX)
}

/// The room that is left for what a file is unpacked to. A reader takes of it before it makes room.
#[derive(Debug)]
pub struct Budget {
    file_bytes: usize,
    left: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self::of(0)
    }
}

impl Budget {
    /// That of a file of so many bytes.
    pub fn of(file_bytes: usize) -> Self {
        Self { file_bytes, left: memory_for(file_bytes) }
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.left
    }

    /// Takes room for so many values of `T`. Errors: there is less; the text names `file`.
    pub fn take<T>(&mut self, file: &str, count: usize) -> Result<(), InputError> {
        let bytes = count.saturating_mul(size_of::<T>());
        self.left = self.left.checked_sub(bytes).ok_or_else(|| self.error(file))?;
        Ok(())
    }

    /// The error about a file that takes more.
    pub fn error(&self, file: &str) -> InputError {
        let most = memory_for(self.file_bytes) >> 20;
        let message = format!(
            "takes more than {most} MiB of memory, which is the limit of a file of {} bytes",
            self.file_bytes
        );
        InputError::new(file, "", message).with_hint("is it damaged? else take a part of it")
    }
}
