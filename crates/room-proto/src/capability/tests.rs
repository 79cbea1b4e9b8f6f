use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;

fn covers(pattern: &str, kind: &str) -> bool {
    Capabilities::read([pattern]).unwrap().cover(Kind::new(kind))
}

/// Tables shared with participants in other languages: pattern, kind, and the expected answer.
const GOLDEN: &str = include_str!("../../tests/golden.json");

#[test]
fn mx_11_the_golden_table_holds() {
    let golden: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    let rows: Vec<(String, String, bool)> = serde_json::from_value(golden["capabilities"].clone()).unwrap();
    assert!(rows.len() > 50);
    assert_eq!(rows.iter().find(|(pattern, kind, covered)| covers(pattern, kind) != *covered), None);
}

#[test]
fn mx_11_the_examples_of_the_specification_hold() {
    let call = "mcp/request:tools/call";
    for pattern in ["mcp/*", "mcp/request:*", "mcp/request:tools/*", call] {
        assert!(covers(pattern, call), "{pattern}");
    }
    for pattern in ["mcp/*", "mcp/response:*", "mcp/response:tools/*"] {
        assert!(covers(pattern, "mcp/response:tools/call"), "{pattern}");
    }
    let proposes = Capabilities::read(["mcp/proposal:*", "mcp/response:*", "chat"]).unwrap();
    assert!(proposes.cover(Kind::new("mcp/proposal:tools/call:rm")) && !proposes.cover(Kind::new("mcp/request:tools/call:rm")));
    let reads = Capabilities::read(["mcp/request:resources/read", "mcp/request:*/list", "mcp/response:*", "chat"]).unwrap();
    assert!(reads.cover(Kind::new("mcp/request:prompts/list")) && !reads.cover(Kind::new("mcp/request:tools/call:ls")));
}

#[test]
fn mx_11_a_list_pattern_covers_no_uri_ending_in_list() {
    let lists = Capabilities::read(["mcp/request:*/list"]).unwrap();
    for kind in [
        "mcp/request:resources/read:file:///x/list",
        "mcp/request:tools/call:evil/list",
        "mcp/request:resources/read:/list",
        "mcp/request:resources/read::/list",
        "mcp/proposal:tools/list",
    ] {
        assert!(!lists.cover(Kind::new(kind)), "{kind}");
    }
}

#[test]
fn capabilities_keep_their_order_and_count_once() {
    let texts = |set: &Capabilities| set.patterns().iter().map(|p| p.as_str().to_owned()).collect::<Vec<_>>();
    let set = Capabilities::read(["mcp/proposal:*", "chat", "chat"]).unwrap();
    assert_eq!(texts(&set), ["mcp/proposal:*", "chat"]);
    let tools = Pattern::new("mcp/request:tools/*").unwrap();
    let chat = Pattern::new("chat").unwrap();
    let more = set.with(&[tools.clone(), chat.clone()], &[]).unwrap();
    assert_eq!(texts(&more), ["mcp/proposal:*", "chat", "mcp/request:tools/*"]);
    assert_eq!(texts(&more.with(std::slice::from_ref(&chat), &[chat.clone(), tools]).unwrap()), ["mcp/proposal:*", "chat"]);
}

#[test]
fn void_and_excessive_patterns_are_refused() {
    for reserved in ["system/*", "system/welcome", "presence", "system:*"] {
        assert!(matches!(Pattern::new(reserved), Err(PatternError::Reserved(_))), "{reserved}");
    }
    for bad in ["", "chat\n"] {
        assert!(matches!(Pattern::new(bad), Err(PatternError::Illegible(_))), "{bad:?}");
    }
    assert_eq!(Pattern::new(&"*a".repeat(9)), Err(PatternError::TooLarge));
    assert_eq!(Pattern::new(&"a".repeat(1025)), Err(PatternError::TooLarge));
    let many: Vec<String> = (0..257).map(|n| format!("x/{n}")).collect();
    assert_eq!(Capabilities::read(many.iter().map(String::as_str)), Err(PatternError::TooMany));
}

/// The rules of the module's head, one character at a time.
fn slow_covers(pattern: &str, kind: &str) -> bool {
    fn fits(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*'] => true,
            ['*', rest @ ..] => {
                let most = text.iter().take_while(|c| **c != ':').count();
                (0..=most).any(|taken| fits(rest, &text[taken..]))
            }
            [wanted, rest @ ..] => text.first() == Some(wanted) && fits(rest, &text[1..]),
        }
    }
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    let parts = |text: &str| text.splitn(3, ':').map(str::to_owned).collect::<Vec<_>>();
    if ["system", "presence"].contains(&kind.split([':', '/']).next().unwrap_or_default()) {
        return false;
    }
    let (wanted, given) = (parts(pattern), parts(kind));
    let ignores_context = (wanted.len() == 2 && !pattern.ends_with('*')) || (wanted.len() == 3 && wanted[2] == "*");
    if ignores_context && given.len() >= 2 {
        return wanted.iter().zip(&given).take(2).all(|(wanted, given)| fits_within(&chars(wanted), &chars(given), fits));
    }
    fits(&chars(pattern), &chars(kind))
}

/// A part that is not the end of a pattern: its last star takes no more than the part.
fn fits_within(wanted: &[char], given: &[char], fits: fn(&[char], &[char]) -> bool) -> bool {
    fits(&[wanted, &[':']].concat(), &[given, &[':']].concat())
}

fn piece() -> impl Strategy<Value = String> {
    vec(select(vec!["a", "b", "ab", "*", ":", "/", "list", "/list", "mcp/request:", "system", "presence", "ä"]), 0..9)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn mx_11_a_compiled_pattern_matches_what_the_rules_say(pattern in piece(), kind in piece()) {
        if let Ok(set) = Capabilities::read([pattern.as_str()]) {
            prop_assert_eq!(set.cover(Kind::new(&kind)), slow_covers(&pattern, &kind), "{} {}", pattern, kind);
        }
    }

    #[test]
    fn a_set_covers_what_one_of_its_patterns_covers(patterns in vec(piece(), 0..6), kind in piece()) {
        let known: Vec<Pattern> = patterns.iter().filter_map(|text| Pattern::new(text).ok()).collect();
        let set = Capabilities::new(known.clone()).unwrap();
        let one = known.iter().any(|pattern| slow_covers(pattern.as_str(), &kind));
        prop_assert_eq!(set.cover(Kind::new(&kind)), one);
    }
}
