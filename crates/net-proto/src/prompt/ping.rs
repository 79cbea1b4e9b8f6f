//! Diagnosis of a ping that fails: the route, its interface, the neighbour, the ping itself. Ends with the first cause that an answer shows.
//! Does not run a command.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{PromptDevice, PromptState, PromptStep, ToolCall, change};
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
    /// Without a route: an interface into the network of the destination may be shut down.
    Network,
    Interface,
    Neighbour,
    Ping,
    /// Interface shut down: candidate, commit and confirmation that switch the interface on.
    Candidate,
    Commit,
    Confirmation,
}

const STAGES: [(Stage, StepCommand, &str); 5] = [
    (Stage::Route, StepCommand::Route, "1. Look up the route"),
    (Stage::Network, StepCommand::Interfaces, "2. Look for an interface into the network of the destination"),
    (Stage::Interface, StepCommand::Interface, "2. Verify the outbound interface"),
    (Stage::Neighbour, StepCommand::Neighbour, "3. Check the neighbour entry"),
    (Stage::Ping, StepCommand::Ping, "4. Run an extended ping"),
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
        for (stage, command, title) in STAGES.iter().filter(|(stage, ..)| *stage >= self.stage) {
            let Some(text) = self.command(device.dialect, *stage, *command) else { continue };
            let markdown = format!("{}{title}:", self.report());
            self.stage = *stage;
            return PromptStep::asking(self.title(), &markdown, ToolCall::exec(&text), PromptState::Ping(self));
        }
        self.concluded("No fault shows on this device: look at the way back, and at filters of the destination.")
    }

    /// Reads the answer to the command of this stage.
    pub(super) fn follow(mut self, answer: &str, device: PromptDevice<'_>) -> PromptStep {
        let cause = match self.stage {
            Stage::Route => self.read_route(answer, device.dialect),
            Stage::Network => match self.find_shut_down(answer, device.dialect) {
                Some(interface) => {
                    self.interface = Some(interface);
                    return self.shut_down(device);
                }
                None => Some(self.unrouted()),
            },
            Stage::Interface if matches(&device.dialect.step_answers().shut_down, answer) => return self.shut_down(device),
            Stage::Interface => self.read_interface(answer, device.dialect),
            Stage::Candidate => return self.mend(change::commit(6, answer, device.confirmed), Stage::Commit),
            Stage::Commit if device.confirmed.is_some() => return self.mend(change::confirmation(7), Stage::Confirmation),
            Stage::Commit | Stage::Confirmation => {
                let interface = self.interface.as_deref().unwrap_or_default();
                Some(format!("{interface} was shut down by configuration, and is switched on now. Try the ping again."))
            }
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
            Stage::Network => self.stage == stage && self.vrf.is_none(),
            Stage::Candidate | Stage::Commit | Stage::Confirmation => false,
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
            self.stage = Stage::Network;
            let has_next = self.command(dialect, Stage::Network, StepCommand::Interfaces).is_some();
            return (!has_next).then(|| self.unrouted());
        }
        let found = answers.out_interface.as_ref().and_then(|pattern| pattern.captures(answer));
        // The name goes into commands, and the device says it.
        let name = found.and_then(|found| found.name("interface")).map(|name| name.as_str()).filter(|name| super::handle::is_name(name));
        self.interface = name.map(str::to_owned);
        let way = self.interface.as_deref().map_or_else(String::new, |interface| format!(" by {interface}"));
        self.findings.push(format!("A route to {dst} is there{way}."));
        self.stage = Stage::Interface;
        None
    }

    fn unrouted(&self) -> String {
        format!("There is no route to {}. Add one, or mend the routing protocol that should.", self.dst)
    }

    /// An interface that is shut down and has an address in the network of the destination.
    fn find_shut_down(&self, answer: &str, dialect: &Dialect) -> Option<String> {
        let head = dialect.step_answers().interface_head.as_ref()?;
        let mut down = None;
        for line in answer.lines() {
            if let Some(found) = head.captures(line) {
                down = found.name("down").and(found.name("interface")).map(|name| name.as_str());
            } else if down.is_some() && line.split_whitespace().any(|word| holds(word, self.dst)) {
                return down.filter(|name| super::handle::is_name(name)).map(str::to_owned);
            }
        }
        None
    }

    /// Cause of the failure, if the interface shows one.
    fn read_interface(&mut self, answer: &str, dialect: &Dialect) -> Option<String> {
        let answers = dialect.step_answers();
        let interface = self.interface.clone().unwrap_or_default();
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

    /// Ends with the cause, or goes on to mend the cause where a change can be taken back.
    fn shut_down(mut self, device: PromptDevice<'_>) -> PromptStep {
        let interface = self.interface.clone().unwrap_or_default();
        let (lines, cause) = (device.dialect.switch_on_lines(&interface), format!("{interface} is shut down by configuration."));
        if lines.is_empty() || device.confirmed.is_none() {
            return self.concluded(&cause);
        }
        self.findings.push(format!("**{cause}**"));
        let text = "5. If nobody meant that, put the change into the candidate, which changes nothing yet:";
        self.mend((text.to_owned(), change::candidate(&lines)), Stage::Candidate)
    }

    /// A step that mends the cause.
    fn mend(mut self, (text, call): (String, ToolCall), stage: Stage) -> PromptStep {
        let markdown = format!("{}{text}", self.report());
        self.stage = stage;
        PromptStep::asking(self.title(), &markdown, call, PromptState::Ping(self))
    }

    pub(super) fn title(&self) -> String {
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

/// Checks that a word is a network, or an address with the length of its network, and that the network holds the address.
fn holds(word: &str, address: IpAddr) -> bool {
    let Some((network, length)) = word.split_once('/') else { return false };
    let (Ok(network), Ok(length)) = (network.parse::<IpAddr>(), length.parse::<u32>()) else { return false };
    let (bits, differing) = match (network, address) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (32, u128::from(one.to_bits() ^ other.to_bits())),
        (IpAddr::V6(one), IpAddr::V6(other)) => (128, one.to_bits() ^ other.to_bits()),
        _ => return false,
    };
    length <= bits && differing.checked_shr(bits - length).unwrap_or(0) == 0
}

/// Checks that a line holds the address as a whole word.
fn has_word(line: &str, address: &str) -> bool {
    line.split(|c: char| !(c.is_ascii_hexdigit() || matches!(c, '.' | ':'))).any(|word| word == address)
}
