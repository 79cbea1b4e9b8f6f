//! Administration of rooms over HTTP, below `/-/rooms` and `/admin/participants` (MCPx v0.1, 11.3). Does not carry changes out:
//! `room-proto` does.

use std::sync::Arc;
use std::time::SystemTime;

use audit::record::{Changed as Record, Record as Entry};
use banyan_model::Timestamp;
use futures_util::future::{BoxFuture, FutureExt};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use room_proto::capability::{Capabilities, Pattern};
use room_proto::name::{ParticipantId, Topic};
use room_proto::room::{ChangedCapabilities, Hearing, HearingOutcome, RoomError, Routing};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Rooms;
use crate::driver::{Input, Live};
use crate::entry::{NotEntered, refusal_response};
use crate::pass;
use crate::pass::{Credentials, Entrant};
use crate::rules;
use crate::status::{ParticipantStatus, RoomStatus, texts};
use call::words::party::Party;
use door::body;
use door::port::{Door, fields, query};
use door::reply;
use door::reply::Payload;

/// Longest body, in bytes.
const POSTED_BYTES: usize = 256 << 10;
const PARTICIPANTS: &str = "/admin/participants/";
const ROOMS: &str = "/-/rooms";
/// Path below a room's, by which a page of the console asks for admission.
const TICKET: &str = "/ticket";
/// Path below a participant's, for changes of routing and echo.
const HEARING: &str = "/hearing";
/// Signature of changes by the gate's owner.
const OWNER: &str = "owner";

/// The administration of rooms at the listener.
pub struct RoomAdmin(pub Arc<Rooms>);

impl Door for RoomAdmin {
    fn is_here(&self, path: &str) -> bool {
        is_here(path)
    }

    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        async move {
            let (parts, mut body) = request.into_parts();
            let answer = answer(&self.0, &parts, &mut body, party.as_ref()).await;
            body::pass_over(&mut body).await;
            answer
        }
        .boxed()
    }
}

