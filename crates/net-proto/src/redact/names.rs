//! Names of nodes, members and words with a secret value. Knows nothing of their place.

use std::ops::Range;

use serde_json::Value;

/// Ends of names: `auth-password` ends like `password`.
const ENDINGS: [&str; 19] = [
    "password",
    "passwd",
    "passphrase",
    "pass-phrase",
    "secret",
    "-psk",
    "shared-key",
    "private-key",
    "privacy-key",
    "authentication-key",
    "auth-key",
    "priv-key",
    "api-key",
    "secret-key",
    "encryption-key",
    // ietf-keystore and ietf-key-chain, OpenConfig, and names of vendors.
    "symmetric-key",
    "hex-key",
    "password-hashed",
    "sharedkey",
];

/// Whole names, in order.
const NAMES: [&str; 35] = [
    "apikey",
    "ascii-text",
    "authkey",
    "cert-data",
    "certificate-data",
    "cleartext-key",
    "community",
    "community-name",
    "community-string",
    "hashed-password",
    "hexadecimal-string",
    "irreversible-cipher",
    "key-data",
    "key-string",
    "keystring",
    "password-encrypt",
    "password-hash",
    "plain-text-password-value",
    "privatekey",
    "privkey",
    "psk",
    "pwd",
    "read-community",
    "rocommunity",
    "rocommunity6",
    "rwcommunity",
    "rwcommunity6",
    "security-name",
    "securityname",
    "server-key",
    "snmp-community",
    "trap-community",
    "trapcommunity",
    "wep-key",
    "write-community",
];

/// Is the value behind this name a secret? The name in lower case, without a module; `ipsec_psk` and `ipsec.psk` are `ipsec-psk`.
pub fn is_secret_name(name: &str) -> bool {
    if name.contains(['_', '.']) {
        return is_hyphenated_secret(&name.replace(['_', '.'], "-"));
    }
    is_hyphenated_secret(name)
}

fn is_hyphenated_secret(name: &str) -> bool {
    NAMES.binary_search(&name).is_ok() || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Begins of names of nodes whose `key` is no number but a secret.
const KEY_HOLDERS: [&str; 14] =
    ["auth", "md5", "sha", "hmac", "message-digest", "ike", "isakmp", "tacacs", "radius", "hwtacacs", "macsec", "mka", "psk", "wpa"];

/// Recognizes a node whose `key` is a secret, at whatever depth below. The name in lower case, without a module.
pub(crate) fn holds_keys(name: &str) -> bool {
    KEY_HOLDERS.iter().any(|begin| name.starts_with(begin))
}

/// Recognizes a secret by the name of its node, in any case and without a module, by the text, and by a holder of keys above.
pub(crate) fn is_secret_node(name: &str, text: &str, is_below_holder: bool) -> bool {
    let name = name.to_lowercase();
    (is_secret_name(&name) || (is_below_holder && name == "key")) && !(name == "community" && is_bgp_community(text))
}

/// Does this string, a path or a name, end in a secret node?
pub(super) fn names_secret(text: &Value) -> bool {
    let Some(text) = text.as_str() else { return false };
    let mut depth = 0_u32;
    let mut last = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            b'/' | b':' if depth == 0 => last = at + 1,
            _ => {}
        }
    }
    let node = text.get(last..).unwrap_or_default();
    is_secret_name(&node.split('[').next().unwrap_or(node).to_lowercase())
}

/// Recognizes a community of BGP, no secret: numbers with colons, or a name that RFC 1997 knows.
pub(super) fn is_bgp_community(text: &str) -> bool {
    let known = ["no-export", "no-advertise", "local-as", "no-peer", "internet", "graceful-shutdown", "blackhole", "none", "additive"];
    let is_number = |text: &str| text.contains(':') && text.bytes().all(|b| b.is_ascii_digit() || b == b':');
    let mut words = text.split_ascii_whitespace().peekable();
    words.peek().is_some() && words.all(|word| is_number(word) || known.contains(&word.to_ascii_lowercase().as_str()))
}

/// The same ranges in each line of a text that holds a path, in a diff or in a sentence.
pub(super) fn find_in_paths(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        if let Some(at) = line.find('/').filter(|_| line.contains('[')) {
            let mut found = Vec::new();
            find_in_path(&line[at..], &mut found);
            spans.extend(found.into_iter().map(|span| begin + at + span.start..begin + at + span.end));
        }
        begin += line.len();
    }
}

/// Ranges of quoted values in predicates of a path that hold a secret: `community[name='public']`, `x[auth-key="k"]`.
pub(super) fn find_in_path(path: &str, spans: &mut Vec<Range<usize>>) {
    let mut node = String::new();
    let mut leaf = String::new();
    let mut is_inside = false;
    let mut bytes = path.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'/' | b':' if !is_inside => node.clear(),
            b'[' => (is_inside, leaf) = (true, String::new()),
            b']' => is_inside = false,
            b':' => leaf.clear(),
            b'\'' | b'"' if is_inside => {
                let end = bytes.find(|(_, other)| *other == byte).map_or(path.len(), |(end, _)| end);
                if is_secret_name(&node) || is_secret_name(&leaf) {
                    spans.push(at + 1..end);
                }
            }
            b'=' | b' ' => {}
            _ if is_inside => leaf.push(char::from(byte.to_ascii_lowercase())),
            _ => node.push(char::from(byte.to_ascii_lowercase())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_for_the_search() {
        assert!(NAMES.is_sorted());
    }

    #[test]
    fn nm_12_names_of_published_models_are_secret() {
        for name in [
            "cleartext-symmetric-key",
            "hex-key",
            "password-hashed",
            "presharedkey",
            "pre-shared-key",
            "ipsec_psk",
            "ipsec.psk",
            "snmp_community",
            "private_key",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        assert!(!is_secret_name("key-id") && !is_secret_name("key_id") && !is_secret_name("public-key"));
    }
}
