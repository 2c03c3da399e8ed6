//! WfCommons WfFormat (<https://github.com/wfcommons/WfFormat>): recorded workflows as JSON.
//!
//! Versions 1.4 and 1.5 state tasks under `workflow.specification` and run times under `workflow.execution`;
//! version 1.3 and older state both in one list, `workflow.tasks` (or `jobs`). A task's work is its run time
//! on one core of speed 1. Files that one task writes and a later one reads are data between them.

use std::collections::{BTreeMap, HashMap, HashSet};

use ampsched_model::InputError;
use serde_json::{Map, Value, json};

use super::{ReadOptions, link_data, refuse};
use crate::draft::Draft;
use crate::{Graph, TaskId};

/// Schema version that is written.
const VERSION: &str = "1.5";

/// Reads a file's text.
pub fn read(file: &str, text: &str, options: &ReadOptions) -> Result<Graph, InputError> {
    let root: Value = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
        InputError::new(file, "", format!("not valid JSON: {message}")).at_line(error.line().max(1))
    })?;
    let workflow = root.get("workflow").and_then(Value::as_object).ok_or_else(|| {
        InputError::new(file, "", "key \"workflow\" is missing")
            .with_hint("only WfCommons WfFormat is read from JSON")
    })?;
    let reader = Reader::new(file, workflow)?;
    let mut draft = Draft::new(file);
    if let Some(name) = root.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) {
        draft.set_name(name);
    }
    for (index, task) in reader.tasks.iter().enumerate() {
        let place = Place { file, list: reader.list, index };
        let id = place.text_of(task, &["id", "name"])?;
        let work = reader.runtime_s(&place, task, id)?;
        let cores =
            cores_of(reader.runtimes.get(id).copied().unwrap_or(task), &["coreCount", "cores"]);
        reader.check_cores(&format!("task {id:?}"), cores)?;
        let name = task.get("name").and_then(Value::as_str).unwrap_or_default();
        draft.task(id, kind_of(name), work, 0)?;
    }
    reader.link(&mut draft, options)?;
    if draft.has_untimed_data() {
        draft.note("sizes of files take no time, as no bandwidth is given".to_owned());
    }
    draft.finish()
}

/// Where a task stands, for messages.
struct Place<'a> {
    file: &'a str,
    list: &'static str,
    index: usize,
}

impl Place<'_> {
    fn error(&self, message: &str) -> InputError {
        InputError::new(self.file, format!("{}[{}]", self.list, self.index), message)
    }

    /// The first of these keys that holds a text.
    fn text_of<'v>(&self, task: &'v Value, keys: &[&str]) -> Result<&'v str, InputError> {
        let found = keys.iter().find_map(|key| task.get(key).and_then(Value::as_str));
        found.ok_or_else(|| self.error(&format!("key {:?} is missing", keys[0])))
    }

    /// The texts of a list, which may be missing.
    fn texts<'v>(&self, task: &'v Value, key: &str) -> Result<Vec<&'v str>, InputError> {
        let Some(value) = task.get(key) else { return Ok(Vec::new()) };
        let list = value.as_array().ok_or_else(|| self.error(&format!("{key} is not a list")))?;
        list.iter()
            .map(|item| {
                item.as_str()
                    .ok_or_else(|| self.error(&format!("{key} holds something else than names")))
            })
            .collect()
    }
}

struct Reader<'v> {
    file: &'v str,
    /// Where the tasks are listed.
    list: &'static str,
    tasks: &'v [Value],
    /// Run times by task, where they stand apart from the tasks.
    runtimes: HashMap<&'v str, &'v Value>,
    size_of_file: HashMap<&'v str, f64>,
    /// The first task of each name.
    by_name: HashMap<&'v str, u32>,
}

impl<'v> Reader<'v> {
    fn new(file: &'v str, workflow: &'v Map<String, Value>) -> Result<Self, InputError> {
        let list_of = |value: Option<&'v Value>| value.and_then(Value::as_array).map(Vec::as_slice);
        let specification = workflow.get("specification");
        let mut reader = Self {
            file,
            list: "workflow.specification.tasks",
            tasks: &[],
            runtimes: HashMap::new(),
            size_of_file: HashMap::new(),
            by_name: HashMap::new(),
        };
        if let Some(tasks) = list_of(specification.and_then(|part| part.get("tasks"))) {
            reader.tasks = tasks;
            let execution = workflow.get("execution").and_then(|part| part.get("tasks"));
            for task in list_of(execution).unwrap_or_default() {
                if let Some(id) = task.get("id").and_then(Value::as_str) {
                    reader.runtimes.insert(id, task);
                }
            }
            reader.read_files(list_of(specification.and_then(|part| part.get("files"))))?;
        } else if let Some(tasks) = list_of(workflow.get("tasks")) {
            (reader.tasks, reader.list) = (tasks, "workflow.tasks");
        } else if let Some(tasks) = list_of(workflow.get("jobs")) {
            (reader.tasks, reader.list) = (tasks, "workflow.jobs");
        } else {
            let message = "key \"specification\" with a list of tasks is missing";
            return Err(InputError::new(file, "workflow", message)
                .with_hint("WfFormat 1.5; \"tasks\" in version 1.3"));
        }
        for (number, task) in reader.tasks.iter().enumerate() {
            reader.read_files(list_of(task.get("files")))?;
            if let Some(name) = task.get("name").and_then(Value::as_str) {
                reader.by_name.entry(name).or_insert(number as u32);
            }
        }
        let recorded = workflow.get("execution").and_then(|part| part.get("machines"));
        for machine in list_of(recorded.or(workflow.get("machines"))).unwrap_or_default() {
            let cores = machine.get("cpu").and_then(|cpu| cores_of(cpu, &["coreCount", "count"]));
            reader.check_cores("machines", cores)?;
        }
        Ok(reader)
    }

