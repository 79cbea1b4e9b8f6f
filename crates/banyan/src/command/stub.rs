//! `banyan stub`: parts behind a wire, at the bench: which ports there are, what a part lists, what it sends. A gate that holds a port keeps
//! it; these commands open a port of their own. Does not decide who may call.

mod add;
mod simulate;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Subcommand};
use config::secret::SystemSources;
use runtime::tls::Connector;
use serde_json::{Map, Value, json};
use stub::broker::BrokerGround;
use stub::line::{LineCall, PartLine, answered};
use stub::section::{BIT_RATE, SPEED};
use stub::settings::{StubSettings, StubTool};
use stub::wire::OpenWire;
use stub::{ends, port, values};
use stub_proto::can::CanForm;
use stub_proto::session::{CallEnd, NeverRan, Profile};
use stub_proto::table::PartTable;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::Output;
use crate::printable::printable;
use crate::{document, threads};

/// Serves the bench of whoever builds a part.
#[derive(Args)]
pub(crate) struct Stub {
    #[command(subcommand)]
    action: StubCommand,
}

#[derive(Subcommand)]
enum StubCommand {
    /// Ask a part for its table, and write it into the configuration
    Add(add::AddedStub),
    /// Call a tool of a part in the configuration over its wire, without a gate: no rule, no approval and no record
    Call {
        /// Name of the part
        name: String,
        /// Name of the tool
        tool: String,
        /// Arguments, a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
    /// List the serial ports of this machine
    Scan,
    /// Be a part in software on a pseudo-terminal: the lamp of firmware/examples/lamp
    Simulate {
        /// Path that shall lead to the pseudo-terminal
        #[arg(long)]
        link: Option<std::path::PathBuf>,
    },
    /// Show a part's messages, a line each
    Watch {
        #[command(flatten)]
        wire: BenchWire,
        /// Show the bytes too
        #[arg(long)]
        hex: bool,
    },
}

/// A wire to a part.
#[derive(Args, Clone)]
struct BenchWire {
    /// Serial port
    #[arg(long, value_parser = serial_port)]
    port: String,
    /// Bits a second
    #[arg(long, default_value_t = SPEED)]
    speed: u32,
    /// Identifiers of a part on a CAN bus behind the port, like 0x123:0x124
    #[arg(long, value_name = "TO:FROM", value_parser = identifiers)]
    can: Option<(u32, u32)>,
    /// Bits a second on the bus
    #[arg(long, default_value_t = BIT_RATE)]
    bit_rate: u32,
}

impl BenchWire {
    /// The bus behind the port, if there is one.
    fn bus(&self) -> Result<Option<CanForm>, Failure> {
        let Some((to, from)) = self.can else { return Ok(None) };
        let rate = CanForm::rate_digit(self.bit_rate);
        let rate = rate.ok_or_else(|| Failure::Usage(format!("no adapter has {} bits a second", self.bit_rate)))?;
        Ok(Some(CanForm { to, from, is_extended: to.max(from) > CanForm::last(false), rate }))
    }
}

/// Reads the path of a serial port. The address of a broker is none.
fn serial_port(text: &str) -> Result<String, String> {
    if text.starts_with("mqtt://") || text.starts_with("mqtts://") {
        return Err(
            "this is the address of a broker, and the command takes a serial port: write the section by hand (docs/stubs.md), and try the \
                    part with `banyan stub call`"
                .into(),
        );
    }
    Ok(text.to_owned())
}

/// Reads two identifiers of a bus.
fn identifiers(text: &str) -> Result<(u32, u32), String> {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    let pair = text.split_once(':').and_then(|(to, from)| Some((number(to)?, number(from)?)));
    pair.filter(|(to, from)| to != from && *to.max(from) <= CanForm::last(true))
        .ok_or_else(|| "two numbers of a bus, as 0x123:0x124".into())
}

impl Stub {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        match &self.action {
            StubCommand::Add(added) => added.run(place, output),
            StubCommand::Call { name, tool, arguments } => call(name, tool, arguments, place, output),
            StubCommand::Scan => scan(output),
            StubCommand::Simulate { link } => simulate::run(link.as_deref(), output),
            StubCommand::Watch { wire, hex } => threads::wait(watch::run(wire, *hex, output))?,
        }
    }
}

