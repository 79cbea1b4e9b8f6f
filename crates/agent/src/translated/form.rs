//! Answers to translated requests, in the binding of the request. Knows no task besides its text.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use agent_proto::served::written::ServedTask;
use agent_proto::task::TaskState;
use bridge::{
    BindingId, BridgeError, CanonicalMessage, CanonicalPart, EXTENSION_KEY, EnvelopeFacts, EnvelopeKey, EnvelopeSeal, Failure,
    FailureClass, Hop, MessageKind, PartContent, QuotedText, RawMember, Residue, ResiduePlace, WorkState, decode, encode, resource_of_mcp,
    seal,
};
use json::{Members, quote};
use runtime::{clock, random};

/// Id of the artifact that holds the result of a tool.
const RESULT: &str = "result";
/// Member of its metadata for `_meta` of the tool.
const META: &str = "io.banyan/meta";

/// Code of AINP for a message that ran before.
pub const DUPLICATE: &str = "DUPLICATE_INTENT";

/// Form of the answers to a request.
pub struct AnswerForm {
    pub binding: BindingId,
    /// Raw id of the request.
    pub id: Option<Vec<u8>>,
    /// Raw token of reports on progress.
    pub token: Option<Vec<u8>>,
    /// MCP of the stateless era.
    pub stateless: bool,
    /// µACP: the peer writes CBOR.
    pub cbor: bool,
    /// AINP: name of the sender.
    pub peer: Option<String>,
    /// The request named a conversation.
    pub has_context: bool,
    pub key: Option<Arc<EnvelopeKey>>,
    pub count: AtomicU64,
}

impl AnswerForm {
    /// Tells if the binding can say that work waits for a person or for its caller.
    pub fn tells_waiting(&self) -> bool {
        self.binding != BindingId::Mcp || self.stateless
    }

    /// Type of an answer, or of a stream of answers.
    pub fn kind(&self, is_stream: bool) -> &'static str {
        match (self.binding, is_stream) {
            (BindingId::Uacp, _) => "application/octet-stream",
            (BindingId::A2a | BindingId::Mcp | BindingId::Ainp | BindingId::Slim, true) => "text/event-stream",
            (BindingId::A2a | BindingId::Mcp | BindingId::Ainp | BindingId::Slim, false) => "application/json",
        }
    }

    /// Writes a task at a turn. The tool may have run by then, so an answer that the binding can't hold is a failure that says so.
    pub fn tell(&self, task: &ServedTask, turn: u64) -> Option<Vec<u8>> {
        let result = format!("{{\"task\":{}}}", task.write());
        self.write(&result, turn).or_else(|error| self.fail_late(task, &error)).ok()
    }

    /// Writes the answer of an agent, such as `{"task":{…}}`.
    fn write(&self, result: &str, turn: u64) -> Result<Vec<u8>, BridgeError> {
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{result}}}");
        let mut message = decode(BindingId::A2a, text.as_bytes())?.message;
        if self.binding != BindingId::A2a {
            plain(&mut message, self.has_context);
        }
        if self.binding == BindingId::Mcp && message.state.is_some_and(WorkState::is_waiting) {
            // An answer sent again is then no answer to the next question.
            message.task = message.task.map(|task| QuotedText::quote(&format!("{}.{turn}", task.text())));
            ask_for_form(&mut message);
        }
        self.send(&message)
    }

    fn fail_late(&self, task: &ServedTask, error: &BridgeError) -> Result<Vec<u8>, BridgeError> {
        let begin = match task.state {
            TaskState::Completed => "The tool has run",
            TaskState::Failed => "The tool may have run",
            TaskState::Canceled | TaskState::Rejected => "The call has ended",
            TaskState::Submitted | TaskState::Working | TaskState::InputRequired | TaskState::AuthRequired => "The call goes on",
        };
        let text = format!(
            "{begin}, but the protocol of the request can't hold the answer: {error}. Do not send the call again: ask for the task {} \
             with `GetTask` at `/a2a`.",
            task.id
        );
        self.fail(FailureClass::Internal, &text, None)
    }

    /// Writes the answer to a sign of life.
    pub fn write_life(&self) -> Result<Vec<u8>, BridgeError> {
        match (self.binding, &self.id) {
            (BindingId::Mcp, Some(id)) => Ok([b"{\"jsonrpc\":\"2.0\",\"id\":", &id[..], b",\"result\":{}}"].concat()),
            _ => self.send(&CanonicalMessage::new(MessageKind::Response)),
        }
    }

    /// Writes a refusal.
    pub fn refuse(&self, refusal: &ClientRefusal) -> Result<Vec<u8>, BridgeError> {
        let code = refusal.kind.codes().0.to_string().into_bytes();
        let code = (self.binding == BindingId::A2a).then_some((BindingId::A2a, Cow::Owned(code)));
        self.fail(class_of(refusal.kind), &refusal.message, code)
    }

    /// Writes the refusal of an envelope by its signature or its time, or of a message heard before.
    pub fn refuse_envelope(&self, code: &str, text: &str) -> Result<Vec<u8>, BridgeError> {
        let class = if code == DUPLICATE { FailureClass::Conflict } else { FailureClass::Unauthorized };
        self.fail(class, text, Some((BindingId::Ainp, Cow::Owned(quote(code).into_bytes()))))
    }

    fn fail(&self, class: FailureClass, text: &str, code: Option<(BindingId, Cow<'_, [u8]>)>) -> Result<Vec<u8>, BridgeError> {
        let mut message = CanonicalMessage::new(MessageKind::Failure);
        message.failure = Some(Failure { class, message: QuotedText::quote(text), code, retry_after: None });
        self.send(&message)
    }

    /// Writes an event of a stream; `None`: the binding has no such event. `end` is the task of the last event, which every binding has.
    pub fn event(&self, result: &str, turn: u64, end: Option<&ServedTask>) -> Option<Vec<u8>> {
        let written = match (self.write(result, turn), end) {
            (Ok(written), _) => written,
            (Err(error), Some(task)) => self.fail_late(task, &error).ok()?,
            (Err(_), None) => return None,
        };
        Some(match self.binding {
            BindingId::Uacp => [&u16::try_from(written.len()).ok()?.to_be_bytes(), &written[..]].concat(),
            BindingId::A2a | BindingId::Mcp | BindingId::Ainp | BindingId::Slim => {
                // Line ends stand in raw JSON between values alone, where a space is as good.
                let line = written.into_iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
                b"data: ".iter().copied().chain(line).chain(*b"\n\n").collect()
            }
        })
    }

    fn send(&self, message: &CanonicalMessage<'_>) -> Result<Vec<u8>, BridgeError> {
        let own = self.key.as_ref().map(|key| QuotedText::quote(&key.did()));
        let envelope = EnvelopeFacts {
            id: Some(QuotedText::quote(&uuid())),
            from: own,
            to: self.peer.as_deref().map(QuotedText::quote),
            time: clock::wall() / 1000,
            lifetime: None,
        };
        fn raw(raw: Option<&Vec<u8>>) -> Option<Cow<'_, [u8]>> {
            raw.map(|raw| Cow::Borrowed(&**raw))
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let (id, token) = (raw(self.id.as_ref()), raw(self.token.as_ref()));
        let hop = Hop { id, token, count, stateless: self.stateless, cbor: self.cbor, envelope, ..Hop::default() };
        let text = encode(self.binding, message, &hop)?.text;
        match (self.binding, &self.key) {
            (BindingId::Ainp, Some(key)) => seal(&text, EnvelopeSeal::Spec, key),
            _ => Ok(text),
        }
    }
}

