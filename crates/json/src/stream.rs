//! The grammar of `scan.rs` for text that comes in pieces, cut anywhere, and is not kept.
//!
//! Memory does not grow with the text: a state, the open objects and arrays, and a digest of each key in them. No message is known
//! and no value found here: marks say where members of the outermost object, and of objects directly in it, begin and end.

mod digest;
mod split;

use digest::{Digest, repeated};
use split::Split;

use super::run::run;
use super::{JsonError, MAX_DEPTH};

/// The keys of so many members are compared. A marked object with more is refused; deeper down those beyond are not compared.
pub const MOST_KEYS: usize = 16 << 10;

/// Members down to this depth are marked.
const MARKED: usize = 2;

/// A point reached in the text. The depth is that of the object: 1 for the outermost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The next byte is the first of a member's value.
    Begins(usize),
    /// The byte before was the last.
    Ends(usize),
}

/// Reads one value.
#[derive(Debug)]
pub struct Stream {
    state: State,
    open: Vec<Open>,
    /// Digests of the keys of every open object, outermost first.
    keys: Vec<u64>,
    key: Digest,
    /// Beginning of a character cut by the end of the last piece.
    split: Split,
    at: usize,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    is_object: bool,
    /// Index of the object's first key in `keys`.
    base: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    After,
    /// In front of a colon.
    Colon,
    /// Nothing but space may follow.
    Done,
    /// Behind a backslash.
    Escape,
    /// Behind a bracket: an element, or the end.
    FirstElement,
    /// Behind a brace: a key, or the end.
    FirstKey,
    /// Number of hex digits still to come, and the value of those read.
    Hex(u8, u16),
    /// Behind a comma of an object.
    Key,
    Member,
    Number(Number),
    String,
    /// In front of a value.
    Value,
    /// The rest of a word.
    Word(&'static [u8]),
}

/// The last character of a number, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    E,
    Exponent,
    Fraction,
    Minus,
    Point,
    Sign,
    Whole,
    Zero,
}

impl Default for Stream {
    fn default() -> Self {
        Self { state: State::Value, open: Vec::new(), keys: Vec::new(), key: Digest::default(), split: Split::default(), at: 0 }
    }
}

impl Stream {
    /// Reads on up to the next mark; `None`: all of `piece` has been read. What has been read is taken off `piece`.
    pub fn next(&mut self, piece: &mut &[u8]) -> Result<Option<Mark>, JsonError> {
        while let Some(byte) = piece.first().copied() {
            let mark = match self.state {
                State::Escape => self.escape(piece, byte)?,
                State::Hex(left, code) => self.hex(piece, byte, left, code)?,
                State::Number(number) => self.number(piece, number)?,
                State::String => self.string(piece)?,
                State::Word(rest) => self.word(piece, byte, rest)?,
                _ if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') => self.took(piece, 1),
                State::Value | State::FirstElement | State::Member => self.value(piece, byte)?,
                State::After | State::Colon | State::Done | State::FirstKey | State::Key => self.between(piece, byte)?,
            };
            if mark.is_some() {
                return Ok(mark);
            }
        }
        Ok(None)
    }

    /// Tells if the value is complete.
    ///
    /// # Errors
    /// When the text must not end here.
    pub fn end(&self) -> Result<(), JsonError> {
        let is_number = matches!(self.state, State::Number(number) if self.open.is_empty() && number.may_end());
        let ends = is_number || self.state == State::Done;
        if ends { Ok(()) } else { self.bad() }
    }

    /// Gives the key read last, if short.
    pub fn key(&self) -> Option<&[u8]> {
        self.key.short()
    }

    /// Counts the bytes read.
    pub fn at(&self) -> usize {
        self.at
    }

    fn bad<T>(&self) -> Result<T, JsonError> {
        Err(JsonError::Syntax(self.at))
    }

    fn took(&mut self, piece: &mut &[u8], length: usize) -> Option<Mark> {
        *piece = piece.get(length..).unwrap_or_default();
        self.at += length;
        None
    }

    /// Goes over to `state` behind one byte.
    fn to(&mut self, piece: &mut &[u8], state: State) -> Result<Option<Mark>, JsonError> {
        self.state = state;
        Ok(self.took(piece, 1))
    }

