//! `banyan ect`: Execution Context Tokens in a file or in the record of a gate, read, drawn, and checked against keys in files. Fetches no key.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use agent::evidence::notary::RECORDED;
use audit::ect::EctFault;
use audit::ect::claims::EctClaims;
use audit::ect::compact::{signed_part, unverified};
use audit::ect::graph::EctGraph;
use audit::hash::sha256;
use audit::record::Record;
use clap::{Args, Subcommand};
use disk::journal::archive::Archive;
use gateway::trust::ect::EctIssuers;
use gateway::trust::keys::KeySet;
use serde::Serialize;

use crate::arguments::Place;
use crate::command::audit::record;
use crate::document;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;

/// Most tokens that are read, and most bytes of a file.
const MOST: usize = 10_000;
const MOST_BYTES: u64 = 64 << 20;
/// Most tokens named in an error.
const MOST_NAMED: usize = 5;

/// Shows, draws and checks Execution Context Tokens: tasks, their agents, and their order.
#[derive(Args)]
pub(crate) struct Ect {
    #[command(subcommand)]
    what: EctCommand,
}

#[derive(Subcommand)]
enum EctCommand {
    /// Draw the order of tasks for Graphviz (DOT); checks no signature
    Draw(TokenFile),
    /// Print the tokens that hold, each behind its predecessors, as `Execution-Context` takes them
    Export(TokenCheck),
    /// Show the claims of tokens; checks no signature
    Show(TokenFile),
    /// Check every signature, and that the tokens are linked as the draft wants
    Verify(TokenCheck),
}

/// Tokens in a file, or in a record.
#[derive(Args)]
struct TokenFile {
    /// Tokens, with spaces, commas or line ends between them; or the directory of a record. [default: the record of the running gate, or the
    /// one in the state directory]
    file: Option<PathBuf>,
    /// Only the tokens of this workflow (`wid`)
    #[arg(long, value_name = "UUID")]
    workflow: Option<String>,
}

/// Tokens as found, of the wanted workflow alone.
struct FoundTokens {
    place: PathBuf,
    tokens: Vec<FoundToken>,
    /// Count of all tokens at the place, others included.
    count: usize,
    /// Hashes of the tokens taken, where each is taken once.
    seen: Option<HashSet<[u8; 32]>>,
}

/// A token as found.
struct FoundToken {
    /// Place among all tokens, from 1.
    number: usize,
    text: String,
    /// Claims, without a look at the signature.
    claims: Result<EctClaims, EctFault>,
}

/// Tokens that hold, with their texts, each behind its predecessors, and words about the others.
struct CheckedTokens {
    held: Vec<(EctClaims, String)>,
    faults: Vec<String>,
}

/// Tokens in a file, with the keys of their issuers.
#[derive(Args)]
struct TokenCheck {
    #[command(flatten)]
    given: TokenFile,
    /// An issuer (`iss`) and a file with its public keys: a JWK set, a JWK, or PEM
    #[arg(long = "issuer", value_name = "NAME=FILE", required = true)]
    issuers: Vec<String>,
}

/// A token, as `--json` shows it.
#[derive(Serialize)]
struct ShownToken<'a> {
    id: &'a str,
    workflow: Option<&'a str>,
    action: &'a str,
    issuer: Option<&'a str>,
    audience: &'a [String],
    issued: u64,
    expires: u64,
    parents: &'a [String],
    input: Option<&'a str>,
    output: Option<&'a str>,
}

impl Ect {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        match &self.what {
            EctCommand::Draw(given) => draw(&given.read(place, output)?, output),
            EctCommand::Export(checked) => checked.export(place, output),
            EctCommand::Show(given) => show(&given.read(place, output)?, output),
            EctCommand::Verify(checked) => checked.verify(place, output),
        }
    }
}

impl TokenFile {
    /// Reads the tokens. A signature is not looked at.
    fn read(&self, place: &Place, output: &Output) -> Result<Vec<EctClaims>, Failure> {
        let FoundTokens { place, tokens, .. } = self.found(place, output)?;
        let claims = |token: FoundToken| token.claims.map_err(|fault| Failure::Failed(refused(token.number, &place, &fault)));
        tokens.into_iter().map(claims).collect()
    }

