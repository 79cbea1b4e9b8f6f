//! Answers that are longer than most: read while they come, and poured to a caller that takes them so. Others get them whole.
//! Who takes what is not decided here.

use bytes::{Bytes, BytesMut};
use mcp_proto::envelope::{Answer, EnvelopeError, Poured};
use mcp_proto::json::quote;

use super::exchange::Exchange;
use super::is_events;
use crate::call::adapt::Member;
use crate::call::pour::{Gone, KEPT, Pour};
use crate::upstream::UpstreamError;
use crate::upstream::connection::ConnectionError;
use crate::upstream::pool::Reply;

/// Answers up to this size are read before they are looked at, in bytes.
const LONG: usize = 256 << 10;

/// Whether `reply` is an answer that is longer, or may be.
pub(super) fn is_long(reply: &Reply) -> bool {
    reply.size().is_none_or(|size| size > LONG as u64) && reply.head.status() == 200 && !is_events(reply)
}

impl Exchange<'_> {
    /// Pours the result, with the `lacking` members where it lacks them, if it is one and the caller takes it so.
    pub(super) async fn long(&self, mut reply: Reply, lacking: &[Member]) -> Result<Answer, UpstreamError> {
        self.within(reply.size().and_then(|size| usize::try_from(size).ok()).unwrap_or_default())?;
        let mut poured = Poured::new(&KEPT);
        let (mut begun, mut is_sound) = (BytesMut::new(), true);
        // Without a length it may turn out to be a short one.
        while is_sound && begun.len() <= LONG && poured.may_be_result() && (poured.begin().is_none() || reply.size().is_none()) {
            let Some(piece) = reply.piece().await else { break };
            let piece = piece.map_err(|e| broke(&e))?;
            self.within(begun.len() + piece.len())?;
            is_sound = poured.read(&piece).is_ok();
            begun.extend_from_slice(&piece);
        }
        let is_result = is_sound && poured.begin().is_some() && poured.may_be_result() && reply.size() != Some(0);
        if is_result && let Some(pour) = self.back.and_then(|back| back.begin_pour()) {
            return self.pour(poured, begun.freeze(), reply, Target { pour: &pour, lacking }).await;
        }
        while let Some(piece) = reply.piece().await {
            let piece = piece.map_err(|e| broke(&e))?;
            self.within(begun.len() + piece.len())?;
            begun.extend_from_slice(&piece);
        }
        self.whole(200, &begun.freeze())
    }

    /// `piece`: the first, which has been read.
    async fn pour(&self, mut poured: Poured, mut piece: Bytes, mut rest: Reply, to: Target<'_>) -> Result<Answer, UpstreamError> {
        loop {
            self.within(poured.at())?;
            to.pass(&poured, &piece).await.map_err(|Gone| UpstreamError::Cancelled)?;
            if let Some(back) = self.back {
                back.stir();
            }
            let next = tokio::select! {
                next = rest.piece() => next,
                () = to.pour.left() => return Err(UpstreamError::Cancelled),
            };
            let Some(next) = next else { break };
            piece = next.map_err(|e| broke(&e))?;
            poured.read(&piece).map_err(|e| malformed(&e))?;
        }
        let kept = poured.finish().map_err(|e| malformed(&e))?;
        Ok(Answer::Result(kept.into()))
    }

    fn within(&self, length: usize) -> Result<(), UpstreamError> {
        if length > self.wire.limit { Err(UpstreamError::TooLarge(self.wire.limit)) } else { Ok(()) }
    }
}

/// Where a result goes.
#[derive(Clone, Copy)]
struct Target<'a> {
    pour: &'a Pour,
    /// What is appended to it where it lacks it.
    lacking: &'a [Member],
}

impl Target<'_> {
    /// Passes on what of `piece`, which was read last, belongs to the result.
    async fn pass(&self, poured: &Poured, piece: &Bytes) -> Result<(), Gone> {
        let start = poured.at() - piece.len();
        let Some(begin) = poured.begin() else { return Ok(()) };
        let end = poured.end().unwrap_or(poured.at());
        let part = |from: usize, to: usize| piece.slice(from.max(start) - start..to.max(start) - start);
        if poured.end().is_none() || end <= start || self.lacking.is_empty() {
            return self.push(part(begin.min(end), end)).await;
        }
        self.push(part(begin, end - 1)).await?;
        self.push(self.appended(poured)).await?;
        self.push(part(end - 1, end)).await
    }

    async fn push(&self, piece: Bytes) -> Result<(), Gone> {
        if piece.is_empty() { Ok(()) } else { self.pour.push(piece).await }
    }

    /// What goes in front of the brace that ends the result.
    fn appended(&self, poured: &Poured) -> Bytes {
        let mut out = Vec::new();
        for (name, value) in self.lacking.iter().filter(|(name, _)| !poured.has(name)) {
            if poured.has_members() || !out.is_empty() {
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
