//! A device as an MCP server: tools and resources over a [`Site`]. Does not decide about secrets or changes.

mod capabilities;
mod compat;
mod crash;
mod interfaces;
mod machine;
mod objects;
mod preview;
mod prompts;
pub(crate) mod reads;
pub(crate) mod routes;
pub(crate) mod shape;
mod streams;
pub(crate) mod tools;
mod watch;
pub(crate) mod yang;

use std::sync::Arc;

use mcp_server::{About, Arguments, Connection, Era, Keeping, Refusal, Request, Server, subject};
use net_proto::fault::{Code, Fault};
use net_proto::prompt;
use serde_json::{Map, Value, json};

pub use compat::Compat;

use self::prompts::PromptErrand;
use self::watch::Watch;
use crate::caller::CallerIdentity;
use crate::share;
use crate::site::Site;

/// Server of a device over a pipe.
pub(crate) struct Device {
    site: Arc<Site>,
    compat: Compat,
    watch: Arc<Watch>,
}

impl Device {
    pub(crate) fn new(site: Arc<Site>, compat: Compat) -> Self {
        let watch = Arc::new(Watch::new(Arc::clone(&site), compat));
        Self { site, compat, watch }
    }

    /// The device for the caller of a request, by the word of the gate behind this process.
    fn site(&self, request: &Request) -> Arc<Site> {
        self.site.of_caller(CallerIdentity::from_gate(&request.meta))
    }

    async fn streamed(&self, request: &Request, params: &Map<String, Value>) -> Result<Value, Refusal> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        if !self.prompts().iter().any(|prompt| prompt["name"] == name) {
            return Err(Refusal::invalid(format!("there is no prompt `{name}`")));
        }
        let site = self.site(request);
        site.present_role().map_err(|fault| unread(request.era, &self.clean(fault)))?;
        let errand = self.errand(&site, request);
        let step = errand.step(name, params).await.map_err(|fault| unread(request.era, &self.clean(fault)))?;
        errand.streamed(step).await
    }

    fn errand<'a>(&self, site: &'a Site, request: &'a Request) -> PromptErrand<'a> {
        PromptErrand { site, request, is_draft: self.compat.is_draft(&request.capabilities) }
    }

    fn clean(&self, fault: Fault) -> Fault {
        fault.cleaned(|text| self.site.redactor.text(text))
    }
}

impl Server for Device {
    fn about(&self) -> About {
        let name = self.site.settings.name.clone();
        let instructions = "A router. Reads are fresh and hide secrets. A change: network.cli.configure shows its diff, network.commit applies it for \
            some seconds, network.commit with confirm keeps it; unconfirmed, it is rolled back by itself.";
        About {
            title: format!("Router {name}").into(),
            name: name.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            instructions: instructions.into(),
        }
    }

    fn within_request(work: impl Future<Output = ()> + Send) -> impl Future<Output = ()> + Send {
        share::within_call(work)
    }

    fn capabilities(&self, _era: Era) -> Value {
        let network = capabilities::network(&self.site);
        // A gate speaks either era here, and hands the member of the draft on to callers of the initialize era.
        json!({ "resources": { "subscribe": true, "write": reads::can_write(&self.site) }, "prompts": {}, "completions": {}, "experimental": { "network": network }, "network": network })
    }

    fn keeping(&self) -> Keeping {
        Keeping { milliseconds: 0, scope: "private" }
    }

    fn tools(&self) -> Vec<Value> {
        tools::definitions(&self.site)
    }

    async fn call(&self, request: &Request, tool: &str, arguments: &Arguments) -> Result<Value, Refusal> {
        let site = self.site(request);
        if let Err(fault) = site.present_role() {
            return refused(request.era, &self.clean(fault));
        }
        if tools::is_read(tool) {
            let read = tools::call(&site, tool, arguments).await;
            return read.or_else(|fault| refused(request.era, &self.clean(fault)));
        }
        // A change goes on to its end in a task of its own, also where its caller is gone.
        let (tool, arguments) = (tool.to_owned(), arguments.clone());
        let done = share::spawn(async move { tools::call(&site, &tool, &arguments).await }).await;
        let done = done.unwrap_or_else(|error| Err(Fault::new(Code::HardwareFailure, format!("the call broke off: {error}"))));
        done.or_else(|fault| refused(request.era, &self.clean(fault)))
    }

