//! How a caller is told that its call waits, each in the terms it knows (AX-45, AX-49), and how it shows that it comes back. Nothing is
//! decided here.

use banyan_model::{Era, QualifiedName};
use bytes::Bytes;
use mcp_proto::envelope::Answer;
use mcp_proto::hidden;
use mcp_proto::json::{self, Members, Object, quote};
use policy::approval::{Approval, hex};
use subtle::ConstantTimeEq;

use crate::judge::approvals::link;
use crate::judge::gate::Gate;
use crate::tree::back::Back;
use crate::tree::caller::Caller;
use crate::way::adapted;
use crate::way::error::CallError;
use crate::way::gate::bound::without_state;
use crate::way::resolve::Resolved;

/// The reason in `data` of a call that waits.
pub const REASON: &str = "confirmation_required";
/// The key of our one question to a client that opens addresses.
const QUESTION: &str = "approval";
/// The member of a result's `_meta` that tells programs what its text tells people.
const META: &str = "io.banyan/approval";

/// Which terms a caller knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `confirmation_required`: it is a gate, names our extension, or is told in a room.
    Code,
    /// It is asked to open an address, while it waits (initialize era).
    Elicits,
    /// None: it is told in words.
    Plain,
    /// It is told to open an address and to come back (stateless era).
    Requires,
}

impl Way {
    /// Chooses the way to tell this caller of a held call.
    pub fn of(back: &Back) -> Self {
        let caller = &back.caller;
        let opens = Members::again(&caller.capabilities).object("elicitation").is_some_and(|elicitation| elicitation.has("url"));
        match caller.era {
            _ if caller.scope.is_for_gate() || caller.scope.annotated || back.seated.is_some() => Self::Code,
            Era::Initialize if opens && caller.session.is_some() => Self::Elicits,
            Era::Stateless if opens => Self::Requires,
            Era::Initialize | Era::Stateless => Self::Plain,
        }
    }
}

/// A call that waits, as its caller is told.
#[derive(Debug, Clone)]
pub struct Pending {
    id: String,
    /// Where a person agrees; may be empty.
    pub url: String,
    /// For people.
    pub text: String,
    /// For programs: a raw object.
    data: Bytes,
}

impl Pending {
    /// One that this gate holds.
    pub fn of(gate: &Gate, approval: &Approval) -> Self {
        let challenge = &approval.challenge;
        let (call, statement) = (&challenge.call, challenge.statement());
        let url = link(gate, &challenge.id);
        let text = words(&call.tool, &challenge.id, &url, challenge.required);
        let causes: Vec<String> = approval.causes.iter().filter_map(|cause| serde_json::to_string(cause).ok()).collect();
        let route: Vec<String> = call.route.iter().map(|segment| quote(segment)).collect();
        let member = |name: &str, raw: &str| if raw.is_empty() { String::new() } else { format!(",\"{name}\":{raw}") };
        let (others, client) = (member("others", &call.others), member("client", &call.client));
        let data = format!(
            "{{\"reason\":\"{REASON}\",\"id\":{},\"tool\":{},\"arguments\":{}{others}{client},\"annotation\":{},\"route\":[{}],\"causes\":[{}],\"challenge\":{},\
             \"digest\":\"{}\",\"required\":{},\"approvals\":{},\"expires\":{},\"url\":{},\"hint\":{}}}",
            quote(&challenge.id),
            quote(&call.tool),
            call.arguments,
            approval.annotation,
            route.join(","),
            causes.join(","),
            quote(&statement.text),
            hex(&statement.digest()),
            challenge.required,
            approval.votes.len(),
            challenge.expires,
            quote(&url),
            quote(
                "send mcpax/confirm with the id and a proof, or have a person approve it; then make the same call again: it goes through once"
            ),
        );
        Self { id: challenge.id.clone(), url, text, data: data.into() }
    }

