//! A server as a process: the upstream over standard input and output, and the least that can stand in front of one.
//!
//! That floor reads no JSON: the body of a request goes to the process as one line, and its next line is the answer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::Stdio;
use std::rc::Rc;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, oneshot};

use crate::answers::{Answers, Said};

/// Answers lines on standard input until it ends.
pub(crate) async fn upstream(tools: usize) -> anyhow::Result<()> {
    let answers = Answers::new(tools);
    let mut lines = BufReader::with_capacity(64 << 10, tokio::io::stdin());
    let mut out = tokio::io::stdout();
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await? > 0 {
        let messages = match answers.to(&line) {
            Said::Unreadable | Said::Nothing => Vec::new(),
            Said::Whole { message, .. } => vec![message],
            Said::Events { messages, .. } => messages,
        };
        for message in messages {
            out.write_all(&[&message[..], b"\n"].concat()).await?;
        }
        out.flush().await?;
        line.clear();
    }
    Ok(())
}

/// The process behind the floor, and who waits for its lines, in their order.
struct Pipe {
    input: Mutex<ChildStdin>,
    waiting: RefCell<VecDeque<oneshot::Sender<Bytes>>>,
}

/// Serves on `listen` what `command` answers, until the process is ended.
pub(crate) async fn serve(listen: SocketAddr, command: &[String]) -> anyhow::Result<()> {
    let (program, arguments) = command.split_first().context("no command")?;
    let mut child = Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
    let input = Mutex::new(child.stdin.take().context("no standard input")?);
    let output = child.stdout.take().context("no standard output")?;
    let pipe = Rc::new(Pipe { input, waiting: RefCell::default() });
    let listener = TcpListener::bind(listen).await?;
    tokio::task::LocalSet::new()
        .run_until(async move {
            tokio::task::spawn_local(read(Rc::clone(&pipe), output));
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let pipe = Rc::clone(&pipe);
                let service = service_fn(move |request| answer(Rc::clone(&pipe), request));
                tokio::task::spawn_local(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        })
        .await
}

/// Gives each line to who waits for it. When the process ends, nobody is waited for any more.
async fn read(pipe: Rc<Pipe>, output: ChildStdout) {
    let mut lines = BufReader::with_capacity(64 << 10, output);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
        if let Some(waiting) = pipe.waiting.borrow_mut().pop_front() {
            drop(waiting.send(Bytes::copy_from_slice(line.trim_ascii_end())));
        }
        line.clear();
    }
    pipe.waiting.borrow_mut().clear();
}

async fn answer(pipe: Rc<Pipe>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::default());
    match through(&pipe, request).await {
        Ok(line) => {
            *response.body_mut() = Full::new(line);
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        Err(_) => *response.status_mut() = StatusCode::BAD_GATEWAY,
    }
    Ok(response)
}

async fn through(pipe: &Pipe, request: Request<Incoming>) -> anyhow::Result<Bytes> {
    let body = request.into_body().collect().await?.to_bytes();
    let (sender, receiver) = oneshot::channel();
    let mut input = pipe.input.lock().await;
    pipe.waiting.borrow_mut().push_back(sender);
    input.write_all(&[&body[..], b"\n"].concat()).await?;
    drop(input);
    Ok(receiver.await?)
}
