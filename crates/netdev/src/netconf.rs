//! A device over NETCONF: a kept session, opened again after a break. Reads datastores; tries, commits, confirms and cancels
//! changes; receives events over a session of their own. Decides nothing about them.

mod candidate;
mod event;
mod session;

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use equipment::DeviceSettings;
use net_proto::fault::{Circumstances, Fault, Operation, Trouble};
use net_proto::netconf::{Datastore, NetconfCapabilities, NetconfRequest, NodePath, XmlTree};
use tokio::sync::{Mutex, MutexGuard};

pub(crate) use self::event::EventSession;
use self::session::{NetconfReply, NetconfSession, REPLY};
use crate::login::Login;
use crate::room::{self, KeptSession};

/// Port of NETCONF over SSH (RFC 6242).
pub(crate) const PORT: u16 = 830;
/// Longest time for a first look at a device, and the rest of the time for a slow device.
const FIRST: Duration = Duration::from_millis(1_500);
const SLOW: Duration = Duration::from_secs(3);
/// Longest time to wait for the session.
const PATIENCE: Duration = Duration::from_secs(60);

/// A device behind NETCONF.
#[derive(Clone)]
pub(crate) struct Netconf {
    login: Login,
    timeout: Duration,
    kept: Arc<KeptNetconf>,
    /// The last hello of the device.
    hello: Arc<RwLock<Option<Arc<NetconfCapabilities>>>>,
}

impl std::fmt::Debug for Netconf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Netconf").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// The kept session.
type KeptNetconf = Mutex<Option<NetconfSession>>;

impl KeptSession for KeptNetconf {
    fn give_way(&self) -> bool {
        let Ok(mut turn) = self.try_lock() else { return false };
        turn.take_if(|session| !session.holds_locks).is_some()
    }
}

/// The turn of one caller at the session. Whoever confirms or restores while others have theirs has a session without any other user.
enum SessionTurn<'a> {
    Kept(MutexGuard<'a, Option<NetconfSession>>),
    Own(Box<Option<NetconfSession>>),
}

impl Deref for SessionTurn<'_> {
    type Target = Option<NetconfSession>;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Kept(session) => session,
            Self::Own(session) => session,
        }
    }
}

impl DerefMut for SessionTurn<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Kept(session) => session,
            Self::Own(session) => session,
        }
    }
}

impl Netconf {
    pub(crate) fn new(settings: &DeviceSettings, password: Option<String>) -> Self {
        let timeout = Duration::from_secs(settings.command_timeout);
        let kept: Arc<KeptNetconf> = Arc::default();
        let weak: Weak<KeptNetconf> = Arc::downgrade(&kept);
        room::enter(weak);
        Self { login: Login::new(settings, password, PORT), timeout, kept, hello: Arc::default() }
    }

