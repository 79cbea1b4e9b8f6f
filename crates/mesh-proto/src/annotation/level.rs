//! Words of the annotation schema (MCP-AX 9.1), each list from the least risk to the most. Reads no definitions.

use std::time::Duration;

/// An enum whose variants are words on the wire, in rising order.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl $name {
            /// All words, rising.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Gives the word on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// Reads a word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
    };
}

words! {
    /// Time limit of a call (AX-31).
    LatencyClass {
        /// 500 ms
        Realtime = "realtime",
        /// 5 s
        Fast = "fast",
        /// 30 s
        Standard = "standard",
        /// 120 s
        Slow = "slow",
        /// No limit but the caller's patience.
        Batch = "batch",
    }
}

words! {
    /// View of a call on the effects of other calls.
    Consistency {
        /// All effects of earlier calls.
        Strong = "strong",
        /// All effects of earlier calls, after a while.
        Eventual = "eventual",
        /// Nothing is promised.
        BestEffort = "best_effort",
    }
}

words! {
    /// Permission needed by a call (AX-41).
    AuthScope {
        Read = "read",
        Write = "write",
        Admin = "admin",
    }
}

words! {
    /// Cost of a call.
    CostClass {
        Free = "free",
        Metered = "metered",
        Expensive = "expensive",
    }
}

words! {
    /// Availability of a tool.
    Availability {
        Always = "always",
        /// At certain times.
        Scheduled = "scheduled",
        /// Nothing is promised.
        BestEffort = "best_effort",
        /// Listed, though calls may be refused (AX-61).
        Degraded = "degraded",
    }
}

impl LatencyClass {
    /// Gives the time limit of a call; `None`: the caller decides (MCP-AX 7.3, table 2).
    pub fn timeout(self) -> Option<Duration> {
        match self {
            Self::Realtime => Some(Duration::from_millis(500)),
            Self::Fast => Some(Duration::from_secs(5)),
            Self::Standard => Some(Duration::from_secs(30)),
            Self::Slow => Some(Duration::from_secs(120)),
            Self::Batch => None,
        }
    }

    /// Gives the least class with room for a call of this length.
    pub fn of_duration(measured: Duration) -> Self {
        let keeps = |class: &&Self| class.timeout().is_none_or(|most| measured <= most);
        Self::ALL.iter().find(keeps).copied().unwrap_or(Self::Batch)
    }
}

/// Transport of a tool: `native`, `uart_cbor` and the like; 1 to 32 of a-z, 0-9 and `_`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Transport(std::borrow::Cow<'static, str>);

impl Transport {
    /// Reads a transport class.
    pub fn parse(word: &str) -> Option<Self> {
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
        let known = ["native", "uart_cbor", "ble_cbor", "spi_cbor", "can_cbor", "mqtt_json"].into_iter().find(|known| *known == word);
        let fits = (1..=32).contains(&word.len()) && word.bytes().all(legal);
        fits.then(|| Self(known.map_or_else(|| word.to_owned().into(), Into::into)))
    }

    /// Gives the word on the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Transport {
    fn default() -> Self {
        Self("native".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ax_31_durations_map_to_latency_classes() {
        let seconds = |class: LatencyClass| class.timeout().map(|t| t.as_secs_f64());
        assert_eq!(
            LatencyClass::ALL.iter().map(|c| seconds(*c)).collect::<Vec<_>>(),
            [Some(0.5), Some(5.0), Some(30.0), Some(120.0), None]
        );
        for (ms, class) in [(0, "realtime"), (500, "realtime"), (501, "fast"), (30_000, "standard"), (30_001, "slow"), (200_000, "batch")] {
            assert_eq!(LatencyClass::of_duration(Duration::from_millis(ms)).as_str(), class);
        }
    }
}
