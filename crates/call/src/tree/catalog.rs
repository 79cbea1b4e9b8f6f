//! Catalog of a mount: lists filtered by the mount's own configuration, not yet named for any client.

pub mod templates;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use banyan_model::{Era, QualifiedName, Route};
use config::resolved::Mount;
use mcp_proto::catalog::{Entry, Kind};
use mcp_proto::glob::Glob;
use mcp_proto::header::{ParamHeader, tool_headers};
use mcp_proto::projection::{local_names, local_routes};

use crate::tree::annotation::{Pace, ToolFacts};
use crate::tree::mount::Mount as RunningMount;
use crate::tree::port::Instance;
use crate::tree::role::Role;

/// Lists of a mount.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Catalog {
    pub tools: Vec<Offer>,
    pub prompts: Vec<Offer>,
    pub resources: Arc<Vec<Entry>>,
    pub templates: Arc<Vec<Entry>>,
    /// Ids of the gates behind this mount, for a gate (MCP-AX 5.3).
    pub subtree: Vec<String>,
    /// Paths of failed servers behind this mount, for a gate that tells them.
    pub failed_below: Vec<String>,
    /// Server's instructions; the last accepted ones while changed ones wait for a decision.
    pub instructions: Option<Arc<str>>,
    /// Entries not listed, since their definitions wait for a person's decision.
    pub held: Vec<HeldDefinition>,
    /// Notes on the lists, for people.
    pub notes: Vec<String>,
    pub sought: templates::CompiledTemplates,
}

/// An entry whose definition waits.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldDefinition {
    pub kind: policy::pin::Kind,
    /// Server's own name or URI.
    pub key: String,
    /// For a tool or prompt, its shown name and its place in the tree.
    pub place: Option<(Arc<str>, Arc<Route>)>,
    pub why: policy::pin::Why,
    pub standing: policy::pin::Standing,
}

/// A tool or prompt of a catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct Offer {
    /// Raw definition, with the server's own name.
    pub entry: Entry,
    /// Name in the tree: the server's own, or a configured one.
    pub name: Arc<str>,
    /// Place in the tree below the mount: a segment (AX-15), or a path below another gate.
    pub local: Arc<Route>,
    /// Parameters mirrored in headers.
    pub headers: Vec<ParamHeader>,
    /// MCP-AX annotation; prompts have none.
    pub noted: Option<Arc<ToolFacts>>,
}

impl Catalog {
    /// Checks for empty lists.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.prompts.is_empty() && self.resources.is_empty() && self.templates.is_empty()
    }

    /// Lists with an entry.
    pub fn kinds(&self) -> BTreeSet<Kind> {
        self.changed_since(&Self { subtree: self.subtree.clone(), failed_below: self.failed_below.clone(), ..Self::default() })
    }

    /// Lists other than in `before`. The gates and the failed servers behind a mount are part of the list of tools.
    pub fn changed_since(&self, before: &Self) -> BTreeSet<Kind> {
        let is_changed = |kind: &Kind| match kind {
            Kind::Prompts => self.prompts != before.prompts,
            Kind::Resources => self.resources != before.resources,
            Kind::Templates => self.templates != before.templates,
            Kind::Tools => self.tools != before.tools || self.subtree != before.subtree || self.failed_below != before.failed_below,
        };
        Kind::ALL.into_iter().filter(is_changed).collect()
    }

    /// Replaces a list.
    pub fn set(&mut self, kind: Kind, entries: Vec<Entry>, of: &RunningMount, instance: &Instance) {
        let (mount, role) = (&*of.config, **of.role.load());
        let is_aggregator = of.registration.as_ref().is_some_and(|registration| registration.is_aggregator);
        let has_paths = role.is_gate() || is_aggregator || instance.traits.has_paths;
        match kind {
            Kind::Prompts => self.prompts = named(unnamed(entries, mount, &mut Vec::new(), false), mount, &mut self.notes, has_paths),
            Kind::Resources => self.resources = Arc::new(entries),
            Kind::Templates => self.templates = Arc::new(entries),
            Kind::Tools => {
                let over_http = instance.is_http() && instance.era() == Era::Stateless;
                let allowed = entries.into_iter().filter(|e| allowed(&e.key, &mount.include, &mount.exclude)).collect();
                let kept = unnamed(allowed, mount, &mut self.notes, over_http);
                let tools = named(kept, mount, &mut self.notes, has_paths);
                self.tools = noted(tools, &self.tools, mount, role);
            }
        }
    }
}