    fn resources(&self) -> Vec<Value> {
        reads::resources(&self.site)
    }

    fn templates(&self) -> Vec<Value> {
        reads::templates(&self.site)
    }

    async fn read(&self, request: &Request, uri: &str, params: &Map<String, Value>) -> Result<Option<Value>, Refusal> {
        if params.get("cursor").is_some_and(|cursor| !cursor.is_string()) {
            return Err(Refusal::invalid("`cursor` is a text, as the page before gave it"));
        }
        let cursor = params.get("cursor").and_then(Value::as_str);
        let is_whole = cursor.is_none() && !uri.contains('?');
        // What is followed is read once for all, so with nobody's rights.
        let read = if is_whole && !self.site.rules.has_roles() && request.connection.followed().contains(uri) {
            self.watch.read(uri).await
        } else {
            reads::read(&self.site(request), uri, cursor).await
        };
        read.map_err(|fault| unread(request.era, &self.clean(fault)))
    }

    async fn follow(&self, uris: &[String]) -> Vec<String> {
        self.watch.follow(uris).await
    }

    fn subscription(&self, request: &Request, id: &str) -> Value {
        let shape = json!({ "subscriptionId": id });
        if self.compat.is_draft(&request.capabilities) { shape } else { json!({ "_meta": shape }) }
    }

    fn connected(&self, connection: &Connection) {
        subject::spawn(Arc::clone(&self.watch).run(connection.clone()));
    }

    /// Writes a resource (section 5.3 of the draft) or streams a prompt (section 6.4), which MCP has no methods for.
    async fn other(&self, request: &Request, method: &str, params: &Map<String, Value>) -> Option<Result<Value, Refusal>> {
        if method == "prompts/stream" && self.site.backend.has_command_line() {
            return Some(self.streamed(request, params).await);
        }
        if method != "resources/write" || !reads::can_write(&self.site) {
            return None;
        }
        let (site, params) = (self.site(request), params.clone());
        if let Err(fault) = site.present_role() {
            return Some(Err(unread(request.era, &self.clean(fault))));
        }
        let done = share::spawn(async move { tools::write(&site, &params).await }).await;
        let done = done.unwrap_or_else(|error| Err(Fault::new(Code::HardwareFailure, format!("the write broke off: {error}"))));
        Some(done.map_err(|fault| unread(request.era, &self.clean(fault))))
    }

    fn prompts(&self) -> Vec<Value> {
        // The steps are commands.
        if self.site.backend.has_command_line() { prompt::descriptors(&self.site.dialect) } else { Vec::new() }
    }

    async fn prompt(&self, request: &Request, name: &str, params: &Map<String, Value>) -> Result<Value, Refusal> {
        let site = self.site(request);
        site.present_role().map_err(|fault| unread(request.era, &self.clean(fault)))?;
        let errand = self.errand(&site, request);
        let step = errand.step(name, params).await.map_err(|fault| unread(request.era, &self.clean(fault)))?;
        errand.result(step).await
    }

    async fn completions(&self, reference: &str, argument: &str, typed: &str) -> Vec<String> {
        // Nobody says here who asks.
        if self.site.rules.has_roles() {
            return Vec::new();
        }
        prompts::complete(&self.site, reference, argument, typed).await
    }
}

/// A tool that failed: an error of the draft's in the initialize era, a result with the same code in the stateless era, where MCP keeps the
/// draft's numbers for other errors.
fn refused(era: Era, fault: &Fault) -> Result<Value, Refusal> {
    match era {
        Era::Initialize => Err(rpc(&fault.to_error())),
        Era::Stateless => Ok(fault.to_result()),
    }
}

fn unread(era: Era, fault: &Fault) -> Refusal {
    rpc(&if era == Era::Initialize { fault.to_error() } else { fault.to_stateless_error() })
}

fn rpc(error: &Value) -> Refusal {
    Refusal::Rpc {
        code: error["code"].as_i64().unwrap_or(-32603),
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        data: error.get("data").cloned(),
    }
}
