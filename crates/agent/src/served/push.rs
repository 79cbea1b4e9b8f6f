//! Notifications of tasks by HTTP, to addresses of the clients' choice within those of the operator. Keeps no queue: a receiver that is away
//! misses states between two tries, and hears of the last. Reads no answer beyond its status.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use agent_proto::served::push::{PushName, PushWish};
use agent_proto::served::rejection::{ClientRefusal, RefusalReason};
use agent_proto::task::TaskState;
use banyan_model::Principal;
use call::words::cancel::{Cancel, Guard};
use door::entrance::Entrance;
use door::held::HeldEntry;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::{Client, redirect};
use runtime::tls::Connector;
use rustls::ClientConfig;
use tokio::sync::watch;

use crate::lookup::look_up;
use crate::served::shelf::TaskTurn;
use crate::served::streams::{StreamPlace, TaskStreams};
use crate::served::tasks::Tasks;
use crate::settings::section::{AgentSettings, PushReach, PushScope};

/// Field with the token of the client.
const TOKEN: &str = "x-a2a-notification-token";
/// Longest time for a try.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most wishes of a caller within a minute, each of which makes a client with TLS.
const MOST_A_MINUTE: u32 = 240;
const MINUTE: Duration = Duration::from_secs(60);
/// Waits before the next tries of a turn, which is given up after the last.
const AGAIN: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

/// Notifications of all tasks.
pub struct Pushes {
    pub entrance: Arc<Entrance>,
    pub connector: Arc<Connector>,
    /// Places and room: as many as for streams, and none of theirs.
    pub places: Arc<TaskStreams>,
    pub pace: Mutex<PushPace>,
}

/// Wishes of each caller within a minute.
#[derive(Default)]
pub struct PushPace {
    since: Option<Instant>,
    made: HashMap<Principal, u32>,
}

impl PushPace {
    /// Counts a wish of `owner` at `now`; `false`: one too many within a minute.
    fn admit(&mut self, owner: &Principal, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= MINUTE) {
            *self = Self { since: Some(now), made: HashMap::new() };
        }
        let made = self.made.entry(owner.clone()).or_default();
        *made = made.saturating_add(1);
        *made <= MOST_A_MINUTE
    }
}

/// A wish with its place and its way, before its task is known.
pub struct PreparedPush {
    entrance: Arc<Entrance>,
    place: Arc<StreamPlace>,
    wish: PushWish,
    /// Addresses open to the wish, for as long as the configuration says the same.
    reach: PushReach,
    client: Client,
}

/// A wish with the name of its task, before its notifications begin.
pub struct NamedPush {
    push: PreparedPush,
    name: PushName,
    /// The wish as its client reads it.
    written: String,
    stop: Cancel,
}

/// A wish of a task. Its end ends the notifications.
pub struct KeptPush {
    pub id: String,
    /// The wish as its client reads it.
    pub written: String,
    /// Bytes of the wish.
    pub size: usize,
    #[expect(dead_code, reason = "ends the notifications when dropped")]
    stop: Guard,
}

/// Notifications of one wish.
struct TaskNotices {
    push: PreparedPush,
    owner: Principal,
    task: String,
    tasks: Arc<Tasks>,
    state: watch::Receiver<TaskState>,
}

/// Outcome of a try.
enum TryOutcome {
    /// The receiver has answered, or the task is gone: nothing is tried again.
    Over,
    Failed,
}

impl KeptPush {
    /// Makes a wish as it is kept. `stop` fires at its end.
    pub fn new(id: String, written: String, size: usize, stop: &Cancel) -> Self {
        Self { id, written, size, stop: stop.clone().drop_guard() }
    }
}

