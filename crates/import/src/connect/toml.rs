//! Cuts the tables of servers in and out of TOML text. Other tables and their comments stay. Does not know what servers
//! are.

use serde_json::Value;
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::ENTRY;

pub(super) fn names(text: &str, key: &str) -> Result<Vec<String>, String> {
    let document = parse(text)?;
    Ok(list(&document, key)?.map(|list| list.iter().map(|(name, _)| name.to_owned()).collect()).unwrap_or_default())
}

pub(super) fn pointed(text: &str, key: &str, entry: &Value, kept: &[String]) -> Result<String, String> {
    let mut document = parse(text)?;
    let old = list(&document, key)?;
    let staying = old.into_iter().flat_map(TableLike::iter).filter(|(name, _)| kept.iter().any(|kept| kept == name));
    let staying: Vec<(String, Item)> = staying.map(|(name, item)| (name.to_owned(), as_table(item))).collect();
    let servers = std::iter::once((ENTRY.to_owned(), Item::Table(table(entry)))).chain(staying);
    put(&mut document, key, servers.collect());
    Ok(document.to_string())
}

pub(super) fn restored(text: &str, key: &str, old: Option<&str>, ours: &str) -> Result<String, String> {
    let mut document = parse(text)?;
    let before = parse(old.unwrap_or_default())?;
    let before = list(&before, key)?;
    let was_there = |name: &str| before.is_some_and(|list| list.contains_key(name));
    let current = list(&document, key)?;
    let added = current.into_iter().flat_map(TableLike::iter).filter(|(name, _)| *name != ours && !was_there(name));
    let back = before.into_iter().flat_map(TableLike::iter);
    let servers: Vec<(String, Item)> = back.chain(added).map(|(name, item)| (name.to_owned(), as_table(item))).collect();
    put(&mut document, key, servers);
    Ok(document.to_string())
}

fn parse(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("it is not TOML: {} in line {line}", error.message().lines().next().unwrap_or_default())
    })
}

fn list<'d>(document: &'d DocumentMut, key: &str) -> Result<Option<&'d dyn TableLike>, String> {
    match document.get(key) {
        None => Ok(None),
        Some(item) => item.as_table_like().map(Some).ok_or_else(|| format!("its `{key}` is not a table")),
    }
}

/// Tables without a place of their own come behind all others.
fn put(document: &mut DocumentMut, key: &str, servers: Vec<(String, Item)>) {
    document.remove(key);
    if servers.is_empty() {
        return;
    }
    let mut list = Table::new();
    list.set_implicit(true);
    for (name, mut item) in servers {
        without_place(&mut item);
        list.insert(&name, item);
    }
    document.insert(key, Item::Table(list));
}

fn as_table(item: &Item) -> Item {
    item.clone().into_table().map_or_else(|item| item, Item::Table)
}

fn without_place(item: &mut Item) {
    if let Some(table) = item.as_table_mut() {
        table.set_position(None);
        table.iter_mut().for_each(|(_, item)| without_place(item));
    }
}

fn table(entry: &Value) -> Table {
    let mut table = Table::new();
    for (key, value) in entry.as_object().into_iter().flatten() {
        let value = match value {
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<toml_edit::Array>().into(),
            Value::Bool(value) => toml_edit::Value::from(*value),
            Value::Null | Value::Number(_) | Value::Object(_) | Value::String(_) => value.as_str().unwrap_or_default().into(),
        };
        table.insert(key, Item::Value(value));
    }
    table.decor_mut().set_prefix("\n");
    table
}
