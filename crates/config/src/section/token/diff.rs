//! Differences of bearer tokens, by holder. Shows no hash.

use crate::diff::{self, Change, differing};
use crate::resolved::{Config, Token};

/// Lists the differences of the section.
pub(super) fn changes(old: &Config, new: &Config) -> Vec<Change> {
    diff::named("token", by_name(old), by_name(new), token_fields)
}

fn by_name(config: &Config) -> impl Iterator<Item = (&str, &Token)> {
    config.tokens.iter().map(|token| (&*token.name, token))
}

fn token_fields(old: &Token, new: &Token) -> Vec<&'static str> {
    let Token { name: _, sha256, profile, metrics } = old;
    differing([("sha256", *sha256 != new.sha256), ("profile", *profile != new.profile), ("metrics", *metrics != new.metrics)])
}
