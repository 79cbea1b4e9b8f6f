//! The counters, read back from the text of a scrape. Not measured here: how fast they are.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;

#[test]
fn a_tool_result_that_says_is_error_counts_as_a_failure() {
    let metrics = Metrics::new();
    let mount = metrics.mount("git");
    let call = call(mount.tool(&ToolSlot::default(), "commit"));
    mount.start(call, Instant::now()).finish(Ending::Done, Instant::now());
    mount.start(call, Instant::now()).finish(Ending::ToolError, Instant::now());
    mount.start(call, Instant::now()).finish(Ending::ToolError, Instant::now());

    let text = metrics.encode();
    assert_eq!(count(&text, &["mount=\"git\"", "error_type=\"tool_error\""]), 2);
    assert_eq!(count(&text, &["mount=\"git\"", "gen_ai_tool_name=\"commit\""]), 3);
    let labels = ["mcp_method_name=\"tools/call\"", "mcp_protocol_version=\"2026-07-28\"", "network_transport=\"tcp\""];
    assert_eq!(count(&text, &labels), 3);
}

#[test]
fn an_error_carries_its_code_and_success_carries_no_error_type() {
    let metrics = Metrics::new();
    metrics
        .whole()
        .start(Operation { method: MethodName::of("tools/list"), ..call(ToolLabel::NONE) }, Instant::now())
        .finish(Ending::Done, Instant::now());
    metrics.whole().start(call(ToolLabel::NONE), Instant::now()).finish(Ending::Error(-32602), Instant::now());

    let text = metrics.encode();
    assert_eq!(count(&text, &["error_type=\"-32602\"", "rpc_response_status_code=\"-32602\""]), 1);
    let success = text.lines().find(|line| line.contains("tools/list")).unwrap();
    assert!(!success.contains("error_type") && !success.contains("mount=") && !success.contains("gen_ai_tool_name"), "{success}");
}

#[test]
fn what_is_dropped_unfinished_counts_as_cancelled_and_is_in_flight_no_more() {
    let metrics = Metrics::new();
    let mount = metrics.mount("slow");
    let running = mount.start(call(ToolLabel::NONE), Instant::now());
    let gauge = "banyan_operations_in_flight{side=\"server\",mount=\"slow\"}";
    assert_eq!(value(&metrics.encode(), gauge), 1.0);
    drop(running);
    let text = metrics.encode();
    assert_eq!(value(&text, gauge), 0.0);
    assert_eq!(count(&text, &["error_type=\"cancelled\""]), 1);
}

#[test]
fn callers_cannot_add_series_by_names_and_a_large_catalog_cannot_add_them_without_end() {
    let metrics = Metrics::new();
    let mount = metrics.mount("large");
    for number in 0..TOOL_SERIES + 50 {
        let tool = mount.tool(&ToolSlot::default(), &format!("tool_{number}"));
        mount.start(call(tool), Instant::now()).finish(Ending::Done, Instant::now());
        let method = MethodName::of(&format!("evil/{number}"));
        mount
            .start(Operation { method, tool: ToolLabel::NONE, ..call(tool) }, Instant::now())
            .finish(Ending::Error(i64::from(number) * 1000 + 1), Instant::now());
    }
    let text = metrics.encode();
    let series = text.lines().filter(|line| line.starts_with("mcp_server_operation_duration_seconds_count")).count();
    assert_eq!(series as u32, TOOL_SERIES + 2);
    assert_eq!(count(&text, &["gen_ai_tool_name=\"_OTHER\""]), 50);
    assert_eq!(count(&text, &["mcp_method_name=\"_OTHER\"", "error_type=\"_OTHER\""]), u64::from(TOOL_SERIES) + 50);
}

#[test]
fn a_tool_keeps_its_label_from_one_catalog_to_the_next() {
    let mount = Metrics::new().mount("m");
    let slot = ToolSlot::default();
    let first = mount.tool(&slot, "a");
    assert_eq!(mount.tool(&slot, "not looked at any more"), first);
    assert_eq!(mount.tool(&ToolSlot::default(), "a"), first);
    assert_ne!(mount.tool(&ToolSlot::default(), "b"), first);
}

#[test]
fn a_mount_shows_one_state_its_restarts_bytes_drops_and_tools() {
    let metrics = Metrics::new();
    let mount = metrics.mount("m");
    mount.set_state(MountState::Ready);
    mount.restarted();
    mount.sent(10);
    mount.received(200);
    mount.dropped(3);
    mount.set_tools(7);
    let text = metrics.encode();
    for (series, expected) in [
        ("banyan_mount_state{mount=\"m\",state=\"ready\"}", 1.0),
        ("banyan_mount_state{mount=\"m\",state=\"failed\"}", 0.0),
        ("banyan_mount_restarts_total{mount=\"m\"}", 1.0),
        ("banyan_mount_sent_bytes_total{mount=\"m\"}", 10.0),
        ("banyan_mount_received_bytes_total{mount=\"m\"}", 200.0),
        ("banyan_notifications_dropped_total{mount=\"m\"}", 3.0),
        ("banyan_mount_tools{mount=\"m\"}", 7.0),
    ] {
        assert_eq!(value(&text, series), expected, "{series}");
    }
}

