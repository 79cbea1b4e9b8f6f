//! The section `[stub.NAME]`: each mounts a part behind a wire under that name. Opens no port.

mod broker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use config::diff::Change;
use config::file::At;
use config::reading::FileReading;
use config::resolved::{Config, FamilyTransport, Mount, Sharing, Transport};
use config::{Flaw, Section};
use mesh_proto::annotation::{self, LatencyClass};
use schemars::JsonSchema;
use serde::Deserialize;
use stub_proto::can::CanForm;
use stub_proto::check::Width;
use stub_proto::fixed::FixedForm;
use stub_proto::frame::{AROUND, MOST_MESSAGE};
use stub_proto::session::Profile;
use stub_proto::table::{MOST_ARGUMENTS, ValueKind};

use self::broker::{StubMqttForm, refuse_one_port};
use crate::settings::{StubSettings, StubTool, StubValue};

/// Speed of a wire without a setting.
pub const SPEED: u32 = 115_200;

/// Bits a second on a bus without a setting.
pub const BIT_RATE: u32 = 500_000;
const HEARTBEAT: Duration = Duration::from_secs(5);
const WORK: Duration = Duration::from_millis(50);
/// Time that a call may wait for others, where the configuration does not ask for less.
const QUEUE: Duration = Duration::from_secs(2);
/// Bytes of a status behind the results of a fixed layout.
const STATUS: usize = 1;

/// Parts behind a wire: `[stub.NAME]`.
pub struct StubSection;

/// The key of parts.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StubForm {
    /// Parts with a microcontroller behind a serial line, by the name in front of their tools.
    stub: BTreeMap<At<String>, Stub>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Stub {
    /// Serial port, or a pseudo-terminal; or the address of a broker, as `mqtts://broker.example:8883`.
    #[schemars(example = &"/dev/ttyACM0")]
    port: At<String>,
    /// Bits a second. Default: 115200.
    speed: Option<At<u32>>,
    /// Profile of the part. Default: `described`.
    #[serde(default)]
    profile: StubProfile,
    /// Bits of the checksum of a table part. Default: 16.
    checksum: Option<At<u8>>,
    /// CAN bus behind the port, which leads to an adapter that speaks slcan.
    can: Option<At<StubCanForm>>,
    /// Topic of a part behind a broker of MQTT, whose address is the `port`.
    mqtt: Option<At<StubMqttForm>>,
    /// Rest after which the part is asked for a sign of life. Default: `5s`.
    heartbeat: Option<At<String>>,
    /// Tools of the part, by name.
    #[serde(default)]
    tool: BTreeMap<At<String>, StubToolForm>,
}

/// A part on a CAN bus: ISO-TP between two identifiers.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StubCanForm {
    /// Identifier of frames for the part.
    to: u32,
    /// Identifier of frames from the part.
    from: u32,
    /// Identifiers have 29 bits. Default: false, 11 bits.
    #[serde(default)]
    extended: bool,
    /// Bits a second on the bus. Default: 500000.
    bit_rate: Option<u32>,
}