fn is_here(path: &str) -> bool {
    path.starts_with(PARTICIPANTS) || path.strip_prefix(ROOMS).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request for administration.
async fn answer(rooms: &Arc<Rooms>, parts: &Parts, body: &mut Incoming, party: Option<&Arc<Party>>) -> Response<Payload> {
    if let Some(place) = rules::place(parts.uri.path()) {
        let asking = RoomRequest { rooms, parts, party, room: None };
        return rules::answer(&asking, place, body).await.unwrap_or_else(NotDone::into_http);
    }
    let (room, rest) = place(parts.uri.path());
    let asking = RoomRequest { rooms, parts, party, room };
    let answered = match (&parts.method, rest) {
        (&Method::POST, Some(rest)) if rest.ends_with("/capabilities") => {
            asking.capabilities(rest.trim_end_matches("/capabilities"), body).await
        }
        (&Method::POST, Some(rest)) if rest.ends_with(HEARING) => asking.hearing(rest.trim_end_matches(HEARING), body).await,
        (&Method::DELETE, Some(rest)) => asking.dismissal(rest).await,
        (&Method::GET, None) => asking.rooms().await,
        (&Method::POST, None) if parts.uri.path().ends_with(TICKET) => asking.ticket(body).await,
        (method, _) => Err(NotDone::Nothing(format!("{method} {}", parts.uri.path()))),
    };
    answered.unwrap_or_else(NotDone::into_http)
}

/// Splits a path into the room, where named, and the part behind `participants`: pages of the console send their cookie below `/-/` only.
fn place(path: &str) -> (Option<&str>, Option<&str>) {
    if let Some(rest) = path.strip_prefix(PARTICIPANTS) {
        return (None, Some(rest));
    }
    let below = path.strip_prefix(ROOMS).and_then(|rest| rest.strip_prefix('/')).and_then(|rest| rest.split_once("/participants/"));
    below.map_or((None, None), |(room, rest)| (Some(room), Some(rest)))
}

/// Reasons for refusing a request.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    #[error("only admins of this room may do that: those that its `admins` lists, and whoever runs the gate")]
    NotAdmin,
    /// Nobody is signed in to the console there.
    #[error("tickets are for pages of the console that somebody signed in to: `banyan console` opens one")]
    NotSignedIn,
    /// The request comes from no particular person.
    #[error("rules are accepted and revoked by a person: sign in to the console, come into the room there, and do it in your name")]
    NoPerson,
    /// The requester is unknown.
    #[error(transparent)]
    NotEntered(#[from] NotEntered),
    #[error("no rules are learnt in this room: begin with that first")]
    NotLearning,
    #[error("there is no {0} here: see docs/rooms.md for what there is")]
    Nothing(String),
    /// The record has no room for the requester's changes.
    #[error("this gate's record holds too much of what {0} did: nothing is changed until older entries go")]
    NoRecord(Arc<str>),
    #[error("the room {0:?} is not open: nobody is there\n  `banyan room list` shows those that are")]
    NotOpen(String),
    /// The room refuses.
    #[error(transparent)]
    Room(#[from] RoomError),
    /// The request is faulty.
    #[error("{0}")]
    Wrong(String),
}

impl NotDone {
    fn into_http(self) -> Response<Payload> {
        let status = match self {
            Self::NotEntered(why) => return why.into_http(),
            Self::NoPerson | Self::NotAdmin | Self::NotSignedIn => StatusCode::FORBIDDEN,
            Self::Nothing(_) | Self::NotLearning | Self::NotOpen(_) | Self::Room(RoomError::NotHere { .. }) => StatusCode::NOT_FOUND,
            Self::NoRecord(_) | Self::Room(RoomError::PutOut { .. } | RoomError::RateLimited { .. } | RoomError::Reconnections { .. }) => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::Room(RoomError::Full { .. } | RoomError::Rulings { .. }) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Room(RoomError::Pattern(_)) | Self::Wrong(_) => StatusCode::BAD_REQUEST,
        };
        refusal_response(status, &self.to_string())
    }
}

/// A body of `POST /admin/participants/{id}/capabilities`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    #[serde(default)]
    add: Vec<Value>,
    #[serde(default)]
    remove: Vec<Value>,
}

/// A body of `POST /admin/participants/{id}/hearing`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HearingChange {
    routing: Option<String>,
    echo: Option<bool>,
}

/// The answer, in the spelling of the specification.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangeAnswer<'a> {
    participant_id: &'a str,
    topic: &'a str,
    old_capabilities: Vec<String>,
    new_capabilities: Vec<String>,
    modified_by: &'a str,
    modified_at: String,
}

/// `GET /-/rooms`.
#[derive(Serialize)]
struct RoomList {
    rooms: Vec<RoomStatus>,
}

/// `GET /-/rooms/NAME`.
#[derive(Serialize)]
struct Room {
    name: String,
    participants: Vec<ParticipantStatus>,
}

/// A body of `POST /-/rooms/NAME/ticket`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TicketRequest {
    participant: String,
}

/// The sender of a request.
struct Requester {
    /// Name in the room, or [`OWNER`].
    name: String,
    /// Principal whose share of the record counts; `None`: the gate's owner.
    principal: Option<Arc<str>>,
}

/// The room of a request, and a sender with a right to ask.
struct HearingRequest {
    room: Arc<Live>,
    by: Requester,
}

/// A request.
pub struct RoomRequest<'a> {
    pub rooms: &'a Arc<Rooms>,
    pub parts: &'a Parts,
    party: Option<&'a Arc<Party>>,
    /// As in the path.
    room: Option<&'a str>,
}

