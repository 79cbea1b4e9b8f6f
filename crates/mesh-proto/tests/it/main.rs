//! The machines of MCP-AX from outside, one case at a time. Opens no connection.

mod annotation;
mod child;
mod message;
mod namespace;
mod ownership;
mod parent;
mod relay;
mod route;
