//! The data of a device over NETCONF or SNMP: reads and edits by YANG paths, under the rules of the device. Does not know MCP.

use std::sync::Arc;

use net_proto::change::{Author, ChangeRecord, ConfigForm, TriedEdits, adopt, edits_of};
use net_proto::fault::{Code, Fault};
use net_proto::netconf::{EditOperation, NetconfCapabilities, NodePath, XmlTree};
use net_proto::redact::MARK;
use net_proto::role::DeviceAction;
use net_proto::snmp::edited;
use serde_json::Value;

use crate::clock::now;
use crate::site::{PATIENCE, Preview, Site};

/// Edit of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeEdit {
    pub(crate) path: String,
    pub(crate) operation: EditOperation,
    pub(crate) value: Option<Value>,
}

impl Site {
    /// Data below a path: of the running configuration, or with the state of the device.
    pub(crate) async fn data(&self, path: &str, with_state: bool) -> Result<(XmlTree, Arc<NetconfCapabilities>), Fault> {
        self.permit(DeviceAction::ReadPath(path))?;
        self.backend.netconf()?.data(path, with_state).await
    }

    /// Adds to the candidate of `who`; answers the diff. The device itself makes and tests the candidate.
    pub(crate) async fn edit_data(&self, who: &str, edits: &[NodeEdit]) -> Result<Preview, Fault> {
        let _lock = self.store.lock(PATIENCE).await?;
        let (record, shown) = self.tried(who, edits).await?;
        self.keep(&record)?;
        Ok(shown)
    }

    /// The diff that such edits of `who` would make. Nothing is kept, and the device empties its candidate again.
    pub(crate) async fn foresee_data(&self, who: &str, edits: &[NodeEdit]) -> Result<Preview, Fault> {
        let _lock = self.store.lock(PATIENCE).await?;
        Ok(self.tried(who, edits).await?.1)
    }

    /// The record with the edits, and the diff.
    async fn tried(&self, who: &str, edits: &[NodeEdit]) -> Result<(ChangeRecord, Preview), Fault> {
        if self.backend.snmp().is_some() {
            return self.tried_objects(who, edits).await;
        }
        let netconf = self.backend.netconf()?;
        self.may_edit_data(edits)?;
        let record = self.store.load()?;
        let mut all = edits_of(&record, who, &now())?;
        let device = netconf.reach().await?;
        for edit in edits {
            let config = NodePath::read(&edit.path, &device)?.config(edit.operation, edit.value.as_ref(), &device);
            all.push(config.map_err(|fault| fault.at(edit.path.clone()))?);
        }
        let sent = self.redactor.knowing_those_of(all.iter().map(String::as_str));
        let tried = netconf.try_edits(all).await.map_err(|fault| fault.cleaned(|text| sent.text(text)))?;
        let running = tried.running.clone();
        let record = adopt(&record, Author { device: &self.settings.name, who }, tried, &now())?;
        let shown = self.shown(&record, &running)?;
        Ok((record, shown))
    }

    /// The record with settings of objects, and the diff. The device tests nothing before a commit.
    async fn tried_objects(&self, who: &str, edits: &[NodeEdit]) -> Result<(ChangeRecord, Preview), Fault> {
        self.may_edit_data(edits)?;
        if let Some(edit) = edits.iter().find(|edit| !matches!(edit.operation, EditOperation::Merge | EditOperation::Replace)) {
            let detail = "over SNMP values are set, and nothing is created or deleted: leave `operation` out";
            return Err(Fault::new(Code::ConfigIncompatible, detail).at(edit.path.clone()));
        }
        let record = self.store.load()?;
        let running = self.backend.running().await?;
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

    fn may_edit_data(&self, edits: &[NodeEdit]) -> Result<(), Fault> {
        self.may_change()?;
        let most = self.settings.max_bulk_edit;
        if edits.len() > most {
            let detail = format!("{} edits in one call, and {most} are allowed: send them in parts", edits.len());
            return Err(Fault::new(Code::ConfigIncompatible, detail));
        }
        let role = self.present_role()?;
        for edit in edits {
            if edit.path.contains(MARK) || edit.value.as_ref().is_some_and(|value| value.to_string().contains(MARK)) {
                let detail = format!("the edit holds {MARK} where a secret was hidden: write the secret, or leave the node out");
                return Err(Fault::new(Code::ConfigIncompatible, detail).at(edit.path.clone()));
            }
            role.permit(DeviceAction::EditPath(&edit.path))?;
        }
        Ok(())
    }
}
