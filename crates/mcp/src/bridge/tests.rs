//! Clients, gates and the bridge between them, all in one process. Finding gates is not tested here.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tokio::io::{BufReader, DuplexStream, Lines as Read, duplex};
use tokio::task::JoinHandle;

use crate::bridge::*;

/// Outcomes of searches for a gate, in order.
struct Prepared(VecDeque<Result<Option<DuplexStream>, String>>);

impl Gates for Prepared {
    type Connection = DuplexStream;

    async fn connect(&mut self, _starts: bool) -> Result<Option<DuplexStream>, String> {
        self.0.pop_front().unwrap_or(Ok(None))
    }
}

/// Far end of a line: a client, or a gate.
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

/// Connects a client and a gate by a bridge; `others` are the gates to follow.
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
async fn a_request_without_a_gate_gets_an_error() {
    let (next, far) = pair();
    let (mut client, gate, _serving) = bridged(vec![Err("no room".into()), Ok(Some(far))]);
    drop(gate);
    client.say(&request(1)).await;
    let told = client.hear().await;
    assert!(told["id"] == 1 && told["error"]["code"].is_i64(), "{told}");
    client.say(&request(2)).await;
    let mut next = End::new(next);
    if told["error"]["data"]["reason"] == "outcome_unknown" {
        // This request had been passed on before the loss was seen.
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
async fn a_late_reader_gets_a_long_answer_whole() {
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
async fn open_answers_are_waited_for_after_the_clients_end() {
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

/// Turns of other tasks to wait through before a write counts as stuck.
const LOOKS: usize = 1000;

/// Sends the message again and again until nobody reads; returns the bytes taken. Everything runs on this thread.
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
async fn bytes_for_a_gate_that_stops_reading_are_bounded() {
    let (mut client, _gate, _serving) = bridged(Vec::new());
    let taken = fill(&mut client, &json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "x": "x".repeat(50_000) } })).await;
    assert!((FULL..FULL + (1 << 19)).contains(&taken), "{taken}");
}

#[tokio::test]
async fn bytes_for_a_client_that_stops_reading_are_bounded() {
    let (mut client, mut gate, _serving) = bridged(Vec::new());
    client.say(&request(1)).await;
    gate.hear().await;
    let taken = fill(&mut gate, &json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": { "x": "x".repeat(50_000) } })).await;
    assert!((FULL..FULL + (1 << 19)).contains(&taken), "{taken}");
}

#[tokio::test]
async fn an_endless_line_is_passed_on_in_neither_direction() {
    let (mut client, mut gate, _serving) = bridged(Vec::new());
    let block = "x".repeat(1 << 20);
    let endless = async |write: &mut WriteHalf<DuplexStream>| {
        for _ in 0..=LONGEST >> 20 {
            if write.write_all(block.as_bytes()).await.is_err() {
                return;
            }
        }
        // A gate may be dropped before the end of its line.
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
