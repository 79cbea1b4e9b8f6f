//! The way of spans out of this process: OTLP over HTTP, in batches, from a thread of its own.
//!
//! An absent collector costs spans and one line of log a minute, never a call: the queue drops spans beyond its room.
//! Does not start spans; `span` does.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use runtime::tls::{Connector, Security, Target};
use tokio::runtime::Handle;
use url::Url;

use super::span::Tracer;

/// Time limit for connecting to the collector.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for one delivery.
const EXPORT_LIMIT: Duration = Duration::from_secs(10);
/// Bytes read of a collector's answer.
const ANSWER_LIMIT: usize = 64 << 10;
/// Interval of mentions of a failing collector in the log.
const MENTION_EVERY: Duration = Duration::from_secs(60);

/// Variables that name a collector when the configuration does not (OpenTelemetry's own names).
const VARIABLES: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Spans on their way to a collector.
pub struct Otlp {
    provider: Option<SdkTracerProvider>,
    tracer: Tracer,
}

/// Failures to export spans.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// Settings refused by the exporter.
    #[error("spans can't be exported: {0}. Correct `otlp` under [telemetry] or the OTEL_EXPORTER_OTLP_* variables")]
    Settings(String),
}

impl Otlp {
    /// Exports to `endpoint` (for instance `http://localhost:4318`; without a path, `/v1/traces` is meant), else to where
    /// OpenTelemetry's variables point, else nowhere. Must be called on the runtime that is to carry the exports.
    pub fn start(endpoint: Option<&Url>, connector: Arc<Connector>) -> Result<Self, OtlpError> {
        let named = VARIABLES.iter().any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
        if endpoint.is_none() && !named {
            return Ok(Self::off());
        }
        let mut builder = SpanExporter::builder().with_http().with_protocol(Protocol::HttpBinary).with_timeout(EXPORT_LIMIT);
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(traces_url(endpoint));
        }
        let client = Delivery { connector, runtime: Handle::current(), mention: Mention::new() };
        let exporter = builder.with_http_client(client).build().map_err(|error| OtlpError::Settings(error.to_string()))?;
        let resource = match std::env::var_os("OTEL_SERVICE_NAME") {
            Some(_) => Resource::builder(),
            None => Resource::builder().with_service_name("banyan"),
        };
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build();
        let tracer = Tracer::exporting(provider.tracer("banyan"));
        Ok(Self { provider: Some(provider), tracer })
    }

    /// Exports nothing.
    pub fn off() -> Self {
        Self { provider: None, tracer: Tracer::off() }
    }

    /// Gives the tracer.
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// Delivers the waiting spans, within `limit`. The runtime has to be alive.
    pub async fn stop(&self, limit: Duration) {
        let Some(provider) = self.provider.clone() else { return };
        // Blocks until the exporting thread is through; that thread needs this runtime's other workers.
        let stopped = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(limit)).await;
        if let Ok(Err(error)) = stopped {
            tracing::warn!(%error, "the last spans could not be delivered");
        }
    }
}

fn traces_url(endpoint: &Url) -> String {
    if endpoint.path() == "/" {
        return endpoint.join("v1/traces").map_or_else(|_| endpoint.to_string(), |url| url.to_string());
    }
    endpoint.to_string()
}

/// Carries a batch from the exporting thread to the runtime and over the network.
struct Delivery {
    connector: Arc<Connector>,
    runtime: Handle,
    mention: Mention,
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Delivery")
    }
}

impl HttpClient for Delivery {
    fn send_bytes<'a, 'f>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        let collector = format!("{}", request.uri());
        let delivery = deliver(self.connector.clone(), request);
        let task = self.runtime.spawn(async move { tokio::time::timeout(EXPORT_LIMIT, delivery).await });
        Box::pin(async move {
            let done = match task.await {
                Ok(Ok(done)) => done,
                Ok(Err(_)) => Err(format!("no answer within {} s", EXPORT_LIMIT.as_secs()).into()),
                Err(_) => Err("this process is ending".into()),
            };
            match &done {
                Ok(answer) if answer.status().is_success() => {}
                Ok(answer) => self.mention.failure(&collector, &answer.status()),
                Err(error) => self.mention.failure(&collector, error),
            }
            done
        })
    }
}

async fn deliver(connector: Arc<Connector>, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (mut parts, body) = request.into_parts();
    let tls = parts.uri.scheme() == Some(&http::uri::Scheme::HTTPS);
    let authority = parts.uri.authority().ok_or("the collector's URL has no host")?.clone();
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let port = authority.port_u16().unwrap_or(if tls { 443 } else { 80 });
    let security = if tls { Security::Tls } else { Security::Plain };
    let io = connector.connect(Target { host, port, security }, CONNECT_LIMIT).await?;

    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(io)).await?;
    tokio::spawn(connection);
    parts.headers.insert(http::header::HOST, authority.as_str().parse()?);
    parts.uri = parts.uri.path_and_query().map_or("/", |path| path.as_str()).parse()?;
    let (head, answer) = sender.send_request(Request::from_parts(parts, Full::new(body))).await?.into_parts();
    let answer = Limited::new(answer, ANSWER_LIMIT).collect().await?.to_bytes();
    Ok(Response::from_parts(head, answer))
}

/// Mentions failures in the log, but not each of them.
struct Mention {
    start: Instant,
    next_ms: AtomicU64,
}

impl Mention {
    fn new() -> Self {
        Self { start: Instant::now(), next_ms: AtomicU64::new(0) }
    }

    fn failure(&self, collector: &str, why: &dyn fmt::Display) {
        let now = self.start.elapsed().as_millis() as u64;
        if now >= self.next_ms.load(Relaxed) {
            self.next_ms.store(now + MENTION_EVERY.as_millis() as u64, Relaxed);
            tracing::warn!(collector, error = %why, "spans are not delivered and will be lost; calls are not affected");
        }
    }
}
