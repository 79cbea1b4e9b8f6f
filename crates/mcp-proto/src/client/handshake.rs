//! Finds the era of a server and its capabilities (2026-07-28 "Version negotiation", 2025-11-25 "Lifecycle").
//!
//! Does not know the transport: the driver reports the answer, or the lack of one.

use banyan_model::Era;
use bytes::Bytes;

use crate::envelope::{self, Answer};
use crate::era::{self, key};
use crate::json::{self, Members};

/// Our description of ourselves to a server.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The raw `clientInfo` object.
    pub info: Bytes,
    /// The raw `capabilities` object.
    pub capabilities: Bytes,
}

/// A server's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Negotiated {
    /// The era to speak.
    pub era: Era,
    /// The revision to name.
    pub version: String,
    /// The raw `capabilities` object.
    pub capabilities: Bytes,
    /// The raw `serverInfo` object.
    pub server_info: Bytes,
    /// Instructions for use.
    pub instructions: Option<String>,
}

/// The driver's next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Settled. A message, if any, must be sent first.
    Done(Negotiated, Option<Bytes>),
    /// Failed for good.
    Failed(HandshakeError),
    /// Send this request (whole message) and hand the answer back. The method and revision are for HTTP headers.
    Send {
        message: Bytes,
        method: &'static str,
        /// The revision to name in headers; `None` for `initialize`.
        version: Option<&'static str>,
    },
}

