//! Output of FRR's programs as answers and faults, wherever FRR runs. Runs nothing.

use net_proto::dialect::Dialect;
use net_proto::fault::{Code, Fault};

use crate::command::{ProgramOutput, last};

/// Answer to a command of the exec mode.
pub(crate) fn answer(dialect: &Dialect, command: &str, output: ProgramOutput) -> Result<String, Fault> {
    match dialect.fault(command, &output.stdout) {
        Some(fault) => Err(fault),
        // `ping` and its like say on standard error why there is nothing to show.
        None if output.is_success && output.stdout.trim().is_empty() => Ok(output.stderr),
        None if output.is_success => Ok(output.stdout),
        None => Err(refusal(dialect, command, &output)),
    }
}

/// Did `vtysh` end because no daemon answered?
pub(crate) fn found_no_daemon(fault: &Fault) -> bool {
    fault.detail.to_ascii_lowercase().contains("failed to connect to any daemons")
}

/// A running configuration that was shown to its end. A daemon that is down shows nothing, and its lines would count as deleted.
pub(crate) fn whole(text: String) -> Result<String, Fault> {
    if text.trim_end().ends_with("end") {
        Ok(text)
    } else {
        Err(Fault::new(Code::Unreachable, "the configuration that was shown has no end").retryable())
    }
}

/// Fault of a `vtysh` that failed at `place`.
pub(crate) fn refusal(dialect: &Dialect, place: &str, output: &ProgramOutput) -> Fault {
    let said = [&output.stdout, &output.stderr].map(|text| text.trim()).join("\n");
    let unknown = || Fault::new(Code::ConfigIncompatible, format!("the device refused it: {}", last(&said))).at(place);
    dialect.fault(place, &said).unwrap_or_else(unknown)
}
