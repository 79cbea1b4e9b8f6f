//! Who calls. Does not decide what they may do.

use std::sync::{Arc, LazyLock};

/// Who a call is made for, as established by `authenticate`. Credentials are not part of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Principal {
    /// The name under which the configuration, logs and records know the caller: a token's name, or `local`.
    pub name: Arc<str>,
}

impl Principal {
    /// Whoever reaches a loopback listener that asks for no token.
    pub fn local() -> Self {
        static LOCAL: LazyLock<Arc<str>> = LazyLock::new(|| "local".into());
        Self { name: Arc::clone(&LOCAL) }
    }
}
