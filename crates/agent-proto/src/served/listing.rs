//! Lists of tasks (A2A 1.0, section 3.1.4): the filters of a client, and a page of tasks. Keeps no task.

use json::{Duplicates, Members};

use crate::served::rejection::{ClientRefusal, RefusalReason};
use crate::served::written::ServedTask;
use crate::task::TaskState;

/// Most tasks of a page, and their number unless the client names one.
const MOST_OF_PAGE: usize = 100;
const USUAL: usize = 50;
/// Bytes of a page after which the rest waits for the next one. A longer task has a page to itself.
const BYTES_OF_PAGE: usize = 4 << 20;

/// Filters and place of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFilter {
    pub context: Option<String>,
    pub state: Option<TaskState>,
    pub page_size: usize,
    /// Number of the change behind which the page begins, as [`TaskPage`] gave it.
    pub before: Option<u64>,
    /// Earliest change of state, in milliseconds since 1970.
    pub since: Option<i64>,
    pub has_artifacts: bool,
}

impl Default for TaskFilter {
    fn default() -> Self {
        Self { context: None, state: None, page_size: USUAL, before: None, since: None, has_artifacts: false }
    }
}

impl TaskFilter {
    /// Reads the params of `ListTasks`. Numbers may be strings, as in ProtoJSON, and unknown members are ignored.
    pub fn read(params: &[u8]) -> Result<Self, ClientRefusal> {
        let params = Members::parse(params, Duplicates::RefuseDeep).map_err(|error| wrong(format!("The params are wrong: {error}.")))?;
        let mut filter = Self::default();
        for (key, raw) in params.iter().filter(|(_, raw)| *raw != b"null") {
            match json::as_str(raw) {
                Some(text) => filter.set(&key, &text)?,
                None => filter.set(&key, &String::from_utf8_lossy(raw))?,
            }
        }
        Ok(filter)
    }

    /// Reads the decoded pairs of a query.
    pub fn of_query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, ClientRefusal> {
        let mut filter = Self::default();
        pairs.into_iter().try_for_each(|(key, text)| filter.set(key, text))?;
        Ok(filter)
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), ClientRefusal> {
        match key {
            "contextId" => self.context = Some(text.to_owned()).filter(|text| !text.is_empty()),
            "status" if matches!(text, "" | "TASK_STATE_UNSPECIFIED") => self.state = None,
            "status" => self.state = Some(TaskState::parse(text).ok_or_else(|| wrong("The `status` is no state of A2A 1.0."))?),
            "pageSize" => {
                let size = text.parse().ok().filter(|size| (1..=MOST_OF_PAGE).contains(size));
                self.page_size = size.ok_or_else(|| wrong(format!("The `pageSize` is no number from 1 to {MOST_OF_PAGE}.")))?;
            }
            "pageToken" if text.is_empty() => self.before = None,
            "pageToken" => self.before = Some(text.parse().map_err(|_| wrong("The `pageToken` is none that this gate gave."))?),
            // Tasks are kept without their history.
            "historyLength" if text.parse::<u32>().is_err() => return Err(wrong("The `historyLength` is no number from 0 on.")),
            "statusTimestampAfter" => self.since = Some(moment(text)?),
            "includeArtifacts" if !matches!(text, "true" | "false") => {
                return Err(wrong("The `includeArtifacts` is neither true nor false."));
            }
            "includeArtifacts" => self.has_artifacts = text == "true",
            _ => {}
        }
        Ok(())
    }

    /// Checks a task against the filters, wherever the page begins.
    pub fn matches(&self, task: &ServedTask) -> bool {
        self.context.as_ref().is_none_or(|context| *context == task.context)
            && self.state.is_none_or(|state| state == task.state)
            && self.since.is_none_or(|since| task.changed >= since)
    }
}

fn wrong(text: impl Into<String>) -> ClientRefusal {
    ClientRefusal::new(RefusalReason::InvalidParams, text)
}

/// Reads a moment in milliseconds since 1970; what is finer is rounded up, so that no earlier change counts.
fn moment(text: &str) -> Result<i64, ClientRefusal> {
    let moment = chrono::DateTime::parse_from_rfc3339(text).map_err(|_| wrong("The `statusTimestampAfter` is no time of RFC 3339."))?;
    let is_finer = !moment.timestamp_subsec_nanos().is_multiple_of(1_000_000);
    Ok(moment.timestamp_millis() + i64::from(is_finer))
}

/// A page of tasks, newest change first.
#[derive(Debug)]
pub struct TaskPage<'a> {
    filter: &'a TaskFilter,
    tasks: Vec<String>,
    bytes: usize,
    total: usize,
    /// Number of the last change on the page.
    last: u64,
    is_more: bool,
}

impl<'a> TaskPage<'a> {
    /// Begins an empty page.
    pub fn new(filter: &'a TaskFilter) -> Self {
        Self { filter, tasks: Vec::new(), bytes: 0, total: 0, last: 0, is_more: false }
    }

    /// Takes the next task, with the number of its last change. Numbers fall from task to task.
    pub fn push(&mut self, number: u64, task: &ServedTask) {
        if !self.filter.matches(task) {
            return;
        }
        self.total += 1;
        if self.is_more || self.filter.before.is_some_and(|before| number >= before) {
            return;
        }
        if self.tasks.len() == self.filter.page_size || self.bytes >= BYTES_OF_PAGE {
            self.is_more = true;
            return;
        }
        let written = if self.filter.has_artifacts { task.write() } else { task.write_brief() };
        if !self.tasks.is_empty() && self.bytes + written.len() > BYTES_OF_PAGE {
            self.is_more = true;
            return;
        }
        self.bytes += written.len();
        self.last = number;
        self.tasks.push(written);
    }

