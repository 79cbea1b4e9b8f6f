//! Both clocks of this machine. Decides nothing.

use net_proto::change::Now;

/// The present moment.
pub(crate) fn now() -> Now {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let up = std::fs::read_to_string("/proc/uptime").ok();
    let up = up.and_then(|text| text.split(' ').next()?.parse::<f64>().ok()).map(|seconds| (seconds * 1000.0) as u64);
    match (boot, up) {
        (Ok(boot), Some(up)) => Now { wall: runtime::clock::wall() / 1000, boot: boot.trim().to_owned(), up },
        // Where the system names no run of its own, each process is one, and others go by the wall clock.
        _ => {
            static BEGAN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
            let up = BEGAN.get_or_init(std::time::Instant::now).elapsed().as_millis();
            Now {
                wall: runtime::clock::wall() / 1000,
                boot: format!("process-{}", std::process::id()),
                up: u64::try_from(up).unwrap_or(u64::MAX),
            }
        }
    }
}

/// A moment as people and programs read it.
pub(crate) fn written(milliseconds: u64) -> String {
    let moment = i64::try_from(milliseconds).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    moment.map_or_else(|| milliseconds.to_string(), |moment| moment.to_string())
}
