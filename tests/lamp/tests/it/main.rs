//! A family from outside in a whole gate.

#[cfg(test)]
mod plugged;
