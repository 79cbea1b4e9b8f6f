//! Refusals of the floors below the way, as errors of calls. Each is mapped here and nowhere else.

use crate::tree::mount::Unavailable;
use crate::way::error::CallError;
use crate::words::seated::NotFulfilled;

impl From<NotFulfilled> for CallError {
    fn from(_: NotFulfilled) -> Self {
        Self::Cancelled
    }
}

impl From<Unavailable> for CallError {
    fn from(mount: Unavailable) -> Self {
        match mount {
            Unavailable::Degraded(degraded, since) => Self::Degraded(Box::new((degraded, since))),
            Unavailable::Unconnected { mount, why, since, next_try } => Self::Unavailable { mount, why, since, next_try, report: None },
        }
    }
}
