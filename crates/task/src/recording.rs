//! Recordings: what workers have really executed, as one line of CSV per execution.
//!
//! ```text
//! # workers big:2.5x1,little:1x1
//! task,kind,worker,start_s,end_s,after
//! a,POTRF,0,0,0.002,
//! b,TRSM,1,0.0021,0.006,a
//! ```
//!
//! The columns may be in any order; `kind` and `after` (names, separated by `;`) may be absent, so tables that
//! `ampsched tasks schedule --csv` writes can be read, too. Without the first line all workers are of one class. Fields
//! may be quoted as in RFC 4180.

use std::collections::HashMap;
use std::fmt::Write;

use ampsched_model::InputError;

use crate::draft::Draft;
use crate::{Graph, Schedule, Slot, TaskId, WORKERS_MAX, WorkerClass, WorkerId, Workers};

const HEAD: &str = "# workers ";
const COLUMNS: [&str; 6] = ["task", "kind", "worker", "start_s", "end_s", "after"];

/// What workers have executed, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The tasks; work is the time that one took times the speed of the worker's class.
    pub graph: Graph,
    /// The workers.
    pub workers: Workers,
    /// The executions.
    pub schedule: Schedule,
}

/// A line of the table.
struct Row<'a> {
    line: usize,
    task: &'a str,
    kind: &'a str,
    worker: usize,
    start_s: f64,
    end_s: f64,
    after: &'a str,
}

impl Recording {
    /// Reads a recording; `file` is its path for messages.
    ///
    /// Errors: a column that is missing, a number that is none, an end before its start, an unknown worker or task, a
    /// cycle; with line and task.
    pub fn read(file: &str, text: &str) -> Result<Self, InputError> {
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line)).peekable();
        let stated = lines.next_if(|(_, line)| line.starts_with(HEAD));
        let stated = stated.map(|(line, text)| stated_workers(file, line, text)).transpose()?;
        let error = |line: usize, message: String| InputError::new(file, "", message).at_line(line);
        let (line, head) = lines.next().ok_or_else(|| error(1, "is empty".into()))?;
        let place_of = places(&fields(file, line, head)?).map_err(|text| error(line, text))?;
        let mut rows = Vec::new();
        for (line, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
            rows.push((line, fields(file, line, text)?));
        }
        let rows: Result<Vec<Row<'_>>, InputError> =
            rows.iter().map(|(line, fields)| row(file, *line, fields, &place_of)).collect();
        let rows = rows?;
        let workers = match stated {
            Some(workers) => workers,
            None => equal_workers(rows.iter().map(|row| row.worker + 1).max().unwrap_or(1))?,
        };
        build(file, &rows, workers)
    }

    /// Writes the recording as a text that [`Recording::read`] reads. A semicolon in a task's name becomes a comma.
    pub fn write(&self) -> String {
        let class = |class: &WorkerClass| format!("{}:{}x{}", class.name, class.speed, class.count);
        let classes: Vec<String> = self.workers.classes().iter().map(class).collect();
        let mut text = format!("{HEAD}{}\n{}\n", classes.join(","), COLUMNS.join(","));
        for slot in self.schedule.slots() {
            let name = |task: &TaskId| self.graph.task_name(*task).replace(';', ",");
            let before: Vec<String> = self.graph.predecessors(slot.task).iter().map(name).collect();
            writeln!(
                text,
                "{},{},{},{},{},{}",
                quoted(&name(&slot.task)),
                quoted(self.graph.kind(slot.task)),
                slot.worker.0,
                slot.start_s,
                slot.end_s,
                quoted(&before.join(";"))
            )
            .expect("a text grows");
        }
        text
    }
}

/// A field of a line of CSV, in quotes if it needs them.
pub(crate) fn quoted(field: &str) -> String {
    if field.contains([',', '"', '#', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\"").replace(['\n', '\r'], " "))
    } else {
        field.to_owned()
    }
}

/// Fields of a line of CSV; quotes around a field are removed.
pub(crate) fn fields(file: &str, line: usize, text: &str) -> Result<Vec<String>, InputError> {
    let mut fields = vec![String::new()];
    let (mut is_quoted, mut characters) = (false, text.chars().peekable());
    while let Some(character) = characters.next() {
        let field = fields.last_mut().expect("there is one");
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => field.push('"'),
            '"' if is_quoted || field.is_empty() => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => field.push(character),
        }
    }
    if is_quoted {
        return Err(InputError::new(file, "", "a quote is not closed").at_line(line));
    }
    Ok(fields)
}

