//! Questions of a tool on their way to the client of its task, one at a time. Reads no answer: the task does.

use std::collections::VecDeque;
use std::time::Duration;

use agent_proto::served::input::{LEFT, TaskQuestion};
use bytes::Bytes;
use call::tree::back::{Back, Question};
use mcp_proto::envelope::{Answer, error_object};
use mcp_proto::hidden;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until};

use crate::served::tasks::Tasks;

/// Most questions in waiting behind the shown one.
const MOST: usize = 4;
/// Time for a client to answer.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Client of a task whose tool has questions.
#[derive(Default)]
pub struct AskedClient {
    waiting: VecDeque<(String, TaskQuestion)>,
    open: Option<ShownQuestion>,
}

/// A question shown by the task.
struct ShownQuestion {
    key: String,
    answer: oneshot::Receiver<String>,
    until: Instant,
}

impl AskedClient {
    /// Queues questions of the tool.
    pub fn queue(&mut self, fresh: Vec<Question>, back: &Back, tasks: &Tasks, id: &str) {
        for Question { key, method, params } in fresh {
            match TaskQuestion::read(&method, &params) {
                Ok(_) if self.waiting.len() >= MOST => {
                    back.reply(&key, refused(-32000, "the client has too many questions to answer already"))
                }
                Ok(mut question) => {
                    question.words = hidden::without(&question.words);
                    self.waiting.push_back((key, question));
                }
                Err(fault) => back.reply(&key, refused(-32602, &fault.to_string())),
            }
        }
        self.show(back, tasks, id);
    }

    /// Waits for the client's words about the shown question.
    pub async fn answered(&mut self) -> (String, Answer) {
        let Some(open) = &mut self.open else { return std::future::pending().await };
        let answer = tokio::select! {
            biased;
            answer = &mut open.answer => answer.ok(),
            () = sleep_until(open.until) => None,
        };
        let key = std::mem::take(&mut open.key);
        self.open = None;
        (key, Answer::Result(Bytes::from(answer.unwrap_or_else(|| LEFT.into())).into()))
    }

    /// Passes an answer on, and shows the next question.
    pub fn pass_on(&mut self, (key, answer): (&str, Answer), back: &Back, tasks: &Tasks, id: &str) {
        tasks.attend(id, None);
        back.reply(key, answer);
        self.show(back, tasks, id);
    }

    fn show(&mut self, back: &Back, tasks: &Tasks, id: &str) {
        while self.open.is_none()
            && let Some((key, question)) = self.waiting.pop_front()
        {
            match tasks.ask(id, question) {
                Some(answer) => self.open = Some(ShownQuestion { key, answer, until: Instant::now() + PATIENCE }),
                None => back.reply(&key, refused(-32000, "the gate has no room for a question to the client")),
            }
        }
    }
}

fn refused(code: i64, why: &str) -> Answer {
    Answer::Error(error_object(code, why, None))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};

    use call::tree::back::Sink;
    use call::words::cancel::Cancel;
    use call::words::entered::{AboutClient, AdmittedCaller};
    use config::secret::SystemSources;
    use futures_util::FutureExt;

    use super::*;
    use crate::served::fixtures::{call, token};
    use crate::served::onward::Onward;

    const ASK: &str = "elicitation/create";
    static QUESTION: Bytes =
        Bytes::from_static(br#"{"message":"which colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}}}}"#);

    fn back() -> Arc<Back> {
        let config = config::parse("", Path::new("banyan.toml"), &SystemSources).unwrap();
        let about = AboutClient { info: b"{}", capabilities: br#"{"elicitation":{}}"# };
        let caller = Arc::new(door::known::stateless(&config, &AdmittedCaller::local(), (None, None), about));
        Back::new(caller, Sink::None, None, Cancel::default())
    }

    fn fresh(back: &Back) -> Vec<Question> {
        let Poll::Ready(fresh) = back.poll_questions(false, &mut Context::from_waker(Waker::noop())) else { panic!("no question") };
        fresh
    }

    #[tokio::test]
    async fn a_sixth_question_at_once_is_refused() {
        let (tasks, back, mut asked) = (Tasks::default(), back(), AskedClient::default());
        let Ok(Onward::Begun(task)) = tasks.begin(&token("ann"), "m", None, call()) else { panic!("no task") };
        let mut answers = Vec::new();
        for number in 0..=MOST + 1 {
            let mut answer = Box::pin(back.ask(ASK, &QUESTION));
            assert!((&mut answer).now_or_never().is_none());
            asked.queue(fresh(&back), &back, &tasks, &task.id);
            assert_eq!((&mut answer).now_or_never().is_some(), number > MOST, "question {number}");
            answers.push(answer);
        }
    }

    #[tokio::test]
    async fn a_question_past_its_time_counts_as_left() {
        let (tasks, back, mut asked) = (Tasks::default(), back(), AskedClient::default());
        let Ok(Onward::Begun(task)) = tasks.begin(&token("ann"), "m", None, call()) else { panic!("no task") };
        let mut answer = Box::pin(back.ask(ASK, &QUESTION));
        assert!((&mut answer).now_or_never().is_none());
        asked.queue(fresh(&back), &back, &tasks, &task.id);
        let open = asked.open.as_mut().unwrap();
        assert!(open.until > Instant::now() + PATIENCE / 2);
        open.until = Instant::now();
        let (key, left) = asked.answered().await;
        asked.pass_on((&key, left), &back, &tasks, &task.id);
        let Answer::Result(result) = answer.await else { panic!("no result") };
        assert_eq!(result.text(), LEFT.as_bytes());
    }
}
