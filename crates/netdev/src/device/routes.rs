//! The routing table in pages with the last prefix as cursor, so that pages stay right while routes come and go. Decides nothing about blocks.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use net_proto::fault::{Code, Fault};
use net_proto::routes::{PrefixKey, RouteBlock, RouteWalk};
use serde_json::{Map, Value, json};

use super::reads::parsed;
use crate::way::DeviceWay;

/// Prefixes on a page.
const PAGE: usize = 1000;
/// Bytes that a block of the table may have: some 3,500 prefixes of FRR.
const BLOCK: u64 = 2 << 20;
/// Bytes of a table that is compared as a whole from look to look.
const WHOLE: u64 = 32 << 20;
/// Prefixes of a table compared as a whole from look to look over a network.
const FAR: u64 = 5_000;

/// A page of FRR's table, read block by block, and the cursor of the next page.
pub(crate) async fn read(device: &DeviceWay, is_v6: bool, cursor: Option<&str>) -> Result<(Value, Option<String>), Fault> {
    let (after, length) = match cursor.map(place).transpose()? {
        Some((key, length)) if length > 0 => (Some(key), length),
        other => (other.map(|(key, _)| key), first_block(device, is_v6).await?),
    };
    if after.is_some_and(|(ip, _)| ip.is_ipv6() != is_v6) {
        return Err(no_cursor());
    }
    let mut walk = RouteWalk::new(is_v6, after, length, PAGE);
    while let Some(block) = walk.block() {
        match device.exec_within(&commands(is_v6, &block), BLOCK).await? {
            Some(text) => walk.hear(prefixes(&text)?, (text.len() as u64) < BLOCK / 8),
            None if walk.narrow() => {}
            None => return Err(Fault::new(Code::HardwareFailure, format!("the routes of one prefix have more than {BLOCK} bytes"))),
        }
    }
    let astray = || Fault::new(Code::Timeout, "the table changes faster than it is read").retryable();
    let (page, next) = walk.page().ok_or_else(astray)?;
    let next = next.map(|((ip, bits), length)| write(&format!("{ip}/{bits}"), length));
    Ok((listed(page.iter().flat_map(|routes| routes.as_array().into_iter().flatten())), next))
}

/// Length of the first block. FRR makes all of an answer before it shows the first byte, so a large table is never asked for as a whole.
async fn first_block(device: &DeviceWay, is_v6: bool) -> Result<u8, Fault> {
    let count = count(&summary(device, is_v6).await?)?;
    Ok(match (count <= 2 * PAGE as u64, is_v6) {
        (true, _) => 0,
        (false, false) => 16,
        (false, true) => 32,
    })
}

/// Counts of the table, as the device shows them.
async fn summary(device: &DeviceWay, is_v6: bool) -> Result<String, Fault> {
    let show = if is_v6 { "show ipv6 route summary json" } else { "show ip route summary json" };
    Ok(device.exec_within(&[show.to_owned()], BLOCK).await?.unwrap_or_default())
}

fn count(summary: &str) -> Result<u64, Fault> {
    Ok(parsed(summary)?["routesTotal"].as_u64().unwrap_or(u64::MAX))
}

/// The first page, the cursor of the next one, and a text that differs when the table does: the whole table, or its counts where it is large.
pub(crate) async fn look(device: &DeviceWay, is_v6: bool) -> Result<(Value, Option<String>, String), Fault> {
    let show = if is_v6 { "show ipv6 route json" } else { "show ip route json" };
    // What is too much for a network is asked for only where that is not needed.
    let is_small = device.is_local() || count(&summary(device, is_v6).await?)? <= FAR;
    if is_small && let Some(text) = device.exec_within(&[show.to_owned()], WHOLE).await? {
        let table = parsed(&text)?;
        let (page, next) = first_page(&table);
        return Ok((page, next, all(&table).to_string()));
    }
    let (page, next) = read(device, is_v6, None).await?;
    Ok((page, next, summary(device, is_v6).await?))
}