/// Where each of the columns is.
fn places(head: &[String]) -> Result<[Option<usize>; COLUMNS.len()], String> {
    let known = format!("columns are {}; kind and after may be absent", COLUMNS.join(", "));
    if let Some(unknown) = head.iter().find(|name| !COLUMNS.contains(&name.trim())) {
        return Err(format!("column {unknown:?} is unknown ({known})"));
    }
    let place_of = COLUMNS.map(|column| head.iter().position(|name| name.trim() == column));
    for (column, place) in COLUMNS.iter().zip(&place_of) {
        if place.is_none() && !matches!(*column, "kind" | "after") {
            return Err(format!("column {column:?} is missing ({known})"));
        }
    }
    Ok(place_of)
}

fn row<'a>(
    file: &str,
    line: usize,
    fields: &'a [String],
    place_of: &[Option<usize>; COLUMNS.len()],
) -> Result<Row<'a>, InputError> {
    let mut texts = [""; COLUMNS.len()];
    for (text, place) in texts.iter_mut().zip(place_of) {
        if let Some(place) = place {
            let missing = || InputError::new(file, "", "has too few fields").at_line(line);
            *text = fields.get(*place).ok_or_else(missing)?.trim();
        }
    }
    let [task, kind, worker, start_s, end_s, after] = texts;
    let error =
        |message: String| InputError::new(file, format!("task {task:?}"), message).at_line(line);
    let worker = match worker.parse() {
        Ok(worker) if worker < WORKERS_MAX => worker,
        _ => {
            let limit = WORKERS_MAX - 1;
            return Err(error(format!("worker {worker:?} is not a number from 0 to {limit}")));
        }
    };
    let time = |name: &str, text: &str| match text.parse() {
        Ok(time) if (0.0..=crate::AMOUNT_MAX).contains(&time) => Ok(time),
        _ => Err(error(format!("{name} {text:?} is not a time in seconds"))),
    };
    let (start_s, end_s) = (time("start_s", start_s)?, time("end_s", end_s)?);
    if end_s < start_s {
        return Err(error(format!("ends at {end_s} s, before its start at {start_s} s")));
    }
    Ok(Row { line, task, kind, worker, start_s, end_s, after })
}

/// Reads the line that states the workers: `# workers big:2.5x2,little:1x2`.
fn stated_workers(file: &str, line: usize, text: &str) -> Result<Workers, InputError> {
    let class = |part: &str| {
        let (name, rest) = part.trim().rsplit_once(':')?;
        let (speed, count) = rest.split_once('x')?;
        let (speed, count) = (speed.parse().ok()?, count.parse().ok()?);
        Some(WorkerClass { name: name.to_owned(), speed, count, grab_s: 0.0 })
    };
    let classes = text[HEAD.len()..].split(',').map(|part| {
        class(part).ok_or_else(|| {
            let message = format!("{part:?} is not of the form NAME:SPEEDxCOUNT");
            InputError::new(file, "workers", message).at_line(line)
        })
    });
    let classes: Result<Vec<_>, _> = classes.collect();
    Workers::new(classes?)
        .map_err(|error| InputError { file: file.to_owned(), ..error.at_line(line) })
}

fn equal_workers(count: usize) -> Result<Workers, InputError> {
    Workers::new(vec![WorkerClass { name: "worker".into(), speed: 1.0, count, grab_s: 0.0 }])
}

