//! Turns the counters into metric families at each scrape, in the same order every time. Counts nothing itself.

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::histogram::Histogram;
use super::labels::{MountState, ProtocolVersion, SeriesKey, Side, Transport};
use super::{MountMetrics, SharedCounters, ToolLabel};

/// The answer to a scrape by Prometheus' library.
pub(super) struct Scrape(pub(super) Arc<SharedCounters>);

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrape")
    }
}

type Labels<'a> = Vec<(&'static str, &'a str)>;

/// A family of series: one number for each mount.
struct Family {
    name: &'static str,
    help: &'static str,
    unit: Option<Unit>,
    kind: MetricType,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let mut mounts: Vec<_> = self.0.mounts.pin().values().cloned().collect();
        mounts.sort_by(|a, b| a.name.cmp(&b.name));
        let everyone: Vec<_> = std::iter::once(self.0.whole.clone()).chain(mounts.iter().cloned()).collect();

        build_info(&mut encoder)?;
        for side in Side::ALL {
            operations(&mut encoder, side, &everyone)?;
        }
        in_flight(&mut encoder, &everyone)?;
        sessions(&mut encoder, &self.0)?;
        states(&mut encoder, &mounts)?;
        counters(&mut encoder, &mounts)?;
        bytes(&mut encoder, &mounts)?;
        let tools = Family { name: "banyan_mount_tools", help: "Tools that a mount offers", unit: None, kind: MetricType::Gauge };
        per_mount(&mut encoder, &tools, &mounts, |mount| mount.tools.load(Relaxed))?;
        record(&mut encoder, &self.0)
    }
}

