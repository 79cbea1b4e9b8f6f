//! What a call of a tool costs, risks and promises (MCP-AX 9.1, AX-33): one typed annotation for every tool.
//!
//! It stands on the wire in the tool's `_meta`, a member for each field (`key`). A tool that says nothing gets its annotation
//! from MCP's own hints, and where those say nothing, the more careful value. The definition itself is not changed here:
//! [`Annotation::additions`] says what whoever lists the tool has to add.

mod additions;
mod level;
mod read;
mod wish;

pub use level::{AuthScope, Availability, Consistency, CostClass, LatencyClass, Transport};
pub use wish::Wishes;

/// The members of a tool's `_meta` that make its annotation.
pub mod key {
    /// Who may call.
    pub const AUTH_SCOPE: &str = "x-mcpax-auth-scope";
    /// Whether it is there.
    pub const AVAILABILITY: &str = "x-mcpax-availability";
    /// What two calls see of each other.
    pub const CONSISTENCY: &str = "x-mcpax-consistency";
    /// What it costs.
    pub const COST_CLASS: &str = "x-mcpax-cost-class";
    /// Whether an aggregator on the way asks somebody to agree first (AX-47).
    pub const GATED: &str = "x-mcpax-gated";
    /// How many aggregators stand between.
    pub const HOPS: &str = "x-mcpax-hops";
    /// Whether calling it twice is calling it once.
    pub const IDEMPOTENT: &str = "x-mcpax-idempotent";
    /// How long it takes.
    pub const LATENCY_CLASS: &str = "x-mcpax-latency-class";
    /// Whether it changes anything.
    pub const MUTABLE: &str = "x-mcpax-mutable";
    /// Whether what it changes can be undone.
    pub const REVERSIBLE: &str = "x-mcpax-reversible";
    /// The flag of what changes something for good (AX-44).
    pub const SAFETY: &str = "x-mcpax-safety";
    /// The version of its schema.
    pub const SCHEMA_VERSION: &str = "x-mcpax-schema-version";
    /// How it is reached.
    pub const TRANSPORT: &str = "x-mcpax-transport";
}

/// The value of [`key::SAFETY`].
pub const IRREVERSIBLE_MUTABLE: &str = "irreversible_mutable";

/// The annotation of one tool as it stands at one aggregator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Annotation {
    /// How long a call may take.
    pub latency_class: LatencyClass,
    /// What two calls see of each other.
    pub consistency: Consistency,
    /// Whether it changes anything.
    pub mutable: bool,
    /// Whether what it changes can be undone.
    pub reversible: bool,
    /// Whether calling it twice is calling it once.
    pub idempotent: bool,
    /// How it is reached.
    pub transport: Transport,
    /// What a caller must be allowed to do.
    pub auth_scope: AuthScope,
    /// What it costs.
    pub cost_class: CostClass,
    /// Whether it is there.
    pub availability: Availability,
    /// The version of its schema, where it says one.
    pub schema_version: Option<String>,
    /// How many aggregators a call passes from here to the tool's server, this one included.
    pub hops: u8,
    /// Which of these the definition says itself; the others have to be added to it.
    said: Said,
}

/// Which fields a definition spells out, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Said(u16);

impl Annotation {
    /// Whether a call changes something for good (AX-44).
    pub fn is_irreversible_mutable(&self) -> bool {
        self.mutable && !self.reversible
    }

    /// Raises the latency class to what was measured on the way; never lowers it (AX-34).
    pub fn raise_latency(&mut self, measured: std::time::Duration) {
        let class = LatencyClass::of(measured);
        if class > self.latency_class {
            self.latency_class = class;
            self.said.0 &= !additions::LATENCY_CLASS;
        }
    }
}
