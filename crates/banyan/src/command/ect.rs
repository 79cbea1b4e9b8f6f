//! `banyan ect`: Execution Context Tokens in a file or in the record of a gate, read, drawn, and checked against keys in files. Fetches no key.

use std::path::{Path, PathBuf};

use agent::evidence::notary::RECORDED;
use audit::ect::claims::EctClaims;
use audit::ect::compact::CarriedEct;
use audit::ect::graph::EctGraph;
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

/// Most tokens of a file, and its bytes.
const MOST: usize = 10_000;
const MOST_BYTES: u64 = 64 << 20;

/// Shows, draws and checks Execution Context Tokens: who did what, and what came before.
#[derive(Args)]
pub(crate) struct Ect {
    #[command(subcommand)]
    what: EctCommand,
}

#[derive(Subcommand)]
enum EctCommand {
    /// Draw which task came before which, for Graphviz (DOT); checks no signature
    Draw(TokenFile),
    /// Print the tokens that hold, each behind its predecessors, as `Execution-Context` takes them
    Export(TokenCheck),
    /// Show what tokens say; checks no signature
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

/// Tokens as found.
struct FoundTokens {
    place: PathBuf,
    texts: Vec<String>,
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
        let claims = |text: &str| match CarriedEct::read(text)? {
            CarriedEct::Plain(claims) => Ok(claims),
            CarriedEct::Signed(token) => token.claims(),
        };
        let found = self.found(place, output)?;
        let read = found.texts.iter().enumerate().map(|(at, text)| claims(text).map_err(|fault| found.refused(at, &fault)));
        let read: Vec<EctClaims> = read.filter(|read| !read.as_ref().is_ok_and(|claims| !self.means(claims))).collect::<Result<_, _>>()?;
        if read.is_empty() { Err(found.none()) } else { Ok(read) }
    }

    /// Checks for a token of the wanted workflow.
    fn means(&self, claims: &EctClaims) -> bool {
        self.workflow.as_ref().is_none_or(|meant| claims.workflow.as_deref() == Some(&meant.to_ascii_lowercase()))
    }

    fn found(&self, place: &Place, output: &Output) -> Result<FoundTokens, Failure> {
        match &self.file {
            Some(file) if !file.is_dir() => FoundTokens::of_file(file),
            Some(dir) => FoundTokens::of_record(dir.clone()),
            None => FoundTokens::of_record(record(place, output)?),
        }
    }
}

impl FoundTokens {
    fn of_file(file: &Path) -> Result<Self, Failure> {
        let unread = |error: std::io::Error| document::unread(file, &error);
        if std::fs::metadata(file).map_err(unread)?.len() > MOST_BYTES {
            return Err(Failure::Usage(format!("{} has more than {MOST_BYTES} bytes: give fewer tokens", file.display())));
        }
        let text = std::fs::read_to_string(file).map_err(unread)?;
        let texts: Vec<String> = text.split([' ', ',', '\t', '\r', '\n']).filter(|text| !text.is_empty()).map(str::to_owned).collect();
        Self { place: file.to_owned(), texts }.bounded()
    }

    /// Reads the tokens that a gate recorded, each once.
    fn of_record(dir: PathBuf) -> Result<Self, Failure> {
        let (mut texts, mut seen) = (Vec::new(), std::collections::HashSet::new());
        Archive::open(&dir)?.each(0, |entry| {
            let Record::Changed(changed) = &entry.record else { return };
            if changed.what == RECORDED && texts.len() <= MOST {
                texts.extend(changed.lines.iter().filter(|line| seen.insert(line.to_string())).map(ToString::to_string));
            }
        })?;
        Self { place: dir, texts }.bounded()
    }

    fn bounded(self) -> Result<Self, Failure> {
        let place = self.place.display();
        match self.texts.len() {
            0 => Err(Failure::Usage(format!("{place} holds no token"))),
            count if count > MOST => {
                Err(Failure::Usage(format!("{place} holds more than {MOST} tokens, which are the most that are read")))
            }
            _ => Ok(self),
        }
    }

    fn refused(&self, at: usize, why: &impl ToString) -> Failure {
        Failure::Failed(format!("token {} of {}: {}", at + 1, self.place.display(), printable(&why.to_string())))
    }

    fn none(&self) -> Failure {
        Failure::NotFound(format!("{} holds no token of this workflow", self.place.display()))
    }
}

impl TokenCheck {
    /// Checks the tokens, and gives them with their texts, each behind its predecessors.
    fn checked(&self, place: &Place, output: &Output) -> Result<Vec<(EctClaims, String)>, Failure> {
        let issuers = self.issuers()?;
        let found = self.given.found(place, output)?;
        let mut held = Vec::new();
        for (at, text) in found.texts.iter().enumerate() {
            let claims = issuers.signed(text).map_err(|fault| found.refused(at, &fault))?;
            held.extend(self.given.means(&claims).then(|| (claims, text.clone())));
        }
        if held.is_empty() {
            return Err(found.none());
        }
        let graph = gathered(held.iter().map(|(claims, _)| claims.clone()).collect())?;
        let places: std::collections::HashMap<&str, usize> =
            graph.ordered().enumerate().map(|(at, token)| (token.id.as_str(), at)).collect();
        held.sort_by_key(|(claims, _)| places.get(claims.id.as_str()).copied());
        Ok(held)
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
        let held = self.checked(place, output)?;
        if output.wants_json() {
            return output.json(&held.iter().map(|(claims, _)| shown(claims)).collect::<Vec<_>>());
        }
        held.iter().try_for_each(|(claims, _)| output.line(&line(claims)))?;
        output.line(&format!("{} tokens hold: every signature, and every link", held.len()))
    }

    fn export(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let held = self.checked(place, output)?;
        if output.wants_json() {
            return output.json(&held.iter().map(|(_, text)| text).collect::<Vec<_>>());
        }
        held.iter().try_for_each(|(_, text)| output.line(text))
    }
}

fn gathered(tokens: Vec<EctClaims>) -> Result<EctGraph, Failure> {
    EctGraph::gather(MOST, tokens).map_err(|fault| Failure::Failed(printable(&fault.to_string())))
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
