//! `GET /ws?topic=NAME`: a connection becomes a WebSocket, and its holder a participant (MCPx v0.1, 6.2). Refusals go out over HTTP, before
//! the upgrade. Clients of MEW name a `space` instead, and may send their credentials in the first message. Admits nobody itself.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use futures_util::future::{BoxFuture, FutureExt};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use mcp_proto::http1::Fields;
use room_proto::name::{ParticipantId, Topic};
use room_proto::room::{Also, Hearing, Newcomer, Preferences, Routing};
use tokio::sync::{oneshot, watch};

use crate::Rooms;
use crate::connection::Line;
use crate::entry::NotEntered;
use crate::pass;
use crate::pass::{Credentials, Entrant, WatchedAdmission};
use crate::writer::SeatedConnection;
use crate::{NotSeated, Way, connection, guest, handshake, lobby};
use call::words::entered::AdmittedCaller;
use call::words::party::Party;
use door::port::{Door, fields};
use door::reply;
use door::reply::Payload;

/// [`Rooms`] at the listener.
pub struct RoomDoor(pub Arc<Rooms>);

impl Door for RoomDoor {
    fn is_here(&self, path: &str) -> bool {
        is_here(path)
    }

    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        handle(&self.0, request, party).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.close_all().boxed()
    }
}

/// Recognises this endpoint.
fn is_here(path: &str) -> bool {
    path == "/ws"
}

/// Takes an entrant in, or answers with the reason of a refusal.
async fn handle(rooms: &Arc<Rooms>, mut request: Request<Incoming>, party: Option<Arc<Party>>) -> Response<Payload> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    enter(rooms, &parts, upgrade, party).await.unwrap_or_else(NotEntered::into_http)
}

async fn enter(rooms: &Arc<Rooms>, parts: &Parts, upgrade: OnUpgrade, party: Option<Arc<Party>>) -> Result<Response<Payload>, NotEntered> {
    let accept = handshake::accept(parts)?;
    let config = rooms.gate.config.load_full();
    let asked = AddressQuery::read(parts.uri.query().unwrap_or_default())?;
    let applied = rooms.trust.reapplied();
    let fields = match asked.token.filter(|_| config.rooms.query_token) {
        Some(token) => with_token(&fields(parts), parts, &token),
        None => fields(parts),
    };
    let is_known = party.as_ref().is_some_and(|party| party.certified().is_some()) || fields.get("authorization").is_some();
    let (topic, way, preferences) = match asked.place {
        Destination::Topic(topic) => (topic, Way::Plain, asked.preferences),
        Destination::Space(_) if !config.rooms.mew => return Err(NotEntered::NoMew),
        Destination::Space(Some(topic)) if is_known => (topic, Way::Mew, lobby::PREFERENCES),
        Destination::Space(space) => {
            lobby::wait(rooms, parts, (space, asked.hearing), party, upgrade)?;
            return Ok(switching(accept));
        }
        Destination::Nowhere if config.rooms.mew => {
            lobby::wait(rooms, parts, (None, asked.hearing), party, upgrade)?;
            return Ok(switching(accept));
        }
        Destination::Nowhere => return Err(NotEntered::Query("the address names no room: connect to /ws?topic=NAME".into())),
    };
    let guest = rooms.tickets.redeem(rooms, parts, &topic).transpose().map_err(NotEntered::Ticket)?;
    let way = guest.as_ref().map_or(way, |guest| Way::Page(guest.session()));
    let showing = Credentials { party, fields, topic, participant: asked.participant, guest, is_mew: way == Way::Mew };
    let entrant = pass::admit(rooms, &showing).await?;
    let preferences = asked.hearing.or(entrant.hearing).over(preferences);
    seat(Arrival::new(rooms, showing, entrant, (preferences, way), applied), upgrade).await?;
    let mut response = switching(accept);
    if matches!(way, Way::Page(_)) {
        // Browsers leave again where none of the protocols that they list is taken up.
        response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(guest::PROTOCOL));
    }
    Ok(response)
}

/// Makes the response of an upgrade.
fn switching(accept: HeaderValue) -> Response<Payload> {
    let mut response = reply::empty(StatusCode::SWITCHING_PROTOCOLS).into_http();
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    response
}

/// An admitted participant without a seat yet.
pub struct Arrival {
    rooms: Arc<Rooms>,
    joining: Newcomer,
    way: Way,
    entered: AdmittedCaller,
    held: WatchedAdmission,
}

/// A seated participant.
pub struct SeatedArrival {
    rooms: Arc<Rooms>,
    joined: SeatedConnection,
    id: ParticipantId,
    held: WatchedAdmission,
}

impl Arrival {
    /// Makes an arrival. `applied` has to be older than the admission.
    pub fn new(
        rooms: &Arc<Rooms>,
        showing: Credentials,
        entrant: Entrant,
        (preferences, way): (Preferences, Way),
        applied: watch::Receiver<()>,
    ) -> Self {
        let joining = Newcomer {
            id: entrant.id.clone(),
            capabilities: entrant.capabilities.clone(),
            preferences,
            expires: entrant.until.map(until),
            is_own: false,
            is_steward: entrant.is_steward,
        };
        let entered = entrant.entered.clone();
        Self { rooms: Arc::clone(rooms), joining, way, entered, held: WatchedAdmission::new(rooms, showing, entrant, applied) }
    }

    /// Takes a seat.
    pub async fn join(self) -> Result<SeatedArrival, NotSeated> {
        let Self { rooms, joining, way, entered, held } = self;
        let settings = rooms.gate.config.load().rooms.settings_of(held.topic()).clone();
        let joined = rooms.join(held.topic(), &settings, &joining, way).await?;
        rooms.who.came(held.topic(), &joining.id, joined.id, entered);
        Ok(SeatedArrival { rooms, joined, id: joining.id, held })
    }
}

