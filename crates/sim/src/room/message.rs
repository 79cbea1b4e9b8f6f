//! Messages of participants in the simulation, sound and otherwise. Their reception is for the reference to predict, not for this module.

use bytes::Bytes;

use crate::random::Random;

/// Kinds of messages.
pub(super) const KINDS: [&str; 6] =
    ["chat", "mcp/request:tools/call:x", "mcp/request:tools/list", "mcp/proposal:tools/call:x", "mcp/response:tools/list", "system/x"];

/// Granted patterns, and the [`KINDS`] covered by each.
pub(super) const PATTERNS: [(&str, [bool; 6]); 6] = [
    ("chat", [true, false, false, false, false, false]),
    ("mcp/*", [false, true, true, true, true, false]),
    ("mcp/request:*/list", [false, false, true, false, false, false]),
    ("mcp/request:tools/call", [false, true, false, false, false, false]),
    ("mcp/proposal:*", [false, false, false, true, false, false]),
    ("*", [true, true, true, true, true, false]),
];

/// Faults of a message, apart from missing permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// `from` is another's.
    Spoofed,
    /// A member stands twice.
    Twice,
    Protocol,
    Bare,
}

/// A message as its sender means it.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// The sender's name, or another's.
    pub(super) from: String,
    /// The sender's name and number: `a-7`.
    pub(super) id: String,
    pub(super) to: Vec<String>,
    /// Index in [`KINDS`].
    pub(super) kind: usize,
    pub(super) fault: Fault,
}

impl Message {
    /// Draws the `number`th message of `sender`.
    pub(super) fn draw(random: &mut Random, sender: &str, number: usize, names: &[&str]) -> Self {
        let to = (0..random.below(3)).filter_map(|_| random.pick(names).map(str::to_owned)).collect();
        let fault = if random.percent(85) {
            Fault::None
        } else {
            random.pick(&[Fault::Spoofed, Fault::Twice, Fault::Protocol, Fault::Bare]).unwrap_or(Fault::None)
        };
        let from = if fault == Fault::Spoofed { format!("{sender}!") } else { sender.to_owned() };
        Self { from, id: format!("{sender}-{number}"), to, kind: random.below(KINDS.len()), fault }
    }

    pub(super) fn bytes(&self) -> Bytes {
        let protocol = if self.fault == Fault::Protocol { "mcpx/v0.2" } else { "mcpx/v0.1" };
        let kind = KINDS.get(self.kind).copied().unwrap_or_default();
        let to: Vec<String> = self.to.iter().map(|name| format!("\"{name}\"")).collect();
        let refers = if kind.starts_with("mcp/response") { r#","correlation_id":"x""# } else { "" };
        let payload = if self.fault == Fault::Bare { "" } else { r#","payload":{"n":1.0}"# };
        let twice = if self.fault == Fault::Twice { r#","from":"b""# } else { "" };
        let (from, id, to) = (&self.from, &self.id, to.join(","));
        format!(r#"{{"protocol":"{protocol}","id":"{id}","from":"{from}","to":[{to}],"kind":"{kind}"{refers}{payload}{twice}}}"#).into()
    }
}
