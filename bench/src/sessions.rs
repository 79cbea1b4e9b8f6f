//! Opens sessions and keeps them, so that the memory of an idle one can be measured.
//!
//! Does not measure: `bench/run` looks at the gateway before and after.

use std::net::SocketAddr;

use anyhow::ensure;
use tokio::io::AsyncReadExt;

use crate::connection::Connection;
use crate::message::{Era, Target};

#[derive(clap::Args)]
pub(crate) struct Plan {
    /// Where to connect
    #[arg(long)]
    address: SocketAddr,
    /// The endpoint
    #[arg(long, default_value = "/mcp")]
    path: String,
    /// How many sessions
    #[arg(long)]
    count: usize,
    /// Whether each has its GET stream open
    #[arg(long)]
    streams: bool,
}

/// Says hello on a connection; gives the session's id, if the server has one.
pub(crate) async fn hello(connection: &mut Connection, target: &Target) -> anyhow::Result<Option<String>> {
    let welcome = connection.exchange(&target.hello()).await?;
    ensure!(welcome.status == 200, "initialize was answered with HTTP {}", welcome.status);
    let ready = connection.exchange(&target.ready(welcome.session.as_deref())).await?;
    ensure!(ready.status == 202, "notifications/initialized was answered with HTTP {}", ready.status);
    Ok(welcome.session)
}

pub(crate) async fn run(plan: Plan) -> anyhow::Result<()> {
    let target = Target { host: format!("localhost:{}", plan.address.port()), path: plan.path, era: Era::Legacy };
    let mut kept = Vec::new();
    let mut shared = Connection::open(plan.address).await?;
    for _ in 0..plan.count {
        let session = hello(&mut shared, &target).await?;
        if plan.streams {
            let mut stream = Connection::open(plan.address).await?;
            let status = stream.open_stream(&target.stream(session.as_deref())).await?;
            ensure!(status == 200, "the GET stream was answered with HTTP {status}");
            kept.push(stream);
        }
    }
    crate::report::line("ready");
    tokio::io::stdin().read_to_end(&mut Vec::new()).await?;
    drop(kept);
    Ok(())
}