impl SeatedArrival {
    /// Keeps the seat until the connection is over.
    pub async fn serve_over(self, line: Line) {
        self.serve(|joined, held| connection::serve_over(joined, line, held)).await;
    }

    async fn serve<S: Future<Output = ()>>(self, serving: impl FnOnce(SeatedConnection, WatchedAdmission) -> S) {
        let Self { rooms, joined, id, held } = self;
        let (topic, connection) = (held.topic().clone(), joined.id);
        serving(joined, held).await;
        rooms.who.went(&topic, &id, connection);
    }
}

/// Seats an arrival; a task of its own keeps the seat from then on, since the requester may go at any time.
async fn seat(coming: Arrival, upgrade: OnUpgrade) -> Result<(), NotSeated> {
    let (answer, answered) = oneshot::channel();
    let rooms = Arc::clone(&coming.rooms);
    let serving = async move {
        match coming.join().await {
            Ok(come) => {
                drop(answer.send(Ok(())));
                come.serve(|joined, held| connection::serve(joined, upgrade, held)).await;
            }
            Err(why) => drop(answer.send(Err(why))),
        }
    };
    tokio::spawn(rooms.open.track_future(serving));
    answered.await.unwrap_or(Err(NotSeated::Ending))
}

/// Content of the address.
struct AddressQuery {
    place: Destination,
    preferences: Preferences,
    /// As far as the address says.
    hearing: Hearing,
    participant: Option<String>,
    token: Option<String>,
}

/// Destination of an entrant.
#[derive(Debug, PartialEq)]
enum Destination {
    /// Left to the first message.
    Nowhere,
    /// A space: a room in the words of MEW clients. The first message may name it.
    Space(Option<Topic>),
    /// A room.
    Topic(Topic),
}

impl AddressQuery {
    fn read(query: &str) -> Result<Self, NotEntered> {
        let (mut place, mut participant, mut token, mut preferences) = (Destination::Nowhere, None, None, Preferences::default());
        let mut hearing = Hearing::default();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let wrong = |choices: &str| NotEntered::Query(format!("`{key}` is {value:?}, and must be {choices}"));
            match (&*key, &*value) {
                ("topic" | "space", _) if place != Destination::Nowhere => {
                    return Err(NotEntered::Query("the address names two rooms: `topic` names one, or `space` for clients of MEW".into()));
                }
                ("space", "") => place = Destination::Space(None),
                ("topic" | "space", name) => {
                    let topic = Topic::new(name).map_err(|why| NotEntered::Query(format!("`{key}` names no room: {why}")))?;
                    place = if &*key == "space" { Destination::Space(Some(topic)) } else { Destination::Topic(topic) };
                }
                ("routing", "all") => hearing.routing = Some(Routing::All),
                ("routing", "directed") => hearing.routing = Some(Routing::Directed),
                ("routing", _) => return Err(wrong("`all` or `directed`")),
                ("echo", "1" | "true") => hearing.echo = Some(true),
                ("echo", "0" | "false") => hearing.echo = Some(false),
                ("echo", _) => return Err(wrong("`1` or `0`")),
                ("also", classes) => {
                    for class in classes.split(',').map(str::trim).filter(|class| !class.is_empty()) {
                        if !preferences.also.ask(class) {
                            return Err(wrong(&format!("some of `{}`, with commas between them", Also::CLASSES.join("`, `"))));
                        }
                    }
                }
                ("history", count) => preferences.history = count.parse().map_err(|_| wrong("how many messages, as a number"))?,
                ("participant", name) => participant = Some(name.to_owned()),
                ("token", text) => token = Some(text.to_owned()),
                _ => {}
            }
        }
        Ok(Self { place, preferences, hearing, participant, token })
    }
}

/// Gives the header fields of a request with a token in its address. A token in a header field takes precedence.
pub fn with_token(fields: &Fields, parts: &Parts, token: &str) -> Fields {
    if fields.get("authorization").is_some() {
        return fields.clone();
    }
    let bearer = format!("Bearer {token}");
    let own = parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    Fields::new(own.chain([("authorization", bearer.as_bytes())]))
}

/// Translates a time to the monotonic clock.
fn until(at: SystemTime) -> Instant {
    let now = Instant::now();
    let left = at.duration_since(SystemTime::now()).unwrap_or_default();
    now.checked_add(left).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_says_where_to_and_how() {
        let asked = AddressQuery::read("topic=a%20b&routing=directed&echo=0&also=mcp/reject&history=20&participant=ann&x=y").ok().unwrap();
        assert_eq!((&asked.place, asked.participant.as_deref()), (&Destination::Topic(Topic::new("a b").unwrap()), Some("ann")));
        let mut also = Also::NONE;
        assert!(also.ask("mcp/reject"));
        let preferences = asked.hearing.over(asked.preferences);
        assert_eq!(preferences, Preferences { routing: Routing::Directed, echo: false, also, history: 20 });
        for (query, said) in [
            ("topic=", "names no room"),
            ("topic=a&topic=b", "two rooms"),
            ("topic=a&space=a", "two rooms"),
            ("topic=a&routing=some", "`all` or `directed`"),
            ("topic=a&echo=maybe", "`1` or `0`"),
            ("topic=a&history=all", "as a number"),
            ("topic=a&also=mcp/reject,mcp/revoke", "`mcp/reject`, `mcp/withdraw`"),
        ] {
            let told = AddressQuery::read(query).err().unwrap().to_string();
            assert!(told.contains(said), "{query}: {told}");
        }
    }
}
