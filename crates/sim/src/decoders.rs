//! A check for each decoder: any bytes go in, nothing panics, and the output is consistent.
//!
//! The fuzzer below `fuzz/` looks for bytes that break a check, and `tests/it/corpus.rs` replays its corpus. Nothing
//! here makes up input.

mod agents;
mod answers;
mod approvals;
mod audit;
mod bridged;
mod contexts;
mod files;
mod judged;
mod mesh;
mod messages;
mod names;
mod network;
mod parts;
mod rooms;
mod seats;
mod served;
mod snmp;
mod streams;
mod switch;
mod trust;

/// A check, which panics when a decoder breaks its word on these bytes.
pub type Check = fn(&[u8]);

/// Every check under the name of its decoder and corpus.
pub const ALL: [(&str, Check); 88] = [
    ("a2a_served", served::message),
    ("aepb_a2a", bridged::a2a),
    ("aepb_ainp", bridged::ainp),
    ("aepb_document", agents::capabilities),
    ("aepb_mcp", bridged::mcp),
    ("aepb_uacp", bridged::uacp),
    ("annotation", mesh::annotation),
    ("arguments", judged::arguments),
    ("axcp_data", contexts::data),
    ("axcp_envelope", contexts::envelope),
    ("axcp_frames", contexts::frames),
    ("axcp_patch", contexts::patch),
    ("axcp_session", contexts::session),
    ("axcp_tools", contexts::tools),
    ("bird", network::bird),
    ("canonical", audit::form),
    ("capability", rooms::capability),
    ("card", agents::card),
    ("certificate", trust::certificate),
    ("challenge", trust::challenge),
    ("checkpoint", audit::checkpoint),
    ("claim", mesh::claim),
    ("command", network::command),
    ("config", files::config),
    ("confirm", approvals::confirm),
    ("connect", files::connect),
    ("controller", network::controller),
    ("cursor", names::cursor),
    ("definition", judged::definition),
    ("dialect", network::dialect_file),
    ("ect", audit::ect),
    ("envelope", messages::envelope),
    ("frames", network::frames),
    ("gate", mesh::gate),
    ("header", names::header),
    ("http1", streams::http1),
    ("import", files::import),
    ("inventory", network::inventory),
    ("jcs", approvals::canonical),
    ("join", files::join),
    ("json", messages::json),
    ("key", trust::key),
    ("lines", streams::lines),
    ("machine", network::machine),
    ("mesh", mesh::messages),
    ("mew", rooms::mew),
    ("netconf", network::netconf),
    ("netdata", network::data),
    ("netedit", network::edit),
    ("ovsdb", switch::messages),
    ("page", messages::page),
    ("passkey", approvals::passkey),
    ("pipe", messages::pipe),
    ("poured", messages::poured),
    ("projection", names::projection),
    ("prompt", network::prompt),
    ("proof", audit::proof),
    ("record", audit::entry),
    ("redact", network::redact),
    ("resources", names::resources),
    ("response", answers::response),
    ("room", rooms::envelope),
    ("route", mesh::route),
    ("rules", judged::rules),
    ("search", names::search),
    ("seat", seats::seat),
    ("secret", files::secret),
    ("snmp", snmp::message),
    ("snmpset", snmp::settings),
    ("snmpwalk", snmp::walk),
    ("source", mesh::source),
    ("sse", streams::sse),
    ("sshsig", approvals::sshsig),
    ("stub_cbor", parts::value),
    ("stub_fixed", parts::fixed),
    ("stub_message", parts::message),
    ("stub_packets", parts::packets),
    ("stub_session", parts::session),
    ("stub_text", parts::text),
    ("switch", switch::lines),
    ("syslog", network::syslog),
    ("terminal", network::terminal),
    ("tile", audit::tile),
    ("token", trust::token),
    ("trace", trust::trace),
    ("turn", agents::turn),
    ("webauthn", approvals::webauthn),
    ("websocket", rooms::websocket),
];

/// Finds the check of this name.
pub fn named(name: &str) -> Option<Check> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, check)| *check)
}
