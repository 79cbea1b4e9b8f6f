//! Subject of a task: the one whose work the task does, for the words of a panic. A task that another begins has none of its own, so tasks
//! begin here. Catches no panic.

use std::io::Write;
use std::sync::Arc;

use tokio::task::JoinHandle;

tokio::task_local! {
    static SUBJECT: Arc<str>;
}

/// Does work for a subject.
pub fn within<F: Future>(subject: &str, work: F) -> impl Future<Output = F::Output> + use<F> {
    SUBJECT.scope(subject.into(), work)
}

/// Begins a task for the subject of the present one.
pub fn spawn<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    match SUBJECT.try_with(Arc::clone) {
        Ok(subject) => tokio::spawn(SUBJECT.scope(subject, work)),
        Err(_) => tokio::spawn(work),
    }
}

/// Has every panic of this process name the subject of its task on standard error, before anything else is said or done.
pub fn name_in_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        drop(SUBJECT.try_with(|subject| writeln!(std::io::stderr(), "a panic in the work for {subject}")));
        before(panic);
    }));
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use serde_json::{Value, json};

    use super::*;
    use crate::{About, Arguments, Refusal, Request, Server};

    struct SubjectServer;

    impl Server for SubjectServer {
        fn about(&self) -> About {
            About::fixed("s", "S", "1", "")
        }

        fn tools(&self) -> Vec<Value> {
            vec![json!({ "name": "t", "inputSchema": { "type": "object" } })]
        }

        async fn call(&self, _request: &Request, _tool: &str, _arguments: &Arguments) -> Result<Value, Refusal> {
            tokio::task::yield_now().await;
            Ok(crate::text(SUBJECT.try_with(|subject| subject.to_string()).unwrap_or_default()))
        }
    }

    #[tokio::test]
    async fn work_of_a_server_keeps_its_subject() {
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "t", "arguments": {}, "_meta": meta } });
        let (near, far) = tokio::io::duplex(1 << 16);
        let line = format!("{call}\n");
        let served = within("r1", crate::run(Arc::new(SubjectServer), line.as_bytes(), far));
        served.await.unwrap();
        let mut said = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut tokio::io::BufReader::new(near), &mut said).await.unwrap();
        assert!(said.contains("\"r1\""), "{said}");
    }

    #[tokio::test]
    async fn a_panic_names_the_subject_of_its_task() {
        let seen: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
        let heard = Arc::clone(&seen);
        std::panic::set_hook(Box::new(move |_| {
            heard.lock().unwrap().push(SUBJECT.try_with(|subject| subject.to_string()).ok());
        }));
        let fail = || async { panic!("on purpose") };
        let begun = async { spawn(async { spawn(async { panic!("on purpose") }).await }).await };
        let (_own, _of_a_task, _other): (Result<(), _>, _, _) =
            tokio::join!(spawn(within("r1", fail())), within("r2", begun), spawn(async { panic!("on purpose") }));
        drop(std::panic::take_hook());
        let mut named = seen.lock().unwrap().clone();
        named.sort();
        assert_eq!(named, [None, Some("r1".to_owned()), Some("r2".to_owned())]);
    }
}
