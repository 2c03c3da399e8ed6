//! Graphviz DOT: `digraph name { a [work=2]; a -> b [comm=0.5]; }`.
//!
//! Nodes: `work` (or SimGrid's `size`) in seconds at speed 1, or `costs="14,16,9"` in seconds per class of
//! workers, and `kind`. Edges: `comm` in seconds, or `size` in bytes. Defaults (`node [...]`, `edge [...]`), chains,
//! subgraphs and groups (`a -> {b c}` or `a -> b, c`) mean what they mean in Graphviz. Other attributes are for
//! drawing; they have no effect and are noted. As in SimGrid, tasks `root` and `end` that state nothing are no work
//! beside nodes with a `size`, and an edge with size -1 has no data.

mod lexer;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::rc::Rc;

use ampsched_model::InputError;
use ampsched_model::limits::{DEPTH_MAX, LINKS_MAX, TASKS_MAX};

use self::lexer::{Lexer, Token};
use super::{ReadOptions, link_data};
use crate::Graph;
use crate::draft::Draft;

/// Most attributes without effect that a note names.
const NAMES_SHOWN: usize = 16;
const NODE_KEYS: [&str; 4] = ["work", "size", "costs", "kind"];
const EDGE_KEYS: [&str; 2] = ["comm", "size"];
/// The size of an edge of SimGrid that only orders its tasks.
const NO_DATA: f64 = -1.0;

/// What a node or an edge states of the keys that mean something; the last value of a key counts. Values are shared,
/// as a default can stand for millions of nodes and edges.
#[derive(Clone, Default)]
struct Attributes {
    work: Option<Rc<str>>,
    size: Option<Rc<str>>,
    costs: Option<Rc<str>>,
    kind: Option<Rc<str>>,
    comm: Option<Rc<str>>,
}

impl Attributes {
    fn slot(&mut self, key: &str) -> Option<&mut Option<Rc<str>>> {
        match key {
            "work" => Some(&mut self.work),
            "size" => Some(&mut self.size),
            "costs" => Some(&mut self.costs),
            "kind" => Some(&mut self.kind),
            "comm" => Some(&mut self.comm),
            _ => None,
        }
    }

    /// Takes over what is stated later.
    fn extend(&mut self, later: &Stated) {
        for (key, value) in later {
            if let Some(slot) = self.slot(key) {
                *slot = Some(value.clone());
            }
        }
    }
}

/// The attributes of a statement that mean something, as they stand in the file.
type Stated = Vec<(String, Rc<str>)>;

/// Reads a file's text.
pub fn read(file: &str, text: &str, options: &ReadOptions) -> Result<Graph, InputError> {
    let mut parser = Parser::new(file, text, *options)?;
    parser.graph()?;
    parser.finish()
}

struct Node {
    name: String,
    attributes: Attributes,
    line: usize,
}

impl Node {
    fn states_work(&self) -> bool {
        let Attributes { work, size, costs, .. } = &self.attributes;
        work.is_some() || size.is_some() || costs.is_some()
    }
}

struct Edge {
    from: u32,
    to: u32,
    /// Those of its statement.
    attributes: Rc<Attributes>,
    line: usize,
}

/// Default attributes of nodes and edges, which a subgraph inherits and may change for itself.
#[derive(Clone, Default)]
struct Defaults {
    node: Attributes,
    edge: Attributes,
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The next token and its line.
    token: Token,
    line: usize,
    options: ReadOptions,
    name: Option<String>,
    nodes: Vec<Node>,
    by_name: HashMap<String, u32>,
    edges: Vec<Edge>,
    ignored: BTreeSet<String>,
}

impl<'t> Parser<'t> {
    fn new(file: &'t str, text: &'t str, options: ReadOptions) -> Result<Self, InputError> {
        let mut lexer = Lexer::new(file, text);
        let (token, line) = lexer.next()?;
        Ok(Self {
            lexer,
            token,
            line,
            options,
            name: None,
            nodes: Vec::new(),
            by_name: HashMap::new(),
            edges: Vec::new(),
            ignored: BTreeSet::new(),
        })
    }

