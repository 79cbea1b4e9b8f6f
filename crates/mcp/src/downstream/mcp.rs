//! Door of MCP: `/mcp` and the endpoints of single mounts. Plain POSTs never reach it; see `plain.rs`.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use runtime::tcp::Tcp;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::downstream::endpoint;
use crate::downstream::endpoint::RequestHead;
use crate::downstream::{McpServer, plain};
use call::words::entered::AdmittedCaller;
use call::words::party::Party;
use door::body;
use door::connections::Connection;
use door::known::KnownClient;
use door::port::{Door, FirstReader, ReadEnd, fields};
use door::reply;
use door::reply::{Payload, Reply};

/// [`McpServer`] at the listener.
pub struct McpDoor(pub Arc<McpServer>);

impl Door for McpDoor {
    fn is_here(&self, path: &str) -> bool {
        endpoint::is_here(path)
    }

    fn answer(&self, request: Request<Incoming>, party: Option<Arc<Party>>) -> BoxFuture<'_, Response<Payload>> {
        // Streams of one connection run side by side, so each is admitted anew.
        mcp(&self.0, request, KnownClient::of_party(party), None).map(Reply::into_http).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async { self.0.entrance.gate.hub.end_all() }.boxed()
    }
}

impl FirstReader for McpDoor {
    fn read<'a>(&'a self, stream: Tcp, party: Option<Arc<Party>>, at: &'a Arc<Connection>) -> BoxFuture<'a, ReadEnd<Tcp>> {
        plain::serve(&self.0, stream, party, at).boxed()
    }

    fn read_tls<'a>(
        &'a self,
        stream: Box<TlsStream<TcpStream>>,
        party: Option<Arc<Party>>,
        at: &'a Arc<Connection>,
    ) -> BoxFuture<'a, ReadEnd<Box<TlsStream<TcpStream>>>> {
        plain::serve(&self.0, stream, party, at).boxed()
    }
}

/// Answers a request over a link, from a parent that this gate has dialled. Serves nothing but MCP.
pub async fn over_link(server: &Arc<McpServer>, parent: AdmittedCaller, request: Request<Incoming>) -> Response<Payload> {
    if !endpoint::is_here(request.uri().path()) {
        return reply::refuse(StatusCode::NOT_FOUND, None, -32000, "over a link, a parent is served at /mcp only").into_http();
    }
    mcp(server, request, KnownClient::default(), Some(parent)).await.into_http()
}

/// Answers a request; `proven` is the caller, where known beforehand.
async fn mcp(server: &Arc<McpServer>, request: Request<Incoming>, mut known: KnownClient, proven: Option<AdmittedCaller>) -> Reply {
    let (parts, mut body) = request.into_parts();
    let fields = fields(&parts);
    let asked = RequestHead { path: parts.uri.path(), query: parts.uri.query(), fields: &fields };
    let admitted = match proven {
        Some(entered) => endpoint::admit_known(server, asked.path, entered),
        None => endpoint::admit(server, asked, &mut known),
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        Err(refused) => {
            body::pass_over(&mut body).await;
            return refused;
        }
    };
    match parts.method {
        Method::POST => match body::request(&server.entrance.gate, admitted.principal(), body).await {
            Ok(body) => endpoint::post(server, &admitted, asked, &body, &mut known).await,
            Err(reply) => reply,
        },
        Method::GET => endpoint::get(server, &admitted, asked),
        Method::DELETE => endpoint::delete(server, &admitted, asked).await,
        _ => endpoint::not_allowed(),
    }
}
