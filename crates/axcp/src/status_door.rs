//! `/-/axcp` and `/-/context/NAME`: connections and contexts, for the owner. Changes nothing.

use std::sync::{Arc, Mutex, PoisonError};

use axcp_proto::context::replica::ContextVersion;
use axcp_proto::message::DeltaKind;
use axcp_proto::telemetry::{TelemetryPayload, TelemetryWatch};
use bytes::Bytes;
use call::words::party::Party;
use call::words::refusal::Refusal;
use door::body;
use door::entrance::Entrance;
use door::port::{Door, query};
use door::reply::{self, Payload, typed};
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::node::AxcpNode;
use crate::shelf::{ContextShelf, HeldContext, uri};
use crate::tools::link::ToolCounts;

const STATUS: &str = "/-/axcp";
const CONTEXT: &str = "/-/context/";

/// Contexts at the listener.
pub(crate) struct ContextDoor {
    pub(crate) entrance: Arc<Entrance>,
    pub(crate) shelf: Arc<ContextShelf>,
    pub(crate) node: Mutex<Option<Arc<AxcpNode>>>,
}

impl Door for ContextDoor {
    fn is_here(&self, path: &str) -> bool {
        path == STATUS || path.starts_with(CONTEXT)
    }

    fn answer(&self, request: Request<Incoming>, _: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        Box::pin(async move {
            let (parts, mut body) = request.into_parts();
            let answered = if !self.entrance.is_owner(&parts) {
                Err(Refusal::refused("this takes the admin token, which the `banyan` command has"))
            } else if parts.method != Method::GET {
                Err(Refusal::failed("contexts are read here: write by the tool of the context"))
            } else {
                self.read(&parts).await
            };
            body::pass_over(&mut body).await;
            match answered {
                Ok(value) => typed(StatusCode::OK, "application/json", Bytes::from(value.to_string())),
                Err(refusal) => reply::refusal(refusal, self.entrance.gate.config.load().wants_credential()),
            }
        })
    }
}

impl ContextDoor {
    /// Shows the connections of a new configuration from now on.
    pub(crate) fn show(&self, node: Option<Arc<AxcpNode>>) {
        *self.node.lock().unwrap_or_else(PoisonError::into_inner) = node;
    }

    async fn read(&self, parts: &Parts) -> Result<Value, Refusal> {
        let Some(name) = parts.uri.path().strip_prefix(CONTEXT) else { return Ok(self.status()) };
        let absent = || Refusal::not_found(format!("there is no context `{name}`: `banyan axcp status` lists them"));
        let context = self.shelf.named(name).ok_or_else(absent)?;
        let number = |key: &str| query(parts, key).and_then(|text| text.parse::<u64>().ok());
        match query(parts, "show").as_deref() {
            Some("log") => log(&context).await,
            Some("at") => at(&context, number("version").ok_or_else(|| Refusal::failed("give a `version`"))?).await,
            Some("diff") => {
                let newest = context.read(axcp_proto::context::replica::Replica::version);
                diff(&context, number("from").ok_or_else(|| Refusal::failed("give a version `from`"))?, number("to").unwrap_or(newest))
                    .await
            }
            Some(_) | None => Err(Refusal::failed("`show` is log, at or diff")),
        }
    }

    fn status(&self) -> Value {
        let node = self.node.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let contexts: Vec<Value> = self.shelf.list().iter().map(|context| shown(context)).collect();
        let Some(node) = node else {
            return json!({"listen": null, "id": null, "trouble": null, "refused": 0, "peers": [], "contexts": contexts});
        };
        let state = node.state().clone();
        let peers: Vec<Value> = node
            .settings()
            .peers
            .iter()
            .map(|(name, peer)| {
                let link = node.link(&peer.id);
                json!({
                    "name": &**name,
                    "id": &*peer.id,
                    "address": peer.address.as_ref().map(|(host, port)| format!("{host}:{port}")),
                    "connected": link.as_ref().is_some_and(|link| link.profile().is_some()),
                    "profile": link.as_ref().and_then(|link| link.profile()),
                    "from": link.as_ref().map(|link| link.connection.remote_address().to_string()),
                    "telemetry": link.as_ref().map(|link| telemetry(&link.telemetry())),
                    "tools": link.as_ref().map(|link| tools(link.tools.counts())),
                    "last_end": state.ends.get(&peer.id),
                })
            })
            .collect();
        json!({
            "listen": state.listens.map(|address| address.to_string()),
            "id": state.id.as_deref(),
            "trouble": state.trouble.or(state.unopened.into_values().next()).or(state.files),
            "refused": state.refused,
            "peers": peers,
            "contexts": contexts,
        })
    }
}

