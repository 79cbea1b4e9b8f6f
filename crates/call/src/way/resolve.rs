//! Whose a request is: from what the caller names to the mount that owns it, and what the owner calls it.
//! Only looks up: nothing is sent and nobody is asked.

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

use crate::tree::annotation::Noted;
use crate::tree::caller::Caller;
use crate::tree::catalog::{Catalog, Held};
use crate::tree::gate::Load;
use crate::tree::mount::Phase;
use crate::tree::remembered::{Begun, Whose};
use crate::tree::snapshot::{Branch, Tree};
use crate::tree::view::View;
use crate::way::error::CallError;
use crate::way::hop;
use crate::way::hop::Onward;
use crate::way::passing;
use crate::way::passing::takes_unknown;

/// Proof that the name means something: the owner, and the request in the owner's own words.
#[derive(Debug)]
pub struct Resolved {
    pub caller: Arc<Caller>,
    pub branch: Branch,
    /// The method as it goes out.
    pub wire_method: Cow<'static, str>,
    pub aim: Aim,
    /// The params, naming things as the owner does.
    pub params: Object,
    /// What the owner calls what is meant: a tool's or prompt's name, a URI, a task id.
    pub name: String,
    pub headers: Vec<ParamHeader>,
    /// The way to the tool below another gate.
    pub onward: Option<Onward>,
    /// The tool's branch and its place in the catalog, in the tree where it was found.
    pub place: Option<(usize, usize)>,
}

/// What is asked for. No tool is called of which is not known what MCP-AX says of it.
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
    Tool(Arc<Noted>),
    /// The way to a tool, and no call of it.
    Trace(Arc<Noted>),
    Unknown,
}

/// Request about a task.
#[derive(Debug, Clone)]
pub struct TaskAim {
    /// The call that began the task; `None`: nobody knows, and only one principal comes here.
    pub begun: Option<Begun>,
    /// The tool of that call, where it is listed.
    noted: Option<Arc<Noted>>,
    /// Set if it cancels the task, or tells it something.
    is_input: bool,
}

/// Weight of a request with budgets and those who have to agree.
#[derive(Debug, Clone, Copy)]
pub enum Weight<'a> {
    /// Changes nothing.
    Reads,
    /// As a call of such a tool; `None`: of one that may change something for good.
    Calls(Option<&'a Arc<Noted>>),
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

    /// The tool whose call began the task that is meant, in the words of its server.
    pub fn began(&self) -> Option<&str> {
        let Self::Task(task) = self else { return None };
        task.begun.as_ref().map(|begun| &*begun.tool).filter(|tool| !tool.is_empty())
    }

    /// Checks whether a header repeats the name (2026-07-28, "Streamable HTTP"; tasks extension, "Routing Headers").
    pub fn is_mirrored(&self) -> bool {
        matches!(self, Self::Prompt | Self::Resource | Self::Task(_) | Self::Tool(_))
    }

    /// Weighs the request: a method that nobody knows counts as a call that changes something for good, a word in a task as the call that began it.
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
    /// What MCP-AX says of the tool; `None`: none is called.
    pub fn noted(&self) -> Option<&Arc<Noted>> {
        if let Aim::Tool(noted) = &self.aim { Some(noted) } else { None }
    }
}

/// Request to a server that is known already, in the words of the caller.
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
            Found::renamed(Aim::Prompt, branch, "name", &shown, offer.entry.key.clone())
        }
        Method::ResourceRead => {
            let shown = named(&members, "uri")?;
            let (branch, uri) = resource(load, tree, view, &shown)?;
            Found::renamed(Aim::Resource, branch, "uri", &shown, uri)
        }
        Method::Subscribe => {
            let shown = named(&members, "uri")?;
            let (branch, uri) = resource(load, tree, view, &shown)?;
            Found::renamed(Aim::Subscription, branch, "uri", &shown, uri)
        }
        Method::Task => task(load, tree, caller, request, &members)?,
        Method::Unknown => Found::renamed(Aim::Unknown, unknown(tree, caller, &request.method)?, "", "", String::new()),
        // Several servers may be meant, and each is asked by itself.
        Method::Confirm | Method::LogLevel | Method::TaskList => return Err(CallError::MethodNotFound(request.method.to_string())),
        Method::ToolCall | Method::Trace => {
            let shown = named(&members, "name")?;
            let why = || held(tree, caller, Pinned::Tool, &shown).or_else(|| down(tree, caller, &shown));
            let unknown = || why().unwrap_or_else(|| CallError::UnknownTool(shown.clone().into_owned()));
            let (b, i) = view.tools.find(&shown).ok_or_else(unknown)?;
            let (branch, offer) = offer(tree, b, |c| c.tools.get(i)).ok_or_else(unknown)?;
            let onward = hop::onward(caller, &branch, offer, &request.params).map_err(CallError::Route)?;
            let noted = offer.noted.clone().ok_or_else(unknown)?;
            let aim = if method == Method::Trace { Aim::Trace(noted) } else { Aim::Tool(noted) };
            Found {
                headers: offer.headers.clone(),
                onward,
                place: Some((b, i)),
                ..Found::renamed(aim, branch, "name", &shown, offer.entry.key.clone())
            }
        }
    };
    let params = match &found.edit {
        Some((key, raw)) => request.params.with(key, raw),
        None => request.params.clone(),
    };
    // Boxed: every later proof holds it, and each stage hands it on.
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
    }))
}

/// Members of requests by which is decided what is asked of whom.
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
/// The same of what a completion is for.
const REFERENCE: [&str; 3] = ["name", "type", "uri"];

