//! The one form of a JSON value that is hashed: RFC 8785 (JCS). Two texts of one value have one form, whoever wrote them.
//! Does not decide what is hashed.
//!
//! RFC 8785 knows numbers only as far as a double goes. Whole numbers written as such, and what no double holds, keep their digits here:
//! rounded, two different arguments would have one hash, and an approval of one would be taken for the other.

use std::borrow::Cow;

use crate::AuditError;
use crate::hash::{Hash, sha256};
use crate::json::{self, Json, Written};

/// So many bytes of a string are looked at together.
const BLOCK: usize = 32;

/// The canonical form of `text`.
///
/// # Errors
/// When it is not one JSON value, holds a key twice or half of a surrogate pair.
pub fn canonical(text: &[u8]) -> Result<Vec<u8>, AuditError> {
    Ok(form(text, &json::read(text)?).into_owned())
}

/// The canonical form of what was read from `text`: mostly that itself, for most programs write no space and keys in order.
pub(crate) fn form<'a>(text: &'a [u8], written: &Written<'_>) -> Cow<'a, [u8]> {
    if written.is_canonical {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    write(&written.value, &mut out);
    Cow::Owned(out)
}

/// SHA-256 of the canonical form of `text`.
///
/// # Errors
/// As [`canonical`].
pub fn digest(text: &[u8]) -> Result<Hash, AuditError> {
    canonical(text).map(|form| sha256(&form))
}

fn write(value: &Json<'_>, out: &mut Vec<u8>) {
    match value {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(true) => out.extend_from_slice(b"true"),
        Json::Bool(false) => out.extend_from_slice(b"false"),
        Json::Number(written) => number(written, out),
        Json::String(text) => requote(text, out),
        Json::Array(items) => {
            out.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Json::Object(members) => {
            out.push(b'{');
            for (place, (key, value)) in members.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                requote(key, out);
                out.push(b':');
                write(value, out);
            }
            out.push(b'}');
        }
    }
}

/// How many bytes at the beginning of `text` stand for themselves in a string.
pub(crate) fn plain(text: &[u8]) -> usize {
    let is_plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
    // Without a way out of a block, the compiler takes all of it at a time.
    let is_whole = |block: &&[u8]| block.iter().fold(true, |so_far, byte| so_far & is_plain(byte));
    // Most strings are short; long ones may not be ASCII.
    words(text, 0, BLOCK)
        .and_then(|at| words(text, at + text[at..].chunks_exact(BLOCK).take_while(is_whole).count() * BLOCK, text.len()))
        .map_or_else(|found| found, |at| at + text[at..].iter().take_while(|byte| is_plain(byte)).count())
}

/// Goes on in `text` from `at`, word by word, to `end` or to one that has to be looked at more closely.
///
/// # Errors
/// Where the first byte is that does not stand for itself.
fn words(text: &[u8], mut at: usize, end: usize) -> Result<usize, usize> {
    while at < end
        && let Some(word) = text[at..].first_chunk()
    {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            let first = at + special.trailing_zeros() as usize / 8;
            return if text[first].is_ascii() { Err(first) } else { Ok(at) };
        }
        at += 8;
    }
    Ok(at)
}

/// Whether all of `text` stands for itself in a string. `false` may be too careful: where it is not all ASCII.
fn is_plain(text: &[u8]) -> bool {
    if text.len() > BLOCK {
        return plain(text) == text.len();
    }
    let word = |at: usize| text[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let short = |at: usize| text[at..].first_chunk().map_or(0, |half| u32::from_le_bytes(*half));
    let seen = match text.len() {
        0 => 0,
        // Both ends, which may overlap.
        length @ 8.. => (8..length).step_by(8).fold(special(word(length - 8)), |seen, at| seen | special(word(at - 8))),
        length @ 4.. => special(u64::from(short(0)) << 32 | u64::from(short(length - 4))),
        length => special(u64::from_le_bytes([text[0], text[length / 2], text[length - 1], b' ', b' ', b' ', b' ', b' '])),
    };
    seen == 0
}

/// The highest bit of each byte that does not stand for itself, or is not ASCII. Above the lowest of them, bits may be set for nothing.
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    let below = |limit: u8| word.wrapping_sub(ONES * u64::from(limit));
    let is = |byte: u8| (word ^ (ONES * u64::from(byte))).wrapping_sub(ONES);
    (word | below(0x20) | is(b'"') | is(b'\\')) & HIGH
}

/// As [`quote`] a string of a [`Json`]: one that was borrowed from its text stands for itself.
#[expect(clippy::ptr_arg, reason = "whether it is borrowed is what counts")]
pub(crate) fn requote(text: &Cow<'_, str>, out: &mut Vec<u8>) {
    let Cow::Borrowed(text) = text else { return quote(text, out) };
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// As RFC 8785, section 3.2.2.2 writes strings.
pub(crate) fn quote(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    if is_plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
        return out.push(b'"');
    }
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            0..=0x1f => b'u',
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[plain_from..at]);
        plain_from = at + 1;
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            out.extend_from_slice(format!("{byte:04x}").as_bytes());
        }
    }
    out.extend_from_slice(&text.as_bytes()[plain_from..]);
    out.push(b'"');
}

