//! Secrets within a line, found by the words before them. Understands no dialect's grammar: a word, the subject of the line, and the
//! words between a keyword and a secret are enough.

use std::collections::BTreeSet;
use std::ops::Range;

use super::MARK;
use super::names::{is_bgp_community, is_secret_name};

/// Subjects of a line, told by its earlier words.
#[derive(Clone, Copy, Default)]
struct LineSubject(u8);

impl LineSubject {
    const SNMP: u8 = 1;
    /// Routing protocols and others that authenticate neighbours.
    const AUTH: u8 = 1 << 1;
    /// Servers of users, IKE, Wi-Fi.
    const AAA: u8 = 1 << 2;
    const NEIGHBOR: u8 = 1 << 3;
    /// BGP communities, which are public.
    const POLICY: u8 = 1 << 4;
    const KEY: u8 = 1 << 5;
    const AGENT: u8 = 1 << 6;

    fn has(self, any: u8) -> bool {
        self.0 & any != 0
    }

    fn learn(&mut self, word: &str) {
        let about = match word {
            "neighbor" | "neighbour" | "peer" => Self::NEIGHBOR | Self::AUTH,
            "key" | "keychain" | "key-chain" => Self::KEY,
            "createuser" | "usm-user" | "usm" => Self::SNMP,
            "set-community" | "community-list" | "route-map" | "members" | "match" | "bgp" | "policy-options" | "send-community"
            | "policy-statement" | "extcommunity" | "large-community" => Self::POLICY,
            "isakmp" | "ike" | "ikev1" | "ikev2" | "wpa" | "wep" | "crypto" | "mka" | "macsec" | "ipsec" | "server-private"
            | "pre-shared-key" | "tacplus-server" => Self::AAA,
            "rip" | "ripng" | "isis" | "eigrp" | "ntp" | "vrrp" | "standby" | "glbp" | "nhrp" | "bfd" | "ldp" | "hmac"
            | "message-digest-key" => Self::AUTH,
            _ if word.starts_with("snmp-agent") => Self::SNMP | Self::AGENT,
            _ if word.starts_with("snmp") => Self::SNMP,
            _ if word.starts_with("ospf") || word.starts_with("auth") => Self::AUTH,
            _ if word.starts_with("tacacs") || word.starts_with("radius") || word.starts_with("hwtacacs") => Self::AAA,
            _ => 0,
        };
        self.0 |= about;
    }
}

/// Position of the secret behind a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SecretPlace {
    Next,
    /// The next after an id, as a key has one.
    AfterId,
    /// The next after so many words.
    After(u8),
    /// The last of the line: `snmp-server host ADDRESS ... COMMUNITY`.
    Last,
}

