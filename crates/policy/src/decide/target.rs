//! The target of a request as policies see it: `action` and `resource`. Annotations of MCP and MCP-AX are read elsewhere, not here.

use std::collections::HashSet;

use cedar_policy_core::ast::{Entity, EntityUID, RestrictedExpr};
use cedar_policy_core::extensions::Extensions;
use smol_str::SmolStr;

use super::schema::{self, Types};

/// A wanted action.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    Call,
    /// Get a prompt, or completions for one.
    Prompt,
    /// Read a resource, subscribe to it, or get completions for a template.
    Read,
    /// Send a server a method unknown to this gate.
    Send,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 4] = [Self::Call, Self::Prompt, Self::Read, Self::Send];

    /// The word in `Action::"call"`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Prompt => "prompt",
            Self::Read => "read",
            Self::Send => "send",
        }
    }

    /// The meaning of a word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.as_str() == word)
    }

    /// Gives the Cedar type of the action's resource.
    pub(super) fn resource_type(self) -> &'static str {
        match self {
            Self::Call => schema::TOOL,
            Self::Prompt => schema::PROMPT,
            Self::Read => schema::RESOURCE,
            Self::Send => schema::METHOD,
        }
    }
}

/// The target of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target<'a> {
    pub action: Action,
    /// The mounts on the way, the first one first.
    pub mounts: Vec<&'a str>,
    /// The name below the mounts: the last segment of a tool or prompt, the URI of a resource, or a method.
    pub name: &'a str,
    /// Traits of a tool; without meaning for anything else.
    pub traits: Traits<'a>,
}

/// Traits of a tool (MCP-AX 9.1), in the words of the annotation schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits<'a> {
    /// A call changes something.
    pub mutable: bool,
    /// Changes can be undone.
    pub reversible: bool,
    /// Two calls have the effect of one.
    pub idempotent: bool,
    /// `read`, `write` or `admin`.
    pub scope: &'a str,
    /// `free`, `metered` or `expensive`.
    pub cost: &'a str,
    /// `realtime`, `fast`, `standard`, `slow` or `batch`.
    pub latency: &'a str,
}

/// Traits of a tool without annotations (AX-33).
impl Default for Traits<'_> {
    fn default() -> Self {
        Self { mutable: true, reversible: false, idempotent: false, scope: "write", cost: "metered", latency: "standard" }
    }
}

impl Target<'_> {
    /// Joins the mounts and the name with dots.
    pub fn dotted(&self) -> String {
        let mut dotted = self.mounts.join(".");
        if !dotted.is_empty() {
            dotted.push('.');
        }
        dotted + self.name
    }

    pub(super) fn entity(&self, types: &Types) -> Option<Entity> {
        let above = (1..=self.mounts.len()).map(|end| types.uid(schema::MOUNT, &self.mounts[..end].join(".")));
        let above: Option<HashSet<EntityUID>> = above.collect();
        let text = |text: &str| RestrictedExpr::val(text);
        let mut attributes: Vec<(SmolStr, RestrictedExpr)> =
            vec![("mount".into(), text(self.mounts.first().copied().unwrap_or_default())), ("name".into(), text(self.name))];
        if self.action == Action::Call {
            let Traits { mutable, reversible, idempotent, scope, cost, latency } = self.traits;
            attributes.extend([
                ("read_only".into(), RestrictedExpr::val(!mutable)),
                ("reversible".into(), RestrictedExpr::val(reversible)),
                ("irreversible".into(), RestrictedExpr::val(mutable && !reversible)),
                ("idempotent".into(), RestrictedExpr::val(idempotent)),
                ("scope".into(), text(scope)),
                ("cost".into(), text(cost)),
                ("latency".into(), text(latency)),
            ]);
        }
        let uid = types.uid(self.action.resource_type(), &self.dotted())?;
        Entity::new(uid, attributes, above?, HashSet::new(), [], Extensions::none()).ok()
    }
}
