//! Codes for a single use within two minutes, and the console sessions that they open. Keeps digests only, in memory only. Does not serve
//! the page.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runtime::random;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use config::resolved::Config;
use http::header::COOKIE;
use http::request::Parts;
use tokio_util::sync::CancellationToken;

use crate::origin;
use call::words::node::Node;

/// Header with the page's half of a session. Neither half is of use alone.
const PROOF: &str = "banyan-console";

/// Fires when a sign-in ends.
type EndSignal = CancellationToken;

/// Lifetime of an unused code.
const CODE_LASTS: Duration = Duration::from_secs(120);
/// Lifetime of a session: a day's work.
const SESSION_LASTS: Duration = Duration::from_secs(12 * 3600);
/// Most codes, and most sessions; the oldest give way.
const MOST: usize = 32;

/// Sign-ins at the console of one gate.
#[derive(Debug)]
pub struct SignIns {
    pub sessions: Sessions,
    /// Name of the cookie. Cookies do not tell ports apart, so the name tells gates apart.
    pub cookie: String,
}

impl SignIns {
    /// Makes an empty set, with a cookie name of this node.
    pub fn of_node(node: &Node) -> Self {
        let digest = Sha256::digest(node.id.as_bytes());
        let mark: String = digest.iter().take(4).map(|b| format!("{b:02x}")).collect();
        Self { sessions: Sessions::default(), cookie: format!("banyan-console-{mark}") }
    }

    /// Completes when the sign-in of the request ends; never for a request without a sign-in.
    pub fn over(&self, config: &Config, parts: &Parts) -> impl Future<Output = ()> + Send + 'static {
        let kept = self.session(config, parts);
        async move {
            match kept {
                Some(kept) => kept.over().await,
                None => std::future::pending().await,
            }
        }
    }

    /// Sign-in of the request, if from a page of this gate with a sign-in.
    pub fn session(&self, config: &Config, parts: &Parts) -> Option<SignIn> {
        let proof = parts.headers.get(PROOF)?.to_str().ok()?;
        let cookie = self.cookie_of(parts)?;
        origin::check(config, parts).ok()?;
        self.sessions.find(cookie, proof, Instant::now())
    }

    fn cookie_of<'a>(&self, parts: &'a Parts) -> Option<&'a str> {
        let pairs = parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(name, _)| *name == self.cookie).map(|(_, value)| value)
    }
}

/// Codes handed out, and sessions open.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<SessionTable>);

/// Number of a session, unique while the gate runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionId(u64);

#[derive(Debug, Default)]
struct SessionTable {
    opened: u64,
    codes: Vec<(SecretDigest, Instant)>,
    sessions: Vec<(SecretDigest, SecretDigest, SignIn)>,
}

/// A session.
#[derive(Debug, Clone)]
pub struct SignIn {
    pub id: SessionId,
    pub until: Instant,
    pub ended: EndSignal,
}

impl SignIn {
    /// Checks for a sign-in that was ended or has expired.
    pub fn is_over(&self) -> bool {
        self.ended.is_cancelled() || self.until <= Instant::now()
    }

    /// Completes when the sign-in is over.
    pub async fn over(&self) {
        tokio::select! {
            () = self.ended.cancelled() => {}
            () = tokio::time::sleep_until(self.until.into()) => {}
        }
    }
}

#[cfg(any(test, feature = "for-tests"))]
impl SessionId {
    /// Makes a session number for tests.
    pub fn for_test(number: u64) -> Self {
        Self(number)
    }
}

#[cfg(any(test, feature = "for-tests"))]
impl SignIn {
    /// Makes a lasting sign-in for tests.
    pub fn for_test() -> Self {
        Self { id: SessionId(0), until: Instant::now() + SESSION_LASTS, ended: EndSignal::new() }
    }

    /// Signs out.
    pub fn sign_out(&self) {
        self.ended.cancel();
    }
}

/// A new session, with its two halves: `cookie`, hidden from pages, and `proof`, hidden from other ports of the same host.
pub struct OpenedSession {
    pub cookie: String,
    pub proof: String,
    pub lasts: Duration,
}