    /// Takes the next token.
    fn take(&mut self) -> Result<Token, InputError> {
        let (token, line) = self.lexer.next()?;
        self.line = line;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn wrong(&self, expected: &str) -> InputError {
        self.lexer.error(self.line, &format!("expected {expected}, found {}", self.token))
    }

    fn expect(&mut self, token: &Token) -> Result<(), InputError> {
        if self.token == *token {
            self.take().map(drop)
        } else {
            Err(self.wrong(&token.to_string()))
        }
    }

    fn word(&mut self, what: &str) -> Result<String, InputError> {
        let Some(word) = self.token.word().map(str::to_owned) else { return Err(self.wrong(what)) };
        self.take()?;
        Ok(word)
    }

    /// Takes the next token if it is this keyword (in any case).
    fn keyword(&mut self, keyword: &str) -> Result<bool, InputError> {
        let found = matches!(&self.token, Token::Word(word) if word.eq_ignore_ascii_case(keyword));
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn graph(&mut self) -> Result<(), InputError> {
        self.keyword("strict")?;
        if self.keyword("graph")? {
            let message = "is an undirected graph, a digraph is needed";
            return Err(self.lexer.error(self.line, message));
        }
        if !self.keyword("digraph")? {
            return Err(self.wrong("\"digraph\""));
        }
        if self.token.word().is_some() {
            self.name = Some(self.word("a name")?);
        }
        self.expect(&Token::Open)?;
        self.statements(Defaults::default(), 0)?;
        self.expect(&Token::Close)?;
        if self.token == Token::End { Ok(()) } else { Err(self.wrong("the end of the file")) }
    }

    /// Statements up to the closing brace; returns the nodes that occur in them.
    fn statements(&mut self, mut defaults: Defaults, depth: usize) -> Result<Vec<u32>, InputError> {
        let mut members = Vec::new();
        while !matches!(self.token, Token::Close | Token::End) {
            if self.token == Token::Semicolon {
                self.take()?;
            } else {
                self.statement(&mut defaults, depth, &mut members)?;
            }
        }
        Ok(members)
    }

    fn statement(
        &mut self,
        defaults: &mut Defaults,
        depth: usize,
        members: &mut Vec<u32>,
    ) -> Result<(), InputError> {
        if self.keyword("graph")? {
            self.attributes(&[])?;
            return Ok(());
        }
        if self.keyword("node")? {
            defaults.node.extend(&self.attributes(&NODE_KEYS)?);
            return Ok(());
        }
        if self.keyword("edge")? {
            defaults.edge.extend(&self.attributes(&EDGE_KEYS)?);
            return Ok(());
        }
        let line = self.line;
        let Some(mut ends) = self.first_group(defaults, depth)? else { return Ok(()) };
        members.extend(&ends);
        let mut links = Vec::new();
        let mut is_edge = false;
        while self.token == Token::Arrow {
            self.take()?;
            is_edge = true;
            let next = self.group(defaults, depth)?;
            members.extend(&next);
            let more = ends.len().saturating_mul(next.len());
            if more > LINKS_MAX.saturating_sub(self.edges.len() + links.len()) {
                return Err(self.too_many(LINKS_MAX, "edges", line));
            }
            links.extend(ends.iter().flat_map(|&from| next.iter().map(move |&to| (from, to))));
            ends = next;
        }
        if !is_edge {
            let stated = self.attributes(&NODE_KEYS)?;
            for &node in &ends {
                self.nodes[node as usize].attributes.extend(&stated);
            }
        } else {
            let mut attributes = defaults.edge.clone();
            attributes.extend(&self.attributes(&EDGE_KEYS)?);
            let attributes = Rc::new(attributes);
            self.edges.extend(links.into_iter().map(|(from, to)| Edge {
                from,
                to,
                attributes: attributes.clone(),
                line,
            }));
        }
        Ok(())
    }

    /// The nodes that a statement begins with; none if it is `key = value`, an attribute of the graph.
    fn first_group(
        &mut self,
        defaults: &Defaults,
        depth: usize,
    ) -> Result<Option<Vec<u32>>, InputError> {
        if self.at_subgraph() {
            return self.group(defaults, depth).map(Some);
        }
        let line = self.line;
        let name = self.word("a statement")?;
        if self.token == Token::Equals {
            self.take()?;
            self.word("a value")?;
            self.ignored.insert(name);
            return Ok(None);
        }
        self.nodes_with_ports(name, line, defaults).map(Some)
    }

    fn at_subgraph(&self) -> bool {
        let keyword =
            matches!(&self.token, Token::Word(word) if word.eq_ignore_ascii_case("subgraph"));
        keyword || self.token == Token::Open
    }

    /// A node, or the nodes of a subgraph.
    fn group(&mut self, defaults: &Defaults, depth: usize) -> Result<Vec<u32>, InputError> {
        if !self.at_subgraph() {
            let line = self.line;
            let name = self.word("a node")?;
            return self.nodes_with_ports(name, line, defaults);
        }
        if depth >= DEPTH_MAX {
            let message = format!("subgraphs are nested deeper than {DEPTH_MAX} levels");
            return Err(self.lexer.error(self.line, &message));
        }
        if self.keyword("subgraph")? && self.token.word().is_some() {
            self.take()?;
        }
        self.expect(&Token::Open)?;
        let mut members = self.statements(defaults.clone(), depth + 1)?;
        self.expect(&Token::Close)?;
        members.sort_unstable();
        members.dedup();
        Ok(members)
    }

    /// A node whose name has been taken, and those that follow behind commas; a port says where edges are drawn to.
    fn nodes_with_ports(
        &mut self,
        mut name: String,
        mut line: usize,
        defaults: &Defaults,
    ) -> Result<Vec<u32>, InputError> {
        let mut nodes = Vec::new();
        loop {
            while self.token == Token::Colon {
                self.take()?;
                self.word("a port")?;
            }
            nodes.push(self.node(name, line, defaults)?);
            if self.token != Token::Comma {
                return Ok(nodes);
            }
            self.take()?;
            line = self.line;
            name = self.word("a node")?;
        }
    }

    fn node(&mut self, name: String, line: usize, defaults: &Defaults) -> Result<u32, InputError> {
        if let Some(&node) = self.by_name.get(&name) {
            return Ok(node);
        }
        if self.nodes.len() >= TASKS_MAX {
            return Err(self.too_many(TASKS_MAX, "nodes", line));
        }
        let node = self.nodes.len() as u32;
        self.by_name.insert(name.clone(), node);
        self.nodes.push(Node { name, attributes: defaults.node.clone(), line });
        Ok(node)
    }

    fn too_many(&self, most: usize, what: &str, line: usize) -> InputError {
        let message = format!("more than {most} {what}, which is the limit");
        InputError::new(self.lexer.file(), "", message).at_line(line)
    }

    /// Any number of `[key=value, key=value]`; keys that are not among the `known` ones have no effect.
    fn attributes(&mut self, known: &[&str]) -> Result<Stated, InputError> {
        let mut stated = Vec::new();
        while self.token == Token::OpenList {
            self.take()?;
            while self.token != Token::CloseList {
                let key = self.word("an attribute or \"]\"")?;
                self.expect(&Token::Equals)?;
                let value = self.word("a value")?;
                if known.contains(&key.as_str()) {
                    stated.push((key, value.into()));
                } else {
                    self.ignored.insert(key);
                }
                if matches!(self.token, Token::Comma | Token::Semicolon) {
                    self.take()?;
                }
            }
            self.take()?;
        }
        Ok(stated)
    }

    fn finish(mut self) -> Result<Graph, InputError> {
        let mut draft = Draft::new(self.lexer.file());
        if let Some(name) = self.name.take().filter(|name| !name.is_empty()) {
            draft.set_name(&name);
        }
        let has_sizes = self.nodes.iter().any(|node| node.attributes.size.is_some());
        for mut node in std::mem::take(&mut self.nodes) {
            if has_sizes && matches!(node.name.as_str(), "root" | "end") && !node.states_work() {
                node.attributes.size = Some("0".into());
            }
            add_node(&mut draft, &node)?;
        }
        for edge in std::mem::take(&mut self.edges) {
            add_edge(&mut draft, &edge, &self.options)?;
        }
        if draft.has_untimed_data() {
            draft.note("sizes of edges take no time, as no bandwidth is given".to_owned());
        }
        if !self.ignored.is_empty() {
            draft.note(format!("attributes without effect: {}", listed(&self.ignored)));
        }
        draft.finish()
    }
}

/// Some names in alphabetical order, and how many more there are.
fn listed(names: &BTreeSet<String>) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES_SHOWN).map(String::as_str).collect();
    let rest = names.len() - shown.len();
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

fn number(
    draft: &Draft,
    line: usize,
    task: &str,
    key: &str,
    text: &str,
) -> Result<f64, InputError> {
    text.trim()
        .parse()
        .map_err(|_| draft.error(line, task, &format!("{key} {text:?} is not a number")))
}

fn add_node(draft: &mut Draft, node: &Node) -> Result<(), InputError> {
    let Node { name, attributes, line } = node;
    let kind = attributes.kind.as_deref().unwrap_or("");
    let costs = attributes.costs.as_deref();
    let keys = [("work", &attributes.work), ("size", &attributes.size)];
    let work = keys.into_iter().find_map(|(key, value)| Some((key, value.as_deref()?)));
    let work = match (work, costs) {
        (Some((key, text)), None) => number(draft, *line, name, key, text)?,
        (None, Some(_)) => 0.0,
        (Some(_), Some(_)) => {
            return Err(draft.error(*line, name, "states both work and costs, one is needed"));
        }
        (None, None) => {
            let error = draft.error(*line, name, "states neither work nor costs");
            let hint = format!("write {name:?} [work=SECONDS], or node [work=1] before all nodes");
            return Err(error.with_hint(hint));
        }
    };
    let task = draft.task(name, kind, work, *line)?;
    if let Some(costs) = costs {
        let costs_s: Result<Vec<f64>, _> =
            costs.split(',').map(|text| number(draft, *line, name, "cost", text)).collect();
        draft.costs(task, costs_s?)?;
    }
    Ok(())
}

fn add_edge(draft: &mut Draft, edge: &Edge, options: &ReadOptions) -> Result<(), InputError> {
    let (comm, size) = (edge.attributes.comm.as_deref(), edge.attributes.size.as_deref());
    if comm.is_none() && size.is_none() {
        return draft.link(edge.from, edge.to, 0.0, edge.line);
    }
    let name = draft.name_of(edge.to).to_owned();
    match (comm, size) {
        (Some(text), None) => {
            let comm_s = number(draft, edge.line, &name, "comm", text)?;
            draft.link(edge.from, edge.to, comm_s, edge.line)
        }
        (None, Some(text)) => {
            let bytes = number(draft, edge.line, &name, "size", text)?;
            let bytes = if bytes == NO_DATA { 0.0 } else { bytes };
            if !(bytes >= 0.0 && bytes.is_finite()) {
                let message = format!("size {bytes} is not a number of bytes");
                return Err(draft.error(edge.line, &name, &message));
            }
            link_data(draft, (edge.from, edge.to), bytes, edge.line, options)
        }
        _ => {
            let message = "is the end of an edge with both comm and size, one is needed";
            Err(draft.error(edge.line, &name, message))
        }
    }
}

/// Writes a graph.
pub fn write(graph: &Graph) -> String {
    let mut text = format!("digraph {} {{\n", quoted(graph.name()));
    for task in graph.tasks() {
        let name = quoted(graph.task_name(task));
        match graph.costs_s(task) {
            None => write!(text, "  {name} [work={}", graph.work(task)),
            Some(costs_s) => {
                let costs: Vec<String> = costs_s.iter().map(f64::to_string).collect();
                write!(text, "  {name} [costs=\"{}\"", costs.join(","))
            }
        }
        .expect("a text grows");
        if !graph.kind(task).is_empty() {
            write!(text, ", kind={}", quoted(graph.kind(task))).expect("a text grows");
        }
        text.push_str("];\n");
    }
    for task in graph.tasks() {
        for ((from, comm_s), (_, bytes)) in graph.inputs(task).zip(graph.untimed_inputs(task)) {
            let data = match (comm_s > 0.0, bytes > 0.0) {
                (true, _) => format!(" [comm={comm_s}]"),
                (false, true) => format!(" [size={bytes}]"),
                (false, false) => String::new(),
            };
            let (from, to) = (quoted(graph.task_name(from)), quoted(graph.task_name(task)));
            writeln!(text, "  {from} -> {to}{data};").expect("a text grows");
        }
    }
    text.push_str("}\n");
    text
}

fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}
