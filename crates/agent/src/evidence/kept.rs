//! Tokens of callers, kept in memory for their next messages, and ids that were taken. Verifies none.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use audit::ect::EctFault;
use audit::ect::claims::EctClaims;
use audit::ect::compact::signed_part;
use audit::ect::replay::{EctMark, EctReplays, mark};
use banyan_model::Principal;

/// Most bytes of tokens of a caller, and those of all.
const BYTES_OF_CALLER: usize = 512 << 10;
const BYTES: usize = 16 << 20;
/// Most taken ids of all callers.
const IDS: usize = 1 << 17;
/// Bytes of a kept token beside its text: claims, and places in lists.
const BESIDE: usize = 512;

/// A token with its claims.
#[derive(Clone, Debug)]
pub struct KeptToken {
    pub claims: Arc<EctClaims>,
    pub text: Arc<str>,
}

impl KeptToken {
    /// Makes a token from verified claims.
    pub fn new(claims: EctClaims, text: &str) -> Self {
        Self { claims: Arc::new(claims), text: text.into() }
    }

    /// Checks for the same token, by the text that was signed: one text may have two signatures that hold.
    pub fn is(&self, text: &str) -> bool {
        signed_part(&self.text) == signed_part(text)
    }

    fn size(&self) -> usize {
        // The claims hold about as much as the text that they were read from.
        2 * self.text.len() + BESIDE
    }
}

/// Tokens and taken ids of all callers.
#[derive(Debug)]
pub struct KeptTokens {
    callers: HashMap<Principal, CallerTokens>,
    bytes: usize,
    /// Kept tokens by issuer and id, each with the number of callers that have it.
    known: HashMap<EctMark, (KeptToken, usize)>,
    taken: EctReplays,
}

/// Tokens of one caller.
#[derive(Debug, Default)]
struct CallerTokens {
    tokens: BTreeMap<String, KeptToken>,
    /// Ids, the oldest first.
    order: VecDeque<String>,
    bytes: usize,
}

impl Default for KeptTokens {
    fn default() -> Self {
        Self { callers: HashMap::new(), bytes: 0, known: HashMap::new(), taken: EctReplays::new(IDS) }
    }
}

impl KeptTokens {
    /// Finds a token of `caller`. Tokens of others stay unknown.
    pub fn find(&self, caller: &Principal, id: &str) -> Option<&KeptToken> {
        self.callers.get(caller)?.tokens.get(id)
    }

    /// Checks for another token under the id of this one: among those of `caller`, or of the same issuer among those of all.
    pub fn has_other(&self, caller: &Principal, token: &KeptToken) -> bool {
        let own = self.find(caller, &token.claims.id);
        let known = self.known.get(&mark(&token.claims)).map(|(known, _)| known);
        own.into_iter().chain(known).any(|known| !known.is(&token.text))
    }

    /// Takes the ids of tokens, each once, whoever sends them: all, or none.
    ///
    /// # Errors
    /// When an id was taken before, or the caller has its share.
    pub fn admit_once(&mut self, caller: &Principal, tokens: &[EctClaims], now: u64) -> Result<(), EctFault> {
        self.taken.admit(&caller.to_string(), tokens, now)
    }

    /// Keeps a token for `caller`, and tells if nobody had it before. The oldest of the same caller gives way, or where all have too much,
    /// that of the largest.
    pub fn keep(&mut self, caller: &Principal, token: KeptToken) -> bool {
        if self.find(caller, &token.claims.id).is_some() {
            return false;
        }
        let own = self.callers.entry(caller.clone()).or_default();
        let (id, size) = (token.claims.id.clone(), token.size());
        let (_, count) = self.known.entry(mark(&token.claims)).or_insert_with(|| (token.clone(), 0));
        *count += 1;
        let is_new = *count == 1;
        own.order.push_back(id.clone());
        own.tokens.insert(id, token);
        own.bytes += size;
        self.bytes += size;
        while self.callers.get(caller).is_some_and(|own| own.bytes > BYTES_OF_CALLER) {
            self.drop_oldest(caller);
        }
        while self.bytes > BYTES {
            let Some(largest) = self.callers.iter().max_by_key(|(_, own)| own.bytes).map(|(caller, _)| caller.clone()) else { break };
            self.drop_oldest(&largest);
        }
        is_new
    }

