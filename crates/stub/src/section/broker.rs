//! The key `mqtt` of a part, and the places of parts: each port and each topic of a broker belongs to a single part. Opens no connection.

use std::collections::BTreeMap;
use std::net::IpAddr;

use config::Flaw;
use config::file::At;
use config::reading::FileReading;
use schemars::JsonSchema;
use serde::Deserialize;
use stub_proto::table::ValueKind;

use super::{Stub, StubProfile};
use crate::broker::BrokerSettings;
use crate::port;
use crate::settings::{StubTool, StubValue};

/// A part behind a broker of MQTT 5.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StubMqttForm {
    /// Topic of the part: it hears below `/req`, and answers below `/rsp`.
    #[schemars(example = &"plant/valve")]
    topic: At<String>,
    /// Name of the gate at the broker.
    user: Option<String>,
    /// Password of that name, best as a reference such as `${env:NAME}`.
    password: Option<At<String>>,
    /// File with an authority of certificates (PEM), trusted for the broker beside those of this machine.
    authority: Option<At<String>>,
    /// A password may go over plain `mqtt://` to another machine. Default: false.
    #[serde(default)]
    insecure: bool,
}

/// Address of a broker.
#[derive(Debug, PartialEq, Eq)]
struct BrokerAddress {
    is_tls: bool,
    /// Name in lower case, or an address.
    host: String,
    port: u16,
}

impl Stub {
    /// Reads the broker. A port that is an address has a topic, and the reverse.
    pub(super) fn read_broker(&self, name: &At<String>, tools: &[StubTool], reading: &mut FileReading<'_>) -> Option<BrokerSettings> {
        let address = BrokerAddress::read(self.port.get());
        let (written, address) = match (&self.mqtt, address) {
            (None, None) => return None,
            (Some(written), Some(address)) => (written, address),
            (Some(_), None) => {
                let flaw = Flaw::new(self.port.span(), "this is no address of a broker");
                reading.refuse(flaw.help("write `mqtts://HOST:8883`, or `mqtt://HOST:1883` where the network is trusted"));
                return None;
            }
            (None, Some(_)) => {
                let flaw = Flaw::new(self.port.span(), "a part behind a broker has a topic");
                reading.refuse(flaw.help("add `mqtt = { topic = \"plant/valve\" }`"));
                return None;
            }
        };
        self.refuse_mixed(written, name, tools, reading);
        let form = written.get();
        form.refuse_open(&address, written, reading);
        let place = format!("stub.{}.mqtt.password", name.get());
        let BrokerAddress { is_tls, host, port } = address;
        Some(BrokerSettings {
            host,
            port,
            is_tls,
            topic: form.topic.get().clone(),
            user: form.user.clone(),
            password: form.password.as_ref().map(|password| reading.secret(password, &place)),
            authority: form.authority.as_ref().map(|authority| reading.path(authority)),
        })
    }

    /// Refuses what no part behind a broker has.
    fn refuse_mixed(&self, written: &At<StubMqttForm>, name: &At<String>, tools: &[StubTool], reading: &mut FileReading<'_>) {
        if self.profile == StubProfile::Table || self.can.is_some() || self.speed.is_some() {
            let flaw = Flaw::new(written.span(), "a part behind a broker has no profile, no bus and no speed");
            reading.refuse(flaw.help("leave `profile`, `can` and `speed` out"));
        }
        let topic = &written.get().topic;
        if !is_topic(topic.get()) {
            let flaw = Flaw::new(topic.span(), "no part has this topic");
            reading.refuse(flaw.help("write 1 to 200 characters without `+`, `#` and a `$` in front, as plant/valve"));
        }
        let has_bytes = |value: &StubValue| value.kind == ValueKind::Bytes;
        if let Some(tool) = tools.iter().find(|tool| tool.arguments.iter().chain(&tool.results).any(has_bytes)) {
            let flaw = Flaw::new(name.span(), format!("`{}` has `bytes`, and messages of MQTT are JSON", tool.name));
            reading.refuse(flaw.help("make it `text`, here and in the part"));
        }
    }
}

