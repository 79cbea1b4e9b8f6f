//! The id of a gate: kept over restarts, or for this run alone. Knows nothing else about a gate.

use std::path::Path;

use call::words::node::Node;
use disk::ids;

/// Makes a gate with an id for as long as the process lasts.
pub(super) fn fresh() -> Node {
    Node::with_id(ids::fresh(), None)
}

/// Makes the gate of `place`, with the id of the last run (MCP-AX 6.1). `state_dir` keeps the ids of all gates of this machine.
pub(super) fn kept(state_dir: &Path, place: &Path) -> Node {
    match ids::keep(state_dir, place) {
        Ok((id, file)) => Node::with_id(id, Some(file)),
        Err(error) => {
            let place = place.display();
            tracing::warn!(%place, %error, "the id of this gate is not kept: parents will take it for another one after a restart");
            fresh()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mesh_proto::id::NodeId;

    use super::*;

    #[test]
    fn ax_20_a_gate_keeps_its_id_and_no_two_share() {
        let (state, place) = (tempfile::tempdir().unwrap(), Path::new("/etc/a.toml"));
        let first = kept(state.path(), place);
        let (beside, elsewhere) = (kept(state.path(), place), kept(state.path(), Path::new("/etc/b.toml")));
        assert!(first.id != beside.id && first.id != elsewhere.id);
        let id = Arc::clone(&first.id);
        drop(first);
        assert_eq!(kept(state.path(), place).id, id);
        assert_ne!(NodeId::parse(&id), None);
    }
}
