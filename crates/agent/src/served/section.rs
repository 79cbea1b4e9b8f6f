//! The section `[agent]`: the gate as an agent. Without it, the door is shut.

use config::Section;
use config::diff::{Change, differing, optional};
use config::file::At;
use config::reading::FileReading;
use config::resolved::Config;
use schemars::JsonSchema;
use serde::Deserialize;

/// The gate as an agent: `[agent]`.
pub struct AgentSection;

/// The key of the gate as an agent.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentForm {
    /// The gate as an A2A agent, whose skills are the tools open to its caller.
    agent: Option<AgentTable>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentTable {
    /// Address of this gate for its clients, as the agent card names it.
    #[schemars(example = &"https://gate.example.com")]
    url: At<String>,
    /// Name of the agent. Default: `Banyan`.
    name: Option<String>,
    /// Words about the agent for everybody who can reach the gate.
    description: Option<String>,
}

/// The gate as an agent, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentSettings {
    /// Address without a slash at the end.
    pub url: String,
    pub name: String,
    pub description: String,
}

impl Section for AgentSection {
    type Form = AgentForm;

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        let Some(table) = &form.agent else { return };
        let Some(url) = reading.address(&table.url) else { return };
        let name = table.name.clone().unwrap_or_else(|| "Banyan".into());
        let description = table.description.clone().unwrap_or_else(|| "A gate in front of tools. Each skill is a tool.".into());
        config.values.set(AgentSettings { url: url.as_str().trim_end_matches('/').to_owned(), name, description });
    }

    fn compare(&self, old: &Config, new: &Config) -> Vec<Change> {
        let change = optional("agent", old.values.get::<AgentSettings>(), new.values.get(), |old, new| {
            differing([("url", old.url != new.url), ("name", old.name != new.name), ("description", old.description != new.description)])
        });
        change.into_iter().collect()
    }
}
