//! Checks of a participant before belief in a message: kind and payload have to agree (MCPx v0.1, 4.3). The room looks at the kind alone,
//! so that a participant without these checks can be made to do forbidden things. Does not match responses with requests.

use std::borrow::Cow;
use std::collections::BTreeMap;

use json::{Duplicates, JsonError, Members};

use crate::envelope::Envelope;
use crate::name::GATEWAY;

/// Senders whose mismatches are counted apart; the rest are counted together.
const SENDERS: usize = 1_000;

/// Reasons for dropping a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    #[error("a chat message has no `text`: drop it")]
    Chat,
    /// The payload names another tool, resource or prompt, or none.
    #[error("the kind is for {kind:?} and the payload for {payload:?}: drop the message, its sender may not be what it seems")]
    Context { kind: String, payload: Option<String> },
    /// The payload calls another method, or none.
    #[error("the kind is for the method {kind:?} and the payload for {payload:?}: drop the message, its sender may not be what it seems")]
    Method { kind: String, payload: Option<String> },
    /// A gateway's kind from another sender.
    #[error("only the gateway sends kinds that begin with `system` or `presence`, and this is from {from:?}: drop the message")]
    Reserved { from: String },
    /// A response without either a result or an error.
    #[error("a response has not either `result` or `error`: drop it")]
    Response,
    /// The payload is legible in two ways.
    #[error("the payload can't be read for certain ({0}): drop the message")]
    Unreadable(JsonError),
}

/// Compares METHOD and CONTEXT of a kind with the payload. A kind without a context passes even if the payload has one: the sender may use
/// the whole method, and the room has checked that permission.
pub fn check(envelope: &Envelope<'_>) -> Result<(), Mismatch> {
    let kind = envelope.kind();
    if kind.is_reserved() && envelope.from != GATEWAY {
        return Err(Mismatch::Reserved { from: envelope.from.to_string() });
    }
    let payload = || Members::parse(envelope.payload, Duplicates::RefuseDeep).map_err(Mismatch::Unreadable);
    match kind.class() {
        "mcp/proposal" | "mcp/request" => asks(kind.method().unwrap_or_default(), kind.context(), &payload()?),
        "mcp/response" => {
            let payload = payload()?;
            if payload.has("result") == payload.has("error") { Err(Mismatch::Response) } else { Ok(()) }
        }
        "chat" if payload()?.str("text").is_none() => Err(Mismatch::Chat),
        _ => Ok(()),
    }
}

fn asks(method: &str, context: Option<&str>, payload: &Members<'_>) -> Result<(), Mismatch> {
    let called = payload.str("method");
    if called.as_deref() != Some(method) {
        return Err(Mismatch::Method { kind: method.to_owned(), payload: called.map(Cow::into_owned) });
    }
    let Some(context) = context else { return Ok(()) };
    let named = payload.object("params").and_then(|params| named(method, &params));
    if named.as_deref() == Some(context) {
        return Ok(());
    }
    Err(Mismatch::Context { kind: context.to_owned(), payload: named.map(Cow::into_owned) })
}

/// Gives the tool, prompt or resource of a call, where the method has such a thing.
pub(crate) fn named<'a>(method: &str, params: &Members<'a>) -> Option<Cow<'a, str>> {
    match method {
        "prompts/get" | "tools/call" => params.str("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => params.str("uri"),
        "completion/complete" => {
            let about = params.object("ref")?;
            about.str("name").or_else(|| about.str("uri"))
        }
        _ => None,
    }
}

/// A counter of mismatches by sender (4.3, 7.1).
#[derive(Debug, Default)]
pub struct Watch {
    mismatches: BTreeMap<String, u64>,
    /// Mismatches of senders beyond the bound.
    others: u64,
}

impl Watch {
    /// Does [`check`], and counts the outcome.
    pub fn check(&mut self, envelope: &Envelope<'_>) -> Result<(), Mismatch> {
        let outcome = check(envelope);
        if outcome.is_err() {
            if let Some(count) = self.mismatches.get_mut(&*envelope.from) {
                *count += 1;
            } else if self.mismatches.len() < SENDERS {
                self.mismatches.insert(envelope.from.to_string(), 1);
            } else {
                self.others += 1;
            }
        }
        outcome
    }

    /// Counts mismatches of a sender.
    pub fn mismatches_of(&self, sender: &str) -> u64 {
        self.mismatches.get(sender).copied().unwrap_or_default()
    }

    /// Counts all mismatches.
    pub fn mismatches(&self) -> u64 {
        self.mismatches.values().sum::<u64>() + self.others
    }
}

#[cfg(test)]
mod tests;
