//! Preview of a call: what the call would do, in the words of its server. Agreement to a call with a preview holds for that preview alone.
//! Nothing is asked of a server here, and no text is judged.

use banyan_model::Now;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::challenge::Call;
use super::desk::Desk;
use super::hex;

/// Preview of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preview {
    /// There is none, for this reason. Nothing is bound.
    Missing(String),
    /// Text as people are shown it.
    Shown(String),
}

/// Demand for previews of calls that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Demand {
    /// No server is asked for any.
    Off,
    /// Asked for where a tool offers one.
    #[default]
    Offered,
    /// No call without.
    Required,
}

/// Knowledge of a call at the desk, before anybody is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreknown {
    /// Lies there already, or ended a short while ago.
    Known,
    /// A grant lets the call through.
    Granted,
    /// People would be asked.
    New,
}

impl Call {
    /// Gives the text of the preview, if any was shown.
    pub fn shown_preview(&self) -> Option<&str> {
        if let Some(Preview::Shown(text)) = &self.preview { Some(text) } else { None }
    }

    /// Hashes the preview (SHA-256, in hexadecimal); empty without one.
    pub fn preview_hash(&self) -> String {
        self.shown_preview().map_or_else(String::new, |text| hex(&Sha256::digest(text)))
    }

    /// Tells if `now` has the preview that was shown; a call shown without one has none to keep to.
    pub(super) fn is_foreseen_as(&self, now: &Self) -> bool {
        self.shown_preview().is_none_or(|text| now.shown_preview() == Some(text))
    }
}

impl Desk {
    /// Says if people would be asked about a call, and changes nothing.
    pub fn foreknown(&mut self, now: Now, call: &Call) -> Foreknown {
        self.advance(now);
        if self.answering(call).is_some() {
            Foreknown::Known
        } else if self.granting(call).is_some() {
            Foreknown::Granted
        } else {
            Foreknown::New
        }
    }
}
