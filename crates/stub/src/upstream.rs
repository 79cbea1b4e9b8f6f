//! A part as an upstream: opens its port, lists its tools, calls them. Knows no caller and no rule.

use std::sync::Arc;

use banyan_model::Era;
use bytes::Bytes;
use call::tree::back::Back;
use call::tree::mount::Mount;
use call::tree::port::{Family, Inbox, NewConnection, Opens, OutgoingRequest, Owner, Upstream, UpstreamError};
use config::resolved::{self, FamilySettings, Transport};
use futures_util::future::BoxFuture;
use mcp_proto::client::{Identity, Negotiated};
use mcp_proto::envelope::{Answer, error_object};
use mcp_proto::era::INITIALIZE;
use serde_json::{Map, Value as Json, json};
use stub_proto::session::{CallEnd, NeverRan, PartStanding};
use tokio::task::AbortHandle;

use crate::broker::BrokerGround;
use crate::line::{self, LineCall, PartLine};
use crate::port::PortKeys;
use crate::settings::{StubSettings, StubTool};
use crate::wire::OpenWire;
use crate::{catalog, ends, values};

/// Parts behind the wires of a gate.
pub(crate) struct StubFamily {
    pub(crate) keys: Arc<PortKeys>,
    pub(crate) ground: BrokerGround,
}

impl Family for StubFamily {
    fn name(&self) -> &'static str {
        StubSettings::FAMILY
    }

    fn opens(&self, mount: &Arc<resolved::Mount>) -> Option<Arc<dyn Opens>> {
        let Transport::Family(family) = &mount.transport else { return None };
        let settings = Arc::new(family.settings::<StubSettings>()?.clone());
        Some(Arc::new(StubOpens { keys: Arc::clone(&self.keys), ground: self.ground.clone(), settings }))
    }
}

/// Opens the port of a part.
struct StubOpens {
    keys: Arc<PortKeys>,
    ground: BrokerGround,
    settings: Arc<StubSettings>,
}

impl StubOpens {
    async fn open_line(&self, inbox: Inbox) -> Result<NewConnection, UpstreamError> {
        let settings = Arc::clone(&self.settings);
        let closed = |error| UpstreamError::Unreachable(format!("{} can't be opened: {error}", settings.description()));
        let key = self.keys.key(settings.place()).await.map_err(closed)?;
        let opened = OpenWire::open(&settings, &self.ground).await.map_err(UpstreamError::Unreachable)?;
        let line = Arc::new(PartLine::start(opened, &settings, Some(key)));
        line::answered(&line).await.map_err(|why| UpstreamError::Unreachable(format!("at {}: {why}", settings.port)))?;
        let news = tokio::spawn(tell_changes(Arc::clone(&line), inbox)).abort_handle();
        let negotiated = Negotiated {
            era: Era::Initialize,
            version: INITIALIZE[0].to_owned(),
            capabilities: Bytes::from_static(b"{\"tools\":{\"listChanged\":true}}"),
            server_info: Bytes::from_static(b"{\"name\":\"stub\",\"version\":\"1\"}"),
            instructions: None,
        };
        Ok((Box::new(StubUpstream { line, settings, news }), negotiated))
    }
}

impl Opens for StubOpens {
    fn open<'a>(&'a self, mount: &'a Arc<Mount>, owner: Owner, _: Identity) -> BoxFuture<'a, Result<NewConnection, UpstreamError>> {
        Box::pin(self.open_line(Inbox { mount: Arc::downgrade(mount), owner }))
    }

    fn kind(&self) -> &'static str {
        StubSettings::FAMILY
    }

    fn identity(&self) -> String {
        self.settings.description()
    }
}

/// Has the lists made anew when a part comes back with another table.
async fn tell_changes(line: Arc<PartLine>, inbox: Inbox) {
    let mut state = line.state();
    let mut known = state.borrow_and_update().table.clone();
    drop(line);
    while state.changed().await.is_ok() {
        let table = state.borrow_and_update().table.clone();
        if table != known {
            known = table;
            inbox.missed();
        }
    }
}

/// A part that has answered.
#[derive(Debug)]
struct StubUpstream {
    line: Arc<PartLine>,
    settings: Arc<StubSettings>,
    news: AbortHandle,
}

impl Drop for StubUpstream {
    fn drop(&mut self) {
        self.news.abort();
    }
}

impl StubUpstream {
    async fn request(&self, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        match out.method {
            "ping" => Ok(Answer::Result(Bytes::from_static(b"{}").into())),
            "tools/list" => {
                let table = self.line.state().borrow().table.clone();
                Ok(result(&catalog::list(&self.settings, table.as_ref())))
            }
            "tools/call" => self.call_tool(out, back).await,
            method => Ok(refused(-32601, &format!("a part offers tools, and not `{method}`"))),
        }
    }

