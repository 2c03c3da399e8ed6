//! The catalogue: machines, core types, profiles, programs and workloads by name, and how names
//! resolve to values.
//!
//! Pure: the owner of the files (Python package, test, benchmark) hands over their texts. A file is
//! parsed when it is added; names in it are looked up when a value is asked for, so files can be added
//! in any order. A later file of the same kind and name takes the place of an earlier one, as a user's
//! own file takes the place of a shipped one.

mod describe;
mod references;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::reader::{Document, Spot, quoted};
use crate::toml_workload::AppTemplate;
use crate::{
    App, CoreParams, CoreType, InputError, Machine, MachineTemplate, ProfileLibrary, Program,
    ProgramTemplate, RtApp, Thermal, Workload, WorkloadTemplate, import_rtapp, parse_core_type,
    parse_machine, parse_profiles, parse_program, parse_workloads, suggest,
};

/// What a file describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// A machine.
    Machine,
    /// A core type.
    CoreType,
    /// Profiles.
    Profile,
    /// A program, or an rt-app file.
    Program,
    /// Workloads.
    Workload,
}

impl FileKind {
    /// All kinds with the folder that holds shipped files of that kind.
    pub const FOLDERS: [(FileKind, &'static str); 5] = [
        (FileKind::Machine, "machines"),
        (FileKind::CoreType, "core_types"),
        (FileKind::Profile, "profiles"),
        (FileKind::Program, "programs"),
        (FileKind::Workload, "workloads"),
    ];

    /// The word for messages.
    pub fn word(self) -> &'static str {
        match self {
            FileKind::Machine => "machine",
            FileKind::CoreType => "core type",
            FileKind::Profile => "profile",
            FileKind::Program => "program",
            FileKind::Workload => "workload",
        }
    }

    /// Tells from its text what a file describes: `[[threads]]` or JSON is a program, `[workloads]` a
    /// workload file, `[[clusters]]` a machine, `pipeline` a core type, else `[profiles]` profiles.
    ///
    /// # Errors
    /// Invalid TOML, or none of these keys.
    pub fn detect(file: &str, text: &str) -> Result<FileKind, InputError> {
        const SIGNS: [(&str, FileKind); 5] = [
            ("threads", FileKind::Program),
            ("workloads", FileKind::Workload),
            ("clusters", FileKind::Machine),
            ("pipeline", FileKind::CoreType),
            ("profiles", FileKind::Profile),
        ];
        if is_json(file, text) {
            return Ok(FileKind::Program);
        }
        let document = Document::parse(file, text)?;
        let root = document.root_of_any_keys();
        let found = SIGNS.iter().find(|(key, _)| root.has(key));
        found.map(|(_, kind)| *kind).ok_or_else(|| {
            let error =
                root.spot.error("describes no program, workload, machine, core type or profile");
            error.with_hint(
                "it has none of the keys threads, workloads, clusters, pipeline, profiles",
            )
        })
    }
}

/// A program that no text describes, such as a recording: its owner makes it.
pub trait MadeProgram: std::fmt::Debug + Send + Sync {
    /// One line for listings.
    fn description(&self) -> &str;

