//! The form of `[mount.NAME.tools."GLOB"]`: the annotation of MCP-AX 9.1. Annotates no tool.

use mesh_proto::annotation::{self, Wishes};
use schemars::JsonSchema;
use serde::Deserialize;

/// Additions to a tool's annotation. A tool may look riskier or slower by them; less so only with `trust`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tool {
    /// Duration of a call: up to 500 ms, 5 s, 30 s, 2 min, or as long as the caller waits. Calls are ended after the time of their class,
    /// or after a shorter `timeout` of the mount.
    pub latency_class: Option<LatencyClass>,
    /// View of a call on earlier calls.
    pub consistency: Option<Consistency>,
    /// `true`: a call changes something.
    pub mutable: Option<bool>,
    /// `true`: changes can be undone.
    pub reversible: Option<bool>,
    /// `true`: a second call of the same adds nothing.
    pub idempotent: Option<bool>,
    /// Permission of a caller.
    pub auth_scope: Option<AuthScope>,
    /// Cost of a call.
    pub cost_class: Option<CostClass>,
    /// Presence of the tool.
    pub availability: Option<Availability>,
    /// `true`: holds even against a tool that calls itself riskier or slower.
    pub trust: bool,
}

impl Tool {
    /// Makes wishes for the annotation of a tool.
    pub(crate) fn wishes(&self) -> Wishes {
        Wishes {
            trust: self.trust,
            latency_class: self.latency_class.map(Into::into),
            consistency: self.consistency.map(Into::into),
            mutable: self.mutable,
            reversible: self.reversible,
            idempotent: self.idempotent,
            auth_scope: self.auth_scope.map(Into::into),
            cost_class: self.cost_class.map(Into::into),
            availability: self.availability.map(Into::into),
        }
    }
}

/// A word of the annotation as people write it.
macro_rules! word {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum $name { $($(#[$each])* $variant,)+ }

        impl From<$name> for annotation::$name {
            fn from(word: $name) -> Self {
                match word { $($name::$variant => Self::$variant,)+ }
            }
        }
    };
}

word! {
    /// Duration of a call.
    LatencyClass {
        /// Up to 500 ms.
        Realtime,
        /// Up to 5 s.
        Fast,
        /// Up to 30 s.
        Standard,
        /// Up to 2 min.
        Slow,
        /// As long as the caller waits.
        Batch,
    }
}

word! {
    /// View of a call on earlier calls.
    Consistency {
        /// All earlier calls.
        Strong,
        /// All earlier calls, some time later.
        Eventual,
        /// Nothing is promised.
        BestEffort,
    }
}

word! {
    /// Permission of a caller.
    AuthScope {
        /// Look.
        Read,
        /// Change.
        Write,
        /// Rule.
        Admin,
    }
}

word! {
    /// Cost of a call.
    CostClass {
        /// Nothing.
        Free,
        /// Something.
        Metered,
        /// Much.
        Expensive,
    }
}

word! {
    /// Presence of the tool.
    Availability {
        /// Always.
        Always,
        /// At certain times.
        Scheduled,
        /// Nothing is promised.
        BestEffort,
        /// Listed, and calls may be refused.
        Degraded,
    }
}
