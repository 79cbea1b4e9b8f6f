//! Steps of a tool at work, as words about its task: the latest alone, and no more often than clients want to hear. Knows no clock.

use json::{Duplicates, Members};

/// Most characters of the words about a step.
const LONGEST: usize = 1_000;
/// Milliseconds between two changes of the words.
const SPACING: u64 = 250;

/// Steps that a task has not told yet.
#[derive(Debug, Default)]
pub struct UntoldSteps {
    words: Option<String>,
    /// Moment of the last telling.
    told: Option<u64>,
}

impl UntoldSteps {
    /// Takes the params of `notifications/progress`; the step before is forgotten.
    pub fn hear(&mut self, params: &[u8]) {
        self.words = words(params).or_else(|| self.words.take());
    }

    /// Moment at which the words are due, in milliseconds; `None`: there are none.
    pub fn due(&self) -> Option<u64> {
        self.words.as_ref()?;
        Some(self.told.map_or(0, |told| told.saturating_add(SPACING)))
    }

    /// Takes the words at a moment.
    pub fn tell(&mut self, now: u64) -> Option<String> {
        self.told = Some(now);
        self.words.take()
    }

    /// Forgets the words: the task is no longer about them.
    pub fn forget(&mut self) {
        self.words = None;
    }
}

/// Writes a step: the tool's message, and how far the tool is.
fn words(params: &[u8]) -> Option<String> {
    let params = Members::parse(params, Duplicates::RefuseTop).ok()?;
    let number = |key| params.get(key).filter(|raw| raw.len() <= 32).and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<f64>().ok());
    let message = params.str("message").filter(|text| !text.trim().is_empty());
    let count = match (number("progress"), number("total")) {
        (Some(done), Some(total)) => Some(format!("{done} of {total}")),
        (Some(done), None) if message.is_none() => Some(done.to_string()),
        (Some(_) | None, _) => None,
    };
    let message: Option<String> = message.map(|text| text.chars().take(LONGEST).collect());
    match (message, count) {
        (Some(message), Some(count)) => Some(format!("{message} ({count})")),
        (message, count) => message.or(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(params: &str) -> Option<String> {
        let mut steps = UntoldSteps::default();
        steps.hear(params.as_bytes());
        steps.tell(0)
    }

    #[test]
    fn a_step_says_what_and_how_far() {
        assert_eq!(told(r#"{"progress":3,"total":10,"message":"wiping"}"#).as_deref(), Some("wiping (3 of 10)"));
        assert_eq!(told(r#"{"progress":0.5}"#).as_deref(), Some("0.5"));
        assert_eq!(told(r#"{"progress":7,"message":"on"}"#).as_deref(), Some("on"));
        assert_eq!(told(r#"{"progress":"much"}"#), None);
        let long = format!(r#"{{"progress":1,"message":"{}"}}"#, "é".repeat(2 * LONGEST));
        assert_eq!(told(&long).map(|words| words.chars().count()), Some(LONGEST));
    }

    #[test]
    fn of_many_steps_the_latest_is_told() {
        let mut steps = UntoldSteps::default();
        assert_eq!(steps.due(), None);
        steps.hear(br#"{"progress":1}"#);
        assert_eq!((steps.due(), steps.tell(1_000).as_deref()), (Some(0), Some("1")));
        for step in 2..100 {
            steps.hear(format!("{{\"progress\":{step}}}").as_bytes());
        }
        steps.hear(b"nonsense");
        assert_eq!((steps.due(), steps.tell(1_250).as_deref()), (Some(1_000 + SPACING), Some("99")));
        assert_eq!(steps.due(), None);
        steps.hear(br#"{"progress":100}"#);
        steps.forget();
        assert_eq!(steps.due(), None);
    }
}
