//! `/-/audit…`: the record for the console and the command line, behind the admin token. Reads the files as anybody could. Does not verify
//! or change them.

use audit::entry::Entry;
use audit::record::Record;
use disk::journal::archive::{Archive, ArchiveError, ChainDir, FoundEntry};
use disk::journal::examine::{Evidence, examine};
use disk::journal::index::{Search, Summary};
use http::Response;
use http::request::Parts;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::Gateway;
use crate::admin::routes::json;
use crate::admin::rules::recalled;
use crate::admin::shapes::{AuditCheckpoint, AuditEntry, AuditFound, AuditProof, AuditStatus};
use call::judge::policy::DecisionRow;
use call::words::refusal::Refusal;
use door::port::query;
use door::reply::Payload;

/// Entries in an answer unless more are asked for.
const USUAL: u64 = 100;

pub(super) fn is_here(path: &str) -> bool {
    matches!(path, "/-/audit" | "/-/audit/entry" | "/-/audit/checkpoint" | "/-/audit/verify")
}

/// Answers a GET of the record, behind the owner's token.
pub(super) async fn answer(gateway: &Gateway, parts: &Parts) -> Result<Response<Payload>, Refusal> {
    let none = || Refusal::not_found("nothing is recorded: `[audit] enabled = false` stands in the configuration");
    let status = gateway.audit().ok_or_else(none)?;
    match parts.uri.path() {
        "/-/audit/entry" => {
            let chain = number(parts, "chain")?.and_then(|chain| u32::try_from(chain).ok());
            let seq = number(parts, "seq")?.ok_or_else(|| Refusal::failed("`seq` is wanted"))?;
            reading(status, move |archive, _| proof(archive, &archive.chain(chain)?, seq)).await
        }
        "/-/audit/checkpoint" => reading(status, checkpoint).await,
        "/-/audit/verify" => reading(status, |archive, _| examine(archive.dir(), &Evidence::default())).await,
        _ => {
            let search = Search {
                since: number(parts, "since")?,
                until: number(parts, "until")?,
                principal: query(parts, "principal"),
                route: query(parts, "route"),
                outcome: query(parts, "outcome"),
                event: query(parts, "event"),
                id: query(parts, "id"),
                trace: query(parts, "trace"),
                limit: number(parts, "limit")?.unwrap_or(USUAL),
            };
            reading(status, move |archive, _| Ok(AuditFound { entries: archive.search(&search)?.iter().map(shown).collect() })).await
        }
    }
}

/// Finds a forgotten decision in the record.
pub(super) async fn decision(gateway: &Gateway, id: String) -> Result<Option<DecisionRow>, Refusal> {
    let Some(dir) = gateway.audit().and_then(|status| status.directory) else { return Ok(None) };
    let config = gateway.config();
    let recalled = tokio::task::spawn_blocking(move || {
        let rules = config.policy.as_ref().map(|policy| &*policy.policies);
        recalled(&Archive::open(dir.as_ref())?, &id, rules)
    });
    recalled.await.map_err(|error| Refusal::failed(error.to_string()))?.map_err(unread)
}

/// Makes the row of an entry: the columns everybody asks for, and the whole line.
pub fn shown(found: &FoundEntry) -> AuditEntry {
    let line = RawValue::from_string(found.line.clone()).ok();
    let mut entry = AuditEntry { chain: found.chain, seq: found.seq, line, ..AuditEntry::default() };
    let Ok(read) = Entry::decode(found.line.as_bytes()) else { return entry };
    (entry.time, entry.event) = (read.time, read.record.event().to_owned());
    let Summary { call, approval, principal, route, outcome, trace, .. } = Summary::of_record(&read.record);
    entry = AuditEntry { call, approval, principal, route, outcome, trace, ..entry };
    entry.took_us = read.record.outcome().map(|outcome| outcome.took);
    if let Record::Refused(refused) = &read.record {
        entry.outcome = Some(format!("refused: {}", refused.reason));
        entry.count = refused.count;
    }
    if let Record::Registration(registration) = &read.record {
        entry.count = registration.count;
    }
    if let Record::Changed(changed) = &read.record {
        entry.changed = changed.lines.iter().map(ToString::to_string).collect();
    }
    entry
}

/// Makes the proof of an entry, as text and in parts.
pub fn proof(archive: &Archive, chain: &ChainDir, seq: u64) -> Result<AuditProof, ArchiveError> {
    let (found, standing) = archive.prove(chain, seq)?;
    let hashes = standing.hashes.iter().map(ToString::to_string).collect();
    Ok(AuditProof { entry: shown(&found), text: found.line, hashes, proof: standing.encode(), key: archive.key(chain)? })
}

fn checkpoint(archive: &Archive, status: &AuditStatus) -> Result<AuditCheckpoint, ArchiveError> {
    let chain = archive.chain(None)?;
    let checkpoint = archive.checkpoint(&chain)?;
    Ok(AuditCheckpoint { chain: chain.number, key: archive.key(&chain)?, checkpoint, status: status.clone() })
}

/// Reads files on a thread where nobody else waits.
async fn reading<T: Serialize + Send + 'static>(
    status: AuditStatus,
    read: impl FnOnce(&Archive, &AuditStatus) -> Result<T, ArchiveError> + Send + 'static,
) -> Result<Response<Payload>, Refusal> {
    let nothing = || Refusal::not_found("nothing was recorded yet: the record begins with the first call");
    let dir = status.directory.clone().ok_or_else(nothing)?;
    let read = move || Archive::open(dir.as_ref()).and_then(|archive| read(&archive, &status));
    let read = tokio::task::spawn_blocking(read).await.map_err(|error| Refusal::failed(error.to_string()))?;
    read.map(|value| json(&value)).map_err(unread)
}

/// Makes the refusal for an archive that could not be read.
pub(super) fn unread(error: ArchiveError) -> Refusal {
    match error {
        ArchiveError::NotFound(why) => Refusal::not_found(why),
        ArchiveError::Index(_) | ArchiveError::Io { .. } | ArchiveError::Unproved(_) => Refusal::failed(error.to_string()),
    }
}

fn number(parts: &Parts, name: &str) -> Result<Option<u64>, Refusal> {
    let wrong = |text: &str| Refusal::failed(format!("`{name}` is `{text}`, and a whole number is wanted"));
    query(parts, name).map(|text| text.parse().map_err(|_| wrong(&text))).transpose()
}