fn build(file: &str, rows: &[Row<'_>], workers: Workers) -> Result<Recording, InputError> {
    let mut draft = Draft::new(file);
    let mut numbers = Vec::with_capacity(rows.len());
    for row in rows {
        if row.worker >= workers.len() {
            let message = format!("worker {} of {} does not exist", row.worker, workers.len());
            return Err(draft.error(row.line, row.task, &message));
        }
        let class = workers.class_of(WorkerId::from(row.worker));
        let work = (row.end_s - row.start_s) * workers.classes()[class.index()].speed;
        let number = match draft.find(row.task) {
            Some(number) => number,
            None => draft.task(row.task, row.kind, work, row.line)?,
        };
        numbers.push(number);
    }
    let mut seen = vec![false; draft.len()];
    for (row, &number) in rows.iter().zip(&numbers) {
        if std::mem::replace(&mut seen[number as usize], true) {
            continue; // Another execution of the same task.
        }
        for from in row.after.split(';').map(str::trim).filter(|from| !from.is_empty()) {
            let from = draft.require(from, row.task, row.line)?;
            draft.link(from, number, 0.0, row.line)?;
        }
    }
    let graph = draft.finish()?;
    let number_of: HashMap<&str, TaskId> =
        graph.tasks().map(|task| (graph.task_name(task), task)).collect();
    let slot = |row: &Row<'_>| Slot {
        task: number_of[row.task],
        worker: WorkerId::from(row.worker),
        start_s: row.start_s,
        end_s: row.end_s,
    };
    let schedule = Schedule::new(rows.iter().map(slot).collect());
    Ok(Recording { graph, workers, schedule })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# workers big:2.5x1,little:1x2
task,kind,worker,start_s,end_s,after
a,POTRF,0,0,2,
\"b, c\",TRSM,1,2,6,a
d,,0,6,7,\"a;b, c\"
";

    #[test]
    fn what_was_written_is_read_again() {
        let recording = Recording::read("run.csv", TEXT).unwrap();
        assert_eq!(recording.write(), TEXT);
        assert_eq!(recording.workers.len(), 3);
        assert_eq!(recording.graph.name(), "run");
        assert_eq!(recording.graph.work(TaskId(0)), 5.0);
        assert_eq!(recording.graph.task_name(TaskId(1)), "b, c");
        assert_eq!(recording.graph.predecessors(TaskId(2)), [TaskId(0), TaskId(1)]);
        assert_eq!(recording.schedule.makespan_s(), 7.0);
    }

    #[test]
    fn columns_of_a_schedule_are_enough() {
        let text = "task,kind,worker,start_s,end_s\na,,1,0.0,2.0\n\nb,,0,1.0,2.0\n";
        let recording = Recording::read("fifo.csv", text).unwrap();
        assert_eq!(recording.workers.len(), 2);
        assert_eq!(recording.workers.classes()[0].name, "worker");
    }

    #[test]
    fn errors_name_file_line_and_task() {
        let error_of = |text: &str| Recording::read("run.csv", text).unwrap_err().to_string();
        let with = |row: &str| error_of(&format!("task,kind,worker,start_s,end_s,after\n{row}\n"));
        assert_eq!(error_of(""), "run.csv:1: is empty");
        assert_eq!(
            error_of("task,worker,end_s\n"),
            "run.csv:1: column \"start_s\" is missing (columns are task, kind, worker, start_s, end_s, after; kind and after may be absent)"
        );
        assert!(error_of("task,when\n").contains("column \"when\" is unknown"));
        assert_eq!(with("a,,0,0"), "run.csv:2: has too few fields");
        assert_eq!(
            with("a,,9999,0,1,"),
            "run.csv:2: task \"a\": worker \"9999\" is not a number from 0 to 4095"
        );
        assert_eq!(
            with("a,,0,x,1,"),
            "run.csv:2: task \"a\": start_s \"x\" is not a time in seconds"
        );
        assert_eq!(
            with("a,,0,-1,1,"),
            "run.csv:2: task \"a\": start_s \"-1\" is not a time in seconds"
        );
        assert_eq!(
            with("a,,0,2,1,"),
            "run.csv:2: task \"a\": ends at 1 s, before its start at 2 s"
        );
        assert_eq!(
            with("a,,0,0,1,b"),
            "run.csv:2: task \"a\": depends on task \"b\", which does not exist"
        );
        assert!(with("a,,0,0,1,a").contains("is part of a cycle: \"a\" -> \"a\""));
        assert_eq!(with("\"a,,0,0,1,"), "run.csv:2: a quote is not closed");
        assert_eq!(
            error_of("# workers bigx2\ntask,worker,start_s,end_s\na,0,0,1\n"),
            "run.csv:1: workers: \"bigx2\" is not of the form NAME:SPEEDxCOUNT"
        );
        assert!(
            error_of("# workers big:1x1\ntask,worker,start_s,end_s\na,1,0,1\n")
                .contains("run.csv:3: task \"a\": worker 1 of 1 does not exist")
        );
        assert!(error_of("task,worker,start_s,end_s\n").contains("has no task"));
    }
}
