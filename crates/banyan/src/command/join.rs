//! `banyan join` and `banyan leave`: the parents of this gate, as `[[parent]]` entries of `banyan.toml`. A running gate follows
//! the file; nobody is dialled here.

use std::path::{Path, PathBuf};

use banyan_model::Segment;
use clap::Args;
use gateway::trust::ca::JoinToken;
use gateway::trust::join::enrol;
use toml_edit::{ArrayOfTables, InlineTable, Item, Table, value};
use url::Url;

use crate::arguments::Place;
use crate::document::{Document, failed};
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::tried::Attempt;
use crate::{places, private, threads};

/// Length from which a text may be a bearer token.
const SHORTEST_TOKEN: usize = 16;

/// Makes the gate register with a parent.
#[derive(Args)]
#[command(after_help = "With several parents, the one that was joined first is preferred, and the others take over while it is not there.")]
pub(crate) struct Join {
    /// The parent's address, like `https://root.example.com`
    url: String,
    /// Token that `banyan ca init` or `banyan ca token` printed at the parent, good once; or a bearer token of `banyan token add`
    #[arg(long, env = "BANYAN_JOIN_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Name before this gate's tools there [default: as configured, else the name of this machine]
    #[arg(long, value_parser = segment)]
    segment: Option<Segment>,
    /// Join over plain http on a network: a listener there can read and change every call
    #[arg(long)]
    insecure: bool,
}

/// Makes the gate leave a parent.
#[derive(Args)]
pub(crate) struct Leave {
    /// The parent's address [default: the only one]
    url: Option<String>,
}

impl Join {
    pub(crate) fn run(self, place: &Place, output: &Output) -> Result<(), Failure> {
        let mut file = File::open(place)?;
        let url = self.url.trim_end_matches('/').to_owned();
        if !["http://", "https://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(Failure::Failed(format!(
                "{url} is no address of a parent\n  write it with what it is reached by, as https://HOST:PORT"
            )));
        }
        if file.urls().any(|known| known.trim_end_matches('/') == url) {
            return Err(Failure::Refused(format!("{url} is a parent already\n  leave it first with `banyan leave {url}`")));
        }
        let tried = Url::parse(&url).ok();
        let (host, port) = (tried.as_ref().and_then(Url::host_str), tried.as_ref().and_then(Url::port_or_known_default));
        let attempt = Attempt::begin(host, port);
        let segment = file.segment(self.segment.as_ref())?;
        let mut entry = Table::new();
        entry["url"] = value(&url);
        let invitation = self.invitation()?;
        let token =
            self.token.as_ref().filter(|_| invitation.is_none()).map(|token| Ok::<_, Failure>((token_path(&url)?, token))).transpose()?;
        if let Some((path, _)) = &token {
            entry["token"] = value(format!("${{file:{}}}", path.display()));
        }
        if self.insecure {
            entry["insecure"] = value(true);
        }
        file.parents()?.push(entry);
        file.0.check()?;
        if let Some((path, token)) = &token {
            keep(path, token)?;
        }
        if let Some(invitation) = invitation {
            file.enrol(&url, &invitation)?;
        }
        file.0.write()?;
        if output.wants_json() {
            return output.json(&serde_json::json!({ "url": url, "segment": segment, "file": file.0.path }));
        }
        output.line(&format!("{url} is a parent of this gate, as {segment}"))?;
        if let Err(why) = attempt.outcome() {
            let look = output.paint_remark(Look::Warn, "warning:");
            output.remark(&format!("{look} {why}: the gate goes on trying; see that the parent runs and that its address is right"));
        }
        let follows = "a running gate follows it, and `banyan status` says whether it is registered";
        output.remark(&format!("written to {}; {follows}", file.0.path.display()));
        Ok(())
    }

    /// Reads the token as an invitation for a certificate, if it is one. A truncated invitation is refused here; as a bearer token it would
    /// be refused by
    /// every parent.
    fn invitation(&self) -> Result<Option<JoinToken>, Failure> {
        let Some(token) = &self.token else { return Ok(None) };
        let is_bearer = |hex: &str| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit());
        let is_cut = token.strip_prefix("banyan_").is_some_and(|rest| !is_bearer(rest))
            || token.starts_with("banyan1")
            || token.trim().len() < SHORTEST_TOKEN;
        match token.parse::<JoinToken>() {
            Ok(invitation) => Ok(Some(invitation)),
            Err(_) if is_cut => Err(Failure::Usage(
                "this token is not whole: it is none that `banyan ca init`, `banyan ca token` or `banyan token add` printed\n  \
                 copy all of it; nothing is changed"
                    .to_owned(),
            )),
            Err(_) => Ok(None),
        }
    }
}