    /// Finds the tokens of the wanted workflow.
    fn found(&self, place: &Place, output: &Output) -> Result<FoundTokens, Failure> {
        let workflow = self.workflow.as_ref().map(|workflow| workflow.to_ascii_lowercase());
        let found = match &self.file {
            Some(file) if !file.is_dir() => FoundTokens::of_file(file, workflow.as_deref()),
            Some(dir) => FoundTokens::of_record(dir, workflow.as_deref()),
            None => FoundTokens::of_record(&record(place, output)?, workflow.as_deref()),
        }?;
        let at = found.place.display();
        match found.tokens.len() {
            0 if found.count == 0 => Err(Failure::Usage(format!("{at} holds no token"))),
            0 => Err(Failure::NotFound(format!("{at} holds no token of this workflow"))),
            count if count > MOST && workflow.is_some() => {
                Err(Failure::Usage(format!("{at} holds more than {MOST} tokens of this workflow, which are the most that are read")))
            }
            count if count > MOST => Err(Failure::Usage(format!(
                "{at} holds more than {MOST} tokens, which are the most that are read: choose one with --workflow"
            ))),
            _ => Ok(found),
        }
    }
}

impl FoundTokens {
    fn of_file(file: &Path, workflow: Option<&str>) -> Result<Self, Failure> {
        let unread = |error: std::io::Error| document::unread(file, &error);
        if std::fs::metadata(file).map_err(unread)?.len() > MOST_BYTES {
            return Err(Failure::Usage(format!("{} has more than {MOST_BYTES} bytes: give fewer tokens", file.display())));
        }
        let text = std::fs::read_to_string(file).map_err(unread)?;
        let mut found = Self { place: file.to_owned(), tokens: Vec::new(), count: 0, seen: None };
        text.split([' ', ',', '\t', '\r', '\n']).filter(|text| !text.is_empty()).for_each(|text| found.add_token(text, workflow));
        Ok(found)
    }

    /// Reads the tokens that a gate recorded, each once.
    fn of_record(dir: &Path, workflow: Option<&str>) -> Result<Self, Failure> {
        let mut found = Self { place: dir.to_owned(), tokens: Vec::new(), count: 0, seen: Some(HashSet::new()) };
        Archive::open(dir)?.each(0, |entry| {
            let Record::Changed(changed) = &entry.record else { return };
            if changed.what == RECORDED {
                changed.lines.iter().for_each(|line| found.add_token(line, workflow));
            }
        })?;
        Ok(found)
    }

    /// Takes a token of the wanted workflow, and one more than are read. Without a wish, a text without claims is taken, too.
    fn add_token(&mut self, text: &str, workflow: Option<&str>) {
        self.count += 1;
        let claims = unverified(text);
        let is_wanted = workflow.is_none() || claims.as_ref().is_ok_and(|claims| claims.workflow.as_deref() == workflow);
        let is_taken = is_wanted && self.tokens.len() <= MOST;
        if is_taken && self.seen.as_mut().is_none_or(|seen| seen.insert(sha256(signed_part(text).as_bytes()).0)) {
            self.tokens.push(FoundToken { number: self.count, text: text.to_owned(), claims });
        }
    }
}

/// Says which token does not hold.
fn refused(number: usize, place: &Path, why: &EctFault) -> String {
    format!("token {number} of {}: {}", place.display(), printable(&why.to_string()))
}

impl TokenCheck {
    /// Checks the tokens. A token that does not hold takes those behind it along, and no others.
    fn checked(&self, place: &Place, output: &Output) -> Result<CheckedTokens, Failure> {
        let issuers = self.issuers()?;
        let found = self.given.found(place, output)?;
        let (mut signed, mut faults, mut texts) = (Vec::new(), Vec::new(), HashMap::new());
        for token in &found.tokens {
            match issuers.signed(&token.text) {
                Ok(claims) => {
                    texts.entry(claims.id.clone()).or_insert_with(|| token.text.clone());
                    signed.push(claims);
                }
                Err(fault) => faults.push(refused(token.number, &found.place, &fault)),
            }
        }
        let (graph, unlinked) = EctGraph::sift(MOST, signed);
        faults.extend(unlinked.iter().map(|(id, fault)| format!("token {id}: {}", printable(&fault.to_string()))));
        let held = graph.ordered().filter_map(|claims| Some((claims.clone(), texts.remove(&claims.id)?))).collect();
        Ok(CheckedTokens { held, faults })
    }

