//! Connection with a peer: frames on a single stream, both ways. Opens no connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axcp_proto::envelope::ReceivedEnvelope;
use axcp_proto::error::{AxcpError, ErrorCode};
use axcp_proto::frame::{FrameReader, LengthOrder};
use axcp_proto::message::{ContextPatch, EnvelopePayload};
use axcp_proto::profile::ProfileOffer;
use axcp_proto::session::{AxcpSession, SessionEvent, is_fatal};
use axcp_proto::telemetry::TelemetryWatch;
use bytes::Bytes;
use quinn::{Connection, RecvStream, SendStream};
use runtime::clock;
use tokio::sync::{mpsc, watch};

use crate::answer::{AnswerContent, LinkAnswer, LinkEnd};
use crate::pulse;
use crate::section::PeerSettings;
use crate::shelf::{ContextShelf, HeldContext, ShelfError};
use crate::tools::changes::ToolChanges;
use crate::tools::link::{LinkTools, list_id};
use crate::words::plain;

/// Longest wait for the peer's stream and the settled profile.
const HELLO: Duration = Duration::from_secs(10);
/// Answers waiting for the peer to read. A peer without reading is gone.
const MOST_ANSWERS: usize = 256;
/// Bytes read at once.
const PIECE: usize = 64 * 1024;

/// A connection with a known peer.
pub(crate) struct PeerLink {
    pub(crate) connection: Connection,
    pub(crate) peer: Arc<str>,
    pub(crate) shelf: Arc<ContextShelf>,
    /// Ids of the contexts that the peer shares.
    pub(crate) contexts: Vec<Arc<str>>,
    pub(crate) is_dialler: bool,
    session: Mutex<AxcpSession>,
    hello: EnvelopePayload,
    pub(crate) tools: Arc<LinkTools>,
    telemetry: Mutex<TelemetryWatch>,
    /// Interval of telemetry for the peer.
    pulse: Option<Duration>,
    began: Instant,
    /// Profile of the session, once it is settled.
    profile: watch::Sender<Option<u32>>,
}

impl PeerLink {
    /// Makes the link of a new connection, and its hello.
    pub(crate) fn new(
        (connection, is_dialler): (Connection, bool),
        settings: &PeerSettings,
        (shelf, contexts): (Arc<ContextShelf>, Vec<Arc<str>>),
        tools: Arc<LinkTools>,
    ) -> Self {
        let (session, hello) = AxcpSession::new(ProfileOffer::of_sync());
        let (session, telemetry, began) = (Mutex::new(session), Mutex::default(), clock::now());
        let (peer, pulse) = (Arc::clone(&settings.id), settings.telemetry);
        Self {
            connection,
            peer,
            shelf,
            contexts,
            is_dialler,
            session,
            hello,
            tools,
            telemetry,
            pulse,
            began,
            profile: watch::Sender::new(None),
        }
    }

    /// Subscribes to the profile of the session.
    pub(crate) fn profile(&self) -> Option<u32> {
        *self.profile.borrow()
    }

    fn session(&self) -> MutexGuard<'_, AxcpSession> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Talks with the peer until either side ends the connection.
    pub(crate) async fn run(&self) -> LinkEnd {
        let opened = async { if self.is_dialler { self.connection.open_bi().await } else { self.connection.accept_bi().await } };
        let (send, receive) = match tokio::time::timeout(HELLO, opened).await {
            Ok(Ok(streams)) => streams,
            Ok(Err(error)) => return LinkEnd::lost(&error),
            Err(_) => return LinkEnd::new(ErrorCode::Timeout, "no stream was opened in time"),
        };
        let (answers, waiting) = mpsc::channel(MOST_ANSWERS);
        self.tools.begin(&answers);
        // A peer that dials shows its order with its first frame.
        let order = watch::Sender::new(self.is_dialler.then_some(LengthOrder::Little));
        tokio::select! {
            end = self.read(receive, &answers, &order) => end,
            end = self.write(send, waiting, &order) => end,
            end = self.await_hello() => end,
            end = self.watch() => end,
            end = self.beat() => end,
        }
    }