/// As ECMA-262 `Number::toString` writes the double; what no double holds stays as it is.
fn number(written: &str, out: &mut Vec<u8>) {
    let is_whole = !written.bytes().any(|b| matches!(b, b'.' | b'e' | b'E'));
    if is_whole {
        return out.extend_from_slice(if written == "-0" { b"0" } else { written.as_bytes() });
    }
    match written.parse::<f64>() {
        Ok(value) if value.is_finite() => out.extend_from_slice(ryu_js::Buffer::new().format_finite(value).as_bytes()),
        Ok(_) | Err(_) => out.extend_from_slice(written.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> String {
        String::from_utf8(canonical(text.as_bytes()).unwrap()).unwrap()
    }

    /// RFC 8785, appendix B.
    #[test]
    fn numbers_are_written_as_rfc_8785_gives_them() {
        for (bits, text) in [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            // Halfway between two: the even one.
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            // With an exponent, for whole numbers that were written as such stay as they are.
            assert_eq!(of(&format!("{:e}", f64::from_bits(bits))), text);
        }
        assert_eq!(of("[1.0, 10e1, 0.002, 1E30, 4.50, -0, 2e-3, 333333333.33333329]"), "[1,100,0.002,1e+30,4.5,0,0.002,333333333.3333333]");
    }

    /// RFC 8785, sections 3.2.2 and 3.2.3.
    #[test]
    fn strings_and_keys_are_those_of_the_rfc() {
        let text = r#"{"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
        assert_eq!(of(text), "{\"literals\":[null,true,false],\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
        let keys = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        assert_eq!(of(keys), "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}");
    }

    #[test]
    fn numbers_that_a_double_would_round_stay_apart() {
        assert_ne!(digest(b"[9007199254740993]"), digest(b"[9007199254740992]"));
        assert_eq!(of("[12345678901234567890123, 1e999]"), "[12345678901234567890123,1e999]");
    }

    #[test]
    fn what_has_no_single_meaning_has_no_form() {
        for bad in [r#"{"a":1,"\u0061":2}"#, r#"["\ud800"]"#, "", "{", "[1,]", "01", "1 2", "\"\\", "nul", "[\"\u{1}\"]"] {
            assert!(canonical(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(canonical(&b"[".repeat(100_000)).is_err());
        assert!(canonical(b"\"\xff\"").is_err());
    }

    #[test]
    fn bytes_that_need_an_escape_are_found_wherever_they_stand() {
        for length in 0..80 {
            for special in (0..=0x1f).chain([b'"', b'\\']) {
                for at in 0..length {
                    let mut text = "é~ aZ\u{7f}".bytes().cycle().take(length).collect::<Vec<_>>();
                    text[at] = special;
                    assert_eq!(plain(&text), at, "{special} at {at} of {length}");
                    assert!(!is_plain(&text), "{special} at {at} of {length}");
                    let text = text.iter().map(|byte| if byte.is_ascii() { *byte } else { b'a' }).collect::<Vec<_>>();
                    assert!(plain(&text) == at && !is_plain(&text), "{special} at {at} of {length}");
                }
            }
            let text = "é~ !#[]aZ\u{7f}".bytes().cycle().take(length).collect::<Vec<_>>();
            assert_eq!(plain(&text), length);
            let text = text.iter().map(|byte| if byte.is_ascii() { *byte } else { b'a' }).collect::<Vec<_>>();
            assert!(plain(&text) == length && is_plain(&text), "{length}");
        }
    }

    #[test]
    fn only_what_is_its_own_form_is_taken_as_it_is() {
        for same in ["{}", "[]", "0", "-1", r#"{"a":1,"b":[true,null,"€~"]}"#, r#"{"€":1,"😀":2}"#, "12345678901234567890123"] {
            assert!(json::read(same.as_bytes()).unwrap().is_canonical, "{same}");
        }
        for other in [
            " 1",
            "1 ",
            "{ }",
            "[1, 2]",
            r#"{"a" :1}"#,
            r#"{"b":1,"a":2}"#,
            "-0",
            "1.0",
            "1e1",
            "1E1",
            r#""\/""#,
            r#""\n""#,
            r#"{"\u0061":1}"#,
        ] {
            assert!(!json::read(other.as_bytes()).unwrap().is_canonical, "{other}");
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_as_it_is_would_have_been_written_so(value in any_json(), number in "-?[0-9]{1,4}([.][0-9]{1,2})?([eE][+-]?[0-9])?") {
            for text in [value.to_string(), format!("{value:#}"), number.clone(), format!(r#"{{"a":{number},"b":{value}}}"#)] {
                let Ok(written) = json::read(text.as_bytes()) else { continue };
                let mut anew = Vec::new();
                write(&written.value, &mut anew);
                prop_assert_eq!(&form(text.as_bytes(), &written)[..], &anew[..]);
            }
        }

        #[test]
        fn the_form_of_a_form_is_itself_and_means_the_same(value in any_json(), n in any::<f64>()) {
            let form = canonical(value.to_string().as_bytes()).unwrap();
            prop_assert_eq!(serde_json::from_slice::<serde_json::Value>(&form).unwrap(), value);
            prop_assert_eq!(canonical(&form).unwrap(), form);
            if n.is_finite() {
                prop_assert_eq!(of(&format!("{n:e}")).parse::<f64>().unwrap(), n);
            }
        }
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            (-1_000_000_i64..1_000_000).prop_map(Into::into),
            ".*".prop_map(serde_json::Value::String),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                proptest::collection::btree_map(".*", inner, 0..6).prop_map(|m| m.into_iter().collect::<serde_json::Value>()),
            ]
        })
    }
}