fn scan(output: &Output) -> Result<(), Failure> {
    let ports = port::list().map_err(|error| Failure::Failed(format!("the serial ports can't be listed: {error}")))?;
    if output.wants_json() {
        return output.json(&json!({ "ports": ports }));
    }
    if ports.is_empty() {
        output.remark("no serial port: plug the part in, and look if you may read its port (group `dialout` on Linux)");
    }
    ports.iter().try_for_each(|port| output.line(&printable(&port.to_string_lossy())))
}

/// Settings for a conversation with a part of profile B that has no tools by name yet.
fn unnamed(wire: &BenchWire) -> Result<StubSettings, Failure> {
    let (port, speed, profile) = (wire.port.clone(), wire.speed, wire.bus()?.map_or(Profile::Described, Profile::Can));
    Ok(StubSettings { port, broker: None, speed, profile, heartbeat: Duration::from_secs(5), tools: Vec::new() })
}

/// Opens a wire and waits for the part.
async fn connected(settings: &StubSettings) -> Result<(Arc<PartLine>, Option<PartTable>), Failure> {
    let ground = BrokerGround { connector: Arc::new(Connector::new()), sources: Arc::new(SystemSources) };
    let opened = OpenWire::open(settings, &ground).await.map_err(|why| Failure::NotFound(printable(&why)))?;
    let line = Arc::new(PartLine::start(opened, settings, None));
    let state = answered(&line).await.map_err(|why| Failure::Failed(format!("at {}: {why}", printable(&settings.port))))?;
    Ok((line, state.table))
}

fn call(name: &str, tool: &str, arguments: &str, place: &Place, output: &Output) -> Result<(), Failure> {
    let config = document::Document::open(place)?.parsed()?;
    let settings = config.mounts.values().find(|mount| mount.name.as_str() == name).and_then(|mount| match &mount.transport {
        config::resolved::Transport::Family(family) => family.settings::<StubSettings>().cloned(),
        config::resolved::Transport::Http(_) | config::resolved::Transport::Sse(_) | config::resolved::Transport::Stdio(_) => None,
    });
    let settings = settings.ok_or_else(|| Failure::NotFound(format!("there is no section [stub.{}]", printable(name))))?;
    let found = settings.tools.iter().find(|known| known.name == tool);
    let found = found.ok_or_else(|| Failure::NotFound(format!("[stub.{name}] has no tool `{}`", printable(tool))))?;
    let arguments: Map<String, Value> =
        serde_json::from_str(arguments).map_err(|error| Failure::Usage(format!("the arguments are no JSON object: {error}")))?;
    let content = values::content(found, settings.profile, &arguments).map_err(Failure::Usage)?;
    let end = threads::wait(async {
        let (line, _) = connected(&settings).await?;
        let row = settings.profile.lists_tools().then(|| found.row());
        let (is_repeatable, work) = (found.is_repeatable(), found.work);
        let call = LineCall { tool: found.id, row, content, is_repeatable, work, caller: None };
        let end = match line.call(call) {
            Ok(mut pending) => pending.finished().await,
            Err(end) => end,
        };
        line.close().await;
        Ok::<_, Failure>(end)
    })??;
    output.json(&results(found, &end)?)
}

fn results(tool: &StubTool, end: &CallEnd) -> Result<Map<String, Value>, Failure> {
    let failed = match end {
        CallEnd::Values(_) | CallEnd::Raw(_) => {
            return values::result(tool, end).map_err(|why| Failure::ToolFailed(format!("the call ran, but its answer {why}")));
        }
        CallEnd::Failed { code, .. } => format!("the part refused or failed with code {code}"),
        CallEnd::TooLong => ends::too_long(&tool.name),
        CallEnd::NeverRan(NeverRan::OtherTable) => {
            format!("`{}` did not run: the part lists the tool otherwise than its section", tool.name)
        }
        CallEnd::NeverRan(why) => ends::never_ran(&tool.name, *why),
        CallEnd::Unknown(why) => ends::unknown(&tool.name, *why),
    };
    Err(Failure::ToolFailed(failed))
}