    /// Notes that the peer has gone, unless it has a newer link.
    pub(crate) fn part(&self) {
        self.held().for_each(|context| context.with_peers(|shared, _| shared.part_from(&self.peer)));
    }

    /// Notes the telemetry of the peer.
    async fn watch(&self) -> LinkEnd {
        loop {
            match self.connection.read_datagram().await {
                Ok(datagram) => {
                    let now = u64::try_from(clock::now().saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX);
                    self.telemetry().note(&datagram, now);
                }
                Err(error) => return LinkEnd::lost(&error),
            }
        }
    }

    /// Sends telemetry to the peer, where configured, once the profile is settled.
    async fn beat(&self) -> LinkEnd {
        let mut profile = self.profile.subscribe();
        if let (Some(every), Ok(_)) = (self.pulse, profile.wait_for(Option::is_some).await.map(drop)) {
            pulse::send(&self.connection, every).await;
        }
        std::future::pending().await
    }

    /// Gives the telemetry of the peer.
    pub(crate) fn telemetry(&self) -> MutexGuard<'_, TelemetryWatch> {
        self.telemetry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn await_hello(&self) -> LinkEnd {
        let mut profile = self.profile.subscribe();
        if tokio::time::timeout(HELLO, profile.wait_for(Option::is_some)).await.is_err() {
            return LinkEnd::new(ErrorCode::Timeout, "the profile was not settled in time");
        }
        std::future::pending().await
    }

    fn held(&self) -> impl Iterator<Item = Arc<HeldContext>> {
        self.contexts.iter().filter_map(|id| self.shelf.find(id))
    }

    async fn read(
        &self,
        mut stream: RecvStream,
        answers: &mpsc::Sender<LinkAnswer>,
        order: &watch::Sender<Option<LengthOrder>>,
    ) -> LinkEnd {
        let (mut frames, mut piece) = (FrameReader::default(), vec![0; PIECE]);
        loop {
            loop {
                let found = frames.next_frame();
                if !matches!(found, Ok(None)) {
                    order.send_if_modified(|order| order.replace(frames.order()) != Some(frames.order()));
                }
                match found {
                    Ok(None) => break,
                    Ok(Some(frame)) => {
                        if let Some(end) = self.handle(frame, answers).await {
                            return end;
                        }
                    }
                    Err(refused) => return self.refuse(String::new(), &refused, answers).await,
                }
            }
            match stream.read(&mut piece).await {
                Ok(Some(count)) => frames.push(piece.get(..count).unwrap_or_default()),
                Ok(None) => {
                    return frames
                        .finish()
                        .map_or_else(LinkEnd::from, |()| LinkEnd::new(ErrorCode::Unknown, "the peer has ended its stream"));
                }
                Err(error) => return LinkEnd::lost(&error),
            }
        }
    }

    /// Handles a frame, and gives the end of the connection, if the frame is one.
    async fn handle(&self, frame: Bytes, answers: &mpsc::Sender<LinkAnswer>) -> Option<LinkEnd> {
        let envelope = match ReceivedEnvelope::read(frame) {
            Ok(envelope) => envelope,
            Err(refused) => return self.refused_unread(String::new(), &refused, answers).await,
        };
        let trace_id = envelope.trace_id().to_owned();
        let event = self.session().receive(&envelope);
        let done = match event {
            Ok(SessionEvent::Answer(payload)) => self.answer(LinkAnswer::new(trace_id.clone(), payload), answers),
            Ok(SessionEvent::Opened) => self.open(answers),
            Ok(SessionEvent::Content(payload)) => match self.content(payload, &envelope, answers).await {
                Ok(()) => Ok(()),
                Err(ShelfError::Refused(refused)) => return self.refused(trace_id, &refused, false, answers).await,
                Err(failed @ (ShelfError::Store(_) | ShelfError::Over)) => {
                    // The words of the store are for the owner of this gate alone.
                    tracing::warn!(peer = %self.peer, %failed, "a change of the peer is not kept");
                    Err(LinkEnd::new(ErrorCode::Unknown, "this node does not keep the change at present: connect anew for another try"))
                }
            },
            Ok(SessionEvent::Refused { code, reason }) if self.tools.refused(&trace_id, code, &reason) => Ok(()),
            Ok(SessionEvent::Refused { code, reason }) => {
                tracing::warn!(peer = %self.peer, code, reason = plain(&reason), "the peer refused something");
                Ok(())
            }
            Ok(SessionEvent::Passed) => Ok(()),
            Err(refused) => return self.refused_unread(trace_id, &refused, answers).await,
        };
        done.err()
    }

