//! Long answers: read while they come, and poured to a caller that takes pours. Other callers get them whole. Does not decide who takes
//! pours.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use mcp_proto::envelope::{Answer, EnvelopeError, Poured};
use mcp_proto::json::quote;
use mcp_proto::sse::Decoder;

use crate::upstream::connection::ConnectionError;
use crate::upstream::http::exchange::Exchange;
use crate::upstream::http::is_events;
use crate::upstream::pool::Reply;
use call::tree::port::Member;
use call::tree::port::UpstreamError;
use call::words::pour::{KEPT, Pour, TakerGone};

/// Longest answer that is read whole before it is looked at, in bytes.
pub const LONG: usize = 256 << 10;

/// Checks for an answer in JSON that is longer than [`LONG`], or may be.
pub fn is_long(reply: &Reply) -> bool {
    reply.size().is_none_or(|size| size > LONG as u64) && reply.head.status() == 200 && !is_events(reply)
}

/// A result whose pour has begun.
pub struct BegunPour {
    poured: Poured,
    pour: Arc<Pour>,
    /// Members to append where the result lacks them.
    lacking: &'static [Member],
}

/// Source of an answer's bytes.
enum Source {
    /// The whole body of a response.
    Body(Reply),
    /// An event in whose data the answer has begun.
    Event { decoder: Decoder, body: Box<Reply>, is_open: bool, is_over: bool },
}

impl Exchange<'_> {
    /// Reads an answer in JSON and pours its result, with the `lacking` members added, if the caller takes pours; otherwise returns the
    /// answer whole.
    pub async fn long(&self, mut reply: Reply, lacking: &'static [Member]) -> Result<Answer, UpstreamError> {
        self.within(reply.size().and_then(|size| usize::try_from(size).ok()).unwrap_or_default())?;
        let mut poured = Poured::new(&KEPT);
        let (mut start, mut is_sound) = (BytesMut::new(), true);
        // Without a length the answer may turn out short.
        while is_sound && start.len() <= LONG && poured.may_be_result() && (poured.begin().is_none() || reply.size().is_none()) {
            let Some(piece) = reply.piece().await else { break };
            let piece = piece.map_err(|e| broke(&e))?;
            self.within(start.len() + piece.len())?;
            is_sound = poured.read(&piece).is_ok();
            start.extend_from_slice(&piece);
        }
        let is_mine = poured.id().is_none_or(|id| self.is_mine(id, None));
        let is_result = is_mine && is_sound && poured.begin().is_some() && poured.may_be_result() && reply.size() != Some(0);
        if is_result && let Some(pour) = self.back.and_then(|back| back.begin_pour()) {
            return self.pour(BegunPour { poured, pour, lacking }, start.freeze(), Source::Body(reply)).await;
        }
        while let Some(piece) = reply.piece().await {
            let piece = piece.map_err(|e| broke(&e))?;
            self.within(start.len() + piece.len())?;
            start.extend_from_slice(&piece);
        }
        self.whole(200, &start.freeze())
    }

    /// Begins a pour, if the event whose data begins with `data` is the answer and holds a result, and the caller takes pours.
    pub fn begun(&self, data: &[u8], lacking: &'static [Member]) -> Option<BegunPour> {
        // After a loss, a resumable stream would repeat the part already poured.
        if self.last_id.is_some() && self.wire.era() == banyan_model::Era::Initialize {
            return None;
        }
        let mut poured = Poured::new(&KEPT);
        poured.read(data).ok()?;
        let is_ours = poured.id().is_some_and(|id| self.is_mine(id, None));
        let is_result = is_ours && poured.begin().is_some() && poured.may_be_result();
        let pour = self.back.filter(|_| is_result)?.begin_pour()?;
        Some(BegunPour { poured, pour, lacking })
    }

    /// Pours the result begun in the data of the current event of `decoder`.
    pub async fn pour_event(&self, begun: BegunPour, mut decoder: Decoder, body: Reply) -> Result<Answer, UpstreamError> {
        let (data, has_ended) = decoder.take_data();
        self.pour(begun, data, Source::Event { decoder, body: Box::new(body), is_open: !has_ended, is_over: false }).await
    }

    /// Pours the rest; `piece` was read first.
    async fn pour(&self, mut begun: BegunPour, mut piece: Bytes, mut from: Source) -> Result<Answer, UpstreamError> {
        loop {
            self.within(begun.poured.at())?;
            begun.pass(&piece).await.map_err(|TakerGone| UpstreamError::Cancelled)?;
            if let Some(back) = self.back {
                back.stir();
            }
            let next = tokio::select! {
                next = from.piece() => next?,
                () = begun.pour.left() => return Err(UpstreamError::Cancelled),
            };
            let Some(next) = next else { break };
            piece = next;
            begun.poured.read(&piece).map_err(|e| malformed(&e))?;
        }
        let kept = begun.poured.finish().map_err(|e| malformed(&e))?;
        // The id may stand behind the result.
        if let Some(id) = begun.poured.id().filter(|id| !self.is_mine(id, None)) {
            return Err(self.misanswered(id));
        }
        if let Source::Event { body, .. } = from {
            body.finish();
        }
        Ok(Answer::Result(kept.into()))
    }

    fn within(&self, length: usize) -> Result<(), UpstreamError> {
        if length > self.wire.limit { Err(UpstreamError::TooLarge(self.wire.limit)) } else { Ok(()) }
    }
}

