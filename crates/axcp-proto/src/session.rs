//! The order of envelopes on one connection: profiles first, then their acknowledgement, then contents. Applies no content.

use bytes::Bytes;

use crate::envelope::{ReceivedEnvelope, VERSION, write};
use crate::error::AxcpError;
use crate::message::{AxcpEnvelope, EnvelopePayload, ProfileAck};
use crate::profile::{ProfileOffer, ProfileSession};

/// Lowest profile of a session that shares contexts or tools.
pub const SYNC_PROFILE: u32 = 2;

/// Effect of a received envelope.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionEvent {
    /// Send this, and go on.
    Answer(EnvelopePayload),
    /// The profile is settled: contents may go both ways.
    Opened,
    /// Content for contexts or tools.
    Content(EnvelopePayload),
    /// The peer refused something, in words of its own.
    Refused { code: u32, reason: String },
    /// Nothing to do, for example for contents that only newer nodes know.
    Passed,
}

/// A connection with a peer.
#[derive(Debug, Clone)]
pub struct AxcpSession {
    ours: ProfileOffer,
    state: SessionState,
}

#[derive(Debug, Clone)]
enum SessionState {
    /// No offer has come.
    New,
    /// Both offers are known, and the peer has not acknowledged.
    Offered(ProfileSession),
    Open(ProfileSession),
}

impl AxcpSession {
    /// Begins a session: the offer is sent first, at profile 0.
    pub fn new(ours: ProfileOffer) -> (Self, EnvelopePayload) {
        (Self { ours, state: SessionState::New }, EnvelopePayload::ProfileNegotiate(ours.write()))
    }

    /// Gives the profile of the session, once it is settled.
    pub fn profile(&self) -> Option<u32> {
        match &self.state {
            SessionState::Open(session) => Some(session.profile()),
            SessionState::New | SessionState::Offered(_) => None,
        }
    }

    /// Writes an envelope at the profile of the session.
    ///
    /// # Errors
    /// When the receiver could not read the envelope.
    pub fn envelope(&self, trace_id: &str, payload: EnvelopePayload) -> Result<Bytes, AxcpError> {
        self.signed_envelope(trace_id, payload, |_| Bytes::new())
    }

    /// Writes an envelope at the profile of the session, with a signature by `sign`.
    ///
    /// # Errors
    /// When the receiver could not read the envelope.
    pub fn signed_envelope(&self, trace_id: &str, payload: EnvelopePayload, sign: impl FnOnce(&[u8]) -> Bytes) -> Result<Bytes, AxcpError> {
        let profile = self.profile().unwrap_or(0);
        let envelope =
            AxcpEnvelope { version: VERSION, trace_id: trace_id.to_owned(), profile, payload: Some(payload), ..AxcpEnvelope::default() };
        write(&envelope, sign)
    }

    /// Takes in an envelope of the peer.
    ///
    /// # Errors
    /// When the envelope breaks the order, the profile or its own form. [`is_fatal`] tells if the session is over.
    pub fn receive(&mut self, envelope: &ReceivedEnvelope) -> Result<SessionEvent, AxcpError> {
        match &mut self.state {
            SessionState::New => {
                let Some(EnvelopePayload::ProfileNegotiate(theirs)) = envelope.payload()? else {
                    return Err(AxcpError::Order("the first envelope of a connection asks for a profile"));
                };
                let session = ProfileSession::new(self.ours, ProfileOffer::read(theirs)?)?;
                let ack = session.ack();
                self.state = SessionState::Offered(session);
                Ok(SessionEvent::Answer(EnvelopePayload::ProfileAck(ack)))
            }
            SessionState::Offered(session) => {
                let Some(EnvelopePayload::ProfileAck(ack)) = envelope.payload()? else {
                    return Err(AxcpError::Order("the second envelope of a connection acknowledges the profile"));
                };
                session.acknowledged(ack)?;
                self.state = SessionState::Open(session.clone());
                Ok(SessionEvent::Opened)
            }
            SessionState::Open(session) => {
                session.admit(envelope.profile())?;
                let payload = envelope.payload()?;
                payload.map_or(Ok(SessionEvent::Passed), |payload| content(session, payload))
            }
        }
    }
}

/// Tells if a refusal ends the session: what the peer sends next could not be understood.
pub fn is_fatal(refused: &AxcpError) -> bool {
    match refused {
        AxcpError::Order(_) | AxcpError::Version(_) | AxcpError::Negotiation => true,
        AxcpError::Malformed(_)
        | AxcpError::TooLarge { .. }
        | AxcpError::BadDelta(_)
        | AxcpError::Context
        | AxcpError::Tool
        | AxcpError::TooMany(_)
        | AxcpError::Unauthorized(_)
        | AxcpError::MissingRange { .. }
        | AxcpError::ProfileMismatch { .. }
        | AxcpError::ProfileUnsupported
        | AxcpError::Downgrade => false,
    }
}