/// Refuses a member that some servers take for one of another spelling: they would do what nobody here has decided on.
pub fn spelt(members: &Members<'_>, method: Method) -> Result<(), CallError> {
    // What the members of other methods mean is not known.
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

/// A name nobody lists may be that of a tool or prompt whose definition waits.
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

fn waiting(branch: &Branch, held: &Held) -> CallError {
    let mount = branch.mount.config.name.to_string();
    CallError::Held { name: format!("{mount}.{}", held.key), kind: held.kind, mount, why: held.why, standing: held.standing }
}

/// Whether a mount's resource is one whose definition waits, or belongs to none of its templates but those that wait.
fn held_back(branch: &Branch, uri: &str, effort: &mut Effort) -> Option<CallError> {
    branch.catalog.holds_back(uri, effort).map(|held| waiting(branch, held))
}

/// A name nobody lists may be that of a mount which is down: then that is what its caller should hear.
fn down(tree: &Tree, caller: &Caller, shown: &str) -> Option<CallError> {
    let meant = |name: &str| shown.strip_prefix(name).is_some_and(|rest| rest.starts_with("__") || rest.starts_with('.'));
    tree.within(&caller.scope).find_map(|(_, branch)| {
        let mount = &branch.mount;
        let named = caller.scope.mount.is_some() || meant(mount.config.name.as_str());
        (named && mount.state.load().phase != Phase::Ready).then(|| mount.unavailable().into())
    })
}

/// The mount a resource URI belongs to, and the URI as it knows it.
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

/// A URI nobody lists can only be the business of the one mount that has resources at all.
fn only_server_of_resources(tree: &Tree, view: &View) -> Option<Segment> {
    let mut with = view.mounts.iter().filter_map(|b| tree.branches.get(*b)).filter(|b| b.has_resources);
    let first = with.next()?;
    with.next().is_none().then(|| first.mount.config.name.clone())
}

struct Found {
    aim: Aim,
    branch: Branch,
    edit: Option<(&'static str, Vec<u8>)>,
    name: String,
    headers: Vec<ParamHeader>,
    onward: Option<Onward>,
    place: Option<(usize, usize)>,
}

impl Found {
    fn renamed(aim: Aim, branch: Branch, key: &'static str, shown: &str, name: String) -> Self {
        let edit = (shown != name).then(|| (key, json::quote(&name).into_bytes()));
        Self { aim, branch, edit, name, headers: Vec::new(), onward: None, place: None }
    }
}

fn complete(load: &Load, tree: &Tree, caller: &Caller, view: &View, members: &Members<'_>) -> Result<Found, CallError> {
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
    Ok(Found { aim: Aim::Complete, branch, edit, name, headers: Vec::new(), onward: None, place: None })
}

fn template(tree: &Tree, view: &View, shown: &str) -> Option<(Branch, String)> {
    view.mounts.iter().filter_map(|b| tree.branches.get(*b)).find_map(|branch| {
        let mount = &branch.mount.config.name;
        let entry = branch.catalog.templates.iter().find(|e| view.resources().shown_template(mount, &e.key).as_deref() == Some(shown))?;
        Some((branch.clone(), entry.key.clone()))
    })
}

fn task(load: &Load, tree: &Tree, caller: &Caller, request: &Request, members: &Members<'_>) -> Result<Found, CallError> {
    let id = named(members, "taskId")?;
    let (branch, aim, place) =
        task_of(load, tree, caller, (&id, is_input(request, members))).ok_or_else(|| CallError::UnknownTask(id.clone().into_owned()))?;
    Ok(Found { aim, branch, edit: None, name: id.into_owned(), headers: Vec::new(), onward: None, place })
}

/// Checks whether a task is told something, or cancelled: a request that only asks about a task names it, and nothing else.
fn is_input(request: &Request, members: &Members<'_>) -> bool {
    !matches!(&*request.method, "tasks/get" | "tasks/result") || members.iter().any(|(key, _)| key != "taskId" && key != "_meta")
}

/// The server that runs a task, what is asked of it, and the place of the tool that began the task.
type TaskFound = (Branch, Aim, Option<(usize, usize)>);

/// The server that runs a task of `caller`, what is asked of it, and the place of the tool that began it. A task of which nobody knows who
/// began it is taken for the only server of tasks where only one principal comes here, and for nobody's anywhere else: who it belongs to is
/// kept in memory alone, for a server that ends with the gate gives the same ids once more.
pub fn task_of(load: &Load, tree: &Tree, caller: &Caller, (id, is_input): (&str, bool)) -> Option<TaskFound> {
    let (owner, begun) = match load.tasks.of(&caller.principal, id) {
        Whose::Own(begun) => (begun.mount.clone(), Some(begun)),
        Whose::Foreign => return None,
        Whose::Unknown if tree.config.is_for_one() => (only_server_of_tasks(tree, caller)?, None),
        Whose::Unknown => return None,
    };
    let within = caller.scope.mount.as_ref().is_none_or(|m| *m == owner);
    let at = tree.branches.iter().position(|branch| branch.mount.config.name == owner).filter(|_| within)?;
    let branch = tree.branches.get(at)?;
    // A task that did not begin here may be one that changes something, and then so does whoever has a say in it (AX-41).
    if is_input && begun.is_none() && !takes_unknown(&branch.mount) {
        return None;
    }
    let tool = begun.as_ref().map_or("", |begun| &*begun.tool);
    let place = branch.catalog.tools.iter().position(|offer| offer.entry.key == tool);
    let noted = place.and_then(|place| branch.catalog.tools.get(place)?.noted.clone());
    Some((branch.clone(), Aim::Task(Box::new(TaskAim { begun, noted, is_input })), place.map(|place| (at, place))))
}

/// The only server there is, or the only one that names the extension of the method.
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

/// Whether a server offers tasks, as either era says it.
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
