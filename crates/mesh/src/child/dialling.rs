//! Dialling a parent, and what comes over the link afterwards. When that is done is not decided here.

use std::sync::Arc;
use std::time::Duration;

use config::resolved::Parent;
use mesh_proto::id::LinkId;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::child::input::Input;
use crate::link;
use crate::link::{Control, Dialled, Said, Wanted};
use crate::mesh::Mesh;
use call::way::error::answered;
use call::words::entered::Entered;
use mcp::downstream::mcp;
use trust::Client;

/// How long dialling may take at most.
const LONGEST: Duration = Duration::from_secs(10);

/// A link that stands.
pub struct Held {
    pub control: Arc<Control>,
    pub gone: CancellationToken,
}

/// Dials, and serves the parent over the link.
///
/// # Errors
/// What is wrong, and what to do.
pub async fn dial(mesh: Arc<Mesh>, parent: Parent, beat: Duration) -> Result<Dialled, String> {
    let token = match &parent.token {
        Some(token) => Some(token.resolve(&*mesh.sources).map_err(|e| e.to_string())?),
        None => None,
    };
    let tls = match &parent.tls {
        Some(files) => Some(Client::new(files.clone()).config(&mesh.upstreams.connector).map_err(|e| e.to_string())?),
        None => None,
    };
    let limit = if beat.is_zero() { LONGEST } else { LONGEST.min(beat) };
    let wanted =
        Wanted { url: &parent.url, token: token.as_ref().map(|token| token.expose()), tls, insecure: parent.insecure, beat, limit };
    let name = parent.url.host_str().unwrap_or("parent").to_owned();
    let served = Arc::clone(&mesh.server);
    let service = move |request| {
        let (server, name) = (Arc::clone(&served), name.clone());
        async move { mcp::over_link(&server, Entered::parent(&name), request).await }
    };
    link::dial(&mesh.upstreams.connector, &wanted, service).await.map_err(|e| e.to_string())
}

/// Passes on what comes over a link until it is gone.
pub fn follow(link: LinkId, dialled: Dialled, to: mpsc::Sender<Input>) -> Held {
    let Dialled { control, mut said, gone, .. } = dialled;
    let held = Held { control: Arc::clone(&control), gone: gone.clone() };
    tokio::spawn(async move {
        loop {
            let said = tokio::select! {
                said = said.recv() => said,
                () = gone.cancelled() => break,
            };
            match said {
                None => break,
                // A parent has nothing to tell beside calls.
                Some(Said::Notification { method, .. }) => tracing::trace!(method, "a parent says something"),
                Some(Said::Request { id, method, params }) => {
                    let (reply, answer) = oneshot::channel();
                    drop(to.send(Input::Asked { method, params: params.to_vec(), reply }).await);
                    if let Ok(answer) = answer.await {
                        control.answer(&id, &answered(answer));
                    }
                }
            }
        }
        gone.cancel();
        drop(to.send(Input::LinkLost(link)).await);
    });
    held
}
