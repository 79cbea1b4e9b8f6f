//! A request over HTTP and its progress: an answer at once, or events up to the answer. Does not write or send requests.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use banyan_model::Era;
use bytes::Bytes;
use mcp_proto::client::restore_token;
use mcp_proto::envelope::{Answer, EnvelopeError, Message, Notification};
use mcp_proto::json::Duplicates;
use mcp_proto::sse::{Decoder, Event};
use tokio::runtime::Handle;

use crate::upstream::http::pour::{LONG, is_long};
use crate::upstream::http::{Body, HttpWire, Sent, excerpt};
use crate::upstream::pool::Reply;
use call::tree::asks;
use call::tree::back::Back;
use call::tree::port::Member;
use call::tree::port::{OutgoingRequest, UpstreamError};

/// Most times that a broken stream of the initialize era is resumed.
const RESUMES: usize = 8;

/// Longest time to tell a server of a cancellation.
const CANCELLED_WITHIN: Duration = Duration::from_secs(10);

/// Note of a call under way, until dropped.
pub struct UnderWay<'a> {
    wire: &'a HttpWire,
    id: u64,
}

impl<'a> UnderWay<'a> {
    /// Notes the call `id` as under way.
    pub fn note(wire: &'a HttpWire, id: u64, back: &Arc<Back>) -> Self {
        wire.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::clone(back));
        Self { wire, id }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.wire.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// A request of the initialize era whose answer is awaited. Dropping it cancels the request at the server.
pub struct OpenRequest<'a> {
    /// `None` once answered.
    pub wire: Option<&'a Arc<HttpWire>>,
    pub id: u64,
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        if let (Some(wire), Ok(runtime)) = (self.wire, Handle::try_current()) {
            let (wire, id) = (Arc::clone(wire), self.id);
            runtime.spawn(async move { drop(tokio::time::timeout(CANCELLED_WITHIN, wire.cancelled(id)).await) });
        }
    }
}

/// A request and its progress.
pub struct Exchange<'a> {
    pub wire: &'a Arc<HttpWire>,
    pub id: u64,
    token: Option<Bytes>,
    pub back: Option<&'a Arc<Back>>,
    resumes: usize,
    pub last_id: Option<Arc<str>>,
    retry: Duration,
}

impl<'a> Exchange<'a> {
    /// Begins the request `id`; `token` is the caller's own progress token, where the server got another.
    pub fn new(wire: &'a Arc<HttpWire>, id: u64, token: Option<Bytes>, back: Option<&'a Arc<Back>>) -> Self {
        Self { wire, id, token, back, resumes: 0, last_id: None, retry: Duration::from_secs(1) }
    }

    /// Posts the message and reads its answer.
    #[expect(clippy::manual_async_fn, reason = "an async fn keeps what it is given twice, and every call in flight has one")]
    pub fn run(mut self, message: Sent<'_>, out: &OutgoingRequest<'_>) -> impl Future<Output = Result<Answer, UpstreamError>> {
        async move {
            let reply = self.wire.posted(message, out).await?;
            if let Some(lacking) = out.pour
                && is_long(&reply)
                && self.back.is_some_and(|back| back.takes_pour())
            {
                // Boxed, since few answers come to this, and other calls should not hold room for it.
                return Box::pin(self.long(reply, lacking)).await;
            }
            let mut response = match self.wire.body(reply).await? {
                Body::Whole(status, body) => return self.whole(status, &body),
                Body::Events(response) => *response,
            };
            loop {
                if let Some(answer) = self.read(response, out.pour).await? {
                    return Ok(answer);
                }
                response = Box::pin(self.resume()).await?;
            }
        }
    }

    /// Reads an answer from a whole body.
    pub fn whole(&self, status: u16, body: &Bytes) -> Result<Answer, UpstreamError> {
        let is_good = (200..300).contains(&status);
        match Message::parse(body, Duplicates::RefuseDeep) {
            Ok(Message::Response(r)) if self.is_mine(&r.id, Some(&r.answer)) && (is_good || matches!(r.answer, Answer::Error(_))) => {
                Ok(r.answer)
            }
            _ if !is_good => Err(UpstreamError::Refused { status, body: excerpt(body) }),
            Ok(Message::Response(r)) => Err(self.misanswered(&r.id)),
            Ok(_) => Err(UpstreamError::Malformed("it answered with something that is no response".into())),
            Err(e) => Err(UpstreamError::Malformed(format!("its answer can't be read: {e}: {}", excerpt(body)))),
        }
    }

