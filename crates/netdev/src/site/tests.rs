use equipment::{Backend, RoleSettings};
use net_proto::change::ChangeRecord;
use serde_json::json;

use super::*;

/// Code of the answer to a line for a switch without a database.
fn code(settings: &DeviceSettings, line: &str) -> Option<Code> {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::open(settings.clone(), &DeviceSecrets::default(), dir.path()).unwrap();
    site.may_edit(&Edits::Commands(vec![line.to_owned()]), Bulk::default()).err().map(|fault| fault.code)
}

#[test]
fn nm_12_quotes_of_a_switch_hide_no_line_from_rules() {
    let denied = ["port uplink", "tag 30"].map(str::to_owned).to_vec();
    let denying = DeviceSettings { backend: Backend::Ovs, deny_lines: denied, ..DeviceSettings::new("s") };
    for line in ["port uplink", "port \"uplink\"", "no port \"upl\\u0069nk\"", "\"t\\u0061g\" 30", "tag \"30\"", "\"tag\"\"30\""] {
        assert_eq!(code(&denying, line), Some(Code::AccessDenied), "{line}");
    }
    for line in ["port \"e1\"", "tag 31", "name \"port uplink\""] {
        assert_eq!(code(&denying, line), None, "{line}");
    }
    assert_eq!(code(&denying, "port \"uplink"), Some(Code::ConfigIncompatible));
    let allowing = DeviceSettings { backend: Backend::Ovs, allow_lines: vec!["port e1".into()], ..DeviceSettings::new("s") };
    assert_eq!((code(&allowing, "port \"e1\""), code(&allowing, "port \"e2\"")), (None, Some(Code::AccessDenied)));
}

/// A change that waits for its confirmation, as releases without kinds of callers kept it.
const OLD_RECORD: &str = r#"{
  "count": 3,
  "change": {
    "id": "r1-3",
    "owner": "ada",
    "phase": "applied",
    "lease": 1795708800000,
    "base": "b1",
    "candidate": "hostname r1\n",
    "form": "lines",
    "commands": [
      "hostname r1"
    ],
    "hash": "h1",
    "deadline": {
      "began": 1795708800000,
      "wall": 1795708860000,
      "boot": "6f1d",
      "up": 60000
    },
    "snapshot": "hostname r0\n",
    "reason": null,
    "failures": 0
  }
}"#;

#[test]
fn nm_09_an_owner_without_a_kind_is_no_caller() {
    let dir = tempfile::tempdir().unwrap();
    let site = Site::open(DeviceSettings::new("r1"), &DeviceSecrets::default(), dir.path()).unwrap();
    std::fs::write(dir.path().join("devices/r1/change.json"), OLD_RECORD).unwrap();
    let record = site.store.load().unwrap();
    assert_eq!(serde_json::to_string_pretty(&record).unwrap(), OLD_RECORD, "the shape on the disk is the same");
    assert_eq!(site.standing().unwrap().owner.as_deref(), Some("ada"));
    for caller in ["token:ada", "certificate:ada", "participant:ada"] {
        let fault = Settler::Caller(caller).check_owner(&record).unwrap_err();
        assert!(fault.code == Code::AccessDenied && fault.detail.contains("ada, which is no kind of caller"), "{fault:?}");
    }
    Settler::Person("ada").check_owner(&record).unwrap();
}

#[test]
fn nm_09_a_change_belongs_to_one_kind_of_a_name() {
    let dir = tempfile::tempdir().unwrap();
    let roles = vec![RoleSettings { callers: vec!["*".into()], ..RoleSettings::default() }];
    let site = Arc::new(Site::open(DeviceSettings { roles, ..DeviceSettings::new("r1") }, &DeviceSecrets::default(), dir.path()).unwrap());
    let owner = |kind: &str, name: &str| {
        let caller = json!({ "io.banyan/caller": { "name": name, "kind": kind } });
        site.of_caller(CallerIdentity::from_gate(caller.as_object().unwrap())).caller.clone()
    };
    assert_eq!((owner("token", "dns:ops"), owner("certificate", "dns:ops")), ("token:dns:ops".into(), "certificate:dns:ops".into()));
    assert_eq!(owner("parent", "parent root.example.com"), "parent:root.example.com");
    let mut record: ChangeRecord = serde_json::from_str(OLD_RECORD).unwrap();
    record.change.as_mut().unwrap().owner = owner("token", "dns:ops");
    Settler::Caller(&owner("token", "dns:ops")).check_owner(&record).unwrap();
    Settler::Caller(&owner("certificate", "dns:ops")).check_owner(&record).unwrap_err();
}