impl Source {
    /// Reads the next piece of the answer; `None` at its end.
    async fn piece(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        let (decoder, body, is_open, is_over) = match self {
            Self::Body(reply) => return reply.piece().await.transpose().map_err(|e| broke(&e)),
            Self::Event { decoder, body, is_open, is_over } => (decoder, body, is_open, is_over),
        };
        while !*is_over {
            if *is_open {
                let (data, has_ended) = decoder.take_data();
                *is_open = !has_ended;
                if !data.is_empty() {
                    return Ok(Some(data));
                }
            }
            if !*is_open && let Some(event) = decoder.poll_event().map_err(|e| UpstreamError::TooLarge(e.limit))? {
                *is_over = true;
                return Ok(Some(event.data).filter(|data| !data.is_empty()));
            }
            let Some(bytes) = body.piece().await else {
                return Err(UpstreamError::Lost("its event stream ended within the answer".into()));
            };
            decoder.handle_bytes(&bytes.map_err(|e| broke(&e))?);
        }
        Ok(None)
    }
}

impl BegunPour {
    /// Passes on the part of `piece`, the last bytes read, that belongs to the result.
    async fn pass(&self, piece: &Bytes) -> Result<(), TakerGone> {
        let poured = &self.poured;
        let start = poured.at() - piece.len();
        let Some(begin) = poured.begin() else { return Ok(()) };
        let end = poured.end().unwrap_or(poured.at());
        let part = |from: usize, to: usize| piece.slice(from.max(start) - start..to.max(start) - start);
        if poured.end().is_none() || end <= start || self.lacking.is_empty() {
            return self.push(part(begin.min(end), end)).await;
        }
        self.push(part(begin, end - 1)).await?;
        self.push(self.appended()).await?;
        self.push(part(end - 1, end)).await
    }

    async fn push(&self, piece: Bytes) -> Result<(), TakerGone> {
        if piece.is_empty() { Ok(()) } else { self.pour.push(piece).await }
    }

    /// Makes the missing members, to stand before the closing brace of the result.
    fn appended(&self) -> Bytes {
        let mut out = Vec::new();
        for (name, value) in self.lacking.iter().filter(|(name, _)| !self.poured.has(name)) {
            if self.poured.has_members() || !out.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(quote(name).as_bytes());
            out.push(b':');
            out.extend_from_slice(value);
        }
        out.into()
    }
}

fn broke(error: &ConnectionError) -> UpstreamError {
    UpstreamError::Lost(format!("its answer broke off: {error}"))
}

fn malformed(error: &EnvelopeError) -> UpstreamError {
    UpstreamError::Malformed(format!("its answer can't be read: {error}"))
}
