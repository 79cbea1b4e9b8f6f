//! Tools of a peer as a server of the tree: their list, and calls of them over the link. Knows no rule: the way does.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axcp_proto::capability::offers::OfferedTools;
use axcp_proto::error::ErrorCode;
use axcp_proto::invocation::{MOST_ARGUMENTS, MOST_RESULT};
use axcp_proto::message::{ErrorMessage, ToolInvoke, ToolResult};
use banyan_model::Era;
use bytes::Bytes;
use call::tree::back::Back;
use call::tree::mount::Mount;
use call::tree::port::{Family, Inbox, NewConnection, Opens, OutgoingRequest, Owner, Upstream, UpstreamError, UpstreamTraits};
use config::resolved::{self, FamilySettings, Transport};
use futures_util::future::BoxFuture;
use mcp_proto::client::{Identity, Negotiated};
use mcp_proto::envelope::{Answer, error_object};
use mcp_proto::era::INITIALIZE;
use tokio::task::AbortHandle;

use crate::section::OfferedSettings;
use crate::tools::outgoing::{OutgoingCalls, PeerWord};
use crate::tools::shelf::{OfferShelf, PeerTools};
use crate::words::plain;

/// Longest wait for a peer with tools, at a try to open the mount.
const PATIENCE: Duration = Duration::from_secs(2);

/// Tools of peers as a family of mounts.
pub(crate) struct OfferedFamily(pub(crate) Arc<OfferShelf>);

impl Family for OfferedFamily {
    fn name(&self) -> &'static str {
        OfferedSettings::FAMILY
    }

    fn opens(&self, mount: &Arc<resolved::Mount>) -> Option<Arc<dyn Opens>> {
        let Transport::Family(family) = &mount.transport else { return None };
        let settings = family.settings::<OfferedSettings>()?.clone();
        Some(Arc::new(OfferedOpens { shelf: Arc::clone(&self.0), settings }))
    }
}

struct OfferedOpens {
    shelf: Arc<OfferShelf>,
    settings: OfferedSettings,
}

impl OfferedOpens {
    async fn open_tools(&self, inbox: Inbox, most_result: usize) -> Result<NewConnection, UpstreamError> {
        let peer = &self.settings.peer;
        let absent = || {
            let why = format!("the peer {peer} is not connected, or has offered no tools: `banyan axcp status` shows which");
            UpstreamError::Unreachable(why)
        };
        let mut peers = self.shelf.peers();
        let calls = {
            let found = tokio::time::timeout(PATIENCE, peers.wait_for(|peers| peers.contains_key(peer))).await.map_err(|_| absent())?;
            let found = found.map_err(|_| absent())?;
            Arc::clone(&found.get(peer).ok_or_else(absent)?.calls)
        };
        let (shelf, peer) = (Arc::clone(&self.shelf), Arc::clone(peer));
        let news = tokio::spawn(tell_changes(Arc::clone(&shelf), Arc::clone(&peer), Arc::clone(&calls), inbox)).abort_handle();
        Ok((Box::new(OfferedUpstream { shelf, peer, calls, news, most_result }), negotiated()))
    }
}

impl Opens for OfferedOpens {
    fn open<'a>(&'a self, mount: &'a Arc<Mount>, owner: Owner, _: Identity) -> BoxFuture<'a, Result<NewConnection, UpstreamError>> {
        let most_result = mount.gate.limits().response_bytes.min(MOST_RESULT);
        Box::pin(self.open_tools(Inbox { mount: Arc::downgrade(mount), owner }, most_result))
    }

    fn kind(&self) -> &'static str {
        OfferedSettings::FAMILY
    }

    fn identity(&self) -> String {
        format!("axcp {}", self.settings.peer)
    }
}

/// Has the list made anew when the peer offers other tools.
async fn tell_changes(shelf: Arc<OfferShelf>, peer: Arc<str>, calls: Arc<OutgoingCalls>, inbox: Inbox) {
    let mut peers = shelf.peers();
    let mut known = of_calls(peers.borrow_and_update().get(&peer), &calls);
    while peers.changed().await.is_ok() {
        let tools = of_calls(peers.borrow_and_update().get(&peer), &calls);
        if tools != known {
            known = tools;
            inbox.missed();
        }
    }
}

/// Gives the tools that a connection has; `None`: the peer is gone, or has a newer connection.
fn of_calls(tools: Option<&PeerTools>, calls: &Arc<OutgoingCalls>) -> Option<Arc<OfferedTools>> {
    tools.filter(|tools| Arc::ptr_eq(&tools.calls, calls)).map(|tools| Arc::clone(&tools.tools))
}

fn negotiated() -> Negotiated {
    Negotiated {
        era: Era::Initialize,
        version: INITIALIZE[0].to_owned(),
        capabilities: Bytes::from_static(b"{\"tools\":{\"listChanged\":true}}"),
        server_info: Bytes::from_static(concat!("{\"name\":\"axcp\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}").as_bytes()),
        instructions: None,
    }
}

