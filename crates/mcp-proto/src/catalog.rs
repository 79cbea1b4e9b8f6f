//! The lists of a server: tools, prompts, resources and templates, each kept as the bytes received.
//!
//! Does not merge servers and does not decide what a client is shown.

use bytes::Bytes;

use crate::json::{self, Duplicates, Members};
use crate::splice::{self, Change};

/// The four lists of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `tools/list`
    Tools,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    /// Names the listing method.
    pub fn method(self) -> &'static str {
        match self {
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Tools => "tools/list",
        }
    }

    /// The kind a list method asks for.
    pub fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.method() == method)
    }

    /// Names the member of the result that holds the entries.
    pub fn member(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Tools => "tools",
        }
    }

    /// Names the identifying member of an entry.
    pub fn key(self) -> &'static str {
        match self {
            Self::Prompts | Self::Tools => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// Names the server capability of the list.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
            Self::Tools => "tools",
        }
    }

    /// Names the notification of a change.
    pub fn list_changed(self) -> &'static str {
        match self {
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources | Self::Templates => "notifications/resources/list_changed",
            Self::Tools => "notifications/tools/list_changed",
        }
    }
}

/// A listed tool, prompt, resource or template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name, URI or URI template.
    pub key: String,
    pub raw: Bytes,
}

impl Entry {
    /// Gives the entry under another name or URI; everything else stays unchanged.
    pub fn shown_as(&self, kind: Kind, key: &str) -> Bytes {
        if key == self.key {
            return self.raw.clone();
        }
        Bytes::from(splice::edit(&self.raw, &[(kind.key(), Change::Set(json::quote(key).as_bytes()))]))
    }
}

/// Members of definitions that models and clients act on.
const MEMBERS: [&str; 10] =
    ["_meta", "annotations", "arguments", "description", "inputSchema", "name", "outputSchema", "title", "uri", "uriTemplate"];

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// Cursor of the next page.
    pub next: Option<String>,
    /// Number of unreadable entries: no name, no object, or a member that some clients mistake for another.
    pub unreadable: usize,
    /// Milliseconds for which the page may be kept, if the server says so.
    pub ttl_ms: Option<u64>,
}

impl Page {
    /// Reads the raw result of a list request; `None` when it has no such list.
    pub fn parse(kind: Kind, result: &Bytes) -> Option<Self> {
        let members = Members::parse(result, Duplicates::RefuseTop).ok()?;
        let list = json::elements(members.get(kind.member())?)?;
        let mut page = Self {
            entries: Vec::with_capacity(list.len()),
            next: members.str("nextCursor").map(|s| s.into_owned()),
            unreadable: 0,
            ttl_ms: members.get("ttlMs").and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok()),
        };
        for raw in list {
            let members = Members::parse(raw, Duplicates::RefuseTop).ok().filter(|members| members.lookalike(&MEMBERS).is_none());
            match members.and_then(|members| members.str(kind.key()).map(|key| key.into_owned())) {
                Some(key) => page.entries.push(Entry { key, raw: result.slice_ref(raw) }),
                None => page.unreadable += 1,
            }
        }
        Some(page)
    }
}

/// The params of a list request.
pub fn list_params(cursor: Option<&str>) -> Bytes {
    cursor.map_or(Bytes::from_static(b"{}"), |c| Bytes::from(format!("{{\"cursor\":{}}}", json::quote(c))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_bytes_and_bad_ones_are_counted() {
        let result = Bytes::from_static(br#"{"tools":[ {"name":"a","v":1.0} ,{"title":"no name"},7],"nextCursor":"n","ttlMs":5}"#);
        let page = Page::parse(Kind::Tools, &result).unwrap();
        assert_eq!(page.entries, [Entry { key: "a".into(), raw: Bytes::from_static(br#"{"name":"a","v":1.0}"#) }]);
        assert_eq!((page.next.as_deref(), page.unreadable, page.ttl_ms), (Some("n"), 2, Some(5)));
        assert_eq!(&page.entries[0].shown_as(Kind::Tools, "m__a")[..], br#"{"name":"m__a","v":1.0}"#);
        assert_eq!(Page::parse(Kind::Prompts, &result), None);
    }
}
