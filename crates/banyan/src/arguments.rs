//! The command line as clap sees it. Does nothing by itself: what a command does stands in its own file below `command/`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::command::{
    add, agent, approvals, audit, auth, axcp, backup, ca, call, check, completions, connect, console, context, demo, device, doctor, ect,
    explain, grants, import, join, logs, man, names, operator, pins, policy, release, reload, restart, restore, room, schema, secret,
    service, status, stdio, stub, token, tools, top, trace, tree, up,
};
use crate::failure::Failure;
use crate::gate::Which;
use crate::output::Output;

/// Heading of the options that every command takes.
const GLOBAL: &str = "Options of every command";

/// One gate in front of all your MCP servers.
#[derive(Parser)]
#[command(name = "banyan", version, max_term_width = 100, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// Print JSON with a stable shape (docs/cli.md) in place of text
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: Place,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Which configuration or which running gateway a command is about.
#[derive(Args, Clone)]
pub(crate) struct Place {
    /// Configuration to use [default: ./banyan.toml, then banyan/banyan.toml in the user's configuration directory]
    #[arg(long, global = true, value_name = "FILE", env = "BANYAN_CONFIG", help_heading = GLOBAL)]
    pub(crate) config: Option<PathBuf>,
    /// The running gate that is meant, by its process id or its address, when there are several
    #[arg(long, global = true, value_name = "PID|URL", env = "BANYAN_GATE", help_heading = GLOBAL)]
    pub(crate) gate: Option<Which>,
}

/// What can be asked for.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Add a server: a program to start, or an address to reach
    Add(add::Add),
    /// Add agents that speak A2A as servers
    Agent(agent::Agent),
    /// Read and check the record of calls and decisions
    Audit(audit::Audit),
    /// Show the calls that wait until a person agrees
    Approvals(approvals::Approvals),
    /// Agree to one call that waits
    Approve(approvals::Approve),
    /// Sign in at a server that wants OAuth
    Auth(auth::Auth),
    /// Show the nodes that share contexts with the gate
    Axcp(axcp::Axcp),
    /// Keep configuration, keys and state of this user's gates in one file
    Backup(backup::Backup),
    /// Make certificates for this gate and those that join it
    Ca(ca::Authority),
    /// Call a tool
    Call(call::Call),
    /// Check a configuration without starting anything
    Check(check::Check),
    /// Print a completion script for a shell
    Completions(completions::Completions),
    /// Make a client use the gate in place of its own servers
    Connect(connect::Connect),
    /// Open the console of the running gate in a browser
    Console(console::Console),
    /// Show versions of a shared context, with their authors
    Context(context::Context),
    /// Serve a demonstration server
    #[command(hide = true)]
    Demo(demo::Demo),
    /// Say no to one call that waits
    Deny(approvals::Deny),
    /// Show and settle the changes of network devices
    Device(device::Device),
    /// Give a client its own servers back
    Disconnect(connect::Disconnect),
    /// Find broken parts and their remedies
    Doctor(doctor::Doctor),
    /// Show, draw and check Execution Context Tokens
    Ect(ect::Ect),
    /// Say why a call was refused, or a server that wanted to register
    Explain(explain::Explain),
    /// Let some calls go out for a while without asking again
    Grants(grants::Grants),
    /// Show the servers that other clients' files name, or write them into a configuration
    Import(import::Import),
    /// Register this gate with a parent: its tools are shown there as well
    Join(join::Join),
    /// Register with a parent no more
    Leave(join::Leave),
    /// Show a server's standard error
    Logs(logs::Logs),
    /// Write the manual pages into a directory
    Man(man::Man),
    /// Show the names of tools for a client
    Names(names::Names),
    /// Enrol, list or remove keys of approvers
    Operator(operator::Operator),
    /// Show, accept or refuse changed definitions
    Pins(pins::Pins),
    /// Make, check and try the rules about calls
    Policy(policy::Policy),
    /// Free a segment that an authority keeps at this gate
    Release(release::Release),
    /// Make the running gate read its configuration now
    Reload(reload::Reload),
    /// Start a server anew
    Restart(restart::Restart),
    /// Put a backup back
    Restore(restore::Restore),
    /// Remove a server
    #[command(visible_alias = "remove")]
    Rm(add::Remove),
    /// Show rooms of people and agents, and come into one
    Room(room::Room),
    /// Print the JSON Schema of banyan.toml
    Schema(schema::Schema),
    /// Store, list or remove secrets in the system's keyring
    Secret(secret::Secret),
    /// Run the gate as a service, at login or with the machine
    Service(service::Service),
    /// Show the servers of the running gate and how they are
    Status(status::Status),
    /// Serve the gate to one client on standard input and output
    Stdio(stdio::Stdio),
    /// End the running gate
    Stop(reload::Stop),
    /// Work at the bench with parts behind a wire
    Stub(stub::Stub),
    /// Make, list or remove bearer tokens of callers
    Token(token::Token),
    /// List tools, and their cost to a model
    Tools(tools::Tools),
    /// Watch calls, servers and waiting approvals of the running gate
    Top(top::Top),
    /// Show the way to a tool and how long each step takes
    Trace(trace::Trace),
    /// Draw the tree of servers and tools
    Tree(tree::Tree),
    /// Serve the gate over HTTP
    Up(up::Up),
}

