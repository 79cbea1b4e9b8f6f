//! Index of entries by principal, route, time and outcome. Made from the files on the first search, and made again if missing, since the
//! files are the truth. Does not check the files.

use std::path::Path;

use audit::entry::Entry;
use audit::record::Record;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::archive::{Archive, ArchiveError, FoundEntry, read, segments};
use super::layout::{ChainDir, Segment};

pub use audit::record::EVENTS;

const NAME: &str = "index.db";
/// Version of the tables; an index of another version is made again.
const LAYOUT: i64 = 2;
/// Most entries given at once.
const MOST: u64 = 10_000;

/// Filter of a search. Absent fields match everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Search {
    /// Earliest time, in microseconds since 1970.
    pub since: Option<u64>,
    /// End of the time, excluded, in microseconds since 1970.
    pub until: Option<u64>,
    pub principal: Option<String>,
    /// `MOUNT`, `MOUNT.NAME`, or a prefix of either followed by `*`.
    pub route: Option<String>,
    pub outcome: Option<String>,
    /// Kind of entry.
    pub event: Option<String>,
    /// Id of a call, of an approval or of a decision.
    pub id: Option<String>,
    /// Trace of a call, over all gates on its way.
    pub trace: Option<String>,
    /// Most entries; the newest count.
    pub limit: u64,
}

impl Archive {
    /// Finds matching entries, the newest first.
    ///
    /// # Errors
    /// When the files or the index can't be used.
    pub fn search(&self, search: &Search) -> Result<Vec<FoundEntry>, ArchiveError> {
        let mut index = Index::open(&self.dir)?;
        for chain in self.chains()? {
            index.catch_up(&chain)?;
        }
        let places = index.find(search)?;
        let mut found = Vec::with_capacity(places.len());
        let chains = self.chains()?;
        for place in places {
            let Some(chain) = chains.iter().find(|chain| chain.number == place.chain) else { continue };
            // The entry may be gone since it was indexed.
            if let Some(line) = line_at(chain, &place) {
                found.push(FoundEntry { chain: place.chain, seq: place.seq, line });
            }
        }
        Ok(found)
    }
}

struct Place {
    chain: u32,
    seq: u64,
    segment: u64,
    at: u64,
    bytes: u64,
}

fn line_at(chain: &ChainDir, place: &Place) -> Option<String> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(chain.segment(place.segment)).ok()?;
    let mut line = vec![0; usize::try_from(place.bytes).ok()?];
    file.read_exact_at(&mut line, place.at).ok()?;
    String::from_utf8(line).ok()
}

struct Index(Connection);

impl From<rusqlite::Error> for ArchiveError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error.to_string())
    }
}

/// Searchable parts of an entry, shown first.
#[derive(Default)]
pub struct Summary {
    pub call: Option<String>,
    pub approval: Option<String>,
    pub decision: Option<String>,
    pub principal: Option<String>,
    pub route: Option<String>,
    pub outcome: Option<String>,
    pub trace: Option<String>,
}

impl Index {
    /// Opens the index in the directory of the record, or in memory where the directory is not writable.
    fn open(dir: &Path) -> Result<Self, ArchiveError> {
        let path = dir.join(NAME);
        let opened = Self::at(Connection::open(&path)).or_else(|_| {
            _ = std::fs::remove_file(&path);
            Self::at(Connection::open(&path))
        });
        opened.or_else(|_| Self::at(Connection::open_in_memory()))
    }

