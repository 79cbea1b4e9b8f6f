//! Key of a node that signs offers, and its name as a DID of the method `key`. Signs nothing and checks no signature: a driver does.

/// Kind of a key, by its algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKeyKind {
    /// Signatures of 64 bytes (RFC 8032).
    Ed25519,
    /// ECDSA with SHA-256, both numbers of a signature with 32 bytes each.
    P256,
}

/// Beginning of a `SubjectPublicKeyInfo` with an Ed25519 key (RFC 8410).
const ED25519: &[u8] = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";
/// Beginning of a `SubjectPublicKeyInfo` with a P-256 key as an uncompressed point (RFC 5480), and the mark of the point.
const P256: &[u8] = b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00\x04";
/// Digits of base58btc.
const DIGITS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

/// Public key of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeKey {
    kind: NodeKeyKind,
    public: Vec<u8>,
    did: String,
}

impl NodeKey {
    /// Reads the key in a certificate: the DER of its `SubjectPublicKeyInfo`. `None`: the key is of another kind.
    pub fn of_certificate(info: &[u8]) -> Option<Self> {
        if let Some(public) = info.strip_prefix(ED25519).filter(|public| public.len() == 32) {
            let did = did(&[b"\xed\x01", public].concat());
            return Some(Self { kind: NodeKeyKind::Ed25519, public: public.to_vec(), did });
        }
        let point = info.strip_prefix(P256).filter(|point| point.len() == 64)?;
        let (x, y) = point.split_at(32);
        let parity = if y.last().is_some_and(|last| last % 2 == 1) { 3 } else { 2 };
        let did = did(&[b"\x80\x24", [parity].as_slice(), x].concat());
        Some(Self { kind: NodeKeyKind::P256, public: [&[4], point].concat(), did })
    }

    /// Gives the kind of the key.
    pub fn kind(&self) -> NodeKeyKind {
        self.kind
    }

    /// Gives the bytes of the key: 32 of Ed25519, or an uncompressed point of P-256.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// Gives the name of the key, `did:key:z…`.
    pub fn did(&self) -> &str {
        &self.did
    }
}

/// Writes a key with the number of its kind as a DID.
fn did(key: &[u8]) -> String {
    let zeros = key.iter().take_while(|byte| **byte == 0).count();
    // Digits of the number, lowest first.
    let mut number: Vec<u8> = Vec::new();
    for byte in key {
        let mut carry = u32::from(*byte);
        for digit in &mut number {
            carry += u32::from(*digit) << 8;
            *digit = u8::try_from(carry % 58).unwrap_or_default();
            carry /= 58;
        }
        while carry > 0 {
            number.push(u8::try_from(carry % 58).unwrap_or_default());
            carry /= 58;
        }
    }
    number.extend(std::iter::repeat_n(0, zeros));
    let mut written = String::from("did:key:z");
    for digit in number.iter().rev() {
        let character = DIGITS.get(usize::from(*digit)).copied().map_or('?', char::from);
        written.push(character);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    /// The first example of the method (W3C, did:key, section 3.1.1), and the first of its test vectors for P-256.
    #[test]
    fn xc_20_a_key_has_the_name_of_the_method() {
        let ed = hex("2e6fcce36701dc791488e0d0b1745cc1e33a4c1c9fcc41c63bd343dbbe0970e6");
        let key = NodeKey::of_certificate(&[ED25519, &ed].concat()).unwrap();
        assert_eq!((key.did(), key.kind()), ("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK", NodeKeyKind::Ed25519));
        assert_eq!(key.public(), ed);
    }

    #[test]
    fn xc_20_a_key_of_another_kind_names_nobody() {
        let short = [ED25519, &[1; 31]].concat();
        let long = [P256, &[1; 65]].concat();
        for other in [b"".as_slice(), ED25519, P256, &short, &long, b"\x30\x82\x01\x22"] {
            assert_eq!(NodeKey::of_certificate(other), None, "{other:?}");
        }
        let mut odd = [P256, &[7; 64]].concat();
        let key = NodeKey::of_certificate(&odd).unwrap();
        assert!(key.did().starts_with("did:key:zDn") && key.public().len() == 65, "{}", key.did());
        *odd.last_mut().unwrap() = 8;
        assert_ne!(NodeKey::of_certificate(&odd).unwrap().did(), key.did());
    }
}
