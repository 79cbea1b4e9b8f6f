//! `banyan device add`: tries the way to a device, and writes the device into the configuration. Asks at a terminal for what the way needs and
//! nobody gave. Does not read the settings: the configuration does, and says what is missing where nobody can be asked.

mod question;
mod typed_secret;

use clap::Args;
use serde_json::json;
use toml_edit::{Item, Table, value};

use self::question::complete;
use self::typed_secret::TypedSecrets;
use super::{done, failed, site};
use crate::arguments::Place;
use crate::document::Document;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::{terminal, threads};

const BACKENDS: [&str; 6] = ["frr", "ssh", "bird", "ovs", "netconf", "snmp"];

/// A device to be tried and written down.
#[derive(Args, Clone)]
pub(super) struct AddedDevice {
    /// The name in front of its tools
    name: String,
    /// The way to it: FRR (the default), a command line over SSH, BIRD or Open vSwitch on this machine, NETCONF, or SNMP
    #[arg(long, value_parser = BACKENDS)]
    backend: Option<String>,
    /// Path space of FRR, as `vtysh -N` takes it
    #[arg(long)]
    pathspace: Option<String>,
    /// Control socket of BIRD, or socket of the database of Open vSwitch
    #[arg(long)]
    socket: Option<String>,
    /// Host of a device that is reached over the network, with a port or without
    #[arg(long)]
    address: Option<String>,
    /// Name for the login
    #[arg(long)]
    user: Option<String>,
    /// Reference to the password: `${keyring:…}`, `${file:…}` or `${env:…}`
    #[arg(long)]
    password: Option<String>,
    /// Reference to the community of SNMP v2c
    #[arg(long)]
    community: Option<String>,
    /// Reference to the password for the encryption of SNMP v3
    #[arg(long)]
    privacy_password: Option<String>,
    /// File of the private key for the login
    #[arg(long)]
    key: Option<String>,
    /// Fingerprint of the host key, as `ssh-keygen -l` shows it
    #[arg(long)]
    host_key: Option<String>,
    /// Dialect of a command line: frr, ios, junos, vrp, the name of a section `[dialect.NAME]`, or `file:` with a path
    #[arg(long)]
    dialect: Option<String>,
}

impl AddedDevice {
    pub(super) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let mut document = Document::open(place)?;
        let section = document.section("device")?;
        section.set_implicit(true);
        if section.contains_key(&self.name) {
            return Err(Failure::Refused(format!("there is a device `{}` already", printable(&self.name))));
        }
        let (mut added, mut secrets) = (self.clone(), TypedSecrets::new(&self.name)?);
        if terminal::somebody_is_there() {
            complete(&mut added, &mut secrets)?;
        }
        section.insert(&self.name, Item::Table(added.section()));
        let version = added.try_and_write(&document)?;
        for file in secrets.settle() {
            output.remark(&format!("no keyring can be reached here: {} keeps what you typed, for you alone to read", file.display()));
        }
        done(
            &format!("added to {}: {version}", document.path.display()),
            &json!({ "device": self.name, "version": version, "file": document.path }),
            output,
        )
    }

    /// Version of the device, which the document now names.
    fn try_and_write(&self, document: &Document) -> Result<String, Failure> {
        let site = site(&self.name, &document.parsed()?)?;
        let version = threads::wait(async { site.try_reach().await.map_err(|fault| failed(&fault)) })??;
        document.write()?;
        Ok(version)
    }

    fn section(&self) -> Table {
        let backend = Some(self.backend.clone().unwrap_or_else(|| BACKENDS[0].to_owned()));
        let keys = [
            ("backend", &backend),
            ("pathspace", &self.pathspace),
            ("socket", &self.socket),
            ("address", &self.address),
            ("user", &self.user),
            ("password", &self.password),
            ("community", &self.community),
            ("privacy_password", &self.privacy_password),
            ("key", &self.key),
            ("host_key", &self.host_key),
            ("dialect", &self.dialect),
        ];
        keys.into_iter().filter_map(|(key, given)| given.as_ref().map(|given| (key, value(given)))).collect()
    }
}