    /// The last hello of the device; `None`: the device was never reached.
    pub(crate) fn hello(&self) -> Option<Arc<NetconfCapabilities>> {
        self.hello.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the first hello: a short time, and a longer time where the device speaks at all.
    pub(crate) async fn look(&self) {
        let mut reaching = std::pin::pin!(self.reach());
        if tokio::time::timeout(FIRST, &mut reaching).await.is_err() && self.login.has_spoken() {
            drop(tokio::time::timeout(self.timeout.min(SLOW), reaching).await);
        }
    }

    /// Asks for the first hello, where none came yet.
    pub(crate) async fn greeted(&self) -> Result<(), Fault> {
        if self.hello().is_none() { self.reach().await.map(drop) } else { Ok(()) }
    }

    /// The hello of a standing session.
    pub(crate) async fn reach(&self) -> Result<Arc<NetconfCapabilities>, Fault> {
        let mut turn = self.turn().await?;
        self.opened(&mut turn).await
    }

    /// Data below a path: of the running configuration, or with the state of the device.
    pub(crate) async fn data(&self, path: &str, with_state: bool) -> Result<(XmlTree, Arc<NetconfCapabilities>), Fault> {
        let mut turn = self.turn().await?;
        let device = self.opened(&mut turn).await?;
        let filter = NodePath::read(path, &device)?.filter();
        let filter = filter.as_deref();
        let request =
            if with_state { NetconfRequest::Get { filter } } else { NetconfRequest::GetConfig { source: Datastore::Running, filter } };
        let tree = self.tree(&mut turn, &request).await.map_err(|fault| if fault.path.is_some() { fault } else { fault.at(path) })?;
        Ok((tree, device))
    }

    /// The running configuration in normal form.
    pub(crate) async fn running(&self) -> Result<String, Fault> {
        let mut turn = self.turn().await?;
        let request = NetconfRequest::GetConfig { source: Datastore::Running, filter: None };
        self.tree(&mut turn, &request).await.map(|tree| tree.text())
    }

    /// A session of its own, whose messages have at most `limit` bytes.
    async fn session(&self, limit: usize) -> Result<NetconfSession, Fault> {
        let connection = self.login.session().await?;
        let greeted = tokio::time::timeout(self.timeout, NetconfSession::greet(connection, limit)).await;
        let session = greeted.unwrap_or(Err(Trouble::NoReply { after: self.timeout }))?;
        *self.hello.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&session.device));
        Ok(session)
    }

    async fn turn(&self) -> Result<SessionTurn<'_>, Fault> {
        if room::is_settling() {
            return Ok(self.kept.try_lock().map_or_else(|_| SessionTurn::Own(Box::default()), SessionTurn::Kept));
        }
        tokio::time::timeout(PATIENCE, self.kept.lock()).await.map(SessionTurn::Kept).map_err(|_| Trouble::Busy.into())
    }

    async fn tree(&self, turn: &mut SessionTurn<'_>, request: &NetconfRequest<'_>) -> Result<XmlTree, Fault> {
        let replied = self.ask(turn, Operation::Get, request).await?;
        XmlTree::read(&replied.message).map_err(|reason| Trouble::Garbled { reason }.into())
    }

    /// The hello of the kept session, or of a new one.
    async fn opened(&self, turn: &mut SessionTurn<'_>) -> Result<Arc<NetconfCapabilities>, Fault> {
        if let Some(session) = turn.as_ref() {
            return Ok(Arc::clone(&session.device));
        }
        let session = self.session(REPLY).await?;
        let device = Arc::clone(&session.device);
        **turn = Some(session);
        Ok(device)
    }

    /// Asks over the kept session; whoever only reads or locks, and finds this session gone, asks over another one, once.
    async fn ask(&self, turn: &mut SessionTurn<'_>, operation: Operation, request: &NetconfRequest<'_>) -> Result<NetconfReply, Fault> {
        let is_harmless = matches!(operation, Operation::Get | Operation::Lock);
        let may_repeat = is_harmless && turn.as_ref().is_some_and(|session| !session.holds_locks);
        self.opened(turn).await?;
        let replied = match self.exchange(turn, request).await {
            Err(Trouble::SessionLost { .. }) if may_repeat => {
                self.opened(turn).await?;
                self.exchange(turn, request).await?
            }
            replied => replied?,
        };
        judged(operation, replied)
    }

    /// A session in the middle of an exchange is of no use to anybody else, so none is kept meanwhile.
    async fn exchange(&self, turn: &mut SessionTurn<'_>, request: &NetconfRequest<'_>) -> Result<NetconfReply, Trouble> {
        let mut session = turn.take().ok_or(Trouble::Busy)?;
        // A large commit may take longer than other requests, and as long as the window leaves.
        let window = if let NetconfRequest::ConfirmedCommit { seconds, .. } = request { *seconds } else { 0 };
        let patience = self.timeout.max(Duration::from_secs(window.into()));
        let replied = session.ask(request, patience).await?;
        **turn = Some(session);
        Ok(replied)
    }
}

/// Reply without a refusal.
fn judged(operation: Operation, replied: NetconfReply) -> Result<NetconfReply, Fault> {
    let refusal = replied.reply.errors.iter().find(|error| error.severity != "warning");
    refusal.map_or(Ok(()), |error| Err(Fault::from_netconf(operation, error, &Circumstances::default())))?;
    if !matches!(operation, Operation::Get) && !replied.reply.is_ok {
        return Err(Trouble::Garbled { reason: "a reply without `<ok/>`".to_owned() }.into());
    }
    Ok(replied)
}
