//! One connection that asks the same thing again and again. Does not measure.

use std::net::SocketAddr;

use anyhow::{bail, ensure};
use tokio::time::Instant;

use crate::connection::{Connection, Content};
use crate::message::{Era, Load, Target, Template};
use crate::sessions;

/// What is asked of whom.
#[derive(clap::Args)]
pub(crate) struct Ask {
    /// Where to connect
    #[arg(long)]
    pub(crate) address: SocketAddr,
    /// The endpoint
    #[arg(long, default_value = "/mcp")]
    path: String,
    /// Which era to speak
    #[arg(long, value_enum)]
    era: Era,
    /// What to ask for
    #[arg(long, value_enum)]
    method: Method,
    /// Names of tools to call in turn
    #[arg(long, value_delimiter = ',')]
    tools: Vec<String>,
    /// Bytes of text among the arguments of a call
    #[arg(long, default_value_t = 0)]
    argument_bytes: usize,
    /// How many notifications of progress must come before a result
    #[arg(long)]
    progress: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Method {
    /// `tools/call`
    Call,
    /// `tools/list`
    List,
    /// A new session: `initialize` and `notifications/initialized`
    Initialize,
}

/// How a call went.
pub(crate) enum Ended {
    Answered {
        size: usize,
        first_byte: Instant,
    },
    /// The server said with a JSON-RPC error and HTTP 503 that it has no room.
    Shed(String),
}

pub(crate) struct Caller {
    connection: Connection,
    target: Target,
    /// Empty: new sessions are what is asked for.
    requests: Vec<Template>,
    number: u64,
    progress: Option<usize>,
    sessions: Vec<String>,
}

impl Caller {
    /// The `number`th connection, with a session if the era has them.
    pub(crate) async fn new(ask: &Ask, number: u64) -> anyhow::Result<Self> {
        let target = Target { host: format!("localhost:{}", ask.address.port()), path: ask.path.clone(), era: ask.era };
        let mut connection = Connection::open(ask.address).await?;
        let session = match (ask.era, ask.method) {
            (Era::Legacy, Method::Call | Method::List) => sessions::hello(&mut connection, &target).await?,
            (Era::Legacy, Method::Initialize) | (Era::Modern, _) => None,
        };
        let session = session.as_deref();
        let load = Load { argument_bytes: ask.argument_bytes, progress: ask.progress.is_some() };
        let requests = match ask.method {
            Method::Call if ask.tools.is_empty() => bail!("--tools says what to call"),
            Method::Call => ask.tools.iter().map(|name| Template::call(&target, session, name, load)).collect(),
            Method::List => vec![Template::list(&target, session)],
            Method::Initialize => Vec::new(),
        };
        // Ids of their own, and another tool to begin with than the connection before.
        let first = number * 100_001;
        Ok(Self { connection, target, requests, number: first, progress: ask.progress, sessions: Vec::new() })
    }

    pub(crate) async fn call(&mut self) -> anyhow::Result<Ended> {
        let turns = u64::try_from(self.requests.len())?;
        let Some(turn) = self.number.checked_rem(turns) else { return self.begin_session().await };
        let answer = self.connection.exchange(self.requests[usize::try_from(turn)?].numbered(self.number)).await?;
        self.number += 1;
        match answer.content {
            Content::Result { progress } if answer.status == 200 => {
                let wanted = self.progress.unwrap_or(progress);
                ensure!(progress == wanted, "{progress} notifications of progress came, not {wanted}");
                Ok(Ended::Answered { size: answer.size, first_byte: answer.first_byte })
            }
            Content::Other(text) if answer.status == 503 && text.contains("\"error\"") => Ok(Ended::Shed(text)),
            Content::Other(text) => bail!("HTTP {}: {text}", answer.status),
            Content::Result { .. } => bail!("HTTP {} with a result", answer.status),
        }
    }

    async fn begin_session(&mut self) -> anyhow::Result<Ended> {
        self.sessions.extend(sessions::hello(&mut self.connection, &self.target).await?);
        Ok(Ended::Answered { size: 0, first_byte: Instant::now() })
    }

    /// Ends the sessions that were asked for.
    pub(crate) async fn end_sessions(&mut self) -> anyhow::Result<()> {
        for session in std::mem::take(&mut self.sessions) {
            self.connection.exchange(&self.target.goodbye(&session)).await?;
        }
        Ok(())
    }
}
