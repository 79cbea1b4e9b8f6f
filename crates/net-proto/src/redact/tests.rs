use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Found in no output, of whatever form.
const CANARY: &str = "Xq7canary9";

/// Dialect, kind, and a text with the canary where the secret stands; the lab reads the same ones from its devices.
fn secrets() -> Vec<(String, String, String)> {
    serde_json::from_str(include_str!("../../../../tests/peers/network/canaries.json")).unwrap()
}

#[test]
fn nm_12_a_canary_of_every_kind_in_every_dialect_disappears() {
    let redactor = Redactor::default();
    for (dialect, kind, text) in secrets() {
        let shown = redactor.text(&text);
        assert!(!shown.contains(CANARY) && shown.contains(MARK), "{dialect} {kind}: {shown}");
        assert_eq!(redactor.text(&shown), shown, "{dialect} {kind} again");
        for before in ["no", "undo", "delete", "default", "show"] {
            let taken_back = redactor.text(&format!("{before} {}", text.trim_start()));
            assert!(!taken_back.contains(CANARY), "{dialect} {kind} behind {before}: {taken_back}");
        }
        let in_a_diff = redactor.text(&text.lines().map(|line| format!("+{line}\n")).collect::<String>());
        assert!(!in_a_diff.contains(CANARY), "{dialect} {kind} in a diff: {in_a_diff}");
        let in_an_error = redactor.text(&format!("% Unknown command: {text}"));
        assert!(!in_an_error.contains(CANARY), "{dialect} {kind} in an error: {in_an_error}");
        let mut value = json!({ "content": [{ "type": "text", "text": text }] });
        redactor.value(&mut value);
        assert!(!value.to_string().contains(CANARY), "{dialect} {kind} in a result: {value}");
    }
}

#[test]
fn nm_12_no_line_hides_the_lines_behind_it() {
    let redactor = Redactor::default();
    for begin in ["description -----BEGIN X-----", "description <password>", "description my key-string", "banner \"secret"] {
        let text = format!("{begin}\n ip route 0.0.0.0/0 6.6.6.6\n shutdown\n neighbor 6.6.6.6 remote-as 666\n");
        let shown = redactor.lines(&text, false);
        assert_eq!(shown[1..], [" ip route 0.0.0.0/0 6.6.6.6", " shutdown", " neighbor 6.6.6.6 remote-as 666"], "{begin}");
    }
    let shown = redactor.lines("<a>\n  <x>-----BEGIN X-----</x>\n  <y>shown</y>\n</a>\n", true);
    assert_eq!(shown[2], "  <y>shown</y>");
}

#[test]
fn nm_12_lines_are_hidden_within_their_configuration() {
    let redactor = Redactor::default().knowing(&["Kq7canary9"]);
    let key = "Xq7canary9+/Xq7canary9+/Xq7canary9+/Xq7canary9+/Xq7canary9+/Xq7c";
    for (is_markup, text) in [
        (true, "<tacacs>\n  <server>\n    <name>a</name>\n    <key>Xq7canary9</key>\n  </server>\n</tacacs>\n".to_owned()),
        (true, "<secret>\n  <cleartext>Xq7canary9</cleartext>\n</secret>\n".to_owned()),
        (
            false,
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{key}\n{key}\nXq7canary9==\n-----END RSA PRIVATE KEY-----\n"
            ),
        ),
        (false, "set local x \"-----BEGIN RSA PRIVATE KEY-----\\nXq7canary9\\n-----END\"; set y".to_owned()),
        (false, format!("ssh key-string\n  {key}\n exit\n")),
        (false, "description Kq7canary9\n".to_owned()),
    ] {
        let shown = redactor.lines(&text, is_markup);
        assert!(shown.len() == text.lines().count() && !shown.concat().contains("canary"), "{shown:?}");
    }
    let is_line = |kind: &str| !matches!(kind, "certificate" | "private key" | "key" | "command" | "cut off");
    for (dialect, kind, text) in secrets().into_iter().filter(|(_, kind, _)| is_line(kind)) {
        let shown = redactor.lines(&text, dialect == "xml").concat();
        assert!(!shown.contains(CANARY), "{dialect} {kind}: {shown}");
    }
}

#[test]
fn nm_12_what_is_no_secret_stays_readable() {
    let redactor = Redactor::default();
    for text in [
        "interface eth0\n description customer-lan\n ip address 10.0.0.1/24",
        "set community 65000:100 additive",
        "  Community: 65000:1 65000:2 no-export",
        "community C members 65000:1",
        "ip community-list standard C permit 65000:1",
        "key chain K\n key 1",
        "service password-encryption",
        " ip ospf authentication message-digest",
        " isis authentication key-chain K",
        "crypto key generate rsa",
        "Vlan100 00:50:56:ab:cd:ef 10.0.0.5",
        "O>* 192.168.3.0/24 [110/20] via 10.0.13.3, eth1, weight 1, 00:00:12",
        "<interfaces><interface><name>eth0</name></interface></interfaces>",
        "https://10.0.0.1/restconf/data",
        "access-list 10 permit 10.0.0.0 0.0.0.255",
    ] {
        assert_eq!(redactor.text(text), text);
    }
}

