//! Contexts as servers of the tree: each with a resource, a tool to read and a tool to patch. Knows no caller and no rule: the way does.

use std::fmt;
use std::sync::Arc;

use axcp_proto::message::DeltaKind;
use banyan_model::Era;
use bytes::Bytes;
use call::tree::back::Back;
use call::tree::mount::Mount;
use call::tree::port::{Family, NewConnection, Opens, OutgoingRequest, Owner, Upstream, UpstreamError};
use config::resolved::{self, FamilySettings, Transport};
use futures_util::future::BoxFuture;
use json::{Members, elements, quote};
use mcp_proto::client::{Identity, Negotiated};
use mcp_proto::envelope::{Answer, error_object};
use mcp_proto::era::INITIALIZE;

use crate::section::{AxcpSettings, ContextSettings};
use crate::shelf::{ContextShelf, HeldContext, ShelfError, uri};

const TOOLS: &[u8] = br#"{"tools":[
{"name":"read","description":"Reads the shared context, or what stands at one path of it.",
 "inputSchema":{"type":"object","properties":{"path":{"type":"string","description":"A JSON Pointer, for example /user/status. Default: the whole context."}}},
 "annotations":{"readOnlyHint":true}},
{"name":"patch","description":"Changes the shared context for all nodes that share it. All operations are applied, or none.",
 "inputSchema":{"type":"object","properties":{"ops":{"type":"array","minItems":1,"maxItems":1000,"items":{"type":"object","properties":{
  "op":{"enum":["add","replace","remove","merge"]},
  "path":{"type":"string","description":"A JSON Pointer whose first part names a segment, for example /user/status."},
  "value":{"description":"Any JSON. Not with remove."}},"required":["op","path"]}}},"required":["ops"]},
 "annotations":{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false}}]}"#;

/// Operations of one call, at most.
const MOST_OPS: usize = 1000;

/// Contexts as a family of mounts.
pub(crate) struct ContextFamily(pub(crate) Arc<ContextShelf>);

impl Family for ContextFamily {
    fn name(&self) -> &'static str {
        ContextSettings::FAMILY
    }

    fn opens(&self, mount: &Arc<resolved::Mount>) -> Option<Arc<dyn Opens>> {
        let Transport::Family(family) = &mount.transport else { return None };
        let settings = family.settings::<ContextSettings>()?.clone();
        Some(Arc::new(ContextOpens { shelf: Arc::clone(&self.0), settings }))
    }
}

struct ContextOpens {
    shelf: Arc<ContextShelf>,
    settings: ContextSettings,
}

impl Opens for ContextOpens {
    fn open<'a>(&'a self, mount: &'a Arc<Mount>, _: Owner, _: Identity) -> BoxFuture<'a, Result<NewConnection, UpstreamError>> {
        Box::pin(async move {
            let failed = |why: String| UpstreamError::Unreachable(why);
            let config = mount.gate.config.load_full();
            let node = match config.values.get::<AxcpSettings>() {
                Some(settings) => crate::endpoint::own_id(settings).map_err(|error| failed(error.to_string()))?,
                // Nobody else writes to a context without peers.
                None => mount.gate.node.id.to_string().into(),
            };
            let context = self.shelf.open(&self.settings, &node).await.map_err(|error| failed(error.to_string()))?;
            Ok((Box::new(ContextUpstream { context }) as Box<dyn Upstream>, negotiated()))
        })
    }

    fn kind(&self) -> &'static str {
        ContextSettings::FAMILY
    }

    fn identity(&self) -> String {
        format!("context {}", self.settings.id)
    }
}

fn negotiated() -> Negotiated {
    Negotiated {
        era: Era::Initialize,
        version: INITIALIZE[0].to_owned(),
        capabilities: Bytes::from_static(b"{\"tools\":{},\"resources\":{\"subscribe\":true}}"),
        server_info: Bytes::from_static(concat!("{\"name\":\"context\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}").as_bytes()),
        instructions: None,
    }
}

/// A context for callers.
struct ContextUpstream {
    context: Arc<HeldContext>,
}

impl fmt::Debug for ContextUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContextUpstream")
    }
}

impl Upstream for ContextUpstream {
    fn call<'a>(&'a self, out: &'a OutgoingRequest<'a>, _: Option<&'a Arc<Back>>) -> BoxFuture<'a, Result<Answer, UpstreamError>> {
        Box::pin(self.answer(out))
    }

