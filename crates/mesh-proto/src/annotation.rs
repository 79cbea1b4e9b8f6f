//! Costs, risks and promises of a tool's calls (MCP-AX 9.1, AX-33): one typed annotation for every tool.
//!
//! On the wire an annotation stands in the tool's `_meta`, a member for each field (`key`): section 14 registers keys `x-mcpax-*`, and such a
//! member is mistaken for nobody else's. The bare names of the schema are read as well, in `_meta` and among the hints. A silent tool gets the annotation of MCP's own
//! hints, and where the hints are silent, the more careful values. Does not change definitions: [`Annotation::additions`] gives the members
//! to add when the tool is listed.

mod additions;
mod level;
mod read;
mod wish;

pub use level::{AuthScope, Availability, Consistency, CostClass, LatencyClass, Transport};
pub use wish::Wishes;

/// Members of a tool's `_meta` that make the annotation.
pub mod key {
    /// Audience of a tool of a gate itself, if not models (ours).
    pub const AUDIENCE: &str = "x-mcpax-audience";
    pub const AUTH_SCOPE: &str = "x-mcpax-auth-scope";
    pub const AVAILABILITY: &str = "x-mcpax-availability";
    pub const CONSISTENCY: &str = "x-mcpax-consistency";
    pub const COST_CLASS: &str = "x-mcpax-cost-class";
    /// An aggregator on the way asks for an approval first (AX-47).
    pub const GATED: &str = "x-mcpax-gated";
    /// Number of aggregators in between.
    pub const HOPS: &str = "x-mcpax-hops";
    pub const IDEMPOTENT: &str = "x-mcpax-idempotent";
    pub const LATENCY_CLASS: &str = "x-mcpax-latency-class";
    pub const MUTABLE: &str = "x-mcpax-mutable";
    pub const REVERSIBLE: &str = "x-mcpax-reversible";
    /// Flag of irreversible changes (AX-44).
    pub const SAFETY: &str = "x-mcpax-safety";
    pub const SCHEMA_VERSION: &str = "x-mcpax-schema-version";
    pub const TRANSPORT: &str = "x-mcpax-transport";
}

/// The value of [`key::AUDIENCE`] for tools that people who run gates want, and models do not.
pub const OPERATORS: &str = "operators";
/// The value of [`key::SAFETY`].
pub const IRREVERSIBLE_MUTABLE: &str = "irreversible_mutable";

/// Annotation of a tool, as seen from one aggregator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Annotation {
    pub latency_class: LatencyClass,
    /// The tool names its latency class itself.
    pub names_class: bool,
    pub consistency: Consistency,
    /// Calls change something.
    pub mutable: bool,
    /// Changes can be undone.
    pub reversible: bool,
    /// Two equal calls have the effect of a single call.
    pub idempotent: bool,
    pub transport: Transport,
    /// Permission needed by callers.
    pub auth_scope: AuthScope,
    pub cost_class: CostClass,
    pub availability: Availability,
    /// Version of the tool's schema, where given.
    pub schema_version: Option<String>,
    /// Aggregators on the way to the tool's server, the aggregator of this annotation included.
    pub hops: u8,
    /// Members spelled out by the definition; the others have to be added.
    said: SpelledFields,
}

/// Members spelled out by a definition, a bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct SpelledFields(u16);

impl Annotation {
    /// Recognises irreversible changes (AX-44).
    pub fn is_irreversible_mutable(&self) -> bool {
        self.mutable && !self.reversible
    }

    /// Raises the latency class to a measured duration; never lowers the class (AX-34).
    pub fn raise_latency(&mut self, measured: std::time::Duration) {
        let class = LatencyClass::of_duration(measured);
        if class > self.latency_class {
            self.latency_class = class;
            self.said.0 &= !additions::LATENCY_CLASS;
        }
    }
}