    /// Parameters and their defaults.
    fn params(&self) -> &[(&'static str, f64)];

    /// The program with parameters set, whose names are among [`MadeProgram::params`].
    ///
    /// # Errors
    /// A parameter is out of its range, or a profile is missing.
    fn make(
        &self,
        params: &[(String, f64)],
        profiles: &ProfileLibrary,
    ) -> Result<Program, InputError>;

    /// What the program honours differently from what it is made of, one line each.
    fn notes(&self) -> &[String];
}

/// A program file of either language, or what stands for one.
#[derive(Clone, Debug)]
enum ProgramFile {
    Toml(ProgramTemplate),
    RtApp(RtApp),
    Made(Arc<dyn MadeProgram>),
}

/// Named files and their parsed contents.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    machines: BTreeMap<String, MachineTemplate>,
    core_types: BTreeMap<String, CoreType>,
    profiles: ProfileLibrary,
    programs: BTreeMap<String, ProgramFile>,
    workloads: BTreeMap<String, WorkloadTemplate>,
    /// Names of the workloads of each workload file.
    workload_files: BTreeMap<String, Vec<String>>,
}

impl Catalog {
    /// An empty catalogue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file under a name (its stem, or its path if another file refers to it by path).
    ///
    /// `file` is the path as error messages show it; paths in the file are relative to its folder.
    ///
    /// # Errors
    /// Whatever is wrong with the file by itself; names of other files are not looked up yet.
    pub fn add(
        &mut self,
        kind: FileKind,
        name: &str,
        file: &str,
        text: &str,
    ) -> Result<(), InputError> {
        let name = name.to_owned();
        match kind {
            FileKind::Machine => drop(self.machines.insert(name, parse_machine(file, text)?)),
            FileKind::CoreType => drop(self.core_types.insert(name, parse_core_type(file, text)?)),
            FileKind::Profile => self.add_profiles(parse_profiles(file, text)?),
            FileKind::Program => drop(self.programs.insert(name, parse_program_file(file, text)?)),
            FileKind::Workload => {
                let workloads = parse_workloads(file, text)?.workloads;
                let names = workloads.iter().map(|workload| workload.name().to_owned()).collect();
                self.workload_files.insert(name, names);
                self.workloads.extend(
                    workloads.into_iter().map(|workload| (workload.name().to_owned(), workload)),
                );
            }
        }
        Ok(())
    }

    /// Adds a program that the caller makes.
    pub fn add_made(&mut self, name: &str, program: Arc<dyn MadeProgram>) {
        self.programs.insert(name.to_owned(), ProgramFile::Made(program));
    }

    fn add_profiles(&mut self, added: ProfileLibrary) {
        for profile in added.profiles {
            match self.profiles.profiles.iter_mut().find(|known| known.name == profile.name) {
                Some(known) => *known = profile,
                None => self.profiles.profiles.push(profile),
            }
        }
    }

    /// Paths of the task graphs that programs refer to and that were not added yet.
    pub fn missing_graphs(&self) -> Vec<String> {
        let templates = self.programs.values().filter_map(|file| match file {
            ProgramFile::Toml(template) => Some(template),
            ProgramFile::RtApp(_) | ProgramFile::Made(_) => None,
        });
        let missing: BTreeSet<_> = templates.flat_map(ProgramTemplate::missing_graphs).collect();
        missing.into_iter().collect()
    }

    /// Adds the text of a task graph's file for the programs that refer to it by that path.
    pub fn add_graph(&mut self, path: &str, text: &str) {
        let text: Arc<str> = text.into();
        for file in self.programs.values_mut() {
            if let ProgramFile::Toml(template) = file {
                template.add_graph(path, &text);
            }
        }
    }

    /// Whether something of that kind and name is there.
    pub fn has(&self, kind: FileKind, name: &str) -> bool {
        match kind {
            FileKind::Machine => self.machines.contains_key(name),
            FileKind::CoreType => self.core_types.contains_key(name),
            FileKind::Profile => self.profiles.find(name).is_some(),
            FileKind::Program => self.programs.contains_key(name),
            FileKind::Workload => self.workloads.contains_key(name),
        }
    }

    /// Names of one kind in alphabetical order, with their one-line descriptions.
    pub fn list(&self, kind: FileKind) -> Vec<(String, String)> {
        fn rows<T>(
            map: &BTreeMap<String, T>,
            describe: impl Fn(&T) -> &str,
        ) -> Vec<(String, String)> {
            map.iter().map(|(name, value)| (name.clone(), describe(value).to_owned())).collect()
        }
        match kind {
            FileKind::Machine => rows(&self.machines, MachineTemplate::description),
            FileKind::CoreType => rows(&self.core_types, |core_type| &core_type.description),
            FileKind::Program => rows(&self.programs, ProgramFile::description),
            FileKind::Workload => rows(&self.workloads, WorkloadTemplate::description),
            FileKind::Profile => {
                let profiles = &self.profiles.profiles;
                let mut rows: Vec<_> = profiles
                    .iter()
                    .map(|profile| (profile.name.clone(), profile.source.clone()))
                    .collect();
                rows.sort();
                rows
            }
        }
    }

    /// Names of the workloads in the workload file of that name.
    pub fn workloads_of_file(&self, name: &str) -> &[String] {
        self.workload_files.get(name).map_or(&[], Vec::as_slice)
    }

