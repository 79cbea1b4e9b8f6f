//! The mount of a resource URI, and the URIs of all mounts in one list.
//!
//! URIs stay as their owners wrote them. Where two mounts claim a URI, the later mount's gets the mount in front,
//! as `MOUNT+uri`, still a URI. Does not fetch anything and does not look into results: URIs seen there
//! are noted in [`Seen`] by the caller.

mod patterns;
mod seen;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use banyan_model::Segment;

pub use self::patterns::{Effort, Fit, Templates};
use self::patterns::{Pattern, Patterns};
use crate::template::Template;
pub use seen::Seen;

/// Most labels stripped from a URI. Where servers list the labelled forms of their URIs, each label leads to the next.
const MOST_LABELS: usize = 16;

/// The lists of one mount.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    pub mount: Segment,
    /// URIs of its `resources/list`.
    pub uris: Vec<Arc<str>>,
    /// URI templates of its `resources/templates/list`.
    pub templates: Vec<Arc<str>>,
}

/// The owner of a URI used by a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner<'a> {
    pub mount: &'a Segment,
    /// The URI as the owner knows it.
    pub uri: &'a str,
}

/// The table for a set of mounts. Built once, then only read.
#[derive(Clone, Debug, Default)]
pub struct ResourceIndex {
    mounts: Vec<Mount>,
    positions: HashMap<Segment, usize>,
    /// Every listed URI, by its shown form.
    exact: HashMap<Arc<str>, Exact>,
    /// The first mount to list a template text.
    template_owner: HashMap<Arc<str>, usize>,
    templates: Patterns,
    /// The only mount with a scheme; `None` for several.
    schemes: BTreeMap<String, Option<usize>>,
}

#[derive(Clone, Debug)]
struct Mount {
    segment: Segment,
    /// The segment as the first part of a scheme: `net_1` is `net-1`.
    label: String,
}

#[derive(Clone, Debug)]
struct Exact {
    mount: usize,
    /// The owner's form, if not the shown form.
    original: Option<Arc<str>>,
}

impl Exact {
    /// Tells if `shown` stands for this URI of this mount.
    fn is(&self, mount: usize, uri: &str, shown: &str) -> bool {
        self.mount == mount && self.original.as_deref().unwrap_or(shown) == uri
    }
}

impl ResourceIndex {
    /// Builds the table; of two mounts that claim a URI or template, the first keeps it.
    pub fn build(listed: &[Listed]) -> Self {
        let positions = listed.iter().enumerate().map(|(at, list)| (list.mount.clone(), at)).collect();
        let mut index = Self { mounts: labelled(listed), positions, ..Self::default() };
        for (mount, list) in listed.iter().enumerate() {
            for uri in &list.uris {
                index.add_uri(mount, uri);
            }
        }
        let all = listed.iter().enumerate().flat_map(|(mount, list)| list.templates.iter().map(move |text| (mount, text)));
        index.templates = Patterns::new(all.filter_map(|(mount, text)| index.pattern(mount, text)).collect());
        index
    }

    /// Finds the owner of a URI: the mount that lists it, else lists a template for it, else mentioned it in results (`seen`),
    /// else is the only mount with the scheme, else has its label in front.
    pub fn owner<'a>(&'a self, uri: &'a str, seen: impl FnOnce(&str) -> Option<Segment>) -> Option<Owner<'a>> {
        if let Some(exact) = self.exact.get(uri) {
            return self.owned(exact.mount, exact.original.as_deref().unwrap_or(uri));
        }
        if let Some((pattern, original)) = self.templates.find(uri, &mut Effort::default(), &mut false) {
            return self.owned(pattern.mount, original);
        }
        if let Some(mount) = seen(uri).and_then(|segment| self.position(&segment)) {
            return self.owned(mount, uri);
        }
        if let Some(Some(mount)) = scheme(uri).and_then(|scheme| self.schemes.get(scheme)) {
            return self.owned(*mount, uri);
        }
        let (label, _) = uri.split_once('+')?;
        let mount = self.mounts.iter().position(|mount| mount.label == label)?;
        self.owned(mount, self.unlabelled(mount, uri)?)
    }