    /// Drops the oldest token of a caller, and the caller with the last one.
    fn drop_oldest(&mut self, caller: &Principal) {
        let Some(own) = self.callers.get_mut(caller) else { return };
        if let Some(oldest) = own.order.pop_front().and_then(|id| own.tokens.remove(&id)) {
            own.bytes -= oldest.size();
            self.bytes -= oldest.size();
            let place = mark(&oldest.claims);
            match self.known.get_mut(&place) {
                Some((_, count)) if *count > 1 => *count -= 1,
                Some(_) | None => drop(self.known.remove(&place)),
            }
        }
        if own.order.is_empty() {
            self.callers.remove(caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use audit::ect::EctDraft;
    use banyan_model::PrincipalKind;

    use super::*;

    const NOW: u64 = 1_772_064_150;

    fn claims(number: usize) -> EctClaims {
        EctClaims {
            draft: EctDraft::Draft01,
            id: number.to_string(),
            issuer: None,
            audience: Vec::new(),
            issued: NOW,
            expires: NOW + 300,
            action: String::new(),
            workflow: None,
            parents: Vec::new(),
            input: None,
            output: None,
            extension: None,
        }
    }

    fn named(name: &str) -> Principal {
        Principal::new(PrincipalKind::Token, name)
    }

    fn is_summed(kept: &KeptTokens) -> bool {
        let own = |own: &CallerTokens| {
            own.tokens.values().map(KeptToken::size).sum::<usize>() == own.bytes && own.order.len() == own.tokens.len()
        };
        let counts = kept.known.values().map(|(_, count)| count).sum::<usize>();
        counts == kept.callers.values().map(|own| own.tokens.len()).sum::<usize>()
            && kept.callers.values().all(own)
            && kept.callers.values().map(|own| own.bytes).sum::<usize>() == kept.bytes
    }

    #[test]
    fn an_id_is_taken_once_by_whomever() {
        let mut kept = KeptTokens::default();
        assert_eq!(kept.admit_once(&named("alice"), &[claims(1)], NOW), Ok(()));
        for caller in ["alice", "bob"] {
            assert_eq!(kept.admit_once(&named(caller), &[claims(1)], NOW), Err(EctFault::Replayed("1".into())), "{caller}");
        }
        assert_eq!(kept.admit_once(&named("bob"), &[claims(2)], NOW), Ok(()));
    }

    #[test]
    fn callers_of_two_kinds_share_no_token() {
        let mut kept = KeptTokens::default();
        kept.keep(&named("alice"), KeptToken::new(claims(1), "a.b.c"));
        assert!(kept.find(&Principal::new(PrincipalKind::Certificate, "alice"), "1").is_none());
    }

    #[test]
    fn an_id_of_an_issuer_has_one_text_everywhere() {
        let mut kept = KeptTokens::default();
        let token = |text: &str| KeptToken::new(claims(1), text);
        assert!(kept.keep(&named("alice"), token("a.b.c")) && !kept.keep(&named("alice"), token("a.b.c")));
        for caller in ["alice", "bob"].map(named) {
            assert!(kept.has_other(&caller, &token("a.x.c")), "{caller}");
            assert!(!kept.has_other(&caller, &token("a.b.d")), "{caller}: the twin of a signature");
        }
        let of_other = EctClaims { issuer: Some("other".into()), ..claims(1) };
        assert!(!kept.has_other(&named("bob"), &KeptToken::new(of_other.clone(), "a.x.c")));
        assert!(kept.has_other(&named("alice"), &KeptToken::new(of_other, "a.x.c")));
    }

    #[test]
    fn ids_of_a_caller_and_of_all_are_bounded() {
        let mut kept = KeptTokens::default();
        let mut take = |caller: &str, number, now| kept.admit_once(&named(caller), &[claims(number)], now);
        let of_one = (0..).take_while(|number| take("greedy", *number, NOW).is_ok()).count();
        assert!(of_one > IDS / 16 && of_one < IDS / 8, "{of_one}");
        let next = (IDS..2 * IDS).find(|number| take(&(number % 5_000).to_string(), *number, NOW).is_err());
        assert!(next.is_some_and(|next| next - IDS + of_one <= IDS), "{next:?}");
        assert!(matches!(take("greedy", 2 * IDS, NOW), Err(EctFault::Crowded(1..=900))));
        assert_eq!(take("greedy", 2 * IDS, NOW + 1_000), Ok(()), "expired ids make room");
    }

    #[test]
    fn tokens_of_a_caller_give_way_by_age() {
        let mut kept = KeptTokens::default();
        let text = "x".repeat(4096);
        kept.keep(&named("bob"), KeptToken::new(claims(0), &text));
        for number in 0..1000 {
            kept.keep(&named("alice"), KeptToken::new(claims(number), &text));
        }
        assert!(is_summed(&kept) && kept.callers[&named("alice")].bytes <= BYTES_OF_CALLER);
        assert!(
            kept.find(&named("alice"), "999").is_some()
                && kept.find(&named("alice"), "0").is_none()
                && kept.find(&named("bob"), "0").is_some()
        );
        assert!(kept.find(&named("bob"), "999").is_none(), "tokens of others stay unknown");
    }

    #[test]
    fn tokens_of_all_callers_have_a_bound() {
        let mut kept = KeptTokens::default();
        let text = "x".repeat(16 << 10);
        for number in 0..2000 {
            kept.keep(&named(&(number % 100).to_string()), KeptToken::new(claims(number), &text));
        }
        assert!(is_summed(&kept) && kept.bytes <= BYTES && kept.bytes > BYTES / 2);
    }
}
