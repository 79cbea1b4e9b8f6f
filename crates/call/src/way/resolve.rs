//! Resolves the name in a request to the owning mount and the owner's own name. Only looks up; sends nothing and asks nobody.

use std::borrow::Cow;
use std::sync::Arc;

use banyan_model::{Era, Method, Segment};
use mcp_proto::envelope::Request;
use mcp_proto::header::ParamHeader;
use mcp_proto::json::{self, Members, Object};
use mcp_proto::projection::{self, Projection};
use mcp_proto::resource_index::Effort;
use mcp_proto::splice::{self, Change};
use policy::pin::Kind as Pinned;

use crate::tree::annotation::ToolFacts;
use crate::tree::caller::Caller;
use crate::tree::catalog::{Catalog, HeldDefinition};
use crate::tree::gate::Load;
use crate::tree::mount::Phase;
use crate::tree::remembered::{TaskOrigin, Whose};
use crate::tree::snapshot::{Branch, Tree};
use crate::tree::view::View;
use crate::way::error::CallError;
use crate::way::hop;
use crate::way::hop::{Arrival, Onward};
use crate::way::passing;
use crate::way::passing::takes_unknown;

/// Proof of a known name: the owner, and the request in the owner's words.
#[derive(Debug)]
pub struct Resolved {
    pub caller: Arc<Caller>,
    pub branch: Branch,
    /// Method as sent.
    pub wire_method: Cow<'static, str>,
    pub aim: Aim,
    /// The params, naming things as the owner does.
    pub params: Object,
    /// Owner's name: of a tool or prompt, a URI, or a task id.
    pub name: String,
    pub headers: Vec<ParamHeader>,
    /// Way on to a tool below another gate.
    pub onward: Option<Onward>,
    /// Branch and place in the catalog, in the tree where the tool was found.
    pub place: Option<(usize, usize)>,
    /// Members of `_meta` for a server that is told who calls.
    pub facts: Vec<(&'static str, Vec<u8>)>,
}

/// Aim of a request. A tool is called only with its MCP-AX annotation known.
#[derive(Debug, Clone)]
pub enum Aim {
    Complete,
    Confirmation,
    LogLevel,
    Prompt,
    Resource,
    Subscription,
    Task(Box<TaskAim>),
    /// All tasks of one server.
    Tasks,
    Tool(Arc<ToolFacts>),
    /// The way to a tool, without a call.
    Trace(Arc<ToolFacts>),
    Unknown,
}

/// A request about a task.
#[derive(Debug, Clone)]
pub struct TaskAim {
    /// Call that began the task; `None` if unknown, at a gate with a single principal.
    pub begun: Option<TaskOrigin>,
    /// Tool of that call, if listed.
    noted: Option<Arc<ToolFacts>>,
    /// The request cancels the task, or gives it input.
    is_input: bool,
}

/// Weight of a request for budgets and approvals.
#[derive(Debug, Clone, Copy)]
pub enum Weight<'a> {
    Reads,
    /// Calls such a tool; `None`: may change something for good.
    Calls(Option<&'a Arc<ToolFacts>>),
}

impl Aim {
    /// Gives the method of the aim.
    pub fn method(&self) -> Method {
        match self {
            Self::Complete => Method::Complete,
            Self::Confirmation => Method::Confirm,
            Self::LogLevel => Method::LogLevel,
            Self::Prompt => Method::PromptGet,
            Self::Resource => Method::ResourceRead,
            Self::Subscription => Method::Subscribe,
            Self::Task(_) => Method::Task,
            Self::Tasks => Method::TaskList,
            Self::Tool(_) => Method::ToolCall,
            Self::Trace(_) => Method::Trace,
            Self::Unknown => Method::Unknown,
        }
    }

    /// Tool whose call began the task, in its server's words.
    pub fn began(&self) -> Option<&str> {
        let Self::Task(task) = self else { return None };
        task.begun.as_ref().map(|begun| &*begun.tool).filter(|tool| !tool.is_empty())
    }

