//! Messages of a participant: requests, proposals, fulfilments, responses and chat, as envelopes accepted by other participants and the
//! room (MCPx v0.1, 3). Knows neither the permission to speak nor the outcome.

use std::time::SystemTime;

use bytes::Bytes;
use json::Members;

use crate::chain::{State, Step};
use crate::draft::{Draft, DraftHead, Ids};
use crate::envelope::{Envelope, MAX_KIND};
use crate::name::ParticipantId;
use crate::participant::named;

/// A request or a notification to an MCP server.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    pub method: &'a str,
    /// The raw `params`, an object; `None`: absent.
    pub params: Option<&'a [u8]>,
}

/// Content of a response.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// The raw `error` object.
    Error(&'a [u8]),
    /// The raw `result`.
    Result(&'a [u8]),
}

/// Ends of a proposal without a call. Neither is in MCPx v0.1; `mcp/*` covers both kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// A participant speaks against the proposal.
    Reject,
    /// The proposer takes the proposal back.
    Withdraw,
}

/// Reasons for staying silent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpeechError {
    /// Every server in the room would answer.
    #[error("a request that wants an answer names who is to answer: say to whom it goes")]
    Broadcast,
    /// A pause has to name the participants.
    #[error("whoever is to pause or to go on is named: say who")]
    Everybody,
    /// The proposal is unknown, or no longer kept.
    #[error("there is no such proposal here, or it was too long ago: have it proposed again")]
    Forgotten,
    /// Unsound JSON for the payload.
    #[error("the payload is no sound JSON: params and errors are objects, a result is any value")]
    Json,
    /// No kind can name the call.
    #[error("the method, or the name or URI that it is about, is empty, too long or holds a control character: no kind can say it")]
    Kind,
    /// The room would refuse the message.
    #[error("you may not send `{kind}` in this room: ask its admin for that")]
    Lacking { kind: String },
    /// The proposal waits no more.
    #[error("this proposal does not wait any more: it is {}", .0.word())]
    NotOpen(State),
    /// The name of the participant is not known yet.
    #[error("the room has not welcomed this connection yet: wait for that")]
    NotWelcomed,
    /// Sent once, and not yet returned by the room.
    #[error("you have approved this already, and the room has not passed it on yet: wait for that")]
    Underway,
}

/// An envelope, with the id for answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    pub id: String,
    pub bytes: Bytes,
}

/// Writer of a participant's messages.
#[derive(Debug)]
pub struct Voice {
    me: ParticipantId,
    ids: Ids,
}

impl Voice {
    /// Makes a voice. No two voices may have one seed: ids begin with the seed.
    pub fn new(me: ParticipantId, seed: u128) -> Self {
        Self { me, ids: Ids::new(seed) }
    }

    /// Requests a call. `fulfils` is the id of a proposal.
    pub fn request(&mut self, at: SystemTime, to: &[&str], call: Call<'_>, fulfils: Option<&str>) -> Result<Utterance, SpeechError> {
        if to.is_empty() {
            return Err(SpeechError::Broadcast);
        }
        let id = self.ids.next();
        let kind = call.kind("mcp/request")?;
        let mut draft = self.begin(&id, at, to, (&kind, fulfils));
        // Answers are matched by the envelope's id; MCP wants one of its own in the payload.
        draft.raw("\"jsonrpc\":\"2.0\",\"id\":").text(&id).raw(",");
        call.write(&mut draft)?;
        Ok(Utterance { id, bytes: draft.finish() })
    }

    /// Notifies a server, or all servers.
    pub fn notification(&mut self, at: SystemTime, to: &[&str], call: Call<'_>) -> Result<Utterance, SpeechError> {
        let id = self.ids.next();
        let kind = call.kind("mcp/request")?;
        let mut draft = self.begin(&id, at, to, (&kind, None));
        draft.raw("\"jsonrpc\":\"2.0\",");
        call.write(&mut draft)?;
        Ok(Utterance { id, bytes: draft.finish() })
    }

    /// Proposes a call to participants with the permission to make the call (3.2).
    pub fn proposal(&mut self, at: SystemTime, to: &[&str], call: Call<'_>) -> Result<Utterance, SpeechError> {
        let id = self.ids.next();
        let kind = call.kind("mcp/proposal")?;
        let mut draft = self.begin(&id, at, to, (&kind, None));
        call.write(&mut draft)?;
        Ok(Utterance { id, bytes: draft.finish() })
    }

