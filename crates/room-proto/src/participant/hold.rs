//! What a participant holds against a message before it believes it: that the kind says what the payload does (MCPx v0.1, 4.3). The room
//! looks at the kind alone, so that whoever leaves this out can be made to do what nobody may ask for. Which request a response answers is not
//! known here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use json::{Duplicates, JsonError, Members};

use crate::envelope::Envelope;
use crate::name::GATEWAY;

/// Of so many senders the mismatches are counted apart; those of the others together.
const SENDERS: usize = 1_000;

/// Why a message is to be dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// A text of chat is missing.
    #[error("a chat message has no `text`: drop it")]
    Chat,
    /// The payload names another tool, resource or prompt, or none.
    #[error("the kind is for {kind:?} and the payload for {payload:?}: drop the message, its sender may not be what it seems")]
    Context {
        /// What the kind says.
        kind: String,
        /// What the payload says, if anything.
        payload: Option<String>,
    },
    /// The payload calls another method, or none.
    #[error("the kind is for the method {kind:?} and the payload for {payload:?}: drop the message, its sender may not be what it seems")]
    Method {
        /// What the kind says.
        kind: String,
        /// What the payload says, if anything.
        payload: Option<String>,
    },
    /// Only the gateway says such things, and the message is not from it.
    #[error("only the gateway sends kinds that begin with `system` or `presence`, and this is from {from:?}: drop the message")]
    Reserved {
        /// From whom it is.
        from: String,
    },
    /// A response has not either a result or an error.
    #[error("a response has not either `result` or `error`: drop it")]
    Response,
    /// The payload can be read in two ways.
    #[error("the payload can't be read for certain ({0}): drop the message")]
    Unreadable(JsonError),
}

/// Holds METHOD and CONTEXT of a kind against the payload. A kind without a context is taken though the payload names one: its sender may
/// use the whole method, and the room has seen to that.
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

/// What a call of a method is about, where the method has such a thing.
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

/// Checks what comes, and counts who sends what does not hold (4.3, 7.1).
#[derive(Debug, Default)]
pub struct Watch {
    mismatches: BTreeMap<String, u64>,
    /// Those of senders beyond the bound.
    others: u64,
}

impl Watch {
    /// [`check`], counted.
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

    /// How many messages of a sender did not hold.
    pub fn mismatches_of(&self, sender: &str) -> u64 {
        self.mismatches.get(sender).copied().unwrap_or_default()
    }

    /// How many there were in all.
    pub fn mismatches(&self) -> u64 {
        self.mismatches.values().sum::<u64>() + self.others
    }
}

#[cfg(test)]
mod tests;
