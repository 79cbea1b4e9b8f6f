//! Differences of certificates and signed tokens. Reads no key.

use crate::diff::{self, Change, Kind, differing};
use crate::resolved::{AuthorityKeys, Config, Issuer, Tls, Trust};

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    let (old, new) = (&old.trust, &new.trust);
    let mut changes = Vec::new();
    // Other files are taken at once; a port that speaks TLS does not begin to speak without, nor the other way round.
    let tls = diff::optional("tls", old.tls.as_ref(), new.tls.as_ref(), tls_fields);
    changes.extend(tls.map(|tls| if matches!(tls.kind, Kind::Changed(_)) { tls } else { tls.at_restart() }));
    changes.extend(diff::value("resource", old.resource != new.resource));
    changes.extend(diff::named("issuer", issuers(old), issuers(new), issuer_fields));
    changes.extend(diff::named("authority", authorities(old), authorities(new), authority_fields));
    changes
}

fn issuers(trust: &Trust) -> impl Iterator<Item = (&str, &Issuer)> {
    trust.issuers.iter().map(|issuer| (&*issuer.name, issuer))
}

fn authorities(trust: &Trust) -> impl Iterator<Item = (&str, &AuthorityKeys)> {
    trust.authorities.iter().map(|keys| (&*keys.name, keys))
}

fn tls_fields(old: &Tls, new: &Tls) -> Vec<&'static str> {
    let Tls { certificate, key, client_ca, required } = old;
    differing([
        ("certificate", *certificate != new.certificate),
        ("key", *key != new.key),
        ("client_ca", *client_ca != new.client_ca),
        ("clients", *required != new.required),
    ])
}

fn issuer_fields(old: &Issuer, new: &Issuer) -> Vec<&'static str> {
    let Issuer { name: _, issuer, keys, scopes, profile } = old;
    differing([
        ("issuer", *issuer != new.issuer),
        ("keys", *keys != new.keys),
        ("scopes", *scopes != new.scopes),
        ("profile", *profile != new.profile),
    ])
}

fn authority_fields(old: &AuthorityKeys, new: &AuthorityKeys) -> Vec<&'static str> {
    let AuthorityKeys { name: _, keys, names } = old;
    differing([("keys", *keys != new.keys), ("names", *names != new.names)])
}
