//! Gateways that a request has passed, and the limit of hops. Reads no token: evidence comes through a port.

use http::request::Parts;

/// Evidence of the gateways before a request.
pub trait Ancestry: Send + Sync {
    /// Names the gateways that have translated the request before, the first one first. The error says why no evidence counts.
    fn gateways(&self, parts: &Parts) -> Result<Vec<String>, String>;
}

/// Port without evidence: the claims in the message count alone.
pub struct ClaimsAlone;

impl Ancestry for ClaimsAlone {
    fn gateways(&self, _: &Parts) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
}

/// Reasons to pass a request no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopRefusal {
    /// This gateway has translated the request before.
    Loop,
    TooMany(u64),
}

/// Holds a request to the limit, with this gateway as the next hop. Claims and evidence both count: a sender may make the limit stricter.
pub fn check(claimed: &[String], shown: &[String], own: &str, most: u64) -> Result<(), HopRefusal> {
    if claimed.iter().chain(shown).any(|gateway| gateway == own) {
        return Err(HopRefusal::Loop);
    }
    let hops = claimed.len().max(shown.len()).saturating_add(1);
    if u64::try_from(hops).unwrap_or(u64::MAX) > most { Err(HopRefusal::TooMany(most)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ae_14_hops_are_limited_and_no_gateway_stands_twice() {
        let gateways = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let two = gateways(&["a", "b"]);
        assert_eq!(check(&two, &[], "own", 3), Ok(()));
        assert_eq!(check(&[], &two, "own", 2), Err(HopRefusal::TooMany(2)), "evidence counts without a claim");
        assert_eq!(check(&two, &gateways(&["a"]), "own", 2), Err(HopRefusal::TooMany(2)), "and a claim without evidence");
        assert_eq!(check(&gateways(&["own"]), &[], "own", 9), Err(HopRefusal::Loop));
        assert_eq!(check(&[], &gateways(&["a", "own"]), "own", 9), Err(HopRefusal::Loop));
    }
}