/// Profile of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum StubProfile {
    /// B: the part describes itself in CBOR.
    #[default]
    Described,
    /// A: numbered commands with fixed layouts.
    Table,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StubToolForm {
    /// Number of the tool on the wire, 1 to 255.
    id: At<u8>,
    /// Description of the tool, by which models choose.
    description: String,
    /// Arguments in the order of the part.
    #[serde(default)]
    arguments: Vec<StubValueForm>,
    /// Kind of the answer: `map`, or that of the only result. Default: that of the only result, else `map`.
    answer: Option<At<String>>,
    /// Results in the order of the part.
    #[serde(default)]
    results: Vec<StubValueForm>,
    /// A call changes nothing. Default: false.
    #[serde(default)]
    read_only: bool,
    /// Changes by a call can be undone. Default: false.
    #[serde(default)]
    reversible: bool,
    /// Two equal calls do what one does, so that a lost call may be sent again. Default: false.
    #[serde(default)]
    idempotent: bool,
    /// Time limit of a call: `realtime`, `fast`, `standard`, `slow` or `batch`. Default: the first that the wire can keep.
    latency_class: Option<At<String>>,
    /// Time that the part works on a call. Default: `50ms`.
    work: Option<At<String>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StubValueForm {
    /// Name of the argument or result.
    name: String,
    /// Kind: `uint`, `int`, `bool`, `text`, `bytes` or `float`; in a table part `uint`, `int`, `bool` or `bytes`.
    kind: At<String>,
    /// Bytes in a table part: 1 to 4 of a number, any of `bytes`. Default: 1.
    bytes: Option<At<u8>>,
    /// Unit, as people write it.
    #[schemars(example = &"°C")]
    unit: Option<String>,
    /// Meaning of the value.
    description: Option<String>,
    /// Least number.
    minimum: Option<i64>,
    /// Largest number.
    maximum: Option<i64>,
}

impl Section for StubSection {
    type Form = StubForm;

    const MOUNTS: Option<&'static str> = Some("stub");

    fn resolve(&self, form: &Self::Form, reading: &mut FileReading<'_>, config: &mut Config) {
        refuse_one_port(&form.stub, reading);
        for (name, stub) in &form.stub {
            let Some(segment) = reading.free_segment(name, "stub", config) else { continue };
            let settings = stub.settings(name, reading);
            let reached = annotation::Transport::parse(settings.transport()).unwrap_or_default();
            let transport = Transport::Family(FamilyTransport::new(settings));
            let mount = Mount { sharing: Sharing::Always, reached, ..Mount::new(segment.clone(), transport, "banyan.toml") };
            config.mounts.insert(segment, Arc::new(mount));
        }
    }

    /// A changed part shows as a changed mount.
    fn compare(&self, _old: &Config, _new: &Config) -> Vec<Change> {
        Vec::new()
    }
}

impl Stub {
    fn settings(&self, name: &At<String>, reading: &mut FileReading<'_>) -> StubSettings {
        let speed = self.speed.as_ref().map_or(SPEED, |speed| *speed.get());
        if let Some(written) = self.speed.as_ref().filter(|speed| !(300..=4_000_000).contains(speed.get())) {
            reading.refuse(Flaw::new(written.span(), "no wire has this speed").help("write 300 to 4000000, as the firmware has it"));
        }
        if self.tool.is_empty() {
            let flaw = Flaw::new(name.span(), format!("the part `{}` has no tools", name.get()));
            reading.refuse(flaw.help(format!("add [stub.{}.tool.NAME] for each, or let `banyan stub add` ask the part", name.get())));
        }
        let mut tools = Vec::new();
        for (called, tool) in &self.tool {
            tools.push(tool.settings(called, self.profile, reading));
        }
        refuse_twice(&self.tool, reading);
        let broker = self.read_broker(name, &tools, reading);
        let profile = if broker.is_some() { Profile::Mqtt } else { self.profile(&tools, reading) };
        let heartbeat = reading.duration(self.heartbeat.as_ref()).unwrap_or(HEARTBEAT);
        let mut settings = StubSettings { port: self.port.get().clone(), broker, speed, profile, heartbeat, tools };
        self.hold_classes(&mut settings, reading);
        settings
    }

    fn profile(&self, tools: &[StubTool], reading: &mut FileReading<'_>) -> Profile {
        if let Some(can) = &self.can {
            return Profile::Can(self.bus(can, reading));
        }
        if self.profile == StubProfile::Described {
            return Profile::Described;
        }
        let bytes = |values: &[StubValue]| values.iter().map(|value| usize::from(value.bytes)).sum::<usize>();
        let longest = tools.iter().map(|tool| bytes(&tool.arguments).max(bytes(&tool.results) + STATUS)).max().unwrap_or(STATUS);
        let most_payload = u8::try_from(longest).unwrap_or(u8::MAX);
        let width = match self.checksum.as_ref() {
            None => Width::Sixteen,
            Some(bits) => match *bits.get() {
                16 => Width::Sixteen,
                8 if longest <= 10 => Width::Eight,
                8 => {
                    reading.refuse(
                        Flaw::new(bits.span(), "8 bits protect a payload of 10 bytes at most").help("write 16, here and in the firmware"),
                    );
                    Width::Eight
                }
                _ => {
                    reading.refuse(Flaw::new(bits.span(), "a checksum has 8 or 16 bits").help("write what the firmware has"));
                    Width::Sixteen
                }
            },
        };
        Profile::Fixed(FixedForm { width, most_payload })
    }

    fn bus(&self, written: &At<StubCanForm>, reading: &mut FileReading<'_>) -> CanForm {
        let StubCanForm { to, from, extended, bit_rate } = *written.get();
        if self.profile == StubProfile::Table {
            reading.refuse(Flaw::new(written.span(), "a table part has no frames for a CAN bus").help("leave `profile` out"));
        }
        let last = CanForm::last(extended);
        if to == from || to > last || from > last {
            let flaw = Flaw::new(written.span(), "the identifiers `to` and `from` are no two identifiers of a bus");
            reading.refuse(flaw.help(format!("write two numbers of 0 to {last:#x}; longer ones take `extended = true`")));
        }
        let rate = CanForm::rate_digit(bit_rate.unwrap_or(BIT_RATE));
        if rate.is_none() {
            let flaw = Flaw::new(written.span(), "no adapter has this bit rate");
            reading.refuse(flaw.help("write 10000, 20000, 50000, 100000, 125000, 250000, 500000, 800000 or 1000000"));
        }
        CanForm { to, from, is_extended: extended, rate: rate.unwrap_or_default() }
    }

    /// Gives each tool a latency class that the wire can keep, and refuses one that it can't.
    fn hold_classes(&self, settings: &mut StubSettings, reading: &mut FileReading<'_>) {
        let both_ways = both_ways(settings);
        for tool in &mut settings.tools {
            let longest = tool.longest(both_ways);
            let written = self.tool.iter().find(|(name, _)| *name.get() == tool.name).and_then(|(_, tool)| tool.latency_class.as_ref());
            let Some(written) = written else {
                // Others may be before it, and the part may have to be asked how far it is.
                tool.latency = LatencyClass::of_duration(longest.saturating_add(QUEUE));
                continue;
            };
            if tool.latency.timeout().is_some_and(|most| longest > most) {
                let milliseconds = longest.as_millis();
                let flaw = Flaw::new(written.span(), format!("a call of `{}` may take {milliseconds} ms on this wire", tool.name));
                reading.refuse(flaw.help(format!("write \"{}\", or make the wire faster", LatencyClass::of_duration(longest).as_str())));
            }
        }
    }
}

/// Longest time of a call's frames, there and back.
fn both_ways(settings: &StubSettings) -> Duration {
    let bytes = match settings.profile {
        Profile::Described | Profile::Can(_) | Profile::Mqtt => 2 * (MOST_MESSAGE + AROUND),
        Profile::Fixed(form) => 2 * (form.around() + usize::from(form.most_payload)),
    };
    let bits = (bytes as u64).saturating_mul(10_000_000);
    Duration::from_micros(bits / u64::from(settings.wire_speed().max(1)))
}

fn refuse_twice(tools: &BTreeMap<At<String>, StubToolForm>, reading: &mut FileReading<'_>) {
    let mut taken: BTreeMap<u8, &str> = BTreeMap::new();
    for (name, tool) in tools {
        if let Some(other) = taken.insert(*tool.id.get(), name.get()) {
            let flaw = Flaw::new(tool.id.span(), format!("`{other}` has the number {} as well", tool.id.get()));
            reading.refuse(flaw.help("each tool of a part has a number of its own"));
        }
    }
}

impl StubToolForm {
    fn settings(&self, name: &At<String>, profile: StubProfile, reading: &mut FileReading<'_>) -> StubTool {
        if !is_tool_name(name.get()) {
            reading.refuse(Flaw::new(name.span(), "a tool has 1 to 64 of a-z, A-Z, 0-9, `_` and `-`").help("for example `set_lamp`"));
        }
        if *self.id.get() == 0 {
            reading.refuse(Flaw::new(self.id.span(), "no tool has the number 0").help("write the number in the firmware's table"));
        }
        if self.arguments.len() > MOST_ARGUMENTS && profile == StubProfile::Described {
            reading.refuse(Flaw::new(name.span(), format!("a tool has {MOST_ARGUMENTS} arguments at most")).help("make two tools of it"));
        }
        let class = self.latency_class.as_ref().and_then(|class| {
            let known = LatencyClass::parse(class.get());
            if known.is_none() {
                reading.refuse(
                    Flaw::new(class.span(), format!("there is no latency class `{}`", class.get()))
                        .help("write realtime, fast, standard, slow or batch"),
                );
            }
            known
        });
        let results: Vec<StubValue> = self.results.iter().map(|value| value.settings(profile, reading)).collect();
        StubTool {
            name: name.get().clone(),
            id: *self.id.get(),
            description: self.description.clone(),
            arguments: self.arguments.iter().map(|value| value.settings(profile, reading)).collect(),
            answer: self.answer(&results, reading),
            results,
            is_mutable: !self.read_only,
            is_reversible: self.reversible || self.read_only,
            is_idempotent: self.idempotent || self.read_only,
            latency: class.unwrap_or(LatencyClass::Batch),
            work: reading.duration(self.work.as_ref()).unwrap_or(WORK),
        }
    }

    fn answer(&self, results: &[StubValue], reading: &mut FileReading<'_>) -> ValueKind {
        let only = match results {
            [only] => only.kind,
            _ => ValueKind::Map,
        };
        let Some(written) = &self.answer else { return only };
        let kind = ValueKind::from_word(written.get());
        if kind == Some(ValueKind::Map) || kind == Some(only) {
            return kind.unwrap_or(only);
        }
        let flaw = Flaw::new(written.span(), format!("an answer of this kind does not hold {} results", results.len()));
        reading.refuse(flaw.help(format!("write \"map\" or \"{}\"", only.word())));
        only
    }
}

impl StubValueForm {
    fn settings(&self, profile: StubProfile, reading: &mut FileReading<'_>) -> StubValue {
        let kind = ValueKind::from_word(self.kind.get()).filter(|kind| is_scalar(*kind, profile));
        if kind.is_none() {
            let kinds = if profile == StubProfile::Table { "uint, int, bool or bytes" } else { "uint, int, bool, text, bytes or float" };
            reading.refuse(
                Flaw::new(self.kind.span(), format!("`{}` is no kind of a value here", self.kind.get())).help(format!("write {kinds}")),
            );
        }
        let kind = kind.unwrap_or(ValueKind::Uint);
        let bytes = self.bytes.as_ref().map_or(1, |bytes| *bytes.get());
        if let Some(written) = &self.bytes
            && (bytes == 0 || (kind != ValueKind::Bytes && bytes > 4) || (kind == ValueKind::Bool && bytes > 1))
        {
            reading.refuse(Flaw::new(written.span(), "a number has 1 to 4 bytes").help("write the bytes of the firmware's layout"));
        }
        StubValue {
            name: self.name.clone(),
            kind,
            bytes,
            unit: self.unit.clone(),
            description: self.description.clone(),
            minimum: self.minimum,
            maximum: self.maximum,
        }
    }
}

fn is_scalar(kind: ValueKind, profile: StubProfile) -> bool {
    match kind {
        ValueKind::Uint | ValueKind::Int | ValueKind::Bytes | ValueKind::Bool => true,
        ValueKind::Text | ValueKind::Float => profile == StubProfile::Described,
        ValueKind::Array | ValueKind::Map | ValueKind::Null => false,
    }
}

fn is_tool_name(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
