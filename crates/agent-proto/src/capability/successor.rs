//! Successors of agents (AEPB, section 7.4): followed after a look at the document, a few steps far, and never in a circle.
//! Fetches no document.

use super::constraints::AssuranceLevel;
use super::document::{CapabilityDocument, major};
use super::lifecycle::LifecycleStatus;

/// Most steps from an agent to a successor in use.
pub const MOST_STEPS: usize = 3;

/// Reasons not to follow a successor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SuccessorRefusal {
    #[error("the successors lead in a circle at {0}")]
    Circle(String),
    #[error("there are more than {MOST_STEPS} successors in a row")]
    TooFar,
    #[error("the successor has the assurance {}, which is below {}", .0.name(), .1.name())]
    LessAssurance(AssuranceLevel, AssuranceLevel),
    #[error("the successor is retired itself")]
    Retired,
}

/// Walk from an agent to its successors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuccessorWalk {
    seen: Vec<String>,
}

impl SuccessorWalk {
    /// Begins at the address of a document.
    pub fn new(address: &str) -> Self {
        Self { seen: vec![address.to_owned()] }
    }

    /// Takes a step, before the successor's document is fetched.
    pub fn step(&mut self, address: &str) -> Result<(), SuccessorRefusal> {
        if self.seen.iter().any(|seen| seen == address) {
            return Err(SuccessorRefusal::Circle(address.to_owned()));
        }
        if self.seen.len() > MOST_STEPS {
            return Err(SuccessorRefusal::TooFar);
        }
        self.seen.push(address.to_owned());
        Ok(())
    }
}

impl CapabilityDocument {
    /// Checks that this agent may be used in place of `before`. Gives `true` for another major version: callers may break.
    pub fn succeeds(&self, before: &Self) -> Result<bool, SuccessorRefusal> {
        if self.lifecycle.status == LifecycleStatus::Retired {
            return Err(SuccessorRefusal::Retired);
        }
        if self.assurance < before.assurance {
            return Err(SuccessorRefusal::LessAssurance(self.assurance, before.assurance));
        }
        Ok(major(&self.lifecycle.version) != major(&before.lifecycle.version))
    }
}
