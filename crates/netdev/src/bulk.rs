//! Way of many edits of one call to a device. Sends none.

use net_proto::fault::{Code, Fault};

/// Way in which many edits of one call reach the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Bulk {
    /// At once: more than the device takes at once are refused.
    #[default]
    Single,
    /// In several requests, as the caller wishes; together a single change.
    Chunked,
}

impl Bulk {
    /// Checks the number of edits of a call.
    pub(crate) fn check(self, count: usize, most: usize) -> Result<(), Fault> {
        if count <= most || self == Self::Chunked {
            return Ok(());
        }
        let detail =
            format!("{count} edits in one call, and {most} are allowed: send them in parts, or with `chunked`, which makes the parts here");
        Err(Fault::new(Code::ConfigIncompatible, detail))
    }
}