    /// Subscribes to all contexts, once the profile is settled.
    fn open(&self, answers: &mpsc::Sender<LinkAnswer>) -> Result<(), LinkEnd> {
        for context in self.held().filter(|context| !context.settings.readers.contains(&self.peer)) {
            let greeting = context.with_peers(|shared, _| shared.greet(&self.peer))?;
            self.answer(LinkAnswer::new(String::new(), greeting), answers)?;
        }
        if self.tools.served.is_offering() {
            self.answer(LinkAnswer::offers(list_id(), Vec::new()), answers)?;
        }
        let profile = self.session().profile();
        self.profile.send_replace(profile);
        Ok(())
    }

    async fn content(
        &self,
        payload: EnvelopePayload,
        envelope: &ReceivedEnvelope,
        answers: &mpsc::Sender<LinkAnswer>,
    ) -> Result<(), ShelfError> {
        match payload {
            EnvelopePayload::ContextPatch(patch) => self.patch(&patch, answers).await,
            EnvelopePayload::Retry(retry) => {
                for patch in &retry.buffered_patches {
                    self.patch(patch, answers).await?;
                }
                Ok(())
            }
            EnvelopePayload::SyncSubscribe(wish) => {
                let context = self.find(wish.from.as_ref().map_or("", |from| &from.context_id))?;
                context.with_peers(|shared, now| shared.subscribe(&self.peer, wish, now))?;
                self.shelf.wake();
                Ok(())
            }
            EnvelopePayload::SyncRequest(wish) => {
                let context = self.find(wish.missing_from.as_ref().map_or("", |from| &from.context_id))?;
                context.with_peers(|shared, _| shared.request(&self.peer, &wish))?;
                self.shelf.wake();
                Ok(())
            }
            EnvelopePayload::ContextInvalidation(news) => {
                let context = self.writable(&news.context_id)?;
                let done = context.change(Some(&self.peer), |shared, at| shared.invalidate(&self.peer, &news, at.wall)).await;
                if let Err(ShelfError::Refused(_)) = done {
                    // The removal is a version of the peer, too, and is asked for with the others.
                    context.with_peers(|shared, now| shared.note_unread(&self.peer, now));
                    self.shelf.wake();
                }
                done
            }
            EnvelopePayload::Capability(content) => {
                if let Some(answer) = self.tools.capability(&content, envelope)? {
                    // A peer that reads no answers ends its link with the next.
                    drop(self.answer(answer, answers));
                }
                Ok(())
            }
            EnvelopePayload::ToolInvoke(invoke) => Ok(self.tools.served.invoke(envelope.trace_id(), invoke, answers)?),
            EnvelopePayload::ToolResult(result) => {
                self.tools.result(envelope.trace_id(), result);
                Ok(())
            }
            EnvelopePayload::ToolCancel(_) => {
                self.tools.served.cancel(envelope.trace_id());
                Ok(())
            }
            EnvelopePayload::Route(_)
            | EnvelopePayload::Error(_)
            | EnvelopePayload::ProfileNegotiate(_)
            | EnvelopePayload::ProfileAck(_)
            | EnvelopePayload::Telemetry(_)
            | EnvelopePayload::ProfileDowngrade(_) => Ok(()),
        }
    }

