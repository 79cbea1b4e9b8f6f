//! Tools of `bench/run`: an MCP upstream that costs next to nothing, and a load generator that keeps every latency.
//!
//! Single-threaded on purpose, so that `taskset` decides which core does what. Does not start servers, measure CPU time or
//! compare targets: `bench/run` does.

mod connection;
mod load;
mod message;
mod report;
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
        /// How many tools `tools/list` has
        #[arg(long, default_value_t = 3)]
        tools: usize,
    },
    /// Send calls and print one line of JSON
    Load(load::Plan),
    /// Open sessions, print `ready` and keep them until standard input ends
    Sessions(sessions::Plan),
}

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match Arguments::parse().command {
            Command::Upstream { listen, tools } => upstream::serve(listen, tools).await,
            Command::Load(plan) => load::run(plan).await,
            Command::Sessions(plan) => sessions::run(plan).await,
        }
    })
}
