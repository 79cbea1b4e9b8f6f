//! What a participant says: requests, proposals, fulfilments, responses and chat, as envelopes that its own check and the room's take
//! (MCPx v0.1, 3). Whether it may say that, and what came of it, is not known here.

use std::time::SystemTime;

use bytes::Bytes;
use json::Members;

use crate::chain::{State, Step};
use crate::draft::{About, Draft, Ids};
use crate::envelope::{Envelope, MAX_KIND};
use crate::name::ParticipantId;
use crate::participant::named;

/// A request to an MCP server, or a notification to it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The MCP method.
    pub method: &'a str,
    /// The raw `params`, an object; `None`: there are none.
    pub params: Option<&'a [u8]>,
}

/// What a response says.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// The raw `error` object.
    Error(&'a [u8]),
    /// The raw `result`.
    Result(&'a [u8]),
}

/// How a proposal ends without a call. Neither is in MCPx v0.1; both are kinds that `mcp/*` covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Somebody speaks against it.
    Reject,
    /// Its proposer takes it back.
    Withdraw,
}

/// Why something is not said.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsaid {
    /// Every server in the room would answer.
    #[error("a request that wants an answer names who is to answer: say to whom it goes")]
    Broadcast,
    /// Nobody is told to stop who is not named.
    #[error("whoever is to pause or to go on is named: say who")]
    Everybody,
    /// The proposal is not kept here any more, or never was.
    #[error("there is no such proposal here, or it was too long ago: have it proposed again")]
    Forgotten,
    /// What should stand in the payload is no JSON.
    #[error("the payload is no sound JSON: params and errors are objects, a result is any value")]
    Json,
    /// It cannot be said of what it is.
    #[error("the method, or the name or URI that it is about, is empty, too long or holds a control character: no kind can say it")]
    Kind,
    /// The room would refuse it.
    #[error("you may not send `{kind}` in this room: ask its admin for that")]
    Lacking {
        /// Its kind.
        kind: String,
    },
    /// There is nothing to decide any more.
    #[error("this proposal does not wait any more: it is {}", .0.word())]
    NotOpen(State),
    /// Nobody knows in whose name.
    #[error("the room has not welcomed this connection yet: wait for that")]
    NotWelcomed,
    /// Sent once, and not yet back from the room.
    #[error("you have approved this already, and the room has not passed it on yet: wait for that")]
    Underway,
}

/// An envelope, and the id by which answers refer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// Its id.
    pub id: String,
    /// What is to be sent.
    pub bytes: Bytes,
}

/// Writes what one participant says.
#[derive(Debug)]
pub struct Voice {
    me: ParticipantId,
    ids: Ids,
}

impl Voice {
    /// For a participant. No two voices may have one seed: ids begin with it.
    pub fn new(me: ParticipantId, seed: u128) -> Self {
        Self { me, ids: Ids::new(seed) }
    }

    /// Asks for a call. `fulfils` is the id of the proposal that it fulfils.
    pub fn request(&mut self, at: SystemTime, to: &[&str], call: Call<'_>, fulfils: Option<&str>) -> Result<Spoken, Unsaid> {
        if to.is_empty() {
            return Err(Unsaid::Broadcast);
        }
        let id = self.ids.next();
        let kind = call.kind("mcp/request")?;
        let mut draft = self.begin(&id, at, to, (&kind, fulfils));
        // Answers are matched by the envelope's id; MCP wants one of its own in the payload.
        draft.raw("\"jsonrpc\":\"2.0\",\"id\":").text(&id).raw(",");
        call.write(&mut draft)?;
        Ok(Spoken { id, bytes: draft.end() })
    }

    /// Notifies a server, or all of them.
    pub fn notification(&mut self, at: SystemTime, to: &[&str], call: Call<'_>) -> Result<Spoken, Unsaid> {
        let id = self.ids.next();
        let kind = call.kind("mcp/request")?;
        let mut draft = self.begin(&id, at, to, (&kind, None));
        draft.raw("\"jsonrpc\":\"2.0\",");
        call.write(&mut draft)?;
        Ok(Spoken { id, bytes: draft.end() })
    }

    /// Proposes a call to whoever may make it (3.2).
    pub fn proposal(&mut self, at: SystemTime, to: &[&str], call: Call<'_>) -> Result<Spoken, Unsaid> {
        let id = self.ids.next();
        let kind = call.kind("mcp/proposal")?;
        let mut draft = self.begin(&id, at, to, (&kind, None));
        call.write(&mut draft)?;
        Ok(Spoken { id, bytes: draft.end() })
    }

