//! The gate asked by `tools`, `call`, `names` and `tree`: the running gate, or a gate started for one question.
//! Does not print results.

use std::time::Duration;

use bytes::Bytes;
use config::secret::SystemSources;
use gateway::Gateway;
use gateway::admin::client::{AdminClient, AdminError};
use gateway::admin::shapes::{CallRequest, JoinStatus, MountStatus, Status, ToolDefinition, Tools, Trace, TraceRequest};

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::similar::did_you_mean;
use crate::table::counted;
use crate::{gate, places};

/// Time for servers of our own gate to start.
const START: Duration = Duration::from_secs(60);

/// A gate to ask.
pub(crate) enum AskedGate {
    /// A gate started for this question.
    Own(Gateway),
    /// A gate that was running already.
    Running(AdminClient),
}

/// Lists the tools as shown to `client`, by whichever gate can be asked.
pub(crate) async fn tools(place: &Place, client: Option<&str>, output: &Output) -> Result<Tools, Failure> {
    let asked = AskedGate::find(place, output).await?;
    let tools = asked.tools(client).await;
    asked.finish(output).await;
    tools
}

/// Tells if `tool` may be a tool of the server: the name begins with the server's, in whichever spelling.
fn is_tool_of(server: &str, tool: &str) -> bool {
    tool.strip_prefix(server).is_some_and(|rest| rest.starts_with(['.', '_']))
}

impl AskedGate {
    /// Finds the running gate; without one, starts the configuration.
    pub(crate) async fn find(place: &Place, output: &Output) -> Result<Self, Failure> {
        Self::find_for(None, place, output).await
    }

    /// The same for one tool: without a running gate, only the server of that name is started, if there is a server of that name.
    pub(crate) async fn find_for(tool: Option<&str>, place: &Place, output: &Output) -> Result<Self, Failure> {
        if let Some(gate) = gate::running(place)? {
            return Ok(Self::Running(gate));
        }
        let nothing =
            || Failure::NotFound("no gate is running, and there is no banyan.toml to start\n  start one with `banyan up`".to_owned());
        let path = places::config_file(place.config.as_deref())?.ok_or_else(nothing)?;
        let mut config = gateway::parts::sections().load(&path, &SystemSources)?;
        let is_asked = |name: &str| tool.is_some_and(|tool| is_tool_of(name, tool));
        if config.mounts.keys().any(|name| is_asked(name.as_str())) {
            config.mounts.retain(|name, _| is_asked(name.as_str()));
        }
        let text =
            format!("no gate is running: starting {} of {} for this question", counted(config.servers().count(), "server"), path.display());
        output.remark(&output.paint_remark(Look::Dim, &text));
        let gate = Gateway::start(config, places::state_dir()?);
        gate.settled(START).await;
        Ok(Self::Own(gate))
    }

    /// The tools as `client` is shown them.
    pub(crate) async fn tools(&self, client: Option<&str>) -> Result<Tools, Failure> {
        let query: Vec<(&str, &str)> = client.iter().map(|c| ("client", *c)).collect();
        match self {
            Self::Own(gate) => Ok(Tools { client: client.map(str::to_owned), tools: gate.tools(client) }),
            Self::Running(gate) => Ok(gate.get("/-/tools", &query).await?),
        }
    }

    /// The whole definition of a tool with this dotted name.
    pub(crate) async fn definition(&self, dotted: &str) -> Result<ToolDefinition, Failure> {
        match self {
            Self::Own(gate) => Ok(gate.definition(&gate.tools(None), dotted).map_err(AdminError::Refused)?),
            Self::Running(gate) => Ok(gate.get(&format!("/-/tools/{dotted}"), &[]).await?),
        }
    }

    /// Gives the servers, and the address of the gate; none for a gate of our own.
    pub(crate) async fn mounts(&self) -> Result<(Option<String>, Vec<MountStatus>), Failure> {
        let (url, mounts, _) = self.standing().await?;
        Ok((url, mounts))
    }

    /// The same, and with whom the gate is registered.
    pub(crate) async fn standing(&self) -> Result<(Option<String>, Vec<MountStatus>, Option<JoinStatus>), Failure> {
        match self {
            Self::Own(gate) => Ok((None, gate.status(), None)),
            Self::Running(gate) => {
                let status: Status = gate.get("/-/status", &[]).await?;
                Ok((Some(status.url), status.mounts, status.joined))
            }
        }
    }

    /// Gives the status of a running gate; `None` for a gate just started by this process.
    pub(crate) async fn status(&self) -> Result<Option<Status>, Failure> {
        match self {
            Self::Own(_) => Ok(None),
            Self::Running(gate) => Ok(Some(gate.get("/-/status", &[]).await?)),
        }
    }

    /// Calls a tool and gives the server's raw `result`.
    pub(crate) async fn call(&self, request: &CallRequest) -> Result<Bytes, Failure> {
        match self {
            Self::Own(gate) => Ok(gate.call_tool(request).await.map_err(AdminError::Refused)?.0),
            Self::Running(gate) => Ok(gate.post("/-/call", request).await?),
        }
    }

    /// The way to a tool.
    pub(crate) async fn trace(&self, request: &TraceRequest) -> Result<Trace, Failure> {
        match self {
            Self::Own(gate) => Ok(gate.trace(request).await.map_err(AdminError::Refused)?),
            Self::Running(gate) => {
                let body = gate.post("/-/trace", request).await?;
                serde_json::from_slice(&body).map_err(|e| Failure::Failed(format!("the gate's answer can't be read: {e}")))
            }
        }
    }

    /// Adds similar names to an `answer` about a missing tool.
    pub(crate) async fn with_near_tools<T>(&self, tool: &str, answer: Result<T, Failure>) -> Result<T, Failure> {
        let Err(Failure::NotFound(text)) = answer else { return answer };
        let tools = self.tools(None).await?.tools;
        let hint = did_you_mean(tool, tools.iter().flat_map(|t| [t.dotted.as_str(), t.shown.as_str()]));
        Err(Failure::NotFound(format!("{text}{hint}\n  `banyan tools` lists them")))
    }

    /// Says which servers of a gate of our own did not start, and ends them all.
    pub(crate) async fn finish(self, output: &Output) {
        let Self::Own(gate) = self else { return };
        for mount in gate.status().iter().filter(|m| m.state != "ready") {
            let why = mount.error.as_deref().unwrap_or("it is still starting");
            let first = crate::table::first_line(why, 200);
            output.remark(&format!("{} {} is {}: {first}", output.paint_remark(Look::Warn, "warning:"), mount.name, mount.state));
        }
        gate.shutdown().await;
    }
}
