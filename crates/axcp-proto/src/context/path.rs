//! Paths of operations: JSON Pointers (RFC 6901), of which the first part names a segment. Does not know what stands at a path.

use crate::error::AxcpError;

/// Bytes of the longest pointer.
pub const MOST_POINTER: usize = 1024;
/// Parts of the longest pointer, and levels of a segment.
pub const MOST_LEVELS: usize = 64;

/// A pointer, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ContextPath {
    /// Never empty.
    parts: Vec<String>,
}

impl ContextPath {
    /// Reads a pointer.
    ///
    /// # Errors
    /// When the text is no pointer, has no part, or is too long.
    pub fn read(text: &str) -> Result<Self, AxcpError> {
        if text.len() > MOST_POINTER {
            return Err(TOO_LONG);
        }
        let rest = text.strip_prefix('/').ok_or(AxcpError::BadDelta("a path is a JSON Pointer that begins with `/` and a segment"))?;
        let parts: Option<Vec<String>> = rest.split('/').map(unescaped).collect();
        let parts = parts.ok_or(AxcpError::BadDelta("a `~` in a path is followed by 0 or 1"))?;
        if parts.len() > MOST_LEVELS { Err(TOO_DEEP) } else { Ok(Self { parts }) }
    }

    /// Writes the pointer.
    pub fn write(parts: &[impl AsRef<str>]) -> String {
        parts.iter().flat_map(|part| ["/".to_owned(), part.as_ref().replace('~', "~0").replace('/', "~1")]).collect()
    }

    /// Gives the parts, the segment first.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Gives the name of the segment.
    pub fn segment(&self) -> &str {
        self.parts.first().map_or("", String::as_str)
    }
}

/// Refusal of a path, or of a member whose path would be too long.
pub(super) const TOO_LONG: AxcpError = AxcpError::TooLarge { what: "the bytes of a path", most: MOST_POINTER };
/// Refusal of what has too many levels.
pub(super) const TOO_DEEP: AxcpError = AxcpError::TooLarge { what: "the levels of a context", most: MOST_LEVELS };

fn unescaped(part: &str) -> Option<String> {
    let mut pieces = part.split('~');
    let mut out = pieces.next()?.to_owned();
    for piece in pieces {
        let (escaped, rest) = piece.split_at_checked(1)?;
        out.push(match escaped {
            "0" => '~',
            "1" => '/',
            _ => return None,
        });
        out.push_str(rest);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn xc_11_a_pointer_is_taken_apart() {
        assert_eq!(ContextPath::read("/user/a~1b~0c//d").unwrap().parts(), ["user", "a/b~c", "", "d"]);
        assert_eq!(ContextPath::read("/~01").unwrap().segment(), "~1");
    }

    #[test]
    fn xc_11_what_is_no_pointer_is_refused() {
        for bad in ["", "user", "/a~", "/a~2", "/~~"] {
            assert!(matches!(ContextPath::read(bad), Err(AxcpError::BadDelta(_))), "{bad}");
        }
        for bad in ["/a".repeat(MOST_LEVELS + 1), format!("/{}", "a".repeat(MOST_POINTER))] {
            assert_eq!(ContextPath::read(&bad).unwrap_err().code().number(), 7);
        }
    }

    proptest! {
        #[test]
        fn xc_11_a_pointer_is_read_as_written(parts in prop::collection::vec("[a~/é0]{0,5}", 1..6)) {
            let read = ContextPath::read(&ContextPath::write(&parts)).unwrap();
            prop_assert_eq!(read.parts(), parts);
        }
    }
}
