//! The one loop around every state machine: it hands in inputs, has all outputs carried out, sets the timer anew, and waits. Nothing is
//! decided here, and no machine is known by name.

use std::future::Future;
use std::time::Instant;

use banyan_model::{Machine, Now};

use crate::clock::Clock;

/// A task that owns a machine: takes inputs and carries out outputs.
pub trait Driver {
    /// The machine that decides.
    type Machine: Machine;
    /// Events from outside, time excepted.
    type Input;
    /// The reason for which the loop ends.
    type End;

    /// Borrows the machine.
    fn machine(&mut self) -> &mut Self::Machine;

    /// Waits for the next input. The loop drops the future when a timer is due, so an input is taken with the last `await` or not at all.
    ///
    /// # Errors
    /// The end of the loop.
    fn next(&mut self) -> impl Future<Output = Result<Self::Input, Self::End>>;

    /// Hands an input to the machine.
    ///
    /// # Errors
    /// The end of the loop.
    fn handle(&mut self, now: Now, input: Self::Input) -> impl Future<Output = Result<(), Self::End>>;

    /// Carries out one output. The machine may be changed meanwhile; all outputs that follow come before the next input.
    ///
    /// # Errors
    /// The end of the loop.
    fn carry(&mut self, now: Now, output: <Self::Machine as Machine>::Output) -> impl Future<Output = Result<(), Self::End>>;

    /// Does what follows from a whole turn, when all outputs are carried out and before the next wait.
    ///
    /// # Errors
    /// The end of the loop.
    fn rest(&mut self, now: Now) -> impl Future<Output = Result<(), Self::End>> {
        let _ = now;
        std::future::ready(Ok(()))
    }
}

/// Drives a machine until an input, an output or the end of a turn ends it.
pub async fn drive<D: Driver>(driver: &mut D, clock: &impl Clock) -> D::End {
    match turns(driver, clock).await {
        Ok(never) => match never {},
        Err(end) => end,
    }
}

async fn turns<D: Driver>(driver: &mut D, clock: &impl Clock) -> Result<std::convert::Infallible, D::End> {
    let mut now = clock.now();
    loop {
        while let Some(output) = driver.machine().poll_output() {
            driver.carry(now, output).await?;
        }
        driver.rest(now).await?;
        let due = driver.machine().poll_timeout().map(|(at, _)| at);
        let input = tokio::select! {
            // An input that waits already was there before the timer: an answer counts although its timer is due, too.
            biased;
            input = driver.next() => Some(input?),
            () = sleep(clock, due) => None,
        };
        now = clock.now();
        if let Some(input) = input {
            driver.handle(now, input).await?;
        }
        // Looked at after each input, so that no flood of inputs holds up a timer.
        if driver.machine().poll_timeout().is_some_and(|(at, _)| at <= now.instant) {
            driver.machine().handle_timeout(now);
        }
    }
}

async fn sleep(clock: &impl Clock, due: Option<Instant>) {
    match due {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
