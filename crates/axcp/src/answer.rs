//! Answers that wait for the writer of a link, and ends of links. Sends nothing.

use axcp_proto::error::{AxcpError, ErrorCode};
use axcp_proto::message::EnvelopePayload;
use quinn::{Connection, VarInt};

use crate::room::CallPlace;
use crate::words::plain;

/// End of a connection by this node.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    pub(crate) code: ErrorCode,
    pub(crate) why: String,
}

impl LinkEnd {
    pub(crate) fn new(code: ErrorCode, why: impl Into<String>) -> Self {
        Self { code, why: why.into() }
    }

    /// Closes the connection with the code and the words.
    pub(crate) fn close(&self, connection: &Connection) {
        connection.close(VarInt::from_u32(self.code.number()), self.why.as_bytes());
    }

    /// Ends a connection that was lost. The error may have words of the peer in it.
    pub(crate) fn lost(error: &impl ToString) -> Self {
        Self::new(ErrorCode::Unknown, plain(&error.to_string()))
    }
}

impl From<AxcpError> for LinkEnd {
    fn from(refused: AxcpError) -> Self {
        Self::new(refused.code(), refused.to_string())
    }
}

/// An answer to an envelope of the peer, or a word of this node about a call.
pub(crate) struct LinkAnswer {
    pub(crate) trace_id: String,
    pub(crate) content: AnswerContent,
    /// End of the connection, behind the answer.
    pub(crate) end: Option<LinkEnd>,
    /// Room of a call, free again once its end is sent.
    pub(crate) place: Option<CallPlace>,
}

/// Content of an answer.
pub(crate) enum AnswerContent {
    Payload(EnvelopePayload),
    /// Offers of the tools with these ids, or of all, made when they are sent.
    Offers(Vec<String>),
}

impl LinkAnswer {
    pub(crate) fn new(trace_id: String, payload: EnvelopePayload) -> Self {
        Self { trace_id, content: AnswerContent::Payload(payload), end: None, place: None }
    }

    /// Makes the answer to a wish for offers.
    pub(crate) fn offers(trace_id: String, ids: Vec<String>) -> Self {
        Self { trace_id, content: AnswerContent::Offers(ids), end: None, place: None }
    }
}