    /// Checks whether a header repeats the name (2026-07-28, "Streamable HTTP"; tasks extension, "Routing Headers").
    pub fn is_mirrored(&self) -> bool {
        matches!(self, Self::Prompt | Self::Resource | Self::Task(_) | Self::Tool(_))
    }

    /// Weighs the request: an unknown method counts as a call that changes something for good, input to a task as the call that began the
    /// task.
    pub fn weight(&self) -> Weight<'_> {
        match self {
            Self::Tool(noted) => Weight::Calls(Some(noted)),
            Self::Task(task) if task.is_input => Weight::Calls(task.noted.as_ref()),
            Self::Unknown => Weight::Calls(None),
            Self::Complete
            | Self::Confirmation
            | Self::LogLevel
            | Self::Prompt
            | Self::Resource
            | Self::Subscription
            | Self::Task(_)
            | Self::Tasks
            | Self::Trace(_) => Weight::Reads,
        }
    }
}

impl Resolved {
    /// Annotation of the tool called; `None` for other aims.
    pub fn noted(&self) -> Option<&Arc<ToolFacts>> {
        if let Aim::Tool(noted) = &self.aim { Some(noted) } else { None }
    }
}

/// Resolves a request to a known server, in the caller's words.
pub fn at(branch: Branch, caller: &Arc<Caller>, request: &Request, (aim, name): (Aim, String)) -> Box<Resolved> {
    Box::new(Resolved {
        caller: Arc::clone(caller),
        branch,
        wire_method: request.method.clone(),
        aim,
        params: request.params.clone(),
        name,
        headers: Vec::new(),
        onward: None,
        place: None,
        facts: Vec::new(),
    })
}

/// Finds the owner of a request.
pub fn resolve(
    load: &Load,
    (tree, view): (&Tree, &View),
    caller: &Arc<Caller>,
    request: &Request,
    method: Method,
) -> Result<Box<Resolved>, CallError> {
    let members = request.params.members();
    spelt(&members, method)?;
    let found = match method {
        Method::Complete => complete(load, tree, caller, view, &members)?,
        Method::PromptGet => {
            let shown = named(&members, "name")?;
            let why = || held(tree, caller, Pinned::Prompt, &shown).or_else(|| down(tree, caller, &shown));
            let unknown = || why().unwrap_or_else(|| CallError::UnknownPrompt(shown.clone().into_owned()));
            let (b, i) = view.prompts.find(&shown).ok_or_else(unknown)?;
            let (branch, offer) = offer(tree, b, |c| c.prompts.get(i)).ok_or_else(unknown)?;
            FoundOwner::renamed(Aim::Prompt, branch, "name", &shown, offer.entry.key.clone())
        }
        Method::ResourceRead => {
            let shown = named(&members, "uri")?;
            let (branch, uri) = resource(load, tree, view, &shown)?;
            FoundOwner::renamed(Aim::Resource, branch, "uri", &shown, uri)
        }
        Method::Subscribe => {
            let shown = named(&members, "uri")?;
            let (branch, uri) = resource(load, tree, view, &shown)?;
            FoundOwner::renamed(Aim::Subscription, branch, "uri", &shown, uri)
        }
        Method::Task => task(load, tree, caller, request, &members)?,
        Method::Unknown => FoundOwner::renamed(Aim::Unknown, unknown(tree, caller, &request.method)?, "", "", String::new()),
        // Several servers may be meant, each of which is asked by itself.
        Method::Confirm | Method::LogLevel | Method::TaskList => return Err(CallError::MethodNotFound(request.method.to_string())),
        Method::ToolCall | Method::Trace => {
            let shown = named(&members, "name")?;
            let arrival = Arrival::of_call(caller, &request.params).map_err(CallError::Route)?;
            let meant = arrival.as_ref().map_or(&*shown, |arrival| &arrival.path);
            let why = || held(tree, caller, Pinned::Tool, meant).or_else(|| down(tree, caller, meant));
            let unknown = || why().unwrap_or_else(|| CallError::UnknownTool(shown.clone().into_owned()));
            let (b, i) = view.tools.find(meant).ok_or_else(unknown)?;
            let (branch, offer) = offer(tree, b, |c| c.tools.get(i)).ok_or_else(unknown)?;
            let onward = hop::onward(caller, &branch, offer, arrival.as_ref());
            let noted = offer.noted.clone().ok_or_else(unknown)?;
            let aim = if method == Method::Trace { Aim::Trace(noted) } else { Aim::Tool(noted) };
            FoundOwner {
                headers: offer.headers.clone(),
                onward,
                place: Some((b, i)),
                ..FoundOwner::renamed(aim, branch, "name", &shown, offer.entry.key.clone())
            }
        }
    };
    let params = match &found.edit {
        Some((key, raw)) => request.params.with(key, raw),
        None => request.params.clone(),
    };
    // Boxed, since every later proof holds it and each stage hands it on.
    Ok(Box::new(Resolved {
        caller: Arc::clone(caller),
        branch: found.branch,
        wire_method: request.method.clone(),
        aim: found.aim,
        params,
        name: found.name,
        headers: found.headers,
        onward: found.onward,
        place: found.place,
        facts: Vec::new(),
    }))
}