    async fn patch(&self, patch: &ContextPatch, answers: &mpsc::Sender<LinkAnswer>) -> Result<(), ShelfError> {
        let context = self.writable(&patch.context_id)?;
        let asked = context.change(Some(&self.peer), |shared, at| shared.patch(&self.peer, patch, at)).await?;
        if let Some(payload) = asked {
            let answered = self.answer(LinkAnswer::new(String::new(), payload), answers);
            // A full queue ends the link with the next answer; the gap is asked for after the next greeting.
            drop(answered);
        }
        if context.due(&self.peer).is_some() {
            // The writer waits for the time at which the peer is asked again.
            self.shelf.wake();
        }
        Ok(())
    }

    fn find(&self, id: &str) -> Result<Arc<HeldContext>, AxcpError> {
        let known = self.contexts.iter().any(|known| **known == *id);
        self.shelf.find(id).filter(|_| known).ok_or(AxcpError::Context)
    }

    fn writable(&self, id: &str) -> Result<Arc<HeldContext>, AxcpError> {
        let context = self.find(id)?;
        if context.settings.readers.contains(&self.peer) {
            return Err(AxcpError::Unauthorized("this node reads the context and may not write: ask its operator for `peers`"));
        }
        Ok(context)
    }

    fn answer(&self, answer: LinkAnswer, answers: &mpsc::Sender<LinkAnswer>) -> Result<(), LinkEnd> {
        let full = |_| LinkEnd::new(ErrorCode::TooManyRequests, "answers are not read: read them before asking for more");
        answers.try_send(answer).map_err(full)
    }

    /// Refuses an envelope whose content was not read: it may have held a patch, which is asked for again.
    async fn refused_unread(&self, trace_id: String, refused: &AxcpError, answers: &mpsc::Sender<LinkAnswer>) -> Option<LinkEnd> {
        let is_over = is_fatal(refused) || self.profile().is_none();
        if !is_over && *refused != AxcpError::Downgrade {
            let writers = self.held().filter(|context| !context.settings.readers.contains(&self.peer));
            writers.for_each(|context| context.with_peers(|shared, now| shared.note_unread(&self.peer, now)));
        }
        self.refused(trace_id, refused, is_over, answers).await
    }

    async fn refused(&self, trace_id: String, refused: &AxcpError, is_over: bool, answers: &mpsc::Sender<LinkAnswer>) -> Option<LinkEnd> {
        if is_over {
            return Some(self.refuse(trace_id, refused, answers).await);
        }
        tracing::warn!(peer = %self.peer, %refused, "an envelope is refused");
        let payload = EnvelopePayload::Error(refused.message());
        self.answer(LinkAnswer::new(trace_id, payload), answers).err()
    }

    /// Refuses an envelope for good: the writer closes the connection behind the message.
    async fn refuse(&self, trace_id: String, refused: &AxcpError, answers: &mpsc::Sender<LinkAnswer>) -> LinkEnd {
        let payload = EnvelopePayload::Error(refused.message());
        let answer = LinkAnswer { end: Some(LinkEnd::from(refused.clone())), ..LinkAnswer::new(trace_id, payload) };
        if answers.try_send(answer).is_ok() {
            // The writer ends the link.
            tokio::time::sleep(HELLO).await;
        }
        LinkEnd::from(refused.clone())
    }

    async fn write(
        &self,
        mut stream: SendStream,
        mut answers: mpsc::Receiver<LinkAnswer>,
        order: &watch::Sender<Option<LengthOrder>>,
    ) -> LinkEnd {
        let mut changes = self.shelf.changes();
        let mut tools = self.tools.served.is_offering().then(|| ToolChanges::listen(self.tools.served.gate(), &self.tools.served.caller()));
        drop(order.subscribe().wait_for(Option::is_some).await);
        let ended: Result<LinkEnd, LinkEnd> = async {
            self.send(&mut stream, "", self.hello.clone(), order).await?;
            loop {
                changes.mark_unchanged();
                while let Ok(answer) = answers.try_recv() {
                    if let Some(end) = self.send_answer(&mut stream, answer, order).await? {
                        return Ok(end);
                    }
                }
                if self.profile().is_some() && self.send_next(&mut stream, order).await? {
                    continue;
                }
                tokio::select! {
                    Some(answer) = answers.recv() => if let Some(end) = self.send_answer(&mut stream, answer, order).await? {
                        return Ok(end);
                    },
                    Ok(()) = changes.changed() => {}
                    () = self.due() => {}
                    () = changed(&mut tools), if self.profile().is_some() => {
                        if !self.send_offers(&mut stream, &list_id(), &[], order).await? {
                            tools.iter_mut().for_each(ToolChanges::again);
                        }
                    }
                }
            }
        }
        .await;
        let end = ended.unwrap_or_else(|end| end);
        // What was written arrives before the close, if the peer reads it in time.
        drop(stream.finish());
        drop(tokio::time::timeout(Duration::from_millis(500), stream.stopped()).await);
        end
    }

