//! `x-mcp-header`: arguments of a tool that also travel as `Mcp-Param-*` headers. Does not validate arguments.

use std::borrow::Cow;
use std::collections::HashSet;

use super::{Mismatch, decode, encode, excerpt};
use crate::json::{self, Members};

const ANNOTATION: &str = "x-mcp-header";
/// Bytes of the largest schema searched: every level of nesting reads its part once more.
const MAX_SCHEMA: usize = 1 << 20;
/// Most headers: common HTTP servers refuse more in one request.
const MAX_HEADERS: usize = 100;
/// Up to here an integer is the same number for every peer (JavaScript's safe range).
const SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// An argument mirrored into a header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamHeader {
    /// Path from `arguments` to the value; more than one name for a nested property.
    pub path: Vec<String>,
    /// The whole header name, `Mcp-Param-…`, as the schema spells it.
    pub header: String,
}

/// A schema whose annotations break the rules: over HTTP a client must leave the tool out.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the tool's inputSchema has an invalid x-mcp-header at `{property}`: {why}")]
pub struct InvalidAnnotation {
    /// The property or keyword, dotted from the schema's root.
    pub property: String,
    /// The broken rule.
    pub why: &'static str,
}

/// Finds the annotations of a raw tool, if the tool has an `inputSchema`.
pub fn tool_headers(tool: &[u8]) -> Result<Vec<ParamHeader>, InvalidAnnotation> {
    if !may_annotate(tool) {
        return Ok(Vec::new());
    }
    Members::again(tool).get("inputSchema").map_or(Ok(Vec::new()), param_headers)
}

/// Most tools have no annotation; looking for the word is far cheaper than reading the schema. Only `\u` spells a letter in another way.
fn may_annotate(raw: &[u8]) -> bool {
    [ANNOTATION.as_bytes(), b"\\u"].iter().any(|word| memchr::memmem::find(raw, word).is_some())
}

/// Finds the annotations in the raw `inputSchema` of a tool.
pub fn param_headers(input_schema: &[u8]) -> Result<Vec<ParamHeader>, InvalidAnnotation> {
    if !may_annotate(input_schema) {
        return Ok(Vec::new());
    }
    let spelled = memchr::memmem::find(input_schema, ANNOTATION.as_bytes()).is_some();
    let mut search = Search::default();
    if input_schema.len() > MAX_SCHEMA {
        return if spelled { search.refuse("the schema is larger than 1 MiB") } else { Ok(Vec::new()) };
    }
    search.schema(input_schema.trim_ascii(), Place::Root)?;
    Ok(search.found)
}

/// The headers to send with `tools/call`, given its raw `params`. Absent, null and structured values have none.
pub fn expected_params(params: &[u8], headers: &[ParamHeader]) -> Vec<(String, String)> {
    if headers.is_empty() {
        return Vec::new();
    }
    let arguments = arguments(params);
    let values = headers.iter().filter_map(|header| Some((header, value_at(&arguments, &header.path)?)));
    values.map(|(header, value)| (header.header.clone(), encode(&value.text()).into_owned())).collect()
}

/// Compares the headers of a `tools/call` with its raw `params`. `lookup` gives a header's only value; a
/// caller with a doubled header must refuse the request itself.
pub fn check_params<'h>(params: &[u8], headers: &[ParamHeader], lookup: impl Fn(&str) -> Option<&'h [u8]>) -> Result<(), Mismatch> {
    if headers.is_empty() {
        return Ok(());
    }
    let arguments = arguments(params);
    headers.iter().try_for_each(|header| check_one(&header.header, lookup(&header.header), value_at(&arguments, &header.path)))
}

fn check_one(header: &str, raw: Option<&[u8]>, body: Option<MirroredValue<'_>>) -> Result<(), Mismatch> {
    let header = || header.to_owned();
    let sent = raw.map(decode).transpose().map_err(|_| Mismatch::Malformed { header: header() })?;
    match (sent, body) {
        (None, None) => Ok(()),
        (None, Some(body)) => Err(Mismatch::Missing { header: header(), body: excerpt(&body.text()) }),
        (Some(sent), None) => Err(Mismatch::Unexpected { header: header(), sent: excerpt(&sent) }),
        (Some(sent), Some(body)) if body.says(&sent) => Ok(()),
        (Some(sent), Some(body)) => Err(Mismatch::Differs { header: header(), sent: excerpt(&sent), body: excerpt(&body.text()) }),
    }
}

