//! Rooms in the tree: what participants offer stands at `room.NAME.PARTICIPANT.TOOL`, and a call of it finds its way into the room.
//!
//! All rooms are one mount, for a mount has one segment and a call knows one owner; its tools have paths for names, as those of a gate below
//! have. So lists, pins, rules, budgets, approvals and the record are those of every mount. What is said in a room is decided in
//! `room_proto::calling` and sent from the gate's own seat (`passage.rs`).
//!
//! Nothing goes in circles: what is part of the gate is never asked for its tools, what sits in a room is not shown this mount (`tree.rs`),
//! and a participant that offers this gate's own tree has whatever stands there in a room left out.

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
use mcp_proto::client::{Identity, Negotiated, own_token};
use mcp_proto::envelope::{Answer, error_object};
use mcp_proto::era::INITIALIZE;
use mcp_proto::json::{Object, quote};
use room_proto::name::Topic;
use room_proto::sitting::CallId;
use tokio::sync::{mpsc, oneshot};

use crate::mounted::offers::Offers;
pub use crate::mounted::passage::Passage;
use call::tree::mount::Mount;
use call::tree::port::Family;
use call::tree::port::{Opened, Opens, Outgoing, Owner, Upstream, UpstreamError, UpstreamTraits};
use call::words::back::Back;
use call::words::node::Node;

/// What waits for one room; who calls more waits.
const WANTED: usize = 256;

/// The rooms that are mounted, as one server.
#[derive(Default)]
pub struct Mounted {
    /// By the names of rooms, which are segments.
    rooms: RwLock<BTreeMap<String, Room>>,
    /// How many calls there were.
    calls: AtomicU64,
}

/// One room in which the gate sits.
struct Room {
    wanted: mpsc::Sender<Wanted>,
    /// What participants offer, by their segments.
    offers: BTreeMap<String, Offers>,
}

/// What is wanted of a room.
pub enum Wanted {
    Call(Box<Wish>),
    Cancel(CallId),
}

/// A call that is to be made.
pub struct Wish {
    call: CallId,
    /// Whom it is for.
    to: String,
    /// The raw params, as whoever offers the tool takes them.
    params: Bytes,
    back: Option<Arc<Back>>,
    /// What the caller wants progress to be named by.
    token: Option<Bytes>,
    reply: oneshot::Sender<Result<Answer, UpstreamError>>,
}

impl fmt::Debug for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mounted")
    }
}

/// [`Mounted`] as callers know it.
#[derive(Debug)]
struct RoomUpstream(Arc<Mounted>);

impl Upstream for RoomUpstream {
    fn call<'a>(&'a self, out: &'a Outgoing<'a>, back: Option<&'a Arc<Back>>) -> BoxFuture<'a, Result<Answer, UpstreamError>> {
        Box::pin(self.0.request(out, back))
    }

    /// There is no server that would hear it.
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
pub struct RoomFamily(pub Arc<Mounted>);

impl Family for RoomFamily {
    fn name(&self) -> &'static str {
        MountedRooms::FAMILY
    }

    fn opens(&self, mount: &Arc<resolved::Mount>) -> Option<Arc<dyn Opens>> {
        let Transport::Family(family) = &mount.transport else { return None };
        family.settings::<MountedRooms>().map(|_| Arc::new(RoomOpens(Arc::clone(&self.0))) as Arc<dyn Opens>)
    }
}

struct RoomOpens(Arc<Mounted>);

