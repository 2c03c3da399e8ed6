//! Graphviz DOT: `digraph name { a [work=2]; a -> b [comm=0.5]; }`.
//!
//! Nodes: `work` (or SimGrid's `size`) in seconds at speed 1, or `costs="14,16,9"` in seconds per class of
//! workers, and `kind`. Edges: `comm` in seconds, or `size` in bytes. Defaults (`node [...]`, `edge [...]`), chains,
//! subgraphs and groups (`a -> {b c}`) mean what they mean in Graphviz. Other attributes are for
//! drawing; they have no effect and are noted.

mod lexer;

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use ampsched_model::InputError;

use self::lexer::{Lexer, Token};
use super::ReadOptions;
use crate::Graph;
use crate::draft::Draft;

/// Deepest nesting of subgraphs.
const DEPTH_MAX: usize = 32;
const NODE_KEYS: [&str; 4] = ["work", "size", "costs", "kind"];
const EDGE_KEYS: [&str; 2] = ["comm", "size"];

type Attributes = Vec<(String, String)>;

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

struct Edge {
    from: usize,
    to: usize,
    attributes: Attributes,
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
    by_name: HashMap<String, usize>,
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
    fn statements(
        &mut self,
        mut defaults: Defaults,
        depth: usize,
    ) -> Result<Vec<usize>, InputError> {
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
        members: &mut Vec<usize>,
    ) -> Result<(), InputError> {
        if self.keyword("graph")? {
            let attributes = self.attributes()?;
            self.ignore(&attributes, &[]);
            return Ok(());
        }
        if self.keyword("node")? {
            let attributes = self.attributes()?;
            defaults.node.extend(attributes);
            return Ok(());
        }
        if self.keyword("edge")? {
            let attributes = self.attributes()?;
            defaults.edge.extend(attributes);
            return Ok(());
        }
        let line = self.line;
        let Some(mut ends) = self.first_group(defaults, depth)? else { return Ok(()) };
        members.extend(&ends);
        let first_edge = self.edges.len();
        while self.token == Token::Arrow {
            self.take()?;
            let next = self.group(defaults, depth)?;
            members.extend(&next);
            for (&from, &to) in ends.iter().flat_map(|from| next.iter().map(move |to| (from, to))) {
                self.edges.push(Edge { from, to, attributes: defaults.edge.clone(), line });
            }
            ends = next;
        }
        let attributes = self.attributes()?;
        if self.edges.len() > first_edge {
            for edge in &mut self.edges[first_edge..] {
                edge.attributes.extend(attributes.clone());
            }
        } else {
            for &node in &ends {
                self.nodes[node].attributes.extend(attributes.clone());
            }
        }
        Ok(())
    }

    /// The nodes that a statement begins with; none if it is `key = value`, an attribute of the graph.
    fn first_group(
        &mut self,
        defaults: &Defaults,
        depth: usize,
    ) -> Result<Option<Vec<usize>>, InputError> {
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
        self.node_with_port(name, line, defaults).map(Some)
    }

    fn at_subgraph(&self) -> bool {
        let keyword =
            matches!(&self.token, Token::Word(word) if word.eq_ignore_ascii_case("subgraph"));
        keyword || self.token == Token::Open
    }