impl StubMqttForm {
    /// Refuses a password without a user or in the open, and an authority for a connection without certificates.
    fn refuse_open(&self, address: &BrokerAddress, written: &At<Self>, reading: &mut FileReading<'_>) {
        if self.password.is_some() && self.user.is_none() {
            reading.refuse(Flaw::new(written.span(), "a password has a `user`").help("write the gate's name at the broker"));
        }
        if let Some(authority) = self.authority.as_ref().filter(|_| !address.is_tls) {
            let flaw = Flaw::new(authority.span(), "an `authority` has no meaning for an address with `mqtt://`");
            reading.refuse(flaw.help("write `mqtts://` in `port`, or leave `authority` out"));
        }
        if let Some(password) = self.password.as_ref().filter(|_| !address.is_tls && !self.insecure && !address.is_here()) {
            let flaw =
                Flaw::new(password.span(), "a password does not go over plain `mqtt://`: whoever listens in could read the password")
                    .secret();
            reading
                .refuse(flaw.help("write `mqtts://` in `port`, or `insecure = true` in `mqtt` where the network is protected otherwise"));
        }
    }
}

impl BrokerAddress {
    /// Reads `mqtts://HOST:PORT` or `mqtt://HOST:PORT`.
    fn read(text: &str) -> Option<Self> {
        let (is_tls, rest) = match (text.strip_prefix("mqtts://"), text.strip_prefix("mqtt://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return None,
        };
        let usual = if is_tls { 8883 } else { 1883 };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok().filter(|port| *port != 0)?),
            _ => (rest, usual),
        };
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(inner) => inner.parse::<IpAddr>().ok()?.to_string(),
            None => host.to_ascii_lowercase(),
        };
        let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:_".contains(&byte));
        is_host.then_some(Self { is_tls, host, port })
    }

    /// Checks for a broker on this machine.
    fn is_here(&self) -> bool {
        self.host == "localhost" || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

/// Refuses two parts at one port, under whichever of its names, or under one topic of a broker.
pub(super) fn refuse_one_port(stubs: &BTreeMap<At<String>, Stub>, reading: &mut FileReading<'_>) {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for (name, stub) in stubs {
        let port = stub.port.get();
        let (place, help) = match (&stub.mqtt, BrokerAddress::read(port)) {
            (Some(mqtt), Some(BrokerAddress { host, port, .. })) => {
                (port::place_at_broker(&host, port, mqtt.get().topic.get()), "give each part a topic of its own")
            }
            // Refused for another reason.
            (Some(_), None) | (None, Some(_)) => continue,
            (None, None) => (port::place(port), "give each part a port of its own; two names may lead to one port"),
        };
        if let Some(other) = taken.insert(place, name.get()) {
            let flaw = Flaw::new(name.span(), format!("`{other}` has the port {port} as well"));
            reading.refuse(flaw.help(help));
        }
    }
}

fn is_topic(topic: &str) -> bool {
    let is_wild = topic.contains(|letter: char| "+#".contains(letter) || letter.is_control());
    (1..=200).contains(&topic.len()) && !is_wild && !topic.starts_with('$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_70_an_address_of_a_broker_has_one_form() {
        let read = |text: &str| BrokerAddress::read(text).map(|address| (address.host, address.port));
        let at = |host: &str, port| Some((host.to_owned(), port));
        for same in ["mqtt://H", "mqtt://h/", "mqtt://h:1883", "mqtt://h:1883/"] {
            assert_eq!(read(same), at("h", 1883), "{same}");
        }
        assert_eq!((read("mqtts://h"), read("mqtt://[0:0::1]:9")), (at("h", 8883), at("::1", 9)));
        for none in ["/dev/ttyACM0", "mqtt://", "mqtt://h:0", "mqtt://h:x", "mqtt://h:65536", "mqtt://a b", "mqtt://[h]"] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    #[test]
    fn topics_are_compared_to_the_letter() {
        let place = |topic| port::place_at_broker("h", 1, topic);
        assert!(place("p/a") != place("p//a") && place("p/a") != place("p/./a") && place("p/a") != place("p/a/"));
    }
}
