//! One of many MCP servers of the stateless era in this process: its list of tools, and the streams of those who want to hear that it
//! changed. What it does not know itself is answered as every upstream here answers it.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use anyhow::ensure;
use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};

use crate::answers::{Answers, Said, list_of, whole};
use crate::upstream::{event, typed};

type Reply = Response<Either<Full<Bytes>, Stream>>;

/// A server.
pub(crate) struct Server {
    names: RefCell<Vec<String>>,
    list: RefCell<String>,
    listeners: RefCell<Vec<(String, mpsc::UnboundedSender<Bytes>)>>,
    /// How many servers have not been asked for their list yet, and whoever waits for that.
    unlisted: Rc<(Cell<usize>, Notify)>,
    is_listed: Cell<bool>,
}

impl Server {
    /// The server with this number and so many tools.
    pub(crate) fn new(number: usize, tools: usize, unlisted: Rc<(Cell<usize>, Notify)>) -> Self {
        let names: Vec<String> = (0..tools).map(|tool| format!("tool_{number:04}_{tool:04}")).collect();
        let list = list_of(&names);
        Self { names: names.into(), list: list.into(), listeners: RefCell::default(), unlisted, is_listed: Cell::new(false) }
    }

    /// One more tool, of which those who listen are told; gives its name.
    pub(crate) fn change(&self) -> anyhow::Result<String> {
        let name = {
            let mut names = self.names.borrow_mut();
            let name = format!("more_{:04}", names.len());
            names.push(name.clone());
            *self.list.borrow_mut() = list_of(&names);
            name
        };
        let mut listeners = self.listeners.borrow_mut();
        listeners.retain(|(id, to)| to.send(notification("notifications/tools/list_changed", "", id)).is_ok());
        ensure!(!listeners.is_empty(), "nobody listens for changes");
        Ok(name)
    }

    fn tools(&self) -> String {
        if !self.is_listed.replace(true) {
            self.unlisted.0.set(self.unlisted.0.get() - 1);
            self.unlisted.1.notify_one();
        }
        self.list.borrow().clone()
    }

    fn listen(&self, id: &str) -> Stream {
        let (to, stream) = mpsc::unbounded_channel();
        // The receiver is right here.
        _ = to.send(notification("notifications/subscriptions/acknowledged", r#""notifications":{"toolsListChanged":true},"#, id));
        self.listeners.borrow_mut().push((id.to_owned(), to));
        Stream(stream)
    }
}

#[derive(Deserialize)]
struct Asked<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: &'a str,
}

/// Serves until it is dropped. The path of a request is the number of the server it is for.
pub(crate) async fn serve(listener: TcpListener, servers: Rc<RefCell<Vec<Rc<Server>>>>) -> anyhow::Result<()> {
    let answers = Rc::new(Answers::new(0));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let (servers, answers) = (Rc::clone(&servers), Rc::clone(&answers));
        let service = service_fn(move |request| answer(Rc::clone(&servers), Rc::clone(&answers), request));
        tokio::task::spawn_local(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(servers: Rc<RefCell<Vec<Rc<Server>>>>, answers: Rc<Answers>, request: Request<Incoming>) -> Result<Reply, Infallible> {
    let number = request.uri().path().trim_start_matches('/').parse::<usize>().ok();
    let server = number.and_then(|number| servers.borrow().get(number).cloned());
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let asked = serde_json::from_slice::<Asked<'_>>(&body).ok();
    let (Some(server), Some(Asked { id: Some(id), method })) = (server, asked) else { return Ok(empty(StatusCode::BAD_REQUEST)) };
    Ok(match method {
        "tools/list" => json(StatusCode::OK, whole(id.get(), "result", &server.tools())),
        "subscriptions/listen" => typed(StatusCode::OK, "text/event-stream", Either::Right(server.listen(id.get()))),
        _ => match answers.to(&body) {
            Said::Whole { known: true, message } => json(StatusCode::OK, message),
            Said::Whole { known: false, message } => json(StatusCode::NOT_FOUND, message),
            Said::Nothing => empty(StatusCode::ACCEPTED),
            Said::Events { .. } | Said::Unreadable => empty(StatusCode::BAD_REQUEST),
        },
    })
}

fn empty(code: StatusCode) -> Reply {
    json(code, Bytes::new())
}

fn json(code: StatusCode, message: Bytes) -> Reply {
    typed(code, "application/json", Either::Left(Full::new(message)))
}

/// An event with a notification for the listener whose request had this id.
fn notification(method: &str, members: &str, id: &str) -> Bytes {
    let meta = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
    event(format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{{members}{meta}}}}}"#).as_bytes())
}

/// Events, until the server has no more to say.
pub(crate) struct Stream(mpsc::UnboundedReceiver<Bytes>);

impl Body for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|event| event.map(|event| Ok(Frame::data(event))))
    }
}