fn record(encoder: &mut DescriptorEncoder, shared: &SharedCounters) -> fmt::Result {
    let counts = [
        ("banyan_audit_unrecorded", "Records that could not be written", &shared.unrecorded),
        ("banyan_audit_removed", "Entries of the record that were taken away, as its bounds say", &shared.removed),
    ];
    for (name, help, count) in counts {
        ConstCounter::new(count.load(Relaxed)).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
    }
    let (name, help) = ("banyan_audit_full", "Whether calls are refused because the record is full");
    let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(i64::from(shared.full.load(Relaxed))).encode(gauge)?;
    let (name, help) = ("banyan_audit_over_share", "Principals whose calls are refused because the record holds their share");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for principal in shared.over_share.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let labels: Labels<'_> = vec![("principal", principal)];
        ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

fn build_info(encoder: &mut DescriptorEncoder) -> fmt::Result {
    let labels: Labels<'_> = vec![("version", env!("CARGO_PKG_VERSION"))];
    encoder.encode_descriptor("banyan_build", "The program that runs", None, MetricType::Info)?.encode_info(&labels)
}

fn operations(encoder: &mut DescriptorEncoder, side: Side, mounts: &[Arc<MountMetrics>]) -> fmt::Result {
    let (name, help) = match side {
        Side::Client => ("mcp_client_operation_duration", "Requests sent to upstreams, from sending to the answer"),
        Side::Server => ("mcp_server_operation_duration", "Requests of downstreams, from receipt to the answer"),
    };
    let mut family = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
    for mount in mounts {
        let tools = tool_names(mount);
        let operations = mount.operations.pin();
        let mut series: Vec<(&SeriesKey, &Histogram)> = operations.iter().filter(|(key, _)| key.unpack().0.side == side).collect();
        series.sort_by_key(|(key, _)| **key);
        for (key, histogram) in series {
            one_series(&mut family, mount, *key, &tools, histogram)?;
        }
    }
    Ok(())
}

fn one_series(
    family: &mut MetricEncoder<'_>,
    mount: &MountMetrics,
    key: SeriesKey,
    tools: &[(ToolLabel, Arc<str>)],
    histogram: &Histogram,
) -> fmt::Result {
    let (operation, ending) = key.unpack();
    let (error, status) = (ending.error_type().unwrap_or_default(), ending.status_code().unwrap_or_default());
    let tool = match operation.tool {
        ToolLabel::NONE => "",
        ToolLabel::OTHER => "_OTHER",
        named => tools.iter().find(|(label, _)| *label == named).map_or("", |(_, name)| &**name),
    };
    let labels = present([
        ("mcp_method_name", operation.method.label()),
        ("mount", &mount.name),
        ("gen_ai_tool_name", tool),
        ("gen_ai_operation_name", if operation.tool == ToolLabel::NONE { "" } else { "execute_tool" }),
        ("error_type", &error),
        ("rpc_response_status_code", &status),
        ("mcp_protocol_version", operation.version.label()),
        ("network_transport", operation.transport.label()),
    ]);
    let (sum, count, buckets) = histogram.read();
    family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
}

fn tool_names(mount: &MountMetrics) -> Vec<(ToolLabel, Arc<str>)> {
    let labels = mount.tool_labels.lock().unwrap_or_else(PoisonError::into_inner);
    labels.iter().map(|(name, label)| (*label, name.clone())).collect()
}

fn in_flight(encoder: &mut DescriptorEncoder, mounts: &[Arc<MountMetrics>]) -> fmt::Result {
    let mut family = encoder.encode_descriptor("banyan_operations_in_flight", "Requests without an answer", None, MetricType::Gauge)?;
    for mount in mounts {
        for side in Side::ALL {
            let labels = present([("side", side.label()), ("mount", &mount.name)]);
            ConstGauge::new(mount.in_flight[side as usize].load(Relaxed)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn sessions(encoder: &mut DescriptorEncoder, shared: &SharedCounters) -> fmt::Result {
    let mut family = encoder.encode_descriptor("banyan_sessions", "Open sessions of the initialize era", None, MetricType::Gauge)?;
    for (side, transport, version) in session_kinds() {
        let session = &shared.sessions[side as usize][transport as usize][version.index()];
        if session.duration.read().1 > 0 || session.open.load(Relaxed) != 0 {
            let mut labels = session_labels(transport, version);
            labels.insert(0, ("side", side.label()));
            ConstGauge::new(session.open.load(Relaxed)).encode(family.encode_family(&labels)?)?;
        }
    }
    for side in Side::ALL {
        let (name, help) = match side {
            Side::Client => ("mcp_client_session_duration", "How long ended sessions with upstreams were"),
            Side::Server => ("mcp_server_session_duration", "How long ended sessions of downstreams were"),
        };
        let mut family = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for (_, transport, version) in session_kinds().filter(|(of, ..)| *of == side) {
            let (sum, count, buckets) = shared.sessions[side as usize][transport as usize][version.index()].duration.read();
            if count > 0 {
                let labels = session_labels(transport, version);
                family.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
            }
        }
    }
    Ok(())
}

fn session_kinds() -> impl Iterator<Item = (Side, Transport, ProtocolVersion)> {
    let transports = |side| Transport::ALL.into_iter().map(move |transport| (side, transport));
    let all = Side::ALL.into_iter().flat_map(transports);
    all.flat_map(|(side, transport)| ProtocolVersion::all().map(move |version| (side, transport, version)))
}

fn session_labels(transport: Transport, version: ProtocolVersion) -> Labels<'static> {
    present([("mcp_protocol_version", version.label()), ("network_transport", transport.label())])
}

fn states(encoder: &mut DescriptorEncoder, mounts: &[Arc<MountMetrics>]) -> fmt::Result {
    let mut family = encoder.encode_descriptor("banyan_mount_state", "1 for the state a mount is in", None, MetricType::Gauge)?;
    for mount in mounts {
        for state in MountState::ALL {
            let labels = present([("mount", &mount.name), ("state", state.label())]);
            let is_in = mount.state.load(Relaxed) == state as u8;
            ConstGauge::new(i64::from(is_in)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn counters(encoder: &mut DescriptorEncoder, mounts: &[Arc<MountMetrics>]) -> fmt::Result {
    let restarts = Family {
        name: "banyan_mount_restarts",
        help: "Starts of a server after its first, and connections after the first",
        unit: None,
        kind: MetricType::Counter,
    };
    per_mount(encoder, &restarts, mounts, |mount| mount.restarts.load(Relaxed))?;
    let dropped = Family {
        name: "banyan_notifications_dropped",
        help: "Notifications of a server that did not reach all receivers",
        unit: None,
        kind: MetricType::Counter,
    };
    per_mount(encoder, &dropped, mounts, |mount| mount.dropped.load(Relaxed))
}

fn bytes(encoder: &mut DescriptorEncoder, mounts: &[Arc<MountMetrics>]) -> fmt::Result {
    let received = Family {
        name: "banyan_mount_received",
        help: "Bytes of messages from a server",
        unit: Some(Unit::Bytes),
        kind: MetricType::Counter,
    };
    per_mount(encoder, &received, mounts, |mount| mount.received.load(Relaxed))?;
    let sent =
        Family { name: "banyan_mount_sent", help: "Bytes of messages to a server", unit: Some(Unit::Bytes), kind: MetricType::Counter };
    per_mount(encoder, &sent, mounts, |mount| mount.sent.load(Relaxed))
}

fn per_mount(
    encoder: &mut DescriptorEncoder,
    family: &Family,
    mounts: &[Arc<MountMetrics>],
    value: impl Fn(&MountMetrics) -> u64,
) -> fmt::Result {
    let mut encoder = encoder.encode_descriptor(family.name, family.help, family.unit.as_ref(), family.kind)?;
    for mount in mounts {
        let labels = present([("mount", &*mount.name)]);
        let encoder = encoder.encode_family(&labels)?;
        if matches!(family.kind, MetricType::Counter) {
            ConstCounter::new(value(mount)).encode(encoder)?;
        } else {
            ConstGauge::new(value(mount)).encode(encoder)?;
        }
    }
    Ok(())
}

/// Leaves out labels without a value: to Prometheus an empty label and none are the same.
fn present<'a, const N: usize>(labels: [(&'static str, &'a str); N]) -> Labels<'a> {
    labels.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}
