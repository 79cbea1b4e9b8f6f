//! Names of callers in roles of a device: `KIND:NAME`, or a bare name. Does not know who calls.

use banyan_model::PrincipalKind;
use config::Flaw;
use config::file::At;
use config::reading::FileReading;
use config::resolved::Config;

/// Kinds of callers with names of their own choice: named together with the kind, or not at all.
const APART: [PrincipalKind; 2] = [PrincipalKind::Participant, PrincipalKind::Parent];
/// Beginnings of the names in certificates.
const CERTIFIED: [&str; 2] = ["dns:", "spiffe://"];

/// Name in roles and of owners: the kind before the name. The gate's record has `parent HOST` for `parent:HOST`.
pub fn qualified(kind: PrincipalKind, name: &str) -> String {
    format!("{}:{}", kind.as_str(), bare(kind, name))
}

fn bare(kind: PrincipalKind, name: &str) -> &str {
    name.strip_prefix("parent ").filter(|_| kind == PrincipalKind::Parent).unwrap_or(name)
}

/// The kind and the rest of `KIND:NAME`; `None` for a bare name.
fn split(pattern: &str) -> Option<(PrincipalKind, &str)> {
    let (word, rest) = pattern.split_once(':')?;
    Some((PrincipalKind::parse(word)?, rest))
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |begin| name.starts_with(begin))
}

/// The kind that alone has names of this form.
fn kind_of_form(pattern: &str) -> Option<PrincipalKind> {
    if CERTIFIED.iter().any(|begin| pattern.starts_with(begin)) {
        return Some(PrincipalKind::Certificate);
    }
    (pattern == "local").then_some(PrincipalKind::Local)
}

/// Does a name in a role mean the caller? A bare name means no participant and no gate above, and in the form of a certificate's name nobody
/// without a certificate.
pub(crate) fn means(pattern: &str, kind: PrincipalKind, name: &str) -> bool {
    match split(pattern) {
        Some((only, rest)) => only == kind && matches(rest, bare(kind, name)),
        None => !APART.contains(&kind) && matches(pattern, name) && kind_of_form(pattern).is_none_or(|only| only == kind),
    }
}

/// Can no caller have the name?
pub(crate) fn names_nobody(pattern: &str) -> bool {
    let (kind, rest) = split(pattern).map_or((None, pattern), |(kind, rest)| (Some(kind), rest));
    let begins = |begin: &str| rest.starts_with(begin) || rest.strip_suffix('*').is_some_and(|stem| begin.starts_with(stem));
    match kind {
        _ if rest.is_empty() => true,
        None => rest.starts_with("parent "),
        Some(PrincipalKind::Parent) => rest.starts_with("parent "),
        Some(PrincipalKind::Certificate) => !CERTIFIED.iter().any(|begin| begins(begin)),
        Some(PrincipalKind::Issuer) => !rest.contains('@') && !rest.ends_with('*'),
        Some(PrincipalKind::Local | PrincipalKind::Participant | PrincipalKind::Token) => false,
    }
}

/// Refuses a bare name that could be meant for a token and for a caller of another kind.
pub(crate) fn check_tokens<'a>(
    device: &At<String>,
    patterns: impl Iterator<Item = &'a String>,
    config: &Config,
    reading: &mut FileReading<'_>,
) {
    let issuers: Vec<&str> = config.trust.issuers.iter().map(|issuer| &*issuer.name).collect();
    for pattern in patterns {
        let mut names = config.tokens.iter().map(|token| &*token.name).filter(|name| matches(pattern, name));
        let Some((name, other)) = names.find_map(|name| Some((name, other_kind(pattern, name, &issuers)?))) else { continue };
        let flaw = Flaw::new(device.span(), format!("`{pattern}` in `callers` of a role is no name of the token `{name}` alone"));
        let other = other.as_str();
        reading.refuse(flaw.help(format!("write `token:{name}` for the token, and `{other}:NAME` for a caller of the other kind")));
    }
}

/// Kind that a name in a role means beside the token `name`, or instead of the token.
fn other_kind(pattern: &str, name: &str, issuers: &[&str]) -> Option<PrincipalKind> {
    if let Some((kind, _)) = split(pattern) {
        return Some(kind);
    }
    let is_issued = pattern == name && name.rsplit_once('@').is_some_and(|(_, issuer)| issuers.contains(&issuer));
    kind_of_form(pattern).or(is_issued.then_some(PrincipalKind::Issuer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nm_12_a_role_means_one_kind_of_a_name() {
        use PrincipalKind::{Certificate, Issuer, Local, Parent, Participant, Token};
        for (pattern, meant) in [
            ("ada", vec![(Token, "ada")]),
            ("token:ada", vec![(Token, "ada")]),
            ("token:*", vec![(Token, "ada"), (Token, "dns:ada")]),
            ("dns:ada", vec![(Certificate, "dns:ada")]),
            ("dns:*", vec![(Certificate, "dns:ada")]),
            ("certificate:dns:ada", vec![(Certificate, "dns:ada")]),
            ("token:dns:ada", vec![(Token, "dns:ada")]),
            ("ada@login", vec![(Issuer, "ada@login")]),
            ("issuer:*", vec![(Issuer, "ada@login")]),
            ("parent:ada", vec![(Parent, "parent ada")]),
            ("participant:ada", vec![(Participant, "ada")]),
            ("local", vec![(Local, "local")]),
            ("*", vec![(Token, "ada"), (Token, "dns:ada"), (Certificate, "dns:ada"), (Issuer, "ada@login"), (Local, "local")]),
        ] {
            let everybody = [
                (Token, "ada"),
                (Token, "dns:ada"),
                (Certificate, "dns:ada"),
                (Issuer, "ada@login"),
                (Local, "local"),
                (Parent, "parent ada"),
                (Participant, "ada"),
                (Participant, "dns:ada"),
            ];
            let found: Vec<_> = everybody.into_iter().filter(|(kind, name)| means(pattern, *kind, name)).collect();
            assert_eq!(found, meant, "{pattern}");
        }
    }
}
