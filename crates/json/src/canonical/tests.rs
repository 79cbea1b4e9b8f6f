//! Vectors of RFC 8785, forms made by earlier code, and `ryu-js` and a plain reading as oracles.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn exact(text: &str) -> Result<String, NotCanonical> {
    canonical(text.as_bytes(), Numbers::Exact)
}

fn kept(text: &str) -> String {
    canonical(text.as_bytes(), Numbers::Kept).unwrap()
}

/// Lines hold a text, the form in records and the form in approvals, as `audit` and `policy` made them separately. `!`: none.
#[test]
fn forms_are_those_of_existing_records_and_approvals() {
    let mut count = 0;
    for line in include_str!("forms.tsv").lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let [text, in_records, in_approvals] = parts[..] else { panic!("{line}") };
        let record = canonical(text.as_bytes(), Numbers::Kept).unwrap_or_else(|_| "!".into());
        let approval = exact(text).unwrap_or_else(|why| match why {
            NotCanonical::Doubled(_) => "!doubled".into(),
            NotCanonical::Json(_) => "!json".into(),
            NotCanonical::Number(_) => "!number".into(),
        });
        assert_eq!((record.as_str(), approval.as_str()), (in_records, in_approvals), "{text}");
        count += 1;
    }
    assert_eq!(count, 181);
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
        assert_eq!(kept(&format!("{:e}", f64::from_bits(bits))), text);
    }
    assert_eq!(kept("[1.0, 10e1, 0.002, 1E30, 4.50, -0, 2e-3, 333333333.33333329]"), "[1,100,0.002,1e+30,4.5,0,0.002,333333333.3333333]");
}

/// RFC 8785, sections 3.2.2 and 3.2.3.
#[test]
fn strings_and_keys_are_those_of_the_rfc() {
    let text = r#"{"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
    assert_eq!(kept(text), "{\"literals\":[null,true,false],\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}");
    let keys = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
    assert_eq!(kept(keys), "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":1,\"😀\":5,\"\u{fb33}\":3}");
}

