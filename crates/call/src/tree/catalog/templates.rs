//! Matching of URIs against a mount's templates: those that wait for a person's decision, and those listed. Does not decide which wait.

use std::sync::OnceLock;

use mcp_proto::resource_index::{Effort, Fit, Templates};
use policy::pin::Kind;

use crate::tree::catalog::{Catalog, HeldDefinition};

/// Compiled templates, made on first use of a finished catalog. A copied catalog compiles its own.
#[derive(Debug, Default)]
pub struct CompiledTemplates {
    listed: OnceLock<Templates>,
    waiting: OnceLock<Templates>,
}

impl Clone for CompiledTemplates {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for CompiledTemplates {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Catalog {
    /// Finds the waiting entry to which a URI belongs, unless a listed one matches too. A URI too costly to match counts as waiting.
    pub fn holds_back(&self, uri: &str, effort: &mut Effort) -> Option<&HeldDefinition> {
        if self.held.is_empty() {
            return None;
        }
        let single = self.held.iter().find(|held| held.kind == Kind::Resource && held.key == uri);
        single.or_else(|| {
            let waiting = self.waiting_template(uri, effort)?;
            let is_listed = || self.resources.iter().chain(&*self.templates).any(|one| one.key == uri);
            let is_free = matches!(self.listed().find(uri, effort), Fit::Template(_)) || is_listed();
            (!is_free).then_some(waiting)
        })
    }

    fn waiting_template(&self, uri: &str, effort: &mut Effort) -> Option<&HeldDefinition> {
        let templates = || self.held.iter().filter(|held| held.kind == Kind::Template);
        let itself = templates().find(|held| held.key == uri);
        itself.or_else(|| match self.waiting().find(uri, effort) {
            Fit::Nothing => None,
            Fit::Template(place) => self.held.get(place),
            Fit::Unclear => templates().next(),
        })
    }

    fn listed(&self) -> &Templates {
        self.sought.listed.get_or_init(|| Templates::new(self.templates.iter().map(|one| &*one.key).enumerate()))
    }

    fn waiting(&self) -> &Templates {
        let templates = || self.held.iter().enumerate().filter(|(_, held)| held.kind == Kind::Template);
        self.sought.waiting.get_or_init(|| Templates::new(templates().map(|(place, held)| (place, &*held.key))))
    }
}

#[cfg(test)]
mod tests {
    use policy::pin::{Standing, Why};

    use super::*;

    fn catalog(waiting: impl IntoIterator<Item = String>) -> Catalog {
        let held = |key| HeldDefinition { kind: Kind::Template, key, place: None, why: Why::New, standing: Standing::Held };
        Catalog { held: waiting.into_iter().map(held).collect(), ..Catalog::default() }
    }

    #[test]
    fn h5_a_waiting_template_is_found_among_many() {
        let many = catalog((0..50_000).map(|n| format!("x:{n}/{{a}}")));
        let mut effort = Effort::default();
        assert_eq!(many.holds_back("x:777/y", &mut effort).map(|held| &*held.key), Some("x:777/{a}"));
        assert!(many.holds_back("x:y", &mut effort).is_none());
        assert!(effort.steps() < 1000, "{effort:?}");
        let dear = catalog((0..1000).map(|n| format!("x:{}{n}{{b}}!", "{+a}".repeat(30))));
        let mut effort = Effort::default();
        assert!(dear.holds_back(&format!("x:{}!", "y".repeat(8000)), &mut effort).is_some());
        assert!(effort.steps() < 4 << 20, "{effort:?}");
    }
}
