//! The `banyan` binary: arguments in, text and an exit code out. What a gate is and does stands in the `gateway` crate, not here.

mod arguments;
mod asked;
mod bridged;
mod budgets;
mod call_arguments;
mod changes;
mod command;
mod consent;
mod decided;
mod document;
mod examine;
mod failure;
mod files;
mod gate;
mod handover;
mod idle;
mod joined;
mod listing;
mod log;
mod meeting;
mod moved;
mod news;
mod output;
mod places;
mod plan;
mod port;
mod printable;
mod private;
mod program;
mod serve;
mod signals;
mod signature;
mod signing;
mod similar;
mod table;
mod terminal;
mod threads;
mod time;
mod tried;
mod trouble;
mod turn;

use std::process::ExitCode;

use clap::Parser;

use arguments::Arguments;
use failure::Failure;
use output::Output;

/// The allocator. A call makes some twenty small allocations, and jemalloc halves their cost (docs/performance.md).
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let output = Output::new(arguments.json);
    match arguments.command.run(&arguments.place, &output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::NobodyReads) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            failure.exit_code()
        }
    }
}
