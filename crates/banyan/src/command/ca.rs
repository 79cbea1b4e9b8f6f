//! `banyan ca`: an authority of one's own in the state directory, so that gates know each other. The gate itself admits joining gates; the
//! meaning of a certificate is not decided here.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use config::resolved::Config;
use config::secret::SystemSources;
use gateway::trust::ca::{Ca, CaError, IssuedCertificate, JoinToken, Ledger};
use toml_edit::{DocumentMut, Item, Table, value};

use crate::arguments::Place;
use crate::document::Document;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::places;
use crate::table::counted;

/// Makes certificates for this gate and those that join it.
#[derive(Args)]
pub(crate) struct Authority {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Make an authority and this gate's certificate, and print the joining command for another gate
    Init {
        /// A DNS name or IP address of this gate for others; may be given several times
        #[arg(long = "name", value_name = "DNS")]
        names: Vec<String>,
        #[command(flatten)]
        invitation: Invitation,
    },
    /// List the gates that have joined
    List,
    /// Take back the certificate of a gate: its connections end at once
    Revoke {
        /// Name of the holder, or the serial number of one certificate
        name: String,
    },
    /// Print the joining command for one more gate
    Token {
        /// The name of the joining gate; a certificate with that name is revoked then [default: its own choice]
        #[arg(long = "for", value_name = "NAME")]
        whose: Option<String>,
        #[command(flatten)]
        invitation: Invitation,
    },
}

#[derive(Args)]
struct Invitation {
    /// How long the token may be used, once
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = lasting)]
    ttl: Duration,
}

impl Authority {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let dir = Ca::dir(&places::state_dir()?);
        match self.action.as_ref().unwrap_or(&Action::List) {
            Action::Init { names, invitation } => init(&dir, names, invitation, place, output),
            Action::List => list(&dir, output),
            Action::Revoke { name } => revoke(&dir, name, output),
            Action::Token { whose, invitation } => {
                let token = Ca::open(&dir)?.invite(whose.as_deref(), invitation.ttl)?;
                invited(&token, &reached(&[], &configured(place)?), invitation, output)
            }
        }
    }
}

fn init(dir: &Path, names: &[String], invitation: &Invitation, place: &Place, output: &Output) -> Result<(), Failure> {
    let config = configured(place)?;
    let mut file = Document::open(place)?;
    let all = own_names(names, config.listen);
    let ca = Ca::init(dir, &all)?;
    let token = ca.invite(None, invitation.ttl)?;
    let written = config.trust.tls.is_none();
    if written {
        write(&mut file, &ca)?;
    }
    if output.wants_json() {
        return output.json(&serde_json::json!({
            "authority": ca.authority_file(), "certificate": ca.gate_file(), "key": ca.gate_key_file(), "names": all,
            "file": written.then_some(&file.path), "join": join(&token, &reached(names, &config)),
        }));
    }
    output.remark(&format!("made an authority, and a certificate for {}, in {}", all.join(", "), dir.display()));
    let path = file.path.display();
    if written {
        output.remark(&format!("{path} lets gates join now; a gate that runs takes it when it is started again"));
        if config.servers().next().is_none() {
            output.remark("it names no server of this gate's own; `banyan import` shows those that clients have");
        }
    } else {
        output.remark(&format!("{path} has a section [tls], which stays; those who join need one like this:\n\n{}", section(&ca)));
    }
    if config.listen.ip().is_loopback() {
        let advice = format!("others can't reach {}: write listen = \"0.0.0.0:{}\" into banyan.toml", config.listen, config.listen.port());
        output.remark(&output.paint_remark(Look::Warn, &advice));
    }
    output.remark(&format!(
        "the gate speaks TLS from its next start on. `banyan` itself and clients that `banyan connect` connects need nothing; others have to \
         trust the authority:\n  NODE_EXTRA_CA_CERTS={0} for Node programs, SSL_CERT_FILE={0} for most others",
        ca.authority_file().display()
    ));
    invited(&token, &reached(names, &config), invitation, output)
}

fn invited(token: &JoinToken, address: &str, invitation: &Invitation, output: &Output) -> Result<(), Failure> {
    if output.wants_json() {
        return output.json(&serde_json::json!({ "token": token.to_string(), "join": join(token, address) }));
    }
    output.remark(&format!("on the machine of the gate that joins, once, within {}:", spoken(invitation.ttl)));
    output.line(&join(token, address))
}

fn join(token: &JoinToken, address: &str) -> String {
    format!("banyan join https://{address} --token {token}")
}

