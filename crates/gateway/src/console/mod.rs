//! The console: its files, and who may use it in a browser. What it shows and does goes through the admin API like any command's questions;
//! nothing is decided here.

mod assets;
mod origin;
mod session;

use std::time::{Duration, Instant};

use bytes::Bytes;
use config::resolved::Config;
use http::header::{ACCEPT, COOKIE, LOCATION, SET_COOKIE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::Inner;
use crate::admin::shapes::{ConsoleCode, ConsoleLink, ConsoleOpened, ConsoleSession, Refusal};
use crate::downstream::body;
use crate::downstream::reply::{self, Payload};
use crate::node::Node;
pub(crate) use origin::check as check_origin;
pub(crate) use session::{Kept as SignedIn, SessionId};
use session::{Kept, Sessions};

/// Where the console is.
pub const PATH: &str = "/-/console/";
/// What a page shows besides the cookie, so that neither alone is of use.
const PROOF: &str = "banyan-console";
/// Longest body, in bytes.
const POSTED_BYTES: usize = 4 << 10;

/// Who is signed in.
#[derive(Debug)]
pub(crate) struct Console {
    sessions: Sessions,
    /// Cookies do not tell ports apart: the name says which gate one belongs to.
    cookie: String,
}

impl Console {
    pub(crate) fn of(node: &Node) -> Self {
        let digest = Sha256::digest(node.id.as_bytes());
        let mark: String = digest.iter().take(4).map(|b| format!("{b:02x}")).collect();
        Self { sessions: Sessions::default(), cookie: format!("banyan-console-{mark}") }
    }

    /// Whether a page of this gate asks, for somebody who signed in.
    pub(crate) fn is_owner(&self, config: &Config, parts: &Parts) -> bool {
        self.session(config, parts).is_some()
    }

    /// Ends when the sign-in of whoever asks does; never for those who did not sign in here.
    pub(crate) fn over(&self, config: &Config, parts: &Parts) -> impl Future<Output = ()> + Send + 'static {
        let kept = self.session(config, parts);
        async move {
            match kept {
                Some(kept) => kept.over().await,
                None => std::future::pending().await,
            }
        }
    }

    /// The sign-in of whoever asks, if that is a page of this gate that has one.
    pub(crate) fn signed_in(&self, config: &Config, parts: &Parts) -> Option<SignedIn> {
        self.session(config, parts)
    }

    fn session(&self, config: &Config, parts: &Parts) -> Option<Kept> {
        let proof = parts.headers.get(PROOF)?.to_str().ok()?;
        let cookie = self.cookie_of(parts)?;
        origin::check(config, parts).ok()?;
        self.sessions.find(cookie, proof, Instant::now())
    }

    fn cookie_of<'a>(&self, parts: &'a Parts) -> Option<&'a str> {
        let pairs = parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(name, _)| *name == self.cookie).map(|(_, value)| value)
    }

    /// A link that signs in whoever opens it first.
    pub(crate) fn link(&self, base: &str) -> ConsoleLink {
        let (code, lasts) = self.sessions.code(Instant::now());
        ConsoleLink { url: format!("{base}{PATH}#code={code}"), expires_in: lasts.as_secs() }
    }
}

/// Whether a request is for the console: below its path, or a browser at the root.
pub(crate) fn is_here(parts: &Parts) -> bool {
    let wants_page = || parts.headers.get(ACCEPT).is_some_and(|a| a.to_str().unwrap_or_default().contains("text/html"));
    match parts.uri.path() {
        "/" => parts.method == Method::GET && wants_page(),
        path => path == PATH.trim_end_matches('/') || path.starts_with(PATH),
    }
}

/// Answers a request for the console.
pub(crate) async fn answer(gateway: &Inner, parts: &Parts, body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    let rest = parts.uri.path().strip_prefix(PATH);
    match (&parts.method, rest) {
        (&Method::POST, Some("session")) => sign_in(gateway, parts, body).await,
        (&Method::GET, Some("session")) => Ok(standing(gateway, parts)),
        (&Method::DELETE, Some("session")) => sign_out(gateway, parts),
        (&Method::GET | &Method::HEAD, Some(name)) => {
            assets::answer(name, parts).ok_or_else(|| Refusal::not_found(format!("the console has no file `{name}`")))
        }
        (&Method::GET | &Method::HEAD, None) => Ok(moved()),
        (method, _) => Err(Refusal::not_found(format!("the console has no {method} {}", parts.uri.path()))),
    }
}

fn moved() -> Response<Payload> {
    let mut response = reply::typed(StatusCode::SEE_OTHER, "text/plain", Bytes::from_static(b"the console is at /-/console/\n"));
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(PATH));
    response
}

const USED: &str = "This link was used before, or is more than two minutes old. If somebody else has used it, they are signed in here: \
     `banyan stop` ends that. `banyan console` makes a new link.";

/// Takes a code for a session.
async fn sign_in(gateway: &Inner, parts: &Parts, body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    origin::check(&gateway.config.load(), parts).map_err(Refusal::refused)?;
    let body = body::posted(body, POSTED_BYTES).await.map_err(|why| Refusal::failed(why.to_string()))?;
    let ConsoleCode { code } = serde_json::from_slice(&body).map_err(|e| Refusal::failed(format!("the request is not {{code}}: {e}")))?;
    let opened = gateway.console.sessions.exchange(&code, Instant::now());
    let opened = opened.ok_or_else(|| Refusal::refused(USED))?;
    let told = ConsoleOpened { proof: opened.proof, expires_in: opened.lasts.as_secs() };
    with_cookie(gateway, told_as(&told), &opened.cookie, opened.lasts)
}

fn standing(gateway: &Inner, parts: &Parts) -> Response<Payload> {
    let kept = gateway.console.session(&gateway.config.load(), parts);
    let expires_in = kept.map(|kept| kept.until.saturating_duration_since(Instant::now()).as_secs());
    let wants_token = gateway.config.load().wants_credential();
    told_as(&ConsoleSession { signed_in: expires_in.is_some(), expires_in, wants_token })
}

fn sign_out(gateway: &Inner, parts: &Parts) -> Result<Response<Payload>, Refusal> {
    let kept = gateway.console.session(&gateway.config.load(), parts);
    kept.ok_or_else(|| Refusal::refused("nobody is signed in here"))?.ended.cancel();
    gateway.console.sessions.sweep(Instant::now());
    let wants_token = gateway.config.load().wants_credential();
    with_cookie(gateway, told_as(&ConsoleSession { signed_in: false, expires_in: None, wants_token }), "", Duration::ZERO)
}

fn told_as(value: &impl serde::Serialize) -> Response<Payload> {
    let mut response = reply::typed(StatusCode::OK, "application/json", serde_json::to_vec(value).unwrap_or_default().into());
    assets::guard(&mut response);
    response
}

fn with_cookie(gateway: &Inner, mut response: Response<Payload>, value: &str, lasts: Duration) -> Result<Response<Payload>, Refusal> {
    let secure = if gateway.trust.speaks_tls() { "; Secure" } else { "" };
    let (name, age) = (&gateway.console.cookie, lasts.as_secs());
    let cookie = format!("{name}={value}; Path=/-/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| Refusal::failed("the cookie can't be written"))?;
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}

/// Fires when a sign-in ends.
type Ended = CancellationToken;
