//! Handles of prompts under way: the state itself, as text without meaning to clients. A client that changes its handle deceives itself
//! alone: each call that a step names is checked like any other. Keeps nothing.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::PromptState;
use crate::fault::{Code, Fault};

/// Bytes of a handle.
const LONGEST: usize = 16_384;

impl PromptState {
    /// Handle for `previousContextId`.
    pub fn to_handle(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// State behind a handle.
    ///
    /// # Errors
    /// -32602 for what is no handle.
    pub fn from_handle(handle: &str) -> Result<Self, Fault> {
        let unknown = || Fault::new(Code::InvalidParams, "`previousContextId` is no context of a prompt here: begin without it");
        if handle.len() > LONGEST {
            return Err(unknown());
        }
        let bytes = URL_SAFE_NO_PAD.decode(handle).map_err(|_| unknown())?;
        let state: Self = serde_json::from_slice(&bytes).map_err(|_| unknown())?;
        state.checked().ok_or_else(unknown)
    }

    /// The same state, if [`PromptState::begin`] would take its arguments and a step could have made the rest.
    fn checked(self) -> Option<Self> {
        let is_sound = match &self {
            Self::Ping(state) => state.names().all(|name| is_name(name)),
            Self::Vlan(state) => state.has_sound_id() && state.names().all(|name| is_name(name)),
            Self::Audit { .. } => true,
        };
        is_sound.then_some(self)
    }
}

/// Checks that no character of a name means something to a command line.
pub(super) fn is_name(text: &str) -> bool {
    text.len() <= 64 && text.chars().all(|c| c.is_ascii_alphanumeric() || "/._:-".contains(c))
}