#[test]
fn nm_12_members_are_hidden_by_name_and_by_neighbouring_path() {
    let redactor = Redactor::default();
    let mut value = json!({
        "openconfig-network-instance:neighbor": { "config": { "auth-password": "Xq7canary9", "peer-as": 65001, "send-community": "STANDARD" } },
        "ietf-key-chain:key": [{ "key-id": 1, "key-string": { "keystring": "Xq7canary9" } }],
        "edit": [{ "path": "/ietf-snmp:snmp/community[text-name='Xq7canary9']/x:secret", "value": "Xq7canary9" }],
        "target": "/snmp:snmp/snmp:community[snmp:text-name='Xq7canary9']",
        "md5": [{ "key-id": 7, "key": "Xq7canary9" }],
        "ospf:authentication": { "keys": { "key": ["Xq7canary9"] } },
        "communities": ["65000:1"],
        "password": true,
    });
    redactor.value(&mut value);
    let text = value.to_string();
    assert!(!text.contains(CANARY), "{text}");
    assert_eq!(value["openconfig-network-instance:neighbor"]["config"]["peer-as"], 65001);
    assert_eq!(value["openconfig-network-instance:neighbor"]["config"]["send-community"], "STANDARD");
    assert_eq!(value["md5"][0]["key-id"], 7);
    assert_eq!((&value["communities"][0], &value["password"]), (&json!("65000:1"), &json!(true)));
}

#[test]
fn nm_12_known_secrets_and_added_words_are_hidden_everywhere() {
    let redactor = Redactor::default().knowing(&["Xq7canary9", "abc"]).with_words(&["Magic"]);
    assert_eq!(redactor.text("foo(Xq7canary9) abc"), "foo([redacted]) abc");
    assert_eq!(redactor.text("magic Xq7"), "magic [redacted]");
    assert_eq!(redactor.path("/a:b/community[name='pub']/c"), "/a:b/community[name='[redacted]']/c");
    assert_eq!(redactor.path("/a:interfaces/interface[name='eth0']"), "/a:interfaces/interface[name='eth0']");
}

#[test]
fn nm_12_values_that_were_sent_are_hidden_in_any_sentence() {
    let redactor = Redactor::default();
    let sent = "interface eth0\n ip ospf authentication-key Xq7canary9\nsnmp-server community Yq7canary9 RO";
    let knowing = redactor.knowing_those_of([sent, "<a><shared-secret>Zq7&amp;canary9</shared-secret></a>"]);
    let said = knowing.text("value \"Zq7&canary9\" of eth0 is weak, so is Xq7canary9, and Yq7canary9 is short");
    assert_eq!(said, "value \"[redacted]\" of eth0 is weak, so is [redacted], and [redacted] is short");
    assert!(redactor.text("Xq7canary9").contains(CANARY));
}

#[test]
fn nm_12_credentials_stay_hidden_beside_values_that_were_sent() {
    let redactor = Redactor::default().knowing(&["Xq7canary9"]).knowing_those_of(["password Yq7canary9"]);
    assert_eq!(redactor.text("Xq7canary9 or Yq7canary9"), "[redacted] or [redacted]");
}

proptest! {
    #[test]
    fn nm_12_any_text_is_read_and_hidden_text_stays_hidden(text in "([a-z0-9 :=\"'\\\\\n<>/;{}$%\u{e9}+-]|password|snmp-server community |key |md5 |secret|</|\\[redacted\\]){0,60}") {
        let redactor = Redactor::default();
        let once = redactor.text(&text);
        prop_assert_eq!(once.contains(MARK), redactor.text(&once).contains(MARK));
    }

    #[test]
    fn nm_12_each_line_of_any_text_is_there(text in "([a-z0-9 :=\"'\\\\\n<>/;\u{e9}+-]|password|-----BEGIN |-----|key-string\n|</|[A-Z]{40}){0,60}", is_markup: bool) {
        prop_assert_eq!(Redactor::default().lines(&text, is_markup).len(), text.split_inclusive('\n').count());
    }

    #[test]
    fn nm_12_no_password_stands_behind_its_word(secret in "[A-Za-z0-9!@%^&*()_.,/|~-]{3,20}", before in "[ a-z0-9.]{0,20}", after in "[ a-z0-9]{0,20}") {
        prop_assume!(!before.contains(&secret) && !after.contains(&secret) && !MARK.contains(&secret) && !"password".contains(&secret));
        let shown = Redactor::default().text(&format!("{before} password {secret} {after}"));
        prop_assert!(!shown.contains(&secret), "{}", shown);
    }
}
