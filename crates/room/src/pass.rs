//! Admission to a room by credentials, and the capabilities that come with them (MCPx v0.1, 5.1). The access of topics is not decided here.
//!
//! A participant is known by a token of its own, by a signed token with its name (the claims of the reference implementation), by any
//! identity of a caller of the gate, or as the gate's owner.

use std::sync::Arc;
use std::time::SystemTime;

use config::resolved::Config;
use mcp_proto::hidden;
use mcp_proto::http1::Fields;
use room_proto::access::Pass;
use room_proto::capability::Capabilities;
use room_proto::mew::pattern_of;
use room_proto::name::{ParticipantId, Topic};
use room_proto::room::{Hearing, Routing};
use serde_json::Value;
use tokio::sync::watch;

use crate::Rooms;
use crate::entry::NotEntered;
use crate::guest::Guest;
use call::words::entered::AdmittedCaller;
use call::words::granted::Place;
use call::words::party::Party;
use door::entry;
use trust;
use trust::TokenRefusal;

/// Credentials and destination of an entrant.
pub struct Credentials {
    pub party: Option<Arc<Party>>,
    pub fields: Fields,
    pub topic: Topic,
    /// Participant to be, for the gate's owner.
    pub participant: Option<String>,
    /// A person signed in to the console, with a ticket.
    pub guest: Option<Guest>,
    /// Speaks MEW.
    pub is_mew: bool,
}

/// An admitted participant.
#[derive(Debug, Clone, PartialEq)]
pub struct Entrant {
    pub id: ParticipantId,
    pub capabilities: Capabilities,
    /// End of the admission; `None`: none by itself.
    pub until: Option<SystemTime>,
    /// Hearing of a participant without a choice in the address.
    pub hearing: Hearing,
    /// Identity for calls of seats in the room.
    pub entered: AdmittedCaller,
    /// Marks a steward: an admin of the room, or the operator.
    pub is_steward: bool,
}

/// An identified entrant, with a pass.
struct KnownEntrant {
    pass: Pass,
    until: Option<SystemTime>,
    entered: AdmittedCaller,
    /// Marks the operator.
    is_owner: bool,
}

impl KnownEntrant {
    /// Makes an identity known to rooms only.
    fn participant(pass: Pass, until: Option<SystemTime>) -> Self {
        let entered = AdmittedCaller::participant(pass.id.as_str());
        Self { pass, until, entered, is_owner: false }
    }

    /// Makes the operator's identity.
    fn owner(pass: Pass) -> Self {
        Self { is_owner: true, ..Self::participant(pass, None) }
    }
}

/// The owner's capabilities.
const OWNER: [&str; 4] = ["mcp/*", "chat", "participant/pause", "participant/resume"];

const MISSING: &str = "a bearer token is needed here: send `Authorization: Bearer TOKEN`, of a [participant.NAME] for example";
const UNKNOWN: &str = "the bearer token is not known here: it is that of no [participant.NAME], and of no caller of this gate";

/// Admits an entrant, or refuses.
pub async fn admit(rooms: &Arc<Rooms>, showing: &Credentials) -> Result<Entrant, NotEntered> {
    let config = rooms.gate.config.load_full();
    if !config.rooms.are_served() {
        return Err(NotEntered::NoRooms);
    }
    if showing.is_mew && !config.rooms.mew {
        return Err(NotEntered::NoMew);
    }
    let KnownEntrant { pass, until, entered, is_owner } = who(rooms, &config, showing).await?;
    if config.rooms.sits(&showing.topic, &pass.id) {
        return Err(NotEntered::Seated(pass.id.as_str().to_owned()));
    }
    let doors = config.rooms.doors();
    let capabilities = doors.admit(&pass, &showing.topic)?.clone();
    let is_admin = config.rooms.rooms.get(&showing.topic).is_some_and(|room| room.admins.contains(&pass.id));
    let hearing = doors.hearing(&pass, &showing.topic);
    Ok(Entrant { id: pass.id, capabilities, until, hearing, entered, is_steward: is_owner || is_admin })
}

async fn who(rooms: &Arc<Rooms>, config: &Arc<Config>, showing: &Credentials) -> Result<KnownEntrant, NotEntered> {
    let (party, fields) = (showing.party.as_ref(), &showing.fields);
    entry::outer(config, party, fields).map_err(NotEntered::Door)?;
    if let Some(guest) = &showing.guest {
        if guest.is_over() {
            return Err(NotEntered::Ticket("nobody is signed in by that any more: sign in to the console again".into()));
        }
        return Ok(KnownEntrant::owner(of_owner(guest.id.clone(), &showing.topic)));
    }
    if let Some(token) = entry::bearer(config, fields).map_err(NotEntered::Door)? {
        if rooms.entrance.owner.is_owners(token.as_bytes()) {
            return Ok(KnownEntrant::owner(owner(showing)?));
        }
        let secrets = rooms.secrets.fetched_for(rooms, &config.rooms).await;
        if let Some((id, who)) = secrets.holder(token).and_then(|id| config.rooms.participants.get_key_value(id)) {
            let pass = Pass { id: id.clone(), topics: who.rooms.clone(), capabilities: who.capabilities.clone(), hearing: who.hearing };
            return Ok(KnownEntrant::participant(pass, None));
        }
        if let Some(secret) = &secrets.shared
            && trust::is_shared(token)
        {
            let (place, until) = trust::shared(token, secret.expose().as_bytes())
                .map_err(|why| NotEntered::Door(entry::denied(config, &TokenRefusal::Wrong(why))))?;
            return Ok(KnownEntrant::participant(claimed(config, &place)?, Some(until)));
        }
    }
    let entered = entry::enter(config, &rooms.trust, party, fields).map_err(NotEntered::Door)?;
    if entered.is_anybody() {
        return Err(NotEntered::Unknown(if fields.get("authorization").is_some() { UNKNOWN } else { MISSING }));
    }
    let until = entered.until();
    let place = entered.place().filter(|(issuer, _)| config.rooms.issuers.iter().any(|known| **known == **issuer));
    match place.filter(|(_, place)| place.participant.is_some()) {
        Some((_, place)) => Ok(KnownEntrant::participant(claimed(config, &of_issuer(place))?, until)),
        None => Ok(KnownEntrant { pass: caller(config, &entered)?, until, entered, is_owner: false }),
    }
}

