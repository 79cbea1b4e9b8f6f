//! The loopback address that the authorization server sends the browser back to (RFC 8252, section 7.3).
//!
//! Serves one sign-in: anything that does not carry its `state` is turned away and changes nothing.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

/// The longest request that is read, in bytes.
const LONGEST: usize = 16 << 10;
/// How long a browser may take for its request.
const PATIENCE: Duration = Duration::from_secs(10);
const PATH: &str = "/callback";

/// An open loopback port.
pub(super) struct Redirect {
    listener: TcpListener,
    port: u16,
}

/// What came back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Returned {
    pub(super) state: String,
    pub(super) issuer: Option<String>,
    /// The code, or why there is none.
    pub(super) outcome: Result<String, String>,
}

impl Redirect {
    /// Listens at `port` of 127.0.0.1; 0 takes any free one.
    pub(super) async fn bind(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The address for the authorization server.
    pub(super) fn uri(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// Waits until the browser brings back `state`.
    pub(super) async fn wait(self, state: &str) -> io::Result<Returned> {
        loop {
            let (mut stream, _) = self.listener.accept().await?;
            // One connection after the other: a browser needs no more, and a stalled one is cut off.
            let served = tokio::time::timeout(PATIENCE, serve(&mut stream, state)).await;
            if let Ok(Ok(Some(returned))) = served {
                return Ok(returned);
            }
        }
    }
}

async fn serve(stream: &mut TcpStream, state: &str) -> io::Result<Option<Returned>> {
    let head = head(stream).await?;
    let target = head.split(' ').nth(1).filter(|_| head.starts_with("GET ")).unwrap_or_default();
    let returned = read(target).filter(|returned| returned.state == state);
    let (status, text) = match &returned {
        None => ("404 Not Found", "This address is only for the sign-in that is under way."),
        Some(Returned { outcome: Ok(_), .. }) => ("200 OK", "Signed in. You can close this window."),
        Some(_) => ("200 OK", "The sign-in was refused. You can close this window."),
    };
    let body = format!("<!doctype html><meta charset=utf-8><title>Banyan</title><p>{text}</p>");
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Content-Security-Policy: default-src 'none'\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    Ok(returned)
}

async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 2048];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") && bytes.len() < LONGEST {
        let count = stream.read(&mut chunk).await?;
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&chunk[..count]);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn read(target: &str) -> Option<Returned> {
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
    Some(Returned { state: value("state")?, issuer: value("iss"), outcome })
}

#[cfg(test)]
mod tests {
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

    #[tokio::test]
    async fn only_the_right_state_ends_the_waiting() {
        let redirect = Redirect::bind(0).await.unwrap();
        let uri = redirect.uri();
        let waiting = tokio::spawn(async move { redirect.wait("right").await.unwrap() });
        for (query, status) in [("code=x&state=wrong", "404"), ("", "404"), ("code=y&state=right", "200")] {
            let port = Url::parse(&uri).unwrap().port().unwrap();
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream.write_all(format!("GET /callback?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        }
        assert_eq!(waiting.await.unwrap().outcome, Ok("y".into()));
    }
}
