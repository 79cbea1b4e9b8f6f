//! A session for the events of a device (RFC 5277). Knows no reader.

use net_proto::fault::{Fault, Operation, Trouble};
use net_proto::netconf::{EventPlace, EventStream, NetconfEvent, NetconfRequest, STREAMS, XmlTree};

use super::session::NetconfSession;
use super::{Netconf, judged};
use crate::room::{self, StreamPermit};

/// Bytes of a message on this session.
const MESSAGE: usize = 256 << 10;

/// A session for events.
pub(crate) struct EventSession {
    session: NetconfSession,
    _place: StreamPermit,
    /// Does the device first send events of the past?
    pub(crate) is_replaying: bool,
    /// Are all events since the last one of the session before sent again?
    pub(crate) is_whole: bool,
}

impl Netconf {
    /// Opens a session for the events after `place`, as far as the device still has these; before any event came, from `first` on or from now.
    pub(crate) async fn events(&self, place: &EventPlace, first: Option<&str>) -> Result<EventSession, Fault> {
        let place_of_session = room::stream()?;
        let mut session = self.session(MESSAGE).await?;
        let request = NetconfRequest::Get { filter: Some(STREAMS) };
        let listed = session.ask(&request, self.timeout).await?;
        // Where the device has no list, it has the one stream that all have.
        let data = judged(Operation::Get, listed).ok().and_then(|listed| XmlTree::read(&listed.message).ok()).unwrap_or_default();
        let stream = EventStream::find(EventStream::ALL, &data);
        let start = place.written().or(first).filter(|_| stream.replays);
        let mut is_replaying = start.is_some();
        if let Err(refused) = self.subscribe(&mut session, start).await {
            if !is_replaying {
                return Err(refused);
            }
            // The device's clock may be behind the moment that was asked for.
            is_replaying = false;
            self.subscribe(&mut session, None).await?;
        }
        Ok(EventSession { session, _place: place_of_session, is_replaying, is_whole: is_replaying && place.is_kept(stream.since) })
    }

    async fn subscribe(&self, session: &mut NetconfSession, start: Option<&str>) -> Result<(), Fault> {
        let request = NetconfRequest::Subscribe { stream: EventStream::ALL, start };
        let replied = session.ask(&request, self.timeout).await?;
        judged(Operation::Other, replied).map(drop)
    }
}

impl EventSession {
    /// The next event; the inner error is the reason why a message is none.
    pub(crate) async fn next(&mut self) -> Result<Result<NetconfEvent, String>, Trouble> {
        let (time, message) = self.session.notification().await?;
        Ok(NetconfEvent::read(&message, time.as_deref(), &self.session.device))
    }
}
