//! Wishes of clients to be told of a task by HTTP (A2A 1.0, `TaskPushNotificationConfig`), read and written. Sends nothing, and looks up no name.

use json::{Duplicates, Members, quote};
use url::Url;

use crate::served::rejection::{ClientRefusal, RefusalReason};

/// Most bytes of an address, of an id, and of a secret.
const LONGEST_URL: usize = 2_048;
const LONGEST_ID: usize = 256;
const LONGEST_SECRET: usize = 4_096;

/// A wish to be told of a task.
#[derive(Clone, PartialEq, Eq)]
pub struct PushWish {
    /// Id of the client's choice.
    pub id: Option<String>,
    pub task: Option<String>,
    pub url: Url,
    /// Value of `X-A2A-Notification-Token`.
    pub token: Option<String>,
    scheme: Option<String>,
    credentials: Option<String>,
}

/// Params that name a task, and a wish of the task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PushName {
    pub task: String,
    pub id: String,
}

impl std::fmt::Debug for PushWish {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushWish").field("id", &self.id).field("task", &self.task).finish_non_exhaustive()
    }
}

impl PushWish {
    /// Reads a wish.
    pub fn read(text: &[u8]) -> Result<Self, ClientRefusal> {
        let wish = Members::parse(text, Duplicates::RefuseDeep).map_err(|error| wrong(format!("The params are wrong: {error}.")))?;
        let address = word(&wish, "url", LONGEST_URL)?.ok_or_else(|| wrong("The `url` is missing."))?;
        let url = Url::parse(&address).ok().filter(|url| {
            let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
            matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain
        });
        let authentication = wish.object("authentication");
        let of_authentication = |key| authentication.as_ref().map_or(Ok(None), |info| word(info, key, LONGEST_SECRET));
        let scheme = of_authentication("scheme")?;
        if scheme.as_ref().is_some_and(|scheme| !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')) {
            return Err(wrong("The `scheme` of the authentication is no scheme of HTTP."));
        }
        Ok(Self {
            id: word(&wish, "id", LONGEST_ID)?,
            task: word(&wish, "taskId", LONGEST_ID)?,
            url: url.ok_or_else(|| wrong("The `url` is no http:// or https:// address, or has a name, a password or a fragment in it."))?,
            token: word(&wish, "token", LONGEST_SECRET)?,
            scheme,
            credentials: of_authentication("credentials")?,
        })
    }

    /// Value of the field `Authorization`.
    pub fn authorization(&self) -> Option<String> {
        Some(format!("{} {}", self.scheme.as_ref()?, self.credentials.as_ref()?))
    }

    /// Writes the wish for its client. Neither token nor credentials go back.
    pub fn write(&self, name: &PushName) -> String {
        let (id, task, url) = (quote(&name.id), quote(&name.task), quote(self.url.as_str()));
        let scheme = self.scheme.as_ref().map(|scheme| format!(",\"authentication\":{{\"scheme\":{}}}", quote(scheme)));
        format!("{{\"id\":{id},\"taskId\":{task},\"url\":{url}{}}}", scheme.unwrap_or_default())
    }

    /// Counts the bytes that the wish holds.
    pub fn size(&self) -> usize {
        let texts = [&self.id, &self.task, &self.token, &self.scheme, &self.credentials];
        self.url.as_str().len() + texts.into_iter().flatten().map(String::len).sum::<usize>()
    }
}

impl PushName {
    /// Reads the params of a look at wishes, or of their end.
    pub fn read(text: &[u8]) -> Result<Self, ClientRefusal> {
        let params = Members::parse(text, Duplicates::RefuseDeep).map_err(|error| wrong(format!("The params are wrong: {error}.")))?;
        let named = |key| Ok::<_, ClientRefusal>(word(&params, key, LONGEST_ID)?.unwrap_or_default());
        Ok(Self { task: named("taskId")?, id: named("id")? })
    }
}

/// Writes the wishes of a task.
pub fn write_list(wishes: &[String]) -> String {
    format!("{{\"configs\":[{}],\"nextPageToken\":\"\"}}", wishes.join(","))
}

/// Reads a text that may stand in a field of HTTP; an empty one is none, as in ProtoJSON.
fn word(members: &Members<'_>, key: &str, most: usize) -> Result<Option<String>, ClientRefusal> {
    let Some(raw) = members.get(key).filter(|raw| *raw != b"null") else { return Ok(None) };
    let text = json::as_str(raw).filter(|text| text.len() <= most && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
    let text = text.ok_or_else(|| wrong(format!("The `{key}` is no text of ASCII with at most {most} characters.")))?;
    Ok(Some(text.into_owned()).filter(|text| !text.is_empty()))
}

fn wrong(text: impl Into<String>) -> ClientRefusal {
    ClientRefusal::new(RefusalReason::InvalidParams, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_wish_stay_with_the_gate() {
        let text = br#"{"taskId":"t","id":"","url":"https://a.example/hook?x=1","token":"tttt","authentication":{"scheme":"Bearer","credentials":"cccc"}}"#;
        let wish = PushWish::read(text).unwrap();
        assert_eq!((wish.id.as_deref(), wish.task.as_deref(), wish.token.as_deref()), (None, Some("t"), Some("tttt")));
        assert_eq!(wish.authorization().as_deref(), Some("Bearer cccc"));
        let written = wish.write(&PushName { task: "t".into(), id: "w".into() });
        assert_eq!(written, r#"{"id":"w","taskId":"t","url":"https://a.example/hook?x=1","authentication":{"scheme":"Bearer"}}"#);
        assert!(!format!("{wish:?}").contains("tttt") && !format!("{wish:?}").contains("cccc"));
    }

    #[test]
    fn a_wish_that_could_split_a_request_is_refused() {
        let refused = |member: &str| PushWish::read(format!(r#"{{"url":"https://a.example",{member}}}"#).as_bytes()).unwrap_err().kind;
        for member in [
            r#""token":"a\r\nb""#,
            r#""authentication":{"scheme":"Bearer","credentials":"a\nb"}"#,
            r#""authentication":{"scheme":"Bearer x","credentials":"a"}"#,
            r#""token":7"#,
            r#""url":"https://b.example""#,
        ] {
            assert_eq!(refused(member), RefusalReason::InvalidParams, "{member}");
        }
        for url in [
            "ftp://a.example",
            "https://u:p@a.example",
            "https://a.example/#f",
            "a",
            "",
            &format!("https://a.example/{}", "x".repeat(LONGEST_URL)),
        ] {
            assert!(PushWish::read(format!(r#"{{"url":"{url}"}}"#).as_bytes()).is_err(), "{url}");
        }
    }
}