    /// Notes the sizes of files.
    fn read_files(&mut self, files: Option<&'v [Value]>) -> Result<(), InputError> {
        for entry in files.unwrap_or_default() {
            let name = ["id", "name"].iter().find_map(|key| entry.get(key).and_then(Value::as_str));
            let Some(name) = name else {
                return Err(InputError::new(self.file, "files", "a file has no \"id\""));
            };
            let Some(size) = ["sizeInBytes", "size"].iter().find_map(|key| entry.get(key)) else {
                continue;
            };
            let bytes = size.as_f64().filter(|bytes| *bytes >= 0.0).ok_or_else(|| {
                let message = format!("size {size} is not a number of bytes");
                InputError::new(self.file, format!("file {name:?}"), message)
            })?;
            self.size_of_file.insert(name, bytes);
        }
        Ok(())
    }

    /// Run time of a task in seconds.
    fn runtime_s(&self, place: &Place<'_>, task: &Value, id: &str) -> Result<f64, InputError> {
        let holder = self.runtimes.get(id).copied().unwrap_or(task);
        let keys = ["runtimeInSeconds", "runtime"];
        let Some(value) = keys.iter().find_map(|key| holder.get(key)) else {
            let error = place.error(&format!("task {id:?} has no run time"));
            return Err(
                error.with_hint("workflow.execution.tasks[].runtimeInSeconds in WfFormat 1.5")
            );
        };
        value.as_f64().ok_or_else(|| place.error(&format!("run time {value} is not a number")))
    }

    /// Refuses a number of cores that nothing can have.
    fn check_cores(&self, key: &str, cores: Option<&Value>) -> Result<(), InputError> {
        let Some(cores) = cores else { return Ok(()) };
        if cores.as_f64().is_some_and(|count| count > 0.0) {
            return Ok(());
        }
        let message = format!("{cores} cores, a number above 0 is needed");
        Err(InputError::new(self.file, key, message))
    }

    /// Links the tasks by their parents and children, which state the same twice.
    fn link(&self, draft: &mut Draft, options: &ReadOptions) -> Result<(), InputError> {
        let mut links = HashSet::new();
        let files = Files::of(self.tasks);
        for (index, task) in self.tasks.iter().enumerate() {
            let place = Place { file: self.file, list: self.list, index };
            let to = index as u32;
            let id = place.text_of(task, &["id", "name"])?;
            for parent in place.texts(task, "parents")? {
                let from = self.find(draft, parent, id)?;
                if links.insert((from, to)) {
                    link_data(draft, (from, to), self.bytes(&files, from, to), 0, options)?;
                }
            }
            for child in place.texts(task, "children")? {
                let child = self.find(draft, child, id)?;
                if links.insert((to, child)) {
                    link_data(draft, (to, child), self.bytes(&files, to, child), 0, options)?;
                }
            }
        }
        Ok(())
    }

    /// The task of that id or, in old files, of that name.
    fn find(&self, draft: &Draft, name: &str, by: &str) -> Result<u32, InputError> {
        if let Some(task) = draft.find(name) {
            return Ok(task);
        }
        self.by_name.get(name).map_or_else(|| draft.require(name, by, 0), |&task| Ok(task))
    }

    /// Bytes of the files that one task writes and the other reads.
    fn bytes(&self, files: &Files<'v>, from: u32, to: u32) -> f64 {
        let (written, read) = (&files.written[from as usize], &files.read[to as usize]);
        let (few, many) =
            if written.len() < read.len() { (written, read) } else { (read, written) };
        let shared = few.iter().filter(|file| many.binary_search(file).is_ok());
        shared.map(|&file| self.size_of_file.get(file).copied().unwrap_or(0.0)).sum()
    }
}

/// Names of the files of each task, in alphabetical order.
struct Files<'v> {
    written: Vec<Vec<&'v str>>,
    read: Vec<Vec<&'v str>>,
}