    fn issuers(&self) -> Result<EctIssuers, Failure> {
        let mut issuers = EctIssuers::default();
        for given in &self.issuers {
            // A name may have `=` in it, and a path has none as a rule.
            let Some((name, path)) = given.rsplit_once('=') else {
                return Err(Failure::Usage(format!("`{}` names no file: write NAME=FILE", printable(given))));
            };
            let path = Path::new(path);
            let text = std::fs::read_to_string(path).map_err(|error| document::unread(path, &error))?;
            let keys = KeySet::parse(&text).map_err(|why| Failure::Usage(format!("{}: {}", path.display(), printable(&why))))?;
            issuers.add(name, keys);
        }
        Ok(issuers)
    }

    fn verify(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let checked = self.checked(place, output)?;
        if output.wants_json() {
            output.json(&checked.held.iter().map(|(claims, _)| shown(claims)).collect::<Vec<_>>())?;
            return checked.conclude();
        }
        checked.held.iter().try_for_each(|(claims, _)| output.line(&line(claims)))?;
        let count = checked.held.len();
        checked.conclude()?;
        output.line(&format!("{count} tokens hold: every signature, and every link"))
    }

    fn export(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let checked = self.checked(place, output)?;
        if output.wants_json() {
            output.json(&checked.held.iter().map(|(_, text)| text).collect::<Vec<_>>())?;
        } else {
            checked.held.iter().try_for_each(|(_, text)| output.line(text))?;
        }
        checked.conclude()
    }
}

impl CheckedTokens {
    /// Ends the command: with a failure, if a token does not hold.
    fn conclude(&self) -> Result<(), Failure> {
        let Some(named) = self.faults.get(..self.faults.len().min(MOST_NAMED)).filter(|named| !named.is_empty()) else { return Ok(()) };
        let more = self.faults.len() - named.len();
        let rest = if more == 0 { String::new() } else { format!("; and {more} more") };
        let held = self.held.len();
        let count =
            if held == 0 { String::new() } else { format!("{} of {} tokens do not hold: ", self.faults.len(), self.faults.len() + held) };
        Err(Failure::Failed(format!("{count}{}{rest}", named.join("; "))))
    }
}

fn show(tokens: &[EctClaims], output: &Output) -> Result<(), Failure> {
    if output.wants_json() {
        return output.json(&tokens.iter().map(shown).collect::<Vec<_>>());
    }
    tokens.iter().try_for_each(|claims| output.line(&line(claims)))
}

/// Draws the tokens. Predecessors outside of the file are drawn by their ids alone.
fn draw(tokens: &[EctClaims], output: &Output) -> Result<(), Failure> {
    let quoted = |text: &str| format!("\"{}\"", printable(text).replace('\\', "\\\\").replace('"', "\\\""));
    output.line("digraph ect {")?;
    for claims in tokens {
        let label = format!("{} by {}", claims.action, claims.issuer.as_deref().unwrap_or("nobody"));
        output.line(&format!("  {} [label={}];", quoted(&claims.id), quoted(&label)))?;
        claims.parents.iter().try_for_each(|parent| output.line(&format!("  {} -> {};", quoted(parent), quoted(&claims.id))))?;
    }
    output.line("}")
}

fn line(claims: &EctClaims) -> String {
    let parents = if claims.parents.is_empty() { String::new() } else { format!(", after {}", claims.parents.join(", ")) };
    printable(&format!("{} {} by {}{parents}", claims.id, claims.action, claims.issuer.as_deref().unwrap_or("nobody")))
}

fn shown(claims: &EctClaims) -> ShownToken<'_> {
    ShownToken {
        id: &claims.id,
        workflow: claims.workflow.as_deref(),
        action: &claims.action,
        issuer: claims.issuer.as_deref(),
        audience: &claims.audience,
        issued: claims.issued,
        expires: claims.expires,
        parents: &claims.parents,
        input: claims.input.as_deref(),
        output: claims.output.as_deref(),
    }
}
