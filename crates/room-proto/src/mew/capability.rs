//! Capabilities in both languages: a pattern over kinds in MCPx, an object over kind and payload in MEW. Patterns are checked; peers get
//! objects only as advice. Grants nothing.

use std::borrow::Cow;

use json::{Duplicates, Members};

use super::{PROPOSAL, REQUEST};
use crate::kind::Kind;

/// Translates a pattern into an object of MEW.
///
/// Parts inexpressible in MEW are left out, and widen the object: a response, for example, has no method there.
pub fn object_of(pattern: &str) -> String {
    let kind = Kind::new(pattern);
    // Matchers of MEW let no star cross a slash, and its kinds have one.
    let class = if kind.class() == "*" { "**" } else { kind.class() };
    let quoted = json::quote(class);
    let Some(method) = kind.method().filter(|method| *method != "*" || kind.context().is_some()) else {
        return format!("{{\"kind\":{quoted}}}");
    };
    if !matches!(class, PROPOSAL | REQUEST) && !class.contains('*') {
        return format!("{{\"kind\":{quoted}}}");
    }
    let params = match kind.context().filter(|context| *context != "*") {
        None => String::new(),
        Some(context) => format!(",\"params\":{}", about(method, context)),
    };
    format!("{{\"kind\":{quoted},\"payload\":{{\"method\":{}{params}}}}}", json::quote(method))
}

fn about(method: &str, context: &str) -> String {
    let context = json::quote(context);
    match method {
        "completion/complete" => format!("{{\"ref\":{{\"name\":{context}}}}}"),
        _ if method.starts_with("resources/") => format!("{{\"uri\":{context}}}"),
        _ => format!("{{\"name\":{context}}}"),
    }
}

/// Translates an object of MEW into a pattern; `None`: no pattern is equal, or the object is legible in two ways.
///
/// The pattern says neither less nor more than the object: an object that looks at other members of the payload, or holds a regular
/// expression or a negation, gives no pattern.
pub fn pattern_of(object: &[u8]) -> Option<String> {
    let object = Members::parse(object, Duplicates::RefuseDeep).ok()?;
    // `id` is a label.
    only(&object, &["kind", "payload", "id"])?;
    let class = plain(object.str("kind")?)?;
    let class = if class == "**" { "*".into() } else { class };
    if class.contains(':') {
        return None;
    }
    let asks = matches!(&*class, PROPOSAL | REQUEST);
    let Some(payload) = object.get("payload") else {
        let takes_method = asks || matches!(&*class, super::RESPONSE | super::REJECT | super::WITHDRAW);
        return Some(if takes_method { format!("{class}:*") } else { class.into_owned() });
    };
    let payload = Members::parse(payload, Duplicates::RefuseDeep).ok().filter(|_| asks || class.contains('*'))?;
    only(&payload, &["method", "params"])?;
    let method = plain(payload.str("method")?)?;
    if method.contains(':') {
        return None;
    }
    let context = match payload.get("params") {
        None => String::new(),
        Some(params) => format!(":{}", context_of(&method, params)?),
    };
    Some(format!("{class}:{method}{context}"))
}

/// Reads the context from the params of a method, if they hold nothing else.
fn context_of(method: &str, params: &[u8]) -> Option<String> {
    let params = Members::parse(params, Duplicates::RefuseDeep).ok()?;
    let member = match method {
        "completion/complete" => "ref",
        _ if method.starts_with("resources/") => "uri",
        _ => "name",
    };
    only(&params, &[member])?;
    if member != "ref" {
        return plain(params.str(member)?).map(Cow::into_owned);
    }
    let about = params.object(member)?;
    only(&about, &["name"])?;
    plain(about.str("name")?).map(Cow::into_owned)
}

fn only(members: &Members<'_>, known: &[&str]) -> Option<()> {
    members.iter().all(|(key, _)| known.contains(&&*key)).then_some(())
}

/// Passes a text without special characters other than stars.
fn plain(text: Cow<'_, str>) -> Option<Cow<'_, str>> {
    let is_special = text.is_empty() || text.starts_with(['!', '/']) || text.contains(['?', '{', '}', '[', ']', '(', ')', '|', '\\']);
    (!is_special).then_some(text)
}
