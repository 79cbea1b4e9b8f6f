//! Life of an agent (AEPB, section 7): states, the transitions between them, and the words of HTTP about them. Keeps no file, and asks
//! nobody about a transition.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use banyan_model::Timestamp;
use json::{Duplicates, Members, quote};
use url::Url;

/// Shortest and longest wait of a client, in seconds.
const WAITS: (u64, u64) = (60, 3600);
/// Last second of the year 9999: later times have no form in HTTP.
const LATEST: u64 = 253_402_300_799;
/// Longest address of a successor, in bytes.
const LONGEST_ADDRESS: usize = 2048;

/// State of an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LifecycleStatus {
    #[default]
    Active,
    Deprecated,
    Draining,
    Retired,
}

impl LifecycleStatus {
    /// Every state, in the order of a life.
    pub const ALL: [Self; 4] = [Self::Active, Self::Deprecated, Self::Draining, Self::Retired];

    /// Reads a state.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == text)
    }

    /// Word of the draft for the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Deprecated => "deprecated",
            Self::Draining => "draining",
            Self::Retired => "retired",
        }
    }

    /// Checks for a transition of the draft's picture: a drain has a way back, retirement has none.
    pub fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::Active, Self::Deprecated | Self::Draining)
                | (Self::Deprecated, Self::Draining | Self::Active)
                | (Self::Draining, Self::Active | Self::Retired)
        )
    }

    /// Checks for a state open to new work.
    pub fn takes_work(self) -> bool {
        matches!(self, Self::Active | Self::Deprecated)
    }
}

/// Reasons to refuse a transition, or the text of a kept life.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LifecycleError {
    #[error("an agent that is {} does not become {}: {}", .from.name(), .to.name(), allowed(*.from))]
    Transition { from: LifecycleStatus, to: LifecycleStatus },
    #[error("the successor is no https address: give that of its capability document, such as https://agent.example.com/.well-known/aepb")]
    Successor,
    #[error("the end lies in the past, or beyond the year 9999: give a later time")]
    Sunset,
    #[error("the kept state can't be read")]
    Unreadable,
}

fn allowed(from: LifecycleStatus) -> String {
    let next: Vec<&str> = LifecycleStatus::ALL.into_iter().filter(|to| from.may_become(*to)).map(LifecycleStatus::name).collect();
    if next.is_empty() { "retirement is final".to_owned() } else { format!("it may become {}", next.join(" or ")) }
}

/// Life of an agent so far. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifecycle {
    pub status: LifecycleStatus,
    pub deprecated: Option<u64>,
    pub sunset: Option<u64>,
    /// Address of the successor's capability document.
    pub successor: Option<String>,
}

/// A wish to change the state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LifecycleChange {
    pub to: LifecycleStatus,
    /// Successor, where there is a new one.
    pub successor: Option<String>,
    /// End of the service, where there is a new one: seconds since 1970.
    pub sunset: Option<u64>,
}

impl Lifecycle {
    /// Makes the transition at `now`, in seconds since 1970.
    pub fn change(&self, wish: &LifecycleChange, now: u64) -> Result<Self, LifecycleError> {
        if !self.status.may_become(wish.to) {
            return Err(LifecycleError::Transition { from: self.status, to: wish.to });
        }
        if wish.to == LifecycleStatus::Active {
            return Ok(Self::default());
        }
        if wish.successor.as_deref().is_some_and(|successor| !is_successor(successor)) {
            return Err(LifecycleError::Successor);
        }
        if now > LATEST || wish.sunset.is_some_and(|sunset| sunset < now || sunset > LATEST) {
            return Err(LifecycleError::Sunset);
        }
        let sunset = wish.sunset.or(self.sunset);
        Ok(Self {
            status: wish.to,
            deprecated: if wish.to == LifecycleStatus::Deprecated { Some(now) } else { self.deprecated },
            sunset: match wish.to {
                LifecycleStatus::Draining => Some(sunset.map_or(now, |sunset| sunset.max(now))),
                LifecycleStatus::Retired => Some(sunset.map_or(now, |sunset| sunset.min(now)).max(self.deprecated.unwrap_or(0))),
                LifecycleStatus::Active | LifecycleStatus::Deprecated => sunset,
            },
            successor: wish.successor.clone().or_else(|| self.successor.clone()),
        })
    }