/// Makes the operator's pass, under any name.
fn owner(showing: &Credentials) -> Result<Pass, NotEntered> {
    let Some(name) = &showing.participant else {
        return Err(NotEntered::Query("the admin token names no participant: add `&participant=NAME` to the address".into()));
    };
    Ok(of_owner(ParticipantId::new(name).map_err(NotEntered::Id)?, &showing.topic))
}

/// Makes the owner's pass.
pub fn of_owner(id: ParticipantId, topic: &Topic) -> Pass {
    Pass { id, topics: vec![topic.as_str().to_owned()], capabilities: Capabilities::read(OWNER).ok(), hearing: Hearing::default() }
}

/// Makes the pass of a caller of the gate, by its name there: for public rooms, and rooms with this member.
fn caller(config: &Config, entered: &AdmittedCaller) -> Result<Pass, NotEntered> {
    let id = ParticipantId::new(&entered.principal.name).map_err(NotEntered::Id)?;
    if config.rooms.participants.contains_key(&id) {
        return Err(NotEntered::Taken(id.as_str().to_owned()));
    }
    Ok(Pass { id, topics: vec!["*".to_owned()], capabilities: None, hearing: Hearing::default() })
}

/// Leaves out claims of another type: `routing` and `echo` are common words, and an issuer may mean something else by them.
fn of_issuer(place: &Place) -> Place {
    let (routing, echo) = (place.routing.clone().filter(Value::is_string), place.echo.clone().filter(Value::is_boolean));
    Place { routing, echo, ..place.clone() }
}

/// Makes the pass of a signed token with a name. No participant with its own token is named by others.
fn claimed(config: &Config, place: &Place) -> Result<Pass, NotEntered> {
    let wrong = |what: &str| {
        NotEntered::Unknown(match what {
            "participantId" => "the token's `participantId` is no text: ask for a token that says who you are",
            "routing" => "the token's `routing` is neither `all` nor `directed`: ask for a token with one of them, or without",
            "echo" => "the token's `echo` is neither true nor false: ask for a token with one of them, or without",
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
    let routing = match place.routing.as_ref().map(|routing| routing.as_str()) {
        None => None,
        Some(Some("all")) => Some(Routing::All),
        Some(Some("directed")) => Some(Routing::Directed),
        Some(_) => return Err(wrong("routing")),
    };
    let echo = place.echo.as_ref().map(|echo| echo.as_bool().ok_or_else(|| wrong("echo"))).transpose()?;
    Ok(Pass { id, topics, capabilities, hearing: Hearing { routing, echo } })
}

/// Recognises names by which other principals of this gate get rules, budgets and approvals: the operator, the gate in its rooms, callers
/// by certificate, by an issuer's token (`NAME@ISSUER`) or over a parent's link. Issuers of tokens for rooms name participants in rooms,
/// and nowhere else. A name that looks like another is refused as well.
pub fn is_of_another_principal(name: &str) -> bool {
    let begins = |prefix: &str| name.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    OWN_NAMES.iter().any(|own| name.eq_ignore_ascii_case(own))
        || OTHERS_BEGIN.into_iter().any(begins)
        || name.contains('@')
        || name.trim() != name
        || hidden::without(name) != name
}

/// Names of the gate itself, and of everybody.
const OWN_NAMES: [&str; 3] = ["*", "gate", "local"];
/// Beginnings of other principals' names.
const OTHERS_BEGIN: [&str; 4] = ["dns:", "parent ", "room:", "spiffe://"];

/// Reads a capability: a pattern, or an object of MEW with an equal pattern.
pub fn capability(value: &Value) -> Option<String> {
    match value {
        Value::String(pattern) => Some(pattern.clone()),
        Value::Object(_) => pattern_of(value.to_string().as_bytes()),
        Value::Array(_) | Value::Bool(_) | Value::Null | Value::Number(_) => None,
    }
}

/// Reads a text, or a list of texts.
fn texts(value: Option<&Value>) -> Option<Vec<String>> {
    match value? {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(all) => all.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Admission of a participant, watched throughout the stay.
pub struct WatchedAdmission {
    rooms: Arc<Rooms>,
    showing: Credentials,
    entrant: Entrant,
    applied: watch::Receiver<()>,
}

impl WatchedAdmission {
    /// Makes the watch. `applied` has to be older than the admission, so that no change is missed.
    pub fn new(rooms: &Arc<Rooms>, showing: Credentials, entrant: Entrant, applied: watch::Receiver<()>) -> Self {
        Self { rooms: Arc::clone(rooms), showing, entrant, applied }
    }

    /// Gives the room of the admission.
    pub fn topic(&self) -> &Topic {
        &self.showing.topic
    }

    /// Ready when a new admission would fail, or give another identity or other capabilities. The room itself watches the end of tokens.
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
