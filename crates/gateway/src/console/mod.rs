//! The console: files, and sign-in of browsers. Does not decide anything: the page asks the admin API, as commands do.

mod assets;

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, LOCATION, SET_COOKIE};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;

use crate::admin::shapes::{ConsoleCode, ConsoleLink, ConsoleOpened, ConsoleSession};
use call::words::refusal::Refusal;
use door::body;
use door::entrance::Entrance;
use door::origin;
use door::reply;
use door::reply::Payload;
use door::sign_in::SignIns;

/// Path of the console.
pub const PATH: &str = "/-/console/";
const POSTED_BYTES: usize = 4 << 10;

/// Makes a link that signs in the first browser to open the link.
pub(crate) fn link(sign_ins: &SignIns, base: &str) -> ConsoleLink {
    let (code, lasts) = sign_ins.sessions.code(Instant::now());
    ConsoleLink { url: format!("{base}{PATH}#code={code}"), expires_in: lasts.as_secs() }
}

/// Recognises requests for the console: below the console's path, or a browser at the root.
pub(crate) fn is_here(parts: &Parts) -> bool {
    let wants_page = || parts.headers.get(ACCEPT).is_some_and(|a| a.to_str().unwrap_or_default().contains("text/html"));
    match parts.uri.path() {
        "/" => parts.method == Method::GET && wants_page(),
        path => path == PATH.trim_end_matches('/') || path.starts_with(PATH),
    }
}

/// Answers a request for the console.
pub(crate) async fn answer(entrance: &Entrance, parts: &Parts, body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    let rest = parts.uri.path().strip_prefix(PATH);
    match (&parts.method, rest) {
        (&Method::POST, Some("session")) => sign_in(entrance, parts, body).await,
        (&Method::GET, Some("session")) => Ok(standing(entrance, parts)),
        (&Method::DELETE, Some("session")) => sign_out(entrance, parts),
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
async fn sign_in(entrance: &Entrance, parts: &Parts, body: &mut Incoming) -> Result<Response<Payload>, Refusal> {
    origin::check(&entrance.gate.config.load(), parts).map_err(Refusal::refused)?;
    let body = body::posted(body, POSTED_BYTES).await.map_err(|why| Refusal::failed(why.to_string()))?;
    let ConsoleCode { code } = serde_json::from_slice(&body).map_err(|e| Refusal::failed(format!("the request is not {{code}}: {e}")))?;
    let opened = entrance.sign_ins.sessions.exchange(&code, Instant::now());
    let opened = opened.ok_or_else(|| Refusal::refused(USED))?;
    let told = ConsoleOpened { proof: opened.proof, expires_in: opened.lasts.as_secs() };
    with_cookie(entrance, told_as(&told), &opened.cookie, opened.lasts)
}

fn standing(entrance: &Entrance, parts: &Parts) -> Response<Payload> {
    let kept = entrance.signed_in(parts);
    let expires_in = kept.map(|kept| kept.until.saturating_duration_since(Instant::now()).as_secs());
    let wants_token = entrance.gate.config.load().wants_credential();
    told_as(&ConsoleSession { signed_in: expires_in.is_some(), expires_in, wants_token })
}

fn sign_out(entrance: &Entrance, parts: &Parts) -> Result<Response<Payload>, Refusal> {
    let kept = entrance.signed_in(parts);
    kept.ok_or_else(|| Refusal::refused("nobody is signed in here"))?.ended.cancel();
    entrance.sign_ins.sessions.sweep(Instant::now());
    let wants_token = entrance.gate.config.load().wants_credential();
    with_cookie(entrance, told_as(&ConsoleSession { signed_in: false, expires_in: None, wants_token }), "", Duration::ZERO)
}

fn told_as(value: &impl serde::Serialize) -> Response<Payload> {
    let mut response = reply::typed(StatusCode::OK, "application/json", serde_json::to_vec(value).unwrap_or_default().into());
    assets::guard(&mut response);
    response
}

fn with_cookie(entrance: &Entrance, mut response: Response<Payload>, value: &str, lasts: Duration) -> Result<Response<Payload>, Refusal> {
    let secure = if entrance.trust.speaks_tls() { "; Secure" } else { "" };
    let (name, age) = (&entrance.sign_ins.cookie, lasts.as_secs());
    let cookie = format!("{name}={value}; Path=/-/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}");
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| Refusal::failed("the cookie can't be written"))?;
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}
