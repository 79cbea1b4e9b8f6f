//! OAuth in clients' files. Does not sign in anywhere, and takes no client's token.

use serde_json::{Map, Value};

use config::resolved::OAuth;

use super::entry::Entry;
use super::note::NoteKind;

/// Reads an entry; `None` for an entry without OAuth.
pub(super) fn read(entry: &mut Entry<'_, '_>) -> Result<Option<Option<OAuth>>, String> {
    let mut said = match entry.take(&["oauth", "auth"]) {
        None => None,
        Some((_, Value::Bool(on))) => Some(on.then(OAuth::default)),
        Some((key, Value::Object(members))) => Some(particulars(entry, &key, members)?),
        Some((key, _)) => {
            entry.note(NoteKind::NotTaken, &key, "this way of signing in is not understood, and not taken");
            None
        }
    };
    if let Some((_, scopes)) = entry.take(&["scopes"]) {
        said.get_or_insert_with(|| Some(OAuth::default())).get_or_insert_default().scopes.extend(words(&scopes));
    }
    Ok(said)
}

fn particulars(entry: &mut Entry<'_, '_>, key: &str, mut members: Map<String, Value>) -> Result<Option<OAuth>, String> {
    let mut take = |keys: &[&str]| keys.iter().find_map(|key| members.shift_remove(*key));
    let text = |value: Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
    if take(&["enabled"]) == Some(Value::Bool(false)) {
        return Ok(None);
    }
    let client_id = text(take(&["clientId", "client_id", "CLIENT_ID"]));
    let secret = text(take(&["clientSecret", "client_secret", "CLIENT_SECRET"]));
    let scopes = take(&["scopes", "scope"]).map(|scopes| words(&scopes)).unwrap_or_default();
    let port = take(&["callbackPort", "redirectPort"]).as_ref().and_then(Value::as_u64);
    let document = text(take(&["clientMetadataUrl", "client_metadata_url"]));
    let secure = document.clone().filter(|url| url.starts_with("https://"));
    if secure.is_none() && document.is_some() {
        entry.note_below(
            NoteKind::NotTaken,
            key,
            "clientMetadataUrl",
            "a client id metadata document has an https:// address; this one is not taken",
        );
    }
    for name in members.keys() {
        entry.note_below(NoteKind::NotTaken, key, name, "this key is not understood, and not taken");
    }
    Ok(Some(OAuth {
        client_id,
        client_secret: secret.map(|secret| entry.reference(&secret)).transpose()?,
        client_metadata_url: secure,
        scopes,
        redirect_port: port.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0),
        ..OAuth::default()
    }))
}

/// Splits scopes given as a list, or as one text with spaces.
fn words(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}
