//! Recognises entries that lead to Banyan already: mounting them would make a circle.
//! Does not ask the address for its identity.

use std::path::Path;

use serde_json::{Map, Value};
use url::{Host, Url};

use super::places::Places;

/// Tells if an entry starts Banyan, or goes to its listener, perhaps through a relaying program.
pub(super) fn is_banyan(name: &str, entry: &Map<String, Value>, places: &Places) -> bool {
    let command = entry.get("command").map(|command| command.get("path").unwrap_or(command));
    if command.and_then(Value::as_str).is_some_and(is_our_program) {
        return true;
    }
    let urls = ["url", "serverUrl", "httpUrl"].into_iter().filter_map(|key| entry.get(key)?.as_str());
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    urls.chain(args).any(|text| is_our_address(text, name, places))
}

fn is_our_program(command: &str) -> bool {
    let file = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
    stem.is_some_and(|stem| stem.eq_ignore_ascii_case("banyan"))
}

fn is_our_address(text: &str, name: &str, places: &Places) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let is_here = match url.host() {
        Some(Host::Domain(domain)) => domain.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback() || places.listen.ip() == ip,
        Some(Host::Ipv6(ip)) => ip.is_loopback() || places.listen.ip() == ip,
        None => false,
    };
    let is_endpoint = url.path() == "/mcp" || url.path().starts_with("/mcp/");
    let is_port = url.port_or_known_default() == Some(places.listen.port());
    is_here && is_endpoint && (is_port || name == "banyan")
}
