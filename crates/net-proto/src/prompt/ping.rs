//! Diagnosis of a ping that fails: the route, its interface, the neighbour, the ping itself. Ends with the first cause that an answer shows.
//! Does not run a command.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{PromptDevice, PromptState, PromptStep, ToolCall};
use crate::dialect::{Dialect, StepCommand};

/// Diagnosis under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingState {
    src: IpAddr,
    dst: IpAddr,
    vrf: Option<String>,
    stage: Stage,
    /// Sentences about what was found so far.
    findings: Vec<String>,
    /// Interface towards the destination, once it is known.
    interface: Option<String>,
}

/// The command whose answer comes next, in the order of the diagnosis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Stage {
    Route,
    Interface,
    Neighbour,
    Ping,
}

const STAGES: [(Stage, StepCommand, &str); 4] = [
    (Stage::Route, StepCommand::Route, "Look up the route"),
    (Stage::Interface, StepCommand::Interface, "Verify the outbound interface"),
    (Stage::Neighbour, StepCommand::Neighbour, "Check the neighbour entry"),
    (Stage::Ping, StepCommand::Ping, "Run an extended ping"),
];

impl PingState {
    pub(super) fn new(src: IpAddr, dst: IpAddr, vrf: Option<String>) -> Self {
        Self { src, dst, vrf, stage: Stage::Route, findings: Vec::new(), interface: None }
    }

    /// Names that go into commands.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.vrf.iter().chain(&self.interface)
    }

    /// Asks for the command of this stage, or of the next one that the dialect has.
    pub(super) fn ask(mut self, device: PromptDevice<'_>) -> PromptStep {
        for (number, (stage, command, title)) in STAGES.iter().enumerate().filter(|(_, (stage, ..))| *stage >= self.stage) {
            let Some(text) = self.command(device.dialect, *stage, *command) else { continue };
            let markdown = format!("{}{}. {title}:", self.report(), number + 1);
            self.stage = *stage;
            return PromptStep::asking(self.title(), &markdown, ToolCall::exec(&text), PromptState::Ping(self));
        }
        self.concluded("No fault shows on this device: look at the way back, and at filters of the destination.")
    }

    /// Reads the answer to the command of this stage.
    pub(super) fn follow(mut self, answer: &str, device: PromptDevice<'_>) -> PromptStep {
        let cause = match self.stage {
            Stage::Route => self.read_route(answer, device.dialect),
            Stage::Interface => self.read_interface(answer, device.dialect),
            Stage::Neighbour => {
                self.read_neighbour(answer, device.dialect);
                None
            }
            Stage::Ping => Some(verdict(device.dialect, answer)),
        };
        match cause {
            Some(cause) => self.concluded(&cause),
            None => self.ask(device),
        }
    }

    fn command(&self, dialect: &Dialect, stage: Stage, command: StepCommand) -> Option<String> {
        // ARP is of IPv4, and nobody knows an interface without a route.
        let is_needed = match stage {
            Stage::Route | Stage::Ping => true,
            Stage::Interface => self.interface.is_some(),
            Stage::Neighbour => self.dst.is_ipv4() && self.interface.is_some(),
        };
        let (src, dst) = (self.src.to_string(), self.dst.to_string());
        let values = [
            ("src", src.as_str()),
            ("dst", &dst),
            ("vrf", self.vrf.as_deref().unwrap_or_default()),
            ("interface", self.interface.as_deref().unwrap_or_default()),
            ("ip", if self.dst.is_ipv6() { "ipv6" } else { "ip" }),
        ];
        dialect.step_command(command, self.vrf.is_some(), &values).filter(|_| is_needed)
    }

    /// Cause of the failure, if the route shows one.
    fn read_route(&mut self, answer: &str, dialect: &Dialect) -> Option<String> {
        let (answers, dst) = (dialect.step_answers(), self.dst);
        if matches(&answers.no_route, answer) {
            return Some(format!("There is no route to {dst}. Add one, or mend the routing protocol that should."));
        }
        let found = answers.out_interface.as_ref().and_then(|pattern| pattern.captures(answer));
        self.interface = found.and_then(|found| found.name("interface")).map(|name| name.as_str().to_owned());
        let way = self.interface.as_deref().map_or_else(String::new, |interface| format!(" by {interface}"));
        self.findings.push(format!("A route to {dst} is there{way}."));
        self.stage = Stage::Interface;
        None
    }

    /// Cause of the failure, if the interface shows one.
    fn read_interface(&mut self, answer: &str, dialect: &Dialect) -> Option<String> {
        let answers = dialect.step_answers();
        let interface = self.interface.clone().unwrap_or_default();
        if matches(&answers.shut_down, answer) {
            return Some(shut_down(&interface, dialect));
        }
        if matches(&answers.no_link, answer) {
            return Some(format!("{interface} has no link: check its cable, and the other end."));
        }
        self.findings.push(format!("{interface} is up."));
        self.stage = Stage::Neighbour;
        None
    }

    fn read_neighbour(&mut self, answer: &str, dialect: &Dialect) {
        let destination = self.dst.to_string();
        let mut lines = answer.lines().filter(|line| has_word(line, &destination));
        let pattern = dialect.step_answers().hardware_address.as_ref();
        let found = pattern.and_then(|pattern| lines.find_map(|line| pattern.captures(line)));
        self.findings.push(match found.as_ref().and_then(|found| found.name("address")) {
            Some(address) => format!("{destination} answers on the link, as {}.", address.as_str()),
            None => format!("{destination} has no entry among the neighbours: it is behind a router, or does not answer."),
        });
        self.stage = Stage::Ping;
    }

    fn title(&self) -> String {
        let vrf = self.vrf.as_ref().map_or_else(String::new, |vrf| format!(" (VRF {vrf})"));
        format!("Ping failure diagnosis: {} → {}{vrf}", self.src, self.dst)
    }

    fn report(&self) -> String {
        let findings: String = self.findings.iter().map(|finding| format!("- {finding}\n")).collect();
        let gap = if findings.is_empty() { "" } else { "\n" };
        format!("## {}\n\n{findings}{gap}", self.title())
    }

    fn concluded(&self, cause: &str) -> PromptStep {
        PromptStep::over(self.title(), &format!("{}- **{cause}**", self.report()))
    }
}

