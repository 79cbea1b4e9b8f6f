//! Questions of a tool to the client of its task, and what the client says to them (A2A 1.0, `TASK_STATE_INPUT_REQUIRED`). Asks nobody, and
//! leaves the check of an answer against its schema to the tool.

use json::{Duplicates, Members, quote};

use crate::part::{Content, MessagePart};
use crate::served::nesting::fits;
use crate::served::rejection::{ClientRefusal, RefusalReason};

/// Member of a message's `metadata` that accepts or declines a question.
pub const INPUT: &str = "io.banyan/input";
/// Most characters of a question, and bytes of its schema.
const LONGEST_QUESTION: usize = 4_000;
const LONGEST_SCHEMA: usize = 16 << 10;

/// A question of a tool (`elicitation/create`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskQuestion {
    pub words: String,
    /// Raw schema of the answer.
    pub schema: String,
    field: AnswerField,
}

/// Reasons to refuse a question, in words for its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionFault {
    #[error("the client answers `elicitation/create` with a form alone")]
    Kind,
    #[error("the question has no `message`, or no readable `requestedSchema`")]
    Malformed,
    #[error("the question is longer than {LONGEST_QUESTION} characters, or its schema than {LONGEST_SCHEMA} bytes, or nested too deep")]
    TooLong,
}

/// Place of a plain text within an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AnswerField {
    /// The answer has no fields. No text is consent.
    Nothing,
    Text(String),
    /// A number or a truth value, which the text is as it stands.
    Literal(String),
    /// Several fields, or one of another kind.
    Several,
}

/// Words of a client about a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GivenInput {
    Declined,
    /// Consent by a word, for a form without fields.
    Accepted,
    /// A raw object.
    Data(String),
    Text(String),
    /// Neither one object nor text alone, or a word of no known meaning.
    Unclear,
}

impl TaskQuestion {
    /// Reads a question of a tool.
    pub fn read(method: &str, params: &[u8]) -> Result<Self, QuestionFault> {
        let params = Members::parse(params, Duplicates::RefuseTop).map_err(|_| QuestionFault::Malformed)?;
        if method != "elicitation/create" || params.str("mode").is_some_and(|mode| mode != "form") {
            return Err(QuestionFault::Kind);
        }
        let words = params.str("message").ok_or(QuestionFault::Malformed)?;
        let schema = params.get("requestedSchema").filter(|raw| raw.starts_with(b"{")).ok_or(QuestionFault::Malformed)?;
        if words.chars().count() > LONGEST_QUESTION || schema.len() > LONGEST_SCHEMA || !fits(schema) {
            return Err(QuestionFault::TooLong);
        }
        let field = AnswerField::of_schema(schema).ok_or(QuestionFault::Malformed)?;
        Ok(Self { words: words.into_owned(), schema: String::from_utf8_lossy(schema).into_owned(), field })
    }

    /// Counts the bytes that the question holds.
    pub fn size(&self) -> usize {
        2 * self.schema.len() + self.words.len()
    }

    /// Writes the result of the question from what the client said.
    pub fn answer(&self, given: &GivenInput) -> Result<String, ClientRefusal> {
        let accepted = |content: &str| format!("{{\"action\":\"accept\",\"content\":{content}}}");
        let one = |name: &str, value: &str| accepted(&format!("{{{}:{value}}}", quote(name)));
        match (given, &self.field) {
            (GivenInput::Declined, _) => Ok("{\"action\":\"decline\"}".into()),
            (GivenInput::Data(raw), _) => Ok(accepted(raw)),
            (GivenInput::Accepted, AnswerField::Nothing) => Ok(accepted("{}")),
            (GivenInput::Text(text), AnswerField::Text(name)) => Ok(one(name, &quote(text))),
            (GivenInput::Text(text), AnswerField::Literal(name)) if is_literal(text.trim()) => Ok(one(name, text.trim())),
            (GivenInput::Text(_) | GivenInput::Accepted | GivenInput::Unclear, _) => {
                Err(ClientRefusal::new(RefusalReason::InvalidParams, HOW))
            }
        }
    }
}

