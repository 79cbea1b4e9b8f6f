//! rmcp 3.9 as a peer of Banyan: a client that takes the same tour as the other clients, and a small server.
//!
//! `rmcp-peer MODE http URL`, `rmcp-peer MODE stdio PREFIX COMMAND ARGUMENT...` with MODE `auto`, `legacy` or `2026-07-28`;
//! `rmcp-peer MODE device URL DESCRIPTION`; `rmcp-peer serve stdio`, `rmcp-peer serve http PORT`. Prints `ok NAME` or `FAIL NAME detail`; does not count.

#![expect(deprecated, reason = "sampling, roots and logging are deprecated in 2026-07-28, and clients still have them")]

mod client;
mod device;
mod server;
mod tour;

use std::process::Stdio;

use anyhow::{Context, bail};
use rmcp::transport::StreamableHttpClientTransport;
use tokio::process::Command;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match given.as_slice() {
        ["serve", "stdio"] => server::stdio().await,
        ["serve", "http", port] => server::http(port.parse()?).await,
        [mode, "http", url] => {
            let visitor = client::Visitor::default();
            let service = client::connect(visitor.clone(), mode, StreamableHttpClientTransport::from_uri(*url)).await?;
            tour::run(service, visitor, "").await
        }
        [mode, "device", url, description] => {
            let visitor = client::Visitor::default();
            let service = client::connect(visitor.clone(), mode, StreamableHttpClientTransport::from_uri(*url)).await?;
            device::run(service, visitor, description).await
        }
        [mode, "stdio", prefix, program, rest @ ..] => {
            let mut child = Command::new(program)
                .args(rest)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()?;
            let pipes = (child.stdout.take().context("a pipe")?, child.stdin.take().context("a pipe")?);
            let visitor = client::Visitor::default();
            let service = client::connect(visitor.clone(), mode, pipes).await?;
            tour::run(service, visitor, prefix).await
        }
        _ => bail!(
            "usage: rmcp-peer MODE http URL | MODE device URL DESCRIPTION | MODE stdio PREFIX COMMAND... | serve stdio | serve http PORT"
        ),
    }
}
