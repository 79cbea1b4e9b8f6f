//! Who comes to a room, by what it shows, and with which capabilities it is let in (MCPx v0.1, 5.1). Which topics take whom is not
//! decided here.
//!
//! A participant is known by a token of its own, by a signed token that says who it is (the claims of the reference implementation), by
//! whatever the gate knows callers by, or as the gate's owner.

use std::sync::Arc;
use std::time::SystemTime;

use config::resolved::Config;
use mcp_proto::hidden;
use mcp_proto::http1::Fields;
use room_proto::access::Pass;
use room_proto::capability::Capabilities;
use room_proto::mew::pattern_of;
use room_proto::name::{ParticipantId, Topic};
use serde_json::Value;
use tokio::sync::watch;

use crate::Rooms;
use crate::entry::NotEntered;
use crate::guest::Guest;
use call::words::entered::Entered;
use call::words::granted::Place;
use call::words::party::Party;
use door::entry;
use trust;
use trust::TokenRefusal;

/// What somebody shows who wants to come in, and where to.
pub struct Showing {
    pub party: Option<Arc<Party>>,
    pub fields: Fields,
    pub topic: Topic,
    /// As whom the gate's owner wants to come in.
    pub participant: Option<String>,
    /// Who is signed in to the console, and comes by a ticket.
    pub guest: Option<Guest>,
    /// Whether it speaks MEW.
    pub is_mew: bool,
}

/// Somebody who is let in.
#[derive(Debug, Clone, PartialEq)]
pub struct Entrant {
    pub id: ParticipantId,
    pub capabilities: Capabilities,
    /// When what let it in is over; `None`: it is not, by itself.
    pub until: Option<SystemTime>,
    /// As whom it calls what sits there.
    pub entered: Entered,
    /// Whether it looks after the room: an admin of it, or whoever runs the gate.
    pub is_steward: bool,
}

/// Somebody that is known, and what it may come into.
struct Known {
    pass: Pass,
    until: Option<SystemTime>,
    entered: Entered,
    /// Whether it runs the gate.
    is_owner: bool,
}

impl Known {
    /// One that nobody but a room knows.
    fn participant(pass: Pass, until: Option<SystemTime>) -> Self {
        let entered = Entered::participant(pass.id.as_str());
        Self { pass, until, entered, is_owner: false }
    }

    /// Whoever runs the gate.
    fn owner(pass: Pass) -> Self {
        Self { is_owner: true, ..Self::participant(pass, None) }
    }
}

/// What the gate's owner may send.
const OWNER: [&str; 4] = ["mcp/*", "chat", "participant/pause", "participant/resume"];

const MISSING: &str = "a bearer token is needed here: send `Authorization: Bearer TOKEN`, of a [participant.NAME] for example";
const UNKNOWN: &str = "the bearer token is not known here: it is that of no [participant.NAME], and of no caller of this gate";

/// Lets somebody in, or not.
pub async fn admit(rooms: &Arc<Rooms>, showing: &Showing) -> Result<Entrant, NotEntered> {
    let config = rooms.gate.config.load_full();
    if !config.rooms.are_served() {
        return Err(NotEntered::NoRooms);
    }
    if showing.is_mew && !config.rooms.mew {
        return Err(NotEntered::NoMew);
    }
    let Known { pass, until, entered, is_owner } = who(rooms, &config, showing).await?;
    if config.rooms.sits(&showing.topic, &pass.id) {
        return Err(NotEntered::Seated(pass.id.as_str().to_owned()));
    }
    let doors = config.rooms.doors();
    let capabilities = doors.admit(&pass, &showing.topic)?.clone();
    let is_admin = config.rooms.rooms.get(&showing.topic).is_some_and(|room| room.admins.contains(&pass.id));
    Ok(Entrant { id: pass.id, capabilities, until, entered, is_steward: is_owner || is_admin })
}

