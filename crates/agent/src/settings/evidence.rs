//! The table `[agent.evidence]`: issuers of tokens, and the terms for messages. Without the table, the gate makes and takes no token.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use audit::ect::EctDraft;
use config::Flaw;
use config::file::At;
use config::reading::FileReading;
use schemars::JsonSchema;
use serde::Deserialize;
use trust::keys::KeySet;

/// Most issuers, and the longest file of keys in bytes.
const MOST_ISSUERS: usize = 256;
const LONGEST_FILE: u64 = 256 << 10;
/// Most gateways on the way of a message, unless the table says otherwise (AEPB, section 5.4).
const HOPS: u32 = 3;

/// Evidence of the hops of calls: `[agent.evidence]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EvidenceTable {
    /// Issuers of tokens (`iss`), each with a file of public keys: a JWK set, a JWK, or PEM. A token of nobody here is refused.
    issuers: BTreeMap<At<String>, At<String>>,
    /// Draft of the tokens made here: `00` or `01`. Tokens of both are read. Default: `01`.
    #[schemars(example = &"01")]
    draft: Option<At<String>>,
    /// Most gateways on the way of a message, this gate included. Default: 3.
    hops: Option<At<u32>>,
    /// Refuses messages without a token.
    required: bool,
}

/// The table, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvidenceSettings {
    /// Names of issuers, each with the text of the keys.
    pub issuers: Vec<(String, String)>,
    pub draft: EctDraft,
    pub hops: usize,
    pub is_required: bool,
}

impl EvidenceTable {
    /// Reads the table and the files of keys.
    pub fn resolve(&self, reading: &mut FileReading<'_>) -> Arc<EvidenceSettings> {
        let draft = match self.draft.as_ref().map(|draft| (draft, draft.get().as_str())) {
            None | Some((_, "01")) => EctDraft::Draft01,
            Some((_, "00")) => EctDraft::Draft00,
            Some((place, _)) => {
                reading.refuse(Flaw::new(place.span(), "no such draft is known").help("write \"00\" or \"01\""));
                EctDraft::Draft01
            }
        };
        let hops = self.hops.as_ref().map_or(HOPS, |hops| *hops.get());
        if let Some(place) = self.hops.as_ref().filter(|hops| *hops.get() == 0) {
            let flaw = Flaw::new(place.span(), "0 gateways leave no way, for this gate is one");
            reading.refuse(flaw.help("write 1 for messages that have passed no gateway before"));
        }
        if let Some((name, _)) = self.issuers.iter().nth(MOST_ISSUERS) {
            reading.refuse(Flaw::new(name.span(), format!("more than {MOST_ISSUERS} issuers are listed")).help("list fewer"));
        }
        let issuers = self.issuers.iter().take(MOST_ISSUERS).filter_map(|(name, file)| Some((name.get().clone(), keys(file, reading)?)));
        let issuers = issuers.collect();
        Arc::new(EvidenceSettings { issuers, draft, hops: hops as usize, is_required: self.required })
    }
}

/// Reads a file of keys, and checks that it holds one that verifies tokens.
fn keys(file: &At<String>, reading: &mut FileReading<'_>) -> Option<String> {
    let path = reading.path(file);
    let mut text = String::new();
    let read = std::fs::File::open(&path).and_then(|file| file.take(LONGEST_FILE).read_to_string(&mut text));
    let held = match read {
        Ok(_) => KeySet::parse(&text).map(drop),
        Err(error) => Err(error.to_string()),
    };
    if let Err(why) = held {
        let flaw = Flaw::new(file.span(), format!("no keys can be read from {}: {why}", path.display()));
        reading.refuse(flaw.help("name a file with the public keys of the issuer: a JWK set, a JWK, or PEM"));
        return None;
    }
    Some(text)
}
