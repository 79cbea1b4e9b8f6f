//! Parts of the configuration, checked: the wire, and for each tool its number, values and annotations. Reads no file.

use std::time::Duration;

use config::diff::differing;
use config::resolved::FamilySettings;
use mesh_proto::annotation::LatencyClass;
use stub_proto::session::{MOST_TRIES, Profile, patience};
use stub_proto::table::{TableRow, ValueKind};

use crate::broker::BrokerSettings;
use crate::port;

/// Bits a second of a broker, as an allowance for networks without a wire: a quarter of a second for a message of either side.
const BROKER_SPEED: u32 = 10_000;

/// A part behind a wire.
#[derive(Clone, Debug, PartialEq)]
pub struct StubSettings {
    /// Path of the serial port, or address of the broker.
    pub port: String,
    /// Broker in the place of a port.
    pub broker: Option<BrokerSettings>,
    /// Bits a second.
    pub speed: u32,
    pub profile: Profile,
    pub heartbeat: Duration,
    pub tools: Vec<StubTool>,
}

/// A tool of a part.
#[derive(Clone, Debug, PartialEq)]
pub struct StubTool {
    pub name: String,
    /// Number on the wire.
    pub id: u8,
    pub description: String,
    pub arguments: Vec<StubValue>,
    /// Kind of the answer: a map with the results by place, or the only result.
    pub answer: ValueKind,
    pub results: Vec<StubValue>,
    pub is_mutable: bool,
    pub is_reversible: bool,
    pub is_idempotent: bool,
    pub latency: LatencyClass,
    /// Time that the part works.
    pub work: Duration,
}

/// An argument or a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StubValue {
    pub name: String,
    pub kind: ValueKind,
    /// Bytes in a fixed layout.
    pub bytes: u8,
    pub unit: Option<String>,
    pub description: Option<String>,
    pub minimum: Option<i64>,
    pub maximum: Option<i64>,
}

impl StubTool {
    /// Checks that two executions do no more than one.
    pub fn is_repeatable(&self) -> bool {
        self.is_idempotent || !self.is_mutable
    }

    /// Row of a part's table that agrees with the configuration.
    pub fn row(&self) -> TableRow {
        TableRow { tool: self.id, answer: self.answer, arguments: self.arguments.iter().map(|value| value.kind).collect() }
    }

    /// Longest time of a call on a wire that takes `both_ways` for the longest frames, without what waits before the call.
    pub fn longest(&self, both_ways: Duration) -> Duration {
        let tries = if self.is_repeatable() { u32::from(MOST_TRIES) } else { 1 };
        patience(both_ways, self.work).saturating_mul(tries)
    }
}

impl StubSettings {
    /// Speed of messages, in bits a second with ten bits a byte. An adapter writes a byte of the bus as three, and a frame of eight bytes has
    /// 130 bits with all around them.
    pub fn wire_speed(&self) -> u32 {
        match self.profile {
            Profile::Described | Profile::Fixed(_) => self.speed,
            Profile::Can(bus) => (bus.bits() / 2).min(self.speed / 3),
            Profile::Mqtt => BROKER_SPEED,
        }
    }

    /// Place of the part, which nobody else may have: its port, or the topic of a broker.
    pub fn place(&self) -> String {
        match &self.broker {
            Some(broker) => port::place_at_broker(&broker.host, broker.port, &broker.topic),
            None => port::place(&self.port),
        }
    }

    /// Word for the wire in the annotations of tools (`x-mcpax-transport`).
    pub fn transport(&self) -> &'static str {
        match self.profile {
            Profile::Described | Profile::Fixed(_) => "uart_cbor",
            Profile::Can(_) => "can_cbor",
            Profile::Mqtt => "mqtt_json",
        }
    }
}

impl FamilySettings for StubSettings {
    const FAMILY: &'static str = "stub";

    fn description(&self) -> String {
        match &self.broker {
            Some(broker) => format!("a part at {}, topic {}", self.port, broker.topic),
            None => format!("a part at {}, {} bits a second", self.port, self.speed),
        }
    }

    fn differing(&self, old: &Self) -> Vec<&'static str> {
        differing([
            ("port", self.port != old.port),
            ("mqtt", self.broker != old.broker),
            ("speed", self.speed != old.speed),
            ("profile", self.profile != old.profile),
            ("heartbeat", self.heartbeat != old.heartbeat),
            ("tool", self.tools != old.tools),
        ])
    }
}
