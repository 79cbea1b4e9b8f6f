//! Load and memory of the machine that the device runs on, with attributes of the hardware. Asks no device.

use net_proto::fault::{Code, Fault};
use serde_json::{Value, json};

/// Unit, precision and hardware of the load.
pub(crate) fn cpu_meta() -> Value {
    let facts = from_proc("cpuinfo").unwrap_or_default();
    let model = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':')).map(|(_, model)| model.trim());
    let cores = std::thread::available_parallelism().map(usize::from).ok();
    json!({ "unit": "percent", "precision": 0.1, "hardware-model": model, "hardware-cores": cores })
}

/// Unit and precision of the memory.
pub(crate) fn memory_meta() -> Value {
    json!({ "unit": "bytes", "precision": 1024 })
}

/// Load of the processors of this machine over a fifth of a second, in percent.
pub(crate) async fn cpu() -> Result<Value, Fault> {
    let before = ticks()?;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let after = ticks()?;
    let (all, idle) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    let percent = if all == 0 { 0.0 } else { (1000.0 * (all - idle.min(all)) as f64 / all as f64).round() / 10.0 };
    Ok(json!({ "utilization": percent }))
}

fn ticks() -> Result<(u64, u64), Fault> {
    let text = from_proc("stat")?;
    let numbers: Vec<u64> = text.lines().next().unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect();
    Ok((numbers.iter().take(8).sum(), numbers.iter().skip(3).take(2).sum()))
}

pub(crate) fn memory() -> Result<Value, Fault> {
    let text = from_proc("meminfo")?;
    let bytes = |name: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        rest.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).map(|kib| kib * 1024)
    };
    Ok(json!({ "total": bytes("MemTotal"), "available": bytes("MemAvailable"), "free": bytes("MemFree") }))
}

fn from_proc(name: &str) -> Result<String, Fault> {
    std::fs::read_to_string(format!("/proc/{name}")).map_err(|error| Fault::new(Code::ConfigIncompatible, format!("/proc/{name}: {error}")))
}
