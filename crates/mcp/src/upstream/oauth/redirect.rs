//! Loopback address to which the authorization server sends the browser back (RFC 8252, section 7.3).
//!
//! Serves a single sign-in: a request without its `state` is turned away and changes nothing.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use url::Url;

/// Most connections at a time. Browsers open several, and a silent one must not hold up the others.
const MOST: usize = 32;
/// Longest head read, in bytes.
const LONGEST: usize = 16 << 10;
/// Longest wait for a browser's request.
const PATIENCE: Duration = Duration::from_secs(10);
const PATH: &str = "/callback";

/// An open loopback port.
pub struct Redirect {
    listener: TcpListener,
    port: u16,
}

/// Parameters of the redirect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedirectParameters {
    pub state: String,
    pub issuer: Option<String>,
    /// The code, or the reason for its absence.
    pub outcome: Result<String, String>,
}

impl Redirect {
    /// Listens at `port` of 127.0.0.1; 0 takes any free port.
    pub async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Address for the authorization server.
    pub fn uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits until the browser brings back `state`.
    pub async fn wait(self, state: &str) -> io::Result<RedirectParameters> {
        let state: Arc<str> = state.into();
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MOST => {
                    connections.spawn(serve(accepted?.0, Arc::clone(&state)));
                }
                Some(served) = connections.join_next() => {
                    if let Ok(Some(returned)) = served {
                        return Ok(returned);
                    }
                }
            }
        }
    }
}

/// Answers a request; returns its parameters once the answer is on its way.
async fn serve(stream: TcpStream, state: Arc<str>) -> Option<RedirectParameters> {
    let found = Mutex::new(None);
    let service = service_fn(async |request: Request<Incoming>| {
        let target = request.uri().path_and_query().filter(|_| request.method() == Method::GET);
        let returned = target.and_then(|target| read(target.as_str())).filter(|returned| *returned.state == *state);
        let answer = answer(returned.as_ref());
        if let Ok(mut found) = found.lock() {
            *found = found.take().or(returned);
        }
        Ok::<_, Infallible>(answer)
    });
    let mut http = http1::Builder::new();
    let connection = http.keep_alive(false).max_buf_size(LONGEST).serve_connection(TokioIo::new(stream), service);
    // A browser that left or was too slow has still brought its parameters.
    let _ended = tokio::time::timeout(PATIENCE, connection).await;
    found.into_inner().ok().flatten()
}

fn answer(returned: Option<&RedirectParameters>) -> Response<Full<Bytes>> {
    let (status, text) = match returned {
        None => (StatusCode::NOT_FOUND, "This address is only for the sign-in that is under way."),
        Some(RedirectParameters { outcome: Ok(_), .. }) => (StatusCode::OK, "Signed in. You can close this window."),
        Some(_) => (StatusCode::OK, "The sign-in was refused. You can close this window."),
    };
    let body = format!("<!doctype html><meta charset=utf-8><title>Banyan</title><p>{text}</p>");
    let mut answer = Response::new(Full::from(body));
    *answer.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn read(target: &str) -> Option<RedirectParameters> {
    let query = target.strip_prefix(PATH)?.strip_prefix('?')?;
    let url = Url::parse(&format!("http://127.0.0.1/?{query}")).ok()?;
    let value = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    let refused = value("error").map(|error| match value("error_description") {
        Some(why) => format!("{error}: {why}"),
        None => error,
    });
    let outcome = match (refused, value("code")) {
        (Some(why), _) => Err(why),
        (None, Some(code)) => Ok(code),
        (None, None) => return None,
    };
    Some(RedirectParameters { state: value("state")?, issuer: value("iss"), outcome })
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[test]
    fn what_comes_back_is_a_code_or_a_reason() {
        let good = read("/callback?code=c%20d&state=s&iss=https%3A%2F%2Fas").unwrap();
        assert_eq!((good.outcome, good.state.as_str(), good.issuer.as_deref()), (Ok("c d".into()), "s", Some("https://as")));
        let bad = read("/callback?error=access_denied&error_description=no&state=s").unwrap();
        assert_eq!(bad.outcome, Err("access_denied: no".into()));
        for other in ["/", "/callback", "/callback?code=c", "/callbacks?code=c&state=s", "//evil/callback?code=c&state=s", ""] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    async fn asked(port: u16, query: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(format!("GET /callback?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn only_the_right_state_ends_the_waiting() {
        let redirect = Redirect::bind(0).await.unwrap();
        let port = redirect.port;
        let waiting = tokio::spawn(async move { redirect.wait("right").await.unwrap() });
        for (query, status) in [("code=x&state=wrong", "404"), ("", "404"), ("code=y&state=right", "200")] {
            let answer = asked(port, query).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        }
        assert_eq!(waiting.await.unwrap().outcome, Ok("y".into()));
    }

    #[tokio::test]
    async fn l7_connections_that_say_nothing_keep_no_browser_waiting() {
        let redirect = Redirect::bind(0).await.unwrap();
        let port = redirect.port;
        let waiting = tokio::spawn(async move { redirect.wait("right").await.unwrap() });
        let mut silent = Vec::new();
        for _ in 0..MOST - 1 {
            silent.push(TcpStream::connect(("127.0.0.1", port)).await.unwrap());
        }
        // In turn, these would take longer than the limit together.
        let answer = tokio::time::timeout(PATIENCE * 3, asked(port, "code=y&state=right")).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(waiting.await.unwrap().outcome, Ok("y".into()));
    }
}
