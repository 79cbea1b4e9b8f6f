//! Memberships of this gate in other trees (MCP-AX 6, 13.3): one task owns the deciding machine, and everybody else speaks to the task over
//! a bounded channel.
//!
//! Decides nothing: `mesh_proto::child` does. Calls from a parent never pass through this module: they are requests of a downstream client
//! over a link dialled by the task.

pub mod dialling;
pub mod driver;
pub mod input;
pub mod status;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use config::resolved::Join;
use mesh_proto::refusal::Refusal;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::child::driver::MembershipDriver;
use crate::child::input::Input;
use crate::mesh::Mesh;
use trust;

pub use crate::child::status::{JoinStatus, ParentStatus};

/// Most inputs in the queue.
const DEPTH: usize = 1024;

/// Patience for leaving a parent in good order.
const LEAVING: Duration = Duration::from_secs(12);

/// Access to the task, if any.
#[derive(Default)]
pub struct Membership {
    task: Mutex<Option<mpsc::Sender<Input>>>,
    /// Stops the renewal of certificates for the current parents.
    renewing: Mutex<CancellationToken>,
    told: Arc<ArcSwapOption<JoinStatus>>,
}

impl Membership {
    /// Registers according to `join`. A previous membership ends first.
    pub fn begin(&self, mesh: &Arc<Mesh>, join: Option<&Join>) {
        let (inputs, unread) = mpsc::channel(DEPTH);
        let before = std::mem::replace(&mut *self.lock(), join.map(|_| inputs.clone()));
        let driver = join.map(|join| MembershipDriver::new(mesh, join, (inputs, unread), Arc::clone(&self.told)));
        self.renew(mesh, join);
        let told = Arc::clone(&self.told);
        tokio::spawn(async move {
            if let Some(before) = before {
                leave(before).await;
                told.store(None);
            }
            if let Some(driver) = driver {
                driver.run().await;
            }
        });
    }

    /// Renews the certificates issued by parents for this gate. Others are not ours to renew.
    fn renew(&self, mesh: &Arc<Mesh>, join: Option<&Join>) {
        let stop = CancellationToken::new();
        let before = std::mem::replace(&mut *self.renewing.lock().unwrap_or_else(PoisonError::into_inner), stop.clone());
        before.cancel();
        for parent in join.map(|join| join.parents.as_slice()).unwrap_or_default() {
            if let Some(tls) = parent.tls.clone()
                && tls.own.as_ref().is_some_and(|(file, _)| trust::join::is_joined(&mesh.state_dir, file))
            {
                tokio::spawn(trust::keep(parent.url.clone(), tls, Arc::clone(&mesh.upstreams.connector), stop.clone()));
            }
        }
    }

    /// Leaves the tree, and lets calls under way end.
    pub async fn leave(&self) {
        self.renewing.lock().unwrap_or_else(PoisonError::into_inner).cancel();
        let task = self.lock().take();
        if let Some(task) = task {
            leave(task).await;
        }
    }

    /// Answers a parent's question by an ordinary request for the current registration (AX-25).
    pub async fn ask(&self, method: &str, params: &[u8]) -> Result<String, Refusal> {
        let Some(task) = self.lock().clone() else { return Err(Refusal::MethodUnknown) };
        let (reply, answer) = oneshot::channel();
        let asked = Input::Asked { method: method.to_owned(), params: params.to_vec(), reply };
        drop(task.send(asked).await);
        answer.await.unwrap_or(Err(Refusal::MethodUnknown))
    }

    /// Reports possibly other gates below mounts.
    pub fn mounts_changed(&self) {
        if let Some(task) = &*self.lock() {
            // Where it is full, the task looks anyway.
            drop(task.try_send(Input::MountsChanged));
        }
    }

    /// Gives the status; `None`: no membership.
    pub fn status(&self) -> Option<Arc<JoinStatus>> {
        self.told.load_full()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<mpsc::Sender<Input>>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn leave(task: mpsc::Sender<Input>) {
    let (left, over) = oneshot::channel();
    if task.send(Input::Leave(left)).await.is_ok() {
        drop(tokio::time::timeout(LEAVING, over).await);
    }
}