/// Members of requests that decide what is asked, and of which server.
const MEMBERS: [&str; 12] = [
    "_meta",
    "argument",
    "arguments",
    "context",
    "inputResponses",
    "name",
    "notifications",
    "ref",
    "requestState",
    "task",
    "taskId",
    "uri",
];
/// Members of a completion's reference that decide.
const REFERENCE: [&str; 3] = ["name", "type", "uri"];

/// Refuses a member that some servers would read under another spelling: they would do what nobody here has decided on.
pub fn spelt(members: &Members<'_>, method: Method) -> Result<(), CallError> {
    // Members of unknown methods have unknown meanings.
    if method == Method::Unknown {
        return Ok(());
    }
    let of_reference = || members.object("ref")?.lookalike(&REFERENCE);
    let Some(key) = members.lookalike(&MEMBERS).or_else(of_reference) else { return Ok(()) };
    let key: String = key.chars().take(100).collect();
    Err(CallError::BadParams(format!(
        "`params` has a member `{key}`, which some servers take for one that is spelt otherwise: leave it out"
    )))
}

/// Finds an unlisted name among the tools and prompts whose definition waits.
fn held(tree: &Tree, caller: &Caller, kind: Pinned, shown: &str) -> Option<CallError> {
    let is_prefixed = caller.scope.mount.is_none();
    let all = tree.within(&caller.scope).flat_map(|(_, branch)| branch.catalog.held.iter().map(move |held| (branch, held)));
    all.filter(|(_, held)| held.kind == kind).find_map(|(branch, held)| {
        let (original, local) = held.place.clone()?;
        let mount = is_prefixed.then(|| branch.mount.config.name.clone());
        let entry = projection::Entry { mount, original, local, rename: None };
        Projection::build(caller.scope.style, vec![entry]).find(shown)?;
        Some(waiting(branch, held))
    })
}

fn waiting(branch: &Branch, held: &HeldDefinition) -> CallError {
    let mount = branch.mount.config.name.to_string();
    CallError::Held { name: format!("{mount}.{}", held.key), kind: held.kind, mount, why: held.why, standing: held.standing }
}

/// Checks for a resource whose definition waits, or that only waiting templates match.
fn held_back(branch: &Branch, uri: &str, effort: &mut Effort) -> Option<CallError> {
    branch.catalog.holds_back(uri, effort).map(|held| waiting(branch, held))
}

/// Finds the mount of an unlisted name that is down, so that the caller hears of that.
fn down(tree: &Tree, caller: &Caller, shown: &str) -> Option<CallError> {
    let meant = |name: &str| shown.strip_prefix(name).is_some_and(|rest| rest.starts_with("__") || rest.starts_with('.'));
    tree.within(&caller.scope).find_map(|(_, branch)| {
        let mount = &branch.mount;
        let named = caller.scope.mount.is_some() || meant(mount.config.name.as_str());
        (named && mount.state.load().phase != Phase::Ready).then(|| mount.unavailable().into())
    })
}

