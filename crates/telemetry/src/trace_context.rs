//! W3C trace context as callers send it: in HTTP headers, and in `params._meta` (SEP-414).
//!
//! Checks the form and keeps the texts. Does not make identifiers and does not record spans.

use std::str::FromStr;

use mcp_proto::field;
use mcp_proto::http1::Fields;
use mcp_proto::json::Members;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

use super::TEXT_LIMIT;

/// The longest `tracestate` that is passed on, in bytes (W3C Trace Context, section 3.3.1.5 asks for at least 512).
const STATE_LIMIT: usize = 1024;

/// A caller's place in a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceContext {
    traceparent: Box<str>,
    tracestate: Option<Box<str>>,
}

impl TraceContext {
    /// Takes the two texts; `None` when `traceparent` is not of the form that W3C defines. A bad `tracestate` is left out.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        ids(traceparent)?;
        let sound = |state: &&str| {
            state.len() <= STATE_LIMIT && state.bytes().all(|b| matches!(b, b' '..=b'~')) && TraceState::from_str(state).is_ok()
        };
        let tracestate = tracestate.filter(sound).filter(|state| !state.trim().is_empty());
        Some(Self { traceparent: traceparent.into(), tracestate: tracestate.map(Into::into) })
    }

    /// Reads the header fields of an HTTP request.
    pub fn of_fields(fields: &Fields) -> Option<Self> {
        Self::parse(fields.str(field::TRACEPARENT)?, fields.str(field::TRACESTATE))
    }

    /// Reads a request's `_meta`.
    pub fn of_meta(meta: &Members<'_>) -> Option<Self> {
        Self::parse(&meta.str("traceparent")?, meta.str("tracestate").as_deref())
    }

    /// The `traceparent`, sound and plain ASCII: fit for a header and for a JSON string as it is.
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// The `tracestate`, printable ASCII: fit for a header; in JSON it has to be quoted like any text.
    pub fn tracestate(&self) -> Option<&str> {
        self.tracestate.as_deref()
    }

    /// Converts the context for OpenTelemetry's library.
    pub(super) fn to_otel(&self) -> SpanContext {
        let Some((trace, span, flags)) = ids(&self.traceparent) else { return SpanContext::NONE };
        let state = self.tracestate.as_deref().and_then(|state| TraceState::from_str(state).ok()).unwrap_or_default();
        SpanContext::new(trace, span, flags, true, state)
    }

    pub(super) fn from_otel(context: &SpanContext) -> Self {
        let flags = context.trace_flags() & TraceFlags::SAMPLED;
        let state = context.trace_state().header();
        Self {
            traceparent: format!("00-{}-{}-{:02x}", context.trace_id(), context.span_id(), flags.to_u8()).into(),
            tracestate: (!state.is_empty()).then(|| state.into()),
        }
    }
}

/// The parts of a `traceparent`: `version-trace-span-flags`, all in lower-case hexadecimal.
fn ids(text: &str) -> Option<(TraceId, SpanId, TraceFlags)> {
    let hex = |part: &str, length| part.len() == length && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    let mut parts = text.splitn(5, '-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let known_length = version != "00" || parts.next().is_none();
    let sound = hex(version, 2) && version != "ff" && hex(trace, 32) && hex(span, 16) && hex(flags, 2);
    if !(sound && known_length && text.len() <= TEXT_LIMIT) {
        return None;
    }
    let trace = TraceId::from_hex(trace).ok().filter(|id| *id != TraceId::INVALID)?;
    let span = SpanId::from_hex(span).ok().filter(|id| *id != SpanId::INVALID)?;
    Some((trace, span, TraceFlags::new(u8::from_str_radix(flags, 16).ok()?)))
}

#[cfg(test)]
mod tests {
    use mcp_proto::json::Duplicates;

    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_sound_traceparent_keeps_its_text() {
        let context = TraceContext::parse(PARENT, Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE")).unwrap();
        assert_eq!(context.traceparent(), PARENT);
        assert_eq!(context.tracestate(), Some("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"));
        assert_eq!(TraceContext::from_otel(&context.to_otel()), context);
    }

    #[test]
    fn a_traceparent_of_a_later_version_may_be_longer() {
        assert!(TraceContext::parse("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-comes", None).is_some());
        assert!(TraceContext::parse(&format!("{PARENT}-what-comes"), None).is_none());
    }

    #[test]
    fn what_is_not_a_traceparent_is_no_context() {
        for bad in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\nX: y",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é",
        ] {
            assert_eq!(TraceContext::parse(bad, None), None, "{bad:?}");
        }
    }

    #[test]
    fn a_bad_tracestate_is_left_out_and_the_rest_stays() {
        let long = format!("k={}", "v".repeat(STATE_LIMIT));
        for bad in ["no-equals-sign", "k=é", "k=v\r\nX: y", " ", long.as_str()] {
            let context = TraceContext::parse(PARENT, Some(bad)).unwrap();
            assert!(context.tracestate().is_none_or(|state| !state.contains(['\r', '\n', 'é'])), "{bad:?} became {context:?}");
        }
        assert_eq!(TraceContext::parse(PARENT, Some("no-equals-sign")).unwrap().tracestate(), None);
    }

    #[test]
    fn headers_and_meta_are_read_alike() {
        let headers = Fields::new([("Traceparent", PARENT.as_bytes()), ("tracestate", b"a=b")]);
        let meta = format!(r#"{{"tracestate":"a=b","traceparent":"{PARENT}"}}"#);
        let members = Members::parse(meta.as_bytes(), Duplicates::RefuseDeep).unwrap();
        assert_eq!(TraceContext::of_fields(&headers), TraceContext::of_meta(&members));
        assert!(TraceContext::of_fields(&headers).is_some());
    }
}