    /// Gives the shown form of a mount's URI. `None` without such a mount, or if other mounts list every possible form.
    pub fn shown<'a>(&self, mount: &Segment, uri: &'a str) -> Option<Cow<'a, str>> {
        let mount = self.position(mount)?;
        let mut shown = Cow::Borrowed(uri);
        let mut labels = 0;
        while let Some(exact) = self.exact.get(&*shown) {
            if exact.is(mount, uri, &shown) {
                return Some(shown);
            }
            labels += 1;
            if labels == MOST_LABELS {
                return None;
            }
            shown = Cow::Owned(self.labelled(mount, &shown)?);
        }
        let Some(owner) = self.owner(uri, |_| None) else { return Some(Cow::Borrowed(uri)) };
        if self.position(owner.mount) == Some(mount) && owner.uri == uri {
            return Some(Cow::Borrowed(uri));
        }
        self.labelled(mount, uri).map(Cow::Owned)
    }

    /// Gives the shown form of a mount's URI template. `None` without such a mount.
    pub fn shown_template<'a>(&self, mount: &Segment, text: &'a str) -> Option<Cow<'a, str>> {
        let mount = self.position(mount)?;
        match self.template_owner.get(text) {
            Some(first) if *first != mount => self.labelled(mount, text).map(Cow::Owned),
            _ => Some(Cow::Borrowed(text)),
        }
    }

    fn add_uri(&mut self, mount: usize, uri: &Arc<str>) {
        self.note_scheme(mount, uri);
        let mut shown = Arc::clone(uri);
        for _ in 0..MOST_LABELS {
            match self.exact.get(&shown) {
                None => {
                    let original = (shown != *uri).then(|| Arc::clone(uri));
                    self.exact.insert(shown, Exact { mount, original });
                    return;
                }
                Some(taken) if taken.is(mount, uri, &shown) => return,
                Some(_) => {}
            }
            let Some(longer) = self.labelled(mount, &shown) else { return };
            shown = longer.into();
        }
    }

    /// Makes the pattern of a template. A text that is no template routes nothing, and is still listed.
    fn pattern(&mut self, mount: usize, text: &Arc<str>) -> Option<Pattern> {
        self.note_scheme(mount, text);
        let first = *self.template_owner.entry(Arc::clone(text)).or_insert(mount);
        let label = if first == mount { None } else { Some(self.labelled(mount, "")?.into()) };
        Some(Pattern { template: Template::parse(text).ok()?, mount, place: 0, label })
    }

    fn note_scheme(&mut self, mount: usize, uri: &str) {
        let Some(scheme) = scheme(uri) else { return };
        match self.schemes.get_mut(scheme) {
            Some(only) if *only != Some(mount) => *only = None,
            Some(_) => {}
            None => _ = self.schemes.insert(scheme.to_owned(), Some(mount)),
        }
    }

    fn owned<'a>(&'a self, mount: usize, uri: &'a str) -> Option<Owner<'a>> {
        Some(Owner { mount: &self.mounts.get(mount)?.segment, uri })
    }

    fn position(&self, segment: &Segment) -> Option<usize> {
        self.positions.get(segment).copied()
    }

    fn labelled(&self, mount: usize, uri: &str) -> Option<String> {
        Some(format!("{}+{uri}", self.mounts.get(mount)?.label))
    }

    fn unlabelled<'a>(&self, mount: usize, uri: &'a str) -> Option<&'a str> {
        uri.strip_prefix(self.mounts.get(mount)?.label.as_str())?.strip_prefix('+')
    }
}

/// Labels that are legal in a scheme (RFC 3986, section 3.1) and differ from each other.
fn labelled(listed: &[Listed]) -> Vec<Mount> {
    let near = |segment: &Segment| {
        let text = segment.as_str().replace('_', "-");
        if text.starts_with(|c: char| c.is_ascii_lowercase()) { text } else { format!("m{text}") }
    };
    let kept = listed.iter().map(|list| &list.mount).filter(|segment| near(segment) == segment.as_str());
    let mut taken: BTreeSet<String> = kept.map(|segment| segment.as_str().to_owned()).collect();
    let mut mounts = Vec::with_capacity(listed.len());
    for Listed { mount, .. } in listed {
        let mut label = near(mount);
        let mut count = 1;
        while label != mount.as_str() && !taken.insert(label.clone()) {
            count += 1;
            label = format!("{}-{count}", near(mount));
        }
        mounts.push(Mount { segment: mount.clone(), label });
    }
    mounts
}

/// Gives the text before the first `:`, if a legal scheme.
fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(legal)).then_some(scheme)
}

#[cfg(test)]
mod tests;