impl<'v> Files<'v> {
    fn of(tasks: &'v [Value]) -> Self {
        let all = |link| tasks.iter().map(|task| files_of(task, link)).collect();
        Self { written: all("output"), read: all("input") }
    }
}

/// Names of the files that a task reads (`input`) or writes (`output`), each once, in alphabetical order.
fn files_of<'v>(task: &'v Value, link: &str) -> Vec<&'v str> {
    let new = task.get(format!("{link}Files")).and_then(Value::as_array).into_iter().flatten();
    let old = task.get("files").and_then(Value::as_array).into_iter().flatten();
    let old = old.filter(|file| file.get("link").and_then(Value::as_str) == Some(link));
    let name_of = |file: &'v Value| {
        ["id", "name"].iter().find_map(|key| file.get(key).and_then(Value::as_str))
    };
    let mut names: Vec<&str> =
        new.filter_map(Value::as_str).chain(old.filter_map(name_of)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The first of these keys that is stated, if not as nothing.
fn cores_of<'v>(holder: &'v Value, keys: &[&str]) -> Option<&'v Value> {
    keys.iter().find_map(|key| holder.get(key)).filter(|cores| !cores.is_null())
}

/// The name that tasks of one kind share: what stands before the number in a task's name.
fn kind_of(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['_', '-'])
}

/// A name of a task by which `kind_of` finds its kind. Errors: there is none.
fn name_for(file: &str, graph: &Graph, task: TaskId) -> Result<String, InputError> {
    let kind = graph.kind(task);
    let name = match kind_of(kind) == kind && !kind.is_empty() {
        true => kind.to_owned(),
        false => [kind, &task.0.to_string()].join(if kind.is_empty() { "" } else { "_" }),
    };
    if kind_of(&name) == kind {
        return Ok(name);
    }
    let key = format!("task {:?}", graph.task_name(task));
    let message = format!("its kind {kind:?} cannot stand in WfFormat: it ends in _ or -");
    Err(InputError::new(file, key, message).with_hint("write .dot or .csv"))
}

/// Writes a graph. Errors: costs per class; communication without a bandwidth that tells sizes from times; a kind that
/// would be read as another one.
pub fn write(file: &str, graph: &Graph, options: &ReadOptions) -> Result<String, InputError> {
    refuse(file, graph, "WfFormat", true)?;
    if graph.has_communication() && options.bytes_per_s.is_none() {
        let message = "WfFormat holds sizes of files, the graph has communication times";
        return Err(InputError::new(file, "", message).with_hint("give a bandwidth"));
    }
    let mut files = Vec::new();
    let mut written: BTreeMap<TaskId, Vec<String>> = BTreeMap::new();
    let mut read: BTreeMap<TaskId, Vec<String>> = BTreeMap::new();
    let bytes_per_s = options.bytes_per_s.unwrap_or_default();
    for task in graph.tasks() {
        for ((from, comm_s), (_, bytes)) in graph.inputs(task).zip(graph.untimed_inputs(task)) {
            let bytes = bytes + (comm_s * bytes_per_s).round();
            if bytes > 0.0 {
                let id = format!("{}-{}", from.0, task.0);
                files.push(json!({ "id": id, "sizeInBytes": whole_if(bytes) }));
                written.entry(from).or_default().push(id.clone());
                read.entry(task).or_default().push(id);
            }
        }
    }
    let names = |tasks: &[TaskId]| -> Vec<&str> {
        tasks.iter().map(|&task| graph.task_name(task)).collect()
    };
    let tasks: Result<Vec<Value>, InputError> = graph
        .tasks()
        .map(|task| {
            Ok(json!({
                "name": name_for(file, graph, task)?,
                "id": graph.task_name(task),
                "parents": names(graph.predecessors(task)),
                "children": names(graph.successors(task)),
                "inputFiles": read.remove(&task).unwrap_or_default(),
                "outputFiles": written.remove(&task).unwrap_or_default(),
            }))
        })
        .collect();
    let runtimes: Vec<Value> = graph
        .tasks()
        .map(|task| json!({ "id": graph.task_name(task), "runtimeInSeconds": graph.work(task), "coreCount": 1 }))
        .collect();
    let specification = json!({ "tasks": tasks?, "files": files });
    let execution = json!({ "tasks": runtimes });
    let root = json!({
        "name": graph.name(),
        "schemaVersion": VERSION,
        "workflow": { "specification": specification, "execution": execution },
    });
    Ok(serde_json::to_string_pretty(&root).expect("a value has only text keys") + "\n")
}

/// A number without a fraction as a whole number, as the schema has sizes.
fn whole_if(bytes: f64) -> Value {
    if bytes.fract() == 0.0 { json!(bytes as u64) } else { json!(bytes) }
}
