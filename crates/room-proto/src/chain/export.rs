//! A chain as a line of JSON, for whoever keeps or checks them elsewhere (MCPx v0.1, 7.1). Payloads are not in it: they are in the messages
//! that it names.

use banyan_model::Timestamp;

use super::{Chain, Outcome, Step};

impl Chain {
    /// One object: `state`; `proposal`, `request`, `response` and `end`, each with `id`, `ts` (when it was seen), `from`, `to` and `kind`;
    /// `outcome` (`done` or `failed`), `rule` and `reason`. What is not there is left out.
    pub fn export(&self) -> String {
        let mut line = format!("{{\"state\":\"{}\"", self.state.word());
        for (name, step) in [("proposal", &self.proposal), ("request", &self.request), ("response", &self.response), ("end", &self.end)] {
            if let Some(step) = step {
                line += &format!(",\"{name}\":{}", step.export());
            }
        }
        let outcome = self.outcome.map(|outcome| if outcome == Outcome::Done { "done" } else { "failed" });
        for (name, text) in [("outcome", outcome), ("rule", self.rule.as_deref()), ("reason", self.reason.as_deref())] {
            if let Some(text) = text {
                line += &format!(",\"{name}\":{}", json::quote(text));
            }
        }
        line + "}"
    }
}

impl Step {
    fn export(&self) -> String {
        let [id, from, kind] = [&self.id, &self.from, &self.kind].map(|text| json::quote(text));
        let to: Vec<String> = self.to.iter().map(|to| json::quote(to)).collect();
        format!("{{\"id\":{id},\"ts\":\"{}\",\"from\":{from},\"to\":[{}],\"kind\":{kind}}}", Timestamp(self.at), to.join(","))
    }
}