    fn value(&mut self, piece: &mut &[u8], byte: u8) -> Result<Option<Mark>, JsonError> {
        if self.state == State::Member && self.open.len() <= MARKED {
            self.state = State::Value;
            return Ok(Some(Mark::Begins(self.open.len())));
        }
        match byte {
            b'"' => self.to(piece, State::String),
            b'{' => self.opens(piece, true),
            b'[' => self.opens(piece, false),
            b']' if self.state == State::FirstElement => self.closes(piece),
            b't' => self.to(piece, State::Word(b"rue")),
            b'f' => self.to(piece, State::Word(b"alse")),
            b'n' => self.to(piece, State::Word(b"ull")),
            b'-' => self.to(piece, State::Number(Number::Minus)),
            b'0' => self.to(piece, State::Number(Number::Zero)),
            b'1'..=b'9' => self.to(piece, State::Number(Number::Whole)),
            _ => self.bad(),
        }
    }

    /// Reads the text between values, and the quotes of keys.
    fn between(&mut self, piece: &mut &[u8], byte: u8) -> Result<Option<Mark>, JsonError> {
        let in_object = self.open.last().is_some_and(|open| open.is_object);
        match (self.state, byte) {
            (State::After, b',') => self.to(piece, if in_object { State::Key } else { State::Value }),
            (State::After, b'}') if in_object => self.closes(piece),
            (State::After, b']') if !in_object => self.closes(piece),
            (State::Colon, b':') => self.to(piece, State::Member),
            (State::FirstKey, b'}') => self.closes(piece),
            (State::FirstKey | State::Key, b'"') => {
                self.key.begin();
                self.to(piece, State::String)
            }
            _ => self.bad(),
        }
    }

    fn opens(&mut self, piece: &mut &[u8], is_object: bool) -> Result<Option<Mark>, JsonError> {
        if self.open.len() == MAX_DEPTH {
            return Err(JsonError::TooDeep);
        }
        self.open.push(Open { is_object, base: self.keys.len() });
        self.to(piece, if is_object { State::FirstKey } else { State::FirstElement })
    }

    fn closes(&mut self, piece: &mut &[u8]) -> Result<Option<Mark>, JsonError> {
        self.took(piece, 1);
        if let Some(open) = self.open.pop() {
            if repeated(self.keys.get_mut(open.base..).unwrap_or_default()) {
                return Err(JsonError::DuplicateWithin(self.at));
            }
            self.keys.truncate(open.base);
        }
        Ok(self.ended())
    }

    /// A value has ended.
    fn ended(&mut self) -> Option<Mark> {
        let Some(open) = self.open.last() else {
            self.state = State::Done;
            return None;
        };
        self.state = State::After;
        (open.is_object && self.open.len() <= MARKED).then_some(Mark::Ends(self.open.len()))
    }

    fn string(&mut self, piece: &mut &[u8]) -> Result<Option<Mark>, JsonError> {
        let (stop, is_ascii) = run(piece);
        let (text, behind) = piece.split_at(stop);
        if !(is_ascii && self.split.is_empty()) {
            // A character that its piece ends in is looked at again when the rest of it is there.
            self.split.check(text, behind.is_empty()).map_err(|valid| JsonError::Syntax(self.at + valid))?;
        }
        if self.key.is_read && !text.is_empty() {
            self.key.text(text);
        }
        self.took(piece, stop);
        match behind.first() {
            None => Ok(None),
            Some(b'\\') => self.to(piece, State::Escape),
            Some(b'"') if self.key.is_read => {
                self.key.end_key();
                self.noted()?;
                self.to(piece, State::Colon)
            }
            Some(b'"') => {
                self.took(piece, 1);
                Ok(self.ended())
            }
            Some(_) => self.bad(),
        }
    }

    /// A key has been read.
    fn noted(&mut self) -> Result<(), JsonError> {
        if self.keys.len() < MOST_KEYS {
            self.keys.push(self.key.value);
        } else if self.open.len() <= MARKED {
            return Err(JsonError::TooMany);
        }
        Ok(())
    }

    fn escape(&mut self, piece: &mut &[u8], byte: u8) -> Result<Option<Mark>, JsonError> {
        let meant = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => return self.to(piece, State::Hex(4, 0)),
            _ => return self.bad(),
        };
        self.key.text(&[meant]);
        self.to(piece, State::String)
    }

    fn hex(&mut self, piece: &mut &[u8], byte: u8, left: u8, code: u16) -> Result<Option<Mark>, JsonError> {
        let Some(digit) = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok()) else { return self.bad() };
        let code = code << 4 | digit;
        if left > 1 {
            return self.to(piece, State::Hex(left - 1, code));
        }
        self.key.unit(code);
        self.to(piece, State::String)
    }

    fn word(&mut self, piece: &mut &[u8], byte: u8, rest: &'static [u8]) -> Result<Option<Mark>, JsonError> {
        match rest {
            [only] if *only == byte => {
                self.took(piece, 1);
                Ok(self.ended())
            }
            [next, rest @ ..] if *next == byte => self.to(piece, State::Word(rest)),
            _ => self.bad(),
        }
    }

    fn number(&mut self, piece: &mut &[u8], mut number: Number) -> Result<Option<Mark>, JsonError> {
        let mut length = 0;
        for byte in *piece {
            let Some(next) = number.next(*byte) else {
                self.took(piece, length);
                return if number.may_end() { Ok(self.ended()) } else { self.bad() };
            };
            number = next;
            length += 1;
        }
        self.state = State::Number(number);
        Ok(self.took(piece, length))
    }
}

