//! Event streams of tasks: the task first, then each change of its state, and its artifact before its end. Changes no task, admits nobody.
//!
//! A stream keeps no queue: whoever reads slowly misses states between two looks, and never the last.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use agent_proto::served::written::ServedTask;
use agent_proto::task::TaskState;
use banyan_model::Principal;
use bytes::Bytes;
use call::words::pour::BrokenOff;
use door::held::HeldEntry;
use http_body::{Body, Frame};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit, mpsc, watch};
use tokio::time::timeout;

use crate::served::running::RunningRequest;
use crate::served::shelf::TaskTurn;
use crate::served::tasks::Tasks;
use crate::translated::form::AnswerForm;

/// Most streams of a caller, and of all.
const MOST_OF_CALLER: usize = 64;
const MOST: usize = 1_024;
/// Most bytes of tasks and events that all streams hold at a time, and those of a caller, in KiB.
const ROOM: usize = 64 << 10;
const ROOM_OF_CALLER: usize = ROOM / 4;
/// Most look-ups of names at a time, and those of a caller: each takes a thread for as long as a name server likes.
const LOOKUPS: usize = 8;
const LOOKUPS_OF_CALLER: usize = 2;
/// Copies of a task in the making of its events: the task, its parts, the event.
const COPIES: usize = 3;
/// Bytes handed to a connection at a time.
const PIECE: usize = 64 << 10;
/// Patience with a client that does not read, and time more for each piece of an event.
const STALLED: Duration = Duration::from_secs(30);
const PER_PIECE: Duration = Duration::from_millis(250);
/// Time without an event before a comment shows whether the client is there.
const SILENCE: Duration = Duration::from_secs(15);

/// All streams.
pub struct TaskStreams {
    open: Mutex<HashMap<Principal, CallerStreams>>,
    room: Semaphore,
    lookups: Arc<Semaphore>,
    /// Time for a client to read an event before it is given up, and more for each piece.
    patience: Duration,
    per_piece: Duration,
}

/// Streams of a caller.
struct CallerStreams {
    count: usize,
    room: Arc<Semaphore>,
    lookups: Arc<Semaphore>,
}

/// Place of an open stream, until dropped.
pub struct StreamPlace {
    streams: Arc<TaskStreams>,
    owner: Principal,
    /// Room of the owner.
    own: Arc<Semaphore>,
    own_lookups: Arc<Semaphore>,
}

/// A task to be followed.
pub struct FollowedTask {
    pub id: String,
    pub tasks: Arc<Tasks>,
    pub state: watch::Receiver<TaskState>,
    /// Admission of the client, without which its stream ends.
    pub held: HeldEntry,
    /// Raw id of the JSON-RPC request; `None` over HTTP+JSON.
    pub request: Option<Bytes>,
    /// Form of events in another binding than A2A.
    pub form: Option<Arc<AnswerForm>>,
    /// MCP: the request under way, cancelled with its stream.
    pub running: Option<RunningRequest>,
}

/// Body of a stream.
pub struct StreamedBody(mpsc::Receiver<Bytes>);

impl Body for StreamedBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

impl Default for TaskStreams {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            room: Semaphore::new(ROOM),
            lookups: Arc::new(Semaphore::new(LOOKUPS)),
            patience: STALLED,
            per_piece: PER_PIECE,
        }
    }
}

