//! A chain as a line of JSON, for external records and checks (MCPx v0.1, 7.1). Without payloads: the named messages hold them.

use banyan_model::Timestamp;

use super::{Chain, Outcome, Step};

impl Chain {
    /// Writes one object: `state`; `proposal`, `request`, `response` and `end`, each with `id`, `ts` (the time seen), `from`, `to` and
    /// `kind`; `outcome` (`done` or `failed`), `rule` and `reason`. Absent members are left out.
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