/// Mount of a resource URI, and the URI in the mount's own spelling.
pub fn resource(load: &Load, tree: &Tree, view: &View, shown: &str) -> Result<(Branch, String), CallError> {
    let branches = || view.mounts.iter().filter_map(|b| tree.branches.get(*b));
    let unknown = || {
        let mut effort = Effort::default();
        branches().find_map(|b| held_back(b, shown, &mut effort)).unwrap_or_else(|| CallError::UnknownResource(shown.to_owned()))
    };
    let owner = view.resources().owner(shown, |uri| load.seen.find(uri));
    let (mount, uri) = match &owner {
        Some(owner) => (owner.mount.clone(), owner.uri.to_owned()),
        None => (only_server_of_resources(tree, view).ok_or_else(unknown)?, shown.to_owned()),
    };
    let branch = tree.branch(&mount).ok_or_else(unknown)?;
    held_back(branch, &uri, &mut Effort::default()).map_or_else(|| Ok((branch.clone(), uri)), Err)
}

/// Finds the only mount with resources at all, to which an unlisted URI must belong.
fn only_server_of_resources(tree: &Tree, view: &View) -> Option<Segment> {
    let mut with = view.mounts.iter().filter_map(|b| tree.branches.get(*b)).filter(|b| b.has_resources);
    let first = with.next()?;
    with.next().is_none().then(|| first.mount.config.name.clone())
}