impl RoomRequest<'_> {
    /// Lists all rooms for the operator, or the participants of a room for admins, too.
    async fn rooms(&self) -> Result<Response<Payload>, NotDone> {
        let name = decoded(self.parts.uri.path().trim_start_matches(ROOMS).trim_matches('/'))?;
        if !self.rooms.entrance.is_owner(self.parts) {
            self.requester(topic(&name).map_err(|_| NotDone::NotAdmin)?, None).await?;
        }
        if name.is_empty() {
            let rooms = self.rooms.status(&self.rooms.gate.config.load().rooms);
            return Ok(json(&RoomList { rooms }));
        }
        let room = self.open(&topic(&name)?);
        let participants = match &room {
            Ok(room) => room.ask(Input::Present).await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let is_known = room.is_ok() || self.rooms.gate.config.load().rooms.rooms.keys().any(|topic| topic.as_str() == name);
        if is_known { Ok(json(&Room { name, participants })) } else { Err(NotDone::NotOpen(name)) }
    }

    /// Issues a ticket, by which a page of the console comes into a room.
    async fn ticket(&self, body: &mut Incoming) -> Result<Response<Payload>, NotDone> {
        let name = self.parts.uri.path().trim_start_matches(ROOMS).trim_end_matches(TICKET).trim_matches('/');
        let signed_in = self.rooms.entrance.signed_in(self.parts).ok_or(NotDone::NotSignedIn)?;
        let topic = topic(&decoded(name)?)?;
        let body = body::posted(body, POSTED_BYTES).await.map_err(|why| NotDone::Wrong(why.to_string()))?;
        let TicketRequest { participant } =
            serde_json::from_slice(&body).map_err(|e| NotDone::Wrong(format!("the request is not {{\"participant\": NAME}}: {e}")))?;
        let id =
            ParticipantId::new(&participant).map_err(|why| NotDone::Wrong(format!("nobody can be called {participant:?} here: {why}")))?;
        let rooms = &self.rooms.gate.config.load().rooms;
        if !rooms.are_served() {
            return Err(NotEntered::NoRooms.into());
        }
        rooms.doors().admit(&pass::of_owner(id.clone(), &topic), &topic).map_err(NotEntered::from)?;
        let (ticket, lasts) = self.rooms.tickets.issue(signed_in, &topic, id);
        Ok(json(&serde_json::json!({ "ticket": ticket, "expires_in": lasts.as_secs() })))
    }

    /// Changes a participant's capabilities.
    async fn capabilities(&self, id: &str, body: &mut Incoming) -> Result<Response<Payload>, NotDone> {
        let id = participant(id)?;
        let HearingRequest { room, by } = self.room_of(&id).await?;
        let body = body::posted(body, POSTED_BYTES).await.map_err(|why| NotDone::Wrong(why.to_string()))?;
        let change: Change = serde_json::from_slice(&body)
            .map_err(|e| NotDone::Wrong(format!("the request is not {{\"add\": [...], \"remove\": [...]}}: {e}")))?;
        let (add, remove) = (patterns(&change.add)?, patterns(&change.remove)?);
        let name = by.name.clone();
        let changed = room.ask(|answer| Input::Capabilities { id, add, remove, by: name, answer }).await;
        let ChangedCapabilities { id, old, new, by: name } =
            changed.ok_or_else(|| NotDone::NotOpen(room.topic().as_str().to_owned()))??;
        self.record_by(&by, room.topic(), &format!("participant {}: {}", id.as_str(), difference(&old, &new)));
        Ok(json(&ChangeAnswer {
            participant_id: id.as_str(),
            topic: room.topic().as_str(),
            old_capabilities: texts(&old),
            new_capabilities: texts(&new),
            modified_by: &name,
            modified_at: Timestamp(SystemTime::now()).to_string(),
        }))
    }

    /// Changes the hearing of a participant, on the participant's own order or an admin's.
    async fn hearing(&self, id: &str, body: &mut Incoming) -> Result<Response<Payload>, NotDone> {
        let id = participant(id)?;
        let HearingRequest { room, by } = self.room_for(&id, true).await?;
        let body = body::posted(body, POSTED_BYTES).await.map_err(|why| NotDone::Wrong(why.to_string()))?;
        let wanted = "{\"routing\": \"all\" or \"directed\", \"echo\": true or false}";
        let HearingChange { routing, echo } =
            serde_json::from_slice(&body).map_err(|e| NotDone::Wrong(format!("the request is not {wanted}: {e}")))?;
        let routing = match routing.as_deref() {
            None => None,
            Some("all") => Some(Routing::All),
            Some("directed") => Some(Routing::Directed),
            Some(other) => return Err(NotDone::Wrong(format!("`routing` is {other:?}; the request is {wanted}"))),
        };
        self.has_share(&by)?;
        let name = id.as_str().to_owned();
        let changed = room.ask(|answer| Input::Hearing { id, hearing: Hearing { routing, echo }, answer }).await;
        let HearingOutcome { preferences: now, is_changed } =
            changed.ok_or_else(|| NotDone::NotOpen(room.topic().as_str().to_owned()))??;
        let routing = if now.routing == Routing::All { "all" } else { "directed" };
        if is_changed {
            self.record_by(&by, room.topic(), &format!("participant {name}: routing {routing}, echo {}", now.echo));
        }
        let topic = room.topic().as_str();
        Ok(json(&serde_json::json!({ "participantId": name, "topic": topic, "routing": routing, "echo": now.echo, "modifiedBy": by.name })))
    }

    /// Puts a participant out.
    async fn dismissal(&self, id: &str) -> Result<Response<Payload>, NotDone> {
        let id = participant(id)?;
        let HearingRequest { room, by } = self.room_of(&id).await?;
        let name = id.as_str().to_owned();
        let done = room.ask(|answer| Input::Dismiss { id, answer }).await;
        done.ok_or_else(|| NotDone::NotOpen(room.topic().as_str().to_owned()))??;
        self.record_by(&by, room.topic(), &format!("participant {name}: put out"));
        Ok(json(&serde_json::json!({ "participantId": name, "topic": room.topic().as_str(), "modifiedBy": by.name })))
    }

    /// Finds the room of a request, and the requester, if an admin of the room.
    async fn room_of(&self, id: &ParticipantId) -> Result<HearingRequest, NotDone> {
        self.room_for(id, false).await
    }

    /// Finds the same; `by_itself`: the participant may do so, too.
    async fn room_for(&self, id: &ParticipantId, by_itself: bool) -> Result<HearingRequest, NotDone> {
        let named = self.room.map(decoded).transpose()?.or_else(|| query(self.parts, "topic"));
        let named = named.map(|name| topic(&name)).transpose()?;
        if self.rooms.entrance.is_owner(self.parts) {
            let room = match named {
                Some(topic) => self.open(&topic)?,
                None => self.only_room_of(id).await?,
            };
            return Ok(HearingRequest { room, by: Requester { name: OWNER.to_owned(), principal: None } });
        }
        let topic = named.ok_or_else(|| NotDone::Wrong("the address names no room: add `?topic=NAME`".to_owned()))?;
        let by = self.requester(topic.clone(), Some(id).filter(|_| by_itself)).await?;
        Ok(HearingRequest { room: self.open(&topic)?, by })
    }

    /// Finds the requester, if an admin of the room, or the participant `id`.
    async fn requester(&self, topic: Topic, id: Option<&ParticipantId>) -> Result<Requester, NotDone> {
        let showing =
            Credentials { party: self.party.cloned(), fields: fields(self.parts), topic, participant: None, guest: None, is_mew: false };
        let Entrant { id: by, entered, .. } = pass::admit(self.rooms, &showing).await?;
        let may = id == Some(&by) || self.rooms.gate.config.load().rooms.is_admin(&showing.topic, &by);
        if may { Ok(Requester { name: by.as_str().to_owned(), principal: Some(entered.principal.name) }) } else { Err(NotDone::NotAdmin) }
    }

    /// Finds the only room of a participant. Ids are valid for one room only, so that an id in several rooms is ambiguous.
    async fn only_room_of(&self, id: &ParticipantId) -> Result<Arc<Live>, NotDone> {
        let mut found = Vec::new();
        for room in self.rooms.all() {
            let present = room.ask(Input::Present).await.unwrap_or_default();
            if present.iter().any(|one| one.id == id.as_str()) {
                found.push(room);
            }
        }
        match (found.pop(), found.is_empty()) {
            (Some(room), true) => Ok(room),
            (Some(_), false) => Err(NotDone::Wrong(format!("{id:?} is in several rooms: add `?topic=NAME`"))),
            (None, _) => Err(NotDone::Room(RoomError::NotHere { id: id.clone() })),
        }
    }

    fn open(&self, topic: &Topic) -> Result<Arc<Live>, NotDone> {
        self.rooms.find(topic).ok_or_else(|| NotDone::NotOpen(topic.as_str().to_owned()))
    }

    /// Refuses a participant with more than a fair share of the record; nobody needs the changes of a hearing.
    fn has_share(&self, by: &Requester) -> Result<(), NotDone> {
        let Some(principal) = &by.principal else { return Ok(()) };
        let journal = &self.rooms.gate.record.journal;
        let is_over = journal.is_full() || journal.part(principal).refused_until().is_some();
        if is_over { Err(NotDone::NoRecord(Arc::clone(principal))) } else { Ok(()) }
    }

    /// Records a change of a room by the gate's owner.
    pub fn record(&self, topic: &Topic, what: &str) {
        self.rooms.gate.record.journal.append(&entry(topic, what));
    }

    /// Records a change of a room, in the share of the requester's principal.
    fn record_by(&self, by: &Requester, topic: &Topic, what: &str) {
        let what = format!("{what} (by {})", by.name);
        match &by.principal {
            Some(principal) => self.rooms.gate.record.journal.append_for(principal, &entry(topic, &what)),
            None => self.record(topic, &what),
        }
    }
}

