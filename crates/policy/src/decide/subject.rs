//! The caller as policies see it: `principal`. Authentication is not done here.

use std::collections::{BTreeSet, HashSet};

use banyan_model::PrincipalKind;
use cedar_policy_core::ast::{Entity, EntityUID, RestrictedExpr};
use cedar_policy_core::extensions::Extensions;
use smol_str::SmolStr;

use super::schema::{self, Types};

/// A caller.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Subject {
    /// The name in configuration, logs and records.
    pub name: String,
    pub kind: PrincipalKind,
    pub groups: BTreeSet<String>,
    pub roles: BTreeSet<String>,
    /// The scopes of the token.
    pub scopes: BTreeSet<String>,
    /// The program's name for itself, which nothing proves.
    pub client: String,
}

impl Subject {
    pub(super) fn entity(&self, types: &Types) -> Option<Entity> {
        let groups = self.groups.iter().map(|name| types.uid(schema::GROUP, name));
        let parents: Option<HashSet<EntityUID>> = groups.chain(self.roles.iter().map(|name| types.uid(schema::ROLE, name))).collect();
        let text = |text: &str| RestrictedExpr::val(text);
        let attributes: [(SmolStr, RestrictedExpr); 4] = [
            ("client".into(), text(&self.client)),
            ("kind".into(), text(self.kind.as_str())),
            ("name".into(), text(&self.name)),
            ("scopes".into(), RestrictedExpr::set(self.scopes.iter().map(|scope| text(scope)))),
        ];
        let uid = types.uid(schema::PRINCIPAL, &self.name)?;
        Entity::new(uid, attributes, HashSet::new(), parents?, [], Extensions::none()).ok()
    }
}
