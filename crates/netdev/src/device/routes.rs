//! The routing table in pages with the last prefix as cursor, so that pages stay right while routes come and go. Reads no device.

use std::net::IpAddr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use net_proto::fault::{Code, Fault};
use serde_json::{Value, json};

/// Prefixes on a page.
const PAGE: usize = 1000;

/// Order of prefixes: by address, then by length.
type PrefixKey = (IpAddr, u8);

/// A page of FRR's table, and the cursor of the next page.
pub(crate) fn page(table: &Value, cursor: Option<&str>) -> Result<(Value, Option<String>), Fault> {
    let after = cursor.map(read).transpose()?;
    let mut keyed: Vec<(PrefixKey, &Value)> =
        table.as_object().into_iter().flatten().filter_map(|(prefix, routes)| Some((key(prefix)?, routes))).collect();
    keyed.retain(|(key, _)| after.is_none_or(|after| *key > after));
    keyed.sort_unstable_by_key(|(key, _)| *key);
    let next = (keyed.len() > PAGE).then(|| keyed.get(PAGE - 1)).flatten().map(|((ip, length), _)| write(&format!("{ip}/{length}")));
    let routes = keyed.iter().take(PAGE).flat_map(|(_, routes)| routes.as_array().into_iter().flatten()).map(route);
    Ok((json!({ "ietf-routing:routes": { "route": routes.collect::<Vec<_>>() } }), next))
}

/// All routes of FRR's table, without what differs from read to read.
pub(crate) fn all(table: &Value) -> Value {
    table.as_object().into_iter().flatten().flat_map(|(_, routes)| routes.as_array().into_iter().flatten()).map(route).collect()
}

fn key(prefix: &str) -> Option<PrefixKey> {
    let (ip, length) = prefix.split_once('/')?;
    Some((ip.parse().ok()?, length.parse().ok()?))
}

fn write(prefix: &str) -> String {
    URL_SAFE_NO_PAD.encode(json!({ "sort-key": prefix }).to_string())
}

fn read(cursor: &str) -> Result<PrefixKey, Fault> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor.trim_end_matches('=')).ok();
    let value: Option<Value> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let prefix = value.as_ref().and_then(|value| value["sort-key"].as_str());
    prefix.and_then(key).ok_or_else(|| Fault::new(Code::InvalidParams, "this is no cursor of this table"))
}

fn route(route: &Value) -> Value {
    let hops = route["nexthops"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|hop| json!({ "next-hop-address": hop.get("ip"), "outgoing-interface": hop.get("interfaceName") }));
    json!({
        "destination-prefix": route["prefix"],
        "source-protocol": route["protocol"],
        "route-preference": route["distance"],
        "metric": route["metric"],
        "active": route["selected"].as_bool().unwrap_or(false),
        "next-hop": { "next-hop-list": { "next-hop": hops.collect::<Vec<_>>() } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(count: u32) -> Value {
        let routes = (0..count)
            .map(|n| (format!("10.{}.{}.0/24", n / 256, n % 256), json!([{ "prefix": format!("10.{}.{}.0/24", n / 256, n % 256) }])));
        Value::Object(routes.collect())
    }

    fn prefixes(page: &Value) -> Vec<String> {
        let routes = page["ietf-routing:routes"]["route"].as_array().unwrap();
        routes.iter().map(|route| route["destination-prefix"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn nm_04_pages_hold_every_route_of_a_changing_table_once() {
        let mut whole = table(2500);
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let (one, next) = page(&whole, cursor.as_deref()).unwrap();
            seen.extend(prefixes(&one));
            // The prefix that the cursor names goes away, and one before it comes.
            let last = seen.last().unwrap().clone();
            whole.as_object_mut().unwrap().remove(&last);
            whole["9.0.0.0/8"] = json!([{ "prefix": "9.0.0.0/8" }]);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, prefixes_of(2500));
        assert_eq!(page(&whole, Some("nonsense")).unwrap_err().code, Code::InvalidParams);
    }

    fn prefixes_of(count: u32) -> Vec<String> {
        (0..count).map(|n| format!("10.{}.{}.0/24", n / 256, n % 256)).collect()
    }
}
