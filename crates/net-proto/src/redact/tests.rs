use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Found in no output, of whatever form.
const CANARY: &str = "Xq7canary9";

/// Dialect, kind, and a text with the canary where the secret stands.
const SECRETS: &[(&str, &str, &str)] = &[
    ("frr", "password", "password Xq7canary9"),
    ("frr", "enable", "enable password 8 Xq7canary9"),
    ("frr", "bgp", " neighbor 10.0.0.2 password Xq7canary9 with blanks Xq7canary9"),
    ("frr", "bgp diff", "- neighbor 10.0.0.2 password Xq7canary9"),
    ("frr", "ospf", " ip ospf message-digest-key 1 md5 Xq7canary9"),
    ("frr", "ospf", " ip ospf authentication-key Xq7canary9"),
    ("frr", "ospf", " area 0 virtual-link 1.1.1.1 message-digest-key 12 md5 Xq7canary9"),
    ("frr", "ospf6", " ipv6 ospf6 authentication key-id 1 hash-algo md5 key Xq7canary9"),
    ("frr", "isis", " isis password md5 Xq7canary9"),
    ("frr", "isis", " area-password clear Xq7canary9"),
    ("frr", "isis", " domain-password md5 Xq7canary9"),
    ("frr", "rip", " ip rip authentication string Xq7canary9"),
    ("frr", "key chain", "key chain K\n key 1\n  key-string Xq7canary9"),
    ("ios", "enable", "enable secret 9 $9$Xq7canary9"),
    ("ios", "enable", "enable secret level 15 5 Xq7canary9"),
    ("ios", "user", "username ada privilege 15 secret 5 Xq7canary9"),
    ("ios", "user", "username ada password 0 Xq7canary9 role network-admin"),
    ("ios", "user", "username ada secret sha512 Xq7canary9"),
    ("ios", "line", " password 7 Xq7canary9"),
    ("ios", "snmp", "snmp-server community Xq7canary9 RO 10"),
    ("ios", "snmp", "snmp-server host 10.0.0.9 version 2c Xq7canary9"),
    ("ios", "snmp", "snmp-server host 10.0.0.9 Xq7canary9"),
    ("ios", "snmpv3", "snmp-server user u g v3 auth sha Xq7canary9 priv aes 128 Xq7canary9"),
    ("ios", "snmpv3", "snmp-server user u g v3 auth md5 Xq7canary9 priv des56 Xq7canary9"),
    ("ios", "snmp show", "Community name: Xq7canary9\nCommunity SecurityName: Xq7canary9"),
    ("ios", "tacacs", "tacacs-server host 10.0.0.5 key 7 Xq7canary9"),
    ("ios", "tacacs", "tacacs server T\n address ipv4 10.0.0.5\n key 7 Xq7canary9"),
    ("ios", "radius", "radius-server key Xq7canary9"),
    ("ios", "ike", "crypto isakmp key Xq7canary9 address 10.0.0.6"),
    ("ios", "ike", "crypto isakmp key 6 Xq7canary9 address 10.0.0.6"),
    ("ios", "ike", " pre-shared-key local 0 Xq7canary9"),
    ("ios", "ike", " pre-shared-key address 10.0.0.6 key Xq7canary9"),
    ("ios", "ntp", "ntp authentication-key 1 md5 Xq7canary9 7"),
    ("ios", "hsrp", " standby 1 authentication md5 key-string Xq7canary9"),
    ("ios", "hsrp", " standby 1 authentication Xq7canary9"),
    ("ios", "vrrp", " vrrp 1 authentication text Xq7canary9"),
    ("ios", "eigrp", "  authentication mode hmac-sha-256 7 Xq7canary9"),
    ("ios", "ppp", " ppp chap password 0 Xq7canary9"),
    ("ios", "wifi", " wpa-psk ascii 0 Xq7canary9"),
    ("ios", "wifi", " security wpa psk set-key ascii 0 Xq7canary9"),
    ("ios", "vtp", "vtp password Xq7canary9"),
    ("ios", "cts", "cts sxp default password Xq7canary9"),
    ("ios", "key", "key config-key password-encrypt Xq7canary9"),
    ("ios", "ftp", "ip ftp password 7 Xq7canary9"),
    ("vrp", "ntp", "ntp-service authentication-keyid 1 authentication-mode md5 cipher Xq7canary9"),
    ("vrp", "vrrp", " vrrp vrid 1 authentication-mode simple Xq7canary9"),
    ("vrp", "l2tp", " tunnel password simple Xq7canary9"),
    ("linux", "shadow", "root:$6$Xq7canary9:19000:0:99999:7:::"),
    ("ovs", "tunnel", "options: {psk=Xq7canary9, remote_ip=\"10.0.0.1\"}"),
    ("frr", "nhrp", " ip nhrp authentication Xq7canary9"),
    ("ios", "key show", "    key 1 -- text \"Xq7canary9\""),
    ("ios", "log", "%PARSER-5-CFGLOG_LOGGEDCMD: User:ada  logged command:username b secret Xq7canary9"),
    ("ios", "url", "copy running-config scp://ada:Xq7canary9@10.0.0.1/f"),
    (
        "ios",
        "certificate",
        "crypto pki certificate chain C\n certificate self-signed 01\n  3082022B 30820194 A0030201 02020101 300D0609 2A864886\n  F70D0101 Xq",
    ),
    ("junos", "root", "set system root-authentication encrypted-password \"$6$Xq7canary9\""),
    ("junos", "user", "user ada { authentication { encrypted-password \"$1$Xq7canary9\"; } }"),
    ("junos", "key", "set system login user ada authentication ssh-rsa \"ssh-rsa AAAAB3NzaC1Xq7canary9\""),
    ("junos", "snmp", "set snmp community Xq7canary9 authorization read-only"),
    ("junos", "snmp", "snmp {\n    community Xq7canary9 {\n        authorization read-only;\n    }\n}"),
    ("junos", "snmpv3", "set snmp v3 usm local-engine user u authentication-sha authentication-password Xq7canary9"),
    ("junos", "snmpv3", "set snmp v3 usm local-engine user u privacy-aes128 privacy-key \"$9$Xq7canary9\""),
    ("junos", "bgp", "set protocols bgp group G authentication-key Xq7canary9"),
    ("junos", "bgp", "    authentication-key \"Xq7canary9\"; ## SECRET-DATA"),
    ("junos", "ospf", "set protocols ospf area 0 interface ge-0/0/0 authentication md5 1 key Xq7canary9"),
    ("junos", "ospf", "set protocols ospf area 0 interface ge-0/0/0 authentication simple-password Xq7canary9"),
    ("junos", "ike", "set security ike policy P pre-shared-key ascii-text \"Xq7canary9\""),
    ("junos", "radius", "set system radius-server 10.0.0.5 secret \"Xq7canary9\""),
    ("junos", "chain", "set security authentication-key-chains key-chain K key 1 secret Xq7canary9"),
    ("junos", "certificate", "certificate \"-----BEGIN CERTIFICATE-----\nXq7canary9\n-----END CERTIFICATE-----\""),
    ("junos", "private key", "-----BEGIN RSA PRIVATE KEY-----\nXq7canary9"),
    ("vrp", "user", "local-user ada password irreversible-cipher Xq7canary9"),
    ("vrp", "user", " set authentication password cipher Xq7canary9"),
    ("vrp", "super", "super password level 3 cipher Xq7canary9"),
    ("vrp", "snmp", "snmp-agent community read cipher Xq7canary9"),
    ("vrp", "snmp", "snmp-agent community write Xq7canary9"),
    ("vrp", "snmp", "snmp-agent target-host trap address udp-domain 10.0.0.9 params securityname cipher Xq7canary9 v2c"),
    ("vrp", "snmpv3", "snmp-agent usm-user v3 u authentication-mode sha cipher Xq7canary9"),
    ("vrp", "bgp", " peer 10.0.0.2 password cipher Xq7canary9"),
    ("vrp", "ospf", " ospf authentication-mode md5 1 cipher Xq7canary9"),
    ("vrp", "ospf", " ospf authentication-mode simple plain Xq7canary9"),
    ("vrp", "isis", " isis authentication-mode md5 plain Xq7canary9"),
    ("vrp", "tacacs", " hwtacacs-server shared-key cipher Xq7canary9"),
    ("vrp", "shape", " anything %^%#Xq7canary9%^%#"),
    ("vrp", "key", "rsa peer-public-key K\n public-key-code begin\n  Xq7canary9\n public-key-code end"),
    ("bird", "bgp", "  password \"Xq7canary9\";"),
    ("snmpd", "community", "rocommunity Xq7canary9 10.0.0.0/24"),
    ("snmpd", "community", "trap2sink 10.0.0.1:1162 Xq7canary9"),
    ("snmpd", "community", "com2sec local default Xq7canary9"),
    ("snmpd", "user", "createUser ro SHA \"Xq7canary9\" AES \"Xq7canary9\""),
    ("xml", "leaf", "<user><name>a</name><sys:password>Xq7canary9</sys:password></user>"),
    ("xml", "nested", "<secret><cleartext>Xq7canary9</cleartext></secret>"),
    ("xml", "nested alike", "<secret><secret-x>a</secret-x>Xq7canary9</secret>"),
    ("xml", "key below", "<authentication><md5><id>1</id><key>Xq7canary9</key></md5></authentication>"),
    ("xml", "key below", "<md5>\n  <key>Xq7canary9</key>\n</md5>"),
    ("xml", "cut off", "<auth-password>Xq7canary9"),
    ("xml", "attribute", "<user password=\"Xq7canary9\"/>"),
    ("xml", "command", "<cmd>username b password Xq7canary9</cmd>"),
    ("json", "text", "{\"ietf-snmp:community\": {\"x\": 1}, \"auth-password\" : \"Xq7canary9\"}"),
    ("json", "in json", "{\\\"password\\\":\\\"Xq7canary9\\\"}"),
    ("json", "lines", "\"hostname r1\\nsnmp-server community Xq7canary9 RO\\npassword Xq7canary9\\nkey chain K\""),
    ("path", "alone", "/snmp:snmp/community[name='Xq7canary9']/access"),
    ("path", "indented", "  /snmp:snmp/community[name=\"Xq7canary9\"]"),
    ("path", "key", "no node /a:b/c[auth_key='Xq7canary9'] there"),
    ("names", "underscores", "ipsec_psk = Xq7canary9"),
    ("names", "dots", "\"wpa.psk\": \"Xq7canary9\""),
    ("ovs", "tunnel", " options psk_secret Xq7canary9"),
    ("log", "form", "login failed: user=ada password=Xq7canary9 from 10.0.0.1"),
];

#[test]
fn nm_12_a_canary_of_every_kind_in_every_dialect_disappears() {
    let redactor = Redactor::default();
    for (dialect, kind, text) in SECRETS {
        let shown = redactor.text(text);
        assert!(!shown.contains(CANARY) && shown.contains(MARK), "{dialect} {kind}: {shown}");
        assert_eq!(redactor.text(&shown), shown, "{dialect} {kind} again");
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
    for (dialect, kind, text) in
        SECRETS.iter().filter(|(_, kind, _)| !matches!(*kind, "certificate" | "private key" | "key" | "command" | "cut off"))
    {
        let shown = redactor.lines(text, *dialect == "xml").concat();
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
