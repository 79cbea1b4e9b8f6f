//! The server: one tool, one resource, one prompt, over stdio or HTTP, in both eras. Does not misbehave.

use std::net::Ipv4Addr;
use std::sync::Arc;

use anyhow::Context;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig,
};
use rmcp::service::{RequestContext, ServiceExt};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::json;
use tokio::net::TcpListener;

/// The handler.
#[derive(Clone)]
struct Small;

fn parsed<T: serde::de::DeserializeOwned>(value: serde_json::Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

impl ServerHandler for Small {
    fn get_info(&self) -> ServerConfig {
        let mut config = ServerConfig::default();
        if let Ok(capabilities) = serde_json::from_value(json!({"tools": {}, "resources": {}})) {
            config.capabilities = capabilities;
        }
        config
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}});
        parsed(json!({"tools": [{"name": "add", "description": "Adds", "inputSchema": schema}]}))
    }

    async fn call_tool(&self, request: CallToolRequestParams, _context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let number = |name: &str| arguments.get(name).and_then(serde_json::Value::as_i64).unwrap_or_default();
        let sum = number("a") + number("b");
        Ok(CallToolResponse::Complete(parsed(json!({"content": [{"type": "text", "text": sum.to_string()}]}))?))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        parsed(json!({"resources": [{"uri": "rmcp://note", "name": "note"}]}))
    }

    async fn read_resource(
        &self,
        _request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = json!({"contents": [{"uri": "rmcp://note", "text": "noted"}]});
        Ok(ReadResourceResponse::Complete(parsed(contents)?))
    }
}

/// Serves on standard input and output until they end.
pub(crate) async fn stdio() -> anyhow::Result<()> {
    let service = Small.serve(rmcp::transport::stdio()).await?;
    service.waiting().await?;
    Ok(())
}

/// Serves at any path of a loopback port until the process is ended.
pub(crate) async fn http(port: u16) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.with_context(|| format!("port {port}"))?;
    let service = StreamableHttpService::new(|| Ok(Small), Arc::new(LocalSessionManager::default()), StreamableHttpServerConfig::default());
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
                drop(error);
            }
        });
    }
}
