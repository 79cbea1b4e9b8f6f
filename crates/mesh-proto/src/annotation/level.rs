//! The words of the annotation schema (MCP-AX 9.1), each list from the least risk to the most. Who says them is not known here.

use std::time::Duration;

/// An enum whose variants are words on the wire, in rising order.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$each])* $variant,)+ }

        impl $name {
            /// All of them, rising.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The meaning of a word.
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
    };
}

words! {
    /// How long a call may take (AX-31).
    LatencyClass {
        /// 500 ms
        Realtime = "realtime",
        /// 5 s
        Fast = "fast",
        /// 30 s
        Standard = "standard",
        /// 120 s
        Slow = "slow",
        /// As long as the caller will wait.
        Batch = "batch",
    }
}

words! {
    /// What two calls may see of each other's state.
    Consistency {
        /// All that was done before.
        Strong = "strong",
        /// All that was done before, some time later.
        Eventual = "eventual",
        /// Nothing is promised.
        BestEffort = "best_effort",
    }
}

words! {
    /// What a call needs to be allowed to do (AX-41).
    AuthScope {
        /// Look.
        Read = "read",
        /// Change.
        Write = "write",
        /// Rule.
        Admin = "admin",
    }
}

words! {
    /// What a call costs.
    CostClass {
        /// Nothing.
        Free = "free",
        /// Something.
        Metered = "metered",
        /// Much.
        Expensive = "expensive",
    }
}

words! {
    /// Whether the tool is there.
    Availability {
        /// Always.
        Always = "always",
        /// At certain times.
        Scheduled = "scheduled",
        /// Nothing is promised.
        BestEffort = "best_effort",
        /// Listed, and calls may be refused (AX-61).
        Degraded = "degraded",
    }
}

impl LatencyClass {
    /// How long a call of this class may take; `None`: the caller decides (MCP-AX 7.3, table 2).
    pub fn timeout(self) -> Option<Duration> {
        match self {
            Self::Realtime => Some(Duration::from_millis(500)),
            Self::Fast => Some(Duration::from_secs(5)),
            Self::Standard => Some(Duration::from_secs(30)),
            Self::Slow => Some(Duration::from_secs(120)),
            Self::Batch => None,
        }
    }

    /// The least class whose time a call of this length keeps.
    pub fn of(measured: Duration) -> Self {
        let keeps = |class: &&Self| class.timeout().is_none_or(|most| measured <= most);
        Self::ALL.iter().find(keeps).copied().unwrap_or(Self::Batch)
    }
}

/// How a tool is reached: `native`, `uart_cbor` and the like; 1 to 32 of a-z, 0-9 and `_`.
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

    /// The word on the wire.
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
    fn ax_31_each_class_has_its_time_and_a_measured_call_its_class() {
        let seconds = |class: LatencyClass| class.timeout().map(|t| t.as_secs_f64());
        assert_eq!(
            LatencyClass::ALL.iter().map(|c| seconds(*c)).collect::<Vec<_>>(),
            [Some(0.5), Some(5.0), Some(30.0), Some(120.0), None]
        );
        for (ms, class) in [(0, "realtime"), (500, "realtime"), (501, "fast"), (30_000, "standard"), (30_001, "slow"), (200_000, "batch")] {
            assert_eq!(LatencyClass::of(Duration::from_millis(ms)).as_str(), class);
        }
    }
}
