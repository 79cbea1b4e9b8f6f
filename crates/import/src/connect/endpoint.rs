//! The ways to Banyan, in the words of each client. Does not know files.

use serde_json::{Value, json};
use url::Url;

use super::ConnectError;
use crate::Client;

/// A client's way to Banyan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    Http {
        /// With path: `http://127.0.0.1:7411/mcp`.
        url: Url,
        /// The variable in the client's environment that holds the token, if Banyan asks for one.
        bearer_env: Option<String>,
    },
    /// By starting a program, `banyan stdio`.
    Stdio {
        /// The whole path: clients do not always look in `PATH`.
        command: String,
        args: Vec<String>,
    },
}

impl Client {
    /// Tells if the client takes an address; all of them can start a program.
    pub fn takes_address(self) -> bool {
        self != Self::ClaudeDesktop
    }
}

impl Endpoint {
    /// The entry in the client's file; Codex's is TOML in the end, with the same members.
    pub(super) fn entry(&self, client: Client) -> Result<Value, ConnectError> {
        let (url, variable) = match self {
            Self::Http { .. } if !client.takes_address() => return Err(ConnectError::ProgramsOnly { client }),
            Self::Http { url, bearer_env } => (url.as_str(), bearer_env.as_deref()),
            Self::Stdio { command, args } => return Ok(program(client, command, args)),
        };
        let mut entry = match client {
            Client::ClaudeCode | Client::VsCode => json!({ "type": "http", "url": url }),
            Client::Cline => json!({ "type": "streamableHttp", "url": url, "disabled": false }),
            Client::Gemini => json!({ "httpUrl": url }),
            Client::Windsurf => json!({ "serverUrl": url }),
            Client::ClaudeDesktop | Client::Codex | Client::Cursor | Client::Zed => json!({ "url": url }),
        };
        if let Some(variable) = variable {
            let (key, value) = bearer(client, variable)?;
            entry[key] = value;
        }
        Ok(entry)
    }
}

fn program(client: Client, command: &str, args: &[String]) -> Value {
    match client {
        Client::ClaudeCode | Client::VsCode => json!({ "type": "stdio", "command": command, "args": args }),
        Client::Cline => json!({ "command": command, "args": args, "disabled": false }),
        Client::Zed => json!({ "source": "custom", "command": command, "args": args, "env": {} }),
        Client::ClaudeDesktop | Client::Codex | Client::Cursor | Client::Gemini | Client::Windsurf => {
            json!({ "command": command, "args": args })
        }
    }
}

fn bearer(client: Client, variable: &str) -> Result<(&'static str, Value), ConnectError> {
    let header = |text: String| Ok(("headers", json!({ "Authorization": text })));
    match client {
        Client::ClaudeCode => header(format!("Bearer ${{{variable}}}")),
        Client::Cline | Client::Cursor | Client::VsCode | Client::Windsurf => header(format!("Bearer ${{env:{variable}}}")),
        Client::Codex => Ok(("bearer_token_env_var", json!(variable))),
        Client::Gemini => header(format!("Bearer ${variable}")),
        Client::ClaudeDesktop | Client::Zed => Err(ConnectError::NoBearer { client }),
    }
}
