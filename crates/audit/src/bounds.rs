//! Greatest lengths of the parts of a record, so that any text of a caller fits into an entry, and an entry into a bundle. Lengths are
//! those in the line: a control character takes six bytes there. Longer text is cut, visibly. Knows nothing of the meaning of an entry.

use std::iter::once;

use crate::arguments::MAX_VALUE;
use crate::bundle::MAX_ENTRY;
use crate::record::{
    After, Arguments, Asked, Broke, Called, Changed, Decided, Ended, Gap, Intent, Outcome, Record, Refused, Registration, Started, Text,
};
use crate::shape::{LEFT_OUT, MAX_SHAPE};

/// Bytes of the longest facts that fit into an entry beside place, time and the hash of the entry before.
pub const MAX_FACTS: usize = MAX_ENTRY - 256;

/// Words chosen by a gate, ids made by a gate, versions and file names.
const WORD: usize = 256;
/// The id of a request; a longer id is recorded as a hash.
const REQUEST: usize = 384;
/// Names of people and programs.
const PERSON: usize = 1024;
/// Names that callers and servers choose.
const NAME: usize = 2048;
/// Reasons, in words for people.
const REASON: usize = 4096;
/// Bytes for all rules, or causes, named by one entry.
const RULES: usize = 8 << 10;
/// All lines of a change.
const LINES: usize = 48 << 10;

impl Record<'_> {
    /// Cuts every overlong text.
    pub fn fit(&mut self) {
        match self {
            Self::ApprovalAsked(facts) => facts.fit(),
            Self::ApprovalDecided(facts) => facts.fit(),
            Self::BrokeHere(Broke { cut: _, why }) => cut(why, REASON),
            Self::Called(Called { intent, outcome }) => {
                intent.fit();
                outcome.fit();
            }
            Self::Changed(Changed { lines, version, what }) => {
                cut_all(lines, REASON, LINES);
                [Some(what), version.as_mut()].into_iter().flatten().for_each(|text| cut(text, WORD));
            }
            Self::Ended(Ended { call, outcome }) => {
                cut(call, WORD);
                outcome.fit();
            }
            Self::Intended(intent) => intent.fit(),
            Self::Refused(Refused { code: _, count: _, intent, reason, rules }) => {
                intent.fit();
                cut(reason, WORD);
                cut_all(rules, WORD, RULES);
            }
            Self::Registration(facts) => facts.fit(),
            Self::Started(Started { after, node, version }) => {
                [node, version].into_iter().for_each(|text| cut(text, WORD));
                if let Some(After { chain, root: _, size: _, why }) = after {
                    cut(chain, WORD);
                    cut(why, REASON);
                }
            }
            Self::Gap(Gap { missing: _, since: _ }) | Self::Stopped | Self::Unknown { .. } => {}
        }
    }
}

impl Intent<'_> {
    /// Cuts every overlong text.
    pub fn fit(&mut self) {
        let Self { approval, arguments, began: _, call, decision, gated: _, method, mount, name, principal, request, trace } = self;
        if let Some(Arguments { hash: _, shape, value }) = arguments {
            // What is made by `ArgumentForms` is no longer.
            *shape = shape.filter(|raw| raw.0.len() <= MAX_SHAPE);
            *value = value.filter(|raw| raw.0.len() <= MAX_VALUE);
        }
        once(call).chain(approval).chain(decision).chain(mount).chain(trace).for_each(|text| cut(text, WORD));
        cut(method, PERSON);
        cut(name, NAME);
        cut(principal, PERSON);
        cut(request, REQUEST);
    }
}

impl Outcome<'_> {
    /// Cuts every overlong text.
    pub fn fit(&mut self) {
        let Self { bytes: _, code: _, ending, reason, took: _ } = self;
        once(ending).chain(reason).for_each(|text| cut(text, WORD));
    }
}

impl Asked<'_> {
    fn fit(&mut self) {
        let Self { approval, causes, challenge: _, expires: _, policy, principal, required: _, tool } = self;
        [approval, policy].into_iter().for_each(|text| cut(text, WORD));
        cut_all(causes, WORD, RULES);
        cut(principal, PERSON);
        cut(tool, NAME);
    }
}

impl Decided<'_> {
    fn fit(&mut self) {
        let Self { approval, by, challenge: _, decision, key, proof: _, reason, tool } = self;
        [approval, decision].into_iter().chain(key).for_each(|text| cut(text, WORD));
        by.iter_mut().for_each(|text| cut(text, PERSON));
        reason.iter_mut().for_each(|text| cut(text, REASON));
        cut(tool, NAME);
    }
}

impl Registration<'_> {
    fn fit(&mut self) {
        let Self { authority, count: _, principal, reason, segment, subserver, what } = self;
        once(principal).chain(authority).for_each(|text| cut(text, PERSON));
        reason.iter_mut().for_each(|text| cut(text, REASON));
        once(what).chain(segment).chain(subserver).for_each(|text| cut(text, WORD));
    }
}

/// The beginning of a text that takes at most `most` bytes in a line.
pub fn clip(text: &str, most: usize) -> &str {
    if text.len() * 6 <= most {
        return text;
    }
    let mut length = 0;
    let end = text.char_indices().find(|(_, c)| {
        length += match c {
            '\0'..='\u{1f}' => 6,
            '"' | '\\' => 2,
            c => c.len_utf8(),
        };
        length > most
    });
    end.map_or(text, |(at, _)| &text[..at])
}