    /// The machine of that name.
    ///
    /// # Errors
    /// An unknown machine or core type.
    pub fn machine(&self, name: &str) -> Result<Machine, InputError> {
        let template =
            self.machines.get(name).ok_or_else(|| self.unknown(FileKind::Machine, name))?;
        template.instantiate(|core_type, spot| self.core_params(core_type, spot))
    }

    /// How the machine of that name heats up; `None` if its file does not say.
    ///
    /// # Errors
    /// An unknown machine.
    pub fn thermal(&self, machine: &str) -> Result<Option<&Thermal>, InputError> {
        let template =
            self.machines.get(machine).ok_or_else(|| self.unknown(FileKind::Machine, machine))?;
        Ok(template.thermal())
    }

    fn core_params(&self, name: &str, spot: &Spot) -> Result<CoreParams, InputError> {
        let key = path_of(name, spot).unwrap_or_else(|| name.to_owned());
        let found = self.core_types.get(&key).map(|core_type| core_type.params);
        found.ok_or_else(|| unresolved(FileKind::CoreType, name, spot, self.core_types.keys()))
    }

    /// The core type of that name.
    ///
    /// # Errors
    /// An unknown core type.
    pub fn core_type(&self, name: &str) -> Result<&CoreType, InputError> {
        self.core_types.get(name).ok_or_else(|| self.unknown(FileKind::CoreType, name))
    }

    /// The program of that name with parameters set.
    ///
    /// # Errors
    /// An unknown program, parameter or profile, or parameters with which the program cannot work.
    pub fn program(&self, name: &str, params: &[(String, f64)]) -> Result<Program, InputError> {
        let file = self.programs.get(name).ok_or_else(|| self.unknown(FileKind::Program, name))?;
        file.program(name, params, &self.profiles)
    }

    /// The workload that consists of that program alone, with parameters set.
    ///
    /// # Errors
    /// As [`Catalog::program`].
    pub fn program_alone(
        &self,
        name: &str,
        params: &[(String, f64)],
    ) -> Result<Workload, InputError> {
        self.program(name, params).map(alone)
    }

    /// Parameters of a program and their defaults; none for an rt-app file.
    ///
    /// # Errors
    /// An unknown program.
    pub fn params(&self, program: &str) -> Result<Vec<(&str, f64)>, InputError> {
        match self.programs.get(program).ok_or_else(|| self.unknown(FileKind::Program, program))? {
            ProgramFile::Toml(template) => Ok(template.params()),
            ProgramFile::RtApp(_) => Ok(Vec::new()),
            ProgramFile::Made(made) => Ok(made.params().to_vec()),
        }
    }

    /// What an imported program honours differently from its own tool, one line each.
    pub fn notes(&self, program: &str) -> &[String] {
        match self.programs.get(program) {
            Some(ProgramFile::RtApp(import)) => &import.notes,
            Some(ProgramFile::Made(made)) => made.notes(),
            _ => &[],
        }
    }

    /// The workload of that name; a program's name is a workload of that program alone, and the name
    /// of a file with a single workload is that workload.
    ///
    /// # Errors
    /// An unknown workload, or anything wrong with one of its programs.
    pub fn workload(&self, name: &str) -> Result<Workload, InputError> {
        if let Some(template) = self.workloads.get(name) {
            return template.instantiate(|app| self.app_program(app));
        }
        if self.programs.contains_key(name) {
            return Ok(alone(self.program(name, &[])?));
        }
        match self.workloads_of_file(name) {
            [single] => self.workload(single),
            [] => Err(self.unknown(FileKind::Workload, name)),
            several => {
                Err(error(format!("file {} defines {} workloads", quoted(name), several.len()))
                    .with_hint(format!("name one: {}", several.join(", "))))
            }
        }
    }