impl Pushes {
    /// Finds a place and a way for the notifications of `owner`, before anything begins.
    pub fn prepare(&self, owner: &Principal, wish: PushWish) -> Result<PreparedPush, ClientRefusal> {
        let scope = scope(&self.entrance);
        if scope.is_empty() {
            let text = "This gate sends no push notifications: follow the task by a stream, or ask for it.";
            return Err(ClientRefusal::new(RefusalReason::PushNotificationNotSupported, text));
        }
        let reach = scope.reach(&wish.url).ok_or_else(|| {
            let text =
                "This gate sends no notifications to the `url`: whoever runs it lists the addresses in `push` of its section `[agent]`.";
            ClientRefusal::new(RefusalReason::InvalidParams, text)
        })?;
        if !self.pace.lock().unwrap_or_else(PoisonError::into_inner).admit(owner, Instant::now()) {
            let text = "Too many push notification configs were made within a minute: try again in a minute.";
            return Err(ClientRefusal::new(RefusalReason::Crowded, text));
        }
        let place = Arc::new(self.places.place(owner)?);
        let builder = Client::builder().redirect(redirect::Policy::none()).no_proxy().timeout(PATIENCE).pool_max_idle_per_host(0);
        let builder = match self.connector.tls() {
            Ok(tls) => builder.tls_backend_preconfigured(ClientConfig::clone(&tls)),
            Err(_) => builder,
        };
        let client =
            builder.dns_resolver(Arc::new(ReachedNames { reach: reach.clone(), place: Arc::clone(&place) })).build().map_err(|error| {
                tracing::error!(%error, "notifications of a task can't be sent");
                ClientRefusal::new(RefusalReason::Crowded, "This gate can't send notifications now; try again later.")
            })?;
        Ok(PreparedPush { entrance: Arc::clone(&self.entrance), place, wish, reach, client })
    }
}

impl PreparedPush {
    /// Names the wish for its task, and gives what the task keeps. A wish without an id of its own has the id of the task.
    pub fn named(self, task: &str) -> (KeptPush, NamedPush) {
        let name = PushName { task: task.to_owned(), id: self.wish.id.clone().unwrap_or_else(|| task.to_owned()) };
        let (written, stop) = (self.wish.write(&name), Cancel::default());
        let size = self.wish.size() + written.len() + name.id.len();
        let kept = KeptPush::new(name.id.clone(), written.clone(), size, &stop);
        (kept, NamedPush { push: self, name, written, stop })
    }
}

impl NamedPush {
    /// Begins the notifications, and gives the wish as its client reads it.
    pub fn begin(self, tasks: &Arc<Tasks>, owner: &Principal, held: HeldEntry, state: watch::Receiver<TaskState>) -> String {
        let Self { push, name, written, stop } = self;
        let notices = TaskNotices { push, owner: owner.clone(), task: name.task.clone(), tasks: Arc::clone(tasks), state };
        let tasks = Arc::clone(tasks);
        tokio::spawn(async move {
            let told = tokio::select! {
                biased;
                _ = held.over() => None,
                () = stop.cancelled() => None,
                told = notices.follow() => told,
            };
            if told.is_none() {
                tasks.end_push(&name, &stop);
            }
        });
        written
    }
}

impl TaskNotices {
    /// Tells each turn, to the end of the task. `None`: the task is gone, or nothing may be sent any more.
    async fn follow(mut self) -> Option<()> {
        let first = self.tasks.turn(&self.owner, &self.task).ok()?;
        let mut told = (first.state == TaskState::Working).then_some(first);
        while !told.is_some_and(|told| told.state.is_final()) {
            self.moved_from(told).await?;
            told = Some(self.tell().await?);
        }
        Some(())
    }

    /// Waits for another turn than `told`. Steps are none.
    async fn moved_from(&mut self, told: Option<TaskTurn>) -> Option<()> {
        loop {
            self.state.borrow_and_update();
            if Some(self.tasks.turn(&self.owner, &self.task).ok()?) != told {
                return Some(());
            }
            self.state.changed().await.ok()?;
        }
    }

    /// Tells the task as it is until the receiver has it, or is given up; a turn meanwhile is tried as often as the first. Gives the last turn.
    async fn tell(&mut self) -> Option<TaskTurn> {
        let mut waits = AGAIN.into_iter();
        loop {
            let (turn, outcome) = self.try_once().await?;
            let (TryOutcome::Failed, Some(wait)) = (outcome, waits.next()) else { return Some(turn) };
            if tokio::time::timeout(wait, self.moved_from(Some(turn))).await.is_ok() {
                waits = AGAIN.into_iter();
            }
        }
    }

