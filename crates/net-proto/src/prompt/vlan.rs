//! The wizard for a VLAN: those that are there, the candidate and its diff, a commit for limited time, its confirmation. Each commit waits for
//! a person (section 6.4). Applies nothing.

use serde::{Deserialize, Serialize};

use super::{PromptDevice, PromptState, PromptStep, ToolCall, change, incompatible};
use crate::dialect::StepCommand;
use crate::fault::Fault;

/// Wizard under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VlanState {
    id: u16,
    name: String,
    ports: Vec<String>,
    stage: Stage,
}

/// The call whose answer comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Stage {
    List,
    Candidate,
    Commit,
    Confirmation,
}

impl VlanState {
    pub(super) fn new(id: u16, name: String, ports: Vec<String>) -> Self {
        Self { id, name, ports, stage: Stage::List }
    }

    /// Names that go into commands.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.ports.iter().chain([&self.name])
    }

    pub(super) fn has_sound_id(&self) -> bool {
        (1..=4094).contains(&self.id)
    }

    /// Asks for the VLANs that are there.
    pub(super) fn ask(self, device: PromptDevice<'_>) -> Result<PromptStep, Fault> {
        if device.dialect.vlan_lines(self.id, &self.name, &self.ports).is_empty() {
            return Err(incompatible(format!("{} has no VLANs", device.dialect.title())));
        }
        Ok(match device.dialect.step_command(StepCommand::Vlans, false, &[]) {
            Some(command) => self.asking("1. Look at the VLANs that are there:", ToolCall::exec(&command), Stage::List),
            None => self.candidate(device),
        })
    }

    /// Goes on after the answer to the call before.
    pub(super) fn follow(self, answer: &str, device: PromptDevice<'_>) -> PromptStep {
        match self.stage {
            Stage::List if is_listed(answer, self.id) => {
                self.over(&format!("VLAN {} is there already.** Choose another, or change that one by hand.", self.id))
            }
            Stage::List => self.candidate(device),
            Stage::Candidate => self.commit(answer, device),
            Stage::Commit if device.confirmed.is_some() => {
                let (text, call) = change::confirmation(4);
                self.asking(&text, call, Stage::Confirmation)
            }
            Stage::Commit => self.over(&format!("VLAN {} is configured.**", self.id)),
            Stage::Confirmation => self.over(&format!("VLAN {} is configured and confirmed.**", self.id)),
        }
    }

    fn candidate(self, device: PromptDevice<'_>) -> PromptStep {
        let lines = device.dialect.vlan_lines(self.id, &self.name, &self.ports);
        self.asking("2. Put the VLAN into the candidate, which changes nothing yet:", change::candidate(&lines), Stage::Candidate)
    }

    fn commit(self, diff: &str, device: PromptDevice<'_>) -> PromptStep {
        let (text, call) = change::commit(3, diff, device.confirmed);
        self.asking(&text, call, Stage::Commit)
    }

    fn asking(self, text: &str, call: ToolCall, stage: Stage) -> PromptStep {
        let title = self.title();
        PromptStep::asking(title.clone(), &format!("## {title}\n\n{text}"), call, PromptState::Vlan(Self { stage, ..self }))
    }

    fn over(&self, verdict: &str) -> PromptStep {
        PromptStep::over(self.title(), &format!("## {}\n\n**{verdict}", self.title()))
    }

    pub(super) fn title(&self) -> String {
        format!("VLAN {} ({})", self.id, self.name)
    }
}

/// Checks that a line of the list begins with the identifier, or has it as its second word (Junos names the VLAN and its tag).
fn is_listed(answer: &str, id: u16) -> bool {
    let id = id.to_string();
    answer.lines().any(|line| line.split_whitespace().take(3).any(|word| word == id))
}
