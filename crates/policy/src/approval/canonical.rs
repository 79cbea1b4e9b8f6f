//! One text for one JSON value (RFC 8785, JCS), so that what a person is shown, what is signed and what goes out can be compared.
//! Nothing is rounded: a value that has no exact canonical form has none at all.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;

/// Why a text has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotCanonical {
    /// A member stands twice.
    #[error("the member `{0}` stands there twice: send it once")]
    Doubled(String),
    /// It is no JSON, is nested too deeply, or holds half a character.
    #[error("it is no JSON that can be shown: {0}")]
    Json(String),
    /// A number that is another one as a double (RFC 8785, 3.2.2.3).
    #[error("the number {0} would be rounded by whoever reads it as a double: send it as a string")]
    Number(String),
}

/// The canonical text of a JSON value.
///
/// # Errors
/// When it is no JSON, when a member is doubled, and when a number is not exact as a double.
pub fn canonical(json: &[u8]) -> Result<String, NotCanonical> {
    let text = checked(json)?;
    let mut out = String::with_capacity(text.len());
    Reader { text, at: 0 }.value(&mut out)?;
    Ok(out)
}

/// The members of a JSON object, as the canonical text has them: in its order, each with its name and the text of its value. `None` when
/// it is another value.
pub(crate) fn members(json: &[u8]) -> Result<Option<Vec<(String, String)>>, NotCanonical> {
    let text = checked(json)?;
    let (mut reader, mut out) = (Reader { text, at: 0 }, String::with_capacity(text.len()));
    if reader.next() != b'{' {
        return Ok(None);
    }
    let all = reader.members(&mut out)?;
    Ok(Some(all.into_iter().map(|one| (one.name.into_owned(), out[one.value].to_owned())).collect()))
}

/// A text as a JSON string, escaped as RFC 8785 wants it.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What is read here is well-formed, and no deeper than 128.
fn checked(json: &[u8]) -> Result<&str, NotCanonical> {
    let text = std::str::from_utf8(json).map_err(|error| NotCanonical::Json(error.to_string()))?;
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| NotCanonical::Json(error.to_string()))?;
    Ok(text)
}

/// Reads a text that is known to be JSON.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

/// A member that was written: where all of it stands, and where its value.
struct Member<'a> {
    name: Cow<'a, str>,
    whole: Range<usize>,
    value: Range<usize>,
}

impl<'a> Reader<'a> {
    fn value(&mut self, out: &mut String) -> Result<(), NotCanonical> {
        match self.next() {
            b'{' => self.object(out),
            b'[' => self.array(out),
            b'"' => self.string(out).map(drop),
            b't' | b'f' | b'n' => {
                out.push_str(self.word());
                Ok(())
            }
            _ => {
                out.push_str(&number(self.word())?);
                Ok(())
            }
        }
    }

    fn object(&mut self, out: &mut String) -> Result<(), NotCanonical> {
        out.push('{');
        let from = out.len();
        let members = self.members(out)?;
        if !members.is_sorted_by_key(|one| one.whole.start) {
            let written = out.split_off(from);
            for one in members {
                if out.len() > from {
                    out.push(',');
                }
                out.push_str(&written[one.whole.start - from..one.whole.end - from]);
            }
        }
        out.push('}');
        Ok(())
    }