    /// Waits until something lacking is to be asked for again. The plan changes with answers and changes only, which wake the writer.
    async fn due(&self) {
        match self.held().filter_map(|context| context.due(&self.peer)).min() {
            Some(pause) => tokio::time::sleep(pause).await,
            None => std::future::pending().await,
        }
    }

    /// Sends the next message of each context. Tells if there was any.
    async fn send_next(&self, stream: &mut SendStream, order: &watch::Sender<Option<LengthOrder>>) -> Result<bool, LinkEnd> {
        // A newer link may have taken over: what is made here would get lost.
        if let Some(closed) = self.connection.close_reason() {
            return Err(LinkEnd::lost(&closed));
        }
        let mut is_any = false;
        for context in self.held() {
            if let Some(payload) = context.next(&self.peer) {
                self.send(stream, "", payload, order).await?;
                is_any = true;
            }
        }
        Ok(is_any)
    }

    async fn send_answer(
        &self,
        stream: &mut SendStream,
        answer: LinkAnswer,
        order: &watch::Sender<Option<LengthOrder>>,
    ) -> Result<Option<LinkEnd>, LinkEnd> {
        let LinkAnswer { trace_id, content, end, place } = answer;
        match content {
            AnswerContent::Payload(payload) => self.send(stream, &trace_id, payload, order).await?,
            AnswerContent::Offers(ids) => {
                if !self.send_offers(stream, &trace_id, &ids, order).await? {
                    let refused = AxcpError::TooMany("the tools cannot be listed at present: ask again shortly").message();
                    self.send(stream, &trace_id, EnvelopePayload::Error(refused), order).await?;
                }
            }
        }
        drop(place);
        Ok(end)
    }

    /// Sends offers of this gate's tools, each in a signed envelope. Tells if the tools could be listed.
    async fn send_offers(
        &self,
        stream: &mut SendStream,
        trace_id: &str,
        ids: &[String],
        order: &watch::Sender<Option<LengthOrder>>,
    ) -> Result<bool, LinkEnd> {
        let Some(offers) = self.tools.make_offers(ids).await else { return Ok(false) };
        for offer in offers {
            let envelope = self.session().signed_envelope(trace_id, offer, |signed| self.tools.sign(signed))?;
            self.send_envelope(stream, &envelope, order).await?;
        }
        Ok(true)
    }

    async fn send(
        &self,
        stream: &mut SendStream,
        trace_id: &str,
        payload: EnvelopePayload,
        order: &watch::Sender<Option<LengthOrder>>,
    ) -> Result<(), LinkEnd> {
        let envelope = self.session().envelope(trace_id, payload)?;
        self.send_envelope(stream, &envelope, order).await
    }

    async fn send_envelope(
        &self,
        stream: &mut SendStream,
        envelope: &[u8],
        order: &watch::Sender<Option<LengthOrder>>,
    ) -> Result<(), LinkEnd> {
        let order = order.borrow().unwrap_or_default();
        let frame = order.frame(envelope)?;
        stream.write_all(&frame).await.map_err(|error| LinkEnd::lost(&error))
    }
}

/// Waits until the tools for a peer may be others.
async fn changed(tools: &mut Option<ToolChanges>) {
    match tools {
        Some(tools) => tools.changed().await,
        None => std::future::pending().await,
    }
}
