//! Events of a device over NETCONF: received over a session of their own from the first reader on, and again after a break. Does not know MCP.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use mcp_server::subject;
use net_proto::fault::{Fault, Trouble};
use net_proto::log::LogMessage;
use net_proto::netconf::{EventPlace, NetconfEvent};
use net_proto::redact::Redactor;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::{BYTES, Inbox, arrived};
use crate::clock::{now, written};
use crate::netconf::{EventSession, Netconf};

/// Events kept for readers.
const EVENTS: usize = 1_000;
/// Age in milliseconds of the oldest events of the first request.
const PAST: u64 = 3_600_000;
/// Longest wait of a reader for past events.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pauses before another session: the first, the longest, and the pause after a failure for people to mend.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
const HOPELESS_PAUSE: Duration = Duration::from_secs(600);
/// Time after which a session counts as a good one.
const STEADY: Duration = Duration::from_secs(30);

/// Events of a device.
#[derive(Debug)]
pub(crate) struct EventIntake {
    pub(crate) inbox: Arc<Inbox>,
    /// Did the first session bring the events of the past, or fail?
    is_ready: watch::Sender<bool>,
    begun: OnceLock<AbortHandle>,
    redactor: Redactor,
}

impl EventIntake {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { inbox: Arc::new(Inbox::new(EVENTS, BYTES)), is_ready: watch::Sender::new(false), begun: OnceLock::new(), redactor }
    }

    /// Begins to receive, once for all clones of a device, and waits for the events of the past.
    pub(crate) async fn begin(&self, netconf: &Netconf) {
        let mut is_ready = self.is_ready.subscribe();
        self.begun.get_or_init(|| {
            let receiver = EventReceiver {
                netconf: netconf.clone(),
                inbox: Arc::clone(&self.inbox),
                redactor: self.redactor.clone(),
                is_ready: self.is_ready.clone(),
                place: EventPlace::default(),
                skips_past: false,
                had_session: false,
            };
            subject::spawn(receiver.run()).abort_handle()
        });
        drop(tokio::time::timeout(PATIENCE, is_ready.wait_for(|is_ready| *is_ready)).await);
    }
}

impl Drop for EventIntake {
    fn drop(&mut self) {
        // A process of many devices outlives each of them.
        self.begun.get().into_iter().for_each(AbortHandle::abort);
    }
}

/// The work of receiving.
struct EventReceiver {
    netconf: Netconf,
    inbox: Arc<Inbox>,
    redactor: Redactor,
    is_ready: watch::Sender<bool>,
    place: EventPlace,
    /// Is an event of the past too long to be sent again?
    skips_past: bool,
    had_session: bool,
}

impl EventReceiver {
    /// Receives for as long as the process lives.
    async fn run(mut self) {
        let (mut pause, jitter) = (FIRST_PAUSE, RandomState::new());
        let mut round = 0_u64;
        loop {
            round += 1;
            let began = Instant::now();
            let fault = self.receive().await;
            self.inbox.fail(Some(fault.detail));
            self.is_ready.send_replace(true);
            if began.elapsed() >= STEADY {
                pause = FIRST_PAUSE;
            }
            // Jitter of a half keeps many devices apart after an outage.
            let wait = if fault.may_retry { pause } else { HOPELESS_PAUSE };
            tokio::time::sleep(wait * (750 + (jitter.hash_one(round) % 500) as u32) / 1000).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Receives over one session; answers the reason for its end.
    async fn receive(&mut self) -> Fault {
        let first = written(now().wall.saturating_sub(PAST) / 1000 * 1000);
        let mut session = match self.netconf.events(&self.place, Some(&*first).filter(|_| !self.skips_past)).await {
            Ok(session) => session,
            Err(fault) => return fault,
        };
        if self.had_session && !session.is_whole {
            self.inbox.miss();
        }
        self.had_session = true;
        if session.is_replaying {
            self.place.begin_replay();
        } else {
            self.is_ready.send_replace(true);
        }
        self.inbox.fail(None);
        let trouble = self.take_all(&mut session).await;
        if let Trouble::TooLong { .. } = &trouble {
            // What is too long now is so when it is sent again.
            self.inbox.refuse("an event is too long");
            (self.place, self.skips_past) = (EventPlace::default(), true);
            return Fault::from(trouble).retryable();
        }
        trouble.into()
    }

    /// Takes events until the session is over.
    async fn take_all(&mut self, session: &mut EventSession) -> Trouble {
        loop {
            match session.next().await {
                Ok(Ok(event)) => {
                    if event.ends_replay {
                        self.is_ready.send_replace(true);
                    }
                    if self.place.admit(&event, i64::try_from(now().wall).unwrap_or(i64::MAX)) {
                        self.push(&event);
                    }
                }
                Ok(Err(reason)) => self.inbox.refuse(&reason),
                Err(trouble) => return trouble,
            }
        }
    }

    fn push(&self, event: &NetconfEvent) {
        let mut shown = event.json();
        shown["receivedAt"] = written(now().wall).into();
        self.redactor.value(&mut shown);
        self.inbox.push(arrived(), LogMessage { time: event.time, ..LogMessage::default() }, shown.to_string());
    }
}