/// A value of the body as a header can repeat it.
enum MirroredValue<'a> {
    Text(Cow<'a, str>),
    Number(&'a str),
    Word(&'static str),
}

impl MirroredValue<'_> {
    /// Spells the value for a header.
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Number(spelled) => decimal(spelled),
            Self::Word(word) => Cow::Borrowed(word),
        }
    }

    /// Compares the value with a decoded header; numbers are compared as numbers.
    fn says(&self, sent: &str) -> bool {
        match self {
            Self::Text(text) => text == sent,
            Self::Number(spelled) => sent == *spelled || same_number(spelled, sent),
            Self::Word(word) => *word == sent,
        }
    }
}

/// Writes `42.0` and `4.2e1` as `42`; other numbers than safe integers stay as spelled.
fn decimal(spelled: &str) -> Cow<'_, str> {
    if spelled.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
        return Cow::Borrowed(spelled);
    }
    match spelled.parse::<f64>() {
        Ok(number) if number.fract() == 0.0 && number.abs() <= SAFE_INTEGER => Cow::Owned(format!("{}", number as i64)),
        _ => Cow::Borrowed(spelled),
    }
}

fn same_number(body: &str, sent: &str) -> bool {
    let is_json = sent.bytes().all(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.abs() <= SAFE_INTEGER);
    is_json && number(body).is_some_and(|number_in_body| number(sent) == Some(number_in_body))
}

fn arguments(params: &[u8]) -> Members<'_> {
    Members::again(params).object("arguments").unwrap_or_default()
}

fn value_at<'a>(arguments: &Members<'a>, path: &[String]) -> Option<MirroredValue<'a>> {
    let (last, way) = path.split_last()?;
    let raw = match way.split_first() {
        None => arguments.get(last)?,
        Some((first, rest)) => {
            let inner = rest.iter().try_fold(arguments.object(first)?, |object, name| object.object(name))?;
            inner.get(last)?
        }
    };
    match raw.first()? {
        b'"' => json::as_str(raw).map(MirroredValue::Text),
        b't' => Some(MirroredValue::Word("true")),
        b'f' => Some(MirroredValue::Word("false")),
        b'-' | b'0'..=b'9' => std::str::from_utf8(raw).ok().map(MirroredValue::Number),
        _ => None,
    }
}

/// Place of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    /// Reached from the root through `properties` alone: the only place where an annotation may be.
    Property,
    /// Below any other keyword.
    Elsewhere,
}

/// A walk over a schema.
#[derive(Default)]
struct Search {
    path: Vec<String>,
    seen: HashSet<String>,
    found: Vec<ParamHeader>,
}

