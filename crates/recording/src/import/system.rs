//! Pages that a recorder has read from the kernel's ring buffers (`per_cpu/cpuN/trace_pipe_raw`).

use ampsched_model::InputError;

use super::event::Story;
use super::format::Decoder;
use super::pages::Layout;
use super::{Options, select, trace_dat};
use crate::{Clocked, Recording};

/// What a recorder has read of the kernel.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Text of `events/header_page`.
    pub header_page: String,
    /// Descriptions of the events (`events/GROUP/EVENT/format`).
    pub formats: Vec<String>,
    /// Pages of each core, one behind the other; the last one may be cut off.
    pub cores: Vec<Vec<u8>>,
    /// Bytes of a page.
    pub page_bytes: usize,
    /// Events that the kernel had no room for, by its own count; pages tell how many of these before which.
    pub lost_events: u64,
}

/// Makes a recording of pages.
///
/// # Errors
/// The pages are of no sensible size, or have none of the wanted threads.
pub fn recording(file: &str, pages: &Pages, options: &Options) -> Result<Recording, InputError> {
    clocked(file, pages, options).map(|found| found.recording)
}

/// The same, with the kernel's numbers of the threads and its clock.
///
/// # Errors
/// As above.
pub fn clocked(file: &str, pages: &Pages, options: &Options) -> Result<Clocked, InputError> {
    if !(64..=1 << 24).contains(&pages.page_bytes) {
        return Err(InputError::new(file, "", format!("has pages of {} bytes", pages.page_bytes)));
    }
    let mut decoder = Decoder::default();
    pages.formats.iter().for_each(|format| decoder.learn(format));
    let mut story = Story::of(pages.cores.iter().map(Vec::len).sum());
    let layout = Layout::read(&pages.header_page);
    for (cpu, bytes) in (0..=u16::MAX).zip(&pages.cores) {
        for page in bytes.chunks(pages.page_bytes) {
            trace_dat::tell_page(&decoder, &mut story, layout, cpu, page, |ns| ns);
        }
    }
    let mut found = select::clocked(file, story.checked(file)?, options)?;
    let lost = &mut found.recording.info.lost_events;
    *lost = (*lost).max(pages.lost_events);
    Ok(found)
}
