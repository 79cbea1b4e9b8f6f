//! `banyan up`: serves the gate over HTTP until told to stop. `plan` chooses the content, `serve` does the work, nothing of either is here.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::log::Log;
use crate::output::Output;
use crate::plan::Wish;
use crate::serve::Manner;
use crate::{plan, serve, threads};

/// Serves the gate over HTTP.
#[derive(Args)]
#[command(
    after_help = "Without a configuration, the servers that other clients' files name are found and listed, and you are asked once. \
    Where there are none, small demonstration servers show the gate at work."
)]
pub(crate) struct Up {
    /// Serve exactly the servers of this file: JSON with `mcpServers` as clients write it, or Codex's TOML
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    from: Option<PathBuf>,
    /// Address and port to listen on; port 0 takes any free one [default: as configured, else 127.0.0.1:7411]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,
    /// Start found servers without asking
    #[arg(short, long)]
    yes: bool,
    /// End after the last use of the gate, as `banyan stdio` starts it
    #[arg(long, hide = true)]
    while_used: bool,
    #[command(flatten)]
    log: Log,
}

impl Up {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        self.log.start()?;
        let wish = Wish { from: self.from.as_deref(), listen: self.listen, yes: self.yes };
        let plan = plan::plan(&wish, place, output)?;
        if self.while_used {
            // Whatever ends the client that started it, and all that the client started, does not end the gate.
            _ = rustix::process::setsid();
        }
        let workers = threads::workers()?;
        let manner = Manner { listen: self.listen, while_used: self.while_used };
        threads::wait(serve::serve(plan, manner, workers, output))?
    }
}

/// An address with a port; `localhost` stands for 127.0.0.1.
fn address(text: &str) -> Result<SocketAddr, String> {
    let numeric = text.replacen("localhost:", "127.0.0.1:", 1);
    numeric.parse().map_err(|_| "write an IP address and a port, like 127.0.0.1:7411 or 127.0.0.1:0".to_owned())
}
