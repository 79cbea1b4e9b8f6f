//! What the program that runs a gate asks of it: its tools, and a call of one, which goes the way of every other. Does not decide anything.

use banyan_model::Era;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use mcp_proto::client::{Identity, stateless_meta};
use mcp_proto::envelope::{Answer, Request};
use mcp_proto::json;
use mcp_proto::projection::Style;

use super::Gateway;
use super::status::{ToolRow, row};
use crate::call::back::{Back, Sink};
use crate::call::caller::ViewKey;
use crate::call::cancel::Cancel;
use crate::call::error::CallError;
use crate::node::Node;
use crate::tree::Tree;
use crate::view::View;

/// The tools of a view that may be shown.
pub(crate) fn rows(tree: &Tree, view: &View, is_shown: &dyn Fn((usize, usize)) -> bool) -> Vec<ToolRow> {
    let shown = view.tools.explained().filter(|(_, place, _)| is_shown(*place));
    shown.filter_map(|(shown, (b, i), reason)| row(tree, shown, b, i, format!("{reason:?}").to_lowercase())).collect()
}

impl Gateway {
    /// The tools as a client of that name sees them; without a name, as an unknown client does.
    pub fn tools(&self, client: Option<&str>) -> Vec<ToolRow> {
        let tree = self.0.tree.load_full();
        let view = tree.view(&self.0.scope_of(client.unwrap_or_default()));
        rows(&tree, &view, &|_| true)
    }

    /// Calls a tool by its shown or dotted name; the raw result, or the raw error.
    pub fn call<'a>(&'a self, tool: &'a str, arguments: &'a str) -> BoxFuture<'a, Result<Bytes, Bytes>> {
        Box::pin(self.called(tool, arguments))
    }

    async fn called(&self, tool: &str, arguments: &str) -> Result<Bytes, Bytes> {
        let scope = self.0.scope_of("");
        let tree = self.0.tree.load_full();
        let dotted = ViewKey { style: Style::Dotted, ..scope.clone() };
        let scope =
            if tree.view(&scope).tools.find(tool).is_none() && tree.view(&dotted).tools.find(tool).is_some() { dotted } else { scope };
        let shown = self.tools(None).into_iter().find(|r| r.dotted == tool).map(|r| r.shown);
        let name = if scope.style == Style::Dotted { tool.to_owned() } else { shown.unwrap_or_else(|| tool.to_owned()) };
        if let Err(error) = json::check(arguments.as_bytes(), json::Duplicates::RefuseDeep) {
            return Err(CallError::BadParams(format!("the arguments can't be taken: {error}")).tell(Era::Stateless).object());
        }
        let meta = stateless_meta(&Identity { info: Node::info(), capabilities: Bytes::from_static(b"{}") });
        let params = format!("{{\"name\":{},\"arguments\":{arguments},\"_meta\":{meta}}}", json::quote(&name));
        let request = Request { id: Bytes::from_static(b"0"), method: "tools/call".into(), params: Bytes::from(params).into() };
        let back = Back::new(crate::call::own_caller(scope), Sink::None, None, Cancel::default());
        match crate::call::serve(&self.0, &request, &back).await {
            Ok(Answer::Result(result)) => Ok(result.text().clone()),
            Ok(Answer::Error(error)) => Err(error),
            Err(error) => Err(error.tell(Era::Stateless).object()),
        }
    }
}