/// Commands that show a block: what stands within, then the shorter prefixes with its address.
fn commands(is_v6: bool, block: &RouteBlock) -> Vec<String> {
    let show = if is_v6 { "show ipv6 route" } else { "show ip route" };
    let (ip, length) = block.within;
    let within = std::iter::once(format!("{show} {ip}/{length} longer-prefixes json"));
    within.chain(block.above.iter().map(|(ip, length)| format!("{show} {ip}/{length} json"))).collect()
}

/// Prefixes of several answers, one behind the other.
fn prefixes(text: &str) -> Result<Vec<(PrefixKey, Value)>, Fault> {
    let mut found = Vec::new();
    for answer in serde_json::Deserializer::from_str(text).into_iter::<Map<String, Value>>() {
        let answer = answer.map_err(|error| Fault::new(Code::HardwareFailure, format!("the device shows no JSON: {error}")))?;
        let known = |(prefix, routes): (String, Value)| key(&prefix).map(|key| (key, routes));
        found.extend(answer.into_iter().filter_map(known).filter(|(_, routes)| routes.as_array().is_some_and(|all| !all.is_empty())));
    }
    Ok(found)
}

/// The first page of a table that was shown as a whole, and the cursor of the next page, which [`read`] goes on from.
fn first_page(table: &Value) -> (Value, Option<String>) {
    let mut keyed: Vec<(PrefixKey, &Value)> =
        table.as_object().into_iter().flatten().filter_map(|(prefix, routes)| Some((key(prefix)?, routes))).collect();
    keyed.sort_unstable_by_key(|(key, _)| *key);
    let next = (keyed.len() > PAGE).then(|| keyed.get(PAGE - 1)).flatten().map(|((ip, bits), _)| write(&format!("{ip}/{bits}"), 0));
    (listed(keyed.iter().take(PAGE).flat_map(|(_, routes)| routes.as_array().into_iter().flatten())), next)
}

fn listed<'r>(routes: impl Iterator<Item = &'r Value>) -> Value {
    json!({ "ietf-routing:routes": { "route": routes.map(route).collect::<Vec<_>>() } })
}

/// All routes of FRR's table, without what differs from read to read.
pub(crate) fn all(table: &Value) -> Value {
    table.as_object().into_iter().flatten().flat_map(|(_, routes)| routes.as_array().into_iter().flatten()).map(route).collect()
}

fn key(prefix: &str) -> Option<PrefixKey> {
    let (ip, length) = prefix.split_once('/')?;
    Some((ip.parse().ok()?, length.parse().ok()?))
}

fn write(prefix: &str, block: u8) -> String {
    URL_SAFE_NO_PAD.encode(json!({ "sort-key": prefix, "block": block }).to_string())
}

/// The prefix of a cursor, and the length of its block.
fn place(cursor: &str) -> Result<(PrefixKey, u8), Fault> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor.trim_end_matches('=')).ok();
    let value: Option<Value> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let prefix = value.as_ref().and_then(|value| value["sort-key"].as_str());
    let length = value.as_ref().and_then(|value| value["block"].as_u64()).and_then(|length| u8::try_from(length).ok());
    Ok((prefix.and_then(key).ok_or_else(no_cursor)?, length.unwrap_or_default()))
}

fn no_cursor() -> Fault {
    Fault::new(Code::InvalidParams, "this is no cursor of this table")
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

    #[test]
    fn nm_04_a_first_page_leads_to_the_place_behind_it() {
        let routes =
            (0..2500).map(|n| format!("10.{}.{}.0/24", n / 256, n % 256)).map(|prefix| (prefix.clone(), json!([{ "prefix": prefix }])));
        let (page, next) = first_page(&Value::Object(routes.collect()));
        let routes = page["ietf-routing:routes"]["route"].as_array().unwrap();
        assert_eq!((routes.len(), &routes[999]["destination-prefix"]), (1000, &json!("10.3.231.0/24")));
        // A block of its own length is found by whoever goes on.
        assert_eq!(place(&next.unwrap()).unwrap(), (key("10.3.231.0/24").unwrap(), 0));
        assert_eq!(place("nonsense").unwrap_err().code, Code::InvalidParams);
    }
}