impl Opens for RoomOpens {
    fn open<'a>(&'a self, _: &'a Arc<Mount>, _: Owner, _: Identity) -> BoxFuture<'a, Result<Opened, UpstreamError>> {
        let upstream: Box<dyn Upstream> = Box::new(RoomUpstream(Arc::clone(&self.0)));
        Box::pin(std::future::ready(Ok((upstream, Mounted::negotiated()))))
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

impl Mounted {
    /// What there is to say of it, as a server says it of itself.
    pub fn negotiated() -> Negotiated {
        Negotiated {
            // Participants speak without a handshake, in the words of that era.
            era: Era::Initialize,
            version: INITIALIZE[0].to_owned(),
            capabilities: Bytes::from_static(b"{\"tools\":{\"listChanged\":true}}"),
            server_info: Node::info(),
            instructions: None,
        }
    }

    /// Answers a request: lists at once, calls when they are answered in the room.
    pub async fn request(&self, out: &Outgoing<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        match out.method {
            "ping" => Ok(Answer::Result(Object::empty())),
            "tools/call" => self.call(out, back).await,
            "tools/list" => Ok(Answer::Result(self.list())),
            method => Ok(refused(-32601, &format!("participants of rooms offer tools, and not `{method}`"))),
        }
    }

    async fn call(&self, out: &Outgoing<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        let path = out.params.str("name").unwrap_or_default().into_owned();
        let gone = || UpstreamError::Unreachable(format!("nobody offers `{path}` any more: list the tools again"));
        let (wanted, to, name) = self.find(&path).ok_or_else(gone)?;
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        // Two callers may want progress under one token.
        let (params, token) = own_token(&out.params.with("name", quote(&name).as_bytes()), call);
        let (reply, mut answer) = oneshot::channel();
        let cancel = back.map(|back| back.cancel.clone()).unwrap_or_default();
        let wish = Wish { call: CallId(call), to, params, back: back.cloned(), token, reply };
        wanted.send(Wanted::Call(Box::new(wish))).await.map_err(|_| gone())?;
        let lost = || UpstreamError::Lost("the gate has lost its seat in the room".into());
        tokio::select! {
            answer = &mut answer => answer.unwrap_or_else(|_| Err(lost())),
            () = cancel.cancelled() => {
                // A room that is over has nothing left to cancel.
                drop(wanted.send(Wanted::Cancel(CallId(call))).await);
                Err(UpstreamError::Cancelled)
            }
        }
    }

    /// All that is offered, as the raw result of a list.
    fn list(&self) -> Object {
        let rooms = self.rooms.read().unwrap_or_else(PoisonError::into_inner);
        let all = rooms.values().flat_map(|room| room.offers.values()).flat_map(Offers::definitions);
        let mut list = b"{\"tools\":[".to_vec();
        for (place, raw) in all.enumerate() {
            list.extend_from_slice(if place == 0 { b"" } else { b"," });
            list.extend_from_slice(raw);
        }
        list.extend_from_slice(b"]}");
        Bytes::from(list).into()
    }

    /// The way to a room, whom to call there, and by which name it knows the tool.
    fn find(&self, path: &str) -> Option<(mpsc::Sender<Wanted>, String, String)> {
        let mut segments = path.splitn(3, '.');
        let (room, who, tool) = (segments.next()?, segments.next()?, segments.next()?);
        let rooms = self.rooms.read().unwrap_or_else(PoisonError::into_inner);
        let room = rooms.get(room)?;
        let offers = room.offers.get(who)?;
        Some((room.wanted.clone(), offers.id().to_owned(), offers.tool(tool)?.to_owned()))
    }

    /// The gate has sat down in a room: what is wanted of it goes there from now on.
    fn open(&self, topic: &Topic) -> (mpsc::Sender<Wanted>, mpsc::Receiver<Wanted>) {
        let (wanted, queue) = mpsc::channel(WANTED);
        let room = Room { wanted: wanted.clone(), offers: BTreeMap::new() };
        self.rooms.write().unwrap_or_else(PoisonError::into_inner).insert(topic.as_str().to_owned(), room);
        (wanted, queue)
    }

    /// The gate sits there no more, unless it has sat down anew. Whether anything was offered there.
    fn close(&self, topic: &Topic, wanted: &mpsc::Sender<Wanted>) -> bool {
        let mut rooms = self.rooms.write().unwrap_or_else(PoisonError::into_inner);
        let is_this = rooms.get(topic.as_str()).is_some_and(|room| room.wanted.same_channel(wanted));
        let closed = if is_this { rooms.remove(topic.as_str()) } else { None };
        closed.is_some_and(|room| !room.offers.is_empty())
    }

    /// A participant offers this from now on. `false`: that is what was known.
    fn offered(&self, topic: &Topic, id: &str, tools: &[Bytes]) -> bool {
        let segment = offers::segment(id);
        let offers = Offers::of(topic, id, &segment, tools);
        let mut rooms = self.rooms.write().unwrap_or_else(PoisonError::into_inner);
        let Some(room) = rooms.get_mut(topic.as_str()) else { return false };
        let before = room.offers.get(segment.as_str());
        if before.is_some_and(|before| before.id() != id) {
            // The first keeps its name, so that nobody takes another's place.
            if !offers.is_empty() {
                tracing::warn!(room = topic.as_str(), participant = id, %segment, "another participant stands in the tree under this name");
            }
            return false;
        }
        match (before.is_some(), offers.is_empty()) {
            (false, true) => false,
            (true, true) => room.offers.remove(segment.as_str()).is_some(),
            (_, false) => {
                let is_new = before != Some(&offers);
                room.offers.insert(segment.as_str().to_owned(), offers);
                is_new
            }
        }
    }
}

/// The part of a name in the tree by which a participant is known: its room and itself.
pub fn whose(name: &str) -> &str {
    let mut dots = name.match_indices('.').map(|(at, _)| at);
    dots.nth(1).map_or(name, |at| &name[..at])
}

fn refused(code: i64, text: &str) -> Answer {
    Answer::Error(error_object(code, text, None))
}

#[cfg(test)]
mod tests;
