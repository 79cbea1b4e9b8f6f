//! State of this machine, sent to a peer in datagrams as in 5.8. Loss is tolerated, and no datagram is sent again.

use std::fs;
use std::time::Duration;

use axcp_proto::telemetry::{SystemStats, TelemetryDatagram, TelemetryPayload};
use quinn::Connection;
use runtime::clock;

/// Sends the state of the machine at each interval, until the connection ends. A datagram that does not fit the path is left out.
pub(crate) async fn send(connection: &Connection, every: Duration) {
    let (mut meter, mut sequence) = (MachineMeter::default(), 0_u16);
    loop {
        let payload = Some(TelemetryPayload::System(meter.read()));
        let datagram = TelemetryDatagram { timestamp_ms: clock::wall() / 1000, payload }.write(sequence);
        let fits = connection.max_datagram_size().is_some_and(|most| datagram.len() <= most);
        if fits && connection.send_datagram(datagram).is_err() {
            // The end of the connection is told elsewhere.
            return std::future::pending().await;
        }
        sequence = sequence.wrapping_add(1);
        tokio::time::sleep(every).await;
    }
}

/// Meter of a machine with the files of Linux; on others all numbers are 0.
#[derive(Debug, Default)]
struct MachineMeter {
    /// Ticks of the processors at the last reading: busy, and all.
    before: (u64, u64),
}

impl MachineMeter {
    fn read(&mut self) -> SystemStats {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let now = ticks(&text("/proc/stat"));
        let (busy, all) = (now.0.saturating_sub(self.before.0), now.1.saturating_sub(self.before.1));
        self.before = now;
        let degrees = text("/sys/class/thermal/thermal_zone0/temp").trim().parse::<u32>().unwrap_or(0) / 1000;
        SystemStats {
            cpu_percent: u32::try_from(busy.saturating_mul(100).checked_div(all).unwrap_or(0)).unwrap_or(100),
            mem_bytes: used(&text("/proc/meminfo")),
            temperature_c: degrees,
        }
    }
}

/// Reads the ticks of all processors: busy, and all.
fn ticks(stat: &str) -> (u64, u64) {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let numbers: Vec<u64> = line.split_whitespace().take(8).filter_map(|number| number.parse().ok()).collect();
    let all = numbers.iter().fold(0_u64, |sum, number| sum.saturating_add(*number));
    // The fourth and the fifth are those without work.
    let idle = numbers.iter().skip(3).take(2).fold(0_u64, |sum, number| sum.saturating_add(*number));
    (all.saturating_sub(idle), all)
}

/// Reads the bytes of memory in use.
fn used(memory: &str) -> u64 {
    let kibibytes = |key: &str| {
        let rest = memory.lines().find_map(|line| line.strip_prefix(key));
        rest.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
    };
    kibibytes("MemTotal:").saturating_sub(kibibytes("MemAvailable:")).saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xc_04_the_state_of_a_machine_is_read() {
        assert_eq!(ticks("cpu  10 1 5 80 4 0 0 0 9 9\ncpu0 1 2 3\n"), (16, 100));
        assert_eq!(used("MemTotal:   1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n"), 600 * 1024);
        for odd in ["", "cpu", "cpu  x y", "MemTotal:\nMemAvailable: 5"] {
            assert_eq!((ticks(odd), used(odd)), ((0, 0), 0), "{odd}");
        }
    }
}
