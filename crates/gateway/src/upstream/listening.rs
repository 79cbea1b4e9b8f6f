//! What a stateless server says of its lists: it does so only on a stream that is asked for, and nothing of what changed before it has
//! agreed. So it is asked before the lists are fetched, and they are fetched again where it agrees later than that. What it says is not
//! handled here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use banyan_model::Era;
use mcp_proto::catalog::Kind;
use tokio_util::task::AbortOnDropHandle;

use super::mount::Mount;
use super::supervise::{FIRST_WAIT, HELD, LONGEST_WAIT};
use super::{Instance, UpstreamError, standing};

/// How long lists wait for the server to agree. One that takes longer has them fetched twice.
const AGREED: Duration = Duration::from_millis(500);

/// Listens for as long as it is held.
pub(crate) struct Listening(#[expect(dead_code, reason = "held, so that the task ends with it")] AbortOnDropHandle<()>);

/// Asks a stateless server to tell of changes. What is fetched from now on is what it will tell of, or is fetched again.
pub(crate) async fn begin(mount: &Arc<Mount>, instance: &Arc<Instance>) -> Option<Listening> {
    if instance.era() == Era::Initialize {
        return None;
    }
    let mut agreed = mount.agreed.subscribe();
    let late = Arc::new(AtomicBool::new(false));
    let task = tokio::spawn(listen(Arc::clone(mount), Arc::clone(instance), Arc::clone(&late)));
    let listening = Listening(AbortOnDropHandle::new(task));
    if tokio::time::timeout(AGREED, agreed.changed()).await.is_err() {
        late.store(true, Ordering::SeqCst);
        // It may have agreed in between.
        if agreed.has_changed().is_ok_and(|has| has) {
            mount.dirty(&Kind::ALL);
        }
    }
    Some(listening)
}

/// `late`: lists that were fetched may be older than what the server will tell of.
async fn listen(mount: Arc<Mount>, instance: Arc<Instance>, late: Arc<AtomicBool>) {
    let mut wait = FIRST_WAIT;
    loop {
        let (began, uris, identity) = (Instant::now(), mount.subscriptions(), mount.gateway.node.shared());
        let mut agreed = mount.agreed.subscribe();
        let mut has_agreed = false;
        let listened = standing::listen(&instance, &identity, &uris);
        tokio::pin!(listened);
        let outcome = loop {
            tokio::select! {
                outcome = &mut listened => break outcome,
                changed = agreed.changed(), if !has_agreed => {
                    has_agreed = changed.is_ok();
                    if late.load(Ordering::SeqCst) {
                        mount.dirty(&Kind::ALL);
                    }
                }
            }
        };
        // Nobody waits for what it does not offer.
        mount.agree();
        if let Err(UpstreamError::Refused { .. } | UpstreamError::SignIn(_)) = outcome {
            return;
        }
        late.store(true, Ordering::SeqCst);
        wait = if began.elapsed() > HELD { FIRST_WAIT } else { (wait * 2).min(LONGEST_WAIT) };
        tokio::time::sleep(wait).await;
        if !has_agreed {
            // Of a server that tells nothing it is found by looking.
            mount.dirty(&Kind::ALL);
        }
    }
}
