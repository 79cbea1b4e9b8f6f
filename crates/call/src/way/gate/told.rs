//! Texts for the caller of a waiting call, in terms known to the caller (AX-45, AX-49), and the recognition of its return. Decides nothing.

use banyan_model::{Era, QualifiedName};
use bytes::Bytes;
use mcp_proto::envelope::Answer;
use mcp_proto::hidden;
use mcp_proto::json::{self, Members, Object, quote};
use policy::approval::{Approval, Preview, hex};
use subtle::ConstantTimeEq;

use crate::judge::approvals::link;
use crate::judge::gate::Gate;
use crate::tree::back::Back;
use crate::tree::caller::Caller;
use crate::way::adapted;
use crate::way::error::CallError;
use crate::way::gate::bound::without_state;
use crate::way::resolve::Resolved;

/// Reason in `data` of a waiting call.
pub const REASON: &str = "confirmation_required";
/// Key of our question to a client that can open addresses.
const QUESTION: &str = "approval";
/// Member of a result's `_meta` with the text's content for programs.
const META: &str = "io.banyan/approval";

/// Terms known to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `confirmation_required`: the caller is a gate, names our extension, or is told in a room.
    Code,
    /// The caller is asked to open an address while it waits (initialize era).
    Elicits,
    /// No terms: the caller is told in words.
    Plain,
    /// The caller is told to open an address and to come back (stateless era).
    Requires,
}

impl Way {
    /// Chooses the terms for this caller.
    pub fn of_caller(back: &Back) -> Self {
        let caller = &back.caller;
        let opens = Members::again(&caller.capabilities).object("elicitation").is_some_and(|elicitation| elicitation.has("url"));
        match caller.era {
            _ if caller.scope.is_for_gate() || caller.scope.speaks_mesh || back.seated.is_some() => Self::Code,
            Era::Initialize if opens && caller.session.is_some() => Self::Elicits,
            Era::Stateless if opens => Self::Requires,
            Era::Initialize | Era::Stateless => Self::Plain,
        }
    }
}

/// A waiting call, as its caller is told.
#[derive(Debug, Clone)]
pub struct Pending {
    id: String,
    /// Address where a person agrees; may be empty.
    pub url: String,
    /// For people.
    pub text: String,
    /// For programs: a raw object.
    data: Bytes,
}

impl Pending {
    /// Describes a call held by this gate.
    pub fn of_approval(gate: &Gate, approval: &Approval) -> Self {
        let challenge = &approval.challenge;
        let (call, statement) = (&challenge.call, challenge.statement());
        let url = link(gate, &challenge.id);
        let text = words(&call.tool, &challenge.id, &url, challenge.required);
        let causes: Vec<String> = approval.causes.iter().filter_map(|cause| serde_json::to_string(cause).ok()).collect();
        let route: Vec<String> = call.route.iter().map(|segment| quote(segment)).collect();
        let member = |name: &str, raw: &str| if raw.is_empty() { String::new() } else { format!(",\"{name}\":{raw}") };
        let preview = match &call.preview {
            Some(Preview::Shown(text)) => member("preview", &quote(text)),
            Some(Preview::Missing(why)) => member("preview_missing", &quote(why)),
            None => String::new(),
        };
        let (others, client) = (member("others", &call.others), member("client", &call.client));
        let data = format!(
            "{{\"reason\":\"{REASON}\",\"id\":{},\"tool\":{},\"arguments\":{}{others}{client}{preview},\"annotation\":{},\"route\":[{}],\"causes\":[{}],\"challenge\":{},\
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

    /// Describes a call held by a gate below, by that gate's own notice, with its `url` if any.
    pub fn below(gate: &Gate, id: String, data: &Bytes) -> Self {
        let members = Members::again(data);
        let tool: String = hidden::without(&members.str("tool").unwrap_or_default()).chars().take(QualifiedName::MAX).collect();
        let theirs = members.str("url").unwrap_or_default().into_owned();
        let url = if theirs.is_empty() { link(gate, &id) } else { theirs };
        let required = members.get("required").and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok()).unwrap_or(1);
        let text = words(&tool, &id, &url, required);
        Self { id, url, text, data: data.clone() }
    }

    /// Answer for the caller.
    pub fn answer(&self, gate: &Gate, back: &Back) -> Result<Answer, CallError> {
        let (text, caller) = (quote(&self.text), &back.caller);
        let raw = match Way::of_caller(back) {
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

    /// Text for people.
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

/// Raw `data` of an error by which a gate says that it holds a call; `None` for other errors.
pub fn held_below(error: &Bytes) -> Option<Bytes> {
    let data = Members::again(error).get("data")?;
    (data.starts_with(b"{") && Members::again(data).str("reason").as_deref() == Some(REASON)).then(|| error.slice_ref(data))
}

/// Token under which a caller hears progress.
pub fn token(resolved: &Resolved) -> Option<Bytes> {
    let raw = resolved.params.meta()?.get("progressToken")?;
    Some(Bytes::copy_from_slice(raw))
}

/// A caller that came back.
pub struct ReturnedCall {
    /// Id of the approval.
    pub id: String,
    /// A person declined to open the address.
    pub is_declined: bool,
}

/// Beginning of this gate's states; states of other gates pass through.
fn mark(gate: &Gate) -> String {
    format!("banyan-approval-{}-", gate.node.id)
}

fn state(gate: &Gate, id: &str, caller: &Caller) -> String {
    format!("{}{id}.{}", mark(gate), gate.rules.approvals.sealed(id, &caller.principal.to_string()))
}

/// Recognises a call that comes back with a state of ours, and takes the state out of its params. A state under another seal is ignored:
/// its call is recognised by its content.
pub fn returned(gate: &Gate, resolved: &mut Resolved) -> Option<ReturnedCall> {
    let state = resolved.params.str("requestState")?.into_owned();
    let (id, seal) = state.strip_prefix(&mark(gate))?.split_once('.')?;
    let expected = gate.rules.approvals.sealed(id, &resolved.caller.principal.to_string());
    let is_ours = bool::from(expected.as_bytes().ct_eq(seal.as_bytes()));
    let is_declined = is_declined(&resolved.params);
    resolved.params = without_state(&resolved.params);
    is_ours.then(|| ReturnedCall { id: id.to_owned(), is_declined })
}

fn is_declined(params: &Object) -> bool {
    let answers = params.get("inputResponses").unwrap_or_default();
    let action = Members::again(&answers).object(QUESTION).and_then(|answer| answer.get("action").and_then(json::as_str));
    action.is_some_and(|action| action != "accept")
}
