//! WaitingClient room of MEW clients, who send no header field, but a first message with a token. Bounded in number and time; admission is the
//! same as for everybody (`pass.rs`).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::request::Parts;
use hyper::upgrade::OnUpgrade;
use room_proto::mew::{Join, error_envelope};
use room_proto::name::Topic;
use room_proto::room::{Also, Hearing, Preferences, Routing};
use room_proto::websocket::{Opcode, WebSocketEvent, close, frame};
use runtime::random;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::Rooms;
use crate::connection::Line;
use crate::entry::NotEntered;
use crate::pass;
use crate::pass::Credentials;
use crate::socket_door;
use crate::socket_door::Arrival;
use crate::{NotSeated, Way};
use call::words::address::Address;
use call::words::party::Party;
use call::words::shares::Bound;
use door::entry as gate;
use door::port::fields;

/// Most clients waiting.
const WAITING: usize = 64;
/// Patience for a first message.
const PATIENCE: Duration = Duration::from_secs(10);
const LATE: &str = "no first message came within 10 s: ask to join as soon as you are connected";
/// Longest first message, in bytes.
const FIRST: usize = 16 << 10;
/// Patience for a last word.
const FAREWELL: Duration = Duration::from_secs(5);

/// Preferences of a MEW client: all classes of MEW, and its own messages too, as at the reference's gateway.
pub const PREFERENCES: Preferences = Preferences { routing: Routing::All, echo: true, also: Also::MEW, history: 0 };

/// Share of one address in the free places, in percent.
const SHARE: usize = 50;

/// Places of waiting clients.
#[derive(Default)]
pub struct Lobby(Arc<Mutex<Vec<Option<Address>>>>);

/// A place of a client from an address, free again when dropped.
struct Place {
    lobby: Arc<Mutex<Vec<Option<Address>>>>,
    from: Option<Address>,
}

impl Lobby {
    /// Takes a place, unless all are taken, or the share of the address. `is_local`: all come from one address.
    fn take_place(&self, from: Option<Address>, is_local: bool) -> Option<Place> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = waiting.iter().filter(|other| **other == from).count() + 1;
        let bound = Bound { most: WAITING, percent: if is_local { 100 } else { SHARE } };
        bound.holds(own, waiting.len() + 1).ok()?;
        waiting.push(from);
        Some(Place { lobby: Arc::clone(&self.0), from })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut waiting = self.lobby.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = waiting.iter().position(|other| *other == self.from) {
            waiting.swap_remove(at);
        }
    }
}

/// A waiting client.
struct WaitingClient {
    rooms: Arc<Rooms>,
    party: Option<Arc<Party>>,
    parts: Parts,
    /// Space named in the address.
    space: Option<Topic>,
    /// Choice in the address.
    hearing: Hearing,
    applied: watch::Receiver<()>,
    _place: Place,
}

/// Waits for a client's first message over the upgraded connection.
pub fn wait(
    rooms: &Arc<Rooms>,
    parts: &Parts,
    (space, hearing): (Option<Topic>, Hearing),
    party: Option<Arc<Party>>,
    upgrade: OnUpgrade,
) -> Result<(), NotEntered> {
    let config = rooms.gate.config.load();
    gate::outer(&config, party.as_ref(), &fields(parts)).map_err(NotEntered::Door)?;
    if !config.rooms.are_served() {
        return Err(NotEntered::NoRooms);
    }
    let place = rooms.lobby.take_place(parts.extensions.get().copied(), config.listen.ip().is_loopback()).ok_or(NotEntered::Crowded)?;
    let applied = rooms.trust.reapplied();
    let waiting = WaitingClient { rooms: Arc::clone(rooms), party, parts: parts.clone(), space, hearing, applied, _place: place };
    tokio::spawn(rooms.open.track_future(waiting.serve(upgrade)));
    Ok(())
}

