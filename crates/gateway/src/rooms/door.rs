//! `GET /ws?topic=NAME`: a connection becomes a WebSocket, and its holder a participant (MCPx v0.1, 6.2). Whatever speaks against that is
//! said by HTTP, before. Who may come in is not decided here.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use mcp_proto::http1::Fields;
use room_proto::name::Topic;
use room_proto::room::{Also, Joining, Preferences, Routing};
use tokio::sync::oneshot;

use super::entry::NotEntered;
use super::guest;
use super::pass::{self, Held, Showing};
use super::{NotSeated, connection, handshake};
use crate::Inner;
use crate::downstream::door::Entered;
use crate::downstream::http::fields;
use crate::downstream::reply::{self, Payload};
use crate::trust::Party;

/// Whether `path` is this endpoint.
pub(crate) fn is_here(path: &str) -> bool {
    path == "/ws"
}

/// Takes somebody in, or says why not.
pub(crate) async fn handle(gateway: &Arc<Inner>, mut request: Request<Incoming>, party: Option<Arc<Party>>) -> Response<Payload> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (parts, _) = request.into_parts();
    enter(gateway, &parts, upgrade, party).await.unwrap_or_else(NotEntered::into_http)
}

async fn enter(
    gateway: &Arc<Inner>,
    parts: &Parts,
    upgrade: OnUpgrade,
    party: Option<Arc<Party>>,
) -> Result<Response<Payload>, NotEntered> {
    let accept = handshake::accept(parts)?;
    let asked = Asked::read(parts.uri.query().unwrap_or_default())?;
    let applied = gateway.trust.reapplied();
    let fields = match asked.token.filter(|_| gateway.config.load().rooms.query_token) {
        Some(token) => with_token(&fields(parts), parts, &token),
        None => fields(parts),
    };
    let guest = gateway.rooms.tickets.redeem(gateway, parts, &asked.topic).transpose().map_err(NotEntered::Ticket)?;
    let is_guest = guest.is_some();
    let showing = Showing { party, fields, topic: asked.topic, participant: asked.participant, guest };
    let entrant = pass::admit(gateway, &showing).await?;
    let joining = Joining {
        id: entrant.id.clone(),
        capabilities: entrant.capabilities.clone(),
        preferences: asked.preferences,
        expires: entrant.until.map(until),
        is_own: false,
    };
    let entered = entrant.entered.clone();
    let held = Held::new(gateway, showing, entrant, applied);
    seat(gateway, (joining, is_guest), entered, upgrade, held).await?;
    let mut response = reply::empty(StatusCode::SWITCHING_PROTOCOLS).into_http();
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if is_guest {
        // Browsers leave again where none of the protocols that they list is taken up.
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(guest::PROTOCOL));
    }
    Ok(response)
}

/// Ready when there is a seat, which a task of its own keeps from then on: whoever asked for it may go at any time.
async fn seat(
    gateway: &Arc<Inner>,
    (joining, is_person): (Joining, bool),
    entered: Entered,
    upgrade: OnUpgrade,
    held: Held,
) -> Result<(), NotSeated> {
    let (answer, answered) = oneshot::channel();
    let rooms = Arc::clone(&gateway.rooms);
    let settings = gateway.config.load().rooms.settings_of(held.topic()).clone();
    let serving = async move {
        match rooms.join(held.topic(), &settings, &joining, is_person).await {
            Ok(joined) => {
                let (who, topic, id, connection) = (&rooms.who, held.topic().clone(), joining.id, joined.id);
                who.came(&topic, &id, connection, entered);
                drop(answer.send(Ok(())));
                connection::serve(joined, upgrade, held).await;
                who.went(&topic, &id, connection);
            }
            Err(why) => drop(answer.send(Err(why))),
        }
    };
    tokio::spawn(gateway.rooms.open.track_future(serving));
    answered.await.unwrap_or(Err(NotSeated::Ending))
}

/// What stands in the address.
struct Asked {
    topic: Topic,
    preferences: Preferences,
    participant: Option<String>,
    token: Option<String>,
}

impl Asked {
    fn read(query: &str) -> Result<Self, NotEntered> {
        let (mut topic, mut participant, mut token, mut preferences) = (None, None, None, Preferences::default());
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let wrong = |choices: &str| NotEntered::Query(format!("`{key}` is {value:?}, and must be {choices}"));
            match (&*key, &*value) {
                ("topic", _) if topic.is_some() => {
                    return Err(NotEntered::Query("`topic` stands twice in the address: name one room".into()));
                }
                ("topic", name) => {
                    topic = Some(Topic::new(name).map_err(|why| NotEntered::Query(format!("`topic` names no room: {why}")))?)
                }
                ("routing", "all") => preferences.routing = Routing::All,
                ("routing", "directed") => preferences.routing = Routing::Directed,
                ("routing", _) => return Err(wrong("`all` or `directed`")),
                ("echo", "1" | "true") => preferences.echo = true,
                ("echo", "0" | "false") => preferences.echo = false,
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
        let topic = topic.ok_or_else(|| NotEntered::Query("the address names no room: connect to /ws?topic=NAME".into()))?;
        Ok(Self { topic, preferences, participant, token })
    }
}

/// The fields of a request whose token stands in its address. One in a field counts more.
fn with_token(fields: &Fields, parts: &Parts, token: &str) -> Fields {
    if fields.get("authorization").is_some() {
        return fields.clone();
    }
    let bearer = format!("Bearer {token}");
    let own = parts.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    Fields::new(own.chain([("authorization", bearer.as_bytes())]))
}

/// The same moment by the clock that is not set.
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
        let asked = Asked::read("topic=a%20b&routing=directed&echo=0&also=mcp/reject&history=20&participant=ann&x=y").ok().unwrap();
        assert_eq!((asked.topic.as_str(), asked.participant.as_deref()), ("a b", Some("ann")));
        let mut also = Also::NONE;
        assert!(also.ask("mcp/reject"));
        assert_eq!(asked.preferences, Preferences { routing: Routing::Directed, echo: false, also, history: 20 });
        for (query, said) in [
            ("", "/ws?topic=NAME"),
            ("topic=", "names no room"),
            ("topic=a&topic=b", "twice"),
            ("topic=a&routing=some", "`all` or `directed`"),
            ("topic=a&echo=maybe", "`1` or `0`"),
            ("topic=a&history=all", "as a number"),
            ("topic=a&also=mcp/reject,mcp/revoke", "`mcp/reject`, `mcp/withdraw`"),
        ] {
            let told = Asked::read(query).err().unwrap().to_string();
            assert!(told.contains(said), "{query}: {told}");
        }
    }
}
