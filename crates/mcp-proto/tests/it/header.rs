//! Header values round trip, and values sent by one side are accepted by the other.

use mcp_proto::header::{ParamHeader, check_name, check_params, decode, encode, expected_params, param_headers};
use proptest::collection::btree_map;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[ -~]{0,12}", "=\\?base64\\?[a-zA-Z0-9=]{0,8}(\\?=)?", "[ \t]{0,2}[a-z]{0,3}[ \t]{0,2}"]
}

/// A value of each kind for an annotated property, and of a kind for none.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(Value::from),
        2 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(json!([1])),
        1 => (-1000i32..1000).prop_map(|n| json!(f64::from(n))),
    ]
}

fn is_mirrored(value: &Value) -> bool {
    value.is_string() || value.is_number() || value.is_boolean()
}

fn annotated(arguments: &Map<String, Value>) -> Vec<ParamHeader> {
    let property = |(name, value): (&String, &Value)| {
        let kind = if value.is_string() { "string" } else { "integer" };
        (name.clone(), json!({"type": kind, "x-mcp-header": format!("H-{name}")}))
    };
    let schema = json!({"type": "object", "properties": arguments.iter().map(property).collect::<Map<_, _>>()});
    param_headers(schema.to_string().as_bytes()).unwrap_or_default()
}

proptest! {
    #[test]
    fn every_text_travels_as_a_header(text in text(), left in "[ \t]{0,2}", right in "[ \t]{0,2}") {
        let encoded = encode(&text);
        prop_assert!(encoded.bytes().all(|b| (b' '..=b'~').contains(&b)));
        prop_assert!(!encoded.starts_with(' ') && !encoded.ends_with(' '));
        prop_assert!(decode(encoded.as_bytes()).is_ok_and(|decoded| decoded == text));
        let padded = format!("{left}{encoded}{right}");
        prop_assert_eq!(check_name(Some(padded.as_bytes()), &text), Ok(()));
    }

    #[test]
    fn another_text_is_never_taken_for_the_same(one in text(), other in text()) {
        prop_assert_eq!(check_name(Some(encode(&one).as_bytes()), &other).is_ok(), one == other);
    }

    #[test]
    fn what_is_sent_for_arguments_is_accepted_for_them(values in btree_map("[a-z]{1,4}", value(), 0..6)) {
        let arguments: Map<String, Value> = values.into_iter().collect();
        let params = json!({"name": "t", "arguments": arguments}).to_string();
        let headers = annotated(&arguments);
        prop_assert_eq!(headers.len(), arguments.len());
        let sent = expected_params(params.as_bytes(), &headers);
        prop_assert_eq!(sent.len(), arguments.values().filter(|value| is_mirrored(value)).count());
        let lookup = |name: &str| sent.iter().find(|(sent, _)| sent == name).map(|(_, value)| value.as_bytes());
        prop_assert_eq!(check_params(params.as_bytes(), &headers, lookup), Ok(()));
        for (missing, _) in &sent {
            prop_assert!(check_params(params.as_bytes(), &headers, |name| lookup(name).filter(|_| name != missing)).is_err());
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(raw in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(text) = decode(&raw) {
            prop_assert!(check_name(Some(&raw), &text).is_ok());
        }
    }
}
