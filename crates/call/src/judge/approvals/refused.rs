//! Refusals of requests about approvals, in the shape of the admin API. Does not decide about requests.

use policy::approval::{Refusal as Refused, Wrong};

use super::NotKept;
use crate::words::refusal::Refusal;

impl From<NotKept> for Refusal {
    fn from(why: NotKept) -> Self {
        Self::failed(why.to_string())
    }
}

impl From<Refused> for Refusal {
    fn from(why: Refused) -> Self {
        let text = format!("{why} ({})", why.reason());
        if why == Refused::Unknown { Self::not_found(text) } else { Self::refused(text) }
    }
}

impl From<Wrong> for Refusal {
    fn from(why: Wrong) -> Self {
        Refused::Proof(why).into()
    }
}
