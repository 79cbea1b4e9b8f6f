//! The client: what the user, the model and the roots answer, and what was notified. Does not check anything.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
    ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam, ProtocolVersion, ResourceUpdatedNotificationParam,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, NotificationContext, RequestContext, RunningService};
use rmcp::transport::IntoTransport;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// What came by itself, in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Log(Value),
    Progress(f64, Option<f64>),
    Tools,
    Updated(String),
}

/// The handler; clones see the same events.
#[derive(Clone, Default)]
pub(crate) struct Visitor {
    events: Arc<Mutex<Vec<Event>>>,
    arrived: Arc<Notify>,
}

impl Visitor {
    fn record(&self, event: Event) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        self.arrived.notify_waiters();
    }

    /// Forgets what came so far.
    pub(crate) fn clear(&self) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// What came since the last `clear`.
    pub(crate) fn seen(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until an event is there for which `wanted` holds.
    pub(crate) async fn wait(&self, wanted: impl Fn(&Event) -> bool) -> Event {
        loop {
            let arrived = self.arrived.notified();
            if let Some(event) = self.seen().into_iter().find(&wanted) {
                return event;
            }
            arrived.await;
        }
    }
}

fn parsed<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

impl ClientHandler for Visitor {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        let capabilities = json!({"sampling": {}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true}});
        if let Ok(capabilities) = serde_json::from_value(capabilities) {
            config.capabilities = capabilities;
        }
        config
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let asked = serde_json::to_value(&params.messages).unwrap_or_default();
        let asked = asked[0]["content"]["text"].as_str().unwrap_or_default().to_owned();
        parsed(json!({"role": "assistant", "model": "peer", "content": {"type": "text", "text": format!("sampled: {asked}")}}))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        parsed(json!({"roots": [{"uri": "file:///peer/root"}]}))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let accepted = ElicitResult::new(ElicitationAction::Accept);
        Ok(match request {
            ElicitRequestParams::FormElicitationParams { message, .. } => {
                accepted.with_content(json!({"response": format!("answered: {message}")}))
            }
            ElicitRequestParams::UrlElicitationParams { .. } | _ => accepted,
        })
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.record(Event::Progress(params.progress, params.total));
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _context: NotificationContext<RoleClient>) {
        self.record(Event::Log(params.data));
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _context: NotificationContext<RoleClient>) {
        self.record(Event::Updated(params.uri));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.record(Event::Tools);
    }
}

/// Connects in one of the lifecycles.
pub(crate) async fn connect<T, E, A>(visitor: Visitor, mode: &str, transport: T) -> anyhow::Result<RunningService<RoleClient, Visitor>>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match mode {
        "auto" => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        "legacy" => ClientLifecycleMode::Initialize,
        _ => ClientLifecycleMode::Discover { preferred_versions },
    };
    Ok(visitor.serve_with_lifecycle(transport, lifecycle).await?)
}
