//! Reads the file, and says where in it a mistake is.

use super::SettingsError;
use super::forward::ForwardSettings;
use super::keys::Settings;
use super::values::Value;
use crate::SideSink;
use std::path::Path;

/// How alike two keys are, from 0 to 1, for one to be meant by the other.
const ALIKE: f64 = 0.7;

/// Reads a file of settings. Paths in it are taken from its own folder on.
pub(super) fn read(path: &Path) -> Result<Settings, SettingsError> {
    let unreadable = |source| SettingsError::Read { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let mut settings = parse(path, &text)?;
    let file = std::path::absolute(path).map_err(unreadable)?;
    let folder = file.parent().unwrap_or(&file);
    for listener in settings.listener.iter_mut().flatten() {
        if let Some(tls) = &mut listener.tls {
            tls.certificate = folder.join(&tls.certificate);
            tls.key = folder.join(&tls.key);
        }
    }
    if let Some(Value(SideSink::File(path))) = &mut settings.side_records {
        *path = folder.join(&*path);
    }
    for ForwardSettings(forward) in settings.forward.iter_mut().flatten() {
        forward.ca = forward.ca.take().map(|ca| folder.join(ca));
    }
    Ok(settings)
}

fn parse(path: &Path, text: &str) -> Result<Settings, SettingsError> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        SettingsError::File {
            path: path.to_owned(),
            line: 1 + text.bytes().take(start).filter(|&octet| octet == b'\n').count(),
            problem: unknown_key(error.message()).unwrap_or_else(|| error.message().to_owned()),
        }
    })
}

/// A better text for an unknown key. That a key is unknown, and which there are, is told by the
/// text of serde's error only: all names in it stand between backticks, the unknown one first.
fn unknown_key(message: &str) -> Option<String> {
    let names = message.strip_prefix("unknown field `")?;
    let mut names = names.split('`').step_by(2);
    let key = names.next()?;
    let known: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let alike = |name: &&str| strsim::jaro(key, name);
    let nearest = known.iter().copied().max_by(|a, b| alike(a).total_cmp(&alike(b)));
    Some(match nearest.filter(|name| alike(name) > ALIKE) {
        Some(name) => format!("unknown key `{key}`; did you mean `{name}`?"),
        None => format!("unknown key `{key}`; the keys here are {}", known.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_out_of_the_way_is_answered_with_all_that_are_there() {
        let message = "unknown field `colour`, expected `certificate` or `key`";
        let problem = unknown_key(message).unwrap();
        assert_eq!(problem, "unknown key `colour`; the keys here are certificate, key");
        assert_eq!(unknown_key("missing field `key`"), None);
    }
}
