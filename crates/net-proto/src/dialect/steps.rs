//! Commands of a dialect for the steps of a prompt (section 6 of the draft), with the answers that tell something. Does not know the order
//! of the steps; [`crate::prompt`] does.

use regex::Regex;
use serde::Deserialize;

use super::Dialect;

/// The `[steps]` of a dialect file. A command that the dialect lacks is left out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StepsFile {
    pub route: Option<String>,
    pub route_in_vrf: Option<String>,
    /// Matches the answer for an address without a route.
    pub no_route: Option<String>,
    /// Finds `interface` in the answer for an address with a route.
    pub out_interface: Option<String>,
    /// Shows all interfaces with their addresses.
    pub interfaces: Option<String>,
    /// Finds `interface` in the first line about an interface, and `down` where the interface is shut down.
    pub interface_head: Option<String>,
    pub interface: Option<String>,
    /// Matches the answer for an interface that is shut down.
    pub shut_down: Option<String>,
    /// Matches the answer for an interface without a link.
    pub no_link: Option<String>,
    pub neighbour: Option<String>,
    pub neighbour_in_vrf: Option<String>,
    /// Finds the hardware address of a neighbour that answered.
    pub hardware_address: Option<String>,
    pub ping: Option<String>,
    pub ping_in_vrf: Option<String>,
    /// Finds `lost` or `percent` in the answer of a ping: the share that came back is `percent`, or 100 without `lost`.
    pub ping_share: Option<String>,
    pub vlans: Option<String>,
    /// Lines that make a VLAN.
    pub vlan: Vec<String>,
    /// Lines that put a port into a VLAN.
    pub vlan_port: Vec<String>,
    /// Lines that switch an interface on.
    pub switch_on: Vec<String>,
}

/// Purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepCommand {
    Route,
    Interfaces,
    Interface,
    Neighbour,
    Ping,
    Vlans,
}

/// Findings in answers.
#[derive(Debug, Default)]
pub(crate) struct StepAnswers {
    pub no_route: Option<Regex>,
    pub out_interface: Option<Regex>,
    pub interface_head: Option<Regex>,
    pub shut_down: Option<Regex>,
    pub no_link: Option<Regex>,
    pub hardware_address: Option<Regex>,
    pub ping_share: Option<Regex>,
}

impl StepsFile {
    /// The expressions, made by `compile`.
    pub(super) fn answers<E>(&self, compile: impl Fn(&String) -> Result<Regex, E>) -> Result<StepAnswers, E> {
        let of = |text: &Option<String>| text.as_ref().map(&compile).transpose();
        Ok(StepAnswers {
            no_route: of(&self.no_route)?,
            out_interface: of(&self.out_interface)?,
            interface_head: of(&self.interface_head)?,
            shut_down: of(&self.shut_down)?,
            no_link: of(&self.no_link)?,
            hardware_address: of(&self.hardware_address)?,
            ping_share: of(&self.ping_share)?,
        })
    }
}

impl Dialect {
    /// The command for a step, with `{name}` replaced by values; `None` where the dialect has none.
    pub fn step_command(&self, step: StepCommand, in_vrf: bool, values: &[(&str, &str)]) -> Option<String> {
        let steps = &self.file.steps;
        let template = match (step, in_vrf) {
            (StepCommand::Route, false) => &steps.route,
            (StepCommand::Route, true) => &steps.route_in_vrf,
            (StepCommand::Interfaces, _) => &steps.interfaces,
            (StepCommand::Interface, _) => &steps.interface,
            (StepCommand::Neighbour, false) => &steps.neighbour,
            (StepCommand::Neighbour, true) => &steps.neighbour_in_vrf,
            (StepCommand::Ping, false) => &steps.ping,
            (StepCommand::Ping, true) => &steps.ping_in_vrf,
            (StepCommand::Vlans, _) => &steps.vlans,
        };
        template.as_deref().map(|template| filled(template, values))
    }

    /// Lines that make a VLAN with its ports; empty where the dialect has no VLANs.
    pub fn vlan_lines(&self, id: u16, name: &str, ports: &[String]) -> Vec<String> {
        let id = id.to_string();
        let steps = &self.file.steps;
        let mut lines: Vec<String> = steps.vlan.iter().map(|line| filled(line, &[("id", &id), ("name", name)])).collect();
        for port in ports.iter().filter(|_| !lines.is_empty()).collect::<Vec<_>>() {
            lines.extend(steps.vlan_port.iter().map(|line| filled(line, &[("id", &id), ("name", name), ("port", port)])));
        }
        lines
    }

    /// Lines that switch an interface on.
    pub fn switch_on_lines(&self, interface: &str) -> Vec<String> {
        self.file.steps.switch_on.iter().map(|line| filled(line, &[("interface", interface)])).collect()
    }

    pub(crate) fn step_answers(&self) -> &StepAnswers {
        &self.answers
    }
}

fn filled(template: &str, values: &[(&str, &str)]) -> String {
    values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}
