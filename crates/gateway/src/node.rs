//! Who this gate is among gates: its id, and what it says about itself to servers. It does not know which gates stand below it: the tree does.

use std::sync::Arc;

use bytes::Bytes;
use mcp_proto::client::Identity;
use mcp_proto::mcpax;

use crate::call::SERVER_INFO;
use crate::random;

/// What a connection that everybody shares says Banyan's clients can do: whatever any of them might.
const SHARED_CAPABILITIES: &[u8] = br#"{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{}}"#;

/// A gate as others see it.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its aggregator id, a UUID. It lasts as long as the process: gates that share a state directory may call each other.
    pub(crate) id: Arc<str>,
    shared: Bytes,
}

impl Node {
    pub(crate) fn new() -> Self {
        let id = uuid(&random::token());
        let shared = mcpax::declared(SHARED_CAPABILITIES, &id).into();
        Self { id, shared }
    }

    /// What is said over a connection that everybody shares.
    pub(crate) fn shared(&self) -> Identity {
        Identity { info: Self::info(), capabilities: self.shared.clone() }
    }

    /// What is said to another gate on behalf of a client that can do `capabilities`.
    pub(crate) fn with(&self, capabilities: &[u8]) -> Identity {
        Identity { info: Self::info(), capabilities: mcpax::declared(capabilities, &self.id).into() }
    }

    /// Our raw `clientInfo`.
    pub(crate) fn info() -> Bytes {
        Bytes::from_static(SERVER_INFO.as_bytes())
    }
}

/// 32 hexadecimal digits as a UUID of version 4.
fn uuid(digits: &str) -> Arc<str> {
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32)).into()
}

#[cfg(test)]
mod tests {
    use mcp_proto::mcpax::{Peer, peer};

    use super::*;

    #[test]
    fn a_gate_has_an_id_of_its_own_and_says_it() {
        let (one, two) = (Node::new(), Node::new());
        assert_ne!(one.id, two.id);
        assert_eq!(uuid("0123456789abcdef0123456789abcdef").as_ref(), "01234567-89ab-4def-8123-456789abcdef");
        assert_eq!(peer(&one.shared().capabilities), Peer::Gate(one.id.to_string()));
        assert_eq!(peer(&one.with(b"{}").capabilities), Peer::Gate(one.id.to_string()));
    }
}
