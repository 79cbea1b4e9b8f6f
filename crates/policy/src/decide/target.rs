//! What is asked for, as policies see it: `action` and `resource`. What MCP or MCP-AX says of a tool is read elsewhere, not here.

use std::collections::HashSet;

use cedar_policy_core::ast::{Entity, EntityUID, RestrictedExpr};
use cedar_policy_core::extensions::Extensions;
use smol_str::SmolStr;

use super::schema::{self, Types};

/// What somebody wants to do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// Call a tool.
    Call,
    /// Get a prompt, or completions for one.
    Prompt,
    /// Read a resource, subscribe to it, or get completions for a template.
    Read,
    /// Send a server what this gate knows nothing of.
    Send,
}

impl Action {
    /// All of them.
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

    /// The type of what it is done to.
    pub(super) fn resource_type(self) -> &'static str {
        match self {
            Self::Call => schema::TOOL,
            Self::Prompt => schema::PROMPT,
            Self::Read => schema::RESOURCE,
            Self::Send => schema::METHOD,
        }
    }
}

/// What is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target<'a> {
    /// What is to be done to it.
    pub action: Action,
    /// The mounts on the way to it, the first one first.
    pub mounts: Vec<&'a str>,
    /// Its name below them: of a tool or prompt the last segment, of a resource its URI, else a method.
    pub name: &'a str,
    /// What a tool is like; of no meaning for anything else.
    pub traits: Traits<'a>,
}

/// What a tool is like (MCP-AX 9.1), in the words of the annotation schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traits<'a> {
    /// Whether a call changes something.
    pub mutable: bool,
    /// Whether what it changes can be undone.
    pub reversible: bool,
    /// Whether calling it twice is calling it once.
    pub idempotent: bool,
    /// `read`, `write` or `admin`.
    pub scope: &'a str,
    /// `free`, `metered` or `expensive`.
    pub cost: &'a str,
    /// `realtime`, `fast`, `standard`, `slow` or `batch`.
    pub latency: &'a str,
}

/// What holds of a tool that says nothing of itself (AX-33).
impl Default for Traits<'_> {
    fn default() -> Self {
        Self { mutable: true, reversible: false, idempotent: false, scope: "write", cost: "metered", latency: "standard" }
    }
}

impl Target<'_> {
    /// Its whole name: the mounts and the name, with dots.
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