impl Search {
    fn schema(&mut self, raw: &[u8], place: Place) -> Result<(), InvalidAnnotation> {
        match raw.first() {
            Some(b'{') => {}
            Some(b'[') => {
                let elements = json::elements(raw).unwrap_or_default();
                return elements.into_iter().try_for_each(|element| self.schema(element, Place::Elsewhere));
            }
            _ => return Ok(()),
        }
        let members = Members::again(raw);
        if let Some(annotation) = members.get(ANNOTATION) {
            self.annotation(annotation, members.str("type").as_deref(), place)?;
        }
        for (keyword, value) in members.iter() {
            match &*keyword {
                // What stands here is data, not a schema.
                "const" | "default" | "enum" | "examples" => {}
                "properties" if place != Place::Elsewhere => self.named(value, Place::Property)?,
                "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => {
                    self.named(value, Place::Elsewhere)?;
                }
                _ => self.schema(value, Place::Elsewhere)?,
            }
        }
        Ok(())
    }

    /// A map from names to schemas.
    fn named(&mut self, raw: &[u8], place: Place) -> Result<(), InvalidAnnotation> {
        if raw.first() != Some(&b'{') {
            return Ok(());
        }
        for (name, schema) in Members::again(raw).iter() {
            self.path.push(name.into_owned());
            self.schema(schema, place)?;
            self.path.pop();
        }
        Ok(())
    }

    fn annotation(&mut self, raw: &[u8], kind: Option<&str>, place: Place) -> Result<(), InvalidAnnotation> {
        if place != Place::Property {
            return self.refuse("only a property reached through `properties` alone may have one");
        }
        let Some(name) = json::as_str(raw) else { return self.refuse("it must be a string") };
        if name.is_empty() {
            return self.refuse("it must not be empty");
        }
        if !name.bytes().all(is_token) {
            return self.refuse("it must be made of characters allowed in a header's name");
        }
        if !matches!(kind, Some("string" | "integer" | "boolean")) {
            return self.refuse("the property's type must be string, integer or boolean");
        }
        if !self.seen.insert(name.to_ascii_lowercase()) {
            return self.refuse("another property has the same one");
        }
        if self.found.len() == MAX_HEADERS {
            return self.refuse("more than 100 properties have one");
        }
        self.found.push(ParamHeader { path: self.path.clone(), header: format!("Mcp-Param-{name}") });
        Ok(())
    }

    fn refuse<T>(&self, why: &'static str) -> Result<T, InvalidAnnotation> {
        Err(InvalidAnnotation { property: excerpt(&self.path.join(".")), why })
    }
}