    /// Sends the task as it is now. `None`: there is nobody to send it to any more.
    async fn try_once(&self) -> Option<(TaskTurn, TryOutcome)> {
        let PreparedPush { entrance, place, wish, reach, client } = &self.push;
        let _room = place.room(self.tasks.size(&self.owner, &self.task).ok()?).await?;
        // The operator may have taken the address away meanwhile, or opened less of the network to it.
        scope(entrance).reach(&wish.url).filter(|now| now == reach)?;
        let (task, turn) = self.tasks.at_turn(&self.owner, &self.task).ok()?;
        let mut request = client.post(wish.url.clone()).header(CONTENT_TYPE, "application/json");
        for (field, value) in [(TOKEN, wish.token.clone()), (AUTHORIZATION.as_str(), wish.authorization())] {
            if let Some(value) = value {
                request = request.header(field, value);
            }
        }
        let sent = request.body(format!("{{\"task\":{}}}", task.write())).send().await;
        let status = match sent {
            Ok(answer) => answer.status(),
            Err(error) => {
                tracing::debug!(error = %error.without_url(), "a notification of a task did not arrive");
                return Some((turn, TryOutcome::Failed));
            }
        };
        let is_worth_another = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
        Some((turn, if is_worth_another { TryOutcome::Failed } else { TryOutcome::Over }))
    }
}

/// Addresses of the configuration in force.
fn scope(entrance: &Entrance) -> PushScope {
    entrance.gate.config.load().values.get::<AgentSettings>().map(|settings| settings.push.clone()).unwrap_or_default()
}

/// Addresses of names, within a reach.
struct ReachedNames {
    reach: PushReach,
    /// Place of the notifications, which a look-up holds to its real end.
    place: Arc<StreamPlace>,
}

impl Resolve for ReachedNames {
    fn resolve(&self, name: Name) -> Resolving {
        let (reach, place) = (self.reach.clone(), Arc::clone(&self.place));
        Box::pin(async move {
            let permits = place.lookup().await.ok_or("the gate ends")?;
            // No thread can be taken from a look-up that a patient name server holds: others wait for their permits elsewhere.
            look_up(&name, |ip| reach.allows(ip), (permits, place)).await
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use banyan_model::PrincipalKind;
    use config::Sections;
    use config::secret::SystemSources;
    use url::Url;

    use super::*;
    use crate::settings::section::AgentSection;

    #[test]
    fn wishes_of_a_caller_have_a_pace() {
        let (mut pace, now) = (PushPace::default(), Instant::now());
        let owner = |name: &str| Principal::new(PrincipalKind::Token, name);
        assert_eq!((0..1000).filter(|_| pace.admit(&owner("a"), now)).count(), MOST_A_MINUTE as usize);
        assert!(pace.admit(&owner("b"), now) && !pace.admit(&owner("a"), now + MINUTE / 2) && pace.admit(&owner("a"), now + MINUTE));
    }

    #[tokio::test]
    async fn a_name_leads_no_further_than_its_reach() {
        let place = Arc::new(Arc::new(TaskStreams::default()).place(&Principal::new(PrincipalKind::Token, "a")).unwrap());
        let resolve = |reach| ReachedNames { reach, place: Arc::clone(&place) }.resolve("localhost".parse().unwrap());
        let scope = |entry: &str| {
            let text = format!("[agent]\nurl = \"https://gate.example\"\npush = [\"{entry}\"]\n");
            let parsed = Sections::default().with(AgentSection).parse(&text, Path::new("banyan.toml"), &SystemSources).unwrap();
            parsed.values.get::<AgentSettings>().unwrap().push.clone()
        };
        let refused = resolve(scope("*").reach(&Url::parse("https://a.example").unwrap()).unwrap()).await.err().unwrap();
        assert!(refused.to_string().contains("out of reach"), "{refused}");
        let listed = Url::parse("http://localhost:8000").unwrap();
        assert!(resolve(scope("http://localhost:8000").reach(&listed).unwrap()).await.unwrap().all(|address| address.ip().is_loopback()));
    }
}
