//! Three tools that stand for thousands: search, describe, call. Chooses among them and answers.
//!
//! Finding and wording are in `search`. Does not rank tools.

use std::sync::Arc;

use bytes::Bytes;
use mcp_proto::catalog::Kind;
use mcp_proto::envelope::Request;
use mcp_proto::json::Members;
use mcp_proto::splice::{self, Change};
use search::tools::{Found, bad_arguments, describe_result, search_arguments, search_result, unknown_tool};
use search::{Doc, Index, parameter_text};

use crate::tree::caller::Caller;
use crate::tree::snapshot::Tree;
use crate::tree::standing::Standing;
use crate::tree::view::View;
use crate::tree::view::names::{How, Listing};
use crate::way::authorize::sees;

/// Meaning of a call of one of the three.
pub enum SearchCall {
    /// A raw result.
    Answer(Bytes),
    /// A call of another tool.
    Call(Request),
}

/// Reads a call in a searched view; `None` if it names an owner's tool directly, which stays allowed.
pub async fn meant(tree: &Arc<Tree>, view: &Arc<View>, request: &Request, caller: &Caller) -> Option<SearchCall> {
    let members = request.params.members();
    let name = members.str("name")?;
    let arguments = members.get("arguments").unwrap_or(b"{}");
    let seeing = SearchView::new(tree, view, caller);
    match &*name {
        "search_tools" => Some(SearchCall::Answer(search(&seeing, arguments).await)),
        "describe_tool" => Some(SearchCall::Answer(describe(&seeing, arguments))),
        "call_tool" => Some(call(&seeing, request, arguments)),
        _ => None,
    }
}

/// Tools that a caller can find: those in its view, but for those it can never call.
struct SearchView<'a> {
    tree: &'a Arc<Tree>,
    view: &'a Arc<View>,
    caller: &'a Caller,
    /// `None` without rules.
    standing: Option<Arc<Standing>>,
}

impl<'a> SearchView<'a> {
    fn new(tree: &'a Arc<Tree>, view: &'a Arc<View>, caller: &'a Caller) -> Self {
        let standing = tree.config.policy.is_some().then(|| tree.standing(caller));
        Self { tree, view, caller, standing }
    }

    fn sees(&self, place: (usize, usize)) -> bool {
        self.standing.as_ref().is_none_or(|standing| sees(self.tree, self.caller, standing, place))
    }

    /// Checks for a tool for models, visible to the caller.
    fn finds(&self, place: (usize, usize)) -> bool {
        let offer = || self.tree.branches.get(place.0)?.catalog.tools.get(place.1);
        self.sees(place) && offer().is_some_and(|offer| How::new(self.tree, &self.caller.scope, Kind::Tools).lists(offer))
    }

    /// Judges all tools for the caller, on another thread.
    async fn know(&self) {
        let Some(standing) = self.standing.as_ref().filter(|standing| !standing.is_known()) else { return };
        let (tree, standing, profile) = (Arc::clone(self.tree), Arc::clone(standing), Arc::clone(&self.caller.scope.profile));
        let known = tokio::task::spawn_blocking(move || {
            if let Some(rules) = &tree.config.policy {
                standing.know(rules, &tree, &profile);
            }
        });
        drop(known.await);
    }

    fn find(&self, name: &str) -> Option<(usize, usize)> {
        self.view.tools.find(name).filter(|place| self.sees(*place))
    }
}

