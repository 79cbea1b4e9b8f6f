//! Definitions made to mislead a model, and plain ones. Findings of the offline analyzer of Cisco's scanner must be found here too, and so
//! must
//! cases beyond patterns over one text: names similar to another server's, mentions of another server's tools, invisible characters.
//! Findings of that scanner are kept beside each (`poisoned/scan.py`).

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use policy::pin::{Concern, Definition, Kind, Other, concerns};
    use serde_json::{Value, json};

    fn corpus() -> Value {
        serde_json::from_str(include_str!("poisoned/definitions.json")).unwrap()
    }

    /// Lists the concerns about a definition, in words.
    fn found(one: &Value, corpus: &Value) -> BTreeSet<&'static str> {
        let others = corpus["others"].as_array().unwrap().iter();
        let others = others.map(|o| Other { mount: o[0].as_str().unwrap(), tool: o[1].as_str().unwrap() }).collect();
        let raw = json!({"name": one["tool"], "description": one["text"]}).to_string();
        let definition = Definition::of(Kind::Tool, raw.as_bytes(), &[]);
        let is_hidden = |c: char| matches!(c, '\u{200b}' | '\u{202e}' | '\u{e0000}'..='\u{e007f}');
        let word = |concern: &Concern| match concern {
            Concern::Hidden => "hidden",
            Concern::Instructs(_) => "instructs",
            Concern::LooksLike(_) => "looks_like",
            Concern::Names(_) => "names",
            Concern::Runs(_) => "runs",
            Concern::Takes(_) => "takes",
        };
        concerns("x", one["tool"].as_str(), &definition, &others, is_hidden).iter().map(word).collect()
    }

    fn each<'a>(corpus: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
        corpus[name].as_array().unwrap().iter()
    }

    #[test]
    fn what_a_scanner_by_patterns_finds_is_found_and_so_is_what_it_can_not_see() {
        let corpus = corpus();
        let (mut rules, mut unseen): (BTreeMap<&str, usize>, usize) = Default::default();
        for one in each(&corpus, "poisoned") {
            let found = found(one, &corpus);
            for wanted in each(one, "wanted") {
                assert!(found.contains(wanted.as_str().unwrap()), "{one}: {found:?}");
            }
            let by_scanner: Vec<&str> = each(one, "scanner").map(|rule| rule.as_str().unwrap()).collect();
            unseen += usize::from(by_scanner.is_empty());
            by_scanner.into_iter().for_each(|rule| *rules.entry(rule).or_default() += 1);
        }
        assert!(unseen >= 10, "{unseen}");
        assert!(rules.len() == 10 && rules.values().all(|definitions| *definitions >= 3), "each of its rules has a say here: {rules:?}");
    }

    #[test]
    fn plain_definitions_give_no_concern() {
        let corpus = corpus();
        for one in each(&corpus, "plain") {
            assert!(found(one, &corpus).is_empty(), "{one}: {:?}", found(one, &corpus));
        }
    }
}
