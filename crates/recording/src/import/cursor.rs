//! Numbers and texts in bytes, little-endian; nothing is read beyond their end.

/// The number of two bytes there.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

/// The number of four bytes there.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

/// The number of eight bytes there.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_le_bytes)
}

/// Reads bytes from their begin on.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// From a place of bytes on; at their end if that is beyond it.
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at: at.min(bytes.len()) }
    }

    /// The next bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let found = self.bytes.get(self.at..self.at.checked_add(count)?)?;
        self.at += count;
        Some(found)
    }

    /// The next number of two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        let found = u16_at(self.bytes, self.at)?;
        self.at += 2;
        Some(found)
    }

    /// The next number of four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        let found = u32_at(self.bytes, self.at)?;
        self.at += 4;
        Some(found)
    }

    /// The next number of eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        let found = u64_at(self.bytes, self.at)?;
        self.at += 8;
        Some(found)
    }

    /// The next text, which ends with a 0.
    pub fn text(&mut self) -> Option<String> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| byte == 0)?;
        self.at += length + 1;
        Some(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    /// The next text of a length of eight bytes before it.
    pub fn long_text(&mut self) -> Option<String> {
        let length = usize::try_from(self.u64()?).ok()?;
        self.take(length).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}