impl Number {
    /// Goes on by one byte; `None` for a byte outside the number.
    fn next(self, byte: u8) -> Option<Self> {
        match (self, byte) {
            (Self::Minus, b'0') => Some(Self::Zero),
            (Self::Minus, b'1'..=b'9') | (Self::Whole, b'0'..=b'9') => Some(Self::Whole),
            (Self::Whole | Self::Zero, b'.') => Some(Self::Point),
            (Self::Point | Self::Fraction, b'0'..=b'9') => Some(Self::Fraction),
            (Self::Whole | Self::Zero | Self::Fraction, b'e' | b'E') => Some(Self::E),
            (Self::E, b'+' | b'-') => Some(Self::Sign),
            (Self::E | Self::Sign | Self::Exponent, b'0'..=b'9') => Some(Self::Exponent),
            _ => None,
        }
    }

    fn may_end(self) -> bool {
        matches!(self, Self::Whole | Self::Zero | Self::Fraction | Self::Exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Duplicates, check};

    fn read(pieces: &[&[u8]]) -> Result<Stream, JsonError> {
        let mut stream = Stream::default();
        for mut piece in pieces.iter().copied() {
            while stream.next(&mut piece)?.is_some() {}
        }
        stream.end()?;
        Ok(stream)
    }

    #[test]
    fn texts_are_judged_as_the_scan_judges_them_wherever_they_are_cut() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        let texts = [
            "",
            "{",
            "{}",
            " [ ] ",
            "[1,]",
            "[,1]",
            "{\"a\":}",
            "{\"a\":1,}",
            "{,}",
            "[1}",
            "{\"a\":1]",
            "01",
            "-0",
            "-",
            "1.",
            "1.5e+07",
            "1e",
            "1e-",
            "tru",
            "true",
            "truex",
            "nul l",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\u{1}\"",
            "{} x",
            "{a:1}",
            "\"ä€😀\"",
            "{\"a\" 1}",
            "{\"\\ud83d\\ude00\":1,\"😀\":2}",
            "{\"\\ud83dx\":1,\"\u{FFFD}x\":2}",
            "{\"\\ud83d\\ud83d\":1,\"\\ud83d\":2}",
            &deep(128),
            &deep(129),
        ];
        for text in texts {
            let sound = check(text.as_bytes(), Duplicates::RefuseDeep).is_ok();
            for cut in 0..=text.len() {
                let (head, tail) = text.as_bytes().split_at(cut);
                assert_eq!(read(&[head, tail]).is_ok(), sound, "{text} cut at {cut}");
            }
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(read(&bytes).is_ok(), sound, "{text} byte by byte");
        }
        for (text, at) in
            [(&b"\"\xff\""[..], 1), (b"\"a\xc3\"", 2), (b"\"\xe2\x82\\n\"", 1), (b"\"\xed\xa0\x80\"", 1), (b"\"\xf4\x90\x80\x80\"", 1)]
        {
            let bytes: Vec<&[u8]> = text.chunks(1).collect();
            assert!(read(&[text]).is_err_and(|e| matches!(e, JsonError::Syntax(place) if place >= at)), "{text:?}");
            assert!(read(&bytes).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_is_held_does_not_grow_with_the_text() {
        let object = |count: usize, last: &str| {
            let members: Vec<String> = (0..count).map(|i| format!("\"key {i}\":{i}")).chain([last.to_owned()]).collect();
            format!("{{{}}}", members.join(","))
        };
        let deep = |count, last: &str| format!("{{\"result\":{{\"content\":{}}}}}", object(count, last));
        assert!(matches!(read(&[deep(1000, "\"key 7\":1").as_bytes()]), Err(JsonError::DuplicateWithin(_))));
        let stream = read(&[deep(MOST_KEYS * 4, "\"key\":1").as_bytes()]).unwrap();
        assert!(stream.keys.capacity() <= MOST_KEYS);
        assert!(read(&[object(MOST_KEYS - 1, "\"x\":1").as_bytes()]).is_ok());
        assert!(matches!(read(&[object(MOST_KEYS, "\"x\":1").as_bytes()]), Err(JsonError::TooMany)));
    }
}