impl TaskStreams {
    /// Takes a place for a stream of `owner`: before its call begins, which a refusal afterwards would leave running.
    pub fn place(self: &Arc<Self>, owner: &Principal) -> Result<StreamPlace, ClientRefusal> {
        let mut open = self.lock();
        let own = open.get(owner).map_or(0, |own| own.count);
        if own >= MOST_OF_CALLER || open.values().map(|one| one.count).sum::<usize>() >= MOST {
            return Err(ClientRefusal::new(RefusalReason::Crowded, "Too many streams are open: end one, or ask for the task instead."));
        }
        let of_caller = || {
            let [room, lookups] = [ROOM_OF_CALLER, LOOKUPS_OF_CALLER].map(|most| Arc::new(Semaphore::new(most)));
            CallerStreams { count: 0, room, lookups }
        };
        let own = open.entry(owner.clone()).or_insert_with(of_caller);
        own.count += 1;
        Ok(StreamPlace {
            streams: Arc::clone(self),
            owner: owner.clone(),
            own: Arc::clone(&own.room),
            own_lookups: Arc::clone(&own.lookups),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Principal, CallerStreams>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(own) = open.get_mut(&self.owner) {
            own.count -= 1;
            if own.count == 0 {
                open.remove(&self.owner);
            }
        }
    }
}

impl StreamPlace {
    /// Opens the stream of a task.
    pub fn open(self, followed: FollowedTask) -> StreamedBody {
        let FollowedTask { id, tasks, state, held, request, form, running } = followed;
        let (pieces, body) = mpsc::channel(1);
        let form = form.map_or(EventForm::A2a(request), EventForm::Translated);
        tokio::spawn(async move {
            let _running = running;
            let gone = pieces.clone();
            tokio::select! {
                biased;
                _ = held.over() => {}
                () = gone.closed() => {}
                _ = self.follow(&id, &tasks, state, &form, &pieces) => {}
            }
        });
        StreamedBody(body)
    }

    /// Sends a task and its changes, to its end or to a state that waits for somebody; `None`: the client does not read.
    async fn follow(
        &self,
        id: &str,
        tasks: &Tasks,
        mut state: watch::Receiver<TaskState>,
        form: &EventForm,
        pieces: &mpsc::Sender<Bytes>,
    ) -> Option<()> {
        let seen = *state.borrow_and_update();
        let whole = |task: &ServedTask, evidence: Option<&str>| {
            let evidence = evidence.filter(|_| matches!(form, EventForm::A2a(_)));
            let ended = evidence.map(|line| task.status_update(Some(line)));
            std::iter::once(format!("{{\"task\":{}}}", task.write())).chain(ended).collect()
        };
        let mut at = self.show(id, tasks, form, pieces, whole).await?;
        let mut is_over = seen.is_final() || at.is_final();
        while !is_over {
            tokio::select! {
                changed = state.changed() => changed.ok()?,
                () = tokio::time::sleep(SILENCE) => {
                    if let Some(comment) = form.silence() {
                        self.send(pieces, comment.into()).await?;
                    }
                    continue;
                }
            }
            state.borrow_and_update();
            at = self.show(id, tasks, form, pieces, |task, evidence| form.changes(task, evidence)).await?;
            is_over = at.is_final() || at.is_waiting() && form.tells_waiting();
        }
        Some(())
    }

    /// Sends events of a task as it is now, and gives its state.
    async fn show(
        &self,
        id: &str,
        tasks: &Tasks,
        form: &EventForm,
        pieces: &mpsc::Sender<Bytes>,
        events: impl Fn(&ServedTask, Option<&str>) -> Vec<String>,
    ) -> Option<TaskState> {
        let _room = self.room(tasks.size(&self.owner, id).ok()?).await?;
        let (task, turn) = tasks.at_turn(&self.owner, id).ok()?;
        let evidence = tasks.evidence(&self.owner, id).filter(|_| task.state.is_final());
        for raw in events(&task, evidence.as_deref()) {
            if let Some(event) = form.event(&raw, &task, turn) {
                self.send(pieces, event).await?;
            }
        }
        Some(task.state)
    }

    /// Waits for room for the events of a task of `bytes`: for no longer than the streams before take, each of which has a deadline.
    pub async fn room(&self, bytes: usize) -> Option<(SemaphorePermit<'_>, SemaphorePermit<'_>)> {
        let size = u32::try_from((COPIES * bytes / 1024 + 1).min(ROOM_OF_CALLER)).ok()?;
        Some((self.own.acquire_many(size).await.ok()?, self.streams.room.acquire_many(size).await.ok()?))
    }

    /// Waits for the permits of a look-up, to be held to its real end.
    pub async fn lookup(&self) -> Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)> {
        let own = Arc::clone(&self.own_lookups).acquire_owned().await.ok()?;
        Some((own, Arc::clone(&self.streams.lookups).acquire_owned().await.ok()?))
    }

    /// Hands an event to the connection, piece by piece, all within one deadline.
    async fn send(&self, pieces: &mpsc::Sender<Bytes>, event: Vec<u8>) -> Option<()> {
        let mut left = Bytes::from(event);
        let count = u32::try_from(left.len() / PIECE).ok()?;
        let TaskStreams { patience, per_piece, .. } = &*self.streams;
        let reading = async {
            while !left.is_empty() {
                let piece = left.split_to(left.len().min(PIECE));
                // A copy, so that what the connection keeps is no longer than it looks.
                pieces.send(Bytes::copy_from_slice(&piece)).await.ok()?;
            }
            Some(())
        };
        timeout(patience.saturating_add(per_piece.saturating_mul(count)), reading).await.ok()?
    }
}

/// Form of the events of a stream.
enum EventForm {
    /// With the raw id of a JSON-RPC request, or bare over HTTP+JSON.
    A2a(Option<Bytes>),
    Translated(Arc<AnswerForm>),
}

impl EventForm {
    /// Writes an event; `None`: the binding has no such event.
    fn event(&self, raw: &str, task: &ServedTask, turn: TaskTurn) -> Option<Vec<u8>> {
        match self {
            Self::A2a(request) => Some(event(request.as_ref(), raw).into_bytes()),
            Self::Translated(form) => {
                let is_end = task.state.is_final() || task.state.is_waiting() && form.tells_waiting();
                form.event(raw, turn.count, is_end.then_some(task))
            }
        }
    }

    /// Tells if a stream may end where the work waits.
    fn tells_waiting(&self) -> bool {
        match self {
            Self::A2a(_) => true,
            Self::Translated(form) => form.tells_waiting(),
        }
    }

