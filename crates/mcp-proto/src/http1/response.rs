//! Responses as they arrive on a connection. The meaning of a status is not known here.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};

use super::before::{Again, Before};
use super::body::{Body, Framing};
use super::fields::{Fields, places};
use super::search::Search;
use super::{HttpError, MAX_FIELDS, MAX_HEAD, whole_number};

/// The head of a final response.
#[derive(Debug, Clone)]
pub struct Head {
    status: u16,
    fields: Fields,
    framing: Framing,
    keep: bool,
}

impl Head {
    /// Takes a head as [`Head::take`] does, on a connection with `before`: a repeated head is not read again.
    /// After `None`, `buffer` has to grow at its end.
    pub fn take_after(buffer: &mut BytesMut, before: &mut Before<Self>) -> Result<Option<Self>, HttpError> {
        if !before.search.is_fresh() {
            return Self::take_rest(buffer, before);
        }
        match before.take(buffer) {
            Some(Again::Same(head)) => Ok(Some(head.clone())),
            Some(Again::Alike(head, text, moved, length)) => {
                // Where a status has no body, what is said of its length means nothing.
                let length = length.filter(|_| !is_empty(head.status));
                let framing = length.map_or(head.framing, |length| Framing::Length(length as u64));
                Ok(Some(Self { status: head.status, fields: head.fields.moved(text, &moved), framing, keep: head.keep }))
            }
            None => Self::take_rest(buffer, before),
        }
    }

    /// Takes a head off the beginning of `buffer`; `None` when it is not there as a whole yet.
    ///
    /// Interim responses (1xx) are taken off and passed over.
    pub fn take(buffer: &mut BytesMut) -> Result<Option<Self>, HttpError> {
        Self::read(buffer, &mut Search::default())
    }

    fn take_rest(buffer: &mut BytesMut, before: &mut Before<Self>) -> Result<Option<Self>, HttpError> {
        let taken = Self::read(buffer, &mut before.search);
        if !matches!(taken, Ok(None)) {
            before.search = Search::default();
        }
        if let Ok(Some(head)) = &taken {
            before.keep(&head.fields, |fields| Self { fields, ..head.clone() });
        }
        taken
    }

    fn read(buffer: &mut BytesMut, search: &mut Search) -> Result<Option<Self>, HttpError> {
        loop {
            if !search.is_due(buffer) {
                return if buffer.len() < MAX_HEAD { Ok(None) } else { Err(HttpError::Head) };
            }
            let mut slots = [const { MaybeUninit::uninit() }; MAX_FIELDS];
            let mut parsed = httparse::Response::new(&mut []);
            let length = match httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut parsed, buffer, &mut slots) {
                Ok(httparse::Status::Complete(length)) if length <= MAX_HEAD => length,
                Ok(httparse::Status::Partial) if buffer.len() < MAX_HEAD => return Ok(None),
                Ok(httparse::Status::Complete(_) | httparse::Status::Partial) | Err(_) => return Err(HttpError::Head),
            };
            let status = parsed.code.unwrap_or_default();
            // A number below 100 is no status (RFC 9110, section 15). No request here asks for another protocol.
            if status < 100 || status == 101 {
                return Err(HttpError::Head);
            }
            if (100..200).contains(&status) {
                buffer.advance(length);
                *search = Search::default();
                continue;
            }
            let (framing, keep) = framing(status, parsed.version == Some(1), parsed.headers)?;
            let places = places(buffer, parsed.headers);
            let fields = Fields::found(buffer.split_to(length).freeze(), places);
            return Ok(Some(Self { status, fields, framing, keep }));
        }
    }

    /// Makes the head of a response that arrived by other means than HTTP/1.1, with a body framed there.
    pub fn carried(status: u16, fields: Fields) -> Self {
        Self { status, fields, framing: Framing::Length(0), keep: true }
    }

    /// Gives the status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Gives the fields.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Makes the reader of the body.
    pub fn body(&self) -> Body {
        Body::new(self.framing, self.keep)
    }
}

/// Finds the framing of a body (RFC 9112, section 6.3), and tells if the connection stays open behind the body.
fn framing(status: u16, is_1_1: bool, fields: &[httparse::Header<'_>]) -> Result<(Framing, bool), HttpError> {
    let (mut length, mut coding, mut keeps, mut closes) = (None, None, is_1_1, false);
    for field in fields {
        if field.name.eq_ignore_ascii_case("content-length") {
            let value = whole_number(field.value).ok_or(HttpError::Framing)?;
            if length.replace(value).is_some_and(|before| before != value) {
                return Err(HttpError::Framing);
            }
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            if coding.replace(field.value).is_some() {
                return Err(HttpError::Framing);
            }
        } else if field.name.eq_ignore_ascii_case("connection") {
            for option in field.value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
                if option.eq_ignore_ascii_case(b"close") {
                    closes = true;
                } else if option.eq_ignore_ascii_case(b"keep-alive") {
                    keeps = true;
                }
            }
        }
    }
    let keep = keeps && !closes;
    if is_empty(status) {
        return Ok((Framing::Length(0), keep && coding.is_none()));
    }
    // HTTP/1.0 has no codings, so two readers may end such a body in two places (RFC 9112, section 6.1).
    if coding.is_some() && !is_1_1 {
        return Err(HttpError::Framing);
    }
    match (coding, length) {
        (Some(coding), None) if coding.trim_ascii().eq_ignore_ascii_case(b"chunked") => Ok((Framing::Chunked, keep)),
        (Some(_), _) => Err(HttpError::Framing),
        (None, Some(length)) => Ok((Framing::Length(length), keep)),
        (None, None) => Ok((Framing::Close, false)),
    }
}

/// No body follows, whatever the fields say.
fn is_empty(status: u16) -> bool {
    matches!(status, 204 | 304)
}
