//! Codes that are good once and for a short time, and the sessions that they open. Both are kept as digests and only in memory. What comes
//! over HTTP is not known here.

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

/// What a page shows besides the cookie, so that neither alone is of use.
const PROOF: &str = "banyan-console";

/// Fires when a sign-in ends.
type Ended = CancellationToken;

/// How long a code may lie about before it is used.
const CODE_LASTS: Duration = Duration::from_secs(120);
/// How long a session lasts: a day's work.
const SESSION_LASTS: Duration = Duration::from_secs(12 * 3600);
/// Of either, the oldest go when there are more.
const MOST: usize = 32;

/// Who is signed in.
#[derive(Debug)]
pub struct SignIns {
    pub sessions: Sessions,
    /// Cookies do not tell ports apart: the name says which gate one belongs to.
    pub cookie: String,
}

impl SignIns {
    /// Makes an empty set, with a cookie name of this node.
    pub fn of(node: &Node) -> Self {
        let digest = Sha256::digest(node.id.as_bytes());
        let mark: String = digest.iter().take(4).map(|b| format!("{b:02x}")).collect();
        Self { sessions: Sessions::default(), cookie: format!("banyan-console-{mark}") }
    }

    /// Ends when the sign-in of whoever asks does; never for those who did not sign in here.
    pub fn over(&self, config: &Config, parts: &Parts) -> impl Future<Output = ()> + Send + 'static {
        let kept = self.session(config, parts);
        async move {
            match kept {
                Some(kept) => kept.over().await,
                None => std::future::pending().await,
            }
        }
    }

    /// The sign-in of whoever asks, if that is a page of this gate that has one.
    pub fn session(&self, config: &Config, parts: &Parts) -> Option<Kept> {
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

/// What was handed out.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<Held>);

/// Which session it is. None is given twice while the gate runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionId(u64);

#[derive(Debug, Default)]
struct Held {
    opened: u64,
    codes: Vec<(Hidden, Instant)>,
    sessions: Vec<(Hidden, Hidden, Kept)>,
}

/// A session that somebody has.
#[derive(Debug, Clone)]
pub struct Kept {
    pub id: SessionId,
    pub until: Instant,
    pub ended: Ended,
}

impl Kept {
    /// Tells if the sign-in was ended or has expired.
    pub fn is_over(&self) -> bool {
        self.ended.is_cancelled() || self.until <= Instant::now()
    }

    /// Ready when it is over.
    pub async fn over(&self) {
        tokio::select! {
            () = self.ended.cancelled() => {}
            () = tokio::time::sleep_until(self.until.into()) => {}
        }
    }
}

#[cfg(any(test, feature = "for-tests"))]
impl SessionId {
    /// A number of a session, for tests.
    pub fn for_test(number: u64) -> Self {
        Self(number)
    }
}

#[cfg(any(test, feature = "for-tests"))]
impl Kept {
    /// One that lasts.
    pub fn for_test() -> Self {
        Self { id: SessionId(0), until: Instant::now() + SESSION_LASTS, ended: Ended::new() }
    }

    /// Somebody signs out.
    pub fn end(&self) {
        self.ended.cancel();
    }
}

/// A session that was just opened, with its two halves: one for the cookie, which pages can't read, one for the page, which other
/// ports of the same host are not sent.
pub struct Opened {
    pub cookie: String,
    pub proof: String,
    pub lasts: Duration,
}

/// The digest of something secret.
type Hidden = [u8; 32];

impl Sessions {
    /// A new code, and how long it lasts.
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

    /// A session for a code; `None`: it is not one, or not any more.
    pub fn exchange(&self, code: &str, now: Instant) -> Option<Opened> {
        let wanted = hidden(code);
        let mut held = self.lock();
        let at = held.codes.iter().position(|(known, until)| *until > now && known.ct_eq(&wanted).into())?;
        held.codes.remove(at);
        let opened = Opened { cookie: secret(), proof: secret(), lasts: SESSION_LASTS };
        if held.sessions.len() >= MOST {
            held.sessions.remove(0).2.ended.cancel();
        }
        held.opened += 1;
        let kept = Kept { id: SessionId(held.opened), until: now + SESSION_LASTS, ended: Ended::new() };
        held.sessions.push((hidden(&opened.cookie), hidden(&opened.proof), kept));
        Some(opened)
    }

    /// The session that both halves belong to.
    pub fn find(&self, cookie: &str, proof: &str, now: Instant) -> Option<Kept> {
        let (cookie, proof) = (hidden(cookie), hidden(proof));
        let held = self.lock();
        let found = held.sessions.iter().find(|(c, p, _)| (c.ct_eq(&cookie) & p.ct_eq(&proof)).into())?;
        Some(found.2.clone()).filter(|kept| kept.until > now && !kept.ended.is_cancelled())
    }

    /// Forgets what is over.
    pub fn sweep(&self, now: Instant) {
        self.lock().sessions.retain(|(_, _, kept)| kept.until > now && !kept.ended.is_cancelled());
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn secret() -> String {
    random::seed().iter().map(|b| format!("{b:02x}")).collect()
}

fn hidden(text: &str) -> Hidden {
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
