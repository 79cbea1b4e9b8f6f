//! Rooms in the tree: tools and prompts of participants stand at `room.NAME.PARTICIPANT.TOOL`, resources at `room:NAME.PARTICIPANT/URI`, and
//! calls find their way into the room.
//!
//! All rooms are one mount, for a mount has one segment and a call knows one owner; its tools have paths for names, as those of a gate
//! below. So lists, pins, rules, budgets, approvals and the record are the same as for every mount. Messages come from
//! `room_proto::calling`, and leave from the gate's own seat (`passage.rs`).
//!
//! Nothing goes in circles: parts of the gate are never asked for lists, seats in a room do not see this mount (`tree.rs`), and a
//! participant's offer of this gate's own tree loses what stands in rooms.

pub mod offers;
pub mod passage;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use banyan_model::Era;
use bytes::Bytes;
use config::resolved::{self, FamilySettings, MountedRooms, Transport};
use futures_util::future::BoxFuture;
use mcp_proto::catalog::Kind;
use mcp_proto::client::{Identity, Negotiated, own_token};
use mcp_proto::envelope::{Answer, error_object};
use mcp_proto::era::INITIALIZE;
use mcp_proto::json::{Object, quote};
use room_proto::name::Topic;
use room_proto::sitting::CallId;
use tokio::sync::{mpsc, oneshot};

use crate::mounted::offers::{Offers, SCHEME};
pub use crate::mounted::passage::Passage;
use call::tree::back::Back;
use call::tree::mount::Mount;
use call::tree::port::Family;
use call::tree::port::{NewConnection, Opens, OutgoingRequest, Owner, Upstream, UpstreamError, UpstreamTraits};
use call::words::node::Node;

/// Calls in a room's queue; further callers wait.
const WANTED: usize = 256;

/// The mounted rooms, as a server.
#[derive(Default)]
pub struct RoomMount {
    /// By name, which is a segment.
    rooms: RwLock<BTreeMap<String, Room>>,
    /// Number of calls so far.
    calls: AtomicU64,
}

/// A room with a seat of the gate.
struct Room {
    wanted: mpsc::Sender<RoomWork>,
    /// Offers of participants, by segment.
    offers: BTreeMap<String, Offers>,
}

/// Work for a room.
pub enum RoomWork {
    Call(Box<Wish>),
    Cancel(CallId),
}

/// A call to be made.
pub struct Wish {
    call: CallId,
    /// Called participant.
    to: String,
    method: &'static str,
    /// Raw params in the participant's form.
    params: Bytes,
    back: Option<Arc<Back>>,
    /// The caller's progress token.
    token: Option<Bytes>,
    reply: oneshot::Sender<Result<Answer, UpstreamError>>,
}

impl fmt::Debug for RoomMount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RoomMount")
    }
}

/// [`RoomMount`] for callers.
#[derive(Debug)]
struct RoomUpstream(Arc<RoomMount>);

impl Upstream for RoomUpstream {
    fn call<'a>(&'a self, out: &'a OutgoingRequest<'a>, back: Option<&'a Arc<Back>>) -> BoxFuture<'a, Result<Answer, UpstreamError>> {
        Box::pin(self.0.request(out, back))
    }

    /// Drops the notification: no server would hear it.
    fn notify<'a>(&'a self, _: &'a str, _: Bytes) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn is_lost(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn traits(&self) -> UpstreamTraits {
        UpstreamTraits { has_paths: true, ..UpstreamTraits::default() }
    }
}

/// Rooms as a mount.
pub struct RoomFamily(pub Arc<RoomMount>);

impl Family for RoomFamily {
    fn name(&self) -> &'static str {
        MountedRooms::FAMILY
    }

    fn opens(&self, mount: &Arc<resolved::Mount>) -> Option<Arc<dyn Opens>> {
        let Transport::Family(family) = &mount.transport else { return None };
        family.settings::<MountedRooms>().map(|_| Arc::new(RoomOpens(Arc::clone(&self.0))) as Arc<dyn Opens>)
    }
}

struct RoomOpens(Arc<RoomMount>);

impl Opens for RoomOpens {
    fn open<'a>(&'a self, _: &'a Arc<Mount>, _: Owner, _: Identity) -> BoxFuture<'a, Result<NewConnection, UpstreamError>> {
        let upstream: Box<dyn Upstream> = Box::new(RoomUpstream(Arc::clone(&self.0)));
        Box::pin(std::future::ready(Ok((upstream, RoomMount::negotiated()))))
    }

    fn kind(&self) -> &'static str {
        "rooms"
    }

    fn identity(&self) -> String {
        "rooms".to_owned()
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn part_of<'t>(&self, tool: &'t str) -> &'t str {
        whose(tool)
    }
}

impl RoomMount {
    /// Describes the mount, as a server describes itself.
    pub fn negotiated() -> Negotiated {
        Negotiated {
            // Participants speak without a handshake, in the words of that era.
            era: Era::Initialize,
            version: INITIALIZE[0].to_owned(),
            capabilities: Bytes::from_static(
                br#"{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}"#,
            ),
            server_info: Node::info(),
            instructions: None,
        }
    }

    /// Answers a request: lists at once, calls after the room's answer.
    pub async fn request(&self, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        if let Some(kind) = Kind::of_method(out.method) {
            return Ok(Answer::Result(self.list(kind)));
        }
        match out.method {
            "ping" => Ok(Answer::Result(Object::empty())),
            "prompts/get" => self.call(("prompts/get", Kind::Prompts), out, back).await,
            "resources/read" => self.call(("resources/read", Kind::Resources), out, back).await,
            "tools/call" => self.call(("tools/call", Kind::Tools), out, back).await,
            method => Ok(refused(-32601, &format!("participants of rooms offer tools, prompts and resources, and not `{method}`"))),
        }
    }