    /// One that a gate below holds, by what that gate said of it. Its `url`, if there is one, may be opened.
    pub fn below(gate: &Gate, id: String, data: &Bytes) -> Self {
        let members = Members::again(data);
        let tool: String = hidden::without(&members.str("tool").unwrap_or_default()).chars().take(QualifiedName::MAX).collect();
        let theirs = members.str("url").unwrap_or_default().into_owned();
        let url = if theirs.is_empty() { link(gate, &id) } else { theirs };
        let required = members.get("required").and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok()).unwrap_or(1);
        let text = words(&tool, &id, &url, required);
        Self { id, url, text, data: data.clone() }
    }

    /// The answer to its caller.
    pub fn answer(&self, gate: &Gate, back: &Back) -> Result<Answer, CallError> {
        let (text, caller) = (quote(&self.text), &back.caller);
        let raw = match Way::of(back) {
            Way::Code => return Err(CallError::ConfirmationRequired(Box::new(self.clone()))),
            Way::Requires => {
                let (url, state) = (quote(&self.url), quote(&state(gate, &self.id, caller)));
                let question =
                    format!("{{\"method\":\"elicitation/create\",\"params\":{{\"mode\":\"url\",\"url\":{url},\"message\":{text}}}}}");
                let raw = format!(
                    "{{\"resultType\":\"input_required\",\"inputRequests\":{{\"{QUESTION}\":{question}}},\"requestState\":{state}}}"
                );
                return Ok(Answer::Result(Bytes::from(raw).into()));
            }
            Way::Elicits | Way::Plain => {
                let data = String::from_utf8_lossy(&self.data);
                format!("{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}],\"isError\":true,\"_meta\":{{\"{META}\":{data}}}}}")
            }
        };
        Ok(Answer::Result(adapted(Bytes::from(raw).into(), caller.era)))
    }

    /// The raw `data` of the error.
    pub fn data(&self) -> String {
        String::from_utf8_lossy(&self.data).into_owned()
    }

    /// For people.
    pub fn text(&self) -> &str {
        &self.text
    }
}

fn words(tool: &str, id: &str, url: &str, required: u8) -> String {
    let who = if required == 1 { "a person".to_owned() } else { format!("{required} people") };
    let place = if url.is_empty() { String::new() } else { format!("open {url}, or ") };
    format!(
        "`{tool}` was not called: {who} must approve this very call first. To approve it, {place}run `banyan approve {id}`. Then make the \
         same call again with the same arguments: it goes through once. Do not try to do the same in another way."
    )
}

/// The raw `data` of an error by which a gate says that it holds a call; `None`: it says something else.
pub fn held_below(error: &Bytes) -> Option<Bytes> {
    let data = Members::again(error).get("data")?;
    (data.starts_with(b"{") && Members::again(data).str("reason").as_deref() == Some(REASON)).then(|| error.slice_ref(data))
}

/// The token under which a caller hears progress.
pub fn token(resolved: &Resolved) -> Option<Bytes> {
    let raw = resolved.params.meta()?.get("progressToken")?;
    Some(Bytes::copy_from_slice(raw))
}

/// A caller that came back.
pub struct Returned {
    /// The approval.
    pub id: String,
    /// Whether a person said that the address is not opened.
    pub is_declined: bool,
}

/// What the states of this gate begin with: another gate's pass through it.
fn mark(gate: &Gate) -> String {
    format!("banyan-approval-{}-", gate.node.id)
}

fn state(gate: &Gate, id: &str, caller: &Caller) -> String {
    format!("{}{id}.{}", mark(gate), gate.rules.approvals.sealed(id, &caller.principal.name))
}

/// Whether a call comes back with a state of ours, which is taken out of its params. One whose seal is not ours counts for nothing: its
/// call is known again by what it says.
pub fn returned(gate: &Gate, resolved: &mut Resolved) -> Option<Returned> {
    let state = resolved.params.str("requestState")?.into_owned();
    let (id, seal) = state.strip_prefix(&mark(gate))?.split_once('.')?;
    let expected = gate.rules.approvals.sealed(id, &resolved.caller.principal.name);
    let is_ours = bool::from(expected.as_bytes().ct_eq(seal.as_bytes()));
    let is_declined = is_declined(&resolved.params);
    resolved.params = without_state(&resolved.params);
    is_ours.then(|| Returned { id: id.to_owned(), is_declined })
}

fn is_declined(params: &Object) -> bool {
    let answers = params.get("inputResponses").unwrap_or_default();
    let action = Members::again(&answers).object(QUESTION).and_then(|answer| answer.get("action").and_then(json::as_str));
    action.is_some_and(|action| action != "accept")
}
