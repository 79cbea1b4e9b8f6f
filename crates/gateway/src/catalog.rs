//! What one mount offers, as it offers it: filtered by the mount's own configuration, not yet named for any client.

use std::sync::Arc;

use banyan_model::{Era, Segment};
use mcp_proto::catalog::{Entry, Kind};
use mcp_proto::glob::Glob;
use mcp_proto::header::{ParamHeader, tool_headers};
use mcp_proto::projection::local_names;

use crate::config::resolved::Mount;
use crate::upstream::{Instance, Wire};

/// Everything one mount lists.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Catalog {
    pub(crate) tools: Vec<Offer>,
    pub(crate) prompts: Vec<Offer>,
    pub(crate) resources: Vec<Entry>,
    pub(crate) templates: Vec<Entry>,
    /// What people should know about the lists.
    pub(crate) notes: Vec<String>,
}

/// A tool or prompt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Offer {
    /// Its bytes, and the name its server knows.
    pub(crate) entry: Entry,
    /// The name to show in its place: the server's own, or the one the configuration gives it.
    pub(crate) name: Arc<str>,
    /// Its segment in the tree (AX-15).
    pub(crate) local: Segment,
    /// Parameters that are mirrored in headers.
    pub(crate) headers: Vec<ParamHeader>,
}

impl Catalog {
    /// Whether nothing is listed.
    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.prompts.is_empty() && self.resources.is_empty() && self.templates.is_empty()
    }

    /// Replaces one list.
    pub(crate) fn set(&mut self, kind: Kind, entries: Vec<Entry>, mount: &Mount, instance: &Instance) {
        match kind {
            Kind::Prompts => self.prompts = offers(entries, mount, &mut Vec::new(), false),
            Kind::Resources => self.resources = entries,
            Kind::Templates => self.templates = entries,
            Kind::Tools => {
                let over_http = matches!(instance.wire, Wire::Http(_)) && instance.era() == Era::Stateless;
                let allowed = entries.into_iter().filter(|e| allowed(&e.key, &mount.include, &mount.exclude)).collect();
                self.tools = offers(allowed, mount, &mut self.notes, over_http);
            }
        }
    }
}

/// Whether a name passes an include list (empty: all do) and an exclude list of globs.
pub(crate) fn allowed(name: &str, include: &[String], exclude: &[String]) -> bool {
    let hit = |globs: &[String]| globs.iter().any(|g| Glob::new(g).matches(name));
    (include.is_empty() || hit(include)) && !hit(exclude)
}

/// `strict`: tools whose header annotations are not legal are left out, as HTTP clients must (2026-07-28, "Custom headers").
fn offers(entries: Vec<Entry>, mount: &Mount, notes: &mut Vec<String>, strict: bool) -> Vec<Offer> {
    let mut kept: Vec<(Entry, Arc<str>, Vec<ParamHeader>)> = Vec::with_capacity(entries.len());
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
    let names: Vec<&str> = kept.iter().map(|(_, name, _)| &**name).collect();
    let locals = local_names(&names);
    kept.into_iter().zip(locals).map(|((entry, name, headers), local)| Offer { entry, name, local, headers }).collect()
}