impl Command {
    /// Runs the command.
    pub(crate) fn run(self, place: &Place, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Add(command) => command.run(place, output),
            Self::Agent(command) => command.run(place, output),
            Self::Audit(command) => command.run(place, output),
            Self::Approvals(command) => command.run(place, output),
            Self::Approve(command) => command.run(place, output),
            Self::Auth(command) => command.run(place, output),
            Self::Axcp(command) => command.run(place, output),
            Self::Backup(command) => command.run(place, output),
            Self::Ca(command) => command.run(place, output),
            Self::Call(command) => command.run(place, output),
            Self::Check(command) => command.run(place, output),
            Self::Completions(command) => command.run(output),
            Self::Connect(command) => command.run(place, output),
            Self::Console(command) => command.run(place, output),
            Self::Context(command) => command.run(place, output),
            Self::Demo(command) => command.run(),
            Self::Deny(command) => command.run(place, output),
            Self::Device(command) => command.run(place, output),
            Self::Disconnect(command) => command.run(output),
            Self::Doctor(command) => command.run(place, output),
            Self::Ect(command) => command.run(place, output),
            Self::Explain(command) => command.run(place, output),
            Self::Grants(command) => command.run(place, output),
            Self::Import(command) => command.run(place, output),
            Self::Join(command) => command.run(place, output),
            Self::Leave(command) => command.run(place, output),
            Self::Logs(command) => command.run(place, output),
            Self::Man(command) => command.run(output),
            Self::Names(command) => command.run(place, output),
            Self::Operator(command) => command.run(place, output),
            Self::Pins(command) => command.run(place, output),
            Self::Policy(command) => command.run(place, output),
            Self::Release(command) => command.run(place, output),
            Self::Reload(command) => command.run(place, output),
            Self::Restart(command) => command.run(place, output),
            Self::Restore(command) => command.run(place, output),
            Self::Rm(command) => command.run(place, output),
            Self::Room(command) => command.run(place, output),
            Self::Schema(command) => command.run(output),
            Self::Secret(command) => command.run(output),
            Self::Service(command) => command.run(place, output),
            Self::Status(command) => command.run(place, output),
            Self::Stdio(command) => command.run(place, output),
            Self::Stop(command) => command.run(place, output),
            Self::Stub(command) => command.run(place, output),
            Self::Token(command) => command.run(place, output),
            Self::Tools(command) => command.run(place, output),
            Self::Top(command) => command.run(place, output),
            Self::Trace(command) => command.run(place, output),
            Self::Tree(command) => command.run(place, output),
            Self::Up(command) => command.run(place, output),
        }
    }
}