    /// Answers a request (3.1.2): to those of [`crate::chain::Chains::audience`], with the JSON-RPC id of its payload, whatever that is.
    pub fn response(&mut self, at: SystemTime, audience: &[&str], request: &Envelope<'_>, answer: Answer<'_>) -> Result<Spoken, Unsaid> {
        let id = self.ids.next();
        let kind = request.kind().as_str().replacen("mcp/request", "mcp/response", 1);
        let mut draft = self.begin(&id, at, audience, (&kind, Some(&request.id)));
        let asked = Members::again(request.payload);
        draft.raw("\"jsonrpc\":\"2.0\",\"id\":").raw(sound(asked.get("id").unwrap_or(b"null"))?);
        match answer {
            Answer::Error(error) => draft.raw(",\"error\":").raw(object(error)?),
            Answer::Result(result) => draft.raw(",\"result\":").raw(sound(result)?),
        };
        Ok(Spoken { id, bytes: draft.end() })
    }

    /// Says something to people (3.3). `about` is the id of a message that it is about.
    pub fn chat(&mut self, at: SystemTime, to: &[&str], text: &str, about: Option<&str>) -> Spoken {
        let id = self.ids.next();
        let mut draft = self.begin(&id, at, to, ("chat", about));
        draft.raw("\"text\":").text(text);
        Spoken { id, bytes: draft.end() }
    }

    /// Asks others to do nothing by themselves for a while (MEW v0.4, 3.9.1).
    pub fn pause(&mut self, at: SystemTime, to: &[&str], seconds: Option<u64>, reason: Option<&str>) -> Result<Spoken, Unsaid> {
        self.control(at, to, "participant/pause", |draft| {
            if let Some(reason) = reason {
                draft.raw("\"reason\":").text(reason);
            }
            if let Some(seconds) = seconds {
                draft.raw(if reason.is_some() { "," } else { "" }).raw(&format!("\"timeout_seconds\":{seconds}"));
            }
        })
    }

    /// Asks them to go on (3.9.2).
    pub fn resume(&mut self, at: SystemTime, to: &[&str]) -> Result<Spoken, Unsaid> {
        self.control(at, to, "participant/resume", |_| {})
    }

    fn control(&mut self, at: SystemTime, to: &[&str], kind: &str, says: impl FnOnce(&mut Draft)) -> Result<Spoken, Unsaid> {
        if to.is_empty() {
            return Err(Unsaid::Everybody);
        }
        let id = self.ids.next();
        let mut draft = self.begin(&id, at, to, (kind, None));
        says(&mut draft);
        Ok(Spoken { id, bytes: draft.end() })
    }

    /// Ends a proposal.
    pub fn end(&mut self, at: SystemTime, proposal: &Step, ending: Ending, reason: Option<&str>) -> Spoken {
        let id = self.ids.next();
        let class = if ending == Ending::Reject { "mcp/reject" } else { "mcp/withdraw" };
        let kind = proposal.kind.replacen("mcp/proposal", class, 1);
        let mut draft = self.begin(&id, at, &[], (&kind, Some(&proposal.id)));
        if let Some(reason) = reason {
            draft.raw("\"reason\":").text(reason);
        }
        Spoken { id, bytes: draft.end() }
    }

    fn begin(&self, id: &str, at: SystemTime, to: &[&str], (kind, correlation_id): (&str, Option<&str>)) -> Draft {
        Draft::begin(About { id, at, from: self.me.as_str(), to, kind, correlation_id })
    }
}

impl Call<'_> {
    /// With the context that the method has.
    fn kind(&self, class: &str) -> Result<String, Unsaid> {
        let params = self.params.map(object).transpose()?.map(|text| Members::again(text.as_bytes()));
        let context = params.and_then(|params| named(self.method, &params).map(|name| format!(":{name}")));
        let kind = format!("{class}:{}{}", self.method, context.unwrap_or_default());
        if self.method.is_empty() || kind.len() > MAX_KIND || kind.contains(char::is_control) { Err(Unsaid::Kind) } else { Ok(kind) }
    }

    fn write(&self, draft: &mut Draft) -> Result<(), Unsaid> {
        draft.raw("\"method\":").text(self.method);
        if let Some(params) = self.params {
            draft.raw(",\"params\":").raw(object(params)?);
        }
        Ok(())
    }
}

/// Text that is one JSON value, with no key twice at any depth: its readers refuse that.
fn sound(raw: &[u8]) -> Result<&str, Unsaid> {
    json::check(raw, json::Duplicates::RefuseDeep).map_err(|_| Unsaid::Json)?;
    std::str::from_utf8(raw.trim_ascii()).map_err(|_| Unsaid::Json)
}

fn object(raw: &[u8]) -> Result<&str, Unsaid> {
    sound(raw).and_then(|text| if text.starts_with('{') { Ok(text) } else { Err(Unsaid::Json) })
}

#[cfg(test)]
mod tests;
