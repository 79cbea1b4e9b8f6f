//! The `banyan` binary: arguments in, text and an exit code out. What a gate is and does stands in the `gateway` crate, not here.

mod arguments;
mod asked;
mod backed_up;
mod bridged;
mod budgets;
mod call_arguments;
mod changes;
mod client_name;
mod command;
mod consent;
mod decided;
mod document;
mod examine;
mod failure;
mod files;
mod gate;
mod handover;
mod help;
mod idle;
mod joined;
mod left_behind;
mod listing;
mod log;
mod meeting;
mod moved;
mod news;
mod notify;
mod output;
mod places;
mod plan;
mod port;
mod printable;
mod private;
mod program;
mod restored;
mod screen;
mod serve;
mod signals;
mod signature;
mod signing;
mod similar;
mod table;
mod tarball;
mod terminal;
mod threads;
mod time;
mod tried;
mod trouble;
mod turn;
mod unit;

use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::ErrorKind;

use arguments::Arguments;
use failure::Failure;
use output::Output;

/// The allocator. A call makes some twenty small allocations, and jemalloc halves their cost (docs/performance.md).
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let output = Output::new(std::env::args_os().any(|word| word == "--json"));
    match run(&output) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::NobodyReads) => ExitCode::SUCCESS,
        Err(failure) => {
            output.failure(&failure);
            failure.exit_code()
        }
    }
}

fn run(output: &Output) -> Result<(), Failure> {
    let arguments = help::command().try_get_matches().and_then(|matches| Arguments::from_arg_matches(&matches));
    match arguments {
        Ok(arguments) => arguments.command.run(&arguments.place, &Output::new(arguments.json)),
        Err(asked) if matches!(asked.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            output.raw(asked.render().to_string().as_bytes())
        }
        Err(asked) if asked.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand && !output.wants_json() => asked.exit(),
        Err(mistake) => Err(Failure::Usage(help::mistake(&mistake))),
    }
}