/// Answer of a client that has left a question alone for too long.
pub const LEFT: &str = "{\"action\":\"cancel\"}";

const HOW: &str = "The task waits for an answer: send one data part with an object of the question's `requestedSchema`, or text alone where the \
     question has one field for text, a number, true or false. To decline, send any text with the message's metadata \
     {\"io.banyan/input\": \"decline\"}. To accept a question without fields, say \"accept\" \
     there, or send a data part {}.";

impl AnswerField {
    /// Finds the place of a text. `None`: the schema can't be read, and nobody can tell what a text would mean.
    fn of_schema(schema: &[u8]) -> Option<Self> {
        let schema = Members::parse(schema, Duplicates::RefuseTop).ok()?;
        let properties = schema.get("properties").map(|raw| Members::parse(raw, Duplicates::RefuseTop)).transpose().ok()?;
        let mut properties = properties.iter().flat_map(|properties| properties.iter());
        Some(match (properties.next(), properties.next()) {
            (None, _) => Self::Nothing,
            (Some((name, raw)), None) => {
                let kind =
                    Members::parse(raw, Duplicates::RefuseTop).ok().and_then(|field| field.str("type").map(|kind| kind.into_owned()));
                match kind.as_deref() {
                    Some("string") => Self::Text(name.into_owned()),
                    Some("number" | "integer" | "boolean") => Self::Literal(name.into_owned()),
                    Some(_) | None => Self::Several,
                }
            }
            (Some(_), Some(_)) => Self::Several,
        })
    }
}

/// Checks for a number or a truth value.
fn is_literal(text: &str) -> bool {
    let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    (is_number || matches!(text, "true" | "false")) && json::check(text.as_bytes(), Duplicates::RefuseTop).is_ok()
}

impl GivenInput {
    /// Takes the parts of a message and what its metadata says about the question.
    pub fn of_parts(parts: &[MessagePart], word: Option<&str>) -> Self {
        match word {
            Some("decline") => return Self::Declined,
            Some("accept") | None => {}
            Some(_) => return Self::Unclear,
        }
        if let [MessagePart { content: Content::Data(raw), .. }] = parts
            && raw.starts_with('{')
        {
            return Self::Data(raw.clone());
        }
        if word.is_some() {
            return Self::Accepted;
        }
        let texts: Option<Vec<&str>> = parts.iter().map(|part| text(&part.content)).collect();
        texts.filter(|texts| !texts.is_empty()).map_or(Self::Unclear, |texts| Self::Text(texts.join("\n")))
    }
}