    fn notify<'a>(&'a self, _: &'a str, _: Bytes) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn is_lost(&self) -> bool {
        false
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl ContextUpstream {
    async fn answer(&self, out: &OutgoingRequest<'_>) -> Result<Answer, UpstreamError> {
        Ok(match (out.method, out.params.str("name").as_deref()) {
            ("tools/list", _) => Answer::Result(Bytes::from_static(TOOLS).into()),
            ("tools/call", Some("read")) => self.read(out),
            ("tools/call", Some("patch")) => self.patch(out).await,
            ("resources/list", _) => Answer::Result(Bytes::from(self.resource()).into()),
            ("resources/templates/list", _) => Answer::Result(Bytes::from_static(b"{\"resourceTemplates\":[]}").into()),
            ("resources/read", _) if self.is_named(out) => self.whole(),
            ("resources/read" | "resources/subscribe", _) if !self.is_named(out) => {
                Answer::Error(error_object(-32002, "this resource is not here: list the resources", None))
            }
            ("resources/subscribe" | "resources/unsubscribe" | "ping", _) => Answer::Result(Bytes::from_static(b"{}").into()),
            (method, _) => Answer::Error(error_object(-32601, &format!("a context knows no `{method}`"), None)),
        })
    }

    fn is_named(&self, out: &OutgoingRequest<'_>) -> bool {
        out.params.str("uri").is_some_and(|named| named == uri(&self.context.settings.id))
    }

    fn resource(&self) -> String {
        let settings = &self.context.settings;
        let about = format!("The context {}, shared by {} nodes", settings.id, settings.peers.len() + 1);
        format!(
            "{{\"resources\":[{{\"uri\":{},\"name\":{},\"description\":{},\"mimeType\":\"application/json\"}}]}}",
            quote(&uri(&settings.id)),
            quote(&settings.name),
            quote(&about)
        )
    }

    fn whole(&self) -> Answer {
        let uri = quote(&uri(&self.context.settings.id));
        let head = format!("{{\"contents\":[{{\"uri\":{uri},\"mimeType\":\"application/json\",\"text\":");
        Answer::Result(Bytes::from([head.as_bytes(), &self.context.quoted(), b"}]}"].concat()).into())
    }

    fn read(&self, out: &OutgoingRequest<'_>) -> Answer {
        let arguments = out.params.get("arguments").unwrap_or_default();
        let path = Members::again(&arguments).str("path").map(|path| path.into_owned()).unwrap_or_default();
        if path.is_empty() {
            return quoted(&self.context.quoted(), false);
        }
        match self.context.read(|replica| replica.value(&path)) {
            Ok(Some(value)) => content(&String::from_utf8_lossy(&value), false),
            Ok(None) => content(&format!("nothing stands at {path}"), true),
            Err(refused) => content(&refused.to_string(), true),
        }
    }

    async fn patch(&self, out: &OutgoingRequest<'_>) -> Answer {
        let arguments = out.params.get("arguments").unwrap_or_default();
        let changes = match changes(&arguments) {
            Ok(changes) => changes,
            Err(why) => return content(&why, true),
        };
        let borrowed: Vec<(DeltaKind, &str, Bytes)> =
            changes.iter().map(|(kind, path, data)| (*kind, path.as_str(), data.clone())).collect();
        match self.context.change(None, |shared, at| shared.write(&borrowed, at.wall)).await {
            Ok(version) => content(&format!("version {version}"), false),
            Err(ShelfError::Refused(refused)) => content(&refused.to_string(), true),
            Err(failed @ (ShelfError::Store(_) | ShelfError::Over)) => Answer::Error(error_object(-32603, &failed.to_string(), None)),
        }
    }
}

/// Reads the operations of a call: kinds, paths and JSON texts.
fn changes(arguments: &Bytes) -> Result<Vec<(DeltaKind, String, Bytes)>, String> {
    let ops = Members::again(arguments).get("ops").and_then(elements).ok_or("`ops` is a list of operations")?;
    if ops.is_empty() || ops.len() > MOST_OPS {
        return Err(format!("a call has 1 to {MOST_OPS} operations"));
    }
    ops.into_iter().map(change).collect()
}

fn change(op: &[u8]) -> Result<(DeltaKind, String, Bytes), String> {
    let members = Members::parse(op, json::Duplicates::RefuseDeep).map_err(|error| format!("an operation cannot be read: {error}"))?;
    let kind = match members.str("op").as_deref() {
        Some("add") => DeltaKind::Add,
        Some("replace") => DeltaKind::Replace,
        Some("remove") => DeltaKind::Remove,
        Some("merge") => DeltaKind::Merge,
        Some(_) | None => return Err("`op` is add, replace, remove or merge".into()),
    };
    let path = members.str("path").ok_or("an operation has a `path`")?.into_owned();
    let value = members.get("value");
    match (kind, value) {
        (DeltaKind::Remove, _) => Ok((kind, path, Bytes::new())),
        (DeltaKind::Add | DeltaKind::Replace | DeltaKind::Merge, Some(value)) => Ok((kind, path, Bytes::copy_from_slice(value))),
        (DeltaKind::Add | DeltaKind::Replace | DeltaKind::Merge, None) => Err(format!("the operation at {path} has no `value`")),
    }
}

fn content(text: &str, is_error: bool) -> Answer {
    quoted(quote(text).as_bytes(), is_error)
}

/// Makes the result of a tool from a JSON string.
fn quoted(text: &[u8], is_error: bool) -> Answer {
    let end: &[u8] = if is_error { b"}],\"isError\":true}" } else { b"}]}" };
    Answer::Result(Bytes::from([b"{\"content\":[{\"type\":\"text\",\"text\":", text, end].concat()).into())
}
