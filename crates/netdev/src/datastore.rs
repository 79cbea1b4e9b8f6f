//! The data of a device over NETCONF or SNMP: reads and edits by YANG paths, under the rules of the device. Does not know MCP.

use std::borrow::Cow;
use std::sync::Arc;

use net_proto::change::{Author, ChangeRecord, ConfigForm, TriedEdits, adopt, edits_of};
use net_proto::fault::{Code, Fault};
use net_proto::netconf::{EditOperation, NetconfCapabilities, NodePath, XmlTree};
use net_proto::redact::MARK;
use net_proto::role::DeviceAction;
use net_proto::snmp::{edited, whole_path};
use serde_json::Value;

use crate::bulk::Bulk;
use crate::clock::now;
use crate::site::{PATIENCE, Preview, Site};

/// Edit of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeEdit {
    pub(crate) path: String,
    pub(crate) operation: EditOperation,
    pub(crate) value: Option<Value>,
}

/// Edits of one call.
#[derive(Clone, Debug)]
pub(crate) struct NodeEdits {
    pub(crate) all: Vec<NodeEdit>,
    pub(crate) bulk: Bulk,
}

impl NodeEdit {
    /// Number of edits: each entry of a list counts.
    fn count(&self) -> usize {
        fn entries(value: &Value) -> usize {
            match value {
                Value::Array(all) => all.iter().map(|entry| entries(entry).max(1)).sum(),
                Value::Object(members) => members.values().map(entries).sum(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
            }
        }
        self.value.as_ref().map_or(0, entries).max(1)
    }

    /// The same edit in requests of at most so many entries.
    fn chunks(&self, most: usize) -> Result<Vec<Self>, Fault> {
        if self.count() <= most {
            return Ok(vec![self.clone()]);
        }
        let parts = match &self.value {
            Some(Value::Array(all)) if self.operation != EditOperation::Replace => {
                all.chunks(most).map(|part| Self { value: Some(part.to_vec().into()), ..self.clone() }).collect()
            }
            _ => Vec::new(),
        };
        if parts.is_empty() || parts.iter().any(|part: &Self| part.count() > most) {
            let detail = format!("one edit alone has {} entries, and {most} are allowed: name smaller nodes by their paths", self.count());
            return Err(Fault::new(Code::ConfigIncompatible, detail).at(self.path.clone()));
        }
        Ok(parts)
    }
}

impl Site {
    /// Data below a path: of the running configuration, or with the state of the device.
    pub(crate) async fn data(&self, path: &str, with_state: bool) -> Result<(XmlTree, Arc<NetconfCapabilities>), Fault> {
        self.permit(DeviceAction::ReadPath(path))?;
        self.backend.netconf()?.data(path, with_state).await
    }

    /// Adds to the candidate of `who`; answers the diff. The device itself makes and tests the candidate.
    pub(crate) async fn edit_data(&self, who: &str, edits: &NodeEdits) -> Result<Preview, Fault> {
        let _lock = self.store.lock(PATIENCE).await?;
        let (record, shown) = self.tried(who, edits).await?;
        self.keep(&record)?;
        Ok(shown)
    }

    /// The diff that such edits of `who` would make. Nothing is kept, and the device empties its candidate again.
    pub(crate) async fn foresee_data(&self, who: &str, edits: &NodeEdits) -> Result<Preview, Fault> {
        let _lock = self.store.lock(PATIENCE).await?;
        Ok(self.tried(who, edits).await?.1)
    }

    /// The record with the edits, and the diff.
    pub(crate) async fn tried(&self, who: &str, edits: &NodeEdits) -> Result<(ChangeRecord, Preview), Fault> {
        if self.changes.snmp().is_some() {
            return self.tried_objects(who, edits).await;
        }
        let netconf = self.changes.netconf()?;
        self.may_edit_data(edits)?;
        let record = self.store.load()?;
        let mut all = edits_of(&record, who, &now())?;
        let device = netconf.reach().await?;
        for edit in &self.chunked(edits)? {
            let config = NodePath::read(&edit.path, &device)?.config(edit.operation, edit.value.as_ref(), &device);
            all.push(config.map_err(|fault| fault.at(edit.path.clone()))?);
        }
        let sent = self.redactor.knowing_those_of(all.iter().map(String::as_str));
        let tried = netconf.try_edits(all).await.map_err(|fault| fault.cleaned(|text| sent.text(text)))?;
        self.may_have_changed(&tried)?;
        let running = tried.running.clone();
        let record = adopt(&record, Author { device: &self.settings.name, who }, tried, &now())?;
        let shown = self.shown(&record, &running)?;
        Ok((record, shown))
    }

    /// Holds the nodes changed in a candidate against the rules: false keys and choices reach further than the path of an edit.
    pub(crate) fn may_have_changed(&self, tried: &TriedEdits) -> Result<(), Fault> {
        if !self.rules.has_paths() {
            return Ok(());
        }
        let odd = |reason: String| Fault::new(Code::ConfigIncompatible, format!("the candidate can't be held against the rules: {reason}"));
        let (running, candidate) = (XmlTree::parse(&tried.running).map_err(odd)?, XmlTree::parse(&tried.candidate).map_err(odd)?);
        let changed = running.changed(&candidate).ok_or_else(|| odd("it changes too much at once".to_owned()))?;
        let role = self.present_role()?;
        changed.iter().try_for_each(|path| role.permit(DeviceAction::EditPath(path)))
    }

