//! Revocation of participants, and of makers of tokens for rooms. Puts nobody out.

use toml::Value;

use super::resolved::{Participant, Rooms, TokenKey};
use crate::revoked::{RefusedFile, at, is_hash, is_secret, lists};

/// Keeps credentials with the same entry in the refused file.
pub(super) fn keep(rooms: &mut Rooms, refused: &RefusedFile<'_>) {
    match refused {
        RefusedFile::Table(file) => keep_entries(rooms, file),
        RefusedFile::Text(text) => {
            let is_kept =
                |one: &Participant| if let TokenKey::Sha256(sha256) = &one.token { RefusedFile::mentions(text, sha256) } else { true };
            rooms.participants.retain(|_, one| is_kept(one));
        }
    }
}

fn keep_entries(rooms: &mut Rooms, file: &Value) {
    let is_kept = |id: &str, one: &Participant| at(file, &["participant", id]).is_some_and(|entry| is_participant(one, entry));
    rooms.participants.retain(|id, one| is_kept(id.as_str(), one));
    rooms.issuers.retain(|name| lists(at(file, &["rooms", "issuers"]), name));
    rooms.secret = rooms.secret.take().filter(|secret| is_secret(secret, at(file, &["rooms", "secret"])));
}

fn is_participant(one: &Participant, entry: &Value) -> bool {
    match &one.token {
        TokenKey::Secret(secret) => is_secret(secret, entry.get("token")),
        TokenKey::Sha256(sha256) => is_hash(sha256, entry),
    }
}