    fn app_program(&self, app: &AppTemplate) -> Result<Arc<Program>, InputError> {
        let key = path_of(&app.program, &app.spot).unwrap_or_else(|| app.program.clone());
        let Some(file) = self.programs.get(&key) else {
            return Err(unresolved(
                FileKind::Program,
                &app.program,
                &app.spot,
                self.programs.keys(),
            ));
        };
        let known = self.params(&key)?;
        for ((name, _), spot) in app.params.iter().zip(&app.param_spots) {
            if known.iter().all(|(param, _)| param != name) {
                let what = format!("parameter of program {}:", quoted(&app.program));
                return Err(spot.unknown(&what, name, known.iter().map(|(param, _)| *param)));
            }
        }
        file.program(&key, &app.params, &self.profiles).map(Arc::new)
    }

    /// All profiles.
    pub fn profiles(&self) -> &ProfileLibrary {
        &self.profiles
    }

    /// A text of several lines about one machine, core type, profile, program or workload.
    ///
    /// # Errors
    /// An unknown name, or anything wrong with what it names.
    pub fn describe(&self, kind: FileKind, name: &str) -> Result<String, InputError> {
        describe::describe(self, kind, name)
    }

    fn unknown(&self, kind: FileKind, name: &str) -> InputError {
        let mut known: Vec<String> = self.list(kind).into_iter().map(|(known, _)| known).collect();
        if kind == FileKind::Workload {
            known.extend(self.programs.keys().cloned());
        }
        let error = error(format!("unknown {} {}", kind.word(), quoted(name)));
        if known.is_empty() {
            error
        } else {
            error.with_hint(suggest(name, known.iter().map(String::as_str)))
        }
    }
}

impl ProgramFile {
    fn description(&self) -> &str {
        match self {
            ProgramFile::Toml(template) => template.description(),
            ProgramFile::RtApp(import) => &import.program.description,
            ProgramFile::Made(made) => made.description(),
        }
    }

    fn program(
        &self,
        name: &str,
        params: &[(String, f64)],
        profiles: &ProfileLibrary,
    ) -> Result<Program, InputError> {
        match (self, params) {
            (ProgramFile::Toml(template), _) => template.instantiate(params, profiles),
            (ProgramFile::RtApp(import), []) => Ok(import.program.clone()),
            (ProgramFile::RtApp(_), [(param, _), ..]) => Err(error(format!(
                "unknown parameter {}, the rt-app file {} has none",
                quoted(param),
                quoted(name)
            ))),
            (ProgramFile::Made(made), _) => {
                let known = || made.params().iter().map(|(param, _)| *param);
                match params.iter().find(|(param, _)| known().all(|each| each != param)) {
                    Some((param, _)) => Err(error(format!(
                        "unknown parameter {} of program {}",
                        quoted(param),
                        quoted(name)
                    ))
                    .with_hint(suggest(param, known()))),
                    None => made.make(params, profiles),
                }
            }
        }
    }
}

fn parse_program_file(file: &str, text: &str) -> Result<ProgramFile, InputError> {
    if is_json(file, text) {
        return import_rtapp(file, text).map(ProgramFile::RtApp);
    }
    parse_program(file, text).map(ProgramFile::Toml)
}

/// Whether a file is JSON: by its name, or because no TOML document starts with a brace.
fn is_json(file: &str, text: &str) -> bool {
    file.ends_with(".json") || text.trim_start().starts_with('{')
}

/// The workload of one program alone.
fn alone(program: Program) -> Workload {
    Workload {
        name: program.name.clone(),
        description: program.description.clone(),
        apps: vec![App {
            name: program.name.clone(),
            program: Arc::new(program),
            start_ns: 0,
            nice: 0,
        }],
    }
}

/// How the names of files end.
const SUFFIXES: [&str; 3] = [".toml", ".json", ".ampr"];

/// The path that a reference means, if it is one: relative to the folder of the file it stands in.
fn path_of(name: &str, spot: &Spot) -> Option<String> {
    let is_path =
        name.contains(['/', '\\']) || SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
    is_path.then(|| spot.beside(name))
}

fn unresolved<'a>(
    kind: FileKind,
    name: &str,
    spot: &Spot,
    known: impl Iterator<Item = &'a String>,
) -> InputError {
    match path_of(name, spot) {
        Some(path) => spot.error(format!("file {} was not found", quoted(&path))),
        None => spot.unknown(kind.word(), name, known.map(String::as_str)),
    }
}

/// An error about a name that did not come from a file.
fn error(message: String) -> InputError {
    InputError::new("catalog", "", message)
}