/// Words, what their line has to be about (0: anything), and what is secret behind them. In order.
const RULES: [(&str, u8, SecretPlace); 42] = [
    ("3des", LineSubject::SNMP, SecretPlace::Next),
    ("aes", LineSubject::SNMP, SecretPlace::AfterId),
    ("aes-128", LineSubject::SNMP, SecretPlace::Next),
    ("aes-192", LineSubject::SNMP, SecretPlace::Next),
    ("aes-256", LineSubject::SNMP, SecretPlace::Next),
    ("aes128", LineSubject::SNMP, SecretPlace::Next),
    ("aes192", LineSubject::SNMP, SecretPlace::Next),
    ("aes256", LineSubject::SNMP, SecretPlace::Next),
    ("authentication", LineSubject::AUTH, SecretPlace::Next),
    ("authentication-key", 0, SecretPlace::AfterId),
    ("bearer", 0, SecretPlace::Next),
    ("cipher", 0, SecretPlace::Next),
    ("clear-text", LineSubject::AUTH, SecretPlace::Next),
    ("com2sec", 0, SecretPlace::After(2)),
    ("com2sec6", 0, SecretPlace::After(2)),
    ("des", LineSubject::SNMP, SecretPlace::Next),
    ("des56", LineSubject::SNMP, SecretPlace::Next),
    ("hmac-sha-1", LineSubject::AUTH, SecretPlace::Next),
    ("hmac-sha-256", LineSubject::AUTH, SecretPlace::Next),
    ("hmac-sha1", LineSubject::AUTH, SecretPlace::Next),
    ("hmac-sha256", LineSubject::AUTH, SecretPlace::Next),
    ("host", LineSubject::SNMP, SecretPlace::Last),
    ("informsink", 0, SecretPlace::After(1)),
    ("key", LineSubject::AUTH | LineSubject::AAA | LineSubject::KEY, SecretPlace::Next),
    ("md5", LineSubject::AUTH | LineSubject::SNMP, SecretPlace::AfterId),
    ("message-digest-key", 0, SecretPlace::AfterId),
    ("plain", LineSubject::AUTH, SecretPlace::Next),
    ("securityname", 0, SecretPlace::Next),
    ("sha", LineSubject::AUTH | LineSubject::SNMP, SecretPlace::Next),
    ("sha-1", LineSubject::AUTH | LineSubject::SNMP, SecretPlace::Next),
    ("sha-224", LineSubject::AUTH | LineSubject::SNMP, SecretPlace::Next),
    ("sha-256", LineSubject::AUTH | LineSubject::SNMP, SecretPlace::Next),
    ("sha-384", LineSubject::AUTH | LineSubject::SNMP, SecretPlace::Next),
    ("sha-512", LineSubject::AUTH | LineSubject::SNMP, SecretPlace::Next),
    ("sha256", LineSubject::AUTH | LineSubject::SNMP, SecretPlace::Next),
    ("sha512", LineSubject::AUTH | LineSubject::SNMP, SecretPlace::Next),
    ("simple", LineSubject::AUTH, SecretPlace::Next),
    ("string", LineSubject::AUTH, SecretPlace::Next),
    ("text", LineSubject::AUTH | LineSubject::KEY, SecretPlace::Next),
    ("token", 0, SecretPlace::Next),
    ("trap2sink", 0, SecretPlace::After(1)),
    ("trapsink", 0, SecretPlace::After(1)),
];

/// Words between a keyword and its secret: kinds of encryption, and `read` or `write` of a community. Each only where more follows.
const KINDS: [&str; 36] = [
    "0",
    "10",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
    "ascii",
    "ascii-text",
    "cipher",
    "clear",
    "clear-text",
    "cleartext",
    "encrypted",
    "encryption-type",
    "hash",
    "hashed",
    "hex",
    "hexadecimal",
    "irreversible-cipher",
    "key-string",
    "level",
    "local",
    "localized",
    "localizedkey",
    "md5",
    "plain",
    "plaintext",
    "remote",
    "set-key",
    "sha1",
    "sha256",
    "sha512",
    "simple",
    "type",
];

/// Words behind `key`, `authentication` and the like that begin something else than a secret.
const NO_VALUES: [&str; 29] = [
    "address",
    "algorithm",
    "chain",
    "config-key",
    "exchange",
    "export",
    "generate",
    "hostname",
    "id",
    "import",
    "key-chain",
    "key-id",
    "keychain",
    "length",
    "lifetime",
    "message-digest",
    "mode",
    "mypubkey",
    "null",
    "pair",
    "password",
    "pre-share",
    "pubkey-chain",
    "ring",
    "rsa",
    "rsa-sig",
    "size",
    "type",
    "zeroize",
];

/// Beginnings of what is a hash, a cipher text or a public key wherever it stands.
const SHAPES: [&str; 14] =
    ["$1$", "$2y$", "$5$", "$6$", "$8$", "$9$", "$14$", "$1a$", "$sha512$", "%^%#", "%@%@", "%$%$", "AAAAB3NzaC1", "AAAAC3NzaC1"];

pub(super) fn find(text: &str, more: &BTreeSet<String>, spans: &mut Vec<Range<usize>>) {
    WordScan { text, bytes: text.as_bytes(), at: 0, about: LineSubject::default(), is_first: true, more, spans }.run();
}

struct WordScan<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    about: LineSubject,
    /// Is no word of this line read yet, but for those before a whole line?
    is_first: bool,
    more: &'t BTreeSet<String>,
    spans: &'t mut Vec<Range<usize>>,
}