/// A peer with tools, over one link.
struct OfferedUpstream {
    shelf: Arc<OfferShelf>,
    peer: Arc<str>,
    calls: Arc<OutgoingCalls>,
    news: AbortHandle,
    /// Bytes of the longest result.
    most_result: usize,
}

impl fmt::Debug for OfferedUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OfferedUpstream")
    }
}

impl Drop for OfferedUpstream {
    fn drop(&mut self) {
        self.news.abort();
    }
}

impl OfferedUpstream {
    async fn request(&self, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        let lost = || UpstreamError::Unreachable(format!("the connection with {} has ended", self.peer));
        match out.method {
            "ping" => Ok(Answer::Result(Bytes::from_static(b"{}").into())),
            "tools/list" => {
                let written: Vec<String> = self.tools().ok_or_else(lost)?.values().map(|tool| tool.definition()).collect();
                Ok(Answer::Result(Bytes::from(format!("{{\"tools\":[{}]}}", written.join(","))).into()))
            }
            "tools/call" => self.call_tool(out, back).await,
            method => Ok(refused(-32601, &format!("a peer offers tools over AXCP, and not `{method}`"))),
        }
    }

    fn tools(&self) -> Option<Arc<OfferedTools>> {
        of_calls(self.shelf.peers().borrow().get(&self.peer), &self.calls)
    }

    async fn call_tool(&self, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        let name = out.params.str("name").unwrap_or_default().into_owned();
        let known = self.tools().and_then(|tools| tools.get(&name).cloned());
        let Some(tool) = known else {
            return Ok(refused(-32602, &format!("the peer offers no tool `{name}`: list the tools again")));
        };
        let arguments = out.params.get("arguments").unwrap_or_else(|| Bytes::from_static(b"{}"));
        if arguments.len() > MOST_ARGUMENTS {
            return Ok(refused(-32602, &format!("the arguments are longer than {MOST_ARGUMENTS} bytes, which a peer takes: send less")));
        }
        let invoke = ToolInvoke { tool_id: name, arguments, timeout_ms: tool.timeout_ms, idempotency_key: String::new() };
        let mut pending = self.calls.begin(invoke)?;
        loop {
            let cancelled = async {
                match back {
                    Some(back) => back.cancel.cancelled().await,
                    None => std::future::pending().await,
                }
            };
            let word = tokio::select! {
                word = pending.next() => word,
                // The call is withdrawn at the end of the value.
                () = cancelled => return Err(UpstreamError::Cancelled),
            };
            match word {
                Some(PeerWord::Waits) => back.into_iter().for_each(|back| back.stir()),
                Some(PeerWord::Result(result)) => return self.checked(result),
                Some(PeerWord::Refused(refused)) => return self.tell_refusal(&refused),
                None => return Err(UpstreamError::Lost(format!("the connection with {} ended before its answer", self.peer))),
            }
        }
    }

    /// Checks a result of the peer, and passes its bytes on.
    fn checked(&self, result: Bytes) -> Result<Answer, UpstreamError> {
        if result.len() > self.most_result {
            return Err(UpstreamError::TooLarge(self.most_result));
        }
        let result = ToolResult::done(result);
        result.check().map_err(|error| UpstreamError::Malformed(format!("{} answered the call, and {error}", self.peer)))?;
        Ok(Answer::Result(result.result.into()))
    }

    /// Tells a refusal of the peer, in its words.
    fn tell_refusal(&self, refused: &ErrorMessage) -> Result<Answer, UpstreamError> {
        let (code, words) = (ErrorCode::from_number(refused.code), plain(&refused.reason));
        if code == ErrorCode::Timeout {
            return Err(UpstreamError::Lost(format!("{} gave the call up after its time: {words}", self.peer)));
        }
        let number = if matches!(code, ErrorCode::ToolNotFound | ErrorCode::MalformedRequest) { -32602 } else { -32603 };
        let text = format!("the peer {} refused the call ({}): {words}", self.peer, code.name());
        let data = format!("{{\"axcp\":{{\"code\":{},\"name\":\"{}\"}}}}", refused.code, code.name());
        Ok(Answer::Error(error_object(number, &text, Some(data.as_bytes()))))
    }
}

impl Upstream for OfferedUpstream {
    fn call<'a>(&'a self, out: &'a OutgoingRequest<'a>, back: Option<&'a Arc<Back>>) -> BoxFuture<'a, Result<Answer, UpstreamError>> {
        Box::pin(self.request(out, back))
    }

    fn notify<'a>(&'a self, _: &'a str, _: Bytes) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let is_gone = |tools: Option<&PeerTools>| of_calls(tools, &self.calls).is_none();
            drop(self.shelf.peers().wait_for(|peers| is_gone(peers.get(&self.peer))).await);
        })
    }

    fn is_lost(&self) -> bool {
        self.tools().is_none()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn traits(&self) -> UpstreamTraits {
        // Ids of a gate's tools are paths.
        UpstreamTraits { has_paths: true, ..UpstreamTraits::default() }
    }

    fn last_words(&self) -> String {
        format!("the peer {} is gone", self.peer)
    }
}

fn refused(code: i64, why: &str) -> Answer {
    Answer::Error(error_object(code, why, None))
}
