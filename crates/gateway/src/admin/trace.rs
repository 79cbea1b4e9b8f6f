//! `POST /-/trace`: asks for the way to a tool as another gate would. Does not take the steps; `call/trace.rs` does.

use banyan_model::Era;
use bytes::Bytes;
use mcp_proto::client::{Identity, stateless_meta};
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::json;
use mcp_proto::projection::Style;

use crate::admin::shapes::{Trace, TraceRequest};
use crate::{Gateway, ToolRow};
use call::tree::back::{Back, Sink};
use call::way::{TRACE, own_caller, serve};
use call::words::cancel::Cancel;
use call::words::entered::scope_of;
use call::words::node::Node;
use call::words::refusal::{Refusal, RefusalKind};
use call::words::view_key::ViewKey;

impl Gateway {
    /// Traces the way to a tool, found as `ToolRow::find` does. The last step holds a failure on the way.
    pub async fn trace(&self, request: &TraceRequest) -> Result<Trace, Refusal> {
        let tools = self.tools(None);
        let Some(tool) = ToolRow::find(&tools, &request.tool) else {
            return Err(Refusal { kind: RefusalKind::NotFound, message: format!("there is no tool `{}`", request.tool) });
        };
        let meta = stateless_meta(&Identity { info: Node::info(), capabilities: Bytes::from_static(b"{}") });
        let params = format!("{{\"name\":{},\"_meta\":{meta}}}", json::quote(&tool.dotted));
        let asked = Request { id: Bytes::from_static(b"0"), method: TRACE.into(), params: Bytes::from(params).into() };
        let scope = ViewKey { style: Style::Qualified, ..scope_of(&self.0.gate.config.load(), "") };
        let back = Back::new(own_caller(scope), Sink::None, None, Cancel::default());
        let failed = |text: &[u8]| Refusal { kind: RefusalKind::Failed, message: String::from_utf8_lossy(text).into_owned() };
        let result = match serve(&self.0.gate, &asked, &back).await {
            Ok(Answer::Result(result)) => result,
            Ok(Answer::Error(error)) => return Err(failed(&error)),
            Err(error) => return Err(failed(error.tell(Era::Stateless).message.as_bytes())),
        };
        let hops = result.members().get("hops").map(serde_json::from_slice);
        match hops {
            Some(Ok(hops)) => Ok(Trace { tool: tool.dotted.clone(), hops }),
            Some(Err(error)) => Err(failed(format!("a gate below told what this version does not understand: {error}").as_bytes())),
            None => Err(failed(b"the trace came back without steps")),
        }
    }
}