    async fn call(
        &self,
        (method, kind): (&'static str, Kind),
        out: &OutgoingRequest<'_>,
        back: Option<&Arc<Back>>,
    ) -> Result<Answer, UpstreamError> {
        let path = out.params.str(kind.key()).unwrap_or_default().into_owned();
        let gone = || UpstreamError::Unreachable(format!("nobody offers `{path}` any more: list again what there is"));
        let (wanted, to, name) = self.find(kind, &path).ok_or_else(gone)?;
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        // Two callers may want progress under one token.
        let (params, token) = own_token(&out.params.with(kind.key(), quote(&name).as_bytes()), call);
        let (reply, mut answer) = oneshot::channel();
        let cancel = back.map(|back| back.cancel.clone()).unwrap_or_default();
        let wish = Wish { call: CallId(call), to, method, params, back: back.cloned(), token, reply };
        wanted.send(RoomWork::Call(Box::new(wish))).await.map_err(|_| gone())?;
        let lost = || UpstreamError::Lost("the gate has lost its seat in the room".into());
        tokio::select! {
            answer = &mut answer => answer.unwrap_or_else(|_| Err(lost())),
            () = cancel.cancelled() => {
                // A room that is over has nothing left to cancel.
                drop(wanted.send(RoomWork::Cancel(CallId(call))).await);
                Err(UpstreamError::Cancelled)
            }
        }
    }

    /// Gives all offers of a kind, as the raw result of a list.
    fn list(&self, kind: Kind) -> Object {
        let rooms = self.rooms.read().unwrap_or_else(PoisonError::into_inner);
        let all = rooms.values().flat_map(|room| room.offers.values()).flat_map(|offers| offers.definitions(kind));
        let mut list = format!("{{\"{}\":[", kind.member()).into_bytes();
        for (place, raw) in all.enumerate() {
            list.extend_from_slice(if place == 0 { b"" } else { b"," });
            list.extend_from_slice(raw);
        }
        list.extend_from_slice(b"]}");
        Bytes::from(list).into()
    }

    /// Finds the room's queue, the participant, and the participant's own name for the offer.
    fn find(&self, kind: Kind, path: &str) -> Option<(mpsc::Sender<RoomWork>, String, String)> {
        let (room, who, local) = match kind {
            Kind::Prompts | Kind::Tools => {
                let (room, rest) = path.split_once('.')?;
                let (who, local) = rest.split_once('.')?;
                (room, who, local)
            }
            Kind::Resources | Kind::Templates => {
                let (place, uri) = path.strip_prefix(SCHEME)?.split_once('/')?;
                let (room, who) = place.split_once('.')?;
                (room, who, uri)
            }
        };
        let rooms = self.rooms.read().unwrap_or_else(PoisonError::into_inner);
        let room = rooms.get(room)?;
        let offers = room.offers.get(who)?;
        let name = match kind {
            Kind::Prompts | Kind::Tools => offers.own_name(kind, local)?,
            Kind::Resources | Kind::Templates => Some(local).filter(|uri| offers.has_resource(uri))?,
        };
        Some((room.wanted.clone(), offers.id().to_owned(), name.to_owned()))
    }

    /// Opens a room after the gate has sat down: work goes there from now on.
    fn open(&self, topic: &Topic) -> (mpsc::Sender<RoomWork>, mpsc::Receiver<RoomWork>) {
        let (wanted, queue) = mpsc::channel(WANTED);
        let room = Room { wanted: wanted.clone(), offers: BTreeMap::new() };
        self.rooms.write().unwrap_or_else(PoisonError::into_inner).insert(topic.as_str().to_owned(), room);
        (wanted, queue)
    }

    /// Closes a room, unless the gate has sat down anew; tells whether there were offers.
    fn close(&self, topic: &Topic, wanted: &mpsc::Sender<RoomWork>) -> bool {
        let mut rooms = self.rooms.write().unwrap_or_else(PoisonError::into_inner);
        let is_this = rooms.get(topic.as_str()).is_some_and(|room| room.wanted.same_channel(wanted));
        let closed = if is_this { rooms.remove(topic.as_str()) } else { None };
        closed.is_some_and(|room| !room.offers.is_empty())
    }

    /// Takes a participant's new offers of a kind; `false`: no change.
    fn offered(&self, topic: &Topic, id: &str, kind: Kind, definitions: &[Bytes]) -> bool {
        let segment = offers::segment(id);
        let mut rooms = self.rooms.write().unwrap_or_else(PoisonError::into_inner);
        let Some(room) = rooms.get_mut(topic.as_str()) else { return false };
        let offers = room.offers.entry(segment.as_str().to_owned()).or_insert_with(|| Offers::new(id));
        if offers.id() != id {
            // The first keeps its name, so that nobody takes another's place.
            if !definitions.is_empty() {
                tracing::warn!(room = topic.as_str(), participant = id, %segment, "another participant stands in the tree under this name");
            }
            return false;
        }
        let is_changed = offers.set(topic, &segment, kind, definitions);
        if offers.is_empty() {
            room.offers.remove(segment.as_str());
        }
        is_changed
    }
}

/// Gives the part of a tree name or URI that stands for a participant: room and participant.
pub fn whose(name: &str) -> &str {
    if let Some(uri) = name.strip_prefix(SCHEME) {
        return uri.split_once('/').map_or(uri, |(place, _)| place);
    }
    let mut dots = name.match_indices('.').map(|(at, _)| at);
    dots.nth(1).map_or(name, |at| &name[..at])
}

fn refused(code: i64, text: &str) -> Answer {
    Answer::Error(error_object(code, text, None))
}

#[cfg(test)]
mod tests;