    async fn call_tool(&self, out: &OutgoingRequest<'_>, back: Option<&Arc<Back>>) -> Result<Answer, UpstreamError> {
        let name = out.params.str("name").unwrap_or_default();
        let Some(tool) = self.settings.tools.iter().find(|tool| tool.name == *name) else {
            return Ok(refused(-32602, &format!("the part has no tool `{name}`: list the tools again")));
        };
        let differs = catalog::mismatch(tool, self.line.state().borrow().table.as_ref());
        if let Some(differs) = differs {
            return Ok(failed(&format!("`{name}` did not run: {differs}. Change the one that is wrong")));
        }
        let arguments = out.params.get("arguments").unwrap_or_else(|| Bytes::from_static(b"{}"));
        let Ok(Json::Object(arguments)) = serde_json::from_slice(&arguments) else {
            return Ok(refused(-32602, "`arguments` is no object"));
        };
        self.call_part(tool, &arguments, out.is_agreed, back).await
    }

    /// Calls a tool. A call that somebody has agreed to leaves once, whatever its tool promises.
    async fn call_part(
        &self,
        tool: &StubTool,
        arguments: &Map<String, Json>,
        is_agreed: bool,
        back: Option<&Arc<Back>>,
    ) -> Result<Answer, UpstreamError> {
        let content = match values::content(tool, self.settings.profile, arguments) {
            Ok(content) => content,
            Err(why) => return Ok(refused(-32602, &why)),
        };
        let is_repeatable = tool.is_repeatable() && !is_agreed;
        let row = self.settings.profile.lists_tools().then(|| tool.row());
        let caller = back.map(|back| back.caller.principal.clone());
        let end = match self.line.call(LineCall { tool: tool.id, row, content, is_repeatable, work: tool.work, caller }) {
            Ok(mut pending) => {
                let cancelled = async {
                    match back {
                        Some(back) => back.cancel.cancelled().await,
                        None => std::future::pending().await,
                    }
                };
                tokio::select! {
                    end = pending.finished() => end,
                    () = cancelled => {
                        self.line.cancel(pending.id()).await;
                        return Err(UpstreamError::Cancelled);
                    }
                }
            }
            Err(end) => end,
        };
        answer(tool, &end)
    }
}

impl Upstream for StubUpstream {
    fn call<'a>(&'a self, out: &'a OutgoingRequest<'a>, back: Option<&'a Arc<Back>>) -> BoxFuture<'a, Result<Answer, UpstreamError>> {
        Box::pin(self.request(out, back))
    }

    fn notify<'a>(&'a self, _: &'a str, _: Bytes) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        let mut state = self.line.state();
        Box::pin(async move {
            // An error says that the task is gone, and the port with it.
            drop(state.wait_for(|state| state.over.is_some()).await);
        })
    }

    fn is_lost(&self) -> bool {
        self.line.state().borrow().over.is_some()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.line.close())
    }

    fn last_words(&self) -> String {
        let state = self.line.state();
        let state = state.borrow();
        match (&state.over, state.standing) {
            (Some(why), _) => why.clone(),
            (None, Some(PartStanding::Silent)) => "the part does not answer".into(),
            (None, _) => "the line was closed".into(),
        }
    }
}

/// Answer of MCP for the end of a call.
fn answer(tool: &StubTool, end: &CallEnd) -> Result<Answer, UpstreamError> {
    match end {
        CallEnd::Values(_) | CallEnd::Raw(_) => match values::result(tool, end) {
            Ok(values) => Ok(done(&values)),
            Err(why) => Err(UpstreamError::Malformed(format!("`{}` ran, but the part's answer {why}", tool.name))),
        },
        CallEnd::Failed { code: -32602, .. } => Ok(refused(-32602, &format!("the part refused the arguments of `{}`", tool.name))),
        CallEnd::Failed { code: -32601, .. } => Ok(failed(&format!("the part has no tool {}: check the numbers of both sides", tool.id))),
        CallEnd::Failed { code, text } => {
            // A part describes nothing to a model: its words are for whoever runs the gate.
            if let Some(text) = text {
                tracing::info!(tool = %tool.name, code, ?text, "a part failed");
            }
            Ok(failed(&format!("the part failed with code {code}")))
        }
        CallEnd::TooLong => Err(UpstreamError::Malformed(ends::too_long(&tool.name))),
        CallEnd::NeverRan(why) => never_ran(tool, *why),
        CallEnd::Unknown(why) => Err(UpstreamError::Lost(ends::unknown(&tool.name, *why))),
    }
}

/// Answer of MCP for a call that has certainly not run.
fn never_ran(tool: &StubTool, why: NeverRan) -> Result<Answer, UpstreamError> {
    let told = ends::never_ran(&tool.name, why);
    match why {
        NeverRan::Silent | NeverRan::Full { .. } | NeverRan::OwnFull { .. } => Err(UpstreamError::Unreachable(told)),
        NeverRan::OtherTable => Ok(failed(&told)),
        NeverRan::TooLong { .. } => Ok(refused(-32602, &told)),
        NeverRan::Cancelled => Err(UpstreamError::Cancelled),
    }
}

fn done(values: &Map<String, Json>) -> Answer {
    let values = Json::Object(values.clone());
    result(&json!({ "content": [{ "type": "text", "text": values.to_string() }], "structuredContent": values }))
}

fn failed(why: &str) -> Answer {
    result(&json!({ "content": [{ "type": "text", "text": why }], "isError": true }))
}

fn result(value: &Json) -> Answer {
    Answer::Result(Bytes::from(value.to_string()).into())
}

fn refused(code: i64, why: &str) -> Answer {
    Answer::Error(error_object(code, why, None))
}