    /// Writes a change of a task. A translated answer comes whole.
    fn changes(&self, task: &ServedTask, evidence: Option<&str>) -> Vec<String> {
        match self {
            Self::Translated(_) if task.state.is_final() || task.state.is_waiting() => vec![format!("{{\"task\":{}}}", task.write())],
            Self::A2a(_) | Self::Translated(_) => task.updates(evidence),
        }
    }

    /// Bytes that show if the client is there; `None`: the binding has none.
    fn silence(&self) -> Option<&'static str> {
        match self {
            Self::Translated(form) if form.kind(true) != "text/event-stream" => None,
            Self::A2a(_) | Self::Translated(_) => Some(":\n\n"),
        }
    }
}

/// Writes an event. Line ends stand in raw JSON between values alone, where a space is as good.
fn event(request: Option<&Bytes>, raw: &str) -> String {
    let raw = raw.replace(['\n', '\r'], " ");
    match request {
        Some(id) => format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{raw}}}\n\n", String::from_utf8_lossy(id)),
        None => format!("data: {raw}\n\n"),
    }
}

#[cfg(test)]
mod tests {
    use banyan_model::PrincipalKind;

    use super::*;

    #[test]
    fn streams_of_a_caller_and_of_all_are_bounded() {
        let streams = Arc::new(TaskStreams::default());
        let owner = |name: usize| Principal::new(PrincipalKind::Token, name.to_string());
        let mut places: Vec<_> = (0..MOST_OF_CALLER).map(|_| streams.place(&owner(0)).unwrap()).collect();
        assert_eq!(streams.place(&owner(0)).err().map(|refused| refused.kind), Some(RefusalReason::Crowded));
        places.extend((MOST_OF_CALLER..MOST).map(|name| streams.place(&owner(name)).unwrap()));
        assert!(streams.place(&owner(MOST)).is_err());
        places.clear();
        assert!(streams.lock().is_empty());
    }

    #[tokio::test]
    async fn a_client_that_stops_reading_is_given_up() {
        let streams = Arc::new(TaskStreams { patience: Duration::from_millis(20), ..TaskStreams::default() });
        let place = streams.place(&Principal::new(PrincipalKind::Token, "a")).unwrap();
        let (pieces, mut body) = mpsc::channel(1);
        assert_eq!(place.send(&pieces, " ".repeat(3 * PIECE).into()).await, None);
        assert_eq!(body.try_recv().map(|piece| piece.len()), Ok(PIECE));
    }

    #[tokio::test]
    async fn a_client_that_trickles_is_given_up_too() {
        let patience = Duration::from_millis(20);
        let streams = Arc::new(TaskStreams { patience, per_piece: Duration::ZERO, ..TaskStreams::default() });
        let place = streams.place(&Principal::new(PrincipalKind::Token, "a")).unwrap();
        let (pieces, mut body) = mpsc::channel(1);
        let trickle = async {
            loop {
                tokio::time::sleep(patience / 2).await;
                body.recv().await;
            }
        };
        tokio::select! {
            sent = place.send(&pieces, " ".repeat(64 * PIECE).into()) => assert_eq!(sent, None),
            () = trickle => {}
        }
    }

    #[tokio::test]
    async fn a_caller_leaves_room_for_others() {
        let streams = Arc::new(TaskStreams::default());
        let place = |name: &str| streams.place(&Principal::new(PrincipalKind::Token, name)).unwrap();
        let (greedy, second, other) = (place("a"), place("a"), place("b"));
        let taken = greedy.room(usize::MAX / 8).await.unwrap();
        assert!(timeout(Duration::ZERO, second.room(1)).await.is_err());
        assert!(other.room(1 << 20).await.is_some());
        drop(taken);
        assert!(second.room(1).await.is_some());
        assert_eq!(streams.room.available_permits(), ROOM);
    }

    #[tokio::test]
    async fn slow_names_of_a_caller_hold_up_no_other() {
        let streams = Arc::new(TaskStreams::default());
        let place = |name: usize| streams.place(&Principal::new(PrincipalKind::Token, name.to_string())).unwrap();
        let places: Vec<_> = (0..=LOOKUPS).map(place).collect();
        let again = place(0);
        let mut permits = Vec::new();
        for _ in 0..LOOKUPS_OF_CALLER {
            permits.push(places[0].lookup().await.unwrap());
        }
        assert!(timeout(Duration::ZERO, again.lookup()).await.is_err(), "another place of the same caller waits");
        for other in &places[1..=LOOKUPS - LOOKUPS_OF_CALLER] {
            permits.push(timeout(Duration::ZERO, other.lookup()).await.unwrap().unwrap());
        }
        assert!(timeout(Duration::ZERO, places[LOOKUPS].lookup()).await.is_err(), "all wait");
        permits.pop();
        assert!(places[LOOKUPS].lookup().await.is_some());
    }

    #[test]
    fn an_event_is_a_line_whatever_a_tool_sent() {
        assert_eq!(event(None, "{\"a\":\r\n1}"), "data: {\"a\":  1}\n\n");
        assert_eq!(event(Some(&Bytes::from_static(b"7")), "{}"), "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n");
    }
}