fn matches(pattern: &Option<regex::Regex>, answer: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(answer))
}

fn verdict(dialect: &Dialect, answer: &str) -> String {
    match dialect.step_answers().ping_share.as_ref().and_then(|pattern| share(pattern, answer)) {
        None => "The ping gave no result. Take the findings above to the next router.".to_owned(),
        Some(100) => "All pings are answered now: the fault is gone, or lies in another VRF or source.".to_owned(),
        Some(0) => "No ping is answered: look at the way back to the source, and at filters between.".to_owned(),
        Some(share) => format!("{share} % of the pings are answered: look for loss, a rate limit or an unsteady route."),
    }
}

/// Percentage of pings that were answered.
fn share(pattern: &regex::Regex, answer: &str) -> Option<u8> {
    let found = pattern.captures(answer)?;
    let number = |name: &str| found.name(name).and_then(|text| text.as_str().parse::<f32>().ok());
    let percent = number("percent").or_else(|| number("lost").map(|lost| 100.0 - lost))?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0 to 100 and rounded")]
    Some(percent.clamp(0.0, 100.0).round() as u8)
}

/// Checks that a line holds the address as a whole word.
fn has_word(line: &str, address: &str) -> bool {
    line.split(|c: char| !(c.is_ascii_hexdigit() || matches!(c, '.' | ':'))).any(|word| word == address)
}

fn shut_down(interface: &str, dialect: &Dialect) -> String {
    let lines = dialect.switch_on_lines(interface);
    let cause = format!("{interface} is shut down by configuration.");
    if lines.is_empty() {
        return cause;
    }
    let call = ToolCall { tool: "network.cli.configure", arguments: serde_json::json!({ "commands": lines }), needs_approval: true };
    format!("{cause} If nobody meant that, this puts the change into the candidate: {}", call.written())
}
