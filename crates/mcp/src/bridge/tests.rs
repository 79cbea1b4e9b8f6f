//! Clients, gates and the bridge between them, all in one process. Which gate there is, is not tried here.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::io::{BufReader, DuplexStream, Lines as Read, duplex};
use tokio::task::JoinHandle;

use crate::bridge::*;

/// What is found each time a gate is looked for.
struct Prepared(VecDeque<Result<Option<DuplexStream>, String>>);

impl Gates for Prepared {
    type Connection = DuplexStream;

    async fn connect(&mut self, _starts: bool) -> Result<Option<DuplexStream>, String> {
        self.0.pop_front().unwrap_or(Ok(None))
    }
}

/// The far end of a line: a client, or a gate.
struct End {
    lines: Read<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
}

impl End {
    fn new(stream: DuplexStream) -> Self {
        let (read, write) = tokio::io::split(stream);
        Self { lines: tokio::io::AsyncBufReadExt::lines(BufReader::new(read)), write }
    }

    async fn say(&mut self, message: &Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }
}

fn pair() -> (DuplexStream, DuplexStream) {
    duplex(1 << 16)
}

/// A client and its gate; other gates follow.
fn bridged(others: Vec<Result<Option<DuplexStream>, String>>) -> (End, End, JoinHandle<()>) {
    let ((client, near), (gate, far)) = (pair(), pair());
    let (input, output) = tokio::io::split(near);
    let bridge = Bridge::new(Prepared(others.into()), far, input, output);
    (End::new(client), End::new(gate), tokio::spawn(bridge.serve(CancellationToken::new())))
}

fn request(id: u32) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {} })
}

#[tokio::test]
async fn a_request_that_no_gate_is_there_for_gets_an_error_and_the_next_one_a_gate() {
    let (next, far) = pair();
    let (mut client, gate, _serving) = bridged(vec![Err("no room".into()), Ok(Some(far))]);
    drop(gate);
    client.say(&request(1)).await;
    let told = client.hear().await;
    assert!(told["id"] == 1 && told["error"]["code"].is_i64(), "{told}");
    client.say(&request(2)).await;
    let mut next = End::new(next);
    if told["error"]["data"]["reason"] == "outcome_unknown" {
        // It had been passed on before the loss was seen.
        assert_eq!(client.hear().await["error"]["message"], "no room");
        client.say(&request(3)).await;
    }
    let passed = next.hear().await;
    next.say(&json!({ "jsonrpc": "2.0", "id": passed["id"], "result": {} })).await;
    assert_eq!(client.hear().await["id"], passed["id"]);
}

#[tokio::test]
async fn half_a_message_of_a_lost_gate_reaches_nobody() {
    let (mut client, mut gate, _serving) = bridged(Vec::new());
    client.say(&request(1)).await;
    gate.hear().await;
    gate.write.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[").await.unwrap();
    drop(gate);
    let told = client.hear().await;
    assert_eq!((&told["id"], &told["error"]["data"]["reason"]), (&json!(1), &json!("outcome_unknown")));
}

#[tokio::test]
async fn a_long_answer_goes_to_a_client_that_reads_late_as_it_came() {
    let (mut client, mut gate, _serving) = bridged(Vec::new());
    client.say(&request(1)).await;
    gate.hear().await;
    let text = "x".repeat(3 * FULL);
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": { "text": text } });
    let saying = tokio::spawn(async move {
        for _ in 0..3 {
            gate.say(&answer).await;
        }
        gate
    });
    for _ in 0..3 {
        assert_eq!(client.hear().await["result"]["text"].as_str().map(str::len), Some(3 * FULL));
    }
    drop(saying.await.unwrap());
}

#[tokio::test]
async fn the_last_answers_are_waited_for_when_the_client_says_nothing_more() {
    let (mut client, mut gate, serving) = bridged(Vec::new());
    client.say(&request(1)).await;
    gate.hear().await;
    client.write.shutdown().await.unwrap();
    assert!(gate.lines.next_line().await.unwrap().is_none(), "the gate hears that nothing more comes");
    gate.say(&json!({ "jsonrpc": "2.0", "id": 1, "result": {} })).await;
    assert_eq!(client.hear().await["id"], 1);
    drop(gate);
    serving.await.unwrap();
}

/// Looks at the other tasks of a test before it counts as stuck.
const LOOKS: usize = 1000;

/// Says the message again and again until nobody takes more of it; gives how many bytes were taken. All that there is runs in this thread.
async fn fill(end: &mut End, message: &Value) -> usize {
    let (line, mut taken, mut looks) = (format!("{message}\n"), 0, 0);
    while looks < LOOKS {
        tokio::select! {
            biased;
            written = end.write.write(&line.as_bytes()[taken % line.len()..]) => (taken, looks) = (taken + written.unwrap(), 0),
            () = tokio::task::yield_now() => looks += 1,
        }
    }
    taken
}

#[tokio::test]
async fn what_waits_for_a_gate_that_reads_nothing_is_bounded_in_bytes() {
    let (mut client, _gate, _serving) = bridged(Vec::new());
    let taken = fill(&mut client, &json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "x": "x".repeat(50_000) } })).await;
    assert!((FULL..FULL + (1 << 19)).contains(&taken), "{taken}");
}

#[tokio::test]
async fn what_waits_for_a_client_that_reads_nothing_is_bounded_in_bytes() {
    let (mut client, mut gate, _serving) = bridged(Vec::new());
    client.say(&request(1)).await;
    gate.hear().await;
    let taken = fill(&mut gate, &json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "x": "x".repeat(50_000) } })).await;
    assert!((FULL..FULL + (1 << 19)).contains(&taken), "{taken}");
}

#[tokio::test]
async fn a_line_without_end_is_passed_on_in_neither_direction_and_is_told() {
    let (mut client, mut gate, _serving) = bridged(Vec::new());
    let block = "x".repeat(1 << 20);
    let endless = async |write: &mut WriteHalf<DuplexStream>| {
        for _ in 0..=LONGEST >> 20 {
            if write.write_all(block.as_bytes()).await.is_err() {
                return;
            }
        }
        // A gate may be let go of before its line ends.
        drop(write.write_all(b"\n").await);
    };
    endless(&mut client.write).await;
    let told = client.hear().await;
    assert!(told["id"].is_null() && told["error"]["message"].as_str().unwrap().contains("longer than"), "{told}");
    client.say(&request(1)).await;
    assert_eq!(gate.hear().await["id"], 1, "nothing of it has reached the gate");
    endless(&mut gate.write).await;
    let told = client.hear().await;
    assert_eq!((&told["id"], &told["error"]["data"]["reason"]), (&json!(1), &json!("outcome_unknown")));
}