fn entry(topic: &Topic, what: &str) -> Entry<'static> {
    Entry::Changed(Record { lines: vec![format!("room {}: {what}", topic.as_str()).into()], version: None, what: "room".into() })
}

/// Reads the name of a room.
pub fn topic(name: &str) -> Result<Topic, NotDone> {
    Topic::new(name).map_err(|why| NotDone::Wrong(format!("{name:?} names no room: {why}")))
}

fn participant(name: &str) -> Result<ParticipantId, NotDone> {
    let name = decoded(name)?;
    ParticipantId::new(&name).map_err(|why| NotDone::Wrong(format!("{name:?} names no participant: {why}")))
}

/// Decodes a part of a path.
pub fn decoded(part: &str) -> Result<String, NotDone> {
    // In a path, unlike in a form, a plus is itself.
    let part = part.replace('+', "%2B");
    let pair = url::form_urlencoded::parse(part.as_bytes()).next();
    let name = pair.map(|(name, _)| name.into_owned()).unwrap_or_default();
    if part.contains(['&', '=']) { Err(NotDone::Wrong("write `&` and `=` in a name as %26 and %3D".to_owned())) } else { Ok(name) }
}

fn patterns(listed: &[Value]) -> Result<Vec<Pattern>, NotDone> {
    let read = |one| {
        let no_pattern = || NotDone::Wrong(format!("{one} is no capability: write a pattern, such as \"mcp/request:tools/call:read_*\""));
        let pattern = pass::capability(one).ok_or_else(no_pattern)?;
        Pattern::new(&pattern).map_err(|why| NotDone::Room(RoomError::Pattern(why)))
    };
    listed.iter().map(read).collect()
}

fn difference(old: &Capabilities, new: &Capabilities) -> String {
    let only = |these: &Capabilities, those: &Capabilities, sign: &str| -> Vec<String> {
        let gone = these.patterns().iter().filter(|pattern| !those.patterns().contains(pattern));
        gone.map(|pattern| format!("{sign} {}", pattern.as_str())).collect()
    };
    let lines = [only(new, old, "+"), only(old, new, "-")].concat();
    if lines.is_empty() { "nothing".to_owned() } else { lines.join(", ") }
}

/// Makes a response with a JSON body.
pub fn json(value: &impl Serialize) -> Response<Payload> {
    reply::typed(StatusCode::OK, "application/json", serde_json::to_vec(value).unwrap_or_default().into())
}