fn list(dir: &Path, output: &Output) -> Result<(), Failure> {
    Ca::open(dir)?;
    let ledger = Ledger::read(dir)?;
    let issued: Vec<&IssuedCertificate> = ledger.certificates().collect();
    if output.wants_json() {
        return output.json(&serde_json::json!({ "certificates": issued }));
    }
    if issued.is_empty() {
        output.remark("no gate has joined; `banyan ca token` prints what a gate joins with");
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    issued.iter().try_for_each(|one| {
        let state =
            if one.revoked { "revoked".to_owned() } else { format!("{} left", spoken(Duration::from_secs(one.until.saturating_sub(now)))) };
        output.line(&format!("{}  {state}  {}", one.name, one.serial))
    })
}

fn revoke(dir: &Path, name: &str, output: &Output) -> Result<(), Failure> {
    let taken = Ledger::revoke(dir, name)?;
    if taken.is_empty() {
        let ledger = Ledger::read(dir)?;
        let holders: Vec<String> = ledger.certificates().filter(|one| !one.revoked).map(|one| one.name.to_string()).collect();
        let holders = if holders.is_empty() { "nobody has one".to_owned() } else { format!("holders are {}", holders.join(", ")) };
        return Err(Failure::NotFound(format!(
            "nobody has a certificate for `{name}`: {holders}\n  `banyan ca list` shows all; a certificate has the name of its holder, and not always the segment of the tree"
        )));
    }
    if output.wants_json() {
        return output.json(&serde_json::json!({ "revoked": taken }));
    }
    output.line(&format!("took back {}", counted(taken.len(), "certificate")))
}

/// The configuration in use.
fn configured(place: &Place) -> Result<Config, Failure> {
    let file = places::config_file(place.config.as_deref())?;
    let config = file.as_deref().map(|file| gateway::parts::sections().load(file, &SystemSources)).transpose()?;
    Ok(config.unwrap_or_default())
}

/// Lists the given names, and the names by which this machine knows itself.
fn own_names(given: &[String], listen: SocketAddr) -> Vec<String> {
    let mut names = given.to_vec();
    let own = listen.ip();
    names.extend((!own.is_unspecified()).then(|| own.to_string()));
    names.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
    let mut seen = Vec::new();
    names.retain(|name| {
        !seen.contains(name) && {
            seen.push(name.clone());
            true
        }
    });
    names
}

/// Gives the address of this gate for other gates, as far as known here.
fn reached(given: &[String], config: &Config) -> String {
    let listen = config.listen;
    let host = match given.first().map(|name| (name, name.parse())) {
        Some((_, Ok(IpAddr::V6(ip)))) => format!("[{ip}]"),
        Some((name, _)) => name.clone(),
        None => match (config.allowed_hosts.first(), listen.ip()) {
            (Some(name), _) => name.clone(),
            (None, ip) if ip.is_unspecified() => "THIS-GATE".to_owned(),
            (None, IpAddr::V4(ip)) => ip.to_string(),
            (None, IpAddr::V6(ip)) => format!("[{ip}]"),
        },
    };
    format!("{host}:{}", listen.port())
}

fn section(ca: &Ca) -> String {
    let mut document = DocumentMut::new();
    document["tls"] = Item::Table(tls(ca));
    document.to_string()
}

fn tls(ca: &Ca) -> Table {
    let mut table = Table::new();
    for (key, file) in [("certificate", ca.gate_file()), ("key", ca.gate_key_file()), ("client_ca", ca.authority_file())] {
        table[key] = value(file.display().to_string());
    }
    table
}

/// Adds the sections needed by joining gates to a configuration.
fn write(file: &mut Document, ca: &Ca) -> Result<(), Failure> {
    file.toml["tls"] = Item::Table(tls(ca));
    file.section("registry")?;
    file.check()?;
    file.write()
}

/// Reads `90m`, `1h`, `7d`.
fn lasting(text: &str) -> Result<Duration, String> {
    let unit = |end| text.strip_suffix(end).and_then(|number| number.parse::<u64>().ok());
    let seconds = unit('d').map(|n| n.saturating_mul(86_400)).or(unit('h').map(|n| n.saturating_mul(3600)));
    let seconds = seconds.or(unit('m').map(|n| n.saturating_mul(60))).or(unit('s'));
    let most = 30 * 86_400;
    let lasts = seconds.filter(|seconds| (1..=most).contains(seconds)).map(Duration::from_secs);
    lasts.ok_or_else(|| "write a number with s, m, h or d, at most 30d, like 1h".to_owned())
}

fn spoken(time: Duration) -> String {
    match time.as_secs() {
        s if s >= 2 * 86_400 => format!("{} days", s / 86_400),
        s if s >= 2 * 3600 => format!("{} hours", s / 3600),
        3600 => "an hour".to_owned(),
        s if s >= 120 => format!("{} minutes", s / 60),
        s => format!("{s} seconds"),
    }
}

impl From<CaError> for Failure {
    fn from(error: CaError) -> Self {
        let text = error.to_string();
        match error {
            CaError::Missing { .. } => Self::NotFound(text),
            CaError::Exists { .. } | CaError::Stranger | CaError::Taken { .. } | CaError::Token => Self::Refused(text),
            CaError::Name { .. } => Self::Usage(text),
            CaError::Clock | CaError::Damaged { .. } | CaError::File { .. } | CaError::Made(_) | CaError::Request => Self::Failed(text),
        }
    }
}
