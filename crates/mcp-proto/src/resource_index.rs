//! Which mount a resource URI belongs to, and how the URIs of all mounts can stand in one list.
//!
//! URIs stay as their owners wrote them. Only where two mounts claim one does the later one's get its mount in front,
//! as `MOUNT+uri`, which is a URI still. It does not fetch anything and does not look into results: what was seen there
//! is noted in [`Seen`] by the caller.

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

/// A URI gets one label less at most. Where servers list what their URIs would be shown as, each label leads to the next.
const MOST_LABELS: usize = 16;

/// What one mount lists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Whose it is.
    pub mount: Segment,
    /// The URIs of its `resources/list`.
    pub uris: Vec<Arc<str>>,
    /// The URI templates of its `resources/templates/list`.
    pub templates: Vec<Arc<str>>,
}

/// The owner of a URI that a client used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Owner<'a> {
    /// Whom to ask.
    pub mount: &'a Segment,
    /// The URI as the owner knows it.
    pub uri: &'a str,
}

/// The table of one set of mounts. Built once, then only read.
#[derive(Clone, Debug, Default)]
pub struct ResourceIndex {
    mounts: Vec<Mount>,
    positions: HashMap<Segment, usize>,
    /// Every listed URI as it is shown.
    exact: HashMap<Arc<str>, Exact>,
    /// Who lists a template text first.
    template_owner: HashMap<Arc<str>, usize>,
    templates: Patterns,
    /// The only mount with a scheme; `None` where there are several.
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
    /// What the owner calls it, where that is not what is shown.
    original: Option<Arc<str>>,
}

impl Exact {
    /// Whether what is `shown` stands for this URI of this mount.
    fn is(&self, mount: usize, uri: &str, shown: &str) -> bool {
        self.mount == mount && self.original.as_deref().unwrap_or(shown) == uri
    }
}

impl ResourceIndex {
    /// Builds the table; of two mounts that claim one URI or template, the first one keeps it.
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

    /// Finds whom a URI belongs to: who lists it, else who lists a template for it, else in whose results it was `seen`,
    /// else the only one with its scheme, else whose label stands in front of it.
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

    /// How a URI of this mount is shown. `None` when there is no such mount, or other mounts list all that the URI could be shown as.
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

    /// How a URI template of this mount is shown. `None` when there is no such mount.
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

    /// A text that is no template routes nothing; it is still listed.
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

/// What stands before the first `:`, where that can be a scheme.
fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(legal)).then_some(scheme)
}

#[cfg(test)]
mod tests;
