//! Numbers nobody can guess.

/// 128 random bits, in hexadecimal.
///
/// # Panics
/// As [`bytes()`] does.
pub fn token() -> String {
    bytes::<16>().iter().map(|b| format!("{b:02x}")).collect()
}

/// 256 random bits.
///
/// # Panics
/// As [`bytes()`] does.
pub fn seed() -> [u8; 32] {
    bytes()
}

/// Random bytes.
///
/// # Panics
/// Where the system has no randomness to give: nothing that hands out ids may go on then.
pub fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    let got = getrandom::fill(&mut bytes);
    assert!(got.is_ok(), "the system gives no random numbers");
    bytes
}