/// SHA-256 of a secret.
type SecretDigest = [u8; 32];

impl Sessions {
    /// Makes a code, and returns it with its lifetime.
    pub fn code(&self, now: Instant) -> (String, Duration) {
        let code = secret();
        let mut held = self.lock();
        held.codes.retain(|(_, until)| *until > now);
        if held.codes.len() >= MOST {
            held.codes.remove(0);
        }
        held.codes.push((hidden(&code), now + CODE_LASTS));
        (code, CODE_LASTS)
    }

    /// Opens a session for a code; `None` for an unknown or expired code.
    pub fn exchange(&self, code: &str, now: Instant) -> Option<OpenedSession> {
        let wanted = hidden(code);
        let mut held = self.lock();
        let at = held.codes.iter().position(|(known, until)| *until > now && known.ct_eq(&wanted).into())?;
        held.codes.remove(at);
        let opened = OpenedSession { cookie: secret(), proof: secret(), lasts: SESSION_LASTS };
        if held.sessions.len() >= MOST {
            held.sessions.remove(0).2.ended.cancel();
        }
        held.opened += 1;
        let kept = SignIn { id: SessionId(held.opened), until: now + SESSION_LASTS, ended: EndSignal::new() };
        held.sessions.push((hidden(&opened.cookie), hidden(&opened.proof), kept));
        Some(opened)
    }

    /// Finds the session of both halves.
    pub fn find(&self, cookie: &str, proof: &str, now: Instant) -> Option<SignIn> {
        let (cookie, proof) = (hidden(cookie), hidden(proof));
        let held = self.lock();
        let found = held.sessions.iter().find(|(c, p, _)| (c.ct_eq(&cookie) & p.ct_eq(&proof)).into())?;
        Some(found.2.clone()).filter(|kept| kept.until > now && !kept.ended.is_cancelled())
    }

    /// Forgets sessions that are over.
    pub fn sweep(&self, now: Instant) {
        self.lock().sessions.retain(|(_, _, kept)| kept.until > now && !kept.ended.is_cancelled());
    }

    fn lock(&self) -> MutexGuard<'_, SessionTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn secret() -> String {
    random::seed().iter().map(|b| format!("{b:02x}")).collect()
}

fn hidden(text: &str) -> SecretDigest {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_once_and_for_two_minutes() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let (code, lasts) = sessions.code(now);
        assert!(sessions.exchange("", now).is_none() && sessions.exchange(&code[1..], now).is_none());
        assert!(sessions.exchange(&code, now).is_some());
        assert!(sessions.exchange(&code, now).is_none(), "used");
        let (late, _) = sessions.code(now);
        assert!(sessions.exchange(&late, now + lasts).is_none(), "too old");
    }

    #[test]
    fn a_session_takes_both_halves_of_one_sign_in() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let open = || sessions.exchange(&sessions.code(now).0, now).unwrap();
        let (one, two) = (open(), open());
        assert!(sessions.find(&one.cookie, &one.proof, now).is_some());
        for (cookie, proof) in [(&one.cookie, &two.proof), (&two.cookie, &one.proof), (&one.proof, &one.cookie)] {
            assert!(sessions.find(cookie, proof, now).is_none());
        }
        assert!(sessions.find(&one.cookie, &one.proof, now + SESSION_LASTS).is_none(), "over");
        sessions.find(&two.cookie, &two.proof, now).unwrap().ended.cancel();
        assert!(sessions.find(&two.cookie, &two.proof, now).is_none(), "signed out");
    }

    #[test]
    fn codes_and_sessions_do_not_pile_up() {
        let (sessions, now) = (Sessions::default(), Instant::now());
        let codes: Vec<String> = (0..MOST + 1).map(|_| sessions.code(now).0).collect();
        assert!(sessions.exchange(&codes[0], now).is_none(), "the oldest went");
        let first = sessions.exchange(&codes[1], now).unwrap();
        for _ in 0..MOST {
            sessions.exchange(&sessions.code(now).0, now).unwrap();
        }
        assert!(sessions.find(&first.cookie, &first.proof, now).is_none(), "the oldest went");
    }
}