/// Checks a name against an include list of globs (empty: all pass) and an exclude list.
pub fn allowed(name: &str, include: &[String], exclude: &[String]) -> bool {
    let hit = |globs: &[String]| globs.iter().any(|g| Glob::new(g).matches(name));
    (include.is_empty() || hit(include)) && !hit(exclude)
}

/// Entry of a list without its place in the tree yet: the entry, its name, its headers.
type UnplacedEntry = (Entry, Arc<str>, Vec<ParamHeader>);

/// Filters and names entries. With `strict`, leaves out tools with illegal header annotations, as HTTP clients must (2026-07-28, "Custom
/// headers").
fn unnamed(entries: Vec<Entry>, mount: &Mount, notes: &mut Vec<String>, strict: bool) -> Vec<UnplacedEntry> {
    let mut kept = Vec::with_capacity(entries.len());
    for entry in entries {
        let headers = match tool_headers(&entry.raw) {
            Ok(headers) => headers,
            Err(e) if strict => {
                notes.push(format!("tool `{}` is left out: {e}", entry.key));
                continue;
            }
            Err(_) => Vec::new(),
        };
        let name = mount.rename.get(&entry.key).map_or_else(|| Arc::from(entry.key.as_str()), |n| Arc::from(n.as_str()));
        kept.push((entry, name, headers));
    }
    kept
}

/// Gives each entry its place: paths of a gate stay, and other names become a segment each.
fn named(kept: Vec<UnplacedEntry>, mount: &Mount, notes: &mut Vec<String>, has_paths: bool) -> Vec<Offer> {
    let names: Vec<&str> = kept.iter().map(|(_, name, _)| &**name).collect();
    let locals: Vec<Route> =
        if has_paths { local_routes(&names) } else { local_names(&names).into_iter().map(|s| Route(vec![s])).collect() };
    let mut offers = Vec::with_capacity(kept.len());
    let mut endless: Vec<String> = Vec::new();
    for ((entry, name, headers), local) in kept.into_iter().zip(locals) {
        // A name that no client could be told is left out of the tree (AX-10).
        if mount.name.as_str().len() + 1 + local.to_string().len() > QualifiedName::MAX {
            endless.push(entry.key);
            continue;
        }
        offers.push(Offer { entry, name, local: Arc::new(local), headers, noted: None });
    }
    if let Some(first) = endless.first() {
        let (many, most) = (endless.len(), QualifiedName::MAX);
        let text = format!(
            "{many} of its names would be longer than {most} characters behind `{}.` and are left out, `{first}` among them: give the mounts on the way shorter names",
            mount.name
        );
        notes.push(text);
    }
    offers
}

/// Annotates tools. Measurements over this connection stay.
fn noted(mut tools: Vec<Offer>, old: &[Offer], mount: &Mount, role: Role) -> Vec<Offer> {
    let paces = old.iter().filter_map(|o| Some((o.entry.key.as_str(), &o.noted.as_ref()?.pace))).filter(|(_, pace)| pace.is_noted());
    let paces: HashMap<&str, &Arc<Pace>> = paces.collect();
    for offer in &mut tools {
        let pace = paces.get(offer.entry.key.as_str()).map(|pace| Arc::clone(pace));
        offer.noted = Some(Arc::new(ToolFacts::of_entry(&mut offer.entry, &mount.reached, &mount.tools, role, pace)));
    }
    tools
}

#[cfg(test)]
mod tests {
    use banyan_model::Segment;

    use super::*;
    use config::resolved::{Process, Transport};

    #[test]
    fn ax_10_an_overlong_name_is_left_out_with_a_note() {
        let process = Process { command: "x".into(), args: vec![], env: Default::default(), pass_env: vec![], cwd: None, shared: None };
        let mount = Mount::new(Segment::nearest("infra"), Transport::Stdio(process), "test");
        let entry = |key: String| (Entry { key: key.clone(), raw: "{}".into() }, Arc::from(key), Vec::new());
        let segments = |last: usize| [["a".repeat(63), "b".repeat(63), "c".repeat(63)].join("."), "d".repeat(last)].join(".");
        let mut notes = Vec::new();
        let offers = named(vec![entry(segments(57)), entry(segments(58)), entry("a.b".into())], &mount, &mut notes, true);
        let names: Vec<String> = offers.iter().map(|o| format!("infra.{}", o.local)).collect();
        assert_eq!(names.iter().map(String::len).collect::<Vec<_>>(), [255, 9]);
        assert!(notes[0].starts_with("1 of its names would be longer than 255 characters behind `infra.`"), "{notes:?}");
        let plain = named(vec![entry("a.b".into())], &mount, &mut notes, false);
        assert_eq!((plain[0].local.to_string(), notes.len()), ("a_b".into(), 1));
    }
}