impl WordScan<'_> {
    fn run(mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            if self.is_line_end(self.at) {
                (self.about, self.is_first) = (LineSubject::default(), true);
                self.at += if *byte == b'\n' { 1 } else { 2 };
            } else if self.text[self.at..].starts_with("://") {
                self.userinfo();
            } else if is_word(*byte) || matches!(byte, b'$' | b'%') {
                self.word();
            } else {
                self.at += 1;
                while !self.text.is_char_boundary(self.at) {
                    self.at += 1;
                }
            }
        }
    }

    /// A line end, or one as JSON writes it.
    fn is_line_end(&self, at: usize) -> bool {
        match self.bytes.get(at) {
            Some(b'\n') => true,
            Some(b'\\') => matches!(self.bytes.get(at + 1), Some(b'n' | b'r')),
            _ => false,
        }
    }

    fn word(&mut self) {
        let start = self.at;
        if SHAPES.iter().any(|shape| self.text[start..].starts_with(shape)) {
            let end = self.token_end(start, None);
            self.spans.push(start..end);
            self.at = end;
            return;
        }
        self.at += 1;
        while self.bytes.get(self.at).is_some_and(|byte| is_word(*byte)) {
            self.at += 1;
        }
        // Marks of a diff belong to no word.
        let word = self.text[start..self.at].trim_start_matches(['+', '-']).to_ascii_lowercase();
        // Within a path, a name is followed by its predicate, and is hidden with more care there.
        if word.is_empty() || matches!(self.bytes.get(self.at), Some(b'[' | b'/')) {
            return;
        }
        // Behind a word that takes a line back, or shows it, stands the line.
        let is_first = self.is_first;
        self.is_first &= matches!(word.as_str(), "no" | "undo" | "delete" | "default" | "show" | "display");
        let take = self.rule(&word, is_first);
        self.about.learn(&word);
        if let Some(take) = take {
            self.mark(&word, take);
        }
    }

    fn rule(&self, word: &str, is_first: bool) -> Option<SecretPlace> {
        if word == "community" {
            let is_known = self.about.has(LineSubject::SNMP) || !self.about.has(LineSubject::POLICY);
            return is_known.then_some(SecretPlace::Next);
        }
        if let Ok(at) = RULES.binary_search_by(|(name, ..)| (*name).cmp(word)) {
            let (name, about, take) = RULES[at];
            return (about == 0 || self.about.has(about) || (is_first && name == "key")).then_some(take);
        }
        (is_secret_name(word) || self.more.contains(word)).then_some(SecretPlace::Next)
    }

    /// Marks what is secret behind a word, and goes on behind it.
    fn mark(&mut self, word: &str, take: SecretPlace) {
        let mut at = self.at;
        match take {
            SecretPlace::Next => {}
            SecretPlace::AfterId => {
                if let Some((id, after)) = self.value(at).filter(|(id, after)| is_number(&self.text[id.clone()]) && self.has_more(*after)) {
                    let is_kind = KINDS.contains(&&self.text[id]) && word != "message-digest-key" && word != "authentication-key";
                    at = if is_kind { at } else { after };
                }
            }
            SecretPlace::After(words) => {
                for _ in 0..words {
                    let Some((_, after)) = self.value(at) else { return };
                    at = after;
                }
            }
            SecretPlace::Last => return self.mark_last(),
        }
        if matches!(word, "community") {
            at = self.behind_roles(at);
        }
        let Some((mut value, mut after)) = self.value(at) else { return };
        for _ in 0..4 {
            let kind = self.text[value.clone()].to_ascii_lowercase();
            let Some(next) = self.value(after).filter(|_| KINDS.contains(&kind.as_str())) else { break };
            // `level` has a number of its own.
            (value, after) = if kind == "level" && self.has_more(next.1) { self.value(next.1).unwrap_or(next) } else { next };
        }
        let shown = &self.text[value.clone()];
        let is_weak = !is_secret_name(word);
        let is_other = is_weak && (NO_VALUES.contains(&shown.to_ascii_lowercase().as_str()) || self.is_id(word, shown, after));
        let is_public = word == "community" && !self.about.has(LineSubject::SNMP) && self.is_public(shown, after);
        if is_other || is_public || shown.starts_with(MARK) {
            return;
        }
        // FRR takes the whole rest of the line for the password of a neighbour.
        let to_end = word == "password" && self.about.has(LineSubject::NEIGHBOR);
        let end = if to_end { self.line_end(after) } else { after };
        self.spans.push(value.start..if to_end { end } else { value.end });
        // A line that JSON has put in one with others ends within what was taken for the secret.
        self.at = (value.start..end).find(|at| self.is_line_end(*at)).unwrap_or(end.max(self.at));
    }

    /// `key 1` in a chain is the number of a key, and so is `authentication ... md5 1 key`.
    fn is_id(&self, word: &str, shown: &str, after: usize) -> bool {
        let is_keyword = |text: &str| RULES.binary_search_by(|(name, ..)| (*name).cmp(text)).is_ok() || is_secret_name(text);
        let lower = shown.to_ascii_lowercase();
        if self.has_more(after) { is_number(shown) || is_keyword(&lower) } else { word == "key" && is_number(shown) }
    }

    fn is_public(&self, shown: &str, after: usize) -> bool {
        is_bgp_community(shown)
            || matches!(shown, "attribute" | "list")
            || self.value(after).is_some_and(|(next, _)| &self.text[next] == "members")
    }

    /// Skips `read` and `write` of VRP, and `name:` of what commands show.
    fn behind_roles(&self, at: usize) -> usize {
        let Some((first, after)) = self.value(at) else { return at };
        let word = self.text[first].to_ascii_lowercase();
        let is_role = self.about.has(LineSubject::AGENT) && matches!(word.as_str(), "read" | "write" | "complexity-check");
        if (is_role || matches!(word.as_str(), "name:" | "name" | "securityname:" | "string:")) && self.has_more(after) {
            after
        } else {
            at
        }
    }

    fn mark_last(&mut self) {
        let (mut at, mut last, mut words) = (self.at, None, 0);
        while let Some((value, after)) = self.value(at) {
            (at, last, words) = (after, Some(value), words + 1);
        }
        // The first is the address.
        if let Some(value) = last.filter(|_| words > 1) {
            self.spans.push(value);
        }
        self.at = at;
    }

    /// The next token of this line, without quotes, and where the text goes on behind it.
    fn value(&self, from: usize) -> Option<(Range<usize>, usize)> {
        let mut at = from;
        let mut quote = None;
        while let Some(byte) = self.bytes.get(at).filter(|_| !self.is_line_end(at)) {
            match byte {
                b'"' | b'\'' => quote = Some((*byte, at > 0 && self.bytes[at - 1] == b'\\')),
                b' ' | b'\t' | b':' | b'=' | b'\\' | b'\r' => {}
                _ => break,
            }
            at += 1;
        }
        if at >= self.bytes.len() || self.is_line_end(at) {
            return None;
        }
        let end = self.token_end(at, quote);
        let token = &self.text[at..end];
        if token.starts_with(MARK) {
            return Some((at..end, end));
        }
        let shown = if quote.is_some() { token } else { token.trim_end_matches([';', ',', '}', ')', ']', '"', '\'']) };
        Some((at..at + shown.len().max(1).min(token.len()), end.max(at + 1)))
    }

    /// End of the token: its closing quote, else a blank.
    fn token_end(&self, from: usize, quote: Option<(u8, bool)>) -> usize {
        let mut at = from;
        while let Some(byte) = self.bytes.get(at) {
            let is_end = match quote {
                Some((mark, _)) if *byte == mark => true,
                Some(_) => *byte == b'\n',
                None => byte.is_ascii_whitespace() || (*byte == b'"' && at > from) || *byte == b'<',
            };
            if is_end {
                break;
            }
            at += if matches!(quote, Some((_, false))) && *byte == b'\\' { 2 } else { 1 };
        }
        let mut end = at.min(self.bytes.len());
        if matches!(quote, Some((_, true))) && end > from && self.bytes[end - 1] == b'\\' {
            end -= 1;
        }
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        end
    }

    fn has_more(&self, at: usize) -> bool {
        self.value(at).is_some()
    }

    fn line_end(&self, from: usize) -> usize {
        memchr::memchr2(b'\n', b'\r', &self.bytes[from..]).map_or(self.bytes.len(), |found| from + found)
    }

    /// The password in `scheme://user:password@host`.
    fn userinfo(&mut self) {
        let start = self.at + 3;
        let authority =
            self.bytes[start..].iter().take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'/' | b'"' | b'\'' | b'<')).count();
        self.at = start + authority;
        let part = &self.text[start..self.at];
        if let (Some(colon), Some(host)) = (part.find(':'), part.rfind('@'))
            && colon < host
        {
            self.spans.push(start + colon + 1..start + host);
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+')
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_in_order_for_the_search() {
        assert!(RULES.is_sorted_by_key(|(name, ..)| *name));
    }
}
