//! Pages of the list (AX-03). Sorted by segments, one after the other, so that the tools of a server stand together. A cursor holds the
//! last name shown, and stays valid whatever comes or goes meanwhile. Does not show tools.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;

use banyan_model::{QualifiedName, Segment};

use super::{Handle, Namespace};

/// A page of tools, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Page {
    pub tools: Vec<Handle>,
    /// Beginning of the next page; `None` on the last.
    pub next: Option<PageCursor>,
}

/// The name before the beginning of a page.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageCursor(String);

impl PageCursor {
    const MARK: &str = "after:";

    /// Reads the text of [`Self::encode`].
    pub fn decode(text: &str) -> Option<Self> {
        let bytes = (text.len() <= 400).then(|| BASE64_URL_SAFE_NO_PAD.decode(text).ok()).flatten()?;
        let name = String::from_utf8(bytes).ok()?.strip_prefix(Self::MARK)?.to_owned();
        let legal = name.len() <= QualifiedName::MAX && name.split('.').all(|segment| Segment::new(segment).is_ok());
        legal.then_some(Self(name))
    }

    /// Writes an opaque text, without secrets or state.
    pub fn encode(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(format!("{}{}", Self::MARK, self.0))
    }
}

impl Namespace {
    /// Gives the listed tools behind `after`, at most `most`, and at least one if any is left.
    pub fn page(&self, after: Option<&PageCursor>, most: usize) -> Page {
        let mut page = Page::default();
        for handle in self.behind(after.map(|cursor| cursor.0.as_str())) {
            if page.tools.len() >= most.max(1) {
                let last = page.tools.last().and_then(|last| self.name(*last));
                page.next = last.map(|name| PageCursor(name.as_str().to_owned()));
                break;
            }
            page.tools.push(handle);
        }
        page
    }

    /// Lists all tools, in order.
    pub fn listed(&self) -> impl Iterator<Item = Handle> {
        self.behind(None)
    }

    fn behind<'a>(&'a self, name: Option<&str>) -> impl Iterator<Item = Handle> + use<'a> {
        let (first, start) = match name.map(|name| name.split_once('.').unwrap_or((name, ""))) {
            None => (0, 0),
            Some((segment, rest)) => match self.place(segment) {
                Ok(part) if rest.is_empty() => (part, 0),
                Ok(part) => (part, self.parts[part].behind(rest)),
                Err(part) => (part, 0),
            },
        };
        let parts = (first..).zip(&self.parts[first..]);
        parts.flat_map(move |(at, part)| {
            let from = if at == first { start } else { 0 };
            let tools = (from..).zip(&part.tools()[from..]).filter(|(_, tool)| tool.withheld().is_none());
            tools.filter_map(move |(tool, _)| Some(Handle { part: u32::try_from(at).ok()?, tool: u32::try_from(tool).ok()? }))
        })
    }
}