async fn who(rooms: &Arc<Rooms>, config: &Arc<Config>, showing: &Showing) -> Result<Known, NotEntered> {
    let (party, fields) = (showing.party.as_ref(), &showing.fields);
    entry::outer(config, party, fields).map_err(NotEntered::Door)?;
    if let Some(guest) = &showing.guest {
        if guest.is_over() {
            return Err(NotEntered::Ticket("nobody is signed in by that any more: sign in to the console again".into()));
        }
        return Ok(Known::owner(of_owner(guest.id.clone(), &showing.topic)));
    }
    if let Some(token) = entry::bearer(config, fields).map_err(NotEntered::Door)? {
        if rooms.entrance.owner.is_owners(token.as_bytes()) {
            return Ok(Known::owner(owner(showing)?));
        }
        let secrets = rooms.secrets.of(rooms, &config.rooms).await;
        if let Some((id, who)) = secrets.holder(token).and_then(|id| config.rooms.participants.get_key_value(id)) {
            let pass = Pass { id: id.clone(), topics: who.rooms.clone(), capabilities: who.capabilities.clone() };
            return Ok(Known::participant(pass, None));
        }
        if let Some(secret) = &secrets.shared
            && trust::is_shared(token)
        {
            let (place, until) = trust::shared(token, secret.expose().as_bytes())
                .map_err(|why| NotEntered::Door(entry::denied(config, &TokenRefusal::Wrong(why))))?;
            return Ok(Known::participant(claimed(config, &place)?, Some(until)));
        }
    }
    let entered = entry::enter(config, &rooms.trust, party, fields).map_err(NotEntered::Door)?;
    if entered.is_anybody() {
        return Err(NotEntered::Unknown(if fields.get("authorization").is_some() { UNKNOWN } else { MISSING }));
    }
    let until = entered.until();
    let place = entered.place().filter(|(issuer, _)| config.rooms.issuers.iter().any(|known| **known == **issuer));
    match place.filter(|(_, place)| place.participant.is_some()) {
        Some((_, place)) => Ok(Known::participant(claimed(config, place)?, until)),
        None => Ok(Known { pass: caller(config, &entered)?, until, entered, is_owner: false }),
    }
}

/// Whoever runs the gate comes in as whom it likes.
fn owner(showing: &Showing) -> Result<Pass, NotEntered> {
    let Some(name) = &showing.participant else {
        return Err(NotEntered::Query("the admin token names no participant: add `&participant=NAME` to the address".into()));
    };
    Ok(of_owner(ParticipantId::new(name).map_err(NotEntered::Id)?, &showing.topic))
}

/// What the gate's owner is let in by.
pub fn of_owner(id: ParticipantId, topic: &Topic) -> Pass {
    Pass { id, topics: vec![topic.as_str().to_owned()], capabilities: Capabilities::read(OWNER).ok() }
}

/// Whoever calls the gate is in rooms by its name there: public ones, and those that have it as a member.
fn caller(config: &Config, entered: &Entered) -> Result<Pass, NotEntered> {
    let id = ParticipantId::new(&entered.principal.name).map_err(NotEntered::Id)?;
    if config.rooms.participants.contains_key(&id) {
        return Err(NotEntered::Taken(id.as_str().to_owned()));
    }
    Ok(Pass { id, topics: vec!["*".to_owned()], capabilities: None })
}

