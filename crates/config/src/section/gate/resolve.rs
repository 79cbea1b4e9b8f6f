//! Resolves `[approvals]`, and reads the files with the keys of services. Parses no key, and fetches no secret.

use std::time::Duration;

use policy::approval::{Demand, Mode};

use super::file::{self, GateMode, GatePreview};
use super::resolved::{ApprovalService, Gate, Webhook};
use crate::file::At;
use crate::problem::Flaw;
use crate::reading::FileReading;

impl FileReading<'_> {
    pub(super) fn gate(&mut self, section: &file::Gate, resource: Option<&str>) -> Gate {
        let defaults = Gate::default();
        if let Some(few) = section.approvals.as_ref().filter(|approvals| !(1..=9).contains(approvals.get())) {
            self.flaws.push(Flaw::new(few.span(), "`approvals` is how many people have to agree: 1 to 9"));
        }
        // Of all durations this one may be nothing.
        let none = section.wait.as_ref().is_some_and(|wait| wait.get().trim() == "0s");
        let wait = if none { Some(Duration::ZERO) } else { self.duration(section.wait.as_ref()) };
        Gate {
            mode: mode(section.mode),
            mounts: self.by_mount(&section.mounts, "off", mode),
            preview: demand(section.preview),
            previews: self.by_mount(&section.previews, "required", demand),
            approvals: section.approvals.as_ref().map_or(defaults.approvals, |approvals| *approvals.get()),
            expires: self.duration(section.expires.as_ref()).unwrap_or(defaults.expires),
            wait: wait.unwrap_or(defaults.wait),
            url: section.url.as_ref().and_then(|url| self.address(url)),
            services: section.service.iter().map(|(name, service)| self.service(name, service, resource)).collect(),
            webhooks: section.webhook.iter().filter_map(|webhook| self.webhook(webhook)).collect(),
            commands: section.command.iter().map(|one| (one.command.clone(), one.args.clone())).collect(),
        }
    }

    fn service(&mut self, name: &At<String>, service: &file::GateService, resource: Option<&str>) -> ApprovalService {
        let audience = service.audience.clone().or_else(|| resource.map(str::to_owned));
        if audience.is_none() && !self.has("resource") {
            let flaw = Flaw::new(name.span(), "its tokens must name this gate, and nothing says how");
            self.flaws.push(flaw.help("add `audience`, the `aud` of its tokens, or `resource` at the top of the file"));
        }
        let keys = self.path(&service.keys);
        // Read with the configuration, so that a key that is taken away is gone when that is read again.
        let text = std::fs::read_to_string(&keys).map_err(|error| error.to_string());
        ApprovalService { name: name.get().clone(), issuer: service.issuer.clone(), audience: audience.unwrap_or_default(), keys, text }
    }

    fn webhook(&mut self, webhook: &file::Webhook) -> Option<Webhook> {
        let secret = self.secret(&webhook.secret, "approvals.webhook.secret");
        Some(Webhook { url: self.address(&webhook.url)?, secret })
    }
}

fn mode(written: GateMode) -> Mode {
    match written {
        GateMode::Off => Mode::Off,
        GateMode::Irreversible => Mode::Irreversible,
        GateMode::Mutable => Mode::Mutable,
        GateMode::Unlisted => Mode::Unlisted,
    }
}

fn demand(written: GatePreview) -> Demand {
    match written {
        GatePreview::Off => Demand::Off,
        GatePreview::Offered => Demand::Offered,
        GatePreview::Required => Demand::Required,
    }
}
