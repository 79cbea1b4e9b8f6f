//! Servers that a new configuration does not name: until now, the gate served those of other clients' files. Writes nothing.

use std::path::Path;

use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::plan::{self, Wish};
use crate::table::counted;

/// Says that the gate serves `file`, which is new, and no longer the servers of clients' files.
pub(crate) fn remark(file: &Path, output: &Output) -> Result<(), Failure> {
    let found = import::discover(&plan::clients(&Wish { from: None, listen: None, yes: false })?);
    let count = found.servers.len();
    if count > 0 {
        let note = output.paint_remark(Look::Dim, "note:");
        let servers = counted(count, "server");
        output.remark(&format!(
            "{note} {} is new, and from now on `banyan up` serves what it names. The {servers} of your clients' files are not in it:\n  \
             `banyan import --write` adds them",
            file.display()
        ));
    }
    Ok(())
}