    fn at(connection: rusqlite::Result<Connection>) -> Result<Self, ArchiveError> {
        let connection = connection?;
        connection.busy_timeout(std::time::Duration::from_secs(10))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "OFF")?;
        if connection.pragma_query_value(None, "user_version", |row| row.get::<_, i64>(0))? != LAYOUT {
            connection.execute_batch("DROP TABLE IF EXISTS entries; DROP TABLE IF EXISTS reached;")?;
            connection.pragma_update(None, "user_version", LAYOUT)?;
        }
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS entries (
                 chain INTEGER, seq INTEGER, time INTEGER, event TEXT, call TEXT, approval TEXT, decision TEXT, principal TEXT, route TEXT,
                 outcome TEXT, trace TEXT,
                 segment INTEGER, at INTEGER, bytes INTEGER, PRIMARY KEY (chain, seq)) WITHOUT ROWID;
             CREATE INDEX IF NOT EXISTS by_decision ON entries (decision) WHERE decision IS NOT NULL;
             CREATE INDEX IF NOT EXISTS by_time ON entries (time);
             CREATE INDEX IF NOT EXISTS by_call ON entries (call) WHERE call IS NOT NULL;
             CREATE INDEX IF NOT EXISTS by_approval ON entries (approval) WHERE approval IS NOT NULL;
             CREATE INDEX IF NOT EXISTS by_trace ON entries (trace) WHERE trace IS NOT NULL;
             CREATE TABLE IF NOT EXISTS reached (chain INTEGER PRIMARY KEY, segment INTEGER, at INTEGER);",
        )?;
        Ok(Self(connection))
    }

    /// Indexes entries written since the last search.
    fn catch_up(&mut self, chain: &ChainDir) -> Result<(), ArchiveError> {
        let segments = segments(chain)?;
        let transaction = self.0.transaction()?;
        let reached = transaction
            .query_row("SELECT segment, at FROM reached WHERE chain = ?1", [chain.number], |row| {
                Ok((row.get::<_, u64>(0)?, row.get::<_, u64>(1)?))
            })
            .optional()?;
        // Lines cut or put back differ from those indexed, so the file is read again.
        let is_sound = reached.is_none_or(|(first, at)| segments.iter().all(|s| s.first != first || s.bytes >= at));
        let (from, mut at) = reached.filter(|_| is_sound).unwrap_or_default();
        if !is_sound {
            transaction.execute("DELETE FROM entries WHERE chain = ?1", [chain.number])?;
        }
        let oldest = segments.first().map_or(0, |s| s.first);
        transaction.execute("DELETE FROM entries WHERE chain = ?1 AND seq < ?2", params![chain.number, oldest])?;
        for segment in segments.iter().filter(|s| s.first >= from) {
            let start = if segment.first == from { at } else { 0 };
            at = take_in(&transaction, chain.number, segment, start)?;
            transaction.execute(
                "INSERT OR REPLACE INTO reached (chain, segment, at) VALUES (?1, ?2, ?3)",
                params![chain.number, segment.first, at],
            )?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn find(&self, search: &Search) -> Result<Vec<Place>, ArchiveError> {
        let mut wanted = vec!["1"];
        let mut values: Vec<Value> = Vec::new();
        let mut and = |sql: &'static str, value: Option<Value>| {
            if let Some(value) = value {
                wanted.push(sql);
                values.push(value);
            }
        };
        let text = |text: &Option<String>| text.clone().map(Value::Text);
        let time = |time: Option<u64>| time.map(|t| Value::Integer(i64::try_from(t).unwrap_or(i64::MAX)));
        and("time >= ?", time(search.since));
        and("time < ?", time(search.until));
        and("principal = ?", text(&search.principal));
        and("outcome = ?", text(&search.outcome));
        and("event = ?", text(&search.event));
        let route = search.route.as_ref().map(|route| match route.strip_suffix('*') {
            Some(start) => format!("{}*", escaped(start)),
            None => escaped(route),
        });
        and("(route GLOB ?)", route.map(Value::Text));
        // The end of a call does not name its trace, but its beginning does.
        and("call IN (SELECT call FROM entries WHERE trace = ?)", text(&search.trace));
        if let Some(id) = &search.id {
            wanted.push("(call = ? OR approval = ? OR decision = ?)");
            values.extend(std::iter::repeat_n(Value::Text(id.clone()), 3));
        }
        let limit = search.limit.clamp(1, MOST);
        let sql = format!(
            "SELECT chain, seq, segment, at, bytes FROM entries WHERE {} ORDER BY chain DESC, seq DESC LIMIT {limit}",
            wanted.join(" AND ")
        );
        let mut rows = self.0.prepare(&sql)?;
        let places = rows.query_map(rusqlite::params_from_iter(values), |row| {
            Ok(Place { chain: row.get(0)?, seq: row.get(1)?, segment: row.get(2)?, at: row.get(3)?, bytes: row.get(4)? })
        })?;
        Ok(places.collect::<Result<_, _>>()?)
    }
}