async fn search(seeing: &SearchView<'_>, arguments: &[u8]) -> Bytes {
    let SearchView { tree, view, .. } = *seeing;
    seeing.know().await;
    let Some(asked) = search_arguments(arguments) else { return bad_arguments("search_tools") };
    if view.index.get().is_none() {
        // Reading a hundred thousand definitions takes seconds, and other calls go on meanwhile.
        let (tree, view) = (Arc::clone(tree), Arc::clone(view));
        let built = tokio::task::spawn_blocking(move || {
            view.index.get_or_init(|| index(&tree, &view));
        });
        if let Err(error) = built.await {
            tracing::error!(%error, "the tools could not be indexed");
        }
    }
    let Some(index) = view.index.get() else { return bad_arguments("search_tools") };
    let rows: Vec<_> = view.tools.iter().collect();
    let mount_of = |i: usize| rows.get(i).and_then(|(_, (b, _))| tree.branches.get(*b)).map(|b| b.mount.config.name.as_str());
    let may_see = |i: usize| rows.get(i).is_some_and(|(_, place)| seeing.finds(*place));
    let hits = index.search(&asked.query, asked.limit, |i| asked.server.as_deref().is_none_or(|s| mount_of(i) == Some(s)) && may_see(i));
    let definitions: Vec<(&str, &Bytes)> = hits
        .iter()
        .filter_map(|hit| {
            let (shown, (b, i)) = rows.get(hit.index)?;
            let offer = tree.branches.get(*b)?.catalog.tools.get(*i)?;
            Some((&***shown, &offer.entry.raw))
        })
        .collect();
    let found: Vec<Found<'_>> = definitions.iter().map(|(name, definition)| Found { name, definition }).collect();
    let all = if seeing.standing.is_some() { rows.iter().filter(|(_, place)| seeing.finds(*place)).count() } else { view.tools.listed() };
    search_result(&asked.query, &found, all)
}

fn index(tree: &Tree, view: &View) -> Index {
    struct Text {
        dotted: String,
        title: String,
        description: String,
        parameters: String,
    }
    let texts: Vec<Text> = view
        .tools
        .iter()
        .map(|(shown, (b, i))| {
            let branch = tree.branches.get(b);
            let raw = branch.and_then(|b| b.catalog.tools.get(i)).map_or(&b"{}"[..], |o| &o.entry.raw);
            let members = Members::again(raw);
            Text {
                dotted: branch.map_or_else(|| shown.to_string(), |b| format!("{}.{shown}", b.mount.config.name)),
                title: members.str("title").unwrap_or_default().into_owned(),
                description: members.str("description").unwrap_or_default().into_owned(),
                parameters: members.get("inputSchema").map(parameter_text).unwrap_or_default(),
            }
        })
        .collect();
    Index::build(texts.iter().map(|t| Doc { dotted: &t.dotted, title: &t.title, description: &t.description, parameters: &t.parameters }))
}

fn describe(seeing: &SearchView<'_>, arguments: &[u8]) -> Bytes {
    let Some(name) = Members::again(arguments).str("name").map(|n| n.into_owned()) else { return bad_arguments("describe_tool") };
    let described = seeing.find(&name).and_then(|(b, i)| {
        let branch = seeing.tree.branches.get(b)?;
        let how = How::new(seeing.tree, &seeing.caller.scope, Kind::Tools);
        Some(how.written(&Listing::of_branch(b, branch).shown(), branch.catalog.tools.get(i)?, &name))
    });
    match described {
        Some(definition) => describe_result(&definition),
        None => unknown(seeing, &name),
    }
}

/// Makes the request that `call_tool` stands for: the same, with the other tool's name and arguments.
fn call(seeing: &SearchView<'_>, request: &Request, arguments: &[u8]) -> SearchCall {
    let members = Members::again(arguments);
    let (Some(raw), Some(name)) = (members.get("name"), members.str("name")) else { return SearchCall::Answer(bad_arguments("call_tool")) };
    if seeing.find(&name).is_none() {
        return SearchCall::Answer(unknown(seeing, &name));
    }
    let inner = members.get("arguments").unwrap_or(b"{}");
    let params = splice::edit(&request.params, &[("name", Change::Set(raw)), ("arguments", Change::Set(inner))]);
    SearchCall::Call(Request { id: request.id.clone(), method: request.method.clone(), params: params.into() })
}

fn unknown(seeing: &SearchView<'_>, name: &str) -> Bytes {
    let all = seeing.view.tools.iter().map(|(shown, place)| (strsim::jaro_winkler(shown, name), &**shown, place));
    let mut near: Vec<(f64, &str, (usize, usize))> = all.filter(|(score, ..)| *score > 0.75).collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let similar: Vec<&str> = near.iter().filter(|(.., place)| seeing.sees(*place)).take(3).map(|(_, shown, _)| *shown).collect();
    unknown_tool(name, &similar)
}
