//! `mcpax/parent`: asking a subserver with whom it is registered (AX-25). What an answer means is not decided here.

use std::sync::Arc;
use std::time::Duration;

use mcp_proto::client::stateless_meta;
use mcp_proto::envelope::Answer;
use mcp_proto::splice::{self, Change};
use mesh_proto::id::CallId;
use tokio::sync::oneshot;

use crate::mesh::Mesh;
use crate::registry::input::{Input, Replied};
use crate::registry::links::Dialled;
use call::tree::port::{Outgoing, UpstreamError};
use mcp::upstream::connect;

/// The method.
pub const METHOD: &str = "mcpax/parent";

/// No answer over a link takes longer; the machine gives up before.
const LONGEST: Duration = Duration::from_secs(10);

/// Waits for the answer of a child on its link.
pub fn wait(mesh: &Arc<Mesh>, call: CallId, answer: oneshot::Receiver<Answer>) {
    let mesh = Arc::clone(mesh);
    tokio::spawn(async move {
        let replied = match tokio::time::timeout(LONGEST, answer).await {
            Ok(Ok(answer)) => said(answer),
            Ok(Err(_)) | Err(_) => Replied::Lost,
        };
        mesh.registry.put(Input::Answered(call, replied)).await;
    });
}

/// Asks a server at its URL. Whatever speaks HTTP there is alive; one that knows no such method, or cannot be reached, says nothing.
pub fn dial(mesh: &Arc<Mesh>, call: CallId, dialled: &Dialled, params: String) {
    let (mesh, url, patience) = (Arc::clone(mesh), dialled.url.clone(), dialled.patience);
    tokio::spawn(async move {
        let tls = mesh.gate.config.load().registry.as_ref().and_then(|registry| registry.tls.clone());
        let wire = connect::registered(&mesh.upstreams, &url, tls);
        let meta = stateless_meta(&mesh.gate.node.shared());
        let params = bytes::Bytes::from(splice::edit(params.as_bytes(), &[("_meta", Change::Set(meta.as_bytes()))]));
        let out = Outgoing::plain(METHOD, params);
        let replied = match tokio::time::timeout(patience, wire.request(&out, None)).await {
            Ok(Ok(answer)) => said(answer),
            Ok(Err(UpstreamError::Refused { .. } | UpstreamError::Malformed(_) | UpstreamError::SessionLost)) => {
                Replied::Error(bytes::Bytes::from_static(b"{}"))
            }
            Ok(Err(_)) | Err(_) => Replied::Mute,
        };
        mesh.registry.put(Input::Answered(call, replied)).await;
    });
}

fn said(answer: Answer) -> Replied {
    match answer {
        Answer::Error(error) => Replied::Error(error),
        Answer::Result(result) => Replied::Result(result.text().clone()),
    }
}
