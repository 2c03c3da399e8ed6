//! Lists of processes beside a trace, as `ps` prints them: systrace adds `USER PID PPID ... NAME COMM`, and
//! `USER PID TID CMD` of threads.

use super::event::Story;

/// The number of kthreadd, whose children are the kernel's own threads.
const KTHREADD: u32 = 2;

/// Whether a text is such a list: its first line that says something is a head, or announces one.
pub fn is_form(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    first.starts_with("PROCESS DUMP") || Columns::of(first).is_some()
}

/// Which column says what.
#[derive(Clone, Copy, Debug)]
struct Columns {
    pid: usize,
    parent: Option<usize>,
    tid: Option<usize>,
    /// The process's name.
    name: Option<usize>,
    /// How many columns stand before the last one, which may hold spaces.
    last: usize,
    /// Android 4's `ps` prints a state, and no head above it.
    has_state: bool,
}

impl Columns {
    /// Those of a head; none if the line is none.
    fn of(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let place = |names: &[&str]| words.iter().position(|word| names.contains(word));
        let tid = place(&["TID", "LWP", "SPID"]);
        let name = place(&["NAME", "CMDLINE", "ARGS", "COMMAND"]);
        let is_head = matches!(words.first(), Some(&("USER" | "UID" | "PID" | "LABEL")));
        let columns = Self {
            pid: place(&["PID"])?,
            parent: place(&["PPID"]),
            tid,
            name: if tid.is_some() { None } else { name },
            last: words.len() - 1,
            has_state: words.len() == 8 && words[1..4] == ["PID", "PPID", "VSIZE"],
        };
        (is_head && (tid.is_some() || name.is_some() || place(&["CMD", "COMM"]).is_some()))
            .then_some(columns)
    }
}

/// Adds to a story what a list tells; the trace itself knows better.
pub fn tell(story: &mut Story, text: &str) {
    let mut columns = None;
    let mut unread = 0_u64;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(found) = Columns::of(line) {
            columns = Some(found);
        } else if let Some(columns) = columns {
            unread += u64::from(row(story, columns, line).is_none());
        }
    }
    if unread > 0 {
        story.unknown.push(format!("{unread} lines of the list of processes"));
    }
}

/// Takes a line; none if it lacks a number or a name.
fn row(story: &mut Story, columns: Columns, line: &str) -> Option<()> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |place: usize| words.get(place)?.parse::<u32>().ok();
    let pid = number(columns.pid)?;
    let tid = match columns.tid {
        Some(place) => number(place)?,
        None => pid,
    };
    story.processes.entry(tid).or_insert(pid);
    if words.first().is_some_and(|user| is_app(user)) {
        story.apps.insert(pid);
    }
    let is_of_kernel = columns.parent.and_then(number) == Some(KTHREADD) || pid == KTHREADD;
    if is_of_kernel && columns.parent.is_some() || story.of_kernel.contains(&pid) {
        story.of_kernel.insert(tid);
    }
    let last = rest(line, columns.last + usize::from(columns.has_state))?;
    let process = columns.name.map(|place| if place == columns.last { last } else { words[place] });
    if let Some(process) = process.filter(|name| !name.starts_with('[')) {
        let name = story.names.number(process.rsplit('/').next().unwrap_or(process));
        story.process_names.entry(pid).or_insert(name);
    }
    // The last column names the thread, unless it is the only one and names the process.
    if columns.name != Some(columns.last) {
        let name = story.names.number(last);
        story.thread_names.entry(tid).or_insert(name);
    }
    Some(())
}

/// Whether Android has made a user for an app: `u0_a80`.
fn is_app(user: &str) -> bool {
    let numbers = user.strip_prefix('u').and_then(|rest| rest.split_once("_a"));
    numbers.is_some_and(|(user, app)| user.parse::<u32>().is_ok() && app.parse::<u32>().is_ok())
}

/// A line behind so many words.
fn rest(line: &str, words: usize) -> Option<&str> {
    let mut rest = line;
    for _ in 0..words {
        rest = rest[rest.find(char::is_whitespace)?..].trim_start();
    }
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_threads_and_the_kernels_own_are_told_apart() {
        let list = "PROCESS DUMP\r\n\
            USER           PID  PPID     VSZ    RSS WCHAN  PC S NAME                        COMM\r\n\
            root             2     0       0      0 0       0 S [kthreadd]                  kthreadd\r\n\
            root             7     2       0      0 0       0 S [rcu_preempt]               rcu_preempt\r\n\
            u0_a80        7459   628 1725212 218300 0       0 S com.example.app             com.example.a b\r\n\
            broken line\r\n\
            USER           PID   TID CMD\r\n\
            u0_a80        7459  7502 Chromium Net\r\n";
        assert!(is_form(list) && !is_form("USER of the PID") && !is_form("# tracer: nop"));
        let mut story = Story::default();
        tell(&mut story, list);
        let text = |name| story.names.text(name);
        assert_eq!(text(story.process_names[&7459]), "com.example.app");
        assert_eq!(text(story.thread_names[&7502]), "Chromium Net");
        assert_eq!(text(story.thread_names[&7459]), "com.example.a b");
        assert_eq!((story.processes[&7502], story.processes[&7459]), (7459, 7459));
        assert!(story.of_kernel.contains(&7) && !story.of_kernel.contains(&7459));
        assert_eq!(story.apps.iter().collect::<Vec<_>>(), [&7459]);
        assert_eq!(story.unknown, ["1 lines of the list of processes"]);
    }
}