/// Takes from an answer what the gate has added for clients of A2A alone: the artifact around a result, and ids of its own.
fn plain(message: &mut CanonicalMessage<'_>, has_context: bool) {
    message.residue.clear();
    message.id = None;
    if let Some(members) = result_meta(message) {
        message.artifacts.clear();
        // The words of a failed tool are its texts again.
        message.parts.retain(|part| part.artifact.is_some());
        message.parts.iter_mut().for_each(unpack);
        if !members.is_empty() {
            message.residue.push(Residue { binding: BindingId::Mcp, place: ResiduePlace::Meta, members });
        }
        drop_copy(message);
    }
    if message.state == Some(WorkState::Completed) {
        (message.state, message.task) = (None, None);
    }
    if message.state.is_none() && !has_context {
        message.conversation = None;
    }
}

/// The members of `_meta` of a tool's result, if the only artifact is such a result.
fn result_meta(message: &CanonicalMessage<'_>) -> Option<Vec<RawMember<'static>>> {
    let [head] = &message.artifacts[..] else { return None };
    let metadata = match &head.rest[..] {
        [] => return (head.id.text() == RESULT).then(Vec::new),
        [only] if only.key() == "metadata" && head.id.text() == RESULT => Members::again(only.value()),
        _ => return None,
    };
    let meta = metadata.object(META).filter(|_| metadata.len() == 1)?;
    let is_ours = |key: &str| key != EXTENSION_KEY && key != "progressToken" && !key.starts_with("io.modelcontextprotocol/");
    Some(meta.iter().filter(|(key, _)| is_ours(key)).map(|(key, raw)| RawMember::new(&key, raw)).collect())
}

/// Takes a part out of its artifact, and a resource out of the value that stands for it in A2A.
fn unpack(part: &mut CanonicalPart<'_>) {
    part.artifact = None;
    if let PartContent::Json(Cow::Borrowed(raw)) = part.content
        && let Some(resource) = resource_of_mcp(raw)
    {
        *part = resource;
    }
}

/// Puts the form of a question behind its words in place of a form for a text alone.
fn ask_for_form(message: &mut CanonicalMessage<'_>) {
    let [CanonicalPart { content: PartContent::Text(words), .. }, CanonicalPart { content: PartContent::Json(form), .. }] =
        &message.parts[..]
    else {
        return;
    };
    let (Some(schema), Some(task)) = (Members::again(form).get("requestedSchema"), &message.task) else { return };
    let (words, schema) = (String::from_utf8_lossy(words.raw()), String::from_utf8_lossy(schema));
    let asked = format!(
        "{{\"answer\":{{\"method\":\"elicitation/create\",\"params\":{{\"mode\":\"form\",\"message\":{words},\"requestedSchema\":{schema}}}}}}}"
    );
    let members = vec![RawMember::new("inputRequests", asked.as_bytes()), RawMember::new("requestState", task.raw())];
    message.residue.push(Residue { binding: BindingId::Mcp, place: ResiduePlace::Result, members });
    message.parts.clear();
}

/// Drops the text that is a copy of the value at the end, for readers without structured content.
fn drop_copy(message: &mut CanonicalMessage<'_>) {
    let Some(CanonicalPart { content: PartContent::Json(value), .. }) = message.parts.last() else { return };
    // The value is read once, however many texts stand beside it.
    let Ok(value) = json::tree::read(value) else { return };
    let is_copy = |text: &str| json::tree::read(text.as_bytes()).is_ok_and(|text| text.value == value.value);
    let copy = message.parts.iter().position(|part| match &part.content {
        PartContent::Text(text) => is_copy(&text.text()),
        PartContent::Bytes(_) | PartContent::Uri(_) | PartContent::Json(_) | PartContent::Native(..) => false,
    });
    if let Some(place) = copy {
        message.parts.remove(place);
    }
}

fn class_of(reason: RefusalReason) -> FailureClass {
    match reason {
        RefusalReason::Evidence => FailureClass::Forbidden,
        RefusalReason::InvalidParams => FailureClass::BadRequest,
        RefusalReason::Crowded | RefusalReason::Paced(_) => FailureClass::RateLimited,
        RefusalReason::Draining => FailureClass::Unavailable,
        RefusalReason::TaskNotCancelable => FailureClass::Conflict,
        RefusalReason::TaskNotFound => FailureClass::NotFound,
        RefusalReason::ContentTypeNotSupported
        | RefusalReason::MethodNotFound
        | RefusalReason::PushNotificationNotSupported
        | RefusalReason::UnsupportedOperation
        | RefusalReason::VersionNotSupported => FailureClass::Unsupported,
    }
}

/// Makes a UUID of version 4.
fn uuid() -> String {
    let mut bytes: [u8; 16] = random::bytes();
    (bytes[6], bytes[8]) = (bytes[6] & 0x0f | 0x40, bytes[8] & 0x3f | 0x80);
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(binding: BindingId) -> AnswerForm {
        let id = Some(if binding == BindingId::Ainp { br#""i""#.to_vec() } else { b"7".to_vec() });
        AnswerForm {
            binding,
            id,
            token: Some(b"9".to_vec()),
            stateless: true,
            cbor: false,
            peer: Some("did:web:a".into()),
            has_context: false,
            key: EnvelopeKey::of_seed(&[1; 32]).map(Arc::new),
            count: AtomicU64::default(),
        }
    }

    const DONE: &str = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED","timestamp":"x"},"artifacts":[{"artifactId":"result","parts":[{"text":"{\"n\": 1.5}"},{"data":{"n":1.5}}]}]}}"#;

    #[test]
    fn ae_11_an_answer_has_what_its_binding_has() {
        let written = |binding| form(binding).write(DONE, 0).unwrap();
        let text = |binding| String::from_utf8(written(binding)).unwrap();
        let expected = r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[{"type":"text","text":"{\"n\":1.5}","_meta":{"io.banyan/aepb":{"form":"json"}}}],"structuredContent":{"n":1.5}}}"#;
        assert_eq!(text(BindingId::Mcp), expected);
        assert!(written(BindingId::Uacp).ends_with(b"\x04\x04\0\0\0\x01{\"n\":1.5}"));
        assert!(text(BindingId::Ainp).contains(r#""status":"success","result":{"n":1.5}"#));
        assert!(text(BindingId::A2a).contains(r#""artifactId":"result""#));
    }

    #[test]
    fn ae_11_resources_and_meta_of_a_tool_are_not_wrapped() {
        let done = DONE.replace(
            r#"{"data":{"n":1.5}}]"#,
            r#"{"data":{"type":"resource_link","uri":"https://a.example/b","name":"b"}}],"metadata":{"io.banyan/meta":{"k":2}}"#,
        );
        let text = String::from_utf8(form(BindingId::Mcp).write(&done, 0).unwrap()).unwrap();
        let expected =
            r#"[{"type":"text","text":"{\"n\": 1.5}"},{"type":"resource_link","uri":"https://a.example/b","name":"b"}],"_meta":{"k":2}}"#;
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn ae_18_a_wait_is_told_in_every_binding_that_can() {
        let waiting = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_AUTH_REQUIRED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"Ask bob."}]}}}}"#;
        for binding in [BindingId::A2a, BindingId::Mcp, BindingId::Uacp, BindingId::Ainp] {
            let written = form(binding).write(waiting, 3).unwrap();
            let read = decode(binding, &written).unwrap().message;
            assert_eq!((read.kind, read.state), (MessageKind::Response, Some(WorkState::AuthRequired)), "{binding:?}");
            let task = if binding == BindingId::Mcp { "t.3" } else { "t" };
            assert_eq!(read.task.unwrap().text(), task, "{binding:?}");
        }
        let silent = AnswerForm { stateless: false, ..form(BindingId::Mcp) };
        assert!(!silent.tells_waiting() && silent.write(waiting, 0).is_err());
    }

    #[test]
    fn ae_18_events_are_framed_as_their_binding_has_them() {
        let working = r#"{"statusUpdate":{"taskId":"t","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"half"}]}}}}"#;
        let event = |binding| form(binding).event(working, 0, None).unwrap();
        assert!(
            event(BindingId::Mcp)
                .starts_with(br#"data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":1,"#)
        );
        let framed = event(BindingId::Uacp);
        assert_eq!(usize::from(u16::from_be_bytes([framed[0], framed[1]])), framed.len() - 2);
        assert_eq!(decode(BindingId::Uacp, &framed[2..]).unwrap().message.kind, MessageKind::Event);
        assert!(form(BindingId::Mcp).event(r#"{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"}}}"#, 0, None).is_none());
    }

    fn task(state: TaskState) -> ServedTask {
        ServedTask { id: "t".into(), context: "c".into(), state, changed: 0, words: None, question: None, artifacts: None }
    }

    #[test]
    fn ae_18_no_stream_ends_without_an_answer() {
        let deep = DONE.replace("1.5", &format!("{}{}", "[".repeat(100), "]".repeat(100)));
        for (binding, result) in [(BindingId::Mcp, deep), (BindingId::Uacp, DONE.replace("1.5", &format!("\"{}\"", "x".repeat(70_000))))] {
            let told = form(binding).event(&result, 0, Some(&task(TaskState::Completed))).unwrap();
            assert!(String::from_utf8_lossy(&told).contains("The tool has run"), "{binding:?}");
            assert!(form(binding).event(&result, 0, None).is_none());
        }
    }

    #[test]
    fn ae_15_an_answer_without_form_says_the_tool_ran() {
        let wrong = [
            r#"[{"artifactId":"result","parts":[{"text":7}]}]"#,
            r#"[{"artifactId":"result","parts":[{"data":123456789012345678901234567890}]}]"#,
        ];
        for artifacts in wrong {
            let told =
                form(BindingId::Ainp).tell(&ServedTask { artifacts: Some(artifacts.into()), ..task(TaskState::Completed) }, 0).unwrap();
            let text = String::from_utf8_lossy(&told);
            assert!(text.contains("INTERNAL_ERROR") && text.contains("The tool has run") && text.contains("\"sig\""), "{text}");
        }
    }

    #[test]
    fn ae_18_a_question_keeps_its_own_form() {
        let asked = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"Which?"},{"data":{"requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}}]}}}}"#;
        let text = String::from_utf8(form(BindingId::Mcp).write(asked, 2).unwrap()).unwrap();
        assert!(text.contains(r#""message":"Which?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}}}"#), "{text}");
        assert!(text.contains(r#""requestState":"t.2""#) && !text.contains("parts"), "{text}");
    }

    #[test]
    fn ae_11_a_copy_is_found_among_many_texts() {
        let texts = r#"{"text":"[1,"},"#.repeat(100);
        let value = format!("[{}0]", "0,".repeat(100));
        let many = format!(
            r#"{{"task":{{"id":"t","contextId":"c","status":{{"state":"TASK_STATE_COMPLETED"}},"artifacts":[{{"artifactId":"result","parts":[{texts}{{"text":"{value}"}},{{"data":{value}}}]}}]}}}}"#
        );
        let message = decode(BindingId::A2a, format!(r#"{{"jsonrpc":"2.0","id":0,"result":{many}}}"#).as_bytes()).map(|read| {
            let mut message = read.message;
            let before = message.parts.len();
            drop_copy(&mut message);
            before - message.parts.len()
        });
        assert_eq!(message, Ok(1));
    }
}