/// Reasons for finding no era.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    #[error("the server refused the handshake: {0}")]
    Refused(String),
    #[error("the server did not answer the handshake")]
    Silent,
    /// The answer is no handshake.
    #[error("the server's handshake answer is not MCP: {0}")]
    Unreadable(&'static str),
    /// The server speaks only revisions unknown here.
    #[error("the server speaks revision {0}, which Banyan does not")]
    Version(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Discovering,
    Initializing,
    Over,
}

/// An attempt to come to terms with a server.
#[derive(Debug)]
pub struct Handshake {
    identity: Identity,
    choice: Option<Era>,
    state: State,
    insisted: bool,
    probes: u32,
}

/// The JSON-RPC id of the probe; ids of calls start above both.
pub(crate) const DISCOVER_ID: u64 = 0;
/// The JSON-RPC id of `initialize`.
pub(crate) const INITIALIZE_ID: u64 = 1;

impl Handshake {
    /// Starts a handshake. `choice` settles the era beforehand; `None` probes for the stateless era first.
    pub fn new(choice: Option<Era>, identity: Identity) -> Self {
        Self { identity, choice, state: State::Over, insisted: false, probes: 0 }
    }

    /// Gives the first step.
    pub fn start(&mut self) -> Step {
        match self.choice {
            Some(Era::Initialize) => self.initialize(),
            Some(Era::Stateless) | None => self.discover(),
        }
    }

    /// The server answered the last request sent.
    pub fn handle_answer(&mut self, answer: &Answer) -> Step {
        match self.state {
            State::Discovering => self.discovered(answer),
            State::Initializing => self.initialized(answer),
            State::Over => Step::Failed(HandshakeError::Unreadable("an answer that nobody waits for")),
        }
    }

    /// Takes the answer to an abandoned probe. A server that calls itself stateless is believed, since it may refuse
    /// `initialize` from then on. `None`: the answer changes nothing.
    pub fn handle_late_discovery(&mut self, answer: &Answer) -> Option<Step> {
        if self.state != State::Initializing || self.choice.is_some() {
            return None;
        }
        match self.discovered(answer) {
            done @ Step::Done(..) => Some(done),
            Step::Failed(_) | Step::Send { .. } => {
                self.state = State::Initializing;
                None
            }
        }
    }

    /// The server said nothing in time, or its transport refused the probe: any such refusal of a probe means the older era.
    pub fn handle_refusal(&mut self, why: HandshakeError) -> Step {
        if self.state == State::Discovering && self.choice.is_none() {
            return self.initialize();
        }
        self.state = State::Over;
        Step::Failed(why)
    }

    /// Numbers the probe for the stateless era under way, from 1. Each probe has its own time limit.
    pub fn probe(&self) -> Option<u32> {
        (self.state == State::Discovering && self.choice.is_none()).then_some(self.probes)
    }

    /// Tells if a probe for the stateless era is under way.
    pub fn is_probing(&self) -> bool {
        self.probe().is_some()
    }

    fn discover(&mut self) -> Step {
        self.state = State::Discovering;
        self.probes += 1;
        let params = format!("{{\"_meta\":{}}}", stateless_meta(&self.identity));
        let message = envelope::request(itoa::Buffer::new().format(DISCOVER_ID).as_bytes(), "server/discover", params.as_bytes());
        Step::Send { message, method: "server/discover", version: Some(era::STATELESS) }
    }

    fn initialize(&mut self) -> Step {
        self.state = State::Initializing;
        let params = format!(
            "{{\"protocolVersion\":\"{}\",\"capabilities\":{},\"clientInfo\":{}}}",
            era::INITIALIZE[0],
            String::from_utf8_lossy(&self.identity.capabilities),
            String::from_utf8_lossy(&self.identity.info)
        );
        let message = envelope::request(itoa::Buffer::new().format(INITIALIZE_ID).as_bytes(), "initialize", params.as_bytes());
        Step::Send { message, method: "initialize", version: None }
    }

    fn discovered(&mut self, answer: &Answer) -> Step {
        let result = match answer {
            Answer::Result(result) => result,
            // It refuses the revision and then names the very same one: it is asked once more (SEP-2575).
            Answer::Error(error) if self.state == State::Discovering && !self.insisted && supports_ours(error) => {
                self.insisted = true;
                return self.discover();
            }
            Answer::Error(error) => return self.handle_refusal(HandshakeError::Refused(error_message(error))),
        };
        let Ok(members) = Members::parse(result, json::Duplicates::RefuseTop) else {
            return self.handle_refusal(HandshakeError::Unreadable("its result is no object"));
        };
        let versions = members.get("supportedVersions").and_then(json::elements).unwrap_or_default();
        if !versions.iter().any(|v| json::as_str(v).as_deref() == Some(era::STATELESS)) {
            let spoken = versions.iter().filter_map(|v| json::as_str(v)).collect::<Vec<_>>().join(", ");
            return self.handle_refusal(HandshakeError::Version(spoken));
        }
        self.state = State::Over;
        let meta_info = members.object("_meta").and_then(|m| m.get(key::SERVER_INFO).map(|raw| result.slice_ref(raw)));
        let mut negotiated = negotiated(result, &members, Era::Stateless, era::STATELESS);
        if let Some(info) = meta_info {
            negotiated.server_info = info;
        }
        Step::Done(negotiated, None)
    }

    fn initialized(&mut self, answer: &Answer) -> Step {
        self.state = State::Over;
        let result = match answer {
            Answer::Result(result) => result,
            // It was slow to answer the probe, and by now takes nothing but the other era.
            Answer::Error(error) if self.choice.is_none() && !self.insisted && supports_ours(error) => {
                self.insisted = true;
                return self.discover();
            }
            Answer::Error(error) => return Step::Failed(HandshakeError::Refused(error_message(error))),
        };
        let Ok(members) = Members::parse(result, json::Duplicates::RefuseTop) else {
            return Step::Failed(HandshakeError::Unreadable("its result is no object"));
        };
        let Some(version) = members.str("protocolVersion") else {
            return Step::Failed(HandshakeError::Unreadable("it names no protocolVersion"));
        };
        if era::era_of(&version) != Some(Era::Initialize) {
            return Step::Failed(HandshakeError::Version(version.into_owned()));
        }
        let done = envelope::notification("notifications/initialized", b"{}");
        Step::Done(negotiated(result, &members, Era::Initialize, &version), Some(done))
    }
}

/// Writes the raw `_meta` object of our stateless requests.
pub fn stateless_meta(identity: &Identity) -> String {
    format!(
        "{{\"{}\":\"{}\",\"{}\":{},\"{}\":{}}}",
        key::PROTOCOL_VERSION,
        era::STATELESS,
        key::CLIENT_CAPABILITIES,
        String::from_utf8_lossy(&identity.capabilities),
        key::CLIENT_INFO,
        String::from_utf8_lossy(&identity.info)
    )
}

fn negotiated(result: &Bytes, members: &Members<'_>, era: Era, version: &str) -> Negotiated {
    let object = |key| members.get(key).filter(|raw| raw.starts_with(b"{")).map(|raw| result.slice_ref(raw));
    Negotiated {
        era,
        version: version.to_owned(),
        capabilities: object("capabilities").unwrap_or(Bytes::from_static(b"{}")),
        server_info: object("serverInfo").unwrap_or(Bytes::from_static(b"{}")),
        instructions: members.str("instructions").map(|s| s.into_owned()),
    }
}

/// Tells if an "unsupported version" error lists our revision.
fn supports_ours(error: &[u8]) -> bool {
    let members = Members::again(error);
    let listed = members.object("data").and_then(|d| d.get("supported")).and_then(json::elements).unwrap_or_default();
    members.get("code") == Some(b"-32022") && listed.iter().any(|v| json::as_str(v).as_deref() == Some(era::STATELESS))
}

/// The readable part of a raw `error` object.
fn error_message(error: &[u8]) -> String {
    let members = Members::again(error);
    let code = members.get("code").map(|c| String::from_utf8_lossy(c).into_owned()).unwrap_or_default();
    format!("{} ({code})", members.str("message").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(choice: Option<Era>) -> Handshake {
        let mut handshake =
            Handshake::new(choice, Identity { info: Bytes::from_static(b"{\"name\":\"b\"}"), capabilities: Bytes::from_static(b"{}") });
        let first = handshake.start();
        let Step::Send { method, .. } = first else { panic!("{first:?}") };
        assert_eq!(method, if choice == Some(Era::Initialize) { "initialize" } else { "server/discover" });
        handshake
    }

    fn result(text: &'static str) -> Answer {
        Answer::Result(Bytes::from_static(text.as_bytes()).into())
    }

    fn initialized(handshake: &mut Handshake) -> Step {
        handshake.handle_answer(&result(r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s"}}"#))
    }

    #[test]
    fn a_server_that_discovers_is_stateless() {
        let step =
            begun(None).handle_answer(&result(r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"instructions":"go"}"#));
        let Step::Done(n, None) = step else { panic!("{step:?}") };
        assert_eq!((n.era, n.instructions.as_deref()), (Era::Stateless, Some("go")));
    }

    #[test]
    fn any_error_silence_or_foreign_revision_means_the_older_era() {
        let error = Answer::Error(Bytes::from_static(b"{\"code\":-32602,\"message\":\"no\"}"));
        let foreign = result(r#"{"supportedVersions":["2030-01-01"]}"#);
        let steps: [fn(&mut Handshake, &Answer) -> Step; 2] = [|h, a| h.handle_answer(a), |h, _| h.handle_refusal(HandshakeError::Silent)];
        for (step, answer) in [(steps[0], &error), (steps[0], &foreign), (steps[1], &error)] {
            let mut handshake = begun(None);
            let Step::Send { method, .. } = step(&mut handshake, answer) else { panic!() };
            assert_eq!(method, "initialize");
            let Step::Done(n, Some(_)) = initialized(&mut handshake) else { panic!() };
            assert_eq!((n.era, n.version.as_str()), (Era::Initialize, "2025-06-18"));
        }
    }

    #[test]
    fn a_server_that_refuses_a_revision_it_supports_is_asked_once_more() {
        let refusal = Answer::Error(Bytes::from_static(br#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}"#));
        let mut handshake = begun(None);
        let again = |step| if let Step::Send { method, .. } = step { method } else { "" };
        assert_eq!(again(handshake.handle_answer(&refusal)), "server/discover");
        assert_eq!(again(handshake.handle_answer(&refusal)), "initialize");
    }

    #[test]
    fn a_slow_server_of_the_stateless_era_is_recognised_by_its_late_answer_or_its_refusal() {
        let late = result(r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#);
        let mut handshake = begun(None);
        handshake.handle_refusal(HandshakeError::Silent);
        let Some(Step::Done(n, None)) = handshake.handle_late_discovery(&late) else { panic!() };
        assert_eq!(n.era, Era::Stateless);
        let mut handshake = begun(None);
        handshake.handle_refusal(HandshakeError::Silent);
        let refusal = Answer::Error(Bytes::from_static(br#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}"#));
        let Step::Send { method, .. } = handshake.handle_answer(&refusal) else { panic!() };
        assert_eq!(method, "server/discover");
    }

    #[test]
    fn a_chosen_era_is_not_left() {
        let error = Answer::Error(Bytes::from_static(b"{\"code\":-32601,\"message\":\"no such method\"}"));
        assert_eq!(
            begun(Some(Era::Stateless)).handle_answer(&error),
            Step::Failed(HandshakeError::Refused("no such method (-32601)".into()))
        );
        let mut handshake = begun(Some(Era::Initialize));
        assert_eq!(handshake.handle_refusal(HandshakeError::Silent), Step::Failed(HandshakeError::Silent));
    }
}
