//! Share of a call in the bytes of answers under way. Reads no answer.

tokio::task_local! {
    static SHARE: usize;
}

/// Does some work whose answers have at most `bytes`.
pub(crate) async fn within_share<T>(bytes: usize, work: impl Future<Output = T>) -> T {
    SHARE.scope(bytes, work).await
}

/// Most bytes of an answer: its bound, or the share of the call where that is less.
pub(crate) fn at_most(bound: usize) -> usize {
    SHARE.try_with(|share| bound.min(*share)).unwrap_or(bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_share_bounds_only_the_work_within() {
        assert_eq!(within_share(10, async { (at_most(100), at_most(5)) }).await, (10, 5));
        assert_eq!(at_most(100), 100);
    }
}