fn content(session: &mut ProfileSession, payload: EnvelopePayload) -> Result<SessionEvent, AxcpError> {
    match payload {
        EnvelopePayload::ProfileNegotiate(_) => Err(AxcpError::Order("the profile of a connection is negotiated once")),
        EnvelopePayload::ProfileAck(ProfileAck { agreed_profile }) => {
            session.acknowledged(ProfileAck { agreed_profile })?;
            Ok(SessionEvent::Passed)
        }
        EnvelopePayload::ProfileDowngrade(wish) => Ok(SessionEvent::Answer(EnvelopePayload::ProfileAck(session.lowered(&wish)?))),
        EnvelopePayload::Error(error) => Ok(SessionEvent::Refused { code: error.code, reason: error.reason }),
        EnvelopePayload::Route(_) | EnvelopePayload::Telemetry(_) => Ok(SessionEvent::Passed),
        EnvelopePayload::ContextPatch(_)
        | EnvelopePayload::Retry(_)
        | EnvelopePayload::SyncSubscribe(_)
        | EnvelopePayload::SyncRequest(_)
        | EnvelopePayload::ContextInvalidation(_)
        | EnvelopePayload::Capability(_)
        | EnvelopePayload::ToolInvoke(_)
        | EnvelopePayload::ToolResult(_)
        | EnvelopePayload::ToolCancel(_) => {
            if session.profile() < SYNC_PROFILE {
                return Err(AxcpError::ProfileMismatch { most: session.profile() });
            }
            Ok(SessionEvent::Content(payload))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{ContextPatch, ErrorMessage, ProfileDowngrade, ProfileNegotiate};

    fn offer(supported_mask: u32, min_required: u32) -> ProfileOffer {
        ProfileOffer::read(ProfileNegotiate { supported_mask, min_required }).unwrap()
    }

    fn received(profile: u32, payload: EnvelopePayload) -> ReceivedEnvelope {
        let envelope = AxcpEnvelope { version: 1, profile, payload: Some(payload), ..AxcpEnvelope::default() };
        ReceivedEnvelope::read(write(&envelope, |_| Bytes::new()).unwrap()).unwrap()
    }

    fn open(ours: (u32, u32), theirs: (u32, u32)) -> AxcpSession {
        let (mut session, _) = AxcpSession::new(offer(ours.0, ours.1));
        let (_, hello) = AxcpSession::new(offer(theirs.0, theirs.1));
        let SessionEvent::Answer(EnvelopePayload::ProfileAck(ack)) = session.receive(&received(0, hello)).unwrap() else {
            panic!("an offer is acknowledged")
        };
        assert_eq!(session.receive(&received(0, EnvelopePayload::ProfileAck(ack))), Ok(SessionEvent::Opened));
        session
    }

    #[test]
    fn xc_03_a_session_opens_with_both_acknowledgements() {
        assert_eq!(open((0b0111, 1), (0b1011, 0)).profile(), Some(1));
        let (mut session, hello) = AxcpSession::new(offer(0b0111, 2));
        assert_eq!(session.profile(), None);
        session.receive(&received(0, hello)).unwrap();
        let wrong = EnvelopePayload::ProfileAck(ProfileAck { agreed_profile: 1 });
        assert_eq!(session.receive(&received(0, wrong)), Err(AxcpError::Negotiation));
    }

    #[test]
    fn xc_03_nothing_comes_before_the_profile() {
        let patch = || EnvelopePayload::ContextPatch(ContextPatch::default());
        let (mut session, hello) = AxcpSession::new(offer(0b0111, 2));
        let early = session.receive(&received(0, patch())).unwrap_err();
        assert!(is_fatal(&early) && early.code().number() == 8);
        session.receive(&received(0, hello)).unwrap();
        assert!(is_fatal(&session.receive(&received(0, patch())).unwrap_err()));
    }

    #[test]
    fn xc_02_contexts_need_profile_two() {
        let patch = || EnvelopePayload::ContextPatch(ContextPatch::default());
        let low = open((0b0011, 0), (0b0111, 0)).receive(&received(1, patch())).unwrap_err();
        assert_eq!((low.code().number(), is_fatal(&low)), (12, false));
        let mut session = open((0b0111, 0), (0b0111, 0));
        assert!(matches!(session.receive(&received(2, patch())), Ok(SessionEvent::Content(_))));
        assert_eq!(session.receive(&received(3, patch())).unwrap_err().code().number(), 12);
    }

    #[test]
    fn xc_03_a_downgrade_below_a_minimum_is_refused_and_survived() {
        let mut session = open((0b0111, 2), (0b0111, 0));
        let wish = EnvelopePayload::ProfileDowngrade(ProfileDowngrade { new_profile: 1, reason: String::new() });
        let refused = session.receive(&received(2, wish)).unwrap_err();
        assert_eq!((refused.code().number(), is_fatal(&refused)), (14, false));
        assert_eq!(session.profile(), Some(2));
    }

    #[test]
    fn xc_24_a_refusal_is_never_answered() {
        let mut session = open((0b0111, 0), (0b0111, 0));
        let error = EnvelopePayload::Error(ErrorMessage { code: 6, reason: "no".into(), diagnostics: Bytes::new() });
        assert_eq!(session.receive(&received(2, error)), Ok(SessionEvent::Refused { code: 6, reason: "no".into() }));
    }
}
