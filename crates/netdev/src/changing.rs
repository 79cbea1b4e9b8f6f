//! Rules on a change: held against its edits when these are made, and against the whole candidate when it is committed. Decides nothing about
//! reads.

use net_proto::change::{ChangeRecord, Edits, TriedEdits};
use net_proto::fault::{Code, Fault};
use net_proto::ovsdb::canonical_line;
use net_proto::redact::MARK;
use net_proto::role::DeviceAction;

use crate::bulk::Bulk;
use crate::site::Site;

impl Site {
    /// Holds edits against the rules of whoever makes them.
    pub(crate) fn may_edit(&self, edits: &Edits, bulk: Bulk) -> Result<(), Fault> {
        self.may_change()?;
        if let Edits::Commands(commands) = edits {
            bulk.check(commands.len(), self.settings.max_bulk_edit)?;
        }
        self.may_hold(edits)
    }

    /// Holds a candidate against the rules of whoever commits: since its edits, the rules may have changed, and the owner.
    pub(crate) async fn may_commit(&self, record: &ChangeRecord) -> Result<(), Fault> {
        let Some(change) = record.live() else { return Ok(()) };
        if self.changes.has_command_line() && change.commands.is_empty() {
            return self.may_hold(&Edits::Whole(change.candidate.clone()));
        }
        if self.changes.has_command_line() {
            return self.may_hold(&Edits::Commands(change.commands.clone()));
        }
        let (form, edits, candidate) = (change.form, change.commands.clone(), change.candidate.clone());
        if self.changes.snmp().is_some() {
            return self.may_set(&edits);
        }
        if !self.rules.has_paths() {
            return Ok(());
        }
        self.may_have_changed(&TriedEdits { form, edits, running: self.changes.running().await?, candidate })
    }

    fn may_hold(&self, edits: &Edits) -> Result<(), Fault> {
        let lines: Vec<&str> = match edits {
            Edits::Commands(commands) => commands.iter().map(String::as_str).collect(),
            Edits::Whole(_) if self.rules.has_lines() => {
                let detail = "rules on lines hold for this device, and a whole file could pass them by: use network.cli.configure";
                return Err(Fault::new(Code::AccessDenied, detail));
            }
            // Ends of blocks and of the file are no lines of their own.
            Edits::Whole(text) => text.lines().map(str::trim).filter(|line| *line != "end").collect(),
        };
        let role = self.present_role()?;
        for line in lines {
            if line.contains(MARK) {
                let detail = format!("a line holds {MARK} where a secret was hidden: write the secret, or leave the line out");
                return Err(Fault::new(Code::ConfigIncompatible, detail).at(line));
            }
            // A text is put in a file, where no line leads out of it.
            let line = if self.changes.is_text() { line } else { self.dialect.config_line(line)? };
            // A switch reads quotes and escapes, and rules know the line without them.
            let form = self.changes.ovs().map(|_| canonical_line(line)).transpose()?;
            role.permit(DeviceAction::ConfigLine(form.as_deref().unwrap_or(line)))?;
        }
        Ok(())
    }
}