/// The holder of a signed token that says who it is. Nobody who has a token of its own is named by others.
fn claimed(config: &Config, place: &Place) -> Result<Pass, NotEntered> {
    let wrong = |what: &str| {
        NotEntered::Unknown(match what {
            "participantId" => "the token's `participantId` is no text: ask for a token that says who you are",
            "topic" => "the token's `topic` is no text and no list of texts: ask for a token that says for which rooms it is good",
            _ => "the token's `capabilities` are no list of capabilities: ask for one such as [\"mcp/proposal:*\", \"chat\"]",
        })
    };
    let name = place.participant.as_ref().and_then(Value::as_str).ok_or_else(|| wrong("participantId"))?;
    let id = ParticipantId::new(name).map_err(NotEntered::Id)?;
    if is_of_another_principal(name) {
        return Err(NotEntered::Reserved(name.to_owned()));
    }
    if config.rooms.participants.contains_key(&id) || config.tokens.iter().any(|token| *token.name == *name) {
        return Err(NotEntered::Taken(name.to_owned()));
    }
    let topics = texts(place.topic.as_ref()).ok_or_else(|| wrong("topic"))?;
    let capabilities = match place.capabilities.as_ref() {
        None => None,
        Some(listed) => {
            let listed = listed.as_array().and_then(|all| all.iter().map(capability).collect::<Option<Vec<_>>>());
            let listed = listed.ok_or_else(|| wrong("capabilities"))?;
            Some(Capabilities::read(listed.iter().map(String::as_str)).map_err(|_| wrong("capabilities"))?)
        }
    };
    Ok(Pass { id, topics, capabilities })
}

/// Checks whether a name is of a kind that somebody else of this gate has, to whom rules, budgets and approvals are given by that name: who runs the gate,
/// the gate in its rooms, whoever comes by a certificate, by the token of an issuer (`NAME@ISSUER`) or over the link of a parent. Whoever signs tokens for rooms says
/// who is who in rooms, and nowhere else. What reads like another name is no name either.
fn is_of_another_principal(name: &str) -> bool {
    let begins = |prefix: &str| name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    OWN_NAMES.iter().any(|own| name.eq_ignore_ascii_case(own))
        || OTHERS_BEGIN.into_iter().any(begins)
        || name.contains('@')
        || name.trim() != name
        || hidden::without(name) != name
}

/// Names of the gate itself, and of everybody.
const OWN_NAMES: [&str; 3] = ["*", "gate", "local"];
/// With what the names of others begin.
const OTHERS_BEGIN: [&str; 4] = ["dns:", "parent ", "room:", "spiffe://"];

/// A capability: a pattern, or an object of MEW where a pattern can say the same.
pub fn capability(value: &Value) -> Option<String> {
    match value {
        Value::String(pattern) => Some(pattern.clone()),
        Value::Object(_) => pattern_of(value.to_string().as_bytes()),
        Value::Array(_) | Value::Bool(_) | Value::Null | Value::Number(_) => None,
    }
}

/// A text, or a list of texts.
fn texts(value: Option<&Value>) -> Option<Vec<String>> {
    match value? {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(all) => all.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::Object(_) => None,
    }
}

/// What somebody was let in by. It has to hold as long as it is there.
pub struct Held {
    rooms: Arc<Rooms>,
    showing: Showing,
    entrant: Entrant,
    applied: watch::Receiver<()>,
}

impl Held {
    /// `applied` has to be older than the look that let it in, so that no change is missed.
    pub fn new(rooms: &Arc<Rooms>, showing: Showing, entrant: Entrant, applied: watch::Receiver<()>) -> Self {
        Self { rooms: Arc::clone(rooms), showing, entrant, applied }
    }

    /// The room that it was let into.
    pub fn topic(&self) -> &Topic {
        &self.showing.topic
    }

    /// Ready when it would not be let in any more, or as somebody else, or with other capabilities. That a token has run out is seen by
    /// the room.
    pub async fn over(mut self) {
        loop {
            let certificate = async {
                match &self.showing.party {
                    Some(party) => self.rooms.trust.ended(party).await,
                    None => std::future::pending().await,
                }
            };
            let signed_out = async {
                match &self.showing.guest {
                    Some(guest) => guest.over().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = self.applied.changed() => if changed.is_err() { return },
                () = certificate => return,
                () = signed_out => return,
            }
            match admit(&self.rooms, &self.showing).await {
                Ok(now) if now == self.entrant => {}
                Err(why) if why.is_passing() => {}
                Ok(_) | Err(_) => return,
            }
        }
    }
}