/// `tchar` of RFC 9110, section 5.6.2.
fn is_token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},"n":{"x-mcp-header":"N","type":"integer"},
        "on":{"type":"boolean","x-mcp-header":"On"},"f":{"type":"number"},
        "o":{"type":"object","properties":{"in":{"type":"string","x-mcp-header":"In"}}}}}"#;

    #[test]
    fn annotated_properties_are_found_nested_ones_too() {
        let found = param_headers(SCHEMA.as_bytes()).unwrap();
        let got: Vec<_> = found.iter().map(|header| (header.path.join("."), header.header.as_str())).collect();
        let expected = [("region", "Mcp-Param-Region"), ("n", "Mcp-Param-N"), ("on", "Mcp-Param-On"), ("o.in", "Mcp-Param-In")];
        assert_eq!(got, expected.map(|(path, header)| (path.to_owned(), header)));
        assert_eq!(param_headers(br#"{"type":"object","properties":{"a":{"type":"string"}}}"#), Ok(vec![]));
    }

    #[test]
    fn an_annotation_spelled_with_escapes_counts() {
        let schema = br#"{"properties":{"a":{"type":"string","x-mcp-h\u0065ader":"A"}}}"#;
        assert_eq!(param_headers(schema).map(|found| found.len()), Ok(1));
        let tool = |name: &str| format!(r#"{{"name":"t","inputSchema":{{"properties":{{"a":{{"type":"string","{name}":"A"}}}}}}}}"#);
        for name in ["x-mcp-header", r"x\u002dmcp-header", r"x-mcp\u002dheader", r"\u0078-\u006Dcp-header"] {
            assert_eq!(tool_headers(tool(name).as_bytes()).map(|found| found.len()), Ok(1), "{name}");
        }
        assert_eq!(tool_headers(br#"{"name":"x-mcp-header"}"#), Ok(vec![]));
    }

    /// The invalid tools of the conformance suite's `http-invalid-tool-headers`, and the reachability rule.
    #[test]
    fn invalid_annotations_are_refused() {
        let property = |schema: &str| format!(r#"{{"type":"object","properties":{{"p":{schema}}}}}"#);
        let invalid = [
            property(r#"{"type":"string","x-mcp-header":""}"#),
            property(r#"{"type":"string","x-mcp-header":1}"#),
            property(r#"{"type":"object","x-mcp-header":"Data"}"#),
            property(r#"{"type":"array","items":{"type":"string"},"x-mcp-header":"Items"}"#),
            property(r#"{"type":"null","x-mcp-header":"Nil"}"#),
            property(r#"{"type":"number","x-mcp-header":"Score"}"#),
            property(r#"{"x-mcp-header":"Untyped"}"#),
            property(r#"{"type":"string","x-mcp-header":"Region"},"q":{"type":"string","x-mcp-header":"region"}"#),
            property(r#"{"type":"string","x-mcp-header":"My Region"}"#),
            property(r#"{"type":"string","x-mcp-header":"Region:Primary"}"#),
            property(r#"{"type":"string","x-mcp-header":"Région"}"#),
            property(r#"{"type":"string","x-mcp-header":"Region\t1"}"#),
            property(r#"{"type":"array","items":{"type":"string","x-mcp-header":"A"}}"#),
            property(r#"{"oneOf":[{"type":"string","x-mcp-header":"A"}]}"#),
            property(r#"{"oneOf":[{"properties":{"q":{"type":"string","x-mcp-header":"A"}}}]}"#),
            r#"{"x-mcp-header":"Root","type":"string"}"#.to_owned(),
            r#"{"$defs":{"d":{"type":"string","x-mcp-header":"A"}},"properties":{"p":{"$ref":"\#/$defs/d"}}}"#.replace('\\', ""),
        ];
        for schema in invalid {
            assert!(param_headers(schema.as_bytes()).is_err(), "{schema}");
        }
    }

    #[test]
    fn a_property_may_be_called_like_the_annotation_and_data_may_hold_it() {
        let schema = br#"{"properties":{"x-mcp-header":{"type":"string"},"p":{"default":{"x-mcp-header":"D"}}}}"#;
        assert_eq!(param_headers(schema), Ok(vec![]));
    }

    #[test]
    fn headers_are_made_of_the_arguments_that_are_there() {
        let found = param_headers(SCHEMA.as_bytes()).unwrap();
        let params = br#"{"name":"t","arguments":{"region":" x","n":42.0,"on":false,"f":3.14,"o":{"in":"i"}}}"#;
        let expected = [("Mcp-Param-Region", "=?base64?IHg=?="), ("Mcp-Param-N", "42"), ("Mcp-Param-On", "false"), ("Mcp-Param-In", "i")];
        assert_eq!(expected_params(params, &found), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for none in ["{}", r#"{"arguments":{"region":null,"n":[1],"o":"x"}}"#, r#"{"arguments":null}"#, "[]"] {
            assert_eq!(expected_params(none.as_bytes(), &found), [], "{none}");
        }
    }

    #[test]
    fn headers_must_repeat_the_arguments() {
        let found = param_headers(SCHEMA.as_bytes()).unwrap();
        let check = |arguments: &str, name: &'static str, value: Option<&'static str>| {
            let params = format!(r#"{{"arguments":{arguments}}}"#);
            check_params(params.as_bytes(), &found, |asked| value.filter(|_| asked == name).map(str::as_bytes))
        };
        let (region, n) = ("Mcp-Param-Region", "Mcp-Param-N");
        assert_eq!(check(r#"{"region":"Hello"}"#, region, Some("=?base64?SGVsbG8=?=")), Ok(()));
        assert_eq!(check(r#"{"region":"SGVsbG8="}"#, region, Some("SGVsbG8=")), Ok(()));
        assert_eq!(check(r#"{"region":null}"#, region, None), Ok(()));
        assert_eq!(check(r#"{"n":42}"#, n, Some("42.0")), Ok(()));
        assert_eq!(check(r#"{"n":12345678901234567890}"#, n, Some("12345678901234567890")), Ok(()));
        let refused = [
            (r#"{"region":"Hello"}"#, region, Some("=?base64?SGVsbG8?=")),
            (r#"{"region":"Hello"}"#, region, Some("hello")),
            (r#"{"region":"Hello"}"#, region, None),
            (r#"{"region":null}"#, region, Some("Hello")),
            (r#"{"n":9007199254740993}"#, n, Some("9007199254740992")),
            (r#"{"n":1}"#, n, Some("one")),
            (r#"{"on":true}"#, "Mcp-Param-On", Some("True")),
        ];
        for (arguments, name, value) in refused {
            assert!(check(arguments, name, value).is_err(), "{arguments} {value:?}");
        }
    }
}
