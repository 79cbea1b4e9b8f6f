//! Lamps as an upstream: two tools for each. Knows no caller and no rule.

use std::sync::Arc;

use banyan_model::Era;
use bytes::Bytes;
use call::tree::back::Back;
use call::tree::mount::Mount;
use call::tree::port::{Family, NewConnection, Opens, OutgoingRequest, Owner, Upstream, UpstreamError};
use config::resolved::{self, FamilySettings, Transport};
use futures_util::future::BoxFuture;
use mcp_proto::client::{Identity, Negotiated};
use mcp_proto::envelope::{Answer, error_object};
use mcp_proto::era::INITIALIZE;

use crate::bus::Bus;
use crate::section::LampSettings;

const TOOLS: &[u8] = br#"{"tools":[
{"name":"switch","description":"Lights the lamp, or darkens it.",
 "inputSchema":{"type":"object","properties":{"on":{"type":"boolean"}},"required":["on"]},
 "annotations":{"readOnlyHint":false,"destructiveHint":true}},
{"name":"state","description":"Tells if the lamp is lit.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;

/// Lamps of one gate.
pub struct LampFamily(pub Arc<Bus>);

impl Family for LampFamily {
    fn name(&self) -> &'static str {
        LampSettings::FAMILY
    }

    fn opens(&self, mount: &Arc<resolved::Mount>) -> Option<Arc<dyn Opens>> {
        let Transport::Family(family) = &mount.transport else { return None };
        let settings = family.settings::<LampSettings>()?.clone();
        Some(Arc::new(Lamp { bus: Arc::clone(&self.0), settings }))
    }
}

/// A lamp: opens connections to itself, and is one.
#[derive(Clone, Debug)]
struct Lamp {
    bus: Arc<Bus>,
    settings: LampSettings,
}

impl Opens for Lamp {
    fn open<'a>(&'a self, _: &'a Arc<Mount>, _: Owner, _: Identity) -> BoxFuture<'a, Result<NewConnection, UpstreamError>> {
        let negotiated = Negotiated {
            era: Era::Initialize,
            version: INITIALIZE[0].to_owned(),
            capabilities: Bytes::from_static(b"{\"tools\":{}}"),
            server_info: Bytes::from_static(b"{\"name\":\"lamp\",\"version\":\"1\"}"),
            instructions: None,
        };
        Box::pin(std::future::ready(Ok((Box::new(self.clone()) as Box<dyn Upstream>, negotiated))))
    }

    fn kind(&self) -> &'static str {
        LampSettings::FAMILY
    }

    fn identity(&self) -> String {
        self.settings.description()
    }
}

impl Lamp {
    fn answer(&self, out: &OutgoingRequest<'_>) -> Answer {
        match (out.method, out.params.str("name").as_deref()) {
            ("tools/list", _) => Answer::Result(Bytes::from_static(TOOLS).into()),
            ("tools/call", Some("switch")) => {
                let arguments = out.params.get("arguments").unwrap_or_default();
                let on = serde_json::from_slice::<serde_json::Value>(&arguments).is_ok_and(|arguments| arguments["on"] == true);
                self.bus.switch_line(&self.settings.line, on);
                self.state()
            }
            ("tools/call", Some("state")) => self.state(),
            ("ping", _) => Answer::Result(Bytes::from_static(b"{}").into()),
            (method, _) => Answer::Error(error_object(-32601, &format!("a lamp knows no `{method}`"), None)),
        }
    }

    fn state(&self) -> Answer {
        let LampSettings { line, colour } = &self.settings;
        let text = if self.bus.is_lit(line) { format!("{line} is lit ({colour:?})") } else { format!("{line} is dark") };
        Answer::Result(Bytes::from(serde_json::json!({"content": [{"type": "text", "text": text}]}).to_string()).into())
    }
}

impl Upstream for Lamp {
    fn call<'a>(&'a self, out: &'a OutgoingRequest<'a>, _: Option<&'a Arc<Back>>) -> BoxFuture<'a, Result<Answer, UpstreamError>> {
        Box::pin(std::future::ready(Ok(self.answer(out))))
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
