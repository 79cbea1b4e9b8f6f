//! What `[mount.NAME.tools."GLOB"]` may say of tools: the annotation of MCP-AX 9.1. What it means for a call is not known here.

use mesh_proto::annotation::{self, Wishes};
use schemars::JsonSchema;
use serde::Deserialize;

/// What is known of a tool beyond what it says itself. It may make a tool look riskier or slower; less so only with `trust`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tool {
    /// How long a call takes: up to 500 ms, 5 s, 30 s, 2 min, or as long as the caller waits. Calls are ended
    /// after that time, or after the `timeout` of the mount where that is less.
    pub latency_class: Option<LatencyClass>,
    /// What two calls see of each other.
    pub consistency: Option<Consistency>,
    /// Whether a call changes anything.
    pub mutable: Option<bool>,
    /// Whether what it changes can be undone.
    pub reversible: Option<bool>,
    /// Whether calling it twice is calling it once.
    pub idempotent: Option<bool>,
    /// What a caller must be allowed to do.
    pub auth_scope: Option<AuthScope>,
    /// What a call costs.
    pub cost_class: Option<CostClass>,
    /// Whether the tool is there.
    pub availability: Option<Availability>,
    /// `true`: this holds even where the tool says of itself that it is riskier or slower.
    pub trust: bool,
}

impl Tool {
    /// Makes the wishes that the annotation of a tool is changed by.
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
    /// How long a call takes.
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
    /// What two calls see of each other.
    Consistency {
        /// All that was done before.
        Strong,
        /// All that was done before, some time later.
        Eventual,
        /// Nothing is promised.
        BestEffort,
    }
}

word! {
    /// What a caller must be allowed to do.
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
    /// What a call costs.
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
    /// Whether the tool is there.
    Availability {
        /// Always.
        Always,
        /// At certain times.
        Scheduled,
        /// Nothing is promised.
        BestEffort,
        /// It is listed, and calls may be refused.
        Degraded,
    }
}
