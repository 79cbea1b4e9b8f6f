//! Licence expressions (SPDX, with the old `/` for OR), evaluated against a list. Knows no licence by itself.

use std::collections::BTreeSet;

/// Tells if the licences on `list` suffice for `expression`.
pub(crate) fn allowed(expression: &str, list: &BTreeSet<&str>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let verdict = any(&words, &mut at, list);
    verdict && at == words.len()
}

fn any(words: &[&str], at: &mut usize, list: &BTreeSet<&str>) -> bool {
    let mut verdict = all(words, at, list);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        verdict |= all(words, at, list);
    }
    verdict
}

fn all(words: &[&str], at: &mut usize, list: &BTreeSet<&str>) -> bool {
    let mut verdict = one(words, at, list);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        verdict &= one(words, at, list);
    }
    verdict
}

fn one(words: &[&str], at: &mut usize, list: &BTreeSet<&str>) -> bool {
    let Some(&word) = words.get(*at) else {
        return false;
    };
    *at += 1;
    if word == "(" {
        let verdict = any(words, at, list);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return verdict && closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return list.contains(format!("{word} WITH {exception}").as_str());
    }
    list.contains(word)
}

#[test]
fn an_expression_is_evaluated_as_written() {
    let list = BTreeSet::from(["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"]);
    for good in ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "MIT AND (ISC OR GPL-3.0)", "Apache-2.0 WITH LLVM-exception"] {
        assert!(allowed(good, &list), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT MIT", "Apache-2.0", "none given", ""] {
        assert!(!allowed(bad, &list), "{bad}");
    }
}
