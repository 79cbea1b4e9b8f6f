//! Placeholder.
pub struct Index;
pub fn definitions() -> Vec<bytes::Bytes> {
    Vec::new()
}
