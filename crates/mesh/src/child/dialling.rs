//! Connections to parents, and their requests. Does not choose the time to dial.

use std::sync::Arc;
use std::time::Duration;

use config::resolved::Parent;
use mesh_proto::id::LinkId;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::child::input::Input;
use crate::link;
use crate::link::{Control, DialTerms, DialledLink, LinkMessage};
use crate::mesh::Mesh;
use call::way::error::answered;
use call::words::entered::AdmittedCaller;
use mcp::downstream::mcp;
use trust::Client;

/// Longest time for dialling.
const LONGEST: Duration = Duration::from_secs(10);

/// A standing link.
pub struct OpenLink {
    pub control: Arc<Control>,
    pub gone: CancellationToken,
}

/// Dials a parent, and serves the parent over the link.
///
/// # Errors
/// The fault, with advice.
pub async fn dial(mesh: Arc<Mesh>, parent: Parent, beat: Duration) -> Result<DialledLink, String> {
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
        DialTerms { url: &parent.url, token: token.as_ref().map(|token| token.expose()), tls, insecure: parent.insecure, beat, limit };
    let name = parent.url.host_str().unwrap_or("parent").to_owned();
    let served = Arc::clone(&mesh.server);
    let service = move |request| {
        let (server, name) = (Arc::clone(&served), name.clone());
        async move { mcp::over_link(&server, AdmittedCaller::parent(&name), request).await }
    };
    link::dial(&mesh.upstreams.connector, &wanted, service).await.map_err(|e| e.to_string())
}

/// Passes on the parent's requests over a link until the link is gone.
pub fn follow(link: LinkId, dialled: DialledLink, to: mpsc::Sender<Input>) -> OpenLink {
    let DialledLink { control, mut said, gone, .. } = dialled;
    let held = OpenLink { control: Arc::clone(&control), gone: gone.clone() };
    tokio::spawn(async move {
        loop {
            let said = tokio::select! {
                said = said.recv() => said,
                () = gone.cancelled() => break,
            };
            match said {
                None => break,
                // A parent has nothing to tell beside calls.
                Some(LinkMessage::Notification { method, .. }) => tracing::trace!(method, "a parent says something"),
                Some(LinkMessage::Request { id, method, params }) => {
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
