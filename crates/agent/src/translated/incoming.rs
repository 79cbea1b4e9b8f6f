//! Requests in the binding of their sender, read as messages to a task of the gate. Resolves no name, and judges no caller.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use agent_proto::served::incoming::SkillCall;
use agent_proto::served::input::GivenInput;
use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use bridge::{
    BindingId, BridgeError, CanonicalField, CanonicalMessage, EXTENSION_KEY, EnvelopeKey, Hop, Loss, LossFate, MessageKind, PartContent,
    QuotedText, RawMember, Residue, Severity, decode, encode, warnings,
};
use json::{Duplicates, Members, quote};
use runtime::random;

use crate::translated::form::AnswerForm;

/// Longest id of a client's making.
const LONGEST_ID: usize = 256;

/// A request, read.
pub struct IncomingRequest<'a> {
    pub form: Arc<AnswerForm>,
    /// Gateways before this one, as the sender claims.
    pub hops: Vec<String>,
    message: CanonicalMessage<'a>,
    /// MCP: raw id of a request to be cancelled.
    pub target: Option<Vec<u8>>,
    pub envelope: Option<HeardEnvelope>,
    /// The sender takes forms to be filled in by a person.
    pub takes_questions: bool,
}

/// Facts of an envelope of AINP. Times are in milliseconds.
pub struct HeardEnvelope {
    pub from: String,
    pub to: Option<String>,
    pub time: u64,
    pub lifetime: Option<u64>,
}

/// A call for a task to begin with.
pub struct TranslatedCall {
    pub call: SkillCall,
    pub warnings: Vec<String>,
}

impl<'a> IncomingRequest<'a> {
    /// Reads a request.
    pub fn read(binding: BindingId, text: &'a [u8], key: Option<Arc<EnvelopeKey>>) -> Result<Self, BridgeError> {
        let incoming = decode(binding, text)?;
        let (message, hop) = (incoming.message, incoming.hop);
        if !matches!(message.kind, MessageKind::Request | MessageKind::Cancel | MessageKind::Probe) {
            return Err(BridgeError::Malformed { at: "message", why: "a request is expected".into() });
        }
        let is_rpc = matches!(binding, BindingId::A2a | BindingId::Mcp) && hop.target.is_none();
        if is_rpc && hop.id.as_deref().is_none_or(|raw| raw == b"null") {
            return Err(BridgeError::Malformed { at: "id", why: "a request has an id, for its answer".into() });
        }
        for (at, raw) in [("id", &hop.id), ("progressToken", &hop.token), ("requestId", &hop.target)] {
            if raw.as_deref().is_some_and(|raw| !is_name(raw)) {
                let why = format!("a text of at most {LONGEST_ID} bytes or a number is expected");
                return Err(BridgeError::Malformed { at, why: why.into() });
            }
        }
        let owned = |raw: &Option<Cow<'_, [u8]>>| raw.as_ref().map(|raw| raw.to_vec());
        let is_ainp = binding == BindingId::Ainp;
        let peer = hop.envelope.from.as_ref().map(|from| from.text().into_owned());
        let form = AnswerForm {
            binding,
            id: owned(&hop.id),
            token: owned(&hop.token),
            stateless: hop.meta.iter().any(|member| member.key().ends_with("/protocolVersion")),
            cbor: hop.cbor,
            peer: peer.clone(),
            has_context: message.conversation.is_some(),
            key: key.filter(|_| is_ainp),
            count: AtomicU64::default(),
        };
        let hops = message.trail.hops.iter().map(|hop| hop.text().into_owned()).collect();
        let to = hop.envelope.to.as_ref().map(|to| to.text().into_owned());
        let (time, lifetime) = (hop.envelope.time, hop.envelope.lifetime);
        let envelope = peer.filter(|_| is_ainp).map(|from| HeardEnvelope { from, to, time, lifetime });
        let takes_questions = binding == BindingId::A2a || form.stateless && takes_forms(&hop.meta);
        Ok(Self { form: Arc::new(form), hops, message, target: owned(&hop.target), envelope, takes_questions })
    }

    /// Kind of the message: a request, a cancellation or a sign of life.
    pub fn kind(&self) -> MessageKind {
        self.message.kind
    }

    /// Name of the tool, as the sender has it.
    pub fn op(&self) -> Option<String> {
        self.message.op.as_ref().map(|op| op.text().into_owned())
    }

    /// Tells if the sender wants events before the end.
    pub fn wants_stream(&self) -> bool {
        self.message.wants.stream
    }

    /// Tells if the sender wants an answer before the work is over.
    pub fn wants_answer_at_once(&self) -> bool {
        self.message.wants.immediate
    }

