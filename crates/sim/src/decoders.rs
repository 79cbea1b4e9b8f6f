//! One check for each decoder: any bytes go in, nothing panics, and what comes out holds together.
//!
//! The fuzz targets below `fuzz/` look for bytes that break a check, and `tests/corpus.rs` replays what they kept. Nothing
//! here makes up input.

mod approvals;
mod audit;
mod files;
mod judged;
mod mesh;
mod messages;
mod names;
mod rooms;
mod streams;

/// A check: it panics when a decoder breaks its word on these bytes.
pub type Check = fn(&[u8]);

/// Every check under the name of its fuzz target and of its corpus.
pub const ALL: [(&str, Check); 38] = [
    ("annotation", mesh::annotation),
    ("arguments", judged::arguments),
    ("canonical", audit::form),
    ("capability", rooms::capability),
    ("checkpoint", audit::checkpoint),
    ("claim", mesh::claim),
    ("config", files::config),
    ("confirm", approvals::confirm),
    ("cursor", names::cursor),
    ("definition", judged::definition),
    ("envelope", messages::envelope),
    ("gate", mesh::gate),
    ("header", names::header),
    ("http1", streams::http1),
    ("import", files::import),
    ("jcs", approvals::canonical),
    ("join", files::join),
    ("json", messages::json),
    ("lines", streams::lines),
    ("mesh", mesh::messages),
    ("mew", rooms::mew),
    ("page", messages::page),
    ("pipe", messages::pipe),
    ("poured", messages::poured),
    ("projection", names::projection),
    ("proof", audit::proof),
    ("record", audit::entry),
    ("resources", names::resources),
    ("room", rooms::envelope),
    ("route", mesh::route),
    ("rules", judged::rules),
    ("secret", files::secret),
    ("source", mesh::source),
    ("sse", streams::sse),
    ("sshsig", approvals::sshsig),
    ("tile", audit::tile),
    ("webauthn", approvals::webauthn),
    ("websocket", rooms::websocket),
];

/// Runs the check of this name.
///
/// # Panics
/// When there is no such check, and when the decoder breaks its word.
pub fn run(name: &str, data: &[u8]) {
    let found = ALL.iter().find(|(known, _)| *known == name);
    assert!(found.is_some(), "there is no decoder `{name}`");
    if let Some((_, check)) = found {
        check(data);
    }
}
