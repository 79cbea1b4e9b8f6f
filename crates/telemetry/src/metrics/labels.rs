//! The closed sets of label values. Does not hold names from the configuration.

use super::Operation;

/// The end of an operation on Banyan's side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// We ask an upstream.
    Client,
    /// A downstream asks us.
    Server,
}

impl Side {
    pub(super) const COUNT: usize = 2;
    pub(super) const ALL: [Self; Self::COUNT] = [Self::Client, Self::Server];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

/// The carrier of messages: `network.transport`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Transport {
    /// Standard input and output.
    Pipe,
    /// HTTP.
    Tcp,
}

impl Transport {
    pub(super) const COUNT: usize = 2;
    pub(super) const ALL: [Self; Self::COUNT] = [Self::Pipe, Self::Tcp];

    /// The value of `network.transport`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Tcp => "tcp",
        }
    }
}

/// The state of a mount.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MountState {
    /// Works, but not as it should.
    Degraded,
    /// Does not work; another try is planned.
    Failed,
    Ready,
    /// No answer yet.
    Starting,
    /// Ended on purpose.
    Stopped,
}

impl MountState {
    pub(super) const ALL: [Self; 5] = [Self::Degraded, Self::Failed, Self::Ready, Self::Starting, Self::Stopped];

    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Degraded => "degraded",
            Self::Failed => "failed",
            Self::Ready => "ready",
            Self::Starting => "starting",
            Self::Stopped => "stopped",
        }
    }
}

/// A revision of MCP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ProtocolVersion(u8);

impl ProtocolVersion {
    pub(super) const COUNT: usize = 7;
    const NAMES: [&'static str; Self::COUNT] = ["", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "_OTHER"];

    /// No revision is known yet.
    pub const UNKNOWN: Self = Self(0);

    /// Gives the revision named by `text`; revisions unknown to this build count as one.
    pub fn of(text: &str) -> Self {
        Self(Self::NAMES.iter().position(|name| *name == text).unwrap_or(Self::COUNT - 1) as u8)
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    pub(super) fn index(self) -> usize {
        self.0.into()
    }

    pub(super) fn label(self) -> &'static str {
        Self::NAMES[self.index()]
    }
}

/// A method or notification of MCP.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MethodName(u8);

impl MethodName {
    /// In order, for the binary search.
    const NAMES: [&'static str; 36] = [
        "_OTHER",
        "completion/complete",
        "elicitation/create",
        "initialize",
        "logging/setLevel",
        "notifications/cancelled",
        "notifications/elicitation/complete",
        "notifications/initialized",
        "notifications/message",
        "notifications/progress",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/roots/list_changed",
        "notifications/tasks/status",
        "notifications/tools/list_changed",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "roots/list",
        "sampling/createMessage",
        "server/discover",
        "subscriptions/listen",
        "tasks/cancel",
        "tasks/get",
        "tasks/list",
        "tasks/result",
        "tasks/update",
        "tools/call",
        "tools/list",
        "tools/search",
    ];

    /// Gives the method named by `text`; methods unknown to this build count as one.
    pub fn of(text: &str) -> Self {
        // The one that is called most need not be looked for.
        const CALL: usize = MethodName::NAMES.len() - 3;
        let place = if text == Self::NAMES[CALL] { CALL } else { Self::NAMES.binary_search(&text).unwrap_or(0) };
        Self(place as u8)
    }

    /// The value of `mcp.method.name`.
    pub fn label(self) -> &'static str {
        Self::NAMES[usize::from(self.0)]
    }
}

/// The ending of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ending {
    /// The caller took the request back or went away.
    Cancelled,
    Done,
    /// A JSON-RPC error of this code.
    Error(i64),
    /// Refused by rules.
    Refused,
    TimedOut,
    /// A tool result with `isError`: a failure, although a result to JSON-RPC.
    ToolError,
}

/// The codes shown unchanged: those of JSON-RPC, ours, MCP's and the network draft's.
const CODES: [(i64, i64); 5] = [(-32700, -32700), (-32603, -32600), (-32090, -32081), (-32042, -32042), (-32022, -32000)];

impl Ending {
    /// The value of `error.type`; `None` where nothing failed.
    pub fn error_type(self) -> Option<String> {
        match self {
            Self::Cancelled => Some("cancelled".into()),
            Self::Done => None,
            Self::Error(_) => Some(self.status_code().unwrap_or_else(|| "_OTHER".into())),
            Self::Refused => Some("refused".into()),
            Self::TimedOut => Some("timeout".into()),
            Self::ToolError => Some("tool_error".into()),
        }
    }

    /// Gives the value of `rpc.response.status_code`; `None` without a code, or for a code of no specification.
    pub fn status_code(self) -> Option<String> {
        let Self::Error(code) = self else { return None };
        CODES.iter().any(|(low, high)| (*low..=*high).contains(&code)).then(|| code.to_string())
    }

    fn number(self) -> u16 {
        match self {
            Self::Done => 0,
            Self::Cancelled => 1,
            Self::TimedOut => 2,
            Self::ToolError => 3,
            Self::Error(code) if CODES.iter().any(|(low, high)| (*low..=*high).contains(&code)) => (code + 40_000) as u16,
            Self::Error(_) => 4,
            Self::Refused => 5,
        }
    }

    fn of_number(number: u16) -> Self {
        match number {
            0 => Self::Done,
            1 => Self::Cancelled,
            2 => Self::TimedOut,
            3 => Self::ToolError,
            4 => Self::Error(0),
            5 => Self::Refused,
            code => Self::Error(i64::from(code) - 40_000),
        }
    }
}

/// All labels of one series, packed into a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct SeriesKey {
    side: u8,
    transport: u8,
    version: u8,
    method: u8,
    ending: u16,
    tool: u32,
}

impl SeriesKey {
    pub(super) fn new(operation: Operation, ending: Ending) -> Self {
        Self {
            side: operation.side as u8,
            transport: operation.transport as u8,
            version: operation.version.0,
            method: operation.method.0,
            ending: ending.number(),
            tool: operation.tool.0,
        }
    }

    pub(super) fn unpack(self) -> (Operation, Ending) {
        let operation = Operation {
            side: Side::ALL[usize::from(self.side)],
            method: MethodName(self.method),
            transport: Transport::ALL[usize::from(self.transport)],
            version: ProtocolVersion(self.version),
            tool: super::ToolLabel(self.tool),
        };
        (operation, Ending::of_number(self.ending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_names_are_in_order_so_that_each_is_found() {
        for name in MethodName::NAMES {
            assert_eq!(MethodName::of(name).label(), name);
        }
        assert_eq!(MethodName::of("tools/call/../../x").label(), "_OTHER");
    }

    #[test]
    fn an_ending_keeps_its_labels_through_its_number_and_foreign_codes_become_one() {
        for ending in [
            Ending::Cancelled,
            Ending::Done,
            Ending::Refused,
            Ending::TimedOut,
            Ending::ToolError,
            Ending::Error(-32602),
            Ending::Error(-32022),
        ] {
            assert_eq!(Ending::of_number(ending.number()), ending);
        }
        let foreign: Vec<_> = [1, -1, i64::MIN, i64::MAX, -31999].map(|code| Ending::Error(code).number()).to_vec();
        assert_eq!(foreign, [4; 5]);
        assert_eq!(Ending::Error(7).error_type().as_deref(), Some("_OTHER"));
        assert_eq!(Ending::Error(7).status_code(), None);
    }
}