    /// Answers a request (3.1.2): to the participants named by [`crate::chain::Chains::audience`], with the JSON-RPC id of the request's
    /// payload.
    pub fn response(
        &mut self,
        at: SystemTime,
        audience: &[&str],
        request: &Envelope<'_>,
        answer: Answer<'_>,
    ) -> Result<Utterance, SpeechError> {
        let id = self.ids.next();
        let kind = request.kind().as_str().replacen("mcp/request", "mcp/response", 1);
        let mut draft = self.begin(&id, at, audience, (&kind, Some(&request.id)));
        let asked = Members::again(request.payload);
        draft.raw("\"jsonrpc\":\"2.0\",\"id\":").raw(sound(asked.get("id").unwrap_or(b"null"))?);
        match answer {
            Answer::Error(error) => draft.raw(",\"error\":").raw(object(error)?),
            Answer::Result(result) => draft.raw(",\"result\":").raw(sound(result)?),
        };
        Ok(Utterance { id, bytes: draft.finish() })
    }

    /// Says something to people (3.3). `about` is the id of another message.
    pub fn chat(&mut self, at: SystemTime, to: &[&str], text: &str, about: Option<&str>) -> Utterance {
        let id = self.ids.next();
        let mut draft = self.begin(&id, at, to, ("chat", about));
        draft.raw("\"text\":").text(text);
        Utterance { id, bytes: draft.finish() }
    }

    /// Asks others not to act alone for a while (MEW v0.4, 3.9.1).
    pub fn pause(&mut self, at: SystemTime, to: &[&str], seconds: Option<u64>, reason: Option<&str>) -> Result<Utterance, SpeechError> {
        self.control(at, to, "participant/pause", |draft| {
            if let Some(reason) = reason {
                draft.raw("\"reason\":").text(reason);
            }
            if let Some(seconds) = seconds {
                draft.raw(if reason.is_some() { "," } else { "" }).raw(&format!("\"timeout_seconds\":{seconds}"));
            }
        })
    }

    /// Asks paused participants to go on (3.9.2).
    pub fn resume(&mut self, at: SystemTime, to: &[&str]) -> Result<Utterance, SpeechError> {
        self.control(at, to, "participant/resume", |_| {})
    }

    fn control(&mut self, at: SystemTime, to: &[&str], kind: &str, says: impl FnOnce(&mut Draft)) -> Result<Utterance, SpeechError> {
        if to.is_empty() {
            return Err(SpeechError::Everybody);
        }
        let id = self.ids.next();
        let mut draft = self.begin(&id, at, to, (kind, None));
        says(&mut draft);
        Ok(Utterance { id, bytes: draft.finish() })
    }

    /// Ends a proposal.
    pub fn end_proposal(&mut self, at: SystemTime, proposal: &Step, ending: Ending, reason: Option<&str>) -> Utterance {
        let id = self.ids.next();
        let class = if ending == Ending::Reject { "mcp/reject" } else { "mcp/withdraw" };
        let kind = proposal.kind.replacen("mcp/proposal", class, 1);
        let mut draft = self.begin(&id, at, &[], (&kind, Some(&proposal.id)));
        if let Some(reason) = reason {
            draft.raw("\"reason\":").text(reason);
        }
        Utterance { id, bytes: draft.finish() }
    }

    fn begin(&self, id: &str, at: SystemTime, to: &[&str], (kind, correlation_id): (&str, Option<&str>)) -> Draft {
        Draft::begin(DraftHead { id, at, from: self.me.as_str(), to, kind, correlation_id })
    }
}

impl Call<'_> {
    /// Gives the kind, with the context of the method.
    fn kind(&self, class: &str) -> Result<String, SpeechError> {
        let params = self.params.map(object).transpose()?.map(|text| Members::again(text.as_bytes()));
        let context = params.and_then(|params| named(self.method, &params).map(|name| format!(":{name}")));
        let kind = format!("{class}:{}{}", self.method, context.unwrap_or_default());
        if self.method.is_empty() || kind.len() > MAX_KIND || kind.contains(char::is_control) { Err(SpeechError::Kind) } else { Ok(kind) }
    }

    fn write(&self, draft: &mut Draft) -> Result<(), SpeechError> {
        draft.raw("\"method\":").text(self.method);
        if let Some(params) = self.params {
            draft.raw(",\"params\":").raw(object(params)?);
        }
        Ok(())
    }
}

/// Checks a text: one JSON value, without duplicate keys at any depth. Receivers refuse duplicates.
fn sound(raw: &[u8]) -> Result<&str, SpeechError> {
    json::check(raw, json::Duplicates::RefuseDeep).map_err(|_| SpeechError::Json)?;
    std::str::from_utf8(raw.trim_ascii()).map_err(|_| SpeechError::Json)
}

fn object(raw: &[u8]) -> Result<&str, SpeechError> {
    sound(raw).and_then(|text| if text.starts_with('{') { Ok(text) } else { Err(SpeechError::Json) })
}

#[cfg(test)]
mod tests;
