//! Callers, by name. Does not decide their permissions.

use std::sync::{Arc, LazyLock};

/// The caller of a call, as established by `authenticate`. Holds no credentials.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Principal {
    /// The name under which the configuration, logs and records know the caller: a token's name, or `local`.
    pub name: Arc<str>,
}

impl Principal {
    /// The caller at a loopback listener without tokens.
    pub fn local() -> Self {
        static LOCAL: LazyLock<Arc<str>> = LazyLock::new(|| "local".into());
        Self { name: Arc::clone(&LOCAL) }
    }
}
