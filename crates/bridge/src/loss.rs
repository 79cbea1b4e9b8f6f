//! Reports of a translation: each field that has no equal in the other binding. Holds no content of a message.

use crate::binding::BindingId;
use crate::field::CanonicalField;
use crate::message::MessageKind;

/// Most bytes of the warnings of one token: an ECT holds 4,096 bytes of extensions.
const MOST_WARNINGS: usize = 2_048;

/// A field changed by a translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub field: CanonicalField,
    /// JSON pointer into the source, or the canonical name of a field in the extension of the source.
    pub path: &'static str,
    pub fate: LossFate,
    pub severity: Severity,
    pub note: &'static str,
}

/// Ends of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossFate {
    /// Travels in the extension, and comes back.
    Carried,
    /// Gone.
    Dropped,
    /// Absent, and made up for a demanding binding. A translation back takes the field away.
    Synthesized,
}

/// Weights of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    /// Goes to `aepb.translation_warnings`.
    Warn,
    /// Stops the translation.
    Fatal,
}

impl Loss {
    /// Points a loss to the place of its field in the source.
    #[must_use]
    pub fn in_source(mut self, source: BindingId, kind: MessageKind) -> Self {
        self.path = self.field.pointer(source, kind);
        self
    }
}

/// Writes `aepb.translation_warnings`, as many as fit into one token. The last line counts the others.
pub fn warnings(losses: &[Loss]) -> Vec<String> {
    let worth = losses.iter().filter(|loss| loss.severity >= Severity::Warn);
    let all: Vec<String> = worth.map(|loss| format!("{}: {}", loss.path, loss.note)).collect();
    let mut size = 0;
    let fitting = all.iter().take_while(|text| {
        size += text.len() + 3;
        size <= MOST_WARNINGS
    });
    let mut shown: Vec<String> = fitting.cloned().collect();
    if shown.len() < all.len() {
        shown.push(format!("+{} more", all.len() - shown.len()));
    }
    shown
}