    /// Writes the page.
    pub fn write(&self) -> String {
        let next = if self.is_more { self.last.to_string() } else { String::new() };
        let (tasks, size, total) = (self.tasks.join(","), self.filter.page_size, self.total);
        format!("{{\"tasks\":[{tasks}],\"nextPageToken\":\"{next}\",\"pageSize\":{size},\"totalSize\":{total}}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: &str, state: TaskState, changed: i64) -> ServedTask {
        let artifacts = Some("[{\"artifactId\":\"a\",\"parts\":[]}]".into());
        ServedTask { id: id.into(), context: "c".into(), state, changed, words: None, question: None, artifacts }
    }

    fn page(filter: &TaskFilter, tasks: &[(u64, ServedTask)]) -> serde_json::Value {
        let mut page = TaskPage::new(filter);
        tasks.iter().for_each(|(number, task)| page.push(*number, task));
        serde_json::from_str(&page.write()).unwrap()
    }

    #[test]
    fn a_body_and_a_query_say_the_same() {
        let body = TaskFilter::read(
            br#"{"contextId":"c","status":"TASK_STATE_WORKING","pageSize":"7","pageToken":"12","historyLength":0,"includeArtifacts":true,
                "statusTimestampAfter":"1970-01-01T00:00:01.0005Z","tenant":null,"new":{}}"#,
        );
        let query = [
            ("contextId", "c"),
            ("status", "TASK_STATE_WORKING"),
            ("pageSize", "7"),
            ("pageToken", "12"),
            ("includeArtifacts", "true"),
            ("statusTimestampAfter", "1970-01-01T01:00:01.0005+01:00"),
        ];
        let wanted = TaskFilter {
            context: Some("c".into()),
            state: Some(TaskState::Working),
            page_size: 7,
            before: Some(12),
            since: Some(1001),
            has_artifacts: true,
        };
        assert_eq!((body, TaskFilter::of_query(query)), (Ok(wanted.clone()), Ok(wanted)));
        let empty = r#"{"contextId":"","status":"TASK_STATE_UNSPECIFIED","pageToken":""}"#;
        assert_eq!(TaskFilter::read(empty.as_bytes()), Ok(TaskFilter::default()));
    }

    #[test]
    fn a_filter_that_is_not_understood_is_refused() {
        for pair in [
            r#""pageSize":0"#,
            r#""pageSize":101"#,
            r#""pageToken":"x""#,
            r#""status":"done""#,
            r#""status":[]"#,
            r#""historyLength":-1"#,
            r#""includeArtifacts":1"#,
            r#""statusTimestampAfter":"yesterday""#,
            r#""pageSize":1,"pageSize":2"#,
        ] {
            assert_eq!(TaskFilter::read(format!("{{{pair}}}").as_bytes()).unwrap_err().kind, RefusalReason::InvalidParams, "{pair}");
        }
    }

    #[test]
    fn pages_show_every_task_once() {
        let tasks: Vec<_> = (1..=5).rev().map(|n| (n, task(&n.to_string(), TaskState::Completed, 0))).collect();
        let mut filter = TaskFilter { page_size: 2, ..TaskFilter::default() };
        let mut seen = Vec::new();
        loop {
            let page = page(&filter, &tasks);
            assert_eq!((&page["pageSize"], &page["totalSize"]), (&2.into(), &5.into()));
            seen.extend(page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()));
            match page["nextPageToken"].as_str().unwrap() {
                "" => break,
                next => filter.before = Some(next.parse().unwrap()),
            }
        }
        assert_eq!(seen, ["5", "4", "3", "2", "1"]);
    }

    #[test]
    fn a_page_holds_what_the_filters_let_through() {
        let tasks =
            [(3, task("a", TaskState::Working, 30)), (2, task("b", TaskState::Completed, 20)), (1, task("c", TaskState::Completed, 10))];
        let ids = |filter: TaskFilter| {
            let page = page(&filter, &tasks);
            let ids = page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned());
            ids.collect::<Vec<String>>().join("")
        };
        assert_eq!(ids(TaskFilter { state: Some(TaskState::Completed), ..TaskFilter::default() }), "bc");
        assert_eq!(ids(TaskFilter { since: Some(20), ..TaskFilter::default() }), "ab");
        assert_eq!(ids(TaskFilter { context: Some("other".into()), ..TaskFilter::default() }), "");
        assert!(page(&TaskFilter::default(), &tasks)["tasks"][0].get("artifacts").is_none());
        assert!(page(&TaskFilter { has_artifacts: true, ..TaskFilter::default() }, &tasks)["tasks"][0]["artifacts"].is_array());
    }

    #[test]
    fn a_page_ends_where_its_bytes_do() {
        let long = |id: &str| ServedTask { words: Some(" ".repeat(BYTES_OF_PAGE / 2 + 1)), ..task(id, TaskState::Failed, 0) };
        let first = page(&TaskFilter::default(), &[(3, long("a")), (2, long("b")), (1, long("c"))]);
        assert_eq!((first["tasks"].as_array().unwrap().len(), &first["nextPageToken"], &first["totalSize"]), (1, &"3".into(), &3.into()));
    }
}
