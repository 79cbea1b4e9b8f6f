//! Tools of `bench/run`: an MCP upstream that costs next to nothing, and a load generator that keeps every latency.
//!
//! Single-threaded on purpose, so that `taskset` decides which core does what. Does not start gateways or compare targets:
//! `bench/run` does.

mod answers;
mod caller;
mod connection;
mod fanout;
mod load;
mod message;
mod overload;
mod pipe;
mod processor;
mod registrants;
mod report;
mod room;
mod server;
mod sessions;
mod upstream;

use std::net::SocketAddr;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Fast upstream and load generator for bench/run")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve MCP over HTTP with prepared answers until the process is ended
    Upstream {
        /// Where to listen
        #[arg(long)]
        listen: SocketAddr,
        /// How many tools `tools/list` has, if more than the few that there are
        #[arg(long, default_value_t = 0)]
        tools: usize,
    },
    /// Serve the same on standard input and output
    UpstreamStdio {
        /// How many tools `tools/list` has, if more than the few that there are
        #[arg(long, default_value_t = 0)]
        tools: usize,
    },
    /// Pass each request's body to a process as a line, and the process's next line back
    Pipe {
        /// Where to listen
        #[arg(long)]
        listen: SocketAddr,
        /// The process
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Send every WebSocket text to everybody, and do nothing else
    Fanout {
        /// Where to listen
        #[arg(long)]
        listen: SocketAddr,
    },
    /// Be everybody in a room, and print one line of JSON
    Room(room::Plan),
    /// Send calls and print one line of JSON
    Load(load::Plan),
    /// Send more calls than can be answered, watch what comes after, and print one line of JSON
    Overload(overload::Plan),
    /// Open sessions, print `ready` and keep them until standard input ends
    Sessions(sessions::Plan),
    /// Be many servers that register themselves with a gate, and change when standard input says so
    Registrants(registrants::Plan),
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match Arguments::parse().command {
            Command::Upstream { listen, tools } => upstream::serve(listen, tools).await,
            Command::UpstreamStdio { tools } => pipe::upstream(tools).await,
            Command::Pipe { listen, command } => pipe::serve(listen, &command).await,
            Command::Fanout { listen } => fanout::serve(listen).await,
            Command::Room(plan) => room::run(plan).await,
            Command::Load(plan) => load::run(plan).await,
            Command::Overload(plan) => overload::run(plan).await,
            Command::Sessions(plan) => sessions::run(plan).await,
            Command::Registrants(plan) => registrants::run(plan).await,
        }
    })
}