/// Escapes characters with a meaning in GLOB.
fn escaped(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '*' | '?' | '[') { format!("[{c}]") } else { c.to_string() }).collect()
}

/// Indexes whole lines from `start`, and returns the end of the last. Unreadable lines are skipped; `verify` tells of them.
fn take_in(transaction: &Transaction<'_>, chain: u32, segment: &Segment, start: u64) -> Result<u64, ArchiveError> {
    let content = read(segment)?;
    let mut at = start;
    let from = usize::try_from(start).unwrap_or(usize::MAX).min(content.len());
    let mut insert = transaction
        .prepare_cached("INSERT OR REPLACE INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)")?;
    let mut intent = transaction.prepare_cached("SELECT principal, route FROM entries WHERE call = ?1 AND route IS NOT NULL LIMIT 1")?;
    for line in content[from..].split_inclusive(|b| *b == b'\n').filter(|line| line.ends_with(b"\n")) {
        let bytes = line.len() as u64 - 1;
        if let Ok(entry) = Entry::decode(&line[..line.len() - 1]) {
            let mut known = Summary::of_record(&entry.record);
            if let (Record::Ended(_), Some(call)) = (&entry.record, &known.call) {
                let whose = intent.query_row([call], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
                (known.principal, known.route) = whose.unwrap_or_default();
            }
            let (event, seq, time) = (entry.record.event(), entry.seq, entry.time);
            let Summary { call, approval, decision, principal, route, outcome, trace } = known;
            insert.execute(params![
                chain,
                seq,
                time,
                event,
                call,
                approval,
                decision,
                principal,
                route,
                outcome,
                trace,
                segment.first,
                at,
                bytes
            ])?;
        }
        at += bytes + 1;
    }
    Ok(at)
}

impl Summary {
    /// Summarises a record for the index.
    pub fn of_record(record: &Record<'_>) -> Self {
        let text = |text: &str| Some(text.to_owned());
        let of_intent = |intent: &audit::record::Intent<'_>, outcome: Option<&str>| Self {
            call: text(&intent.call),
            approval: intent.approval.as_deref().and_then(text),
            decision: intent.decision.as_deref().and_then(text),
            principal: text(&intent.principal),
            route: Some(route(intent)),
            outcome: outcome.and_then(text),
            trace: intent.trace.as_deref().and_then(text),
        };
        match record {
            Record::Called(called) => of_intent(&called.intent, Some(&called.outcome.ending)),
            Record::Intended(intent) => of_intent(intent, None),
            Record::Refused(refused) => of_intent(&refused.intent, Some("refused")),
            Record::Ended(ended) => Self { call: text(&ended.call), outcome: text(&ended.outcome.ending), ..Self::default() },
            Record::ApprovalAsked(asked) => {
                Self { approval: text(&asked.approval), principal: text(&asked.principal), route: text(&asked.tool), ..Self::default() }
            }
            Record::ApprovalDecided(decided) => Self {
                approval: text(&decided.approval),
                principal: decided.by.as_deref().and_then(text),
                route: text(&decided.tool),
                outcome: text(&decided.decision),
                ..Self::default()
            },
            Record::Registration(registration) => Self {
                principal: text(&registration.principal),
                route: registration.segment.as_deref().and_then(text),
                outcome: text(&registration.what),
                ..Self::default()
            },
            Record::Changed(changed) => Self { outcome: text(&changed.what), ..Self::default() },
            Record::BrokeHere(_) | Record::Gap(_) | Record::Started(_) | Record::Stopped | Record::Unknown { .. } => Self::default(),
        }
    }
}

/// Dotted name of a call, as far as known.
pub fn route(intent: &audit::record::Intent<'_>) -> String {
    intent.mount.as_ref().map_or_else(|| intent.name.to_string(), |mount| format!("{mount}.{}", intent.name))
}