    /// Gives the fields for every response: `Deprecation` (RFC 9745), `Sunset` (RFC 8594), never before the deprecation, and
    /// `Link` to the successor (RFC 5829).
    pub fn fields(&self) -> Vec<(&'static str, String)> {
        let deprecation = self.deprecated.map(|at| ("deprecation", format!("@{at}")));
        let sunset = self.sunset.map(|at| ("sunset", httpdate::fmt_http_date(time(at.max(self.deprecated.unwrap_or(0)).min(LATEST)))));
        let link = self.successor.as_ref().map(|successor| ("link", format!("<{successor}>; rel=\"successor-version\"")));
        deprecation.into_iter().chain(sunset).chain(link).collect()
    }

    /// Gives the seconds until another request makes sense, for `Retry-After`.
    pub fn retry_after(&self, now: u64) -> u64 {
        self.sunset.map_or(WAITS.1, |sunset| sunset.saturating_sub(now).clamp(WAITS.0, WAITS.1))
    }

    /// Writes the object `lifecycle` of a capability document.
    pub fn notice(&self, version: &str) -> String {
        let date = |at: Option<u64>| at.map_or("null".to_owned(), |at| format!("\"{}\"", Timestamp(time(at))));
        let successor = self.successor.as_deref().map_or("null".to_owned(), quote);
        format!(
            "{{\"status\":\"{}\",\"version\":{},\"deprecated_at\":{},\"sunset_at\":{},\"successor\":{successor}}}",
            self.status.name(),
            quote(version),
            date(self.deprecated),
            date(self.sunset)
        )
    }

    /// Writes the life to be kept on a disk.
    pub fn write(&self) -> String {
        let number = |at: Option<u64>| at.map_or("null".to_owned(), |at| at.to_string());
        let successor = self.successor.as_deref().map_or("null".to_owned(), quote);
        let (deprecated, sunset) = (number(self.deprecated), number(self.sunset));
        format!("{{\"status\":\"{}\",\"deprecated\":{deprecated},\"sunset\":{sunset},\"successor\":{successor}}}\n", self.status.name())
    }

    /// Reads a kept life.
    pub fn read(text: &[u8]) -> Result<Self, LifecycleError> {
        let unreadable = LifecycleError::Unreadable;
        let whole = Members::parse(text, Duplicates::RefuseDeep).map_err(|_| unreadable.clone())?;
        let status = whole.str("status").and_then(|text| LifecycleStatus::parse(&text)).ok_or(unreadable)?;
        let successor = match whole.get("successor") {
            None | Some(b"null") => None,
            Some(_) => Some(whole.str("successor").filter(|text| is_successor(text)).ok_or(LifecycleError::Unreadable)?.into_owned()),
        };
        Ok(Self { status, deprecated: second(&whole, "deprecated")?, sunset: second(&whole, "sunset")?, successor })
    }
}

fn second(whole: &Members<'_>, member: &str) -> Result<Option<u64>, LifecycleError> {
    match whole.get(member) {
        None | Some(b"null") => Ok(None),
        Some(raw) => {
            let second = std::str::from_utf8(raw).ok().and_then(|text| text.parse().ok()).filter(|second| *second <= LATEST);
            second.map(Some).ok_or(LifecycleError::Unreadable)
        }
    }
}

/// Checks for an address fit for a field of HTTP: visible ASCII, without the signs at the ends of a link.
fn is_successor(text: &str) -> bool {
    let is_plain = text.len() <= LONGEST_ADDRESS && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"'));
    let url = Url::parse(text).ok().filter(|url| url.username().is_empty() && url.password().is_none());
    is_plain && url.is_some_and(|url| url.scheme() == "https" || url.scheme() == "http" && super::document::is_this_machine(&url))
}

fn time(second: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_secs(second.min(LATEST))).unwrap_or(UNIX_EPOCH)
}