struct FoundOwner {
    aim: Aim,
    branch: Branch,
    edit: Option<(&'static str, Vec<u8>)>,
    name: String,
    headers: Vec<ParamHeader>,
    onward: Option<Onward>,
    place: Option<(usize, usize)>,
}

impl FoundOwner {
    fn renamed(aim: Aim, branch: Branch, key: &'static str, shown: &str, name: String) -> Self {
        let edit = (shown != name).then(|| (key, json::quote(&name).into_bytes()));
        Self { aim, branch, edit, name, headers: Vec::new(), onward: None, place: None }
    }
}

fn complete(load: &Load, tree: &Tree, caller: &Caller, view: &View, members: &Members<'_>) -> Result<FoundOwner, CallError> {
    let raw = members.get("ref").ok_or_else(|| CallError::BadParams("`params.ref` is missing".into()))?;
    let reference = Members::again(raw);
    let (key, branch, shown, name) = if let Some(shown) = reference.str("name") {
        let unknown = || held(tree, caller, Pinned::Prompt, &shown).unwrap_or_else(|| CallError::UnknownPrompt(shown.clone().into_owned()));
        let (b, i) = view.prompts.find(&shown).ok_or_else(unknown)?;
        let (branch, offer) = offer(tree, b, |c| c.prompts.get(i)).ok_or_else(unknown)?;
        ("name", branch, shown, offer.entry.key.clone())
    } else if let Some(shown) = reference.str("uri") {
        // A reference names the template itself, which no template matches.
        let (branch, uri) = match template(tree, view, &shown) {
            Some(found) => found,
            None => resource(load, tree, view, &shown)?,
        };
        ("uri", branch, shown, uri)
    } else {
        return Err(CallError::BadParams("`params.ref` must have a `name` or a `uri`".into()));
    };
    let edit = (shown != name).then(|| ("ref", splice::edit(raw, &[(key, Change::Set(json::quote(&name).as_bytes()))])));
    Ok(FoundOwner { aim: Aim::Complete, branch, edit, name, headers: Vec::new(), onward: None, place: None })
}

fn template(tree: &Tree, view: &View, shown: &str) -> Option<(Branch, String)> {
    view.mounts.iter().filter_map(|b| tree.branches.get(*b)).find_map(|branch| {
        let mount = &branch.mount.config.name;
        let entry = branch.catalog.templates.iter().find(|e| view.resources().shown_template(mount, &e.key).as_deref() == Some(shown))?;
        Some((branch.clone(), entry.key.clone()))
    })
}

fn task(load: &Load, tree: &Tree, caller: &Caller, request: &Request, members: &Members<'_>) -> Result<FoundOwner, CallError> {
    let id = named(members, "taskId")?;
    let (branch, aim, place) =
        task_of(load, tree, caller, (&id, is_input(request, members))).ok_or_else(|| CallError::UnknownTask(id.clone().into_owned()))?;
    Ok(FoundOwner { aim, branch, edit: None, name: id.into_owned(), headers: Vec::new(), onward: None, place })
}

/// Checks that a request gives input to a task, or cancels it: a mere question names the task, and nothing else.
fn is_input(request: &Request, members: &Members<'_>) -> bool {
    !matches!(&*request.method, "tasks/get" | "tasks/result") || members.iter().any(|(key, _)| key != "taskId" && key != "_meta")
}

/// Server that runs a task, aim of the request, and place of the tool that began the task.
type TaskFound = (Branch, Aim, Option<(usize, usize)>);

/// Finds the server that runs a task of `caller`, the aim, and the place of the tool that began the task. A task without a known beginner
/// goes to the only server with tasks at a gate with a single principal, and to none at other gates: ownership is kept in memory only, and
/// a server that ends with the gate may give the same ids again.
pub fn task_of(load: &Load, tree: &Tree, caller: &Caller, (id, is_input): (&str, bool)) -> Option<TaskFound> {
    let (owner, begun) = match load.tasks.ownership(&caller.principal, id) {
        Whose::Own(begun) => (begun.mount.clone(), Some(begun)),
        Whose::Foreign => return None,
        Whose::Unknown if tree.config.is_for_one() => (only_server_of_tasks(tree, caller)?, None),
        Whose::Unknown => return None,
    };
    let within = caller.scope.mount.as_ref().is_none_or(|m| *m == owner);
    let at = tree.branches.iter().position(|branch| branch.mount.config.name == owner).filter(|_| within)?;
    let branch = tree.branches.get(at)?;
    // A task begun elsewhere may change something, and so may any input to it (AX-41).
    if is_input && begun.is_none() && !takes_unknown(&branch.mount) {
        return None;
    }
    let tool = begun.as_ref().map_or("", |begun| &*begun.tool);
    let place = branch.catalog.tools.iter().position(|offer| offer.entry.key == tool);
    let noted = place.and_then(|place| branch.catalog.tools.get(place)?.noted.clone());
    Some((branch.clone(), Aim::Task(Box::new(TaskAim { begun, noted, is_input })), place.map(|place| (at, place))))
}

/// Finds the only server there is, or the only one that names the method's extension.
fn unknown(tree: &Tree, caller: &Caller, method: &str) -> Result<Branch, CallError> {
    let unserved = || CallError::MethodNotFound(method.to_owned());
    let branches: Vec<&Branch> = tree.within(&caller.scope).map(|(_, b)| b).filter(|b| takes_unknown(&b.mount)).collect();
    if let [only] = &branches[..] {
        return Ok((*only).clone());
    }
    let mut named = branches.iter().filter(|b| passing::names(b, method));
    let first = named.next().ok_or_else(unserved)?;
    if named.next().is_some() { Err(unserved()) } else { Ok((*first).clone()) }
}

fn only_server_of_tasks(tree: &Tree, caller: &Caller) -> Option<Segment> {
    let mut with = tree.within(&caller.scope).filter(|(_, b)| b.negotiated.as_ref().is_some_and(|n| has_tasks(n)));
    let (_, first) = with.next()?;
    with.next().is_none().then(|| first.mount.config.name.clone())
}

/// Checks that a server offers tasks, in the terms of either era.
fn has_tasks(negotiated: &mcp_proto::client::Negotiated) -> bool {
    match negotiated.era {
        Era::Initialize => mcp_proto::era::declares(&negotiated.capabilities, "tasks"),
        Era::Stateless => mcp_proto::era::extends(&negotiated.capabilities, mcp_proto::era::TASKS),
    }
}

fn named<'a>(members: &Members<'a>, key: &str) -> Result<Cow<'a, str>, CallError> {
    members.str(key).ok_or_else(|| CallError::BadParams(format!("`params.{key}` must be a string")))
}

fn offer<'a, T>(tree: &'a Tree, branch: usize, of: impl Fn(&'a Catalog) -> Option<&'a T>) -> Option<(Branch, &'a T)> {
    let branch = tree.branches.get(branch)?;
    Some((branch.clone(), of(&branch.catalog)?))
}
