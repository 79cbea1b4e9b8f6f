//! Hexadecimal spellings of bytes, plain and as a UUID. Makes no id.

/// Groups of digits in a UUID.
const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];

/// Writes bytes in lower-case digits.
pub(crate) fn write(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads lower-case digits.
pub(crate) fn read(text: &str) -> Option<Vec<u8>> {
    let is_lower = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let pairs = text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    if is_lower && text.len().is_multiple_of(2) { pairs.collect() } else { None }
}

/// Writes a UUID.
pub(crate) fn write_uuid(bytes: &[u8; 16]) -> String {
    let digits = write(bytes);
    let mut rest = digits.as_str();
    let groups = GROUPS.map(|size| {
        let (group, behind) = rest.split_at(size);
        rest = behind;
        group
    });
    groups.join("-")
}

/// Reads a UUID in lower case.
pub(crate) fn read_uuid(text: &str) -> Option<[u8; 16]> {
    let is_grouped = text.split('-').map(str::len).eq(GROUPS);
    is_grouped.then(|| read(&text.replace('-', "")))?.and_then(|bytes| bytes.try_into().ok())
}
