//! Sizes and durations as people write them: `16MiB`, `1h30m`. Does not know any setting.

use std::time::Duration;

/// Reads `500ms`, `30s`, `5m`, `2h`, `1d` and sums of them, largest first or not: `1h30m`. `None` for anything else or too large.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut sum = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, unit);
        (number, rest) = split_where(rest, |c| !c.is_ascii_digit());
        (unit, rest) = split_where(rest, |c| c.is_ascii_digit());
        let number: u64 = number.parse().ok()?;
        let part = match unit.trim() {
            "ms" => Duration::from_millis(number),
            "s" => Duration::from_secs(number),
            "m" => Duration::from_secs(number.checked_mul(60)?),
            "h" => Duration::from_secs(number.checked_mul(3600)?),
            "d" => Duration::from_secs(number.checked_mul(86_400)?),
            _ => return None,
        };
        sum = sum.checked_add(part)?;
    }
    Some(sum)
}

/// Reads a number of bytes: `4096`, `64KiB`, `16MiB`, `1GiB`, or with powers of ten `64kB`, `16MB`, `1GB`. `None` for anything else or too
/// large.
pub(super) fn size(text: &str) -> Option<usize> {
    let (number, unit) = split_where(text.trim(), |c| !c.is_ascii_digit());
    let scale: usize = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(scale)
}

fn split_where(text: &str, stop: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(stop).unwrap_or(text.len()))
}

/// Reads 64 hexadecimal digits as 32 bytes.
pub fn hex_digest(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_sums_of_numbers_with_units() {
        for (text, millis) in [("500ms", 500), ("30s", 30_000), ("1h30m", 5_400_000), ("1d", 86_400_000), ("0s", 0)] {
            assert_eq!(duration(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "30", "s", "-1s", "1.5s", "1 week", "5 minutes", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_in_powers_of_two_or_ten() {
        for (text, bytes) in [("4096", 4096), ("1 KiB", 1024), ("16MiB", 16 << 20), ("2MB", 2_000_000), ("1GiB", 1 << 30)] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "MiB", "1.5MiB", "-1", "16M", "99999999999GiB"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