    /// Checks that an answer with this id is to this request. A server that could not read a request answers with an error without an id.
    pub fn is_mine(&self, id: &[u8], answer: Option<&Answer>) -> bool {
        let mut digits = itoa::Buffer::new();
        id == digits.format(self.id).as_bytes() || (id == b"null" && matches!(answer, Some(Answer::Error(_))))
    }

    /// Notes an answer to another request, and fails.
    pub fn misanswered(&self, id: &[u8]) -> UpstreamError {
        self.wire.inbox.misanswered();
        let id = excerpt(id);
        UpstreamError::Malformed(format!("its answer has the id {id}, which is not that of the request: nothing of it was passed on"))
    }

    /// Reads events up to the answer; `None` where the stream ends before.
    async fn read(&mut self, mut body: Reply, lacking: Option<&'static [Member]>) -> Result<Option<Answer>, UpstreamError> {
        let (mut decoder, mut looked) = (Decoder::new(self.wire.limit), false);
        while let Some(piece) = body.piece().await {
            let Ok(data) = piece else { return Ok(None) };
            decoder.handle_bytes(&data);
            while let Some(event) = decoder.poll_event().map_err(|e| UpstreamError::TooLarge(e.limit))? {
                if let Some(answer) = self.event(event)? {
                    body.finish();
                    return Ok(Some(answer));
                }
                looked = false;
            }
            if let Some(lacking) = lacking
                && !looked
                && let Some(begun) = decoder.open_data(LONG)
            {
                looked = true;
                let mut found = self.begun(begun, lacking);
                if found.is_none() && self.back.is_some_and(|back| back.is_behind()) {
                    // The whole answer had arrived, so that nobody has begun a stream for the messages before it.
                    tokio::task::yield_now().await;
                    found = decoder.open_data(LONG).and_then(|begun| self.begun(begun, lacking));
                }
                if let Some(begun) = found {
                    return Box::pin(self.pour_event(begun, decoder, body)).await.map(Some);
                }
            }
        }
        Ok(None)
    }

    fn event(&mut self, event: Event) -> Result<Option<Answer>, UpstreamError> {
        if event.id.is_some() {
            self.last_id = event.id;
        }
        if let Some(ms) = event.retry {
            self.retry = Duration::from_millis(ms.min(60_000));
        }
        if event.data.trim_ascii().is_empty() {
            return Ok(None);
        }
        match Message::parse(&event.data, Duplicates::RefuseDeep) {
            Ok(Message::Response(r)) if self.is_mine(&r.id, Some(&r.answer)) => return Ok(Some(r.answer)),
            // A resumed stream may repeat earlier messages.
            Ok(Message::Response(r)) if self.resumes == 0 => return Err(self.misanswered(&r.id)),
            Ok(Message::Response(_)) => {}
            Ok(Message::Request(r)) => self.wire.answer_question(r, self.back),
            Ok(Message::Notification(n)) => self.notified(&n),
            Err(EnvelopeError::Json(e)) => return Err(UpstreamError::Malformed(format!("an event of its answer can't be read: {e}"))),
            Err(e) => tracing::debug!(error = %e, "an event that is no message"),
        }
        Ok(None)
    }

    fn notified(&self, notification: &Notification) {
        let ours = matches!(notification.method.as_str(), "notifications/progress" | "notifications/message");
        match self.back {
            Some(back) if ours => match &self.token {
                Some(token) if notification.method.ends_with("progress") => asks::pass_on(back, &restore_token(notification, token)),
                _ => asks::pass_on(back, notification),
            },
            Some(back) => self.wire.inbox.notified(notification, std::slice::from_ref(back)),
            None => self.wire.inbox.notified(notification, &[]),
        }
    }

    /// Resumes a broken stream where it broke (initialize era, revision 2025-11-25 "Resumability").
    async fn resume(&mut self) -> Result<Reply, UpstreamError> {
        let lost = || UpstreamError::Lost("its event stream ended before the answer was there".into());
        let last_id = self.last_id.clone().filter(|_| self.wire.era() == Era::Initialize).ok_or_else(lost)?;
        let mut why = lost();
        while self.resumes < RESUMES {
            self.resumes += 1;
            tokio::time::sleep(self.retry).await;
            match self.wire.get(Some(&last_id)).await {
                Ok(response) => return Ok(response),
                Err(e) => why = e,
            }
        }
        Err(why)
    }
}