#[test]
fn each_series_of_dashboard_alerts_and_documentation_exists() {
    let metrics = Metrics::new();
    let mount = metrics.mount("m");
    mount.set_state(MountState::Ready);
    mount.restarted();
    for side in [Side::Server, Side::Client] {
        drop(metrics.session(side, Transport::Tcp, ProtocolVersion::of("2025-11-25")));
    }
    let text = metrics.encode();
    let families: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    for file in ["packaging/grafana/banyan.json", "packaging/prometheus/banyan.rules.yml", "docs/observability.md"] {
        let page = std::fs::read_to_string(format!("{root}/{file}")).unwrap();
        let words = page.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let series: BTreeSet<&str> = words.filter(|word| word.starts_with("banyan_") || word.starts_with("mcp_")).collect();
        let labels = ["mcp_method_name", "mcp_protocol_version"];
        let ends = ["_bucket", "_count", "_sum", "_total", "_info"];
        let is_known = |name: &str| {
            labels.contains(&name)
                || families.contains(name)
                || ends.iter().any(|end| name.strip_suffix(end).is_some_and(|name| families.contains(name)))
        };
        let unknown: Vec<&&str> = series.iter().filter(|name| !is_known(name) && **name != "banyan_").collect();
        assert!(series.len() > 5 && unknown.is_empty(), "{file}: {unknown:?} of {families:?}");
    }
}

#[test]
fn a_session_is_open_until_it_is_dropped_and_then_has_a_duration() {
    let metrics = Metrics::new();
    let session = metrics.session(Side::Server, Transport::Tcp, ProtocolVersion::of("2025-11-25"));
    let gauge = "banyan_sessions{side=\"server\",mcp_protocol_version=\"2025-11-25\",network_transport=\"tcp\"}";
    assert_eq!(value(&metrics.encode(), gauge), 1.0);
    drop(session);
    let text = metrics.encode();
    assert_eq!(value(&text, gauge), 0.0);
    assert!(text.contains("mcp_server_session_duration_seconds_count{mcp_protocol_version=\"2025-11-25\",network_transport=\"tcp\"} 1"));
}

#[test]
fn a_mount_that_the_configuration_lost_is_shown_no_more() {
    let metrics = Metrics::new();
    metrics.mount("kept");
    metrics.mount("gone");
    metrics.retain_mounts(|name| name == "kept");
    let text = metrics.encode();
    assert!(text.contains("mount=\"kept\"") && !text.contains("mount=\"gone\""));
}

#[test]
fn two_scrapes_of_the_same_counters_are_the_same_text() {
    let metrics = Metrics::new();
    for name in ["b", "a", "c"] {
        let mount = metrics.mount(name);
        for method in ["tools/list", "ping", "tools/call", "resources/read"] {
            mount
                .start(Operation { method: MethodName::of(method), ..call(ToolLabel::NONE) }, Instant::now())
                .finish(Ending::Done, Instant::now());
        }
    }
    let text = metrics.encode();
    assert_eq!(text, metrics.encode());
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn a_duration_falls_into_the_bucket_of_the_next_bound_and_into_all_above() {
    let histogram = Histogram::default();
    histogram.observe(Duration::from_millis(10));
    histogram.observe(Duration::from_secs(1000));
    let (sum, count, buckets) = histogram.read();
    assert_eq!((sum, count), (1000.01, 2));
    assert_eq!(buckets.iter().filter(|(_, count)| *count > 0).map(|(bound, _)| *bound).collect::<Vec<_>>(), [0.01, f64::MAX]);
}

fn call(tool: ToolLabel) -> Operation {
    Operation {
        side: Side::Server,
        method: MethodName::of("tools/call"),
        transport: Transport::Tcp,
        version: ProtocolVersion::of("2026-07-28"),
        tool,
    }
}

/// The sum over the `_count` series of the server's operations that hold all of `parts`.
fn count(text: &str, parts: &[&str]) -> u64 {
    let of_operations = text.lines().filter(|line| line.starts_with("mcp_server_operation_duration_seconds_count"));
    let chosen = of_operations.filter(|line| parts.iter().all(|part| line.contains(part)));
    chosen.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

fn value(text: &str, series: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(&format!("{series} "))).unwrap_or_else(|| panic!("no {series} in\n{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}