fn tools(counts: ToolCounts) -> Value {
    json!({"offered": counts.offered, "accepted": counts.accepted, "astray": counts.astray})
}

fn telemetry(watch: &TelemetryWatch) -> Value {
    let (received, lost, refused) = watch.counts();
    let last = watch.last().map(|last| match &last.payload {
        Some(TelemetryPayload::System(system)) => json!({
            "timestamp_ms": last.timestamp_ms,
            "cpu_percent": system.cpu_percent,
            "mem_bytes": system.mem_bytes,
            "temperature_c": system.temperature_c,
        }),
        Some(TelemetryPayload::Tokens(tokens)) => json!({
            "timestamp_ms": last.timestamp_ms,
            "prompt_tokens": tokens.prompt_tokens,
            "completion_tokens": tokens.completion_tokens,
        }),
        None => json!({"timestamp_ms": last.timestamp_ms}),
    });
    json!({"received": received, "lost": lost, "refused": refused, "last": last})
}

fn shown(context: &HeldContext) -> Value {
    let settings = &context.settings;
    let peers: Vec<Value> = settings
        .peers
        .iter()
        .map(|peer| {
            let progress = context.progress(peer);
            json!({
                "id": &**peer,
                "known": progress.known,
                "sent": progress.sent,
                "expired": progress.expired,
                "displaced": progress.displaced,
                "lacks": progress.lacks,
            })
        })
        .collect();
    let (version, bytes) = context.read(|replica| (replica.version(), replica.held()));
    json!({
        "name": &*settings.name,
        "id": &*settings.id,
        "uri": uri(&settings.id),
        "version": version,
        "bytes": bytes,
        "trouble": context.trouble(),
        "peers": peers,
    })
}

async fn log(context: &HeldContext) -> Result<Value, Refusal> {
    let versions = context.log().await.map_err(|error| Refusal::failed(error.to_string()))?;
    let shown: Vec<Value> = versions.iter().map(entry).collect();
    Ok(json!({"context": &*context.settings.id, "versions": shown}))
}

async fn at(context: &HeldContext, version: u64) -> Result<Value, Refusal> {
    let replica = context.at(version).await.map_err(|error| Refusal::failed(error.to_string()))?;
    let value: Value = serde_json::from_slice(&replica.json()).map_err(|error| Refusal::failed(error.to_string()))?;
    Ok(json!({"context": &*context.settings.id, "version": version, "value": value}))
}

async fn diff(context: &HeldContext, from: u64, to: u64) -> Result<Value, Refusal> {
    let versions = context.log().await.map_err(|error| Refusal::failed(error.to_string()))?;
    let oldest = versions.first().map_or(0, |first| first.version.saturating_sub(1));
    let newest = versions.last().map_or(0, |last| last.version);
    if from < oldest || to > newest || from > to {
        return Err(Refusal::failed(format!("versions {oldest} to {newest} are kept: give `from` and `to` among them")));
    }
    let between: Vec<Value> = versions.iter().filter(|version| version.version > from && version.version <= to).map(entry).collect();
    Ok(json!({"context": &*context.settings.id, "from": from, "to": to, "changes": between}))
}

fn entry(version: &ContextVersion) -> Value {
    let kind = match DeltaKind::try_from(version.op.op) {
        Ok(DeltaKind::Add) => "add",
        Ok(DeltaKind::Replace) => "replace",
        Ok(DeltaKind::Remove) => "remove",
        Ok(DeltaKind::Merge) => "merge",
        Err(_) => "unknown",
    };
    let text = axcp_proto::gzip::unpack(&version.op.data).unwrap_or_default();
    json!({
        "version": version.version,
        "time": version.stamp.ts,
        "author": &*version.stamp.node,
        "merged": version.merged,
        "op": kind,
        "path": version.op.path,
        "value": serde_json::from_slice::<Value>(&text).ok(),
    })
}