    /// Writes the members of an object as they come, and answers them in the order of RFC 8785, section 3.2.3: by UTF-16 code units.
    fn members(&mut self, out: &mut String) -> Result<Vec<Member<'a>>, NotCanonical> {
        self.at += 1;
        let mut members: Vec<Member<'a>> = Vec::new();
        while self.next() != b'}' {
            if !members.is_empty() {
                out.push(',');
            }
            let from = out.len();
            let name = self.string(out)?;
            self.skip(b':');
            out.push(':');
            let value = out.len();
            self.value(out)?;
            members.push(Member { name, whole: from..out.len(), value: value..out.len() });
            self.skip(b',');
        }
        self.at += 1;
        members.sort_by(|a, b| a.name.encode_utf16().cmp(b.name.encode_utf16()));
        match members.windows(2).find(|pair| pair[0].name == pair[1].name) {
            Some(pair) => Err(NotCanonical::Doubled(pair[0].name.to_string())),
            None => Ok(members),
        }
    }

    fn array(&mut self, out: &mut String) -> Result<(), NotCanonical> {
        self.at += 1;
        out.push('[');
        let mut is_first = true;
        while self.next() != b']' {
            if !std::mem::take(&mut is_first) {
                out.push(',');
            }
            self.value(out)?;
            self.skip(b',');
        }
        self.at += 1;
        out.push(']');
        Ok(())
    }

    /// Writes a string and answers what it says.
    fn string(&mut self, out: &mut String) -> Result<Cow<'a, str>, NotCanonical> {
        self.next();
        let rest = &self.text[self.at..];
        let within = &rest[1..];
        if let Some((said, _)) = within.split_once(['"', '\\']).filter(|(said, _)| within.as_bytes()[said.len()] == b'"') {
            // All that must be escaped is: nothing can be spelled in another way.
            self.at += said.len() + 2;
            out.push_str(&rest[..said.len() + 2]);
            return Ok(Cow::Borrowed(said));
        }
        let mut escaped = false;
        let end = within.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let whole = &rest[..end.map_or(rest.len(), |end| end + 2)];
        self.at += whole.len();
        let said: String = serde_json::from_str(whole).map_err(|error| NotCanonical::Json(error.to_string()))?;
        out.push_str(&quoted(&said));
        Ok(Cow::Owned(said))
    }

    /// A number or a literal, to its end.
    fn word(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| matches!(c, ',' | ']' | '}') || c.is_ascii_whitespace()).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// The next byte that is no white space; at the end, what closes everything.
    fn next(&mut self) -> u8 {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_ascii_start().len();
        self.text.as_bytes().get(self.at).copied().unwrap_or(b'}')
    }

    fn skip(&mut self, byte: u8) {
        if self.next() == byte {
            self.at += 1;
        }
    }
}

/// A number as ECMAScript writes it (RFC 8785, 3.2.2.3).
fn number(text: &str) -> Result<Cow<'_, str>, NotCanonical> {
    // So many digits are exact, and written as they are.
    if text.len() <= 15 && text != "-0" && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) {
        return Ok(Cow::Borrowed(text));
    }
    let inexact = || NotCanonical::Number(text.to_owned());
    let value: f64 = text.parse().map_err(|_| inexact())?;
    if !value.is_finite() {
        return Err(inexact());
    }
    let mut room = ryu_js::Buffer::new();
    let written = room.format_finite(value);
    if decimal(text) == decimal(written) { Ok(Cow::Owned(written.to_owned())) } else { Err(inexact()) }
}