    /// Id of the task that the request goes on with; for MCP with the turn at which the client was asked.
    pub fn task(&self) -> Option<(String, Option<u64>)> {
        let own = self.message.task.as_ref().map(|task| task.text().into_owned());
        let named = own.or_else(|| json::as_str(self.param("requestState")?).map(Cow::into_owned))?;
        let parted = named.split_once('.').and_then(|(task, turn)| Some((task.to_owned(), Some(turn.parse().ok()?))));
        Some(parted.filter(|_| self.form.binding == BindingId::Mcp).unwrap_or((named, None)))
    }

    /// Tells if the request answers the question asked at the turn `at`.
    pub fn answers(&self, turn: Option<u64>, at: u64) -> bool {
        self.form.binding != BindingId::Mcp || turn == Some(at) && self.param("inputResponses").is_some()
    }

    /// A member of the params of MCP.
    fn param(&self, key: &str) -> Option<&[u8]> {
        let of_mcp = self.message.residue.iter().filter(|kept| kept.binding == BindingId::Mcp);
        of_mcp.flat_map(|kept: &Residue<'_>| &kept.members).find(|member| member.key() == key).map(|member| member.value())
    }

    /// Id of the message, the same when the message is sent again. Numbers of MCP and µACP come again, so a message of theirs is new each time.
    pub fn id(&self) -> Result<String, ClientRefusal> {
        let id = match self.form.binding {
            BindingId::A2a | BindingId::Ainp => self.message.id.as_ref().map(|id| id.text().into_owned()),
            BindingId::Mcp | BindingId::Uacp | BindingId::Slim => None,
        };
        let id = match (&self.form.peer, id) {
            (Some(peer), Some(id)) => Some(format!("{peer} {id}")),
            (_, id) => id,
        };
        id.map_or_else(|| Ok(random::token()), bounded)
    }

    /// Name of the conversation.
    pub fn context(&self) -> Result<Option<String>, ClientRefusal> {
        self.message.conversation.as_ref().map(|context| bounded(context.text().into_owned())).transpose()
    }

    /// Refuses a wish that this door can't fulfil.
    pub fn check_wishes(&self) -> Result<(), ClientRefusal> {
        let text = "Translated requests have no push notifications: follow the task by a stream, or ask for the task.";
        if self.message.wants.push.is_some() {
            return Err(ClientRefusal::new(RefusalReason::PushNotificationNotSupported, text));
        }
        if self.form.binding == BindingId::Mcp && self.message.wants.immediate {
            let text = "MCP has no answer before the end of the work: leave `immediate` out, and wait or follow the progress.";
            return Err(ClientRefusal::new(RefusalReason::UnsupportedOperation, text));
        }
        Ok(())
    }

    /// Reads the request as the answer to a question.
    pub fn input(&self) -> GivenInput {
        if let Some(raw) = self.param("inputResponses") {
            return responded(raw).unwrap_or(GivenInput::Unclear);
        }
        match &self.message.parts[..] {
            [part] => match &part.content {
                PartContent::Text(text) => GivenInput::Text(text.text().into_owned()),
                PartContent::Json(raw) if raw.starts_with(b"{") => GivenInput::Data(lossy(raw)),
                PartContent::Bytes(_) | PartContent::Uri(_) | PartContent::Json(_) | PartContent::Native(..) => GivenInput::Unclear,
            },
            _ => GivenInput::Unclear,
        }
    }

    /// Translates the request into a call of the tool shown as `skill`, with this gateway as the next hop.
    pub fn call(&self, to: BindingId, skill: String, own: &str) -> Result<TranslatedCall, BridgeError> {
        let mut message = self.message.clone();
        // The gate itself follows the call.
        message.wants = bridge::Wants { modes: message.wants.modes, ..bridge::Wants::default() };
        message.trail.hops.push(QuotedText::quote(own));
        let hop = Hop { id: Some(Cow::Borrowed(b"1")), ..Hop::default() };
        let sent = encode(to, &message, &hop)?;
        let pointed = sent.losses.into_iter().map(|loss| loss.in_source(self.form.binding, message.kind)).collect::<Vec<_>>();
        let params = Members::again(&sent.text).object("params").unwrap_or_default();
        let (arguments, map) = match to {
            BindingId::A2a => (skill_arguments(&message)?, params.object("message").and_then(|said| said.object("metadata"))),
            BindingId::Mcp | BindingId::Ainp | BindingId::Slim | BindingId::Uacp => {
                (params.get("arguments").map_or_else(|| "{}".to_owned(), lossy), params.object("_meta"))
            }
        };
        let extension = map.and_then(|map| map.get(EXTENSION_KEY).map(lossy));
        Ok(TranslatedCall { call: SkillCall { skill, arguments, extension }, warnings: warnings(&pointed) })
    }
}

fn lossy(raw: &[u8]) -> String {
    String::from_utf8_lossy(raw).into_owned()
}

/// Checks the raw name of a request or of a report, which is kept as long as its answer lasts.
fn is_name(raw: &[u8]) -> bool {
    raw.len() <= LONGEST_ID && (raw == b"null" || matches!(raw.first(), Some(b'"' | b'-' | b'0'..=b'9')))
}

fn bounded(id: String) -> Result<String, ClientRefusal> {
    let text = format!("An id of the message is longer than {LONGEST_ID} bytes.");
    if id.len() > LONGEST_ID { Err(ClientRefusal::new(RefusalReason::InvalidParams, text)) } else { Ok(id) }
}

/// Reads the capabilities of an MCP client for forms. An empty object stands for them.
fn takes_forms(meta: &[RawMember<'_>]) -> bool {
    let said = meta.iter().find(|member| member.key().ends_with("/clientCapabilities"));
    let asked = said.and_then(|said| Members::parse(said.value(), Duplicates::RefuseDeep).ok()?.object("elicitation"));
    asked.is_some_and(|asked| asked.is_empty() || asked.get("form").is_some())
}

/// Reads the response of an MCP client to the question of this gate.
fn responded(raw: &[u8]) -> Option<GivenInput> {
    let answer = Members::parse(raw, Duplicates::RefuseDeep).ok()?.object("answer")?;
    if answer.str("action").as_deref() != Some("accept") {
        return Some(GivenInput::Declined);
    }
    Some(answer.get("content").map_or(GivenInput::Accepted, |content| GivenInput::Data(lossy(content))))
}

/// Writes the parts of a message as the arguments of a skill.
fn skill_arguments(message: &CanonicalMessage<'_>) -> Result<String, BridgeError> {
    let (mut text, mut data, mut files) = (None, None, Vec::new());
    for part in &message.parts {
        let file = |key: &str, content: &QuotedText<'_>| {
            let more =
                |key: &str, text: Option<&QuotedText<'_>>| text.map(|text| format!(",\"{key}\":{}", lossy(text.raw()))).unwrap_or_default();
            let (name, kind) = (more("name", part.filename.as_ref()), more("media_type", part.media_type.as_ref()));
            format!("{{\"{key}\":{}{name}{kind}}}", lossy(content.raw()))
        };
        match &part.content {
            PartContent::Text(words) if text.is_none() => text = Some(lossy(words.raw())),
            PartContent::Json(raw) if data.is_none() => data = Some(lossy(raw)),
            PartContent::Bytes(bytes) => files.push(file("base64", bytes)),
            PartContent::Uri(uri) => files.push(file("url", uri)),
            PartContent::Text(_) | PartContent::Json(_) | PartContent::Native(..) => {
                return Err(lost("a skill behind this gate takes one text and one value, besides files"));
            }
        }
    }
    let files = (!files.is_empty()).then(|| format!("[{}]", files.join(",")));
    let members = [("message", text), ("data", data), ("files", files)];
    let members: Vec<String> = members.into_iter().filter_map(|(key, raw)| Some(format!("{}:{}", quote(key), raw?))).collect();
    Ok(format!("{{{}}}", members.join(",")))
}

fn lost(note: &'static str) -> BridgeError {
    let field = CanonicalField::Parts;
    BridgeError::SemanticLoss(Loss { field, path: "parts", fate: LossFate::Dropped, severity: Severity::Fatal, note })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEND: &str = r#"{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"data":{"amount":1.50}}],"metadata":{"x":1,"io.banyan/aepb":{"op":"pay","hops":["spiffe://a/b"]}}}}}"#;
    const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"draft","arguments":{"poem":1},"requestState":"t.4","inputResponses":{"answer":{"action":"accept","content":{"answer":"green"}}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":3}}}"#;

    #[test]
    fn ae_15_what_has_no_place_goes_on_with_the_call() {
        let read = IncomingRequest::read(BindingId::A2a, SEND.as_bytes(), None).unwrap();
        assert_eq!((read.hops.clone(), read.op(), read.id().unwrap()), (vec!["spiffe://a/b".to_owned()], Some("pay".into()), "m".into()));
        let called = read.call(BindingId::Mcp, "bank__pay".into(), "spiffe://own/gate").unwrap();
        assert_eq!((called.call.skill.as_str(), called.call.arguments.as_str()), ("bank__pay", r#"{"amount":1.50}"#));
        let carried = called.call.extension.unwrap();
        assert!(carried.contains(r#""hops":["spiffe://a/b","spiffe://own/gate"]"#) && carried.contains(r#"{"x":1}"#), "{carried}");
    }

    #[test]
    fn ae_11_a_call_of_mcp_speaks_to_an_agent() {
        let read = IncomingRequest::read(BindingId::Mcp, CALL.as_bytes(), None).unwrap();
        assert!(read.wants_stream() && read.form.stateless && read.form.tells_waiting());
        let called = read.call(BindingId::A2a, "writer__draft".into(), "spiffe://own/gate").unwrap();
        assert_eq!(called.call.arguments, r#"{"data":{"poem":1}}"#);
        assert!(called.call.extension.unwrap().contains("requestState"), "members of MCP travel on");
    }

    #[test]
    fn ae_18_the_answer_of_a_client_reaches_its_task() {
        let read = IncomingRequest::read(BindingId::Mcp, CALL.as_bytes(), None).unwrap();
        assert_eq!((read.task(), read.input()), (Some(("t".into(), Some(4))), GivenInput::Data(r#"{"answer":"green"}"#.into())));
        assert!(read.answers(Some(4), 4) && !read.answers(Some(4), 6) && !read.answers(None, 4), "an answer sent again answers nothing");
        let declined = CALL.replace("accept", "decline");
        assert_eq!(IncomingRequest::read(BindingId::Mcp, declined.as_bytes(), None).unwrap().input(), GivenInput::Declined);
    }

    #[test]
    fn ae_15_two_texts_are_no_arguments_of_a_skill() {
        let said = r#"{"parts":[{"text":"a"},{"text":"b"}]}"#;
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"draft","arguments":{said},"_meta":{{"io.banyan/aepb":{{"made":["parts"]}}}}}}}}"#
        );
        let read = IncomingRequest::read(BindingId::Mcp, call.as_bytes(), None).unwrap();
        assert!(matches!(read.call(BindingId::A2a, "x".into(), "own"), Err(BridgeError::SemanticLoss(_))));
    }

    #[test]
    fn ae_18_only_a_client_that_says_so_is_asked() {
        let asked = |capabilities: &str| {
            let meta = format!(r#""_meta":{{"io.modelcontextprotocol/clientCapabilities":{capabilities},"#);
            let text = CALL.replace(r#""_meta":{"#, &meta);
            IncomingRequest::read(BindingId::Mcp, text.as_bytes(), None).unwrap().takes_questions
        };
        assert!(asked(r#"{"elicitation":{}}"#) && asked(r#"{"elicitation":{"form":{}}}"#));
        assert!(!asked("{}") && !asked(r#"{"elicitation":{"url":{}}}"#));
    }

    #[test]
    fn h1_overlong_names_of_translated_requests_are_refused() {
        let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        for (binding, text, member) in [
            (BindingId::A2a, SEND, r#""id":7"#),
            (BindingId::Mcp, CALL, r#""id":7"#),
            (BindingId::Mcp, CALL, r#""progressToken":3"#),
            (BindingId::Mcp, cancel, r#""requestId":7"#),
        ] {
            let with = |raw: &str| {
                let key = member.split_once(':').unwrap().0;
                text.replacen(member, &format!("{key}:{raw}"), 1)
            };
            let is_read = |raw: &str| IncomingRequest::read(binding, with(raw).as_bytes(), None).is_ok();
            let quoted = |length: usize| quote(&"x".repeat(length - 2));
            assert!(is_read("-7") && is_read(&quoted(LONGEST_ID)) && !is_read(&quoted(LONGEST_ID + 1)), "{member}");
            assert!(!is_read("true") && !is_read("[7]") && !is_read(r#"{"a":7}"#), "{member}");
        }
    }

    #[test]
    fn ae_11_a_request_without_an_answer_is_refused_first() {
        for id in ["", r#""id":null,"#] {
            let (send, call) = (SEND.replace(r#""id":7,"#, id), CALL.replace(r#""id":7,"#, id));
            assert!(IncomingRequest::read(BindingId::A2a, send.as_bytes(), None).is_err(), "{id}");
            assert!(IncomingRequest::read(BindingId::Mcp, call.as_bytes(), None).is_err(), "{id}");
        }
        let at_once = CALL.replace(r#""progressToken":3"#, r#""io.banyan/aepb":{"immediate":true}"#);
        assert!(IncomingRequest::read(BindingId::Mcp, at_once.as_bytes(), None).unwrap().check_wishes().is_err());
    }
}