    /// A node, or the nodes of a subgraph.
    fn group(&mut self, defaults: &Defaults, depth: usize) -> Result<Vec<usize>, InputError> {
        if !self.at_subgraph() {
            let line = self.line;
            let name = self.word("a node")?;
            return self.node_with_port(name, line, defaults);
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

    /// A node whose name has been taken; a port says where edges are drawn to.
    fn node_with_port(
        &mut self,
        name: String,
        line: usize,
        defaults: &Defaults,
    ) -> Result<Vec<usize>, InputError> {
        while self.token == Token::Colon {
            self.take()?;
            self.word("a port")?;
        }
        Ok(vec![self.node(name, line, defaults)])
    }

    fn node(&mut self, name: String, line: usize, defaults: &Defaults) -> usize {
        if let Some(&node) = self.by_name.get(&name) {
            return node;
        }
        self.by_name.insert(name.clone(), self.nodes.len());
        self.nodes.push(Node { name, attributes: defaults.node.clone(), line });
        self.nodes.len() - 1
    }

    /// Any number of `[key=value, key=value]`.
    fn attributes(&mut self) -> Result<Attributes, InputError> {
        let mut attributes = Vec::new();
        while self.token == Token::OpenList {
            self.take()?;
            while self.token != Token::CloseList {
                let key = self.word("an attribute or \"]\"")?;
                self.expect(&Token::Equals)?;
                attributes.push((key, self.word("a value")?));
                if matches!(self.token, Token::Comma | Token::Semicolon) {
                    self.take()?;
                }
            }
            self.take()?;
        }
        Ok(attributes)
    }

    fn ignore(&mut self, attributes: &Attributes, known: &[&str]) {
        let unknown = attributes.iter().filter(|(key, _)| !known.contains(&key.as_str()));
        self.ignored.extend(unknown.map(|(key, _)| key.clone()));
    }

    fn finish(mut self) -> Result<Graph, InputError> {
        let mut draft = Draft::new(self.lexer.file());
        if let Some(name) = self.name.take().filter(|name| !name.is_empty()) {
            draft.set_name(&name);
        }
        for node in std::mem::take(&mut self.nodes) {
            self.ignore(&node.attributes, &NODE_KEYS);
            add_node(&mut draft, &node)?;
        }
        let mut has_sizes = false;
        for edge in std::mem::take(&mut self.edges) {
            self.ignore(&edge.attributes, &EDGE_KEYS);
            has_sizes |= value(&edge.attributes, "size").is_some();
            add_edge(&mut draft, &edge, &self.options)?;
        }
        if has_sizes && self.options.bytes_per_s.is_none() {
            draft.note("sizes of edges take no time, as no bandwidth is given".to_owned());
        }
        if !self.ignored.is_empty() {
            let names: Vec<String> = self.ignored.into_iter().collect();
            draft.note(format!("attributes without effect: {}", names.join(", ")));
        }
        draft.finish()
    }
}

/// The last value of a key.
fn value<'a>(attributes: &'a Attributes, key: &str) -> Option<&'a str> {
    attributes.iter().rev().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
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
    let kind = value(attributes, "kind").unwrap_or("");
    let costs = value(attributes, "costs");
    let work = ["work", "size"].into_iter().find_map(|key| Some((key, value(attributes, key)?)));
    let work = match (work, costs) {
        (Some((key, text)), None) => number(draft, *line, name, key, text)?,
        (None, Some(_)) => 0.0,
        (Some(_), Some(_)) => {
            return Err(draft.error(*line, name, "states both work and costs, one is needed"));
        }
        (None, None) => {
            let error = draft.error(*line, name, "states neither work nor costs");
            return Err(error.with_hint(format!("write {name:?} [work=SECONDS]")));
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
    let name = draft.name_of(edge.to as u32).to_owned();
    let comm_s = match (value(&edge.attributes, "comm"), value(&edge.attributes, "size")) {
        (Some(text), None) => number(draft, edge.line, &name, "comm", text)?,
        (None, Some(text)) => {
            let bytes = number(draft, edge.line, &name, "size", text)?;
            if !(bytes >= 0.0 && bytes.is_finite()) {
                let message = format!("size {bytes} is not a number of bytes");
                return Err(draft.error(edge.line, &name, &message));
            }
            options.seconds(bytes)
        }
        (None, None) => 0.0,
        (Some(_), Some(_)) => {
            let message = "is the end of an edge with both comm and size, one is needed";
            return Err(draft.error(edge.line, &name, message));
        }
    };
    draft.link(edge.from as u32, edge.to as u32, comm_s, edge.line)
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
        for (from, comm_s) in graph.inputs(task) {
            let comm = if comm_s > 0.0 { format!(" [comm={comm_s}]") } else { String::new() };
            let (from, to) = (quoted(graph.task_name(from)), quoted(graph.task_name(task)));
            writeln!(text, "  {from} -> {to}{comm};").expect("a text grows");
        }
    }
    text.push_str("}\n");
    text
}

fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}