fn text(content: &Content) -> Option<&str> {
    match content {
        Content::Text(text) => Some(text),
        Content::Raw(_) | Content::Url(_) | Content::Data(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(properties: &str) -> TaskQuestion {
        let params = format!(r#"{{"message":"how many?","requestedSchema":{{"type":"object","properties":{properties}}}}}"#);
        TaskQuestion::read("elicitation/create", params.as_bytes()).unwrap()
    }

    #[test]
    fn a_text_is_the_value_of_the_only_field() {
        let text = |properties: &str, text: &str| question(properties).answer(&GivenInput::Text(text.into())).ok();
        let accepted = |content: &str| Some(format!(r#"{{"action":"accept","content":{content}}}"#));
        assert_eq!(text(r#"{"a\"":{"type":"string"}}"#, "x\"y"), accepted(r#"{"a\"":"x\"y"}"#));
        assert_eq!(text(r#"{"n":{"type":"integer"}}"#, " 12 "), accepted(r#"{"n":12}"#));
        assert_eq!(text(r#"{"b":{"type":"boolean"}}"#, "true"), accepted(r#"{"b":true}"#));
        for (properties, said) in [
            (r#"{"a":{"type":"string"},"b":{"type":"string"}}"#, "x"),
            (r#"{"a":{"type":"array"}}"#, "[]"),
            (r#"{"n":{"type":"number"}}"#, r#"1,"m":2"#),
            (r#"{"n":{"type":"number"}}"#, r#""1""#),
        ] {
            assert_eq!(text(properties, said), None, "{properties}: {said}");
        }
    }

    #[test]
    fn no_text_consents_to_a_form_without_fields() {
        for text in ["no", "yes", "{}"] {
            let part = MessagePart::new(Content::Text(text.into()));
            let answer = |word| question("{}").answer(&GivenInput::of_parts(std::slice::from_ref(&part), word));
            assert_eq!(answer(None).unwrap_err().kind, RefusalReason::InvalidParams, "{text}");
            assert_eq!(answer(Some("accept")).unwrap(), r#"{"action":"accept","content":{}}"#);
            assert_eq!(answer(Some("cancel")).unwrap_err().kind, RefusalReason::InvalidParams);
        }
        let empty = GivenInput::of_parts(&[MessagePart::new(Content::Data("{}".into()))], None);
        assert_eq!(question("{}").answer(&empty).unwrap(), r#"{"action":"accept","content":{}}"#);
        assert!(question(r#"{"a":{"type":"string"}}"#).answer(&GivenInput::Accepted).is_err());
    }

    #[test]
    fn data_goes_to_the_tool_as_it_came() {
        let parts = [MessagePart::new(Content::Data(r#"{"n": 1.50}"#.into()))];
        let given = GivenInput::of_parts(&parts, None);
        assert_eq!(question(r#"{"a":{},"b":{}}"#).answer(&given).unwrap(), r#"{"action":"accept","content":{"n": 1.50}}"#);
        assert_eq!(GivenInput::of_parts(&parts, Some("decline")), GivenInput::Declined);
        assert_eq!(question("{}").answer(&GivenInput::Declined).unwrap(), r#"{"action":"decline"}"#);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        let part = |content| MessagePart::new(content);
        for parts in [vec![], vec![part(Content::Data("3".into()))], vec![part(Content::Text("a".into())), part(Content::Url("b".into()))]]
        {
            assert_eq!(GivenInput::of_parts(&parts, None), GivenInput::Unclear);
        }
        assert_eq!(question("{}").answer(&GivenInput::Unclear).unwrap_err().kind, RefusalReason::InvalidParams);
    }

    #[test]
    fn only_bounded_forms_are_shown_to_clients() {
        let read = |method: &str, params: &str| TaskQuestion::read(method, params.as_bytes()).unwrap_err();
        assert_eq!(read("sampling/createMessage", "{}"), QuestionFault::Kind);
        assert_eq!(read("elicitation/create", r#"{"mode":"url","message":"open"}"#), QuestionFault::Kind);
        assert_eq!(read("elicitation/create", r#"{"message":"m"}"#), QuestionFault::Malformed);
        for schema in [r#"{"a":1,"a":2}"#, r#"{"properties":[]}"#, r#"{"properties":"x"}"#, r#"{"properties":{"a":{},"a":{}}}"#] {
            let question = format!(r#"{{"message":"m","requestedSchema":{schema}}}"#);
            assert_eq!(read("elicitation/create", &question), QuestionFault::Malformed, "{schema}");
        }
        let long = format!(r#"{{"message":"{}","requestedSchema":{{}}}}"#, "m".repeat(LONGEST_QUESTION + 1));
        assert_eq!(read("elicitation/create", &long), QuestionFault::TooLong);
        let long = format!(r#"{{"message":"m","requestedSchema":{{"a":"{}"}}}}"#, "m".repeat(LONGEST_SCHEMA));
        assert_eq!(read("elicitation/create", &long), QuestionFault::TooLong);
    }
}
