//! Requests of the program that runs a gate: tools, calls (by the way of all calls), and use of the gate. Does not decide anything.

use std::sync::Arc;

use banyan_model::Era;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use mcp_proto::client::{Identity, stateless_meta};
use mcp_proto::envelope::{Answer, Request, error_object};
use mcp_proto::json;
use mcp_proto::projection::Style;
use mcp_proto::splice::{self, Change};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::admin::shapes::CallRequest;
use crate::gateway::Gateway;
use crate::gateway::status::{ToolRow, row};
use call::tree::back::{Back, Sink};
use call::tree::snapshot::Tree;
use call::tree::view::View;
use call::way::error::CallError;
use call::words::cancel::Cancel;
use call::words::entered::scope_of;
use call::words::node::Node;
use call::words::view_key::ViewKey;
use mcp::downstream::stdio::{self, StreamCaller};

/// Lists the shown tools of a view.
pub(crate) fn rows(tree: &Tree, view: &View, is_shown: &dyn Fn((usize, usize)) -> bool) -> Vec<ToolRow> {
    let shown = view.tools.explained().filter(|(_, place, _)| is_shown(*place));
    shown.filter_map(|(shown, (b, i), reason)| row(tree, shown, b, i, format!("{reason:?}").to_lowercase())).collect()
}

impl Gateway {
    /// Lists the tools as a client of that name sees them; without a name, as an unknown client does.
    pub fn tools(&self, client: Option<&str>) -> Vec<ToolRow> {
        let tree = self.0.gate.mounts.tree.load_full();
        let view = tree.view(&scope_of(&self.0.gate.config.load(), client.unwrap_or_default()));
        rows(&tree, &view, &|_| true)
    }

    /// Calls a tool by shown or dotted name, and gives the raw result or the raw error. Waits for an approval if the request says so.
    /// Dropping the future cancels the call.
    pub fn call(&self, request: &CallRequest) -> BoxFuture<'static, Result<Bytes, Bytes>> {
        let (gateway, request, cancel) = (self.clone(), request.clone(), Cancel::default());
        let guard = cancel.clone().drop_guard();
        // In a task of its own a cancelled call still runs to its end.
        let calling = tokio::spawn(async move { gateway.called(&request, cancel).await });
        Box::pin(async move {
            let answer = calling.await;
            guard.disarm();
            answer.unwrap_or_else(|error| Err(error_object(-32603, &format!("the call broke off: {error}"), None)))
        })
    }

    /// Serves one client over a pair of streams until `input` ends or `stop` fires.
    pub fn serve_stdio(
        &self,
        input: impl AsyncRead + Unpin + Send + 'static,
        output: impl AsyncWrite + Unpin + Send + 'static,
        stop: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        stdio::serve(Arc::clone(&self.0.server), StreamCaller::local(), Box::new(input), Box::new(output), stop)
    }

    /// Checks for any use: an open connection or session, a registered server, or a call waiting for approval.
    pub async fn is_used(&self) -> bool {
        let has_registered = || self.0.gate.mounts.all.load().iter().any(|mount| mount.registration.is_some());
        if !self.0.open.is_empty()
            || self.0.installed.iter().any(|part| part.is_used())
            || self.0.gate.hub.sessions() > 0
            || has_registered()
        {
            return true;
        }
        let config = self.config();
        let may_wait = config.gate.is_some() || config.policy.is_some();
        may_wait && self.approvals(false).await.is_ok_and(|shown| shown.approvals.iter().any(|approval| approval.standing.is_held()))
    }

    /// Takes no client of `banyan stdio` any more, where none is there: a client that comes later starts the next gate. `false`: there is one.
    pub fn leave(&self) -> bool {
        let mut is_leaving = self.0.admin.leaving();
        *is_leaving = self.0.open.is_empty();
        *is_leaving
    }

    async fn called(&self, CallRequest { tool, arguments, waits, .. }: &CallRequest, cancel: Cancel) -> Result<Bytes, Bytes> {
        let arguments = arguments.get();
        let rows = self.tools(None);
        let row = ToolRow::find(&rows, tool).filter(|row| row.shown != *tool);
        let tool = row.map_or(tool, |row| &row.dotted);
        let scope = scope_of(&self.0.gate.config.load(), "");
        let tree = self.0.gate.mounts.tree.load_full();
        let dotted = ViewKey { style: Style::Dotted, ..scope.clone() };
        let scope =
            if tree.view(&scope).tools.find(tool).is_none() && tree.view(&dotted).tools.find(tool).is_some() { dotted } else { scope };
        let name = if scope.style == Style::Dotted { tool.to_owned() } else { row.map_or(tool, |row| &row.shown).to_owned() };
        if let Err(error) = json::check(arguments.as_bytes(), json::Duplicates::RefuseDeep) {
            return Err(CallError::BadParams(format!("the arguments can't be taken: {error}")).tell(Era::Stateless).object());
        }
        let meta = stateless_meta(&Identity { info: Node::info(), capabilities: Bytes::from_static(b"{}") });
        // With a progress token the call waits until somebody agrees or the approval expires.
        let token: &[(&str, Change<'_>)] = if *waits { &[("progressToken", Change::Set(b"\"banyan\""))] } else { &[] };
        let meta = String::from_utf8_lossy(&splice::edit(meta.as_bytes(), token)).into_owned();
        let params = format!("{{\"name\":{},\"arguments\":{arguments},\"_meta\":{meta}}}", json::quote(&name));
        let request = Request { id: Bytes::from_static(b"0"), method: "tools/call".into(), params: Bytes::from(params).into() };
        let back = Back::new(call::way::own_caller(scope), Sink::None, None, cancel);
        match call::way::serve(&self.0.gate, &request, &back).await {
            Ok(Answer::Result(result)) => Ok(result.text().clone()),
            Ok(Answer::Error(error)) => Err(error),
            Err(error) => Err(error.tell(Era::Stateless).object()),
        }
    }
}