impl Leave {
    pub(crate) fn run(self, place: &Place, output: &Output) -> Result<(), Failure> {
        let mut file = File::open(place)?;
        let known: Vec<String> = file.urls().map(|url| url.trim_end_matches('/').to_owned()).collect();
        let url = match (&self.url, known.as_slice()) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, [only]) => only.clone(),
            (None, []) => {
                return Err(Failure::NotFound(format!(
                    "{} names no parent: there is none to leave\n  `banyan join URL` registers this gate with one",
                    file.0.path.display()
                )));
            }
            (None, all) => return Err(Failure::Usage(format!("say which parent to leave, as `banyan leave URL`: {}", all.join(", ")))),
        };
        if !known.contains(&url) {
            let all = if known.is_empty() { "there is none".to_owned() } else { format!("there are: {}", known.join(", ")) };
            return Err(Failure::NotFound(format!("{url} is no parent in {}\n  {all}", file.0.path.display())));
        }
        let is_it = |parent: &Table| parent.get("url").and_then(Item::as_str).is_some_and(|other| other.trim_end_matches('/') == url);
        file.parents()?.retain(|parent| !is_it(parent));
        file.0.write()?;
        // It may never have had one.
        _ = std::fs::remove_file(token_path(&url)?);
        _ = std::fs::remove_file(file.former_token_path(&url));
        if output.wants_json() {
            return output.json(&serde_json::json!({ "left": url, "file": file.0.path }));
        }
        output.line(&format!("this gate leaves {url}"))
    }
}

/// The parents in `banyan.toml`.
struct File(Document);

impl File {
    fn open(place: &Place) -> Result<Self, Failure> {
        Document::open(place).map(Self)
    }

    fn urls(&self) -> impl Iterator<Item = &str> {
        let parents = self.0.toml.get("parent").and_then(Item::as_array_of_tables);
        parents.into_iter().flat_map(ArrayOfTables::iter).filter_map(|parent| parent.get("url").and_then(Item::as_str))
    }

    fn parents(&mut self) -> Result<&mut ArrayOfTables, Failure> {
        let parents = self.0.toml.entry("parent").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let tables = parents.as_array_of_tables_mut();
        tables.ok_or_else(|| {
            Failure::Failed(format!(
                "`parent` in {} is not written as [[parent]]\n  write each parent so, then try again",
                self.0.path.display()
            ))
        })
    }

    /// Writes and gives the segment in force: the wanted one, the written one, or this machine's name.
    fn segment(&mut self, asked: Option<&Segment>) -> Result<String, Failure> {
        let node = self.0.section("node")?;
        if let (None, Some(written)) = (asked, node.get("segment").and_then(Item::as_str)) {
            return Ok(written.to_owned());
        }
        let segment = asked.cloned().unwrap_or_else(|| Segment::nearest(&machine()));
        node["segment"] = value(segment.as_str());
        Ok(segment.to_string())
    }

    /// Has the parent added last certify this gate, by a token good for one certificate.
    fn enrol(&mut self, url: &str, invitation: &JoinToken) -> Result<(), Failure> {
        let address = url.parse().map_err(|_| Failure::Usage(format!("{url} is no address\n  write it as https://HOST:PORT")))?;
        let enrolled = threads::wait(enrol(&places::state_dir()?, &address, invitation, None))?;
        let enrolled = enrolled.map_err(|error| Failure::Failed(error.to_string()))?;
        let mut tls = InlineTable::new();
        for (key, file) in [("certificate", &enrolled.certificate), ("key", &enrolled.key), ("ca", &enrolled.ca)] {
            tls.insert(key, file.display().to_string().into());
        }
        if let Some(parent) = self.parents()?.iter_mut().last() {
            parent["tls"] = value(tls);
        }
        // The name that the certificate proves; who wrote another one knows better.
        if let Some(node) = self.0.toml.get_mut("node").and_then(Item::as_table_mut) {
            node.entry("authority").or_insert(value(format!("dns:{}", enrolled.name)));
        }
        self.0.check()
    }

    /// Gives the path at which earlier versions kept the token for a parent.
    fn former_token_path(&self, url: &str) -> PathBuf {
        let name = file_name(url);
        let directory = self.0.path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let path = directory.join(format!("parent-{name}.token"));
        std::path::absolute(&path).unwrap_or(path)
    }
}

/// Gives the path of the token for a parent: in the state directory, as the configuration may lie in a project that others read.
fn token_path(url: &str) -> Result<PathBuf, Failure> {
    Ok(places::state_dir()?.join("parents").join(format!("{}.token", file_name(url))))
}

fn file_name(url: &str) -> String {
    url.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
}

fn keep(path: &Path, token: &str) -> Result<(), Failure> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(|e| failed(directory, "made", &e))?;
    }
    // One that an earlier join left behind.
    _ = std::fs::remove_file(path);
    private::write_new(path, token).map_err(|e| failed(path, "written", &e))
}

fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().split('.').next().unwrap_or_default().to_owned()
}

fn segment(text: &str) -> Result<Segment, String> {
    Segment::new(text).map_err(|bad| format!("{bad}; for example `{}`", Segment::nearest(text)))
}
