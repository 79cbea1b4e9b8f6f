//! The arguments of `banyan call`: a JSON object, `key=value` and `key:=json`, or `-` for standard input.
//! Makes JSON text with numbers spelled as given; does not know the tool's schema.

use std::io::Read;

use serde_json::value::RawValue;

use crate::failure::Failure;

/// Makes the JSON object of the words after the tool's name.
pub(crate) fn object(words: &[String]) -> Result<Box<RawValue>, Failure> {
    match words {
        [] => checked("{}".to_owned()),
        [only] if only == "-" => {
            let mut text = String::new();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|e| Failure::Failed(format!("standard input can't be read: {e}")))?;
            checked(text)
        }
        [only] if only.trim_start().starts_with('{') => checked(only.clone()),
        pairs => checked(joined(pairs)?),
    }
}

/// Writes `key=value` words as one object. `key:=json` takes the text as JSON. After `=`, a number, `true`, `false`
/// or `null` is taken as such, and everything else as text.
fn joined(pairs: &[String]) -> Result<String, Failure> {
    let mut members: Vec<(&str, String)> = Vec::new();
    for pair in pairs {
        let (key, value) = pair.split_once('=').filter(|(k, _)| !k.is_empty() && *k != ":").ok_or_else(|| {
            Failure::Usage(format!("`{pair}` is no argument: write key=value, key:=json, or one JSON object like '{{\"key\": 1}}'"))
        })?;
        let (key, value) = match key.strip_suffix(':') {
            Some(key) => (key, json(key, value)?),
            None => (key, scalar(value)),
        };
        if members.iter().any(|(k, _)| *k == key) {
            return Err(Failure::Usage(format!("`{key}` is given twice")));
        }
        members.push((key, value));
    }
    let members: Vec<String> = members.into_iter().map(|(k, v)| format!("{}:{v}", quoted(k))).collect();
    Ok(format!("{{{}}}", members.join(",")))
}

fn json(key: &str, text: &str) -> Result<String, Failure> {
    let value: Result<&RawValue, _> = serde_json::from_str(text);
    value.map(|v| v.get().to_owned()).map_err(|e| Failure::Usage(format!("the value of `{key}` is no JSON: {e}")))
}

fn scalar(text: &str) -> String {
    let number = text.starts_with(|c: char| c.is_ascii_digit() || c == '-') && serde_json::from_str::<&RawValue>(text).is_ok();
    if number || ["true", "false", "null"].contains(&text) { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn checked(text: String) -> Result<Box<RawValue>, Failure> {
    let value = RawValue::from_string(text).map_err(|e| Failure::Usage(format!("the arguments are no JSON: {e}")))?;
    if !value.get().trim_start().starts_with('{') {
        return Err(Failure::Usage("the arguments of a tool are a JSON object, like '{\"path\": \"/tmp\"}'".to_owned()));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(words: &[&str]) -> Result<String, Failure> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        object(&words).map(|v| v.get().to_owned())
    }

    #[test]
    fn pairs_become_an_object_in_their_order() {
        let words = ["b=two words", "a=1", "c:=[1e5]", "d=-3.0", "e=1.2.3", "f=true", "g=a=b", "h="];
        let object = r#"{"b":"two words","a":1,"c":[1e5],"d":-3.0,"e":"1.2.3","f":true,"g":"a=b","h":""}"#;
        assert_eq!(written(&words).unwrap(), object);
        assert_eq!(written(&[]).unwrap(), "{}");
        assert_eq!(written(&[r#"{"a": 12345678901234567890123}"#]).unwrap(), r#"{"a": 12345678901234567890123}"#);
    }

    #[test]
    fn what_is_no_argument_is_a_usage_error() {
        for bad in [&["a"][..], &["=1"], &["a=1", "a=2"], &["a:=nope"], &["[1]"], &["{"], &[":=1"]] {
            assert!(matches!(written(bad), Err(Failure::Usage(_))), "{bad:?}");
        }
    }
}
