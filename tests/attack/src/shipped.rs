//! What the Python package ships, which scenes and inputs build on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ampsched_model::{Catalog, FileKind};
use ampsched_predict::Models;

/// What the Python package ships.
#[derive(Clone, Debug)]
pub struct Shipped {
    /// The catalogue.
    pub catalog: Catalog,
    /// Models that predict speed-ups.
    pub models: Arc<Models>,
}

impl Shipped {
    /// Reads those kinds of files.
    ///
    /// # Errors
    /// A file that cannot be read or is wrong.
    pub fn read(kinds: &[FileKind]) -> Result<Self, String> {
        let mut catalog = Catalog::new();
        for (kind, folder) in FileKind::FOLDERS.iter().filter(|(kind, _)| kinds.contains(kind)) {
            for (name, text) in texts(&data().join(folder))? {
                catalog.add(*kind, &name, &name, &text).map_err(|error| error.to_string())?;
            }
        }
        let models = texts(&data().join("models"))?;
        let (name, text) =
            models.iter().find(|(name, _)| name == "colab-table2").ok_or("no model")?;
        let models = Arc::new(Models::parse(name, text).map_err(|error| error.to_string())?);
        Ok(Self { catalog, models })
    }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/ampsched/data")
}

/// Names and texts of the files in a folder, by name.
fn texts(folder: &Path) -> Result<Vec<(String, String)>, String> {
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .map_err(wrong)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(wrong)?;
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        std::fs::read_to_string(path).map(|text| (name, text)).map_err(wrong)
    };
    paths.iter().map(read).collect()
}
