//! Approvals of calls. Asks nobody.

mod diff;
pub(crate) mod file;
pub(crate) mod resolve;
pub(crate) mod resolved;
mod revoke;

use std::sync::Arc;

use policy::approval::Mode;

use crate::diff::Change;
use crate::file::At;
use crate::problem::Flaw;
use crate::reading::FileReading;
use crate::resolved::Config;
use crate::revoked::RefusedFile;
use crate::section::Section;

/// Approvals: `[approvals]`, formerly `[gate]`.
pub(crate) struct GateSection;

impl Section for GateSection {
    type Form = file::GateForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        if let (Some(_), Some(former)) = (&form.approvals, &form.gate) {
            let flaw = Flaw::new(former.span(), "`[gate]` is the former name of `[approvals]`, and this file has both");
            reading.flaws.push(flaw.help("move its keys to [approvals], and remove it"));
        }
        let section = form.approvals.as_ref().or(form.gate.as_ref().map(At::get));
        config.gate = section.map(|section| Arc::new(reading.gate(section, config.trust.resource.as_deref())));
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        diff::changes(old, new)
    }

    fn notices(&self, config: &Config) -> Vec<String> {
        let Some(gate) = &config.gate else { return Vec::new() };
        let believes = |mode: &Mode| matches!(mode, Mode::Irreversible | Mode::Mutable);
        let notice = "[approvals]: calls go unasked where a server says that its tool only reads, or can be undone: `banyan tools` marks them; \
                      mode = \"unlisted\" believes this file alone";
        let is_due = std::iter::once(&gate.mode).chain(gate.mounts.values()).any(believes);
        is_due.then(|| notice.to_owned()).into_iter().collect()
    }

    fn revoke(&self, refused: &RefusedFile<'_>, left: &mut Config) {
        if let RefusedFile::Table(file) = refused {
            revoke::keep(&mut left.gate, file);
        }
    }
}
