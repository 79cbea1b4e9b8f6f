//! Canonical JSON as records have it: every number has a form, and whole ones keep their digits. How the form is made is not known here.

use json::canonical::Numbers;

use crate::AuditError;
use crate::hash::{Hash, sha256};

/// Writes the canonical form of `text`.
///
/// # Errors
/// When `text` is not one JSON value, holds a key twice or half of a surrogate pair.
pub fn canonical(text: &[u8]) -> Result<Vec<u8>, AuditError> {
    Ok(json::canonical::canonical(text, Numbers::Kept)?.into_bytes())
}

/// SHA-256 of the canonical form of `text`.
///
/// # Errors
/// As [`canonical`].
pub fn digest(text: &[u8]) -> Result<Hash, AuditError> {
    canonical(text).map(|form| sha256(&form))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes made before records and approvals shared their canonical form: a hash kept since then must still be found.
    #[test]
    fn hashes_in_existing_records_stay_the_same() {
        for (text, hash) in [
            (r#"1000000000000000000000"#, "s8TZ1AtMkLOZX+oCyq9AUDiD4ri5qhQgBj8JD0IYbyE="),
            (r#"12345678901234567890123"#, "DHHr3Ec2vwmoiEV3UKoi98iVAmr7ZLQPj72UCSxhwZs="),
            (r#"333333333.33333329"#, "a9m+HBQQKHicw122LxtD6A1dTuJNbVQud13rFnmf9Mc="),
            (r#"-0"#, "X+zrZv/IbzjZUnhsbWlsecLbwjndTpG0ZynXOif7V+k="),
            (r#"{"path":"/etc/passwd","lines":[10,20],"exact":1.10}"#, "emAUHgofVJsqpKc36AP9470y3AwP+ZI7b69tkQueoKk="),
            (
                r#"{"1":{"f":{"f":"hi","F":5},"\n":56.0},"10":{ },"":"empty","a":{ },"111":[{"e":"yes","E":"no"}],"A":{ }}"#,
                "YF9lAE7C23aSUioIUsIvHJieA21UfoiWPRoxQ88xldU=",
            ),
            (r#""\u0000\u0001\b\t\n\f\r\u001f \u007f\u0080\u2028""#, "dnueBkIylSxMX4UD6pq1GHTtKu9Li5ohQh2XICpe17M="),
            (r#"{}"#, "RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o="),
        ] {
            assert_eq!(digest(text.as_bytes()).unwrap().to_string(), hash, "{text}");
        }
    }
}
