//! Placeholder until the sign-in lands.
#[derive(Debug)]
pub struct OAuthClient;
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct AuthError;
impl OAuthClient {
    pub fn new(_: &str, _: url::Url, _: crate::config::resolved::OAuth, _: &std::path::Path) -> Self {
        Self
    }
    pub async fn token(&self) -> Result<Option<crate::config::secret::Secret>, AuthError> {
        Ok(None)
    }
    pub async fn challenged(&self, _: u16, _: Option<&str>) -> Result<(), AuthError> {
        Err(AuthError)
    }
}