#[test]
fn members_are_sorted_and_space_is_left_out() {
    assert_eq!(kept(" {\"b\" : [ 1 , {} , [ ] ],\n\"a\":null } "), r#"{"a":null,"b":[1,{},[]]}"#);
    // RFC 8785, 3.2.3: by UTF-16, so that U+1F600 (d83d…) comes before U+FB33.
    let sorted = kept("{\"\u{20ac}\":1,\"\\r\":2,\"\u{fb33}\":3,\"1\":4,\"\u{1f600}\":5,\"\u{80}\":6,\"\u{f6}\":7}");
    assert_eq!(sorted, "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}");
}

#[test]
fn strings_have_one_spelling() {
    assert_eq!(kept(r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#), "\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"");
    assert!(matches!(exact(r#""\ud800""#), Err(NotCanonical::Json(_))));
}

/// Test data published with RFC 8785.
#[test]
fn whole_texts_are_those_of_the_rfc() {
    for (text, form) in [
        (r#"[56,{"d":true,"10":null,"1":[ ]}]"#, r#"[56,{"1":[],"10":null,"d":true}]"#),
        (
            r#"{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}"#,
            r#"{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ignore locale"}"#,
        ),
        (
            r#"{"1":{"f":{"f":"hi","F":5},"\n":56.0},"10":{ },"":"empty","a":{ },"111":[{"e":"yes","E":"no"}],"A":{ }}"#,
            r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}"#,
        ),
        (r#"{"Unnormalized Unicode":"A\u030a"}"#, "{\"Unnormalized Unicode\":\"A\u{30a}\"}"),
        (
            r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\u000a":"Newline","1":"One","\u0080":"Control\u007f","\ud83d\ude02":"Smiley","\u00f6":"Latin Small Letter O With Diaeresis","\ufb33":"Hebrew Letter Dalet With Dagesh","</script>":"Browser Challenge"}"#,
            "{\"\\n\":\"Newline\",\"\\r\":\"Carriage Return\",\"1\":\"One\",\"</script>\":\"Browser Challenge\",\"\u{80}\":\"Control\u{7f}\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😂\":\"Smiley\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
        ),
    ] {
        assert_eq!(exact(text).as_deref(), Ok(form), "{text}");
        assert_eq!(kept(text), form, "{text}");
    }
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
        assert_eq!(exact(text).as_deref(), Ok(wanted), "{text}");
    }
}

#[test]
fn what_would_be_rounded_or_read_in_two_ways_has_no_form() {
    for text in ["9007199254740993", "333333333.33333329", "1e400", "0.1000000000000000055511151231257827", "[12345678901234567890]"] {
        assert!(matches!(exact(text), Err(NotCanonical::Number(_))), "{text}");
    }
    assert_eq!(exact(r#"{"a":1,"\u0061":2}"#), Err(NotCanonical::Doubled("a".into())));
    for text in ["", "{", "{\"a\":1,}", "01", "[1,]", "\u{feff}{}", &"[".repeat(200)] {
        assert!(matches!(exact(text), Err(NotCanonical::Json(_))), "{text}");
    }
}

#[test]
fn numbers_that_a_double_would_round_stay_apart_in_records() {
    assert_ne!(kept("[9007199254740993]"), kept("[9007199254740992]"));
    assert_eq!(kept("[12345678901234567890123, 1e999]"), "[12345678901234567890123,1e999]");
}

proptest! {
    #[test]
    fn a_canonical_text_is_its_own(value in json()) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        for numbers in [Numbers::Exact, Numbers::Kept] {
            if let Ok(form) = canonical(text.as_bytes(), numbers) {
                prop_assert_eq!(canonical(form.as_bytes(), numbers), Ok(form));
            }
        }
    }

    #[test]
    fn a_form_is_what_a_plain_reading_gives_however_it_is_spelled(value in json()) {
        let wanted = plainly(&value);
        for text in [serde_json::to_string_pretty(&value).unwrap(), spelled(&value)] {
            prop_assert_eq!(exact(&text), Ok(wanted.clone()), "{}", text);
            prop_assert_eq!(members(text.as_bytes(), Numbers::Exact).unwrap().is_some(), value.is_object());
        }
    }

    #[test]
    fn the_members_of_an_object_are_those_of_its_form(all in prop::collection::btree_map(".*", json(), 0..6)) {
        let value = Value::Object(all.into_iter().rev().collect());
        let members = members(spelled(&value).as_bytes(), Numbers::Exact).unwrap().unwrap();
        let members: Vec<String> = members.into_iter().map(|(name, value)| format!("{}:{value}", crate::quote(&name))).collect();
        prop_assert_eq!(format!("{{{}}}", members.join(",")), plainly(&value));
    }

    #[test]
    fn every_double_is_written_as_ecmascript_writes_it(value in any::<f64>().prop_filter("finite", |f| f.is_finite())) {
        let wanted = ryu_js::Buffer::new().format_finite(value).to_owned();
        for text in [serde_json::to_string(&value).unwrap(), wanted.clone()] {
            prop_assert_eq!(exact(&text), Ok(wanted.clone()));
            prop_assert_eq!(kept(&format!("{value:e}")).parse::<f64>().unwrap(), value);
        }
    }

    #[test]
    fn what_is_taken_as_it_is_would_have_been_written_so(value in json(), number in "-?[0-9]{1,20}([.][0-9]{1,2})?([eE][+-]?[0-9])?") {
        for text in [value.to_string(), format!("{value:#}"), number.clone(), format!(r#"{{"a":{number},"b":{value}}}"#)] {
            let Ok(written) = tree::read(text.as_bytes()) else { continue };
            for numbers in [Numbers::Exact, Numbers::Kept] {
                let mut anew = Vec::new();
                let sound = write(&written.value, numbers, &mut anew);
                prop_assert_eq!(form(text.as_bytes(), &written, numbers).map(Cow::into_owned), sound.map(|()| anew));
            }
        }
    }
}

fn plainly(value: &Value) -> String {
    match value {
        Value::Array(all) => format!("[{}]", all.iter().map(plainly).collect::<Vec<_>>().join(",")),
        Value::Object(all) => {
            let all: BTreeMap<Vec<u16>, _> = all.iter().map(|one| (one.0.encode_utf16().collect(), one)).collect();
            let all: Vec<String> = all.into_values().map(|(name, value)| format!("{}:{}", crate::quote(name), plainly(value))).collect();
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
