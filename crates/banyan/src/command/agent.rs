//! `banyan agent`: agents of other people as servers of this gate, and the gate as an agent. Calls no skill.

mod life;
mod negotiate;

use agent::KnownAgent;
use clap::{Args, Subcommand};
use config::resolved::{Config, RemoteAgent, Transport};
use config::secret::SystemSources;
use config::suggest;
use gateway::admin::client::AdminError;
use runtime::tls::Connector;
use serde_json::json;
use toml_edit::{InlineTable, Item, Table, value};

use crate::arguments::Place;
use crate::document::Document;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::{printable, printable_lines};
use crate::threads;

/// Add agents that speak A2A as servers, and end the service of the gate as an agent
#[derive(Args)]
pub(crate) struct Agent {
    #[command(subcommand)]
    command: AgentCommand,
}

#[derive(Subcommand)]
enum AgentCommand {
    /// Make the gate an active agent again, after a deprecation or a drain
    Activate(life::PlainTransition),
    /// Ask an agent for its card, and add the agent to the configuration: its skills become tools
    Add(AddedAgent),
    /// Show the gate as an agent: its state and its work
    Card(life::OwnCard),
    /// Say to clients that the gate as an agent will end
    Deprecate(life::Transition),
    /// Take no new tasks, and let those in progress end
    Drain(life::Transition),
    /// Show the protocol for another agent, and the reasons against the other protocols
    Negotiate(negotiate::WishedNegotiation),
    /// End the gate as an agent for good, after a drain
    Retire(life::PlainTransition),
}

/// An agent to be asked for its card and written down.
#[derive(Args)]
struct AddedAgent {
    /// Address of the agent: its card lies at `/.well-known/agent-card.json` below it
    #[arg(value_parser = address)]
    url: String,
    /// The name in front of its tools. Default: after the host
    #[arg(long)]
    name: Option<String>,
    /// A header for every request, for example 'Authorization: Bearer ${env:TOKEN}'
    #[arg(long = "header", value_parser = header)]
    headers: Vec<(String, String)>,
}

impl Agent {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        match &self.command {
            AgentCommand::Activate(wish) => wish.run("active", place, output),
            AgentCommand::Add(added) => add(added, place, output),
            AgentCommand::Card(card) => card.run(place, output),
            AgentCommand::Deprecate(wish) => wish.run("deprecated", place, output),
            AgentCommand::Drain(wish) => wish.run("draining", place, output),
            AgentCommand::Negotiate(wish) => wish.run(place, output),
            AgentCommand::Retire(wish) => wish.run("retired", place, output),
        }
    }
}

fn address(text: &str) -> Result<String, String> {
    let url = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.map(|_| text.to_owned()).ok_or_else(|| "the address of an agent begins with https:// or http://".to_owned())
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is written NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn add(added: &AddedAgent, place: &Place, output: &Output) -> Result<(), Failure> {
    let host = url::Url::parse(&added.url).ok().and_then(|url| url.host_str().map(str::to_owned));
    // The agent does not choose its name: rules go by it.
    let name = added.name.clone().unwrap_or_else(|| suggest::segment(host.as_deref().unwrap_or("agent")).to_string());
    let mut document = Document::open(place)?;
    insert(&mut document, &name, added)?;
    let known = ask(&name, &document.parsed()?)?;
    document.write()?;
    let skills: Vec<&str> = known.card.skills.iter().map(|skill| skill.id.as_str()).collect();
    let listed = if skills.is_empty() { "no skills".to_owned() } else { format!("skills {}", skills.join(", ")) };
    let text = format!(
        "added to {} as `{name}`: {} {}, {} with A2A {}, {listed}",
        document.path.display(),
        known.card.name,
        known.card.version,
        known.binding,
        known.version
    );
    let facts = json!({
        "mount": name, "agent": known.card.name, "version": known.card.version, "binding": known.binding, "protocol_version": known.version,
        "skills": skills, "file": document.path,
    });
    if output.wants_json() { output.json(&facts) } else { output.line(&printable(&text)) }
}

fn insert(document: &mut Document, name: &str, added: &AddedAgent) -> Result<(), Failure> {
    let section = document.section("mount")?;
    section.set_implicit(true);
    if section.contains_key(name) {
        return Err(Failure::Refused(format!("there is a mount `{}` already\n  give another name with --name", printable(name))));
    }
    let mut entry = Table::new();
    entry["url"] = value(&added.url);
    entry["transport"] = value("a2a");
    if !added.headers.is_empty() {
        let headers: InlineTable = added.headers.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        entry["headers"] = value(headers);
    }
    section.insert(name, Item::Table(entry));
    Ok(())
}

fn ask(name: &str, config: &Config) -> Result<KnownAgent, Failure> {
    let mount = config.mounts.values().find(|mount| mount.name.as_str() == name);
    let remote = mount.and_then(|mount| match &mount.transport {
        Transport::Family(family) => family.settings::<RemoteAgent>(),
        Transport::Http(_) | Transport::Sse(_) | Transport::Stdio(_) => None,
    });
    let remote = remote.ok_or_else(|| Failure::Failed(format!("the mount `{}` is no agent", printable(name))))?;
    let known = threads::wait(async { agent::ask(&remote.0, &SystemSources, &Connector::new()).await })?;
    known.map_err(|why| Failure::Failed(printable_lines(&format!("the agent at {} can't be added: {why}", remote.0.url))))
}

/// Failure at a gate asked as an agent; a gate that is no agent has no such path.
fn refused(error: AdminError) -> Failure {
    let failure = Failure::from(error);
    if matches!(failure, Failure::NotFound(_)) {
        return Failure::NotFound("the gate is no agent: add a section [agent] to its configuration".to_owned());
    }
    failure
}
