//! Spans, as a collector of OTLP receives them over HTTP. Does not test how the gateway uses them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span as Exported;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;
use runtime::tls::Connector;
use tokio::net::TcpListener;
use url::Url;

use super::*;
use crate::otlp::Otlp;

const META: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const HEADERS: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_one_span_below_the_callers_and_above_the_upstreams() {
    let collector = Collector::start().await;
    let otlp = Otlp::start(Some(&collector.url), Arc::new(Connector::new())).unwrap();
    let meta = TraceContext::parse(META, Some("rojo=1"));

    let mut span = otlp.tracer().start(&Incoming { meta: meta.as_ref(), ..incoming() });
    span.resolved("git", Some(About::Tool("git_commit")));
    let passed_on = span.passed_on().cloned().unwrap();
    span.finish(Ending::Done, None);
    otlp.stop(Duration::from_secs(5)).await;

    let spans = collector.spans();
    let [span] = &spans[..] else { panic!("one span, not {spans:?}") };
    assert_eq!(span.name, "tools/call git_commit");
    assert_eq!(hex(&span.trace_id), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(hex(&span.parent_span_id), "00f067aa0ba902b7");
    assert_eq!(passed_on.traceparent(), format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", hex(&span.span_id)));
    assert_eq!(passed_on.tracestate(), Some("rojo=1"));
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "git_commit"),
        ("gen_ai.operation.name", "execute_tool"),
        ("jsonrpc.request.id", "7"),
        ("mcp.protocol.version", "2026-07-28"),
        ("network.transport", "tcp"),
        ("banyan.mount", "git"),
        ("banyan.principal", "local"),
    ] {
        assert_eq!(attribute(span, key).as_deref(), Some(value), "{key}");
    }
    assert_eq!(attribute(span, "error.type"), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_context_in_the_headers_is_the_parent_only_where_meta_has_none() {
    let collector = Collector::start().await;
    let otlp = Otlp::start(Some(&collector.url), Arc::new(Connector::new())).unwrap();
    let (meta, headers) = (TraceContext::parse(META, None), TraceContext::parse(HEADERS, None));
    otlp.tracer().start(&Incoming { headers: headers.as_ref(), ..incoming() }).finish(Ending::Done, None);
    otlp.tracer().start(&Incoming { headers: headers.as_ref(), meta: meta.as_ref(), ..incoming() }).finish(Ending::Done, None);
    otlp.stop(Duration::from_secs(5)).await;

    let spans = collector.spans();
    assert_eq!(hex(&spans[0].parent_span_id), "b7ad6b7169203331");
    assert_eq!(hex(&spans[1].parent_span_id), "00f067aa0ba902b7");
    assert_eq!(hex(&spans[1].links[0].span_id), "b7ad6b7169203331");
    assert!(spans[0].links.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_error_is_a_failed_span() {
    let collector = Collector::start().await;
    let otlp = Otlp::start(Some(&collector.url), Arc::new(Connector::new())).unwrap();
    otlp.tracer().start(&incoming()).finish(Ending::ToolError, None);
    otlp.tracer().start(&incoming()).finish(Ending::Error(-32602), Some("unknown tool"));
    otlp.stop(Duration::from_secs(5)).await;

    let spans = collector.spans();
    let errors: Vec<_> = spans.iter().map(|span| attribute(span, "error.type").unwrap()).collect();
    assert_eq!(errors, ["tool_error", "-32602"]);
    assert_eq!(attribute(&spans[1], "rpc.response.status_code").as_deref(), Some("-32602"));
    let status = spans[1].status.clone().unwrap();
    assert_eq!((status.code, status.message.as_str()), (StatusCode::Error as i32, "unknown tool"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_a_context_starts_a_trace_and_the_query_of_a_resource_stays_out() {
    let collector = Collector::start().await;
    let otlp = Otlp::start(Some(&collector.url), Arc::new(Connector::new())).unwrap();
    let mut span = otlp.tracer().start(&Incoming { method: "resources/read", ..incoming() });
    span.resolved("files", Some(About::Resource("https://host/a?token=secret")));
    assert!(span.passed_on().is_some());
    span.finish(Ending::Done, None);
    otlp.stop(Duration::from_secs(5)).await;

    let spans = collector.spans();
    assert_eq!(spans[0].name, "resources/read");
    assert!(spans[0].parent_span_id.is_empty());
    assert_eq!(attribute(&spans[0], "mcp.resource.uri").as_deref(), Some("https://host/a"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away_costs_no_call_anything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let otlp = Otlp::start(Some(&url), Arc::new(Connector::new())).unwrap();
    for _ in 0..10_000 {
        otlp.tracer().start(&incoming()).finish(Ending::Done, None);
    }
    // Whoever waited for an answer would wait still: none is given.
    let (exporter, _) = listener.accept().await.unwrap();
    otlp.stop(Duration::from_millis(100)).await;
    exporter.readable().await.unwrap();
    let mut sent = vec![0; 1 << 20];
    let end = loop {
        match exporter.try_read(&mut sent) {
            Ok(read) if read > 0 => {}
            end => break end,
        }
    };
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "the end was kept waiting until the exporter gave up");
}

#[test]
fn without_an_exporter_the_callers_context_goes_on_unchanged() {
    let meta = TraceContext::parse(META, Some("rojo=1"));
    let span = Tracer::off().start(&Incoming { meta: meta.as_ref(), ..incoming() });
    assert_eq!(span.passed_on(), meta.as_ref());
    assert_eq!(Tracer::off().start(&incoming()).passed_on(), None);
}

fn incoming() -> Incoming<'static> {
    Incoming {
        method: "tools/call",
        request_id: b"7",
        principal: "local",
        version: Some("2026-07-28"),
        transport: Transport::Tcp,
        meta: None,
        headers: None,
    }
}

/// A collector of spans over OTLP and HTTP.
struct Collector {
    url: Url,
    spans: Arc<Mutex<Vec<Exported>>>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let spans = Arc::new(Mutex::new(Vec::new()));
        let seen = spans.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let seen = seen.clone();
                let service = service_fn(move |request| collect(seen.clone(), request));
                tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self { url, spans }
    }

    fn spans(&self) -> Vec<Exported> {
        self.spans.lock().unwrap().clone()
    }
}

async fn collect(seen: Arc<Mutex<Vec<Exported>>>, request: Request<hyper::body::Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    assert_eq!(request.uri().path(), "/v1/traces");
    assert_eq!(request.headers()["content-type"], "application/x-protobuf");
    let body = request.into_body().collect().await?.to_bytes();
    let batch = ExportTraceServiceRequest::decode(body).unwrap();
    let scopes = batch.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    seen.lock().unwrap().extend(scopes.flat_map(|scope| scope.spans));
    Ok(Response::new(Full::default()))
}

fn attribute(span: &Exported, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    let value = found.value.clone()?.value?;
    let Value::StringValue(text) = value else { panic!("{key} is {value:?}") };
    Some(text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
