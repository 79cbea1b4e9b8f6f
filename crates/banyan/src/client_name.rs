//! Names of clients on the command line: the names of `banyan connect` stand for those that the programs call themselves. Chooses no view.

use import::Client;

use crate::output::{Look, Output};
use crate::similar::did_you_mean;

/// A client, by the name that the program calls itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientName(String);

impl ClientName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a name of `banyan connect`, or any other name as the name itself.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let known = Client::from_id(text).map(own_name);
        Ok(Self(known.map_or_else(|| text.to_owned(), str::to_owned)))
    }

    /// Warns of a name that no known client calls itself: the answer is then that for an unknown client.
    pub(crate) fn remark(name: Option<&Self>, output: &Output) {
        let Some(Self(name)) = name else { return };
        if Client::ALL.into_iter().map(own_name).chain(["inspector-cli"]).any(|known| known == name) {
            return;
        }
        let near = did_you_mean(name, Client::ALL.iter().map(|client| client.id()));
        let ids: Vec<&str> = Client::ALL.iter().map(|client| client.id()).collect();
        let look = output.paint_remark(Look::Warn, "warning:");
        output.remark(&format!(
            "{look} no known client calls itself `{name}`: shown is the view of any other client{near}\n  known are {}",
            ids.join(", ")
        ));
    }
}

/// Name in the `clientInfo` of the client's `initialize`.
fn own_name(client: Client) -> &'static str {
    match client {
        Client::ClaudeCode => "claude-code",
        Client::ClaudeDesktop => "claude-ai",
        Client::Cline => "Cline",
        Client::Codex => "codex-mcp-client",
        Client::Cursor => "cursor-vscode",
        Client::Gemini => "gemini-cli-mcp-client",
        Client::VsCode => "Visual Studio Code",
        Client::Windsurf => "windsurf-client",
        Client::Zed => "Zed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_connect_stands_for_the_programs_own() {
        let read = |text: &str| ClientName::read(text).unwrap().0;
        assert_eq!(
            (read("claude-desktop"), read("vscode"), read("my-agent")),
            ("claude-ai".into(), "Visual Studio Code".into(), "my-agent".into())
        );
    }
}
