//! `mcpax/parent`: questions to subservers for their current registration (AX-25). Does not judge answers.

use std::sync::Arc;
use std::time::Duration;

use mcp_proto::client::stateless_meta;
use mcp_proto::envelope::Answer;
use mcp_proto::splice::{self, Change};
use mesh_proto::id::CallId;
use tokio::sync::oneshot;

use crate::mesh::Mesh;
use crate::registry::input::{Input, SubserverReply};
use crate::registry::links::DialledServer;
use call::tree::port::{OutgoingRequest, UpstreamError};
use mcp::upstream::connect;

/// The method.
pub const METHOD: &str = "mcpax/parent";

/// Patience for an answer over a link; the machine gives up earlier.
const LONGEST: Duration = Duration::from_secs(10);

/// Waits for the answer of a child on its link.
pub fn wait(mesh: &Arc<Mesh>, call: CallId, answer: oneshot::Receiver<Answer>) {
    let mesh = Arc::clone(mesh);
    tokio::spawn(async move {
        let replied = match tokio::time::timeout(LONGEST, answer).await {
            Ok(Ok(answer)) => reply_of(answer),
            Ok(Err(_)) | Err(_) => SubserverReply::Lost,
        };
        mesh.registry.put(Input::Answered(call, replied)).await;
    });
}

/// Asks a server at its URL. Any HTTP answer is a sign of life; a server without the method, or out of reach, counts as mute.
pub fn dial(mesh: &Arc<Mesh>, call: CallId, dialled: &DialledServer, params: String) {
    let (mesh, url, patience) = (Arc::clone(mesh), dialled.url.clone(), dialled.patience);
    tokio::spawn(async move {
        let tls = mesh.gate.config.load().registry.as_ref().and_then(|registry| registry.tls.clone());
        let wire = connect::registered(&mesh.upstreams, &url, tls);
        let meta = stateless_meta(&mesh.gate.node.shared());
        let params = bytes::Bytes::from(splice::edit(params.as_bytes(), &[("_meta", Change::Set(meta.as_bytes()))]));
        let out = OutgoingRequest::plain(METHOD, params);
        let replied = match tokio::time::timeout(patience, wire.request(&out, None)).await {
            Ok(Ok(answer)) => reply_of(answer),
            Ok(Err(UpstreamError::Refused { .. } | UpstreamError::Malformed(_) | UpstreamError::SessionLost)) => {
                SubserverReply::Error(bytes::Bytes::from_static(b"{}"))
            }
            Ok(Err(_)) | Err(_) => SubserverReply::Mute,
        };
        mesh.registry.put(Input::Answered(call, replied)).await;
    });
}

fn reply_of(answer: Answer) -> SubserverReply {
    match answer {
        Answer::Error(error) => SubserverReply::Error(error),
        Answer::Result(result) => SubserverReply::Result(result.text().clone()),
    }
}
