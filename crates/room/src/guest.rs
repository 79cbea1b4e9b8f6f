//! Entry by a page of the console, for the owner signed in there: by a ticket. A browser can set no header field of a WebSocket's handshake
//! but the list of protocols, and addresses end up in logs. So the page asks for a ticket, by both halves of its session, and shows it
//! among the protocols. A ticket is valid once, for seconds, for one room and one name; the participant stays as long as the sign-in. Does
//! not know the capabilities of an owner.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderName;
use http::request::Parts;
use room_proto::name::{ParticipantId, Topic};
use runtime::random;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::Rooms;
use door::origin;
use door::sign_in::{SessionId, SignIn as SignedIn};

/// Protocol of the page, accepted by the gate.
pub const PROTOCOL: &str = "mcpx.v0.1";
const LISTED: HeaderName = HeaderName::from_static("sec-websocket-protocol");
/// Prefix of a ticket among the protocols.
const PREFIX: &str = "banyan-ticket.";
/// Life of a ticket.
const LASTS: Duration = Duration::from_secs(30);
/// Most unused tickets; the oldest go first.
const MOST: usize = 64;

/// Unused tickets, as digests.
#[derive(Default)]
pub struct Tickets(Mutex<Vec<Ticket>>);

struct Ticket {
    digest: [u8; 32],
    until: Instant,
    topic: Topic,
    guest: Guest,
}

/// A participant signed in to the console.
#[derive(Clone)]
pub struct Guest {
    pub id: ParticipantId,
    signed_in: SignedIn,
}

impl Guest {
    /// Gives the sign-in.
    pub fn session(&self) -> SessionId {
        self.signed_in.id
    }

    /// Tells if the sign-in is over.
    pub fn is_over(&self) -> bool {
        self.signed_in.is_over()
    }

    /// Ready when the sign-in ends.
    pub async fn over(&self) {
        self.signed_in.over().await;
    }
}

impl Tickets {
    /// Issues a ticket for a sign-in; gives its life too.
    pub fn issue(&self, signed_in: SignedIn, topic: &Topic, id: ParticipantId) -> (String, Duration) {
        (self.keep(topic, Guest { id, signed_in }, Instant::now()), LASTS)
    }

    fn keep(&self, topic: &Topic, guest: Guest, now: Instant) -> String {
        let ticket: String = random::seed().iter().map(|b| format!("{b:02x}")).collect();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|ticket| ticket.until > now);
        if kept.len() >= MOST {
            kept.remove(0);
        }
        kept.push(Ticket { digest: Sha256::digest(&ticket).into(), until: now + LASTS, topic: topic.clone(), guest });
        ticket
    }

    /// Redeems the ticket of a handshake; `None`: no ticket.
    ///
    /// # Errors
    /// The fault of the ticket.
    pub fn redeem(&self, rooms: &Arc<Rooms>, parts: &Parts, topic: &Topic) -> Option<Result<Guest, String>> {
        let shown = shown(parts)?;
        let is_own = origin::check(&rooms.gate.config.load(), parts);
        let stale = || "this ticket was used before, is too old, or is for another room: ask for one again".to_owned();
        Some(is_own.and_then(|()| self.take_ticket(shown, topic, Instant::now()).ok_or_else(stale)))
    }

    fn take_ticket(&self, shown: &str, topic: &Topic, now: Instant) -> Option<Guest> {
        let digest: [u8; 32] = Sha256::digest(shown).into();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|ticket| ticket.digest.ct_eq(&digest).into())?;
        let ticket = kept.remove(at);
        Some(ticket.guest).filter(|guest| ticket.until > now && ticket.topic == *topic && !guest.is_over())
    }
}

/// Finds the ticket among the protocols of a handshake.
fn shown(parts: &Parts) -> Option<&str> {
    let values = parts.headers.get_all(LISTED).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).find_map(|listed| listed.trim().strip_prefix(PREFIX))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn guest() -> Guest {
        Guest { id: ParticipantId::new("ann").unwrap(), signed_in: SignedIn::for_test() }
    }

    #[test]
    fn a_ticket_serves_once_for_seconds_and_one_room() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let [ops, lab] = ["ops", "lab"].map(|name| Topic::new(name).unwrap());
        let ticket = tickets.keep(&ops, guest(), now);
        assert!(tickets.take_ticket(&ticket[1..], &ops, now).is_none());
        assert_eq!(tickets.take_ticket(&ticket, &ops, now).unwrap().id.as_str(), "ann");
        assert!(tickets.take_ticket(&ticket, &ops, now).is_none(), "used");
        let ticket = tickets.keep(&ops, guest(), now);
        assert!(tickets.take_ticket(&ticket, &lab, now).is_none(), "another room");
        assert!(tickets.take_ticket(&ticket, &ops, now).is_none(), "and it is gone");
        let ticket = tickets.keep(&ops, guest(), now);
        assert!(tickets.take_ticket(&ticket, &ops, now + LASTS).is_none(), "too old");
        let over = guest();
        over.signed_in.sign_out();
        let ticket = tickets.keep(&ops, over, now);
        assert!(tickets.take_ticket(&ticket, &ops, now).is_none(), "signed out");
    }

    #[test]
    fn tickets_do_not_pile_up() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let ops = Topic::new("ops").unwrap();
        let all: Vec<String> = (0..=MOST).map(|_| tickets.keep(&ops, guest(), now)).collect();
        assert!(tickets.take_ticket(&all[0], &ops, now).is_none() && tickets.take_ticket(&all[1], &ops, now).is_some());
    }

    #[test]
    fn a_ticket_stands_among_the_protocols() {
        let listed = |value: &str| Request::get("/ws?topic=x").header(LISTED, value).body(()).unwrap().into_parts().0;
        assert_eq!(shown(&listed("mcpx.v0.1, banyan-ticket.ab12")), Some("ab12"));
        assert_eq!(shown(&listed("chat, superchat")), None);
    }
}
