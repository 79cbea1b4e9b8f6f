//! `banyan auth SERVER`: signs in at a server that wants OAuth. The protocol is the gateway's; nothing of it is here.

use std::sync::Arc;

use clap::Args;
use config::resolved::{Mount, Transport};
use config::secret::SystemSources;
use gateway::OAuthClient;

use crate::arguments::Place;
use crate::failure::Failure;
use crate::output::{Look, Output};
use crate::plan::{self, Wish};
use crate::similar::did_you_mean;
use crate::{places, threads};

/// Signs in at a server that wants OAuth, in a browser.
#[derive(Args)]
pub(crate) struct Auth {
    /// The server
    server: String,
    /// Forget the token and the registration
    #[arg(long)]
    out: bool,
}

impl Auth {
    pub(crate) fn run(&self, place: &Place, output: &Output) -> Result<(), Failure> {
        let mount = self.mount(place)?;
        let client = self.client(&mount)?;
        if self.out {
            threads::wait(client.sign_out())?.map_err(|e| Failure::Failed(e.to_string()))?;
        } else {
            let announce = |url: &str| {
                output.remark("sign in with the browser that opens, or open this address on this machine:");
                output.remark(&format!("  {}", output.paint_remark(Look::Strong, url)));
            };
            threads::wait(client.sign_in(announce))?.map_err(|e| Failure::Failed(e.to_string()))?;
        }
        if output.wants_json() {
            return output.json(&serde_json::json!({ "server": self.server, "signed_in": !self.out }));
        }
        let done =
            if self.out { "signed out; the token is forgotten here" } else { "signed in; a running gate uses the token with its next try" };
        output.line(done)
    }

    fn client(&self, mount: &Mount) -> Result<OAuthClient, Failure> {
        let remote = match &mount.transport {
            Transport::Http(remote) | Transport::Sse(remote) => remote,
            Transport::Family(family) => {
                let text = format!("`{}` is no MCP server ({}), and has no sign-in: see its section", self.server, family.family());
                return Err(Failure::Usage(text));
            }
            Transport::Stdio(_) => {
                let text = format!("`{}` is a program on this machine: it takes its credentials from its environment (`env`)", self.server);
                return Err(Failure::Usage(text));
            }
        };
        let Some(oauth) = remote.oauth.clone() else {
            let why = "it has an `Authorization` header, is reached without https, or says `oauth = false`";
            return Err(Failure::Usage(format!("`{}` does not sign in: {why}\n  `oauth = {{}}` makes it", self.server)));
        };
        Ok(OAuthClient::new(&self.server, remote.url.clone(), oauth, &places::state_dir()?))
    }

    /// Finds the server in the configuration, or without one in clients' files.
    fn mount(&self, place: &Place) -> Result<Arc<Mount>, Failure> {
        let mounts = match places::config_file(place.config.as_deref())? {
            Some(path) => gateway::parts::sections().load(&path, &SystemSources)?.mounts,
            None => import::discover(&plan::clients(&Wish { from: None, listen: None, yes: false })?).mounts(),
        };
        let found = mounts.values().find(|m| m.name.as_str() == self.server).cloned();
        found.ok_or_else(|| {
            let hint = did_you_mean(&self.server, mounts.keys().map(banyan_model::Segment::as_str));
            let all: Vec<&str> = mounts.keys().map(banyan_model::Segment::as_str).collect();
            let all = if all.is_empty() { places::MAKE_ONE.to_owned() } else { format!("servers are {}", all.join(", ")) };
            Failure::NotFound(format!("there is no server `{}`{hint}\n  {all}", self.server))
        })
    }
}
