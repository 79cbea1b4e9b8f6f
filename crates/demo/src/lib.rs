//! Three small servers in the binary, so that there is always something alive to mount: `clock`, `notes`, `system`.
//!
//! They are real MCP servers over standard input and output, in both eras, and run as child processes like any other. Together
//! they use everything a server may: progress, cancellation, questions to the client, resources that change,
//! prompts, completion, logging. They are no part of the gateway's own path: here messages become trees of values.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};

mod clock;
mod notes;
mod processes;
mod system;

/// The names of the servers.
pub const NAMES: [&str; 3] = ["clock", "notes", "system"];

/// Endings of a demonstration server other than the end of its input.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// Reading or writing failed.
    #[error("the demonstration server lost its client: {0}")]
    Io(#[from] std::io::Error),
    /// No server of this name.
    #[error("there is no demonstration server `{0}`: use one of clock, notes, system")]
    Unknown(String),
}

/// Serves `name` until `input` ends.
pub async fn serve<R, W>(name: &str, input: R, output: W) -> Result<(), DemoError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    match name {
        "clock" => mcp_server::run(Arc::new(clock::Clock), input, output).await,
        "notes" => mcp_server::run(Arc::new(notes::Notes::new()), input, output).await,
        "system" => mcp_server::run(Arc::new(system::System), input, output).await,
        _ => return Err(DemoError::Unknown(name.into())),
    }
    .map_err(DemoError::Io)
}

#[cfg(test)]
mod tests;
