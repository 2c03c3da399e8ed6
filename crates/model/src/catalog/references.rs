//! What added files refer to.

use std::collections::BTreeSet;

use super::{Catalog, FileKind, path_of};
use crate::toml_workload::AppTemplate;
use crate::{MachineTemplate, WorkloadTemplate};

impl Catalog {
    /// Files that added files refer to by path and that were not added yet: kind and path.
    ///
    /// Read each and add it with its path as name, then ask again, as those may refer to more.
    pub fn missing_files(&self) -> Vec<(FileKind, String)> {
        let core_types = self.machines.values().flat_map(MachineTemplate::core_types);
        let core_types = core_types
            .filter_map(|(name, spot)| path_of(name, spot))
            .map(|path| (FileKind::CoreType, path));
        let programs = self.workloads.values().flat_map(WorkloadTemplate::programs);
        let programs = programs
            .filter_map(|(name, spot)| path_of(name, spot))
            .map(|path| (FileKind::Program, path));
        let missing: BTreeSet<_> =
            core_types.chain(programs).filter(|(kind, path)| !self.has(*kind, path)).collect();
        missing.into_iter().collect()
    }

    /// What the applications of a workload, or of the single one in a file of that name, refer to: the name of each
    /// program among the added ones, and the parameters that stand there. Of what is no workload nothing.
    pub fn references(&self, workload: &str) -> Vec<(String, &[(String, f64)])> {
        let name = match self.workloads_of_file(workload) {
            [single] => single,
            _ => workload,
        };
        let apps = self.workloads.get(name).map_or(&[][..], WorkloadTemplate::apps);
        let program = |app: &AppTemplate| {
            path_of(&app.program, &app.spot).unwrap_or_else(|| app.program.clone())
        };
        apps.iter().map(|app| (program(app), app.params.as_slice())).collect()
    }
}
