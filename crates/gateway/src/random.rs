//! Numbers nobody can guess.

/// 128 random bits, in hexadecimal.
///
/// # Panics
/// Where the system has no randomness to give: nothing that hands out ids may go on then.
pub(crate) fn token() -> String {
    let mut bytes = [0u8; 16];
    let got = getrandom::fill(&mut bytes);
    assert!(got.is_ok(), "the system gives no random numbers");
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// 256 random bits.
///
/// # Panics
/// As [`token`] does.
pub(crate) fn seed() -> [u8; 32] {
    let mut bytes = [0; 32];
    let got = getrandom::fill(&mut bytes);
    assert!(got.is_ok(), "the system gives no random numbers");
    bytes
}