fn cut(text: &mut Text<'_>, most: usize) {
    if clip(text, most).len() < text.len() {
        let kept = clip(text, most - LEFT_OUT.len());
        *text = Text::Owned(format!("{kept}{LEFT_OUT}"));
    }
}

/// Cuts each text, and leaves out texts beyond the room for all; the last text tells the number left out.
fn cut_all(texts: &mut Vec<Text<'_>>, each: usize, all: usize) {
    let mut length = WORD;
    let fits = |text: &mut Text<'_>| {
        cut(text, each);
        // Two quotes and a comma; a text may have six times its length.
        length += text.chars().map(|c| if c.is_ascii_control() { 6 } else { c.len_utf8() * 2 }).sum::<usize>() + 3;
        length <= all
    };
    let kept = texts.iter_mut().map(fits).take_while(|fits| *fits).count();
    let left_out = texts.len() - kept;
    if left_out > 0 {
        texts.truncate(kept);
        texts.push(Text::Owned(format!("{LEFT_OUT} and {left_out} more")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Chain;
    use crate::hash::Hash;
    use crate::record::{EVENTS, Raw};

    fn long() -> Text<'static> {
        "\u{1}".repeat(70_000).into()
    }

    fn some<T: From<Text<'static>>>() -> Option<T> {
        Some(long().into())
    }

    fn intent(value: &str) -> Intent<'_> {
        Intent {
            approval: some(),
            arguments: Some(Arguments { hash: Hash([0; 32]), shape: Some(Raw(&value[..MAX_SHAPE])), value: Some(Raw(value)) }),
            began: u64::MAX,
            call: long(),
            decision: some(),
            gated: true,
            method: long(),
            mount: some(),
            name: long(),
            principal: long(),
            request: long(),
            trace: some(),
        }
    }

    fn outcome() -> Outcome<'static> {
        Outcome { bytes: Some(u64::MAX), code: Some(i64::MIN), ending: long(), reason: some(), took: u64::MAX }
    }

    /// Records of each event, with every text longer than an entry and every number as long as it gets.
    fn all(value: &str) -> Vec<Record<'_>> {
        let (hash, many) = (Hash([0; 32]), || vec![long(); 100]);
        let after = After { chain: long(), root: Some(hash), size: u64::MAX, why: long() };
        vec![
            Record::ApprovalAsked(Asked {
                approval: long(),
                causes: many(),
                challenge: hash,
                expires: u64::MAX,
                policy: long(),
                principal: long(),
                required: u8::MAX,
                tool: long(),
            }),
            Record::ApprovalDecided(Decided {
                approval: long(),
                by: some(),
                challenge: hash,
                decision: long(),
                key: some(),
                proof: Some(hash),
                reason: some(),
                tool: long(),
            }),
            Record::BrokeHere(Broke { cut: u64::MAX, why: long() }),
            Record::Called(Called { intent: intent(value), outcome: outcome() }),
            Record::Changed(Changed { lines: many(), version: some(), what: long() }),
            Record::Ended(Ended { call: long(), outcome: outcome() }),
            Record::Gap(Gap { missing: u64::MAX, since: u64::MAX }),
            Record::Intended(intent(value)),
            Record::Refused(Refused { code: i64::MIN, count: Some(u64::MAX), intent: intent(value), reason: long(), rules: many() }),
            Record::Registration(Registration {
                authority: some(),
                count: Some(u64::MAX),
                principal: long(),
                reason: some(),
                segment: some(),
                subserver: some(),
                what: long(),
            }),
            Record::Started(Started { after: Some(after), node: long(), version: long() }),
            Record::Stopped,
        ]
    }

    #[test]
    fn h1_every_entry_fits_however_long_its_parts_are() {
        let digits = "7".repeat(MAX_VALUE);
        let events: Vec<_> = all(&digits)
            .into_iter()
            .map(|mut record| {
                record.fit();
                let (mut facts, mut line) = (Vec::new(), Vec::new());
                record.facts(&mut facts).unwrap();
                assert!(facts.len() <= MAX_FACTS, "{}: {}", record.event(), facts.len());
                Chain::new().append(u64::MAX, &record, &mut line).unwrap();
                record.known().unwrap()
            })
            .collect();
        assert_eq!(events, EVENTS, "one of each");
    }

    #[test]
    fn what_fits_stays_as_it_is_and_a_cut_shows() {
        let mut refused = Refused {
            code: -1,
            count: None,
            intent: Intent { name: "é\u{1}\"".repeat(300).into(), ..Intent::default() },
            reason: "unknown".into(),
            rules: (0..100).map(|rule| format!("rule {rule} {}", "x".repeat(100)).into()).collect(),
        };
        let before = refused.clone();
        let mut record = Record::Refused(refused.clone());
        record.fit();
        let Record::Refused(after) = record else { panic!() };
        assert_eq!((&after.reason, &after.rules[0]), (&before.reason, &before.rules[0]));
        let (kept, left_out) = (after.rules.len() - 1, after.rules.last().unwrap());
        assert!(kept > 10 && *left_out == format!("… and {} more", 100 - kept), "{left_out}");
        let cut = after.intent.name.strip_suffix('…').unwrap();
        assert!(before.intent.name.starts_with(cut) && serde_json::to_string(&after.intent.name).unwrap().len() <= NAME + 2);
        assert!(serde_json::to_string(cut).unwrap().len() > NAME - 16, "no more than has to be");
        refused.intent.fit();
        assert_eq!(refused.intent, after.intent);
    }
}
