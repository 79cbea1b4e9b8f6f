//! Operations of A2A clients, by the method of JSON-RPC or by the path of HTTP+JSON. Does none of them.

use agent_proto::served::listing::TaskFilter;
use agent_proto::served::push::PushName;
use agent_proto::served::rejection::ClientRefusal;
use http::Method;
use http::request::Parts;
use mcp_proto::envelope::Request;

/// Paths of HTTP+JSON begin so.
pub const REST: &str = "/a2a/";
/// Part of a path between a task and its wishes for notifications.
const PUSHES: &str = "/pushNotificationConfigs";

/// A request of an admitted client.
pub enum AgentOperation<'a> {
    Send(&'a [u8]),
    Stream(&'a [u8]),
    Subscribe(String),
    Get(String),
    Cancel(String),
    List(Result<TaskFilter, ClientRefusal>),
    Push(PushOperation<'a>),
    Unknown,
}

/// A request about notifications of a task.
pub enum PushOperation<'a> {
    /// Raw wish, and the task in the path.
    Create(&'a [u8], Option<String>),
    Get(Result<PushName, ClientRefusal>),
    List(Result<PushName, ClientRefusal>),
    Delete(Result<PushName, ClientRefusal>),
}

impl<'a> AgentOperation<'a> {
    /// Reads a request of JSON-RPC.
    pub fn of_rpc(request: &'a Request) -> Self {
        let params = request.params.text();
        let task = || request.params.str("id").unwrap_or_default().into_owned();
        match &*request.method {
            "SendMessage" => Self::Send(params),
            "SendStreamingMessage" => Self::Stream(params),
            "SubscribeToTask" => Self::Subscribe(task()),
            "GetTask" => Self::Get(task()),
            "CancelTask" => Self::Cancel(task()),
            "ListTasks" => Self::List(TaskFilter::read(params)),
            "CreateTaskPushNotificationConfig" => Self::Push(PushOperation::Create(params, None)),
            "GetTaskPushNotificationConfig" => Self::Push(PushOperation::Get(PushName::read(params))),
            "ListTaskPushNotificationConfigs" => Self::Push(PushOperation::List(PushName::read(params))),
            "DeleteTaskPushNotificationConfig" => Self::Push(PushOperation::Delete(PushName::read(params))),
            _ => Self::Unknown,
        }
    }

    /// Reads a request of HTTP+JSON.
    pub fn of_rest(parts: &Parts, body: &'a [u8]) -> Self {
        let path = parts.uri.path().strip_prefix(REST).unwrap_or_default();
        match (&parts.method, path) {
            (&Method::POST, "message:send") => Self::Send(body),
            (&Method::POST, "message:stream") => Self::Stream(body),
            (&Method::GET, "tasks") => {
                let pairs: Vec<_> = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).collect();
                Self::List(TaskFilter::of_query(pairs.iter().map(|(key, text)| (&**key, &**text))))
            }
            (method, _) => path.strip_prefix("tasks/").map_or(Self::Unknown, |task| Self::of_task(method, task, body)),
        }
    }

    /// Reads a request about a task. `path` begins with the id.
    fn of_task(method: &Method, path: &str, body: &'a [u8]) -> Self {
        if let Some((task, id)) = path.split_once(PUSHES) {
            let name = |id: &str| Ok(PushName { task: task.to_owned(), id: id.to_owned() });
            return match (method, id, id.strip_prefix('/')) {
                (&Method::POST, "", _) => Self::Push(PushOperation::Create(body, Some(task.to_owned()))),
                (&Method::GET, "", _) => Self::Push(PushOperation::List(name(""))),
                (&Method::GET, _, Some(id)) => Self::Push(PushOperation::Get(name(id))),
                (&Method::DELETE, _, Some(id)) => Self::Push(PushOperation::Delete(name(id))),
                _ => Self::Unknown,
            };
        }
        match (method, path.split_once(':')) {
            // The specification's table says POST, and its proto says GET.
            (&Method::POST | &Method::GET, Some((task, "subscribe"))) => Self::Subscribe(task.to_owned()),
            (&Method::POST, Some((task, "cancel"))) => Self::Cancel(task.to_owned()),
            (&Method::GET, None) if !path.is_empty() && !path.contains('/') => Self::Get(path.to_owned()),
            _ => Self::Unknown,
        }
    }

    /// Checks for an operation whose answer holds the task as a member.
    pub fn is_wrapped(&self) -> bool {
        matches!(self, Self::Send(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_operations_tasks_and_wishes() {
        let asked = |method: &str, path: &str| {
            let (parts, ()) = http::Request::builder().method(method).uri(format!("http://a/a2a/{path}")).body(()).unwrap().into_parts();
            match AgentOperation::of_rest(&parts, b"{}") {
                AgentOperation::Subscribe(task) => format!("subscribe {task}"),
                AgentOperation::Get(task) => format!("get {task}"),
                AgentOperation::Cancel(task) => format!("cancel {task}"),
                AgentOperation::Push(PushOperation::Create(_, Some(task))) => format!("create {task}"),
                AgentOperation::Push(PushOperation::Get(Ok(name))) => format!("push {} {}", name.task, name.id),
                AgentOperation::Push(PushOperation::List(Ok(name))) => format!("pushes {}", name.task),
                AgentOperation::Push(PushOperation::Delete(Ok(name))) => format!("delete {} {}", name.task, name.id),
                AgentOperation::Send(_) => "send".into(),
                AgentOperation::Stream(_) | AgentOperation::List(_) | AgentOperation::Push(_) | AgentOperation::Unknown => "nothing".into(),
            }
        };
        for (method, path, wanted) in [
            ("POST", "message:send", "send"),
            ("GET", "message:send", "nothing"),
            ("GET", "tasks/t", "get t"),
            ("GET", "tasks/", "nothing"),
            ("GET", "tasks/t/u", "nothing"),
            ("POST", "tasks/t:cancel", "cancel t"),
            ("GET", "tasks/t:cancel", "nothing"),
            ("GET", "tasks/t:subscribe", "subscribe t"),
            ("POST", "tasks/t:subscribe", "subscribe t"),
            ("POST", "tasks/t/pushNotificationConfigs", "create t"),
            ("GET", "tasks/t/pushNotificationConfigs", "pushes t"),
            ("GET", "tasks/t/pushNotificationConfigs/p", "push t p"),
            ("DELETE", "tasks/t/pushNotificationConfigs/p", "delete t p"),
            ("DELETE", "tasks/t/pushNotificationConfigs", "nothing"),
        ] {
            assert_eq!(asked(method, path), wanted, "{method} {path}");
        }
    }
}
