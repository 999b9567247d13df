//! The kernel that a user chooses.

use std::{
    fmt,
    path::{self, PathBuf},
    str::FromStr,
};

/// A kernel that can be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelChoice {
    /// `debian:6.12`: the newest source package of this series in apt's lists.
    Debian(String),
    /// The absolute path of a source tree.
    Tree(PathBuf),
}

impl Default for KernelChoice {
    fn default() -> Self {
        Self::Debian("6.12".to_owned())
    }
}

impl FromStr for KernelChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') && !text.starts_with("debian:") {
            let path = path::absolute(text).map_err(|e| format!("`{text}`: {e}"))?;
            return Ok(Self::Tree(path.components().collect()));
        }
        let series = text.strip_prefix("debian:").and_then(|series| {
            let (major, minor) = series.split_once('.')?;
            let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            (number(major) && number(minor)).then(|| series.to_owned())
        });
        series.map(Self::Debian).ok_or_else(|| {
            format!(
                "`{text}` is no kernel of the host linux: write debian:6.12 (`knee linux list` shows those in the \
                 cache), or the path of a source tree, with a `/`"
            )
        })
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Debian(series) => write!(f, "debian:{series}"),
            Self::Tree(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // tests

    use super::*;

    #[test]
    fn choices_are_read() {
        let choice: KernelChoice = "debian:6.12".parse().unwrap();
        assert_eq!(
            (choice.to_string().as_str(), &choice),
            ("debian:6.12", &KernelChoice::default())
        );
        let tree: KernelChoice = "/src/./linux/".parse().unwrap();
        assert_eq!(tree, KernelChoice::Tree("/src/linux".into()));
        assert_eq!(tree.to_string().parse(), Ok(tree));
        for wrong in
            ["debian:", "debian:6", "debian:six.1", "debian:6.", "6.12", "debian:6.12/../x"]
        {
            assert!(wrong.parse::<KernelChoice>().is_err(), "{wrong}");
        }
    }
}
