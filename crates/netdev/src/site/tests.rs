use equipment::Backend;

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