/// What a number is worth: whether it is negative, its digits without zeros around them, and the exponent of the last one.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    let trimmed = digits.trim_end_matches('0');
    if trimmed.trim_start_matches('0').is_empty() {
        return Some((false, String::new(), 0));
    }
    let dropped = i64::try_from(digits.len() - trimmed.len()).ok()?;
    let exponent: i64 = exponent.parse().ok()?;
    let exponent = exponent.checked_add(dropped)?.checked_sub(i64::try_from(part.len()).ok()?)?;
    Some((negative, trimmed.trim_start_matches('0').to_owned(), exponent))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn of(text: &str) -> String {
        canonical(text.as_bytes()).unwrap()
    }

    #[test]
    fn members_are_sorted_and_space_is_left_out() {
        assert_eq!(of(" {\"b\" : [ 1 , {} , [ ] ],\n\"a\":null } "), r#"{"a":null,"b":[1,{},[]]}"#);
        // RFC 8785, 3.2.3: by UTF-16, so that U+1F600 (d83d…) comes before U+FB33.
        let sorted = of("{\"\u{20ac}\":1,\"\\r\":2,\"\u{fb33}\":3,\"1\":4,\"\u{1f600}\":5,\"\u{80}\":6,\"\u{f6}\":7}");
        assert_eq!(sorted, "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}");
    }

    #[test]
    fn strings_have_one_spelling() {
        assert_eq!(of(r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#), "\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"");
        assert!(matches!(canonical(br#""\ud800""#), Err(NotCanonical::Json(_))));
    }

    #[test]
    fn numbers_are_written_as_ecmascript_writes_them() {
        for (text, wanted) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("1.0", "1"),
            ("333333333.3333333", "333333333.3333333"),
            ("1E30", "1e+30"),
            ("4.50", "4.5"),
            ("2e-3", "0.002"),
            ("0.000000000000000000000000001", "1e-27"),
            ("1e21", "1e+21"),
            ("100000000000000000000", "100000000000000000000"),
            ("-1.5e-7", "-1.5e-7"),
            ("9007199254740992", "9007199254740992"),
            // Halfway between two doubles' shortest texts (RFC 8785, appendix B): the even one.
            ("1424953923781206.2", "1424953923781206.2"),
            ("-1715347221472104.2", "-1715347221472104.2"),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
    }

    #[test]
    fn what_would_be_rounded_or_read_in_two_ways_has_no_form() {
        for text in ["9007199254740993", "333333333.33333329", "1e400", "0.1000000000000000055511151231257827", "[12345678901234567890]"] {
            assert!(matches!(canonical(text.as_bytes()), Err(NotCanonical::Number(_))), "{text}");
        }
        assert_eq!(canonical(br#"{"a":1,"\u0061":2}"#), Err(NotCanonical::Doubled("a".into())));
        for text in ["", "{", "{\"a\":1,}", "01", "[1,]", "\u{feff}{}", &"[".repeat(200)] {
            assert!(matches!(canonical(text.as_bytes()), Err(NotCanonical::Json(_))), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_canonical_text_is_its_own(value in json()) {
            let text = serde_json::to_string_pretty(&value).unwrap();
            if let Ok(form) = canonical(text.as_bytes()) {
                prop_assert_eq!(canonical(form.as_bytes()).unwrap(), form);
            }
        }

        #[test]
        fn it_is_what_a_plain_reading_gives_however_it_is_spelled(value in json()) {
            let wanted = plainly(&value);
            for text in [serde_json::to_string_pretty(&value).unwrap(), spelled(&value)] {
                prop_assert_eq!(canonical(text.as_bytes()), Ok(wanted.clone()), "{}", text);
            }
        }

        #[test]
        fn every_double_comes_back(value in any::<f64>().prop_filter("finite", |f| f.is_finite())) {
            let text = serde_json::to_string(&value).unwrap();
            let text = number(&text).unwrap();
            prop_assert_eq!(text.parse::<f64>().unwrap(), value);
            prop_assert_eq!(number(&text), Ok(Cow::Borrowed(&*text)));
        }
    }

    fn plainly(value: &Value) -> String {
        match value {
            Value::Array(all) => format!("[{}]", all.iter().map(plainly).collect::<Vec<_>>().join(",")),
            Value::Object(all) => {
                let all: BTreeMap<Vec<u16>, _> = all.iter().map(|one| (one.0.encode_utf16().collect(), one)).collect();
                let all: Vec<String> = all.into_values().map(|(name, value)| format!("{}:{}", quoted(name), plainly(value))).collect();
                format!("{{{}}}", all.join(","))
            }
            Value::Number(one) => ryu_js::Buffer::new().format(one.as_f64().unwrap()).to_owned(),
            Value::Bool(_) | Value::Null | Value::String(_) => value.to_string(),
        }
    }

    /// With every character escaped.
    fn spelled(value: &Value) -> String {
        let escaped = |text: &str| format!("\"{}\"", text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect::<String>());
        match value {
            Value::Array(all) => format!("[{}]", all.iter().map(spelled).collect::<Vec<_>>().join(" , ")),
            Value::Object(all) => {
                let all: Vec<String> = all.iter().map(|(name, value)| format!("{} : {}", escaped(name), spelled(value))).collect();
                format!("{{ {} }}", all.join(" , "))
            }
            Value::String(text) => escaped(text),
            Value::Bool(_) | Value::Null | Value::Number(_) => value.to_string(),
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i32>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map(".*", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().rev().collect())),
            ]
        })
    }
}