impl WaitingClient {
    async fn serve(self, upgrade: OnUpgrade) {
        let Some(mut line) = Line::open(upgrade, FIRST).await else { return };
        let stop = self.rooms.gate.stop.clone();
        let first = tokio::select! {
            first = timeout(PATIENCE, first(&mut line)) => first.unwrap_or_else(|_| Err(NotEntered::Query(LATE.into()))),
            () = stop.cancelled() => Err(NotSeated::Ending.into()),
        };
        let seated = match first {
            Ok(Some(first)) => self.admit(&first).await,
            Ok(None) => return,
            Err(why) => Err(why),
        };
        let coming = match seated {
            Ok(coming) => coming,
            Err(why) => return turn_away(line, &why).await,
        };
        match coming.join().await {
            Ok(joined) => joined.serve_over(line).await,
            Err(why) => turn_away(line, &why.into()).await,
        }
    }

    /// Admits a client by the first message.
    async fn admit(self, first: &[u8]) -> Result<Arrival, NotEntered> {
        let Join { space, participant, token } = Join::read(first).map_err(|why| NotEntered::Query(why.to_string()))?;
        let named = space.map(|name| Topic::new(&name)).transpose();
        let named = named.map_err(|why| NotEntered::Query(format!("`space` names no room: {why}")))?;
        let topic = match (self.space, named) {
            (Some(address), Some(message)) if address != message => {
                return Err(NotEntered::Query("the address names one space and the first message another: name one".into()));
            }
            (Some(topic), _) | (None, Some(topic)) => topic,
            (None, None) => return Err(NotEntered::Query("the first message names no space: add `\"space\":\"NAME\"`".into())),
        };
        let shown = fields(&self.parts);
        let fields = token.map_or_else(|| shown.clone(), |token| socket_door::with_token(&shown, &self.parts, &token));
        let showing = Credentials { party: self.party, fields, topic, participant: participant.clone(), guest: None, is_mew: true };
        let entrant = pass::admit(&self.rooms, &showing).await?;
        if let Some(given) = participant.filter(|given| *given != entrant.id.as_str()) {
            return Err(NotEntered::Name { given, own: entrant.id });
        }
        let preferences = self.hearing.or(entrant.hearing).over(PREFERENCES);
        Ok(Arrival::new(&self.rooms, showing, entrant, (preferences, Way::Mew), self.applied))
    }
}

/// Reads the first message; `None`: the other end is gone.
async fn first(line: &mut Line) -> Result<Option<Bytes>, NotEntered> {
    loop {
        match line.frames.poll() {
            Ok(Some(WebSocketEvent::Text(text))) => return Ok(Some(text)),
            Ok(Some(WebSocketEvent::Close(..))) => return Ok(None),
            Ok(Some(WebSocketEvent::Ping(payload))) => {
                if !line.write(&frame(Opcode::Pong, &payload, None)).await {
                    return Ok(None);
                }
            }
            Ok(Some(WebSocketEvent::Pong(_))) => {}
            Ok(None) => {
                if !line.fill().await {
                    return Ok(None);
                }
            }
            Err(why) => return Err(NotEntered::Query(why.to_string())),
        }
    }
}

/// Sends the reason of a refusal, in MEW, and closes.
async fn turn_away(mut line: Line, why: &NotEntered) {
    let text = why.to_string();
    let message = error_envelope(SystemTime::now(), u128::from_ne_bytes(random::bytes()), why.word(), &text);
    let mut last = frame(Opcode::Text, &message, None);
    last.extend_from_slice(&close(if why.is_passing() { 1013 } else { 1008 }, &text, None));
    let farewell = async {
        if line.write(&last).await {
            line.farewell().await;
        }
    };
    drop(timeout(FAREWELL, farewell).await);
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn l5_one_address_leaves_places_in_the_lobby_to_others() {
        let lobby = Lobby::default();
        let from = |last| Some(Address::from(IpAddr::from([192, 0, 2, last])));
        let take = |from, is_local| std::iter::from_fn(|| lobby.take_place(from, is_local)).collect::<Vec<_>>();
        let (first, second) = (take(from(1), false), take(from(2), false));
        assert_eq!((first.len(), second.len()), (32, 16));
        drop((first, second));
        assert_eq!(take(from(1), true).len(), WAITING);
        assert!(lobby.0.lock().unwrap().is_empty());
    }
}