    /// The record with settings of objects, and the diff. The device tests nothing before a commit.
    async fn tried_objects(&self, who: &str, edits: &NodeEdits) -> Result<(ChangeRecord, Preview), Fault> {
        self.may_edit_data(edits)?;
        if edits.bulk == Bulk::Chunked {
            let detail = "over SNMP all values are set by one request: leave `chunked` out, and send less";
            return Err(Fault::new(Code::ConfigIncompatible, detail));
        }
        let edits = &edits.all;
        if let Some(edit) = edits.iter().find(|edit| !matches!(edit.operation, EditOperation::Merge | EditOperation::Replace)) {
            let detail = "over SNMP values are set, and nothing is created or deleted: leave `operation` out";
            return Err(Fault::new(Code::ConfigIncompatible, detail).at(edit.path.clone()));
        }
        let record = self.store.load()?;
        let running = self.changes.running().await?;
        let mut all = edits_of(&record, who, &now())?;
        all.extend(edits.iter().map(|edit| serde_json::json!([edit.path, edit.value]).to_string()));
        let values: Vec<(String, Option<Value>)> = all.iter().filter_map(|edit| serde_json::from_str(edit).ok()).collect();
        let values: Vec<(&str, Option<&Value>)> = values.iter().map(|(path, value)| (path.as_str(), value.as_ref())).collect();
        let candidate = edited(&running, &values)?;
        let tried = TriedEdits { form: ConfigForm::Objects, edits: all, running: running.clone(), candidate };
        let record = adopt(&record, Author { device: &self.settings.name, who }, tried, &now())?;
        let shown = self.shown(&record, &running)?;
        Ok((record, shown))
    }

    /// Edits as sent, each with at most as many entries as the device takes at once.
    fn chunked(&self, edits: &NodeEdits) -> Result<Vec<NodeEdit>, Fault> {
        let parts = edits.all.iter().map(|edit| edit.chunks(self.settings.max_bulk_edit)).collect::<Result<Vec<_>, _>>()?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// Holds the objects that edits set against the rules.
    pub(crate) fn may_set(&self, edits: &[String]) -> Result<(), Fault> {
        let role = self.present_role()?;
        let paths = edits.iter().filter_map(|edit| serde_json::from_str::<(String, Option<Value>)>(edit).ok());
        paths.into_iter().try_for_each(|(path, _)| role.permit(DeviceAction::EditPath(&self.ruled(&path))))
    }

    /// Spelling of a path in the rules.
    pub(crate) fn ruled<'p>(&self, path: &'p str) -> Cow<'p, str> {
        if self.backend.snmp().is_some() { whole_path(path) } else { path.into() }
    }

    fn may_edit_data(&self, edits: &NodeEdits) -> Result<(), Fault> {
        self.may_change()?;
        edits.bulk.check(edits.all.iter().map(NodeEdit::count).sum(), self.settings.max_bulk_edit)?;
        let role = self.present_role()?;
        for edit in &edits.all {
            if edit.path.contains(MARK) || edit.value.as_ref().is_some_and(|value| value.to_string().contains(MARK)) {
                let detail = format!("the edit holds {MARK} where a secret was hidden: write the secret, or leave the node out");
                return Err(Fault::new(Code::ConfigIncompatible, detail).at(edit.path.clone()));
            }
            role.permit(DeviceAction::EditPath(&self.ruled(&edit.path)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn edit(value: Value) -> NodeEdit {
        NodeEdit { path: "/m:list".to_owned(), operation: EditOperation::Merge, value: Some(value) }
    }

    #[test]
    fn nm_13_entries_of_lists_count_as_edits() {
        let entry = |name: &str| json!({ "name": name });
        assert_eq!(edit(json!({ "name": "a", "mtu": 1500 })).count(), 1);
        assert_eq!(edit(json!([entry("a"), entry("b"), entry("c")])).count(), 3);
        assert_eq!(edit(json!({ "interface": [entry("a"), { "name": "b", "address": [entry("1"), entry("2")] }] })).count(), 3);
        assert_eq!(NodeEdit { value: None, ..edit(json!(0)) }.count(), 1);
        assert!(Bulk::Single.check(3, 3).is_ok() && Bulk::Single.check(4, 3).is_err() && Bulk::Chunked.check(4, 3).is_ok());
    }

    #[test]
    fn nm_13_a_long_list_is_sent_in_parts() {
        let whole = edit(json!([1, 2, 3, 4, 5]));
        let parts: Vec<_> = whole.chunks(2).unwrap().into_iter().map(|part| part.value.unwrap()).collect();
        assert_eq!(parts, [json!([1, 2]), json!([3, 4]), json!([5])]);
        assert_eq!(whole.chunks(5).unwrap().len(), 1);
        // A replacement by parts would leave the last one only, and what nests can't be cut here.
        for uncut in [NodeEdit { operation: EditOperation::Replace, ..whole }, edit(json!({ "list": [1, 2, 3] }))] {
            assert_eq!(uncut.chunks(2).unwrap_err().code, Code::ConfigIncompatible);
        }
    }
}
